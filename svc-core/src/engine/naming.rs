//! What means other tools where an MCP server has another name: a scan over the mandates of a workspace, made sound by its guard row
//! as that of [`select`](super::select), and over what may yet become mandates, its templates and the applications that wait.
//!
//! **Invariant:** nothing is decided here.

use std::sync::Arc;

use super::select::{Look, PAGE, load, peel};
use crate::rules::edge::mcp_servers::{GoesBy, Looked};
use crate::state::gate::{Agent, Mandate, WorkspaceTemplate};
use crate::state::people::{Application, ApplicationState, Roster};
use crate::store::{Range, Row};
use crate::value::id::{MandateVersionId, WorkspaceId};
use crate::value::link::Index;
use crate::value::{Id as _, Timestamp};

/// Looks for a mandate that is not over at `now`, paused or not, for a template and for an application that waits, that tells a server
/// called `old` from one called `new`.
///
/// # Errors
/// Rows could not be read.
pub fn told_apart<L: Look>(
    rows: &mut L,
    workspace: WorkspaceId,
    (old, new): (&str, &str),
    now: Timestamp,
) -> Result<Looked, L::Error> {
    let roster = load::<Roster, L>(rows, &[workspace])?.into_iter().next();
    let epoch = roster.map_or(0, |it| it.epoch);
    let of_mandate =
        first(rows, Range::all(Index::AgentsOf, workspace.bits(), PAGE), |rows, agents: Vec<Arc<Agent>>| {
            let grants = agents.iter().filter(|it| !it.is_removed()).flat_map(|it| &it.mandates);
            let standing = grants.filter(|it| it.expires_at.is_none_or(|end| now < end));
            let versions: Vec<_> =
                standing.map(|it| MandateVersionId { mandate: it.id, version: it.version }).collect();
            let found = load::<Mandate, L>(rows, &versions)?;
            let apart = found.iter().find(|it| it.terms().tells_servers_apart(old, new));
            Ok(apart.map(|it| GoesBy::Mandate(it.id.mandate)))
        })?;
    if of_mandate.is_some() {
        return Ok(Looked { epoch, by: of_mandate });
    }
    let templates = Range::all(Index::TemplatesOf, workspace.bits(), PAGE);
    let of_template = first(rows, templates, |_, templates: Vec<Arc<WorkspaceTemplate>>| {
        let apart = templates.iter().find(|it| it.terms.tells_servers_apart(old, new));
        Ok(apart.map(|it| GoesBy::Template(it.name.clone())))
    })?;
    if of_template.is_some() {
        return Ok(Looked { epoch, by: of_template });
    }
    let applications = Range::all(Index::ApplicationsOf, workspace.bits(), PAGE);
    let by = first(rows, applications, |_, applications: Vec<Arc<Application>>| {
        let mut waiting = applications.iter().filter(|it| it.stands(now) == ApplicationState::Waiting);
        let apart = waiting.find(|it| it.change.tells_servers_apart(old, new));
        Ok(apart.map(|it| GoesBy::Application(it.id)))
    })?;
    Ok(Looked { epoch, by })
}

/// What the first page of a range has in which `find` finds anything.
fn first<R: Row, L: Look>(
    rows: &mut L,
    mut range: Range,
    find: impl Fn(&mut L, Vec<Arc<R>>) -> Result<Option<GoesBy>, L::Error>,
) -> Result<Option<GoesBy>, L::Error> {
    loop {
        let page = rows.scan(&range)?;
        let found = find(rows, page.iter().filter_map(|it| peel::<R>(&it.row)).collect())?;
        if found.is_some() || !range.turn_page(&page) {
            return Ok(found);
        }
    }
}
