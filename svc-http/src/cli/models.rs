//! `svc models update`: what is known of models and their prices, from a file.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use svc_core::engine::Failure;
use svc_core::rules::gateway::list_models::ListModels;
use svc_core::rules::people::by::By;
use svc_core::state::gateway::listing;
use svc_http::config::Config;

use super::output::{Problem, note, print, print_json};
use super::setup;
use super::store::{Missing, Use, open};

/// Bytes of a file that is read; the widespread ones have two million.
const BYTES_MAX: u64 = 32 * 1024 * 1024;
/// So many faults or names are told one by one.
const TOLD_MAX: usize = 20;

/// Takes in the file, whole or not at all, and says what it brought. A running server knows it at once.
///
/// # Errors
/// [`Problem`] where the file cannot be read or has faults, each named, or there is no workspace.
pub(crate) fn update(config: &Config, file: &Path, as_json: bool) -> Result<ExitCode, Problem> {
    let text = read(file)?;
    let reading = listing::read(&text).map_err(|faults| {
        let told: Vec<&str> = faults.iter().take(TOLD_MAX).map(|it| it.message.as_ref()).collect();
        let more = faults.len().saturating_sub(told.len());
        let rest = if more == 0 { String::new() } else { format!("; and {more} more") };
        let what = format!("{} is no table of models: {}{rest}", file.display(), told.join("; "));
        Problem::new(what, "Mend the file; nothing of it was taken.")
    })?;
    let gate = open(config, &config.base_url(config.listen), Missing::Refuse, Use::Command)?;
    let workspace = setup::made(config, &gate)?;
    let (taken, date) = (reading.listing.models.len(), reading.listing.date.clone());
    let asked = ListModels { workspace: workspace.id, by: By::Program, listing: Arc::new(reading.listing) };
    let done = gate.execute(asked).map_err(|failure| match failure {
        Failure::Refused(refusal) => Problem::plain(refusal.message().to_owned()),
        other => other.into(),
    })?;
    if as_json {
        let skipped: Vec<_> = reading.skipped.iter().map(|(id, why)| json!({ "model": id, "why": why })).collect();
        print_json(&json!({
            "taken": taken, "date": date, "new": done.new, "changed": done.changed, "same": done.same,
            "repriced": done.repriced, "skipped": skipped,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (new, changed) = (done.new.len(), done.changed.len());
    print(&format!("{taken} models taken: {new} new, {changed} changed, {} as known\n", done.same))?;
    if !done.repriced.is_empty() {
        note(&format!("New prices from now on: {}.\n", some(done.repriced.iter().map(AsRef::as_ref))));
    }
    if !reading.skipped.is_empty() {
        let skipped = reading.skipped.iter().map(|(id, why)| format!("{id} {why}")).collect::<Vec<_>>();
        note(&format!("{} left out: {}.\n", skipped.len(), some(skipped.iter().map(String::as_str))));
    }
    Ok(ExitCode::SUCCESS)
}

/// The first few, and how many more there are.
fn some<'a>(all: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = all.len().saturating_sub(TOLD_MAX);
    let told = all.take(TOLD_MAX).collect::<Vec<_>>().join(", ");
    if more == 0 { told } else { format!("{told} and {more} more; `--json` names all") }
}

fn read(file: &Path) -> Result<String, Problem> {
    let bad = |why: String| Problem::new(format!("{}: {why}", file.display()), "Name a readable JSON file.");
    let size = fs::metadata(file).map_err(|error| bad(error.to_string()))?.len();
    if size > BYTES_MAX {
        return Err(bad(format!("has more than {BYTES_MAX} bytes")));
    }
    let mut text = fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
    // Some editors begin a file with a mark that is no part of its text.
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A mark of the order of bytes, as some editors leave it, is no fault of the file.
    #[test]
    fn a_mark_before_the_text_is_no_part_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("models.json");
        fs::write(&file, "\u{feff}{}\u{feff}").unwrap();
        assert_eq!(read(&file).unwrap(), "{}\u{feff}");
    }
}
