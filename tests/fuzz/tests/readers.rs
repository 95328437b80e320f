//! Whatever reads what comes over the wire has a target: every such function of `svc-http` is found in its sources and looked for in the
//! targets'.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

/// Readers that no target names, and why.
const OTHERWISE: [(&str, &str); 19] = [
    ("headers::single", "every header is read by it"),
    ("inbound::button::Button::open", "it opens what this server sealed; what was in it is read by `read`"),
    ("inbound::jwks::Algorithm::parse", "headers of tokens and sets of keys are read by it"),
    ("totp::base32", "it writes what this server drew"),
    ("totp::otpauth_url", "it writes what this server drew"),
    ("totp::qr_svg", "it writes what this server drew"),
    ("wire::Fields::of", "every body is read by it"),
    ("wire::action_request::of_json", "the body of an action is read by it"),
    ("wire::amount", "every body is read by it"),
    ("wire::integer", "every body is read by it"),
    ("wire::list_of", "every body is read by it"),
    ("wire::parse", "every body is read by it"),
    ("wire::parse_or_empty", "every body is read by it"),
    ("wire::settlement::of_json", "the body of an outcome is read by it"),
    ("wire::text", "every body is read by it"),
    ("wire::token::range", "the body of a token is read by it"),
    ("wire::token::scope", "the body of a token is read by it"),
    ("wire::truth", "every body is read by it"),
    ("callback_secret::parse_given", "the body of an integration is read by it"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every source below a path, with its path from there.
fn sources(base: &Path, path: &Path, out: &mut Vec<(PathBuf, String)>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            sources(base, &entry.unwrap().path(), out);
        }
    } else if path.extension().is_some_and(|it| it == "rs") {
        out.push((path.strip_prefix(base).unwrap().to_owned(), fs::read_to_string(path).unwrap()));
    }
}

/// The functions of a source that anybody may call, each with the type that it belongs to and what it takes.
fn functions(text: &str) -> Vec<(Option<String>, String, String)> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let (mut owner, mut found) = (None, Vec::new());
    for (at, line) in
        text.match_indices('\n').map(|(at, _)| (at + 1, text[at + 1..].lines().next().unwrap_or_default()))
    {
        if line.starts_with("impl") && !line.contains(" for ") {
            let rest =
                if line.starts_with("impl<") { line.split_once("> ").unwrap().1 } else { &line["impl ".len()..] };
            owner = Some(word(rest));
        } else if line == "}" {
            owner = None;
        }
        let behind = line.trim_start().strip_prefix("pub ").map(|it| it.strip_prefix("const ").unwrap_or(it));
        if let Some(name) = behind.and_then(|it| it.strip_prefix("fn ")) {
            let whole = &text[at..at + text[at..].find(" {\n").unwrap()];
            let takes = whole.split("->").next().unwrap().replace("&'a ", "&");
            found.push((owner.clone(), word(name), takes));
        }
    }
    found
}

fn is_of_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

fn word(text: &str) -> String {
    text.chars().take_while(|it| is_of_word(*it)).collect()
}

/// Whether a function reads what somebody else wrote: bytes, JSON, a query, headers or a text, and no value of a type of its own.
fn reads(name: &str, takes: &str) -> bool {
    const FOREIGN: [&str; 11] = [
        "[u8]",
        "&Json",
        "json: Json",
        "Query",
        "http::Uri",
        "&Uri",
        "&HeaderMap",
        "&HeaderValue",
        "text: &",
        "word: &",
        "verifier: &",
    ];
    let is_method = ["(self", "(&self", "(&mut self"].iter().any(|it| takes.contains(it));
    let is_writer = ["write", "signature", "fit"].iter().any(|it| name.starts_with(it));
    !is_method && !is_writer && FOREIGN.iter().any(|it| takes.contains(it))
}

/// The paths that a `use` brings in, each with the name that it has from then on.
fn brought(tree: &str, before: &str, out: &mut Vec<(String, String)>) {
    let tree = tree.trim();
    let joined = |name: &str| if before.is_empty() { name.to_owned() } else { format!("{before}::{name}") };
    if let Some((head, inner)) = tree.split_once('{') {
        let head = joined(head.trim_end_matches("::"));
        let inner = &inner[..inner.rfind('}').unwrap()];
        let (mut depth, mut begin) = (0_i32, 0);
        for (at, it) in inner.char_indices().chain([(inner.len(), ',')]) {
            depth += i32::from(it == '{') - i32::from(it == '}');
            if it == ',' && depth == 0 {
                brought(&inner[begin..at], &head, out);
                begin = at + 1;
            }
        }
    } else if !tree.is_empty() {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree));
        let path = if path == "self" { before.to_owned() } else { joined(path) };
        let name = if name == "self" { &path } else { name };
        let name = name.rsplit("::").next().unwrap().to_owned();
        out.push((path, name));
    }
}

