//! What the results of tools bring into a context.

use crate::state::gateway::routing::{Routing, ToolRule};
use crate::value::glob;
use crate::value::tool_name::{ends, known_by};

/// What tools bring in where a workspace has no table of its own, the first that covers a name: folded globs and sources
/// (CONTRACT part 2, "Routing"). No tool of it is a sink. What counts as a file is more trusted than what another server says, so
/// those rules begin where a name begins, behind the one for mail: neither an MCP server's tool nor what searches mail counts as a file.
const DEFAULT: [(&str, &str); 30] = [
    ("*webfetch*", "web"),
    ("*websearch*", "web"),
    ("fetch*", "web"),
    ("*fetchurl*", "web"),
    ("*browse*", "web"),
    ("*googlesearch*", "web"),
    ("*internetsearch*", "web"),
    ("*searchweb*", "web"),
    ("search", "web"),
    ("*httpget*", "web"),
    ("*httprequest*", "web"),
    ("*bash*", "tool_result"),
    ("*shell*", "tool_result"),
    ("*terminal*", "tool_result"),
    ("*runcommand*", "tool_result"),
    ("exec*", "tool_result"),
    ("*mail*", "email"),
    ("read", "file"),
    ("readfile*", "file"),
    ("readmany*", "file"),
    ("viewfile*", "file"),
    ("view", "file"),
    ("notebookread", "file"),
    ("grep*", "file"),
    ("ripgrep", "file"),
    ("glob", "file"),
    ("ls", "file"),
    ("listdir*", "file"),
    ("searchfile*", "file"),
    ("mcp*", "mcp"),
];

/// What any other tool brings in.
const OTHER: &str = "tool";

/// What one tool's results count as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolMeaning<'a> {
    /// The source.
    pub source: &'a str,
    /// Whether an action that calls it is a sink.
    pub sink: bool,
}

/// What the table calls a tool of an MCP server, as coding clients do.
#[must_use]
pub fn name_of_mcp_tool(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// Whether this is the table that is in force where a workspace has none of its own, with its last row for all others.
#[must_use]
pub fn is_default_table(table: &[ToolRule]) -> bool {
    default_table().eq(table.iter().map(row))
}

fn default_table<'a>() -> impl Iterator<Item = (&'a str, &'a str, bool)> {
    let rows: [(&'a str, &'a str); DEFAULT.len()] = DEFAULT;
    rows.into_iter().chain([("*", OTHER)]).map(|(tool, source)| (tool, source, false))
}

impl Routing {
    /// What a tool's results count as, by the first rule of the table that covers its name. Names and globs are compared
    /// in lower case without `_` and `-`; what no rule covers is `tool`.
    #[must_use]
    pub fn meaning_of(&self, tool: &str) -> ToolMeaning<'_> {
        let name = folded(tool);
        let other = ToolMeaning { source: OTHER, sink: false };
        match &self.tools {
            Some(table) => {
                let rule = table.iter().find(|it| glob::covers_text(&folded(&it.tool), &name));
                rule.map_or(other, |it| ToolMeaning { source: it.source.as_str(), sink: it.sink })
            }
            None => {
                let rule = DEFAULT.iter().find(|(glob, _)| glob::covers_text(glob, &name));
                rule.map_or(other, |(_, source)| ToolMeaning { source, sink: false })
            }
        }
    }

    /// Whether the table marks a tool as a sink, by its own name or, where it is a server's, by the name that its results are noted
    /// under. A name that stands for a longer one ([`known_by`]) is a sink also where a rule might mark it by what is left out, unless
    /// a rule before that covers it for certain: no length leads past the table.
    #[must_use]
    pub fn is_sink(&self, server: Option<&str>, tool: &str) -> bool {
        let of_server = |name: &str| server.map(|it| name_of_mcp_tool(it, name));
        let Some((head, tail)) = ends(tool) else {
            let marks = |name: &str| self.meaning_of(name).sink;
            return marks(tool) || of_server(tool).is_some_and(|it| marks(&it));
        };
        let of_server_marks = || of_server(head).is_some_and(|it| self.may_mark(&it, tail, tool));
        self.may_mark(head, tail, tool) || of_server_marks()
    }

    /// Whether some name that begins and ends like this, and is known by `known`, may be a sink.
    fn may_mark(&self, head: &str, tail: &str, known: &str) -> bool {
        let (head, tail) = (folded(head), folded(tail));
        // What is left out has no sign that a rule could name: only a star covers it.
        let left_out = format!("{head}\0{tail}");
        for rule in self.tools.iter().flatten() {
            let glob = folded(&rule.tool);
            let is_named = !glob.contains('*') && known_by(&rule.tool) == known;
            if is_named || glob::covers_text(&glob, &left_out) {
                return rule.sink;
            }
            if rule.sink && glob::may_cover(&glob, &head, &tail) {
                return true;
            }
        }
        false
    }

    /// The table in force: the workspace's own, else the default one with its last row for all others.
    pub fn tool_table(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        let own = self.tools.iter().flatten().map(row);
        own.chain(default_table().filter(|_| self.tools.is_none()))
    }
}

