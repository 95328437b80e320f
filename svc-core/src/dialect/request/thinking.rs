//! How a model of the messages shape is told how much to think, which differs from one to the next, and what of a conversation's
//! thinking it takes back.
//!
//! What a client says to the very model that it names goes there as it is.

use std::borrow::Cow;

use super::super::doc::{Form, Value};
use super::super::marks::{is_unsigned, unmarked_block};
use super::super::write::Out;
use super::{Faults, Splice, Target, makers};
use crate::state::gateway::{Dialect, Particular};

/// Tokens of thinking for a little effort, a middling one and a great one, for models that are told a budget.
const BUDGETS: [u64; 3] = [2_048, 8_192, 16_384];
/// The same efforts, for models that decide themselves how much to think.
const EFFORTS: [&str; 3] = ["low", "medium", "high"];
/// Up to so many tokens a budget is a little effort; up to the second, a middling one.
const EFFORTS_UP_TO: [i64; 2] = [4_096, 12_288];
/// The smallest budget of thinking that there is.
const BUDGET_MIN: u64 = 1_024;
/// Models that think whatever they are told, by words of their names.
const ALWAYS_THINK: [&str; 3] = ["fable", "mythos", "opus-5-5"];
/// The member that holds the effort.
const CONFIG: &str = "output_config";
/// The same with its place.
const EFFORT: &str = "output_config.effort";

/// How a model is told how much to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By a budget alone.
    Budget,
    /// By a budget, or by an effort where it decides itself.
    Either,
    /// By an effort alone: it decides itself.
    Itself,
    /// Its name does not tell.
    Untold,
}

impl Way {
    fn of(target: Target<'_>) -> Self {
        if !target.model.contains("claude") {
            return Self::Untold;
        }
        if takes_budget(target.model) {
            Self::Budget
        } else if hyphened(target.model).contains("-4-6") {
            Self::Either
        } else if makers::draws_itself(Target { is_its_own: false, ..target }) {
            Self::Itself
        } else {
            Self::Untold
        }
    }
}

/// What becomes of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Tell {
    /// It goes out as it came.
    #[default]
    AsItIs,
    /// This text stands in its place.
    As(String),
    /// It is left out.
    LeftOut,
}

/// How the wishes of a request for thinking are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The member `thinking`.
    pub(super) thinking: Tell,
    /// The effort.
    pub(super) effort: Tell,
}

/// What a client wishes for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish<'a> {
    /// Its member `thinking`.
    pub(super) thinking: Option<Value<'a>>,
    /// Its effort.
    pub(super) effort: Option<Value<'a>>,
    /// The bound on the output, below which a budget has to be.
    pub(super) bound: u64,
    /// Whether a call has to be made, beside which no model thinks.
    pub(super) is_forced: bool,
}

impl<'a> Wish<'a> {
    /// That of a request of the messages shape.
    fn of(root: Value<'a>) -> Self {
        let bound = root.get("max_tokens").and_then(|it| it.integer()).and_then(|it| u64::try_from(it).ok());
        let choice = root.given("tool_choice");
        Self {
            thinking: root.given("thinking"),
            effort: root.given(CONFIG).and_then(|it| it.given("effort")),
            // What is only counted sets none.
            bound: bound.unwrap_or(u64::MAX),
            is_forced: choice.is_some_and(|it| it.has("type", "any") || it.has("type", "tool")),
        }
    }

    /// How this model is told of it.
    pub(super) fn told(self, target: Target<'_>) -> Told {
        let way = Way::of(target);
        let is = |kind: &str| self.thinking.is_some_and(|it| it.has("type", kind));
        let thinks = is("adaptive") || is("enabled");
        let mut told = Told { effort: self.effort_told(way, target), ..Told::default() };
        if thinks && !target.reasoning {
            told.thinking = Tell::LeftOut;
            return told;
        }
        match way {
            Way::Budget if is("adaptive") => {
                let level = self.effort.and_then(|it| EFFORTS.iter().position(|known| it.is(known)));
                // Whoever names no effort means a great one.
                let budget = budget(level.unwrap_or(2), self.bound).filter(|_| !self.is_forced);
                told.thinking = budget
                    .map_or(Tell::LeftOut, |it| Tell::As(format!("{{\"type\":\"enabled\",\"budget_tokens\":{it}}}")));
            }
            Way::Itself if is("enabled") => {
                let display = self.thinking.and_then(|it| it.given("display")).filter(|it| it.is_text());
                let display = display.map(|it| format!(",\"display\":{}", it.raw())).unwrap_or_default();
                told.thinking = Tell::As(format!("{{\"type\":\"adaptive\"{display}}}"));
                if self.effort.is_none() {
                    told.effort = Tell::As(self.effort_of_budget().to_owned());
                }
            }
            Way::Itself if is("disabled") && always_thinks(target.model) => told.thinking = Tell::LeftOut,
            Way::Budget | Way::Either | Way::Itself | Way::Untold => {}
        }
        told
    }

