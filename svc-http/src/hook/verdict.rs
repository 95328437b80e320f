//! What the gate's answer means for a call. An agent acts on `allow` with the status `allowed` alone (CONTRACT part 2,
//! "Decision") and a receipt that is still good, and only where the answer is about the very call that was asked about.

use svc_core::value::canonical::canonical;
use svc_core::value::id::ActionId;
use svc_core::value::json::Json;

use super::action::details;
use super::event::Event;
use super::{Refused, plain};

/// Characters of reasons that are told.
const WHY_CHARS: usize = 2_000;
/// Characters of what a person adds to their no.
const NOTE_CHARS: usize = 500;
/// Characters of a link.
const LINK_CHARS: usize = 2_048;

/// A decision on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The action.
    pub(crate) id: ActionId,
    /// What to do now.
    pub(crate) verdict: Verdict,
    /// The receipt of an allow that a person gave: the call carries on only once it was used up, by this call alone.
    pub(crate) approved: Option<String>,
    /// Whether the gate had been asked already, and repeats its answer.
    pub(crate) replayed: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Carry on.
    Allow,
    /// A person decides.
    Ask {
        /// Why, for people.
        why: String,
        /// Where.
        link: String,
        /// Whether the person at the keyboard may be asked.
        client_may_ask: bool,
    },
    /// Stop.
    Deny {
        /// Why, for people.
        why: String,
    },
    /// It was allowed once, and that is over: its receipt is used up or expired, it is settled, or was never settled in
    /// time.
    Past,
}

impl Decision {
    /// Reads the gate's answer about the call of `event`, whose whole input has this digest.
    ///
    /// # Errors
    /// [`Refused`] where it is no decision, or one about something else.
    pub(crate) fn read(answer: &Json, event: &Event, input_digest: &str) -> Result<Self, Refused> {
        let text = |name: &str| answer.get(name).and_then(Json::as_str).ok_or_else(no_decision);
        let id = ActionId::parse(text("id")?).map_err(|_| no_decision())?;
        let inner = |outer: &str, name: &str| answer.get(outer).and_then(|it| it.get(name)).and_then(Json::as_str);
        let is_ours = text("type")? == "tool.call"
            && inner("tool", "name") == Some(&event.tool)
            && inner("tool", "inputDigest") == Some(input_digest)
            && inner("session", "id") == Some(&event.session)
            && is_same(answer.get("details").filter(|it| !it.is_null()), details(event).as_ref());
        if !is_ours {
            return Err(Refused::new("the gate's answer is about another call"));
        }
        let (decision, status) = (text("decision")?, text("status")?);
        let receipt = answer.get("receipt").and_then(Json::as_str);
        let is_used_up = answer.get("consumedAt").is_some_and(|it| !it.is_null());
        let verdict = match (decision, status) {
            ("allow", "allowed") if receipt.is_some() && !is_used_up => Verdict::Allow,
            // It stays `allowed` long after its receipt is good for nothing, and past a stop of its agent.
            ("allow", "allowed" | "lapsed" | "completed" | "failed" | "cancelled") => Verdict::Past,
            ("approval_required", "pending") => {
                let link = inner("approval", "url").ok_or_else(no_decision)?;
                let is_link = link.starts_with("https://") || link.starts_with("http://");
                if !is_link || link.contains(|it: char| it.is_control() || it.is_whitespace()) {
                    return Err(no_decision());
                }
                let may = answer.get("approval").and_then(|it| it.get("clientMayAsk")).and_then(Json::as_bool);
                Verdict::Ask { why: why(answer), link: plain(link, LINK_CHARS), client_may_ask: may == Some(true) }
            }
            ("deny", "denied" | "expired" | "revoked" | "completed" | "failed" | "cancelled") => {
                let note = inner("approval", "note").map(|it| plain(it.trim(), NOTE_CHARS)).filter(|it| !it.is_empty());
                let why = why(answer);
                Verdict::Deny { why: note.map_or_else(|| why.clone(), |it| format!("{why}; their note: {it}")) }
            }
            _ => {
                let (decision, status) = (plain(decision, 32), plain(status, 32));
                return Err(Refused(format!(
                    "the gate answered `{decision}` with the status `{status}`, which is no decision"
                )));
            }
        };
        let was_asked = answer.get("approval").is_some_and(|it| !it.is_null());
        let approved = receipt.filter(|_| was_asked && verdict == Verdict::Allow).map(str::to_owned);
        Ok(Self { id, verdict, approved, replayed: false })
    }
}