fn row(rule: &ToolRule) -> (&str, &str, bool) {
    (&rule.tool, rule.source.as_str(), rule.sink)
}

/// A name as it is compared.
fn folded(name: &str) -> String {
    name.chars().filter(|it| !matches!(it, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::value::id::WorkspaceId;
    use crate::value::text::Source;

    fn routing() -> Routing {
        Routing::new(WorkspaceId::parse("wsp_01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap())
    }

    /// What coding clients and frameworks call their tools finds its source, however it is written.
    #[test]
    fn tools_of_the_clients_have_their_sources() {
        let routing = routing();
        for (tool, source) in [
            ("WebFetch", "web"),
            ("web_search", "web"),
            ("fetch", "web"),
            ("Bash", "tool_result"),
            ("local_shell", "tool_result"),
            ("run_terminal_cmd", "tool_result"),
            ("exec_command", "tool_result"),
            ("Read", "file"),
            ("read_file", "file"),
            ("Grep", "file"),
            ("grep_search", "file"),
            ("gmail_read", "email"),
            ("read-mail", "email"),
            ("grep_emails", "email"),
            ("search_files_in_gmail", "email"),
            ("search_web", "web"),
            ("http_get", "web"),
            ("mcp__brave__web_search", "web"),
            ("MCP__mail__send", "email"),
            ("mcp__github__fetch", "mcp"),
            ("mcp__files__read_file", "mcp"),
            ("mcp__files__list_dir", "mcp"),
            ("mcp__files__grep", "mcp"),
            ("crm_lookup", "tool"),
            ("", "tool"),
        ] {
            assert_eq!(routing.meaning_of(tool), ToolMeaning { source, sink: false }, "{tool}");
        }
    }

    /// A table of one's own stands alone: its first rule wins, and names are folded on both sides.
    #[test]
    fn an_own_table_replaces_the_default() {
        let rule = |tool: &str, source: &str, sink| ToolRule {
            tool: tool.into(),
            source: Source::parse(source).unwrap(),
            sink,
        };
        let mut routing = routing();
        routing.tools = Some(vec![rule("Wire_Transfer*", "api", true), rule("*transfer*", "document", false)]);
        assert_eq!(routing.meaning_of("wire-transfer_now"), ToolMeaning { source: "api", sink: true });
        assert_eq!(routing.meaning_of("transfer"), ToolMeaning { source: "document", sink: false });
        assert_eq!(routing.meaning_of("WebFetch"), ToolMeaning { source: "tool", sink: false });
        assert_eq!(routing.tool_table().count(), 2);
    }

    /// A name of which the middle is left out is a sink where a rule might mark it, and is none where a rule before that covers all names
    /// with its ends, or has it whole.
    #[test]
    fn no_length_of_a_name_leads_past_a_sink() {
        let middle = format!("{}wire_money{}", "p".repeat(60), "q".repeat(60));
        let whole = format!("mcp__bank__{middle}_now");
        let (known, of_server) = (known_by(&whole), known_by(&middle));
        let is_sink = |rules: &[(&str, bool)], server, tool: &str| {
            let rule = |(tool, sink): &(&str, bool)| ToolRule {
                tool: (*tool).into(),
                source: Source::parse("tool").unwrap(),
                sink: *sink,
            };
            let mut routing = routing();
            routing.tools = Some(rules.iter().map(rule).collect());
            routing.is_sink(server, tool)
        };
        for (rules, sink) in [
            (&[("*Wire-Money*", true), ("*", false)][..], true),
            (&[("mcp__bank__*", true)], true),
            (&[("mcp__bank__*money*", true)], true),
            (&[(&whole, true), ("*", false)], true),
            (&[("*_now", true)], true),
            (&[("mcp__bank__*", false), ("*money*", true)], false),
            (&[(&whole, false), ("*money*", true)], false),
            (&[("*money*", false), ("*", true)], true),
            (&[("mcp__crm__*", true), ("*_later", true), ("WebFetch", true)], false),
            (&[], false),
        ] {
            assert_eq!(is_sink(rules, None, &known), sink, "{rules:?}");
        }
        assert!(is_sink(&[("mcp__bank__*money*", true)], Some("bank"), &of_server));
        assert!(is_sink(&[("*money*", true)], Some("bank"), &of_server));
        assert!(!is_sink(&[("mcp__crm__*", true)], Some("bank"), &of_server));
        assert!(is_sink(&[("mcp__bank__pay", true)], Some("bank"), "pay") && is_sink(&[("pay", true)], Some("bank"), "pay"));
        assert!(!is_sink(&[("mcp__bank__pay", true)], None, "pay"));
    }

    /// Every row of the default table is written folded.
    #[test]
    fn the_default_table_is_folded() {
        for (tool, _, _) in routing().tool_table() {
            assert_eq!(folded(tool), tool);
        }
    }
}
