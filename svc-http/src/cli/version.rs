//! `svc version`: which program this is, what it reads and writes, and what it was built with.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;
use svc_http::answer;

use super::database::SCHEMA;
use super::output::{Problem, print, print_json};

/// The commit that it was built of, where whoever builds says so (`BUILD_COMMIT`): sources out of an archive have none to look at.
const COMMIT: Option<&str> = option_env!("BUILD_COMMIT");
/// What may be left out of a build, and whether it is in this one.
const FEATURES: [(&str, bool); 2] = [("otel", cfg!(feature = "otel")), ("postgres", cfg!(feature = "postgres"))];

/// Prints it.
///
/// # Errors
/// [`Problem`] where standard output cannot be written.
pub(crate) fn run(json: bool) -> Result<ExitCode, Problem> {
    let (version, interface) = (env!("CARGO_PKG_VERSION"), answer::VERSION);
    let interface = interface.to_str().unwrap_or_default();
    let features: Vec<&str> = FEATURES.into_iter().filter(|it| it.1).map(|it| it.0).collect();
    if json {
        print_json(&json!({
            "version": version,
            "commit": COMMIT,
            "interface": interface,
            "schema": SCHEMA,
            "features": features,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("svc {version}\n");
    if let Some(commit) = COMMIT {
        let _ = writeln!(text, "commit    {commit}");
    }
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    let _ = writeln!(text, "interface {interface}\nschema    {SCHEMA}\nfeatures  {features}");
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
