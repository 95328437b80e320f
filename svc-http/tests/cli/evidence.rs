//! `svc evidence verify`, for bundles that are whole and bundles that are not.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;

use serde_json::{Value, json};
use svc_core::state::evidence::bundle::{path_text, seal_text};
use svc_core::state::evidence::merkle::{Node, inclusion, leaf_hash, node_hash};
use svc_core::state::evidence::note::Checkpoint;
use svc_core::state::gate::receipt::{DalekSigner, PublicKeys, Signer as _, jwks_json};
use svc_core::value::Timestamp;
use svc_core::value::digest::Digest;
use svc_core::value::secret::Secret;

use crate::run;

/// A bundle that a service of these tests once wrote.
const WHOLE: &str = include_str!("../../../tests/fuzz/src/targets/bundle.json");

/// A whole bundle is exit 0, and what its bytes cannot show is said.
#[test]
fn a_whole_bundle_is_exit_0() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("b.json"), WHOLE).unwrap();
    let ran = run(folder.path(), "evidence verify b.json");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let first = "ok: whole; signers not checked against a key set\n";
    assert!(ran.out.starts_with(first) && ran.out.contains("Not proven:\n"), "{}", ran.out);
    let ran = run(folder.path(), "evidence verify b.json --json");
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["ok"], &told["whole"]), (&Value::Bool(true), &Value::Bool(true)));
    assert_eq!(told["records"].as_u64(), Some(18));
    assert_eq!(told["signersKnownBy"], Value::Null);
}

/// The same bundle as somebody else writes it, who has every record and a key of their own: it fits in itself.
fn of_a_stranger(signer: &DalekSigner) -> String {
    sealed_by(signer, WHOLE)
}

