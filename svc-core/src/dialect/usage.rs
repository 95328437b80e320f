//! What providers tell of a call's tokens, in one normal form.
//!
//! Each counts some kinds within others: cached tokens within the prompt's or beside them, thinking within the answer's
//! or beside it, cache writes anywhere. Here every token is counted once (CONTRACT part 2, "Usage").

use super::doc::{Form, Value};
use super::write::Out;
use crate::state::gateway::Usage;

/// More tokens than any call has: a count above is no count.
const BELIEVABLE_MAX: u64 = 1 << 40;

/// A count of tokens: a whole number, one with an empty fraction, or with one that is rounded up. `None` for what
/// cannot be believed.
fn count(value: Option<Value<'_>>) -> Option<u64> {
    let value = value.filter(|it| it.form() == Form::Number)?;
    let raw = value.raw();
    let count = match raw.split_once('.') {
        None => raw.parse().ok()?,
        Some((whole, fraction)) => {
            let digits = fraction.bytes().all(|it| it.is_ascii_digit());
            let whole: u64 = whole.parse().ok().filter(|_| digits)?;
            if fraction.bytes().all(|it| it == b'0') { whole } else { whole.checked_add(1)? }
        }
    };
    (count <= BELIEVABLE_MAX).then_some(count)
}

/// The usage that a provider of the chat shape tells, with zero for a side that it does not tell; `None` where it tells
/// neither.
pub(super) fn chat(usage: Value<'_>) -> Option<Usage> {
    let of = |object: &str, name: &str| count(usage.get(object).and_then(|it| it.get(name)));
    let prompt = count(usage.get("prompt_tokens")).or_else(|| count(usage.get("input_tokens")));
    let completion = count(usage.get("completion_tokens")).or_else(|| count(usage.get("output_tokens")));
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    if prompt == 0 && completion == 0 {
        return None;
    }
    // Beside a prompt that is not told, what the total has more than the completion is no output.
    let total = count(usage.get("total_tokens")).filter(|_| prompt > 0);

    let cached = first([
        of("prompt_tokens_details", "cached_tokens"),
        of("input_tokens_details", "cached_tokens"),
        count(usage.get("prompt_cache_hit_tokens")),
        count(usage.get("cache_read_input_tokens")),
        count(usage.get("cached_tokens")),
    ]);
    let long = of("cache_creation", "ephemeral_1h_input_tokens").unwrap_or(0);
    let written = first([
        of("prompt_tokens_details", "cache_write_tokens"),
        of("prompt_tokens_details", "cache_creation_tokens"),
        count(usage.get("cache_creation_input_tokens")),
    ])
    .max(long);
    let reasoning = first([
        of("completion_tokens_details", "reasoning_tokens"),
        of("output_tokens_details", "reasoning_tokens"),
        count(usage.get("reasoning_tokens")),
    ]);

    // What lies within the prompt's count is taken out of it; where the parts are more than the whole, or the total says
    // so, they lie beside it.
    let within = cached.saturating_add(written);
    let beside = total == Some(prompt.saturating_add(within).saturating_add(completion)) && within > 0;
    let input = if beside { prompt } else { prompt.checked_sub(within).unwrap_or(prompt) };
    let all_input = if beside { prompt.saturating_add(within) } else { prompt };
    // Pages that the provider has read for the answer lie beside the prompt, and cost as much as it.
    let cited = count(usage.get("citation_tokens")).unwrap_or(0);
    let (input, all_input) = (input.saturating_add(cited), all_input.saturating_add(cited));

    let (output, reasoning) = split_output(all_input, completion, reasoning, total);
    Some(Usage {
        input,
        cached_input: cached,
        cache_write: written.saturating_sub(long),
        cache_write_long: long,
        output,
        reasoning,
        estimated: false,
    })
}

/// The answer's tokens and the thinking's, each counted once.
fn split_output(prompt: u64, completion: u64, reasoning: u64, total: Option<u64>) -> (u64, u64) {
    let beside = total.and_then(|it| it.checked_sub(prompt.saturating_add(completion)));
    match (reasoning, beside) {
        // The total tells of output that nothing else names: beside what is seen it is thinking.
        (0, Some(rest)) if completion == 0 => (rest, 0),
        (0, Some(rest)) => (completion, rest),
        (0, _) => (completion, 0),
        (reasoning, Some(rest)) if rest >= reasoning => (completion, reasoning),
        (reasoning, _) => match completion.checked_sub(reasoning) {
            Some(output) => (output, reasoning),
            None => (completion, reasoning),
        },
    }
}

