//! `svc licences`: what the program is built of besides its own sources, with the licences and notices that go along with a copy.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::output::{Problem, print, print_json};

/// Written by a test of the workspace: a head, a line for each part (`name version: license`), and a section for each text.
const NOTICES: &str = include_str!("../../THIRD-PARTY.txt");

/// Prints them.
///
/// # Errors
/// [`Problem`] where standard output cannot be written.
pub(crate) fn run(json: bool) -> Result<ExitCode, Problem> {
    if json {
        print_json(&read(NOTICES))?
    } else {
        print(NOTICES)?
    }
    Ok(ExitCode::SUCCESS)
}

/// The same for programs: `packages` by SPDX expressions, and `notices`, each with what it is of.
fn read(notices: &str) -> Value {
    let rule = format!("\n{}\n", "=".repeat(80));
    // Some texts have such a rule within them: a section's is followed by what it is of, and another.
    let mut sections: Vec<(&str, String)> = Vec::new();
    let mut pieces = notices.split(&rule);
    let head = pieces.next().unwrap_or_default();
    for piece in pieces {
        match (piece.split_once(&format!("\n{}\n", "-".repeat(80))), sections.last_mut()) {
            (Some((of, text)), _) if !of.contains('\n') => sections.push((of, text.to_owned())),
            (_, Some((_, text))) => text.extend([rule.as_str(), piece]),
            (_, None) => {}
        }
    }
    let listed = head.split("\n\n").nth(1).unwrap_or_default();
    let packages: Vec<Value> = listed.lines().filter_map(package).collect();
    let said = sections.iter().map(|(of, text)| json!({ "of": of, "text": text.trim_matches('\n') }));
    json!({ "packages": packages, "notices": said.collect::<Vec<_>>() })
}

/// A part: what is no program of a version has none.
fn package(line: &str) -> Option<Value> {
    let (part, license) = line.rsplit_once(": ")?;
    let (name, version) = match part.rsplit_once(' ') {
        Some((name, version)) if version.starts_with(|it: char| it.is_ascii_digit()) => (name, Some(version)),
        _ => (part, None),
    };
    Some(json!({ "name": name, "version": version, "license": license }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing of the text is lost, and no line of its head is taken for a part.
    #[test]
    fn every_part_and_every_text_is_read() {
        let read = read(NOTICES);
        let (packages, notices) = (read["packages"].as_array().unwrap(), read["notices"].as_array().unwrap());
        let lines = packages.iter().map(|it| match it["version"].as_str() {
            Some(version) => format!("{} {version}: {}", it["name"].as_str().unwrap(), it["license"].as_str().unwrap()),
            None => format!("{}: {}", it["name"].as_str().unwrap(), it["license"].as_str().unwrap()),
        });
        let lines: Vec<String> = lines.collect();
        // The head ends with an empty line, and so do they.
        let listed = NOTICES.split("\n\n").nth(1).unwrap();
        assert!(lines.join("\n") == listed && listed.starts_with("adler2 ") && listed.ends_with(": MPL-2.0"));
        assert!(packages.len() > 200 && packages.iter().filter(|it| it["version"].is_null()).count() == 1);
        let written = notices.iter().map(|it| {
            let (of, text) = (it["of"].as_str().unwrap(), it["text"].as_str().unwrap());
            format!("\n{}\n{of}\n{}\n\n{text}\n", "=".repeat(80), "-".repeat(80))
        });
        let written: String = written.collect();
        assert!(written.len() > 100_000 && NOTICES.ends_with(&written), "each text, to the byte");
        assert!(notices.iter().all(|it| it["text"] != ""), "and none is empty");
    }
}
