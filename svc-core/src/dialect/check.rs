//! What is wrong with a request: every fault with its path. What is not known is not judged.

#[cfg(test)]
mod tests;
mod twins;

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::doc::{Form, Value, quoted};
use super::request::Purpose;
use crate::refusal::FieldError;
use crate::state::gateway::Dialect;

/// So many faults are told; a body can hold a million.
pub(super) const FAULTS_MAX: usize = 200;
/// The most answers that one call may ask for.
pub(super) const ANSWERS_MAX: i64 = 128;

/// By what a request of the messages shape names a conversation that the provider keeps.
const THREAD: &str = "thread";

/// Why a request names no part of the conversation that a provider keeps.
const WHOLE: &str = "must be left out: every request holds the whole conversation";
/// By what requests name content that Google keeps and puts before the conversation.
const KEPT: [&str; 2] = ["cached_content", "cachedContent"];
/// Within what: Google's own API of the chat shape has it in its extensions, gateways in the body itself.
const KEPT_WITHIN: [&[&str]; 4] = [&[], &["google"], &["extra_body"], &["extra_body", "google"]];

/// Every fault of a body that is an object.
pub(super) fn faults(dialect: Dialect, purpose: Purpose, root: Value<'_>) -> Vec<FieldError> {
    let mut faults = Faults(Vec::new());
    faults.text(root, "model", "model");
    faults.whole_members(root);
    twins::note(&mut faults, root);
    match dialect {
        Dialect::Chat => chat(&mut faults, root),
        Dialect::Messages => messages(&mut faults, purpose, root),
    }
    faults.0
}

/// Whether a request leaves its conversation to the provider: nothing of what is there could be looked at, counted, or sent to
/// another one.
pub(super) fn is_threaded(dialect: Dialect, root: Value<'_>) -> bool {
    dialect == Dialect::Messages && root.given(THREAD).is_some()
}

/// What was found so far.
struct Faults(Vec<FieldError>);

impl Faults {
    fn add(&mut self, field: impl Into<Box<str>>, clause: impl AsRef<str>) {
        if self.0.len() < FAULTS_MAX {
            self.0.push(FieldError::new(field, clause));
        }
    }

    /// A member that must be there as a text of at least one character.
    fn text(&mut self, object: Value<'_>, name: &str, path: &str) {
        match object.given(name) {
            None => self.add(path, "is required"),
            Some(it) if !it.is_text() => self.add(path, "must be text"),
            Some(it) if it.is_empty_text() => self.add(path, "must not be empty"),
            Some(_) => {}
        }
    }

    /// Members that both shapes have.
    fn whole_members(&mut self, root: Value<'_>) {
        if root.given("stream").is_some_and(|it| it.bool().is_none()) {
            self.add("stream", "must be `true` or `false`");
        }
        for name in ["temperature", "top_p"] {
            if root.given(name).is_some_and(|it| it.form() != Form::Number) {
                self.add(name, "must be a number");
            }
        }
        if root.given("metadata").is_some_and(|it| it.form() != Form::Object) {
            self.add("metadata", "must be an object");
        }
        for within in KEPT_WITHIN {
            let Some(object) = within.iter().try_fold(root, |it, name| it.given(name)) else { continue };
            for name in KEPT.into_iter().filter(|it| object.given(it).is_some_and(|it| !it.is_empty_text())) {
                let path = within.iter().copied().chain([name]).collect::<Vec<_>>().join(".");
                // Nothing of it could be looked at, counted as what came from elsewhere, or sent to another provider.
                self.add(path, WHOLE);
            }
        }
    }

    fn above_zero(&mut self, root: Value<'_>, name: &str) {
        if root.given(name).is_some_and(|it| it.integer().is_none_or(|it| it <= 0)) {
            self.add(name, "must be a whole number above zero");
        }
    }

