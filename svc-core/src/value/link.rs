//! What nouns need to know of storage, and nothing more: how a row says by which indexes it is found.
//!
//! **Invariant:** a row's links are a pure function of the row. Nobody sets or cancels a timer or keeps a list.

use super::{Id, Timestamp, id::WorkspaceId};

/// Shards that timers, jobs and waiting ledger records are spread over, by workspace.
pub const SHARDS: u128 = 16;

/// Everything a row can be found by besides its key. An index's meaning never changes: a changed one is a new index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Index {
    /// Actions of an agent, by id (which is by time).
    ActionsOf,
    /// Actions of a workspace, by id.
    ActionsIn,
    /// Agents that act for a principal, by id.
    AgentsFor,
    /// Agents of a workspace, by id.
    AgentsOf,
    /// Applications of a workspace, by id.
    ApplicationsOf,
    /// Applications that a principal made, by id.
    ApplicationsBy,
    /// OAuth clients that nobody has used, by id, under prefix 0.
    ClientsUnused,
    /// Connections that a principal made and that have not ended, by id.
    ConnectionsBy,
    /// Connections of a workspace, by id.
    ConnectionsOf,
    /// Approvals of a workspace, by id.
    ApprovalsOf,
    /// Approvals that an agent asked for, by id.
    AskedOf,
    /// Agents that a principal is the sponsor of, by id.
    AgentsUnder,
    /// Calls to the outside of a workspace, by when they were written.
    DeliveriesOf,
    /// Holds of a workspace, by id.
    HoldsOf,
    /// Comparisons with bills of a workspace, by id.
    BillingOf,
    /// Days of model traffic of a workspace, by day.
    CellsOf,
    /// Keys of a workspace, by id.
    KeysOf,
    /// Principals of a workspace, by id.
    PrincipalsOf,
    /// Refresh tokens of a connection, by the first half of their digests.
    RefreshOf,
    /// Sessions of an account, by id.
    SessionsOf,
    /// Teams of a workspace, by id.
    TeamsOf,
    /// Service tokens of a workspace, by id.
    TokensOf,
    /// Templates of a workspace, by the first bytes of their names.
    TemplatesOf,
    /// Versions of a mandate, by their number.
    VersionsOf,
    /// Placed ledger records of a workspace, by `seq`.
    LedgerOf,
    /// Personal texts that a person's records disclose, by the record's id.
    PersonalBy,
    /// Personal texts disclosed about one thing, by the record's id.
    PersonalOf,
    /// Calls to the outside of a shard that are to be made, by when they are due.
    Outbox,
    /// Exports of a shard that may go on, by when their integrations were made.
    Exports,
    /// Workspaces, by id, under prefix 0.
    Workspaces,
    /// Ledger records that have no place yet, of a shard, by the stamp of the commit that wrote them.
    Unplaced,
    /// Approvals that wait, of a workspace, by id.
    WaitingIn,
    /// Approvals that wait, of an agent, by id.
    WaitingOf,
    /// Model calls of a workspace, by id.
    CallsOf,
    /// Model calls of a workspace that run, by id.
    CallsOpen,
    /// Tasks of a workspace, by when they began.
    TasksOf,
    /// Timers of a shard, by when they are due.
    Wake,
}

