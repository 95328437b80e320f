//! Providers: made, changed, removed. A provider's key, and a header that carries a credential, never get here but sealed.

use std::collections::BTreeMap;

use super::routing::{Work, stamp};
use super::told::ToldUpstream;
use super::{models, named};
use crate::refusal::{FieldError, Refusal};
use crate::rules::people::taken;
use crate::state::evidence::Subject;
use crate::state::gateway::{Dialect, ModelTimeouts, Upstream, UpstreamKey};
use crate::turn::Halt;
use crate::value::id::UpstreamId;
use crate::value::text::{UpstreamName, UrlText};

/// Providers of one workspace.
pub const UPSTREAMS_MAX: usize = 100;

/// One setting of a provider.
#[derive(Clone, Debug)]
pub enum Set {
    /// Its name.
    Name(UpstreamName),
    /// The shape that it speaks.
    Kind(Dialect),
    /// Its base address, checked by the outbound guard.
    BaseUrl(UrlText),
    /// Its key, sealed for [`UpstreamKey::purpose`].
    Key(NewKey),
    /// Further headers that carry no credential, in place of those before, by name in lower case.
    Headers(BTreeMap<Box<str>, Box<str>>),
    /// Further headers that carry a credential, in place of those before.
    SealedHeaders(BTreeMap<Box<str>, SealedHeader>),
    /// Headers that carry a credential and stand in clear, as they were before these were sealed: the same, sealed. What is not
    /// in clear any more stays as it is.
    Seal(BTreeMap<Box<str>, NewKey>),
    /// Under whose law it runs.
    Jurisdiction(Option<Box<str>>),
    /// Where it runs.
    Region(Option<Box<str>>),
    /// Its own times.
    Timeouts(ModelTimeouts),
    /// Whether calls may go to it.
    Enabled(bool),
}

/// A provider's key, or another credential that it is shown, as it is kept.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The text, sealed for [`UpstreamKey::purpose`].
    pub sealed: Box<str>,
    /// Its last four characters.
    pub hint: Box<str>,
}

/// A header that carries a credential.
#[derive(Clone, Debug)]
pub enum SealedHeader {
    /// It is this from now on.
    New(NewKey),
    /// It stays what is stored.
    Stored {
        /// The last four characters of that, as they were shown.
        hint: Box<str>,
    },
}

pub(super) fn create(work: &mut Work<'_, '_>, set: &[Set]) -> Result<UpstreamId, Halt> {
    let (mut name, mut kind, mut url, mut key) = (None, None, None, None);
    for one in set {
        match one {
            Set::Name(it) => name = Some(it.clone()),
            Set::Kind(it) => kind = Some(*it),
            Set::BaseUrl(it) => url = Some(it.clone()),
            Set::Key(it) => key = Some(it),
            _ => {}
        }
    }
    let mut faults = Vec::new();
    for (missing, field) in
        [(name.is_none(), "name"), (kind.is_none(), "kind"), (url.is_none(), "baseUrl"), (key.is_none(), "apiKey")]
    {
        if missing {
            faults.push(FieldError::missing(field));
        }
    }
    if work.routing.upstreams.len() >= UPSTREAMS_MAX {
        faults.push(FieldError::whole(format!("a workspace has at most {UPSTREAMS_MAX} upstreams")));
    }
    faults.extend(name_fault(work, name.as_ref(), None));
    faults.extend(name.as_ref().and_then(|it| named::kept_for(&work.routing, it)));
    faults.extend(unsent(&BTreeMap::new(), set, false));
    let (Some(name), Some(dialect), Some(base_url), true) = (name, kind, url, faults.is_empty()) else {
        return Err(Refusal::invalid_upstream(faults).into());
    };
    let (created_by, created_at) = stamp(work);
    let made = Upstream {
        id: work.scope.fresh(),
        name,
        dialect,
        base_url,
        headers: BTreeMap::new(),
        header_hints: BTreeMap::new(),
        jurisdiction: None,
        region: None,
        timeouts: ModelTimeouts::default(),
        enabled: true,
        key_hint: "".into(),
        created_by,
        created_at,
    };
    let id = made.id;
    let mut made = Kept { upstream: made, secrets: UpstreamKey::new(id, work.routing.workspace) };
    made.apply(set);
    work.created("upstream.created", Subject::Upstream(id), &ToldUpstream::of(&made.upstream), &[])?;
    work.routing.upstreams.push(made.upstream);
    work.scope.put(made.secrets);
    Ok(id)
}

