//! The pages for people: the reference and the types of errors, made once from the tables.
//!
//! **Invariant:** no script, no image, nothing from elsewhere; the pages' policy forbids all of it but the one style.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use serde_json::Value;
use sha2::{Digest, Sha256};
use svc_core::refusal::Kind;

use crate::answer::Answer;
use crate::openapi;
use crate::routes::{self, Content, Limit, Route};
use crate::schemas;

/// The pages and the OpenAPI document, ready to be sent.
#[derive(Debug)]
pub struct Pages {
    openapi: Bytes,
    reference: Bytes,
    errors: Bytes,
    policy: HeaderValue,
}

impl Pages {
    /// Writes the pages.
    #[must_use]
    pub fn new() -> Self {
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            STANDARD.encode(Sha256::digest(STYLE.as_bytes()))
        );
        Self {
            openapi: Bytes::from_static(openapi::SERVED.as_bytes()),
            reference: page("svc reference", &reference()).into(),
            errors: page("svc errors", &errors()).into(),
            policy: HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'")),
        }
    }

    /// `/openapi.json`
    #[must_use]
    pub fn openapi(&self) -> Answer {
        Answer::json(self.openapi.clone()).cached("max-age=300")
    }

    /// `/docs`
    #[must_use]
    pub fn reference(&self) -> Answer {
        self.page(&self.reference)
    }

    /// `/docs/errors`
    #[must_use]
    pub fn errors(&self) -> Answer {
        self.page(&self.errors)
    }

    fn page(&self, html: &Bytes) -> Answer {
        Answer::html(html.clone())
            .cached("max-age=300")
            .with_header(CONTENT_SECURITY_POLICY, self.policy.clone())
            .with_header(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self::new()
    }
}

const STYLE: &str = ":root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}body{max-width:60rem;margin:0 auto;padding:1rem}table{border-collapse:collapse;width:100%;display:block;overflow-x:auto}th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #8886}code{font:.95em ui-monospace,monospace;overflow-wrap:anywhere}section:target{outline:2px solid;outline-offset:.4rem}";

fn page(title: &str, main: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<nav aria-label=\"Pages\"><a href=\"/docs\">Reference</a> · <a href=\"/docs/errors\">Errors</a> · <a href=\"/openapi.json\">OpenAPI</a></nav>\n<main>\n{main}</main>\n</body>\n</html>\n"
    )
}

fn reference() -> String {
    let mut html = String::from(
        "<h1>svc reference</h1>\n<p>An agent asks <code>POST /v1/actions/authorize</code> before it acts and follows the answer: <code>allow</code> comes with a receipt, <code>deny</code> with reasons, and with <code>approval_required</code> a person has been asked. Afterwards it records what happened.</p>\n<p>Every answer carries <code>x-request-id</code>, <code>svc-version</code> and <code>traceparent</code>. Money is whole minor units, times are RFC 3339 in UTC.</p>\n",
    );
    html.push_str("<table>\n<thead><tr><th scope=\"col\">Route</th><th scope=\"col\">Credential</th><th scope=\"col\">What it does</th></tr></thead>\n<tbody>\n");
    for route in routes::all() {
        let _ = writeln!(
            html,
            "<tr><td><a href=\"#{}\"><code>{} {}</code></a></td><td>{}</td><td>{}</td></tr>",
            anchor(route),
            route.method,
            route.path,
            escape(route.auth.words()),
            escape(route.summary)
        );
    }
    html.push_str("</tbody>\n</table>\n");
    let schemas = schemas::all();
    for route in routes::all() {
        push_route(&mut html, route);
    }
    html.push_str("<h2>Records</h2>\n");
    for (name, schema) in &schemas {
        push_schema(&mut html, name, schema);
    }
    html
}

