//! Providers: made, changed, removed. A provider's key never gets here but sealed.

use std::collections::BTreeMap;

use super::routing::{Work, stamp};
use super::told::ToldUpstream;
use crate::refusal::{FieldError, Refusal};
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
    /// Further headers; no secret stands there.
    Headers(BTreeMap<Box<str>, Box<str>>),
    /// Under whose law it runs.
    Jurisdiction(Option<Box<str>>),
    /// Where it runs.
    Region(Option<Box<str>>),
    /// Its own times.
    Timeouts(ModelTimeouts),
    /// Whether calls may go to it.
    Enabled(bool),
}

/// A provider's key as it is kept.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The sealed text.
    pub sealed: Box<str>,
    /// The last four characters of the key.
    pub hint: Box<str>,
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
    faults.extend(taken(work, name.as_ref(), None));
    let (Some(name), Some(dialect), Some(base_url), true) = (name, kind, url, faults.is_empty()) else {
        return Err(Refusal::invalid_upstream(faults).into());
    };
    let (created_by, created_at) = stamp(work);
    let mut made = Upstream {
        id: work.scope.fresh(),
        name,
        dialect,
        base_url,
        headers: BTreeMap::new(),
        jurisdiction: None,
        region: None,
        timeouts: ModelTimeouts::default(),
        enabled: true,
        key_hint: "".into(),
        created_by,
        created_at,
    };
    apply(work, &mut made, set);
    let id = made.id;
    work.created("upstream.created", Subject::Upstream(id), &ToldUpstream::of(&made), &[])?;
    work.routing.upstreams.push(made);
    Ok(id)
}

pub(super) fn change(work: &mut Work<'_, '_>, id: UpstreamId, set: &[Set]) -> Result<(), Halt> {
    let before = work.routing.upstream(id).cloned().ok_or_else(Refusal::not_found)?;
    work.scope.get::<UpstreamKey>(id)?;
    let name = set.iter().rev().find_map(|it| if let Set::Name(name) = it { Some(name) } else { None });
    let mut after = before.clone();
    let address = set.iter().rev().find_map(|it| if let Set::BaseUrl(url) = it { Some(url) } else { None });
    let shows_key = set.iter().any(|it| matches!(it, Set::Key(_)));
    let moves = address.is_some_and(|it| it.origin() != before.base_url.origin()) && !shows_key;
    let faults: Vec<FieldError> =
        taken(work, name, Some(id)).into_iter().chain(moves.then(|| FieldError::new("apiKey", SENT_AGAIN))).collect();
    if !faults.is_empty() {
        return Err(Refusal::invalid_upstream(faults).into());
    }
    apply(work, &mut after, set);
    let (mut old, new) = (ToldUpstream::of(&before), ToldUpstream::of(&after));
    // Neither the values of headers nor the key are told, that they changed is.
    if before.headers != after.headers && old == new {
        old.headers = BTreeMap::new();
    } else if shows_key && before.key_hint == after.key_hint {
        old.key_hint = "";
    }
    work.changed("upstream.changed", Subject::Upstream(id), &old, &new, &[])?;
    for it in &mut work.routing.upstreams {
        if it.id == id {
            it.clone_from(&after);
        }
    }
    Ok(())
}

pub(super) fn remove(work: &mut Work<'_, '_>, id: UpstreamId) -> Result<(), Halt> {
    work.routing.upstream(id).ok_or_else(Refusal::not_found)?;
    work.scope.get::<UpstreamKey>(id)?;
    let models = work.routing.models.iter().filter(|it| it.upstream == id).count();
    if models > 0 {
        return Err(Refusal::not_allowed(format!("{models} of its models are still here")).into());
    }
    work.removed("upstream.removed", Subject::Upstream(id));
    work.routing.upstreams.retain(|it| it.id != id);
    work.scope.delete::<UpstreamKey>(id);
    Ok(())
}

/// A stored secret goes where whoever stored it sent it, and to nobody else's host.
pub(crate) const SENT_AGAIN: &str = "must be sent again with another host: what is stored was given for the one before";

fn taken(work: &Work<'_, '_>, name: Option<&UpstreamName>, own: Option<UpstreamId>) -> Option<FieldError> {
    let is_taken = |name: &UpstreamName| work.routing.upstreams.iter().any(|it| it.name == *name && Some(it.id) != own);
    name.filter(|it| is_taken(it)).map(|_| FieldError::new("name", "is that of another upstream"))
}

fn apply(work: &mut Work<'_, '_>, to: &mut Upstream, set: &[Set]) {
    for one in set {
        match one {
            Set::Name(it) => to.name = it.clone(),
            Set::Kind(it) => to.dialect = *it,
            Set::BaseUrl(it) => to.base_url = it.clone(),
            Set::Key(it) => {
                to.key_hint = it.hint.clone();
                let workspace = work.routing.workspace;
                work.scope.put(UpstreamKey { upstream: to.id, workspace, sealed: it.sealed.clone() });
            }
            Set::Headers(it) => to.headers.clone_from(it),
            Set::Jurisdiction(it) => to.jurisdiction.clone_from(it),
            Set::Region(it) => to.region.clone_from(it),
            Set::Timeouts(it) => to.timeouts = *it,
            Set::Enabled(it) => to.enabled = *it,
        }
    }
}
