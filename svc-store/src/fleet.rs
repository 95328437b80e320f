//! Stopping many agents: look them through on a snapshot, submit them with the guard row's epoch, and look again where they
//! have changed meanwhile.
//!
//! **Invariant:** nothing is decided here. What was found is checked in the commit that freezes.

use svc_core::engine::Failure;
use svc_core::engine::select::{Look, Selected, select};
use svc_core::refusal::Refusal;
use svc_core::rules::gate::fleet::{Fleet, FreezeFleet};
use svc_core::rules::people::by::By;
use svc_core::state::people::Selector;
use svc_core::store::{Found, Key, Loaded, Range};
use svc_core::value::digest::Digest;
use svc_core::value::id::WorkspaceId;
use svc_core::value::text::Note;

use crate::error::StoreError;
use crate::gate::Gate;
use crate::reader::Snapshot;

/// How often the agents of one request are looked through at most, while they keep changing.
const LOOKS_MAX: u32 = 16;

/// A request to stop many agents.
#[derive(Clone, Debug)]
pub struct FleetRequest {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who stops them.
    pub by: By,
    /// Whom.
    pub selector: Selector,
    /// Why.
    pub reason: Note,
    /// How many agents the caller counted.
    pub confirm: Option<i64>,
    /// Which selection the caller saw.
    pub seen: Option<Digest>,
}

struct Reader<'a>(Box<dyn Snapshot + 'a>);

impl Look for Reader<'_> {
    type Error = StoreError;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        self.0.load(keys)
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, StoreError> {
        self.0.scan(range)
    }
}

impl Gate {
    /// The agents of `workspace` that `selector` means now. It looks through all of them: run it where it may take its time.
    ///
    /// # Errors
    /// Rows could not be read.
    pub fn select(&self, workspace: WorkspaceId, selector: &Selector) -> Result<Selected, Failure<StoreError>> {
        let now = self.now();
        let mut reader = Reader(self.core().readers.open().map_err(Failure::Load)?);
        select(&mut reader, workspace, selector, now).map_err(Failure::Load)
    }

    /// Stops the agents that a selector means, and waits for it. Once it answers, none of them is allowed anything.
    ///
    /// # Errors
    /// Those of [`freeze_fleet`](svc_core::rules::gate::fleet::freeze_fleet); `not_ready` where the agents change faster than
    /// they can be looked through.
    pub fn freeze_fleet(&self, request: &FleetRequest) -> Result<Fleet, Failure<StoreError>> {
        for _ in 0..LOOKS_MAX {
            let selected = self.select(request.workspace, &request.selector)?;
            let fleet = self.execute(FreezeFleet {
                workspace: request.workspace,
                by: request.by.clone(),
                epoch: selected.epoch,
                agents: selected.agents.into(),
                frozen: selected.frozen,
                digest: selected.digest,
                all: request.selector.all,
                reason: request.reason.clone(),
                confirm: request.confirm,
                seen: request.seen,
            })?;
            if !matches!(fleet, Fleet::Moved) {
                return Ok(fleet);
            }
        }
        Err(Failure::Refused(Refusal::not_ready()))
    }
}
