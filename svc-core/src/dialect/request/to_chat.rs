//! A request of the messages shape, written in the chat shape.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::super::doc::{Form, Value};
use super::super::files::{is_text, utf8};
use super::super::marks::{is_of, marked_call};
use super::super::names::{shortened, taken, unpacked};
use super::super::write::{Out, quoted};
use super::{Faults, Target, bound, joined, makers, raw_or};
use crate::state::gateway::{Dialect, Host, Particular};
use crate::value::digest::Digest;

/// Up to so many tokens of thinking, a little effort is asked for; up to the second, a middling one.
const EFFORT_LOW: i64 = 2_048;
const EFFORT_MEDIUM: i64 = 8_192;
/// What a model that cannot tell a failed result by its shape is told before it.
const FAILED: &str = "Error: ";
/// Characters of the longest name of a user that every provider takes.
const USER_CHARS: usize = 64;
/// How many texts that end an answer the shape's maker takes.
const STOPS_MAX: usize = 4;
/// What Google has for calls that its models have not made, or whose signature is lost: without one newer models refuse the whole.
const UNSIGNED_CALL: &str = r#"{"google":{"thought_signature":"skip_thought_signature_validator"}}"#;

/// Writes the request for a provider of the chat shape.
pub(super) fn write(out: &mut Out, root: Value<'_>, stream: bool, target: Target<'_>, faults: &mut Faults) {
    out.object(|out| {
        out.name("model").text(target.model);
        out.name("messages").list(|out| messages(out, root, target, faults));
        for (name, value) in root.members().filter(|(_, it)| !it.is_null()) {
            member(out, root, (&name.text().unwrap_or_default(), value), target, faults);
        }
        effort(out, root, target, faults);
        if stream {
            out.name("stream").bool(true);
        }
        // Mistral knows no such member, and always tells it.
        if stream && target.host != Host::Mistral {
            out.name("stream_options").object(|out| out.name("include_usage").bool(true));
        }
    });
}

/// One member of the top level, other than those that [`write`] writes itself.
fn member(out: &mut Out, root: Value<'_>, (name, value): (&str, Value<'_>), target: Target<'_>, faults: &mut Faults) {
    match name {
        "model" | "messages" | "system" | "stream" | "thinking" => {}
        // Some providers of the chat shape take none for no bound at all.
        bound::OLD if value.integer() == Some(0) => {
            faults.add(name, "must be above zero for a model of the chat shape");
        }
        bound::OLD => out.name(bound::name(target)).raw(value.raw()),
        _ if makers::draws_itself(target) && makers::chances(Dialect::Chat).contains(&name) => {}
        "temperature" | "top_p" => out.name(name).raw(value.raw()),
        "stop_sequences" if value.items().next().is_some() => {
            let takes_none = faults.has(Particular::Stop, target, name, makers::UNTELLABLE);
            if !takes_none && value.items().nth(STOPS_MAX).is_some() {
                faults.has(
                    Particular::Stops,
                    target,
                    name,
                    "must have at most 4 texts for a model of the chat shape's maker",
                );
            }
            out.name("stop").raw(value.raw());
        }
        "tools" if value.items().next().is_some() => out.name("tools").list(|out| tools(out, value, faults)),
        // Providers refuse it beside no tools.
        "tool_choice" if root.given("tools").is_some_and(|it| it.items().next().is_some()) => {
            tool_choice(out, value, faults);
        }
        "metadata" if target.host == Host::Mistral => {}
        "metadata" => {
            if let Some(user) = value.text_of("user_id") {
                user_name(out.name("user"), &user);
            }
        }
        "output_config" => format(out, value.given("format"), faults),
        "output_format" => format(out, Some(value), faults),
        "service_tier" => match value.text().as_deref() {
            Some("auto") => out.name("service_tier").text("auto"),
            Some("standard_only") => out.name("service_tier").text("default"),
            Some(_) | None => faults.lost(name),
        },
        "top_k" | "container" | "mcp_servers" => faults.lost(name),
        "frequency_penalty" | "prompt_cache_key" | "verbosity" if makers::unknown(target).contains(&name) => {}
        "verbosity" if makers::takes_no_verbosity(target) => {}
        "logit_bias" if value.members().next().is_none() && makers::takes_no_odds(target) => {}
        "seed" if target.host == Host::Mistral => out.name(makers::MISTRAL_SEED).raw(value.raw()),
        // Members of the chat shape that a client of the other shape sends all the same are meant for such a model.
        "logit_bias" => {
            if value.members().next().is_some() {
                faults.has(Particular::Odds, target, name, makers::UNTELLABLE);
            }
            out.name(name).raw(value.raw());
        }
        "seed" | "n" | "frequency_penalty" | "presence_penalty" | "prompt_cache_key" | "verbosity" => {
            out.name(name).raw(value.raw());
        }
        // Hints, labels, and what caches go by.
        _ => {}
    }
}

