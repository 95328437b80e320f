//! Runs drills: a canary asks, is frozen, and each place that could let it act is tried through the gate itself.
//!
//! The receipt that is tried is of an action that stood as allowed to the canary before its freeze. A canary has no callback, so
//! that nobody outside is called: that is tried by what it would tell. A new place is a [`DrillPoint`] and a line of
//! [`Running::run`].

use std::sync::Arc;

use svc_core::answer::Decided;
use svc_core::command::Operation;
use svc_core::dialect::Body;
use svc_core::dlp::Findings;
use svc_core::engine::Failure;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::connect::check_willing;
use svc_core::rules::edge::proxied::reach;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::decide::check_waits;
use svc_core::rules::gate::drill::{EndDrill, FreezeCanary, Started};
use svc_core::rules::gate::verify::{Fault, Verify};
use svc_core::rules::gateway::admit::{Admission, AdmitCall, admit_call};
use svc_core::rules::read::get_action;
use svc_core::state::gate::{Action, Code, DrillPoint, DrillStep, Request, Verb};
use svc_core::state::gateway::Dialect;
use svc_core::state::people::{DataLoss, Plans};
use svc_core::turn::Scope;
use svc_core::value::Timestamp;
use svc_core::value::digest::Digest;
use svc_core::value::domain::Domain;
use svc_core::value::id::{ActionId, ApprovalId, ReceiptId};
use svc_core::value::money::Amount;
use svc_core::value::text::Label;
use svc_store::{Gate, StoreError};

use crate::ops::log;

/// A call that both shapes take.
const CALL: &[u8] = br#"{"model":"drill","max_tokens":1,"messages":[{"role":"user","content":"a drill"}]}"#;

/// Runs a drill to its end. One that fails on the way is ended by its timer, with its canary left frozen.
pub(crate) async fn run(gate: Gate, started: Started) {
    if let Err(failure) = (Running { gate, started }).run().await {
        log(&failure);
    }
}

struct Running {
    gate: Gate,
    started: Started,
}

impl Running {
    async fn run(&self) -> Result<(), Failure<StoreError>> {
        let drill = self.started.drill.id;
        let begun = self.gate.now();
        let before = self.ask().await?;
        let got = word(&before);
        let mut steps = vec![self.step(DrillPoint::Authorize, "approval_required|deny", got, begun)];
        if let Some(first) = steps.first_mut() {
            first.ok = before.verb() != Verb::Allow;
        }
        let frozen = self.submit(FreezeCanary(drill)).await?;
        let since = frozen.frozen_at.unwrap_or(begun);
        let asked = self.gate.now();
        let after = self.ask().await?;
        steps.push(self.step(DrillPoint::Authorize, "agent_frozen", word(&after), asked));
        if let Some(approval) = before.action().approval {
            let asked = self.gate.now();
            let got = self.approve(approval)?;
            steps.push(self.step(DrillPoint::Approve, Kind::NotAllowed.row().type_, got, asked));
        }
        let asked = self.gate.now();
        let got = self.verify(&self.started.allowed).await?;
        steps.push(self.step(DrillPoint::Verify, Fault::Revoked.as_str(), got, asked));
        let asked = self.gate.now();
        let got = self.told(before.id())?;
        steps.push(self.step(DrillPoint::Callback, Verb::Deny.as_str(), got, asked));
        for (point, dialect) in [(DrillPoint::Chat, Dialect::Chat), (DrillPoint::Messages, Dialect::Messages)] {
            let asked = self.gate.now();
            let got = self.call(dialect)?;
            steps.push(self.step(point, Kind::AgentStopped.row().type_, got, asked));
        }
        let asked = self.gate.now();
        let through_tool = self.ask().await?;
        steps.push(self.step(DrillPoint::Mcp, "agent_frozen", word(&through_tool), asked));
        let asked = self.gate.now();
        let got = self.reach()?;
        steps.push(self.step(DrillPoint::McpProxy, Kind::AgentStopped.row().type_, got, asked));
        let asked = self.gate.now();
        let got = self.renew()?;
        steps.push(self.step(DrillPoint::OauthRefresh, Kind::InvalidGrant.row().type_, got, asked));
        let contained_ms = self.gate.now().since(since).as_millis().max(0);
        self.submit(EndDrill { drill, steps, contained_ms }).await.map(drop)
    }

    async fn submit<O: Operation>(&self, operation: O) -> Result<O::Answer, Failure<StoreError>> {
        self.gate.submit(operation).await
    }

