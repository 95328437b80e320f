//! Requests with what one API has and the other has no place for, over real sockets: routing knows it before anything is sent.

use serde_json::{Value, json};
use svc_tests::client::Got;
use svc_tests::desk::{CHAT, Desk, MESSAGES, chat};

/// Where each is sent, the kind of provider that has no form for it and the one that has, and what stands in it.
fn rows() -> [(&'static str, [&'static str; 2], &'static str, Value); 4] {
    [
        (MESSAGES, ["chat", "messages"], "top_k", json!(5)),
        (
            MESSAGES,
            ["chat", "messages"],
            "tools",
            json!([{ "type": "web_search_20250305", "name": "web_search", "max_uses": 1 }]),
        ),
        (CHAT, ["messages", "chat"], "logit_bias", json!({ "1": 1 })),
        (CHAT, ["messages", "chat"], "n", json!(2)),
    ]
}

/// A desk with two models more: one at either provider, that of the kind `dear` at a higher price.
async fn desk_with(dear: &str) -> Desk {
    let mut desk = Desk::new().await;
    for kind in ["chat", "messages"] {
        let price = if kind == dear { 6_000_000 } else { 5_000_000 };
        let prices = json!({ "input": price, "output": price, "tools": { "web_search": 10_000 } });
        let id = desk.upstreams[kind].clone();
        desk.model_with(&id, "form-1", json!({ "prices": prices })).await;
    }
    desk
}

async fn sent(desk: &mut Desk, path: &str, class: &str, body: &Value) -> Got {
    desk.send(path, &[("x-svc-task-class", class)], body.to_string().as_bytes()).await
}

/// The models that the relaxations of a refusal name.
fn admitted(got: &Got) -> Vec<String> {
    assert_eq!((got.status, got.kind().as_str()), (409, "policy_conflict"), "{}", got.text());
    let error = got.json()["error"].clone();
    let all = error["relaxations"].as_array().unwrap().iter().flat_map(|it| it["admits"].as_array().unwrap().clone());
    all.map(|it| it.as_str().unwrap().to_owned()).collect()
}

/// No relaxation names a model in whose API the request has no form; one that names another admits it. Where such a model is all that
/// is left, the client hears what of its request is at fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relaxation_names_no_model_without_a_form() {
    let mut desk = desk_with("chat").await;
    desk.enforce().await;
    let id = desk.upstreams["chat"].clone();
    desk.model_with(&id, "free-1", json!({})).await;
    desk.post("task-classes", json!({ "id": "free", "models": ["chat/free-1"] })).await.made();
    for (number, (path, [without, with], member, value)) in rows().into_iter().enumerate() {
        let mut body = chat("auto");
        body[member] = value;
        let (alone, both) = (format!("alone.{number}"), format!("both.{number}"));
        let (lacks, has) = (format!("{without}/form-1"), format!("{with}/form-1"));
        for (class, models) in [(&alone, json!([lacks])), (&both, json!([lacks, has]))] {
            let class = json!({ "id": class, "jurisdictions": ["fr"], "models": models });
            desk.post("task-classes", class).await.made();
        }
        assert_eq!(admitted(&sent(&mut desk, path, &alone, &body).await), [""; 0], "{member}");
        assert_eq!(admitted(&sent(&mut desk, path, &both, &body).await), [has.as_str()], "{member}");
        for class in [&alone, &both] {
            let change = json!({ "jurisdictions": ["fr", "eu"] });
            desk.api("PATCH", &format!("task-classes/{class}"), Some(&change)).await.ok();
        }
        let got = sent(&mut desk, path, &alone, &body).await;
        assert_eq!((got.status, got.kind().as_str()), (400, "invalid_request"), "{member}: {}", got.text());
        let field = got.json()["error"]["errors"][0]["field"].clone();
        assert!(field.as_str().unwrap().starts_with(member), "{field}");
        let got = sent(&mut desk, path, &both, &body).await;
        assert_eq!((got.status, got.header("x-svc-routed-to")), (200, Some(has.as_str())), "{member}: {}", got.text());
        assert_eq!(desk.call_of(&got).await["attempts"].as_array().map(Vec::len), Some(1), "{member}");
        if without == "chat" {
            // A price alone would not do either; another model would.
            let others = admitted(&sent(&mut desk, path, "free", &body).await);
            assert!(others.contains(&has) && others.iter().all(|it| it.starts_with(with)), "{member}: {others:?}");
        }
    }
}

