//! What makers' newer models refuse, and how a request goes to them all the same.

use super::*;
use crate::value::canonical::canonical;

const TOOLS: &str = r#""tools":[{"type":"function","function":{"name":"f"}}]"#;
const OWN_TOOLS: &str = r#""tools":[{"name":"f","input_schema":{"type":"object"}}]"#;

fn maker(model: &str) -> Target<'_> {
    Target { host: Host::Maker, ..target(CHAT, model) }
}

/// A request with these members.
fn asking(members: &str) -> String {
    format!(r#"{{"model":"m","max_tokens":9,{members},"messages":[{{"role":"user","content":"x"}}]}}"#)
}

/// The text of a member of what goes out.
fn told(dialect: Dialect, members: &str, to: Target<'_>, member: &str) -> Option<String> {
    sent(dialect, &asking(members), to).get(member).map(canonical)
}

/// What is wrong with a request for this model.
fn unfit(dialect: Dialect, members: &str, to: Target<'_>) -> Vec<String> {
    let refusal = read(dialect, &asking(members)).to_upstream(to).unwrap_err();
    refusal.errors().iter().map(|it| it.field.as_deref().unwrap_or("-").to_owned()).collect()
}

/// The maker's models take tools beside no thinking alone from one number on: whatever was asked, none is wished for, and that is
/// told. Others, other hosts, and requests without tools are asked as their client asks.
#[test]
fn tools_go_out_without_thinking_where_they_have_to() {
    let none = Some("\"none\"".to_owned());
    for model in [
        "gpt-5.4",
        "gpt-5.4-mini",
        "openai/gpt-5.5",
        "gpt-5.6-2026-10-01",
        "ft:gpt-6-luna:us::x",
        "prod-gpt-54",
        "gpt-6.1-sol",
    ] {
        for effort in
            ["", r#""reasoning_effort":"high","#, r#""reasoning_effort":null,"#, r#""reasoning_effort":"none","#]
        {
            let members = format!("{effort}{TOOLS}");
            assert_eq!(told(CHAT, &members, maker(model), "reasoning_effort"), none, "{model} {effort}");
            let lines = read(CHAT, &asking(&members)).changed(maker(model));
            assert_eq!(lines.len(), usize::from(!effort.contains("none")), "{model} {effort} {lines:?}");
        }
        let thinking = format!(r#"{OWN_TOOLS},"thinking":{{"type":"enabled","budget_tokens":1024}}"#);
        assert_eq!(told(MESSAGES, &thinking, maker(model), "reasoning_effort"), none, "{model}");
        for free in [r#""reasoning_effort":"high""#, r#""reasoning_effort":"high","tools":[]"#] {
            assert_eq!(told(CHAT, free, maker(model), "reasoning_effort"), Some("\"high\"".to_owned()), "{model}");
        }
    }
    let asked = format!(r#""reasoning_effort":"high",{TOOLS}"#);
    for model in [
        "gpt-5",
        "gpt-5-mini",
        "gpt-5.2",
        "gpt-5-2025-08-07",
        "gpt-4.1",
        "gpt-41",
        "gpt-oss-120b",
        "prod-1",
        "o3",
        "mygpt",
    ] {
        assert_eq!(told(CHAT, &asked, maker(model), "reasoning_effort"), Some("\"high\"".to_owned()), "{model}");
    }
    for host in [Host::Other, Host::Mistral] {
        let other = Target { host, ..target(CHAT, "openai/gpt-5.6") };
        assert_eq!(told(CHAT, &asked, other, "reasoning_effort"), Some("\"high\"".to_owned()), "{host:?}");
    }
}

/// The one that cannot but think takes no tools, in either shape, so that another model is asked.
#[test]
fn what_always_thinks_takes_no_tools() {
    for model in ["gpt-6-astra", "gpt-6-astra-2026-11-01"] {
        assert_eq!(unfit(CHAT, TOOLS, maker(model)), ["tools"]);
        assert_eq!(unfit(MESSAGES, OWN_TOOLS, maker(model)), ["tools"]);
        assert_eq!(
            told(CHAT, r#""reasoning_effort":"low""#, maker(model), "reasoning_effort"),
            Some("\"low\"".to_owned())
        );
    }
    let other = target(CHAT, "openai/gpt-6-astra");
    assert!(told(CHAT, TOOLS, other, "tools").is_some());
}