    /// How an effort is told: models know none, or not the greatest ones.
    fn effort_told(self, way: Way, target: Target<'_>) -> Tell {
        let Some(effort) = self.effort else { return Tell::AsItIs };
        let at_most_high = |beyond: &[&str]| {
            let is_beyond = beyond.iter().any(|it| effort.is(it));
            if is_beyond { Tell::As("high".to_owned()) } else { Tell::AsItIs }
        };
        match way {
            _ if !target.reasoning => Tell::LeftOut,
            Way::Budget if hyphened(target.model).contains("opus-4-5") => at_most_high(&["xhigh", "max"]),
            Way::Budget => Tell::LeftOut,
            Way::Either => at_most_high(&["xhigh"]),
            Way::Itself | Way::Untold => Tell::AsItIs,
        }
    }

    /// The effort that a budget of thinking comes to.
    fn effort_of_budget(self) -> &'static str {
        let tokens = self.thinking.and_then(|it| it.get("budget_tokens")).and_then(|it| it.integer());
        let level = tokens.map_or(2, |it| EFFORTS_UP_TO.iter().filter(|most| it > **most).count());
        EFFORTS.get(level).copied().unwrap_or("high")
    }
}

/// A budget of thinking for this level of effort, at most half of the bound on the output, which holds the answer too; none where that
/// leaves no room for one.
pub(super) fn budget(level: usize, bound: u64) -> Option<u64> {
    let budget = BUDGETS.get(level).copied().unwrap_or(BUDGET_MIN).min(bound / 2);
    (budget >= BUDGET_MIN).then_some(budget)
}

/// The word for this level of effort.
pub(super) fn effort(level: usize) -> Option<&'static str> {
    EFFORTS.get(level).copied()
}

/// Whether a model is told a budget of thinking; newer ones decide for themselves.
pub(super) fn takes_budget(model: &str) -> bool {
    let hyphened = hyphened(model);
    let model = if model.contains("claude") { hyphened.as_str() } else { model };
    ["claude-3", "-4-0", "-4-1", "-4-2", "-4-5", "sonnet-4@", "opus-4@"].iter().any(|it| model.contains(it))
        || ["sonnet-4", "opus-4"].iter().any(|it| model.ends_with(it))
}

/// A name with its numbers as their maker writes them; others have a point there.
pub(super) fn hyphened(model: &str) -> String {
    model.replace('.', "-")
}

fn always_thinks(model: &str) -> bool {
    let model = hyphened(model);
    ALWAYS_THINK.iter().any(|it| model.contains(it))
}

/// Whether a model does not go on with an answer that its client has begun.
pub(super) fn takes_no_beginning(target: Target<'_>) -> bool {
    !target.is_its_own && matches!(Way::of(target), Way::Either | Way::Itself)
}

/// Says that a conversation ends with what the model is to go on with, where it refuses to; left out it would be another answer.
pub(super) fn refuse_beginning(dialect: Dialect, root: Value<'_>, target: Target<'_>, faults: &mut Faults) {
    if !faults.looks_for(Particular::Beginning, target) {
        return;
    }
    let is_system = |it: &Value<'_>| it.has("role", "system") || it.has("role", "developer");
    let Some(last) = messages(root).filter(|it| !is_system(it)).last().filter(|it| it.has("role", "assistant")) else {
        return;
    };
    let is_said = |it: Value<'_>| it.text().is_some_and(|it| !it.trim().is_empty());
    let is_text = |it: Value<'_>| it.has("type", "text") && it.get("text").is_some_and(is_said);
    let content = last.given("content");
    let begins = match dialect {
        // A turn that the provider's own tools have interrupted is gone on with.
        Dialect::Messages => {
            let is_own = |it: Value<'_>| it.text_of("type").is_some_and(|it| it.ends_with("_tool_use"));
            blocks(last).last().is_some_and(is_text) && !blocks(last).any(is_own)
        }
        Dialect::Chat => last.given("tool_calls").is_none() && blocks(last).any(is_text),
    };
    if begins || content.is_some_and(is_said) {
        let clause = "must not end with an assistant's message, which this model does not go on with";
        faults.has(Particular::Beginning, target, "messages", clause);
    }
}

