//! What the workspace is built of: one list of versions, licences that are admitted, nothing that is banned.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use svc_tests::source;

/// Crates that reach the outside: the core stands on none of them, however far down.
const OUTSIDE_CRATES: &[&str] = &[
    "async-std",
    "aws-lc-rs",
    "chrono",
    "fastrand",
    "getrandom",
    "hyper",
    "mio",
    "polling",
    "rand",
    "rand_chacha",
    "reqwest",
    "rusqlite",
    "rustix",
    "rustls",
    "smol",
    "socket2",
    "tempfile",
    "time",
    "tokio",
];

/// The core reaches nothing outside, nor does anything that it depends on.
#[test]
fn the_core_depends_on_nothing_outside() {
    let args = ["tree", "-p", "svc-core", "-e", "normal", "--prefix", "none", "--format", "{p}", "--locked"];
    let tree = cargo(&args);
    let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains("svc-core") && names.contains("serde"), "this is no tree: {tree}");
    let found: Vec<&&str> = OUTSIDE_CRATES.iter().filter(|name| names.contains(**name)).collect();
    assert!(found.is_empty(), "svc-core depends on {found:?}");
}

fn cargo(args: &[&str]) -> String {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = Command::new(program).args(args).current_dir(source::root()).output().expect("cargo runs");
    assert!(run.status.success(), "cargo {args:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("cargo prints text")
}

/// The platform that is built for here.
fn host() -> String {
    let version = cargo(&["-vV"]);
    version.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host").to_owned()
}

/// Every crate of the workspace has lints, and takes its dependencies from the one list.
#[test]
fn dependencies_stand_in_one_list() {
    let mut found = Vec::new();
    for source in source::files(&["Cargo.toml"]) {
        let manifest: toml::Table = source.text.parse().expect("a manifest is TOML");
        if source.path == "Cargo.toml" || source.path.contains("fuzz/") {
            continue;
        }
        assert!(manifest.contains_key("lints"), "{} has no lints", source.path);
        for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(list) = manifest.get(table).and_then(toml::Value::as_table) else { continue };
            for (name, dependency) in list {
                let ours = dependency.get("workspace").is_some() || dependency.get("path").is_some();
                // The engine that the benches compare with is theirs alone.
                let the_peer = source.path == "benches/Cargo.toml" && name == "cedar-policy";
                if !ours && !the_peer {
                    found.push(format!("{}: {table}.{name}", source.path));
                }
            }
        }
    }
    assert!(found.is_empty(), "versions stand in the workspace's Cargo.toml:\n{}", found.join("\n"));
}

/// One package that the workspace is built of: what it is, and which packages name it as a dependency.
struct Package {
    name: String,
    version: String,
    license: String,
    named_by: BTreeSet<String>,
}

