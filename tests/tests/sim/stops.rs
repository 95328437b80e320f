//! What clients were told of stops, restarts and mandates, and what no later answer may say then.

use std::collections::{BTreeMap, BTreeSet};

use svc_core::command::{Command, Reply};
use svc_core::rules::gate::fleet::Fleet;
use svc_core::rules::gate::freeze::Stopped;
use svc_core::rules::gate::lift::Lift;
use svc_core::rules::people::mandates::Held;
use svc_core::rules::read::View;
use svc_core::state::gate::{Action, Agent, Mandate, Status, Verb};
use svc_core::state::people::Workspace;
use svc_core::store::Row;
use svc_core::value::Timestamp;
use svc_core::value::id::{ActionId, AgentId, HoldId, MandateId};
use svc_tests::play::{Rows, Standing};

/// A promise that an answer breaks.
type Broken = &'static str;

/// What was told.
#[derive(Default)]
pub(crate) struct Stops {
    /// Agents that somebody was told are stopped, and that nobody may have started again since.
    stopped: BTreeMap<AgentId, Why>,
    /// Holds over every agent that stand, and that nobody may have lifted since.
    holds: BTreeSet<HoldId>,
    /// The newest epoch that was told of each agent: what is of an earlier one is void for good.
    epochs: BTreeMap<AgentId, u32>,
    /// Actions that were told to be revoked.
    revoked: BTreeSet<ActionId>,
    /// The newest version that was told of each mandate.
    versions: BTreeMap<MandateId, u32>,
    /// Mandates that are paused, and that nobody may have resumed since.
    paused: BTreeSet<MandateId>,
    /// Mandates that were revoked.
    ended: BTreeSet<MandateId>,
    /// How many agents were started again.
    pub(crate) restarts: usize,
}

/// How an agent was stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// For itself: no lift of a hold starts it again.
    Alone,
    /// With all others, under this hold.
    Under(HoldId),
}

impl Stops {
    /// Whether nobody may hear that this agent may act.
    pub(crate) fn is_stopped(&self, agent: AgentId) -> bool {
        self.stopped.contains_key(&agent) || !self.holds.is_empty()
    }

    /// Whether a stop that was told of came after this was asked, so that it is void unless it was used before.
    pub(crate) fn is_void(&self, action: &Action) -> bool {
        let used = action.allowed().is_some_and(|it| it.consumed.is_some());
        !used && self.epochs.get(&action.agent).is_some_and(|told| action.epoch < *told)
    }

    /// A command of which nobody knows what came: it may have been done.
    pub(crate) fn miss(&mut self, command: &Command) {
        match command {
            Command::RestartAgent(it) => drop(self.stopped.remove(&it.agent)),
            Command::LiftHold(it) => self.lift(it.hold, it.restart),
            Command::ChangeMandate(it) => drop(self.paused.remove(&it.mandate)),
            _ => {}
        }
    }

