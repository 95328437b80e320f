//! The coding clients that have a hook before and after a tool, and how they differ.

use clap::ValueEnum;
use svc_core::value::json::Json;

/// A coding client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Code
    ClaudeCode,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
}

impl Client {
    /// All of them, in the order in which they are listed.
    pub(crate) const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::Cursor, Self::Gemini];

    /// As the command line and the settings name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
        }
    }

    /// Whose input this is: names of events and members that one of them alone has.
    pub(crate) fn of(input: &Json) -> Option<Self> {
        let has = |name: &str| input.get(name).is_some();
        match input.get("hook_event_name").and_then(Json::as_str)? {
            "BeforeTool" | "AfterTool" => Some(Self::Gemini),
            "PreToolUse" | "PostToolUse" if has("turn_id") || has("model") => Some(Self::Codex),
            "PreToolUse" | "PostToolUse" | "PostToolUseFailure" => Some(Self::ClaudeCode),
            _ if has("conversation_id") => Some(Self::Cursor),
            _ => None,
        }
    }
}
