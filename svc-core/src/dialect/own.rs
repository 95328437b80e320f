//! Tools that a provider runs itself, by the blocks and members in which both shapes tell of them: the client calls none of
//! these and sees their results only as part of an answer, so what they bring in is known from here alone.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::doc::{Form, Value};

/// What a search of the web is called where its shape does not name it.
pub(super) const SEARCH: &str = "web_search";
/// What a provider does that takes pictures and documents from their addresses.
pub(super) const FETCH: &str = "web_fetch";
/// What a request has of a search that somebody else made is called.
pub(super) const FOUND: &str = "search_result";
/// What the tools of servers that the provider calls are called where their names are not known, and priced under.
pub(super) const SERVERS: &str = "mcp";

/// The tool of the provider's that a member of a request switches on, beside those that it names as tools: a search of the web, what
/// lies in stores of the client's, and running code, each of some providers of the chat shape; and the servers that the provider is to
/// call, whether or not the request has a set of their tools.
pub(super) fn switched_on(name: &str, value: Value<'_>) -> Option<&'static str> {
    let is_on = || value.bool() != Some(false);
    match name {
        _ if value.is_null() => None,
        "web_search_options" => Some(SEARCH),
        "enable_search" => is_on().then_some(SEARCH),
        "search_parameters" => (!value.has("mode", "off")).then_some(SEARCH),
        "data_sources" => holds_some(value).then_some("file_search"),
        "mcp_servers" => holds_some(value).then_some(SERVERS),
        "enable_code_interpreter" => is_on().then_some("code_interpreter"),
        _ => None,
    }
}

/// Whether a request has its provider sum up the conversation before it answers, or asks for such a summary.
pub(super) fn sums_up(root: Value<'_>) -> bool {
    let edits = root.given("context_management").and_then(|it| it.given("edits"));
    let is_one = |it: Value<'_>| it.text_of("type").is_some_and(|it| it.starts_with("compact"));
    edits.is_some_and(|it| it.items().any(is_one)) || root.given("compaction").is_some()
}

/// Whether a tool that the provider runs costs nothing but its tokens, and brings in nothing that the request has not: looking
/// for tools among those of the request.
pub(super) fn is_free(tool: &str) -> bool {
    tool.starts_with("tool_search")
}

/// The tool that a plugin of the chat shape is; its answers tell of a search of the web alone, and as of one.
pub(super) fn of_plugin(id: &str) -> &str {
    if id == "web" { SEARCH } else { id }
}

/// The tool that a block calls, the provider's or a server's that the provider calls; such a one as coding clients name it.
pub(super) fn called<'a>(block: Value<'a>, kind: &str) -> Option<Cow<'a, str>> {
    let name = block.text_of("name")?;
    match kind {
        "server_tool_use" => Some(name),
        "mcp_tool_use" => {
            let server = block.text_of("server_name").unwrap_or_default();
            Some(format!("mcp__{server}__{name}").into())
        }
        _ => None,
    }
}

/// The name under which a use that a block tells of is priced; none where it costs nothing but its tokens, and of what is no use.
pub(super) fn priced<'a>(block: Value<'a>, kind: &str) -> Option<Cow<'a, str>> {
    match kind {
        "server_tool_use" => Some(block.text_of("name").unwrap_or_default()).filter(|it| !is_free(it)),
        "mcp_tool_use" => Some(SERVERS.into()),
        _ => None,
    }
}

/// The tool whose result a block of this kind is, as far as the kind tells; none for results of the client's own tools, and for
/// what brings in nothing.
pub(super) fn resulted(kind: &str) -> Option<&str> {
    kind.strip_suffix("_tool_result").filter(|it| !it.is_empty() && !is_free(it))
}

/// Whether a message of the chat shape, or a piece of one, names pages of the web that it was made from.
pub(super) fn cites_the_web(message: Value<'_>) -> bool {
    let cites = |it: Value<'_>| it.has("type", "url_citation") || it.given("url_citation").is_some();
    message.get("annotations").is_some_and(|it| it.items().any(cites))
}

/// Notes what a block of an answer tells to have been brought in and is not counted as a use with a price.
pub(super) fn note_block(block: Value<'_>, kind: &str, brought: &mut BTreeSet<Box<str>>) {
    let server = (kind == "mcp_tool_use").then(|| called(block, kind)).flatten();
    // A server's result is noted by its call, which names it.
    let own = resulted(kind).filter(|it| *it != "mcp").map(Cow::Borrowed);
    if let Some(name) = server.or(own) {
        brought.insert(name.into());
    }
}

/// Notes what an answer of the chat shape, or a chunk of one, tells beside its messages: some providers list what they found.
pub(super) fn note_found(root: Value<'_>, brought: &mut BTreeSet<Box<str>>) {
    let found = ["citations", "search_results", "web_search"].iter().filter_map(|it| root.get(it));
    if found.into_iter().any(|it| it.items().next().is_some()) {
        brought.insert(SEARCH.into());
    }
}

/// Whether a member holds anything: an empty list asks for nothing.
pub(super) fn names_some(root: Value<'_>, member: &str) -> bool {
    root.given(member).is_some_and(holds_some)
}

fn holds_some(value: Value<'_>) -> bool {
    value.form() != Form::List || value.items().next().is_some()
}