/// In shadow a call hears of the model that it would go to where policy acts, and of none in whose API it has no form.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shadow_names_the_model_that_enforcing_calls() {
    for (path, [without, with], member, value) in rows() {
        // The one without a form is the cheaper one.
        let mut desk = desk_with(with).await;
        let has = format!("{with}/form-1");
        let list = json!([format!("{without}/form-1"), has]);
        desk.post("task-classes", json!({ "id": "both", "models": list, "objective": "cost" })).await.made();
        desk.post("task-classes", json!({ "id": "alone", "models": [list[0]] })).await.made();
        let mut body = chat(&has);
        let named = |got: &Got, header: &str| got.header(header).map(str::to_owned);
        let plain = sent(&mut desk, path, "both", &body).await;
        assert_eq!(named(&plain, "x-svc-would-route-to").as_deref(), list[0].as_str(), "{}", plain.text());
        body[member] = value;
        let would = sent(&mut desk, path, "both", &body).await;
        assert_eq!((would.status, named(&would, "x-svc-would-route-to")), (200, Some(has.clone())), "{member}");
        let none = sent(&mut desk, path, "alone", &body).await;
        assert_eq!((none.status, named(&none, "x-svc-would-route-to")), (200, None), "{member}");
        desk.routing(json!({ "mode": "enforce" })).await;
        let did = sent(&mut desk, path, "both", &body).await;
        assert_eq!((did.status, named(&did, "x-svc-routed-to")), (200, Some(has)), "{member}: {}", did.text());
        let none = sent(&mut desk, path, "alone", &body).await;
        assert_eq!((none.status, none.kind().as_str()), (400, "invalid_request"), "{member}: {}", none.text());
    }
}

/// Where each is sent, a model that refuses it, though its API has a place for it, one that takes it, and what stands in it.
fn refused() -> [(&'static str, [&'static str; 2], &'static str, Value); 6] {
    let tool = json!([{ "type": "function", "function": { "name": "look" } }]);
    let begun = json!([{ "role": "user", "content": "Hello" }, { "role": "assistant", "content": "Well" }]);
    [
        (CHAT, ["messages/form-1", "chat/form-1"], "temperature", json!(1.5)),
        (CHAT, ["maker/o3", "chat/form-1"], "stop", json!("x")),
        (CHAT, ["maker/o3", "chat/form-1"], "logit_bias", json!({ "1": 1 })),
        (CHAT, ["maker/gpt-6-astra", "chat/form-1"], "tools", tool),
        (MESSAGES, ["maker/gpt-4.1", "messages/form-1"], "stop_sequences", json!(["a", "b", "c", "d", "e"])),
        (MESSAGES, ["messages/claude-opus-4-7", "messages/form-1"], "messages", begun),
    ]
}

/// What a model refuses by itself is known before one is chosen: neither a relaxation nor shadow names it, no call goes there first, and
/// where such a model is all that is left, the client hears what of its request is at fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_model_is_named_that_refuses_the_request() {
    for (path, [lacks, has], member, value) in refused() {
        let mut desk = desk_with("").await;
        // Nothing ever goes there.
        desk.upstream("maker", "chat", "https://api.openai.com/v1").await;
        let (provider, name) = lacks.split_once('/').unwrap();
        let id = desk.upstreams[provider].clone();
        let prices = json!({ "prices": { "input": 4_000_000, "output": 4_000_000 } });
        if name == "form-1" {
            desk.api("PATCH", &format!("models/{lacks}"), Some(&prices)).await.ok();
        } else {
            desk.model_with(&id, name, prices).await;
        }
        for (class, models) in [("alone", json!([lacks])), ("both", json!([lacks, has]))] {
            for (law, far) in [("eu", ""), ("fr", ".far")] {
                let id = format!("{class}{far}");
                let class = json!({ "id": id, "models": models, "jurisdictions": [law], "objective": "cost" });
                desk.post("task-classes", class).await.made();
            }
        }
        let mut body = chat(has);
        let would = |got: &Got| {
            assert_eq!(got.status, 200, "{member}: {}", got.text());
            got.header("x-svc-would-route-to").map(str::to_owned)
        };
        let plain = sent(&mut desk, path, "both", &body).await;
        assert_eq!(would(&plain).as_deref(), Some(lacks), "it is the cheaper one");
        body[member] = value;
        assert_eq!(would(&sent(&mut desk, path, "both", &body).await).as_deref(), Some(has), "{member}");
        assert_eq!(would(&sent(&mut desk, path, "alone", &body).await), None, "{member}");
        desk.routing(json!({ "mode": "enforce" })).await;
        assert_eq!(admitted(&sent(&mut desk, path, "alone.far", &body).await), [""; 0], "{member}");
        assert_eq!(admitted(&sent(&mut desk, path, "both.far", &body).await), [has], "{member}");
        let did = sent(&mut desk, path, "both", &body).await;
        assert_eq!((did.status, did.header("x-svc-routed-to")), (200, Some(has)), "{member}: {}", did.text());
        assert_eq!(desk.call_of(&did).await["attempts"].as_array().map(Vec::len), Some(1), "{member}");
        let none = sent(&mut desk, path, "alone", &body).await;
        assert_eq!((none.status, none.kind().as_str()), (400, "invalid_request"), "{member}: {}", none.text());
        let field = none.json()["error"]["errors"][0]["field"].clone();
        assert!(field.as_str().unwrap().starts_with(member), "{field}");
    }
}