    /// The messages, each with its place; a fault where there are none.
    fn messages<'a>(&mut self, root: Value<'a>) -> Vec<Value<'a>> {
        match root.given("messages") {
            None => self.add("messages", "is required"),
            Some(it) if it.form() != Form::List => self.add("messages", "must be a list"),
            Some(it) if it.items().next().is_none() => self.add("messages", "must hold at least one message"),
            Some(it) => return it.items().collect(),
        }
        Vec::new()
    }

    /// A message's role, where it has one of these.
    fn role<'a>(&mut self, at: usize, message: Value<'a>, roles: &[&str]) -> Option<Cow<'a, str>> {
        if message.form() != Form::Object {
            self.add(format!("messages.{at}"), "must be an object");
            return None;
        }
        let path = || format!("messages.{at}.role");
        match message.given("role") {
            None => self.add(path(), "is required"),
            Some(role) => match role.text() {
                None => self.add(path(), "must be text"),
                Some(it) if roles.contains(&&*it) => return Some(it),
                Some(it) => {
                    let known = roles.join("`, `");
                    self.add(path(), format!("must be one of `{known}`, not `{}`", quoted(&it)));
                }
            },
        }
        None
    }

    /// A content: text, or a list of objects that each name their type.
    fn parts(&mut self, content: Value<'_>, path: &dyn Fn() -> String) {
        match content.form() {
            Form::Plain | Form::Escaped => {}
            Form::List => {
                for (at, part) in content.items().enumerate() {
                    if part.form() != Form::Object {
                        self.add(format!("{}.{at}", path()), "must be an object");
                    } else if !part.get("type").is_some_and(|it| it.is_text()) {
                        self.add(format!("{}.{at}.type", path()), "is required");
                    }
                }
            }
            Form::Null | Form::Bool(_) | Form::Number | Form::Object => {
                self.add(path(), "must be text or a list of parts");
            }
        }
    }

    /// The list of tools: objects, and what each must have.
    fn tools(&mut self, root: Value<'_>, each: impl Fn(&mut Self, usize, Value<'_>)) {
        let Some(tools) = root.given("tools") else { return };
        if tools.form() != Form::List {
            return self.add("tools", "must be a list");
        }
        for (at, tool) in tools.items().enumerate() {
            if tool.form() == Form::Object {
                each(self, at, tool);
            } else {
                self.add(format!("tools.{at}"), "must be an object");
            }
        }
    }
}

fn chat(faults: &mut Faults, root: Value<'_>) {
    for name in ["max_tokens", "max_completion_tokens"] {
        faults.above_zero(root, name);
    }
    if root.given("n").is_some_and(|it| it.integer().is_none_or(|it| !(1..=ANSWERS_MAX).contains(&it))) {
        faults.add("n", format!("must be a whole number from 1 to {ANSWERS_MAX}"));
    }
    if let Some(options) = root.given("stream_options") {
        if options.form() != Form::Object {
            faults.add("stream_options", "must be an object");
        } else if options.given("include_usage").is_some_and(|it| it.bool().is_none()) {
            faults.add("stream_options.include_usage", "must be `true` or `false`");
        }
    }
    if let Some(stop) = root.given("stop") {
        stop_texts(faults, stop, "stop", true);
    }
    faults.tools(root, |faults, at, tool| {
        faults.text(tool, "type", &format!("tools.{at}.type"));
        if tool.has("type", "function") {
            match tool.get("function") {
                Some(it) if it.form() == Form::Object => faults.text(it, "name", &format!("tools.{at}.function.name")),
                Some(_) => faults.add(format!("tools.{at}.function"), "must be an object"),
                None => faults.add(format!("tools.{at}.function"), "is required"),
            }
        }
    });
    let mut calls = BTreeSet::new();
    for (at, message) in faults.messages(root).into_iter().enumerate() {
        let roles = ["system", "developer", "user", "assistant", "tool", "function"];
        if let Some(role) = faults.role(at, message, &roles) {
            chat_message(faults, at, message, &role, &mut calls);
        }
    }
}

fn chat_message<'a>(
    faults: &mut Faults,
    at: usize,
    message: Value<'a>,
    role: &str,
    calls: &mut BTreeSet<Cow<'a, str>>,
) {
    let speaks = role == "assistant";
    match message.given("content") {
        Some(content) => faults.parts(content, &|| format!("messages.{at}.content")),
        None if !speaks => faults.add(format!("messages.{at}.content"), "is required"),
        // A client sends back what a model answered, be it without a content.
        None => {}
    }
    if let Some(list) = message.given("tool_calls").filter(|_| speaks) {
        if list.form() != Form::List {
            faults.add(format!("messages.{at}.tool_calls"), "must be a list");
        }
        for (index, call) in list.items().enumerate() {
            let path = format!("messages.{at}.tool_calls.{index}");
            // Some providers give calls empty ids, which come back.
            if !call.get("id").is_some_and(|it| it.is_empty_text()) {
                faults.text(call, "id", &format!("{path}.id"));
            }
            calls.extend(call.text_of("id"));
            if let Some(function) = call.get("function") {
                faults.text(function, "name", &format!("{path}.function.name"));
                // What providers answered comes back, be it the object itself.
                if !function.given("arguments").is_none_or(|it| it.is_text() || it.form() == Form::Object) {
                    faults.add(format!("{path}.function.arguments"), "must be text");
                }
            } else if call.get("custom").is_none() {
                faults.add(format!("{path}.function"), "is required");
            }
        }
    }
    if role == "tool" {
        answered(faults, message, "tool_call_id", calls, &|| format!("messages.{at}.tool_call_id"));
    }
}

