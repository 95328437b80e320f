//! What a code host says of a pull request: where it was, whether it went in, and which tasks its words name.

use svc_core::refusal::{FieldError, Refusal};
use svc_core::state::gateway::PullEnd;
use svc_core::value::Timestamp;
use svc_core::value::text::TaskId;
use url::form_urlencoded;

use crate::wire::{Fields, integer, parse, text, truth};

/// Tasks that one pull request may name. Their sums may stand in as many rows, which are loaded one after the other: no more of them than
/// one command's rounds of loading.
pub const NAMED_MAX: usize = 20;
/// Ids that one mention may mean.
pub const MEANT_MAX: usize = 8;
/// What an id of a task begins with.
const PREFIX: &str = "tsk_";
/// What the host calls those who may write to a repository themselves.
const INSIDE: [&str; 3] = ["OWNER", "MEMBER", "COLLABORATOR"];
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
    /// Whether somebody made it from a place of their own who is nobody in the repository.
    pub outsider: bool,
    /// Which one it is and when it ended, where that is told.
    pub ended: Option<PullEnd>,
    /// The tasks that its title, text and own branch name: of each mention the ids that it may mean, the longest first.
    pub tasks: Vec<Vec<TaskId>>,
}

impl Closed {
    /// Reads an event by the name that its header gives; `None` where it is another one. A body that is broken is told of whatever
    /// the event: were it passed over, the host would take it for delivered.
    ///
    /// # Errors
    /// `invalid_json`; `invalid_request` where it is no object, is a form without `payload`, or lacks what a closed pull request has.
    pub fn read(event: &str, body: &[u8], is_form: bool) -> Result<Option<Self>, Refusal> {
        let body = if is_form {
            let payload = form_urlencoded::parse(body).find(|(name, _)| name == "payload");
            let (_, payload) = payload.ok_or_else(|| Refusal::invalid_request(vec![FieldError::missing("payload")]))?;
            parse(payload.as_bytes())?
        } else {
            parse(body)?
        };
        let mut fields = Fields::of(&body)?;
        if event != "pull_request" {
            return Ok(None);
        }
        let action = fields.required("action", text);
        if action.is_some_and(|it| it != "closed") {
            return Ok(None);
        }
        let closed = Self::of(&mut fields);
        // Numbers of a host that nobody reads here may be of any size.
        match (closed, fields.into_faults()) {
            (Some(closed), faults) if faults.is_empty() => Ok(Some(closed)),
            (_, faults) => Err(Refusal::invalid_request(faults)),
        }
    }

