//! The only list of durable rows. Tables, keys, records and their codecs all follow from it.

use std::fmt;
use std::sync::Arc;

use super::codec::{Encoded, Undecodable, read_body, write_body};
use crate::state::connect::{AuthCode, ClientTally, Connection, Consent, OAuthClient, RefreshToken};
use crate::state::edge::{Export, Integration, IntegrationSlot, Job, McpSecret, McpServers, McpTools, Received, Topic};
use crate::state::evidence::{Chain, Disclosure, Entry, Tally, TallyId, Tile, TileId};
use crate::state::gate::{
    Action, Activity, Agent, Approval, Block, BlockId, ClientSession, Drill, Mandate, Payee, Payload, Replay, Sweep,
    WorkspaceTemplate,
};
use crate::state::gateway::listing::ModelListing;
use crate::state::gateway::{
    BillingImport, BoundKeys, Budget, BudgetUse, Call, Cell, Context, Month, MonthId, RefusalNote, Routing, Task,
    UpstreamKey, Yields,
};
use crate::state::people::{
    Account, Application, Credential, EmailUse, Hold, MemberPart, MembersId, PendingSignIn, Principal, Roster,
    ServiceToken, Session, SignInLink, SigningKey, SigningUse, SsoLink, Team, TokenName, TokenUse, Workspace,
};
use crate::value::digest::{
    CellId, ClientTallyId, CodeId, ConsentId, ContextKey, CredentialId, EmailUseId, PayeeId, PendingSignInId,
    ReceivedId, RefreshId, RefusalKey, ReplayId, SessionDigest, SessionKey, SignInLinkId, SsoLinkId, TaskKey,
    TemplateId, TokenNameId, TopicId,
};
use crate::value::id::{
    AccountId, ActionId, AgentId, ApplicationId, ApprovalId, BillingImportId, BudgetId, CallId, ClientId, ConnectionId,
    DeliveryId, DrillId, EvidenceId, HoldId, MandateVersionId, McpServerId, PrincipalId, TeamId, TokenId, UpstreamId,
    WorkspaceId,
};
use crate::value::link::{Index, Link, Linked, RowId};

/// A key's bytes as a store keeps them: 16, or 20 where a number follows. Their order is the keys' order within a table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyBytes {
    bytes: [u8; 20],
    len: usize,
}

impl KeyBytes {
    fn of(bits: u128, number: Option<u32>) -> Self {
        let mut bytes = [0; 20];
        for (to, from) in bytes.iter_mut().zip(bits.to_be_bytes().into_iter().chain(number.unwrap_or(0).to_be_bytes()))
        {
            *to = from;
        }
        Self { bytes, len: if number.is_some() { 20 } else { 16 } }
    }

    fn split(bytes: &[u8]) -> Option<(u128, Option<u32>)> {
        let (bits, rest) = bytes.split_first_chunk::<16>()?;
        let number = match rest.len() {
            0 => None,
            _ => Some(u32::from_be_bytes(rest.try_into().ok()?)),
        };
        Some((u128::from_be_bytes(*bits), number))
    }
}

impl AsRef<[u8]> for KeyBytes {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&hex::encode(self.as_ref()))
    }
}

