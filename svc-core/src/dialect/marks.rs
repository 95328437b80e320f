//! What svc signs thinking of models of the chat shape with, for clients of the messages shape: these keep what is signed and send
//! it back, and by its mark it is known again as what no provider of the messages shape has signed.
//!
//! Providers of the messages shape that are not its maker sign thinking in ways of their own, which the others refuse: before such a
//! signature stands a mark too, and it goes back without it to whoever made it.
//!
//! **Invariant:** what a model of the chat shape has thought goes back to the provider that told it alone: others refuse the member
//! that it is told in, or have another one for it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::doc::{Form, Tape, Value};
use super::request::{Splice, spliced};
use super::write::quoted;

/// What every mark begins with. By itself it is that of before marks named providers.
const UNSIGNED: &str = "svc_unsigned";
/// What follows where the thinking came in another form than `reasoning_content`: no provider takes that back.
const OTHER: &str = ":other";
/// What stands before the name of the provider.
const AT: char = '@';
/// What a mark of a call begins with. What follows is base64, piece by piece with a point between: the provider, the call, and what
/// the provider told beside it.
const CALL: &str = "svc_unsigned_call@";

/// What the mark of another maker's signature begins with. The provider's name follows, a colon, and the signature.
const SIGNED: &str = "svc_unsigned_of@";

/// How a provider told what its model has thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum As {
    /// As `reasoning_content`, in which it takes it back.
    ReasoningContent,
    /// In any other form.
    Other,
}

/// The mark of thinking that the provider of this name told so; where its name is not known, any may be given it again.
pub(super) fn mark(told: As, provider: &str) -> String {
    match told {
        As::Other => format!("{UNSIGNED}{OTHER}"),
        As::ReasoningContent if provider.is_empty() => UNSIGNED.to_owned(),
        As::ReasoningContent => format!("{UNSIGNED}{AT}{provider}"),
    }
}

/// Whether a text is such a mark.
pub(super) fn is_mark(signature: &str) -> bool {
    signature.starts_with(UNSIGNED)
}

/// Whether a block is thinking of a model of the chat shape, shown or not.
pub(super) fn is_unsigned(block: &Value<'_>) -> bool {
    let is_marked = |name| block.text_of(name).is_some_and(|it| is_mark(&it));
    block.has("type", "thinking") && is_marked("signature")
        || block.has("type", "redacted_thinking") && is_marked("data")
}

/// The mark before signatures that this provider has made and no other knows.
pub(super) fn signed_apart(provider: &str) -> String {
    format!("{SIGNED}{provider}:")
}

/// What puts a mark before a signature, or before its first piece; nothing where it is empty.
pub(super) fn marked(signature: Value<'_>, mark: &str) -> Option<Splice> {
    let at = signature.span().0 + 1;
    let is_some = signature.is_text() && !signature.is_empty_text();
    is_some.then(|| Splice { start: at, end: at, text: mark.to_owned() })
}

/// A block of thinking as JSON with a mark before its signature.
pub(super) fn marked_block<'a>(block: Value<'a>, mark: &str) -> Cow<'a, str> {
    let signature = block.get("signature").filter(|_| block.has("type", "thinking"));
    let Some(mut splice) = signature.and_then(|it| marked(it, mark)) else { return Cow::Borrowed(block.raw()) };
    let (from, _) = block.span();
    (splice.start, splice.end) = (splice.start.saturating_sub(from), splice.end.saturating_sub(from));
    Cow::Owned(spliced(block.raw(), &[splice]))
}

/// A block of thinking that svc has marked, as the provider of this name signed it; none where it did not.
pub(super) fn unmarked_block(block: Value<'_>, provider: &str) -> Option<String> {
    let signature = block.get("signature").filter(|_| block.has("type", "thinking"))?;
    let text = signature.text()?;
    let (whose, own) = text.strip_prefix(SIGNED)?.split_once(':')?;
    let (from, _) = block.span();
    let (start, end) = signature.span();
    let splice = Splice { start: start.saturating_sub(from), end: end.saturating_sub(from), text: quoted(own) };
    (whose == provider).then(|| spliced(block.raw(), &[splice]))
}

/// What keeps, as thinking that is not shown, what a provider told beside a call and is to be told again: clients of the messages
/// shape have no place for it at the call, and send back what they cannot read. The call by the id that the client knows.
pub(super) fn call_mark(provider: &str, id: &str, told: &str) -> String {
    let [provider, id, told] = [provider, id, told].map(|it| URL_SAFE_NO_PAD.encode(it));
    format!("{CALL}{provider}.{id}.{told}")
}

/// The call that such a block is of, and what this provider told beside it.
pub(super) fn marked_call(block: Value<'_>, provider: &str) -> Option<(String, String)> {
    let data = block.text_of("data").filter(|_| block.has("type", "redacted_thinking"))?;
    let mut pieces = data.strip_prefix(CALL)?.split('.');
    let mut piece = || String::from_utf8(URL_SAFE_NO_PAD.decode(pieces.next()?).ok()?).ok();
    let (whose, id, told) = (piece()?, piece()?, piece()?);
    // A client may send what it likes, but no request is made of it that is none.
    let is_object = || Tape::of(&told).is_ok_and(|it| it.root(&told).form() == Form::Object);
    (whose == provider && is_object()).then_some((id, told))
}

/// Whether thinking with this signature may be given to the provider of this name as `reasoning_content`: it told it so, or
/// nobody has said whose it is.
pub(super) fn is_of(signature: Option<&str>, provider: &str) -> bool {
    let Some(signature) = signature.filter(|it| !it.is_empty()) else { return true };
    match signature.strip_prefix(UNSIGNED) {
        Some("") => true,
        Some(rest) => rest.strip_prefix(AT) == Some(provider),
        None => false,
    }
}
