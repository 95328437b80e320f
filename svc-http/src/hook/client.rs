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

    /// Who says this, whomever the command line names: Cursor runs the hooks that stand in Claude Code's settings as well, says what it
    /// says to its own, and reads its own answers.
    pub(crate) fn beyond_doubt(input: &Json) -> Option<Self> {
        let is_its_own = |name: &str| name.starts_with(|it: char| it.is_ascii_lowercase());
        let says_so = input.get("cursor_version").and_then(Json::as_str).is_some();
        (says_so && event_name(input).is_some_and(is_its_own)).then_some(Self::Cursor)
    }

    /// Whose input this is: names of events and members that one of them alone has.
    pub(crate) fn of(input: &Json) -> Option<Self> {
        let has = |name: &str| input.get(name).is_some();
        match event_name(input)? {
            "BeforeTool" | "AfterTool" => Some(Self::Gemini),
            "PreToolUse" | "PostToolUse" if has("turn_id") || has("model") => Some(Self::Codex),
            "PreToolUse" | "PostToolUse" | "PostToolUseFailure" => Some(Self::ClaudeCode),
            _ if has("conversation_id") => Some(Self::Cursor),
            _ => None,
        }
    }
}

/// What the event is called. VS Code, which reads Claude Code's settings too, has had other names for members that Claude Code has.
pub(crate) fn event_name(input: &Json) -> Option<&str> {
    ["hook_event_name", "hookEventName"].into_iter().find_map(|it| input.get(it)).and_then(Json::as_str)
}
