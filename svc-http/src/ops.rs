//! What stands behind the routes: each reads its wire form, runs one operation and writes the answer.
//!
//! **Invariant:** no rule is decided here. Whatever stops an operation is a refusal, and its cause is logged, not told.

mod access;
mod actions;
mod agents;
mod applications;
mod approvals;
mod aside;
mod budgets;
mod caller;
mod connections;
mod drills;
mod events;
mod evidence;
mod gate;
mod gateway;
mod hooks;
mod integrations;
pub(crate) mod mcp;
mod mcp_servers;
mod me;
mod members;
mod named;
mod oauth;
mod own_secret;
mod reports;
mod routing;
mod settings;
mod sign_in;
mod single_sign_on;
mod skipped;
mod spent;
mod stops;
mod suggested;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use svc_core::command::Operation;
use svc_core::engine::Failure;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::Caller as AgentCaller;
use svc_core::rules::gate::asked::reach_to;
use svc_core::rules::gateway::admit::Admission;
use svc_core::rules::gateway::payer::CallKey;
use svc_core::rules::gateway::refuse::RefuseStopped;
use svc_core::rules::people::applications::is_not_own;
use svc_core::rules::people::by::{By, KeyCaller, TokenCaller, check_token, person_in, signed_in};
use svc_core::rules::people::sessions::{SEEN_SLACK, TouchSession};
use svc_core::rules::read::{Untold, View, check_key};
use svc_core::state::edge::outbound::Outbound;
use svc_core::state::gate::receipt::PublicKeys;
use svc_core::state::people::{Credential, KeyScope, Plans, Reach, Right, Session};
use svc_core::store::{CommitError, Range};
use svc_core::turn::{Halt, Scope};
use svc_core::value::digest::Digest;
use svc_core::value::id::{ApplicationId, ApprovalId, WorkspaceId};
use svc_core::value::{Id, Timestamp};
use svc_store::{Gate, Repeated, StoreError, with_causes};

use self::aside::Aside;
pub use self::caller::{Caller, Member};
pub use self::gate::Known;
pub(crate) use self::gateway::{CallOf, RunningCalls};
pub use self::hooks::Billing;
pub(crate) use self::oauth::Documents;
use crate::answer::Answer;
use crate::dispatch::{Call, Named, Service, Shown, Unsigned};
use crate::headers::Site;
use crate::health::Health;
use crate::identity::Providers;
use crate::inbound::key_sets::KeySets;
use crate::keys::Keys;
use crate::live::Live;
use crate::mail::Mailer;
use crate::metrics::Metrics;
use crate::outbound::{SystemResolver, Trust};
use crate::passwords::Passwords;
use crate::rate_limit::{RateLimiter, Rates};
use crate::routes::{Auth, Op};
use crate::seen::Seen;
use crate::shares::Shares;
use crate::slack::Slack;
use crate::telemetry::Telemetry;
use crate::trace::Trace;
use crate::upstream::{Allowed, Times, Upstreams};
use crate::wrong_sign_ins::WrongSignIns;

/// The gate as a [`Service`].
#[derive(Debug)]
pub struct GateService {
    /// The gate.
    pub gate: Gate,
    keys: Keys,
    outbound: Outbound,
    /// What judges addresses of providers of identity and of their keys.
    pub(crate) strangers: Outbound,
    /// Those who watch.
    pub(crate) live: Arc<Live>,
    /// The address that links are made with, without a slash at its end.
    pub base_url: String,
    /// What plans allow.
    pub plans: Plans,
    /// Who calls providers of models.
    pub upstreams: Upstreams,
    /// How the providers fare that this node calls.
    pub health: Arc<Health>,
    /// Providers as they are called.
    targets: Arc<gateway::Targets>,
    /// What is looked for in what goes out, as last heard.
    data_loss: gateway::DataLossSettings,
    /// Calls of models and of tools under way.
    pub(crate) running: Arc<RunningCalls>,
    /// What is counted.
    pub(crate) metrics: Arc<Metrics>,
    /// Who is told of model calls.
    pub(crate) telemetry: Arc<Telemetry>,
    /// Tools of other servers, called through this one.
    pub(crate) proxied: Arc<mcp::Proxied>,
    /// What reads very many rows.
    aside: Aside,
    /// The same for what agents have spent, where neither reports nor what agents ask for hold anybody up.
    spent: Arc<spent::SpentSums>,
    /// Places for evidence bundles.
    bundles: Shares<u128>,
    seen: Seen<Timestamp>,
    site: Site,
    passwords: Passwords,
    wrong: WrongSignIns,
    /// Redirect URIs that the operator admits beside https and loopback.
    pub allow_redirects: Vec<Box<str>>,
    /// Whether OAuth clients may name themselves by the address of their metadata.
    pub client_documents: bool,
    /// How often a client may call the token endpoint.
    pub oauth_clients: RateLimiter,
    /// What billing is told by.
    pub billing: Billing,
    /// Who mails; `None` where no mail is sent.
    pub mailer: Option<Arc<Mailer>>,
    /// How often integrations may be received over, each.
    pub received: RateLimiter,
    /// Clients that are known by the address of their metadata.
    pub(crate) documents: Arc<Documents>,
    /// Keys of identity providers that lie at an address.
    pub(crate) key_sets: Arc<KeySets>,
    /// Identity providers that sign people in.
    pub(crate) providers: Arc<Providers>,
    /// Slack, where presses are answered.
    pub slack: Arc<Slack>,
    /// Sign-in forms that have been sent.
    forms: oauth::SentForms,
    questions: oauth::KeptQuestions,
}

