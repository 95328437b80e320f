//! Who calls.

use svc_core::refusal::Refusal;
use svc_core::rules::gateway::payer::CallKey;
use svc_core::rules::people::by::{By, KeyCaller, Person, SignedIn, TokenCaller};
use svc_core::state::people::{Reach, Role};
use svc_core::value::id::WorkspaceId;

use super::Known;

/// Who calls, by the one credential that the route takes.
#[derive(Debug)]
pub enum Caller {
    /// An agent.
    Agent(Known),
    /// A workspace key.
    Key(KeyCaller),
    /// A workspace key with model traffic.
    Payer(CallKey),
    /// A service token.
    Token(TokenCaller),
    /// A signed-in person, in no workspace.
    Session(Box<SignedIn>),
    /// A signed-in person in the workspace of the path.
    Member(Member),
}

/// A signed-in person in the workspace of the path, with the right of the route.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Who, as commands name them.
    pub person: Person,
    /// Their role when the request came.
    pub role: Role,
    /// How far the route's right reached then.
    pub reach: Reach,
}

impl Caller {
    /// The agent.
    pub(super) fn agent(self) -> Result<Known, Refusal> {
        if let Self::Agent(it) = self { Ok(it) } else { Err(Refusal::unauthenticated()) }
    }

    /// On whose behalf commands run, and in which workspace.
    ///
    /// # Errors
    /// `unauthenticated` for a caller that administers nothing.
    pub fn by(&self) -> Result<(By, WorkspaceId), Refusal> {
        match self {
            Self::Key(it) => Ok((By::Key(*it), it.workspace)),
            Self::Token(it) => Ok((By::Token(it.clone()), it.workspace)),
            Self::Member(it) => Ok((By::Person(it.person), it.person.workspace)),
            Self::Agent(_) | Self::Payer(_) | Self::Session(_) => Err(Refusal::unauthenticated()),
        }
    }

    /// The member.
    ///
    /// # Errors
    /// `unauthenticated` for any other caller.
    pub fn member(&self) -> Result<Member, Refusal> {
        if let Self::Member(it) = self { Ok(*it) } else { Err(Refusal::unauthenticated()) }
    }

    /// The key of model traffic.
    ///
    /// # Errors
    /// `unauthenticated` for any other caller.
    pub fn payer(&self) -> Result<&CallKey, Refusal> {
        if let Self::Payer(it) = self { Ok(it) } else { Err(Refusal::unauthenticated()) }
    }

    /// The signed-in person.
    ///
    /// # Errors
    /// `unauthenticated` for any other caller.
    pub fn session(&self) -> Result<&SignedIn, Refusal> {
        if let Self::Session(it) = self { Ok(it) } else { Err(Refusal::unauthenticated()) }
    }
}
