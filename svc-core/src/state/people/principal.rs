//! Who agents act for, in one workspace, and what they may do there if they can sign in.

use serde::{Deserialize, Serialize};

use super::role::{Reach, Right, Role};
use crate::value::digest::{EmailUseId, SsoLinkId};
use crate::value::id::{AccountId, ApplicationId, ApprovalId, PrincipalId, TeamId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::{Email, Label};
use crate::value::words::words;
use crate::value::{Id, Span, Timestamp};

/// A person or service that agents act for, in one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// Its id.
    pub id: PrincipalId,
    /// The workspace it belongs to.
    pub workspace: WorkspaceId,
    /// Where it is reached.
    pub email: Email,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Label>,
    /// What makes it a member; absent where it has no sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<Member>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when its keys and agents wait to be ended and passed on one by one, after its membership ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub following: Option<Timestamp>,
    /// The question to a second owner whether it is invited as an owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_invite: Option<ApprovalId>,
    /// The applications it made that waited when it last made one, the oldest first, at most [`APPLICATIONS_WAITING_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<ApplicationId>,
}

/// How many applications of one person may wait at once.
pub const APPLICATIONS_WAITING_MAX: usize = 50;

/// A principal's sign-in to its workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// What they may do.
    pub role: Role,
    /// Where the membership stands.
    pub state: MemberState,
    /// The account that signs in.
    pub account: AccountId,
    /// The teams they are in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<TeamId>,
    /// Who invited them; absent where the operator did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invited_by: Option<PrincipalId>,
    /// When the membership last ended: keys that were made before are void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The question to a second owner whether they become or cease to be an owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_change: Option<ApprovalId>,
    /// Who else invited them, gave them a sign-in link or changed their role, and when each did so last, the newest at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raised: Vec<(PrincipalId, Timestamp)>,
    /// When they last ceased to have a role that gives keys: admin keys that they made before stay void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demoted_at: Option<Timestamp>,
    /// When an identity provider last said that they are signed out: sessions that were made before are not good in this
    /// workspace, whatever they are good for elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_out_at: Option<Timestamp>,
    /// When an identity provider last said that their account is shut: keys and connections that they made before are void, as
    /// where they had left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shut_out_at: Option<Timestamp>,
    /// When they last became an owner: whoever might link them in other systems before may not give away an owner's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_at: Option<Timestamp>,
    /// Whom the workspace's identity provider vouches for as them, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sso: Option<SsoLinkId>,
}

/// How long it is kept who raised somebody: as long as a workspace may ask for.
/// The host of addresses that nobody has.
const NOWHERE: &str = "erased.invalid";
const RAISED_KEPT: Span = Span::hours(24 * 90);

impl Member {
    /// A membership without teams that nobody has raised.
    #[must_use]
    pub const fn new(role: Role, state: MemberState, account: AccountId) -> Self {
        Self {
            role,
            state,
            account,
            teams: Vec::new(),
            invited_by: None,
            ended_at: None,
            owner_change: None,
            raised: Vec::new(),
            demoted_at: None,
            signed_out_at: None,
            shut_out_at: None,
            owner_at: None,
            sso: None,
        }
    }

    /// Whether a session that was made at `at` has been ended here since.
    #[must_use]
    pub fn was_signed_out_since(&self, at: Timestamp) -> bool {
        self.signed_out_at.is_some_and(|end| at <= end)
    }

    /// Whether what an identity provider said at `at`, of which it tells the whole second alone, was said before it last had them signed
    /// out.
    #[must_use]
    pub fn was_signed_out_after(&self, at: Timestamp) -> bool {
        self.signed_out_at.is_some_and(|end| at.as_seconds() < end.as_seconds())
    }

    /// Whether they have become an owner since `at`, also where they have ceased to be one again.
    #[must_use]
    pub fn became_owner_since(&self, at: Timestamp) -> bool {
        self.owner_at.is_some_and(|owner| at <= owner)
    }