/// The first of these names under which something was counted: a zero under one says nothing of the others.
fn first<const N: usize>(counts: [Option<u64>; N]) -> u64 {
    counts.into_iter().flatten().find(|it| *it > 0).unwrap_or(0)
}

/// What a provider of the messages shape has told so far; later counts take the place of earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    input: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
    short: Option<u64>,
    long: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
    /// What went into and came of summing up the conversation, which the provider counts beside all else.
    compacted: Usage,
}

impl Told {
    /// Takes what one `usage` tells. A zero does not take back what was told before, as some providers send zeros at the end; beside as much
    /// input of other kinds as was told in all it does: that is where the tokens have gone, and both would be charged.
    pub(super) fn add(&mut self, usage: Value<'_>) {
        let of = |object: &str, name: &str| count(usage.get(object).and_then(|it| it.get(name)));
        let input = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
        let [plain, read, written] = input.map(|it| count(usage.get(it)));
        let sum = |kinds: [Option<u64>; 3]| kinds.into_iter().flatten().fold(0, u64::saturating_add);
        let told = sum([plain, read, written]);
        let has_moved = told > 0 && told >= sum([self.input, self.read, self.written]);
        let put = |old: &mut Option<u64>, new: Option<u64>, has_gone: bool| {
            if let Some(new) = new.filter(|it| *it > 0 || old.is_none() || has_gone) {
                *old = Some(new);
            }
        };
        let keep = |old: &mut Option<u64>, new| put(old, new, false);
        put(&mut self.input, plain, has_moved);
        put(&mut self.read, read, has_moved);
        put(&mut self.written, written, has_moved);
        put(&mut self.short, of("cache_creation", "ephemeral_5m_input_tokens"), has_moved);
        put(&mut self.long, of("cache_creation", "ephemeral_1h_input_tokens"), has_moved);
        keep(&mut self.output, count(usage.get("output_tokens")));
        let thinking = of("output_tokens_details", "thinking_tokens");
        keep(&mut self.thinking, thinking.or_else(|| of("output_tokens_details", "reasoning_tokens")));
        let compacted = compacted(usage);
        if compacted != Usage::default() {
            self.compacted = compacted;
        }
    }

    /// What went in, where it was told.
    pub(super) fn input(&self) -> Option<Usage> {
        let long = self.long.unwrap_or(0);
        let short = self.short.unwrap_or(0);
        let written = self.written.unwrap_or(0).max(short.saturating_add(long));
        let usage = Usage {
            input: self.input?,
            cached_input: self.read.unwrap_or(0),
            cache_write: written.saturating_sub(long),
            cache_write_long: long,
            ..Usage::default()
        };
        let usage = usage.plus(Usage { output: 0, reasoning: 0, ..self.compacted });
        (usage.all_input() > 0).then_some(usage)
    }

    /// All that was told, with zero for a side that was not; `None` where neither was.
    pub(super) fn whole(&self) -> Option<Usage> {
        let (input, output) = (self.input().unwrap_or_default(), self.output.unwrap_or(0));
        let thinking = self.thinking.unwrap_or(0).min(output);
        let usage = Usage { output: output.saturating_sub(thinking), reasoning: thinking, ..input };
        let Usage { output, reasoning, .. } = self.compacted;
        let usage = usage.plus(Usage { output, reasoning, ..Usage::default() });
        (usage != Usage::default()).then_some(usage)
    }
}

/// What a usage of the messages shape tells of summing up the conversation, all times together: its other counts leave that out.
fn compacted(usage: Value<'_>) -> Usage {
    let entries = usage.get("iterations").into_iter().flat_map(|it| it.items());
    entries.filter(|it| it.has("type", "compaction")).fold(Usage::default(), |sum, it| {
        let mut told = Told::default();
        told.add(it);
        sum.plus(told.whole().unwrap_or_default())
    })
}

/// Whether a usage of the messages shape tells of output.
pub(super) fn tells_output(usage: Value<'_>) -> bool {
    count(usage.get("output_tokens")).is_some_and(|it| it > 0)
}

