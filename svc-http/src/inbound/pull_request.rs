//! What a code host says of a pull request: where it was, whether it went in, and which tasks its words name.

use svc_core::value::json::Json;
use svc_core::value::text::TaskId;
use url::form_urlencoded;

/// Tasks that one pull request may name.
pub const NAMED_MAX: usize = 20;
/// Ids that one mention may mean.
pub const MEANT_MAX: usize = 8;
/// What an id of a task begins with.
const PREFIX: &str = "tsk_";
/// Characters of an id behind that.
const ID_MAX: usize = 64;

/// A pull request that was closed.
#[derive(Debug, PartialEq, Eq)]
pub struct Closed {
    /// The repository that it was to go into, as `owner/name`.
    pub repository: String,
    /// The branch that it was to go into.
    pub branch: String,
    /// Whether it went in.
    pub merged: bool,
    /// The tasks that its title, text and own branch name: of each mention the ids that it may mean, the longest first.
    pub tasks: Vec<Vec<TaskId>>,
}

impl Closed {
    /// Reads an event by the name that its header gives; `None` where it is another one, or not whole.
    #[must_use]
    pub fn read(event: &str, body: &[u8], is_form: bool) -> Option<Self> {
        if event != "pull_request" {
            return None;
        }
        let body = if is_form {
            let payload = form_urlencoded::parse(body).find(|(name, _)| name == "payload");
            Json::parse(payload?.1.as_bytes()).ok()?
        } else {
            Json::parse(body).ok()?
        };
        if body.get("action")?.as_str()? != "closed" {
            return None;
        }
        let request = body.get("pull_request")?;
        let text = |of: &Json, name: &str| of.get(name).and_then(Json::as_str).map(str::to_owned);
        let said = [text(request, "title"), text(request, "body"), text(request.get("head")?, "ref")];
        Some(Self {
            repository: text(body.get("repository")?, "full_name")?,
            branch: text(request.get("base")?, "ref")?,
            merged: request.get("merged")?.as_bool()?,
            tasks: named(said.iter().flatten().map(String::as_str)),
        })
    }
}

/// The tasks that texts name, each once.
fn named<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<Vec<TaskId>> {
    let mut found: Vec<Vec<TaskId>> = Vec::new();
    for text in texts {
        for (at, _) in text.match_indices(PREFIX) {
            let before = text.get(..at).and_then(|it| it.chars().next_back());
            let Some(rest) = text.get(at..).filter(|_| !before.is_some_and(char::is_alphanumeric)) else { continue };
            let meant = meant(rest);
            if found.len() < NAMED_MAX && !meant.is_empty() && !found.contains(&meant) {
                found.push(meant);
            }
        }
    }
    found
}

/// What ids a text may begin with. One that words follow behind a hyphen, as in the names of branches, may end before them.
fn meant(text: &str) -> Vec<TaskId> {
    let is_of_id = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    let run: String = text.chars().take_while(is_of_id).take(PREFIX.len() + ID_MAX + 1).collect();
    let behind = run.get(PREFIX.len()..).unwrap_or_default();
    let ends = behind.match_indices(['-', '_']).map(|(at, _)| PREFIX.len() + at).chain([run.len()]);
    let ends: Vec<usize> = ends.collect();
    let ids = ends.iter().rev().filter_map(|end| TaskId::parse(run.get(..*end)?).ok());
    ids.take(MEANT_MAX).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn event() -> Value {
        json!({
            "action": "closed",
            "pull_request": {
                "title": "Mend the sign-in (tsk_one)", "body": "Closes tsk_two.", "merged": true,
                "base": { "ref": "main" }, "head": { "ref": "agent/tsk_three-mend-it" },
            },
            "repository": { "full_name": "acme/shop" },
        })
    }

    fn ids(tasks: &[Vec<TaskId>]) -> Vec<Vec<&str>> {
        tasks.iter().map(|it| it.iter().map(TaskId::as_str).collect()).collect()
    }

    /// A closed pull request is read as JSON and as a form; one that has no text is one.
    #[test]
    fn a_closed_pull_request_is_read() {
        let body = event().to_string();
        let read = Closed::read("pull_request", body.as_bytes(), false).unwrap();
        assert_eq!((&*read.repository, &*read.branch, read.merged), ("acme/shop", "main", true));
        let three = vec!["tsk_three-mend-it", "tsk_three-mend", "tsk_three"];
        assert_eq!(ids(&read.tasks), [vec!["tsk_one"], vec!["tsk_two"], three]);
        let form: String = form_urlencoded::Serializer::new(String::new()).append_pair("payload", &body).finish();
        assert_eq!(Closed::read("pull_request", form.as_bytes(), true), Some(read));
        let mut silent = event();
        silent["pull_request"]["body"] = Value::Null;
        assert_eq!(Closed::read("pull_request", silent.to_string().as_bytes(), false).unwrap().tasks.len(), 2);
    }

    /// Anything else is no closed pull request.
    #[test]
    fn other_events_are_none() {
        let body = event().to_string();
        assert_eq!(Closed::read("push", body.as_bytes(), false), None);
        assert_eq!(Closed::read("pull_request", body.as_bytes(), true), None);
        for (path, value) in [
            ("/action", json!("opened")),
            ("/pull_request/merged", json!("true")),
            ("/pull_request/base", Value::Null),
            ("/repository/full_name", json!(7)),
        ] {
            let mut other = event();
            *other.pointer_mut(path).unwrap() = value;
            assert_eq!(Closed::read("pull_request", other.to_string().as_bytes(), false), None, "{path}");
        }
    }

    /// A mention is a whole word that begins as an id does; the same one counts once, and no text is worth more than a few.
    #[test]
    fn mentions_are_found() {
        let of = |text: &str| named([text].into_iter()).iter().map(|it| it[0].as_str().to_owned()).collect::<Vec<_>>();
        assert_eq!(of("tsk_a, `tsk_b` _tsk_c and #tsk_a"), ["tsk_a", "tsk_b", "tsk_c"]);
        assert!(of("xtsk_a tsk_ TSK_a tsk-a étsk_a").is_empty());
        assert_eq!(of(&(0..99).map(|it| format!("tsk_{it} ")).collect::<String>()).len(), NAMED_MAX);
        assert_eq!(meant(&format!("tsk_{}", "a-".repeat(99))).len(), MEANT_MAX);
        assert_eq!(meant(&format!("tsk_{}", "a".repeat(64))).len(), 1);
        assert!(meant(&format!("tsk_{}", "a".repeat(65))).is_empty(), "no part of a longer word is one");
    }

    proptest! {
        /// Whatever comes is read or not.
        #[test]
        fn any_body_is_read_or_not(body: Vec<u8>, text in "(tsk_[-_a-z0-9]{0,80}|.){0,9}") {
            prop_assert!(Closed::read("pull_request", &body, body.len() % 2 == 0).is_none());
            let found = named([&*text].into_iter());
            prop_assert!(found.iter().all(|it| !it.is_empty() && it.len() <= MEANT_MAX));
        }
    }
}
