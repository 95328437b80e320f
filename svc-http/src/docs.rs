//! The pages for people: the reference and the types of errors, made once from the tables.
//!
//! **Invariant:** no script, no image, nothing from elsewhere; the pages' policy forbids all of it but the one style.

use std::fmt::Write as _;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use svc_core::refusal::Kind;

use crate::answer::Answer;
use crate::openapi;
use crate::routes::{self, Content, Limit, Route};
use crate::schemas;

/// The pages and the OpenAPI document. Each is written when it is first asked for and kept from then on: they are megabytes that
/// most servers never show.
#[derive(Debug)]
pub struct Pages {
    /// What stands before the path of every route.
    base: Box<str>,
    /// Where the server's addresses begin, where that is known.
    base_url: Option<Box<str>>,
    openapi: OnceLock<Bytes>,
    reference: OnceLock<Bytes>,
    errors: OnceLock<Bytes>,
    policy: HeaderValue,
}

impl Pages {
    /// The pages of a deployment whose routes have `base` before their path, as a browser sees it
    /// ([`Site::path`](crate::headers::Site::path)).
    #[must_use]
    pub fn new(base: &str) -> Self {
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            STANDARD.encode(Sha256::digest(STYLE.as_bytes()))
        );
        Self {
            base: base.into(),
            base_url: None,
            openapi: OnceLock::new(),
            reference: OnceLock::new(),
            errors: OnceLock::new(),
            policy: HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'")),
        }
    }

    /// The same for a server whose addresses begin with `base_url`.
    #[must_use]
    pub fn at(self, base_url: &str) -> Self {
        Self { base_url: Some(base_url.into()), ..self }
    }

    /// `/openapi.json`
    #[must_use]
    pub fn openapi(&self) -> Answer {
        let written = self.openapi.get_or_init(|| match &self.base_url {
            Some(base_url) => openapi::served(base_url).into(),
            None => Bytes::from_static(openapi::SERVED.as_bytes()),
        });
        Answer::json(written.clone()).cached("max-age=300")
    }

    /// `/docs`
    #[must_use]
    pub fn reference(&self) -> Answer {
        self.page(self.reference_html())
    }

    /// `/docs/errors`
    #[must_use]
    pub fn errors(&self) -> Answer {
        self.page(self.errors_html())
    }

    fn reference_html(&self) -> &Bytes {
        self.reference.get_or_init(|| page(&self.base, "svc reference", &reference(&self.base)).into())
    }

    fn errors_html(&self) -> &Bytes {
        self.errors.get_or_init(|| page(&self.base, "svc errors", &errors(&self.base)).into())
    }

    fn page(&self, html: &Bytes) -> Answer {
        Answer::html(html.clone())
            .cached("max-age=300")
            .with_header(CONTENT_SECURITY_POLICY, self.policy.clone())
            .with_header(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
    }
}

const STYLE: &str = ":root{color-scheme:light dark;background:Canvas;color:CanvasText;font:1rem/1.5 system-ui,sans-serif}body{max-width:60rem;margin:0 auto;padding:1rem}.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #8886}code{font:.95em ui-monospace,monospace;overflow-wrap:anywhere}h1,h2,h3,p,dd{overflow-wrap:anywhere}section:target{outline:2px solid;outline-offset:.4rem}";

fn page(base: &str, title: &str, main: &str) -> String {
    let base = escape(base);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<nav aria-label=\"Pages\"><a href=\"{base}/docs\">Reference</a> · <a href=\"{base}/docs/errors\">Errors</a> · <a href=\"{base}/openapi.json\">OpenAPI</a></nav>\n<main>\n{main}</main>\n</body>\n</html>\n"
    )
}

fn reference(base: &str) -> String {
    let mut html = String::from(
        "<h1>svc reference</h1>\n<p>An agent asks <code>POST /v1/actions/authorize</code> before it acts and follows the answer: <code>allow</code> comes with a receipt, <code>deny</code> with reasons, and with <code>approval_required</code> a person has been asked. Afterwards it records what happened.</p>\n<p>Every answer carries <code>x-request-id</code>, <code>svc-version</code> and <code>traceparent</code>. Money is whole minor units, times are RFC 3339 in UTC. Lists come in parts: one may be short, or empty where a filter passes over much, and <code>nextCursor</code> leads on until it is <code>null</code>.</p>\n",
    );
    push_credentials(&mut html);
    open_table(&mut html, "Routes", &["Route", "Credential", "What it does"]);
    for route in routes::all() {
        let _ = writeln!(
            html,
            "<tr><td><a href=\"#{}\"><code>{} {}</code></a></td><td>{}</td><td>{}</td></tr>",
            anchor(route),
            route.method,
            route.path,
            marked(route.auth.words()),
            marked(route.summary)
        );
    }
    html.push_str(END_OF_TABLE);
    let schemas = schemas::all();
    for route in routes::all() {
        push_route(&mut html, base, route);
    }
    push_webhooks(&mut html);
    html.push_str("<h2>Records</h2>\n");
    for (name, schema) in &schemas {
        push_schema(&mut html, name, schema);
    }
    html
}

