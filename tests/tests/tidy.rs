//! How the sources are written: sizes, words, the direction of the core's layers, what the core may reach.
//!
//! Each rule prints every place that breaks it. A place is mended, a limit is not moved.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use svc_tests::source::{self, Source};

/// Lines of a file, tests and comments included.
const FILE_LINES_MAX: usize = 600;
/// Lines of a function, from its name to its closing brace.
const FN_LINES_MAX: usize = 70;
/// The layers of the core, in the order of the arrows: each may name those before it and itself.
const LAYERS: &[&[&str]] = &[
    &["value"],
    &["refusal"],
    &["dlp", "rate", "state"],
    &["dialect"],
    &["store"],
    &["turn"],
    &["rules"],
    &["answer"],
    &["command"],
    &["engine"],
    &["testing"],
];
/// Where the core may name `Scope`.
const SCOPED: &[&str] =
    &["svc-core/src/rules/", "svc-core/src/turn/", "svc-core/src/command.rs", "svc-core/src/command/"];
/// Where the core may name a float: what reads, compares and writes the numbers of bodies, and how alike two words are.
const FLOATS: &[&str] = &[
    "svc-core/src/dialect/request.rs",
    "svc-core/src/dialect/request/to_messages.rs",
    "svc-core/src/value/canonical.rs",
    "svc-core/src/value/json.rs",
    "svc-core/src/value/nearest.rs",
    "svc-core/src/value/number.rs",
];
/// Where the server reads rows itself, beside the rules that it calls. The list only shrinks: what is new is a rule of the core.
const READING: &[&str] = &[
    "svc-http/src/cli/barred.rs",
    "svc-http/src/cli/erase.rs",
    "svc-http/src/cli/key.rs",
    "svc-http/src/cli/key_list.rs",
    "svc-http/src/cli/providers.rs",
    "svc-http/src/cli/setup.rs",
    "svc-http/src/drill.rs",
    "svc-http/src/export.rs",
    "svc-http/src/live.rs",
    "svc-http/src/ops.rs",
    "svc-http/src/ops/actions.rs",
    "svc-http/src/ops/agents.rs",
    "svc-http/src/ops/applications.rs",
    "svc-http/src/ops/approvals.rs",
    "svc-http/src/ops/gateway/running.rs",
    "svc-http/src/ops/gateway/targets.rs",
    "svc-http/src/ops/mcp/proxy/waiting.rs",
    "svc-http/src/ops/mcp/tools.rs",
    "svc-http/src/ops/mcp_servers.rs",
    "svc-http/src/ops/named.rs",
    "svc-http/src/ops/oauth/authorize.rs",
    "svc-http/src/ops/own_secret.rs",
    "svc-http/src/ops/reports.rs",
    "svc-http/src/ops/routing.rs",
    "svc-http/src/ops/settings.rs",
    "svc-http/src/ops/sign_in.rs",
    "svc-http/src/ops/skipped.rs",
    "svc-http/src/ops/suggested.rs",
    "svc-http/src/wire/budget.rs",
    "svc-http/src/wire/named.rs",
];
/// What the core never names: paths and words of the outside.
const OUTSIDE: &[&str] = &["SystemTime", "Instant", "RandomState", "getrandom", "thread_local", "tokio", "rand"];
/// The modules of the standard library that it never names.
const OUTSIDE_MODULES: &[&str] = &["env", "fs", "io", "net", "os", "process", "thread"];
/// Where the types stand that rows are made of.
const STORED: &[&str] = &["svc-core/src/dlp/", "svc-core/src/state/", "svc-core/src/value/"];
/// Where the interface lists words, and the lists there of words that one other place alone writes.
const LISTING: &[&str] =
    &["svc-http/src/schemas.rs", "svc-http/src/schemas/", "svc-http/src/openapi/", "svc-http/src/wire/mcp/tools.rs"];
const LISTED: &[&str] = &[
    r#""active", "ended""#,
    r#""agent", "all""#,
    r#""alive", "ready""#,
    r#""no_budget", "unused", "no_expiry""#,
    r#""true", "false""#,
];
/// What rows hold, beside the number of the schema.
const ROWS: &str = "svc-store/src/sqlite/rows.expected.txt";

fn rust() -> Vec<Source> {
    source::files(&[".rs"])
}

fn core() -> Vec<Source> {
    rust().into_iter().filter(|source| source.path.starts_with("svc-core/src/")).collect()
}

/// Fails with every place found, one a line.
fn none(rule: &str, places: &[String]) {
    assert!(places.is_empty(), "{rule}:\n{}", places.join("\n"));
}

