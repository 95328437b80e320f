//! `docs/conformance.md` is true: its ids are unique, what is done is shown, and every test it names exists.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use svc_tests::source::{self, Source};

/// One line of the file.
struct Promise {
    id: String,
    text: String,
    state: String,
    tests: Vec<String>,
}

/// The later parts of the service, each a word in `open (…)`.
const PARTS: &[&str] = &["gate", "people", "gateway", "mcp", "console", "integrations", "scale"];

/// The flat types of `/oauth/*`, which the line `C7.oauth.types` is for.
const FLAT: [&str; 11] = [
    "access_denied",
    "invalid_client",
    "invalid_client_metadata",
    "invalid_grant",
    "invalid_redirect_uri",
    "invalid_scope",
    "invalid_target",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
];

/// Error types that were added to the contract's (SPEC 9.2).
const ADDED: &[&str] = &["headers_too_large", "uri_too_long"];

/// Errors of pushed security events: RFC 8935's, which CONTRACT part 6 names in their place.
const EVENTS: &[&str] = &["authentication_failed", "invalid_audience", "invalid_issuer", "invalid_key"];

/// Every error type that the contract's part 7 lists.
const TYPES: &[&str] = &[
    "agent_key_required",
    "agent_not_found",
    "agent_stopped",
    "already_settled",
    "approval_required",
    "body_too_large",
    "budget_exhausted",
    "confirm_broaden",
    "confirm_count_required",
    "csrf",
    "drill_cooldown",
    "forbidden",
    "idempotency_conflict",
    "internal",
    "invalid_amount",
    "invalid_api_key",
    "invalid_application",
    "invalid_budget",
    "invalid_json",
    "invalid_mandate",
    "invalid_request",
    "invalid_selector",
    "invalid_status",
    "invalid_token",
    "invalid_upstream",
    "method_not_allowed",
    "missing_scope",
    "not_allowed",
    "not_found",
    "not_ready",
    "nothing_selected",
    "plan_limit_reached",
    "policy_conflict",
    "rate_limited",
    "reason_required",
    "route_not_found",
    "seat_limit_reached",
    "second_owner_required",
    "second_person_required",
    "selection_changed",
    "sensitive_data_blocked",
    "separation_of_duties",
    "template_only",
    "token_expired",
    "unauthenticated",
    "unclassified_request",
    "unknown_task",
    "unknown_task_class",
    "unknown_template",
    "upstream_failure",
    "upstream_rejected",
];

fn promises() -> Vec<Promise> {
    let text = source::file("docs/conformance.md").expect("docs/conformance.md");
    let mut found = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| S") || line.starts_with("| C")) {
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
        let [id, promise, state, tests] = cells.as_slice() else {
            // The table of states is the one other table, and none of its lines is a promise.
            if line.starts_with("| State") {
                continue;
            }
            panic!("a promise has four cells: {line}");
        };
        let named = tests.split(',').map(|it| it.trim().trim_matches('`').to_owned());
        let tests: Vec<String> = named.filter(|_| !tests.is_empty()).collect();
        assert!(tests.iter().all(|it| !it.is_empty()), "{id} names a test without a name");
        found.push(Promise { id: (*id).to_owned(), text: (*promise).to_owned(), state: (*state).to_owned(), tests });
    }
    found
}

/// Every test of the workspace: its name, and the files that hold one of that name.
fn tests() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in source::files(&[".rs"]) {
        for name in rust_tests(&source) {
            found.entry(name).or_default().insert(source.path.clone());
        }
    }
    for source in source::files(&[".py"]) {
        for line in source.text.lines() {
            let name =
                line.trim_start().trim_start_matches("async ").strip_prefix("def ").and_then(|it| it.split('(').next());
            if let Some(name) = name.filter(|name| name.starts_with("test_")) {
                found.entry(name.to_owned()).or_default().insert(source.path.clone());
            }
        }
    }
    found
}

/// The functions that stand under `#[test]` or a runtime's form of it.
fn rust_tests(source: &Source) -> Vec<String> {
    let code = source::parts(&source.text).code;
    let mut marked = false;
    let mut names = Vec::new();
    for line in code.lines().map(str::trim).filter(|line| !line.is_empty()) {
        marked |= line.starts_with("#[") && (line.contains("#[test]") || line.contains("::test"));
        let words: Vec<&str> = line.split(|it: char| !(it.is_alphanumeric() || it == '_')).collect();
        let name = words.iter().position(|word| *word == "fn").and_then(|at| words.get(at + 1));
        if let Some(name) = name {
            if marked {
                names.push((*name).to_owned());
            }
            marked = false;
        }
    }
    names
}

/// Whether a file is the one that `file.rs::name` or `crate::path::name` means.
fn is_meant(file: &str, place: &[&str]) -> bool {
    let Some((first, modules)) = place.split_first() else { return false };
    if first.contains('.') {
        return file == *first || file.ends_with(&format!("/{first}"));
    }
    let folder = match *first {
        "svc_tests" => "tests".to_owned(),
        "svc_examples" => "examples".to_owned(),
        package => package.replace('_', "-"),
    };
    let Some(inside) = file.strip_prefix(&format!("{folder}/")) else { return false };
    let inside = inside.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    let of_file: Vec<&str> = inside.split('/').filter(|part| !matches!(*part, "lib" | "main" | "tests")).collect();
    let of_name: Vec<&str> = modules.iter().copied().filter(|part| *part != "tests").collect();
    of_name.starts_with(&of_file) || of_file.ends_with(&of_name)
}