/// How each kind of credential is sent, each way once.
fn push_credentials(html: &mut String) {
    html.push_str(
        "<h2 id=\"credentials\">Credentials</h2>\n<p>A route reads one kind of credential and no other.</p>\n",
    );
    open_table(html, "Credentials", &["Credential", "How it is sent"]);
    let mut ways: Vec<(&str, Vec<&str>)> = Vec::new();
    for (kind, way) in routes::all().filter_map(|it| Some((it.auth.words(), it.auth.sent()?))) {
        match ways.iter_mut().find(|it| it.0 == way) {
            Some((_, kinds)) if kinds.contains(&kind) => {}
            Some((_, kinds)) => kinds.push(kind),
            None => ways.push((way, vec![kind])),
        }
    }
    for (way, kinds) in ways {
        let _ = writeln!(html, "<tr><td>{}</td><td>{}</td></tr>", marked(&kinds.join("; ")), marked(way));
    }
    html.push_str(END_OF_TABLE);
    html.push_str("<h2>Routes</h2>\n");
}

fn push_route(html: &mut String, base: &str, route: &Route) {
    let _ = writeln!(
        html,
        "<section id=\"{}\">\n<h2><code>{} {}</code></h2>\n<p>{}.</p>{}\n<dl>",
        anchor(route),
        route.method,
        route.path,
        marked(route.summary),
        openapi::webhooks::of(route).map(|it| format!("\n<p>{}</p>", marked(it))).unwrap_or_default()
    );
    let _ = writeln!(html, "<dt>Credential</dt><dd>{}</dd>", marked(route.auth.words()));
    let counted = match route.limit {
        Limit::Unlimited => None,
        Limit::Gate => Some("agent"),
        Limit::Key => Some("key"),
        Limit::OAuthClient => Some("client"),
        Limit::Token => Some("token"),
        Limit::Verify | Limit::Session | Limit::SignIn | Limit::OAuth => Some("address"),
    };
    if let Some(counted) = counted {
        let _ = writeln!(
            html,
            "<dt>Rate</dt><dd>per {counted}; the headers <code>ratelimit-*</code> say how much is left</dd>"
        );
    }
    if let Some(request) = route.request {
        let _ = writeln!(html, "<dt>Body</dt><dd><a href=\"#{request}\">{request}</a></dd>");
    }
    for (_, parameter) in openapi::parameters::of(route) {
        push_parameter(html, &parameter);
    }
    let statuses: Vec<String> = route.success.iter().map(u16::to_string).collect();
    match route.content {
        Content::Json(schema) => {
            for status in route.success {
                let told = openapi::answered(schema, *status).map(|it| format!("<a href=\"#{it}\">{it}</a>"));
                let _ = writeln!(html, "<dt>{status}</dt><dd>{}</dd>", told.as_deref().unwrap_or("nothing"));
            }
        }
        Content::Html => {
            let _ = writeln!(html, "<dt>{}</dt><dd>a page</dd>", statuses.join(", "));
        }
        Content::File => {
            let _ = writeln!(html, "<dt>{}</dt><dd>a file</dd>", statuses.join(", "));
        }
        Content::Events => {
            let _ = writeln!(html, "<dt>{}</dt><dd>server-sent events</dd>", statuses.join(", "));
        }
        Content::Empty => {
            let _ = writeln!(html, "<dt>{}</dt><dd>nothing</dd>", statuses.join(", "));
        }
    }
    for kind in route.kinds() {
        let row = kind.row();
        let _ = writeln!(
            html,
            "<dt>{}</dt><dd><a href=\"{}/docs/errors#{}\"><code>{}</code></a> {}</dd>",
            row.status,
            escape(base),
            row.type_,
            row.type_,
            marked(row.message)
        );
    }
    html.push_str("</dl>\n</section>\n");
}

