//! Stopping many agents: look them through on a snapshot, submit them with the guard row's epoch, and look again where they
//! have changed meanwhile.
//!
//! **Invariant:** nothing is decided here. What was found is checked in the commit that freezes.

use svc_core::engine::Failure;
use svc_core::engine::naming::told_apart;
use svc_core::engine::select::{Look, Selected, select};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::mcp_servers::Looked;
use svc_core::rules::gate::asked::Question;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gate::fleet::{Everyone, Fleet, FreezeFleet};
use svc_core::rules::gate::lift::ending_by;
use svc_core::rules::people::by::{By, entitled};
use svc_core::state::gate::{Approval, ApprovalSubject};
use svc_core::state::people::{Right, Selector};
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
    /// `invalid_selector` for one that [has faults](Selector::faults), such as one without a condition, which all would meet. Rows could
    /// not be read.
    pub fn select(&self, workspace: WorkspaceId, selector: &Selector) -> Result<Selected, Failure<StoreError>> {
        let faults = selector.faults();
        if !faults.is_empty() {
            return Err(Failure::Refused(Refusal::invalid_selector(faults)));
        }
        let now = self.now();
        let mut reader = Reader(self.core().readers.open().map_err(Failure::Load)?);
        select(&mut reader, workspace, selector, now).map_err(Failure::Load)
    }

    /// Whether a mandate, a template or a waiting application of `workspace` means other tools where an MCP server is called `new`
    /// instead of `old`. It looks through all of them: run it where it may take its time.
    ///
    /// # Errors
    /// Rows could not be read.
    pub fn told_apart(&self, workspace: WorkspaceId, old: &str, new: &str) -> Result<Looked, Failure<StoreError>> {
        let now = self.now();
        let mut reader = Reader(self.core().readers.open().map_err(Failure::Load)?);
        told_apart(&mut reader, workspace, (old, new), now).map_err(Failure::Load)
    }

    /// Stops the agents that a selector means, and waits for it. Once it answers, none of them is allowed anything.
    ///
    /// # Errors
    /// Those of [`freeze_fleet`](svc_core::rules::gate::fleet::freeze_fleet) and of [`select`](Self::select); `not_ready` where the agents change faster than
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

    /// Decides an approval, and waits for it. A yes to a freeze of every agent looks through all of them first, one to a lift ends
    /// what the stops of agents end that it restarts: run it where it may take its time.
    ///
    /// # Errors
    /// Those of [`decide_approval`](svc_core::rules::gate::decide::decide_approval); `not_ready` where the agents change
    /// faster than they can be looked through.
    pub fn decide(&self, decide: &DecideApproval) -> Result<Question, Failure<StoreError>> {
        let workspace = decide.by.workspace;
        let everyone = || self.select(workspace, &Selector::everyone()).map(Everyone::from);
        let mut looks = 0;
        self.end_before_lift(|scope| ending_by(scope, decide))?;
        loop {
            let looked = self.means_everyone(decide)?.then(everyone).transpose()?;
            let all = looked.is_some();
            match self.execute(DecideApproval { everyone: looked, ..decide.clone() }) {
                Err(Failure::Refused(it)) if all && it.kind() == Kind::NotReady && looks < LOOKS_MAX => looks += 1,
                decided => return decided,
            }
        }
    }

    /// Whether this is a yes to a freeze of every agent that still waits, by one who may say so: others are refused without
    /// a look at any agent.
    fn means_everyone(&self, decide: &DecideApproval) -> Result<bool, Failure<StoreError>> {
        let workspace = decide.by.workspace;
        let waits = |it: &Approval| it.workspace == workspace && it.is_waiting();
        let of_all = |it: &Approval| matches!(&it.subject, ApprovalSubject::Freeze(of) if of.all);
        if decide.choice == Choice::Deny {
            return Ok(false);
        }
        let looked = self.read(|scope| {
            entitled(scope, &By::Person(decide.by), workspace, Right::FreezeFleet)?;
            Ok(scope.get::<Approval>(decide.approval)?.is_some_and(|it| waits(&it) && of_all(&it)))
        });
        match looked {
            Err(Failure::Refused(_)) => Ok(false),
            looked => looked,
        }
    }
}
