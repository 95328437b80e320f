//! What is sealed under the master key is sealed under another one, all of it in one commit.

use std::convert::Infallible;

use super::sealed::resealed;
use crate::refusal::Refusal;
use crate::state::edge::{Integration, IntegrationKind, IntegrationSlot, Job, McpSecret, McpServers};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gateway::{Routing, UpstreamKey};
use crate::state::people::{Account, SigningKey};
use crate::store::{Key, Record, Row};
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::WorkspaceId;

/// Puts rows in the place of what they were, which differ in their sealed texts alone.
#[derive(Clone, Debug)]
pub struct Reseal {
    /// Each row as it was read and as it is to be, in which [`resealed`] has changed the texts.
    pub rows: Vec<(Record, Record)>,
    /// Every workspace: each ledger tells of it.
    pub workspaces: Vec<WorkspaceId>,
}

/// Replaces the rows and tells every ledger.
///
/// # Errors
/// `not_allowed` where one of them has changed since it was read: then nothing is replaced.
pub fn reseal(scope: &mut Scope<'_>, asked: &Reseal) -> Result<(), Halt> {
    if !asked.rows.iter().all(|(before, after)| is_resealed(before, after)) {
        return Err(Refusal::internal().into());
    }
    scope.want(&asked.rows.iter().map(|(before, _)| before.key()).collect::<Vec<Key>>())?;
    for (before, after) in &asked.rows {
        match (before, after) {
            (Record::SigningKey(_), Record::SigningKey(_)) => replace::<SigningKey>(scope, before, after)?,
            (Record::UpstreamKey(_), Record::UpstreamKey(_)) => replace::<UpstreamKey>(scope, before, after)?,
            (Record::McpSecret(_), Record::McpSecret(_)) => replace::<McpSecret>(scope, before, after)?,
            (Record::Integration(_), Record::Integration(_)) => replace::<Integration>(scope, before, after)?,
            (Record::Account(_), Record::Account(_)) => replace::<Account>(scope, before, after)?,
            (Record::Job(_), Record::Job(_)) => replace::<Job>(scope, before, after)?,
            _ => return Err(Refusal::internal().into()),
        }
    }
    for workspace in &asked.workspaces {
        let data = Object::new().text("purpose", "master").finish();
        let subject = Subject::Workspace(*workspace);
        scope.append(*workspace, Fact { kind: "rotation", actor: Actor::Policy, subject, data });
    }
    Ok(())
}

/// Whether two rows differ in nothing but what is sealed in them.
fn is_resealed(before: &Record, after: &Record) -> bool {
    let blank = |row: &Record| match resealed::<Infallible>(row, &mut |_, _| Ok("".into())) {
        Ok(blank) => blank.unwrap_or_else(|| row.clone()),
    };
    blank(before) == blank(after)
}

fn replace<R: Row + PartialEq>(scope: &mut Scope<'_>, before: &Record, after: &Record) -> Result<(), Halt> {
    let (Some(before), Some(after)) = (R::peel(before), R::peel(after)) else { return Err(Refusal::internal().into()) };
    if scope.get::<R>(before.id())?.as_ref() != Some(before) {
        return Err(Refusal::not_allowed("something was sealed meanwhile").into());
    }
    scope.put_shared(after);
    Ok(())
}

/// The keys of a workspace's rows that hold sealed texts, but for the accounts of its members and what is to be sent: those are
/// found by their indexes.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn sealed_in(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<Vec<Key>, Halt> {
    scope.want(&[Routing::key(workspace), McpServers::key(workspace)])?;
    let slots = IntegrationKind::ALL.iter().map(|kind| Integration::key(IntegrationSlot { workspace, kind: *kind }));
    let mut keys: Vec<Key> = slots.collect();
    if let Some(routing) = scope.get::<Routing>(workspace)? {
        keys.extend(routing.upstreams.iter().map(|it| UpstreamKey::key(it.id)));
    }
    if let Some(servers) = scope.get::<McpServers>(workspace)? {
        keys.extend(servers.servers.iter().map(|it| McpSecret::key(it.id)));
    }
    Ok(keys)
}
