//! System texts between the turns of a conversation, which newer models alone take.

use super::*;
use crate::value::canonical::canonical;

/// A model that its client has not named.
fn routed(model: &str) -> Target<'_> {
    Target { is_its_own: false, ..target(MESSAGES, model) }
}

/// A conversation with these words of whoever made the program in it.
fn holding(said: &str) -> String {
    format!(
        r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"x"}},{said},{{"role":"assistant","content":"y"}},{{"role":"user","content":"z"}}]}}"#
    )
}

fn messages_of(said: &str, to: Target<'_>) -> String {
    canonical(sent(MESSAGES, &holding(said), to).get("messages").unwrap())
}

const TEXT: &str = r#"{"role":"system","content":"Be brief."}"#;

/// Claude models of before Opus 4.8 are told a system text between turns as the user's, in a frame, and that is told; whoever takes it,
/// or is not known, gets it as it came, and so does the very model that a client names.
#[test]
fn a_system_text_between_turns_is_framed_for_who_refuses_it() {
    let framed = r#"{"content":"<system-reminder>\nBe brief.\n</system-reminder>","role":"user"}"#;
    let plain = r#"{"content":"Be brief.","role":"system"}"#;
    let whole = |it: &str| {
        format!(
            r#"[{{"content":"x","role":"user"}},{it},{{"content":"y","role":"assistant"}},{{"content":"z","role":"user"}}]"#
        )
    };
    for model in [
        "claude-haiku-4-5-20251001",
        "claude-sonnet-4-6",
        "anthropic/claude-sonnet-4.6",
        "claude-opus-4-6",
        "claude-opus-4-7",
        "claude-opus-4-1",
        "claude-sonnet-4-20250514",
        "claude-3-7-sonnet",
    ] {
        assert_eq!(messages_of(TEXT, routed(model)), whole(framed), "{model}");
        let line = format!("{model} takes no system text within the messages: it was told as the user's, in a frame");
        assert_eq!(read(MESSAGES, &holding(TEXT)).changed(routed(model)), [line]);
        assert_eq!(messages_of(TEXT, target(MESSAGES, model)), whole(plain), "its client named {model}");
    }
    for model in ["claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-haiku-5-5", "claude-ours", "glm-5"] {
        assert_eq!(messages_of(TEXT, routed(model)), whole(plain), "{model}");
        assert_eq!(read(MESSAGES, &holding(TEXT)).changed(routed(model)).len(), 0, "{model}");
    }
}

/// Blocks keep what they have beside their text; what sets an effort alone is left out, and what no older model can be told goes to
/// none.
#[test]
fn blocks_between_turns_are_framed_one_by_one() {
    let old = routed("claude-sonnet-4-6");
    let blocks = r#"{"role":"system","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}],"output_config":{"effort":"low"}}"#;
    let told = messages_of(blocks, old);
    let first =
        r#"{"cache_control":{"type":"ephemeral"},"text":"<system-reminder>\na\n</system-reminder>","type":"text"}"#;
    assert!(told.contains(first) && told.contains(r"<system-reminder>\nb\n"), "{told}");
    assert!(!told.contains("output_config") && !told.contains("\"system\""), "{told}");
    let effort = r#"{"role":"system","output_config":{"effort":"low"}}"#;
    assert_eq!(messages_of(effort, old).matches("role").count(), 3);
    let tools = r#"{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"f"}}]}"#;
    let refusal = read(MESSAGES, &holding(tools)).to_upstream(old).unwrap_err();
    assert_eq!(refusal.errors()[0].field.as_deref(), Some("messages.1.content.0"));
}
