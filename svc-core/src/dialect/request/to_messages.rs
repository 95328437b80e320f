//! A request of the chat shape, written in the messages shape.

use std::borrow::Cow;

use super::super::answer::{arguments_of, write_input};
use super::super::doc::{Form, Value};
use super::super::files::{Source, TEXT, address, document, picture};
use super::super::names::CallIds;
use super::super::own::switched_on;
use super::super::write::Out;
use super::thinking::{self, Tell, Wish, takes_budget};
use super::{Faults, Target, is_one, joined, makers, raw_or, schema};
use crate::state::gateway::{Dialect, Particular};

/// Members of the messages shape that a client of the chat shape sends all the same: they are meant for such a model.
const OWN: &[&str] = &["top_k", "container", "mcp_servers", "context_management", "cache_control"];
/// The least `top_p` that a model which thinks takes.
const TOP_P_THINKING: f64 = 0.95;
/// Up to where a provider is to cache.
const CACHE: &str = "cache_control";
/// What stands for a wish for JSON of any form, which the messages shape has no member for.
const JSON_ONLY: &str = "Answer with one JSON object and nothing else.";

/// Writes the request for a provider of the messages shape.
pub(super) fn write(out: &mut Out, root: Value<'_>, stream: bool, target: Target<'_>, faults: &mut Faults) {
    let bound = bound(root, target);
    out.object(|out| {
        out.name("model").text(target.model);
        out.name("max_tokens").number(bound);
        system(out, root, faults);
        out.name("messages").list(|out| messages(out, root, target, faults));
        thinking::refuse_beginning(Dialect::Chat, root, target, faults);
        for (name, value) in root.members().filter(|(_, it)| !it.is_null()) {
            member(out, root, (&name.text().unwrap_or_default(), value), target, faults);
        }
        tool_choice(out, root, faults);
        thinking(out, root, bound, target, faults);
        let user = root.given("user").or_else(|| root.given("safety_identifier")).filter(|it| it.is_text());
        if let Some(user) = user {
            out.name("metadata").object(|out| out.name("user_id").raw(user.raw()));
        }
        if stream {
            out.name("stream").bool(true);
        }
    });
}

/// The bound on the output.
fn bound(root: Value<'_>, target: Target<'_>) -> u64 {
    let bound = root.given("max_completion_tokens").or_else(|| root.given("max_tokens")).and_then(|it| it.integer());
    bound.and_then(|it| u64::try_from(it).ok()).unwrap_or(target.max_output)
}

/// One member of the top level, other than those that [`write`] writes itself. What is not named here is a hint or a
/// label, and has no place in the other shape.
fn member(out: &mut Out, root: Value<'_>, (name, value): (&str, Value<'_>), target: Target<'_>, faults: &mut Faults) {
    match name {
        _ if makers::draws_itself(target) && makers::chances(Dialect::Messages).contains(&name) => {}
        _ if makers::second_chance(root, target) == Some(name) => {}
        // What is so without being said is not said: newer models refuse both together, or any but these.
        "temperature" | "top_p" if is_one(value) => {}
        "temperature" => {
            // The other shape ends at 1; a little less chance is another answer, so it is not cut silently.
            if value.raw().parse::<f64>().is_ok_and(|it| it > 1.0) {
                faults.has(Particular::Heat, target, name, "must be at most 1 for a model of the messages shape");
            }
            out.name(name).raw(value.raw());
        }
        "top_p" => out.name(name).raw(value.raw()),
        "stop" => stops(out, value, faults),
        "tools" if value.items().next().is_some() => out.name("tools").list(|out| tools(out, root, value, faults)),
        "n" if value.integer() != Some(1) => faults.add(name, "must be 1 for a model of the messages shape"),
        "service_tier" => match value.text().as_deref() {
            Some("auto") => out.name(name).text("auto"),
            Some("default") => out.name(name).text("standard_only"),
            Some(_) | None => faults.lost(name),
        },
        "modalities" if value.items().any(|it| !it.is("text")) => faults.lost(name),
        "logprobs" if value.bool() != Some(false) => faults.lost(name),
        "frequency_penalty" | "presence_penalty" if !is_zero(value) => faults.lost(name),
        "logit_bias" if value.members().next().is_some() => faults.lost(name),
        "functions" | "function_call" => {
            faults.add(name, "is the old form of `tools`, which a model of the messages shape does not know");
        }
        "audio" => faults.lost(name),
        _ if switched_on(name, value).is_some() => faults.lost(name),
        _ if OWN.contains(&name) => out.name(name).raw(value.raw()),
        _ => {}
    }
}

