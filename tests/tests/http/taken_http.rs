//! Calls whose key is taken while they run: they end as those of a stopped agent do, and nobody else's.

use serde_json::json;
use svc_core::rules::people::by::{By, KeyCaller};
use svc_core::rules::people::keys::{CreateKey, NewKey};
use svc_core::state::people::{Binding, Credential, KeyScope, Role};
use svc_core::store::{Row as _, Store as _};
use svc_core::value::digest::Digest;
use svc_core::value::id::PrincipalId;
use svc_tests::client::{PATIENCE, until};
use svc_tests::desk::{CHAT, Desk, Hand, chat, header_of, streamed};
use svc_tests::site::Site;
use svc_tests::tool_desk::{ToolDesk, calling, told_on_the_way};
use svc_tests::tool_server::{Reply, Speaks};
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

/// Makes a key by `by`; its text.
fn make(site: &Site, by: By, scope: KeyScope, principal: Option<PrincipalId>) -> String {
    let text = format!("ask_{:032x}", site.fresh_bits());
    let made = CreateKey { principal, ..CreateKey::new(site.workspace(), by, scope, NewKey::of(&text)) };
    site.gate.execute(made).unwrap();
    text
}

/// A key as one that administers.
fn as_caller(site: &Site, key: &str) -> By {
    let row = Credential::id_of(&Digest::of(key));
    let found = site.memory().load(&[Credential::key(row)]).unwrap().remove(0).record;
    let Binding { workspace, key, principal, .. } = found.as_ref().and_then(Credential::peel).unwrap().binding;
    By::Key(KeyCaller { workspace, key, row, principal })
}

/// A stream is cut when its key is revoked, when a key above it is, when whoever it counts for leaves, and when an agent's further key is
/// revoked; streams of other keys go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_taken_ends_its_streams() {
    for how in ["revoked", "above", "left", "agent"] {
        let mut desk = Desk::new().await;
        desk.mock.turn("pace-20--words-100000").unwrap();
        let mut body = streamed("chat/large-1");
        body.as_object_mut().unwrap().remove("max_tokens");
        let (site, member, agent) = (&desk.site, desk.site.member(Role::Member), desk.site.agent(&[]));
        let above = make(site, By::Person(desk.owner.signed), KeyScope::Admin, None);
        let (other, taken) = match how {
            "revoked" => (desk.key.clone(), site.key(KeyScope::Inference)),
            "above" => (desk.key.clone(), make(site, as_caller(site, &above), KeyScope::Inference, None)),
            "left" => (desk.key.clone(), make(site, By::Program, KeyScope::Inference, Some(member.principal))),
            _ => (agent.key.clone(), site.key(KeyScope::Agent(agent.id))),
        };
        desk.key = other;
        let mut stays = desk.begin(CHAT, &[], &body).await;
        desk.key = taken.clone();
        let mut socket = desk.begin(CHAT, &[], &body).await;
        until(&mut stays, "data: ").await;
        let mut heard = until(&mut socket, "data: ").await;
        match how {
            "above" => desk.site.revoke(&above),
            "left" => {
                let gone = desk.api("DELETE", &format!("members/{}", member.principal), None).await;
                assert_eq!(gone.status, 204, "{}", gone.text());
            }
            _ => desk.site.revoke(&taken),
        }
        timeout(PATIENCE, socket.read_to_string(&mut heard)).await.expect(how).unwrap();
        assert!(heard.contains("invalid_api_key") && !heard.contains("[DONE]"), "{how}: {heard}");
        let after = until(&mut stays, "data: ").await;
        assert!(!after.contains("\"error\""), "{how}");
        // Whoever reads all calls is told how it ended.
        desk.key = desk.site.key(KeyScope::Admin);
        let call = desk.call(&header_of(&heard, "x-svc-call-id").unwrap()).await;
        assert_eq!((&call["end"], &call["usage"]["estimated"]), (&json!("cut"), &json!(true)), "{how}: {call}");
    }
}

/// A whole answer that is waited for is waited for no longer, and its provider is let go of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_taken_ends_a_call_that_waits() {
    let mut desk = Desk::bare(|_| {}).await;
    let provider = Hand::new();
    let id = desk.upstream("hand", "messages", &provider.url()).await;
    desk.model(&id, "large-1", 80, 3, 15).await;
    let mut client = desk.begin(CHAT, &[], &chat("hand/large-1")).await;
    let asked = provider.asked().await;
    desk.site.revoke(&desk.key);
    let mut heard = String::new();
    timeout(PATIENCE, client.read_to_string(&mut heard)).await.unwrap().unwrap();
    assert!(heard.starts_with("HTTP/1.1 401") && heard.contains("invalid_api_key"), "{heard}");
    asked.let_go().await;
    desk.site.audit();
}

/// A call of a proxied tool ends with the key that it was made with. Nobody knows what came of it, so it stands as allowed until it
/// lapses, and the server is let go of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_taken_ends_a_call_of_a_tool() {
    let mut desk = ToolDesk::new(Speaks::Modern).await;
    desk.server(json!({})).await;
    let _ = desk.server.heard();
    desk.server.reply(Reply::Stalled(vec![told_on_the_way("begun")]));
    let mut socket = desk.begin(&desk.agent.key, &calling("read_one", json!({}))).await;
    let mut heard = until(&mut socket, "notifications/progress").await;
    desk.site.revoke(&desk.agent.key);
    timeout(PATIENCE, socket.read_to_string(&mut heard)).await.unwrap().unwrap();
    assert!(heard.contains("invalid_api_key") && !heard.contains("\"result\""), "{heard}");
    desk.server.until_cut().await;
    assert_eq!(desk.actions().await[0]["status"], "allowed");
    desk.site.audit();
}
