//! A code becomes a connection, once. Any wrong attempt uses it up, and a second one by whoever has the verifier ends what
//! the first one gave.

use std::sync::Arc;

use super::authenticate::{ClientShown, authenticate};
use super::end::end_unused;
use super::tokens::{Grant, NewTokens, invalid_grant, renew, reused, willing};
use crate::state::connect::{AuthCode, CONNECTIONS_MAX, CodeState, Connection, EndedBy};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::people::Credential;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::digest::Digest;

/// What is told of a code that is not open, whatever became of it.
const UNKNOWN: &str = "the code is unknown, used or expired";

/// Turns a code into tokens.
#[derive(Clone, Debug)]
pub struct ExchangeCode {
    /// The client.
    pub client: ClientShown,
    /// The digest of the code.
    pub code: Digest,
    /// The redirect that the client names again, byte for byte.
    pub redirect: Box<str>,
    /// The S256 challenge that follows from its verifier.
    pub challenge: Box<str>,
    /// The tokens that it gets.
    pub new: NewTokens,
}

/// Turns a code into tokens.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn exchange_code(scope: &mut Scope<'_>, asked: &ExchangeCode) -> Result<Grant, Halt> {
    let found = scope.get::<AuthCode>(AuthCode::id_of(&asked.code))?.filter(|it| it.digest == asked.code);
    if let Err(refusal) = authenticate(scope, &asked.client)? {
        // The client that it was given to keeps it: clients find out by trying which way of showing themselves is taken.
        let is_others = |it: &Arc<AuthCode>| it.state == CodeState::Open && it.wish.client != asked.client.id;
        if let Some(code) = found.filter(is_others) {
            scope.put(code.spoiled());
        }
        return Ok(Grant::Refused(refusal));
    }
    let Some(code) = found else { return Ok(invalid_grant(UNKNOWN)) };
    let wish = &code.wish;
    let verified = wish.challenge == asked.challenge;
    match code.state {
        CodeState::Used(connection) => {
            let lasting = scope.get::<Connection>(connection)?.filter(|it| verified && it.ended.is_none());
            return match lasting {
                Some(it) => reused(scope, &it, EndedBy::CodeReuse, UNKNOWN),
                None => Ok(invalid_grant(UNKNOWN)),
            };
        }
        CodeState::Void => return Ok(invalid_grant(UNKNOWN)),
        CodeState::Open => {}
    }
    let matches = verified && wish.client == asked.client.id && wish.redirect.as_str() == &*asked.redirect;
    if !matches || scope.now() >= code.expires_at() {
        return Ok(spoil(scope, &code, "the code is not for this client, redirect and verifier, or expired"));
    }
    let agent = willing(scope, code.workspace, code.agent, code.person, code.created_at)?;
    let Some(agent) = agent.filter(|it| it.epoch == code.epoch) else {
        return Ok(spoil(scope, &code, "the agent is stopped, or whoever connected it may connect it no more"));
    };
    let room = if agent.connections().count() < CONNECTIONS_MAX { Some(agent) } else { end_unused(scope, &agent)? };
    let Some(agent) = room else {
        return Ok(spoil(scope, &code, "the agent has as many connections as it may have; end one first"));
    };
    let now = scope.now();
    let connection = Connection {
        id: scope.fresh(),
        workspace: code.workspace,
        client: wish.client.clone(),
        client_name: wish.name.clone(),
        redirect_host: wish.redirect.host().into(),
        agent: code.agent,
        person: code.person,
        access: Credential::id_of(&asked.new.access.digest),
        refresh: asked.new.refresh,
        created_at: now,
        refreshed_at: now,
        ended: None,
        swept: false,
    };
    let (connection, agent) = renew(scope, connection, &agent, &asked.new)?;
    let data = Object::new().text("agentId", &code.agent.to_string()).text("clientId", &connection.client);
    let data = data.text("principalId", &code.person.to_string()).text("redirectHost", &connection.redirect_host);
    let (actor, subject) = (Actor::Person(code.person), Subject::Connection(connection.id));
    scope.append(code.workspace, Fact { kind: "connection.created", actor, subject, data: data.finish() });
    scope.put(AuthCode { state: CodeState::Used(connection.id), ..AuthCode::clone(&code) });
    scope.put(agent);
    scope.put(connection.clone());
    Ok(Grant::Given(Arc::new(connection)))
}

/// Uses a code up without giving anything for it.
fn spoil(scope: &mut Scope<'_>, code: &AuthCode, why: &'static str) -> Grant {
    scope.put(code.spoiled());
    invalid_grant(why)
}
