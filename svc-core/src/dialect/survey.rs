//! What deciding on a request takes: how much goes in, what it needs, what brought it in; never its text.

mod document;
mod outside;
mod pdf;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::document::Size;
use super::check::ANSWERS_MAX;
use super::doc::{Form, Value, length};
use super::own::{self, is_free, names_some};
use crate::state::gateway::{CacheWrites, Capability, Demand, Dialect, OutputBound, ToolResult, is_default_service};
use crate::value::digest::{Digest, Hasher};

/// Bytes that the frame of one message counts as: a few tokens that stand in no text.
const FRAME_BYTES: u64 = 8;
/// The most seconds of sound that a provider takes: nine hours and a half.
const AUDIO_SECONDS_MAX: u32 = 34_200;
/// A second of sound takes at least so many characters of base64: 8 kbit/s.
const AUDIO_SECOND_CHARS: u64 = 1_333;

/// Members that do not change the answer.
const NOT_OF_THE_CALL: &[&str] =
    &["stream", "stream_options", "user", "metadata", "safety_identifier", "prompt_cache_key"];
/// Members that hold no text a model reads.
const NO_TEXT: &[&str] = &[
    "model",
    "stream",
    "stream_options",
    "user",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
    "service_tier",
    "reasoning_effort",
    "tool_choice",
    "cache_control",
    "betas",
];

/// Members that name models, of which the provider may let any answer; what a preset names lies at the provider.
const OTHER_MODELS: [&str; 3] = ["fallbacks", "models", "preset"];
/// The provider's tool that runs code in a container of its own.
const CODE: &str = "code_execution";
/// The member by which a provider of many others' models is told which of these are to run a request.
const PROVIDER: &str = "provider";
/// The member in which another such provider is told that, and which models may answer.
const GATEWAY: &str = "providerOptions.gateway";

/// What a body that was checked asks for.
pub(super) fn demand(dialect: Dialect, model: &str, stream: bool, root: Value<'_>) -> Demand {
    let mut sums = Sums::default();
    for (name, value) in root.members() {
        let name = name.text().unwrap_or_default();
        match &*name {
            "messages" => value.items().for_each(|it| sums.message(it)),
            "system" => sums.content(value),
            "tools" => value.items().for_each(|it| sums.tool(it)),
            "plugins" => value.items().for_each(|it| sums.plugin(it)),
            "cache_control" => sums.cached(value),
            _ if NO_TEXT.contains(&&*name) => {}
            _ => sums.any(value),
        }
    }
    let switched_on = root.members().filter_map(|(name, it)| own::switched_on(&name.text().unwrap_or_default(), it));
    switched_on.for_each(|it| sums.server_tool(it.into(), None));
    let kept_by = kept_by(root, &sums);
    let positive = |name: &str| root.get(name).and_then(|it| it.integer()).and_then(|it| u64::try_from(it).ok());
    // The messages shape has no such member: whoever is asked may ignore it.
    let newer = || positive("max_completion_tokens").filter(|_| dialect == Dialect::Chat);
    let answers = root.get("n").and_then(|it| it.integer()).unwrap_or(1).clamp(1, ANSWERS_MAX);
    Demand {
        dialect,
        model: model.into(),
        stream,
        text_bytes: sums.bytes,
        images: sums.images,
        pages: sums.pages,
        pages_likely: sums.pages_likely,
        audio_seconds: sums.audio_seconds,
        output: OutputBound { tokens: newer().or_else(|| positive("max_tokens")), likely: None },
        predicted_bytes: root.get("prediction").map_or(0, predicted),
        answers: u32::try_from(answers).unwrap_or(1),
        needs: needs(root, stream, &sums),
        cache: sums.cache,
        spoken: spoken(root),
        drawn: drawn(root),
        server_tools: sums.server_tools,
        sums_up: own::sums_up(root),
        service_tier: unusual(root, "service_tier"),
        speed: unusual(root, "speed"),
        kept_by,
        names_providers: providers_named(root),
        other_models: models_named(root),
        inference_geo: root.text_of("inference_geo").map(|it| it.to_ascii_lowercase().into()),
        // Who has the whole request tells.
        no_form_in: None,
        particulars: BTreeSet::new(),
        tool_results: tool_results(dialect, root),
        digest: digest(root),
    }
}

/// What was counted so far.
#[derive(Default)]
struct Sums {
    bytes: u64,
    images: u32,
    pages: u32,
    pages_likely: u32,
    audio_seconds: u32,
    tools: bool,
    cache: CacheWrites,
    server_tools: BTreeMap<Box<str>, Option<u32>>,
}

