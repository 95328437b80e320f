//! What a conversation says in the words of whoever made the program, between the turns of the others: Claude models take that from
//! Opus 4.8 and the fifth line on, and those of before refuse all that holds it. To them it is told as the user's, in a frame by which
//! they know what it is.

use std::borrow::Cow;

use super::super::doc::Value;
use super::super::write::Out;
use super::thinking::{hyphened, takes_budget};
use super::{Faults, Splice, Target};
use crate::state::gateway::{Dialect, Particular};

/// What stands around it, as coding clients frame such texts themselves where they write them into a user's turn.
const FRAME: [&str; 2] = ["<system-reminder>\n", "\n</system-reminder>"];
/// The numbers of the last lines that refuse it, beside those that are told a budget of thinking.
const REFUSE: [&str; 2] = ["-4-6", "-4-7"];

/// What tells it so, in a request of the messages shape that stays in it.
pub(super) fn told(root: Value<'_>, target: Target<'_>) -> Option<Splice> {
    let whole = root.get("messages").filter(|_| is_refused(root, target))?;
    let mut out = Out::default();
    out.list(|out| {
        for message in whole.items() {
            if is_such(message) { framed(out, message) } else { out.raw(message.raw()) }
        }
    });
    Some(Splice::over(whole, String::from_utf8(out.into_bytes()).unwrap_or_default()))
}

/// The same in a line for people.
pub(super) fn changed(dialect: Dialect, root: Value<'_>, target: Target<'_>) -> Option<String> {
    let model = target.model;
    let line = || format!("{model} takes no system text within the messages: it was told as the user's, in a frame");
    (dialect == Dialect::Messages && is_refused(root, target)).then(line)
}

fn is_refused(root: Value<'_>, target: Target<'_>) -> bool {
    takes_none(target) && root.get("messages").into_iter().flat_map(|it| it.items()).any(is_such)
}

/// Whether a model is one of those that refuse it, and of such is told it otherwise.
pub(super) fn takes_none(target: Target<'_>) -> bool {
    !target.is_its_own && target.dialect == Dialect::Messages && is_before(target.model)
}

/// Says what of it has no frame, which none of those takes.
pub(super) fn refused(root: Value<'_>, target: Target<'_>, faults: &mut Faults) {
    if !faults.looks_for(Particular::Interjection, target) {
        return;
    }
    let messages = root.get("messages").into_iter().flat_map(|it| it.items());
    for (at, message) in messages.enumerate().filter(|(_, it)| is_such(*it)) {
        let blocks = message.given("content").into_iter().flat_map(|it| it.items());
        for (index, _) in blocks.enumerate().filter(|(_, it)| said(*it).is_none()) {
            let field = format!("messages.{at}.content.{index}");
            let clause = "is taken between turns by newer models alone: name another model";
            faults.has(Particular::Interjection, target, field, clause);
        }
    }
}

/// What a block of text says.
fn said<'a>(block: Value<'a>) -> Option<Cow<'a, str>> {
    block.text_of("text").filter(|_| block.has("type", "text"))
}

/// Whether a model is one of those that refuse it; one whose name does not tell is asked as its client asks.
fn is_before(model: &str) -> bool {
    let hyphened = hyphened(model);
    model.contains("claude") && (takes_budget(model) || REFUSE.iter().any(|it| hyphened.contains(it)))
}

fn is_such(message: Value<'_>) -> bool {
    message.has("role", "system")
}

/// One of them as the user's; such as has no content, and sets an effort alone, is left out.
fn framed(out: &mut Out, message: Value<'_>) {
    let Some(content) = message.given("content") else { return };
    let [before, behind] = FRAME;
    let frame = |text: &str| format!("{before}{text}{behind}");
    let text = |out: &mut Out, block: Value<'_>| {
        let Some(said) = said(block) else { return out.raw(block.raw()) };
        out.object(|out| {
            for (name, value) in block.members() {
                let member = out.name(&name.text().unwrap_or_default());
                if name.is("text") { member.text(&frame(&said)) } else { member.raw(value.raw()) }
            }
        });
    };
    out.object(|out| {
        out.name("role").text("user");
        match content.text() {
            Some(said) => out.name("content").text(&frame(&said)),
            None => out.name("content").list(|out| content.items().for_each(|block| text(out, block))),
        }
    });
}