/// A bundle with a checkpoint and a seal by this key.
fn sealed_by(signer: &DalekSigner, bundle_text: &str) -> String {
    let bundle: Value = serde_json::from_str(bundle_text).unwrap();
    let note = bundle["checkpoint"].as_str().unwrap();
    let own = bundle["keys"].as_array().unwrap().iter().find(|it| it["use"] == "checkpoint").unwrap();
    let key = signer.public_key(Timestamp::from_millis(0));
    let text = note.split_inclusive('\n').take(3).collect::<String>();
    let signed = Checkpoint::parse(&text).unwrap().sign(&key, signer).unwrap();
    let x = jwks_json(&PublicKeys::from_iter([key.clone()]));
    let x = serde_json::from_str::<Value>(&x).unwrap()["keys"][0]["x"].as_str().unwrap().to_owned();
    let before = bundle_text[..bundle_text.rfind(r#","seal":"#).unwrap()]
        .replace(&serde_json::to_string(note).unwrap(), &serde_json::to_string(&signed).unwrap())
        .replace(own["kid"].as_str().unwrap(), key.kid())
        .replace(own["x"].as_str().unwrap(), &x);
    let seal = seal_text(&Digest::of(&before), signer);
    before + &seal
}

/// The bundle without the records from `end` on, as the service cuts one that was asked for up to an instant.
fn up_to(end: usize) -> String {
    let bundle: Value = serde_json::from_str(WHOLE).unwrap();
    let records = bundle["records"].as_array().unwrap();
    let leaf = |it: &Value| leaf_hash(&hex::decode(it["hash"].as_str().unwrap()).unwrap());
    let leaves: Vec<Digest> = records.iter().map(leaf).collect();
    let node = |at: Node| {
        let (from, count) = ((at.index << at.level) as usize, 1 << at.level);
        let mut level = leaves[from..from + count].to_vec();
        while level.len() > 1 {
            level = level.chunks(2).map(|it| node_hash(&it[0], &it[1])).collect();
        }
        Ok::<_, Infallible>(level[0])
    };
    let path = |seq: usize| -> Vec<Digest> {
        let spans = inclusion(seq as u64, leaves.len() as u64).unwrap();
        spans.into_iter().map(|it| it.hash(node).unwrap()).collect()
    };
    let ends: BTreeSet<usize> = if end == 0 { BTreeSet::new() } else { BTreeSet::from([0, end - 1]) };
    let proofs: Vec<String> = ends.into_iter().map(|it| path_text(it as u64, &path(it))).collect();
    let kept: Vec<String> = records[..end].iter().map(|it| serde_json::to_string(it).unwrap()).collect();
    let head = &WHOLE[..WHOLE.find(r#","records":["#).unwrap()];
    let head = head.replace(&format!("\"toSeq\":{}", leaves.len()), &format!("\"toSeq\":{end}"));
    let (kept, proofs) = (kept.join(","), proofs.join(","));
    format!(r#"{head},"records":[{kept}],"inclusionProofs":[{proofs}],"truncated":false,"seal":{{}}}}"#)
}

/// A bundle that leaves records out is not called whole: its first line says which it has, and what the checkpoint has beyond them is named.
#[test]
fn a_bundle_that_ends_before_its_ledger_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let signer = DalekSigner::new(&Secret::new([9; 32]), "");
    for (end, first, range, missing) in [
        (
            10,
            "ok: whole from record 0 to 9 of 18; ",
            "0 to 9 of 18",
            "  records 10 to 17, which the checkpoint has: they are not here\n",
        ),
        (
            17,
            "ok: whole from record 0 to 16 of 18; ",
            "0 to 16 of 18",
            "  record 17, which the checkpoint has: it is not here\n",
        ),
        (0, "ok: no records; ", "none of 18", "  records 0 to 17, which the checkpoint has: they are not here\n"),
    ] {
        fs::write(folder.path().join("b.json"), sealed_by(&signer, &up_to(end))).unwrap();
        let ran = run(folder.path(), "evidence verify b.json");
        assert!(ran.code == 0 && ran.out.starts_with(first) && ran.out.contains(missing), "{end}: {ran:?}");
        assert!(ran.out.contains(&format!("\n  range       {range}\n")), "{end}: {ran:?}");
        let told: Value = serde_json::from_str(&run(folder.path(), "evidence verify b.json --json").out).unwrap();
        assert_eq!((&told["ok"], &told["whole"], &told["range"]["toSeq"]), (&json!(true), &json!(false), &json!(end)));
        assert!(told["notProven"].as_array().unwrap().iter().any(|it| it == missing.trim()), "{told}");
    }
    fs::write(folder.path().join("b.json"), WHOLE).unwrap();
    let ran = run(folder.path(), "evidence verify b.json");
    assert!(ran.out.contains("\n  range       0 to 17 of 18\n") && !ran.out.contains("not here"), "{ran:?}");
}

/// The keys that a bundle lists, as a service publishes them that does not say what they sign.
fn key_set(bundle: &str) -> String {
    let bundle: Value = serde_json::from_str(bundle).unwrap();
    let mut keys = bundle["keys"].as_array().unwrap().clone();
    keys.iter_mut().for_each(|it| it["use"] = "sig".into());
    json!({ "keys": keys }).to_string()
}

/// The same with what each of them signs, checkpoints being signed by those of `checkpoint`.
fn key_set_of_uses(bundle: &str, checkpoint: &str) -> String {
    let bundle: Value = serde_json::from_str(bundle).unwrap();
    let mut keys = bundle["keys"].as_array().unwrap().clone();
    for key in &mut keys {
        key["svc_use"] = if key["use"] == "checkpoint" { checkpoint.into() } else { key["use"].clone() };
        key["use"] = "sig".into();
    }
    json!({ "keys": keys }).to_string()
}

/// A key that is published for one use signs for no other: the bundle that it sealed is somebody else's.
#[test]
fn a_key_of_another_use_seals_no_bundle() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("b.json"), WHOLE).unwrap();
    for (of, code, first) in [
        ("checkpoint", 0, "ok: whole; signed by keys of the key set\n"),
        ("scorecard", 1, "tampered: the key "),
        ("receipt", 1, "tampered: the key "),
        ("something newer", 1, "tampered: the key "),
    ] {
        fs::write(folder.path().join("keys"), key_set_of_uses(WHOLE, of)).unwrap();
        let ran = run(folder.path(), "evidence verify b.json --jwks keys");
        assert!(ran.code == code && ran.out.starts_with(first), "{of}: {ran:?}");
        assert!(
            of == "something newer" || code == 0 || ran.out.contains(&format!("in the key set for {of}s")),
            "{ran:?}"
        );
    }
}

/// Whose a bundle is, the service's published keys tell: one that a stranger wrote fits in itself and is no more than that. Beside an
/// earlier bundle that lists no such key it is told as what is not shown; beside the keys as tampered, by the key's name.
#[test]
fn a_bundle_of_a_stranger_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let signer = DalekSigner::new(&Secret::new([9; 32]), "");
    let forged = of_a_stranger(&signer);
    for (name, text) in
        [("b.json", WHOLE), ("forged.json", &forged), ("keys", &key_set(WHOLE)), ("own", &key_set(&forged))]
    {
        fs::write(folder.path().join(name), text).unwrap();
    }
    for (arguments, code, first, known) in [
        ("b.json --jwks keys", 0, "ok: whole; signed by keys of the key set\n", json!("jwks")),
        ("b.json --held b.json", 0, "ok: whole; signed by a key that the bundle you hold lists\n", json!("held")),
        ("b.json --jwks keys --held forged.json", 0, "ok: whole; signed by keys of the key set\n", json!("jwks")),
        ("forged.json", 0, "ok: whole; signers not checked against a key set\n", Value::Null),
        ("forged.json --jwks own", 0, "ok: whole; signed by keys of the key set\n", json!("jwks")),
        ("forged.json --jwks keys", 1, "tampered: the key ", Value::Null),
        ("forged.json --jwks keys --held b.json", 1, "tampered: the key ", Value::Null),
        ("forged.json --held b.json", 2, "incomplete: the checkpoint's key ", Value::Null),
    ] {
        let ran = run(folder.path(), &format!("evidence verify {arguments}"));
        assert!(ran.code == code && ran.out.starts_with(first), "{arguments}: {ran:?}");
        assert!(code == 0 || ran.out.lines().next().unwrap().contains(signer.kid()), "{arguments}: {ran:?}");
        let ran = run(folder.path(), &format!("evidence verify {arguments} --json"));
        assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["signersKnownBy"], known, "{arguments}");
    }
    // What was written of the same records has the root that the note has: whose it is, the key that signed the note tells.
    let note = serde_json::from_str::<Value>(WHOLE).unwrap()["checkpoint"].as_str().unwrap().to_owned();
    fs::write(folder.path().join("note"), &note).unwrap();
    fs::write(folder.path().join("text"), note.split_inclusive('\n').take(3).collect::<String>()).unwrap();
    for (arguments, code, first) in [
        ("b.json --held note", 0, "ok: whole; signed by the key of the note you hold\n"),
        ("b.json --held text", 2, "incomplete: the checkpoint's key "),
        ("forged.json --held note", 2, "incomplete: the checkpoint's key "),
        ("b.json --held text --jwks keys", 0, "ok: whole; signed by keys of the key set\n"),
        ("forged.json --held note --jwks keys", 1, "tampered: the key "),
    ] {
        let ran = run(folder.path(), &format!("evidence verify {arguments}"));
        assert!(ran.code == code && ran.out.starts_with(first), "{arguments}: {ran:?}");
        assert!(code != 2 || ran.out.contains("`--jwks`"), "{arguments}: {ran:?}");
    }
    fs::write(folder.path().join("cut"), &WHOLE[..WHOLE.len() / 2]).unwrap();
    for (keys, why) in [("none", "cannot be read"), ("b.json", "has no key that signs"), ("cut", "not a key set")] {
        let ran = run(folder.path(), &format!("evidence verify b.json --jwks {keys}"));
        assert!(ran.code == 4 && ran.out.is_empty() && ran.err.contains(why), "{keys}: {ran:?}");
    }
}