/// The texts that end the answer. An empty one ends none; one of white space alone is a text that the other shape refuses.
fn stops(out: &mut Out, value: Value<'_>, faults: &mut Faults) {
    let alone = value.is_text().then_some(value);
    let given: Vec<Value<'_>> = alone.into_iter().chain(value.items()).filter(|it| !it.is_empty_text()).collect();
    if given.iter().any(|it| it.text().is_some_and(|it| it.trim().is_empty())) {
        return faults.add("stop", "must have more than white space for a model of the messages shape");
    }
    if !given.is_empty() {
        out.name("stop_sequences").list(|out| given.iter().for_each(|it| out.raw(it.raw())));
    }
}

fn is_zero(number: Value<'_>) -> bool {
    number.raw().bytes().all(|it| matches!(it, b'0' | b'.' | b'-'))
}

/// System texts, wherever they stand: the messages shape has one place for them.
fn system(out: &mut Out, root: Value<'_>, faults: &mut Faults) {
    let mut texts = out.like();
    for (at, message) in root.get("messages").iter().flat_map(|it| it.items()).enumerate() {
        if !is_system(message) {
            continue;
        }
        let Some(content) = message.given("content") else { continue };
        for (index, _) in content.items().enumerate().filter(|(_, it)| !it.has("type", "text")) {
            faults.lost(&format!("messages.{at}.content.{index}"));
        }
        // Texts in one message are one, unless it says up to which of them a provider is to cache.
        if content.items().any(|it| it.given(CACHE).is_some()) {
            for part in content.items() {
                text_of(&mut texts, part.get("text"), Some(part));
            }
        } else {
            text_block(&mut texts, &joined(content, "\n"), Some(message));
        }
    }
    let format = root.given("response_format");
    if format.is_some_and(|it| it.has("type", "json_object")) {
        text_block(&mut texts, JSON_ONLY, None);
    }
    let texts = texts.into_bytes();
    if let Ok(texts) = std::str::from_utf8(&texts)
        && !texts.is_empty()
    {
        out.name("system").list(|out| out.raw(texts));
    }
}

fn is_system(message: Value<'_>) -> bool {
    message.has("role", "system") || message.has("role", "developer")
}

/// A block of text, made of what may say that it is to be cached; none where there is nothing but white space, which the messages
/// shape refuses.
fn text_block(out: &mut Out, text: &str, made_of: Option<Value<'_>>) {
    if !text.trim().is_empty() {
        out.object(|out| {
            out.name("type").text("text");
            out.name("text").text(text);
            cached(out, made_of);
        });
    }
}

/// The same of this text, which may be long: of what is kept nowhere none is made, where it is plain to see that it says something.
fn text_of(out: &mut Out, text: Option<Value<'_>>, made_of: Option<Value<'_>>) {
    let Some(text) = text.filter(|it| it.is_text()) else { return };
    let first = text.raw().as_bytes().get(1);
    if out.is_trial() && first.is_some_and(|it| it.is_ascii_graphic() && !b"\"\\".contains(it)) {
        return out.null();
    }
    text_block(out, &text.text().unwrap_or_default(), made_of);
}

/// Up to where a provider is to cache, which the chat shape has no member for: a client that means a model of the messages shape
/// says it in that shape's words.
fn cached(out: &mut Out, made_of: Option<Value<'_>>) {
    if let Some(control) = made_of.and_then(|it| it.given(CACHE)) {
        out.name(CACHE).raw(control.raw());
    }
}

/// The messages; such of one side that follow one another become one, as results of parallel calls must.
fn messages(out: &mut Out, root: Value<'_>, target: Target<'_>, faults: &mut Faults) {
    let mut side = "";
    let mut blocks = out.like();
    let mut is_empty = true;
    let mut ids = CallIds::default();
    let mut flush = |out: &mut Out, side: &str, blocks: Out| {
        let blocks = blocks.into_bytes();
        if let Ok(blocks) = std::str::from_utf8(&blocks)
            && !blocks.is_empty()
        {
            is_empty = false;
            out.object(|out| {
                out.name("role").text(side);
                out.name("content").list(|out| out.raw(blocks));
            });
        }
    };
    for (at, message) in root.get("messages").iter().flat_map(|it| it.items()).enumerate() {
        if is_system(message) {
            continue;
        }
        let own = if message.has("role", "assistant") { "assistant" } else { "user" };
        if own != side {
            let next = out.like();
            flush(out, side, std::mem::replace(&mut blocks, next));
            side = own;
            if own == "assistant" {
                ids.turn();
            }
        }
        if own == "assistant" {
            assistant(&mut blocks, message, at, &mut ids, target, faults);
        } else if message.has("role", "tool") {
            tool_result(&mut blocks, message, at, &mut ids, faults);
        } else if message.has("role", "function") {
            faults.add(format!("messages.{at}.role"), "is the old form of a tool's result");
        } else {
            content(&mut blocks, message, at, Some(message), faults);
        }
    }
    flush(out, side, blocks);
    if is_empty && faults.all.is_empty() {
        faults.add("messages", "must have more than system texts and empty ones for a model of the messages shape");
    }
}