fn push_route(html: &mut String, route: &Route) {
    let _ = writeln!(
        html,
        "<section id=\"{}\">\n<h2><code>{} {}</code></h2>\n<p>{}.</p>\n<dl>",
        anchor(route),
        route.method,
        route.path,
        escape(route.summary)
    );
    let _ = writeln!(html, "<dt>Credential</dt><dd>{}</dd>", escape(route.auth.words()));
    let counted = match route.limit {
        Limit::Unlimited => None,
        Limit::Gate => Some("agent"),
        Limit::Key => Some("key"),
        Limit::OAuthClient => Some("client"),
        Limit::Token => Some("token"),
        Limit::Verify | Limit::SignIn | Limit::OAuth => Some("address"),
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
    for name in route.query {
        let _ = writeln!(html, "<dt>Query</dt><dd><code>{name}</code>, optional</dd>");
    }
    for header in route.headers {
        let _ = writeln!(html, "<dt>Header</dt><dd><code>{header}</code>, optional</dd>");
    }
    let statuses: Vec<String> = route.success.iter().map(u16::to_string).collect();
    match route.content {
        Content::Json(schema) => {
            let _ = writeln!(html, "<dt>{}</dt><dd><a href=\"#{schema}\">{schema}</a></dd>", statuses.join(", "));
        }
        Content::Html => {
            let _ = writeln!(html, "<dt>{}</dt><dd>a page</dd>", statuses.join(", "));
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
            "<dt>{}</dt><dd><a href=\"/docs/errors#{}\"><code>{}</code></a> {}</dd>",
            row.status,
            row.type_,
            row.type_,
            escape(row.message)
        );
    }
    html.push_str("</dl>\n</section>\n");
}

fn push_schema(html: &mut String, name: &str, schema: &Value) {
    let _ = writeln!(html, "<section id=\"{name}\">\n<h3>{name}</h3>");
    if let Some(description) = schema.get("description").and_then(Value::as_str) {
        let _ = writeln!(html, "<p>{}</p>", escape(description));
    }
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|it| it.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    if let Some(members) = schema.get("properties").and_then(Value::as_object) {
        html.push_str("<table>\n<thead><tr><th scope=\"col\">Member</th><th scope=\"col\">Type</th><th scope=\"col\">Always</th><th scope=\"col\">Meaning</th></tr></thead>\n<tbody>\n");
        for (member, schema) in members {
            let always = if required.contains(&member.as_str()) { "yes" } else { "no" };
            let meaning = schema.get("description").and_then(Value::as_str).map(escape).unwrap_or_default();
            let _ = writeln!(
                html,
                "<tr><td><code>{member}</code></td><td>{}</td><td>{always}</td><td>{meaning}</td></tr>",
                type_words(schema)
            );
        }
        html.push_str("</tbody>\n</table>\n");
    }
    html.push_str("</section>\n");
}

/// What a member is, in a word, with a link where it is a record of its own.
fn type_words(schema: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next()) {
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<String> =
            words.iter().filter_map(Value::as_str).map(|it| format!("<code>{}</code>", escape(it))).collect();
        return words.join(", ");
    }
    match (schema.get("type").and_then(Value::as_str), schema.get("items")) {
        (Some("array"), Some(items)) => format!("array of {}", type_words(items)),
        (Some(word), _) => word.to_owned(),
        (None, _) => "value".to_owned(),
    }
}

fn errors() -> String {
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
            let _ = writeln!(html, "<dt>{}</dt><dd>{}.", row.status, escape(row.message));
            if let Some(fix) = row.fix {
                let _ = write!(html, " <strong>{}</strong>", escape(fix));
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

/// A name for a route within the page.
fn anchor(route: &Route) -> String {
    format!("{:?}", route.op)
}

/// Text for a page: backticks become code.
pub(crate) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let mut html = String::new();
    for (place, part) in text.split('`').enumerate() {
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
        let html = errors();
        for kind in Kind::ALL {
            assert_eq!(html.matches(&format!("id=\"{}\"", kind.row().type_)).count(), 1, "{kind:?}");
        }
    }

    /// The reference names every route and record, and every link within it leads somewhere.
    #[test]
    fn links_lead_somewhere() {
        let html = reference();
        for target in html.split("href=\"#").skip(1).filter_map(|it| it.split('"').next()) {
            assert!(html.contains(&format!("id=\"{target}\"")), "{target}");
        }
        for route in routes::all() {
            assert!(html.contains(&format!("{} {}", route.method, route.path)), "{route:?}");
        }
    }

    /// No page holds a script, and backticks and signs are written as a page needs them.
    #[test]
    fn pages_are_plain() {
        for html in [page("a", &reference()), page("b", &errors())] {
            assert!(!html.contains("<script") && !html.contains("javascript:") && !html.contains('`'));
            assert_eq!(html.matches("<section").count(), html.matches("</section>").count());
        }
        assert_eq!(escape("send `a<b>` & go"), "send <code>a&lt;b&gt;</code> &amp; go");
    }
}
