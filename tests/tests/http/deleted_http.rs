//! What DELETE answers the second time, whatever it is of.

use serde_json::{Value, json};
use svc_core::state::people::Role;
use svc_tests::office::Office;
use svc_tests::requests::{OFFICE, text};

/// What has ended and can still be read is ended once more without a word, and no record; what is gone is not found.
#[tokio::test]
async fn what_is_deleted_twice() {
    let mut desk = Office::open().await;
    let principal = desk.site.member(Role::Member).principal;
    let agent = desk.site.agent(&[OFFICE]).id;
    let of_agent = desk.ask("GET", &format!("agents/{agent}"), Value::Null).await.json();
    let mandate = text(&of_agent["mandates"][0]["id"]).to_owned();
    let key = desk.ask("GET", &format!("agents/{agent}/keys"), Value::Null).await.json()["data"][0]["id"].clone();
    let made = async |desk: &mut Office, path: &str, body: Value| {
        text(&desk.ask("POST", path, body).await.made()["id"]).to_owned()
    };
    let token = made(&mut desk, "service-tokens", json!({ "name": "soar", "scopes": ["agents:read"] })).await;
    let team = made(&mut desk, "teams", json!({ "name": "Desk" })).await;
    let budget = json!({ "scope": { "kind": "workspace" }, "amount": 5_000_000, "period": "day" });
    let budget = made(&mut desk, "budgets", budget).await;
    let ended = [
        format!("mandates/{mandate}"),
        format!("keys/{}", text(&key)),
        format!("service-tokens/{token}"),
        format!("members/{principal}"),
        format!("agents/{agent}"),
        format!("mandates/{mandate}"),
    ];
    for path in ended {
        assert_eq!(desk.ask("DELETE", &path, Value::Null).await.status, 204, "{path}");
        let before = desk.ask("GET", "ledger?limit=1", Value::Null).await.json();
        assert_eq!(desk.ask("DELETE", &path, Value::Null).await.status, 204, "{path}");
        assert_eq!(desk.ask("GET", "ledger?limit=1", Value::Null).await.json(), before, "{path}");
    }
    for path in [format!("teams/{team}"), format!("budgets/{budget}")] {
        let twice = [desk.ask("DELETE", &path, Value::Null).await, desk.ask("DELETE", &path, Value::Null).await];
        assert_eq!(twice.map(|it| it.status), [204, 404], "{path}");
    }
}
