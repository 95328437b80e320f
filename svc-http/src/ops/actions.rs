//! Actions of a workspace, as its members see them: lists that look at a bounded number of rows, one action, and the release
//! of what a receipt's use kept posted.

use std::collections::VecDeque;
use std::sync::Arc;

use svc_core::refusal::Refusal;
use svc_core::rules::gate::release::ReleaseAction;
use svc_core::rules::people::by::{Person, owns};
use svc_core::rules::read::{View, action_of, views, views_anew};
use svc_core::state::gate::{Action, Agent};
use svc_core::state::people::Reach;
use svc_core::store::{Found, Key, Range, Record};
use svc_core::value::Id as _;
use svc_core::value::id::{ActionId, AgentId, PrincipalId, ulid_bits};
use svc_core::value::link::Index;
use svc_store::Gate;

use super::aside::Asker;
use super::reports::zone_of;
use super::skipped::of_own_agents;
use super::{Caller, GateService, Member};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::ActionsOp;
use crate::wire::actions::{Wish, read_reason};
use crate::wire::decision::{self, Shown};
use crate::wire::page::Query;

/// Rows that one page looks at, at most; what is not found among them is looked for from the cursor on.
const LOOKED_MAX: usize = 2_000;
/// Rows that are looked at together.
const CHUNK: usize = 128;
/// Agents of one's own whose lists are read side by side; a member with more has the workspace's list read for them.
const OWN_MAX: usize = 64;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: ActionsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let member = caller.member()?;
    let (by, workspace) = caller.by()?;
    match op {
        ActionsOp::List => list(service, member, call).await,
        ActionsOp::Get => {
            let id = call.param_id::<ActionId>("act")?;
            let view = service.seen(|| service.read(|scope| action_of(scope, &by, workspace, id))).await?;
            item(service, member, &view)
        }
        ActionsOp::Release => {
            let reason = read_reason(&call.body)?;
            let action = call.param_id::<ActionId>("act")?;
            let released = service.run(ReleaseAction { by, workspace, action, reason }).await?;
            item(service, member, released.view())
        }
    }
}

fn shown(member: Member) -> Shown {
    if member.role.reads_summaries() { Shown::Whole } else { Shown::Outline }
}

fn item(service: &GateService, member: Member, view: &View) -> Result<Answer, Refusal> {
    let item = decision::item_with_input(view, &service.base_url, shown(member))?;
    Ok(Answer::json(item.to_string()))
}

async fn list(service: &GateService, member: Member, call: &Call) -> Result<Answer, Refusal> {
    let workspace = member.person.workspace;
    let wish = Wish::read(Query::among(&call.uri, call.route.query), workspace, &zone_of(service, workspace)?)?;
    let page = &wish.page;
    let mut walk = Walk::of(service, member, &wish)?;
    let (mut data, mut looked, mut next) = (Vec::new(), 0, None);
    'pages: loop {
        let chunk = walk.chunk(service).await?;
        let admitted: Vec<Arc<Action>> =
            chunk.iter().filter_map(|it| action(it).filter(|it| wish.admits(it))).collect();
        let seen = service.read(|scope| views(scope, &admitted))?;
        let again = || service.read(|scope| views_anew(scope, &admitted));
        let mut seen = service.seen_all(seen, View::untold, again).await?.into_iter().peekable();
        for (place, found) in chunk.iter().enumerate() {
            looked += 1;
            let view = seen.next_if(|it| Key::Action(it.action.id) == found.row.key);
            let own = |it: &View| member.reach == Reach::All || owns(member.person.principal, &it.agent);
            let is_asked = |it: &View| wish.status.is_none_or(|status| status == it.status()) && own(it);
            if let Some(view) = view.filter(is_asked) {
                data.push(decision::item(&view, &service.base_url, shown(member))?);
            }
            let more = place + 1 < chunk.len() || !walk.is_over();
            if data.len() >= page.limit || (looked >= LOOKED_MAX && more) {
                next = more.then(|| page.cursor(found.order, found.row.key));
                break 'pages;
            }
        }
        if walk.is_over() {
            break;
        }
        // Others have their turn between two looks.
        tokio::task::yield_now().await;
    }
    Ok(Answer::json(page.list(data, next)?))
}

