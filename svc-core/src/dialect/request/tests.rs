//! Requests of both shapes: what is wrong with them, what they ask for, what of them goes to a provider.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod documents;
mod forms;
mod hosts;
mod interjection;
mod makers;
mod providers;
mod strict;
mod thinking;

use super::super::{Body, Target};
use crate::state::gateway::{Capability, Dialect, Host};
use crate::value::json::Json;

const CHAT: Dialect = Dialect::Chat;
const MESSAGES: Dialect = Dialect::Messages;

fn target(dialect: Dialect, model: &str) -> Target<'_> {
    let (is_strict, is_elsewhere) = (model.contains("claude"), false);
    Target {
        dialect,
        model,
        max_output: 8_192,
        reasoning: true,
        provider: "one",
        is_strict,
        host: Host::Other,
        is_elsewhere,
        is_its_own: true,
        bound: None,
    }
}

fn read(dialect: Dialect, text: &str) -> Body {
    Body::read(dialect, text.as_bytes()).unwrap_or_else(|it| panic!("{it:?}"))
}

/// What goes to a provider of this shape, written without insignificant space.
fn sent(dialect: Dialect, text: &str, to: Target<'_>) -> Json {
    let bytes = read(dialect, text).to_upstream(to).unwrap_or_else(|it| panic!("{it:?}"));
    Json::parse(&bytes).unwrap_or_else(|it| panic!("{it}: {}", String::from_utf8_lossy(&bytes)))
}

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|it| panic!("{it}: {text}"))
}

/// The paths of what is wrong, in the order found.
fn wrong(dialect: Dialect, text: &str) -> (String, Vec<String>) {
    let refusal = Body::read(dialect, text.as_bytes()).unwrap_err();
    (
        refusal.type_().to_owned(),
        refusal.errors().iter().map(|it| it.field.as_deref().unwrap_or("-").to_owned()).collect(),
    )
}

fn lost(dialect: Dialect, text: &str, to: Dialect) -> Vec<String> {
    let refusal = read(dialect, text).to_upstream(target(to, "m")).unwrap_err();
    assert_eq!(refusal.type_(), "invalid_request");
    refusal.errors().iter().map(|it| it.field.as_deref().unwrap_or("-").to_owned()).collect()
}

fn invalid(fields: &[&str]) -> (String, Vec<String>) {
    ("invalid_request".to_owned(), fields.iter().map(|it| (*it).to_owned()).collect())
}