impl Sums {
    fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn message(&mut self, message: Value<'_>) {
        self.add(FRAME_BYTES);
        for (name, value) in message.members() {
            if name.is("content") { self.content(value) } else { self.any(value) }
        }
    }

    /// A content: text, or parts of some kind.
    fn content(&mut self, content: Value<'_>) {
        if content.form() == Form::List {
            content.items().for_each(|it| self.part(it));
        } else {
            self.any(content);
        }
    }

    fn part(&mut self, part: Value<'_>) {
        if let Some(control) = part.given("cache_control") {
            self.cached(control);
        }
        match &*part.text_of("type").unwrap_or_default() {
            "image" | "image_url" | "input_image" => self.images = self.images.saturating_add(1),
            "document" | "file" | "input_file" => self.document(part),
            "input_audio" => self.audio(part.get("input_audio")),
            "tool_result" => {
                for (name, value) in part.members() {
                    if name.is("content") { self.content(value) } else { self.any(value) }
                }
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                self.add(part.get("name").map_or(0, |it| it.text_len()));
                self.add(part.get("input").map_or(0, |it| length(it.raw())));
            }
            "tool_addition" => match part.get("tool").and_then(|it| it.get("definition")) {
                Some(definition) => self.tool(definition),
                None => self.any(part),
            },
            kind => {
                // What names a file or an address in a way that is not known here may be anything: it is taken for the largest
                // document, or whoever hangs up on it would pay for its address alone.
                let is_plain = OF_NO_FILE.contains(&kind) || kind.ends_with("_result");
                if !is_plain && (names_a_file(part) || !OF_TEXT.contains(&kind) && is_medium(part, kind)) {
                    self.sized(Size::UNSEEN);
                }
                self.any(part);
            }
        }
    }

    /// Sound, by the bytes that are held here: where these are an address, or there are none, it is the longest that there is.
    fn audio(&mut self, held: Option<Value<'_>>) {
        let data = held.and_then(|it| if it.is_text() { Some(it) } else { it.get("data") });
        let chars =
            data.filter(|it| it.is_text() && !it.is_empty_text() && holds_bytes(*it)).map(|it| length(it.raw()));
        let seconds = chars.map(|it| u32::try_from(it.div_ceil(AUDIO_SECOND_CHARS)).unwrap_or(u32::MAX));
        self.audio_seconds = self.audio_seconds.saturating_add(seconds.unwrap_or(AUDIO_SECONDS_MAX));
    }

    /// A document: text counts as text, anything else by its pages.
    fn document(&mut self, part: Value<'_>) {
        for name in ["title", "context"] {
            self.add(part.get(name).map_or(0, |it| it.text_len()));
        }
        let source = part.get("source");
        if let Some(source) = source.filter(|it| it.has("type", "text")) {
            return self.any(source);
        }
        if let Some(content) = source.filter(|it| it.has("type", "content")).and_then(|it| it.get("content")) {
            return self.content(content);
        }
        self.sized(Size::of(part));
    }

    fn sized(&mut self, size: Size) {
        self.add(size.bytes);
        self.pages = self.pages.saturating_add(size.pages);
        self.pages_likely = self.pages_likely.saturating_add(size.pages_likely);
    }

    fn tool(&mut self, tool: Value<'_>) {
        self.tools = true;
        self.add(length(tool.raw()));
        if let Some(control) = tool.given("cache_control") {
            self.cached(control);
        }
        if let Some(name) = server_tool(&tool.text_of("type").unwrap_or_default()) {
            let most = tool.get("max_uses").and_then(|it| it.integer()).and_then(|it| u32::try_from(it).ok());
            self.server_tool(name, most);
        }
    }

    /// A tool that the provider runs. Two of one name are as many uses as both have, or any number where one has no bound.
    fn server_tool(&mut self, name: Box<str>, most: Option<u32>) {
        let known = self.server_tools.entry(name).or_insert(Some(0));
        *known = known.zip(most).map(|(a, b)| a.saturating_add(b));
    }

    /// What a provider of many providers' models does to a call beside the model: it is a tool of the provider's like any other.
    fn plugin(&mut self, plugin: Value<'_>) {
        self.any(plugin);
        let is_off = plugin.get("enabled").and_then(|it| it.bool()) == Some(false);
        if let Some(id) = plugin.text_of("id").filter(|_| !is_off) {
            self.server_tool(own::of_plugin(&id).into(), None);
        }
    }

