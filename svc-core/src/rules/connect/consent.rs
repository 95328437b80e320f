//! A person is asked whether a client may act as an agent, and answers once.

use std::sync::Arc;

use super::register::keep_client;
use crate::refusal::Refusal;
use crate::rules::gate::freeze::own_agent;
use crate::rules::gate::hold::held_by;
use crate::rules::people::by::{Person, own_session, person_in};
use crate::state::connect::{AuthCode, CODE_KEPT, CONSENT_LIFE, CodeState, Consent, Wish};
use crate::state::gate::Agent;
use crate::state::people::{Role, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::digest::{CodeId, ConsentId, Digest, SessionDigest};
use crate::value::id::AgentId;

/// Shows a page to a signed-in person.
#[derive(Clone, Debug)]
pub struct AskConsent {
    /// The session that sees it.
    pub session: SessionDigest,
    /// What the client wants.
    pub wish: Wish,
    /// The digest of the page's token.
    pub token: Digest,
}

/// Keeps what a page asks, to be answered once.
///
/// # Errors
/// `unauthenticated` where the session has ended.
pub fn ask_consent(scope: &mut Scope<'_>, asked: &AskConsent) -> Result<(), Halt> {
    own_session(scope, asked.session)?;
    let id = Consent::id_of(&asked.token);
    if scope.get::<Consent>(id)?.is_some() {
        return Err(Refusal::internal().into());
    }
    let (session, wish) = (asked.session, asked.wish.clone());
    let expires_at = scope.now().plus(CONSENT_LIFE);
    scope.put(Consent { id, digest: asked.token, session, wish, expires_at });
    Ok(())
}

/// A person's answer to a page.
#[derive(Clone, Debug)]
pub struct DecideConsent {
    /// The session that answers.
    pub session: SessionDigest,
    /// The digest of the page's token.
    pub token: Digest,
    /// The agent that the client may act as; none where the person says no.
    pub agent: Option<AgentId>,
    /// The digest of the code that the client gets.
    pub code: Digest,
}

/// Takes a person's answer, and gives the page that it was to. The page is used up.
///
/// # Errors
/// `unauthenticated`; `not_allowed` where the page is another session's, was answered or is too old; `not_found` where there
/// is no such agent of theirs, `forbidden` where it is stopped.
pub fn decide_consent(scope: &mut Scope<'_>, asked: &DecideConsent) -> Result<Arc<Consent>, Halt> {
    let now = scope.now();
    let signed_in = own_session(scope, asked.session)?;
    let id = Consent::id_of(&asked.token);
    let found = scope.get::<Consent>(id)?.filter(|it| it.digest == asked.token && it.session == asked.session);
    let page = found.filter(|it| now < it.expires_at).ok_or_else(|| Refusal::not_allowed("the page was answered"))?;
    if let Some(agent) = asked.agent {
        let workspace = scope.get::<Agent>(agent)?.ok_or_else(Refusal::not_found)?.workspace;
        let (person, role) = person_in(scope, &signed_in, workspace)?;
        let agent = connectable(scope, &person, role, agent)?;
        keep_client(scope, &page.wish.client)?;
        let code = AuthCode::id_of(&asked.code);
        if scope.get::<AuthCode>(code)?.is_some() {
            return Err(Refusal::internal().into());
        }
        scope.put(AuthCode {
            id: code,
            digest: asked.code,
            wish: page.wish.clone(),
            workspace,
            agent: agent.id,
            epoch: agent.epoch,
            person: person.principal,
            state: CodeState::Open,
            created_at: now,
        });
    }
    scope.delete::<Consent>(id);
    Ok(page)
}

/// An agent that a person may connect: theirs, or any where they are an owner or admin, and none that is stopped.
///
/// # Errors
/// `not_found` where it is not theirs, `forbidden` where it is stopped.
pub fn connectable(scope: &mut Scope<'_>, person: &Person, role: Role, agent: AgentId) -> Result<Arc<Agent>, Halt> {
    let agent = own_agent(scope, person.workspace, agent)?;
    let theirs = matches!(role, Role::Owner | Role::Admin) || agent.principal == person.principal;
    if !theirs || agent.canary.is_some() {
        return Err(Refusal::not_found().into());
    }
    let workspace = scope.get::<Workspace>(person.workspace)?.ok_or_else(Refusal::internal)?;
    if !agent.is_active() || held_by(scope, &workspace, agent.id)?.is_some() {
        return Err(Refusal::forbidden("the agent is stopped").into());
    }
    Ok(agent)
}

/// Lets go of a page that nobody answered.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn expire_consent(scope: &mut Scope<'_>, id: ConsentId) -> Result<(), Halt> {
    let now = scope.now();
    if scope.get::<Consent>(id)?.is_some_and(|it| now >= it.expires_at) {
        scope.delete::<Consent>(id);
    }
    Ok(())
}

/// Lets go of a code whose second use need not be known any more.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn expire_code(scope: &mut Scope<'_>, id: CodeId) -> Result<(), Halt> {
    let now = scope.now();
    if scope.get::<AuthCode>(id)?.is_some_and(|it| now >= it.expires_at().plus(CODE_KEPT)) {
        scope.delete::<AuthCode>(id);
    }
    Ok(())
}
