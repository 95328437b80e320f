//! Why a model stopped, in both shapes' words.

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
        match word {
            "length" | "max_tokens" | "model_length" => Self::Length,
            "tool_calls" | "function_call" | "tool_use" => Self::ToolCalls,
            "content_filter" | "refusal" | "safety" => Self::Refusal,
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