    fn cached(&mut self, control: Value<'_>) {
        if control.has("ttl", "1h") {
            self.cache.long = true;
        } else if !control.is_null() {
            self.cache.short = true;
        }
    }

    /// All texts in a value of any kind, names of members and numbers included.
    fn any(&mut self, value: Value<'_>) {
        match value.form() {
            Form::Plain | Form::Escaped => self.add(value.text_len()),
            Form::Number => self.add(length(value.raw())),
            Form::List => value.items().for_each(|it| self.any(it)),
            Form::Object => {
                for (name, inner) in value.members() {
                    self.add(name.text_len());
                    if name.is("cache_control") {
                        self.cached(inner);
                    }
                    self.any(inner);
                }
            }
            Form::Null | Form::Bool(_) => {}
        }
    }
}

/// Parts that name files which do not go into the model's context.
const OF_NO_FILE: &[&str] = &["container_upload"];

/// Parts that hold text, which may well be an address, and what belongs to it.
const OF_TEXT: &[&str] = &[
    "text",
    "input_text",
    "output_text",
    "refusal",
    "thinking",
    "redacted_thinking",
    "reasoning",
    "tool_reference",
    "compaction",
];

/// Whether a part of another kind than those of text is a picture, sound or a document by the name of its kind, or by an address that
/// it or what it holds has: one that is not known here may have it under any name.
fn is_medium(part: Value<'_>, kind: &str) -> bool {
    const LEVELS_MAX: usize = 6;
    const WORDS: &[&str] =
        &["audio", "doc", "document", "documents", "file", "files", "media", "pdf", "uri", "url", "video"];
    let names_one = kind.split(['_', '-', '.']).any(|word| WORDS.contains(&word));
    names_one || part.members().any(|(name, value)| !name.is("type") && holds_address(value, LEVELS_MAX))
}

/// Whether a value is an address, or holds one within so many levels.
fn holds_address(value: Value<'_>, levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return false };
    match value.form() {
        Form::Plain | Form::Escaped => is_address(value),
        Form::List => value.items().any(|it| holds_address(it, levels)),
        Form::Object => value.members().any(|(_, it)| holds_address(it, levels)),
        Form::Null | Form::Bool(_) | Form::Number => false,
    }
}

/// Whether a text is one address from its beginning on.
fn is_address(value: Value<'_>) -> bool {
    const SCHEME_MAX: usize = 16;
    if outside::is_web_address(value) {
        return true;
    }
    let text = value.text().unwrap_or_default();
    let text = text.trim_start();
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = (1..=SCHEME_MAX).contains(&scheme.len())
        && scheme.bytes().all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it));
    is_scheme && (rest.starts_with("//") || scheme.eq_ignore_ascii_case("data"))
}

/// Whether a part, or an object that it holds, names a file or where one lies.
fn names_a_file(part: Value<'_>) -> bool {
    let names = |of: Value<'_>| {
        ["url", "uri", "file_id", "file_url", "file_uri", "file_data"].iter().any(|it| of.given(it).is_some())
    };
    names(part) || part.members().any(|(_, inner)| inner.form() == Form::Object && names(inner))
}

/// Whether what stands where a file's bytes may are bytes, and no address at which they lie: base64 has no colon.
fn holds_bytes(data: Value<'_>) -> bool {
    let text = data.text().unwrap_or_default();
    text.split_once(':').is_none_or(|(scheme, _)| scheme.eq_ignore_ascii_case("data"))
}

/// The name under which a tool that the provider runs is priced; none for tools that the client runs. A set of the tools of a server
/// that the provider calls is the provider's.
fn server_tool(kind: &str) -> Option<Box<str>> {
    const OF_THE_CLIENT: &[&str] =
        &["bash", "browser_toolset", "computer", "computer_toolset", "custom", "function", "memory", "text_editor"];
    let name = match kind.rsplit_once('_') {
        Some((name, date)) if date.len() == 8 && date.bytes().all(|it| it.is_ascii_digit()) => name,
        Some(_) | None => kind,
    };
    let name = if name == "mcp_toolset" { own::SERVERS } else { name };
    let is_no_tool = name.is_empty() || OF_THE_CLIENT.contains(&name) || is_free(name);
    (!is_no_tool).then(|| name.into())
}

/// UTF-8 bytes of an answer that is foretold.
fn predicted(prediction: Value<'_>) -> u64 {
    let mut sums = Sums::default();
    prediction.given("content").into_iter().for_each(|it| sums.content(it));
    sums.bytes
}