impl GateService {
    /// The gate, the keys that its receipts are checked with, and what callbacks may name.
    #[must_use]
    pub fn new(gate: Gate, keys: PublicKeys, outbound: Outbound, base_url: &str) -> Self {
        let live = Live::new(gate.clone());
        let upstreams = Upstreams::new(
            &Allowed::default(),
            Times::default(),
            &outbound.own_host,
            None,
            Arc::new(SystemResolver),
            Trust::default(),
        );
        Self {
            gate,
            keys: Keys::new(keys),
            strangers: outbound.clone(),
            outbound,
            live,
            base_url: base_url.to_owned(),
            plans: Plans::default(),
            upstreams: upstreams.clone(),
            health: Arc::default(),
            targets: Arc::default(),
            data_loss: gateway::DataLossSettings::default(),
            running: Arc::default(),
            metrics: Arc::default(),
            telemetry: Arc::default(),
            proxied: mcp::Proxied::new(upstreams.clone()),
            aside: Aside::default(),
            spent: Arc::default(),
            bundles: evidence::places(),
            seen: Seen::new(),
            site: Site::of(base_url),
            passwords: Passwords::default(),
            wrong: WrongSignIns::default(),
            allow_redirects: Vec::new(),
            client_documents: true,
            oauth_clients: RateLimiter::new(Rates::default()),
            billing: Billing::default(),
            mailer: None,
            slack: Arc::default(),
            received: RateLimiter::new(Rates::default()),
            documents: Arc::default(),
            key_sets: Arc::default(),
            providers: Arc::default(),
            forms: oauth::SentForms::default(),
            questions: oauth::KeptQuestions::default(),
        }
    }

    /// Runs an administrative operation.
    ///
    /// # Errors
    /// What the operation is refused with, or what is told where it fails.
    pub async fn run<O: Operation>(&self, operation: O) -> Result<O::Answer, Refusal>
    where
        O::Answer: Send,
    {
        self.gate.submit_before_park(operation).await.map_err(refusal)
    }

    /// An action as `read` finds it, with the record of what a stop or time has done to it: a moment later it is written anyway.
    ///
    /// # Errors
    /// As [`run`](Self::run), and those of `read`.
    async fn seen(&self, read: impl Fn() -> Result<View, Refusal>) -> Result<View, Refusal> {
        let view = read()?;
        let Some(untold) = view.untold() else { return Ok(view) };
        self.run(untold).await?;
        read()
    }

    /// Several things of a list as they were `found`, or as `again` finds them once what has ended by time alone is written. What a
    /// stop has done is in a list before its record is.
    ///
    /// # Errors
    /// As [`run`](Self::run), and those of `again`.
    async fn seen_all<T>(
        &self,
        found: Vec<T>,
        untold: impl Fn(&T) -> Option<Untold>,
        again: impl FnOnce() -> Result<Vec<T>, Refusal>,
    ) -> Result<Vec<T>, Refusal> {
        let open = found.iter().filter_map(untold).filter(|it| it.is_open());
        // All of them wait for the same few commits.
        let queued: Vec<_> = open.map(|it| self.gate.submit(it)).collect();
        if queued.is_empty() {
            return Ok(found);
        }
        for written in queued {
            // What cannot be written keeps nobody from the rest of a list, and its timer comes back to it. Whoever decided a moment
            // before was written by now.
            if let Err(failure) = written.await {
                log(&failure);
            }
        }
        again()
    }