/// Who asks; a name that is longer than providers take is told by its digest.
fn user_name(out: &mut Out, name: &str) {
    if name.chars().nth(USER_CHARS).is_none() {
        out.text(name);
    } else {
        out.text(&format!("{:032x}", Digest::of(name).bits()));
    }
}

/// How much thinking is wished for.
fn effort(out: &mut Out, root: Value<'_>, target: Target<'_>, faults: &mut Faults) {
    makers::refuse_tools(root, target, faults);
    if makers::is_unthinking(root, target) {
        return out.name("reasoning_effort").text("none");
    }
    if !target.reasoning {
        return;
    }
    let is_off = root.get("thinking").is_some_and(|it| it.has("type", "disabled"));
    if is_off && makers::may_not_think(target) {
        return out.name("reasoning_effort").text("none");
    }
    let told = root.get("output_config").and_then(|it| it.text_of("effort"));
    let budget = || {
        let thinking = root.get("thinking").filter(|it| it.has("type", "enabled"))?;
        let tokens = thinking.get("budget_tokens")?.integer()?;
        Some(if tokens <= EFFORT_LOW {
            "low"
        } else if tokens <= EFFORT_MEDIUM {
            "medium"
        } else {
            "high"
        })
    };
    let effort = match told.as_deref() {
        // In that shape an effort beside thinking that is switched off is of the answer alone.
        Some("low" | "medium" | "high" | "xhigh" | "max") if is_off => Some(makers::least_effort(target)),
        Some("low") => Some("low"),
        Some("medium") => Some("medium"),
        Some("high" | "xhigh" | "max") => Some("high"),
        Some(_) | None => budget(),
    };
    if let Some(effort) = effort {
        out.name("reasoning_effort").text(effort);
    }
}

fn format(out: &mut Out, format: Option<Value<'_>>, faults: &mut Faults) {
    let Some(format) = format else { return };
    let Some(schema) = format.get("schema").filter(|_| format.has("type", "json_schema")) else {
        return faults.lost("output_config.format");
    };
    out.name("response_format").object(|out| {
        out.name("type").text("json_schema");
        out.name("json_schema").object(|out| {
            out.name("name").text("answer");
            if is_closed(schema) {
                out.name("strict").bool(true);
            }
            out.name("schema").raw(schema.raw());
        });
    });
}

/// Whether every object that a schema describes has all of its members and no other: providers refuse any other schema that is
/// to be kept to strictly.
fn is_closed(schema: Value<'_>) -> bool {
    let own = match schema.given("properties").filter(|it| it.form() == Form::Object) {
        Some(properties) => {
            let required = schema.get("required");
            let required: BTreeSet<_> = required.iter().flat_map(|it| it.items()).filter_map(|it| it.text()).collect();
            schema.get("additionalProperties").and_then(|it| it.bool()) == Some(false)
                && properties.members().all(|(name, _)| name.text().is_some_and(|it| required.contains(&it)))
        }
        None => !schema.has("type", "object"),
    };
    own && schema.members().all(|(_, it)| is_closed(it)) && schema.items().all(is_closed)
}

fn tools(out: &mut Out, tools: Value<'_>, faults: &mut Faults) {
    for (at, tool) in tools.items().enumerate() {
        let kind = tool.text_of("type");
        if kind.is_some_and(|it| it != "custom") {
            faults.add(format!("tools.{at}.type"), "is a tool that only models of the messages shape know");
            continue;
        }
        out.object(|out| {
            out.name("type").text("function");
            out.name("function").object(|out| {
                tool_name(out, tool);
                if let Some(description) = tool.given("description") {
                    out.name("description").raw(description.raw());
                }
                if let Some(schema) = tool.given("input_schema") {
                    parameters(out.name("parameters"), schema);
                }
                let strict = tool.get("strict").and_then(|it| it.bool());
                if let Some(strict) = strict.filter(|it| !it || tool.given("input_schema").is_some_and(is_closed)) {
                    out.name("strict").bool(strict);
                }
            });
        });
    }
}

/// What a tool takes. Providers of the chat shape refuse an object that does not say what it has.
fn parameters(out: &mut Out, schema: Value<'_>) {
    if !schema.has("type", "object") || schema.given("properties").is_some() {
        return out.raw(schema.raw());
    }
    out.object(|out| {
        for (name, value) in schema.members().filter(|(name, _)| !name.is("properties")) {
            out.name(&name.text().unwrap_or_default()).raw(value.raw());
        }
        out.name("properties").object(|_| {});
    });
}

