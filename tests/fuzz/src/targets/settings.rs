//! The settings: `NAME=VALUE` lines of the environment, a line of `---`, and the file.

use std::ffi::OsString;

use svc_http::config::{BaseUrl, Config, Sources};

use super::inputs;

/// Settings are read, or every fault has words; what is read can be served.
///
/// # Panics
/// Where it is neither.
pub fn settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (environment, file) = text.split_once("---\n").unwrap_or(("", text));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("svc.toml");
    std::fs::write(&path, file).expect("a file");
    let pair = |line: &str| line.split_once('=').map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let environment = environment.lines().filter_map(pair).collect();
    match Config::load(Sources { environment, file: Some(path), ..Sources::default() }) {
        Ok(loaded) => {
            let base = loaded.config.base_url(loaded.config.listen);
            assert_eq!(BaseUrl::parse(base.as_str()).as_ref(), Ok(&base));
            assert!(base.as_str().contains(base.authority()) && base.authority().starts_with(base.host()), "{base}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(base) = BaseUrl::parse(text) {
        assert_eq!(BaseUrl::parse(base.as_str()).as_ref(), Ok(&base), "{text}");
    }
}

/// A file, an environment, and addresses.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "SVC_LISTEN=127.0.0.1:9\nSVC_BASE_URL=https://gate.example.com/svc\nSVC_TRUSTED_PROXIES=10.0.0.0/8, fd00::/8\n---\ndata = \"svc-data\"\n[limits]\ngatePerMinute = 60\n[timeouts]\nheaderMs = 1\n[log]\nlevel = \"info\"\nformat = \"json\"\n",
        "SVC_LISTE=1\nSVC_PORT=80\n---\nlisten = [\"a\", 1, 1.5, true]\ntrustedProxies = [\"10.0.0.1/8\"]\n",
        "https://gate.example.com:8443/a/",
        "http://[::1]:4",
    ])
}