/// No file is too long to be read at once.
#[test]
fn files_are_short() {
    let long: Vec<String> = source::files(&[".rs", ".py", ".js", ".mjs"])
        .iter()
        .map(|source| (source.text.lines().count(), &source.path))
        .filter(|(lines, _)| *lines > FILE_LINES_MAX)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    none(&format!("at most {FILE_LINES_MAX} lines a file"), &long);
}

/// Each file of Rust says in its first line what it is about, tests too.
#[test]
fn files_say_what_they_are_about() {
    let untold = rust().into_iter().filter(|source| !source.text.starts_with("//!"));
    none("a file begins with `//!`", &untold.map(|source| source.path).collect::<Vec<_>>());
}

/// The core has a table of lints of its own, as it has more of them than the workspace: it holds all of the workspace's.
#[test]
fn the_core_has_the_lints_of_the_workspace() {
    let table = |path: &str| source::file(path).and_then(|text| text.parse::<toml::Table>().ok()).expect(path);
    let (workspace, core) = (table("Cargo.toml"), table("svc-core/Cargo.toml"));
    for tool in ["rust", "clippy"] {
        let lints = workspace["workspace"]["lints"][tool].as_table().expect(tool);
        let missing = lints.iter().filter(|(lint, level)| core["lints"][tool].get(lint) != Some(level));
        none(
            "lints of the workspace in svc-core/Cargo.toml",
            &missing.map(|(lint, _)| lint.clone()).collect::<Vec<_>>(),
        );
    }
}

/// No function is too long to be read at once.
#[test]
fn functions_are_short() {
    let mut long = Vec::new();
    for source in rust() {
        let code = source::parts(&source.text).code;
        for at in source::words(&code, "fn") {
            let rest = code.get(at..).unwrap_or_default();
            let lines = rest.get(..source::item_end(rest)).unwrap_or_default().lines().count();
            if is_named(rest) && lines > FN_LINES_MAX {
                long.push(format!("{}:{}: {lines} lines", source.path, source::line_of(&code, at)));
            }
        }
    }
    none(&format!("at most {FN_LINES_MAX} lines a function"), &long);
}

/// `fn name`, not the type `fn(…)`.
fn is_named(code: &str) -> bool {
    code.get(2..)
        .is_some_and(|rest| rest.trim_start().starts_with(|it: char| it.is_alphabetic() || it == '_' || it == '$'))
}

/// Nothing is left half done: no such macro in code, no such word in comments or documents.
#[test]
fn nothing_is_left_for_later() {
    let macros = ["todo!", "unimplemented!", "dbg!"];
    let words = [
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("TO", "DO"),
        concat!("for ", "now"),
        concat!("place", "holder"),
    ];
    let mut found = Vec::new();
    for source in rust() {
        let parts = source::parts(&source.text);
        found.extend(macros.iter().flat_map(|word| places(&source.path, &parts.code, word)));
        found.extend(words.iter().flat_map(|word| places(&source.path, &parts.comments, word)));
    }
    for source in source::files(&[".md", ".toml", ".py", ".sh", "/run"]) {
        found.extend(words.iter().flat_map(|word| places(&source.path, &source.text, word)));
    }
    none("nothing is left for later", &found);
}

fn places(path: &str, text: &str, word: &str) -> Vec<String> {
    let found: Vec<usize> = if word.ends_with('!') {
        text.match_indices(word).map(|(at, _)| at).collect()
    } else {
        source::words(text, word)
    };
    found.into_iter().map(|at| format!("{path}:{}: `{word}`", source::line_of(text, at))).collect()
}

/// The project runs anywhere: no path of one machine stands in it.
#[test]
fn no_path_of_one_machine() {
    let paths = [
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/Us", "ers/"),
        concat!("/wo", "rk/"),
        concat!("/tmp", "/w"),
    ];
    let mut found = Vec::new();
    for source in source::files(&[""]) {
        for path in paths {
            let before = |at: usize| at.checked_sub(1).and_then(|it| source.text.as_bytes().get(it)).copied();
            let alone =
                |at: &usize| before(*at).is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b".-_}".contains(&byte));
            let hits = source.text.match_indices(path).map(|(at, _)| at).filter(alone);
            found.extend(hits.map(|at| format!("{}:{}: `{path}`", source.path, source::line_of(&source.text, at))));
        }
    }
    none("no path of one machine", &found);
}

/// The rank of a layer of the core.
fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&layer))
}

