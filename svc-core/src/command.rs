//! Every command, the rule that decides it, and the request types that callers use.

mod wake;

use std::sync::Arc;

use self::wake::wake;
use crate::answer::Decided;
use crate::rules::connect::Grant;
use crate::rules::connect::consent::{self, AskConsent, DecideConsent};
use crate::rules::connect::end::{self, EndConnection, EndLeft};
use crate::rules::connect::exchange::{self, ExchangeCode};
use crate::rules::connect::refresh::{self, RefreshTokens};
use crate::rules::connect::register::{self, RegisterClient};
use crate::rules::connect::revoke::{self, RevokeOAuth};
use crate::rules::connect::sweep::{self as connections, SweepTokens};
use crate::rules::edge::deliver::{self, Claim, ClaimDelivery, Claimed, FinishDelivery, RetryDelivery};
use crate::rules::edge::export::{self, AdvanceExport};
use crate::rules::edge::integrations::{
    self, ChangeIntegration, CreateIntegration, RemoveIntegration, RotateIntegration, TestIntegration, Tested,
};
use crate::rules::edge::mcp_servers::{self, EditMcpServers, McpServerView};
use crate::rules::edge::mcp_tools::{self, AcceptTools, NoteTools};
use crate::rules::edge::proxied::{self, NoteResult, SettleCall};
use crate::rules::edge::receive::{self, Receive};
use crate::rules::edge::spread::{self, SpreadNews};
use crate::rules::edge::subscribe::{self, FollowSubscription};
use crate::rules::evidence::erase::{self, Erase};
use crate::rules::evidence::sequence::{self, Sequence};
use crate::rules::evidence::sweep::{self, SweepClosed, SweepJobs, SweepOld};
use crate::rules::evidence::tally::{self, KeepTally};
use crate::rules::gate::asked::{Question, Stands};
use crate::rules::gate::authorize::{self, Authorize};
use crate::rules::gate::callback::{self, RegisterCallback};
use crate::rules::gate::decide::{self, DecideApproval};
use crate::rules::gate::drill::{self, EndDrill, FreezeCanary, StartDrill, Started};
use crate::rules::gate::fleet::{self, Fleet, FreezeFleet};
use crate::rules::gate::freeze::{self, EndApproval, FollowStop, FreezeAgent, RecordRevoked, Stopped};
use crate::rules::gate::lift::{self, Lift, LiftHold};
use crate::rules::gate::ran::{self, ReportRun};
use crate::rules::gate::release::{self, ReleaseAction};
use crate::rules::gate::restart::{self, RestartAgent};
use crate::rules::gate::settle::{self, Settle};
use crate::rules::gate::use_up::{self, UseUp};
use crate::rules::gate::verify::{self, Verdict, Verify};
use crate::rules::gateway::admit::{self, Admission, AdmitCall};
use crate::rules::gateway::billing::{self, ImportBill};
use crate::rules::gateway::budgets::{self, BudgetView, ChangeBudget, CreateBudget, RaiseBudget, RemoveBudget};
use crate::rules::gateway::finish::{self, FinishCall, Finished};
use crate::rules::gateway::list_models::{self, ListModels, Listings};
use crate::rules::gateway::observe::{self, NoteOwnTools};
use crate::rules::gateway::outcome::{self, ReportOutcome};
use crate::rules::gateway::refuse::{self, RefuseStopped};
use crate::rules::gateway::retry::{self, Retry, RetryCall};
use crate::rules::gateway::routing::{self, EditRouting, Edited};
use crate::rules::people::agents::{self, ChangeAgent};
use crate::rules::people::applications::{
    self, ApproveApplication, Approved, CreateApplication, DenyApplication, WithdrawApplication,
};
use crate::rules::people::create_workspace::{self, CreateWorkspace};
use crate::rules::people::keys::{self, CreateKey, RevokeKey};
use crate::rules::people::leave::{self, EndKey, FollowLeave, PassAgent};
use crate::rules::people::links::{self, MakeLink};
use crate::rules::people::mandates::{self, ChangeMandate, GrantMandate, Held, RevokeMandate};
use crate::rules::people::members::{self, ChangeMember, InviteMember, MemberDone, RemoveMember};
use crate::rules::people::password::{self, ChangePassword};
use crate::rules::people::register_agent::{self, RegisterAgent, Registered, RemoveAgent};
use crate::rules::people::reseal::{self, Reseal};
use crate::rules::people::second_factor::{self, ChangeSecondFactor, DropSecondFactor};
use crate::rules::people::sessions::{self, EndSession, TouchSession};
use crate::rules::people::settings::{self, ChangeSettings};
use crate::rules::people::sign_in::{self, FinishSignIn, SignInStep, StartSession};
use crate::rules::people::signing_key::{self, KeepSigningKey, RotateSigningKey};
use crate::rules::people::single_sign_on::{self, SignInBySso, SsoStep};
use crate::rules::people::teams::{self, DisownTeam, KeepTeam, RemoveTeam};
use crate::rules::people::templates::{self, KeepTemplate, RemoveTemplate};
use crate::rules::people::tokens::{self, CreateToken, RevokeToken};
use crate::rules::read::{Untold, View};
use crate::state::connect::{Connection, Consent, OAuthClient};
use crate::state::edge::{Heard, Integration, Job};
use crate::state::gate::receipt::Signer;
use crate::state::gate::{Agent, Drill, Mandate, Verb, WorkspaceTemplate};
use crate::state::gateway::{BillingImport, Call, Task};
use crate::state::people::{Application, Credential, ServiceToken, SigningKey, Team, Workspace};
use crate::store::Key;
use crate::turn::{Decide, Halt, Scope};
use crate::value::id::{AccountId, KeyId, MandateId, TokenId};

