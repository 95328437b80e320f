//! Under which name a bound on the output goes out: what a request is admitted by is what its provider reads.

use super::super::doc::Value;
use super::makers::{is_o_line, numbered};
use super::{Splice, Target};
use crate::state::gateway::Host;

/// The name that nearly every provider reads.
pub(super) const OLD: &str = "max_tokens";
/// The name that the shape's maker has for it now, and many others do not know.
const NEW: &str = "max_completion_tokens";
/// A further name, by which some servers go before the others.
const SERVERS_OWN: &str = "n_predict";

/// Newer models of the shape's maker refuse the old name, and most others know it alone. Where all models are the maker's, a
/// deployment may have any name; elsewhere a model's name tells whose it is.
pub(super) fn name(target: Target<'_>) -> &'static str {
    if target.host == Host::Maker || refuses_old(target.model) { NEW } else { OLD }
}

/// What a request of the chat shape has to be changed by so that its one bound goes out once, under one name: two are refused by
/// some, and of two one is read. Where it has none it gets the one that its target has: a reservation holds what was reserved.
pub(super) fn spoken_as(root: Value<'_>, target: Target<'_>) -> Vec<Splice> {
    let Some(bound) = given(root) else {
        return target.bound.map(|it| bounded(root, target, it)).unwrap_or_default();
    };
    let mut splices: Vec<_> = servers_own(root, bound.raw()).into_iter().collect();
    if root.given(NEW).is_none() {
        splices.extend(Splice::without(root, NEW));
        let old = root.members().find(|(it, _)| it.is(OLD)).filter(|_| name(target) == NEW);
        splices.extend(old.map(|(named, _)| Splice::over(named, format!("\"{NEW}\""))));
    } else if name(target) == NEW {
        splices.extend(Splice::without(root, OLD));
    } else if let Some(old) = root.get(OLD) {
        splices.push(Splice::over(old, bound.raw().to_owned()));
        splices.extend(Splice::without(root, NEW));
    } else if let Some((named, _)) = root.members().find(|(it, _)| it.is(NEW)) {
        splices.push(Splice::over(named, format!("\"{OLD}\"")));
    }
    splices
}

/// The bound that a request goes out with which sets none.
pub(super) fn set(root: Value<'_>, target: Target<'_>) -> Option<u64> {
    target.bound.filter(|_| given(root).is_none())
}

fn given<'a>(root: Value<'a>) -> Option<Value<'a>> {
    root.given(NEW).or_else(|| root.given(OLD))
}

/// What sets a bound where there is none.
fn bounded(root: Value<'_>, target: Target<'_>, bound: u64) -> Vec<Splice> {
    let name = name(target);
    let told = match root.get(name) {
        Some(none) => Splice::over(none, bound.to_string()),
        None => Splice::first(root, &format!("\"{name}\":{bound}")),
    };
    servers_own(root, &bound.to_string()).into_iter().chain([told]).collect()
}

fn servers_own(root: Value<'_>, bound: &str) -> Option<Splice> {
    root.get(SERVERS_OWN).map(|it| Splice::over(it, bound.to_owned()))
}

