//! The schemas of what a decision rests on: reasons, and where an action came from. Their words come from the core's own lists.

use serde_json::{Value, json};
use svc_core::state::gate::provenance::{SOURCES, Verdict};
use svc_core::state::gate::{ActionKind, Class, Code, Effect};

use super::{id, reference, time, with_description, words};

/// The schemas of this family, each with its name.
pub(super) fn all() -> [(&'static str, Value); 3] {
    [("Reason", reason()), ("ReasonCode", code()), ("Provenance", provenance())]
}

fn reason() -> Value {
    json!({
        "type": "object",
        "description": "One rule that spoke; message is for the person.",
        "required": ["code", "effect", "message"],
        "properties": {
            "code": reference("ReasonCode"),
            "effect": with_description(
                words(&Effect::ALL, Effect::as_str),
                "What it does to the decision: one `deny` denies, otherwise one `ask` has a person asked, and `info` is noted alone.",
            ),
            "message": { "type": "string" },
            "mandateId": with_description(id("mnd_"), "The mandate that said it."),
            "field": { "type": "string", "description": "What it is about: a field, a domain, a tool, a line." },
            "limit": { "type": "integer", "description": "The bound: minor units of the payment's currency, or a number of actions." },
            "used": { "type": "integer", "description": "What had filled it before; of `split_payments`, what the payments come to with this one." },
            "requested": { "type": "integer", "description": "What this action would have added." },
            "window": { "type": "string", "description": "Over what time: a calendar period (`day`, `month`), or minutes or hours (`10m`, `24h`)." },
            "clearsAt": with_description(time(), "When the bound has room again if nothing else happens."),
        },
    })
}

fn code() -> Value {
    let words: Vec<&str> = Code::ALL.iter().map(|it| it.as_str()).collect();
    let mut told =
        String::from("Why: one vocabulary for reasons and signals. A later version may have further words.\n");
    for code in Code::ALL {
        told = told + "\n- `" + code.as_str() + "`: " + code.meaning();
    }
    json!({ "type": "string", "enum": words, "description": told })
}

/// What signals are: the codes of the reasons, and what was only noted.
pub(super) fn signals() -> Value {
    let told = "The code of every reason, and what was noted without being one: `provenance_undeclared` where nothing follows from it, `settled_after_consumption`, `unapproved_run`.";
    json!({ "type": "array", "items": reference("ReasonCode"), "description": told })
}

fn provenance() -> Value {
    json!({
        "type": "object",
        "description": "Something that the agent acts on.",
        "required": ["source"],
        "properties": {
            "source": { "type": "string", "minLength": 1, "maxLength": 64, "examples": ["user", "web", "tool_result"], "description": sources() },
            "detail": { "type": "string", "maxLength": 500, "description": "More about it, in the agent's words; no rule reads it." },
        },
    })
}

/// Every source by its class.
fn sources() -> String {
    let mut told = String::from(
        "Where it came from, by how far that is trusted, most trusted first. Any other word is `public`. The least trusted of all that is declared and was seen is what the action is judged by: of `third_party` and `public` a person is asked before a sink.\n",
    );
    for (class, words) in SOURCES {
        let words: Vec<String> = words.iter().map(|it| format!("`{it}`")).collect();
        told = told + "\n- `" + class.as_str() + "`, " + class.meaning() + ": " + &words.join(", ");
    }
    told
}

/// An action's types, and which of them are sinks.
pub(super) fn action_type() -> Value {
    let words: Vec<String> = ActionKind::built_in().map(|it| it.to_string()).collect();
    let sinks: Vec<String> = ActionKind::built_in().filter(ActionKind::is_sink).map(|it| format!("`{it}`")).collect();
    let told = format!(
        "A built-in type ({}) or a custom one of 2 to 5 dotted parts. Sinks, with which something leaves the agent's hands, are {}, every action with `payment`, and tools that the workspace's tool table marks.",
        words.join(", "),
        sinks.join(", ")
    );
    let one_word: Vec<&str> = words.iter().map(String::as_str).filter(|it| !it.contains('.')).collect();
    let pattern = format!(r"^({}|[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*){{1,4}})$", one_word.join("|"));
    json!({ "type": "string", "maxLength": 128, "pattern": pattern, "description": told, "examples": ["payment", "tool.call", "crm.update"] })
}

/// What the gate made of an action's origin.
pub(super) fn decision_provenance() -> Value {
    let classes: Vec<&str> = SOURCES.iter().map(|(class, _)| class.as_str()).collect();
    let untrusted: Vec<String> =
        SOURCES.iter().map(|it| it.0).filter(|it: &Class| it.is_untrusted()).map(|it| format!("`{it}`")).collect();
    let effective = format!(
        "The least trusted class of all sources, declared and observed. {} are not trusted.",
        untrusted.join(" and ")
    );
    let verdict = "How the two compare, the first that holds: something was seen that is worse than all that was declared; nothing was declared; nothing was seen; worse was declared than was seen; both are alike.";
    json!({
        "type": "object",
        "required": ["declared", "observed", "effective", "verdict"],
        "properties": {
            "declared": { "type": "array", "items": { "type": "string" }, "description": "The sources that the agent named." },
            "observed": { "type": "array", "items": { "type": "string" }, "description": "The sources that the model gateway and the MCP proxy saw enter its context." },
            "effective": { "type": "string", "enum": classes, "description": effective },
            "verdict": with_description(words(&Verdict::ALL, Verdict::as_str), verdict),
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::collections::BTreeSet;

    use svc_core::rules::gate::verify::Fault;
    use svc_core::state::gate::{CATALOGUE, Tier};

    use super::*;

    /// The page of decisions, and the lines of it under one heading.
    fn page() -> String {
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/decisions.md")).unwrap()
    }

    fn part<'a>(page: &'a str, heading: &str) -> &'a str {
        page.split("\n## ").find_map(|it| it.strip_prefix(heading)).unwrap_or_else(|| panic!("no {heading}"))
    }

    /// The words in backticks of the first cells of its tables' rows.
    fn first_cells(part: &str) -> Vec<&str> {
        let rows = part.lines().filter_map(|it| it.strip_prefix("| `"));
        rows.flat_map(|it| it.split(" | ").next().unwrap_or_default().split('`').step_by(2)).collect()
    }

    /// Whoever meets a code finds what it means, in the interface's description and on its page, where no other word is explained.
    #[test]
    fn every_code_is_explained() {
        let (page, described) = (page(), code()["description"].as_str().unwrap().to_owned());
        let told: BTreeSet<&str> = first_cells(part(&page, "Reasons and signals")).into_iter().collect();
        let known: BTreeSet<&str> = Code::ALL.iter().map(|it| it.as_str()).collect();
        assert_eq!(told, known);
        for code in Code::ALL {
            assert!(described.contains(&format!("- `{code}`: {}", code.meaning())), "{code}");
            assert!(code.meaning().ends_with('.'), "{code}");
        }
    }

    /// Each source stands on its page in the row of its class, beside no other.
    #[test]
    fn every_source_is_told_with_its_class() {
        let page = page();
        let part = part(&page, "Where an action came from");
        for (class, words) in SOURCES {
            let row = part.lines().find(|it| it.starts_with(&format!("| `{class}` |"))).unwrap();
            let cell = row.split(" | ").nth(2).unwrap().trim_end_matches(" |");
            let told: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
            assert_eq!(told, words, "{row}");
        }
    }

    /// The page names the sinks among the built-in types, every tier and every template that ships, and none that is not.
    #[test]
    fn sinks_tiers_and_templates_are_those_of_the_gate() {
        let page = page();
        let sinks = page.lines().find_map(|it| it.strip_prefix("Sinks are ")).unwrap().split(',').map(str::trim);
        let told: Vec<&str> = sinks.map_while(|it| it.strip_prefix('`')?.strip_suffix('`')).collect();
        let known: Vec<String> = ActionKind::built_in().filter(ActionKind::is_sink).map(|it| it.to_string()).collect();
        assert_eq!(told, known);
        let tiers = [Tier::Restricted, Tier::Standard, Tier::Trusted].map(Tier::as_str);
        assert_eq!(first_cells(part(&page, "Tiers")), tiers);
        let templates: Vec<&str> = CATALOGUE.iter().map(|it| it.name).collect();
        assert_eq!(first_cells(part(&page, "Templates")), templates);
    }

    /// Every reason for which a receipt is not good is in the interface's description and on the page of receipts, in the order in which
    /// they are looked at.
    #[test]
    fn every_reason_of_a_verdict_is_explained() {
        let words = Fault::ALL.map(Fault::as_str).to_vec();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/receipts.md");
        let page = std::fs::read_to_string(path).unwrap();
        assert_eq!(first_cells(part(&page, "Why a receipt is not good")), words);
        let described = crate::schemas::all()["Verdict"]["properties"]["reason"]["x-extensible-enum"].clone();
        assert_eq!(described, serde_json::json!(words));
    }
}
