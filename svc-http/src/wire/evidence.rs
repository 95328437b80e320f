//! What evidence is asked for with.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use svc_core::refusal::Refusal;
use svc_core::state::evidence::{Entry, KINDS};
use svc_core::value::id::{AgentId, WorkspaceId};
use svc_core::value::period::Zone;
use svc_core::value::{Span, Timestamp};
use svc_store::StoreError;
use svc_store::evidence::{Card, Wanted};

use super::page::{Page, Query};

/// How far back evidence goes where nothing is said.
const DEFAULT_SPAN: Span = Span::hours(24);

fn agent(text: &str) -> Result<AgentId, String> {
    AgentId::parse(text).map_err(|_| "must be an agent's id".to_owned())
}

/// Characters of what records are asked about at most: more than any id has.
pub const ABOUT_CHARS_MAX: usize = 250;

/// Which records of the ledger are listed.
#[derive(Debug)]
pub struct Listing {
    /// Of this kind, or of all kinds that begin with it and a dot.
    kind: Option<String>,
    /// That name this, as a JSON text: as what they are of, who did it, or in what they tell.
    about: Option<String>,
    /// From the first record of this instant on.
    pub from: Option<Timestamp>,
    /// Up to, not including, the first record of this instant.
    pub to: Option<Timestamp>,
    /// Which part of them.
    pub page: Page,
}

impl Listing {
    /// Reads the query.
    ///
    /// # Errors
    /// `invalid_request` with every fault.
    pub fn read(mut query: Query, workspace: WorkspaceId, zone: &Zone) -> Result<Self, Refusal> {
        let kind = query.take("kind", |text| {
            let is_known = KINDS.iter().any(|it| *it == text || it.split_once('.').is_some_and(|it| it.0 == text));
            if is_known { Ok(text.to_owned()) } else { Err("names no kind of records".to_owned()) }
        });
        let about = query.take("about", |text| {
            let is_plain = text.bytes().all(|it| it.is_ascii_graphic() && it != b'"' && it != b'\\');
            let fits = (1..=ABOUT_CHARS_MAX).contains(&text.len());
            if is_plain && fits { Ok(format!("\"{text}\"")) } else { Err("must be an id".to_owned()) }
        });
        let (from, to) = (query.moment("from", zone), query.moment("to", zone));
        if from.zip(to).is_some_and(|(from, to)| to <= from) {
            query.fault("to", "must be after `from`");
        }
        let page = query.page("ledger", workspace);
        query.finish()?;
        Ok(Self { kind, about, from, to, page })
    }

    /// Whether a record is asked for.
    #[must_use]
    pub fn admits(&self, entry: &Entry) -> bool {
        let is_kind = |kind: &String| {
            entry.kind.strip_prefix(kind.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let names = |about: &String| {
            about.trim_matches('"') == &*entry.subject
                || entry.data.contains(about.as_str())
                || entry.actor.contains(about.as_str())
        };
        self.kind.as_ref().is_none_or(is_kind) && self.about.as_ref().is_none_or(names)
    }
}

/// The bundle that a query asks for.
///
/// # Errors
/// `invalid_request` with every fault.
pub fn wanted(mut query: Query, workspace: WorkspaceId, zone: &Zone, now: Timestamp) -> Result<Wanted, Refusal> {
    let (from, to) = (query.moment("from", zone), query.moment("to", zone));
    let since = query.take("since", |text| match text.parse::<u64>() {
        Ok(size) if size > 0 && size.to_string() == text => Ok(size),
        _ => Err("must be the size of a checkpoint, from 1".to_owned()),
    });
    let agent = query.take("agentId", agent);
    let redact = query.take("redact", |text| text.parse::<bool>().map_err(|_| "must be true or false".to_owned()));
    if from.zip(to).is_some_and(|(from, to)| to < from) {
        query.fault("to", "must not be before `from`");
    }
    let next = match query.raw("cursor").map(|it| Wanted::next(workspace, it)).transpose() {
        Ok(next) => next,
        Err(refusal) => {
            let faults = refusal.errors().to_vec();
            return Err(query.finish().map_or_else(|it| it.and(faults), |()| refusal));
        }
    };
    if let Some(next) = next {
        // A cursor carries the whole question: what is said beside it must not seem to count. Clients that send their parameters along
        // with every cursor say again where the first bundle began, which is behind them.
        for (name, is_other) in [
            ("to", to.is_some() && to != next.to),
            ("since", since.is_some_and(|it| next.since.is_some_and(|shown| it > shown))),
            ("agentId", agent.is_some() && agent != next.agent),
            ("redact", redact.is_some_and(|it| it != next.redact)),
        ] {
            if is_other {
                query.fault(name, "is not what `cursor` asks for, which carries the whole question: leave it out");
            }
        }
    }
    query.finish()?;
    if let Some(next) = next {
        return Ok(Wanted { since: next.since.or(since), ..next });
    }
    // Up to an instant that is still to come there is what there is by now.
    let from = from.unwrap_or_else(|| to.map_or(now, |it| it.min(now)).minus(DEFAULT_SPAN));
    Ok(Wanted { workspace, from, to, since, start: None, agent, redact: redact.unwrap_or(false) })
}

/// The scorecard that a query asks for.
///
/// # Errors
/// `invalid_request` with every fault.
pub fn card(mut query: Query, workspace: WorkspaceId, zone: &Zone) -> Result<Card, Refusal> {
    let (from, to, agent) = (query.moment("from", zone), query.moment("to", zone), query.take("agentId", agent));
    if from.zip(to).is_some_and(|(from, to)| to <= from) {
        query.fault("to", "must be after `from`");
    }
    query.finish()?;
    Ok(Card { workspace, agent, from, to })
}

/// A record as it stands in the ledger, to the byte: read and written anew, a number that no reader here can hold would be lost.
///
/// # Errors
/// [`StoreError::Corrupt`], which names the record, for one that is no JSON or has no place.
pub fn write(entry: &Entry) -> Result<Box<RawValue>, StoreError> {
    let written = entry.record_text().and_then(|it| RawValue::from_string(it).ok());
    written.ok_or_else(|| unwritten(entry))
}

/// That a record cannot be shown as what it is to be shown as: there is none that says so by being left out.
#[must_use]
pub fn unwritten(entry: &Entry) -> StoreError {
    let what = format!("record {} of the ledger of {} cannot be written", entry.id, entry.workspace);
    StoreError::Corrupt(Arc::new(std::io::Error::other(what)))
}

/// A scorecard's answer.
///
/// # Errors
/// None that a test does not rule out.
pub fn write_card(jws: &str) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(&json!({ "scorecard": jws })).map_err(|_| Refusal::internal())
}