    /// The same in another role, from `now` on.
    #[must_use]
    pub fn in_role(mut self, role: Role, now: Timestamp) -> Self {
        if self.role != Role::Owner && role == Role::Owner {
            self.owner_at = Some(now);
        }
        if self.role.gives_keys() && !role.gives_keys() {
            self.demoted_at = Some(now);
        }
        self.role = role;
        self
    }

    /// Whether an admin key that they made at `at`, or what they made for an agent of another's, is void because their role gave none at
    /// some time since.
    #[must_use]
    pub fn was_demoted_since(&self, at: Timestamp) -> bool {
        self.demoted_at.is_some_and(|end| at <= end)
    }

    /// Notes that `by` has made `own`, whose membership this is, what they are. Nobody does so to themselves.
    pub fn raise(&mut self, own: PrincipalId, by: PrincipalId, now: Timestamp) {
        if by != own {
            self.raised.retain(|(it, at)| *it != by && now.since(*at) < RAISED_KEPT);
            self.raised.push((by, now));
        }
    }
}

/// Where a membership stands (CONTRACT part 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// Has never signed in.
    Invited,
    /// Signs in.
    Active,
    /// Was removed.
    Disabled,
}

words! { MemberState;
    Invited "invited";
    Active "active";
    Disabled "disabled";
}

impl Principal {
    /// A principal without a sign-in.
    #[must_use]
    pub const fn new(id: PrincipalId, workspace: WorkspaceId, email: Email, created_at: Timestamp) -> Self {
        Self {
            id,
            workspace,
            email,
            name: None,
            member: None,
            created_at,
            following: None,
            owner_invite: None,
            applications: Vec::new(),
        }
    }

    /// The same without name and address. What acted for it and what it did still names its id.
    #[must_use]
    pub fn forget(mut self) -> Self {
        self.email = Self::nowhere(self.id).unwrap_or(self.email);
        self.name = None;
        if let Some(member) = &mut self.member {
            member.sso = None;
        }
        self
    }

    /// What people call it: its name, its address where it has none; nothing once both are forgotten.
    #[must_use]
    pub fn called(&self) -> Option<&str> {
        let address = Some(self.email.as_str()).filter(|_| !self.is_forgotten());
        self.name.as_ref().map(Label::as_str).or(address)
    }