/// A durable row.
pub trait Row: Linked + Sized {
    /// What it is found by.
    type Id: Copy;
    /// The format that this release writes, from 1.
    const FORMAT: u16 = 1;
    /// This row's id.
    fn id(&self) -> Self::Id;
    /// The key of the row with this id.
    fn key(id: Self::Id) -> Key;
    /// The row as a record.
    fn wrap(row: Arc<Self>) -> Record;
    /// The row in a record, if it is of this kind.
    fn peel(record: &Record) -> Option<&Arc<Self>>;
}

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident($id:ty) by $field:ident, $table:literal $(, $immutable:ident)? [$($index:ident),*];)*) => {
        /// A row's key: its table and id.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Key { $($(#[$doc])* $name($id),)* }

        /// A row. Cheap to clone.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Record { $($(#[$doc])* $name(Arc<$name>),)* }

        /// A table: all rows of one kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Table { $($(#[$doc])* $name,)* }

        impl Table {
            /// Every table, in the order of keys.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name under which a store keeps it.
            #[must_use]
            pub const fn name(self) -> &'static str { match self { $(Self::$name => $table,)* } }

            /// Whether its rows are written once and never change: they are cached for ever and never checked.
            #[must_use]
            pub const fn is_immutable(self) -> bool {
                match self { $(Self::$name => records!(@immutable $($immutable)?),)* }
            }

            /// The indexes that its rows may appear in.
            #[must_use]
            pub const fn indexes(self) -> &'static [Index] {
                match self { $(Self::$name => &[$(Index::$index,)*],)* }
            }

            /// The newest body format that this release understands.
            #[must_use]
            pub const fn format(self) -> u16 { match self { $(Self::$name => <$name as Row>::FORMAT,)* } }
        }

        impl Key {
            /// The table.
            #[must_use]
            pub const fn table(&self) -> Table { match self { $(Self::$name(_) => Table::$name,)* } }

            /// The id's bytes within the table.
            #[must_use]
            pub fn encode(&self) -> KeyBytes {
                let (bits, number) = match self { $(Self::$name(id) => RowId::parts(*id),)* };
                KeyBytes::of(bits, number)
            }

            /// Reads a key of `table` from the bytes that [`Key::encode`] gave.
            #[must_use]
            pub fn decode(table: Table, bytes: &[u8]) -> Option<Self> {
                let (bits, number) = KeyBytes::split(bytes)?;
                match table { $(Table::$name => <$id as RowId>::from_parts(bits, number).map(Self::$name),)* }
            }
        }

        impl Record {
            /// The row's key.
            #[must_use]
            pub fn key(&self) -> Key { match self { $(Self::$name(row) => Key::$name(row.id()),)* } }

            /// What the row is found by.
            #[must_use]
            pub fn links(&self) -> Vec<Link> { match self { $(Self::$name(row) => row.links(),)* } }

            /// The row as JSON, with its format number.
            ///
            /// # Errors
            /// [`Undecodable`] where the row cannot be written as JSON, which no row of this crate can bring about.
            pub fn encode(&self) -> Result<Encoded, Undecodable> {
                match self { $(Self::$name(row) => write_body(Table::$name, row.as_ref()),)* }
            }

            /// Reads a row that any release up to this one wrote.
            ///
            /// # Errors
            /// [`Undecodable`] where the format is newer than this release or the body is not that of such a row.
            pub fn decode(table: Table, format: u16, body: &[u8]) -> Result<Self, Undecodable> {
                match table { $(Table::$name => read_body::<$name>(table, format, body).map(|row| Self::$name(Arc::new(row))),)* }
            }
        }

        $(impl Row for $name {
            type Id = $id;
            fn id(&self) -> $id { self.$field }
            fn key(id: $id) -> Key { Key::$name(id) }
            fn wrap(row: Arc<Self>) -> Record { Record::$name(row) }
            fn peel(record: &Record) -> Option<&Arc<Self>> {
                if let Record::$name(row) = record { Some(row) } else { None }
            }
        })*
    };
    (@immutable immutable) => { true };
    (@immutable) => { false };
}

