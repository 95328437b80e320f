//! What makers' newer models refuse of their own shape, told by the models' names as of 2026-11-21: what of a request is then left out
//! or told otherwise, so that a call which policy sends there is answered.
//!
//! Only where the maker itself, or a cloud that resells its models, is asked: others translate for themselves what they serve.

use super::super::doc::Value;
use super::super::own::names_some;
use super::{Faults, Splice, Target, is_one, is_zero};
use crate::state::gateway::{Dialect, Host, Particular, Upstream, is_default_service};

/// From this number on the chat shape's maker has tools called beside no thinking alone.
const TOOLS_UNTHINKING: (u32, u32) = (5, 4);
/// From this number on its models can be told not to think.
const MAY_NOT_THINK: (u32, u32) = (5, 1);
/// The one that cannot, and so takes no tools.
const ALWAYS_THINKS: &str = "gpt-6-astra";
/// The line of its models that draw by chances of their own, as its first ones that think do.
const DRAWS_ITSELF: u32 = 6;
/// The first line of the messages shape's maker that does so, and the last number before it that does, of one family.
const DRAWS_ITSELF_MESSAGES: ((u32, u32), &str, (u32, u32)) = ((5, 0), "opus", (4, 7));
/// Numbers of lines below this are written with a point; two digits together are a line and its number.
const TOGETHER: u32 = 20;
/// Digits that a line, or a number within it, has at most.
const LINE_DIGITS_MAX: usize = 2;
/// Numbers of the maker's first models that think, and the first of them that takes no text at which to end.
const O_LINES: [u32; 3] = [1, 3, 4];
const TAKES_NO_STOP: u32 = 3;

/// What Mistral refuses of what asks for no other answer: nobody misses it.
const UNTOLD: [&str; 2] = ["stream_options", "user"];
/// Hints and labels that it refuses as well, and those that Google refuses.
const MISTRAL_UNKNOWN: [&str; 4] = ["store", "safety_identifier", "prompt_cache_retention", VERBOSITY];
const GOOGLE_UNKNOWN: [&str; 7] = [
    "store",
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    VERBOSITY,
    "frequency_penalty",
];
/// The members that say how much to think, and how much to say.
const EFFORT: &str = "reasoning_effort";
const VERBOSITY: &str = "verbosity";
/// The first number whose models think, those that know the word for more than much, and those that know the one for most.
const THINKS: (u32, u32) = (5, 0);
const KNOWS_XHIGH: (u32, u32) = (5, 2);
const KNOWS_MAX: (u32, u32) = (5, 6);
/// The member that asks for a service.
const TIER: &str = "service_tier";

/// Whose model of this name a provider serves: where those of many makers are, the name alone tells.
pub(super) fn host(upstream: &Upstream, model: &str) -> Host {
    let is_makers = || is_o_line(model) || numbered(model).is_some();
    match upstream.host() {
        Host::Mixed if is_makers() => Host::Maker,
        Host::Mixed => Host::Other,
        known @ (Host::Google | Host::Maker | Host::Mistral | Host::Other) => known,
    }
}

/// Whether a request goes out with its tools and told not to think: beside thinking these models take none.
pub(super) fn is_unthinking(root: Value<'_>, target: Target<'_>) -> bool {
    let is_new = || numbered(target.model).is_some_and(|it| it >= TOOLS_UNTHINKING);
    has_tools(root) && is_makers(target, Dialect::Chat) && !always_thinks(target.model) && is_new()
}

/// Whether a model takes no tools, as it always thinks.
pub(super) fn takes_no_tools(target: Target<'_>) -> bool {
    is_makers(target, Dialect::Chat) && always_thinks(target.model)
}

fn has_tools(root: Value<'_>) -> bool {
    ["tools", "functions"].iter().any(|it| names_some(root, it))
}

/// Says what of a request of the chat shape that stays in it single models refuse.
pub(super) fn refused(root: Value<'_>, target: Target<'_>, faults: &mut Faults) {
    if names_some(root, "stop") {
        faults.has(Particular::Stop, target, "stop", UNTELLABLE);
    }
    for (name, _) in odds(root).into_iter().filter(|(_, is_said)| *is_said) {
        faults.has(Particular::Odds, target, name, UNTELLABLE);
    }
    refuse_tools(root, target, faults);
}

