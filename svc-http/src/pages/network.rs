//! By which name the network knows a host that others wrote in letters of their own: some look like those of another.
//!
//! **Invariant:** a host that is not written in ASCII is never shown without its name in the network, or that it has none. The scripts of
//! the pages show the same; the checks of those read the same cases.

use url::Host;

/// What is said in the place of a name, where the network has none for what was written.
pub(crate) const NONE: &str = "none: no host is written like this";

/// The name in the network of a host, or of that of an address, where it is written in other signs than those of names in the network;
/// nothing where it is that name.
pub(crate) fn network(written: &str) -> Option<String> {
    let host = written.rsplit('@').next().unwrap_or(written);
    if host.bytes().all(|it| it.is_ascii_graphic()) {
        return None;
    }
    // A reader of addresses would take what stands behind one of these for another part, or for signs that are not there.
    let is_alone = !host.contains(['%', '/', '?', '#', ':', '\\', '[', ']']);
    let name = is_alone.then(|| Host::parse(host).ok()).flatten();
    Some(name.map_or_else(|| NONE.to_owned(), |it| it.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A host in other letters is told by its name in the network, and one that has none is told to have none. The checks of the pages'
    /// scripts read the same cases.
    #[test]
    fn a_host_is_told_by_its_name_in_the_network() {
        let cases: Vec<(String, Option<String>)> = serde_json::from_str(include_str!("network.cases.json")).unwrap();
        assert!(cases.len() > 10);
        for (written, name) in cases {
            assert_eq!(network(&written), name, "{}", written.escape_unicode());
        }
        for script in [include_str!("approval_texts.js"), include_str!("../console/text.js")] {
            assert!(script.contains(&format!("const NO_HOST = \"{NONE}\";\n")));
        }
    }
}
