//! Separation of duties where it takes more rows than a decision reads: who besides the caller could do what they may not do for
//! themselves.
//!
//! **Invariant:** nothing is decided here. Whether whoever was found still may is looked at in the commit.

use svc_core::engine::Failure;
use svc_core::state::people::Principal;
use svc_core::store::{Range, Row as _};
use svc_core::value::Id as _;
use svc_core::value::id::{PrincipalId, WorkspaceId};
use svc_core::value::link::Index;

use crate::error::StoreError;
use crate::gate::Gate;

/// Members that are looked through at once.
const MEMBERS_PAGE: usize = 500;

impl Gate {
    /// An owner or admin of the workspace besides `own`, where there is one.
    ///
    /// # Errors
    /// Rows could not be read.
    pub(crate) fn another_admin(
        &self,
        workspace: WorkspaceId,
        own: PrincipalId,
    ) -> Result<Option<PrincipalId>, Failure<StoreError>> {
        let mut range = Range::all(Index::PrincipalsOf, workspace.bits(), MEMBERS_PAGE);
        loop {
            let found = self.scan(&range)?;
            let mut principals = found.iter().filter_map(|it| it.row.record.as_ref().and_then(Principal::peel));
            if let Some(other) = principals.find(|it| it.id != own && it.administers()) {
                return Ok(Some(other.id));
            }
            if !range.turn_page(&found) {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::sync::Arc;

    use svc_core::OutcomeStatus;
    use svc_core::refusal::Kind;
    use svc_core::rules::gate::restart::RestartAgent;
    use svc_core::rules::people::by::By;
    use svc_core::state::gate::Agent;
    use svc_core::state::people::{Role, Settings as WorkspaceSettings};
    use svc_core::store::MemoryStore;
    use svc_core::testing::world::{World, payment, terms};
    use svc_core::value::text::Note;

    use super::*;
    use crate::gate::Settings;

    const OFFICE: &str = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000}}"#;

    /// A sole owner whose own agent an incident stopped restarts it where nobody else could, and not where an admin is: also of a
    /// program without a server, which names no admin.
    #[test]
    fn an_incidents_principal_is_held_to_another_admin() {
        for roles in [&[][..], &[Role::Member], &[Role::Member, Role::Admin]] {
            let store = MemoryStore::default();
            let mut world = World::over(store.clone(), WorkspaceSettings::default());
            let agent = world.agent().with_mandate(terms(OFFICE)).register();
            let owner = world.owner();
            world.edit::<Agent>(agent.agent, |it| it.principal = owner.principal);
            let paid = world.authorize(&agent, payment(100, "EUR", "a.example"));
            world.settle(&agent, paid.id(), OutcomeStatus::Completed, Some(101));
            for role in roles {
                world.person(*role);
            }
            let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
            let gate = Gate::over(store, clock, signer, Settings { timers: false, ..Settings::default() }).unwrap();
            let restarted = gate.restart(&RestartAgent {
                workspace: agent.workspace,
                agent: agent.agent,
                by: By::Person(owner),
                reason: Note::parse("mended").unwrap(),
                admin: None,
            });
            match restarted {
                Ok(agent) => assert!(agent.is_active() && !roles.contains(&Role::Admin), "{roles:?}"),
                Err(Failure::Refused(it)) => assert!(it.kind() == Kind::DutiesNow && roles.contains(&Role::Admin)),
                Err(failure) => panic!("{failure}"),
            }
        }
    }
}
