//! An agent loop that links the gate: no server, no socket. Each payment is asked for, the answer is followed, and what
//! became of it is told.
//!
//! Run it with `cargo run -p svc-examples --bin in_process`.

use std::error::Error;

use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::people::Settings;
use svc_core::{Amount, Decision, OutcomeStatus, Request};
use svc_store::keys::fresh_key;
use svc_store::{AgentHandle, AgentKey, Gate};

/// What is to be paid today: for what, how much in cents, to whom and where.
const BILLS: [(&str, i64, &str, &str); 4] = [
    ("Renew the design tool", 49_00, "Example Tools", "tools.example.com"),
    ("Move to the yearly plan", 310_00, "Example Cloud", "cloud.example.org"),
    ("Buy a conference stand", 4_000_00, "Example Fair", "fair.example.com"),
    ("Renew the mail service", 12_00, "Example Mail", "mail.example.net"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let gate = Gate::open(home.path(), "https://gate.example.com")?;
    let key = first_agent(&gate)?;

    let agent = gate.agent(AgentKey::parse(&key)?)?;
    for bill in BILLS {
        handle(&agent, bill)?;
    }
    // A crash between the answer and the payment: the same question with the same key gives the same action.
    println!("the first bill again:");
    handle(&agent, BILLS[0])?;
    gate.close();
    Ok(())
}

/// Asks about one bill and does what the answer says.
fn handle(agent: &AgentHandle, bill: (&str, i64, &str, &str)) -> Result<(), Box<dyn Error>> {
    let (summary, minor, name, domain) = bill;
    let merchant = (name.parse()?, domain.parse()?);
    let request = Request::payment(summary, Amount::new(minor)?, "EUR".parse()?, merchant)?;
    // One key for one intention: the bill's own number would do as well.
    let request = request.keyed(format!("bill {domain}").parse()?);
    match agent.authorize(request)?.decision() {
        Decision::Allow(allowed) => match pay(minor, allowed.receipt()) {
            Ok(paid) => {
                let settled = agent.settle(allowed.id(), OutcomeStatus::Completed, Some(paid))?;
                println!("allow  {summary}: paid {paid} cents, {}", settled.status().as_str());
            }
            Err(error) => {
                agent.settle(allowed.id(), OutcomeStatus::Failed, None)?;
                println!("allow  {summary}: {error}");
            }
        },
        Decision::Ask(asked) => println!("ask    {summary}: a person decides at {}", asked.url()),
        Decision::Deny(denied) => println!("deny   {summary}: {}", denied.why()),
        Decision::Used(used) => {
            println!("used   {summary}: the receipt was used {}; look whether it was paid, then settle", used.at())
        }
        Decision::Past(past) => println!("past   {summary}: nothing is left to do, it is {}", past.status().as_str()),
    }
    Ok(())
}

/// Where a payment provider would be called. It gets the receipt, which it can verify without any key, once.
fn pay(minor: i64, receipt: &str) -> Result<i64, &'static str> {
    if receipt.is_empty() { Err("the provider wants a receipt") } else { Ok(minor) }
}

/// A workspace, and in it an agent that may renew subscriptions: up to 500 a payment, and above 200 a person is asked.
/// `svc init` makes the same from a shell. Gives the agent's key, of which only a digest is stored.
fn first_agent(gate: &Gate) -> Result<String, Box<dyn Error>> {
    let workspace = gate.execute(CreateWorkspace {
        name: "Home".parse()?,
        owner: "owner@example.com".parse()?,
        settings: Settings::default(),
    })?;
    let key = fresh_key()?.expose().clone();
    gate.execute(RegisterAgent {
        mandates: vec![Content::Template("saas-subscriptions".into())],
        ..RegisterAgent::new(workspace.id, "Bookkeeper".parse()?, NewKey::of(&key))
    })?;
    Ok(key)
}