/// What the model has thought, as its provider takes it back.
fn thoughts<'a>(message: Value<'a>, target: Target<'_>) -> impl Iterator<Item = Cow<'a, str>> {
    let blocks = message.get("thinking_blocks").into_iter().flat_map(|it| it.items());
    blocks.filter_map(move |it| thinking::returned(it, target))
}

fn assistant(out: &mut Out, message: Value<'_>, at: usize, ids: &mut CallIds, target: Target<'_>, faults: &mut Faults) {
    // A client that was given the model's own thinking sends it back, so that it can go on from there.
    for block in thoughts(message, target) {
        out.raw(&block);
    }
    for name in ["audio", "function_call"] {
        if message.given(name).is_some() {
            faults.lost(&format!("messages.{at}.{name}"));
        }
    }
    content(out, message, at, Some(message), faults);
    text_of(out, message.get("refusal"), None);
    for (index, call) in message.get("tool_calls").iter().flat_map(|it| it.items()).enumerate() {
        let path = format!("messages.{at}.tool_calls.{index}");
        let Some(function) = call.given("function") else {
            faults.lost(&path);
            continue;
        };
        out.object(|out| {
            out.name("type").text("tool_use");
            out.name("id").text(&ids.call(&call.text_of("id").unwrap_or_default()));
            out.name("name").raw(raw_or(function, "name", "\"\""));
            // What broke off, or was none from the start, is no reason to end a conversation.
            write_input(out.name("input"), &arguments_of(function));
        });
    }
}

fn tool_result(out: &mut Out, message: Value<'_>, at: usize, ids: &mut CallIds, faults: &mut Faults) {
    let mut blocks = out.like();
    // What the message says of caching is said of the result.
    content(&mut blocks, message, at, None, faults);
    let blocks = blocks.into_bytes();
    out.object(|out| {
        out.name("type").text("tool_result");
        out.name("tool_use_id").text(&ids.result(&message.text_of("tool_call_id").unwrap_or_default()));
        out.name("content").list(|out| {
            if let Ok(blocks) = std::str::from_utf8(&blocks)
                && !blocks.is_empty()
            {
                out.raw(blocks);
            }
        });
        cached(out, Some(message));
    });
}

/// The content of the message at this place, as blocks; `whole` is what says of a content of one text that it is to be cached.
fn content(out: &mut Out, message: Value<'_>, at: usize, whole: Option<Value<'_>>, faults: &mut Faults) {
    let Some(content) = message.given("content") else { return };
    text_of(out, Some(content), whole);
    for (index, part) in content.items().enumerate() {
        let path = format!("messages.{at}.content.{index}");
        match &*part.text_of("type").unwrap_or_default() {
            "text" => text_of(out, part.get("text"), Some(part)),
            "refusal" => text_of(out, part.get("refusal"), Some(part)),
            "image_url" => {
                let image = part.get("image_url");
                let url = image.and_then(|it| it.text().or_else(|| it.text_of("url")));
                match url.as_deref().map(|it| address(it).map(picture)) {
                    Some(Some(Some(source))) => media(out, "image", None, source, part),
                    Some(Some(None)) => faults.add(
                        format!("{path}.image_url"),
                        "must be a JPEG, PNG, GIF or WebP image for a model of the messages shape",
                    ),
                    Some(None) | None => faults.lost(&format!("{path}.image_url")),
                }
            }
            "file" => file(out, part, &path, faults),
            // Blocks of the messages shape that a client of the chat shape sends all the same.
            "image" | "document" => out.raw(part.raw()),
            // What another provider's model has thought: it comes back with what that model said.
            "thinking" if message.has("role", "assistant") => {}
            _ => faults.lost(&path),
        }
    }
}

