//! The console: pages for people over the interface under `/api` (CONTRACT part 4).
//!
//! One page, the same for everybody and every address: what it shows, its scripts read with the session of whoever looks. The
//! files it is made of are in the program, each at an address with the hash of all of them, so that a browser keeps them for good
//! and never mixes those of two releases. To add a file is a line of [`FILES`], to add a page one of [`PAGES`] as well.
//!
//! **Invariant:** the page runs no script and takes no style but the program's own files, and no text becomes markup or script in
//! it: its policy asks for trusted types and admits none.
//! **Invariant:** nothing that anybody wrote, and nothing of a request, is in what is served here.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{LazyLock, OnceLock};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use sha2::{Digest as _, Sha256};
use svc_core::refusal::Refusal;

use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::ConsoleOp;

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);
const FRAME_OPTIONS: HeaderName = HeaderName::from_static("x-frame-options");
/// What is at an address never changes: a browser may keep it for a year, the longest that caches take.
const FOR_GOOD: &str = "public, max-age=31536000, immutable";
/// Signs of the hash that an address carries: 80 bits, of which nobody can choose others.
const HASH_CHARS: usize = 20;

/// The pages of a workspace by the names that their addresses have, as `console/pages.js` lists them. An approval has a page of
/// its own kind at its link.
#[rustfmt::skip] // An entry a line.
pub(crate) const PAGES: &[&str] = &[
    "account",
    "activity",
    "agents",
    "applications",
    "approvals",
    "bills",
    "budgets",
    "connections",
    "deliveries",
    "integrations",
    "keys",
    "ledger",
    "mcp-servers",
    "models",
    "routing",
    "settings",
    "spend",
    "stop",
    "team",
    "templates",
];

/// A file of the console.
#[derive(Debug)]
struct File {
    name: &'static str,
    bytes: &'static [u8],
    /// The same packed, once it has been asked for so.
    packed: OnceLock<Bytes>,
}

macro_rules! files {
    ($($name:literal)*) => {
        [$(File { name: $name, bytes: include_bytes!(concat!("console/", $name)), packed: OnceLock::new() }),*]
    };
}

/// Every file.
static FILES: [File; FILES_COUNT] = files![
    "LICENSE.htm.txt"
    "LICENSE.preact.txt"
    "about.js"
    "account.js"
    "activity.js"
    "agent.js"
    "agents.js"
    "aloud.js"
    "app.js"
    "applications.js"
    "approvals.js"
    "bills.js"
    "budgets.js"
    "calls.js"
    "charts.js"
    "connections.js"
    "console.css"
    "deliveries.js"
    "ending.js"
    "filters.js"
    "given.js"
    "hooks.js"
    "htm.js"
    "icon.svg"
    "integration.js"
    "integrations.js"
    "keyboard.js"
    "keys.js"
    "kit.js"
    "ledger.js"
    "list.js"
    "live.js"
    "main.js"
    "mandates.js"
    "mcp.js"
    "meanwhile.js"
    "models.js"
    "named.js"
    "once.js"
    "pages.js"
    "people.js"
    "preact.js"
    "prices.js"
    "proof.js"
    "returning.js"
    "rights.js"
    "routing.js"
    "seeking.js"
    "server.js"
    "settings.js"
    "spend.js"
    "stop.js"
    "team.js"
    "teams.js"
    "templates.js"
    "terms.js"
    "text.js"
    "unsent.js"
    "upstreams.js"
    "usage.js"
];
const FILES_COUNT: usize = 60;

/// What every page needs at once: asked for together, not one after the other as each names the next.
const FIRST: &[&str] = &[
    "aloud.js",
    "app.js",
    "filters.js",
    "hooks.js",
    "htm.js",
    "keyboard.js",
    "kit.js",
    "list.js",
    "live.js",
    "main.js",
    "once.js",
    "pages.js",
    "preact.js",
    "returning.js",
    "rights.js",
    "server.js",
    "text.js",
    "unsent.js",
];

/// The hash of all files, in hexadecimal.
static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut all = Sha256::new();
    for file in &FILES {
        for part in [file.name.as_bytes(), file.bytes] {
            all.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            all.update(part);
        }
    }
    let mut hash = hex::encode(all.finalize());
    hash.truncate(HASH_CHARS);
    hash
});

