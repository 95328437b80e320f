//! What each kind of record is told as: the one table from kinds to classes and activities.

use svc_core::state::edge::EventClass;
use svc_core::state::edge::EventClass::{
    AccountChange as Account, ApiActivity as Api, Authentication as SignIn, DetectionFinding as Finding,
    EntityManagement as Entity,
};

use self::Severity::{High, Info, Low, Medium};
use self::Standing::{Failure, InProgress, New, Resolved, Success};

/// What a kind is told as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// The class.
    pub(super) class: EventClass,
    /// The activity, as the class numbers them.
    pub(super) activity: u8,
    /// How much it matters.
    pub(super) severity: Severity,
    /// How it stands.
    pub(super) standing: Standing,
    /// A few words for people.
    pub(super) title: &'static str,
}

impl Told {
    /// What no class has a better word for.
    pub(super) const fn other(title: &'static str) -> Self {
        Self { class: Api, activity: OTHER, severity: Info, standing: Success, title }
    }
}

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    Info,
    Low,
    Medium,
    High,
}

impl Severity {
    pub(super) const fn id(self) -> u8 {
        match self {
            Info => 1,
            Low => 2,
            Medium => 3,
            High => 4,
        }
    }

    pub(super) const fn caption(self) -> &'static str {
        match self {
            Info => "Informational",
            Low => "Low",
            Medium => "Medium",
            High => "High",
        }
    }
}

/// How an event stands: a finding by its own words, everything else by whether it was granted or done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Failure,
    InProgress,
    New,
    Resolved,
    Success,
}

impl Standing {
    pub(super) const fn id(self) -> u8 {
        match self {
            New | Success => 1,
            Failure | InProgress => 2,
            Resolved => 4,
        }
    }

    pub(super) const fn caption(self) -> &'static str {
        match self {
            Failure => "Failure",
            InProgress => "In Progress",
            New => "New",
            Resolved => "Resolved",
            Success => "Success",
        }
    }

    /// Whether it is a word of findings.
    #[cfg(test)]
    pub(super) const fn is_of_findings(self) -> bool {
        matches!(self, InProgress | New | Resolved)
    }
}

/// What a kind is told as. One that the table lacks, of a later release, is told all the same.
pub(super) fn told(kind: &str) -> Told {
    let at = TABLE.binary_search_by(|row| row.0.cmp(kind));
    let row = at.ok().and_then(|at| TABLE.get(at));
    row.map_or(Told::other("Recorded"), |&(_, class, activity, severity, standing, title)| Told {
        class,
        activity,
        severity,
        standing,
        title,
    })
}

/// The names of a class and of its category.
pub(super) const fn names(class: EventClass) -> (&'static str, &'static str) {
    const IAM: &str = "Identity & Access Management";
    match class {
        Account => ("Account Change", IAM),
        Api => ("API Activity", "Application Activity"),
        SignIn => ("Authentication", IAM),
        Finding => ("Detection Finding", "Findings"),
        Entity => ("Entity Management", IAM),
    }
}

/// The name of an activity of a class; `Other` of a number that the class has not.
pub(super) const fn activity(class: EventClass, number: u8) -> &'static str {
    match (class, number) {
        (Finding | Account | Entity | Api, 1) => "Create",
        (Finding, 2) | (Entity | Api, 3) => "Update",
        (Finding, 3) => "Close",
        (Account, 2) | (Entity, 8) => "Enable",
        (Account, 3) => "Password Change",
        (Account, 4) => "Password Reset",
        (Account, 5) | (Entity, 9) => "Disable",
        (Account, 6) | (Entity | Api, 4) => "Delete",
        (Account, 7) => "Attach Policy",
        (Account, 8) => "Detach Policy",
        (Account, 9) => "Lock",
        (Account, 10) => "MFA Factor Enable",
        (Account, 11) => "MFA Factor Disable",
        (Entity | Api, 2) => "Read",
        (Entity, 5) => "Move",
        (Entity, 6) => "Enroll",
        (Entity, 7) => "Unenroll",
        (Entity, 10) => "Activate",
        (Entity, 11) => "Deactivate",
        (Entity, 12) => "Suspend",
        (Entity, 13) => "Resume",
        (SignIn, 1) => "Logon",
        (SignIn, 2) => "Logoff",
        _ => "Other",
    }
}

