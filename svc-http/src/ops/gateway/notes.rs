//! What the answer to a call tells beside its content (SPEC 9.4).

use http::{HeaderName, HeaderValue};
use svc_core::rules::gateway::admit::Admitted;
use svc_core::state::gateway::route::thousandths;
use svc_core::state::gateway::{Mode, Step, Target};

use super::asked::Asked;
use crate::answer::{Answer, X_SVC_BUDGET_SCOPE, X_SVC_ENFORCEMENT};

/// A line for people.
pub(super) const X_SVC_ADVISORY: HeaderName = HeaderName::from_static("x-svc-advisory");
const X_SVC_CALL_ID: HeaderName = HeaderName::from_static("x-svc-call-id");
const X_SVC_TASK_ID: HeaderName = HeaderName::from_static("x-svc-task-id");
const X_SVC_SESSION: HeaderName = HeaderName::from_static("x-svc-session");
const X_SVC_ROUTED_TO: HeaderName = HeaderName::from_static("x-svc-routed-to");
const X_SVC_WOULD_ROUTE_TO: HeaderName = HeaderName::from_static("x-svc-would-route-to");
const X_SVC_JURISDICTION: HeaderName = HeaderName::from_static("x-svc-jurisdiction");
const X_SVC_YIELD_MULTIPLIER: HeaderName = HeaderName::from_static("x-svc-yield-multiplier");
/// An advisory's longest line.
const ADVISORY_MAX: usize = 200;

/// The answer with what is told beside it; `asked` is what its client's headers did. A dry run is kept nowhere, so the ids that
/// it would have been given name nothing and are no client's to send back.
pub(super) fn onto(answer: Answer, admitted: &Admitted, asked: &Asked) -> Answer {
    let (call, notes) = (&admitted.call, &admitted.notes);
    let mut answer = answer;
    let mut tell = |name: HeaderName, text: &str| {
        if let Ok(value) = HeaderValue::from_str(text) {
            answer.push_header(name, value);
        }
    };
    if !asked.dry {
        tell(X_SVC_CALL_ID, &call.id.to_string());
    }
    if !asked.dry || asked.task.is_some() {
        tell(X_SVC_TASK_ID, call.task.as_str());
    }
    if !asked.dry && asked.session.is_none() {
        tell(X_SVC_SESSION, call.session.as_str());
    }
    tell(X_SVC_ENFORCEMENT, enforcement(call.mode, notes.step));
    if let Some(scope) = &notes.budget_scope {
        tell(X_SVC_BUDGET_SCOPE, scope);
    }
    if let Some(model) = &notes.would_route_to {
        tell(X_SVC_WOULD_ROUTE_TO, model);
    }
    tell(X_SVC_YIELD_MULTIPLIER, &thousandths(admitted.place.multiplier));
    let unpriced = call.target.as_ref().filter(|_| admitted.place.worst.is_none());
    let unpriced = unpriced.map(|it| format!("{} has no price for this call, which budgets cannot see", routed(it)));
    let advisories: Vec<String> = unpriced.into_iter().chain(notes.advisories.iter().cloned()).collect();
    if !advisories.is_empty() {
        tell(X_SVC_ADVISORY, &advisory(&advisories));
    }
    if let Some(target) = &call.target {
        tell(X_SVC_JURISDICTION, &target.jurisdiction);
        if call.mode == Mode::Enforce {
            tell(X_SVC_ROUTED_TO, &routed(target));
        }
    }
    answer
}

fn routed(target: &Target) -> String {
    format!("{}/{}", target.provider, target.model)
}

/// `shadow`, or the highest step reached that refuses nothing.
fn enforcement(mode: Mode, step: Option<Step>) -> &'static str {
    match (mode, step) {
        (Mode::Shadow, _) => "shadow",
        (Mode::Enforce, Some(Step::Nudge)) => "nudge",
        (Mode::Enforce, Some(Step::Downgrade)) => "downgrade",
        (Mode::Enforce, _) => "observe",
    }
}

/// One line of ASCII, cut where it is too long.
fn advisory(lines: &[String]) -> String {
    let joined = lines.join("; ");
    joined.chars().map(|it| if it.is_ascii_graphic() || it == ' ' { it } else { '?' }).take(ADVISORY_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An advisory is one line of at most 200 characters of ASCII.
    #[test]
    fn an_advisory_is_one_line_of_ascii() {
        let long = advisory(&["Käse\n".to_owned(), "x".repeat(300)]);
        assert!(long.len() == 200 && long.starts_with("K?se?; x") && long.is_ascii(), "{long}");
    }

    /// In shadow it says so; else the highest step that refuses nothing.
    #[test]
    fn enforcement_names_the_mode_or_the_step() {
        assert_eq!(enforcement(Mode::Shadow, Some(Step::Stop)), "shadow");
        assert_eq!(enforcement(Mode::Enforce, None), "observe");
        assert_eq!(enforcement(Mode::Enforce, Some(Step::Nudge)), "nudge");
        assert_eq!(enforcement(Mode::Enforce, Some(Step::Downgrade)), "downgrade");
        assert_eq!(enforcement(Mode::Enforce, Some(Step::Approval)), "observe");
    }
}
