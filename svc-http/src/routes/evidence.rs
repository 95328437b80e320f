//! The ledger: its records, evidence bundles, proofs and scorecards, for people, machines and admin keys.

use svc_core::refusal::Kind;
use svc_core::state::people::{Right, TokenScope};

use super::{Auth, CONSOLE, Content, Limit, OPEN, Op, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvidenceOp {
    /// Lists records, newest first.
    List,
    /// Gives a bundle to a person.
    Bundle,
    /// Proves a record to a person.
    Proof,
    /// Gives a scorecard to a person.
    Scorecard,
    /// Gives a bundle to a machine.
    TokenBundle,
    /// Proves a record to a machine.
    TokenProof,
    /// Gives a scorecard to a machine.
    TokenScorecard,
    /// Gives a bundle to an admin key.
    KeyBundle,
    /// Proves a record to an admin key.
    KeyProof,
}

/// The parameters of the list.
const LISTED: &[&str] = &["limit", "cursor", "kind", "about", "from", "to"];
/// The parameters of a bundle.
const WANTED: &[&str] = &["from", "to", "since", "agentId", "redact", "cursor"];
/// The parameters of a scorecard.
const CARD: &[&str] = &["agentId", "from", "to"];

/// What a signed-in person who may read evidence asks.
const MEMBER: Route = Route { auth: Auth::Member(Right::ReadEvidence), ..CONSOLE };
/// What a service token asks.
const TOKEN: Route = Route { auth: Auth::Token(TokenScope::EvidenceRead), limit: Limit::Token, ..OPEN };
/// What an admin key asks.
const KEY: Route = Route { auth: Auth::WorkspaceAdmin, limit: Limit::Key, ..OPEN };

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Evidence(EvidenceOp::List),
        path: "/api/w/{wid}/ledger",
        content: Content::Json("LedgerList"),
        query: LISTED,
        summary: "The ledger's records, newest first, as far as they are asked for",
        ..MEMBER
    },
    Route {
        op: Op::Evidence(EvidenceOp::Bundle),
        path: "/api/w/{wid}/evidence",
        content: Content::Json("Evidence"),
        query: WANTED,
        summary: "An evidence bundle that anyone can check offline",
        ..MEMBER
    },
    Route {
        op: Op::Evidence(EvidenceOp::Proof),
        path: "/api/w/{wid}/evidence/{evd}/proof",
        content: Content::Json("EvidenceProof"),
        summary: "What shows that a record stands in the ledger",
        ..MEMBER
    },
    Route {
        op: Op::Evidence(EvidenceOp::Scorecard),
        path: "/api/w/{wid}/scorecard",
        content: Content::Json("Scorecard"),
        query: CARD,
        summary: "Signed counts that follow from the ledger",
        ..MEMBER
    },
    Route {
        op: Op::Evidence(EvidenceOp::TokenBundle),
        path: "/v1/admin/evidence",
        content: Content::Json("Evidence"),
        refusals: &[Kind::NotFound],
        query: WANTED,
        summary: "An evidence bundle that anyone can check offline",
        ..TOKEN
    },
    Route {
        op: Op::Evidence(EvidenceOp::TokenProof),
        path: "/v1/admin/evidence/{evd}/proof",
        content: Content::Json("EvidenceProof"),
        refusals: &[Kind::NotFound],
        summary: "What shows that a record stands in the ledger",
        ..TOKEN
    },
    Route {
        op: Op::Evidence(EvidenceOp::TokenScorecard),
        path: "/v1/admin/scorecard",
        content: Content::Json("Scorecard"),
        refusals: &[Kind::NotFound],
        query: CARD,
        summary: "Signed counts that follow from the ledger",
        ..TOKEN
    },
    Route {
        op: Op::Evidence(EvidenceOp::KeyBundle),
        path: "/v1/evidence",
        content: Content::Json("Evidence"),
        refusals: &[Kind::NotFound],
        query: WANTED,
        summary: "An evidence bundle that anyone can check offline",
        ..KEY
    },
    Route {
        op: Op::Evidence(EvidenceOp::KeyProof),
        path: "/v1/evidence/{evd}/proof",
        content: Content::Json("EvidenceProof"),
        refusals: &[Kind::NotFound],
        summary: "What shows that a record stands in the ledger",
        ..KEY
    },
];