fn file(out: &mut Out, part: Value<'_>, path: &str, faults: &mut Faults) {
    let file = part.get("file");
    let Some(data) = file.and_then(|it| it.text_of("file_data")) else { return faults.lost(&format!("{path}.file")) };
    let name = file.and_then(|it| it.get("filename"));
    match document(&data, &name.and_then(|it| it.text()).unwrap_or_default()) {
        Some(source) => media(out, "document", name, source, part),
        None => faults.add(
            format!("{path}.file.file_data"),
            "must be a PDF or text, as a `data:` URL or a `filename` says, for a model of the messages shape",
        ),
    }
}

fn media(out: &mut Out, kind: &str, title: Option<Value<'_>>, source: Source<'_>, part: Value<'_>) {
    out.object(|out| {
        out.name("type").text(kind);
        out.name("source").object(|out| match source {
            Source::Bytes(kind, data) => {
                out.name("type").text("base64");
                out.name("media_type").text(kind);
                out.name("data").text(data);
            }
            Source::Text(text) => {
                out.name("type").text("text");
                out.name("media_type").text(TEXT);
                out.name("data").text(&text);
            }
            Source::Url(url) => {
                out.name("type").text("url");
                out.name("url").text(url);
            }
        });
        if let Some(title) = title.filter(|it| it.is_text()) {
            out.name("title").raw(title.raw());
        }
        cached(out, Some(part));
    });
}

fn tools(out: &mut Out, root: Value<'_>, tools: Value<'_>, faults: &mut Faults) {
    let strict = schema::strict_tools(root);
    for (at, tool) in tools.items().enumerate() {
        let Some(function) = tool.given("function").filter(|_| tool.has("type", "function")) else {
            faults.add(format!("tools.{at}.type"), "is a tool that only models of the chat shape know");
            continue;
        };
        out.object(|out| {
            out.name("name").raw(raw_or(function, "name", "\"\""));
            if let Some(description) = function.given("description") {
                out.name("description").raw(description.raw());
            }
            let parameters = function.given("parameters");
            let strict = strict.contains(&at);
            match parameters.filter(|it| strict && it.given("type").is_some()) {
                Some(parameters) => schema::write(out.name("input_schema"), parameters),
                None => input_schema(out.name("input_schema"), parameters),
            }
            if strict {
                out.name("strict").bool(true);
            }
            cached(out, Some(tool));
        });
    }
}

/// What a tool takes: an object, which the messages shape has to be told.
fn input_schema(out: &mut Out, parameters: Option<Value<'_>>) {
    match parameters {
        None => out.raw("{\"type\":\"object\",\"properties\":{}}"),
        Some(it) if it.form() == Form::Object && it.given("type").is_none() => out.object(|out| {
            out.name("type").text("object");
            for (name, value) in it.members().filter(|(name, _)| !name.is("type")) {
                out.name(&name.text().unwrap_or_default()).raw(value.raw());
            }
        }),
        Some(it) => out.raw(it.raw()),
    }
}

fn tool_choice(out: &mut Out, root: Value<'_>, faults: &mut Faults) {
    if root.get("tools").is_none_or(|it| it.items().next().is_none()) {
        return;
    }
    let single = root.get("parallel_tool_calls").and_then(|it| it.bool()) == Some(false);
    let choice = root.given("tool_choice");
    let named = choice.and_then(|it| it.get("function")).map(|it| raw_or(it, "name", "\"\""));
    let kind = match choice.as_ref().and_then(|it| it.text()).as_deref() {
        Some("none") => "none",
        Some("required" | makers::MISTRAL_FORCED) => "any",
        Some("auto") => "auto",
        Some(_) => return faults.lost("tool_choice"),
        None if named.is_some() => "tool",
        None if choice.is_some() => return faults.lost("tool_choice"),
        None if single => "auto",
        None => return,
    };
    out.name("tool_choice").object(|out| {
        out.name("type").text(kind);
        if let Some(name) = named {
            out.name("name").raw(name);
        }
        if single && kind != "none" {
            out.name("disable_parallel_tool_use").bool(true);
        }
    });
}

