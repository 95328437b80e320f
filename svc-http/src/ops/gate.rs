//! The gate's own routes: an agent asks, reads, settles; a stranger verifies.

use svc_core::answer::Decided;
use svc_core::command::Operation;
use svc_core::engine::Failure;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::callback::RegisterCallback;
use svc_core::rules::gate::ran::ReportRun;
use svc_core::rules::gate::settle::Settle;
use svc_core::rules::gate::verify::{Fault, Verdict, Verify};
use svc_core::rules::gate::{Caller as AgentCaller, caller_agent};
use svc_core::rules::gateway::payer::CallKey;
use svc_core::rules::read::{View, check_key, get_action};
use svc_core::state::gate::receipt::{KeyFault, parse};
use svc_core::state::gate::{OutcomeStatus, Request};
use svc_core::state::people::Credential;
use svc_core::store::CommitError;
use svc_core::value::digest::Digest;
use svc_core::value::id::ActionId;
use svc_store::StoreError;

use super::{Caller, GateService, log, recorded, refusal};
use crate::answer::Answer;
use crate::dispatch::{Call, Remembered, Shown};
use crate::routes::{Auth, Op};
use crate::wire::{action_request, callback, decision, run, settlement, verdict};

/// How long the key set may be kept by caches.
const JWKS_CACHE: &str = "max-age=300";

/// An agent, by the key with this digest.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub(super) caller: AgentCaller,
    pub(super) digest: Digest,
}

impl GateService {
    async fn submit<O: Operation>(&self, known: &Known, operation: O) -> Result<O::Answer, Refusal>
    where
        O::Answer: Send,
    {
        self.gate.submit_before_park(operation).await.map_err(|failure| self.told(known, failure))
    }

    /// What a known caller is told of a failure.
    fn told(&self, known: &Known, failure: Failure<StoreError>) -> Refusal {
        self.forgetting(&known.digest, refusal(failure))
    }

    /// What the key with this digest is told. One that has ended, by itself or with its agent, is known no longer: from now
    /// on it counts against its address and uses up no agent's rate.
    fn forgetting(&self, digest: &Digest, told: Refusal) -> Refusal {
        if matches!(told.kind(), Kind::InvalidApiKey | Kind::AgentNotFound) {
            self.gate.forget_binding(digest);
        }
        told
    }

    /// A fault of a request by a key that memory knows: a key that was revoked since is told that, not the fault.
    fn fault(&self, known: &Known, fault: Refusal) -> Refusal {
        let checked = self.gate.read(|scope| check_key(scope, &known.digest));
        checked.err().map_or(fault, |failure| self.told(known, failure))
    }

    /// What the key with this digest is told where a removed agent is told that it is stopped, on the record.
    pub(super) async fn as_stopped(&self, digest: &Digest, told: Refusal) -> Refusal {
        let told = match (told.kind(), told.agent_id()) {
            (Kind::AgentNotFound, Some(agent)) => Refusal::agent_stopped(agent, None::<&str>),
            _ => told,
        };
        if told.kind() != Kind::AgentStopped {
            return told;
        }
        match self.gate.binding(digest).map_err(refusal) {
            Ok(Some(binding)) => recorded(&self.gate, &CallKey { row: Credential::id_of(digest), binding }, told).await,
            Ok(None) => Refusal::invalid_api_key(),
            Err(failed) => failed,
        }
    }

    fn action_id(&self, known: &Known, call: &Call) -> Result<ActionId, Refusal> {
        ActionId::parse(call.id()).map_err(|_| self.fault(known, Refusal::not_found()))
    }

    /// What the text alone tells of a receipt: a question to the gate, or why it is no good.
    fn look_at(&self, asked: verdict::Asked) -> Result<Verify, Fault> {
        let parsed = parse(&asked.receipt).map_err(|_| Fault::Malformed)?;
        let signer = &**self.gate.signer();
        let looked = || self.keys.receipts(signer).verify_own(&parsed, signer);
        let signed_by = match looked() {
            // Another server may sign with a key that has just followed.
            Err(KeyFault::Unknown) if self.gate.look_for_keys().unwrap_or(false) => looked(),
            signed_by => signed_by,
        };
        let signed_by = signed_by.map_err(|fault| match fault {
            KeyFault::Unknown => Fault::UnknownKey,
            KeyFault::BadSignature => Fault::BadSignature,
        })?;
        let claims = parsed.claims();
        if claims.issuer != signer.issuer() {
            return Err(Fault::WrongIssuer);
        }
        let digest = claims.digest.strip_prefix("sha256:").and_then(|hex| Digest::parse(hex).ok());
        Ok(Verify {
            receipt: claims.receipt,
            digest: digest.ok_or(Fault::Malformed)?,
            charge: asked.charge,
            kind: asked.kind,
            key: asked.key,
            body: asked.body,
            signed_by,
        })
    }

    /// That the caller's key is in force.
    pub(super) fn in_force(&self, known: &Known) -> Result<(), Refusal> {
        let checked = self.gate.read(|scope| caller_agent(scope, &known.caller).map(drop));
        checked.map_err(|failure| self.told(known, failure))
    }

