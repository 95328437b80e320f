//! What is read of what servers send, for whoever looks whether reading it keeps what it promises.

use std::collections::BTreeMap;

use svc_core::value::json::Json;

use super::definition::Definitions;
use super::message::{Heard, hear};

/// A message as it is read, with what is handed on of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The result that was asked for.
    Result(String),
    /// The error in its place: its code.
    Error(i64),
    /// A notification.
    Note(String),
}

/// Reads a message of a server that was asked with this id; nothing where it is none that matters.
#[must_use]
pub fn message(text: &[u8], id: u64) -> Option<Message> {
    hear(text, id).map(|it| match it {
        Heard::Result(text) => Message::Result(text.get().to_owned()),
        Heard::Error(error) => Message::Error(error.code),
        Heard::Note(text) => Message::Note(text.get().to_owned()),
    })
}

/// A page of a list of tools as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The tools' definitions as canonical JSON, by name.
    pub tools: BTreeMap<Box<str>, Box<str>>,
    /// The headers that go with a call of each with the same arguments.
    pub headers: Vec<(Box<str>, String)>,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// Reads the first page of a list of tools; nothing where it is none.
#[must_use]
pub fn page(text: &str, arguments: &Json) -> Option<Page> {
    let mut all = Definitions::default();
    let next = all.take(text).ok()?;
    let headers = all.iter().flat_map(|it| it.headers(arguments)).collect();
    Some(Page { tools: all.texts(), headers, next })
}