/// Not JSON, not an object, and every fault of an object by its path.
#[test]
fn every_fault_has_its_path() {
    for bad in ["", "{", "{\"a\":1,\"a\":2}", "{\"a\":\"\\ud800\"}", "[1,2", &"[".repeat(65)] {
        assert_eq!(wrong(CHAT, bad).0, "invalid_json", "{bad}");
    }
    assert_eq!(Body::read(CHAT, b"\"\xff\"").unwrap_err().type_(), "invalid_json");
    assert_eq!(wrong(CHAT, "[]"), invalid(&["-"]));
    assert_eq!(wrong(CHAT, "{}"), invalid(&["model", "messages"]));
    assert_eq!(wrong(MESSAGES, "{}"), invalid(&["model", "max_tokens", "messages"]));
    let many = format!("{{\"model\":\"m\",\"messages\":[{}1]}}", "1,".repeat(5_000));
    assert_eq!(wrong(CHAT, &many).1.len(), 200);
    Body::read_count(br#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#).unwrap();
}

/// All faults of one body at once, in either shape.
#[test]
fn all_faults_are_told_at_once() {
    for (dialect, members, fields) in [
        (CHAT, r#""messages":[]"#, &["messages"][..]),
        (CHAT, r#""messages":{}"#, &["messages"]),
        (
            CHAT,
            r#""messages":[1,{"role":"wizard","content":""},{"content":""},{"role":"user"},{"role":"user","content":5}]"#,
            &["messages.0", "messages.1.role", "messages.2.role", "messages.3.content", "messages.4.content"],
        ),
        (
            CHAT,
            r#""messages":[{"role":"user","content":[1,{"text":"x"}]},{"role":"assistant","content":{}}]"#,
            &["messages.0.content.0", "messages.0.content.1.type", "messages.1.content"],
        ),
        (
            CHAT,
            r#""messages":[{"role":"tool","tool_call_id":"c9","content":"x"},{"role":"tool","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c9","type":"function","function":{"name":"","arguments":7}}]}]"#,
            &[
                "messages.0.tool_call_id",
                "messages.1.tool_call_id",
                "messages.2.tool_calls.0.function.name",
                "messages.2.tool_calls.0.function.arguments",
            ],
        ),
        (
            CHAT,
            r#""messages":[{"role":"user","content":"x"}],"n":0,"stream":"yes","max_tokens":0,"temperature":"hot","stream_options":1,"stop":[1],"tools":[{"type":"function"},3],"metadata":[]"#,
            &[
                "stream",
                "temperature",
                "metadata",
                "max_tokens",
                "n",
                "stream_options",
                "stop.0",
                "tools.0.function",
                "tools.1",
            ],
        ),
        (
            CHAT,
            r#""messages":[{"role":"user","content":"x"}],"n":129,"max_completion_tokens":1.5"#,
            &["max_completion_tokens", "n"],
        ),
        (
            MESSAGES,
            r#""max_tokens":-1,"messages":[{"role":"tool","content":"x"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}],"system":5,"tools":[{}],"stop_sequences":"x""#,
            &[
                "max_tokens",
                "system",
                "stop_sequences",
                "tools.0.name",
                "messages.0.role",
                "messages.1.content.0.tool_use_id",
            ],
        ),
    ] {
        assert_eq!(wrong(dialect, &format!("{{\"model\":\"m\",{members}}}")), invalid(fields), "{members}");
    }
}

/// In the client's own shape nothing changes but the name and that a stream tells its usage: numbers, order, space and
/// what nobody knows go on byte for byte.
#[test]
fn what_is_not_touched_goes_on_as_it_came() {
    let chat = r#" { "zeta" : [1.0e2, 12345678901234567890123, -0.0, "\u00e9"], "model":"m",
        "messages":[{"role":"user","content":"hi","new":{"a":null}}], "stream":STREAM } "#;
    let whole = chat.replace("STREAM", "false");
    assert_eq!(read(CHAT, &whole).to_upstream(target(CHAT, "m")).unwrap(), whole.as_bytes());
    let renamed = String::from_utf8(read(CHAT, &whole).to_upstream(target(CHAT, "o\"x")).unwrap()).unwrap();
    assert_eq!(renamed, whole.replace("\"m\"", "\"o\\\"x\""));
    for (options, asked) in [
        ("", "\"stream_options\":{\"include_usage\":true},"),
        ("\"stream_options\":null,", "\"stream_options\":{\"include_usage\":true},"),
        ("\"stream_options\":{},", "\"stream_options\":{\"include_usage\":true},"),
        ("\"stream_options\":{\"include_usage\":false},", "\"stream_options\":{\"include_usage\":true},"),
        ("\"stream_options\":{\"x\":1},", "\"stream_options\":{\"include_usage\":true,\"x\":1},"),
        ("\"stream_options\":{\"include_usage\":true},", "\"stream_options\":{\"include_usage\":true},"),
    ] {
        let body = |options: &str| {
            format!(
                "{{{options}\"model\":\"m\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"x\"}}]}}"
            )
        };
        let out = read(CHAT, &body(options)).to_upstream(target(CHAT, "m")).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), body(asked));
        assert_eq!(read(CHAT, &body(options)).wants_usage(), options.contains("true"));
    }
    // What a coding agent sends: 50 kB, members that are not in any document.
    let text = "lorem \\\"ipsum\\\" ".repeat(3_500);
    let agent = format!(
        r#"{{"model":"claude-x","context_management":{{"edits":[{{"type":"clear_thinking_20251015","keep":"all"}}]}},"max_tokens":32000,"messages":[{{"role":"user","content":[{{"type":"text","text":"{text}","cache_control":{{"type":"ephemeral","ttl":"1h"}}}}]}}],"metadata":{{"user_id":"user_abc_session_def"}},"output_config":{{"effort":"medium"}},"stream":true,"system":[{{"type":"text","text":"You are","cache_control":{{"type":"ephemeral"}}}}],"thinking":{{"type":"adaptive"}},"tools":[{{"name":"Bash","description":"d","input_schema":{{"type":"object"}}}}]}}"#
    );
    let body = read(MESSAGES, &agent);
    assert_eq!(body.to_upstream(target(MESSAGES, "claude-x")).unwrap(), agent.as_bytes());
    let demand = body.demand();
    assert!(demand.cache.short && demand.cache.long && demand.stream && demand.text_bytes > 45_000);
    assert_eq!(demand.output.tokens, Some(32_000));
    assert_eq!(body.user().as_deref(), Some("user_abc_session_def"));
}

