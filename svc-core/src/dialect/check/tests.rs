//! What the messages shape admits, and what of it is not served.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::super::Body;
use crate::refusal::Refusal;
use crate::state::gateway::Dialect;

/// A request of the messages shape with these members.
fn read(members: &str) -> Result<Body, Refusal> {
    Body::read(Dialect::Messages, format!(r#"{{"model":"m",{members}}}"#).as_bytes())
}

/// The paths of what is wrong.
fn wrong(members: &str) -> Vec<String> {
    let refusal = read(members).err();
    let errors = refusal.iter().flat_map(Refusal::errors);
    errors.map(|it| it.field.as_deref().unwrap_or("-").to_owned()).collect()
}

/// No output at all, sets of tools without a name, and a message that says nothing but how much effort is to be made.
#[test]
fn what_the_shape_admits_is_no_fault() {
    let user = r#"{"role":"user","content":"x"}"#;
    for (toolset, is_the_clients) in
        [("mcp_toolset", false), ("browser_toolset_20260801", true), ("computer_toolset_20260801", true)]
    {
        let tools = format!(r#""max_tokens":9,"tools":[{{"type":"{toolset}"}}],"messages":[{user}]"#);
        let demand = read(&tools).unwrap().demand();
        assert_eq!(demand.server_tools.is_empty(), is_the_clients, "{toolset}");
    }
    let none = read(&format!(r#""max_tokens":0,"messages":[{user}]"#)).unwrap();
    assert_eq!(none.demand().output.tokens, Some(0));
    let effort = |message: &str| wrong(&format!(r#""max_tokens":9,"messages":[{user},{message}]"#));
    let nothing: [&str; 0] = [];
    assert_eq!(effort(r#"{"role":"system","output_config":{"effort":"low"}}"#), nothing);
    assert_eq!(effort(r#"{"role":"system"}"#), ["messages.1.content"]);
    assert_eq!(effort(r#"{"role":"user","output_config":{"effort":"low"}}"#), ["messages.1.content"]);
    for bound in ["-1", "0.5", "\"0\""] {
        assert_eq!(wrong(&format!(r#""max_tokens":{bound},"messages":[{user}]"#)), ["max_tokens"], "{bound}");
    }
    assert_eq!(wrong(&format!(r#""max_tokens":9,"tools":[{{"type":"bash"}}],"messages":[{user}]"#)), ["tools.0.name"]);
}

/// A conversation that the provider is to keep is refused as such, whatever it leaves out here; no conversation is none.
#[test]
fn a_conversation_at_the_provider_is_refused_as_such() {
    let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}"#;
    let thread = r#"{"type":"continue","previous_message_id":"msg_1"}"#;
    for (members, faults) in [
        (format!(r#""max_tokens":9,"thread":{thread},"messages":[{result}]"#), &["thread"][..]),
        (format!(r#""max_tokens":9,"thread":{thread},"messages":[]"#), &["thread"]),
        (r#""thread":{"type":"create"},"messages":[]"#.to_owned(), &["max_tokens", "thread"]),
    ] {
        let refusal = read(&members).unwrap_err();
        assert_eq!(
            (wrong(&members), refusal.type_()),
            (faults.iter().map(|it| (*it).to_owned()).collect(), "invalid_request")
        );
        assert!(refusal.call().is_some_and(|it| it.is_threaded), "{members}");
    }
    read(r#""max_tokens":9,"thread":null,"messages":[{"role":"user","content":"x"}]"#).unwrap();
    let plain = read(r#""messages":[]"#).unwrap_err();
    assert!(plain.call().is_none());
}

/// Content that Google keeps and a request names is refused in either shape, wherever such requests have it: nobody here has seen it.
#[test]
fn content_that_is_kept_elsewhere_is_refused() {
    for (members, field) in [
        (
            r#""extra_body":{"google":{"cached_content":"cachedContents/1","thinking_config":{}}}"#,
            "extra_body.google.cached_content",
        ),
        (r#""extra_body":{"cached_content":"cachedContents/1"}"#, "extra_body.cached_content"),
        (r#""google":{"cachedContent":"cachedContents/1"}"#, "google.cachedContent"),
        (r#""cached_content":"projects/p/locations/l/cachedContents/1""#, "cached_content"),
        (r#""Cached_Content":"cachedContents/1""#, "Cached_Content"),
    ] {
        let body = format!(r#"{{"model":"m","max_tokens":9,{members},"messages":[{{"role":"user","content":"x"}}]}}"#);
        for dialect in [Dialect::Chat, Dialect::Messages] {
            let refusal = Body::read(dialect, body.as_bytes()).unwrap_err();
            let fields: Vec<_> = refusal.errors().iter().map(|it| it.field.as_deref().unwrap_or("-")).collect();
            assert_eq!((fields, refusal.type_()), (vec![field], "invalid_request"), "{members}");
        }
    }
    for members in [
        r#""extra_body":{"google":{"thinking_config":{"include_thoughts":true},"cached_content":null}}"#,
        r#""extra_body":[],"google":"cached_content","cached_content":"""#,
        r#""metadata":{"cached_content":"x"}"#,
    ] {
        let body = format!(r#"{{"model":"m","max_tokens":9,{members},"messages":[{{"role":"user","content":"x"}}]}}"#);
        assert!(Body::read(Dialect::Chat, body.as_bytes()).is_ok(), "{members}");
    }
}

/// An answer of the shape is one: a request for more is refused, in whatever way it is written, so that no provider makes them.
#[test]
fn more_than_one_answer_is_refused() {
    let with = |n: &str| wrong(&format!(r#""max_tokens":9,"n":{n},"messages":[{{"role":"user","content":"x"}}]"#));
    for n in ["5", "5.0", "1.0", "1000", "0", "-1", "\"2\"", "[3]"] {
        assert_eq!(with(n), ["n"], "{n}");
    }
    for n in ["1", "null"] {
        assert!(with(n).is_empty(), "{n}");
    }
}

/// A call whose arguments a provider told as none comes back so.
#[test]
fn a_call_without_arguments_comes_back() {
    let read = |arguments: &str| {
        let call = format!(r#"{{"id":"c","type":"function","function":{{"name":"f"{arguments}}}}}"#);
        let body =
            format!(r#"{{"model":"m","messages":[{{"role":"assistant","content":null,"tool_calls":[{call}]}}]}}"#);
        Body::read(Dialect::Chat, body.as_bytes())
    };
    for arguments in ["", r#","arguments":null"#, r#","arguments":"{}""#, r#","arguments":{}"#] {
        read(arguments).unwrap();
    }
    assert!(read(r#","arguments":7"#).is_err());
}