/// Whether two values say the same, in whatever order their members stand: the gate has an order of its own.
fn is_same(one: Option<&Json>, other: Option<&Json>) -> bool {
    one.map(canonical) == other.map(canonical)
}

fn no_decision() -> Refused {
    Refused::new("what the gate answered is no decision")
}

/// The reasons as one text; never an empty one, which some clients take for no answer.
fn why(answer: &Json) -> String {
    let reasons = answer.get("reasons").and_then(Json::as_list).unwrap_or_default();
    let messages: Vec<&str> = reasons.iter().filter_map(|it| it.get("message").and_then(Json::as_str)).collect();
    let text = plain(&messages.join("; "), WHY_CHARS);
    if text.trim().is_empty() { "no reason was given".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::{Value, json};
    use svc_core::value::Id as _;

    use super::*;

    fn read(change: impl FnOnce(&mut serde_json::Map<String, Value>)) -> Result<Verdict, Refused> {
        let said = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash" });
        let event = Event::read(&Json::parse(said.to_string().as_bytes()).unwrap(), None).unwrap();
        let mut answer = json!({
            "id": ActionId::from_bits(7).to_string(), "decision": "allow", "status": "allowed", "type": "tool.call",
            "tool": { "name": "Bash", "inputDigest": "sha256:00" }, "session": { "id": "s" }, "reasons": [],
            "receipt": "a.b.c",
        });
        change(answer.as_object_mut().unwrap());
        let answer = Json::parse(answer.to_string().as_bytes()).unwrap();
        Decision::read(&answer, &event, "sha256:00").map(|it| it.verdict)
    }

    fn with(decision: &str, status: &str) -> Result<Verdict, Refused> {
        read(|it| it.extend([("decision".to_owned(), json!(decision)), ("status".to_owned(), json!(status))]))
    }

    /// Only an allow that is allowed carries on; every other pair of words is no allow.
    #[test]
    fn only_an_allow_that_is_allowed_carries_on() {
        let decisions = ["allow", "deny", "approval_required", "ALLOW", "", "allowed"];
        let statuses =
            ["pending", "allowed", "denied", "expired", "revoked", "lapsed", "completed", "failed", "cancelled", ""];
        for decision in decisions {
            for status in statuses {
                let is_allow = with(decision, status) == Ok(Verdict::Allow);
                assert_eq!(is_allow, (decision, status) == ("allow", "allowed"), "{decision} {status}");
            }
        }
        assert_eq!(with("deny", "denied"), Ok(Verdict::Deny { why: "no reason was given".to_owned() }));
        assert_eq!(with("allow", "completed"), Ok(Verdict::Past));
    }

    /// An allow whose receipt is used up or expired is over, though its status is `allowed` still.
    #[test]
    fn an_allow_without_a_good_receipt_is_over() {
        assert_eq!(read(|it| drop(it.remove("receipt"))), Ok(Verdict::Past));
        let used_up = read(|it| drop(it.insert("consumedAt".to_owned(), json!("2026-10-01T09:30:00.000Z"))));
        assert_eq!(used_up, Ok(Verdict::Past));
    }

    /// What a person adds to their no is told with it, on one line and not without end.
    #[test]
    fn a_note_to_a_no_is_told() {
        let denied = |note: &str| {
            read(|it| {
                it.extend([
                    ("decision".to_owned(), json!("deny")),
                    ("status".to_owned(), json!("denied")),
                    ("reasons".to_owned(), json!([{ "message": "a person said no" }])),
                    ("approval".to_owned(), json!({ "note": note })),
                ]);
            })
        };
        let why = |why: &str| Ok(Verdict::Deny { why: why.to_owned() });
        assert_eq!(
            denied("use the copy,\n not\u{202e} the original"),
            why("a person said no; their note: use the copy,  not‹U+202E› the original")
        );
        assert_eq!(denied(" "), why("a person said no"));
        let Ok(Verdict::Deny { why }) = denied(&"x".repeat(900)) else { panic!() };
        assert!(why.chars().count() < 600, "{why}");
    }

    /// An answer about another tool, input, session or kind of action is none.
    #[test]
    fn an_answer_about_something_else_is_none() {
        for (name, value) in [
            ("type", json!("payment")),
            ("tool", json!({ "name": "Read", "inputDigest": "sha256:00" })),
            ("tool", json!({ "name": "Bash", "inputDigest": "sha256:01" })),
            ("tool", json!(null)),
            ("session", json!({ "id": "other" })),
            ("details", json!({ "cwd": "/elsewhere" })),
            ("id", json!("act_1")),
            ("decision", json!(1)),
            ("status", json!(null)),
        ] {
            assert!(read(|it| drop(it.insert(name.to_owned(), value.clone()))).is_err(), "{name} {value}");
        }
    }

    /// A directory whose path is cut, as every long text is, is the one that was asked about in whatever order the gate tells it; another
    /// that begins alike is not.
    #[test]
    fn a_directory_with_a_long_path_is_told_from_others() {
        let event = |cwd: &str| {
            let said = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": cwd });
            Event::read(&Json::parse(said.to_string().as_bytes()).unwrap(), None).unwrap()
        };
        let deep = "/deep".repeat(2_000);
        let told = Json::parse(canonical(&details(&event(&deep)).unwrap()).as_bytes()).unwrap();
        let answer = |details: Json| {
            let text = |it: &str| Json::Text(it.to_owned());
            let one = |name: &str, value: Json| (name.to_owned(), value);
            let tool = vec![one("name", text("Bash")), one("inputDigest", text("sha256:00"))];
            Json::Object(vec![
                one("id", text(&ActionId::from_bits(7).to_string())),
                one("decision", text("allow")),
                one("status", text("allowed")),
                one("type", text("tool.call")),
                one("tool", Json::Object(tool)),
                one("session", Json::Object(vec![one("id", text("s"))])),
                one("receipt", text("a.b.c")),
                one("details", details),
            ])
        };
        let read = |cwd: &str| Decision::read(&answer(told.clone()), &event(cwd), "sha256:00").map(|it| it.verdict);
        assert_eq!(read(&deep), Ok(Verdict::Allow));
        for other in [format!("{deep}r"), format!("{}/r", deep.strip_suffix("ep").unwrap()), "/deep".to_owned()] {
            assert!(read(&other).is_err(), "{} bytes", other.len());
        }
    }

    /// An ask has its link, and the client may ask only where the gate says so in so many words.
    #[test]
    fn an_ask_has_its_link() {
        let ask = |approval: Value| {
            read(|it| {
                it.extend([
                    ("decision".to_owned(), json!("approval_required")),
                    ("status".to_owned(), json!("pending")),
                    ("reasons".to_owned(), json!([{ "message": "above the line" }, { "message": "twice\u{1b}[2J" }])),
                    ("approval".to_owned(), approval),
                ]);
            })
        };
        let link = "https://gate.example.com/w/1";
        let expected = |client_may_ask| {
            Ok(Verdict::Ask {
                why: "above the line; twice‹U+001B›[2J".to_owned(),
                link: link.to_owned(),
                client_may_ask,
            })
        };
        assert_eq!(ask(json!({ "url": link, "clientMayAsk": true })), expected(true));
        assert_eq!(ask(json!({ "url": link, "clientMayAsk": "true" })), expected(false));
        assert_eq!(ask(json!({ "url": link })), expected(false));
        for bad in [json!(null), json!({}), json!({ "url": "javascript:x" }), json!({ "url": "https://a b" })] {
            assert!(ask(bad.clone()).is_err(), "{bad}");
        }
    }
}