/// The layer that a file of the core belongs to; none for the crate's root.
fn layer_of(path: &str) -> &str {
    let inside = path.trim_start_matches("svc-core/src/").trim_end_matches(".rs");
    inside.split('/').next().unwrap_or(inside)
}

/// Value ← refusal ← state ← store ← turn ← rules ← command ← engine: nothing points the other way.
#[test]
fn the_core_has_one_direction() {
    let mut wrong = Vec::new();
    for source in core() {
        let own = layer_of(&source.path);
        if own == "lib" {
            continue;
        }
        let Some(rank_own) = rank(own) else {
            wrong.push(format!("{}: the layer `{own}` has no place in the order", source.path));
            continue;
        };
        let code = source::shipped(&source::parts(&source.text).code);
        for (at, named) in named_layers(&code) {
            let place = format!("{}:{}", source.path, source::line_of(&code, at));
            match rank(&named) {
                Some(rank_named) if rank_named <= rank_own => {}
                Some(_) => wrong.push(format!("{place}: `{own}` names `{named}`, which comes after it")),
                None => wrong.push(format!("{place}: `crate::{named}` is no layer; name the layer that it is in")),
            }
        }
        let depth = source.path.trim_start_matches("svc-core/src/").trim_end_matches("/mod.rs").split('/').count();
        let climb = "super::".repeat(depth);
        wrong.extend(code.match_indices(&climb).map(|(at, _)| {
            format!("{}:{}: `{climb}` leaves the layer; write `crate::`", source.path, source::line_of(&code, at))
        }));
    }
    none("layers of the core", &wrong);
}

/// What follows `crate::` in code, one by one.
fn named_layers(code: &str) -> Vec<(usize, String)> {
    named_after(code, "crate::")
}

/// The words that follow `path` in code, groups opened; a macro's name is none.
fn named_after(code: &str, path: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, path) in code.match_indices(path) {
        let rest = code.get(at + path.len()..).unwrap_or_default();
        let group = rest.trim_start().strip_prefix('{').map(|inner| (inner, source::item_end(rest).saturating_sub(1)));
        let names = match group {
            Some((inner, end)) => top_names(inner.get(..end.min(inner.len())).unwrap_or(inner)),
            None => vec![word_at(rest)],
        };
        let is_macro = rest.get(word_at(rest).len()..).is_some_and(|after| after.starts_with('!'));
        if !is_macro {
            found.extend(names.into_iter().filter(|name| !name.is_empty()).map(|name| (at, name)));
        }
    }
    found
}

fn word_at(text: &str) -> String {
    text.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect()
}

/// The first word of each member of a `{a::b, c::{d, e}}`, whose inside this is.
fn top_names(inner: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut names = vec![String::new()];
    let mut open = true;
    for it in inner.chars() {
        match it {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(String::new());
                open = true;
            }
            _ if depth == 0 && open && (it.is_alphanumeric() || it == '_') => {
                if let Some(last) = names.last_mut() {
                    last.push(it);
                }
            }
            _ if !it.is_whitespace() => open = false,
            _ => {}
        }
    }
    names
}

/// A noun never names `Scope`: only the rules, the turn that drives them and the list of commands do.
#[test]
fn only_rules_name_the_scope() {
    let mut found = Vec::new();
    for source in core() {
        if !SCOPED.iter().any(|place| source.path.starts_with(place)) {
            let code = source::shipped(&source::parts(&source.text).code);
            found.extend(places(&source.path, &code, "Scope"));
        }
    }
    none("only rules/, turn/ and command.rs name `Scope`", &found);
}

/// The server asks rules for what it shows, and in the files of a list that only shrinks rows.
#[test]
fn reading_rows_is_for_rules() {
    let reads = rust().into_iter().filter(|source| {
        let code = source::shipped(&source::parts(&source.text).code);
        source.path.starts_with("svc-http/src/")
            && (!source::words(&code, "Scope").is_empty() || code.contains("scope.get"))
    });
    let reads: Vec<String> = reads.map(|source| source.path).collect();
    assert_eq!(reads, READING, "files of the server that name `Scope` or read a row by it");
}

/// Money is no float: the core names one in a few files that know of none.
#[test]
fn floats_stand_in_a_few_files() {
    let named = core().into_iter().filter(|source| {
        let code = source::parts(&source.text).code;
        ["f32", "f64"].iter().any(|word| !source::words(&code, word).is_empty())
    });
    let mut named: Vec<String> = named.map(|source| source.path).collect();
    named.sort_unstable();
    assert_eq!(named, FLOATS, "files of the core that name a float: one more needs a reason, one less leaves the list");
}