/// Answers a route of the console.
///
/// # Errors
/// `not_found` where no page or file has the name.
pub(crate) fn answer(op: ConsoleOp, call: &Call) -> Result<Answer, Refusal> {
    match op {
        ConsoleOp::Root | ConsoleOp::Workspace => Ok(page(call.route.path)),
        ConsoleOp::Page | ConsoleOp::Item if PAGES.contains(&call.param("page")) => Ok(page(call.route.path)),
        ConsoleOp::Page | ConsoleOp::Item => Err(Refusal::not_found()),
        ConsoleOp::Asset if call.param("hash") == *HASH => {
            let file = FILES.iter().find(|it| it.name == call.param("file")).ok_or_else(Refusal::not_found)?;
            Ok(file.answer(&call.headers))
        }
        // A page of another release asks: what is here is not what it was made with.
        ConsoleOp::Asset => Err(Refusal::not_found()),
    }
}

/// The page as it is at an address of this form: its files are named from there, so that they are found below whatever stands
/// before the server's paths.
fn page(path: &str) -> Answer {
    let up = "../".repeat(path.matches('/').count().saturating_sub(1));
    let at = format!("{up}assets/{}", *HASH);
    let mut first = String::new();
    for name in FIRST {
        let _ = writeln!(first, "<link rel=\"modulepreload\" href=\"{at}/{name}\">");
    }
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>svc</title>\n<link rel=\"icon\" type=\"image/svg+xml\" href=\"{at}/icon.svg\">\n<link rel=\"stylesheet\" href=\"{at}/console.css\">\n{first}<script type=\"module\" src=\"{at}/main.js\"></script>\n</head>\n<body>\n<noscript><p>The console needs script. Everything in it can also be done by the <a href=\"{up}docs\">interface under <code>/api</code></a>.</p></noscript>\n<div id=\"console\"></div>\n</body>\n</html>\n"
    );
    Answer::html(html)
        .with_header(CONTENT_SECURITY_POLICY, POLICY)
        .with_header(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
        .with_header(FRAME_OPTIONS, HeaderValue::from_static("DENY"))
}

impl File {
    fn answer(&self, headers: &HeaderMap) -> Answer {
        let packs = takes_gzip(headers) && !self.packed().is_empty();
        let etag = format!("\"{}{}\"", *HASH, if packs { "-gzip" } else { "" });
        let body = match () {
            () if is_known(headers, &etag) => None,
            () if packs => Some(self.packed().clone()),
            () => Some(Bytes::from_static(self.bytes)),
        };
        let answer = match body {
            Some(body) => Answer::file(self.media_type(), body),
            None => Answer::file(self.media_type(), Bytes::new()).with_status(StatusCode::NOT_MODIFIED),
        };
        let mut answer = answer.cached(FOR_GOOD).with_header(VARY, HeaderValue::from_static("accept-encoding"));
        if let Ok(etag) = HeaderValue::from_str(&etag) {
            answer.push_header(ETAG, etag);
        }
        if packs {
            answer.push_header(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        answer
    }

    /// The file packed; nothing where it cannot be.
    fn packed(&self) -> &Bytes {
        self.packed.get_or_init(|| {
            let mut packer = GzEncoder::new(Vec::new(), Compression::best());
            let packed = packer.write_all(self.bytes).and_then(|()| packer.finish());
            packed.unwrap_or_default().into()
        })
    }

    fn media_type(&self) -> &'static str {
        match self.name.rsplit_once('.').map(|it| it.1) {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/plain; charset=utf-8",
        }
    }
}

/// Whether whoever asks takes what is packed by gzip: what is said of gzip itself counts before what is said of every coding
/// (RFC 9110 part 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let sent = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
    let codings: Vec<(&str, bool)> = sent
        .map(|it| it.split_once(';').unwrap_or((it, "")))
        .map(|(coding, weight)| {
            let weight = weight.trim().strip_prefix("q=").and_then(|it| it.trim().parse::<f32>().ok());
            (coding.trim(), weight.is_none_or(|it| it > 0.0))
        })
        .collect();
    let of = |name: &str| codings.iter().find(|it| it.0.eq_ignore_ascii_case(name)).map(|it| it.1);
    of("gzip").or_else(|| of("*")).unwrap_or_default()
}

