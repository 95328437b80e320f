//! What a code host tells of a pull request: the tasks that it names have come to something.

use super::receive::Done;
use crate::rules::gateway::outcome::report_for;
use crate::state::edge::{Integration, IntegrationConfig};
use crate::state::gateway::{PullEnd, TaskStatus};
use crate::turn::{Halt, Scope};
use crate::value::text::TaskId;

/// A pull request that was closed.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The repository that it was to go into, as `owner/name`.
    pub repository: Box<str>,
    /// The branch that it was to go into.
    pub branch: Box<str>,
    /// Whether it went in.
    pub merged: bool,
    /// Whether somebody made it from a place of their own who is nobody in the repository.
    pub outsider: bool,
    /// Which one it is and when it ended, where that is told.
    pub ended: Option<PullEnd>,
    /// The tasks that it names: of each mention the ids that it may mean, the likeliest first.
    pub tasks: Vec<Vec<TaskId>>,
}

/// Reports what the tasks have come to, where the integration lists repository and branch as they are now.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(super) fn report(scope: &mut Scope<'_>, integration: &Integration, merge: &Merge) -> Result<Done, Halt> {
    let IntegrationConfig::Code(listed) = &integration.config else { return Ok(Done::of("not_listed", None)) };
    // A code host's names of repositories are one whatever their case; names of branches are not.
    let is_listed = listed.repositories.iter().any(|it| it.eq_ignore_ascii_case(&merge.repository))
        && listed.branches.contains(&merge.branch);
    if !is_listed {
        return Ok(Done::of("not_listed", None));
    }
    // Anybody may open one on a repository that everybody sees, name any task in it and close it.
    if merge.outsider && !merge.merged {
        return Ok(Done::of("outsider", None));
    }
    let status = if merge.merged { TaskStatus::Accepted } else { TaskStatus::Rejected };
    let (reported, named) =
        report_for(scope, integration.slot.workspace, integration.id, &merge.tasks, (status, merge.ended))?;
    let outcome = match (reported, named) {
        (0, 0) => "no_task",
        (0, _) => "unchanged",
        _ => status.as_str(),
    };
    Ok(Done::of(outcome, None))
}
