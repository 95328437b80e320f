//! A ledger with something of everything in it, and its evidence.

use svc_core::rules::gate::Caller;
use svc_core::state::evidence::bundle::{Report, Verifier};
use svc_core::state::gate::{OutcomeStatus, Request};
use svc_core::state::people::Settings as WorkspaceSettings;
use svc_core::store::{Clock as _, MemoryStore};
use svc_core::testing::FakeClock;
use svc_core::testing::world::{World, charge, payment, request, terms};
use svc_core::value::Timestamp;
use svc_core::value::secret::Secret;
use svc_store::evidence::Wanted;
use svc_store::keys::{dalek, receipt_signer};
use svc_store::seal::MasterKey;
use svc_store::{Gate, Settings};

/// A gate whose keys are on a ring, over what a world makes.
#[derive(Debug)]
pub struct Ledger {
    /// The world.
    pub world: World<MemoryStore>,
    /// The gate over its store.
    pub gate: Gate,
    /// An agent that may pay.
    pub agent: Caller,
}

/// A mandate for payments of up to 100.00 EUR that asks above 50.00.
const PAY: &str =
    r#"{"name":"Pay","actions":["payment"],"limits":{"currency":"EUR","perAction":10000,"askAbove":5000}}"#;

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// A ledger with one agent.
    ///
    /// # Panics
    /// Where no gate is to be had.
    #[must_use]
    pub fn new() -> Self {
        let mut store = MemoryStore::new();
        let master = MasterKey::new(Secret::new([8; 32]));
        let mut settings = WorkspaceSettings::default();
        settings.agent_velocity.other_count = 100_000;
        let mut world = World::over(store.clone(), settings);
        let clock: FakeClock = world.clock().clone();
        let path = std::path::Path::new("/nowhere");
        let signer =
            receipt_signer(&mut store, path, Some(master.clone()), clock.now(), "https://gate.example", &dalek);
        let mut settings = Settings::default();
        settings.timers = false;
        settings.vault = Some(master);
        let gate = Gate::over(store, clock, signer.expect("keys"), settings).expect("a gate");
        let agent = world.agent().with_mandate(terms(PAY)).register();
        Self { world, gate, agent }
    }

    /// A new agent's life: an allowed and settled payment whose receipt was consumed, a wait that ends, a refusal and a stop.
    pub fn live(&mut self) {
        self.agent = self.world.agent().with_mandate(terms(PAY)).register();
        let Self { world, agent, .. } = self;
        let paid = world.authorize(agent, payment(100, "EUR", "a.example"));
        let verdict = world.verify(paid.receipt().expect("a receipt"), Some(charge(100, "EUR", "a.example")));
        assert!(verdict.fault.is_none(), "{verdict:?}");
        world.settle(agent, paid.id(), OutcomeStatus::Completed, Some(100));
        world.authorize(agent, payment(9_000, "EUR", "b.example"));
        world.authorize(agent, request("crm.read"));
        world.authorize(agent, payment(100, "EUR", "c.example"));
        world.freeze(agent.agent);
        world.authorize(agent, Request::clone(&payment(1, "EUR", "a.example")));
    }

    /// The bundle of everything.
    #[must_use]
    pub fn all(&self) -> Wanted {
        Wanted {
            workspace: self.agent.workspace,
            from: Timestamp::default(),
            to: None,
            since: None,
            start: None,
            agent: None,
            redact: false,
        }
    }

    /// A bundle's text.
    ///
    /// # Panics
    /// Where it is refused or cut.
    #[must_use]
    pub fn bundle(&self, wanted: &Wanted) -> Vec<u8> {
        let bundle = self.gate.bundle(wanted).expect("a bundle");
        bundle.flat_map(|it| it.expect("a piece")).collect()
    }
}

/// What a bundle's bytes come to.
pub fn check(bytes: &[u8]) -> Report {
    let mut verifier = Verifier::default();
    for chunk in bytes.chunks(997) {
        verifier.feed(chunk);
    }
    verifier.finish()
}
