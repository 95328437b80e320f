//! What of a conversation in the chat shape is told otherwise to a provider of that shape: who speaks, and what models left in their
//! messages.

use super::super::doc::Value;
use super::super::marks::is_unsigned;
use super::super::write::Out;
use super::{Splice, Target, left_out_where};
use crate::state::gateway::{Dialect, Host};

/// Members in which models tell what they have thought, each in its own.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];
/// The member in which gateways tell it that hand on what others signed.
const BLOCKS: &str = "thinking_blocks";
/// The name of who speaks, where several speak in one role.
const NAME: &str = "name";
/// Who speaks for whoever made a program, as the shape's maker calls it now, and as all know it.
const DEVELOPER: &str = "developer";
const SYSTEM: &str = "system";

/// What has to be changed of the messages, so that this provider takes them.
pub(super) fn told<'a>(root: Value<'a>, target: Target<'a>) -> impl Iterator<Item = Splice> + 'a {
    let messages = root.get("messages").into_iter().flat_map(|it| it.items());
    messages.flat_map(move |message| {
        let mut splices = left_out_where(message, |name, value| is_left_out(message, (name, value), target));
        splices.extend(blocks_kept(message));
        splices.extend(speaker(message, target));
        splices
    })
}

/// What of messages is left out whose loss is told.
pub(super) fn missed(root: Value<'_>, shape: Dialect, target: Target<'_>) -> Option<&'static str> {
    let mut messages = root.get("messages").into_iter().flat_map(|it| it.items());
    let is_missed = |it: Value<'_>| is_nameless(it, target) && it.given(NAME).is_some();
    (shape == Dialect::Chat && messages.any(is_missed)).then_some(NAME)
}

/// Whether this message may have no name where it goes: Mistral knows those of tools alone.
fn is_nameless(message: Value<'_>, target: Target<'_>) -> bool {
    target.host == Host::Mistral && !target.is_its_own && !message.has("role", "tool")
}

/// Whether this member of a message goes to nobody, or not to this provider.
fn is_left_out(message: Value<'_>, (name, value): (Value<'_>, Value<'_>), target: Target<'_>) -> bool {
    if name.is(BLOCKS) {
        // What is not as it was signed is refused by who signed it, to whom gateways hand it on.
        return value.items().any(|it| is_unsigned(&it)) && value.items().all(|it| is_unsigned(&it));
    }
    if name.is(NAME) {
        return is_nameless(message, target);
    }
    // Another provider may refuse what models have thought.
    target.is_elsewhere && message.has("role", "assistant") && THOUGHTS.iter().any(|it| name.is(it))
}

/// The blocks of thinking that are as they were signed, where others stand beside them.
fn blocks_kept(message: Value<'_>) -> Option<Splice> {
    let told = message.get(BLOCKS).filter(|it| it.items().any(|it| is_unsigned(&it)))?;
    let kept = || told.items().filter(|it| !is_unsigned(it));
    kept().next()?;
    let mut out = Out::default();
    out.list(|out| kept().for_each(|it| out.raw(it.raw())));
    Some(Splice::over(told, String::from_utf8(out.into_bytes()).unwrap_or_default()))
}

/// A speaker whom the shape's maker alone knows is told as all others know it, where the client could not mean this provider.
fn speaker(message: Value<'_>, target: Target<'_>) -> Option<Splice> {
    let is_known = target.is_its_own || target.host == Host::Maker;
    let role = message.get("role").filter(|it| !is_known && it.is(DEVELOPER))?;
    Some(Splice::over(role, format!("\"{SYSTEM}\"")))
}
