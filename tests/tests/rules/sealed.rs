//! Every text that is sealed under the master key is found, wherever a row has one.

use std::collections::BTreeSet;
use std::convert::Infallible;

use serde_json::Value;
use svc_core::refusal::Kind;
use svc_core::rules::people::reseal::Reseal;
use svc_core::rules::people::sealed::resealed;
use svc_core::state::people::{Account, SecondFactor};
use svc_core::store::Record;
use svc_core::testing::{World, sample};

/// The texts of a row that were sealed: whatever is named so, and in some tables what is named otherwise.
fn sealed(row: &Value, also: &str, is: bool, into: &mut BTreeSet<String>) {
    match row {
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            let named = matches!(&**name, "sealed" | "enrolling") || name == also;
            sealed(value, also, is || named, into);
        }),
        Value::Array(values) => values.iter().for_each(|it| sealed(it, also, is, into)),
        Value::String(text) if is && !text.is_empty() => {
            into.insert(text.clone());
        }
        _ => {}
    }
}

/// No sealed text of any row of this release is left as it was, and nothing else is changed.
#[test]
fn all_that_is_sealed_is_sealed_anew() {
    let mut tables = BTreeSet::new();
    for row in sample::rows() {
        let encoded = row.encode().unwrap();
        let (mut expected, mut texts) = (String::from_utf8(encoded.body).unwrap(), BTreeSet::new());
        let also = if matches!(row, Record::UpstreamKey(_)) { "headers" } else { "" };
        sealed(&serde_json::from_str(&expected).unwrap(), also, false, &mut texts);
        let mut seen = BTreeSet::new();
        let changed = resealed(&row, &mut |_, text| {
            if text.is_empty() {
                return Ok("".into());
            }
            seen.insert(text.to_owned());
            Ok::<_, Infallible>(format!("anew {text}").into())
        });
        assert_eq!(seen, texts, "{expected}");
        let Some(changed) = changed.unwrap() else { continue };
        tables.insert(row.key().table().name());
        texts.iter().for_each(|it| expected = expected.replace(&format!("\"{it}\""), &format!("\"anew {it}\"")));
        assert_eq!(String::from_utf8(changed.encode().unwrap().body).unwrap(), expected);
    }
    // No sample of a call carries the token of an invitation: a test of the store's has one.
    let all = ["account", "integration", "mcp_secret", "signing_key", "upstream_key"];
    assert_eq!(tables.into_iter().collect::<Vec<_>>(), all);
}

/// What is sealed anew is nothing but sealed anew: no row is changed in its passing, whether or not it has a sealed text.
#[test]
fn nothing_else_is_changed_by_it() {
    let mut world = World::new();
    let id = "usr_01K6FN0001000000000000000B".parse().unwrap();
    let made = Account::new(id, "ana@example.com".parse().unwrap(), world.now());
    let with = |sealed: Option<&str>, name: Option<&str>| Account {
        second_factor: sealed.map(|it| SecondFactor { sealed: it.into(), last_step: 0, recovery: Vec::new() }),
        name: name.map(|it| it.parse().unwrap()),
        ..made.clone()
    };
    let asked = |before: &Account, after: &Account| Reseal {
        rows: vec![(Record::Account(before.clone().into()), Record::Account(after.clone().into()))],
        workspaces: Vec::new(),
    };
    for (before, after) in [
        (with(None, None), with(None, Some("Mallory"))),
        (with(Some("one"), None), with(Some("two"), Some("Mallory"))),
        (with(Some("one"), None), with(None, None)),
    ] {
        world.overwrite(before.clone());
        assert_eq!(world.run(asked(&before, &after)).unwrap_err().kind(), Kind::Internal);
        assert_eq!(*world.row::<Account>(id), before);
    }
    let (before, after) = (with(Some("one"), None), with(Some("two"), None));
    world.overwrite(before.clone());
    world.run(asked(&before, &after)).unwrap();
    assert_eq!(*world.row::<Account>(id), after);
}