/// An activity that the class has no number for.
const OTHER: u8 = 99;

type Row = (&'static str, EventClass, u8, Severity, Standing, &'static str);

/// Every kind, in the order of the list of kinds.
pub(super) const TABLE: &[Row] = &[
    ("action.allowed", Finding, 1, Info, Resolved, "Action allowed"),
    ("action.approved", Api, 3, Info, Success, "Action approved by a person"),
    ("action.asked", Finding, 1, Low, New, "Action waits for a person"),
    ("action.consented", Api, 3, Info, Success, "First of two persons approved"),
    ("action.denied", Finding, 1, Medium, New, "Action denied"),
    ("action.expired", Api, 3, Low, Failure, "Nobody decided in time"),
    ("action.lapsed", Finding, 3, Low, Resolved, "Action never settled"),
    ("action.person_denied", Api, 3, Low, Failure, "Action denied by a person"),
    ("action.released", Finding, 3, Info, Resolved, "Kept amount released"),
    ("action.revoked", Finding, 2, Medium, New, "Action revoked by a stop"),
    ("action.settled", Finding, 3, Info, Resolved, "Action settled"),
    ("action.unapproved_run", Finding, 2, High, New, "Action run without approval"),
    ("agent.changed", Entity, 3, Info, Success, "Agent changed"),
    ("agent.created", Entity, 1, Info, Success, "Agent made"),
    ("agent.frozen", Entity, 12, Medium, Success, "Agent frozen"),
    ("agent.removed", Entity, 4, Low, Success, "Agent removed"),
    ("agent.renamed", Entity, 5, Info, Success, "Agent renamed"),
    ("agent.restarted", Entity, 13, Low, Success, "Agent started again"),
    ("application.approved", Api, 3, Low, Success, "Application approved"),
    ("application.created", Api, 1, Info, Success, "Application made"),
    ("application.denied", Api, 3, Info, Failure, "Application denied"),
    ("application.expired", Api, 3, Info, Failure, "Application expired"),
    ("application.withdrawn", Api, 4, Info, Success, "Application withdrawn"),
    ("approval.approved", Api, 3, Info, Success, "Approval given"),
    ("approval.asked", Api, 1, Info, Success, "Approval asked for"),
    ("approval.consented", Api, 3, Info, Success, "First of two persons approved"),
    ("approval.denied", Api, 3, Low, Failure, "Approval denied"),
    ("approval.expired", Api, 3, Low, Failure, "Approval expired"),
    ("billing.imported", Entity, 1, Info, Success, "Provider's bill imported"),
    ("budget.changed", Entity, 3, Info, Success, "Budget changed"),
    ("budget.created", Entity, 1, Info, Success, "Budget made"),
    ("budget.lapsed", Entity, 3, Low, Success, "Model call lapsed"),
    ("budget.raised", Entity, 3, Low, Success, "Budget raised"),
    ("budget.removed", Entity, 4, Low, Success, "Budget removed"),
    ("budget.step", Entity, 3, Low, Success, "Budget reached a step"),
    ("connection.created", Account, 1, Info, Success, "Application connected"),
    ("connection.ended", Account, 6, Low, Success, "Connection ended"),
    ("delivery.failed", Api, OTHER, Medium, Failure, "Delivery given up"),
    ("drill.failed", Finding, 3, High, New, "Drill failed"),
    ("drill.passed", Finding, 3, Info, Resolved, "Drill passed"),
    ("drill.started", Finding, 1, Info, InProgress, "Drill started"),
    ("erasure", Entity, 4, Low, Success, "Personal texts erased"),
    ("fleet.frozen", Entity, 12, High, Success, "Agents frozen"),
    ("hold.lifted", Entity, 11, Medium, Success, "Hold lifted"),
    ("hold.set", Entity, 10, High, Success, "Hold set"),
    ("incident.over_settlement", Finding, 1, High, New, "Settled above what was allowed"),
    ("integration.changed", Entity, 3, Low, Success, "Integration changed"),
    ("integration.created", Entity, 1, Low, Success, "Integration made"),
    ("integration.received", Api, 1, Info, Success, "Event received"),
    ("integration.removed", Entity, 4, Low, Success, "Integration removed"),
    ("integration.retried", Api, 3, Info, Success, "Delivery tried again"),
    ("integration.rotated", Entity, 3, Low, Success, "Secret of an integration rotated"),
    ("integration.tested", Api, 1, Info, Success, "Integration tried out"),
    ("key.created", Account, 1, Low, Success, "Key made"),
    ("key.revoked", Account, 6, Low, Success, "Key revoked"),
    ("mandate.changed", Entity, 3, Low, Success, "Mandate changed"),
    ("mandate.created", Entity, 1, Low, Success, "Mandate granted"),
    ("mandate.revoked", Entity, 4, Low, Success, "Mandate revoked"),
    ("mcp_server.accepted", Entity, 13, Low, Success, "Tools of an MCP server accepted"),
    ("mcp_server.changed", Entity, 3, Low, Success, "MCP server changed"),
    ("mcp_server.created", Entity, 1, Low, Success, "MCP server made"),
    ("mcp_server.held", Entity, 12, Medium, Success, "Changed tools of an MCP server held"),
    ("mcp_server.removed", Entity, 4, Low, Success, "MCP server removed"),
    ("member.changed", Account, OTHER, Low, Success, "Member changed"),
    ("member.created", Account, 1, Low, Success, "Member made"),
    ("member.invited", Account, 1, Info, Success, "Member invited"),
    ("member.joined", Account, 2, Low, Success, "Member joined"),
    ("member.link_made", Account, 4, Low, Success, "Sign-in link made"),
    ("member.linked", Account, OTHER, Low, Success, "Identity provider linked"),
    ("member.password_changed", Account, 3, Low, Success, "Password changed"),
    ("member.removed", Account, 6, Low, Success, "Member removed"),
    ("member.two_factor_added", Account, 10, Info, Success, "Second factor added"),
    ("member.two_factor_removed", Account, 11, Medium, Success, "Second factor removed"),
    ("model.changed", Entity, 3, Info, Success, "Model changed"),
    ("model.created", Entity, 1, Info, Success, "Model made"),
    ("model.removed", Entity, 4, Info, Success, "Model removed"),
    ("outcome.reported", Api, 1, Info, Success, "Outcome of a task reported"),
    ("policy_profile.changed", Entity, 3, Low, Success, "Policy profile changed"),
    ("policy_profile.created", Entity, 1, Low, Success, "Policy profile made"),
    ("policy_profile.removed", Entity, 4, Low, Success, "Policy profile removed"),
    ("receipt.consumed", Finding, 2, Info, Resolved, "Receipt used"),
    ("refusal", Finding, 1, Low, New, "Request refused"),
    ("rotation", Entity, 3, Low, Success, "Signing key rotated"),
    ("routing.changed", Entity, 3, Low, Success, "Routing changed"),
    ("session.ended", SignIn, 2, Info, Success, "Signed out"),
    ("session.started", SignIn, 1, Info, Success, "Signed in"),
    ("settings.changed", Entity, 3, Low, Success, "Settings changed"),
    ("signal.received", Finding, 1, Medium, New, "Signal of an identity provider received"),
    ("task_class.changed", Entity, 3, Info, Success, "Class of tasks changed"),
    ("task_class.created", Entity, 1, Info, Success, "Class of tasks made"),
    ("task_class.removed", Entity, 4, Info, Success, "Class of tasks removed"),
    ("team.changed", Entity, 3, Low, Success, "Team changed"),
    ("team.created", Entity, 1, Info, Success, "Team made"),
    ("team.removed", Entity, 4, Low, Success, "Team removed"),
    ("token.created", Account, 1, Low, Success, "Service token made"),
    ("token.revoked", Account, 6, Low, Success, "Service token revoked"),
    ("upstream.changed", Entity, 3, Low, Success, "Provider of models changed"),
    ("upstream.created", Entity, 1, Low, Success, "Provider of models made"),
    ("upstream.removed", Entity, 4, Low, Success, "Provider of models removed"),
];
