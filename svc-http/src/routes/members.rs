//! Members and teams.

use http::Method;
use svc_core::refusal::Kind;
use svc_core::state::people::Right;

use super::{Auth, CONSOLE, Content, Op, PAGE, Route};

/// What these routes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MembersOp {
    /// Lists members.
    Members,
    /// Invites somebody.
    Invite,
    /// Reads one.
    Member,
    /// Changes one.
    Change,
    /// Removes one.
    Remove,
    /// Lists teams.
    Teams,
    /// Makes one.
    CreateTeam,
    /// Reads one.
    Team,
    /// Changes one.
    ChangeTeam,
    /// Removes one.
    RemoveTeam,
}

const READ: Route = Route { auth: Auth::Member(Right::ReadMembers), ..CONSOLE };
const WRITE: Route = Route { auth: Auth::Member(Right::ManageMembers), ..CONSOLE };
const OWNERS: &[Kind] = &[Kind::NotAllowed, Kind::SecondOwnerRequired];

/// The rows.
pub(super) const ROUTES: &[Route] = &[
    Route {
        op: Op::Members(MembersOp::Members),
        path: "/api/w/{wid}/members",
        content: Content::Json("Members"),
        query: PAGE,
        summary: "Members, also invited and removed ones, newest first",
        ..READ
    },
    Route {
        op: Op::Members(MembersOp::Invite),
        method: Method::POST,
        path: "/api/w/{wid}/members",
        request: Some("NewMember"),
        content: Content::Json("Member"),
        success: &[201, 202],
        refusals: &[Kind::NotAllowed, Kind::SecondOwnerRequired],
        summary: "Invite somebody, or again; an owner is invited by owners, and where there are two a second agrees (202)",
        ..WRITE
    },
    Route {
        op: Op::Members(MembersOp::Member),
        path: "/api/w/{wid}/members/{prp}",
        content: Content::Json("Member"),
        summary: "One member",
        ..READ
    },
    Route {
        op: Op::Members(MembersOp::Change),
        method: Method::PATCH,
        path: "/api/w/{wid}/members/{prp}",
        request: Some("MemberChange"),
        content: Content::Json("Member"),
        success: &[200, 202],
        refusals: OWNERS,
        summary: "Change a member's role or teams; where there are two owners a second one agrees to each owner (202)",
        ..WRITE
    },
    Route {
        op: Op::Members(MembersOp::Remove),
        method: Method::DELETE,
        path: "/api/w/{wid}/members/{prp}",
        content: Content::Json("Member"),
        success: &[204, 202],
        refusals: OWNERS,
        summary: "Remove a member with their keys; where there are two owners a second one agrees to an owner's (202)",
        ..WRITE
    },
    Route {
        op: Op::Members(MembersOp::Teams),
        path: "/api/w/{wid}/teams",
        content: Content::Json("Teams"),
        query: PAGE,
        summary: "Teams, newest first",
        ..READ
    },
    Route {
        op: Op::Members(MembersOp::CreateTeam),
        method: Method::POST,
        path: "/api/w/{wid}/teams",
        request: Some("NewTeam"),
        content: Content::Json("Team"),
        success: &[201],
        summary: "Make a team",
        ..WRITE
    },
    Route {
        op: Op::Members(MembersOp::Team),
        path: "/api/w/{wid}/teams/{team}",
        content: Content::Json("Team"),
        summary: "One team",
        ..READ
    },
    Route {
        op: Op::Members(MembersOp::ChangeTeam),
        method: Method::PATCH,
        path: "/api/w/{wid}/teams/{team}",
        request: Some("TeamChange"),
        content: Content::Json("Team"),
        summary: "Change a team",
        ..WRITE
    },
    Route {
        op: Op::Members(MembersOp::RemoveTeam),
        method: Method::DELETE,
        path: "/api/w/{wid}/teams/{team}",
        refusals: &[Kind::NotAllowed],
        content: Content::Empty,
        success: &[204],
        summary: "Remove a team that no budget is over and no key is bound to; its members stay",
        ..WRITE
    },
];
