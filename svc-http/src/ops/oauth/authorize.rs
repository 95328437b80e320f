//! A person is asked whether a client may act as one of their agents, and answers.

use std::sync::Arc;

use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::connect::consent::{AskConsent, DecideConsent, connectable};
use svc_core::rules::people::by::{InWorkspace, SignedIn, person_in, signed_in};
use svc_core::state::connect::{OAuthClient, Redirect, STATE_MAX, Wish};
use svc_core::state::gate::Agent;
use svc_core::state::people::Role;
use svc_core::store::{Found, Key, Range};
use svc_core::turn::Halt;
use svc_core::value::Id as _;
use svc_core::value::digest::Digest;
use svc_core::value::id::{AgentId, ClientId, WorkspaceId};
use svc_core::value::link::Index;
use svc_store::Gate;

use super::page::{self, Choice, Choices};
use super::sign_in::{self, QUESTION, is_question};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::ops::aside::Asker;
use crate::ops::sign_in::draw;
use crate::ops::{GateService, refusal};
use crate::wire::oauth::{Form, Known, check_challenge, redirect_with};

/// Agents that a page shows of one workspace.
const AGENTS_MAX: usize = 100;
/// Agents of a workspace that are read at once on the way to them, and in all: stopped and removed ones are passed
/// over.
const READ_AT_ONCE: usize = 250;
const READ_MAX: usize = 10_000;

/// The page that asks; a page that tells what is wrong where nobody can be sent back; else the way back with an error.
pub(super) async fn ask(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let form = Form::of_query(&call.uri)?;
    // A client's own request may have a member of that name, which is not looked at.
    if let (None, Some(kept)) = (form.get("client_id"), form.get(QUESTION)) {
        let question = service.questions.named(kept, service.gate.now());
        let gone = || {
            Refusal::oauth(
                Kind::InvalidRequest,
                "this server keeps that question no more, or never did: connect again from the application",
            )
        };
        return sign_in::onward(service, &question.ok_or_else(gone)?);
    }
    let client = form.need("client_id")?;
    let known = client_of(service, client, call).await?;
    let redirect = Redirect::parse(form.need("redirect_uri")?, &service.allow_redirects)
        .ok()
        .filter(|asked| known.redirects.iter().any(|it| it.admits(asked)))
        .ok_or_else(|| Refusal::oauth(Kind::InvalidRedirectUri, "the client did not register this redirect_uri"))?;
    let challenge = match wanted(service, &form) {
        Ok(challenge) => challenge.into(),
        Err(refusal) => return unasked(service, &redirect, form.get("state"), &refusal),
    };
    let state = form.get("state").map(Into::into);
    let wish = Wish { client: client.into(), name: known.name, redirect, challenge, state };
    let question = call.uri.path_and_query().map(|it| it.as_str()).unwrap_or_default();
    match session(service, call)? {
        Some(person) => match show(service, &person, wish, question).await {
            // No workspace takes the session any more, as after a signal that ended it there: a new one is the way on.
            Err(refusal) if refusal.kind() == Kind::Unauthenticated => sign_in::ask(service, call, question),
            shown => shown,
        },
        None => sign_in::ask(service, call, question),
    }
}

/// What the client wants, where its redirect is good: its challenge.
fn wanted<'a>(service: &GateService, form: &'a Form) -> Result<&'a str, Refusal> {
    if form.need("response_type")? != "code" {
        return Err(Refusal::oauth(Kind::UnsupportedResponseType, "response_type must be code"));
    }
    if form.get("response_mode").is_some_and(|it| it != "query") {
        return Err(Refusal::oauth(Kind::InvalidRequest, "response_mode must be query"));
    }
    if form.get("state").is_some_and(|it| it.len() > STATE_MAX) {
        return Err(Refusal::oauth(Kind::InvalidRequest, "state is too long"));
    }
    form.check_scope()?;
    form.check_resource(&service.base_url)?;
    check_challenge(form)
}

/// The client with this id: one that registered, or one whose id is the address of its metadata.
async fn client_of(service: &GateService, id: &str, call: &Call) -> Result<Known, Refusal> {
    let unknown = || Refusal::oauth(Kind::InvalidClient, "there is no such client; it has to register first");
    if service.client_documents && id.starts_with("https://") {
        let count = || service.count_document(call);
        return service.documents.client(id, &service.allow_redirects, call.address, count).await;
    }
    let id = ClientId::parse(id).map_err(|_| unknown())?;
    let found = service.read(|scope| scope.get::<OAuthClient>(id))?.ok_or_else(unknown)?;
    Ok(Known { name: found.name.clone(), redirects: found.redirects.clone() })
}

