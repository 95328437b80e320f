//! The gate behind the routes: each reads its wire form, runs one operation and writes the answer.
//!
//! **Invariant:** no rule is decided here. Whatever stops an operation is a refusal, and its cause is logged, not told.

use std::error::Error;

use svc_core::command::Operation;
use svc_core::engine::Failure;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::callback::RegisterCallback;
use svc_core::rules::gate::settle::Settle;
use svc_core::rules::gate::verify::{Fault, Verdict, Verify};
use svc_core::rules::read::{check_key, get_action};
use svc_core::state::edge::outbound::Outbound;
use svc_core::state::gate::receipt::{KeyFault, PublicKeys, jwks_json, parse};
use svc_core::state::people::Binding;
use svc_core::store::{CommitError, Key, Range, Record};
use svc_core::value::digest::Digest;
use svc_core::value::id::ActionId;
use svc_core::value::link::Index;
use svc_core::value::{Id, Span, Timestamp};
use svc_store::{Gate, StoreError};

use crate::answer::Answer;
use crate::dispatch::{Call, Service};
use crate::routes::Auth;
use crate::wire::{action_request, callback, decision, settlement, verdict};

/// How long the key set may be kept by caches.
const JWKS_CACHE: &str = "max-age=300";

/// How far a node's clock may be behind the newest record of the store.
const CLOCK_SLACK: Span = Span::seconds(5);
/// Workspaces whose newest record is looked at.
const WORKSPACES_LOOKED_AT: usize = 64;

/// The gate as a [`Service`].
#[derive(Debug)]
pub struct GateService {
    gate: Gate,
    keys: PublicKeys,
    jwks: String,
    outbound: Outbound,
}

/// Who calls: an agent, by the key with this digest.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    caller: Caller,
    digest: Digest,
}

impl GateService {
    /// The gate, the keys that its receipts are checked with, and what callbacks may name.
    #[must_use]
    pub fn new(gate: Gate, keys: PublicKeys, outbound: Outbound) -> Self {
        let jwks = jwks_json(&keys);
        Self { gate, keys, jwks, outbound }
    }

    /// Whether the store answers and this node's clock is not behind what it has seen, by more than nodes may differ: what
    /// such a node decides would count towards windows and periods that are over.
    fn clock_is_right(&self) -> Result<bool, Failure<StoreError>> {
        let mut newest = Timestamp::default();
        for workspace in self.gate.scan(&Range::all(Index::Workspaces, 0, WORKSPACES_LOOKED_AT))? {
            let Key::Workspace(id) = workspace.row.key else { continue };
            let last = Range { newest_first: true, ..Range::all(Index::LedgerOf, id.bits(), 1) };
            for found in self.gate.scan(&last)? {
                if let Some(Record::Entry(entry)) = &found.row.record {
                    newest = newest.max(entry.at);
                }
            }
        }
        Ok(self.gate.now() >= newest.minus(CLOCK_SLACK))
    }

    async fn submit<O: Operation>(&self, known: &Known, operation: O) -> Result<O::Answer, Refusal>
    where
        O::Answer: Send,
    {
        self.gate.submit(operation).await.map_err(|failure| self.told(known, failure))
    }

    /// What a known caller is told of a failure. One whose key has ended is known no longer: from now on it counts against
    /// its address and uses up no agent's rate.
    fn told(&self, known: &Known, failure: Failure<StoreError>) -> Refusal {
        let told = refusal(failure);
        if told.kind() == Kind::InvalidApiKey {
            self.gate.forget_binding(&known.digest);
        }
        told
    }

    /// A fault of a request by a key that memory knows: a key that was revoked since is told that, not the fault.
    fn fault(&self, known: &Known, fault: Refusal) -> Refusal {
        let checked = self.gate.read(|scope| check_key(scope, &known.digest));
        checked.err().map_or(fault, |failure| self.told(known, failure))
    }

    fn action_id(&self, known: &Known, call: &Call) -> Result<ActionId, Refusal> {
        ActionId::parse(call.id()).map_err(|_| self.fault(known, Refusal::not_found()))
    }

    /// What the text alone tells of a receipt: a question to the gate, or why it is no good.
    fn look_at(&self, asked: verdict::Asked) -> Result<Verify, Fault> {
        let parsed = parse(&asked.receipt).map_err(|_| Fault::Malformed)?;
        self.keys.verify(&parsed).map_err(|fault| match fault {
            KeyFault::Unknown => Fault::UnknownKey,
            KeyFault::BadSignature => Fault::BadSignature,
        })?;
        let claims = parsed.claims();
        if claims.issuer != self.gate.signer().issuer() {
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
        })
    }
}

impl Service for GateService {
    type Caller = Known;

