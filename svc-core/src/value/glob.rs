//! Globs over the names of tools.
//!
//! **Invariant:** matching takes time in proportion to pattern and name, whatever they are. A name is meant whichever way its accents
//! are written.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::Invalid;
use super::likeness::composed;
use super::text::plumbing;
use super::tool_name::{ends, known_by};

/// What is said of stars alone.
pub const NO_CONSTRAINT: &str = "must name tools; `*` alone would be no constraint";
/// Characters that a glob may have.
const GLOB_MAX: usize = 256;

/// A glob over `server/name`, or over `name` where a tool has no server. `*` is any run of characters within one part.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolGlob(Arc<str>);

impl ToolGlob {
    /// Reads a glob.
    ///
    /// # Errors
    /// [`Invalid`] where it is empty, longer than 256 characters, has an empty part, holds a control character or white
    /// space around it, or is `*`, which would be no constraint. More stars are none either, and are looked for where a mandate
    /// is granted or changed ([`Self::is_stars`]): rows that hold them from before are read.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if text == "*" {
            return Err(Invalid::new(NO_CONSTRAINT));
        }
        let sound = text.chars().count() <= GLOB_MAX && text == text.trim() && !text.contains(char::is_control);
        if !sound || text.split('/').any(str::is_empty) {
            return Err(Invalid::new(
                "must be a tool's name or `server/name` of at most 256 characters, with `*` within a part",
            ));
        }
        Ok(Self(text.into()))
    }

    /// Reads a glob that somebody writes now.
    ///
    /// # Errors
    /// As [`Self::parse`], and where it is stars alone, however many.
    pub fn parse_new(text: &str) -> Result<Self, Invalid> {
        Self::parse(text).and_then(|it| if it.is_stars() { Err(Invalid::new(NO_CONSTRAINT)) } else { Ok(it) })
    }

    /// Whether it is stars alone, and so no constraint.
    #[must_use]
    pub fn is_stars(&self) -> bool {
        self.0.bytes().all(|it| it == b'*')
    }

    /// The glob.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a list of what is never allowed means the tool: also where only a star that runs over a slash within the server's
    /// or the tool's own name would cover it, so that no slash in a name leads past the list; where the name stands for a longer one
    /// that it might cover, so that no length does; and as either is written and as it is composed, so that no accent does.
    #[must_use]
    pub fn denies(&self, server: Option<&str>, name: &str) -> bool {
        if server.is_some() && !self.0.contains('/') {
            return false;
        }
        let is_plain = self.0.is_ascii() && name.is_ascii();
        denies_as_written(&self.0, server, name)
            || (!is_plain && denies_as_written(&composed(&self.0), server, &composed(name)))
    }

    /// Whether the tool of this name, of this server if it has one, is meant.
    #[must_use]
    pub fn covers(&self, server: Option<&str>, name: &str) -> bool {
        let (own, name) = (&*composed(&self.0), &*composed(name));
        let mut globs = own.split('/');
        let parts = server.into_iter().flat_map(|it| it.split('/'));
        let all = parts.chain(name.split('/')).all(|part| globs.next().is_some_and(|glob| part_covers(glob, part)));
        (all && globs.next().is_none()) || names(own, server, name)
    }

    /// Whether it means tools of one of two servers and not of the other, by their names.
    #[must_use]
    pub fn tells_servers_apart(&self, one: &str, other: &str) -> bool {
        self.0.split_once('/').is_some_and(|(server, _)| part_covers(server, one) != part_covers(server, other))
    }
}

plumbing!(ToolGlob);

fn denies_as_written(glob: &str, server: Option<&str>, name: &str) -> bool {
    let whole = |name: &str| server.map_or_else(|| name.to_owned(), |it| format!("{it}/{name}"));
    let might = |(head, tail): (&str, &str)| may_cover(glob, &whole(head), tail);
    part_covers(glob, &whole(name)) || names(glob, server, name) || ends(name).is_some_and(might)
}

/// Whether a glob is the whole name of the tool, as that is known by.
fn names(glob: &str, server: Option<&str>, name: &str) -> bool {
    let own = match server {
        None => Some(glob),
        Some(server) => glob.strip_prefix(server).and_then(|it| it.strip_prefix('/')),
    };
    own.is_some_and(|it| !it.contains('*') && known_by(it) == name)
}

/// Whether a glob covers the whole of a text; `*` is any run of characters, slashes too.
#[must_use]
pub(crate) fn covers_text(glob: &str, text: &str) -> bool {
    part_covers(&composed(glob), &composed(text))
}

