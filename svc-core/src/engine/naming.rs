//! Which mandate means other tools where an MCP server has another name: a scan over the agents of a workspace, made sound by its
//! guard row as that of [`select`](super::select).
//!
//! **Invariant:** nothing is decided here.

use std::sync::Arc;

use super::select::{Look, PAGE, load, peel};
use crate::rules::edge::mcp_servers::Looked;
use crate::state::gate::{Agent, Mandate};
use crate::state::people::Roster;
use crate::store::Range;
use crate::value::id::{MandateVersionId, WorkspaceId};
use crate::value::link::Index;
use crate::value::{Id as _, Timestamp};

/// Looks for a mandate that is not over at `now`, paused or not, and that tells a server called `old` from one called `new`.
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
    let mut looked = Looked { epoch: roster.map_or(0, |it| it.epoch), mandate: None };
    let mut range = Range::all(Index::AgentsOf, workspace.bits(), PAGE);
    loop {
        let page = rows.scan(&range)?;
        let agents: Vec<Arc<Agent>> = page.iter().filter_map(|it| peel::<Agent>(&it.row)).collect();
        let grants = agents.iter().filter(|it| !it.is_removed()).flat_map(|it| &it.mandates);
        let standing = grants.filter(|it| it.expires_at.is_none_or(|end| now < end));
        let versions: Vec<_> = standing.map(|it| MandateVersionId { mandate: it.id, version: it.version }).collect();
        let found = load::<Mandate, L>(rows, &versions)?;
        looked.mandate = found.iter().find(|it| it.terms().tells_servers_apart(old, new)).map(|it| it.id.mandate);
        let Some(last) = page.last().filter(|_| page.len() == range.limit && looked.mandate.is_none()) else {
            return Ok(looked);
        };
        range.after = Some((last.order, last.row.key));
    }
}