/// The core names no clock, file, socket, thread, environment or randomness, tests and test kit included.
#[test]
fn the_core_reaches_nothing_outside() {
    let mut found = Vec::new();
    for source in core() {
        let code = source::parts(&source.text).code;
        found.extend(OUTSIDE.iter().flat_map(|word| places(&source.path, &code, word)));
        for (at, name) in named_after(&code, "std::") {
            if OUTSIDE_MODULES.contains(&name.as_str()) {
                found.push(format!("{}:{}: `std::{name}`", source.path, source::line_of(&code, at)));
            }
        }
    }
    none("the core reaches nothing outside", &found);
}

/// SQL stands in svc-store alone; the tests and benches that look at a database from outside are no part of the server.
#[test]
fn sql_stands_in_the_store() {
    let verbs = [
        "SELECT ",
        "INSERT INTO ",
        "INSERT OR ",
        "UPDATE ",
        "DELETE FROM ",
        "CREATE TABLE ",
        "CREATE INDEX ",
        "PRAGMA ",
    ];
    let mut found = Vec::new();
    for source in
        rust().iter().filter(|it| ["svc-core/", "svc-http/src/"].iter().any(|place| it.path.starts_with(place)))
    {
        let quoted = source::parts(&source.text).quoted;
        let hits = verbs.iter().flat_map(|verb| quoted.match_indices(verb).map(|(at, _)| (at, *verb)));
        found.extend(hits.map(|(at, verb)| format!("{}:{}: `{verb}`", source.path, source::line_of(&quoted, at))));
    }
    none("SQL stands in svc-store", &found);
}

/// Words of the interface are listed from the enum or the table that has them: written once more, they would drift from it.
#[test]
fn lists_of_words_are_not_written_twice() {
    let mut found = Vec::new();
    for source in rust().iter().filter(|it| LISTING.iter().any(|place| it.path.starts_with(place))) {
        for before in [r#""enum": ["#, "word(&[", "word_or_null(&[", "words(["] {
            for (at, _) in source.text.match_indices(before) {
                let rest = source.text.get(at + before.len()..).unwrap_or_default();
                let list = rest.split(']').next().unwrap_or_default();
                if list.contains("\", \"") && !LISTED.contains(&list) {
                    found.push(format!("{}:{}: {list}", source.path, source::line_of(&source.text, at)));
                }
            }
        }
    }
    none("words of the interface come from whatever has them", &found);
}

/// What rows hold is written down beside the number of the schema. A program drops the members of a row that it does not know
/// when it writes the row again, so whoever adds one decides whether programs of before may still open the database.
#[test]
fn what_rows_hold_is_that_of_the_schema() {
    let stored = core().into_iter().filter(|it| STORED.iter().any(|place| it.path.starts_with(place)));
    let mut lines: Vec<String> = stored.flat_map(|it| read_types(&it.text)).collect();
    lines.sort_unstable();
    lines.insert(0, format!("schema {}", svc_store::sqlite::SCHEMA));
    let found = lines.join("\n") + "\n";
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(source::root().join(ROWS), found).unwrap();
        return;
    }
    let written = source::file(ROWS).expect(ROWS);
    let changed: Vec<&str> = found.lines().filter(|line| !written.lines().any(|it| it == *line)).collect();
    assert!(
        written == found,
        "rows changed: raise SCHEMA in svc-store/src/sqlite/schema.rs with a step, which may do nothing, unless no program of the \
         present one has run on data that is to stay; then UPDATE_EXPECTED=1 writes {ROWS} anew\n{}",
        changed.join("\n")
    );
}

/// Each type that is read from a row, on a line: its members with their types and with what tells how they are read, such as a name
/// of their own or that they may be missing.
fn read_types(text: &str) -> Vec<String> {
    let parts = source::parts(text);
    let code = source::shipped(&parts.code);
    let derives = source::words(&code, "derive").into_iter().filter_map(|at| {
        let end = at + code.get(at..)?.find(")]")? + 2;
        Some((code.get(at..end)?, end))
    });
    let read = derives.filter(|(derived, _)| derived.contains("Deserialize"));
    read.filter_map(|(_, begin)| {
        let end = begin + source::item_end(code.get(begin..)?);
        let item = with_reading(code.get(begin..end)?, parts.quoted.get(begin..end)?);
        let words = item.split_whitespace().filter(|word| !word.starts_with("pub"));
        Some(words.collect::<Vec<_>>().join(" "))
    })
    .collect()
}

