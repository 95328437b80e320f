//! A store in memory that fails when it is told to, is seen, and tells other servers on it what it has taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use svc_core::store::{Clock as _, Commit, CommitError, Committed, Found, Key, Loaded, MemoryStore, Range, Store};
use svc_core::value::Timestamp;
use svc_store::{Backend, Others};

use crate::wire::Wire;
use crate::witness::Witness;

/// How a store fails; clones are one switch.
#[derive(Clone, Debug, Default)]
pub struct FaultSwitch(Arc<AtomicU8>);

/// What a store does instead of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// Its work.
    None = 0,
    /// It reads nothing.
    Load = 1,
    /// It takes nothing.
    Unavailable = 2,
    /// It took the commit and nobody knows.
    UnknownApplied = 3,
    /// It did not take the commit and nobody knows.
    UnknownLost = 4,
    /// It took the commit, nobody knows, and from then on it reads nothing.
    UnknownDeaf = 5,
    /// It reads no provider's key, and else does its work.
    Keys = 6,
}

impl FaultSwitch {
    /// From here on.
    pub fn set(&self, fault: Fault) {
        self.0.store(fault as u8, Ordering::SeqCst);
    }

    fn is(&self, fault: Fault) -> bool {
        self.0.load(Ordering::SeqCst) == fault as u8
    }
}

/// Memory that fails when it is told to.
#[derive(Clone, Debug)]
pub(crate) struct Shaky {
    pub(crate) inner: MemoryStore,
    pub(crate) fault: FaultSwitch,
    pub(crate) witness: Witness,
    pub(crate) wire: Option<Wire>,
}

/// What such a store says.
#[derive(Debug)]
pub(crate) struct Told;

impl std::fmt::Display for Told {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the test told it to fail")
    }
}

impl std::error::Error for Told {}

impl Store for Shaky {
    type Error = Told;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, Told> {
        let is_key = |it: &Key| matches!(it, Key::UpstreamKey(_));
        if self.fault.is(Fault::Load) || (self.fault.is(Fault::Keys) && keys.iter().any(is_key)) {
            return Err(Told);
        }
        self.inner.load(keys).map_err(|never| match never {})
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<Told>> {
        if self.fault.is(Fault::Unavailable) {
            return Err(CommitError::Unavailable(Told));
        }
        if self.fault.is(Fault::UnknownLost) {
            return Err(CommitError::Unknown(Told));
        }
        let done = self.inner.commit(commit).map_err(|_| CommitError::Rejected(Told))?;
        if matches!(done, Committed::Applied(_)) {
            self.witness.see(commit);
            self.wire.iter().for_each(|it| it.tell(commit));
        }
        if self.fault.is(Fault::UnknownDeaf) {
            self.fault.set(Fault::Load);
            return Err(CommitError::Unknown(Told));
        }
        if self.fault.is(Fault::UnknownApplied) {
            return Err(CommitError::Unknown(Told));
        }
        Ok(done)
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, Told> {
        self.witness.hold(range);
        if self.fault.is(Fault::Load) {
            return Err(Told);
        }
        self.inner.scan(range).map_err(|never| match never {})
    }
}

impl Backend for Shaky {
    type Session = Self;

    fn lanes(&self) -> usize {
        1
    }

    fn writer(&self) -> Result<Self, Told> {
        Ok(self.clone())
    }

    fn reader(&self) -> Result<Self, Told> {
        Ok(self.clone())
    }

    fn is_shared(&self) -> bool {
        self.wire.is_some()
    }

    fn others(&self) -> Result<Option<Box<dyn Others>>, Told> {
        Ok(self.wire.as_ref().and_then(Wire::listen))
    }

    fn time(&self) -> Result<Option<Timestamp>, Told> {
        Ok(self.wire.as_ref().and_then(|it| it.clock.as_ref()).map(|it| it.now()))
    }
}
