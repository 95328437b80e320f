//! What goes out is looked through: for what deciding takes of it, and for data that must not, as the workspace has set.

use std::sync::{Arc, Mutex, PoisonError};

use svc_core::dialect::Body;
use svc_core::dlp::{self, Findings};
use svc_core::refusal::Refusal;
use svc_core::rules::gateway::payer::CallKey;
use svc_core::state::gateway::Demand;
use svc_core::state::people::DataLoss;
use svc_core::value::Id as _;
use svc_core::value::id::WorkspaceId;

use crate::bounded::Bounded;
use crate::dispatch::Call;
use crate::model_bodies::Kept;
use crate::turns::{Turn, Turns};

/// Bodies above this are looked through beside the threads that serve requests.
const INLINE_BYTES_MAX: usize = 8 * 1024;
/// So many of them at once; others wait for their turn.
const ASIDE_MAX: usize = 4;
/// And of one workspace, however many keys it has: one that sends long ones without end keeps another's waiting for none of them.
const OF_WORKSPACE_MAX: usize = 3;
/// And of one key, so that it keeps its workspace's others waiting for a few of them and not for all.
const OF_KEY_MAX: usize = 2;
/// The request without what was found, where that is asked for, and how much was found of each kind.
type Looked = (Option<Body>, Findings);

/// Workspaces whose setting is remembered.
const REMEMBERED_MAX: usize = 10_000;

/// The setting of each workspace as this server last heard of it, and turns at looking through what is long. The admitting commit
/// compares it with the setting in force, so one that is out of date costs a second look and nothing else.
#[derive(Debug)]
pub(crate) struct DataLossSettings {
    known: Mutex<Bounded<(), WorkspaceId, DataLoss>>,
    turns: InTurn,
}

/// Turns at looking through what is long: keys wait for those of their own workspace first.
#[derive(Debug)]
struct InTurn {
    keys: Turns<u128>,
    workspaces: Turns<WorkspaceId>,
}

impl InTurn {
    async fn take(&self, workspace: WorkspaceId, key: u128) -> Result<(Turn, Turn), Refusal> {
        let own = self.keys.take(key).await?;
        Ok((self.workspaces.take(workspace).await?, own))
    }
}

impl Default for DataLossSettings {
    fn default() -> Self {
        let turns = InTurn { keys: Turns::apart(OF_KEY_MAX), workspaces: Turns::new(ASIDE_MAX, OF_WORKSPACE_MAX) };
        Self { known: Mutex::new(Bounded::new(REMEMBERED_MAX, REMEMBERED_MAX)), turns }
    }
}

impl DataLossSettings {
    pub(super) fn of(&self, workspace: WorkspaceId) -> DataLoss {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&workspace).copied().unwrap_or(DataLoss::Off)
    }

    pub(super) fn set(&self, workspace: WorkspaceId, setting: DataLoss) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.keep((), workspace, setting);
    }
}

/// Whose request is read: in whose turn, and what room it has, which it keeps where its client leaves meanwhile.
#[derive(Clone)]
pub(super) struct Reading<'a> {
    turns: &'a InTurn,
    workspace: WorkspaceId,
    key: u128,
    room: Option<Arc<Kept>>,
}

impl<'a> Reading<'a> {
    pub(super) fn of(settings: &'a DataLossSettings, key: &CallKey, call: &Call) -> Self {
        let (workspace, key) = (key.binding.workspace, key.binding.counts_as().bits());
        Self { turns: &settings.turns, workspace, key, room: call.room.clone() }
    }
}

/// What deciding on a request takes. A document in it may be long, and is read for its pages.
///
/// # Errors
/// `internal` where reading failed.
pub(super) async fn demand(reading: &Reading<'_>, body: &Arc<Body>) -> Result<Arc<Demand>, Refusal> {
    aside(reading, body, |it| Arc::new(it.demand())).await
}

/// Looks through every text of a request: the request without what was found, where the setting asks for that, and how much
/// was found of each kind.
///
/// # Errors
/// `internal` where looking failed: what was not looked through does not go out, whatever the setting.
pub(super) async fn look(reading: &Reading<'_>, setting: DataLoss, body: &Arc<Body>) -> Result<Looked, Refusal> {
    if setting == DataLoss::Off {
        return Ok((None, Findings::default()));
    }
    aside(reading, body, move |it| look_now(setting, it.clone())).await?
}