pub(super) fn change(work: &mut Work<'_, '_>, id: UpstreamId, set: &[Set]) -> Result<(), Halt> {
    let upstream = work.routing.upstream(id).cloned().ok_or_else(Refusal::not_found)?;
    let secrets = work.scope.get::<UpstreamKey>(id)?;
    let secrets = secrets.map_or_else(|| UpstreamKey::new(id, work.routing.workspace), |it| UpstreamKey::clone(&it));
    let stored = secrets.clone();
    // What is only kept in another way from now on has not changed.
    let before = Kept { upstream, secrets }.sealed(set);
    let name = set.iter().rev().find_map(|it| if let Set::Name(name) = it { Some(name) } else { None });
    let address = set.iter().rev().find_map(|it| if let Set::BaseUrl(url) = it { Some(url) } else { None });
    let shows_key = set.iter().any(|it| matches!(it, Set::Key(_)));
    let moves = address.is_some_and(|it| it.origin() != before.upstream.base_url.origin());
    let mut faults: Vec<FieldError> = name_fault(work, name, Some(id)).into_iter().collect();
    faults.extend(name.and_then(|it| named::kept_for(&work.routing, it)));
    faults.extend(name.and_then(|it| named::taken_over(&work.routing, id, it)));
    if moves && !shows_key {
        faults.push(FieldError::new("apiKey", SENT_AGAIN));
    }
    faults.extend(unsent(&before.upstream.header_hints, set, moves));
    if !faults.is_empty() {
        return Err(Refusal::invalid_upstream(faults).into());
    }
    let mut after = before.clone();
    after.apply(set);
    let (mut old, new) = (ToldUpstream::of(&before.upstream), ToldUpstream::of(&after.upstream));
    // Neither the values of headers nor the key are told, that they changed is.
    if before.headers() != after.headers() && old == new {
        old.headers = BTreeMap::new();
    } else if shows_key && before.upstream.key_hint == after.upstream.key_hint {
        old.key_hint = "";
    }
    work.changed("upstream.changed", Subject::Upstream(id), &old, &new, &[])?;
    for it in &mut work.routing.upstreams {
        if it.id == id {
            it.clone_from(&after.upstream);
        }
    }
    if after.secrets != stored {
        work.scope.put(after.secrets);
    }
    models::follow(work, id, before.upstream.jurisdiction.as_deref())?;
    named::rename(work, id, &before.upstream.name)
}

pub(super) fn remove(work: &mut Work<'_, '_>, id: UpstreamId) -> Result<(), Halt> {
    let name = work.routing.upstream(id).map(|it| it.name.clone()).ok_or_else(Refusal::not_found)?;
    work.scope.get::<UpstreamKey>(id)?;
    let models = work.routing.models.iter().filter(|it| it.upstream == id).count();
    if models > 0 {
        return Err(Refusal::not_allowed(format!("{models} of its models are still here")).into());
    }
    named::provider_is_free(&work.routing, &name)?;
    work.removed("upstream.removed", Subject::Upstream(id));
    work.routing.upstreams.retain(|it| it.id != id);
    work.scope.delete::<UpstreamKey>(id);
    Ok(())
}

/// A stored secret goes where whoever stored it sent it, and to nobody else's host.
pub(crate) const SENT_AGAIN: &str = "must be sent again with another host: what is stored was given for the one before";
const NOT_STORED: &str = "is how a credential is shown that is not the stored one: send it whole";

