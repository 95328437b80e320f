//! A body that is malformed and names by an id what is not there: whoever sent it hears of both at once (CONTRACT part 1, "every field
//! fault at once").

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
        stands: &[(&str, Named)],
        refusal: Refusal,
    ) -> Refusal {
        match refusal.kind() {
            Kind::InvalidRequest | Kind::InvalidBudget | Kind::InvalidMandate => {}
            _ => return refusal,
        }
        let Ok(json) = Json::parse(body) else { return refusal };
        let untold = |field: &str| refusal.errors().iter().all(|it| it.field.as_deref() != Some(field));
        let stood = |field: &str, it: &Named| stands.iter().any(|(at, of)| *at == field && of == it);
        let is_new = |(field, it): &(String, Named)| untold(field) && !stood(field, it);
        let named: Vec<(String, Named)> = named(&json, ids).into_iter().filter(is_new).collect();
        let mut found = self.read(|scope| faults(scope, workspace, &named)).unwrap_or_default();
        if ids.iter().any(|it| it.1 == Names::Scope) && untold("scope") && untold("scope.id") {
            found.extend(self.unknown_scope(workspace, &json));
        }
        match refusal.kind() {
            // Not all of it is the mandates' any more.
            Kind::InvalidMandate if !found.is_empty() => Refusal::invalid_request(refusal.errors().to_vec()).and(found),
            _ => refusal.and(found),
        }
    }

    fn unknown_scope(&self, workspace: WorkspaceId, json: &Json) -> Option<FieldError> {
        let over = budget::scope_of(json)?;
        let row = key_of(self, workspace, &over).ok()?;
        self.read(|scope| scope_fault(scope, workspace, &over, row)).ok()?
    }
}
