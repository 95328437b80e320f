//! What of a conversation in the chat shape is told otherwise to a provider of that shape: who speaks, and what models left in their
//! messages.

use super::super::doc::Value;
use super::super::marks::is_unsigned;
use super::super::write::Out;
use super::{Splice, Target, left_out, left_out_where};
use crate::state::gateway::{Dialect, Host};

/// Members in which models tell what they have thought, each in its own.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];
/// What the names of models have that take no turn of calls on without what was thought in it.
const GOES_ON_WITH_THOUGHTS: [&str; 3] = ["deepseek", "kimi", "mimo"];
/// The member in which gateways tell it that hand on what others signed.
const BLOCKS: &str = "thinking_blocks";
/// What an answer is made of, as all know it, and as a model says that it will not.
const CONTENT: &str = "content";
const REFUSAL: &str = "refusal";
/// What else answers have that a message need not.
const BESIDE: [&str; 2] = ["annotations", "audio"];
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
        splices.extend(blocks_kept(message, target));
        splices.extend(refused(message, target));
        splices.extend(signatures_left_out(message, target));
        splices.extend(speaker(message, target));
        splices
    })
}

/// What of messages is left out whose loss is told.
pub(super) fn missed(root: Value<'_>, shape: Dialect, target: Target<'_>) -> Option<&'static str> {
    let mut messages = root.get("messages").into_iter().flat_map(|it| it.items());
    // The messages shape has no speakers beside its two roles.
    let is_unknown = |it: Value<'_>| target.dialect == Dialect::Messages && !it.has("role", "tool");
    let is_missed = |it: Value<'_>| (is_nameless(it, target) || is_unknown(it)) && it.given(NAME).is_some();
    (shape == Dialect::Chat && messages.any(is_missed)).then_some(NAME)
}

/// Whether this message may have no name where it goes: Mistral knows those of tools alone.
fn is_nameless(message: Value<'_>, target: Target<'_>) -> bool {
    target.host == Host::Mistral && !target.is_its_own && !message.has("role", "tool")
}

/// Whether this member of a message goes to nobody, or not to this provider.
fn is_left_out(message: Value<'_>, (name, value): (Value<'_>, Value<'_>), target: Target<'_>) -> bool {
    let is_answer = message.has("role", "assistant");
    if name.is(BLOCKS) {
        // What is not as it was signed is refused by who signed it, to whom gateways hand it on.
        let is_unsigned = value.items().any(|it| is_unsigned(&it)) && value.items().all(|it| is_unsigned(&it));
        return is_unsigned || knows_no_blocks(target);
    }
    if name.is(CONTENT) {
        return refuses(message, target);
    }
    if value.is_null() && (is_exact(target.host) || !target.is_its_own) || name.is(NAME) && is_nameless(message, target)
    {
        return true;
    }
    if !is_answer {
        return false;
    }
    if name.is(REFUSAL) {
        return is_exact(target.host) && !refuses(message, target);
    }
    THOUGHTS.iter().any(|it| name.is(it)) && knows_no_thoughts(target)
        || BESIDE.iter().any(|it| name.is(it)) && is_exact(target.host)
}

/// Whether a host refuses members that it does not know, also such as say nothing.
const fn is_exact(host: Host) -> bool {
    matches!(host, Host::Google | Host::Mistral)
}

/// Whether a provider may refuse what models have thought. A model that thinks may have told it itself, and one that does not has told
/// none; but some refuse to go on without, whatever is known of them here.
fn knows_no_thoughts(target: Target<'_>) -> bool {
    let goes_on = || {
        let name = target.model.to_ascii_lowercase();
        GOES_ON_WITH_THOUGHTS.iter().any(|it| name.contains(it))
    };
    let is_others = || !target.is_its_own && !target.reasoning && !goes_on();
    is_exact(target.host) || target.host == Host::Maker || target.is_elsewhere || is_others()
}

/// The same of what was signed, which those alone take that hand it on to the models which signed it.
fn knows_no_blocks(target: Target<'_>) -> bool {
    is_exact(target.host) || target.host == Host::Maker || !target.is_its_own && !target.is_strict
}

/// Whether an answer is a refusal alone, and goes where texts are all that is known.
fn refuses(message: Value<'_>, target: Target<'_>) -> bool {
    let is_wordless = || message.given(CONTENT).is_none_or(|it| it.is_text() && it.is_empty_text());
    is_exact(target.host) && message.get(REFUSAL).is_some_and(|it| it.is_text()) && is_wordless()
}

/// A refusal as the text that it is to whoever knows no other.
fn refused(message: Value<'_>, target: Target<'_>) -> Option<Splice> {
    let (named, _) = message.members().find(|(it, _)| it.is(REFUSAL)).filter(|_| refuses(message, target))?;
    Some(Splice::over(named, format!("\"{CONTENT}\"")))
}

/// What Google's models sign calls with, left out where it is not known.
fn signatures_left_out<'a>(message: Value<'a>, target: Target<'a>) -> impl Iterator<Item = Splice> + 'a {
    let is_unknown = matches!(target.host, Host::Maker | Host::Mistral);
    let calls = message.get("tool_calls").filter(|_| is_unknown).into_iter().flat_map(|it| it.items());
    calls.flat_map(|call| left_out(call, &["extra_content"]))
}

/// The blocks of thinking that are as they were signed, where others stand beside them.
fn blocks_kept(message: Value<'_>, target: Target<'_>) -> Option<Splice> {
    let is_mixed = |it: &Value<'_>| it.items().any(|it| is_unsigned(&it)) && !knows_no_blocks(target);
    let told = message.get(BLOCKS).filter(is_mixed)?;
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