/// Whether the text holds these words and no longer ones.
fn holds(text: &str, words: &str) -> bool {
    text.match_indices(words)
        .any(|(at, _)| !text[..at].ends_with(is_of_word) && !text[at + words.len()..].starts_with(is_of_word))
}

/// Whether a source of the targets names what stands at this path.
fn names(source: &str, path: &str) -> bool {
    let mut brought_in = Vec::new();
    let mut code = String::new();
    for part in source.split_inclusive(';') {
        match part.split_once("use svc_http::").filter(|(before, _)| !before.contains("fn ")) {
            Some((_, tree)) => brought(tree.trim_end_matches(';'), "", &mut brought_in),
            None => code.push_str(part),
        }
    }
    brought_in.iter().any(|(brought, name)| {
        let rest = path.strip_prefix(brought.as_str()).filter(|it| it.is_empty() || it.starts_with("::"));
        rest.is_some_and(|rest| holds(&code, &format!("{name}{rest}")))
    })
}

/// Each reader is named by a target, or by its reason not to be.
#[test]
fn every_reader_has_a_target() {
    let (base, mut read, mut targets) = (root().join("svc-http/src"), Vec::new(), Vec::new());
    sources(&base, &base, &mut read);
    let own = root().join("tests/fuzz/src/targets");
    sources(&own, &own, &mut targets);
    let (mut without, mut seen) = (Vec::new(), 0);
    let mut reasons: Vec<&str> = OTHERWISE.iter().map(|(path, _)| *path).collect();
    for (path, text) in &read {
        let parts: Vec<String> = path.with_extension("").iter().map(|it| it.to_string_lossy().into_owned()).collect();
        let module = parts.join("::");
        for (owner, name, takes) in functions(text).into_iter().filter(|(_, name, takes)| reads(name, takes)) {
            let path = [Some(&module), owner.as_ref(), Some(&name)].map(|it| it.map_or("", String::as_str));
            let path = path.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("::");
            seen += 1;
            let is_excused = reasons.iter().position(|it| *it == path).map(|at| reasons.remove(at)).is_some();
            if !is_excused && !targets.iter().any(|(_, source)| names(source, &path)) {
                without.push(format!("{path}: {}", takes.split_whitespace().collect::<Vec<_>>().join(" ")));
            }
        }
    }
    without.sort();
    assert!(seen > 60, "{seen} readers are found");
    assert!(without.is_empty(), "no target of tests/fuzz reads by:\n{}", without.join("\n"));
    assert!(reasons.is_empty(), "there is no such reader: {reasons:?}");
}

/// What is found in a source is what anybody may hand a stranger's words to.
#[test]
fn readers_are_found() {
    let text = "//!\npub fn read(body: &[u8]) -> Result<X, Y> {\n}\n\nimpl<'a> Word<'a> {\n    pub fn of(\n        text: &'a str,\n    ) -> Self {\n    }\n    pub fn is(&self, text: &str) -> bool {\n    }\n}\n\npub fn write(it: &[u8]) {\n}\n";
    let found: Vec<_> = functions(text).into_iter().filter(|(_, name, takes)| reads(name, takes)).collect();
    let found: Vec<_> = found.iter().map(|(owner, name, _)| (owner.as_deref(), name.as_str())).collect();
    assert_eq!(found, [(None, "read"), (Some("Word"), "of")]);
    let source = "use svc_http::wire::{self, a::{self, B}, c as d};\nfn x() { a::read(); B::of(); wire::e::f(); d::g }";
    for path in ["wire::a::read", "wire::a::B::of", "wire::e::f", "wire::c::g"] {
        assert!(names(source, path), "{path}");
    }
    for path in ["wire::a::rea", "wire::c::read", "wire::b::of", "wire::B::of", "inbound::a::read"] {
        assert!(!names(source, path), "{path}");
    }
}
