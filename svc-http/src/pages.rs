//! The frame of the pages that people see, and the pages that links lead to: of a sign-in, of an approval.
//!
//! **Invariant:** a page runs no script and takes no style but its own, named by hash in its policy; no page may be framed.

pub(crate) mod network;
pub mod quoted;
pub(crate) mod refused;
mod signs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use http::{HeaderName, HeaderValue, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::answer::Answer;

const STYLE: &str = ":root{color-scheme:light dark;background:Canvas;color:CanvasText;font:1rem/1.5 system-ui,sans-serif}body{max-width:32rem;margin:0 auto;padding:2rem 1rem;overflow-wrap:anywhere}fieldset{border:1px solid #8886;border-radius:.4rem;margin:1rem 0}label{display:block;padding:.4rem 0}input[type=email],input[type=password],input[type=text]{display:block;width:100%;box-sizing:border-box;font:inherit;padding:.5rem}button{font:inherit;padding:.6rem 1.2rem;margin-right:.6rem}code{font:.95em ui-monospace,monospace;overflow-wrap:anywhere}small{display:block;opacity:.8}:is(p,li,dd,label):has(>bdi){overflow-y:clip}svg{display:block;max-width:16rem}[hidden]{display:none!important}";
const FRAME_OPTIONS: HeaderName = HeaderName::from_static("x-frame-options");

/// A page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    /// Its status.
    pub(crate) status: StatusCode,
    /// What the browser calls it.
    pub(crate) title: &'a str,
    /// Its content, as HTML.
    pub(crate) main: &'a str,
    /// How it is styled beyond the frame.
    pub(crate) style: &'a str,
    /// Where its forms may lead, as a content policy names it.
    pub(crate) form_action: &'a str,
    /// Its script, which may speak to this server alone.
    pub(crate) script: Option<&'a str>,
}

impl Page<'_> {
    /// The page under its policy.
    pub(crate) fn answer(self) -> Answer {
        let Self { status, title, main, style, form_action, script } = self;
        let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
        let (code, policy) = script.map_or_else(Default::default, |text| {
            let policy = format!("script-src {}; connect-src 'self'; ", hash(text));
            (format!("<script>{text}</script>\n"), policy)
        });
        let style = format!("{STYLE}{style}");
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"same-origin\">\n<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n{main}</main>\n{code}</body>\n</html>\n"
        );
        let policy = format!(
            "default-src 'none'; style-src {}; {policy}base-uri 'none'; form-action {form_action}; frame-ancestors 'none'",
            hash(&style)
        );
        let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
        Answer::html(html)
            .with_status(status)
            .with_header(CONTENT_SECURITY_POLICY, policy)
            .with_header(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
            .with_header(FRAME_OPTIONS, HeaderValue::from_static("DENY"))
    }
}

/// Where a sign-in link leads. The token stands in the link's fragment, so that a script has to show it; opening the page uses
/// nothing up.
pub(crate) fn sign_in() -> Answer {
    Page {
        status: StatusCode::OK,
        title: "Sign in",
        main: include_str!("pages/sign_in.html"),
        style: "",
        form_action: "'self'",
        script: Some(include_str!("pages/sign_in.js")),
    }
    .answer()
}

/// The script of the page of an approval: its words, how texts are shown, what is asked, and what is done with it.
const APPROVAL: &str = concat!(
    include_str!("pages/approval_words.js"),
    include_str!("pages/approval_texts.js"),
    include_str!("pages/approval_matter.js"),
    include_str!("pages/approval.js")
);

/// Where an approval's link leads. The page is the same for every approval and whoever opens it: what is asked, its script reads
/// with the session of whoever is signed in.
pub(crate) fn approval() -> Answer {
    Page {
        status: StatusCode::OK,
        title: "Approval",
        main: include_str!("pages/approval.html"),
        style: include_str!("pages/approval.css"),
        form_action: "'none'",
        script: Some(APPROVAL),
    }
    .answer()
}

/// What scripts of pages hold that the core decides.
#[cfg(test)]
pub(crate) mod testing {
    use svc_core::value::currency::Currency;

