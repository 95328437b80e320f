//! Changing a mandate's periods: what its own actions add up to is counted on snapshots first, and again where the agent has acted
//! meanwhile.
//!
//! **Invariant:** nothing is decided here. What was counted is checked in the commit that changes the mandate.

use svc_core::engine::Failure;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::people::applications::{self, ApproveApplication, Approved};
use svc_core::rules::people::mandates::{ChangeMandate, Held};
use svc_core::rules::people::recount::{self, Recount};
use svc_core::state::gate::Action;
use svc_core::store::Row as _;

use crate::error::StoreError;
use crate::evidence::GoOn;
use crate::gate::Gate;

/// How often the actions of one mandate are counted at most, while the agent goes on acting.
pub const COUNTS_MAX: usize = 8;

impl Gate {
    /// Changes a mandate, and waits for it. A change of a period looks through what the agent did in it: run it where it may take its
    /// time.
    ///
    /// # Errors
    /// Those of [`change_mandate`](svc_core::rules::people::mandates::change_mandate); `not_ready` where the agent acts faster than its
    /// actions are counted: pause the mandate first.
    pub fn change_mandate(&self, change: &ChangeMandate) -> Result<Held, Failure<StoreError>> {
        let made = |counted| self.execute(ChangeMandate { counted, ..change.clone() });
        self.counting(made, || self.read(|scope| recount::plan(scope, change)))
    }

    /// Approves an application, and waits for it: as [`change_mandate`](Self::change_mandate) where that is what it asks for.
    ///
    /// # Errors
    /// Those of [`approve_application`](applications::approve_application); `not_ready` as there.
    pub fn approve_application(&self, approve: &ApproveApplication) -> Result<Approved, Failure<StoreError>> {
        let made = |counted| self.execute(ApproveApplication { counted, ..approve.clone() });
        self.counting(made, || self.read(|scope| applications::plan(scope, approve)))
    }

    /// Adds up a mandate's own actions in the periods that change.
    ///
    /// # Errors
    /// Those of [`scan`](Self::scan).
    pub fn count(&self, sums: &mut Recount) -> Result<(), Failure<StoreError>> {
        self.count_while(sums, &|| Ok(()))
    }

    /// The same for as long as `go_on` says so: it is every action of the agent in a period, of which there may be very many.
    ///
    /// # Errors
    /// As [`count`](Self::count), and what `go_on` refuses with.
    pub fn count_while(&self, sums: &mut Recount, go_on: &GoOn<'_>) -> Result<(), Failure<StoreError>> {
        let mut after = None;
        loop {
            go_on().map_err(Failure::Refused)?;
            let found = self.scan(&sums.range(after))?;
            for action in found.iter().filter_map(|it| Action::peel(it.row.record.as_ref()?)) {
                sums.add(action);
            }
            match found.last() {
                Some(last) => after = Some((last.order, last.row.key)),
                None => return Ok(()),
            }
        }
    }

    fn counting<T>(
        &self,
        made: impl Fn(Option<Recount>) -> Result<T, Failure<StoreError>>,
        plan: impl Fn() -> Result<Option<Recount>, Failure<StoreError>>,
    ) -> Result<T, Failure<StoreError>> {
        let mut counted = None;
        for _ in 0..COUNTS_MAX {
            let refused = match made(counted) {
                Err(Failure::Refused(it)) if it.kind() == Kind::NotReady => it,
                done => return done,
            };
            let Some(mut sums) = plan()? else { return Err(Failure::Refused(refused)) };
            self.count(&mut sums)?;
            counted = Some(sums);
        }
        Err(Failure::Refused(Refusal::not_ready()))
    }
}