impl Index {
    /// Every index, in a fixed order.
    pub const ALL: &'static [Self] = &[
        Self::ActionsOf,
        Self::ActionsIn,
        Self::AgentsFor,
        Self::AgentsOf,
        Self::ApplicationsOf,
        Self::ApplicationsBy,
        Self::ClientsUnused,
        Self::ConnectionsBy,
        Self::ConnectionsOf,
        Self::ApprovalsOf,
        Self::AskedOf,
        Self::AgentsUnder,
        Self::DeliveriesOf,
        Self::HoldsOf,
        Self::BillingOf,
        Self::CellsOf,
        Self::KeysOf,
        Self::PrincipalsOf,
        Self::RefreshOf,
        Self::SessionsOf,
        Self::TeamsOf,
        Self::TokensOf,
        Self::TemplatesOf,
        Self::VersionsOf,
        Self::LedgerOf,
        Self::Outbox,
        Self::Exports,
        Self::PersonalBy,
        Self::PersonalOf,
        Self::Workspaces,
        Self::Unplaced,
        Self::WaitingIn,
        Self::WaitingOf,
        Self::CallsOf,
        Self::CallsOpen,
        Self::TasksOf,
        Self::Wake,
    ];

    /// Whether it orders rows by their own ids, so that a store need not keep the order beside the key. Said of the lists
    /// that grow with every request.
    #[must_use]
    pub const fn is_by_key(self) -> bool {
        matches!(self, Self::ActionsOf | Self::ActionsIn | Self::CallsOf | Self::CallsOpen)
    }

    /// The name under which a store keeps it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ActionsOf => "actions_of",
            Self::ActionsIn => "actions_in",
            Self::AgentsFor => "agents_for",
            Self::AgentsOf => "agents_of",
            Self::ApplicationsOf => "applications_of",
            Self::ApplicationsBy => "applications_by",
            Self::ClientsUnused => "clients_unused",
            Self::ConnectionsBy => "connections_by",
            Self::ConnectionsOf => "connections_of",
            Self::ApprovalsOf => "approvals_of",
            Self::AskedOf => "asked_of",
            Self::AgentsUnder => "agents_under",
            Self::Exports => "exports",
            Self::DeliveriesOf => "deliveries_of",
            Self::HoldsOf => "holds_of",
            Self::BillingOf => "billing_of",
            Self::CellsOf => "cells_of",
            Self::KeysOf => "keys_of",
            Self::PrincipalsOf => "principals_of",
            Self::RefreshOf => "refresh_of",
            Self::SessionsOf => "sessions_of",
            Self::TeamsOf => "teams_of",
            Self::TokensOf => "tokens_of",
            Self::TemplatesOf => "templates_of",
            Self::VersionsOf => "versions_of",
            Self::LedgerOf => "ledger_of",
            Self::Outbox => "outbox",
            Self::PersonalBy => "personal_by",
            Self::PersonalOf => "personal_of",
            Self::Workspaces => "workspaces",
            Self::Unplaced => "unplaced",
            Self::WaitingIn => "waiting_in",
            Self::WaitingOf => "waiting_of",
            Self::CallsOf => "calls_of",
            Self::CallsOpen => "calls_open",
            Self::TasksOf => "tasks_of",
            Self::Wake => "wake",
        }
    }
}

/// Where in its index a row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// An id, an instant, a number.
    At(u128),
    /// The stamp of the commit that writes the row; the store fills it in.
    Stamp,
}

/// One row's entry in one index. Indexes sort by prefix, then order, then key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The index.
    pub index: Index,
    /// Whose list it is: an agent, a workspace, a shard.
    pub prefix: u128,
    /// The place in that list.
    pub order: Order,
}

impl Link {
    /// An entry ordered by an id's bits.
    pub fn by_id(index: Index, prefix: u128, id: impl Id) -> Self {
        Self { index, prefix, order: Order::At(id.bits()) }
    }

    /// A timer of `workspace`'s shard that is due at `at`.
    #[must_use]
    pub fn wake(workspace: WorkspaceId, at: Timestamp) -> Self {
        Self::wake_of(workspace.bits(), at)
    }

    /// A timer that is due at `at`, of the shard that the id with these bits lies in.
    #[must_use]
    pub fn wake_of(bits: u128, at: Timestamp) -> Self {
        Self { index: Index::Wake, prefix: bits % SHARDS, order: Order::At(instant_order(at)) }
    }
}

/// The shard that a workspace's timers, jobs and waiting records lie in.
#[must_use]
pub fn shard(workspace: WorkspaceId) -> u128 {
    workspace.bits() % SHARDS
}

/// An instant as an order; instants before 1970 count as 1970.
#[must_use]
pub fn instant_order(at: Timestamp) -> u128 {
    u128::try_from(at.as_millis()).unwrap_or(0)
}

/// What a row is found by: at most one link an index.
pub trait Linked {
    /// The row's links, from the row alone.
    fn links(&self) -> Vec<Link>;

    /// Bytes that the row is sure to need later: a store leaves room for them, so that the row grows in its place.
    fn room(&self) -> usize {
        0
    }

    /// The row's JSON, where the row writes it itself: what it would be written as otherwise, for less.
    fn json(&self) -> Option<String> {
        None
    }
}

/// What a row's id gives to be a key.
pub trait RowId: Copy {
    /// The bits, and the number that follows them, if the id has one.
    fn parts(self) -> (u128, Option<u32>);
    /// The id over these parts; `None` where the number is missing or too many.
    fn from_parts(bits: u128, number: Option<u32>) -> Option<Self>;
}
