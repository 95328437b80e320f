//! Globs over the names of tools.
//!
//! **Invariant:** matching takes time in proportion to pattern and name, whatever they are.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::Invalid;
use super::text::plumbing;

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
    /// space around it, or is `*` alone, which would be no constraint.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if text == "*" {
            return Err(Invalid::new("must name tools; `*` alone would be no constraint"));
        }
        let sound = text.chars().count() <= GLOB_MAX && text == text.trim() && !text.contains(char::is_control);
        if !sound || text.split('/').any(str::is_empty) {
            return Err(Invalid::new(
                "must be a tool's name or `server/name` of at most 256 characters, with `*` within a part",
            ));
        }
        Ok(Self(text.into()))
    }

    /// The glob.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the tool of this name, of this server if it has one, is meant.
    #[must_use]
    pub fn covers(&self, server: Option<&str>, name: &str) -> bool {
        let mut globs = self.0.split('/');
        let server = server.into_iter().flat_map(|it| it.split('/'));
        let all = server.chain(name.split('/')).all(|part| globs.next().is_some_and(|glob| part_covers(glob, part)));
        all && globs.next().is_none()
    }
}

plumbing!(ToolGlob);

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
