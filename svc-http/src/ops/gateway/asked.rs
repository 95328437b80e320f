//! What a client's headers ask of a call (SPEC 9.5).

use http::HeaderMap;
use svc_core::dialect::Body;
use svc_core::refusal::{FieldError, Refusal};
use svc_core::state::gateway::{Dialect, Objective};
use svc_core::value::text::{ClassId, SessionId, TaskId};

/// The session of a coding client that names it in its own header.
const CODING_SESSION: &str = "x-claude-code-session-id";

/// What the headers ask.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// The class of the work.
    pub(super) class: Option<ClassId>,
    /// The work.
    pub(super) task: Option<TaskId>,
    /// What to favour.
    pub(super) objective: Option<Objective>,
    /// Whether a person oversees it.
    pub(super) oversight: bool,
    /// The client's session.
    pub(super) session: Option<SessionId>,
    /// Whether to say only what would be.
    pub(super) dry: bool,
    /// Whether the client reads trailers.
    pub(super) trailers: bool,
}

/// Reads headers and body, and tells every fault of both.
pub(super) fn read(dialect: Dialect, headers: &HeaderMap, body: &[u8]) -> Result<(Asked, Body), Refusal> {
    read_with(dialect, headers, Body::read(dialect, body))
}

/// The same beside a body that was read in a way of its own.
pub(super) fn read_with(
    dialect: Dialect,
    headers: &HeaderMap,
    body: Result<Body, Refusal>,
) -> Result<(Asked, Body), Refusal> {
    match (self::headers(dialect, headers), body) {
        (Ok(asked), Ok(body)) => Ok((asked, body)),
        (Err(mine), Err(theirs)) if !theirs.errors().is_empty() => {
            Err(Refusal::invalid_request(mine.errors().iter().chain(theirs.errors()).cloned().collect()))
        }
        (_, Err(refusal)) | (Err(refusal), _) => Err(refusal),
    }
}

/// Reads the headers.
///
/// # Errors
/// `invalid_request` naming every header that is malformed or came twice.
pub(super) fn headers(_dialect: Dialect, headers: &HeaderMap) -> Result<Asked, Refusal> {
    let mut faults = Vec::new();
    let mut text = |name: &'static str| match single(headers, name) {
        Ok(text) => text,
        Err(fault) => {
            faults.push(fault);
            None
        }
    };
    let (class, task, objective) = (text("x-svc-task-class"), text("x-svc-task-id"), text("x-svc-objective"));
    let (oversight, dry) = (text("x-svc-human-oversight"), text("x-svc-dry-run"));
    let (own, coding) = (text("x-svc-client-session"), text(CODING_SESSION));
    let mut invalid = |field: &str, clause: &str| faults.push(FieldError::new(field, clause));
    let class =
        class.and_then(|it| ClassId::parse(it).map_err(|why| invalid("x-svc-task-class", &why.to_string())).ok());
    let task = task.and_then(|it| TaskId::parse(it).map_err(|why| invalid("x-svc-task-id", &why.to_string())).ok());
    let objective = objective.and_then(|it| {
        let known = Objective::parse(it);
        if known.is_none() {
            invalid("x-svc-objective", "must be balanced, cost, quality, latency or sovereign");
        }
        known
    });
    let oversight = match oversight {
        None => false,
        Some("acknowledged") => true,
        Some(_) => {
            invalid("x-svc-human-oversight", "must be acknowledged");
            false
        }
    };
    let dry = match dry {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            invalid("x-svc-dry-run", "must be true or false");
            false
        }
    };
    let session = match (own, coding) {
        (Some(own), _) => SessionId::parse(own).map_err(|why| invalid("x-svc-client-session", &why.to_string())).ok(),
        // A coding client's own header is a hint: what is no session id is left out.
        (None, Some(coding)) => SessionId::parse(coding).ok(),
        (None, None) => None,
    };
    let te = headers.get_all(http::header::TE).iter().filter_map(|it| it.to_str().ok());
    let trailers = te.flat_map(|it| it.split(',')).any(|it| it.trim().eq_ignore_ascii_case("trailers"));
    if faults.is_empty() {
        Ok(Asked { class, task, objective, oversight, session, dry, trailers })
    } else {
        Err(Refusal::invalid_request(faults))
    }
}

/// A header's text, where it came once.
fn single<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, FieldError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(FieldError::new(name, "must be sent once"));
    }
    value.to_str().map(|it| Some(it.trim())).map_err(|_| FieldError::new(name, "must be visible ASCII"))
}
