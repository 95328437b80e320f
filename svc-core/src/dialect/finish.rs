//! Why a model stopped, in both shapes' words.

use super::write::Out;

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// It was done.
    Stop,
    /// It came to a text at which it was to stop.
    StopSequence,
    /// It reached a bound on its output or its context.
    Length,
    /// It waits for tools.
    ToolCalls,
    /// The provider or the model refused to go on.
    Refusal,
    /// A turn of tools that the provider runs was interrupted, to be gone on with.
    Paused,
}

impl Finish {
    /// Reads a `finish_reason`; a word that is not known counts as done.
    pub(super) fn from_chat(word: &str) -> Self {
        match head(word).as_str() {
            "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => Self::Length,
            "tool_calls" | "function_call" | "tool_use" => Self::ToolCalls,
            "content_filter" | "refusal" | "safety" | "image_safety" | "recitation" | "prohibited_content"
            | "blocklist" | "spii" | "sensitive" => Self::Refusal,
            _ => Self::Stop,
        }
    }

    /// Reads a `stop_reason`; a word that is not known counts as done.
    pub(super) fn from_messages(word: &str) -> Self {
        match word {
            "stop_sequence" => Self::StopSequence,
            "max_tokens" | "model_context_window_exceeded" => Self::Length,
            "tool_use" => Self::ToolCalls,
            "refusal" => Self::Refusal,
            "pause_turn" => Self::Paused,
            _ => Self::Stop,
        }
    }

    /// The same beside calls of tools: some providers say that they are done where they wait for them.
    pub(super) const fn beside(self, calls: bool) -> Self {
        match self {
            Self::Stop if calls => Self::ToolCalls,
            other => other,
        }
    }

    /// As a `finish_reason`.
    pub(super) const fn chat(self) -> &'static str {
        match self {
            Self::Stop | Self::StopSequence | Self::Paused => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::Refusal => "content_filter",
        }
    }

    /// Writes `stop_reason` and `stop_sequence` of an answer that was done at this text, where it was done and is known at which.
    pub(super) fn write_messages(self, out: &mut Out, stopped: Option<&str>) {
        let (finish, text) = match (self, stopped) {
            (Self::Stop | Self::StopSequence, Some(text)) => (Self::StopSequence, Some(text)),
            (other, _) => (other, None),
        };
        out.name("stop_reason").text(finish.messages());
        match text {
            Some(text) => out.name("stop_sequence").text(text),
            None => out.name("stop_sequence").null(),
        }
    }

    /// As a `stop_reason`.
    pub(super) const fn messages(self) -> &'static str {
        match self {
            Self::Stop => "end_turn",
            Self::StopSequence => "stop_sequence",
            Self::Length => "max_tokens",
            Self::ToolCalls => "tool_use",
            Self::Refusal => "refusal",
            Self::Paused => "pause_turn",
        }
    }
}

/// Words for the end of an answer that say that the provider has failed, or has made a call that is none.
const FAILED: [&str; 7] = [
    "error",
    "insufficient_system_resource",
    "network_error",
    "abort",
    "function_call_filter",
    "malformed_function_call",
    "unexpected_tool_call",
];

/// Whether a `finish_reason` says that there is no whole answer, and that its provider is why.
pub(super) fn tells_failure(word: &str) -> bool {
    FAILED.contains(&head(word).as_str())
}

/// A `finish_reason` without what some providers put behind it, in small letters, as some write theirs in capitals.
fn head(word: &str) -> String {
    word.split(':').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Providers' own words at an endpoint of the chat shape are read: behind a word of the shape, in capitals, and by themselves.
    #[test]
    fn providers_own_words_are_read() {
        for (word, finish, has_failed) in [
            ("stop", Finish::Stop, false),
            ("STOP", Finish::Stop, false),
            ("eos", Finish::Stop, false),
            ("MAX_TOKENS", Finish::Length, false),
            ("content_filter: PROHIBITED_CONTENT", Finish::Refusal, false),
            ("content_filter: RECITATION", Finish::Refusal, false),
            ("SAFETY", Finish::Refusal, false),
            ("sensitive", Finish::Refusal, false),
            ("function_call_filter: MALFORMED_FUNCTION_CALL", Finish::Stop, true),
            ("MALFORMED_FUNCTION_CALL", Finish::Stop, true),
            ("network_error", Finish::Stop, true),
            ("abort", Finish::Stop, true),
        ] {
            assert_eq!((Finish::from_chat(word), tells_failure(word)), (finish, has_failed), "{word}");
        }
    }
}