    /// Runs a rule that only reads.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn read<T>(&self, rule: impl Fn(&mut Scope<'_>) -> Result<T, Halt>) -> Result<T, Refusal> {
        self.gate.read(rule).map_err(refusal)
    }

    /// Rows of one index.
    ///
    /// # Errors
    /// `not_ready` where the store does not answer.
    pub fn scan(&self, range: &Range) -> Result<Vec<svc_core::store::Found>, Refusal> {
        self.gate.scan(range).map_err(refusal)
    }

    /// That this node may decide: its clock is not behind what it has seen.
    fn may_decide(&self) -> Result<(), Refusal> {
        if self.gate.is_behind() { Err(Refusal::not_ready()) } else { Ok(()) }
    }
}

impl Service for GateService {
    type Caller = Caller;

    fn answered(&self, route: Option<&'static str>, status: u16, refused: Option<Kind>, took: Duration) {
        self.metrics.answered(route, status, refused, took);
    }

    fn records(&self, trace: &Trace) -> bool {
        self.telemetry.records(trace)
    }

    fn known(&self, shown: &Shown<'_>) -> Option<Caller> {
        if !matches!(shown.auth, Auth::Agent | Auth::McpAgent | Auth::Payer) {
            return None;
        }
        let digest = Digest::of(shown.credential);
        let binding = self.gate.known_binding(&digest)?;
        self.seen.note(binding.counts_as().bits(), self.gate.now());
        if shown.auth == Auth::Payer {
            return Some(Caller::Payer(CallKey { row: Credential::id_of(&digest), binding }));
        }
        Some(Caller::Agent(Known { caller: AgentCaller::of(&binding).ok()?, digest }))
    }

    async fn resolve(&self, shown: &Shown<'_>) -> Result<Caller, Refusal> {
        let digest = Digest::of(shown.credential);
        match shown.auth {
            Auth::Open | Auth::Signature => Err(Refusal::unauthenticated()),
            Auth::Agent | Auth::McpAgent => {
                let checked = self.read(|scope| check_key(scope, &digest).map(drop));
                // Where MCP is spoken the handlers tell a removed agent that it is stopped.
                let is_removed = |it: &Refusal| shown.auth == Auth::McpAgent && it.kind() == Kind::AgentNotFound;
                if let Err(told) = checked
                    && !is_removed(&told)
                {
                    return Err(told);
                }
                // Remembered only now, so that a stranger's guesses fill no memory.
                let binding = self.gate.binding(&digest).map_err(refusal)?.ok_or_else(Refusal::invalid_api_key)?;
                self.seen.note(binding.counts_as().bits(), self.gate.now());
                Ok(Caller::Agent(Known { caller: AgentCaller::of(&binding)?, digest }))
            }
            Auth::Payer => {
                // Remembered only where there is one, so that a stranger's guesses fill no memory.
                let binding = self.gate.binding(&digest).map_err(refusal)?.ok_or_else(Refusal::invalid_api_key)?;
                self.seen.note(binding.counts_as().bits(), self.gate.now());
                Ok(Caller::Payer(CallKey { row: Credential::id_of(&digest), binding }))
            }
            Auth::Workspace | Auth::WorkspaceAdmin => {
                let binding = match self.read(|scope| check_key(scope, &digest)) {
                    Ok(binding) => binding,
                    // What a key may do at all comes before what became of its agent.
                    Err(told) if told.kind() == Kind::AgentNotFound && shown.auth == Auth::WorkspaceAdmin => {
                        return Err(Refusal::missing_admin_scope());
                    }
                    Err(told) if shown.is_spent => return Err(told),
                    Err(told) => return Err(self.as_stopped(&digest, told).await),
                };
                if shown.auth == Auth::WorkspaceAdmin && binding.scope != KeyScope::Admin {
                    return Err(Refusal::missing_admin_scope());
                }
                self.seen.note(binding.key.bits(), self.gate.now());
                Ok(Caller::Key(KeyCaller {
                    workspace: binding.workspace,
                    key: binding.key,
                    row: Credential::id_of(&digest),
                    principal: binding.principal,
                }))
            }
            Auth::Token(needed) => {
                let token = self.read(|scope| check_token(scope, &digest, shown.address))?;
                if !token.scopes.contains(&needed) {
                    return Err(Refusal::missing_scope_named(needed.as_str()));
                }
                self.seen.note(token.token.bits(), self.gate.now());
                Ok(Caller::Token(TokenCaller {
                    workspace: token.workspace,
                    token: token.token,
                    row: token.id,
                    name: token.name.clone(),
                    address: shown.address,
                }))
            }
            Auth::Session => {
                let session = self.read(|scope| signed_in(scope, &digest))?;
                self.note_use(&session.row);
                Ok(Caller::Session(Box::new(session)))
            }
            Auth::Member(right) => self.member(&digest, shown, right).map(Caller::Member),
        }
    }

