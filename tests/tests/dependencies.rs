//! What the workspace is built of: one list of versions, licences that are admitted, nothing that is banned.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
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
    let tree = cargo(&["tree", "--workspace", "-e", "all", "--prefix", "none", "--format", "{p}", "--locked"]);
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
        let (name, below) = word("crate").split_once("@<").unwrap_or_else(|| (word("crate"), ""));
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

/// `cargo run -- dev` starts the server: no other program makes the command ambiguous.
#[test]
fn cargo_run_means_the_server() {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("metadata is JSON");
    let default = list(&metadata, "workspace_default_members");
    let packages =
        list(&metadata, "packages").into_iter().filter(|it| it.get("id").is_some_and(|id| default.contains(id)));
    let meant: Vec<String> =
        packages.filter_map(|it| it.get("default_run").and_then(Value::as_str).map(str::to_owned)).collect();
    assert_eq!(meant, ["svc"], "among several programs the one that a package names as its default is run");
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