/// A result names a call that was made before it.
fn answered(
    faults: &mut Faults,
    result: Value<'_>,
    name: &str,
    calls: &BTreeSet<Cow<'_, str>>,
    path: &dyn Fn() -> String,
) {
    match result.given(name) {
        None => faults.add(path(), "is required"),
        Some(id) => match id.text() {
            None => faults.add(path(), "must be text"),
            Some(id) if calls.contains(&*id) => {}
            Some(_) => faults.add(path(), "names no tool call of an earlier message"),
        },
    }
}

fn stop_texts(faults: &mut Faults, stop: Value<'_>, name: &str, single: bool) {
    match stop.form() {
        Form::Plain | Form::Escaped if single => {}
        Form::List => {
            for (at, item) in stop.items().enumerate().filter(|(_, it)| !it.is_text()) {
                let _ = item;
                faults.add(format!("{name}.{at}"), "must be text");
            }
        }
        Form::Null | Form::Bool(_) | Form::Number | Form::Plain | Form::Escaped | Form::Object => {
            faults.add(name, if single { "must be text or a list of texts" } else { "must be a list of texts" });
        }
    }
}

fn messages(faults: &mut Faults, purpose: Purpose, root: Value<'_>) {
    if purpose == Purpose::Answer && root.given("max_tokens").is_none() {
        faults.add("max_tokens", "is required");
    }
    // None at all is asked for as well: the provider takes what goes in into its cache.
    if root.given("max_tokens").is_some_and(|it| it.integer().is_none_or(|it| it < 0)) {
        faults.add("max_tokens", "must be a whole number, zero or above");
    }
    // It is none of the shape's members, but goes on to a provider that may have it.
    if root.given("n").is_some_and(|it| it.integer() != Some(1)) {
        faults.add("n", "must be 1: the messages shape has one answer");
    }
    if let Some(system) = root.given("system") {
        faults.parts(system, &|| "system".to_owned());
    }
    if let Some(stop) = root.given("stop_sequences") {
        stop_texts(faults, stop, "stop_sequences", false);
    }
    faults.tools(root, |faults, at, tool| {
        // A set of tools has no name of its own.
        if !tool.text_of("type").is_some_and(|it| it.contains("_toolset")) {
            faults.text(tool, "name", &format!("tools.{at}.name"));
        }
    });
    if is_threaded(Dialect::Messages, root) {
        // What the messages lack may lie at the provider.
        return faults.add(THREAD, WHOLE);
    }
    let mut calls = BTreeSet::new();
    for (at, message) in faults.messages(root).into_iter().enumerate() {
        let Some(role) = faults.role(at, message, &["user", "assistant", "system"]) else { continue };
        let Some(content) = message.given("content") else {
            // Such a message may say nothing but how much effort is to be made from there on.
            if role != "system" || message.given("output_config").is_none() {
                faults.add(format!("messages.{at}.content"), "is required");
            }
            continue;
        };
        faults.parts(content, &|| format!("messages.{at}.content"));
        for (index, block) in content.items().enumerate() {
            if block.has("type", "tool_use") {
                let path = format!("messages.{at}.content.{index}");
                faults.text(block, "id", &format!("{path}.id"));
                faults.text(block, "name", &format!("{path}.name"));
                if !block.get("input").is_none_or(|it| it.form() == Form::Object) {
                    faults.add(format!("{path}.input"), "must be an object");
                }
                calls.extend(block.text_of("id"));
            } else if block.has("type", "tool_result") {
                let path = || format!("messages.{at}.content.{index}.tool_use_id");
                answered(faults, block, "tool_use_id", &calls, &path);
                if let Some(content) = block.given("content") {
                    faults.parts(content, &|| format!("messages.{at}.content.{index}.content"));
                }
            }
        }
    }
}
