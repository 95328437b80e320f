//! What members of a request leave to its provider.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::Body;
use super::FRAME_BYTES;
use crate::state::gateway::{Capability, Demand, Dialect};

/// What deciding takes of a request of this shape with these members.
fn demand(dialect: Dialect, members: &str) -> Demand {
    let body = format!(r#"{{"model":"m","max_tokens":9,{members},"messages":[{{"role":"user","content":"x"}}]}}"#);
    Body::read(dialect, body.as_bytes()).unwrap().demand()
}

/// Models and places that the provider may choose are told, wherever the request names them; an empty list names none.
#[test]
fn what_a_provider_may_choose_is_told() {
    for dialect in [Dialect::Chat, Dialect::Messages] {
        for (members, other_models, geo) in [
            (r#""fallbacks":[{"model":"dear"}]"#, Some("fallbacks"), None),
            (r#""fallbacks":"default""#, Some("fallbacks"), None),
            (r#""models":["a/b"],"inference_geo":"US""#, Some("models"), Some("us")),
            (r#""preset":"mine""#, Some("preset"), None),
            (r#""providerOptions":{"gateway":{"models":["a/b"]}}"#, Some("providerOptions.gateway.models"), None),
            (r#""providerOptions":{"gateway":{"models":[]},"openai":{"models":["a"]}}"#, None, None),
            (r#""fallbacks":[],"models":null,"inference_geo":null"#, None, None),
        ] {
            let demand = demand(dialect, members);
            assert_eq!((demand.other_models, demand.inference_geo.as_deref()), (other_models, geo), "{members}");
        }
    }
}

/// What has a provider keep what it is sent is told, also where it asks in words that are not known; what asks for less, or for
/// nothing, is not.
#[test]
fn what_a_provider_is_to_keep_is_told() {
    for (members, kept_by, names_providers) in [
        (r#""store":true,"metadata":{"a":"b"}"#, &["store"][..], None),
        (r#""store":false,"metadata":{"a":"b"},"prompt_cache_retention":"in_memory""#, &[], None),
        (r#""store":null,"provider":{"data_collection":"deny","zdr":true,"ignore":["a"],"sort":"price"}"#, &[], None),
        (r#""store":"yes","prompt_cache_retention":"24h""#, &["store", "prompt_cache_retention"], None),
        (r#""provider":{"data_collection":"allow","order":[],"only":null}"#, &["provider.data_collection"], None),
        (r#""provider":{"order":["a"]}"#, &[], Some("provider")),
        (r#""provider":{"only":["a"],"data_collection":"other"}"#, &["provider.data_collection"], Some("provider")),
        (r#""provider":"a""#, &[], Some("provider")),
        (r#""provider":null"#, &[], None),
        (r#""providerOptions":{"gateway":{"only":["a"]}}"#, &[], Some("providerOptions.gateway")),
        (r#""provider":{},"providerOptions":{"gateway":{"order":["a"]}}"#, &[], Some("providerOptions.gateway")),
        (r#""providerOptions":{"gateway":{"user":"u","order":[]},"openai":{"order":["a"]}}"#, &[], None),
    ] {
        let demand = demand(Dialect::Chat, members);
        assert_eq!((&*demand.kept_by, demand.names_providers), (kept_by, names_providers), "{members}");
    }
    for (members, kept_by) in [
        (r#""container":"c","mcp_servers":[{"name":"a"}]"#, &["container", "mcp_servers"][..]),
        (r#""container":null,"mcp_servers":[]"#, &[]),
        (r#""tools":[{"type":"code_execution_20250825","name":"code_execution"}]"#, &["code_execution"]),
        (r#""tools":[{"type":"web_search_20250305","name":"web_search"}]"#, &[]),
    ] {
        assert_eq!(demand(Dialect::Messages, members).kept_by, kept_by, "{members}");
    }
}

/// What is foretold of an answer counts, beside what goes in: a provider may charge it as output.
#[test]
fn what_is_foretold_counts_as_output_too() {
    let parts =
        r#""prediction":{"type":"content","content":[{"type":"text","text":"abc"},{"type":"text","text":"de"}]}"#;
    for (members, bytes) in
        [(r#""prediction":{"type":"content","content":"abcde"}"#, 5), (parts, 5 + 24), (r#""prediction":null"#, 0)]
    {
        assert_eq!(demand(Dialect::Chat, members).predicted_bytes, bytes, "{members}");
    }
}

/// A tier of service and a speed are wishes of their own; the words for the usual ones are none.
#[test]
fn a_speed_is_told_beside_a_tier() {
    for (members, tier, speed) in [
        (r#""service_tier":"auto","speed":"fast""#, Some("auto"), Some("fast")),
        (r#""service_tier":"standard_only","speed":"standard""#, None, None),
        (r#""service_tier":"flex","speed":null"#, Some("flex"), None),
        (r#""service_tier":"on_demand""#, None, None),
    ] {
        let demand = demand(Dialect::Messages, members);
        assert_eq!((demand.service_tier.as_deref(), demand.speed.as_deref()), (tier, speed), "{members}");
    }
}

/// Tools of the provider's count wherever they are defined: among the tools, within the conversation, as a plugin.
#[test]
fn tools_of_the_provider_count_wherever_they_are_defined() {
    let counted = |demand: &Demand| demand.server_tools.clone().into_iter().collect::<Vec<_>>();
    let added = |tool: &str| {
        let body = format!(
            r#"{{"model":"m","max_tokens":9,"tools":[{{"type":"web_fetch_20250910","name":"web_fetch","max_uses":2}}],"messages":[
            {{"role":"user","content":"x"}},{{"role":"system","content":[{{"type":"tool_addition","tool":{tool}}}]}}]}}"#
        );
        Body::read(Dialect::Messages, body.as_bytes()).unwrap().demand()
    };
    let fetch = || ("web_fetch".into(), Some(2));
    let definition =
        r#"{"type":"tool_definition","definition":{"type":"web_search_20250305","name":"web_search","max_uses":3}}"#;
    assert_eq!(counted(&added(definition)), [fetch(), ("web_search".into(), Some(3))]);
    let again = definition.replace("search", "fetch");
    assert_eq!(counted(&added(&again)), [("web_fetch".into(), Some(5))]);
    assert_eq!(counted(&added(r#"{"type":"tool_reference","name":"web_search"}"#)), [fetch()]);
    let plugins = r#""plugins":[{"id":"web","max_results":3},{"id":"file-parser"},{"id":"off","enabled":false},{}]"#;
    let plugins = demand(Dialect::Chat, plugins);
    assert_eq!(counted(&plugins), [("file-parser".into(), None), ("web_search".into(), None)]);
}

/// A server that the provider is to call is one tool of the provider's under one name, in whichever way a request has it: its tools go
/// past the gate.
#[test]
fn servers_that_the_provider_calls_are_a_tool_of_its() {
    let (messages, chat) = (Dialect::Messages, Dialect::Chat);
    for (dialect, members, is_one) in [
        (messages, r#""mcp_servers":[{"type":"url","url":"https://x.example/mcp","name":"x"}]"#, true),
        (messages, r#""mcp_servers":[{"name":"x"}],"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}]"#, true),
        (messages, r#""mcp_servers":{"name":"x"}"#, true),
        (messages, r#""tools":[{"type":"mcp_toolset","mcp_server_name":"x"}]"#, true),
        (messages, r#""tools":[{"type":"mcp_toolset_20251120","mcp_server_name":"x"}]"#, true),
        (chat, r#""mcp_servers":[{"name":"x"}]"#, true),
        (chat, r#""tools":[{"type":"mcp","server_url":"https://x.example/mcp"}]"#, true),
        (messages, r#""mcp_servers":[]"#, false),
        (messages, r#""mcp_servers":null"#, false),
    ] {
        let tools: Vec<_> = demand(dialect, members).server_tools.into_iter().collect();
        let one = ("mcp".into(), None);
        assert_eq!(tools, is_one.then_some(one).into_iter().collect::<Vec<_>>(), "{members}");
    }
}

/// A tool of the provider's counts where a member of its own switches it on, and not where that switches it off; a provider of
/// another shape, which has no such member, is not sent the request as if it had none.
#[test]
fn tools_that_a_member_switches_on_count() {
    for (members, tools) in [
        (r#""web_search_options":{}"#, &["web_search"][..]),
        (r#""enable_search":true,"search_options":{"forced_search":true}"#, &["web_search"]),
        (r#""search_parameters":{"mode":"on"}"#, &["web_search"]),
        (r#""search_parameters":{"mode":"auto","sources":[{"type":"x"}]}"#, &["web_search"]),
        (r#""search_parameters":{}"#, &["web_search"]),
        (r#""data_sources":[{"type":"azure_search"}]"#, &["file_search"]),
        (r#""enable_code_interpreter":true,"enable_search":true"#, &["code_interpreter", "web_search"]),
        (
            r#""enable_search":false,"enable_code_interpreter":false,"search_parameters":{"mode":"off"},"data_sources":[]"#,
            &[],
        ),
        (r#""web_search_options":null,"enable_search":null,"search_parameters":null,"data_sources":null"#, &[]),
    ] {
        let told = demand(Dialect::Chat, members);
        assert_eq!(told.server_tools.keys().map(|it| &**it).collect::<Vec<_>>(), tools, "{members}");
        assert_eq!(told.untold_tools().count(), tools.len(), "{members}");
        let body = format!(r#"{{"model":"m",{members},"messages":[{{"role":"user","content":"x"}}]}}"#);
        let target = super::super::Target {
            dialect: Dialect::Messages,
            model: "m",
            max_output: 9,
            reasoning: false,
            provider: "p",
            is_strict: false,
            host: crate::state::gateway::Host::Other,
            is_elsewhere: false,
            is_its_own: true,
            bound: None,
        };
        let there = Body::read(Dialect::Chat, body.as_bytes()).unwrap().to_upstream(target);
        assert_eq!(there.is_err(), !tools.is_empty(), "{members}");
    }
}

/// What is admitted is what is asked for: the messages shape has one bound, which its providers go by whatever else a request says,
/// and of two in the chat shape the newer one is sent.
#[test]
fn the_bound_that_is_admitted_is_the_one_that_is_sent() {
    use super::super::Target;
    use crate::state::gateway::Host;
    let target = |dialect| Target {
        dialect,
        model: "m",
        max_output: 900,
        reasoning: false,
        provider: "p",
        is_strict: false,
        host: Host::Other,
        is_elsewhere: false,
        is_its_own: true,
        bound: None,
    };
    for (dialect, bounds, admitted) in [
        (Dialect::Messages, r#""max_tokens":70,"max_completion_tokens":1"#, 70),
        (Dialect::Chat, r#""max_tokens":70,"max_completion_tokens":1"#, 1),
        (Dialect::Chat, r#""max_completion_tokens":70,"max_tokens":1"#, 70),
        (Dialect::Chat, r#""max_completion_tokens":null,"max_tokens":7"#, 7),
        (Dialect::Chat, r#""max_completion_tokens":7"#, 7),
    ] {
        let body = format!(r#"{{"model":"m",{bounds},"messages":[{{"role":"user","content":"x"}}]}}"#);
        let read = Body::read(dialect, body.as_bytes()).unwrap();
        assert_eq!(read.demand().output.tokens, Some(admitted), "{dialect:?} {bounds}");
        for upstream in [Dialect::Chat, Dialect::Messages] {
            let sent = String::from_utf8(read.to_upstream(target(upstream)).unwrap()).unwrap();
            let told: Vec<_> = ["max_tokens", "max_completion_tokens"]
                .iter()
                .filter(|it| upstream == Dialect::Chat || **it == "max_tokens")
                .filter_map(|it| {
                    sent.split_once(&format!("\"{it}\":"))?.1.split([',', '}']).next()?.parse::<u64>().ok()
                })
                .collect();
            assert_eq!(told, [admitted], "{dialect:?} to {upstream:?}: {sent}");
        }
    }
}

/// Calls of one message with one id, or none, have results in their order, each by its own name; where every message begins its ids
/// anew, the last call of an id is meant.
#[test]
fn results_of_one_id_are_told_apart() {
    let tools = |messages: &str| {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}},{messages}]}}"#);
        let results = Body::read(Dialect::Chat, body.as_bytes()).unwrap().demand().tool_results;
        results.into_iter().map(|it| it.tool.to_string()).collect::<Vec<_>>()
    };
    let call =
        |name: &str| format!(r#"{{"id":"c","type":"function","function":{{"name":"{name}","arguments":"{{}}"}}}}"#);
    let turn = |names: &[&str]| {
        let calls: Vec<_> = names.iter().map(|it| call(it)).collect();
        format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, calls.join(","))
    };
    let result = r#"{"role":"tool","tool_call_id":"c","content":"r"}"#;
    assert_eq!(tools(&[&turn(&["fetch", "sum"]), result, result].join(",")), ["fetch", "sum"]);
    assert_eq!(tools(&[&turn(&["fetch"]), result, &turn(&["sum"]), result, result].join(",")), ["fetch", "sum", "sum"]);
    assert_eq!(tools(&[&turn(&["fetch", "look"]), &turn(&["sum"]), result].join(",")), ["sum"]);
}

/// What a provider takes from an address of the web, and what a search found, comes from outside though no tool was called for it:
/// wherever it stands, under whatever name. Bytes that stand in the request, files that the provider keeps and texts do not.
#[test]
fn what_comes_from_outside_without_a_tool_is_told() {
    let tools = |dialect: Dialect, parts: &str| {
        let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{parts}]}}]}}"#);
        let results = Body::read(dialect, body.as_bytes()).unwrap().demand().tool_results;
        results.into_iter().map(|it| it.tool.to_string()).collect::<Vec<_>>().join(" ")
    };
    let (messages, chat) = (Dialect::Messages, Dialect::Chat);
    let found =
        r#"{"type":"search_result","source":"https://x.example","title":"t","content":[{"type":"text","text":"x"}]}"#;
    for (dialect, part, told) in [
        (messages, r#"{"type":"document","source":{"type":"url","url":"https://x.example/a.pdf"}}"#, "web_fetch"),
        (messages, r#"{"type":"image","source":{"type":"url","url":"HTTP://x.example/a.png"}}"#, "web_fetch"),
        (messages, found, "search_result"),
        (
            messages,
            r#"{"type":"document","source":{"type":"content","content":[{"type":"text","text":"https://x.example"},{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}]}}"#,
            "web_fetch",
        ),
        (chat, r#"{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}"#, "web_fetch"),
        (chat, r#"{"type":"image_url","image_url":"https:\/\/x.example\/a.png"}"#, "web_fetch"),
        (chat, r#"{"type":"file","file":{"file_url":"https://x.example/a.pdf"}}"#, "web_fetch"),
        (chat, r#"{"type":"file","file":{"filename":"a.pdf","file_data":"https://x.example/a.pdf"}}"#, "web_fetch"),
        (chat, r#"{"type":"video","video":["https://x.example/1.png","https://x.example/2.png"]}"#, "web_fetch"),
        (chat, r#"{"type":"image_url","image_url":{"url":"https:x.example/a.png"}}"#, "web_fetch"),
        (chat, r#"{"type":"image_url","image_url":"https:/x.example/a.png"}"#, "web_fetch"),
        (messages, r#"{"type":"image","source":{"type":"url","url":"HTTPS:\\\\x.example"}}"#, "web_fetch"),
        (
            messages,
            r#"{"type":"image","source":{"type":"url","url":"\u0000\u001f \u00a0https://x.example"}}"#,
            "web_fetch",
        ),
        (messages, r#"{"type":"image","source":{"type":"url","url":"h\ttt\r\nps:/\n/x.example/a b"}}"#, "web_fetch"),
        (messages, r#"{"type":"image","source":{"type":"url","url":"http:///x.example"}}"#, "web_fetch"),
        (messages, r#"{"type":"image","source":{"type":"url","url":"https://x.example is where"}}"#, "web_fetch"),
        (messages, r#"{"type":"image","source":{"type":"url","url":"https:"}}"#, ""),
        (messages, r#"{"type":"image","source":{"type":"url","url":"https: is what it begins with"}}"#, ""),
        (messages, r#"{"type":"image","source":{"type":"url","url":"x:https://x.example"}}"#, ""),
        (messages, r#"{"type":"image","source":{"type":"url","url":"note: httpsx.example"}}"#, ""),
        (messages, r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#, ""),
        (messages, r#"{"type":"document","source":{"type":"file","file_id":"file_1"}}"#, ""),
        (
            messages,
            r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"https://x.example"}}"#,
            "",
        ),
        (
            messages,
            r#"{"type":"document","title":"https://x.example","context":"https://x.example","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}"#,
            "",
        ),
        (messages, r#"{"type":"container_upload","file_id":"file_1"}"#, ""),
        (chat, r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}"#, ""),
        (chat, r#"{"type":"file","file":{"file_id":"file-1"}}"#, ""),
        (chat, r#"{"type":"text","text":"https://x.example/a.png"}"#, ""),
    ] {
        assert_eq!(tools(dialect, part), told, "{part}");
    }
    let image = r#"{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}"#;
    let body = format!(
        r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"x"}},
        {{"role":"assistant","content":[{{"type":"tool_use","id":"c","name":"Read","input":{{"url":"https://x.example"}}}}]}},
        {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c","content":[{found},{image}]}}]}}]}}"#
    );
    let results = Body::read(messages, body.as_bytes()).unwrap().demand().tool_results;
    assert_eq!(results.iter().map(|it| &*it.tool).collect::<Vec<_>>(), ["Read", "web_fetch"]);
}

/// An answer that is to be more than text is told, by what it is to be: a word that is not known is no text either.
#[test]
fn what_the_answer_is_to_be_is_told() {
    for (modalities, told) in [
        (r#"["text"]"#, (false, false)),
        (r#"["text","audio"]"#, (true, false)),
        (r#"["image","text"]"#, (false, true)),
        (r#"["video"]"#, (false, true)),
        (r#"["audio","image"]"#, (true, true)),
        ("[]", (false, false)),
        ("null", (false, false)),
    ] {
        let demand = demand(Dialect::Chat, &format!(r#""modalities":{modalities}"#));
        assert_eq!((demand.spoken, demand.drawn), told, "{modalities}");
    }
}

/// What a model is to look at or to listen to is bounded under whatever name it comes: an address alone tells nothing of its length.
#[test]
fn media_are_bounded_under_any_name() {
    let of = |part: &str| {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{part}]}}]}}"#);
        let demand = Body::read(Dialect::Chat, body.as_bytes()).unwrap().demand();
        (demand.pages, demand.audio_seconds)
    };
    for document in [
        r#"{"type":"document_url","document_url":"https://x.example/a.pdf"}"#,
        r#"{"type":"document_url","document_url":"file-1"}"#,
        r#"{"type":"video","video":["https://x.example/1.png","https://x.example/2.png"]}"#,
        r#"{"type":"video","video":"frames"}"#,
        r#"{"type":"video_url","video_url":{"url":"https://x.example/v"}}"#,
        r#"{"type":"audio_url","audio_url":{"url":"https://x.example/v"}}"#,
        r#"{"type":"scan","scan":{"pages":[{"at":"s3://bucket/a"}]}}"#,
        r#"{"type":"scan","scan":"DATA:application/pdf;base64,AAAA"}"#,
        r#"{"type":"scan","scan":{"pages":[{"at":" https:x.example/a"}]}}"#,
        r#"{"type":"text","text":"x","file_id":"f"}"#,
    ] {
        assert_eq!(of(document), (600, 0), "{document}");
    }
    for (sound, seconds) in [
        (r#"{"type":"input_audio","input_audio":{"data":"https://x.example/a.mp3","format":"mp3"}}"#, 34_200),
        (r#"{"type":"input_audio","input_audio":"https://x.example/a.mp3"}"#, 34_200),
        (r#"{"type":"input_audio","input_audio":{"file_id":"f"}}"#, 34_200),
        (r#"{"type":"input_audio","input_audio":{"data":"","url":"f"}}"#, 34_200),
        (r#"{"type":"input_audio"}"#, 34_200),
        (r#"{"type":"input_audio","input_audio":{"data":"AAAA","format":"mp3"}}"#, 1),
        (r#"{"type":"input_audio","input_audio":{"data":"data:;base64,AAAA"}}"#, 1),
        (r#"{"type":"input_audio","input_audio":"AAAA"}"#, 1),
    ] {
        assert_eq!(of(sound), (0, seconds), "{sound}");
    }
    for text in [
        r#"{"type":"text","text":"https://x.example/a.pdf"}"#,
        r#"{"type":"input_text","text":"https://x.example/a.pdf"}"#,
        r#"{"type":"thinking","thinking":"https://x.example","signature":"a"}"#,
        r#"{"type":"search_result","source":"https://x.example","title":"t","content":[{"type":"text","text":"x"}]}"#,
        r#"{"type":"note","note":"see: https://x.example"}"#,
    ] {
        assert_eq!(of(text), (0, 0), "{text}");
    }
}

/// A document that is a text counts as one, whatever its kind is called and however its bytes are written, and takes no model that
/// sees; one that only says so does not.
#[test]
fn a_document_of_text_is_text() {
    let text = "a,b\n1,2\n".repeat(5_000);
    let (plain, latin) = (STANDARD.encode(&text), STANDARD.encode(b"caf\xe9"));
    let of = |part: &str| {
        let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{part}]}}]}}"#);
        let demand = Body::read(Dialect::Chat, body.as_bytes()).unwrap().demand();
        (
            demand.text_bytes - FRAME_BYTES - "user9".len() as u64,
            demand.pages,
            demand.needs.contains(&Capability::Vision),
        )
    };
    let source = |kind: &str, data: &str| {
        format!(r#"{{"type":"document","source":{{"type":"base64","media_type":"{kind}","data":"{data}"}}}}"#)
    };
    for document in [
        source("text/plain", &plain),
        source("Text/CSV; charset=utf-8", &plain),
        format!(r#"{{"type":"file","file":{{"file_data":"data:text/csv;base64,{plain}"}}}}"#),
        format!(r#"{{"type":"file","file":{{"filename":"a.csv","file_data":"{plain}"}}}}"#),
        format!(r#"{{"type":"input_file","filename":"a.json","file_data":"{plain}"}}"#),
    ] {
        assert_eq!(of(&document), (text.len() as u64, 0, false), "{}", &document[..80]);
    }
    assert_eq!(of(&source("text/plain", &latin)), (5, 0, false));
    for other in ["%PDF-1.7 x", "PK\u{3}\u{4}\0\0"] {
        assert_eq!(of(&source("text/plain", &STANDARD.encode(other))), (0, 1, true), "{other}");
    }
    assert_eq!(of(&source("application/pdf", &plain)).1, 417);
    assert_eq!(of(&source("text/plain", "no base64!")), (0, 1, true));
}

/// The bound of a document goes by its length alone; beside it stands how many pages it is likely to have: as many as it shows, or
/// those of a usual one where nobody here sees it.
#[test]
fn a_document_has_a_bound_and_a_likely_length() {
    let of = |part: &str| {
        let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{part}]}}]}}"#);
        let demand = Body::read(Dialect::Chat, body.as_bytes()).unwrap().demand();
        (demand.pages, demand.pages_likely)
    };
    let pdf = format!("%PDF-1.4 {}{}", "<</Type /Page>>".repeat(3), "x".repeat(75_000));
    let pdf = STANDARD.encode(pdf);
    let file = format!(r#"{{"type":"file","file":{{"file_data":"data:application/pdf;base64,{pdf}"}}}}"#);
    let document =
        format!(r#"{{"type":"document","source":{{"type":"base64","media_type":"application/pdf","data":"{pdf}"}}}}"#);
    assert_eq!((of(&file), of(&document)), ((600, 3), (600, 3)));
    assert_eq!(of(&format!("{file},{document}")), (1_200, 6));
    for unseen in [
        r#"{"type":"document","source":{"type":"url","url":"https://x.example/d"}}"#,
        r#"{"type":"file","file":{"file_id":"file-1"}}"#,
        r#"{"type":"document_url","document_url":"https://x.example/a.pdf"}"#,
    ] {
        assert_eq!(of(unseen), (600, 30), "{unseen}");
    }
    let small = r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"no base64!"}}"#;
    assert_eq!(of(small), (1, 1), "no more than the bound");
}