/// Says that it has tools, where single models take none.
pub(super) fn refuse_tools(root: Value<'_>, target: Target<'_>, faults: &mut Faults) {
    if has_tools(root) {
        let clause = "are taken by this model in no request of the chat shape: name another model, or send none";
        faults.has(Particular::Tools, target, "tools", clause);
    }
}

/// Whether a model can be told not to think.
pub(super) fn may_not_think(target: Target<'_>) -> bool {
    let is_new = || numbered(target.model).is_some_and(|it| it >= MAY_NOT_THINK);
    is_makers(target, Dialect::Chat) && is_new() && !always_thinks(target.model)
}

/// Whether a model draws by chances of its own, and refuses a request that has others. What its client says to the very model that it
/// names, in that model's shape, goes there as it is.
pub(super) fn draws_itself(target: Target<'_>) -> bool {
    if target.is_its_own {
        return false;
    }
    match target.dialect {
        Dialect::Chat => is_makers(target, Dialect::Chat) && draws_itself_in_chat(target.model),
        Dialect::Messages => draws_itself_in_messages(target.model),
    }
}

/// Whether a model refuses a text at which its answer is to end: left out it would be another answer, so that another model is asked.
pub(super) fn takes_no_stop(target: Target<'_>) -> bool {
    let refuses = |model: &str| {
        o_line(model).is_some_and(|it| it >= TAKES_NO_STOP) || numbered(model).is_some_and(|it| it.0 >= DRAWS_ITSELF)
    };
    !target.is_its_own && is_makers(target, Dialect::Chat) && refuses(target.model)
}

/// Members of its own shape that are not known, or refused, where a request goes.
pub(super) fn left_out(root: Value<'_>, target: Target<'_>) -> Vec<&'static str> {
    let mut out = Vec::new();
    if target.host == Host::Mistral {
        out.extend(UNTOLD);
    }
    out.extend(unknown(target));
    // Any other than the usual service has a price of its own, and is not left out.
    if !unknown(target).is_empty() && root.text_of(TIER).is_some_and(|it| is_default_service(&it)) {
        out.push(TIER);
    }
    if draws_itself(target) {
        out.extend(chances(target.dialect));
    }
    out.extend(second_chance(root, target));
    if takes_no_odds(target) {
        out.extend(odds(root).into_iter().filter(|(_, is_said)| !is_said).map(|(name, _)| name));
    }
    if takes_no_effort(target) {
        out.push(EFFORT);
    }
    if takes_no_verbosity(target) {
        out.push(VERBOSITY);
    }
    out
}

/// Members by which a request of the chat shape asks for the odds of tokens or sets them, and whether it does.
fn odds(root: Value<'_>) -> [(&'static str, bool); 3] {
    let asks = root.get("logprobs").is_some_and(|it| it.bool() == Some(true));
    let sets = root.get("logit_bias").is_some_and(|it| it.members().next().is_some());
    [("logprobs", asks), ("top_logprobs", false), ("logit_bias", sets)]
}

/// Whether a model refuses to tell the odds of tokens, or to have them set: what asks for it goes to another.
pub(super) fn takes_no_odds(target: Target<'_>) -> bool {
    let is_chat = !target.is_its_own && target.dialect == Dialect::Chat;
    is_chat && (draws_itself(target) || target.host == Host::Mistral)
}

/// Whether the maker has a model refuse any wish for thinking, as it does not think.
fn takes_no_effort(target: Target<'_>) -> bool {
    !target.is_its_own && is_makers(target, Dialect::Chat) && !target.reasoning
}

/// Whether the maker has a model refuse a wish for few or many words, as those of before its fifth line do.
pub(super) fn takes_no_verbosity(target: Target<'_>) -> bool {
    let is_older = || is_o_line(target.model) || numbered(target.model).is_some_and(|it| it < THINKS);
    takes_no_effort(target) || !target.is_its_own && is_makers(target, Dialect::Chat) && is_older()
}