    /// What an answer tells, and what it may not tell by what was told before. `before` is how things stood when it was asked.
    pub(crate) fn hear(&mut self, command: &Command, reply: &Reply, before: &Standing) -> Result<(), Broken> {
        match (command, reply) {
            (Command::Authorize(_), Reply::Action(view)) => {
                self.hear_decided(view)?;
                self.hear_view(view)
            }
            (_, Reply::Action(view)) => self.hear_view(view),
            (Command::Verify(_), Reply::Verdict(verdict)) if verdict.is_valid() && !verdict.replayed => {
                let action = verdict.action.as_ref().expect("a receipt that is good is some action's");
                // The answer has its action as used.
                let is_void = self.epochs.get(&action.agent).is_some_and(|told| action.epoch < *told);
                if is_void { Err("a receipt that a stop made void was good") } else { Ok(()) }
            }
            (Command::RestartAgent(_), Reply::Agent(agent)) => self.hear_restart(agent),
            (_, Reply::Agent(agent)) => {
                self.hear_agent(agent);
                Ok(())
            }
            (_, Reply::Stopped(stopped)) => {
                if let Stopped::Agent(agent) = &**stopped {
                    self.hear_agent(agent);
                }
                Ok(())
            }
            (Command::FreezeFleet(asked), Reply::Fleet(fleet)) => {
                if let Fleet::Frozen(halted) = &**fleet {
                    let why = halted.hold.map_or(Why::Alone, Why::Under);
                    self.holds.extend(halted.hold);
                    for agent in asked.agents.iter() {
                        self.stopped.entry(*agent).or_insert(why);
                    }
                }
                Ok(())
            }
            (Command::LiftHold(asked), Reply::Lift(lift)) => {
                if let Lift::Lifted(hold) = &**lift {
                    self.lift(hold.id, asked.restart);
                }
                Ok(())
            }
            (_, Reply::Changed(held)) => self.hear_changed(held, before),
            (_, Reply::MandateEnd(id)) => {
                self.ended.insert(*id);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn lift(&mut self, hold: HoldId, restart: bool) {
        self.holds.remove(&hold);
        if restart {
            self.stopped.retain(|_, why| *why != Why::Under(hold));
        }
    }

    fn hear_epoch(&mut self, agent: &Agent) {
        let told = self.epochs.entry(agent.id).or_default();
        *told = agent.epoch.max(*told);
    }

    fn hear_agent(&mut self, agent: &Agent) {
        self.hear_epoch(agent);
        if !agent.is_active() {
            self.stopped.insert(agent.id, Why::Alone);
        }
    }

    fn hear_restart(&mut self, agent: &Agent) -> Result<(), Broken> {
        if !agent.is_active() || !self.holds.is_empty() {
            return Err("an agent was started again that is stopped still");
        }
        if self.epochs.get(&agent.id).is_some_and(|told| agent.epoch < *told) {
            return Err("a restart went back to an earlier epoch");
        }
        self.hear_epoch(agent);
        self.restarts += usize::from(self.stopped.remove(&agent.id).is_some());
        Ok(())
    }

    /// What is decided anew goes by the newest of what was told of the mandate that it is charged to.
    fn hear_decided(&self, view: &View) -> Result<(), Broken> {
        let Some(charged) = view.action.mandate.filter(|_| !view.replayed && view.verb() != Verb::Deny) else {
            return Ok(());
        };
        if self.versions.get(&charged.mandate).is_some_and(|told| charged.version < *told) {
            return Err("a mandate's version of before its change admitted something");
        }
        if self.paused.contains(&charged.mandate) || self.ended.contains(&charged.mandate) {
            return Err("a mandate that is paused or revoked admitted something");
        }
        Ok(())
    }

    fn hear_view(&mut self, view: &View) -> Result<(), Broken> {
        self.hear_epoch(&view.agent);
        if view.agent.is_active() && self.stopped.contains_key(&view.agent.id) {
            return Err("a stopped agent was told as active");
        }
        let acts = matches!(view.status(), Status::Allowed | Status::Pending);
        if acts && (self.is_void(&view.action) || self.revoked.contains(&view.action.id)) {
            return Err("what a stop made void may be acted on again");
        }
        if view.status() == Status::Revoked {
            self.revoked.insert(view.action.id);
        }
        Ok(())
    }

    fn hear_changed(&mut self, held: &Held, before: &Standing) -> Result<(), Broken> {
        let id = held.mandate.id;
        let told = self.versions.entry(id.mandate).or_default();
        if id.version < *told {
            return Err("a change of a mandate went back to an earlier version");
        }
        *told = id.version;
        if held.grant.as_ref().is_some_and(|it| it.paused) {
            self.paused.insert(id.mandate);
        } else {
            self.paused.remove(&id.mandate);
        }
        // The moves count nothing, so a period that the mandate did not speak of before has to be refused.
        let period = |it: &Mandate| it.limits().per_period.as_ref().map(|it| it.period);
        let was = before.mandate(id.mandate).and_then(|it| period(it));
        if period(&held.mandate).is_some_and(|now| was != Some(now)) {
            return Err("a mandate began to speak of a period of which nobody has counted anything");
        }
        Ok(())
    }

    /// What of it the rows deny at `now`.
    pub(crate) fn check(&self, rows: &Rows, now: Timestamp) -> Vec<String> {
        let mut faults = Vec::new();
        let mut agents = BTreeMap::new();
        for agent in rows.iter().filter_map(|(_, _, record)| Agent::peel(record)) {
            agents.insert(agent.id, agent);
            if self.stopped.contains_key(&agent.id) && agent.is_active() {
                faults.push(format!("{} was told to be stopped and is active", agent.id));
            }
            if self.epochs.get(&agent.id).is_some_and(|told| agent.epoch < *told) {
                faults.push(format!("{} is of an earlier epoch than was told", agent.id));
            }
            // Those of a removed agent ended with it.
            for grant in agent.mandates.iter().filter(|_| !agent.is_removed()) {
                let is_old = self.versions.get(&grant.id).is_some_and(|told| grant.version < *told);
                if is_old || self.ended.contains(&grant.id) || self.paused.contains(&grant.id) && !grant.paused {
                    faults.push(format!("{} is in force otherwise than was told", grant.id));
                }
            }
        }
        for workspace in rows.iter().filter_map(|(_, _, record)| Workspace::peel(record)) {
            for hold in self.holds.iter().filter(|hold| !workspace.holds.iter().any(|it| it.id == **hold)) {
                faults.push(format!("{hold} was told of, nobody lifted it, and it does not stand"));
            }
        }
        for action in rows.iter().filter_map(|(_, _, record)| Action::peel(record)) {
            let status = agents.get(&action.agent).map(|it| action.status(it, None, now));
            let acts = matches!(status, Some(Status::Allowed | Status::Pending));
            if acts && (self.is_void(action) || self.revoked.contains(&action.id)) {
                faults.push(format!("{} is {status:?}, and a stop made it void", action.id));
            }
        }
        faults
    }
}