    fn unsigned(&self, op: Op, headers: &HeaderMap, named: Named<'_>) -> Option<Unsigned> {
        if let Op::Hooks(op) = op { hooks::unsigned(self, op, headers, named.workspace) } else { None }
    }

    fn rate_bits(caller: &Caller) -> u128 {
        match caller {
            Caller::Agent(it) => it.caller.agent.bits(),
            Caller::Key(it) => it.key.bits(),
            Caller::Payer(it) => it.binding.counts_as().bits(),
            Caller::Token(it) => it.token.bits(),
            Caller::Session(it) => it.account.id.bits(),
            Caller::Member(it) => it.person.account.bits(),
        }
    }

    fn workspace_bits(caller: &Caller) -> u128 {
        if let Caller::Payer(it) = caller { it.binding.workspace.bits() } else { Self::rate_bits(caller) }
    }

    async fn is_ready(&self) -> bool {
        !self.gate.is_failing() && self.gate.look_back().is_ok_and(|behind| !behind)
    }

    async fn authorize(&self, caller: Caller, call: Call) -> Result<Answer, Refusal> {
        self.may_decide()?;
        self.agent_authorize(caller.agent()?, call).await
    }

    async fn read_action(&self, caller: Caller, call: Call) -> Result<Answer, Refusal> {
        self.agent_read_action(caller.agent()?, call).await
    }

    async fn register_callback(&self, caller: Caller, call: Call) -> Result<Answer, Refusal> {
        self.may_decide()?;
        self.agent_register_callback(caller.agent()?, call).await
    }

    async fn settle(&self, caller: Caller, call: Call) -> Result<Answer, Refusal> {
        self.may_decide()?;
        self.agent_settle(caller.agent()?, call).await
    }

    async fn report_run(&self, caller: Caller, call: Call) -> Result<Answer, Refusal> {
        self.may_decide()?;
        self.agent_report_run(caller.agent()?, call).await
    }

    async fn verify(&self, call: Call) -> Result<Answer, Refusal> {
        self.may_decide()?;
        self.verify_receipt(call).await
    }

    async fn keys(&self, call: Call) -> Result<Answer, Refusal> {
        self.public_keys(call).await
    }

    async fn family(&self, caller: Option<Caller>, call: Call) -> Result<Answer, Refusal> {
        if call.route.is_write() {
            self.may_decide()?;
        }
        // A route that takes a credential has its caller here; if it had none, it would be refused.
        let known = caller.ok_or_else(Refusal::unauthenticated);
        match call.route.op {
            Op::Gateway(op) => gateway::answer(self, op, &known?, &call).await,
            Op::Integrations(op) => integrations::answer(self, op, &known?, &call).await,
            Op::Hooks(op) => hooks::answer(self, op, &call).await,
            Op::Applications(op) => applications::answer(self, op, &known?, &call).await,
            Op::Approvals(op) => approvals::answer(self, op, &known?, &call).await,
            Op::Evidence(op) => evidence::answer(self, op, &known?, &call).await,
            Op::Stops(op) => stops::answer(self, op, &known?, &call).await,
            Op::Drills(op) => drills::answer(self, op, &known?, &call).await,
            Op::Actions(op) => actions::answer(self, op, &known?, &call).await,
            Op::Events(op) => events::answer(self, op, &known?, &call).await,
            Op::Agents(op) => agents::answer(self, op, &known?, &call).await,
            Op::Access(op) => access::answer(self, op, &known?, &call).await,
            Op::Routing(op) => routing::answer(self, op, &known?, &call).await,
            Op::Budgets(op) => budgets::answer(self, op, &known?, &call).await,
            Op::Reports(op) => reports::answer(self, op, &known?, &call).await,
            Op::Settings(op) => settings::answer(self, op, &known?, &call).await,
            Op::Members(op) => members::answer(self, op, &known?, &call).await,
            Op::Me(op) => me::answer(self, op, &known?, &call).await,
            Op::SignIn(op) => sign_in::answer(self, op, &call).await,
            Op::OAuth(op) => oauth::answer(self, op, &call).await,
            Op::Connections(op) => connections::answer(self, op, &known?, &call).await,
            Op::Mcp(op) => mcp::answer(self, op, known?, call).await,
            Op::McpServers(op) => mcp_servers::answer(self, op, &known?, &call).await,
            Op::Authorize
            | Op::ReadAction
            | Op::RegisterCallback
            | Op::Settle
            | Op::ReportRun
            | Op::Verify
            | Op::Keys
            | Op::Health
            | Op::Ready
            | Op::OpenApi
            | Op::Docs
            | Op::DocsErrors
            | Op::ApprovalPage
            | Op::Console(_) => Err(Refusal::internal()),
        }
    }
}