/// The word for how much to think that a model knows instead of the one which a request has, where it does not know that one.
pub(super) fn effort_known(root: Value<'_>, target: Target<'_>) -> Option<&'static str> {
    if target.is_its_own || !target.reasoning || !is_makers(target, Dialect::Chat) {
        return None;
    }
    let number = numbered(target.model).filter(|it| *it >= THINKS);
    if number.is_none() && !is_o_line(target.model) {
        return None;
    }
    let is_from = |first: (u32, u32)| number.is_some_and(|it| it >= first);
    let said = root.text_of(EFFORT)?;
    let known = match &*said {
        "none" | "minimal" if may_not_think(target) => "none",
        "none" | "minimal" if number == Some(THINKS) => "minimal",
        "none" | "minimal" => "low",
        "max" if is_from(KNOWS_MAX) => "max",
        "max" | "xhigh" if is_from(KNOWS_XHIGH) => "xhigh",
        "max" | "xhigh" => "high",
        _ => return None,
    };
    (known != said).then_some(known)
}

/// Hints and labels of the chat shape that a host refuses as unknown, where the client could not mean it.
pub(super) fn unknown(target: Target<'_>) -> &'static [&'static str] {
    match target.host {
        Host::Mistral if !target.is_its_own => &MISTRAL_UNKNOWN,
        Host::Google if !target.is_its_own => &GOOGLE_UNKNOWN,
        Host::Google | Host::Maker | Host::Mistral | Host::Mixed | Host::Other => &[],
    }
}

/// Of the members of a request in this shape that are left out, those whose loss is told: what says no more than saying nothing is
/// not missed.
pub(super) fn missed(root: Value<'_>, shape: Dialect, target: Target<'_>) -> Vec<&'static str> {
    let out = if shape == target.dialect {
        left_out(root, target)
    } else if draws_itself(target) {
        chances(shape).to_vec()
    } else {
        second_chance(root, target).into_iter().collect()
    };
    let says_nothing = |name: &str, value: Value<'_>| match name {
        "temperature" | "top_p" | "top_k" => is_one(value),
        "frequency_penalty" | "presence_penalty" => is_zero(value),
        "store" => value.bool() == Some(false),
        // A model that does not think has thought no less than this.
        EFFORT => value.is("none"),
        VERBOSITY => value.is("medium"),
        "logprobs" | "top_logprobs" | "logit_bias" => true,
        _ => name == TIER || UNTOLD.contains(&name),
    };
    out.into_iter().filter(|it| root.given(it).is_some_and(|value| !says_nothing(it, value))).collect()
}

/// Members by which a request of this shape says how chance is to draw.
pub(super) fn chances(shape: Dialect) -> &'static [&'static str] {
    match shape {
        Dialect::Chat => &["temperature", "top_p", "frequency_penalty", "presence_penalty"],
        Dialect::Messages => &["temperature", "top_p", "top_k"],
    }
}

/// Which of two members that say how chance is to draw is left out, where a Claude model refuses them together: what says no more than
/// saying nothing, else the second.
pub(super) fn second_chance(root: Value<'_>, target: Target<'_>) -> Option<&'static str> {
    let takes_one = !target.is_its_own
        && target.dialect == Dialect::Messages
        && target.model.contains("claude")
        && !draws_itself(target);
    let (temperature, _) = root.given("temperature").zip(root.given("top_p")).filter(|_| takes_one)?;
    Some(if is_one(temperature) { "temperature" } else { "top_p" })
}

/// Mistral's word for a call that has to be made, as all others know it.
pub(super) fn forced(root: Value<'_>, target: Target<'_>) -> Option<Splice> {
    let is_others = !target.is_its_own && target.host != Host::Mistral;
    let choice = root.get("tool_choice").filter(|it| is_others && it.is(MISTRAL_FORCED))?;
    Some(Splice::over(choice, "\"required\"".to_owned()))
}