/// Headers whose stored values are to stay though none such is stored, or though they would go to another host.
fn unsent(stored: &BTreeMap<Box<str>, Box<str>>, set: &[Set], moves: bool) -> Vec<FieldError> {
    let sent = set.iter().rev().find_map(|it| if let Set::SealedHeaders(sent) = it { Some(sent) } else { None });
    let staying: Vec<(&str, &str)> = match sent {
        None => stored.iter().map(|(name, hint)| (&**name, &**hint)).collect(),
        Some(sent) => sent.iter().filter_map(|(name, it)| Some((&**name, it.stored()?))).collect(),
    };
    let why = |name: &str, hint: &str| match stored.get(name).is_some_and(|it| **it == *hint) {
        true => moves.then_some(SENT_AGAIN),
        false => Some(NOT_STORED),
    };
    let fault = |(name, hint)| why(name, hint).map(|why| FieldError::new(format!("headers.{name}"), why));
    staying.into_iter().filter_map(fault).collect()
}

fn name_fault(work: &Work<'_, '_>, name: Option<&UpstreamName>, own: Option<UpstreamId>) -> Option<FieldError> {
    let is_taken = |name: &UpstreamName| work.routing.upstreams.iter().any(|it| it.name == *name && Some(it.id) != own);
    name.filter(|it| is_taken(it)).map(|_| FieldError::new("name", taken::UPSTREAM))
}

impl SealedHeader {
    fn stored(&self) -> Option<&str> {
        match self {
            Self::New(_) => None,
            Self::Stored { hint } => Some(hint),
        }
    }
}

/// A provider on its way, and what is sealed beside it.
#[derive(Clone)]
struct Kept {
    upstream: Upstream,
    secrets: UpstreamKey,
}

impl Kept {
    fn headers(&self) -> [&BTreeMap<Box<str>, Box<str>>; 2] {
        [&self.upstream.headers, &self.secrets.headers]
    }

    /// The same with what stands in clear sealed, as far as that is sent.
    fn sealed(mut self, set: &[Set]) -> Self {
        for one in set {
            let Set::Seal(sent) = one else { continue };
            for (name, header) in sent {
                if self.upstream.headers.remove(name).is_some() {
                    self.keep_header(name, header);
                }
            }
        }
        self
    }

    fn keep_header(&mut self, name: &str, header: &NewKey) {
        self.upstream.header_hints.insert(name.into(), header.hint.clone());
        self.secrets.headers.insert(name.into(), header.sealed.clone());
    }

    fn apply(&mut self, set: &[Set]) {
        let to = &mut self.upstream;
        for one in set {
            match one {
                Set::Name(it) => to.name = it.clone(),
                Set::Kind(it) => to.dialect = *it,
                Set::BaseUrl(it) => to.base_url = it.clone(),
                Set::Key(it) => {
                    to.key_hint = it.hint.clone();
                    self.secrets.sealed = it.sealed.clone();
                }
                Set::Headers(it) => to.headers.clone_from(it),
                Set::SealedHeaders(_) | Set::Seal(_) => {}
                Set::Jurisdiction(it) => to.jurisdiction.clone_from(it),
                Set::Region(it) => to.region.clone_from(it),
                Set::Timeouts(it) => to.timeouts = *it,
                Set::Enabled(it) => to.enabled = *it,
            }
        }
        self.apply_headers(set);
    }

    /// Sets headers that carry a credential. Each name has one value, and a credential's is the one that is not in clear.
    fn apply_headers(&mut self, set: &[Set]) {
        for one in set {
            let Set::SealedHeaders(sent) = one else { continue };
            self.upstream.header_hints.retain(|name, _| sent.contains_key(name));
            self.secrets.headers.retain(|name, _| sent.contains_key(name));
            for (name, header) in sent {
                if let SealedHeader::New(header) = header {
                    self.keep_header(name, header);
                }
            }
        }
        let hints = &self.upstream.header_hints;
        self.upstream.headers.retain(|name, _| !hints.contains_key(name));
    }
}