    fn step(&self, point: DrillPoint, expected: &str, got: &str, since: Timestamp) -> DrillStep {
        let ms = self.gate.now().since(since).as_millis().max(0);
        DrillStep { point, expected: expected.into(), got: got.into(), ms, ok: got == expected }
    }

    /// Asks for a payment of the smallest amount to nobody.
    async fn ask(&self) -> Result<Decided, Failure<StoreError>> {
        let lost = |_| Failure::Refused(Refusal::internal());
        let payee = (Label::parse("drill").map_err(lost)?, Domain::parse("drill.invalid").map_err(lost)?);
        let amount = Amount::new(1).map_err(lost)?;
        let request = Request::payment("a drill", amount, self.started.currency, payee).map_err(lost)?;
        let salt = self.gate.fresh_salt()?;
        self.submit(Authorize::new(self.started.canary, request, salt)).await
    }

    /// Whether a person's yes to what the canary asked would still be heard: what each decision checks first.
    fn approve(&self, approval: ApprovalId) -> Result<&'static str, Failure<StoreError>> {
        let workspace = self.started.drill.workspace;
        match self.gate.read(|scope| check_waits(scope, workspace, approval)) {
            Ok(()) => Ok("decidable"),
            Err(Failure::Refused(refusal)) => Ok(refusal.kind().row().type_),
            Err(failure) => Err(failure),
        }
    }
}

impl Running {
    /// What is said of the receipt of what was allowed to the canary, whose signature is good.
    async fn verify(&self, action: &Action) -> Result<&'static str, Failure<StoreError>> {
        let charge = None;
        let (receipt, digest, body) = (ReceiptId::from(action.id), action.digest, Digest::of("a drill"));
        let verify = Verify { receipt, digest, charge, kind: None, key: None, body, signed_by: None };
        let verdict = self.submit(verify).await?;
        Ok(verdict.fault.map_or("valid", Fault::as_str))
    }

    /// What a callback would be told of what the canary asked.
    fn told(&self, action: ActionId) -> Result<&'static str, Failure<StoreError>> {
        let canary = self.started.canary;
        Ok(self.gate.read(|scope| get_action(scope, &canary, action))?.verb().as_str())
    }
}

impl Running {
    /// What is said of a model call with the canary's key, which goes no further than being admitted and leaves nothing: what
    /// both routes ask before anything else.
    fn call(&self, dialect: Dialect) -> Result<&'static str, Failure<StoreError>> {
        let body = Body::read(dialect, CALL).map_err(Failure::Refused)?;
        let asked = AdmitCall {
            caller: self.started.key.clone(),
            demand: Arc::new(body.demand()),
            class: None,
            task: None,
            objective: None,
            oversight: false,
            session: None,
            health: Arc::default(),
            findings: Findings::default(),
            scanned_under: DataLoss::Off,
            plans: Plans::default(),
            total_ms: 0,
            dry: true,
            count: false,
        };
        match self.gate.read(|scope| admit_call(scope, &asked)) {
            Ok(Admission::Refused(refusal)) | Err(Failure::Refused(refusal)) => Ok(refusal.kind().row().type_),
            Ok(Admission::Admitted(_) | Admission::Rescan(_)) => Ok("admitted"),
            Err(failure) => Err(failure),
        }
    }
}

impl Running {
    /// What is said of a tool of an MCP server behind this one, before anything is sent there.
    fn reach(&self) -> Result<&'static str, Failure<StoreError>> {
        match self.gate.read(|scope| reach(scope, &self.started.key, "drill")) {
            Ok(_) => Ok("reached"),
            Err(Failure::Refused(refusal)) => Ok(refusal.kind().row().type_),
            Err(failure) => Err(failure),
        }
    }

    /// What is said of a client that an owner connected to the canary and that renews its tokens.
    fn renew(&self) -> Result<&'static str, Failure<StoreError>> {
        let Started { drill, owner, .. } = &self.started;
        let asked =
            |scope: &mut Scope<'_>| check_willing(scope, drill.workspace, drill.canary, *owner, drill.started_at);
        match self.gate.read(asked) {
            Ok(()) => Ok("renewed"),
            Err(Failure::Refused(refusal)) => Ok(refusal.kind().row().type_),
            Err(failure) => Err(failure),
        }
    }
}

/// What came of asking.
fn word(decided: &Decided) -> &'static str {
    match decided.verb() {
        Verb::Allow => "allow",
        Verb::Ask => "approval_required",
        Verb::Deny if decided.reasons().iter().any(|it| it.code == Code::AgentFrozen) => "agent_frozen",
        Verb::Deny => "deny",
    }
}