/// One part. What stands before the first star and behind the last is fixed to the ends; what stands between two stars
/// is found as far left as it can be, which leaves the most for the rest.
fn part_covers(glob: &str, part: &str) -> bool {
    let Some((head, tail)) = glob.split_once('*') else { return glob == part };
    let (middle, end) = tail.rsplit_once('*').unwrap_or(("", tail));
    let Some(mut rest) = part.strip_prefix(head).and_then(|it| it.strip_suffix(end)) else { return false };
    for piece in middle.split('*').filter(|it| !it.is_empty()) {
        match rest.split_once(piece) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    true
}

/// Whether a glob covers some text that begins and ends like this, whatever stands between.
#[must_use]
pub(crate) fn may_cover(glob: &str, head: &str, tail: &str) -> bool {
    let Some((first, rest)) = glob.split_once('*') else { return false };
    let last = rest.rsplit_once('*').map_or(rest, |it| it.1);
    (first.starts_with(head) || head.starts_with(first)) && (last.ends_with(tail) || tail.ends_with(last))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use proptest::prelude::*;

    use super::*;

    fn covers(glob: &str, tool: &str) -> bool {
        let glob = ToolGlob::parse(glob).unwrap();
        tool.split_once('/').map_or_else(|| glob.covers(None, tool), |(server, name)| glob.covers(Some(server), name))
    }

    /// A star stands for any run within its part, and parts must be as many.
    #[test]
    fn stars_stay_within_their_part() {
        for (glob, tool, covered) in [
            ("crm/read", "crm/read", true),
            ("crm/read", "crm/reads", false),
            ("crm/read", "read", false),
            ("read", "crm/read", false),
            ("read", "read", true),
            ("crm/*", "crm/read", true),
            ("crm/*", "crm", false),
            ("crm/*", "crm/a/b", false),
            ("*/read", "crm/read", true),
            ("*/*", "crm/read", true),
            ("*/*", "read", false),
            ("crm*", "crm/read", false),
            ("crm*", "crm_read", true),
            ("*_read", "crm_read", true),
            ("c*m/r*d", "crm/read", true),
            ("c*m/r*d", "crm/reader", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*ab*ab*", "ab", false),
            ("*ab*ab*", "xabyabz", true),
            ("a**b", "ab", true),
            ("*a", "", false),
            ("Crm/*", "crm/read", false),
        ] {
            assert_eq!(covers(glob, tool), covered, "{glob} {tool}");
        }
    }

    /// Two servers are told apart by what stands before the first slash, where one is covered and the other is not.
    #[test]
    fn two_servers_are_told_apart_by_name() {
        for (glob, apart) in [
            ("crm/*", true),
            ("erp/read", true),
            ("c*/read", true),
            ("*/read", false),
            ("*r*/read", false),
            ("mail/*", false),
            ("crm", false),
            ("c*", false),
        ] {
            assert_eq!(ToolGlob::parse(glob).unwrap().tells_servers_apart("crm", "erp"), apart, "{glob}");
        }
    }

    /// A server whose name holds a slash is as many parts as it has: it cannot pass for another tool's.
    #[test]
    fn a_slash_makes_a_part_wherever_it_stands() {
        let glob = ToolGlob::parse("crm/*").unwrap();
        assert!(!glob.covers(Some("crm/x"), "read"));
        assert!(!glob.covers(Some("crm"), "x/read"));
        assert!(ToolGlob::parse("crm/*/*").unwrap().covers(Some("crm"), "x/read"));
    }

    /// What denies holds where a name has slashes of its own; else it is what it is anywhere.
    #[test]
    fn no_slash_in_a_name_leads_past_a_denial() {
        for (glob, server, name, denied) in [
            ("prod/*", Some("prod"), "db/delete", true),
            ("prod/*", Some("prod/x"), "delete", true),
            ("*/rm", Some("s"), "x/rm", true),
            ("rm*", None, "rm/x", true),
            ("*/rm", None, "x/y/rm", true),
            ("prod/*", Some("product"), "db/delete", false),
            ("prod*", Some("prod"), "delete", false),
            ("rm", Some("s"), "rm", false),
            ("prod/*", None, "prod", false),
        ] {
            assert_eq!(ToolGlob::parse(glob).unwrap().denies(server, name), denied, "{glob} {server:?} {name}");
        }
    }

    /// What names no tool, or any, is refused.
    #[test]
    fn what_is_no_glob_is_refused() {
        for bad in
            ["", "*", "/", "crm/", "/read", "crm//read", " crm/read", "crm/read ", "crm/\0", "crm\n", &"a".repeat(257)]
        {
            assert!(ToolGlob::parse(bad).is_err(), "{bad:?}");
        }
        assert!(ToolGlob::parse(&"a".repeat(256)).is_ok());
        for (stars, is_read) in [("*", false), ("**", true), ("***", true)] {
            assert_eq!(ToolGlob::parse(stars).is_ok(), is_read, "rows that hold them are read: {stars}");
            assert!(ToolGlob::parse_new(stars).is_err(), "{stars}");
        }
        assert!(ToolGlob::parse_new("a**").is_ok() && ToolGlob::parse_new("*/*").is_ok());
        assert!(serde_json::from_str::<ToolGlob>("\"*\"").is_err());
        assert_eq!(serde_json::to_string(&ToolGlob::parse("crm/*").unwrap()).unwrap(), "\"crm/*\"");
    }

    /// An accent is one sign or two: a glob means a tool in either writing. A list of what is never allowed means it also by what is
    /// written alone, and no list means another letter.
    #[test]
    fn accents_are_one_however_they_are_written() {
        let (one, two) = ("caf\u{e9}", "cafe\u{301}");
        for (glob, name) in [(one, two), (two, one), (one, one), (two, two)] {
            for (glob, server) in
                [(format!("{glob}*"), None), (format!("*{glob}"), None), (format!("shop/{glob}"), Some("shop"))]
            {
                let read = ToolGlob::parse(&glob).unwrap();
                assert!(read.covers(server, name) && read.denies(server, name), "{glob:?} {name:?}");
                assert!(!read.covers(server, "cafe") && !read.denies(server, "cafe"), "{glob:?}");
            }
        }
        let bare = ToolGlob::parse("cafe*").unwrap();
        assert!(bare.denies(None, two) && !bare.covers(None, two) && !bare.denies(None, one));
        // Of one that is longer than the gate takes, too.
        let long = |accent: &str| format!("{}{accent}{}", "x".repeat(51), "y".repeat(80));
        for glob in [long(one), format!("{}{one}*", "x".repeat(51))] {
            let read = ToolGlob::parse(&glob).unwrap();
            assert!(read.denies(None, &known_by(&long(two))), "{glob}");
        }
        assert!(ToolGlob::parse(&long(two)).unwrap().covers(None, &known_by(&long(one))));
    }

    /// Stars that would make a backtracking matcher try every split are matched in one pass over a long name.
    #[test]
    fn many_stars_cost_no_more_than_few() {
        let glob = format!("{}b", "a*".repeat(120));
        assert!(!covers(&glob, &"a".repeat(1 << 20)));
    }

    /// A list of what is never allowed means a tool with a longer name than the gate takes whatever of its name it goes by; one of what
    /// is allowed means it by its whole name, or by what is kept of that.
    #[test]
    fn no_length_of_a_name_leads_past_a_list() {
        let long = format!("mcp__{}__delete_{}_now", "s".repeat(40), "t".repeat(60));
        let known = known_by(&long);
        for (glob, denied, covered) in [
            (long.clone(), true, true),
            (format!("mcp__{}__*", "s".repeat(40)), true, true),
            (format!("mcp__{}__delete_*", "s".repeat(40)), true, false),
            ("*_now".to_owned(), true, true),
            (format!("*{}_now", "t".repeat(40)), true, false),
            ("*delete*".to_owned(), true, false),
            (long.replace("delete", "remove"), false, false),
            (format!("mcp__{}__*", "s".repeat(39)), false, false),
            ("*_then".to_owned(), false, false),
            ("Read".to_owned(), false, false),
        ] {
            let read = ToolGlob::parse(&glob).unwrap();
            assert_eq!((read.denies(None, &known), read.covers(None, &known)), (denied, covered), "{glob}");
            let (of, tool) = (ToolGlob::parse(&format!("shop/{glob}")).unwrap(), Some("shop"));
            assert_eq!((of.denies(tool, &known), of.covers(tool, &known)), (denied, covered), "shop/{glob}");
            assert!(!of.denies(Some("shops"), &known) && !read.denies(tool, &known), "{glob}");
        }
    }

    proptest! {
        /// The matcher says what trying every split says.
        #[test]
        fn matching_is_what_trying_everything_says(glob in "[ab*]{1,8}", part in "[ab]{0,10}") {
            prop_assert_eq!(part_covers(&glob, &part), naive(glob.as_bytes(), part.as_bytes()));
        }

        /// Whatever a glob covers it denies, and where no name has a slash it denies nothing else.
        #[test]
        fn what_is_covered_is_denied(
            glob in "[ab*/]{1,8}", server in proptest::option::of("[ab/]{1,4}"), name in "[ab/]{1,6}"
        ) {
            if let Ok(glob) = ToolGlob::parse(&glob) {
                let (covers, denies) = (glob.covers(server.as_deref(), &name), glob.denies(server.as_deref(), &name));
                let plain = !name.contains('/') && !server.as_deref().is_some_and(|it| it.contains('/'));
                prop_assert!(denies == covers || (denies && !plain));
            }
        }

        /// No text makes the reader or the matcher panic, and a glob that was read is read as itself.
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,20}", name in "\\PC{0,20}") {
            if let Ok(glob) = ToolGlob::parse(&text) {
                let _ = glob.covers(Some(&name), &text) | glob.covers(None, &name);
                prop_assert_eq!(ToolGlob::parse(glob.as_str()).unwrap(), glob);
            }
        }
    }

    fn naive(glob: &[u8], part: &[u8]) -> bool {
        match (glob, part) {
            ([], part) => part.is_empty(),
            ([b'*', rest @ ..], part) => naive(rest, part) || matches!(part, [_, tail @ ..] if naive(glob, tail)),
            ([a, rest @ ..], [b, tail @ ..]) => a == b && naive(rest, tail),
            (_, []) => false,
        }
    }
}
