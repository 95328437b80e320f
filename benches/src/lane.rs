//! The lane's work without its thread: batches of authorizations over a session, driven as the gate drives them.

use svc_core::command::{Command, Reply};
use svc_core::rules::gate::Caller;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::gate::Verb;
use svc_core::state::people::Settings;
use svc_core::store::Store;
use svc_core::testing::World;
use svc_core::testing::world::{key, payment, terms};
use svc_core::value::Span;
use svc_core::value::digest::Digest;
use svc_core::value::text::Label;

use crate::Fault;
use crate::gate::{MANDATES, MERCHANTS, mandate_json, merchant};

/// Agents that are registered in one commit.
const REGISTERED_AT_ONCE: usize = 64;
/// Between two actions of one agent.
const MILLIS_BETWEEN: usize = 6_000;

/// A workspace whose agents are asked for in turn.
#[derive(Debug)]
pub struct Lane<S> {
    /// The workspace.
    pub world: World<S>,
    callers: Vec<Caller>,
    asked: u64,
    active: usize,
    /// Whether every request carries an idempotency key.
    pub keyed: bool,
}

/// Settings under which none of these payments is held up: what is measured are allows.
#[must_use]
pub fn roomy() -> Settings {
    let mut settings = Settings::default();
    settings.agent_velocity.other_count = 1_000_000;
    settings.agent_velocity.minutes = 1;
    settings
}

impl<S: Store> Lane<S> {
    /// A workspace over an empty store, without agents.
    pub fn over(store: S) -> Self {
        let mut world = World::over(store, roomy());
        // As the one lane of a store does.
        world.engine().place_at_once(true);
        Self { world, callers: Vec::new(), asked: 0, active: 1, keyed: false }
    }

    /// Registers agents until there are so many.
    ///
    /// # Errors
    /// One is refused, or the store fails.
    pub fn grow_to(&mut self, agents: usize) -> Result<(), Fault> {
        let mandates: Vec<Content> =
            (0..MANDATES).map(|it| Content::Whole(Box::new(terms(&mandate_json(it, None))))).collect();
        while self.callers.len() < agents {
            let count = REGISTERED_AT_ONCE.min(agents - self.callers.len());
            let mut commands = Vec::with_capacity(count);
            for number in self.callers.len()..self.callers.len() + count {
                let digest = Digest::of(format!("agent {number}"));
                let name = Label::parse("Agent").map_err(|it| format!("{it:?}"))?;
                let key = NewKey { digest, prefix: "ask_00000000".into() };
                let made = RegisterAgent::new(self.world.workspace(), name, key);
                commands.push(Command::from(RegisterAgent { mandates: mandates.clone(), ..made }));
            }
            for reply in self.world.engine().execute_batch(commands)? {
                let Reply::Registered(made) = reply? else { return Err("another reply".into()) };
                self.callers.push(Caller::of(&made.binding)?);
            }
        }
        Ok(())
    }

    /// The next requests: agents, mandates, merchants and amounts in turn, everything hashed that is hashed off the lane.
    pub fn commands(&mut self, count: usize) -> Vec<Command> {
        self.commands_of(self.callers.len(), count)
    }

    /// The same from the first `active` agents alone.
    pub fn commands_of(&mut self, active: usize, count: usize) -> Vec<Command> {
        let mut commands = Vec::with_capacity(count);
        self.active = active.max(1);
        for _ in 0..count {
            self.asked += 1;
            let asked = usize::try_from(self.asked).unwrap_or(0);
            // 619 is prime: every agent has its turn, and neighbours in time are none in the store.
            let Some(caller) = self.callers.get(asked * 619 % active.max(1)).copied() else { break };
            let merchant = merchant(asked / 7 % MANDATES, asked / 3 % MERCHANTS);
            let mut request = payment(101 + i64::try_from(asked % 30_011).unwrap_or(0), "EUR", &merchant);
            if self.keyed {
                request = request.keyed(key(&format!("order-{:x}", Digest::of(asked.to_string()).bits())));
            }
            commands.push(self.world.command(&caller, request).into());
        }
        commands
    }

    /// Decides one batch and makes it durable. Time goes by so that an agent does a hundred things in ten minutes: ten times
    /// what the velocity line lets pass where nothing else is set.
    ///
    /// # Errors
    /// The store fails, or something is not allowed.
    pub fn decide(&mut self, commands: Vec<Command>) -> Result<(), Fault> {
        let millis = i64::try_from(commands.len() * MILLIS_BETWEEN / self.active)?;
        self.world.clock().advance(Span::millis(millis));
        for reply in self.world.engine().execute_batch(commands)? {
            match reply? {
                Reply::Action(view) if view.verb() == Verb::Allow => {}
                other => return Err(format!("not allowed: {other:?}").into()),
            }
        }
        Ok(())
    }
}
