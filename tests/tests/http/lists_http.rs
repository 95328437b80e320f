//! Lists of whoever reads some of their rows alone, over a real socket: what is another's leaves no trace in them.

use serde_json::{Value, json};
use svc_core::state::gate::Agent as AgentRow;
use svc_core::state::people::Role;
use svc_core::value::Span;
use svc_tests::client::Client;
use svc_tests::oauth::{connect, public};
use svc_tests::people::Person;
use svc_tests::requests::{CRM, OFFICE, payment_to, text, update};
use svc_tests::site::{Agent, Site};

/// Every page of a list: what is on it.
async fn pages(site: &Site, client: &mut Client, who: &Person, list: &str) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    let sign = if list.contains('?') { '&' } else { '?' };
    loop {
        let path = format!("/api/w/{}/{list}{sign}limit=1{cursor}", site.workspace());
        let got = who.ask(client, "GET", &path, None).await.ok();
        let ids = got["data"].as_array().unwrap().iter().map(|it| text(&it["id"]).to_owned());
        pages.push(ids.collect::<Vec<_>>());
        match got["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return pages,
        }
    }
}

fn own(site: &Site, agent: &Agent, who: &Person) {
    let row = site.gate.read(|scope| scope.get::<AgentRow>(agent.id)).unwrap().unwrap();
    site.plant(AgentRow { principal: who.principal, ..AgentRow::clone(&row) });
}

/// A member's lists have their own rows, a page full of them while there are more, and end behind the last; filters by another's
/// agent are empty at once, however much it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_anothers_leaves_no_trace() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (member, owner) = (site.member(Role::Member), site.member(Role::Owner));
    let app = public(&mut client).await;
    let (mut agents, mut actions, mut approvals) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..7 {
        site.shift(Span::seconds(1));
        let agent = site.agent(&[OFFICE, CRM]);
        connect(&mut client, &owner, &app, &agent.id.to_string()).await;
        let done = client.authorize(&agent.key, &update()).await.ok();
        let asked = client.authorize(&agent.key, &payment_to(30_000, "a.example.com")).await.ok();
        assert_eq!(asked["decision"], "approval_required");
        if n % 3 == 1 {
            own(&site, &agent, &member);
            let ids = [text(&asked["id"]).to_owned(), text(&done["id"]).to_owned()];
            actions.extend(ids);
            approvals.push(text(&asked["approval"]["id"]).to_owned());
            agents.push(agent.id.to_string());
        }
    }
    let foreign = site.agent(&[OFFICE]);
    client.authorize(&foreign.key, &payment_to(30_000, "a.example.com")).await.ok();
    let newest_first = |mut ids: Vec<String>| {
        ids.sort_unstable();
        ids.into_iter().rev().map(|it| vec![it]).collect::<Vec<_>>()
    };
    assert_eq!(pages(&site, &mut client, &member, "agents").await, newest_first(agents.clone()));
    assert_eq!(pages(&site, &mut client, &member, "actions").await, newest_first(actions));
    assert_eq!(pages(&site, &mut client, &member, "approvals").await, newest_first(approvals.clone()));
    assert_eq!(pages(&site, &mut client, &member, "approvals?state=waiting").await, newest_first(approvals));
    assert_eq!(pages(&site, &mut client, &member, "connections").await.len(), 2);
    for list in ["actions", "approvals"] {
        let path = format!("/api/w/{}/{list}?agentId={}", site.workspace(), foreign.id);
        let got = member.ask(&mut client, "GET", &path, None).await.ok();
        assert_eq!(got, json!({ "data": [], "nextCursor": Value::Null }), "{list}");
        let of_own = pages(&site, &mut client, &member, &format!("{list}?agentId={}", agents[0])).await;
        assert!(of_own.iter().all(|page| page.len() == 1) && !of_own.is_empty());
    }
    // Whose role reads none stops some, or is told that they read none.
    let analyst = site.member(Role::Analyst);
    let path = format!("/api/w/{}/agents", site.workspace());
    assert_eq!(analyst.ask(&mut client, "GET", &path, None).await.status, 403);
    let row = site.gate.read(|scope| scope.get::<AgentRow>(foreign.id)).unwrap().unwrap();
    site.plant(AgentRow { kill_owner: Some(analyst.principal), ..AgentRow::clone(&row) });
    assert_eq!(pages(&site, &mut client, &analyst, "agents").await, [vec![foreign.id.to_string()]]);
    site.stop().await;
}