/// Ids are unique, belong to a part, and promise something.
#[test]
fn every_promise_has_an_id_of_its_own() {
    let mut seen = BTreeSet::new();
    for promise in promises() {
        assert!(seen.insert(promise.id.clone()), "two promises are called {}", promise.id);
        let part = promise.id.get(1..).and_then(|rest| rest.split('.').next()).and_then(|it| it.parse::<u8>().ok());
        let last = if promise.id.starts_with('S') { 9 } else { 10 };
        assert!(part.is_some_and(|part| (1..=last).contains(&part)), "{} names no part", promise.id);
        assert!(!promise.text.is_empty(), "{} promises nothing", promise.id);
    }
    assert!(seen.len() > 900, "only {} promises: a part is missing", seen.len());
}

/// Nothing is called done without a test, and nothing has a state of its own invention.
#[test]
fn what_is_done_is_shown() {
    for promise in promises() {
        let open = promise.state.strip_prefix("open (").and_then(|rest| rest.strip_suffix(')'));
        match open {
            Some(part) => assert!(PARTS.contains(&part), "{} is open in an unknown part: {part}", promise.id),
            None => {
                assert_eq!(promise.state, "done", "{} has an unknown state", promise.id);
                assert!(!promise.tests.is_empty(), "{} is done and names no test", promise.id);
            }
        }
    }
}

/// Every test named is one: a function under `#[test]`, in the place that its name says.
#[test]
fn every_named_test_exists() {
    let promises = promises();
    let named = promises.iter().flat_map(|promise| promise.tests.iter().map(|test| (&*promise.id, &**test)));
    let missing = missing(named);
    assert!(missing.is_empty(), "no such tests:\n{}", missing.join("\n"));
}

/// So is every test that shows what other systems publish of their decisions.
#[test]
fn every_test_of_a_published_rule_exists() {
    let file = source::file("tests/data/behavioural_cases.json").expect("the published rules");
    let file: serde_json::Value = serde_json::from_str(&file).expect("JSON");
    let systems = file.as_object().into_iter().flatten().filter_map(|(system, it)| Some((system, it.get("cases")?)));
    let cases = systems.flat_map(|(system, cases)| cases.as_array().into_iter().flatten().map(move |it| (system, it)));
    let named: Vec<(&str, &str)> = cases
        .filter_map(|(system, case)| Some((&**system, case.get("shown")?.as_array()?)))
        .flat_map(|(system, shown)| shown.iter().filter_map(move |it| Some((system, it.as_str()?))))
        .collect();
    assert!(named.len() > 10, "{named:?}");
    let missing = missing(named.into_iter());
    assert!(missing.is_empty(), "no such tests:\n{}", missing.join("\n"));
}

/// Those of these tests, each with what names it, that there are not.
fn missing<'a>(named: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let tests = tests();
    let is_there = |test: &str| {
        let mut place: Vec<&str> = test.split("::").collect();
        let name = place.pop().unwrap_or_default();
        tests.get(name).is_some_and(|files| files.iter().any(|file| is_meant(file, &place)))
    };
    named.filter(|(_, test)| !is_there(test)).map(|(by, test)| format!("{by}: {test}")).collect()
}

/// Every error type has its promise, also each that the refusal table knows.
#[test]
fn every_error_type_has_its_line() {
    let ids: BTreeSet<String> = promises().into_iter().map(|promise| promise.id).collect();
    let has = |name: &str| {
        let exact = format!("C7.type.{name}");
        ids.iter().any(|id| *id == exact || id.starts_with(&format!("{exact}.")))
    };
    let lacking: Vec<&str> = TYPES.iter().copied().filter(|name| !has(name)).collect();
    assert!(lacking.is_empty(), "error types without a line: {lacking:?}");
    for kind in svc_core::refusal::Kind::ALL {
        let row = kind.row();
        let known = [TYPES, &FLAT, ADDED, EVENTS].iter().any(|it| it.contains(&row.type_));
        assert!(known, "the refusal table knows `{}`, the contract does not", row.type_);
    }
}

/// The way a test is found: by file, by module path, and only where it is.
#[test]
fn a_test_is_found_where_its_name_says() {
    assert!(is_meant("svc-core/src/rules/gate/settle.rs", &["settle.rs"]));
    assert!(is_meant("svc-core/src/rules/gate/settle.rs", &["gate/settle.rs"]));
    assert!(is_meant("svc-core/src/rules/gate/settle.rs", &["svc_core", "rules", "gate", "settle", "tests"]));
    assert!(is_meant("svc-core/src/value/mod.rs", &["svc_core", "value", "tests"]));
    assert!(is_meant("tests/tests/race.rs", &["race.rs"]));
    assert!(!is_meant("svc-core/src/rules/gate/settle.rs", &["unsettle.rs"]));
    assert!(!is_meant("svc-core/src/rules/gate/settle.rs", &["svc_core", "rules", "gate", "verify", "tests"]));
    assert!(!is_meant("svc-core/src/rules/gate/settle.rs", &["svc_http", "settle"]));
}