    /// Asks the gate.
    pub(super) async fn decide(&self, known: &Known, request: Request) -> Result<Decided, Refusal> {
        // Without entropy there is no salt that hides what was asked, so there is no decision.
        let salt = self.gate.fresh_salt().map_err(refusal)?;
        let decided = self.submit(known, Authorize::new(known.caller, request, salt)).await?;
        if !decided.is_replay() {
            self.metrics.decided(decided.verb());
        } else if decided.view().untold().is_some() {
            let view = View { replayed: true, ..self.view(known, decided.id()).await? };
            return Ok(Decided::of(view, &**self.gate.signer()));
        }
        Ok(decided)
    }

    /// One of the caller's own actions.
    pub(super) async fn action(&self, known: &Known, id: ActionId) -> Result<Decided, Refusal> {
        Ok(Decided::of(self.view(known, id).await?, &**self.gate.signer()))
    }

    async fn view(&self, known: &Known, id: ActionId) -> Result<View, Refusal> {
        let read = || self.gate.read(|scope| get_action(scope, &known.caller, id));
        self.seen(|| read().map_err(|failure| self.told(known, failure))).await
    }

    /// Records what became of an action.
    pub(super) async fn settled(
        &self,
        known: &Known,
        action: ActionId,
        status: OutcomeStatus,
        amount: Option<i64>,
    ) -> Result<Decided, Refusal> {
        self.submit(known, Settle { caller: known.caller, action, status, amount }).await
    }

    pub(super) async fn agent_authorize(&self, known: Known, call: Call) -> Result<Answer, Refusal> {
        let request = action_request::read(&call.headers, &call.body).map_err(|fault| self.fault(&known, fault))?;
        let decided = self.decide(&known, request).await?;
        let answer = Answer::json(decision::write(&decided)?);
        Ok(if decided.is_replay() { answer.replayed() } else { answer })
    }

    pub(super) async fn agent_read_action(&self, known: Known, call: Call) -> Result<Answer, Refusal> {
        let id = self.action_id(&known, &call)?;
        Ok(Answer::json(decision::write(&self.action(&known, id).await?)?))
    }

    pub(super) async fn agent_register_callback(&self, known: Known, call: Call) -> Result<Answer, Refusal> {
        let url = callback::read(&call.body, &self.outbound).map_err(|fault| self.fault(&known, fault))?;
        let action = self.action_id(&known, &call)?;
        let callback = self.submit(&known, RegisterCallback { caller: known.caller, action, url }).await?;
        Ok(Answer::json(callback::write(action, &callback)?))
    }

    pub(super) async fn agent_settle(&self, known: Known, call: Call) -> Result<Answer, Refusal> {
        let (status, amount) = settlement::read(&call.body).map_err(|fault| self.fault(&known, fault))?;
        let action = self.action_id(&known, &call)?;
        let decided = self.settled(&known, action, status, amount).await?;
        Ok(Answer::json(decision::write(&decided)?))
    }

    pub(super) async fn agent_report_run(&self, known: Known, call: Call) -> Result<Answer, Refusal> {
        let unasked = run::read(&call.body).map_err(|fault| self.fault(&known, fault))?;
        let action = self.action_id(&known, &call)?;
        let decided = self.submit(&known, ReportRun { caller: known.caller, action, unasked }).await?;
        Ok(Answer::json(decision::write(&decided)?))
    }

    pub(super) async fn verify_receipt(&self, call: Call) -> Result<Answer, Refusal> {
        let asked = verdict::read(&call.headers, &call.body)?;
        let verdict = match self.look_at(asked) {
            Ok(question) => self.gate.submit_before_park(question).await.map_err(unsure)?,
            Err(fault) => Verdict::no(fault),
        };
        let answer = Answer::json(verdict::write(&verdict)?);
        Ok(if verdict.replayed { answer.replayed() } else { answer })
    }

    pub(super) async fn public_keys(&self, _call: Call) -> Result<Answer, Refusal> {
        Ok(Answer::json(self.keys.jwks(&**self.gate.signer(), self.gate.now())).cached(JWKS_CACHE))
    }
}

impl Remembered<GateService> for Caller {
    async fn in_force(&self, service: &GateService, shown: &Shown<'_>, op: Op) -> Result<(), Refusal> {
        match (self, op) {
            (Self::Agent(known), _) => match service.in_force(known) {
                Err(told) if shown.auth == Auth::McpAgent => Err(service.as_stopped(&known.digest, told).await),
                told => told,
            },
            (Self::Payer(key), Op::Gateway(op)) => match service.may(key, op).await {
                Err(told) => Err(service.forgetting(&Digest::of(shown.credential), told)),
                Ok(()) => Ok(()),
            },
            // Only routes of model traffic take such a key.
            (Self::Payer(_), _) => Err(Refusal::internal()),
            // Memory tells nothing of these: each was looked up for this very request.
            (Self::Key(_) | Self::Token(_) | Self::Session(_) | Self::Member(_), _) => Ok(()),
        }
    }
}

/// The same for verify, where an unknown outcome has its own advice: the receipt may be spent.
fn unsure(failure: Failure<StoreError>) -> Refusal {
    if matches!(failure, Failure::Commit(CommitError::Unknown(_))) {
        log(&failure);
        return Refusal::verify_unknown();
    }
    refusal(failure)
}