    fn known(&self, auth: Auth, credential: &str) -> Option<Known> {
        let digest = Digest::of(credential);
        self.gate.known_binding(&digest).and_then(|binding| known(auth, &binding, digest).ok())
    }

    async fn resolve(&self, auth: Auth, credential: &str) -> Result<Known, Refusal> {
        let digest = Digest::of(credential);
        let binding = self.gate.read(|scope| check_key(scope, &digest)).map_err(refusal)?;
        // Remembered only now, so that a stranger's guesses fill no memory.
        self.gate.binding(&digest).map_err(refusal)?;
        known(auth, &binding, digest)
    }

    fn rate_bits(caller: &Known) -> u128 {
        caller.caller.agent.bits()
    }

    async fn is_ready(&self) -> bool {
        self.clock_is_right().is_ok_and(|right| right)
    }

    async fn authorize(&self, known: Known, call: Call) -> Result<Answer, Refusal> {
        let request = action_request::read(&call.headers, &call.body).map_err(|fault| self.fault(&known, fault))?;
        // Without entropy there is no salt that hides what was asked, so there is no decision.
        let salt = self.gate.fresh_salt().map_err(refusal)?;
        let decided = self.submit(&known, Authorize::new(known.caller, request, salt)).await?;
        let answer = Answer::json(decision::write(&decided)?);
        Ok(if decided.is_replay() { answer.replayed() } else { answer })
    }

    async fn read_action(&self, known: Known, call: Call) -> Result<Answer, Refusal> {
        let id = self.action_id(&known, &call)?;
        let view = self
            .gate
            .read(|scope| get_action(scope, &known.caller, id))
            .map_err(|failure| self.told(&known, failure))?;
        let decided = svc_core::answer::Decided::of(view, &**self.gate.signer());
        Ok(Answer::json(decision::write(&decided)?))
    }

    async fn register_callback(&self, known: Known, call: Call) -> Result<Answer, Refusal> {
        let url = callback::read(&call.body, &self.outbound).map_err(|fault| self.fault(&known, fault))?;
        let action = self.action_id(&known, &call)?;
        let callback = self.submit(&known, RegisterCallback { caller: known.caller, action, url }).await?;
        Ok(Answer::json(callback::write(action, &callback)?))
    }

    async fn settle(&self, known: Known, call: Call) -> Result<Answer, Refusal> {
        let (status, amount) = settlement::read(&call.body).map_err(|fault| self.fault(&known, fault))?;
        let action = self.action_id(&known, &call)?;
        let decided = self.submit(&known, Settle { caller: known.caller, action, status, amount }).await?;
        Ok(Answer::json(decision::write(&decided)?))
    }

    async fn verify(&self, call: Call) -> Result<Answer, Refusal> {
        let asked = verdict::read(&call.headers, &call.body)?;
        let verdict = match self.look_at(asked) {
            Ok(question) => self.gate.submit(question).await.map_err(unsure)?,
            Err(fault) => Verdict::no(fault),
        };
        let answer = Answer::json(verdict::write(&verdict)?);
        Ok(if verdict.replayed { answer.replayed() } else { answer })
    }

    async fn keys(&self, _call: Call) -> Result<Answer, Refusal> {
        Ok(Answer::json(self.jwks.clone()).cached(JWKS_CACHE))
    }
}

/// Whom a binding names on a route of this kind.
fn known(auth: Auth, binding: &Binding, digest: Digest) -> Result<Known, Refusal> {
    match auth {
        Auth::Agent => Ok(Known { caller: Caller::of(binding)?, digest }),
        Auth::Open | Auth::Workspace | Auth::WorkspaceAdmin | Auth::Token => Err(Refusal::unauthenticated()),
    }
}

/// What a caller is told of a failure; its cause is logged.
fn refusal(failure: Failure<StoreError>) -> Refusal {
    let told = match &failure {
        Failure::Refused(refusal) => return refusal.clone(),
        Failure::Load(_) | Failure::Contended | Failure::Commit(CommitError::Unavailable(_)) => Refusal::not_ready(),
        Failure::Commit(CommitError::Rejected(_) | CommitError::Unknown(_)) => Refusal::internal(),
    };
    log(&failure);
    told
}

/// The same for verify, where an unknown outcome has its own advice: the receipt may be spent.
fn unsure(failure: Failure<StoreError>) -> Refusal {
    if matches!(failure, Failure::Commit(CommitError::Unknown(_))) {
        log(&failure);
        return Refusal::verify_unknown();
    }
    refusal(failure)
}

/// Logs a failure with everything that led to it.
fn log(failure: &Failure<StoreError>) {
    let mut chain = failure.to_string();
    let mut cause = failure.source();
    while let Some(error) = cause {
        chain.push_str(": ");
        chain.push_str(&error.to_string());
        cause = error.source();
    }
    tracing::error!(error = %chain, "an operation failed");
}