    /// That a script writes amounts with the digits that they are sent with, in every currency, those among them that were withdrawn.
    ///
    /// # Panics
    /// With the line that it lacks, or has beyond them.
    pub(crate) fn has_the_digits_of_amounts(script: &str) {
        let letters = || 'A'..='Z';
        let codes = letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| format!("{a}{b}{c}"))));
        let all: Vec<Currency> = codes.filter_map(|it| serde_json::from_value(it.into()).ok()).collect();
        for digits in [0, 1, 3, 4, 5] {
            let of: Vec<&str> = all.iter().filter(|it| it.minor_digits() == digits).map(Currency::as_str).collect();
            let line = format!("  {digits}: \"{}\",\n", of.join(" "));
            assert_eq!(script.contains(&line), !of.is_empty(), "{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_core::state::gate::ActionKind;

    /// What a script has under a name, by types of actions.
    fn words<'a>(script: &'a str, name: &str) -> Vec<(&'a str, &'a str)> {
        let words = script.split(&format!("const {name} = ")).nth(1).and_then(|it| it.split("\n}").next());
        let pairs = words.unwrap_or_default().lines().filter_map(|it| it.trim().split_once(": \""));
        pairs.map(|(kind, word)| (kind.trim_matches('"'), word.trim_end_matches("\","))).collect()
    }

    fn types(script: &str) -> Vec<&str> {
        words(script, "ASKS").into_iter().map(|it| it.0).collect()
    }

    /// The page of an approval and the console have words for the same types of actions.
    #[test]
    fn the_console_has_words_for_the_same_types() {
        let own = types(super::APPROVAL);
        assert!(own.len() > 10, "{own:?}");
        assert_eq!(own, types(include_str!("console/text.js")));
    }

    /// Both show others' texts by the same signs: what is blank, what is counted, which marks are named, and what reads as a sign's name.
    #[test]
    fn the_console_shows_texts_by_the_same_signs() {
        let said = |script: &'static str, name: &str| {
            let line = |it: &str| it.trim_start_matches("export ").starts_with(&format!("const {name} = "));
            script.lines().find(|it| line(it)).map(|it| it.trim_start_matches("export "))
        };
        for name in ["BLANK", "RUN", "MARKS", "MARKS_MAX", "NAMED"] {
            let own = said(super::APPROVAL, name);
            assert!(own.is_some(), "{name}");
            assert_eq!(own, said(include_str!("console/text.js"), name));
        }
    }

    /// Both call the period that runs the same.
    #[test]
    fn the_console_has_words_for_the_same_periods() {
        let words = |script: &'static str| {
            let behind = script.split_once("const RUNNING = ").and_then(|it| it.1.split_once("{ hour: "));
            behind.and_then(|it| it.1.split_once('}')).map(|it| it.0)
        };
        let own = words(super::APPROVAL);
        assert!(own.is_some_and(|it| it.contains(r#"day: "today""#)), "{own:?}");
        assert_eq!(own, words(include_str!("console/usage.js")));
    }

    /// What stands large of an action is the member that its type needs, and no other that an agent may put beside it: on the page of an
    /// approval and in the console.
    #[test]
    fn an_action_is_about_what_its_type_needs() {
        let console = include_str!("console/text.js");
        assert_eq!(words(super::APPROVAL, "ABOUT"), words(console, "ABOUT"));
        for kind in ActionKind::built_in() {
            let needs =
                [("payment", kind.needs_payment()), ("tool", kind.needs_tool_name()), ("data", kind.needs_data())];
            let about = words(console, "ABOUT").into_iter().find(|it| it.0 == kind.as_str());
            assert_eq!(about.map(|it| it.1), needs.iter().find(|it| it.1).map(|it| it.0), "{}", kind.as_str());
        }
    }

    /// The page writes amounts with the digits that they are sent with, in every currency.
    #[test]
    fn amounts_are_written_with_the_digits_that_they_are_sent_with() {
        super::testing::has_the_digits_of_amounts(super::APPROVAL);
    }
}
