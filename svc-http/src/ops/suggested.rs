//! Rules that follow from what persons decided: what may read thousands of questions is done aside.
//!
//! **Invariant:** a page of questions is in memory with all that it says, and what a rule follows from of one agent's at a time.

use serde_json::Value;
use svc_core::refusal::Refusal;
use svc_core::rules::gate::suggest::{Fields, Past, SUGGEST_FROM, SUGGEST_WINDOW, Suggestion};
use svc_core::rules::people::by::{By, entitled};
use svc_core::state::gate::Standing;
use svc_core::state::people::Right;
use svc_core::store::{Found, Key, Range, Record};
use svc_core::turn::{Halt, Scope};
use svc_core::value::Id as _;
use svc_core::value::id::{AgentId, ApprovalId, WorkspaceId};
use svc_core::value::link::Index;
use svc_store::Gate;

use super::approvals::ids;
use super::aside::{Asker, Awaited};
use super::{GateService, refusal};
use crate::answer::Answer;
use crate::wire::page::Page;
use crate::wire::suggestion;

/// Agents that are looked for at once, and how often one request goes on to more while it finds nothing.
const AGENTS_MAX: usize = 50;
const AGENTS_TURNS: usize = 20;
/// Questions that one request looks at before it looks at no further agent: it goes on with the cursor.
const LOOKED_AT_MAX: usize = 2_000;
/// Questions of an agent that are looked for at once, and those that are read at once: one with all its reasons and details may take a
/// hundred kilobytes.
const ASKED_AT_ONCE: usize = 200;
const READ_AT_ONCE: usize = 25;

/// In the place of a suggestion's id in a cursor: the agent has no more.
const DONE: u128 = u128::MAX;

/// What is suggested, agent by agent, the newest agents first.
pub(super) async fn suggested(
    service: &GateService,
    by: By,
    workspace: WorkspaceId,
    page: Page,
) -> Result<Answer, Refusal> {
    service.read(|scope| entitled(scope, &by, workspace, Right::ReadApprovals))?;
    let (gate, asker) = (service.gate.clone(), Asker::of(&by, workspace));
    let work = move |awaited: &Awaited| {
        let (data, next) = Looking { gate: &gate, by: &by, workspace, awaited }.list(&page)?;
        page.list(data, next).map(Answer::json)
    };
    service.aside.run_awaited(asker, work).await
}

/// Who looks through what was asked, for as long as anybody waits for it.
struct Looking<'a> {
    gate: &'a Gate,
    by: &'a By,
    workspace: WorkspaceId,
    awaited: &'a Awaited,
}

impl Looking<'_> {
    /// A part of the list, and the cursor of the next one. A cursor names an agent and the last suggestion of it that was given, or [`DONE`]
    /// where that agent has no more; where that suggestion is none any more, the agent's are given from their first on.
    fn list(&self, page: &Page) -> Result<(Vec<Value>, Option<String>), Refusal> {
        let resumed =
            page.after.and_then(|(given, key)| if let Key::Agent(id) = key { Some((given, id)) } else { None });
        let mut until = resumed.map_or(u128::MAX, |(given, id)| id.bits().saturating_add(u128::from(given != DONE)));
        let (mut data, mut looked_at) = (Vec::<Value>::new(), 0_usize);
        for _ in 0..AGENTS_TURNS {
            let all = Range::all(Index::AgentsOf, self.workspace.bits(), AGENTS_MAX + 1);
            let agents = self.scan(&Range { until, newest_first: true, ..all })?;
            let mut after = None;
            for found in agents.iter().take(AGENTS_MAX) {
                if data.len() >= page.limit || looked_at >= LOOKED_AT_MAX {
                    break;
                }
                let Key::Agent(agent) = found.row.key else { continue };
                after = Some(agent);
                let (made, asked) = self.of(found)?;
                looked_at = looked_at.saturating_add(asked);
                let given = resumed.filter(|(_, id)| *id == agent).map(|(given, _)| given);
                let given = given.and_then(|given| made.iter().position(|it| it.id.bits() == given));
                let mut rest = made.iter().skip(given.map_or(0, |it| it.saturating_add(1))).peekable();
                while let Some(next) = rest.next() {
                    data.push(suggestion::item(next));
                    if data.len() == page.limit && rest.peek().is_some() {
                        return Ok((data, Some(page.cursor(next.id.bits(), found.row.key))));
                    }
                }
            }
            let more = agents.last().is_some_and(|it| Some(it.row.key) != after.map(Key::Agent));
            let Some(last) = after.filter(|_| more) else { return Ok((data, None)) };
            until = last.bits();
            // Whoever reads the first page alone hears of what there is.
            if !data.is_empty() || looked_at >= LOOKED_AT_MAX {
                break;
            }
        }
        let cursor = page.cursor(DONE, Key::Agent(AgentId::from_bits(until)));
        Ok((data, Some(cursor)))
    }

    /// What is suggested of an agent, and how many questions that took.
    fn of(&self, found: &Found) -> Result<(Vec<Suggestion>, usize), Refusal> {
        self.awaited.go_on()?;
        let Some(Record::Agent(agent)) = &found.row.record else { return Ok((Vec::new(), 0)) };
        if matches!(agent.standing, Standing::Removed { .. }) {
            return Ok((Vec::new(), 0));
        }
        let asked = self.asked_lately(agent.id)?;
        if asked.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let mut past = self.read(|scope| Past::of(scope, self.by, self.workspace, agent.id))?;
        for page in asked.chunks(READ_AT_ONCE) {
            let read = self.read(|scope| past.read(scope, page))?;
            past.take(read);
        }
        let (weighing, mut made) = (past.weighing(), Vec::new());
        for subject in weighing.subjects() {
            let mut fields = Fields::default();
            for page in weighing.detailed(subject).chunks(READ_AT_ONCE) {
                fields.take(self.read(|scope| weighing.fields(scope, page))?);
            }
            self.awaited.go_on()?;
            made.extend(weighing.follows(subject, &fields));
        }
        Ok((made, asked.len()))
    }

    /// The questions of an agent from which rules may follow, the newest first.
    fn asked_lately(&self, agent: AgentId) -> Result<Vec<ApprovalId>, Refusal> {
        let since = self.gate.now().minus(SUGGEST_WINDOW);
        let mut range = Range { newest_first: true, ..Range::all(Index::AskedOf, agent.bits(), ASKED_AT_ONCE) };
        let mut asked = Vec::new();
        while asked.len() < SUGGEST_FROM {
            let found = self.scan(&range)?;
            asked.extend(ids(&found));
            let Some(last) = found.last().filter(|_| found.len() == ASKED_AT_ONCE) else { break };
            range.after = Some((last.order, last.row.key));
            // Where the row is not at hand it is looked at further.
            if matches!(&last.row.record, Some(Record::Approval(it)) if it.created_at < since) {
                break;
            }
        }
        Ok(asked)
    }

    fn scan(&self, range: &Range) -> Result<Vec<Found>, Refusal> {
        self.gate.scan(range).map_err(refusal)
    }

    /// Runs a rule that only reads, where anybody waits for it.
    fn read<T>(&self, rule: impl Fn(&mut Scope<'_>) -> Result<T, Halt>) -> Result<T, Refusal> {
        self.awaited.go_on()?;
        self.gate.read(rule).map_err(refusal)
    }
}
