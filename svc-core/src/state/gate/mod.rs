//! The gate's nouns: agents and their mandates, actions and their approvals, receipts.

mod action;
mod activity;
mod agent;
mod approval;
mod block;
mod drill;
mod erasure;
pub mod kind;
mod mandate;
mod outcome;
mod payee;
pub mod provenance;
mod reason;
pub mod receipt;
mod replay;
mod request;
mod salt;
mod sweep;
mod template;
mod terms_change;
pub mod verify_key;

pub use crate::value::text::{Detail, Source};
pub use action::{
    Action, Allowed, Callback, Consumed, DataShare, DecidedBy, Incident, LAPSE_AFTER, Lapse, OPEN_MAX, Payment,
    Reservation, State, Status, Tool, Verb,
};
pub use activity::{
    Activity, CONFLICT_QUIET, DENIALS_KEPT, Line, Nth, RUNS_KEPT, RUNS_QUIET, SeenSource, Tally, Term, ToldConflict,
    ToldTopic, UNLIKE_FOR, UNLIKE_KEPT,
};
pub use agent::{
    AGENT_KEYS_MAX, AGENT_MANDATES_MAX, Agent, Frozen, FrozenBy, Grant, HeldKey, STOPS_KEPT, Standing, Through, Tier,
};
pub use approval::{
    ASKED_APPLICATIONS_MAX, Approval, ApprovalKind, ApprovalState, ApprovalSubject, AskedAction, AskedBudget,
    AskedFreeze, AskedLift, AskedOwner, Consent, OwnerChange, Requester, Via,
};
pub use block::{Block, BlockId, BlockOwner, SEALED};
pub use drill::{DRILL_EVERY, DRILL_LIFE, Drill, DrillPoint, DrillState, DrillStep, FREEZE_WITHIN};
pub use erasure::erased;
pub use kind::{ActionKind, ActionPattern};
pub use mandate::{
    Count, Duplicates, Fields, Limits, Mandate, MandateState, Merchants, OnLimit, PerPeriod, Terms, Tools,
};
pub use outcome::{Outcome, OutcomeStatus, Released};
pub use payee::{DUPLICATE_WINDOW, PAYEE_SEALED, Payee, PayeeSlot, SPLIT_WINDOW, place_of};
pub use provenance::{Class, Declared, Origin, Verdict};
pub use reason::{Code, Effect, Reason};
pub use replay::{ClientSession, Payload, REPLAY_KEPT, Replay, SESSION_KEPT, SESSION_NOTED, StandIn};
pub use request::{Account, DATA_FIELDS_MAX, Details, PROVENANCE_MAX, Request, ToolInput, commitment, commitment_salt};
pub(crate) use salt::salt_serde;
pub use salt::salt_text;
pub use sweep::{JOB_KEPT, SWEEP_EVERY, Sweep};
pub use template::{CATALOGUE, Template, WorkspaceTemplate};
pub use terms_change::{LimitsChange, MerchantsChange, Set, TermsChange, ToolsChange};
