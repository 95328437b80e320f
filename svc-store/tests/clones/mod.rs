//! A backend of a store that tests wrap around another: what it does is the store's own affair.

use svc_core::store::Store;
use svc_store::Backend;

/// A store whose sessions are clones of it; one of them writes.
pub(crate) struct Clones<S>(pub(crate) S);

impl<S: Store + Clone + Send + Sync + 'static> Backend for Clones<S> {
    type Session = S;

    fn lanes(&self) -> usize {
        1
    }

    fn writer(&self) -> Result<S, S::Error> {
        Ok(self.0.clone())
    }

    fn reader(&self) -> Result<S, S::Error> {
        Ok(self.0.clone())
    }
}
