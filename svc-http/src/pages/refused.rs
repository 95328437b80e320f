//! What went wrong, as a person reads it: the table's words are for those who write requests.

use std::borrow::Cow;

use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use svc_core::refusal::{Kind, Refusal};

use super::Page;
use crate::answer::Answer;
use crate::docs::marked;

/// What a page that asks who somebody is names as the credential that is missing.
const SCHEME: HeaderValue = HeaderValue::from_static("Session");

/// The page of a refusal that leads nowhere.
pub(crate) fn page(refusal: &Refusal) -> Answer {
    let (said, fix) = words(refusal);
    told(refusal, said_page(&said, &format!("<p>{}</p>\n", marked(&fix))))
}

/// The page where there is none, with the ways on from it. `docs` is the address of the page of errors.
pub(crate) fn nowhere(refusal: &Refusal, docs: &str) -> Answer {
    // Of the server's own address the path alone: on loopback it may have been reached by another name.
    let base = docs.trim_end_matches("/docs/errors");
    let root = base.split_once("://").and_then(|it| it.1.split_once('/')).map_or("", |it| it.1);
    let root = if root.is_empty() { String::new() } else { format!("/{root}") };
    let title = "There is no such page";
    let main = format!(
        "<h1>{title}</h1>\n<p>The address may be misspelt, or what was here has gone.</p>\n<p><a href=\"{root}/\">Go to the console</a></p>\n<p><a href=\"{root}/docs\">Read the reference</a></p>\n"
    );
    let status = StatusCode::OK;
    told(refusal, Page { status, title, main: &main, style: "", form_action: "'none'", script: None }.answer())
}

/// The page of a refusal with, as HTML, the way on.
pub(crate) fn leading_on(refusal: &Refusal, way: &str) -> Answer {
    told(refusal, said_page(&words(refusal).0, way))
}

/// A page of this status that says of a refusal of this kind what did not work and, as HTML, the way on.
pub(crate) fn saying(kind: Kind, status: StatusCode, said: &str, way: &str) -> Answer {
    said_page(said, way).with_status(status).telling(kind)
}

/// A page that tells a refusal in its own way: with the status and the headers that go with it.
pub(crate) fn told(refusal: &Refusal, page: Answer) -> Answer {
    let status = match refusal.kind() {
        // A page has no scheme of a client's credentials to name.
        Kind::InvalidClient => 400,
        _ => refusal.status(),
    };
    let status_of = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut page = page.with_status(status_of).telling(refusal.kind());
    if let Some(seconds) = refusal.retry_after_s() {
        page.push_header(RETRY_AFTER, seconds.into());
    }
    if status == StatusCode::UNAUTHORIZED.as_u16() {
        page.push_header(WWW_AUTHENTICATE, SCHEME);
    }
    page
}

/// What a person reads of a refusal, and what to do.
pub(crate) fn words(refusal: &Refusal) -> (Cow<'_, str>, Cow<'_, str>) {
    let again = "Go back to the application and connect again.";
    let wait = || format!("Wait {} seconds, then try again.", refusal.retry_after_s().unwrap_or(1)).into();
    match refusal.kind() {
        Kind::Csrf => ("This form did not come from a page of this server.".into(), again.into()),
        Kind::NotAllowed => ("This page was answered already, or is too old.".into(), again.into()),
        Kind::Unauthenticated => ("You are no longer signed in.".into(), again.into()),
        Kind::RateLimited => ("There were too many tries.".into(), wait()),
        Kind::NotReady => ("This server cannot answer at the moment.".into(), wait()),
        Kind::Internal => ("Something went wrong here.".into(), "Try again in a moment.".into()),
        Kind::Forbidden => (sentence(refusal.message()), again.into()),
        Kind::InvalidRequest => (
            sentence(refusal.message()),
            format!("{again} If you see this again, tell whoever makes the application.").into(),
        ),
        _ => (sentence(refusal.message()), refusal.fix().unwrap_or(again).into()),
    }
}

/// A message as a sentence.
pub(crate) fn sentence(message: &str) -> Cow<'_, str> {
    let mut letters = message.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase()).unwrap_or_default();
    format!("{first}{}.", letters.as_str()).into()
}

fn said_page(said: &str, way: &str) -> Answer {
    let main = format!("<h1>This did not work</h1>\n<p role=\"alert\">{}</p>\n{way}", marked(said));
    let status = StatusCode::OK;
    Page { status, title: "This did not work", main: &main, style: "", form_action: "'none'", script: None }.answer()
}