/// What a request asks for is counted: text by its bytes, media by their kind, tools, tiers, thinking.
#[test]
fn a_demand_tells_what_deciding_takes() {
    let chat = read(
        CHAT,
        r#"{"model":"p/m","n":3,"max_tokens":5,"max_completion_tokens":7,"service_tier":"flex","reasoning_effort":"high","modalities":["text","audio"],
        "messages":[{"role":"user","content":[{"type":"text","text":"h\u00e9y"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAAAAAAAAAAAAAA"}},
        {"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}},{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]},
        {"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"WebFetch","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"page"},{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"pa"},{"type":"text","text":"ge"}]}],
        "tools":[{"type":"function","function":{"name":"WebFetch"}},{"type":"web_search","max_uses":2}],"response_format":{"type":"json_object"}}"#,
    );
    let demand = chat.demand();
    assert_eq!((&*demand.model, demand.stream, demand.answers), ("p/m", false, 3));
    assert_eq!((demand.images, demand.pages, demand.audio_seconds, demand.output.tokens), (1, 1, 1, Some(7)));
    assert_eq!(demand.service_tier.as_deref(), Some("flex"));
    assert_eq!(
        demand.server_tools.iter().map(|(it, most)| (&**it, *most)).collect::<Vec<_>>(),
        [("web_search", Some(2))]
    );
    use Capability::{Audio, Json as Formed, Reasoning, Tools, Vision};
    assert_eq!(demand.needs.into_iter().collect::<Vec<_>>(), {
        let mut all = vec![Tools, Vision, Formed, Reasoning, Audio];
        all.sort_unstable();
        all
    });
    let tools: Vec<_> = demand.tool_results.iter().map(|it| &*it.tool).collect();
    assert_eq!(tools, ["WebFetch", "WebFetch"]);
    assert_eq!(demand.tool_results[0].digest, demand.tool_results[1].digest);

    let messages = read(
        MESSAGES,
        r#"{"model":"m","max_tokens":5,"system":"sys","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"fetch","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"page"},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc"}}]}],
        "tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"bash_20250124","name":"bash"},{"type":"web_fetch_20250910","name":"web_fetch","max_uses":3}]}"#,
    );
    let demand = messages.demand();
    assert_eq!(demand.server_tools.len(), 2);
    assert_eq!((demand.images, demand.pages), (0, 0));
    assert_eq!(demand.tool_results.len(), 1);
    assert_eq!(
        (&*demand.tool_results[0].tool, demand.tool_results[0].digest),
        ("fetch", chat.demand().tool_results[0].digest)
    );

    let digest = |text: &str| read(CHAT, text).demand().digest;
    let one = digest(r#"{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":0}"#);
    assert_eq!(
        one,
        digest(r#"{"stream":true,"user":"u","temperature":0,"messages":[{"role":"user","content":"x"}],"model":"m"}"#)
    );
    assert_ne!(one, digest(r#"{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":1}"#));
    // Bytes of text, whatever their escapes; a message's frame is eight.
    let bytes = |text: &str| {
        read(CHAT, &format!(r#"{{"model":"m","messages":[{{"role":"user","content":{text}}}]}}"#)).demand().text_bytes
    };
    assert_eq!(bytes("\"hé\""), bytes("\"h\\u00e9\""));
    assert_eq!(bytes("\"abcd\"") - bytes("\"\""), 4);
}

/// What names a file or an address counts as the most that it may be, whatever else its part holds or is called.
#[test]
fn what_may_be_large_counts_as_large() {
    let pages = |part: &str| {
        let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{part}]}}]}}"#);
        read(CHAT, &body).demand().pages
    };
    for (part, most) in [
        (r#"{"type":"video_url","video_url":{"url":"https://x.example/v"}}"#, 600),
        (r#"{"type":"input_file","file_url":"https://x.example/f"}"#, 600),
        (r#"{"type":"input_file","file_data":"AAAA"}"#, 1),
        (r#"{"type":"file","file":{"file_id":"file-1","file_data":"x"}}"#, 600),
        (r#"{"type":"document","source":{"type":"url","url":"https://x.example/d","data":"x"}}"#, 600),
        (r#"{"type":"document","source":{"type":"base64","data":"AAAA"}}"#, 1),
        (r#"{"type":"file","file":{"file_data":"https://x.example/long.pdf"}}"#, 600),
        (r#"{"type":"file","file":{"file_data":"https:\/\/x.example/long.pdf"}}"#, 600),
        (r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}"#, 1),
        (r#"{"type":"input_file","source":{"type":"url","url":"https://x.example/d"},"file_data":"x"}"#, 600),
        (r#"{"type":"document","source":{"type":"file","file_id":"file-1"},"file_data":"x"}"#, 600),
        (r#"{"type":"file","file_url":"https://x.example/f","file":{"file_data":"x"}}"#, 600),
        (r#"{"type":"container_upload","file_id":"file-1"}"#, 0),
        (r#"{"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","url":"https://x.example"}}"#, 0),
        (r#"{"type":"text","text":"see https://x.example"}"#, 0),
    ] {
        assert_eq!(pages(part), most, "{part}");
    }
}

/// What tools of the provider's own brought in is taken by the tool that was called, and by the kind of the result where the
/// call is not there; a search of the chat shape by what it cites.
#[test]
fn results_of_the_providers_tools_are_results() {
    let messages = read(
        MESSAGES,
        r#"{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[
        {"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://x.example"}]},
        {"type":"mcp_tool_use","id":"s2","name":"read","server_name":"mail","input":{}},{"type":"mcp_tool_result","tool_use_id":"s2","content":[{"type":"text","text":"page"}]},
        {"type":"web_fetch_tool_result","tool_use_id":"gone","content":{"type":"web_fetch_result","url":"https://x.example/1"}},
        {"type":"web_fetch_tool_result","tool_use_id":"gone","content":{"type":"web_fetch_result","url":"https://x.example/2"}},
        {"type":"bash_code_execution_tool_result","tool_use_id":"s4","content":{"type":"bash_code_execution_result","stdout":"x"}},
        {"type":"server_tool_use","id":"s5","name":"tool_search_tool_regex","input":{}},{"type":"tool_search_tool_result","tool_use_id":"s5","content":{"type":"tool_search_tool_search_result"}}]}]}"#,
    );
    let results = messages.demand().tool_results;
    let tools: Vec<_> = results.iter().map(|it| &*it.tool).collect();
    assert_eq!(tools, ["web_search", "mcp__mail__read", "web_fetch", "web_fetch", "bash_code_execution"]);
    assert_ne!(results[2].digest, results[3].digest, "of an object all is taken");
    let chat = read(
        CHAT,
        r#"{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"so","annotations":[{"type":"url_citation","url_citation":{"url":"https://x.example"}}]},
        {"role":"user","content":"on"},{"role":"assistant","content":"no","annotations":[{"type":"file","file":{"hash":"x"}}]}],"web_search_options":{}}"#,
    );
    let demand = chat.demand();
    assert_eq!(demand.tool_results.iter().map(|it| &*it.tool).collect::<Vec<_>>(), ["web_search"]);
    assert!(demand.server_tools.contains_key("web_search"));
}

/// Everything that a chat request can say and the messages shape has a place for.
#[test]
fn a_chat_request_reads_as_messages() {
    let body = r#"{"model":"x","messages":[{"role":"system","content":"Be brief."},{"role":"developer","content":[{"type":"text","text":"And kind."}]},
        {"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}},{"type":"image_url","image_url":{"url":"https://x.example/i.png"}},
        {"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"}}]},
        {"role":"assistant","content":"ok","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1.0}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":""}}]},
        {"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"}]},{"role":"user","content":"go on"}],
        "max_completion_tokens":100,"temperature":0.5,"top_p":0.9,"stop":"END","stream":true,"user":"u1","parallel_tool_calls":false,"tool_choice":{"type":"function","function":{"name":"f"}},
        "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}},{"type":"function","function":{"name":"g"}}],
        "seed":5,"frequency_penalty":0,"n":1,"store":false,"logit_bias":{}}"#;
    let expected = r#"{"model":"claude","max_tokens":100,"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"And kind."}],
        "messages":[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"image","source":{"type":"url","url":"https://x.example/i.png"}},
        {"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"},"title":"a.pdf"}]},
        {"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"c1","name":"f","input":{"a": 1.0}},{"type":"tool_use","id":"c2","name":"g","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"one"}]},{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"two"}]},{"type":"text","text":"go on"}]}],
        "temperature":0.5,"top_p":0.9,"stop_sequences":["END"],"tools":[{"name":"f","description":"d","input_schema":{"type":"object","additionalProperties":false},"strict":true},{"name":"g","input_schema":{"type":"object","properties":{}}}],
        "tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true},"metadata":{"user_id":"u1"},"stream":true}"#;
    assert_eq!(sent(CHAT, body, target(MESSAGES, "claude")), json(expected));
}

