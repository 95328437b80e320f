//! Workspaces, the people and machines in them, and what they show to be let in.

mod account;
mod application;
mod credential;
mod hold;
mod maker;
mod plan;
mod principal;
mod role;
mod selection;
mod selector;
mod sign_in;
mod signing;
mod single_sign_on;
mod subscription;
mod team;
mod token;
mod workspace;

pub use account::{
    Account, Membership, Password, Proof, SESSION_IDLE, SESSION_LIFE, SESSIONS_MAX, SecondFactor, Session,
};
pub use application::{
    APPLICATION_LIFE, AgentWish, Application, ApplicationState, Change, Decision, MandateChangeWish, MandateWish,
    RaiseWish, RoleWish, SecondOwner, Target, Wish,
};
pub use credential::{Binding, Credential, KeyScope};
pub use hold::{Freezing, Hold, HoldScope, HoldTask, HoldWork, LaterStop, Lifted, STEP_PARTS, StandingHold};
pub use maker::Maker;
pub use plan::{Allowance, Plan, Plans};
pub use principal::{APPLICATIONS_WAITING_MAX, EmailUse, Member, MemberState, Principal};
pub use role::{Reach, Right, Role};
pub use selection::{MEMBERS_OF_PART, MemberPart, Members, MembersId, selection_digest};
pub use selector::{Candidate, Selector};
pub use sign_in::{LINK_LIFE, PENDING_LIFE, PENDING_TRIES, PendingSignIn, SignInLink};
pub use signing::{CLOCKS_DIFFER, PUBLISHED_BEFORE, Purpose, SigningKey, SigningUse};
pub use single_sign_on::SsoLink;
pub use subscription::{SUBSCRIPTIONS_MAX, Subscription};
pub use team::{MEMBER_TEAMS_MAX, TEAM_MEMBERS_MAX, Team};
pub use token::{CEILING_WINDOW, FREEZES_ASKED_MAX, ServiceToken, TOKEN_DAYS_MAX, TokenName, TokenScope, TokenUse};
pub use workspace::{
    DataLoss, OnMismatch, OnUndeclared, Outside, Provenance, Roster, Settings, SignIn, Velocity, Workspace,
};
