//! A drill over the interface: started by a machine, run through the gate, and read.

use serde_json::{Value, json};
use svc_core::state::people::TokenScope;
use svc_tests::client::bearer;
use svc_tests::requests::WIDE;
use svc_tests::site::Site;

/// A machine starts a drill and reads that each place refused, with the canary gone; the next one has to wait an hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_runs_a_drill() {
    let site = Site::start().await;
    let agent = site.agent(&[WIDE]);
    let (token, mut client) = (site.token(&[TokenScope::AgentsFreeze]), site.client().await);
    let authorization = bearer(&token);
    let headers = [("authorization", authorization.as_str())];
    let wrong = json!({ "agentIds": ["agt_x"], "reason": 1 }).to_string();
    let refused = client.ask("POST", "/v1/admin/drills", &headers, wrong.as_bytes()).await;
    assert_eq!(refused.refusal().0, 400, "{}", refused.text());
    let nobody = json!({ "agentIds": [agent.id, "agt_00000000000000000000000000"] }).to_string();
    let refused = client.ask("POST", "/v1/admin/drills", &headers, nobody.as_bytes()).await;
    assert_eq!((refused.refusal().0, refused.fields()), (400, vec!["agentIds.1".to_owned()]), "{}", refused.text());
    // Whom it names that is not there is told at the place where it stands in the list, and beside what else is wrong.
    for (reason, fields) in [(json!("quarterly"), vec!["agentIds.2"]), (json!(1), vec!["agentIds.2", "reason"])] {
        let named = [&*agent.id.to_string(), &*agent.id.to_string(), "agt_00000000000000000000000000"];
        let body = json!({ "agentIds": named, "reason": reason }).to_string();
        let refused = client.ask("POST", "/v1/admin/drills", &headers, body.as_bytes()).await;
        let mut told = refused.fields();
        told.sort();
        assert_eq!((refused.status, told), (400, fields.iter().map(|it| (*it).to_owned()).collect()));
    }
    let body = json!({ "agentIds": [agent.id.to_string()], "reason": "quarterly" }).to_string();
    let got = client.ask("POST", "/v1/admin/drills", &headers, body.as_bytes()).await;
    assert_eq!(got.status, 202);
    let started = got.json();
    assert_eq!(started["state"], "running");
    let path = format!("/v1/admin/drills/{}", started["id"].as_str().unwrap());
    let mut changes = site.gate.changes();
    let report: Value = loop {
        let report = client.ask("GET", &path, &headers, b"").await.ok();
        if report["state"] != "running" {
            break report;
        }
        let _ = changes.recv().await;
    };
    assert_eq!(report["state"], "passed", "{report}");
    let steps: Vec<_> = report["steps"].as_array().unwrap().iter().map(|it| (&it["point"], &it["got"])).collect();
    assert_eq!(
        steps,
        [
            (&json!("authorize"), &json!("approval_required")),
            (&json!("authorize"), &json!("agent_frozen")),
            (&json!("approve"), &json!("not_allowed")),
            (&json!("verify"), &json!("revoked")),
            (&json!("callback"), &json!("deny")),
            (&json!("chat"), &json!("agent_stopped")),
            (&json!("messages"), &json!("agent_stopped")),
            (&json!("mcp"), &json!("agent_frozen")),
            (&json!("mcp_proxy"), &json!("agent_stopped")),
            (&json!("oauth_refresh"), &json!("invalid_grant")),
        ]
    );
    assert!(report["containedMs"].as_i64().unwrap() >= 0);
    let again = client.ask("POST", "/v1/admin/drills", &headers, b"{}").await;
    assert!(again.header("retry-after").is_some());
    assert_eq!((again.status, again.kind().as_str()), (429, "drill_cooldown"));
    site.stop().await;
}