fn action(found: &Found) -> Option<Arc<Action>> {
    if let Some(Record::Action(it)) = &found.row.record { Some(Arc::clone(it)) } else { None }
}

/// The agents that are a member's own, as many as `max`.
pub(super) fn own_agents(service: &GateService, own: PrincipalId, max: usize) -> Result<Vec<AgentId>, Refusal> {
    let mut agents = Vec::new();
    for index in [Index::AgentsFor, Index::AgentsUnder] {
        for found in service.scan(&Range::all(index, own.bits(), max))? {
            if let Key::Agent(id) = found.row.key
                && !agents.contains(&id)
            {
                agents.push(id);
            }
        }
    }
    Ok(agents)
}

/// A walk through one or several lists of actions at once, newest first.
struct Walk {
    lists: Vec<List>,
    /// For whom actions of agents that are not their own are skipped, where the lists have such.
    skips: Option<Person>,
}

struct List {
    range: Range,
    ahead: VecDeque<Found>,
    over: bool,
}

impl Walk {
    fn of(service: &GateService, member: Member, wish: &Wish) -> Result<Self, Refusal> {
        let workspace = member.person.workspace;
        let mut skips = None;
        let ranges = match (wish.agent, member.reach) {
            (Some(agent), reach) => {
                // Another's is not looked through: how long that takes, and where it stops, would tell what it does.
                let found = service.read(|scope| scope.get::<Agent>(agent))?.filter(|it| it.workspace == workspace);
                let is_own = |it: &Agent| reach == Reach::All || owns(member.person.principal, it);
                if found.is_some_and(|it| is_own(&it)) { vec![(Index::ActionsOf, agent.bits())] } else { Vec::new() }
            }
            (None, Reach::All) => vec![(Index::ActionsIn, workspace.bits())],
            (None, Reach::Own | Reach::No) => {
                let own = own_agents(service, member.person.principal, OWN_MAX + 1)?;
                if own.len() > OWN_MAX {
                    skips = Some(member.person);
                    vec![(Index::ActionsIn, workspace.bits())]
                } else {
                    own.into_iter().map(|it| (Index::ActionsOf, it.bits())).collect()
                }
            }
        };
        let chunk = (2 * CHUNK / ranges.len().max(1)).clamp(8, CHUNK);
        let lists = ranges.into_iter().map(|(index, prefix)| List {
            range: Range {
                after: wish.page.after,
                newest_first: true,
                ..wish.span.of(Range::all(index, prefix, chunk), |it| ulid_bits(it, 0))
            },
            ahead: VecDeque::new(),
            over: false,
        });
        Ok(Self { lists: lists.collect(), skips })
    }

    /// The next rows of all lists together, at most [`CHUNK`]; none where all are over.
    async fn chunk(&mut self, service: &GateService) -> Result<Vec<Found>, Refusal> {
        let mut out = Vec::new();
        while out.len() < CHUNK {
            for list in self.lists.iter_mut().filter(|it| it.ahead.is_empty() && !it.over) {
                let found = match self.skips {
                    None => service.scan(&list.range)?,
                    Some(person) => {
                        let asker = Asker::own(person.principal, Some(person.workspace));
                        let own = move |gate: &Gate, found: &[Found]| of_own_agents(gate, person.principal, found);
                        service.scan_seen(asker, list.range.clone(), own).await?
                    }
                };
                list.over = found.len() < list.range.limit;
                list.range.after = found.last().map(|it| (it.order, it.row.key)).or(list.range.after);
                list.ahead = found.into();
            }
            let newest = self.lists.iter_mut().max_by_key(|it| it.ahead.front().map(|it| it.order));
            let Some(found) = newest.and_then(|it| it.ahead.pop_front()) else { break };
            out.push(found);
        }
        Ok(out)
    }

    /// Whether nothing is left, as far as is known without another look.
    fn is_over(&self) -> bool {
        self.lists.iter().all(|it| it.over && it.ahead.is_empty())
    }
}
