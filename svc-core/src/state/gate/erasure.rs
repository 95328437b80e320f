//! What is personal in an action: what its records commit to, and the action without it.

use super::action::Action;
use super::replay::Payload;
use crate::value::text::{Label, Note, Summary};

/// What stands in the place of a text that was erased.
const ERASED: &str = "[erased]";

/// What stands in the place of a note.
#[must_use]
pub fn erased(note: &Note) -> Note {
    Note::parse(ERASED).unwrap_or_else(|_| note.clone())
}

impl Action {
    /// What its records commit to, member by member, as far as it is still known; `payload` is the row beside it.
    #[must_use]
    pub fn committed_texts(&self, payload: Option<&Payload>) -> Vec<(&'static str, String)> {
        if self.erased {
            return Vec::new();
        }
        let mut out = vec![("summary", self.summary.as_str().to_owned())];
        out.extend(self.data.as_ref().map(|it| ("recipient", it.recipient.to_string())));
        let input = payload.and_then(|it| it.tool_input.as_deref());
        out.extend(input.map(|it| ("toolInput", it.to_owned())));
        out.extend(payload.and_then(|it| it.details.as_deref()).map(|it| ("details", it.to_owned())));
        let details = self.provenance.declared.iter().filter_map(|it| it.detail.as_ref());
        let details: Vec<&str> = details.map(|it| it.as_str()).collect();
        if !details.is_empty() {
            out.push(("provenanceDetail", details.join("\n")));
        }
        out
    }

    /// The action without what is personal in it: its words, whom data went to, the payee's name, the salt, and the digest that what
    /// its tool was given could be guessed by. What it moved and what was decided stays.
    #[must_use]
    pub fn erase(mut self) -> Self {
        self.salt = [0; 16];
        self.summary = Summary::parse(ERASED).unwrap_or(self.summary);
        if let Some(payment) = &mut self.payment
            && let Ok(name) = Label::parse(ERASED)
        {
            payment.name = name;
        }
        if let Some(data) = &mut self.data {
            data.recipient = ERASED.into();
            data.purpose = None;
        }
        if let Some(tool) = &mut self.tool {
            tool.input_digest = None;
        }
        for declared in &mut self.provenance.declared {
            declared.detail = None;
        }
        self.payload = false;
        self.erased = true;
        self
    }
}