/// The members by which a provider is told to keep what it is sent, be it for a day; what is not known to ask for less asks for
/// that.
fn kept_by(root: Value<'_>, sums: &Sums) -> Vec<&'static str> {
    let cached = |it: Value<'_>| !it.is("in_memory") && !it.is("in-memory");
    let collected = |it: Value<'_>| it.given("data_collection").is_some_and(|it| !it.is("deny"));
    let found = [
        ("store", root.given("store").is_some_and(|it| it.bool() != Some(false))),
        ("prompt_cache_retention", root.given("prompt_cache_retention").is_some_and(cached)),
        // Files of what was run, and what other servers were asked, are kept as long as their container or connection is.
        ("container", names_some(root, "container")),
        ("mcp_servers", names_some(root, "mcp_servers")),
        (CODE, sums.server_tools.contains_key(CODE)),
        ("provider.data_collection", root.given(PROVIDER).is_some_and(collected)),
    ];
    found.into_iter().filter(|(_, is_kept)| *is_kept).map(|(member, _)| member).collect()
}

/// The member by which a request names models of which the provider may let any answer.
fn models_named(root: Value<'_>) -> Option<&'static str> {
    let behind =
        || gateway(root).is_some_and(|it| names_some(it, "models")).then_some("providerOptions.gateway.models");
    OTHER_MODELS.into_iter().find(|it| names_some(root, it)).or_else(behind)
}

/// The member by which a request says behind which of others it is run.
fn providers_named(root: Value<'_>) -> Option<&'static str> {
    let wishes = [(PROVIDER, root.given(PROVIDER)), (GATEWAY, gateway(root))];
    wishes.into_iter().find(|(_, wish)| wish.is_some_and(names_providers)).map(|(member, _)| member)
}

/// What a gateway of many providers is told for itself.
fn gateway(root: Value<'_>) -> Option<Value<'_>> {
    root.given("providerOptions")?.given("gateway")
}

/// Whether a wish for providers names some that are to run the request: leaving some out, or putting all in an order, does not.
fn names_providers(wish: Value<'_>) -> bool {
    wish.form() != Form::Object || ["order", "only"].into_iter().any(|it| names_some(wish, it))
}

/// What a model must be able to do.
fn needs(root: Value<'_>, stream: bool, sums: &Sums) -> BTreeSet<Capability> {
    let mut needs = BTreeSet::new();
    let mut need = |wanted: bool, what: Capability| {
        if wanted {
            needs.insert(what);
        }
    };
    let functions = root.get("functions").is_some_and(|it| it.items().next().is_some());
    need(sums.tools || functions, Capability::Tools);
    need(sums.images > 0 || sums.pages > 0, Capability::Vision);
    need(stream, Capability::Streaming);
    let formed = root.given("response_format").is_some_and(|it| !it.has("type", "text"))
        || root.get("output_config").is_some_and(|it| it.given("format").is_some())
        || root.given("output_format").is_some();
    need(formed, Capability::Json);
    let effort = root.given("reasoning_effort").is_some_and(|it| !it.is("none") && !it.is("minimal"));
    let thinking = root.get("thinking").is_some_and(|it| it.has("type", "enabled"));
    need(effort || thinking, Capability::Reasoning);
    need(spoken(root) || sums.audio_seconds > 0, Capability::Audio);
    needs
}

/// Whether the answer is to be spoken.
fn spoken(root: Value<'_>) -> bool {
    root.get("modalities").is_some_and(|it| it.items().any(|it| it.is("audio")))
}

/// Whether the answer is to have pictures; what is asked for in a word that is not known here is taken for such.
fn drawn(root: Value<'_>) -> bool {
    root.get("modalities").is_some_and(|it| it.items().any(|it| it.is_text() && !it.is("text") && !it.is("audio")))
}

/// The service that the request asks for by this member, in the provider's words; none for words for the usual one.
fn unusual(root: Value<'_>, member: &str) -> Option<Box<str>> {
    root.text_of(member).filter(|it| !is_default_service(it)).map(Into::into)
}

/// The results of tools, the client's and the provider's, each by the name under which it was called, and what is brought in without
/// one: by the provider, which takes it from an address, or as what a search found.
fn tool_results(dialect: Dialect, root: Value<'_>) -> Vec<ToolResult> {
    let mut names = Names::default();
    let mut results = Vec::new();
    for message in root.get("messages").iter().flat_map(|it| it.items()) {
        names.message = names.message.saturating_add(1);
        match dialect {
            Dialect::Chat => results_of_chat(message, &mut names, &mut results),
            Dialect::Messages => {
                for block in message.get("content").iter().flat_map(|it| it.items()) {
                    results.extend(result_of_block(block, &mut names));
                }
            }
        }
        message.get("content").iter().for_each(|it| outside::brought_in(*it, &mut results));
    }
    results
}

/// What the ids of calls stand for. Some providers give calls of one message the same id, or none: their results come in the calls'
/// order. Some begin anew with every message.
#[derive(Default)]
struct Names<'a> {
    /// Which message is read, counted from 1.
    message: usize,
    called: BTreeMap<Cow<'a, str>, Called<'a>>,
}

/// The calls of one id.
struct Called<'a> {
    /// The message that they stand in.
    message: usize,
    /// The names of those whose results have not come, and in the end that of the last one.
    names: VecDeque<Cow<'a, str>>,
}

impl<'a> Names<'a> {
    fn insert(&mut self, id: Cow<'a, str>, name: Cow<'a, str>) {
        let message = self.message;
        let called = self.called.entry(id).or_insert_with(|| Called { message, names: VecDeque::new() });
        if called.message != message {
            (called.message, called.names) = (message, VecDeque::new());
        }
        called.names.push_back(name);
    }

    /// The name under which the next result with this id was called.
    fn next(&mut self, id: &str) -> Option<Cow<'a, str>> {
        let names = &mut self.called.get_mut(id)?.names;
        if names.len() > 1 { names.pop_front() } else { names.front().cloned() }
    }
}

fn results_of_chat<'a>(message: Value<'a>, names: &mut Names<'a>, results: &mut Vec<ToolResult>) {
    for call in message.get("tool_calls").iter().flat_map(|it| it.items()) {
        let called = call.get("function").or_else(|| call.get("custom"));
        if let (Some(id), Some(name)) = (call.text_of("id"), called.and_then(|it| it.text_of("name"))) {
            names.insert(id, name);
        }
    }
    if message.has("role", "tool") {
        let id = message.text_of("tool_call_id").unwrap_or_default();
        results.push(result(names.next(&id).as_ref(), message.get("content")));
    } else if message.has("role", "function") {
        results.push(result(message.text_of("name").as_ref(), message.get("content")));
    } else if own::cites_the_web(message) {
        results.push(result(Some(&Cow::Borrowed(own::SEARCH)), message.get("annotations")));
    }
}

