//! Velocity lines: exact sliding windows, read by rank, so that a full line of a million costs as much as one of ten.

use crate::rules::gate::evaluate::FullLine;
use crate::state::gate::{Activity, Block, BlockId, BlockOwner, Line, Nth};
use crate::state::people::Settings;
use crate::turn::{Halt, Scope};
use crate::value::id::AgentId;
use crate::value::{Id, Span, Timestamp};

/// The longest window a workspace can set: what is older serves no decision any more.
const LONGEST_WINDOW: Span = Span::minutes(1_440);
/// How many dead blocks are let go for each that is sealed, so that the backlog shrinks.
const LET_GO_MAX: usize = 2;

/// Whose line it is, of `tool` actions or of all others. How its blocks are named takes a hash, and few decisions look at one.
#[derive(Clone, Copy)]
struct Owner {
    agent: AgentId,
    tool: bool,
}

impl Owner {
    fn blocks(self) -> BlockOwner {
        BlockOwner::of(&[if self.tool { b"tool" } else { b"other" }, &self.agent.bits().to_be_bytes()])
    }
}

/// Reads the line that an action's type goes by; `None` while it has room.
pub(super) fn full_line(
    scope: &mut Scope<'_>,
    activity: &Activity,
    tool: bool,
    settings: &Settings,
) -> Result<Option<FullLine>, Halt> {
    let velocity = &settings.agent_velocity;
    let (line, limit) =
        if tool { (&activity.tools, velocity.tool_count) } else { (&activity.others, velocity.other_count) };
    let since = scope.now().minus(velocity.window());
    let rank = usize::try_from(limit).unwrap_or(usize::MAX);
    let owner = Owner { agent: activity.agent, tool };
    let Some(at) = nth(scope, line, owner, rank)?.filter(|at| *at > since) else { return Ok(None) };
    // Where this action takes a place itself, one more has to leave: the next one, or this one where it is the only one.
    let next = nth(scope, line, owner, rank.saturating_sub(1))?.unwrap_or_else(|| scope.now().max(at));
    let used = count_since(scope, line, owner, rank, since)?;
    Ok(Some(FullLine {
        used: i64::try_from(used).unwrap_or(i64::MAX),
        limit: limit.into(),
        minutes: velocity.minutes.into(),
        clears_at: at.plus(velocity.window()),
        clears_behind: next.plus(velocity.window()),
    }))
}

/// How much of a line is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Actions within the window.
    pub used: usize,
    /// How many may be before a person is asked.
    pub limit: u32,
    /// When there is room again, where there is none.
    pub clears_at: Option<Timestamp>,
}

/// How much of the line is used, of tool calls or of all other actions.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn used(scope: &mut Scope<'_>, activity: &Activity, tool: bool, settings: &Settings) -> Result<Used, Halt> {
    let velocity = &settings.agent_velocity;
    let (line, limit) =
        if tool { (&activity.tools, velocity.tool_count) } else { (&activity.others, velocity.other_count) };
    let owner = Owner { agent: activity.agent, tool };
    let since = scope.now().minus(velocity.window());
    let used = count_since(scope, line, owner, 0, since)?;
    let full = nth(scope, line, owner, usize::try_from(limit).unwrap_or(usize::MAX))?.filter(|at| *at > since);
    Ok(Used { used, limit, clears_at: full.map(|at| at.plus(velocity.window())) })
}

/// Notes the present action on its line, sealing a block where one is full and letting go of dead ones.
pub(super) fn note(scope: &mut Scope<'_>, activity: &mut Activity, tool: bool) -> Result<(), Halt> {
    let owner = Owner { agent: activity.agent, tool };
    let now = scope.now();
    let line = if tool { &mut activity.tools } else { &mut activity.others };
    let Some(sealed) = line.push(now, || owner.blocks()) else { return Ok(()) };
    let since = now.minus(LONGEST_WINDOW);
    for _ in 0..LET_GO_MAX {
        if line.first >= sealed.id.number {
            break;
        }
        let id = BlockId { owner: sealed.id.owner, number: line.first };
        if let Some(block) = scope.get_if_any::<Block>(id)? {
            if block.at.last().is_some_and(|at| *at > since) {
                break;
            }
            scope.delete::<Block>(id);
        }
        line.first = line.first.saturating_add(1);
    }
    scope.put(sealed);
    Ok(())
}

/// The n-th newest instant, from the row or from a block.
fn nth(scope: &mut Scope<'_>, line: &Line, owner: Owner, rank: usize) -> Result<Option<Timestamp>, Halt> {
    Ok(match line.nth_newest(rank) {
        Nth::None => None,
        Nth::At(at) => Some(at),
        Nth::InBlock(number, place) => scope
            .get::<Block>(BlockId { owner: owner.blocks(), number })?
            .and_then(|block| block.at.get(place).copied()),
    })
}

/// How many instants lie after `since`, where at least `known` do: a search by halves over ranks.
fn count_since(
    scope: &mut Scope<'_>,
    line: &Line,
    owner: Owner,
    known: usize,
    since: Timestamp,
) -> Result<usize, Halt> {
    let (mut inside, mut outside) = (known, line.len().saturating_add(1));
    while outside.saturating_sub(inside) > 1 {
        let middle = inside.midpoint(outside);
        if nth(scope, line, owner, middle)?.is_some_and(|at| at > since) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    Ok(inside)
}