/// Everything that a messages request can say and the chat shape has a place for.
#[test]
fn a_messages_request_reads_as_chat() {
    let body = r#"{"model":"x","max_tokens":9,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"And kind."}],
        "messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"ok"},{"type":"tool_use","id":"t1","name":"f","input":{"a": [1, 2]}},{"type":"tool_use","id":"t2","name":"g","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]},{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":"no such file"},{"type":"text","text":"go on"}]}],
        "temperature":0.5,"stop_sequences":["END"],"stream":true,"metadata":{"user_id":"u1"},"thinking":{"type":"enabled","budget_tokens":4000},"tool_choice":{"type":"any","disable_parallel_tool_use":true},
        "tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"context_management":{"edits":[]}}"#;
    let expected = r#"{"model":"gpt-5","messages":[{"role":"system","content":"Be brief.\n\nAnd kind."},{"role":"user","content":"hi"},
        {"role":"assistant","content":"ok","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\": [1, 2]}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"t1","content":"one"},{"role":"tool","tool_call_id":"t2","content":"Error: no such file"},
        {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}},{"type":"text","text":"go on"}]}],
        "max_completion_tokens":9,"temperature":0.5,"stop":["END"],"user":"u1","tool_choice":"required","parallel_tool_calls":false,
        "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}}],
        "reasoning_effort":"medium","stream":true,"stream_options":{"include_usage":true}}"#;
    let sorted = |json: Json| match json {
        Json::Object(mut members) => {
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            Json::Object(members)
        }
        other => other,
    };
    assert_eq!(sorted(sent(MESSAGES, body, target(CHAT, "gpt-5"))), sorted(json(expected)));
    let plain = sent(MESSAGES, body, Target { reasoning: false, ..target(CHAT, "mistral-large") });
    assert!(plain.get("max_tokens").is_some() && plain.get("reasoning_effort").is_none());
}