/// Whether whoever asks has the file already (RFC 9110 part 13.1.2).
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let sent = headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
    sent.map(str::trim).any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it) == etag)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use std::path::Path;

    use svc_core::state::people::{Reach, Right, Role};

    use super::*;

    fn text(name: &str) -> &'static str {
        let file = FILES.iter().find(|it| it.name == name).unwrap();
        std::str::from_utf8(file.bytes).unwrap()
    }

    fn place(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console").join(name)
    }

    fn quoted_after<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
        text.split(word).skip(1).filter_map(|it| it.split('"').next()).collect()
    }

    /// Every file of the directory is served, and every file that a file names is there.
    #[test]
    fn all_files_are_served_and_found() {
        let mut there: Vec<String> =
            std::fs::read_dir(place("")).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        assert_eq!(FILES.iter().map(|it| it.name).collect::<Vec<_>>(), there);
        for name in FIRST {
            text(name);
        }
        for file in FILES.iter().filter(|it| it.name.ends_with(".js")) {
            let said = text(file.name);
            for before in ["from\"./", "from \"./", "import(\"./"] {
                quoted_after(said, before).into_iter().for_each(|it| _ = text(it));
            }
            for evil in ["innerHTML =", "dangerouslySetInnerHTML=", "eval(", "new Function"] {
                assert!(file.name == "preact.js" || !said.contains(evil), "{}: {evil}", file.name);
            }
        }
    }

    /// The server serves the pages that the console has, and no other.
    #[test]
    fn the_pages_are_those_of_the_console() {
        let mut named = quoted_after(text("pages.js"), "name: \"");
        named.sort_unstable();
        assert_eq!(named, PAGES);
    }

    /// The files are named from where the page is, however deep.
    #[test]
    fn files_are_named_from_where_the_page_is() {
        for (path, up) in
            [("/", ""), ("/w/{wid}", "../"), ("/w/{wid}/{page}", "../../"), ("/w/{wid}/{page}/{item}", "../../../")]
        {
            let html = format!("{:?}", page(path));
            assert!(html.contains(&format!("src=\\\"{up}assets/{}/main.js\\\"", *HASH)), "{path}: {html}");
        }
    }

    /// Who takes gzip is told from who does not.
    #[test]
    fn gzip_is_sent_to_who_takes_it() {
        let of =
            |text: &'static str| takes_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(text))]));
        for taken in ["gzip", "br, GZIP;q=0.5", "*", "deflate, gzip ; q=1"] {
            assert!(of(taken), "{taken}");
        }
        for refused in ["", "br", "gzip;q=0", "gzip; q=0.0", "identity", "gzip;q=0, *"] {
            assert!(!of(refused), "{refused}");
        }
    }

    /// The console offers what the roles may: its table is the one of the rules. `UPDATE_EXPECTED=1` writes it.
    #[test]
    fn the_roles_are_those_of_the_rules() {
        let mut said = String::from(
            "// How far each role reaches, as the rules have it: a test compares this file with them and writes it.\n\n/** @type {Record<string, Record<string, \"all\" | \"own\">>} */\nexport const REACH = {\n",
        );
        for role in Role::ALL {
            let _ = writeln!(said, "  {}: {{", role.as_str());
            for right in Right::ALL {
                match role.reach(*right) {
                    Reach::No => {}
                    Reach::Own => _ = writeln!(said, "    {right:?}: \"own\","),
                    Reach::All => _ = writeln!(said, "    {right:?}: \"all\","),
                }
            }
            said.push_str("  },\n");
        }
        said.push_str("};\n");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(place("rights.js"), &said).unwrap();
            return;
        }
        assert_eq!(text("rights.js"), said);
    }

    /// The console writes amounts with the digits that they are sent with, in every currency.
    #[test]
    fn amounts_are_written_with_the_digits_that_they_are_sent_with() {
        crate::pages::testing::has_the_digits_of_amounts(text("text.js"));
    }
}