/// Who is signed in, if anybody is.
pub(super) fn session(service: &GateService, call: &Call) -> Result<Option<SignedIn>, Refusal> {
    let Some(cookie) = service.site.session(&call.headers) else { return Ok(None) };
    let digest = Digest::of(cookie);
    match service.read(|scope| signed_in(scope, &digest)) {
        Ok(it) => Ok(Some(it)),
        Err(refusal) if refusal.kind() == Kind::Unauthenticated => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

async fn show(service: &GateService, person: &SignedIn, wish: Wish, question: &str) -> Result<Answer, Refusal> {
    let base = service.site.path();
    if person.must_enroll() {
        return Ok(page::unready(base));
    }
    let gate = service.gate.clone();
    let (own, places) = (person.clone(), service.workspaces(person.account.id, false)?);
    let single: Vec<_> = places.iter().filter(|it| it.workspace.settings.sign_in.require_sso).cloned().collect();
    let reading = move || agents(&gate, &own, &places);
    let choices = match service.aside.run(Asker::own(person.account.id, None), reading).await {
        Err(refusal) if refusal.message() == Refusal::must_enroll().message() => return Ok(page::unready(base)),
        Err(refusal) if refusal.message() == Refusal::needs_sso().message() => {
            let ways = single.iter().map(|it| (it.workspace.id.to_string(), it.workspace.name.as_str()));
            let back = sign_in::way_back(service, person.account.id, question)?;
            let page = page::single_sign_on(base, &back, ways);
            return Ok(page.with_status(StatusCode::FORBIDDEN));
        }
        read => read?,
    };
    let token = draw("")?;
    let asked = AskConsent { session: person.row.id, wish: wish.clone(), token: token.digest };
    service.run(asked).await?;
    let form = page::Form { base, request: token.text.expose(), next: question };
    Ok(page::consent(form, &wish, person.account.email.as_str(), &choices))
}

/// The agents that a person may connect, of every workspace they are in, newest first. Very many may be read for it.
fn agents(gate: &Gate, person: &SignedIn, places: &[InWorkspace]) -> Result<Choices, Refusal> {
    let mut choices = Choices::default();
    for InWorkspace { workspace, principal, role } in places {
        let (index, prefix) = match role {
            Role::Owner | Role::Admin => (Index::AgentsOf, workspace.id.bits()),
            Role::Member | Role::Analyst | Role::Auditor => (Index::AgentsFor, principal.id.bits()),
        };
        let mut range = Range { newest_first: true, ..Range::all(index, prefix, READ_AT_ONCE) };
        let (mut good, mut read) = (Vec::new(), 0);
        loop {
            let found = gate.scan(&range).map_err(refusal)?;
            read += found.len();
            range.after = found.last().map(|it| (it.order, it.row.key));
            let (there, has_stopped) = connectable_of(gate, person, workspace.id, &found)?;
            good.extend(there);
            choices.has_stopped |= has_stopped;
            let is_last = found.len() < READ_AT_ONCE;
            if is_last || good.len() > AGENTS_MAX || read >= READ_MAX {
                choices.is_cut |= !is_last || good.len() > AGENTS_MAX;
                break;
            }
        }
        let now = gate.now();
        choices.agents.extend(good.iter().take(AGENTS_MAX).map(|it| Choice {
            id: it.id.to_string(),
            name: it.name.as_str().to_owned(),
            workspace: workspace.name.as_str().to_owned(),
            mandates: it.mandates_in_force(now).count(),
        }));
    }
    if choices.agents.is_empty() {
        is_let_in(gate, person, places)?;
    }
    Ok(choices)
}

/// That a workspace takes the person's session; else why the first does not: it may ask for another proof than the session was
/// made with, also since then.
fn is_let_in(gate: &Gate, person: &SignedIn, places: &[InWorkspace]) -> Result<(), Refusal> {
    let mut told = Ok(());
    for place in places {
        let taken = gate.read(|scope| person_in(scope, person, place.workspace.id).map(drop)).map_err(refusal);
        if taken.is_ok() {
            return taken;
        }
        told = told.and(taken);
    }
    told
}

/// Those of the agents found that a person may connect, and whether others are stopped that they might else.
fn connectable_of(
    gate: &Gate,
    person: &SignedIn,
    workspace: WorkspaceId,
    found: &[Found],
) -> Result<(Vec<Arc<Agent>>, bool), Refusal> {
    let keys: Vec<Key> = found.iter().map(|it| it.row.key).collect();
    let read = gate.read(|scope| {
        scope.want(&keys)?;
        let Some((in_place, role)) = unless_refused(person_in(scope, person, workspace))? else {
            return Ok((Vec::new(), false));
        };
        let (mut good, mut has_stopped) = (Vec::new(), false);
        for it in found {
            let Key::Agent(id) = it.row.key else { continue };
            match connectable(scope, &in_place, role, id) {
                Ok(agent) => good.push(agent),
                // What is removed, or is not theirs, is not found.
                Err(Halt::Refuse(refusal)) => has_stopped |= refusal.kind() == Kind::Forbidden,
                Err(Halt::Load) => return Err(Halt::Load),
            }
        }
        Ok((good, has_stopped))
    });
    read.map_err(refusal)
}

fn unless_refused<T>(result: Result<T, Halt>) -> Result<Option<T>, Halt> {
    match result {
        Ok(it) => Ok(Some(it)),
        Err(Halt::Refuse(_)) => Ok(None),
        Err(Halt::Load) => Err(Halt::Load),
    }
}

/// The person's answer: it comes from a page of this server, in the session that saw it.
pub(super) async fn decide(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    if !service.site.is_own_form(&call.headers) {
        return Err(Refusal::csrf());
    }
    let form = Form::of(&call.headers, &call.uri, &call.body)?;
    let decided = decided(service, call, &form).await;
    // A second click comes after the answer to the first was let go of, and a session may have ended meanwhile: the question
    // can be put again.
    match (decided, form.get("next").filter(|it| is_question(it))) {
        (Err(refusal), Some(question)) => Ok(page::undecided(service.site.path(), question, &refusal)),
        (decided, _) => decided,
    }
}

async fn decided(service: &GateService, call: &Call, form: &Form) -> Result<Answer, Refusal> {
    let person = session(service, call)?.ok_or_else(Refusal::unauthenticated)?;
    let token = Digest::of(form.need("request")?);
    let agent = match form.need("choice")? {
        "allow" => Some(AgentId::parse(form.need("agentId")?).map_err(|_| Refusal::not_found())?),
        "deny" => None,
        _ => return Err(Refusal::invalid_field("choice", "must be `allow` or `deny`")),
    };
    let code = draw("")?;
    let said = DecideConsent { session: person.row.id, token, agent, code: code.digest };
    let page = service.run(said).await?;
    let told = if agent.is_some() { Ok(code.text.expose().as_str()) } else { Err("access_denied") };
    back(service, &page.wish.redirect, page.wish.state.as_deref(), told)
}

/// Tells a client that it asked wrongly. Anybody can register, so that a link to this server could lead anybody anywhere: a
/// browser is sent on without a question to its own machine alone, and to where the operator lets applications be, whether or not
/// somebody has signed in with it (RFC 9700 part 4.11.2).
fn unasked(
    service: &GateService,
    redirect: &Redirect,
    state: Option<&str>,
    refusal: &Refusal,
) -> Result<Answer, Refusal> {
    let named = service.allow_redirects.iter().any(|it| **it == *redirect.as_str());
    if redirect.is_loopback() || named {
        return back(service, redirect, state, Err(refusal.type_()));
    }
    Ok(page::unasked(refusal, redirect, &way_back(service, redirect, state, Err(refusal.type_()))))
}

/// Sends the person back to the client, with a code or an error.
fn back(
    service: &GateService,
    redirect: &Redirect,
    state: Option<&str>,
    told: Result<&str, &str>,
) -> Result<Answer, Refusal> {
    let to = HeaderValue::from_str(&way_back(service, redirect, state, told)).map_err(|_| Refusal::internal())?;
    Ok(Answer::html("")
        .with_status(StatusCode::SEE_OTHER)
        .with_header(LOCATION, to)
        .with_header(http::header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")))
}

/// The address at which a client hears a code or an error.
fn way_back(service: &GateService, redirect: &Redirect, state: Option<&str>, told: Result<&str, &str>) -> String {
    let mut members = vec![match told {
        Ok(code) => ("code", code),
        Err(error) => ("error", error),
    }];
    members.extend(state.map(|it| ("state", it)));
    members.push(("iss", service.base_url.as_str()));
    redirect_with(redirect, &members)
}