/// Up to where a provider is to cache goes on from wherever a client of the chat shape says it.
#[test]
fn what_is_to_be_cached_is_carried_over() {
    let body = r#"{"model":"x","max_tokens":9,"messages":[
        {"role":"system","content":[{"type":"text","text":"One.","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"Two."}]},
        {"role":"developer","content":"Three.","cache_control":{"type":"ephemeral"}},
        {"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"https://x/y.png"},"cache_control":{"type":"ephemeral"}}]},
        {"role":"assistant","content":"ok","cache_control":{"type":"ephemeral"},"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"r","cache_control":{"type":"ephemeral"}},
        {"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},
        {"role":"user","content":"on","cache_control":null}],
        "tools":[{"type":"function","function":{"name":"f"},"cache_control":{"type":"ephemeral"}}]}"#;
    let expected = r#"{"model":"claude","max_tokens":9,
        "system":[{"type":"text","text":"One.","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"Two."},{"type":"text","text":"Three.","cache_control":{"type":"ephemeral"}}],
        "messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"url","url":"https://x/y.png"},"cache_control":{"type":"ephemeral"}}]},
        {"role":"assistant","content":[{"type":"text","text":"ok","cache_control":{"type":"ephemeral"}},{"type":"tool_use","id":"c1","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r"}],"cache_control":{"type":"ephemeral"}},
        {"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},{"type":"text","text":"on"}]}],
        "tools":[{"name":"f","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}]}"#;
    assert_eq!(sent(CHAT, body, target(MESSAGES, "claude")), json(expected));
    let cache = read(CHAT, body).demand().cache;
    assert!(cache.short && cache.long, "what is written is reserved");
}

/// What a model of the chat shape has thought, which is not signed, is given to it again; another's is not.
#[test]
fn thinking_goes_back_to_whoever_thought_it() {
    let body = r#"{"model":"x","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[
        {"type":"thinking","thinking":"signed","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"thinking","thinking":"a","signature":""},
        {"type":"thinking","thinking":"b"},{"type":"tool_use","id":"t1","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"}]}]}"#;
    let sent = sent(MESSAGES, body, target(CHAT, "m"));
    let messages = sent.get("messages").and_then(Json::as_list).unwrap();
    assert_eq!(
        messages.get(1),
        Some(&json(
            r#"{"role":"assistant","content":null,"reasoning_content":"ab","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#
        ))
    );
}

/// Thinking, forms of answers, and a bound where the client set none.
#[test]
fn wishes_are_carried_over() {
    let ask = |members: &str| format!(r#"{{"model":"x","messages":[{{"role":"user","content":"hi"}}],{members}}}"#);
    let to = |members: &str, model: &str| sent(CHAT, &ask(members), target(MESSAGES, model));
    let old = to(r#""reasoning_effort":"low""#, "claude-sonnet-4-5");
    assert_eq!(old.get("thinking"), Some(&json(r#"{"type":"enabled","budget_tokens":2048}"#)));
    assert_eq!(old.get("max_tokens"), Some(&json("8192")));
    let new = to(r#""reasoning_effort":"high""#, "claude-opus-4-7");
    assert_eq!(new.get("thinking"), Some(&json(r#"{"type":"adaptive"}"#)));
    assert_eq!(new.get("output_config"), Some(&json(r#"{"effort":"high"}"#)));
    let small = to(r#""reasoning_effort":"high","max_tokens":500"#, "claude-sonnet-4-5");
    assert_eq!(small.get("thinking"), None);
    // A provider refuses thinking beside a call that has to be made, and beside another chance than its own.
    for other in [
        r#""tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required""#,
        r#""tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}"#,
        r#""temperature":0.2"#,
        r#""temperature":0"#,
        r#""top_p":0.5"#,
    ] {
        for model in ["claude-sonnet-4-5", "claude-opus-4-7"] {
            let sent = to(&format!(r#""reasoning_effort":"high",{other}"#), model);
            assert_eq!(sent.get("thinking"), None, "{other}");
        }
    }
    let usual = r#""reasoning_effort":"high","temperature":1.0,"top_p":0.97,"tool_choice":"auto""#;
    assert!(to(usual, "claude-opus-4-7").get("thinking").is_some());
    let form =
        to(r#""response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"}}}"#, "m");
    assert_eq!(
        form.get("output_config"),
        Some(&json(r#"{"format":{"type":"json_schema","schema":{"type":"object","additionalProperties":false}}}"#))
    );
    let loose = to(r#""response_format":{"type":"json_object"}"#, "m");
    assert!(loose.get("system").is_some());
    // A turn of calls that began without the model's own thinking goes on without.
    let turn = r#"{"model":"x","reasoning_effort":"high","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"1"}]}"#;
    assert_eq!(sent(CHAT, turn, target(MESSAGES, "claude-opus-4-7")).get("thinking"), None);
    let back = sent(
        MESSAGES,
        r#"{"model":"x","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"output_config":{"effort":"max","format":{"type":"json_schema","schema":{"a":1}}}}"#,
        target(CHAT, "m"),
    );
    assert_eq!(back.get("reasoning_effort"), Some(&json("\"high\"")));
    assert_eq!(
        back.get("response_format").and_then(|it| it.get("json_schema")).and_then(|it| it.get("schema")),
        Some(&json(r#"{"a":1}"#))
    );
}

/// A schema is to be kept to strictly only where a provider takes it so: every object in it has all of its members and no other.
#[test]
fn a_schema_is_strict_where_it_is_closed() {
    for (schema, strict) in [
        (
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#,
            true,
        ),
        (r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#, false),
        (
            r#"{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a"],"additionalProperties":false}"#,
            false,
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"c":{}}}}},"required":["a"],"additionalProperties":false}"#,
            false,
        ),
        (
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/d"}},"required":["a"],"additionalProperties":false,"$defs":{"d":{"type":"object"}}}"##,
            false,
        ),
    ] {
        let body = format!(
            r#"{{"model":"x","max_tokens":9,"messages":[{{"role":"user","content":"hi"}}],"output_config":{{"format":{{"type":"json_schema","schema":{schema}}}}},"tools":[{{"name":"f","input_schema":{schema},"strict":true}}]}}"#
        );
        let sent = sent(MESSAGES, &body, target(CHAT, "m"));
        let form = sent.get("response_format").and_then(|it| it.get("json_schema")).unwrap();
        assert_eq!(form.get("strict").is_some(), strict, "{schema}");
        let tool = sent.get("tools").and_then(|it| it.as_list()?.first()?.get("function")).unwrap();
        assert_eq!(tool.get("strict").and_then(Json::as_bool), strict.then_some(true), "{schema}");
    }
}

/// What the other shape has no place for is a fault with its path, never left out silently.
#[test]
fn what_cannot_be_carried_is_said() {
    let chat = |members: &str| {
        lost(CHAT, &format!(r#"{{"model":"x","messages":[{{"role":"user","content":"hi"}}],{members}}}"#), MESSAGES)
    };
    for (members, fields) in [
        (r#""n":2"#, &["n"][..]),
        (r#""temperature":1.5"#, &["temperature"]),
        (r#""modalities":["text","audio"],"audio":{"voice":"x"}"#, &["modalities", "audio"]),
        (r#""logprobs":true"#, &["logprobs"]),
        (r#""frequency_penalty":0.5,"presence_penalty":-1"#, &["frequency_penalty", "presence_penalty"]),
        (r#""logit_bias":{"5":1}"#, &["logit_bias"]),
        (r#""functions":[{"name":"f"}]"#, &["functions"]),
        (r#""service_tier":"flex""#, &["service_tier"]),
        (r#""tools":[{"type":"custom","custom":{"name":"x"}}]"#, &["tools.0.type"]),
        (
            r#""tools":[{"type":"function","function":{"name":"x"}}],"tool_choice":{"type":"allowed_tools"}"#,
            &["tool_choice"],
        ),
        (r#""response_format":{"type":"grammar"}"#, &["response_format"]),
    ] {
        assert_eq!(chat(members), fields, "{members}");
    }
    let parts = lost(
        CHAT,
        r#"{"model":"x","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}},{"type":"file","file":{"file_id":"f"}},{"type":"image_url","image_url":{"url":"data:oops"}}]},
        {"role":"assistant","content":null,"tool_calls":[{"id":"d","type":"custom","custom":{"name":"x","input":""}}]}]}"#,
        MESSAGES,
    );
    let expected = [
        "messages.0.content.0",
        "messages.0.content.1.file",
        "messages.0.content.2.image_url",
        "messages.1.tool_calls.0",
    ];
    assert_eq!(parts, expected);
    let messages = lost(
        MESSAGES,
        r#"{"model":"x","max_tokens":9,"top_k":5,"mcp_servers":[],"tools":[{"type":"web_search_20250305","name":"web_search"}],
        "messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}},{"type":"document","source":{"type":"url","url":"https://x.example"}},{"type":"new"}]},
        {"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}]}"#,
        CHAT,
    );
    let expected = [
        "messages.0.content.0.source",
        "messages.0.content.1.source",
        "messages.0.content.2",
        "messages.1.content.0",
        "top_k",
        "mcp_servers",
        "tools.0.type",
    ];
    assert_eq!(messages, expected);
}

/// What a provider of the messages shape always refuses it is not sent: ids in other letters, tools that take no object, stops
/// that are blank, and requests that say nothing.
#[test]
fn a_chat_request_keeps_to_what_the_messages_shape_admits() {
    let calls = |ids: &[&str]| {
        let call = |id: &&str| format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":""}}}}"#);
        let result = |id: &&str| format!(r#",{{"role":"tool","tool_call_id":"{id}","content":"r"}}"#);
        let calls = ids.iter().map(call).collect::<Vec<_>>().join(",");
        let results: String = ids.iter().map(result).collect();
        let tools = r#"[{"type":"function","function":{"name":"f","parameters":{}}},{"type":"function","function":{"name":"g","parameters":{"type":null,"required":["a"]}}}]"#;
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"x"}},{{"role":"assistant","content":null,"tool_calls":[{calls}]}}{results}],"tools":{tools},"stop":["","a\n"]}}"#
        )
    };
    let ids = ["functions.f:0", "functions_f_0", "call|1.x", "call_1-x"];
    let sent = sent(CHAT, &calls(&ids), target(MESSAGES, "m"));
    let messages = sent.get("messages").unwrap().as_list().unwrap();
    let of = |message: &Json, name: &str| -> Vec<String> {
        let blocks = message.get("content").unwrap().as_list().unwrap();
        blocks.iter().map(|it| it.get(name).unwrap().as_str().unwrap().to_owned()).collect()
    };
    let called = of(&messages[1], "id");
    assert_eq!(called, of(&messages[2], "tool_use_id"), "a result names its call");
    assert!(called.iter().flat_map(|it| it.bytes()).all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it)));
    assert_eq!((&*called[1], &*called[3]), (ids[1], ids[3]), "what is admitted stays");
    assert_eq!(called.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len(), "{called:?}");
    let schemas: Vec<_> =
        sent.get("tools").unwrap().as_list().unwrap().iter().map(|it| it.get("input_schema")).collect();
    let typed = [json(r#"{"type":"object"}"#), json(r#"{"type":"object","required":["a"]}"#)];
    assert_eq!(schemas, [Some(&typed[0]), Some(&typed[1])]);
    assert_eq!(sent.get("stop_sequences"), Some(&json(r#"["a\n"]"#)));
    let with = |members: &str| format!(r#"{{"model":"m","messages":{members}}}"#);
    let unstopped = self::sent(CHAT, &with(r#"[{"role":"user","content":"x"}],"stop":"""#), target(MESSAGES, "m"));
    assert_eq!(unstopped.get("stop_sequences"), None);
    for (body, field) in [
        (r#"[{"role":"system","content":"be brief"}]"#, "messages"),
        (r#"[{"role":"user","content":""}]"#, "messages"),
        (r#"[{"role":"user","content":"x"}],"stop":["a","\n"]"#, "stop"),
    ] {
        assert_eq!(lost(CHAT, &with(body), MESSAGES), [field], "{body}");
    }
}

/// What is told of a document or of what was found goes with its content.
#[test]
fn what_is_told_of_a_document_goes_with_it() {
    let body = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[
        {"type":"document","title":"Report","context":"of May","source":{"type":"text","media_type":"text/plain","data":"all well"}},
        {"type":"document","title":"a.pdf","context":"signed","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"}},
        {"type":"search_result","source":"https://x.example","title":"X","content":[{"type":"text","text":"found"}]}]}]}"#;
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let file = r#"{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QUJD"}}"#;
    let (told, found) = (text("Report\\nof May"), text("X\\nhttps://x.example"));
    let parts = [&told, &text("all well"), &text("signed"), file, &found, &text("found")].join(",");
    let sent = sent(MESSAGES, body, target(CHAT, "m"));
    let messages = sent.get("messages").unwrap().as_list().unwrap();
    assert_eq!(messages[0].get("content"), Some(&json(&format!("[{parts}]"))));
}

/// There and back texts and arguments are what they were.
#[test]
fn a_request_survives_both_shapes() {
    let chat = r#"{"model":"m","messages":[{"role":"system","content":"sys \"quoted\" é"},{"role":"user","content":"a\nb"},{"role":"assistant","content":"t","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"k\":\"v\\n\\u00e9\",\"n\":12345678901234567890}"}}]},{"role":"tool","tool_call_id":"c1","content":"r"},{"role":"user","content":"z"}],"max_tokens":7}"#;
    let there = read(CHAT, chat).to_upstream(target(MESSAGES, "m")).unwrap();
    let back = Body::read(MESSAGES, &there).unwrap().to_upstream(target(CHAT, "m")).unwrap();
    let expected = r#"{"model":"m","messages":[{"role":"system","content":"sys \"quoted\" é"},{"role":"user","content":[{"type":"text","text":"a\nb"}]},{"role":"assistant","content":"t","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"k\":\"v\\n\\u00e9\",\"n\":12345678901234567890}"}}]},{"role":"tool","tool_call_id":"c1","content":"r"},{"role":"user","content":[{"type":"text","text":"z"}]}],"max_tokens":7}"#;
    assert_eq!(Json::parse(&back).unwrap(), json(expected));
}