    fn of(fields: &mut Fields<'_>) -> Option<Self> {
        fields.demand("repository");
        let repository = fields.nested("repository", |it| it.required("full_name", text));
        fields.demand("pull_request");
        let request = fields.nested("pull_request", |it| {
            it.demand("base");
            let branch = it.nested("base", |it| it.required("ref", text));
            it.demand("head");
            let head = it.nested("head", |it| {
                // The place that it was made in, where that is gone, is told as `null`.
                let place = it.nested("repo", |it| it.optional("full_name", text));
                let place = if it.is_null("repo") { Some("") } else { place };
                Some((it.required("ref", text), place))
            });
            let (own, place) = head.unwrap_or_default();
            let merged = it.required("merged", truth);
            let number = it.optional("number", integer);
            let closed_at = it.optional("closed_at", |it| Timestamp::parse(text(it)?));
            let is_inside = it.optional("author_association", text).is_some_and(|it| INSIDE.contains(&it));
            let said = [it.optional("title", text), it.optional("body", text), own];
            let tasks = named(said.into_iter().flatten());
            Some((branch?.to_owned(), merged?, place, is_inside, number.zip(closed_at), tasks))
        });
        let (repository, (branch, merged, place, is_inside, ended, tasks)) = (repository?, request?);
        let outsider = !is_inside && place.is_some_and(|it| !it.eq_ignore_ascii_case(repository));
        let ended = ended.map(|(number, at)| PullEnd::of(repository, number, at));
        Some(Self { repository: repository.to_owned(), branch, merged, outsider, ended, tasks })
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
    use svc_core::refusal::Kind;

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

    fn read(event: &str, body: &str, is_form: bool) -> Option<Closed> {
        Closed::read(event, body.as_bytes(), is_form).unwrap()
    }

    /// The type of what a body is refused with, and the fields that are named, in their order.
    fn refused(event: &str, body: &str, is_form: bool) -> (Kind, Vec<String>) {
        let refusal = Closed::read(event, body.as_bytes(), is_form).unwrap_err();
        let field = |it: &FieldError| it.field.as_deref().unwrap_or("null").to_owned();
        let mut fields: Vec<String> = refusal.errors().iter().map(field).collect();
        fields.sort();
        (refusal.kind(), fields)
    }

    /// A closed pull request is read as JSON and as a form; one that has no text is one.
    #[test]
    fn a_closed_pull_request_is_read() {
        let body = event().to_string();
        let whole = read("pull_request", &body, false).unwrap();
        assert_eq!((&*whole.repository, &*whole.branch, whole.merged), ("acme/shop", "main", true));
        let three = vec!["tsk_three-mend-it", "tsk_three-mend", "tsk_three"];
        assert_eq!(ids(&whole.tasks), [vec!["tsk_one"], vec!["tsk_two"], three]);
        let form: String = form_urlencoded::Serializer::new(String::new()).append_pair("payload", &body).finish();
        assert_eq!(read("pull_request", &form, true), Some(whole));
        let mut silent = event();
        silent["pull_request"]["body"] = Value::Null;
        silent["pull_request"]["id"] = json!(u64::MAX);
        assert_eq!(read("pull_request", &silent.to_string(), false).unwrap().tasks.len(), 2);
    }

    /// Any other event is no closed pull request, whatever it holds.
    #[test]
    fn other_events_are_none() {
        assert_eq!(read("push", &event().to_string(), false), None);
        assert_eq!(read("push", "{}", false), None);
        assert_eq!(read("ping", "payload=%7B%7D", true), None);
        assert_eq!(read("pull_request", r#"{"action":"opened","pull_request":null}"#, false), None);
    }

    /// What is broken is told of by what is wrong with it: no JSON, no object, no member of the form, or every member that a closed
    /// pull request lacks.
    #[test]
    fn what_is_broken_is_named() {
        let (json, request) = (Kind::InvalidJson, Kind::InvalidRequest);
        for name in ["pull_request", "push", "ping"] {
            for broken in ["", "{", "nonsense", r#"{"a":1,"a":2}"#] {
                assert_eq!(refused(name, broken, false), (json, vec![]), "{name} {broken}");
            }
            assert_eq!(refused(name, "[]", false), (request, vec!["null".to_owned()]));
            assert_eq!(refused(name, "{}", true), (request, vec!["payload".to_owned()]));
            assert_eq!(refused(name, "payload=%7B", true), (json, vec![]));
        }
        let all = vec!["action".to_owned(), "pull_request".to_owned(), "repository".to_owned()];
        assert_eq!(refused("pull_request", "{}", false), (request, all));
        for (path, value, field) in [
            ("/action", json!(7), "action"),
            ("/pull_request", Value::Null, "pull_request"),
            ("/pull_request", json!([]), "pull_request"),
            ("/pull_request/merged", json!("true"), "pull_request.merged"),
            ("/pull_request/base", Value::Null, "pull_request.base"),
            ("/pull_request/base/ref", Value::Null, "pull_request.base.ref"),
            ("/pull_request/head", json!({}), "pull_request.head.ref"),
            ("/pull_request/title", json!(1), "pull_request.title"),
            ("/repository/full_name", json!(7), "repository.full_name"),
        ] {
            let mut other = event();
            *other.pointer_mut(path).unwrap() = value;
            assert_eq!(refused("pull_request", &other.to_string(), false), (request, vec![field.to_owned()]), "{path}");
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
            prop_assert!(!matches!(Closed::read("pull_request", &body, body.len() % 2 == 0), Ok(Some(_))));
            let found = named([&*text].into_iter());
            prop_assert!(found.iter().all(|it| !it.is_empty() && it.len() <= MEANT_MAX));
        }
    }
}