impl GateService {
    fn member(&self, digest: &Digest, shown: &Shown<'_>, right: Right) -> Result<Member, Refusal> {
        let workspace = WorkspaceId::parse(shown.named.workspace.unwrap_or_default());
        let approval = shown.named.approval.and_then(|it| ApprovalId::parse(it).ok());
        let application = shown.named.application.and_then(|it| ApplicationId::parse(it).ok());
        let (member, session) = self.read(|scope| {
            // Whoever is not signed in learns nothing of workspaces.
            let signed_in = signed_in(scope, digest)?;
            let workspace = workspace.clone().map_err(|_| Refusal::not_found())?;
            let (person, role) = person_in(scope, &signed_in, workspace)?;
            let reach = match (role.reach(right), approval) {
                (Reach::No, Some(id)) => reach_to(scope, &By::Person(person), person.workspace, right, id)?,
                (reach, _) => reach,
            };
            if let (Reach::No, Some(id)) = (reach, application) {
                is_not_own(scope, &person, id)?;
            }
            match reach {
                Reach::No => Err(Refusal::forbidden(format!("a workspace's {} may not do that", role.as_str())).into()),
                reach => Ok((Member { person, role, reach }, signed_in.row)),
            }
        })?;
        self.note_use(&session);
        Ok(member)
    }

    /// Has a session's use noted, where the last note is old. Nobody waits for it.
    fn note_use(&self, session: &Session) {
        if self.gate.now().since(session.seen_at) >= SEEN_SLACK {
            drop(self.gate.submit(TouchSession(session.id)));
        }
    }
}

/// What a caller is told of a failure; its cause is logged.
pub(crate) fn refusal(failure: Failure<StoreError>) -> Refusal {
    let told = match &failure {
        Failure::Refused(refusal) => return refusal.clone(),
        Failure::Load(_) | Failure::Contended | Failure::Commit(CommitError::Unavailable(_)) => Refusal::not_ready(),
        Failure::Commit(CommitError::Rejected(_) | CommitError::Unknown(_)) => Refusal::internal(),
    };
    log(&failure);
    told
}

/// The refusal with the record that it leaves: whoever is stopped is told so on the record, wherever it is told.
pub(crate) async fn recorded(gate: &Gate, key: &CallKey, told: Refusal) -> Refusal {
    if told.kind() != Kind::AgentStopped || told.evidence_record().is_some() {
        return told;
    }
    match gate.submit_before_park(RefuseStopped { caller: key.clone(), told: told.clone() }).await.map_err(refusal) {
        Ok(Admission::Refused(recorded)) => recorded,
        Ok(Admission::Admitted(_) | Admission::Rescan(_)) => told,
        Err(failed) => failed,
    }
}

/// Logs a failure with everything that led to it. One that every request meets, as on a full disk, is logged once a minute.
pub(crate) fn log(failure: &Failure<StoreError>) {
    static FAILED: Repeated = Repeated::new();
    let what = "an operation failed";
    if matches!(failure, Failure::Commit(CommitError::Rejected(_) | CommitError::Unknown(_))) {
        tracing::error!(error = with_causes(failure), "{what}");
    } else {
        FAILED.tell(what, failure);
    }
}