/// What tells this model, where its client could not mean it, how much to think. Members that are left out whole are put into `names`.
pub(super) fn told(root: Value<'_>, target: Target<'_>, names: &mut Vec<&'static str>) -> Vec<Splice> {
    let mut splices = Vec::new();
    if target.is_its_own || target.dialect != Dialect::Messages {
        return splices;
    }
    let wish = Wish::of(root);
    let Told { thinking, effort } = wish.told(target);
    match (thinking, wish.thinking) {
        (Tell::As(other), Some(own)) => splices.push(Splice::over(own, other)),
        (Tell::LeftOut, Some(_)) => {
            names.push("thinking");
            match edits_left_out(root) {
                Some(Edits::Whole) => names.push(CONTEXT),
                Some(Edits::Within(splice)) => splices.push(splice),
                None => {}
            }
        }
        (Tell::AsItIs | Tell::As(_) | Tell::LeftOut, _) => {}
    }
    let config = root.given(CONFIG);
    match (effort, wish.effort, config) {
        (Tell::As(word), Some(own), _) => splices.push(Splice::over(own, format!("\"{word}\""))),
        (Tell::As(word), None, Some(config)) if config.form() == Form::Object => {
            // A member that is null stands there already.
            splices.push(match config.get("effort") {
                Some(null) => Splice::over(null, format!("\"{word}\"")),
                None => Splice::first(config, &format!("\"effort\":\"{word}\"")),
            });
        }
        (Tell::As(word), None, _) => {
            splices.push(match root.get(CONFIG) {
                Some(other) => Splice::over(other, format!("{{\"effort\":\"{word}\"}}")),
                None => Splice::first(root, &format!("\"{CONFIG}\":{{\"effort\":\"{word}\"}}")),
            });
        }
        (Tell::LeftOut, Some(_), Some(config)) if config.members().nth(1).is_some() => {
            splices.extend(Splice::without(config, "effort"));
        }
        (Tell::LeftOut, Some(_), _) => names.push(CONFIG),
        (Tell::AsItIs | Tell::LeftOut, _, _) => {}
    }
    splices
}

/// The same in lines for people.
pub(super) fn changed(dialect: Dialect, root: Value<'_>, target: Target<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if target.is_its_own || (dialect, target.dialect) != (Dialect::Messages, Dialect::Messages) {
        return lines;
    }
    let (model, wish) = (target.model, Wish::of(root));
    let told = wish.told(target);
    let left_out = [("thinking", &told.thinking), (EFFORT, &told.effort)];
    let left_out: Vec<_> = left_out.into_iter().filter(|(_, it)| **it == Tell::LeftOut).map(|(name, _)| name).collect();
    if !left_out.is_empty() {
        lines.push(format!("left out, as {model} refuses it: {}", left_out.join(", ")));
    }
    match (&told.thinking, &told.effort) {
        (Tell::As(_), Tell::As(word)) => {
            lines.push(format!("{model} decides itself how much to think: it was told an effort of {word}"));
        }
        (Tell::As(_), _) if Way::of(target) == Way::Itself => {
            lines.push(format!("{model} decides itself how much to think: it was told no budget"));
        }
        (Tell::As(_), _) => {
            lines.push(format!("{model} thinks by a budget alone: it was told one"));
        }
        (_, Tell::As(word)) => lines.push(format!("{model} knows a lesser effort at most: it was told {word}")),
        (Tell::AsItIs | Tell::LeftOut, Tell::AsItIs | Tell::LeftOut) => {}
    }
    lines
}

/// What a conversation holds that this model's provider refuses: thinking that it does not know again; and a wish for more in a turn
/// that cannot go on with it.
pub(super) fn taken_back(root: Value<'_>, target: Target<'_>, faults: &mut Faults) -> Vec<Splice> {
    let mut splices = Vec::new();
    let is_left_out = || messages(root).any(|it| blocks(it).any(|it| returned(it, target).is_none()));
    // Other makers' models may go on with a turn of their own whose thinking the client did not keep.
    if (is_left_out() || target.is_strict) && goes_on_without_thought(root, target) {
        splices.extend(thinking_off(root));
    }
    splices.extend(unknown_left_out(root, target, faults));
    splices
}

/// A block as this model's provider takes it back: what it has signed in its own way as it signed it. None where it refuses all that
/// holds it: thinking of models of the chat shape, which nobody has signed, and what others have signed, or not.
pub(super) fn returned<'a>(block: Value<'a>, target: Target<'_>) -> Option<Cow<'a, str>> {
    if is_unsigned(&block) {
        return unmarked_block(block, target.provider).map(Cow::Owned);
    }
    let is_signed = || block.get("signature").is_some_and(|it| it.is_text() && !it.is_empty_text());
    // The maker's own models sign all that they think.
    let is_others = target.is_strict
        && (!target.is_its_own || target.is_elsewhere)
        && block.has("type", "thinking")
        && !is_signed();
    (!is_others).then(|| Cow::Borrowed(block.raw()))
}