/// The same code with no other attributes than serde's, of these what reading rests on. `quoted` holds the texts in it, at their places.
fn with_reading(code: &str, quoted: &str) -> String {
    let mut out = String::new();
    let mut rest = 0;
    while let Some(at) = code.get(rest..).and_then(|it| it.find("#[")).map(|at| rest + at) {
        out.push_str(code.get(rest..at).unwrap_or_default());
        let mut depth = 0_usize;
        let length = code.bytes().skip(at + 1).position(|it| {
            depth += usize::from(it == b'[');
            depth -= usize::from(it == b']');
            depth == 0
        });
        rest = length.map_or(code.len(), |it| at + it + 2);
        let whole = code.bytes().zip(quoted.bytes()).skip(at).take(rest - at);
        let whole: String = whole.map(|(code, text)| char::from(if text == b' ' { code } else { text })).collect();
        let said = whole.strip_prefix("#[serde(").and_then(|it| it.strip_suffix(")]")).unwrap_or_default();
        let read: Vec<&str> = said.split(',').map(str::trim).filter(|it| !is_of_writing(it)).collect();
        if !read.is_empty() {
            out.push_str(&format!("#[{}] ", read.join(", ")));
        }
    }
    out + code.get(rest..).unwrap_or_default()
}

/// Whether a word of serde's tells how something is written, and nothing of how it is read.
fn is_of_writing(said: &str) -> bool {
    said.is_empty() || ["skip_serializing_if", "serialize_with", "into"].iter().any(|it| said.starts_with(it))
}

/// The README's table of routes is the table of routes.
#[test]
fn the_readme_lists_the_routes() {
    let readme = source::file("README.md").expect("README.md");
    let methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    let begins = |line: &str| methods.iter().any(|method| line.starts_with(&format!("| {method} | `/")));
    let written: Vec<&str> = readme.lines().filter(|line| begins(line)).collect();
    let row = |route: &svc_http::routes::Route| {
        format!("| {} | `{}` | {} | {} |", route.method, route.path, route.auth.words(), route.summary)
    };
    let served: Vec<String> = svc_http::routes::all().map(row).collect();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        let first = readme.lines().position(begins).unwrap_or(0);
        let mut lines: Vec<&str> = readme.lines().filter(|line| !begins(line)).collect();
        lines.splice(first..first, served.iter().map(String::as_str));
        std::fs::write(source::root().join("README.md"), lines.join("\n") + "\n").unwrap();
        return;
    }
    assert!(written == served, "README.md needs this table of routes:\n{}", served.join("\n"));
}

/// The map names every module of the two crates that it lists by file.
#[test]
fn the_map_names_every_module() {
    let map = source::file("ARCHITECTURE.md").expect("ARCHITECTURE.md");
    let mut found = Vec::new();
    for source in rust() {
        let of_crate = ["svc-store/src/", "svc-http/src/"].iter().find_map(|it| source.path.strip_prefix(it));
        let module = of_crate.and_then(|it| it.split(['/', '.']).next()).filter(|it| *it != "lib");
        found.extend(
            module
                .filter(|it| !map.contains(&format!("`{it}.rs`")) && !map.contains(&format!("`{it}/`")))
                .map(str::to_owned),
        );
    }
    found.sort_unstable();
    found.dedup();
    none("ARCHITECTURE.md has a place for every module", &found);
}

/// The reading of types itself.
#[test]
fn stored_types_are_read() {
    let text = "#[derive(Clone, Deserialize)]\n#[serde(default)]\n#[repr(u8)]\npub struct A {\n    /// No word.\n    \
                #[serde(rename = \"[\", skip_serializing_if = \"none\")]\n    pub(crate) b: [u8; 2],\n    #[serde(into = \"u8\")]\n    \
                c: u8,\n}\n#[derive(Clone)]\nstruct C;\n#[derive(Deserialize)]\nstruct D(u8);";
    let read = [r#"#[default] struct A { #[rename = "["] b: [u8; 2], c: u8, }"#, "struct D(u8);"];
    assert_eq!(read_types(text), read);
}

/// The reading of paths itself.
#[test]
fn named_layers_are_read() {
    let names = |code: &str| named_layers(code).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    assert_eq!(names("use crate::value::Timestamp; crate::ids! { A }"), ["value"]);
    assert_eq!(
        names("use crate::{refusal::Refusal, state::{gate::Action, people}, value};"),
        ["refusal", "state", "value"]
    );
    assert_eq!(named_after("use std::{fmt, fs::File};", "std::").len(), 2);
    assert_eq!(names("fn a(b: $crate::store::Key) -> crate::turn::Turn"), ["store", "turn"]);
}