/// What was told last, with a side that it does not tell as it was told before: a zero takes nothing back.
pub(super) fn later(last: Option<Usage>, before: Option<Usage>) -> Option<Usage> {
    let (Some(last), Some(before)) = (last, before) else { return last.or(before) };
    let input = if last.all_input() > 0 { last } else { before };
    let output = if last.all_output() > 0 { last } else { before };
    Some(Usage { output: output.output, reasoning: output.reasoning, ..input })
}

/// A usage that can be believed as the whole: something went in and, where there is text or a call, something came out.
pub(super) fn believed(usage: Option<Usage>, content: bool) -> Option<Usage> {
    usage.filter(|it| it.all_input() > 0 && (!content || it.all_output() > 0))
}

/// Writes it as the chat shape tells it.
pub(super) fn write_chat(out: &mut Out, usage: &Usage) {
    let (prompt, completion) = (usage.all_input(), usage.all_output());
    out.object(|out| {
        out.name("prompt_tokens").number(prompt);
        out.name("completion_tokens").number(completion);
        out.name("total_tokens").number(prompt.saturating_add(completion));
        out.name("prompt_tokens_details").object(|out| {
            out.name("cached_tokens").number(usage.cached_input);
            let written = usage.cache_write.saturating_add(usage.cache_write_long);
            if written > 0 {
                out.name("cache_write_tokens").number(written);
            }
        });
        out.name("completion_tokens_details").object(|out| {
            out.name("reasoning_tokens").number(usage.reasoning);
        });
    });
}