/// The keys that signed checkpoint and receipts are named by their ids, so that they can be compared with the service's own.
#[test]
fn the_keys_that_signed_are_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("b.json"), WHOLE).unwrap();
    let bundle: Value = serde_json::from_str(WHOLE).unwrap();
    let kid = |purpose: &str| {
        let key = bundle["keys"].as_array().unwrap().iter().find(|it| it["use"] == purpose).unwrap();
        key["kid"].as_str().unwrap().to_owned()
    };
    let told: Value = serde_json::from_str(&run(folder.path(), "evidence verify b.json --json").out).unwrap();
    let named = ["checkpoint", "receipt"].map(|it| json!({ "use": it, "kid": kid(it) }));
    assert_eq!(told["signedBy"], json!(named));
    let ran = run(folder.path(), "evidence verify b.json");
    for purpose in ["checkpoint", "receipt"] {
        assert!(ran.out.contains(&format!("  signed by   {} ({purpose})\n", kid(purpose))), "{}", ran.out);
    }
}

/// A changed record is exit 1 and named; what is no bundle, or ends early, is exit 3.
#[test]
fn what_does_not_fit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let told = |text: &str| {
        fs::write(folder.path().join("b.json"), text).unwrap();
        let ran = run(folder.path(), "evidence verify b.json --json");
        (ran.code, serde_json::from_str::<Value>(&ran.out).unwrap())
    };
    let json: Value = serde_json::from_str(WHOLE).unwrap();
    let record = serde_json::to_string(&json["records"][3]).unwrap();
    let (code, report) = told(&WHOLE.replace(&record, &record.replacen("\"kind\":\"", "\"kind\":\"x", 1)));
    assert_eq!((code, &report["fault"]["seq"], &report["fault"]["record"]), (1, &3.into(), &json["records"][3]["id"]));
    for broken in ["", "{}", "[]", &WHOLE[..WHOLE.len() / 2], &format!("{WHOLE}\nx")] {
        let (code, report) = told(broken);
        assert_eq!((code, report["verdict"].as_str()), (3, Some("malformed")), "{report}");
    }
    let (code, report) = told(&format!("{WHOLE}\n"));
    assert_eq!((code, report["verdict"].as_str()), (0, Some("ok")), "a line end is no fault: {report}");
    let root = report["checkpoint"]["root"].as_str().unwrap();
    assert!(root.len() == 64 && root.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')), "{root}");
}