/// How much thinking is wished for, and in what form the answer.
fn thinking(out: &mut Out, root: Value<'_>, bound: u64, target: Target<'_>, faults: &mut Faults) {
    let own = root.given("thinking");
    // A client that says it in this shape's words means a model of this shape, and not always this one.
    let wish = Wish { thinking: own, effort: None, bound, is_forced: is_forced(root) };
    let told = own.map(|_| wish.told(target)).unwrap_or_default();
    match (&told.thinking, own) {
        (Tell::AsItIs, Some(own)) => out.name("thinking").raw(own.raw()),
        (Tell::As(other), Some(_)) => out.name("thinking").raw(other),
        (Tell::LeftOut, _) | (_, None) => {}
    }
    let level = level(root).filter(|_| own.is_none() && target.reasoning && in_the_way(root, target).is_none());
    let budgeted = takes_budget(target.model);
    if let Some(level) = level {
        if budgeted {
            if let Some(budget) = thinking::budget(level, bound) {
                out.name("thinking").object(|out| {
                    out.name("type").text("enabled");
                    out.name("budget_tokens").number(budget);
                });
            }
        } else {
            out.name("thinking").object(|out| out.name("type").text("adaptive"));
        }
    }
    let format = root.given("response_format").filter(|it| !it.has("type", "text") && !it.has("type", "json_object"));
    let schema = format.and_then(|it| it.get("json_schema")).and_then(|it| it.given("schema"));
    if format.is_some() && schema.is_none() {
        faults.lost("response_format");
    }
    if !schema.is_none_or(schema::is_kept_to) {
        faults.add("response_format", "has a schema that no model of the messages shape can be kept to: it holds itself, or has too many members that may be left out or be of several types");
    }
    let effort = match &told.effort {
        Tell::As(word) => Some(word.as_str()),
        Tell::AsItIs | Tell::LeftOut => level.filter(|_| !budgeted).and_then(thinking::effort),
    };
    if effort.is_some() || schema.is_some() {
        out.name("output_config").object(|out| {
            if let Some(effort) = effort {
                out.name("effort").text(effort);
            }
            if let Some(schema) = schema {
                out.name("format").object(|out| {
                    out.name("type").text("json_schema");
                    schema::write(out.name("schema"), schema);
                });
            }
        });
    }
}

/// The level of effort that is wished for.
fn level(root: Value<'_>) -> Option<usize> {
    match root.text_of("reasoning_effort").as_deref() {
        Some("minimal" | "low") => Some(0),
        Some("medium") => Some(1),
        Some("high" | "xhigh" | "max") => Some(2),
        Some(_) | None => None,
    }
}

/// What is said where a wish for thinking is not passed on.
pub(super) fn unthought(root: Value<'_>, target: Target<'_>) -> Option<String> {
    let level = level(root).filter(|_| root.given("thinking").is_none())?;
    let (model, bound) = (target.model, bound(root, target));
    let why = if !target.reasoning {
        format!("{model} does not think")
    } else if let Some(why) = in_the_way(root, target) {
        format!("{model} does not think {why}")
    } else if takes_budget(model) && thinking::budget(level, bound).is_none() {
        format!("{model} has no room to think within {bound} tokens of output")
    } else {
        return None;
    };
    Some(format!("left out, as {why}: reasoning_effort"))
}

/// What keeps a wish for thinking from being met, if anything. Providers refuse it beside a call that the model has to make and beside
/// a chance of the client's own; and a turn of calls that began without the model's thinking must go on without.
fn in_the_way(root: Value<'_>, target: Target<'_>) -> Option<&'static str> {
    let is_least = |name: &str, least: f64| {
        root.given(name).is_none_or(|it| it.raw().parse::<f64>().is_ok_and(|it| (least..=1.0).contains(&it)))
    };
    let has_chances =
        || !is_least("temperature", 1.0) || !is_least("top_p", TOP_P_THINKING) || root.given("top_k").is_some();
    if is_forced(root) {
        return Some("beside a call that it has to make");
    }
    if !makers::draws_itself(target) && has_chances() {
        return Some("beside a temperature, top_p or top_k of its client's");
    }
    let mut last = None;
    for message in root.get("messages").iter().flat_map(|it| it.items()) {
        if message.has("role", "assistant") {
            last = Some(message);
        }
    }
    let goes_on = last.is_some_and(|it| it.given("tool_calls").is_some() && thoughts(it, target).next().is_none());
    goes_on.then_some("in a turn of calls that began without")
}

/// Whether a call has to be made.
fn is_forced(root: Value<'_>) -> bool {
    root.given("tool_choice")
        .is_some_and(|it| it.is("required") || it.is(makers::MISTRAL_FORCED) || it.form() == Form::Object)
}