/// Writes it as the messages shape tells it.
pub(super) fn write_messages(out: &mut Out, usage: &Usage) {
    let written = usage.cache_write.saturating_add(usage.cache_write_long);
    out.object(|out| {
        out.name("input_tokens").number(usage.input);
        out.name("cache_creation_input_tokens").number(written);
        out.name("cache_read_input_tokens").number(usage.cached_input);
        if written > 0 {
            out.name("cache_creation").object(|out| {
                out.name("ephemeral_5m_input_tokens").number(usage.cache_write);
                out.name("ephemeral_1h_input_tokens").number(usage.cache_write_long);
            });
        }
        out.name("output_tokens").number(usage.all_output());
        if usage.reasoning > 0 {
            out.name("output_tokens_details").object(|out| {
                out.name("thinking_tokens").number(usage.reasoning);
            });
        }
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::super::doc::Tape;
    use super::*;

    /// The six kinds in the order of the contract.
    fn kinds(usage: Option<Usage>) -> Option<[u64; 6]> {
        usage.map(|it| {
            assert!(!it.estimated);
            [it.input, it.cached_input, it.cache_write, it.cache_write_long, it.output, it.reasoning]
        })
    }

    fn chat_of(text: &str) -> Option<[u64; 6]> {
        let tape = Tape::of(text).unwrap();
        kinds(believed(chat(tape.root(text)), true))
    }

    fn messages_of(parts: &[&str]) -> Option<[u64; 6]> {
        let mut told = Told::default();
        for text in parts {
            let tape = Tape::of(text).unwrap();
            told.add(tape.root(text));
        }
        kinds(believed(told.whole(), true))
    }

    /// Provider by provider: no token is counted under two kinds and none is lost.
    #[test]
    fn the_chat_shape_is_read_as_each_provider_means_it() {
        for (who, told, kinds) in [
            (
                "OpenAI, plain",
                r#"{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29}"#,
                Some([19, 0, 0, 0, 10, 0]),
            ),
            (
                "OpenAI: cached within the prompt, thinking within the completion",
                r#"{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":192,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}"#,
                Some([86, 1920, 0, 0, 108, 192]),
            ),
            (
                "DeepSeek: hits and misses",
                r#"{"prompt_tokens":100,"completion_tokens":40,"total_tokens":140,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36,"completion_tokens_details":{"reasoning_tokens":30}}"#,
                Some([36, 64, 0, 0, 10, 30]),
            ),
            (
                "DeepSeek: hits told twice are counted once",
                r#"{"prompt_tokens":100,"completion_tokens":40,"total_tokens":140,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36,"prompt_tokens_details":{"cached_tokens":64}}"#,
                Some([36, 64, 0, 0, 40, 0]),
            ),
            (
                "zeros under one name, and the count under another",
                r#"{"prompt_tokens":100,"completion_tokens":40,"prompt_cache_hit_tokens":64,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0},"reasoning_tokens":20}"#,
                Some([36, 64, 0, 0, 20, 20]),
            ),
            (
                "xAI: thinking beside the completion",
                r#"{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"prompt_tokens_details":{"cached_tokens":6},"completion_tokens_details":{"reasoning_tokens":94}}"#,
                Some([26, 6, 0, 0, 9, 94]),
            ),
            (
                "Perplexity: pages that were read, and thinking, beside all else and the total",
                r#"{"prompt_tokens":33,"completion_tokens":7163,"total_tokens":7196,"citation_tokens":20016,"num_search_queries":21,"reasoning_tokens":73997}"#,
                Some([20049, 0, 0, 0, 7163, 73997]),
            ),
            (
                "Perplexity: the same within the total",
                r#"{"prompt_tokens":500,"completion_tokens":200,"total_tokens":950,"citation_tokens":100,"reasoning_tokens":150}"#,
                Some([600, 0, 0, 0, 200, 150]),
            ),
            (
                "Gemini: thinking told by the total alone",
                r#"{"prompt_tokens":10,"completion_tokens":20,"total_tokens":530}"#,
                Some([10, 0, 0, 0, 20, 500]),
            ),
        ] {
            assert_eq!(chat_of(told), kinds, "{who}");
        }
    }

    /// Cache writes, parts beside the whole, and what cannot be believed.
    #[test]
    fn what_lies_within_what_follows_from_the_sums() {
        for (who, told, kinds) in [
            (
                "OpenRouter: writes within the prompt",
                r#"{"prompt_tokens":1000,"completion_tokens":5,"total_tokens":1005,"prompt_tokens_details":{"cached_tokens":300,"cache_write_tokens":600},"cost":0.0012}"#,
                Some([100, 300, 600, 0, 5, 0]),
            ),
            (
                "LiteLLM: Anthropic's own names beside the chat shape's",
                r#"{"prompt_tokens":1000,"completion_tokens":5,"total_tokens":1005,"cache_read_input_tokens":300,"cache_creation_input_tokens":600,"prompt_tokens_details":{"cached_tokens":300},"cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":400}}"#,
                Some([100, 300, 200, 400, 5, 0]),
            ),
            (
                "cached beside the prompt, as the total says",
                r#"{"prompt_tokens":50,"completion_tokens":5,"total_tokens":355,"cache_read_input_tokens":300}"#,
                Some([50, 300, 0, 0, 5, 0]),
            ),
            (
                "cached beside the prompt, as more than the prompt",
                r#"{"prompt_tokens":50,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":300}}"#,
                Some([50, 300, 0, 0, 5, 0]),
            ),
            (
                "thinking of more than the completion lies beside it",
                r#"{"prompt_tokens":5,"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":90}}"#,
                Some([5, 0, 0, 0, 3, 90]),
            ),
            (
                "all of the completion is thinking",
                r#"{"prompt_tokens":5,"completion_tokens":90,"total_tokens":95,"completion_tokens_details":{"reasoning_tokens":90}}"#,
                Some([5, 0, 0, 0, 0, 90]),
            ),
            ("floats", r#"{"prompt_tokens":5.0,"completion_tokens":3.5,"total_tokens":9}"#, Some([5, 0, 0, 0, 4, 0])),
            (
                "null details",
                r#"{"prompt_tokens":5,"completion_tokens":3,"prompt_tokens_details":null}"#,
                Some([5, 0, 0, 0, 3, 0]),
            ),
            ("zero beside text", r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#, None),
            ("no output beside text", r#"{"prompt_tokens":12,"completion_tokens":0,"total_tokens":12}"#, None),
            ("half of it", r#"{"prompt_tokens":12}"#, None),
            ("negative", r#"{"prompt_tokens":-1,"completion_tokens":5}"#, None),
            ("absurd", r#"{"prompt_tokens":12,"completion_tokens":99999999999999999999}"#, None),
            ("absurd but fitting", r#"{"prompt_tokens":9223372036854775807,"completion_tokens":5}"#, None),
            ("texts", r#"{"prompt_tokens":"12","completion_tokens":"5"}"#, None),
            ("nothing", "{}", None),
            ("a list", "[]", None),
        ] {
            assert_eq!(chat_of(told), kinds, "{who}");
        }
    }

    /// A side that is told counts beside one that is not; what the total has more is output where a prompt is told.
    #[test]
    fn each_side_is_told_alone() {
        for (told, reported) in [
            (r#"{"completion_tokens":500}"#, Some([0, 0, 0, 0, 500, 0])),
            (r#"{"completion_tokens":500,"total_tokens":520}"#, Some([0, 0, 0, 0, 500, 0])),
            (
                r#"{"prompt_tokens":0,"completion_tokens":500,"completion_tokens_details":{"reasoning_tokens":490}}"#,
                Some([0, 0, 0, 0, 10, 490]),
            ),
            (r#"{"prompt_tokens":12}"#, Some([12, 0, 0, 0, 0, 0])),
            (r#"{"prompt_tokens":20,"completion_tokens":0,"total_tokens":520}"#, Some([20, 0, 0, 0, 500, 0])),
            (r#"{"total_tokens":520}"#, None),
        ] {
            let tape = Tape::of(told).unwrap();
            assert_eq!(kinds(chat(tape.root(told))), reported, "{told}");
            assert_eq!(chat_of(told), reported.filter(|it| it[0] > 0 && it[4] > 0), "{told}");
        }
        for told in [r#"{"output_tokens":500}"#, r#"{"input_tokens":0,"output_tokens":500}"#] {
            let tape = Tape::of(told).unwrap();
            let mut sum = Told::default();
            sum.add(tape.root(told));
            assert_eq!(kinds(sum.whole()), Some([0, 0, 0, 0, 500, 0]), "{told}");
            assert_eq!(messages_of(&[told]), None, "{told}");
        }
        let (first, last) = (Usage { input: 7, ..Usage::default() }, Usage { output: 9, ..Usage::default() });
        assert_eq!(kinds(later(Some(last), Some(first))), Some([7, 0, 0, 0, 9, 0]));
    }

    /// Of a stream the last word holds: where tokens have gone from one kind to another they count once, and zeros alone take nothing back.
    #[test]
    fn a_stream_of_the_messages_shape_is_read_to_its_end() {
        for (who, told, kinds) in [
            (
                "a stream: the last output holds, the input of its start stays",
                &[r#"{"input_tokens":472,"output_tokens":2}"#, r#"{"output_tokens":89}"#],
                Some([472, 0, 0, 0, 89, 0]),
            ),
            (
                "a stream that tells its input at the end",
                &[
                    r#"{"input_tokens":0,"output_tokens":0}"#,
                    r#"{"input_tokens":12,"cache_read_input_tokens":4,"output_tokens":89}"#,
                ],
                Some([12, 4, 0, 0, 89, 0]),
            ),
            (
                "a stream that ends with zeros",
                &[
                    r#"{"input_tokens":12,"cache_read_input_tokens":4,"output_tokens":1}"#,
                    r#"{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":89}"#,
                ],
                Some([12, 4, 0, 0, 89, 0]),
            ),
            (
                "a stream whose input was read from a cache after all",
                &[
                    r#"{"input_tokens":100,"output_tokens":1}"#,
                    r#"{"input_tokens":0,"cache_read_input_tokens":100,"output_tokens":89}"#,
                ],
                Some([0, 100, 0, 0, 89, 0]),
            ),
            (
                "a stream whose cache had nothing after all",
                &[
                    r#"{"input_tokens":40,"cache_read_input_tokens":60,"output_tokens":1}"#,
                    r#"{"input_tokens":100,"cache_read_input_tokens":0,"output_tokens":89}"#,
                ],
                Some([100, 0, 0, 0, 89, 0]),
            ),
            (
                "a stream that ends with zeros beside some of its input",
                &[
                    r#"{"input_tokens":12,"cache_read_input_tokens":4000,"output_tokens":1}"#,
                    r#"{"input_tokens":12,"cache_read_input_tokens":0,"output_tokens":89}"#,
                ],
                Some([12, 4000, 0, 0, 89, 0]),
            ),
        ] {
            assert_eq!(messages_of(told), kinds, "{who}");
        }
    }

    /// Input excludes what was read from a cache or written to it; later counts hold.
    #[test]
    fn the_messages_shape_is_read_as_each_provider_means_it() {
        for (who, told, kinds) in [
            ("plain", &[r#"{"input_tokens":25,"output_tokens":15}"#][..], Some([25, 0, 0, 0, 15, 0])),
            (
                "Anthropic: cache read and written beside the input",
                &[
                    r#"{"input_tokens":21,"cache_creation_input_tokens":188086,"cache_read_input_tokens":40,"cache_creation":{"ephemeral_5m_input_tokens":188000,"ephemeral_1h_input_tokens":86},"output_tokens":393}"#,
                ],
                Some([21, 40, 188_000, 86, 393, 0]),
            ),
            (
                "writes without their kind are for five minutes",
                &[r#"{"input_tokens":21,"cache_creation_input_tokens":10,"output_tokens":3}"#],
                Some([21, 0, 10, 0, 3, 0]),
            ),
            (
                "kinds without their sum",
                &[r#"{"input_tokens":21,"cache_creation":{"ephemeral_1h_input_tokens":7},"output_tokens":3}"#],
                Some([21, 0, 0, 7, 3, 0]),
            ),
            (
                "all from a cache",
                &[r#"{"input_tokens":0,"cache_read_input_tokens":4,"output_tokens":89}"#],
                Some([0, 4, 0, 0, 89, 0]),
            ),
            (
                "thinking within the output",
                &[r#"{"input_tokens":1,"output_tokens":89,"output_tokens_details":{"thinking_tokens":80}}"#],
                Some([1, 0, 0, 0, 9, 80]),
            ),
            ("zero", &[r#"{"input_tokens":0,"output_tokens":0}"#], None),
            ("no output beside text", &[r#"{"input_tokens":9,"output_tokens":0}"#], None),
            ("nothing", &["{}"], None),
        ] {
            assert_eq!(messages_of(told), kinds, "{who}");
        }
    }

    /// Summing up a conversation is told beside all else, as a whole each time; what sampling took is within the sums.
    #[test]
    fn summing_up_is_told_beside_all_else() {
        for (who, told, kinds) in [
            (
                "once, and then sampled",
                &[
                    r#"{"input_tokens":23000,"output_tokens":1000,"iterations":[{"type":"compaction","input_tokens":180000,"cache_read_input_tokens":7,"cache_creation_input_tokens":5,"output_tokens":3500},{"type":"message","input_tokens":23000,"output_tokens":1000}]}"#,
                ][..],
                Some([203_000, 7, 5, 0, 4_500, 0]),
            ),
            (
                "twice, told again and again",
                &[
                    r#"{"input_tokens":9,"output_tokens":1,"iterations":[{"type":"compaction","input_tokens":100,"output_tokens":10}]}"#,
                    r#"{"output_tokens":89,"iterations":[{"type":"compaction","input_tokens":100,"output_tokens":10},{"type":"compaction","input_tokens":200,"output_tokens":20}]}"#,
                    r#"{"output_tokens":90,"iterations":null}"#,
                ],
                Some([309, 0, 0, 0, 120, 0]),
            ),
            (
                "nothing else",
                &[
                    r#"{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":100,"output_tokens":10}]}"#,
                ],
                Some([100, 0, 0, 0, 10, 0]),
            ),
        ] {
            assert_eq!(messages_of(told), kinds, "{who}");
        }
    }

    /// What is written in either shape is read as the same again.
    #[test]
    fn usage_survives_both_shapes() {
        let usage = Usage {
            input: 7,
            cached_input: 11,
            cache_write: 13,
            cache_write_long: 17,
            output: 19,
            reasoning: 23,
            estimated: false,
        };
        let mut out = Out::default();
        write_messages(&mut out, &usage);
        let text = String::from_utf8(out.into_bytes()).unwrap();
        assert_eq!(messages_of(&[&text]), Some([7, 11, 13, 17, 19, 23]));
        let mut out = Out::default();
        write_chat(&mut out, &usage);
        let text = String::from_utf8(out.into_bytes()).unwrap();
        assert_eq!(chat_of(&text), Some([7, 11, 30, 0, 19, 23]));
    }
}