/// What leaves out thinking that this model's provider refuses, and puts back what it knows again; a message of nothing else is left
/// out with it. A conversation of nothing else has nothing to be answered.
fn unknown_left_out(root: Value<'_>, target: Target<'_>, faults: &mut Faults) -> Option<Splice> {
    let whole = root.get("messages")?;
    let is_changed = |it: Value<'_>| blocks(it).any(|it| !matches!(returned(it, target), Some(Cow::Borrowed(_))));
    if !messages(root).any(is_changed) {
        return None;
    }
    let is_nothing = |it: Value<'_>| blocks(it).next().is_some() && blocks(it).all(|it| returned(it, target).is_none());
    if messages(root).all(is_nothing) {
        faults.add("messages", "must have more than what another provider's model has thought");
    }
    let mut out = Out::default();
    out.list(|out| {
        for message in messages(root).filter(|it| !is_nothing(*it)) {
            if is_changed(message) { known(out, message, target) } else { out.raw(message.raw()) }
        }
    });
    Some(Splice::over(whole, String::from_utf8(out.into_bytes()).unwrap_or_default()))
}

fn messages(root: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    root.get("messages").into_iter().flat_map(|it| it.items())
}

fn blocks(message: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    message.get("content").into_iter().flat_map(|it| it.items())
}

/// Whether results go to a turn of calls in which the model's own thinking has no part. One that thought before its first call may
/// have made the others without.
fn goes_on_without_thought(root: Value<'_>, target: Target<'_>) -> bool {
    let mut turn = Vec::new();
    for message in messages(root) {
        if message.has("role", "assistant") {
            turn.push(message);
        } else if message.has("role", "user") && !blocks(message).any(|it| it.has("type", "tool_result")) {
            turn.clear();
        }
    }
    let is_of_thought = |it: Value<'_>| it.has("type", "thinking") || it.has("type", "redacted_thinking");
    let is_thought = |it: Value<'_>| is_of_thought(it) && returned(it, target).is_some();
    let own = || turn.iter().flat_map(|it| blocks(*it));
    own().any(|it| it.has("type", "tool_use")) && !own().any(is_thought)
}

/// What switches off a budget of thinking, and with it the edits of the context that providers refuse without one.
fn thinking_off(root: Value<'_>) -> Vec<Splice> {
    let Some(budget) = root.get("thinking").filter(|it| it.has("type", "enabled")) else { return Vec::new() };
    let edits = match edits_left_out(root) {
        Some(Edits::Whole) => Splice::without(root, CONTEXT),
        Some(Edits::Within(splice)) => Some(splice),
        None => None,
    };
    [Splice::over(budget, "{\"type\":\"disabled\"}".to_owned())].into_iter().chain(edits).collect()
}

/// The member that holds edits of the context.
const CONTEXT: &str = "context_management";

/// How edits of thinking are left out.
enum Edits {
    /// With all that holds them: there is nothing else in it.
    Whole,
    /// By this, among others.
    Within(Splice),
}

/// What leaves out the edits of the context that are of thinking, where there are any.
fn edits_left_out(root: Value<'_>) -> Option<Edits> {
    let context = root.get(CONTEXT)?;
    let edits = context.get("edits")?;
    let is_of_thinking = |it: &Value<'_>| it.text_of("type").is_some_and(|it| it.starts_with("clear_thinking_"));
    let others = || edits.items().filter(|it| !is_of_thinking(it));
    if others().count() == edits.items().count() {
        return None;
    }
    if others().next().is_some() {
        let mut out = Out::default();
        out.list(|out| others().for_each(|it| out.raw(it.raw())));
        return Some(Edits::Within(Splice::over(edits, String::from_utf8(out.into_bytes()).unwrap_or_default())));
    }
    match context.members().nth(1) {
        Some(_) => Splice::without(context, "edits").map(Edits::Within),
        None => Some(Edits::Whole),
    }
}

/// A message without the thinking that this model's provider does not know.
fn known(out: &mut Out, message: Value<'_>, target: Target<'_>) {
    out.object(|out| {
        for (name, value) in message.members() {
            let member = out.name(&name.text().unwrap_or_default());
            if name.is("content") {
                member.list(|out| blocks(message).filter_map(|it| returned(it, target)).for_each(|it| out.raw(&it)));
            } else {
                member.raw(value.raw());
            }
        }
    });
}