/// The result that a block of the messages shape is; of one that calls a tool, its name is kept.
fn result_of_block<'a>(block: Value<'a>, names: &mut Names<'a>) -> Option<ToolResult> {
    let kind = block.text_of("type")?;
    let called = if kind == "tool_use" { block.text_of("name") } else { own::called(block, &kind) };
    if let (Some(id), Some(name)) = (block.text_of("id"), called) {
        names.insert(id, name);
        return None;
    }
    let by_kind = own::resulted(&kind).map(|it| Cow::Owned(it.to_owned()));
    if kind != "tool_result" && by_kind.is_none() {
        return None;
    }
    let id = block.text_of("tool_use_id").unwrap_or_default();
    Some(result(names.next(&id).or(by_kind).as_ref(), block.get("content")))
}

/// One result; its digest is that of its text, whether it came in one piece or in parts, and of other parts as written.
fn result(tool: Option<&Cow<'_, str>>, content: Option<Value<'_>>) -> ToolResult {
    let mut hash = Hasher::default();
    if let Some(content) = content {
        if let Some(text) = content.text() {
            hash.update(text.as_bytes());
        }
        if content.form() == Form::Object {
            hash.update(content.raw());
        }
        for part in content.items() {
            match part.text_of("text").filter(|_| part.has("type", "text")) {
                Some(text) => hash.update(text.as_bytes()),
                None => hash.update(part.raw()),
            }
        }
    }
    ToolResult { tool: tool.map(|it| &**it).unwrap_or_default().into(), digest: hash.digest() }
}

/// Equal for calls that differ in nothing that decides the answer, in whatever order their members stand.
fn digest(root: Value<'_>) -> Digest {
    let members = root.members().filter_map(|(name, value)| Some((name.text()?, value)));
    let mut members: Vec<_> = members.filter(|(name, _)| !NOT_OF_THE_CALL.contains(&&**name)).collect();
    members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut hash = Hasher::default();
    for (name, value) in members {
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(value.raw());
        hash.update([0]);
    }
    hash.digest()
}