records! {
    /// Settings in force and the standing hold.
    Workspace(WorkspaceId) by id, "workspace" [Workspaces];
    /// Guard of everything that a selector of agents can see.
    Roster(WorkspaceId) by workspace, "roster" [];
    /// By what model traffic is routed: providers, models, classes, profiles.
    Routing(WorkspaceId) by workspace, "routing" [];
    /// What may be spent on model calls.
    Budget(BudgetId) by id, "budget" [];
    /// What has been spent and reserved of a budget in its running period.
    BudgetUse(BudgetId) by budget, "budget_use" [];
    /// What a workspace knows of models beyond the shipped table.
    ModelListing(WorkspaceId) by workspace, "model_listing" [];
    /// A provider's key, sealed.
    UpstreamKey(UpstreamId) by upstream, "upstream_key" [];
    /// The MCP servers that agents reach through this one.
    McpServers(WorkspaceId) by workspace, "mcp_servers" [];
    /// What an MCP server is shown, sealed.
    McpSecret(McpServerId) by server, "mcp_secret" [];
    /// What is known of an MCP server's tools.
    McpTools(McpServerId) by server, "mcp_tools" [];
    /// Which keys are bound to classes and profiles.
    BoundKeys(WorkspaceId) by workspace, "bound_keys" [];
    /// A day of model traffic of one key, principal, model and class, added up.
    Cell(CellId) by id, "cell" [CellsOf];
    /// What models have yielded of late.
    Yields(WorkspaceId) by workspace, "yields" [];
    /// A month's requests and people.
    Month(MonthId) by id, "month" [];
    /// A provider's bill beside what was metered.
    BillingImport(BillingImportId) by id, "billing_import" [BillingOf];
    /// What stops many agents at once, as long as it stands and after.
    Hold(HoldId) by id, "hold" [HoldsOf, Wake];
    /// A stretch of a list of agents that were selected together.
    MemberPart(MembersId) by id, "member_part", immutable [];
    /// A person or service that agents act for.
    Principal(PrincipalId) by id, "principal" [PrincipalsOf, Wake];
    /// Who uses an e-mail address.
    EmailUse(EmailUseId) by id, "email_use" [];
    /// Who signs in.
    Account(AccountId) by id, "account" [];
    /// A signed-in session.
    Session(SessionDigest) by id, "session" [SessionsOf, Wake];
    /// A one-time link to sign in with.
    SignInLink(SignInLinkId) by id, "sign_in_link" [Wake];
    /// A sign-in that waits for its second factor.
    PendingSignIn(PendingSignInId) by id, "pending_sign_in" [Wake];
    /// Whom an identity provider vouches for.
    SsoLink(SsoLinkId) by id, "sso_link" [];
    /// Members that are counted and selected together.
    Team(TeamId) by id, "team" [TeamsOf];
    /// What a machine shows to administer agents.
    ServiceToken(CredentialId) by id, "service_token" [TokensOf];
    /// What a service token has frozen of late, and its last drill.
    TokenUse(TokenId) by token, "token_use" [];
    /// A drill and its report.
    Drill(DrillId) by id, "drill" [Wake];
    /// Which service token has a name.
    TokenName(TokenNameId) by id, "token_name" [];
    /// What a secret's digest stands for.
    Credential(CredentialId) by id, "credential" [KeysOf];
    /// An OAuth client that registered itself.
    OAuthClient(ClientId) by id, "oauth_client" [ClientsUnused, Wake];
    /// How many OAuth clients nobody has used.
    ClientTally(ClientTallyId) by id, "client_tally" [];
    /// What a person is asked about a client.
    Consent(ConsentId) by id, "consent" [Wake];
    /// An authorization code.
    AuthCode(CodeId) by id, "auth_code" [Wake];
    /// A client that acts as an agent.
    Connection(ConnectionId) by id, "connection" [ConnectionsBy, ConnectionsOf, Wake];
    /// A refresh token that was given.
    RefreshToken(RefreshId) by id, "refresh_token", immutable [RefreshOf];
    /// A signing key, sealed.
    SigningKey(SigningUse) by id, "signing_key" [];
    /// What a member asks for that their role cannot do.
    Application(ApplicationId) by id, "application" [ApplicationsOf, ApplicationsBy, Wake];
    /// An agent: standing, epoch, the mandate versions and keys in force.
    Agent(AgentId) by id, "agent" [AgentsOf, AgentsFor, AgentsUnder, Wake];
    /// One version of a mandate.
    Mandate(MandateVersionId) by id, "mandate", immutable [VersionsOf];
    /// A template that a workspace added.
    WorkspaceTemplate(TemplateId) by id, "template" [TemplatesOf];
    /// Sliding lines, tallies of running periods, approvals that wait.
    Activity(AgentId) by agent, "activity" [];
    /// Sixty-four older entries of a sliding line.
    Block(BlockId) by id, "block" [];
    /// Twenty-four hours of payments of an agent to one registrable domain in one currency.
    Payee(PayeeId) by id, "payee" [];
    /// An action: what was asked, decided, reserved, consumed, settled.
    Action(ActionId) by id, "action" [ActionsOf, ActionsIn, Wake];
    /// What an action carried that no later change rewrites: tool input and details.
    Payload(ActionId) by action, "payload", immutable [];
    /// What a person is asked.
    Approval(ApprovalId) by id, "approval" [ApprovalsOf, AskedOf, WaitingIn, WaitingOf, Wake];
    /// Which action an idempotency key made.
    Replay(ReplayId) by id, "replay" [];
    /// How far a workspace's daily sweep has come.
    Sweep(WorkspaceId) by workspace, "sweep" [Wake];
    /// Which agent a client's session id belongs to.
    ClientSession(SessionKey) by id, "client_session" [];
    /// A call of a model.
    Call(CallId) by id, "call" [CallsOf, CallsOpen, Wake];
    /// The work that calls serve.
    Task(TaskKey) by key, "task" [TasksOf];
    /// What entered a session's context.
    Context(ContextKey) by id, "context" [];
    /// The newest record of a credential's refusals of one type.
    RefusalNote(RefusalKey) by id, "refusal_note" [Wake];
    /// A ledger record.
    Entry(EvidenceId) by id, "entry" [Unplaced, LedgerOf];
    /// The personal texts that a ledger record commits to.
    Disclosure(EvidenceId) by entry, "disclosure" [PersonalOf, PersonalBy];
    /// The ledger's head, a workspace.
    Chain(WorkspaceId) by workspace, "chain" [];
    /// A call to the outside that is to be made, or was.
    Job(DeliveryId) by id, "job" [Outbox, DeliveriesOf];
    /// How far the export of a ledger has come.
    Export(WorkspaceId) by workspace, "export" [Exports];
    /// A party outside and the secrets shared with it, sealed.
    Integration(IntegrationSlot) by slot, "integration" [Wake];
    /// What was received over an integration.
    Received(ReceivedId) by id, "received" [Wake];
    /// What waits of an agent that is alike, where people are told of it.
    Topic(TopicId) by id, "topic" [];
    /// What a full stretch of the ledger comes to.
    Tally(TallyId) by id, "tally" [];
    /// 256 hashes of the ledger's tree.
    Tile(TileId) by id, "tile" [];
}

impl Record {
    /// Whether no decision reads the row any more, so that it is not worth a place in memory: a record of the ledger that has its
    /// place, an ended call, what an action carried, texts behind commitments.
    #[must_use]
    pub fn is_history(&self) -> bool {
        match self {
            Self::Entry(it) => it.place.is_some(),
            Self::Call(it) => !it.is_running(),
            Self::Payload(_) | Self::Disclosure(_) => true,
            _ => false,
        }
    }
}
