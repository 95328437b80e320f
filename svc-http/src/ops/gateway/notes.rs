//! What the answer to a call tells beside its content (SPEC 9.4).

use http::{HeaderName, HeaderValue};
use svc_core::rules::gateway::admit::Admitted;
use svc_core::state::gateway::route::thousandths;
use svc_core::state::gateway::{Mode, Step, Target};

use super::asked::Asked;
use crate::answer::{Answer, X_SVC_BUDGET_SCOPE, X_SVC_CALL_ID, X_SVC_ENFORCEMENT};

/// A line for people.
pub(super) const X_SVC_ADVISORY: HeaderName = HeaderName::from_static("x-svc-advisory");
const X_SVC_TASK_ID: HeaderName = HeaderName::from_static("x-svc-task-id");
const X_SVC_SESSION: HeaderName = HeaderName::from_static("x-svc-session");
const X_SVC_ROUTED_TO: HeaderName = HeaderName::from_static("x-svc-routed-to");
const X_SVC_WOULD_ROUTE_TO: HeaderName = HeaderName::from_static("x-svc-would-route-to");
const X_SVC_JURISDICTION: HeaderName = HeaderName::from_static("x-svc-jurisdiction");
const X_SVC_YIELD_MULTIPLIER: HeaderName = HeaderName::from_static("x-svc-yield-multiplier");
/// An advisory's longest line.
const ADVISORY_MAX: usize = 200;
/// What stands between two advisories, and within none.
const BETWEEN: &str = "; ";

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
    let found =
        Some(&call.data_loss).filter(|it| !it.is_empty()).map(|it| format!("sensitive data: {}", it.describe()));
    // What ends with a day, and what budgets say or cannot see, comes before what may be left out.
    let (first, last) = (notes.advisories.iter().cloned(), notes.asides.iter().cloned());
    let advisories: Vec<String> = first.chain(unpriced).chain(found).chain(last).collect();
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

/// One line of ASCII: those, the gravest first, that fit on it whole. Only where the first alone does not, it is cut at a word.
fn advisory(lines: &[String]) -> String {
    let plain = |it: char| if it.is_ascii_graphic() || it == ' ' { it } else { '?' };
    let mut line = String::new();
    for told in lines {
        let told: String = told.replace(BETWEEN, ", ").chars().map(plain).collect();
        if line.is_empty() && told.len() > ADVISORY_MAX {
            let most = told.get(..=ADVISORY_MAX).and_then(|it| it.rsplit_once(' '));
            line = most.map_or_else(|| told.chars().take(ADVISORY_MAX).collect(), |(it, _)| it.to_owned());
        } else if line.is_empty() {
            line = told;
        } else if line.len() + BETWEEN.len() + told.len() <= ADVISORY_MAX {
            line.push_str(BETWEEN);
            line.push_str(&told);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An advisory is one line of at most 200 characters of ASCII, of whole ones but where the first alone is longer.
    #[test]
    fn an_advisory_is_one_line_of_whole_ones() {
        let of = |lines: &[&str]| advisory(&lines.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        let (long, fits) = ("x".repeat(195), "x".repeat(192));
        assert_eq!(of(&["Käse\n", "a; b"]), "K?se?; a, b");
        assert_eq!(of(&["Käse", &long, "last"]), "K?se; last");
        assert_eq!(of(&["Käse\u{7f}x", &fits]), format!("K?se?x; {fits}"));
        assert_eq!(of(&[&format!("1 a, {long}y"), "b"]), "1 a,; b");
        assert_eq!(of(&["x".repeat(300).as_str(), "b"]).len(), 200);
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