/// The name of a tool that is had, called or wished for.
fn tool_name(out: &mut Out, named: Value<'_>) {
    out.name("name").text(&shortened(&named.text_of("name").unwrap_or_default()));
}

fn tool_choice(out: &mut Out, choice: Value<'_>, faults: &mut Faults) {
    match &*choice.text_of("type").unwrap_or_default() {
        "auto" => out.name("tool_choice").text("auto"),
        "any" => out.name("tool_choice").text("required"),
        "none" => out.name("tool_choice").text("none"),
        "tool" => out.name("tool_choice").object(|out| {
            out.name("type").text("function");
            out.name("function").object(|out| tool_name(out, choice));
        }),
        _ => faults.lost("tool_choice"),
    }
    if choice.get("disable_parallel_tool_use").and_then(|it| it.bool()) == Some(true) {
        out.name("parallel_tool_calls").bool(false);
    }
}

/// A message of the messages shape.
struct Turn<'a> {
    /// Whose it is.
    role: &'static str,
    content: Value<'a>,
    /// Where the content stands.
    path: String,
}

/// The messages. The messages shape takes such of one side that follow one another for one; providers of the chat shape want all
/// calls in one message, and their results right behind it.
fn messages(out: &mut Out, root: Value<'_>, target: Target<'_>, faults: &mut Faults) {
    let system = root.given("system").map(|it| system_text(it, "system", faults)).unwrap_or_default();
    if !system.is_empty() {
        plain(out, "system", &system);
    }
    let list = root.get("messages");
    let turns: Vec<_> = list.iter().flat_map(|it| it.items()).enumerate().filter_map(turn).collect();
    let says = |it: &Turn<'_>| it.content.text().is_some() || it.content.items().next().is_some();
    if system.is_empty() && !turns.iter().any(says) {
        faults.add("messages", "must have more than empty ones for a model of the chat shape");
    }
    for run in turns.chunk_by(|one, next| one.role == next.role) {
        match run {
            [Turn { role: "assistant", .. }, ..] => assistant(out, run, target, faults),
            [Turn { role: "system", .. }, ..] => {
                for turn in run {
                    plain(out, "system", &system_text(turn.content, &turn.path, faults));
                }
            }
            _ => user(out, run, target, faults),
        }
    }
}

