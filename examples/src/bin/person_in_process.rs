//! A person decides within the program that links the gate: no server, no browser. The program has its own way to know who sits
//! before it, and vouches for them; the gate takes the word of a signed-in member and of nobody else, and looks up in the commit
//! what their role lets them decide.
//!
//! Run it with `cargo run -p svc-examples --bin person_in_process`.

use std::error::Error;

use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::people::by::{Person, person_in, signed_in};
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::links::MakeLink;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::rules::people::sign_in::{Shown, SignInStep, StartSession};
use svc_core::state::people::{Settings, Workspace};
use svc_core::value::Span;
use svc_core::value::digest::Digest;
use svc_core::value::text::{Email, Note};
use svc_core::{Amount, Decision, OutcomeStatus, Request};
use svc_store::keys::fresh_key;
use svc_store::{AgentHandle, AgentKey, Gate};

/// Who owns the workspace, and decides.
const OWNER: &str = "owner@example.com";

fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let gate = Gate::open(home.path(), "https://gate.example.com")?;
    let owner: Email = OWNER.parse()?;
    let (workspace, agent) = first_agent(&gate, &owner)?;

    let merchant = ("Example Cloud".parse()?, "cloud.example.org".parse()?);
    let yearly = Request::payment("Move to the yearly plan", Amount::new(310_00)?, "EUR".parse()?, merchant)?;
    let Decision::Ask(asked) = agent.authorize(yearly)?.decision() else { return Err("nobody was asked".into()) };
    let approval = asked.view().approval.as_ref().ok_or("there is no approval")?.id;
    println!("asked: {}", asked.reasons().iter().map(|it| it.message()).collect::<Vec<_>>().join("; "));

    // Here the program shows a person what is asked, and hears yes.
    let person = sign_in(&gate, &owner, &workspace)?;
    let yes =
        DecideApproval { note: Some(Note::parse("Agreed")?), ..DecideApproval::new(person, approval, Choice::Approve) };
    // Not `execute`: a yes to the freeze of many agents or to the lift of a hold takes more than one commit.
    gate.decide(&yes)?;

    let Decision::Allow(allowed) = agent.get(asked.id())?.decision() else { return Err("it is not allowed".into()) };
    let settled = agent.settle(allowed.id(), OutcomeStatus::Completed, Some(310_00))?;
    println!("approved in process, {}", settled.status().as_str());
    gate.close();
    Ok(())
}

/// Signs somebody in by a one-time link that this program makes and uses itself. The link, the session's cookie and the token of
/// a sign-in that would wait are secrets, of which the gate is told the digests; nobody else sees these. One session does for
/// many decisions: it ends after twelve hours without any, and after seven days.
///
/// Making a link voids the one that the person may hold already. Who has a second factor is not signed in by a link alone.
fn sign_in(gate: &Gate, email: &Email, workspace: &Workspace) -> Result<Person, Box<dyn Error>> {
    let secret = || fresh_key().map(|it| Digest::of(it.expose()));
    let (link, cookie, pending) = (secret()?, secret()?, secret()?);
    gate.execute(MakeLink { email: email.clone(), token: link, life: Some(Span::minutes(1)) })?;
    match gate.execute(StartSession { shown: Shown::Link(link), cookie, pending })? {
        SignInStep::Started(_) => {}
        SignInStep::Totp | SignInStep::Sso(_) | SignInStep::Wrong => return Err("a link alone does not do".into()),
    }
    let (person, role) = gate.read(|scope| {
        let session = signed_in(scope, &cookie)?;
        person_in(scope, &session, workspace.id)
    })?;
    println!("signed in as {}", role.as_str());
    Ok(person)
}

/// A workspace with its owner, and an agent that may renew subscriptions: above EUR 200 a person is asked.
fn first_agent(gate: &Gate, owner: &Email) -> Result<(Workspace, AgentHandle), Box<dyn Error>> {
    let workspace =
        gate.execute(CreateWorkspace { name: "Home".parse()?, owner: owner.clone(), settings: Settings::default() })?;
    let key = fresh_key()?;
    gate.execute(RegisterAgent {
        mandates: vec![Content::Template("saas-subscriptions".into())],
        ..RegisterAgent::new(workspace.id, "Bookkeeper".parse()?, NewKey::of(key.expose()))
    })?;
    let agent = gate.agent(AgentKey::parse(key.expose())?)?;
    Ok((Workspace::clone(&workspace), agent))
}
