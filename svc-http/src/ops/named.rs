//! A body that is malformed and names by an id what is not there: whoever sent it hears of both at once (CONTRACT part 1, "every field
//! fault at once"). What is looked for only in bodies that can be read says [`svc_core::rules::people::named`]; to that belong the tools that
//! a person accepts of a server (`toolsHash` says what they have looked at, and without it nobody knows what was there), and what is
//! refused with another status.

use svc_core::refusal::{FieldError, Kind, Refusal};
use svc_core::rules::gateway::budgets::scope_fault;
use svc_core::rules::people::named::{Named, faults};
use svc_core::value::id::WorkspaceId;
use svc_core::value::json::Json;

use super::GateService;
use super::budgets::key_of;
use crate::wire::budget;
use crate::wire::named::{Names, named};

impl GateService {
    /// The refusal of a body that could not be read, and beside what is told already every id in `ids` that can be read and names nothing
    /// of the workspace. Who may not be told what is there was refused before, by the right of the route. Where the store does not
    /// answer, what is wrong anyway is told alone.
    pub(super) fn and_named(
        &self,
        workspace: WorkspaceId,
        body: &[u8],
        ids: &[(&str, Names)],
        refusal: Refusal,
    ) -> Refusal {
        self.and_named_anew(workspace, body, ids, &[], refusal)
    }

    /// The same of a change, where what `stands` may be sent again, whatever has become of it.
    pub(super) fn and_named_anew(
        &self,
        workspace: WorkspaceId,
        body: &[u8],
        ids: &[(&str, Names)],
        stands: &[(String, Named)],
        refusal: Refusal,
    ) -> Refusal {
        let Ok(json) = Json::parse(body) else { return refusal };
        let named = named(&json, ids).into_iter().filter(|it| !stands.contains(it)).collect();
        let scoped = json.get("scope").filter(|_| ids.iter().any(|it| it.1 == Names::Scope)).map(|_| &json);
        self.and_faults(workspace, named, scoped, refusal)
    }

    /// The same of ids that were read otherwise.
    pub(super) fn and_these(&self, workspace: WorkspaceId, named: Vec<(String, Named)>, refusal: Refusal) -> Refusal {
        self.and_faults(workspace, named, None, refusal)
    }

    /// `scoped`: a body that says in its member `scope` what it is over.
    fn and_faults(
        &self,
        workspace: WorkspaceId,
        mut named: Vec<(String, Named)>,
        scoped: Option<&Json>,
        refusal: Refusal,
    ) -> Refusal {
        match refusal.kind() {
            Kind::InvalidApplication
            | Kind::InvalidBudget
            | Kind::InvalidMandate
            | Kind::InvalidRequest
            | Kind::InvalidUpstream
            | Kind::TemplateOnly => {}
            _ => return refusal,
        }
        let untold = |field: &str| refusal.errors().iter().all(|it| it.field.as_deref() != Some(field));
        named.retain(|(field, _)| untold(field));
        let mut found = self.read(|scope| faults(scope, workspace, &named)).unwrap_or_default();
        if untold("scope") && untold("scope.id") {
            found.extend(scoped.and_then(|it| self.unknown_scope(workspace, it)));
        }
        match refusal.kind() {
            // Not all of it is the mandates' any more; and that a token may send no more than a template is told after what is wrong.
            Kind::InvalidMandate | Kind::TemplateOnly if !found.is_empty() => {
                Refusal::invalid_request(refusal.errors().to_vec()).and(found)
            }
            _ => refusal.and(found),
        }
    }

    fn unknown_scope(&self, workspace: WorkspaceId, json: &Json) -> Option<FieldError> {
        let over = budget::scope_of(json)?;
        let row = key_of(self, workspace, &over).ok()?;
        self.read(|scope| scope_fault(scope, workspace, &over, row)).ok()?
    }
}