/// What something that is due does: the row whose timer it is.
#[derive(Clone, Copy, Debug)]
pub struct Wake(pub Key);

/// A request's way through the gate: the command it is, and what its caller gets.
pub trait Operation: Into<Command> {
    /// What the caller gets.
    type Answer;

    /// Makes the answer of the reply, off the lane: a receipt is signed here. `None` of another operation's, which nobody brings.
    fn answer(reply: Reply, signer: &dyn Signer) -> Option<Self::Answer>;
}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident => $rule:path, $reply:ident;)*) => {
        /// Everything the service does to its rows.
        #[derive(Clone, Debug)]
        pub enum Command { $($(#[$doc])* $name($name),)* }

        impl Command {
            /// What it is called, for the log.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => stringify!($name),)* }
            }
        }

        impl Decide for Command {
            type Reply = Reply;

            fn decide(&self, scope: &mut Scope<'_>) -> Result<Reply, Halt> {
                match self { $(Self::$name(asked) => $rule(scope, asked).map(|it| Reply::$reply(it.into())),)* }
            }

            fn close(scope: &mut Scope<'_>) -> Result<(), Halt> {
                sequence::place_staged(scope)
            }

            fn permits(reply: &Reply) -> bool {
                match reply {
                    Reply::Action(view) => view.verb() == Verb::Allow,
                    Reply::Question(it) => it.stands == Stands::Approved,
                    Reply::Verdict(verdict) => verdict.is_valid(),
                    Reply::Heard(heard) => heard.approved == Some(true),
                    Reply::Admission(it) => matches!(**it, Admission::Admitted(_)),
                    Reply::Retried(it) => matches!(**it, Retry::Moved(..)),
                    Reply::Connection(_) | Reply::Consent(_) | Reply::Granted(_) | Reply::OAuthClient(_) | Reply::Account(_) | Reply::Application(_) | Reply::Approved(_) | Reply::Edited(_) | Reply::SignedIn(_) | Reply::SignedInBySso(_) | Reply::Agent(_) | Reply::Bill(_) | Reply::Budget(_) | Reply::Changed(_) | Reply::Credential(_) | Reply::Template(_) | Reply::Token(_)
                    | Reply::Finished(_) | Reply::Listed(_) | Reply::Task(_) | Reply::TokenEnd(_) | Reply::Callback(_) | Reply::Claimed(_) | Reply::Delivery(_) | Reply::Drill(_) | Reply::DrillStarted(_) | Reply::Integration(_) | Reply::McpServer(_) | Reply::Tested(_) | Reply::Done(()) | Reply::Key(_)
                    | Reply::Mandate(_) | Reply::Member(_) | Reply::Team(_) | Reply::MandateEnd(_) | Reply::Placed(_) | Reply::Registered(_) | Reply::SigningKey(_) | Reply::Fleet(_) | Reply::Lift(_) | Reply::Stopped(_) | Reply::Woken(_) | Reply::Workspace(_) => false,
                }
            }
        }

        $(impl From<$name> for Command { fn from(asked: $name) -> Self { Self::$name(asked) } })*
    };
}

commands! {
    /// A stopped agent is refused at other servers.
    RefuseStopped => refuse::refuse_stopped, Admission;
    /// A model is called.
    AdmitCall => admit::admit_call, Admission;
    /// A call's next model is tried.
    RetryCall => retry::retry_call, Retried;
    /// A call has ended.
    FinishCall => finish::finish_call, Finished;
    /// What a call's provider ran itself is noted while its answer comes.
    NoteOwnTools => observe::note_own_tools, Done;
    /// What came of a task is reported.
    ReportOutcome => outcome::report_outcome, Task;
    /// A person is asked about a client.
    AskConsent => consent::ask_consent, Done;
    /// A person answers.
    DecideConsent => consent::decide_consent, Consent;
    /// A connection ends.
    EndConnection => end::end_connection, Connection;
    /// A connection of somebody who left ends.
    EndLeft => end::end_left, Done;
    /// A code becomes tokens.
    ExchangeCode => exchange::exchange_code, Granted;
    /// Tokens are renewed.
    RefreshTokens => refresh::refresh_tokens, Granted;
    /// A client registers.
    RegisterClient => register::register_client, OAuthClient;
    /// A client gives its tokens back.
    RevokeOAuth => revoke::revoke_oauth, Done;
    /// What a member asks for is done.
    ApproveApplication => applications::approve_application, Approved;
    /// A member asks for what their role cannot do.
    CreateApplication => applications::create_application, Application;
    /// What a member asks for is not done.
    DenyApplication => applications::deny_application, Application;
    /// A member asks no longer.
    WithdrawApplication => applications::withdraw_application, Done;
    /// An agent asks.
    Authorize => authorize::authorize, Action;
    /// The export of a ledger goes on.
    AdvanceExport => export::advance, Done;
    /// A call to the outside is taken to be tried.
    ClaimDelivery => deliver::claim, Claimed;
    /// A budget is made.
    CreateBudget => budgets::create_budget, Budget;
    /// A budget changes.
    ChangeBudget => budgets::change_budget, Budget;
    /// A budget goes.
    RemoveBudget => budgets::remove_budget, Done;
    /// A provider's bill is compared with what was metered.
    ImportBill => billing::import_bill, Bill;
    /// A budget may spend more in its period.
    RaiseBudget => budgets::raise_budget, Budget;
    /// An agent changes.
    ChangeAgent => agents::change_agent, Agent;
    /// An integration is used, or not.
    ChangeIntegration => integrations::change_integration, Integration;
    /// A mandate changes.
    ChangeMandate => mandates::change_mandate, Changed;
    /// A member's role or teams change.
    ChangeMember => members::change_member, Member;
    /// A password is set.
    ChangePassword => password::change_password, Done;
    /// A second factor is added or removed.
    ChangeSecondFactor => second_factor::change_second_factor, Done;
    /// A second factor that was lost is taken away.
    DropSecondFactor => second_factor::drop_second_factor, Done;
    /// Settings are put in force.
    ChangeSettings => settings::change_settings, Workspace;
    /// An integration is made.
    CreateIntegration => integrations::create_integration, Integration;
    /// A key is made.
    CreateKey => keys::create_key, Credential;
    /// A service token is made.
    CreateToken => tokens::create_token, Token;
    /// A workspace is made.
    CreateWorkspace => create_workspace::create_workspace, Workspace;
    /// A person decides what waits.
    DecideApproval => decide::decide_approval, Question;
    /// What a workspace routes by changes.
    EditRouting => routing::edit_routing, Edited;
    /// An approval of a stopped agent ends.
    EndApproval => freeze::end_approval, Done;
    /// A drill is over.
    EndDrill => drill::end_drill, Drill;
    /// A try of a call to the outside came to its end.
    FinishDelivery => deliver::finish, Delivery;
    /// A stop's effects are done.
    FollowStop => freeze::follow_stop, Done;
    /// A session ends.
    EndSession => sessions::end_session, Done;
    /// A sign-in shows its second factor.
    FinishSignIn => sign_in::finish_sign_in, SignedIn;
    /// A workspace's MCP servers change.
    EditMcpServers => mcp_servers::edit_mcp_servers, McpServer;
    /// What an MCP server tells of its tools is noted.
    NoteTools => mcp_tools::note_tools, McpServer;
    /// Tools of an MCP server are accepted.
    AcceptTools => mcp_tools::accept_tools, McpServer;
    /// What a tool's result brings in is noted.
    NoteResult => proxied::note_result, Done;
    /// What became of a tool's call is recorded.
    SettleCall => proxied::settle_call, Done;
    /// Many agents are stopped.
    FreezeFleet => fleet::freeze_fleet, Fleet;
    /// A drill's canary is frozen.
    FreezeCanary => drill::freeze_canary, Drill;
    /// An agent is stopped.
    FreezeAgent => freeze::freeze_agent, Stopped;
    /// A mandate is granted.
    GrantMandate => mandates::grant_mandate, Mandate;
    /// Somebody is invited.
    InviteMember => members::invite_member, Member;
    /// A team is made or changed.
    KeepTeam => teams::keep_team, Team;
    /// A template is added or changed.
    KeepTemplate => templates::keep_template, Template;
    /// A hold is lifted.
    LiftHold => lift::lift_hold, Lift;
    /// A table of models is taken in.
    ListModels => list_models::list_models, Listed;
    /// A signing key is kept.
    KeepSigningKey => signing_key::keep_signing_key, SigningKey;
    /// A one-time link is made.
    MakeLink => links::make_link, Account;
    /// Personal texts are erased.
    Erase => erase::erase, Placed;
    /// The tally of a stretch of the ledger is kept.
    KeepTally => tally::keep_tally, Done;
    /// A stop's effect on an allowed action is recorded.
    RecordRevoked => freeze::record_revoked, Done;
    /// An agent is made.
    RegisterAgent => register_agent::register_agent, Registered;
    /// A callback is named.
    RegisterCallback => callback::register_callback, Callback;
    /// An agent is removed.
    RemoveAgent => register_agent::remove_agent, Agent;
    /// A member goes.
    RemoveMember => members::remove_member, Member;
    /// A team goes.
    RemoveTeam => teams::remove_team, Done;
    /// A team's owner left.
    DisownTeam => teams::disown_team, Done;
    /// A template goes.
    RemoveTemplate => templates::remove_template, Done;
    /// What a receipt's use kept posted is given back.
    ReleaseAction => release::release_action, Action;
    /// An integration ends.
    RemoveIntegration => integrations::remove_integration, Done;
    /// A signed request from outside is taken.
    Receive => receive::receive, Heard;
    /// A workspace's plan follows its subscription.
    FollowSubscription => subscribe::follow_subscription, Heard;
    /// A call to the outside is tried again.
    RetryDelivery => deliver::retry, Delivery;
    /// An integration's secret takes turns.
    RotateIntegration => integrations::rotate_integration, Integration;
    /// An agent is started again.
    RestartAgent => restart::restart_agent, Agent;
    /// A key ends.
    RevokeKey => keys::revoke_key, Key;
    /// A mandate ends.
    RevokeMandate => mandates::revoke_mandate, MandateEnd;
    /// A service token ends.
    RevokeToken => tokens::revoke_token, TokenEnd;
    /// What is sealed is sealed under another master key.
    Reseal => reseal::reseal, Done;
    /// A signing key follows another.
    RotateSigningKey => signing_key::rotate_signing_key, SigningKey;
    /// Ledger records get their places.
    Sequence => sequence::sequence, Placed;
    /// An agent says that what was not allowed was done.
    ReportRun => ran::report_run, Action;
    /// An agent says what became of an action.
    Settle => settle::settle, Action;
    /// Messages are made for people who are to be told of something.
    SpreadNews => spread::spread, Claimed;
    /// An integration is tried out.
    TestIntegration => integrations::test_integration, Tested;
    /// A drill starts.
    StartDrill => drill::start_drill, DrillStarted;
    /// What a person approved is done by the gate itself.
    UseUp => use_up::use_up, Verdict;
    /// Somebody signs in by a workspace's identity provider.
    SignInBySso => single_sign_on::sign_in_by_sso, SignedInBySso;
    /// Somebody signs in.
    StartSession => sign_in::start_session, SignedIn;
    /// A session is used.
    TouchSession => sessions::touch_session, Done;
    /// Somebody shows a receipt.
    Verify => verify::verify, Verdict;
    /// What follows somebody's leaving is done.
    FollowLeave => leave::follow_leave, Done;
    /// An agent of somebody who left passes to its sponsor.
    PassAgent => leave::pass_agent, Done;
    /// A key of somebody who left ends.
    EndKey => leave::end_key, Done;
    /// Closed actions are swept.
    SweepClosed => sweep::sweep_closed, Done;
    /// Calls to the outside are swept.
    SweepJobs => sweep::sweep_jobs, Done;
    /// Old actions lose what is personal.
    SweepOld => sweep::sweep_old, Done;
    /// Tokens of a connection that ended long ago go.
    SweepTokens => connections::sweep_tokens, Done;
    /// A timer is due.
    Wake => wake, Woken;
}

/// What a rule replies, whichever it was.
#[derive(Clone, Debug)]
pub enum Reply {
    /// What becomes of a model call.
    Admission(Box<Admission>),
    /// What becomes of a call whose try has failed.
    Retried(Box<Retry>),
    /// A call that has ended.
    Finished(Finished),
    /// A task as it stands.
    Task(Arc<Task>),
    /// A connection as it stands.
    Connection(Arc<Connection>),
    /// A page that a person has answered.
    Consent(Arc<Consent>),
    /// What came of asking for tokens.
    Granted(Box<Grant>),
    /// A client that registered.
    OAuthClient(Arc<OAuthClient>),
    /// An account.
    Account(AccountId),
    /// An action as it stands.
    Action(Box<View>),
    /// An agent as it stands.
    Agent(Arc<Agent>),
    /// An application as it stands.
    Application(Arc<Application>),
    /// An application that was approved, and what came of it.
    Approved(Box<Approved>),
    /// A provider's bill beside what was metered.
    Bill(Arc<BillingImport>),
    /// A budget as it stands.
    Budget(Box<BudgetView>),
    /// A mandate that was changed; `None` where its actions have to be counted first.
    Changed(Box<Held>),
    /// A key that was made.
    Credential(Arc<Credential>),
    /// A callback that was named.
    Callback(Box<callback::Registered>),
    /// A call to the outside that is to be tried, if it is.
    Claimed(Box<Claim>),
    /// A call to the outside as it stands.
    Delivery(Arc<Job>),
    /// A drill as it stands.
    Drill(Arc<Drill>),
    /// A drill that has started.
    DrillStarted(Box<Started>),
    /// Nothing to tell.
    Done(()),
    /// What a workspace routes by.
    Edited(Box<Edited>),
    /// An integration as it stands.
    Integration(Arc<Integration>),
    /// What came of an event from outside.
    Heard(Box<Heard>),
    /// What came of stopping many agents.
    Fleet(Box<Fleet>),
    /// A key that ended.
    Key(KeyId),
    /// What came of lifting a hold.
    Lift(Box<Lift>),
    /// What a table of models brought.
    Listed(Box<Listings>),
    /// An MCP server as it stands.
    McpServer(Box<McpServerView>),
    /// A mandate that was granted.
    Mandate(Arc<Mandate>),
    /// What came of a change of a member.
    Member(Box<MemberDone>),
    /// A mandate that ended.
    MandateEnd(MandateId),
    /// How many ledger records have places, or how many rows were erased.
    Placed(u64),
    /// An approval as it stands.
    Question(Box<Question>),
    /// An agent that was made.
    Registered(Box<Registered>),
    /// Where a sign-in stands.
    SignedIn(Box<SignInStep>),
    /// What a sign-in by an identity provider has come to.
    SignedInBySso(Box<SsoStep>),
    /// A signing key that is kept.
    SigningKey(Arc<SigningKey>),
    /// A team as it stands.
    Team(Arc<Team>),
    /// A template as it stands.
    Template(Arc<WorkspaceTemplate>),
    /// A service token that was made.
    Token(Arc<ServiceToken>),
    /// A service token that ended.
    TokenEnd(TokenId),
    /// An integration and the call that tries it out.
    Tested(Box<Tested>),
    /// What a receipt is good for.
    Verdict(Verdict),
    /// What came of stopping an agent.
    Stopped(Box<Stopped>),
    /// What was due is done; the call that has lapsed by it, where one has.
    Woken(Option<Arc<Call>>),
    /// A workspace as it stands.
    Workspace(Arc<Workspace>),
}

/// What has come to pass without a record is written as whatever else brings it about.
impl From<Untold> for Command {
    fn from(untold: Untold) -> Self {
        match untold {
            Untold::Denied(approval) => EndApproval(approval).into(),
            Untold::Expired(approval) => Wake(Key::Approval(approval)).into(),
            Untold::Revoked(action) => RecordRevoked(action).into(),
        }
    }
}

/// What is written for it is one of several commands.
impl Operation for Untold {
    type Answer = ();

    fn answer(reply: Reply, _: &dyn Signer) -> Option<()> {
        matches!(reply, Reply::Done(()) | Reply::Woken(_)).then_some(())
    }
}

macro_rules! operations {
    ($($name:ident => $answer:ty, |$reply:pat_param, $signer:pat_param| $make:expr;)*) => {$(
        impl Operation for $name {
            type Answer = $answer;
            fn answer(reply: Reply, $signer: &dyn Signer) -> Option<$answer> {
                if let $reply = reply { Some($make) } else { None }
            }
        }
    )*};
}

operations! {
    AdmitCall => Admission, |Reply::Admission(it), _| *it;
    RefuseStopped => Admission, |Reply::Admission(it), _| *it;
    RetryCall => Retry, |Reply::Retried(it), _| *it;
    FinishCall => Finished, |Reply::Finished(it), _| it;
    NoteOwnTools => (), |Reply::Done(()), _| ();
    ReportOutcome => Arc<Task>, |Reply::Task(it), _| it;
    AskConsent => (), |Reply::Done(()), _| ();
    DecideConsent => Arc<Consent>, |Reply::Consent(it), _| it;
    EndConnection => Arc<Connection>, |Reply::Connection(it), _| it;
    EndLeft => (), |Reply::Done(()), _| ();
    ExchangeCode => Grant, |Reply::Granted(it), _| *it;
    RefreshTokens => Grant, |Reply::Granted(it), _| *it;
    RegisterClient => Arc<OAuthClient>, |Reply::OAuthClient(it), _| it;
    RevokeOAuth => (), |Reply::Done(()), _| ();
    ApproveApplication => Approved, |Reply::Approved(it), _| *it;
    CreateApplication => Arc<Application>, |Reply::Application(it), _| it;
    DenyApplication => Arc<Application>, |Reply::Application(it), _| it;
    WithdrawApplication => (), |Reply::Done(()), _| ();
    Authorize => Decided, |Reply::Action(view), signer| Decided::of(*view, signer);
    AdvanceExport => (), |Reply::Done(()), _| ();
    ClaimDelivery => Claim, |Reply::Claimed(it), _| *it;
    SpreadNews => Option<Claimed>, |Reply::Claimed(it), _| it.taken();
    ChangeAgent => Arc<Agent>, |Reply::Agent(it), _| it;
    ImportBill => Arc<BillingImport>, |Reply::Bill(it), _| it;
    CreateBudget => BudgetView, |Reply::Budget(it), _| *it;
    ChangeBudget => BudgetView, |Reply::Budget(it), _| *it;
    RemoveBudget => (), |Reply::Done(()), _| ();
    RaiseBudget => BudgetView, |Reply::Budget(it), _| *it;
    ChangeMandate => Held, |Reply::Changed(it), _| *it;
    ChangeIntegration => Arc<Integration>, |Reply::Integration(it), _| it;
    ChangePassword => (), |Reply::Done(()), _| ();
    ChangeSecondFactor => (), |Reply::Done(()), _| ();
    DropSecondFactor => (), |Reply::Done(()), _| ();
    ChangeSettings => Arc<Workspace>, |Reply::Workspace(it), _| it;
    CreateIntegration => Arc<Integration>, |Reply::Integration(it), _| it;
    CreateKey => Arc<Credential>, |Reply::Credential(it), _| it;
    CreateToken => Arc<ServiceToken>, |Reply::Token(it), _| it;
    CreateWorkspace => Arc<Workspace>, |Reply::Workspace(it), _| it;
    DecideApproval => Question, |Reply::Question(it), _| *it;
    EditRouting => Edited, |Reply::Edited(it), _| *it;
    EndDrill => Arc<Drill>, |Reply::Drill(it), _| it;
    FreezeCanary => Arc<Drill>, |Reply::Drill(it), _| it;
    StartDrill => Started, |Reply::DrillStarted(it), _| *it;
    EndApproval => (), |Reply::Done(()), _| ();
    FinishDelivery => Arc<Job>, |Reply::Delivery(it), _| it;
    FollowStop => (), |Reply::Done(()), _| ();
    FreezeFleet => Fleet, |Reply::Fleet(it), _| *it;
    FreezeAgent => Stopped, |Reply::Stopped(it), _| *it;
    EndSession => (), |Reply::Done(()), _| ();
    FinishSignIn => SignInStep, |Reply::SignedIn(it), _| *it;
    GrantMandate => Arc<Mandate>, |Reply::Mandate(it), _| it;
    InviteMember => MemberDone, |Reply::Member(it), _| *it;
    ChangeMember => MemberDone, |Reply::Member(it), _| *it;
    RemoveMember => MemberDone, |Reply::Member(it), _| *it;
    KeepTeam => Arc<Team>, |Reply::Team(it), _| it;
    RemoveTeam => (), |Reply::Done(()), _| ();
    DisownTeam => (), |Reply::Done(()), _| ();
    KeepTemplate => Arc<WorkspaceTemplate>, |Reply::Template(it), _| it;
    RemoveTemplate => (), |Reply::Done(()), _| ();
    RevokeToken => TokenId, |Reply::TokenEnd(it), _| it;
    ListModels => Listings, |Reply::Listed(it), _| *it;
    KeepSigningKey => Arc<SigningKey>, |Reply::SigningKey(it), _| it;
    MakeLink => AccountId, |Reply::Account(it), _| it;
    RecordRevoked => (), |Reply::Done(()), _| ();
    RegisterAgent => Registered, |Reply::Registered(it), _| *it;
    RegisterCallback => callback::Registered, |Reply::Callback(it), _| *it;
    ReleaseAction => Decided, |Reply::Action(view), signer| Decided::of(*view, signer);
    RemoveAgent => Arc<Agent>, |Reply::Agent(it), _| it;
    RemoveIntegration => (), |Reply::Done(()), _| ();
    Receive => Heard, |Reply::Heard(it), _| *it;
    FollowSubscription => Heard, |Reply::Heard(it), _| *it;
    RetryDelivery => Arc<Job>, |Reply::Delivery(it), _| it;
    EditMcpServers => McpServerView, |Reply::McpServer(it), _| *it;
    NoteTools => McpServerView, |Reply::McpServer(it), _| *it;
    AcceptTools => McpServerView, |Reply::McpServer(it), _| *it;
    NoteResult => (), |Reply::Done(()), _| ();
    SettleCall => (), |Reply::Done(()), _| ();
    RotateIntegration => Arc<Integration>, |Reply::Integration(it), _| it;
    LiftHold => Lift, |Reply::Lift(it), _| *it;
    RestartAgent => Arc<Agent>, |Reply::Agent(it), _| it;
    RevokeKey => KeyId, |Reply::Key(it), _| it;
    RevokeMandate => MandateId, |Reply::MandateEnd(it), _| it;
    Erase => u64, |Reply::Placed(it), _| it;
    KeepTally => (), |Reply::Done(()), _| ();
    Reseal => (), |Reply::Done(()), _| ();
    RotateSigningKey => Arc<SigningKey>, |Reply::SigningKey(it), _| it;
    Sequence => u64, |Reply::Placed(it), _| it;
    ReportRun => Decided, |Reply::Action(view), signer| Decided::of(*view, signer);
    Settle => Decided, |Reply::Action(view), signer| Decided::of(*view, signer);
    TestIntegration => Tested, |Reply::Tested(it), _| *it;
    SignInBySso => SsoStep, |Reply::SignedInBySso(it), _| *it;
    StartSession => SignInStep, |Reply::SignedIn(it), _| *it;
    TouchSession => (), |Reply::Done(()), _| ();
    UseUp => Verdict, |Reply::Verdict(it), _| it;
    Verify => Verdict, |Reply::Verdict(it), _| it;
    FollowLeave => (), |Reply::Done(()), _| ();
    PassAgent => (), |Reply::Done(()), _| ();
    EndKey => (), |Reply::Done(()), _| ();
    SweepClosed => (), |Reply::Done(()), _| ();
    SweepJobs => (), |Reply::Done(()), _| ();
    SweepOld => (), |Reply::Done(()), _| ();
    SweepTokens => (), |Reply::Done(()), _| ();
    Wake => (), |Reply::Woken(_), _| ();
}
