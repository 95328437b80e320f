//! What svc signs thinking of models of the chat shape with, for clients of the messages shape: these keep what is signed and send
//! it back, and by its mark it is known again as what no provider of the messages shape has signed.
//!
//! **Invariant:** what a model of the chat shape has thought goes back to the provider that told it alone: others refuse the member
//! that it is told in, or have another one for it.

use super::doc::Value;

/// What every mark begins with. By itself it is that of before marks named providers.
const UNSIGNED: &str = "svc_unsigned";
/// What follows where the thinking came in another form than `reasoning_content`: no provider takes that back.
const OTHER: &str = ":other";
/// What stands before the name of the provider.
const AT: char = '@';

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

/// Whether a block is thinking of a model of the chat shape.
pub(super) fn is_unsigned(block: &Value<'_>) -> bool {
    block.has("type", "thinking") && block.text_of("signature").is_some_and(|it| is_mark(&it))
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