/// What this server calls, and with what.
fn push_webhooks(html: &mut String) {
    html.push_str("<h2 id=\"calls\">Calls to you</h2>\n");
    for call in &openapi::webhooks::ALL {
        let _ = writeln!(
            html,
            "<section id=\"call-{}\">\n<h3><code>{}</code></h3>\n<p>{}.</p>\n<p>{}</p>\n<dl>\n<dt>Body</dt><dd><a href=\"#{}\">{}</a></dd>",
            call.name,
            call.name,
            marked(call.summary),
            marked(call.told),
            call.body,
            call.body
        );
        for (name, told) in openapi::webhooks::HEADERS {
            let _ = writeln!(html, "<dt>Header</dt><dd><code>{name}</code>: {}</dd>", marked(told));
        }
        html.push_str("</dl>\n</section>\n");
    }
}

/// What a parameter is called, where it stands, and what it may hold.
fn push_parameter(html: &mut String, parameter: &Value) {
    let place = match parameter.get("in").and_then(Value::as_str) {
        Some("path") => "Path",
        Some("query") => "Query",
        _ => "Header",
    };
    let name = parameter.get("name").and_then(Value::as_str).unwrap_or_default();
    let is_required = parameter.get("required") == Some(&json!(true));
    let required = if is_required { "" } else { ", optional" };
    let schema = parameter.get("schema").unwrap_or(&Value::Null);
    let _ = write!(html, "<dt>{place}</dt><dd><code>{name}</code>{required}: {}{}", type_words(schema), bounds(schema));
    if let Some(told) = schema.get("description").and_then(Value::as_str) {
        let _ = write!(html, ". {}", marked(told));
    }
    html.push_str("</dd>\n");
}