/// Every package that is built here, our own among them.
fn packages() -> Vec<Package> {
    let json = cargo(&["metadata", "--format-version", "1", "--locked", "--filter-platform", &host()]);
    let metadata: Value = serde_json::from_str(&json).expect("metadata is JSON");
    let packages = list(&metadata, "packages");
    let name_of: BTreeMap<String, String> = packages.iter().map(|it| (text(it, "id"), text(it, "name"))).collect();
    let nodes = list(metadata.get("resolve").expect("resolve"), "nodes");
    let mut named_by: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in &nodes {
        let namer = name_of.get(&text(node, "id")).cloned().unwrap_or_default();
        named_by.entry(text(node, "id")).or_default();
        for dependency in list(node, "deps") {
            named_by.entry(text(&dependency, "pkg")).or_default().insert(namer.clone());
        }
    }
    // Metadata names what a feature could bring along where it is asked for weakly (`ring?/std`); the tree names what is built.
    let tree = cargo(&[
        "tree",
        "--workspace",
        "--all-features",
        "-e",
        "all",
        "--prefix",
        "none",
        "--format",
        "{p}",
        "--locked",
    ]);
    let in_tree: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| line.split_once(" v"))
        .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or_default()))
        .collect();
    let built: Vec<Package> = packages
        .iter()
        .filter(|it| in_tree.contains(&(text(it, "name").as_str(), text(it, "version").as_str())))
        .filter_map(|it| {
            let named_by = named_by.remove(&text(it, "id"))?;
            Some(Package {
                name: text(it, "name"),
                version: text(it, "version"),
                license: text(it, "license"),
                named_by,
            })
        })
        .collect();
    assert!(built.len() > 100, "only {} packages: this is not the whole workspace", built.len());
    built
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list(value: &Value, key: &str) -> Vec<Value> {
    value.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn deny(section: &str, key: &str) -> Vec<toml::Value> {
    let file: toml::Table = source::file("deny.toml").expect("deny.toml").parse().expect("deny.toml is TOML");
    file.get(section).and_then(|it| it.get(key)).and_then(toml::Value::as_array).expect("a list").clone()
}

/// Every dependency, however far down, is under a licence that `deny.toml` admits.
#[test]
fn licences_are_admitted() {
    let list = deny("licenses", "allow");
    let admitted: BTreeSet<&str> = list.iter().filter_map(toml::Value::as_str).collect();
    let found: Vec<String> = packages()
        .iter()
        .filter(|package| !is_admitted(&package.license, &admitted))
        .map(|package| format!("{} {}: `{}`", package.name, package.version, package.license))
        .collect();
    assert!(found.is_empty(), "licences that deny.toml does not admit:\n{}", found.join("\n"));
}

/// What `deny.toml` bans is not built, but under the packages that it names; each ban gives its reason.
#[test]
fn banned_crates_are_absent() {
    let packages = packages();
    let mut found = Vec::new();
    for ban in deny("bans", "deny") {
        let word = |key: &str| ban.get(key).and_then(toml::Value::as_str).unwrap_or_default();
        assert!(!word("reason").is_empty(), "{} is banned without a reason", word("crate"));
        let (name, below) = word("crate").split_once(":<").unwrap_or_else(|| (word("crate"), ""));
        let wrappers = ban.get("wrappers").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let is_wrapper = |namer: &String| wrappers.iter().any(|it| it.as_str() == Some(namer));
        for package in packages.iter().filter(|it| it.name == name && is_below(&it.version, below)) {
            let namers: Vec<&String> = package.named_by.iter().filter(|namer| !is_wrapper(namer)).collect();
            if !namers.is_empty() {
                found.push(format!("{name} {}, named by {namers:?}", package.version));
            }
        }
    }
    assert!(found.is_empty(), "crates that deny.toml bans:\n{}", found.join("\n"));
}

/// Whether a version lies below another; every version lies below the empty one.
fn is_below(version: &str, bound: &str) -> bool {
    let numbers = |text: &str| text.split('.').map(|it| it.parse::<u64>().unwrap_or_default()).collect::<Vec<_>>();
    bound.is_empty() || numbers(version) < numbers(bound)
}

/// `cargo run -- dev` starts the server, built as it is shipped: no other program makes the command ambiguous, and no other member has
/// its features, such as the test kit, built into it.
#[test]
fn cargo_run_means_the_server() {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("metadata is JSON");
    let default = list(&metadata, "workspace_default_members");
    let packages =
        list(&metadata, "packages").into_iter().filter(|it| it.get("id").is_some_and(|id| default.contains(id)));
    let text = |it: &Value, member: &str| it.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let meant: Vec<_> = packages.map(|it| (text(&it, "name"), text(&it, "default_run"))).collect();
    assert_eq!(
        meant,
        [("svc-http".to_owned(), "svc".to_owned())],
        "the package and the program that are built and run"
    );
}

/// Whether an SPDX expression can be met with the admitted licences. An empty one cannot.
fn is_admitted(expression: &str, admitted: &BTreeSet<&str>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ").replace(" WITH ", "+WITH+");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    any_of(&tokens, &mut at, admitted) && at == tokens.len()
}

fn any_of(tokens: &[&str], at: &mut usize, admitted: &BTreeSet<&str>) -> bool {
    let mut met = all_of(tokens, at, admitted);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all_of(tokens, at, admitted);
    }
    met
}

