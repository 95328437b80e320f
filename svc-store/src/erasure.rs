//! Erasing what is personal: found by scans, let go of by commands, a page a commit. The ledger's records stay, and whether it
//! is whole is looked at, not assumed.

use svc_core::rules::evidence::erase::{Erase, Target, address_of};
use svc_core::rules::people::by::By;
use svc_core::state::evidence::Disclosure;
use svc_core::state::evidence::bundle::{Verdict, Verifier};
use svc_core::state::gate::{Agent, Approval};
use svc_core::state::people::{Application, Hold};
use svc_core::store::{Key, Range, Record};
use svc_core::value::id::{EvidenceId, PrincipalId, WorkspaceId};
use svc_core::value::link::Index;
use svc_core::value::{Id as _, Timestamp};

use crate::evidence::{Failed, PAGE, Wanted};
use crate::gate::Gate;

impl Gate {
    /// Erases the personal texts of an action or of a person, on behalf of `by`: records stay, so that the tree stays whole, and
    /// what they commit to can be shown by nobody. Gives how many rows lost their texts.
    ///
    /// # Errors
    /// `forbidden` where `by` may not, `not_found` where there is no such action; the store does not answer.
    pub fn erase(&self, workspace: WorkspaceId, by: &By, target: Target) -> Result<u64, Failed> {
        let lists = match target {
            Target::Action(id) => vec![(Index::PersonalOf, Disclosure::about(&id.to_string()))],
            Target::Principal(id) => {
                vec![(Index::PersonalOf, Disclosure::about(&id.to_string())), (Index::PersonalBy, id.bits())]
            }
        };
        let erase = || Erase { last: false, ..Erase::new(workspace, by.clone(), target) };
        // What holds their address is found by it, so it goes last.
        let mut erased = match target {
            Target::Principal(person) => self.erase_notes(workspace, person, &erase)?,
            Target::Action(_) => 0,
        };
        let last = lists.len();
        for (place, (index, prefix)) in (1..).zip(lists) {
            loop {
                let found = self.scan(&Range::all(index, prefix, PAGE))?;
                let ids = found.iter().filter_map(|it| match it.row.key {
                    Key::Disclosure(id) => Some(id),
                    _ => None,
                });
                let disclosures: Vec<EvidenceId> = ids.collect();
                let more = disclosures.len() == PAGE;
                let done = self.execute(Erase { disclosures, last: place == last && !more, ..erase() })?;
                erased = erased.saturating_add(done);
                if !more || done == 0 {
                    break;
                }
            }
        }
        Ok(erased)
    }

    /// Looks through all approvals, applications, agents and holds for what a person wrote, and applications for their address,
    /// and has it erased.
    fn erase_notes(
        &self,
        workspace: WorkspaceId,
        person: PrincipalId,
        erase: &impl Fn() -> Erase,
    ) -> Result<u64, Failed> {
        let address = self.read(|scope| address_of(scope, workspace, person))?;
        let mut erased: u64 = 0;
        for index in [Index::ApprovalsOf, Index::ApplicationsOf, Index::AgentsOf, Index::HoldsOf] {
            let mut range = Range::all(index, workspace.bits(), PAGE);
            loop {
                let found = self.scan(&range)?;
                let mut next = erase();
                for row in &found {
                    match &row.row.record {
                        Some(Record::Approval(it)) if Approval::clone(it).forget(Some(person)) != **it => {
                            next.approvals.push(it.id);
                        }
                        Some(Record::Application(it))
                            if Application::clone(it).forget(person, address.as_ref()) != **it =>
                        {
                            next.applications.push(it.id);
                        }
                        Some(Record::Agent(it)) if Agent::clone(it).forget(person) != **it => next.agents.push(it.id),
                        Some(Record::Hold(it)) if Hold::clone(it).forget(person) != **it => next.holds.push(it.id),
                        _ => {}
                    }
                }
                let found_some = [next.approvals.len(), next.applications.len(), next.agents.len(), next.holds.len()];
                if found_some.iter().any(|it| *it > 0) {
                    erased = erased.saturating_add(self.execute(next)?);
                }
                if !range.turn_page(&found) {
                    break;
                }
            }
        }
        Ok(erased)
    }

    /// Whether the whole ledger, from its first record, is what its signed checkpoint says: every record is read and checked as
    /// whoever takes a bundle away checks it.
    ///
    /// # Errors
    /// As [`bundle`](Self::bundle).
    pub fn is_whole(&self, workspace: WorkspaceId) -> Result<bool, Failed> {
        let mut start = 0;
        loop {
            let from = Timestamp::default();
            let bundle = self.bundle(&Wanted {
                workspace,
                from,
                to: None,
                since: None,
                start: Some(start),
                agent: None,
                redact: true,
            })?;
            let (end, more) = (bundle.range.to, bundle.cursor.is_some());
            let mut verifier = Verifier::default();
            for piece in bundle {
                verifier.feed(&piece?);
            }
            if verifier.finish().verdict != Verdict::Whole {
                return Ok(false);
            }
            if !more {
                return Ok(true);
            }
            start = end;
        }
    }
}