/// The least effort that a model knows a word for which can be told no less.
pub(super) fn least_effort(target: Target<'_>) -> &'static str {
    let is_first = is_makers(target, Dialect::Chat) && numbered(target.model) == Some(THINKS);
    if is_first { "minimal" } else { "low" }
}

/// What is told otherwise of a request of the chat shape that stays in it.
pub(super) fn told_otherwise(root: Value<'_>, target: Target<'_>) -> Option<Splice> {
    if !is_unthinking(root, target) {
        let (effort, known) = root.get(EFFORT).zip(effort_known(root, target))?;
        return Some(Splice::over(effort, format!("\"{known}\"")));
    }
    match root.get(EFFORT) {
        Some(effort) if effort.is("none") => None,
        Some(effort) => Some(Splice::over(effort, "\"none\"".to_owned())),
        None => Some(Splice::first(root, "\"reasoning_effort\":\"none\"")),
    }
}

/// Where this name of a member stands, by that of the host it goes to.
pub(super) fn renamed(root: Value<'_>, target: Target<'_>) -> Option<Splice> {
    let (seed, _) = root.members().find(|(it, _)| it.is("seed"))?;
    let is_mistral = target.host == Host::Mistral && root.get(MISTRAL_SEED).is_none();
    is_mistral.then(|| Splice::over(seed, format!("\"{MISTRAL_SEED}\"")))
}

/// What is said of what changes the answer where it is not taken.
pub(super) const UNTELLABLE: &str = "cannot be told to this model: name another, or leave it out";
/// What Mistral calls it that a call has to be made.
pub(super) const MISTRAL_FORCED: &str = "any";
/// What Mistral calls a seed.
pub(super) const MISTRAL_SEED: &str = "random_seed";

fn is_makers(target: Target<'_>, shape: Dialect) -> bool {
    target.dialect == shape && target.host == Host::Maker
}

fn always_thinks(model: &str) -> bool {
    model.contains(ALWAYS_THINKS)
}

fn draws_itself_in_chat(model: &str) -> bool {
    is_o_line(model) || numbered(model).is_some_and(|it| it == (5, 0) || it.0 >= DRAWS_ITSELF)
}

fn draws_itself_in_messages(model: &str) -> bool {
    let (line, family, number) = DRAWS_ITSELF_MESSAGES;
    let Some((_, rest)) = model.split_once("claude-") else { return false };
    let mut words = rest.split(['-', '.', '@', ':']);
    // Those of before have their number first.
    let Some(own) = words.next().filter(|it| it.starts_with(|it: char| it.is_ascii_alphabetic())) else { return false };
    // A day is no number.
    let mut part = || words.next().filter(|it| it.len() < 3).and_then(|it| it.parse::<u32>().ok());
    let Some(major) = part() else { return false };
    let told = (major, part().unwrap_or(0));
    told >= line || own == family && told >= number
}

/// Whether a name is one of the maker's first models that think.
pub(super) fn is_o_line(model: &str) -> bool {
    o_line(model).is_some()
}

/// The number of one of the maker's first models that think; another behind the same letter is a name of anybody's.
fn o_line(model: &str) -> Option<u32> {
    let rest = last(model).strip_prefix('o')?;
    let number = digits(rest)?.parse().ok()?;
    let is_whole = !rest.trim_start_matches(is_digit).starts_with(char::is_alphanumeric);
    (O_LINES.contains(&number) && is_whole).then_some(number)
}

/// The line and the number of one of the chat maker's models, wherever its name has them. A year, or the size of another's, is none.
pub(super) fn numbered(model: &str) -> Option<(u32, u32)> {
    let (_, rest) = last(model).split_once("gpt-")?;
    let line: u32 = digits(rest).filter(|it| it.len() <= LINE_DIGITS_MAX)?.parse().ok()?;
    let rest = rest.trim_start_matches(is_digit);
    if rest.starts_with(['b', 'B']) {
        return None;
    }
    if line >= TOGETHER {
        // Where a point may not stand, 5.4 is written 54.
        return Some((line / 10, line % 10));
    }
    let number = rest.strip_prefix('.').and_then(digits).filter(|it| it.len() <= LINE_DIGITS_MAX);
    Some((line, number.and_then(|it| it.parse().ok()).unwrap_or(0)))
}

/// The digits that a text begins with.
fn digits(text: &str) -> Option<&str> {
    text.split(|it| !is_digit(it)).next().filter(|it| !it.is_empty())
}

const fn is_digit(sign: char) -> bool {
    sign.is_ascii_digit()
}

/// A model's own name, behind its provider's and what says that it was tuned.
fn last(model: &str) -> &str {
    let own = model.rsplit('/').next().unwrap_or(model);
    own.strip_prefix("ft:").unwrap_or(own)
}