/// What narrows a type: its bounds, its form, what holds where nothing is sent.
fn bounds(schema: &Value) -> String {
    let told = |name: &str| schema.get(name).map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
    let mut words = Vec::new();
    for (least, most, unit) in [("minimum", "maximum", ""), ("minLength", "maxLength", " characters")] {
        words.extend(match (told(least), told(most)) {
            (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
            (Some(least), None) => Some(format!("from {least}{unit}")),
            (None, Some(most)) => Some(format!("up to {most}{unit}")),
            (None, None) => None,
        });
    }
    for (name, word) in [("format", "as"), ("pattern", "like"), ("default", "default")] {
        words.extend(told(name).map(|it| format!("{word} <code>{}</code>", escape(&it))));
    }
    words.into_iter().fold(String::new(), |all, word| all + ", " + &word)
}

fn push_schema(html: &mut String, name: &str, schema: &Value) {
    let _ = writeln!(html, "<section id=\"{name}\">\n<h3>{name}</h3>");
    if let Some(description) = schema.get("description").and_then(Value::as_str) {
        let (told, list) = prose(description);
        let _ = writeln!(html, "<p>{told}</p>{list}");
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|it| it.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    if let Some(members) = schema.get("properties").and_then(Value::as_object) {
        open_table(html, &format!("Members of {name}"), &["Member", "Type", "Always", "Meaning"]);
        for (member, schema) in members {
            let always = if required.contains(&member.as_str()) { "yes" } else { "no" };
            let (meaning, list) = schema.get("description").and_then(Value::as_str).map(prose).unwrap_or_default();
            let _ = writeln!(
                html,
                "<tr><td><code>{member}</code></td><td>{}</td><td>{always}</td><td>{meaning}{list}</td></tr>",
                type_words(schema)
            );
        }
        html.push_str(END_OF_TABLE);
    }
    html.push_str("</section>\n");
}

/// The head of a table that scrolls by itself where it is wider than the page, by the keyboard too.
fn open_table(html: &mut String, label: &str, columns: &[&str]) {
    let columns: String = columns.iter().map(|it| format!("<th scope=\"col\">{it}</th>")).collect();
    let _ = write!(
        html,
        "<div class=\"wide\" role=\"group\" aria-label=\"{label}\" tabindex=\"0\">\n<table>\n<thead><tr>{columns}</tr></thead>\n<tbody>\n"
    );
}

const END_OF_TABLE: &str = "</tbody>\n</table>\n</div>\n";

/// What a member is, in a word, with a link where it is a record of its own.
fn type_words(schema: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next()) {
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    let words = schema.get("enum").or_else(|| schema.get("x-extensible-enum"));
    if let Some(words) = words.and_then(Value::as_array) {
        return words.iter().map(literal).collect::<Vec<_>>().join(", ");
    }
    let named = |it: &&Value| it.get("$ref").is_some();
    let several = schema.get("anyOf").and_then(Value::as_array).filter(|it| it.iter().all(|it| named(&it)));
    if let Some(several) = several {
        return several.iter().map(type_words).collect::<Vec<_>>().join(" or ");
    }
    // That a member may be `null` is no part of what it is.
    let either =
        schema.get("oneOf").and_then(Value::as_array).map(|it| it.iter().find(|it| **it != json!({ "type": "null" })));
    if let Some(Some(first)) = either {
        return type_words(first);
    }
    let word = schema.get("type").and_then(|it| it.as_str().or_else(|| it.get(0).and_then(Value::as_str)));
    match (word, schema.get("items")) {
        (Some("array"), Some(items)) => format!("array of {}", type_words(items)),
        (Some(word), _) => word.to_owned(),
        (None, _) => "value".to_owned(),
    }
}

/// One value as it is written.
fn literal(value: &Value) -> String {
    format!("<code>{}</code>", escape(&value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
}

/// A description for a page, and the list at its end, where it has one.
fn prose(text: &str) -> (String, String) {
    let Some((told, list)) = text.split_once("\n\n- ") else { return (marked(text), String::new()) };
    let items: String = list.split("\n- ").map(|it| format!("<li>{}</li>", marked(it))).collect();
    (marked(told), format!("<ul>{items}</ul>"))
}

fn errors(base: &str) -> String {
    let mut html = String::from(
        "<h1>Errors</h1>\n<p>Branch on <code>error.type</code>; <code>error.message</code> is for people and may change. <code>error.fix</code> says what to send differently, <code>error.errors</code> names every field at fault.</p>\n",
    );
    let mut done: Vec<&str> = Vec::new();
    for kind in Kind::ALL {
        let type_ = kind.row().type_;
        if done.contains(&type_) {
            continue;
        }
        done.push(type_);
        let _ = writeln!(html, "<section id=\"{type_}\">\n<h2><code>{type_}</code></h2>\n<dl>");
        for row in Kind::ALL.iter().map(|it| it.row()).filter(|it| it.type_ == type_) {
            let _ = writeln!(html, "<dt>{}</dt><dd>{}.", row.status, marked(row.message));
            if let Some(fix) = row.fix {
                let _ = write!(html, " <strong>{}</strong>", marked(fix));
            }
            if row.status == 401 {
                let _ =
                    write!(html, " How each is sent: <a href=\"{}/docs#credentials\">Credentials</a>.", escape(base));
            }
            html.push_str("</dd>\n");
        }
        html.push_str("</dl>\n");
        let routes: Vec<String> = routes::all()
            .filter(|it| it.kinds().any(|it| it.row().type_ == type_))
            .map(|it| format!("<code>{} {}</code>", it.method, it.path))
            .collect();
        if !routes.is_empty() {
            let _ = writeln!(html, "<p>Answered by {}.</p>", routes.join(", "));
        }
        html.push_str("</section>\n");
    }
    html
}

/// A name for a route within the page. Records have their own, which some of the operations share.
fn anchor(route: &Route) -> String {
    format!("op-{:?}", route.op)
}

/// Text for a page or an attribute of it.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// This program's own text for a page: backticks become code. In what others wrote they are signs as any.
pub(crate) fn marked(text: &str) -> String {
    let mut html = String::new();
    for (place, part) in escape(text).split('`').enumerate() {
        if place > 0 {
            html.push_str(if place % 2 == 1 { "<code>" } else { "</code>" });
        }
        html.push_str(part);
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every type of error has its place, once, so that `error.docs` always leads somewhere.
    #[test]
    fn every_type_has_its_place() {
        let html = errors("");
        for kind in Kind::ALL {
            assert_eq!(html.matches(&format!("id=\"{}\"", kind.row().type_)).count(), 1, "{kind:?}");
        }
    }

    /// The reference names every route and record, each once, and every link within it leads somewhere.
    #[test]
    fn links_lead_somewhere() {
        let html = reference("");
        let mut ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|it| it.split('"').next()).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|it| it.first() != it.last()), "{ids:?}");
        for target in html.split("href=\"#").skip(1).filter_map(|it| it.split('"').next()) {
            assert!(html.contains(&format!("id=\"{target}\"")), "{target}");
        }
        for route in routes::all() {
            assert!(html.contains(&format!("{} {}", route.method, route.path)), "{route:?}");
        }
    }

    /// Whoever was told that a credential is missing finds how each is sent.
    #[test]
    fn credentials_say_how_they_are_sent() {
        let html = reference("");
        let table =
            html.split("aria-label=\"Credentials\"").nth(1).and_then(|it| it.split("</table>").next()).unwrap_or("");
        assert_eq!(table.matches("<tr><td>").count(), 5);
        for said in
            ["<code>authorization: Bearer ask_…</code>", "<code>x-api-key: ask_…</code>", "<code>x-svc-csrf: 1</code>"]
        {
            assert!(table.contains(said), "{table}");
        }
        assert!(errors("/gate").contains("href=\"/gate/docs#credentials\""));
    }

    /// Links keep the path that a proxy has put before the routes.
    #[test]
    fn links_keep_what_stands_before_the_routes() {
        let pages = Pages::new("/gate");
        for html in [pages.reference_html(), pages.errors_html()] {
            let html = std::str::from_utf8(html).unwrap_or_default();
            let links: Vec<&str> = html.split("href=\"").skip(1).collect();
            assert!(links.len() > 2 && links.iter().all(|it| it.starts_with(['#']) || it.starts_with("/gate/")));
        }
    }

    /// A wide table scrolls by the keyboard, and says what it is.
    #[test]
    fn wide_tables_are_reached_by_the_keyboard() {
        let html = reference("");
        let tables: Vec<&str> = html.split("<table>").collect();
        let (_, before) = tables.split_last().unwrap_or((&"", &[]));
        assert!(
            before.len() > 2 && before.iter().all(|it| it.ends_with("tabindex=\"0\">\n") && it.contains("aria-label="))
        );
    }

    /// Whoever reads how a route is asked finds what each parameter may hold.
    #[test]
    fn parameters_say_what_they_hold() {
        let html = reference("");
        for said in [
            "<dt>Query</dt><dd><code>limit</code>, optional: integer, 1 to 500, default <code>100</code></dd>",
            "<code>redact</code>, optional: boolean, default <code>false</code>. Without the texts that records commit to.</dd>",
            "<code>state</code>, optional: <code>waiting</code>, <code>approved</code>, <code>denied</code>, <code>expired</code></dd>",
            "<dt>Path</dt><dd><code>class</code>: string, ",
            "<code>x-svc-csrf</code>: <code>1</code></dd>",
            "<code>idempotency-key</code>, optional: string, 16 to 128 characters. ",
        ] {
            assert!(html.contains(said), "{said}");
        }
        assert!(!html.contains("</code>: value"), "one whose type is not told");
    }

    /// Whoever reads about reasons and origins finds each word, with what it means, as one of a list.
    #[test]
    fn words_are_listed_with_what_they_mean() {
        let html = reference("");
        for said in [
            "<li><code>possible_duplicate</code>: The same agent asked",
            "<li><code>third_party</code>, somebody outside wrote it: <code>tool</code>, <code>tool_result</code>",
            "<code>ask</code>, <code>deny</code></td><td>no</td><td>What becomes of an action that no mandate covers",
        ] {
            assert!(html.contains(said), "{said}");
        }
    }

    /// Whoever is called finds what the call is, how it is signed, and what is the same at every try.
    #[test]
    fn calls_to_others_are_told() {
        let html = reference("");
        let call = html.split("id=\"call-action.decided\"").nth(1).and_then(|it| it.split("</section>").next());
        let call = call.unwrap_or_default();
        for said in [
            "href=\"#ActionDecided\"",
            "<code>svc-signature</code>: ",
            "two <code>v1</code>",
            "<code>svc-event-id</code>: ",
        ] {
            assert!(call.contains(said), "{said} in {call}");
        }
        assert!(html.contains("The address is called as the webhook <code>action.decided</code> has it"));
    }

    /// No page holds a script, and backticks and signs are written as a page needs them.
    #[test]
    fn pages_are_plain() {
        for html in [page("", "a", &reference("")), page("", "b", &errors(""))] {
            assert!(!html.contains("<script") && !html.contains("javascript:") && !html.contains('`'));
            assert_eq!(html.matches("<section").count(), html.matches("</section>").count());
        }
        assert_eq!(marked("send `a<b>` & go"), "send <code>a&lt;b&gt;</code> &amp; go");
        assert_eq!(escape("a`b`<"), "a`b`&lt;", "what others wrote");
    }
}
