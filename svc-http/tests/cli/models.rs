//! `svc models update`: tables of models from files, whole or not at all.

use std::fs;

use serde_json::{Value, json};

use super::run;

/// A file in the widespread shape is taken whole, with what it brought and what was left out; the same file again changes
/// nothing; one in the shape of the shipped table counts before it.
#[test]
fn models_update_takes_a_file_and_tells_what_it_brought() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let told = |arguments: &str| -> Value {
        let ran = run(folder.path(), arguments);
        assert_eq!(ran.code, 0, "{ran:?}");
        serde_json::from_str(&ran.out).unwrap()
    };
    assert_eq!(run(folder.path(), "init").code, 0);
    write(
        "prices.json",
        r#"{"sample_spec":{"max_tokens":"text"},
            "new-model":{"mode":"chat","input_cost_per_token":1.5e-07,"output_cost_per_token":6e-07},
            "gpt-5":{"mode":"chat","input_cost_per_token":1.26e-06,"output_cost_per_token":1e-05},
            "embed":{"mode":"embedding","input_cost_per_token":1e-08}}"#,
    );
    let first = told("models update prices.json --json");
    let expected = json!({
        "taken": 2, "date": null, "new": ["new-model"], "changed": ["gpt-5"], "same": 0, "repriced": [],
        "skipped": [{ "model": "embed", "why": "does not chat" }, { "model": "sample_spec", "why": "is no model" }],
    });
    assert_eq!(first, expected);
    let again = told("models update prices.json --json");
    assert_eq!((&again["same"], &again["new"], &again["changed"]), (&json!(2), &json!([]), &json!([])));
    write("own.json", r#"{"date":"2026-11-21","models":[{"id":"new-model","prices":{"input":1,"output":2}}]}"#);
    let own = told("models update own.json --json");
    assert_eq!(
        (&own["taken"], &own["date"], &own["changed"]),
        (&json!(1), &json!("2026-11-21"), &json!(["new-model"]))
    );
    let ran = run(folder.path(), "models update prices.json");
    assert_eq!(ran.out, "2 models taken: 0 new, 1 changed, 1 as known\n");
    assert_eq!(ran.err, "2 left out: embed does not chat, sample_spec is no model.\n");
}

/// A file with faults is refused with every one of them, and nothing of it is taken; so is one that is not there.
#[test]
fn a_file_with_faults_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let good = r#""a":{"mode":"chat","input_cost_per_token":1e-06,"output_cost_per_token":1e-06}"#;
    fs::write(folder.path().join("good.json"), format!("{{{good}}}")).unwrap();
    let bad = format!(r#"{{{good},"b":{{"mode":"chat","input_cost_per_token":-1,"output_cost_per_token":"x"}}}}"#);
    fs::write(folder.path().join("bad.json"), bad).unwrap();
    let nowhere = run(folder.path(), "models update good.json");
    assert!(nowhere.code == 1 && nowhere.err.contains("svc init") && nowhere.out.is_empty(), "{nowhere:?}");
    assert_eq!(run(folder.path(), "init").code, 0);
    let ran = run(folder.path(), "models update bad.json");
    assert!(ran.code == 1 && ran.out.is_empty(), "{ran:?}");
    for fault in ["`b.input_cost_per_token` must not be below zero", "`b.output_cost_per_token` must be a number"] {
        assert!(ran.err.contains(fault) && ran.err.contains("nothing of it was taken"), "{}", ran.err);
    }
    let taken: Value = serde_json::from_str(&run(folder.path(), "models update good.json --json").out).unwrap();
    assert_eq!(taken["new"], json!(["a"]));
    let missing = run(folder.path(), "models update none.json");
    assert!(missing.code == 1 && missing.err.contains("none.json"), "{missing:?}");
    for usage in ["models", "models update"] {
        assert_eq!(run(folder.path(), usage).code, 2, "{usage}");
    }
}
