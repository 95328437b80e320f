//! What goes out is looked through for data that must not, as the workspace has set.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use svc_core::dialect::Body;
use svc_core::dlp;
use svc_core::refusal::Refusal;
use svc_core::state::people::DataLoss;
use svc_core::value::id::WorkspaceId;

/// Bodies above this are looked through beside the threads that serve requests.
const INLINE_BYTES_MAX: usize = 16 * 1024;
/// The request without what was found, where that is asked for, and how much was found of each kind.
type Looked = (Option<Body>, BTreeMap<Box<str>, u32>);

/// Workspaces whose setting is remembered.
const REMEMBERED_MAX: usize = 10_000;

/// The setting of each workspace as this server last heard of it. The admitting commit compares it with the setting in
/// force, so one that is out of date costs a second look and nothing else.
#[derive(Debug, Default)]
pub(crate) struct DataLossSettings(Mutex<HashMap<WorkspaceId, DataLoss>>);

impl DataLossSettings {
    pub(super) fn of(&self, workspace: WorkspaceId) -> DataLoss {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&workspace).copied().unwrap_or(DataLoss::Off)
    }

    pub(super) fn set(&self, workspace: WorkspaceId, setting: DataLoss) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(workspace, setting);
    }
}

/// Looks through every text of a request: the request without what was found, where the setting asks for that, and how much
/// was found of each kind.
///
/// # Errors
/// `internal` where looking failed: what was not looked through does not go out, whatever the setting.
pub(super) async fn look(setting: DataLoss, body: &Body) -> Result<Looked, Refusal> {
    if setting == DataLoss::Off {
        return Ok((None, BTreeMap::new()));
    }
    if body.as_bytes().len() <= INLINE_BYTES_MAX {
        return look_now(setting, body.clone());
    }
    let owned = body.clone();
    tokio::task::spawn_blocking(move || look_now(setting, owned)).await.map_err(|_| Refusal::internal())?
}

fn look_now(setting: DataLoss, mut body: Body) -> Result<Looked, Refusal> {
    let mut found: BTreeMap<Box<str>, u32> = BTreeMap::new();
    body.texts_mut(&mut |text| {
        let findings = dlp::scan(text);
        for (kind, count) in findings.counts() {
            let sum = found.entry(kind.name().into()).or_default();
            *sum = sum.saturating_add(count);
        }
        (setting == DataLoss::Redact).then(|| dlp::redact(text)).flatten().map(|(text, _)| text)
    })?;
    Ok((if setting == DataLoss::Redact { Some(body) } else { None }, found))
}