/// Does this with a request: beside the threads that serve requests where it is long, and in the turn of its workspace and key.
async fn aside<T: Send + 'static>(
    reading: &Reading<'_>,
    body: &Arc<Body>,
    work: impl FnOnce(&Body) -> T + Send + 'static,
) -> Result<T, Refusal> {
    if body.as_bytes().len() <= INLINE_BYTES_MAX {
        return Ok(work(body));
    }
    let turn = reading.turns.take(reading.workspace, reading.key).await?;
    let (body, room) = (Arc::clone(body), reading.room.clone());
    let read = crate::at_hand::spawn_blocking(move || {
        let read = work(&body);
        drop((turn, room));
        read
    });
    read.await.map_err(|_| Refusal::internal())
}

fn look_now(setting: DataLoss, mut body: Body) -> Result<Looked, Refusal> {
    let mut found = Findings::default();
    body.parts_mut(&mut |texts| {
        found.add(&dlp::scan_parts(texts));
        if setting == DataLoss::Redact { dlp::redact_parts(texts) } else { vec![None; texts.len()] }
    })?;
    Ok((if setting == DataLoss::Redact { Some(body) } else { None }, found))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::ops::Range;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use svc_core::state::gateway::Dialect;

    use super::*;

    /// A request with a document of so many bytes in base64.
    fn body(bytes: usize) -> Arc<Body> {
        let text = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"file","file":{{"file_data":"{}"}}}}]}}]}}"#,
            "QUJD".repeat(bytes / 4)
        );
        Arc::new(Body::read(Dialect::Chat, text.as_bytes()).unwrap())
    }

    /// A short request is read where it is served; for a long one whoever serves goes on with others meanwhile, whatever is looked for.
    #[tokio::test]
    async fn long_requests_are_read_aside() {
        let (short, long) = (body(1_000), body(8 << 20));
        let settings = DataLossSettings::default();
        let whose = Reading { turns: &settings.turns, workspace: WorkspaceId::from_bits(1), key: 1, room: None };
        for (body, is_aside) in [(&short, false), (&long, true)] {
            let mut reading = pin!(demand(&whose, body));
            let first = reading.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(first.is_pending(), is_aside);
            let read = match first {
                Poll::Ready(read) => read,
                Poll::Pending => reading.await,
            };
            assert_eq!(*read.unwrap(), body.demand());
            let here = std::thread::current().id();
            let there = aside(&whose, body, |_| std::thread::current().id()).await.unwrap();
            assert_eq!(there != here, is_aside);
        }
    }

    /// The turns that a workspace's keys have at once where each asks for more than there are, and what waits for theirs.
    fn held(settings: &DataLossSettings, keys: Range<u128>) -> (Vec<(Turn, Turn)>, Vec<impl Future>) {
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        let mut context = Context::from_waker(Waker::noop());
        for key in keys {
            for _ in 0..2 * ASIDE_MAX {
                let mut turn = Box::pin(settings.turns.take(WorkspaceId::from_bits(1), key));
                match turn.as_mut().poll(&mut context) {
                    Poll::Ready(turn) => held.push(turn.unwrap()),
                    Poll::Pending => waiting.push(turn),
                }
            }
        }
        (held, waiting)
    }

    /// One key has as many long requests read at once as leave others of its workspace a place, all keys of a workspace as many as leave
    /// another's one, however many keys it has; places are given back.
    #[tokio::test]
    async fn a_key_and_a_workspace_leave_places_to_others() {
        let settings = DataLossSettings::default();
        let whose = |workspace, key| Reading {
            turns: &settings.turns,
            workspace: WorkspaceId::from_bits(workspace),
            key,
            room: None,
        };
        let mut context = Context::from_waker(Waker::noop());
        let long = body(1 << 20);
        for (keys, count, free, waits) in
            [(1..2, OF_KEY_MAX, whose(1, 100), whose(1, 1)), (1..40, OF_WORKSPACE_MAX, whose(2, 100), whose(1, 100))]
        {
            let (held, waiting) = held(&settings, keys);
            assert_eq!(held.len(), count);
            assert!(demand(&free, &long).await.is_ok());
            let mut own = pin!(demand(&waits, &long));
            assert!(own.as_mut().poll(&mut context).is_pending());
            drop((held, waiting));
            assert!(own.await.is_ok());
        }
    }
}