/// What a changed bundle names is shown as it is, and turns nothing around on the terminal.
#[test]
fn what_a_bundle_names_is_shown_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let json: Value = serde_json::from_str(WHOLE).unwrap();
    let record = serde_json::to_string(&json["records"][3]).unwrap();
    let changed = record.replacen("\"id\":\"", "\"id\":\"\u{202e}", 1);
    fs::write(folder.path().join("b.json"), WHOLE.replace(&record, &changed)).unwrap();
    let ran = run(folder.path(), "evidence verify b.json");
    assert!(ran.code != 0 && ran.out.contains("\u{2039}U+202E\u{203a}") && !ran.out.contains('\u{202e}'), "{ran:?}");
}

/// What cannot be read has an exit code of its own: nobody takes a path that was mistyped for a bundle that was tampered with.
#[test]
fn what_cannot_be_read_is_exit_4() {
    let folder = tempfile::tempdir().unwrap();
    for (path, name) in [("none.json", "none.json"), (".", "."), ("none/b.json --json", "none/b.json")] {
        let ran = run(folder.path(), &format!("evidence verify {path}"));
        assert!(ran.code == 4 && ran.out.is_empty() && ran.err.contains(name), "{ran:?}");
    }
    let help = run(folder.path(), "evidence verify --help");
    assert!(help.code == 0 && help.out.contains("4 not read"), "{help:?}");
}

/// So has what is not understood: the exit code of wrong usage elsewhere is that of an incomplete bundle here. Another command's is 2
/// also where a value of it is the word.
#[test]
fn what_is_not_understood_is_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in ["", "--jsno x", "b.json c.json", "b.json --data"] {
        for before in ["evidence verify", "--data d evidence verify", "--config=c evidence --data d verify"] {
            let ran = run(folder.path(), &format!("{before} {wrong}"));
            assert!(ran.code == 4 && ran.out.is_empty() && ran.err.contains("--help"), "{before} {wrong}: {ran:?}");
        }
    }
    for (wrong, code) in [("evidence", 4), ("evidence verfy b.json", 4), ("--data evidence doctor --jsno", 2)] {
        assert_eq!(run(folder.path(), wrong).code, code, "{wrong}");
    }
}

/// A bundle is put beside the checkpoint that its reader holds, from an earlier one or a note: another root of as many records is a ledger
/// that was rewritten, and what cannot be compared is no verdict.
#[test]
fn a_bundle_is_put_beside_what_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("b.json", WHOLE);
    let bundle: Value = serde_json::from_str(WHOLE).unwrap();
    let note = bundle["checkpoint"].as_str().unwrap();
    let mut lines: Vec<&str> = note.split('\n').collect();
    put("note", note);
    put("text", &format!("{}\n", lines[..3].join("\n")));
    put("crlf", &note.replace('\n', "\r\n"));
    put("marked", &format!("\u{feff}{note}"));
    put("spaced", &format!("\n  {WHOLE}"));
    put("marked.json", &format!("\u{feff}{WHOLE}"));
    for held in ["b.json", "note", "crlf", "marked", "spaced", "marked.json"] {
        let ran = run(folder.path(), &format!("evidence verify b.json --held {held}"));
        assert!(ran.code == 0 && !ran.out.contains("that you hold") && !ran.out.contains("`since`"), "{held}: {ran:?}");
    }
    assert!(run(folder.path(), "evidence verify b.json").out.contains("continues one that you hold"));
    for whole in ["spaced", "marked.json"] {
        assert_eq!(run(folder.path(), &format!("evidence verify {whole}")).code, 0, "{whole}");
    }

    lines[2] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    put("other", &lines.join("\n"));
    let ran = run(folder.path(), "evidence verify b.json --held other");
    assert!(ran.code == 1 && ran.out.starts_with("tampered: the checkpoint of ") && ran.err.is_empty(), "{ran:?}");
    lines[1] = "1000";
    put("longer", &lines.join("\n"));
    let ran = run(folder.path(), "evidence verify b.json --held longer");
    assert!(ran.code == 2 && ran.out.starts_with("incomplete: the ledger has 18 records here"), "{ran:?}");
    lines[1] = "7";
    put("smaller", &lines.join("\n"));
    for (held, why) in [
        ("smaller", "ask for one with `since=7`"),
        ("none", "cannot be read"),
        ("cut", "no bundle that fits in itself"),
        ("words", "holds no checkpoint"),
    ] {
        put("cut", &WHOLE[..WHOLE.len() / 2]);
        put("words", "no note");
        let ran = run(folder.path(), &format!("evidence verify b.json --held {held}"));
        assert!(ran.code == 4 && ran.out.is_empty() && ran.err.contains(why), "{held}: {ran:?}");
    }
    let ran = run(folder.path(), "evidence verify b.json --json");
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["previous"], Value::Null);
}