    /// Whether it has no address any more.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        Self::nowhere(self.id).is_some_and(|it| it == self.email)
    }

    /// What stands in the place of an address that was forgotten: one that nobody has.
    #[must_use]
    pub fn nowhere(id: PrincipalId) -> Option<Email> {
        Email::parse(&format!("{id}@{NOWHERE}")).ok()
    }

    /// Whether an address is one that stands in the place of another.
    #[must_use]
    pub fn is_nowhere(address: &Email) -> bool {
        address.folded().split_once('@').is_some_and(|(_, host)| host == NOWHERE)
    }

    /// Its membership, unless that was ended.
    #[must_use]
    pub fn membership(&self) -> Option<&Member> {
        self.member.as_ref().filter(|it| it.state != MemberState::Disabled)
    }

    /// Whether it was a member and is none any more.
    #[must_use]
    pub fn was_removed(&self) -> bool {
        self.member.as_ref().is_some_and(|it| it.state == MemberState::Disabled)
    }

    /// Whether what follows their leaving is still to be done, be they a member again or not; what follows a role or a shutting out is none.
    #[must_use]
    pub fn is_followed_for_leaving(&self) -> bool {
        let ended = self.member.as_ref().and_then(|it| it.ended_at);
        self.following.is_some_and(|since| ended.is_some_and(|end| end >= since))
    }

    /// From when on what follows is to be done anew. While their leaving is still followed that is an instant before: all of it is gone
    /// through again, and goes on to be of their leaving.
    #[must_use]
    pub fn followed_anew(&self, now: Timestamp) -> Timestamp {
        let leaving = self.following.filter(|_| self.is_followed_for_leaving());
        leaving.map_or(now, |since| since.minus(Span::millis(1)))
    }

    /// Whether a key made at `at` is void because the membership ended since, or because the person was shut out where they sign in.
    #[must_use]
    pub fn has_ended_since(&self, at: Timestamp) -> bool {
        self.member.as_ref().and_then(|it| it.ended_at.max(it.shut_out_at)).is_some_and(|end| at <= end)
    }

    /// Whether a yes that they gave at `at` is theirs no more: their membership ended since, they were shut out where they sign in, or
    /// they lost the role in which they gave it, also where they have come back.
    #[must_use]
    pub fn has_lost_word_since(&self, at: Timestamp) -> bool {
        self.has_ended_since(at) || self.member.as_ref().is_some_and(|it| it.was_demoted_since(at))
    }

    /// Whether it is an owner who has signed in, and has been one without a break since `at`, nor been shut out.
    #[must_use]
    pub fn is_owner_since(&self, at: Timestamp) -> bool {
        let owner = |it: &&Member| it.role == Role::Owner && it.state == MemberState::Active;
        let member = self.membership().filter(owner).filter(|_| !self.has_ended_since(at));
        member.is_some_and(|it| it.owner_at.is_none_or(|since| since <= at))
    }

    /// Who has made them what they are less than `age` ago, be they a member still or not.
    #[must_use]
    pub fn raisers(&self, age: Span, now: Timestamp) -> Vec<PrincipalId> {
        let raised = self.member.as_ref().map(|it| it.raised.as_slice()).unwrap_or_default();
        raised.iter().filter(|(_, at)| now.since(*at) < age).map(|(by, _)| *by).collect()
    }

    /// Whether it can sign in.
    #[must_use]
    pub fn signs_in(&self) -> bool {
        self.membership().is_some()
    }

    /// Whether it is an owner or admin who has signed in.
    #[must_use]
    pub fn administers(&self) -> bool {
        let has_come = |it: &&Member| it.state == MemberState::Active;
        self.membership().filter(has_come).is_some_and(|it| matches!(it.role, Role::Owner | Role::Admin))
    }

    /// Whether it can sign in and decide what its own agents ask.
    #[must_use]
    pub fn decides_own(&self) -> bool {
        self.membership().is_some_and(|it| it.role.reach(Right::DecideApprovals) != Reach::No)
    }
}

impl Linked for Principal {
    fn links(&self) -> Vec<Link> {
        let mut links = vec![Link::by_id(Index::PrincipalsOf, self.workspace.bits(), self.id)];
        links.extend(self.following.map(|since| Link::wake(self.workspace, since)));
        links
    }
}

/// Who uses an e-mail address. Addresses are one whatever their case and whichever way their host is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmailUse {
    /// Its row.
    pub id: EmailUseId,
    /// The account that signs in with it, for [`EmailUse::of_account`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountId>,
    /// The principal of that workspace, for [`EmailUse::of_principal`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<PrincipalId>,
}

impl EmailUse {
    /// The row of the account that signs in with `email`.
    #[must_use]
    pub fn of_account(email: &Email) -> EmailUseId {
        Self::account_by(email.folded())
    }

    /// The rows in which the account may stand that signs in with `email`, the likeliest first.
    #[must_use]
    pub fn all_of_account(email: &Email) -> Vec<EmailUseId> {
        email.kept_by().iter().map(|it| Self::account_by(it)).collect()
    }

    fn account_by(address: &str) -> EmailUseId {
        EmailUseId::of(&[b"account", address.as_bytes()])
    }

    /// The row of the principal of `workspace` that has `email`.
    #[must_use]
    pub fn of_principal(workspace: WorkspaceId, email: &Email) -> EmailUseId {
        Self::principal_by(workspace, email.folded())
    }

    /// The rows in which the principal of `workspace` may stand that has `email`, the likeliest first.
    #[must_use]
    pub fn all_of_principal(workspace: WorkspaceId, email: &Email) -> Vec<EmailUseId> {
        email.kept_by().iter().map(|it| Self::principal_by(workspace, it)).collect()
    }

    fn principal_by(workspace: WorkspaceId, address: &str) -> EmailUseId {
        EmailUseId::of(&[&workspace.bits().to_be_bytes(), address.as_bytes()])
    }
}

impl Linked for EmailUse {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
