//! Where the server of a data directory is reached, as it has noted beside the database: a program that embeds the gate is given an
//! address of its own, and receipts of one are refused by the other (`wrong_issuer`) where the two differ.
//!
//! **Invariant:** nothing is decided or signed by it; it is told to people alone.

use std::fs;
use std::path::Path;

use svc_core::value::base_url::BaseUrl;

/// The name of the note in the data directory: one line with the base address of the server that served it last.
pub const BASE_URL: &str = "base-url";

/// Tells in the log where the directory's server is reached at another address than the one that was given. A change of address is
/// legitimate, so nothing else comes of it.
pub(crate) fn warn_where_another(directory: &Path, given: &BaseUrl) {
    if let Some(noted) = another(directory, given) {
        let note = directory.join(BASE_URL).display().to_string();
        tracing::warn!(
            %given, %noted, note,
            "the server of this directory has another address: it refuses receipts of this gate as `wrong_issuer`, and this gate its"
        );
    }
}

/// What is noted, where that is another address than `given`.
fn another(directory: &Path, given: &BaseUrl) -> Option<BaseUrl> {
    let text = fs::read_to_string(directory.join(BASE_URL)).ok()?;
    BaseUrl::parse(text.trim_end()).ok().filter(|it| it.as_str() != given.as_str())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Another address than the noted one is seen; the same one, none and what is no address are nothing to tell of.
    #[test]
    fn another_address_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let given = BaseUrl::parse("https://gate.example.com").unwrap();
        assert!(another(dir.path(), &given).is_none());
        for (noted, told) in [
            ("https://gate.example.com\n", None),
            ("https://gate.example.com/\n", None),
            ("no address\n", None),
            ("http://127.0.0.1:8080\n", Some("http://127.0.0.1:8080")),
        ] {
            fs::write(dir.path().join(BASE_URL), noted).unwrap();
            assert_eq!(another(dir.path(), &given).as_ref().map(BaseUrl::as_str), told, "{noted}");
        }
    }
}
