//! What may read very many rows: no decision waits for it.

use serde_json::{Value, json};
use svc_core::state::people::{Role, TokenScope};
use svc_core::value::link::Index;
use svc_tests::client::{Client, bearer};
use svc_tests::people::Person;
use svc_tests::requests::{OFFICE, payment, payment_to};
use svc_tests::site::Site;
use svc_tests::witness::Witness;

/// What is asked while the scans of an index are held: by a token, or by a person.
enum Asks {
    Token(TokenScope, &'static str),
    Owner(&'static str, &'static str, Option<Value>),
}

async fn ask(mut client: Client, owner: Person, (asks, path): (Asks, String), token: Option<String>) -> u16 {
    match asks {
        Asks::Token(..) => client.ask("GET", &path, &[("authorization", &*bearer(&token.unwrap()))], b"").await.status,
        Asks::Owner(method, _, body) => owner.ask(&mut client, method, &path, body.as_ref()).await.status,
    }
}

/// While `index` is read for this, the one thread that serves decides all the same.
async fn held(index: Index, asks: Asks) {
    let (witness, mut held) = Witness::holding(index);
    let site = Site::with(|plan| plan.witness = witness).await;
    let (agent, owner) = (site.agent(&[OFFICE]), site.member(Role::Owner));
    let mut client = site.client().await;
    client.authorize(&agent.key, &payment_to(30_000, "asked.example.org")).await.ok();
    let mandate =
        site.gate.read(|scope| scope.get::<svc_core::state::gate::Agent>(agent.id)).unwrap().unwrap().mandates[0].id;
    let (path, token) = match &asks {
        Asks::Token(scope, path) => ((*path).to_owned(), Some(site.token(&[*scope]))),
        Asks::Owner(_, path, _) => {
            let path = path.replace("{aid}", &agent.id.to_string()).replace("{mnd}", &mandate.to_string());
            (format!("/api/w/{}/{path}", site.workspace()), None)
        }
    };
    let name = path.clone();
    let asking = tokio::spawn(ask(site.client().await, owner, (asks, path), token));
    held.begun().await;
    assert_eq!(client.authorize(&agent.key, &payment(100)).await.ok()["decision"], json!("allow"));
    assert!(!asking.is_finished(), "{name} is still read");
    held.release();
    assert_eq!(asking.await.unwrap(), 200, "{name}");
    site.stop().await;
}

/// What was asked of very many questions is weighed on a thread of its own.
#[tokio::test]
async fn no_decision_waits_behind_suggestions() {
    held(Index::AskedOf, Asks::Token(TokenScope::ApprovalsRead, "/v1/admin/suggested-rules")).await;
}

/// A ledger is counted and listed on a thread of its own.
#[tokio::test]
async fn no_decision_waits_behind_a_ledger() {
    held(Index::LedgerOf, Asks::Token(TokenScope::EvidenceRead, "/v1/admin/scorecard")).await;
    held(Index::LedgerOf, Asks::Owner("GET", "ledger", None)).await;
}