fn all_of(tokens: &[&str], at: &mut usize, admitted: &BTreeSet<&str>) -> bool {
    let mut met = one(tokens, at, admitted);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(tokens, at, admitted);
    }
    met
}

fn one(tokens: &[&str], at: &mut usize, admitted: &BTreeSet<&str>) -> bool {
    let token = tokens.get(*at).copied().unwrap_or_default();
    *at += 1;
    if token == "(" {
        let met = any_of(tokens, at, admitted);
        *at += 1;
        return met;
    }
    admitted.contains(token.replace("+WITH+", " WITH ").as_str())
}

/// The reading of licence expressions itself.
#[test]
fn licence_expressions_are_read() {
    let admitted = BTreeSet::from(["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]);
    for met in ["MIT", "GPL-3.0 OR MIT", "MIT/GPL-3.0", "ISC AND (GPL-3.0 OR MIT)", "Apache-2.0 WITH LLVM-exception"] {
        assert!(is_admitted(met, &admitted), "{met}");
    }
    for unmet in ["", "GPL-3.0", "MIT AND GPL-3.0", "ISC AND (GPL-3.0 OR Apache-2.0)", "Apache-2.0", "MIT MIT"] {
        assert!(!is_admitted(unmet, &admitted), "{unmet}");
    }
}

/// The notices that go along with the program, where its command finds them.
const NOTICES: &str = "svc-http/THIRD-PARTY.txt";

/// A package that the program is built of, with the licence that it is taken under.
struct Part {
    name: String,
    version: String,
    license: String,
    folder: PathBuf,
}

/// Whatever the server is linked from on this platform, but for what is written here.
fn parts() -> BTreeMap<String, Part> {
    let args = ["tree", "-p", "svc-http", "--features", "otel", "-e", "normal", "--prefix", "none", "--format", "{p}"];
    let tree = cargo(&[args.as_slice(), &["--locked"]].concat());
    let named: BTreeSet<String> = tree
        .lines()
        .filter_map(|line| line.split_once(" v"))
        .map(|(name, rest)| format!("{name} {}", rest.split(' ').next().unwrap_or_default()))
        .collect();
    let metadata = cargo(&["metadata", "--format-version", "1", "--locked", "--filter-platform", &host()]);
    let metadata: Value = serde_json::from_str(&metadata).expect("metadata is JSON");
    let packages = list(&metadata, "packages").into_iter().filter(|it| !it["source"].is_null());
    let parts = packages.map(|it| Part {
        name: text(&it, "name"),
        version: text(&it, "version"),
        license: text(&it, "license"),
        folder: Path::new(&text(&it, "manifest_path")).parent().expect("a folder").to_owned(),
    });
    parts.map(|it| (format!("{} {}", it.name, it.version), it)).filter(|(id, _)| named.contains(id)).collect()
}

/// The texts of licences and notices that a package brings. Where it may be had under the Apache licence, that is what it is taken under,
/// whose text stands in the file once: then its notice alone.
fn texts(part: &Part) -> Vec<String> {
    let is_apache = is_admitted(&part.license, &BTreeSet::from(["Apache-2.0"]));
    let is_meant = |name: &str| {
        let name = name.to_ascii_uppercase();
        name.starts_with("NOTICE")
            || !is_apache && ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT"].iter().any(|it| name.starts_with(it))
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(&part.folder)
        .expect("a folder")
        .map(|it| it.expect("a file").path())
        .filter(|it| it.is_file() && it.file_name().and_then(|name| name.to_str()).is_some_and(is_meant))
        .collect();
    files.sort();
    let tidy =
        |text: String| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned();
    files.into_iter().filter_map(|it| std::fs::read_to_string(it).ok()).map(tidy).collect()
}

/// The whole file of notices, from the packages as they are.
fn notices() -> String {
    let parts = parts();
    assert!(parts.len() > 200, "only {} packages: this is not the server", parts.len());
    let mut out = String::from(
        "What the program `svc` is built of besides its own sources, and the licences and notices of it. Where a package is offered\n\
         under the Apache License 2.0 among others, it is used under that. Written by a test of the workspace: see CONTRIBUTING.md.\n\n",
    );
    for (id, part) in &parts {
        out.push_str(&format!("{id}: {}\n", part.license));
    }
    out.push_str(
        "preact 11.2.0: MIT\nhtm 3.1.1: Apache-2.0\nPublic Suffix List, in the package psl: MPL-2.0\n\n\
         The Public Suffix List is subject to the terms of the Mozilla Public License, v. 2.0, which is at https://mozilla.org/MPL/2.0/.\n\
         Its source is at https://publicsuffix.org/list/public_suffix_list.dat.\n",
    );
    let mut of_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, part) in &parts {
        for text in texts(part) {
            of_text.entry(text).or_default().push(id.clone());
        }
    }
    for (name, path) in
        [("preact", "svc-http/src/console/LICENSE.preact.txt"), ("htm", "svc-http/src/console/LICENSE.htm.txt")]
    {
        let text = source::file(path).expect("a licence").trim_matches('\n').to_owned();
        of_text.entry(text).or_default().push(name.to_owned());
    }
    let apache = source::file("LICENSE-APACHE").expect("our own licence").trim_matches('\n').to_owned();
    let own = source::file("LICENSE-MIT").expect("our own licence").trim_matches('\n').to_owned();
    of_text.remove(&apache);
    let mut sections: Vec<(String, String)> = of_text.into_iter().map(|(text, ids)| (ids.join(", "), text)).collect();
    sections.sort();
    sections.insert(0, ("svc itself, and every package that offers it: the Apache License 2.0".into(), apache));
    sections.insert(1, ("svc itself, as you choose: the MIT License".into(), own));
    for (of, text) in sections {
        out.push_str(&format!("\n{}\n{of}\n{}\n\n{text}\n", "=".repeat(80), "-".repeat(80)));
    }
    out
}

/// The program gives out the licences and notices of all that it is built of. Another platform may build with fewer packages than the file
/// names, and with none that it lacks.
#[test]
fn notices_name_every_part() {
    let path = source::root().join(NOTICES);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, notices()).expect("the notices are written");
    }
    let written = std::fs::read_to_string(path).expect("the notices");
    let lines: BTreeSet<&str> = written.lines().collect();
    let lacking: Vec<String> = parts()
        .iter()
        .map(|(id, part)| format!("{id}: {}", part.license))
        .filter(|line| !lines.contains(line.as_str()))
        .collect();
    assert!(lacking.is_empty(), "{NOTICES} lacks (run this test with UPDATE_EXPECTED=1):\n{}", lacking.join("\n"));
    for text in parts().values().flat_map(texts) {
        assert!(written.contains(&text), "{NOTICES} lacks a text (run this test with UPDATE_EXPECTED=1):\n{text}");
    }
}

/// Whatever a crate depends on is named in its sources. A dependency that nobody uses is weight and a door.
#[test]
fn dependencies_are_used() {
    let sources = source::files(&[".rs"]);
    let mut found = Vec::new();
    for member in ["svc-core", "svc-store", "svc-http", "examples", "tests", "tests/fuzz", "benches"] {
        let manifest = source::file(&format!("{member}/Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = manifest.parse().expect("TOML");
        let of_member: Vec<&str> =
            sources.iter().filter(|it| it.path.starts_with(&format!("{member}/"))).map(|it| it.text.as_str()).collect();
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for name in manifest.get(section).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys) {
                let name = name.replace('-', "_");
                let joined = name.replace('_', "");
                let forms =
                    [format!("{name}::"), format!("use {name}"), format!("{joined}::"), format!("use {joined}")];
                if !of_member.iter().any(|text| forms.iter().any(|form| text.contains(form))) {
                    found.push(format!("{member}: {name}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "dependencies that no source names: {found:?}");
}
