//! What the other servers have changed, as the database tells it (`LISTEN`).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;
use tokio_postgres::Client;

use super::Shared;
use super::errors::{hung_up, silent};
use super::io::{CONNECT_ALL, LOST};
use super::plan::heard;
use crate::backend::{Heard, Others};
use crate::error::StoreError;

/// Messages that wait to be taken; where there are more, everybody looks for themselves.
const WAITING_MAX: usize = 1_024;

/// A connection that listens.
pub(super) struct Ear {
    shared: Arc<Shared>,
    /// Kept: the connection ends with it.
    _client: Client,
    told: Option<Receiver<Option<String>>>,
}

impl Ear {
    pub(super) fn open(shared: Arc<Shared>) -> Result<Self, StoreError> {
        let (tell, told) = channel(WAITING_MAX);
        let door = Arc::clone(&shared.door);
        let client = shared.io.wait(CONNECT_ALL, async move { door.listen(tell).await })?;
        Ok(Self { _client: client.unwrap_or_else(|| Err(silent()))?, shared, told: Some(told) })
    }
}

impl Others for Ear {
    fn hear(&mut self, patience: Duration) -> Result<Heard, StoreError> {
        let mut told = self.told.take().ok_or(StoreError::Closed)?;
        let waited = self.shared.io.wait(LOST.saturating_add(patience), async move {
            let message = timeout(patience, told.recv()).await;
            (told, message)
        })?;
        let (told, message) = waited.ok_or_else(silent)?;
        self.told = Some(told);
        match message {
            Err(_) => Ok(Heard::Nothing),
            Ok(Some(Some(message))) => Ok(heard(&message).map_or(Heard::Missed, Heard::Rows)),
            Ok(Some(None)) => Ok(Heard::Missed),
            // The connection is gone.
            Ok(None) => Err(hung_up()),
        }
    }
}