/// Whether a name is that of a model which refuses the old bound: one of the maker's first that think, or one of its fifth line or a
/// later one. Its open models, which others run, and those of before take the old one.
fn refuses_old(model: &str) -> bool {
    is_o_line(model) || numbered(model).is_some_and(|(line, _)| line >= 5)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::dialect::Body;
    use crate::state::gateway::Dialect;

    const MESSAGES: &str = r#""messages":[{"role":"user","content":"x"}]"#;

    fn target(host: Host, model: &str) -> Target<'_> {
        Target {
            dialect: Dialect::Chat,
            model,
            max_output: 900,
            reasoning: false,
            provider: "p",
            is_strict: false,
            host,
            is_elsewhere: false,
            is_its_own: true,
            bound: None,
        }
    }

    /// What goes to a provider of the chat shape, without its model and its messages.
    fn sent(dialect: Dialect, members: &str, target: Target<'_>) -> String {
        let body = format!(r#"{{"model":"m",{members},{MESSAGES}}}"#);
        let sent = Body::read(dialect, body.as_bytes()).unwrap().to_upstream(target).unwrap();
        let sent = String::from_utf8(sent).unwrap();
        let sent = sent.replace(&format!(r#""model":"{}","#, target.model), "");
        sent.replace(&format!(",{MESSAGES}"), "").replace(&format!("{MESSAGES},"), "")
    }

    /// A bound that a request is admitted by is read by who answers it: one goes out, under the name that is known there.
    #[test]
    fn a_bound_goes_out_under_the_name_that_is_read() {
        let old = [
            (Host::Other, "deepseek-chat"),
            (Host::Other, "gpt-oss:20b"),
            (Host::Other, "openai/gpt-oss-120b"),
            (Host::Other, "gpt-4o"),
            (Host::Other, "chatgpt-4o-latest"),
            (Host::Other, "olmo-2"),
            (Host::Other, "gpt-j-6b"),
            (Host::Other, "gpt-35-turbo"),
            (Host::Mistral, "mistral-large"),
            (Host::Google, "gemini-3"),
        ];
        let new = [
            (Host::Maker, "prod-1"),
            (Host::Other, "openai/gpt-5.2"),
            (Host::Other, "gpt-10"),
            (Host::Other, "team-gpt-5-mini"),
            (Host::Other, "o3-mini"),
        ];
        for (host, model, known) in
            old.map(|(host, model)| (host, model, OLD)).into_iter().chain(new.map(|(host, model)| (host, model, NEW)))
        {
            let target = target(host, model);
            for (members, bound) in [
                (r#""max_completion_tokens":1"#, 1),
                (r#""max_tokens":8000,"max_completion_tokens":1"#, 1),
                (r#""max_completion_tokens":1,"max_tokens":8000"#, 1),
                (r#""max_completion_tokens":7,"max_tokens":null"#, 7),
                (r#""max_tokens":5"#, 5),
                (r#""max_completion_tokens":null,"max_tokens":5"#, 5),
                (r#""max_tokens":5,"max_completion_tokens":null"#, 5),
            ] {
                assert_eq!(
                    sent(Dialect::Chat, members, target),
                    format!(r#"{{"{known}":{bound}}}"#),
                    "{model}: {members}"
                );
            }
            assert_eq!(sent(Dialect::Messages, r#""max_tokens":3"#, target), format!(r#"{{"{known}":3}}"#), "{model}");
        }
    }

    /// A server's own name for the bound says what the others say; where a request sets no bound, nothing does.
    #[test]
    fn what_sets_no_other_bound_stays_as_it_came() {
        for (host, name) in [(Host::Maker, NEW), (Host::Other, OLD)] {
            let both = format!(r#"{{"n_predict":9,"{name}":9}}"#);
            for (members, told) in [
                (r#""n_predict":-1,"max_tokens":9"#, &*both),
                (r#""n_predict":-1"#, r#"{"n_predict":-1}"#),
                (r#""max_completion_tokens":null"#, r#"{"max_completion_tokens":null}"#),
            ] {
                assert_eq!(sent(Dialect::Chat, members, target(host, "x")), told, "{host:?} {members}");
            }
        }
        let stream = r#"{"stream_options":{"include_usage":true},"stream":true,"max_tokens":9}"#;
        assert_eq!(sent(Dialect::Chat, r#""stream":true,"max_completion_tokens":9"#, target(Host::Other, "x")), stream);
        let first = format!(r#"{{"max_tokens":7,"max_completion_tokens":9,"model":"x","stream":true,{MESSAGES}}}"#);
        let first = Body::read(Dialect::Chat, first.as_bytes()).unwrap().to_upstream(target(Host::Maker, "x")).unwrap();
        let told = r#"{"stream_options":{"include_usage":true},"max_completion_tokens":9,"model":"x""#;
        assert!(first.starts_with(told.as_bytes()), "{}", String::from_utf8_lossy(&first));
    }

    /// A request without a bound goes out with the one that is held for it, under the name that is read; one that has its own keeps
    /// it.
    #[test]
    fn a_bound_that_is_held_goes_out() {
        for (host, model, name) in [
            (Host::Other, "ours", OLD),
            (Host::Mistral, "mistral-large-4", OLD),
            (Host::Maker, "prod-1", NEW),
            (Host::Other, "openai/gpt-5", NEW),
        ] {
            let held = Target { bound: Some(900), ..target(host, model) };
            for members in [r#""n":1"#, r#""max_tokens":null"#, r#""max_completion_tokens":null"#, r#""n_predict":-1"#]
            {
                let sent = sent(Dialect::Chat, members, held);
                assert!(sent.contains(&format!("\"{name}\":900")) && !sent.contains("-1"), "{model} {members}: {sent}");
            }
            assert!(!sent(Dialect::Chat, r#""max_tokens":7"#, held).contains("900"), "{model}");
            assert!(!sent(Dialect::Chat, r#""n":1"#, target(host, model)).contains(name), "{model}");
        }
    }

    /// No output at all is no bound to some providers of the chat shape, so that it does not go to one.
    #[test]
    fn no_output_at_all_goes_to_no_provider_of_the_chat_shape() {
        let body = format!(r#"{{"model":"m","max_tokens":0,{MESSAGES}}}"#);
        let body = Body::read(Dialect::Messages, body.as_bytes()).unwrap();
        let refusal = body.to_upstream(target(Host::Other, "x")).unwrap_err();
        assert_eq!(refusal.errors().iter().map(|it| it.field.as_deref()).collect::<Vec<_>>(), [Some("max_tokens")]);
        body.to_upstream(Target { dialect: Dialect::Messages, ..target(Host::Other, "x") }).unwrap();
    }
}