fn turn((at, message): (usize, Value<'_>)) -> Option<Turn<'_>> {
    let role = ["assistant", "system"].into_iter().find(|it| message.has("role", it));
    let path = format!("messages.{at}.content");
    Some(Turn { role: role.unwrap_or("user"), content: message.given("content")?, path })
}

fn plain(out: &mut Out, role: &str, text: &str) {
    out.object(|out| {
        out.name("role").text(role);
        out.name("content").text(text);
    });
}

/// A system text in one piece; only texts make one.
fn system_text(content: Value<'_>, path: &str, faults: &mut Faults) -> String {
    for (at, _) in content.items().enumerate().filter(|(_, it)| !it.has("type", "text")) {
        faults.lost(&format!("{path}.{at}"));
    }
    joined(content, "\n\n")
}

fn assistant(out: &mut Out, turns: &[Turn<'_>], target: Target<'_>, faults: &mut Faults) {
    for turn in turns {
        for (at, block) in turn.content.items().enumerate() {
            match &*block.text_of("type").unwrap_or_default() {
                // Earlier thinking is no part of what a model of the chat shape is shown, unless such a model has thought it.
                "text" | "tool_use" | "thinking" | "redacted_thinking" => {}
                _ => faults.lost(&format!("{}.{at}", turn.path)),
            }
        }
    }
    // Of what is kept nowhere no text is made: a conversation may be long.
    let said = if out.is_trial() { &[] } else { turns };
    let texts = said.iter().map(|it| joined(it.content, "")).filter(|it| !it.is_empty());
    let text = texts.collect::<Vec<_>>().join("\n");
    let blocks = || turns.iter().flat_map(|it| it.content.items());
    let calls = || blocks().filter(|it| it.has("type", "tool_use"));
    // What a model of the messages shape has thought is signed. What is not was the chat shape's, whose models are to be given
    // it again while they make calls; by the provider that told it so, in a member that others refuse.
    let is_own = |it: &Value<'_>| is_of(it.text_of("signature").as_deref(), target.provider);
    let own = blocks().filter(|it| it.has("type", "thinking") && is_own(it));
    let thinking = own.filter_map(|it| it.text_of("thinking")).collect::<Vec<_>>().concat();
    out.object(|out| {
        out.name("role").text("assistant");
        if text.is_empty() && calls().next().is_some() {
            out.name("content").null();
        } else {
            out.name("content").text(&text);
        }
        if !thinking.is_empty() {
            out.name("reasoning_content").text(&thinking);
        }
        if calls().next().is_some() {
            let told: BTreeMap<_, _> = blocks().filter_map(|it| marked_call(it, target.provider)).collect();
            let unsigned = (target.host == Host::Google && told.is_empty()).then_some(UNSIGNED_CALL);
            out.name("tool_calls").list(|out| {
                for (at, call) in calls().enumerate() {
                    let id = call.text_of("id").unwrap_or_default();
                    out.object(|out| {
                        out.name("id").text(&call_id(&id, target));
                        out.name("type").text("function");
                        out.name("function").object(|out| {
                            tool_name(out, call);
                            out.name("arguments").text(call.get("input").map_or("{}", |it| it.raw()));
                        });
                        // The first call of a turn alone has to be signed.
                        let beside = told.get(&*id).map(String::as_str).or_else(|| unsigned.filter(|_| at == 0));
                        if let Some(beside) = beside {
                            out.name("extra_content").raw(beside);
                        }
                    });
                }
            });
        }
    });
}

/// What the user says between two answers: results of tools first, each a message of its own, then the rest; images in results
/// come with the rest, because a result of the chat shape is text.
fn user(out: &mut Out, turns: &[Turn<'_>], target: Target<'_>, faults: &mut Faults) {
    if let [Turn { content, .. }] = turns
        && content.is_text()
    {
        return if out.is_trial() { out.null() } else { plain(out, "user", &content.text().unwrap_or_default()) };
    }
    let mut rest = out.like();
    for turn in turns {
        if turn.content.is_text() && !turn.content.is_empty_text() {
            text_part(&mut rest, turn.content.raw());
        }
        for (at, block) in turn.content.items().enumerate() {
            let path = format!("{}.{at}", turn.path);
            if block.has("type", "tool_result") {
                tool_result(out, &mut rest, (block, &path), target, faults);
            } else {
                part(&mut rest, block, &path, faults);
            }
        }
    }
    let rest = rest.into_bytes();
    if let Ok(rest) = std::str::from_utf8(&rest)
        && !rest.is_empty()
    {
        out.object(|out| {
            out.name("role").text("user");
            out.name("content").list(|out| out.raw(rest));
        });
    }
}

/// The id of a call as this provider takes it.
fn call_id<'a>(id: &'a str, target: Target<'_>) -> Cow<'a, str> {
    match unpacked(id) {
        Cow::Borrowed(own) => taken(own, target.host),
        Cow::Owned(own) => taken(&own, target.host).into_owned().into(),
    }
}

fn tool_result(
    out: &mut Out,
    rest: &mut Out,
    (block, path): (Value<'_>, &str),
    target: Target<'_>,
    faults: &mut Faults,
) {
    let content = block.given("content");
    let said = content.filter(|_| !out.is_trial());
    let mut texts: Vec<Cow<'_, str>> = said.iter().filter_map(|it| it.text()).collect();
    for (at, inner) in content.iter().flat_map(|it| it.items()).enumerate() {
        result_part(&mut texts, rest, inner, &format!("{path}.content.{at}"), faults);
    }
    let mut text = texts.join("\n");
    if block.get("is_error").and_then(|it| it.bool()) == Some(true) && !text.starts_with("Error") {
        text.insert_str(0, FAILED);
    }
    out.object(|out| {
        out.name("role").text("tool");
        out.name("tool_call_id").text(&call_id(&block.text_of("tool_use_id").unwrap_or_default(), target));
        out.name("content").text(&text);
    });
}

/// A part of a tool's result: what of it is text stays in the result, or words of whoever the tool has read would be the user's own.
fn result_part<'a>(texts: &mut Vec<Cow<'a, str>>, rest: &mut Out, inner: Value<'a>, path: &str, faults: &mut Faults) {
    match &*inner.text_of("type").unwrap_or_default() {
        "text" if rest.is_trial() => {}
        "text" => texts.extend(inner.text_of("text")),
        "search_result" => {
            texts.extend(told(inner, &["title", "source"]));
            let content = inner.get("content");
            texts.extend(content.iter().flat_map(|it| it.items()).filter_map(|it| it.text_of("text")));
        }
        "document" => {
            let Some(source) = inner.get("source") else { return faults.lost(path) };
            let text = document_text(source);
            texts.extend(told(inner, names_told(source, text.is_some())));
            match (&*source.text_of("type").unwrap_or_default(), text) {
                (_, Some(text)) => texts.push(text),
                ("content", None) => {
                    for (at, part) in source.get("content").iter().flat_map(|it| it.items()).enumerate() {
                        result_part(texts, rest, part, &format!("{path}.source.content.{at}"), faults);
                    }
                }
                ("base64", None) => file(rest, inner, source, path, faults),
                (_, None) => faults.lost(&format!("{path}.source")),
            }
        }
        _ => part(rest, inner, path, faults),
    }
}

/// A part of a user's message.
fn part(out: &mut Out, block: Value<'_>, path: &str, faults: &mut Faults) {
    match &*block.text_of("type").unwrap_or_default() {
        "text" => text_part(out, raw_or(block, "text", "\"\"")),
        "image" => match block.get("source").and_then(url_of) {
            Some(url) => out.object(|out| {
                out.name("type").text("image_url");
                out.name("image_url").object(|out| out.name("url").text(&url));
            }),
            None => faults.lost(&format!("{path}.source")),
        },
        "document" => document(out, block, path, faults),
        "search_result" => {
            about(out, block, &["title", "source"]);
            for inner in block.get("content").iter().flat_map(|it| it.items()) {
                text_part(out, raw_or(inner, "text", "\"\""));
            }
        }
        _ => faults.lost(path),
    }
}

fn text_part(out: &mut Out, raw: &str) {
    out.object(|out| {
        out.name("type").text("text");
        out.name("text").raw(raw);
    });
}

/// A source as a URL: one of its own, or with its bytes within it.
fn url_of(source: Value<'_>) -> Option<String> {
    if source.has("type", "url") {
        return source.text_of("url").map(Into::into);
    }
    let (kind, data) = (source.text_of("media_type")?, source.text_of("data")?);
    source.has("type", "base64").then(|| format!("data:{kind};base64,{data}"))
}

/// What is told of a part beside its content, as a text before it: the chat shape has no members for it.
fn about(out: &mut Out, block: Value<'_>, names: &[&str]) {
    let lines: Vec<_> = told(block, names).collect();
    if !lines.is_empty() {
        text_part(out, &quoted(&lines.join("\n")));
    }
}

/// What these members tell.
fn told<'a>(block: Value<'a>, names: &[&str]) -> impl Iterator<Item = Cow<'a, str>> {
    names.iter().filter_map(move |name| block.text_of(name)).filter(|it| !it.is_empty())
}

fn document(out: &mut Out, block: Value<'_>, path: &str, faults: &mut Faults) {
    let source = block.get("source");
    let Some(source) = source.filter(|it| it.form() == Form::Object) else { return faults.lost(path) };
    let text = document_text(source);
    about(out, block, names_told(source, text.is_some()));
    match (&*source.text_of("type").unwrap_or_default(), text) {
        (_, Some(text)) => text_part(out, &quoted(&text)),
        ("content", None) => {
            for (at, inner) in source.get("content").iter().flat_map(|it| it.items()).enumerate() {
                part(out, inner, &format!("{path}.source.content.{at}"), faults);
            }
        }
        ("base64", None) => file(out, block, source, path, faults),
        (_, None) => faults.lost(&format!("{path}.source")),
    }
}

/// What is told of a document before its content. Bytes are a file there, which has a name of its own.
fn names_told(source: Value<'_>, is_text: bool) -> &'static [&'static str] {
    if !is_text && source.has("type", "base64") { &["context"] } else { &["title", "context"] }
}

/// The text that a document is: told as one, or as the bytes of one.
fn document_text(source: Value<'_>) -> Option<Cow<'_, str>> {
    match &*source.text_of("type")? {
        "text" => Some(source.text_of("data").unwrap_or_default()),
        "content" => source.get("content")?.text(),
        "base64" if is_text(&source.text_of("media_type")?) => utf8(&source.text_of("data")?).map(Cow::Owned),
        _ => None,
    }
}

/// A document's bytes as a file, which has a name.
fn file(out: &mut Out, block: Value<'_>, source: Value<'_>, path: &str, faults: &mut Faults) {
    let is_text = source.text_of("media_type").is_some_and(|it| is_text(&it));
    let Some(url) = url_of(source).filter(|_| !is_text) else { return faults.lost(&format!("{path}.source")) };
    out.object(|out| {
        out.name("type").text("file");
        out.name("file").object(|out| {
            out.name("filename").raw(raw_or(block, "title", "\"document.pdf\""));
            out.name("file_data").text(&url);
        });
    });
}
