//! What may read very many rows: no decision waits for it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use svc_core::rules::gate::authorize::Authorize;
use svc_core::state::people::{Role, TokenScope};
use svc_core::testing::world;
use svc_core::value::link::Index;
use svc_tests::client::{Client, PATIENCE, bearer};
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

/// So are the lists of keys, of which an agent's lie among all others, and of calls to the outside, of which few may be asked for.
#[tokio::test]
async fn no_decision_waits_behind_a_list() {
    held(Index::KeysOf, Asks::Owner("GET", "agents/{aid}/keys", None)).await;
    held(Index::DeliveriesOf, Asks::Owner("GET", "deliveries?state=failed", None)).await;
}

/// And what a mandate's new period holds is counted there, of every action of the agent in it.
#[tokio::test]
async fn no_decision_waits_behind_a_changed_period() {
    let period = json!({ "limits": { "perPeriod": { "amount": 900_000, "period": "year" } } });
    held(Index::ActionsOf, Asks::Owner("PATCH", "mandates/{mnd}", Some(period))).await;
}

/// Payments that a person is asked about, however many.
const ASKS: &str = r#"{"name":"Asks","actions":["payment"],"limits":{"currency":"EUR","perAction":500000,"askAbove":100},
    "duplicates":"record"}"#;

/// Somebody who asks whether the server lives once they are told to, over a connection that is there.
struct Other {
    go: SyncSender<()>,
    asked: Receiver<()>,
    answered: Receiver<()>,
}

fn other(address: SocketAddr) -> Other {
    let (go, told) = sync_channel(1);
    let [(asked, has_asked), (answered, is_answered)] = [sync_channel(1), sync_channel(1)];
    std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        let ask =
            |stream: &mut TcpStream| stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let hear = |stream: &mut TcpStream| assert!(stream.read(&mut [0; 1_024]).unwrap() > 0);
        ask(&mut stream);
        hear(&mut stream);
        answered.send(()).unwrap();
        told.recv().unwrap();
        ask(&mut stream);
        asked.send(()).unwrap();
        hear(&mut stream);
        answered.send(()).unwrap();
    });
    Other { go, asked: has_asked, answered: is_answered }
}

/// Whoever looks for little among much looks again and again, and others have their turn in between: who asks while the first look is
/// made has their answer before the third.
#[tokio::test]
async fn others_have_their_turn_between_two_looks() {
    for (index, path) in
        [(Index::ActionsIn, "actions?status=allowed"), (Index::ApprovalsOf, "approvals?state=denied&limit=50")]
    {
        let (looks, had_turn) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let there: Arc<Mutex<Option<Other>>> = Arc::default();
        let (counted, seen, asks) = (Arc::clone(&looks), Arc::clone(&had_turn), Arc::clone(&there));
        let witness = Witness::of_scans(move |range| {
            let Some(Other { go, asked, answered }) = &*asks.lock().unwrap() else { return };
            match (range.index == index).then(|| counted.fetch_add(1, Ordering::SeqCst)) {
                Some(0) => {
                    go.send(()).unwrap();
                    asked.recv().unwrap();
                }
                Some(2) => seen.store(answered.recv_timeout(PATIENCE / 4).is_ok(), Ordering::SeqCst),
                _ => {}
            }
        });
        let site = Site::with(|plan| {
            (plan.witness, plan.settings.max_waiting) = (witness, 1_000);
        })
        .await;
        let agent = site.agent(&[ASKS]);
        for amount in 0..300 {
            let asked = world::payment(30_000 + amount, "EUR", "shop.example.com");
            site.gate.execute(Authorize::new(agent.caller, asked, [7; 16])).unwrap();
        }
        let (mut client, owner) = (site.client().await, site.member(Role::Owner));
        let other = other(site.address);
        let met = tokio::task::spawn_blocking(move || other.answered.recv().map(|()| other));
        *there.lock().unwrap() = Some(met.await.unwrap().unwrap());
        let path = format!("/api/w/{}/{path}", site.workspace());
        assert_eq!(owner.ask(&mut client, "GET", &path, None).await.ok()["data"], json!([]));
        assert!(looks.load(Ordering::SeqCst) >= 3 && had_turn.load(Ordering::SeqCst), "{path}");
    }
}
