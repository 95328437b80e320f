//! What the results of tools bring into a context.

use crate::state::gateway::routing::{Routing, ToolRule};
use crate::value::glob;
use crate::value::likeness::composed;
use crate::value::tool_name::{ends, known_by};

/// What tools bring in where a workspace has no table of its own, the first that covers a name: folded globs and sources
/// (CONTRACT part 2, "Routing"). No tool of it is a sink. What counts as a file is more trusted than what another server says, so
/// those rules begin where a name begins, behind the one for mail: neither an MCP server's tool nor what searches mail counts as a file.
const DEFAULT: [(&str, &str); 31] = [
    ("*webfetch*", "web"),
    ("*websearch*", "web"),
    ("fetch*", "web"),
    ("*fetchurl*", "web"),
    ("*browse*", "web"),
    ("*googlesearch*", "web"),
    ("*internetsearch*", "web"),
    ("*searchweb*", "web"),
    ("search", "web"),
    ("searchresult", "search"),
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
    /// in lower case without `_` and `-`, and of those like `mcp__server__tool` server and tool each for itself; what no rule covers is
    /// `tool`. Where a server's name may have `__` in it as well, a rule for a sink covers whatever it might be for.
    #[must_use]
    pub fn meaning_of(&self, tool: &str) -> ToolMeaning<'_> {
        let name = Folded::of(tool);
        let other = ToolMeaning { source: OTHER, sink: false };
        match &self.tools {
            Some(table) => {
                let rule = table.iter().find(|it| {
                    let glob = Folded::of(&it.tool);
                    glob.covers(&name) || (it.sink && glob.may_cover(&name))
                });
                rule.map_or(other, |it| ToolMeaning { source: it.source.as_str(), sink: it.sink })
            }
            None => {
                let rule = DEFAULT.iter().find(|(glob, _)| glob::covers_text(glob, &name.whole));
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
        let name = Shortened::of(head, tail);
        for rule in self.tools.iter().flatten() {
            let glob = Folded::of(&rule.tool);
            let is_named = !rule.tool.contains('*') && known_by(&rule.tool) == known;
            if is_named || name.is_covered_by(&glob) {
                return rule.sink;
            }
            if rule.sink && glob.may_cover(&name.name) {
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

/// A name or a glob as it is compared.
struct Folded {
    whole: String,
    /// Whether it is an MCP server's.
    is_servers: bool,
    /// Where the name of an MCP server may end and that of its tool begin, the first of them as clients mean it: neither runs on into
    /// the other.
    borders: Vec<usize>,
}

impl Folded {
    fn of(text: &str) -> Self {
        let text = &*composed(text);
        let Some(rest) = behind_mcp(text) else {
            return Self { whole: folded(text), is_servers: false, borders: Vec::new() };
        };
        let (mut whole, mut borders) = (MCP.to_owned(), Vec::new());
        for (at, sign) in rest.char_indices() {
            let is_border = rest.get(at..).is_some_and(|it| it.starts_with(BORDER));
            if is_border && borders.last() != Some(&whole.len()) {
                borders.push(whole.len());
            }
            whole.extend(counted(sign));
        }
        Self { whole, is_servers: true, borders }
    }

    /// The server and the tool, where that is the border between them.
    fn parts(&self, border: usize) -> Option<[&str; 2]> {
        Some([self.whole.get(MCP.len()..border)?, self.whole.get(border..)?])
    }

    /// Whether this glob covers a name.
    fn covers(&self, name: &Self) -> bool {
        self.covers_at(name, name.borders.first())
    }

    /// The same where the name's border is known, or that it has none.
    fn covers_at(&self, name: &Self, border: Option<&usize>) -> bool {
        let globs = self.borders.first().and_then(|it| self.parts(*it));
        match (globs, border.and_then(|it| name.parts(*it))) {
            (Some(globs), Some(names)) => globs.iter().zip(names).all(|(glob, name)| glob::covers_text(glob, name)),
            _ => glob::covers_text(&self.whole, &name.whole),
        }
    }

    /// Whether it covers a name wherever server and tool are told apart in both, or some name that this one may stand for.
    fn may_cover(&self, name: &Self) -> bool {
        // The border may be in what is left out, which both sides have then a part of.
        let hidden = name.whole.find(LEFT_OUT).filter(|_| name.is_servers).and_then(|at| {
            let behind = at.saturating_add(LEFT_OUT.len_utf8());
            Some([name.whole.get(MCP.len()..behind)?, name.whole.get(at..)?])
        });
        let names: Vec<[&str; 2]> = name.borders.iter().filter_map(|it| name.parts(*it)).chain(hidden).collect();
        if self.borders.is_empty() || names.is_empty() {
            return may_be(&self.whole, &name.whole);
        }
        let mut globs = self.borders.iter().filter_map(|it| self.parts(*it));
        globs.any(|[of_server, of_tool]| {
            names.iter().any(|[server, tool]| may_be(of_server, server) && may_be(of_tool, tool))
        })
    }
}

/// Whether a glob covers a text, or some text that this one may stand for.
fn may_be(glob: &str, text: &str) -> bool {
    match text.split_once(LEFT_OUT) {
        None => glob::covers_text(glob, text),
        Some((head, tail)) if glob.contains('*') => glob::may_cover(glob, head, tail),
        Some((head, tail)) => glob.strip_prefix(head).is_some_and(|it| it.ends_with(tail)),
    }
}

/// A name of which the middle is left out, as it is compared.
struct Shortened {
    /// It with a sign in the place of what is left out that no rule can name: only a star covers it.
    name: Folded,
    /// Where the server's name ends, where that stands before what is left out.
    border: Option<usize>,
    /// Whether it is a server's tool, and nobody knows where the server's name ends.
    is_open: bool,
}

impl Shortened {
    fn of(head: &str, tail: &str) -> Self {
        let name = Folded::of(&format!("{head}{LEFT_OUT}{tail}"));
        let left_out = name.whole.find(LEFT_OUT);
        let border = name.borders.first().copied().filter(|it| left_out.is_some_and(|at| *it <= at));
        Self { is_open: border.is_none() && name.is_servers, name, border }
    }

    /// Whether the glob covers every name that begins and ends like this.
    fn is_covered_by(&self, glob: &Folded) -> bool {
        (!self.is_open || glob.borders.is_empty()) && glob.covers_at(&self.name, self.border.as_ref())
    }
}

/// What stands in the place of what is left out.
const LEFT_OUT: char = '\0';
/// What stands behind the server's name, and before it.
const BORDER: &str = "__";
/// What stands first in the name of a server's tool.
const MCP: &str = "mcp";

/// What stands behind `mcp__`.
fn behind_mcp(name: &str) -> Option<&str> {
    name.split_once(BORDER).filter(|(first, _)| first.eq_ignore_ascii_case(MCP)).map(|(_, rest)| rest)
}

/// A name without what does not count.
fn folded(name: &str) -> String {
    name.chars().flat_map(counted).collect()
}

/// What counts of a sign.
fn counted(sign: char) -> impl Iterator<Item = char> {
    let counts = !matches!(sign, '_' | '-');
    sign.to_lowercase().filter(move |_| counts)
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
        // Whichever way an accent is written, it is the same name.
        let writings = ["caf\u{e9}", "cafe\u{301}"];
        for (glob, tool) in [(writings[0], writings[1]), (writings[1], writings[0])] {
            routing.tools = Some(vec![rule(&format!("{glob}*"), "api", true)]);
            assert_eq!(
                routing.meaning_of(&format!("{tool}_open")),
                ToolMeaning { source: "api", sink: true },
                "{glob}"
            );
            assert_eq!(routing.meaning_of("cafe_open"), ToolMeaning { source: "tool", sink: false }, "{glob}");
        }
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
            (&[(&whole.replace('_', "-").replace("mcp--bank--", "MCP__Bank__"), true)], true),
            (&[(&whole.replace("now", "later"), true)], false),
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
        assert!(
            is_sink(&[("mcp__bank__pay", true)], Some("bank"), "pay") && is_sink(&[("pay", true)], Some("bank"), "pay")
        );
        assert!(!is_sink(&[("mcp__bank__pay", true)], None, "pay"));
    }

    /// A rule for the tools of one server covers those of no other, whose name begins like it or ends where a tool's begins.
    #[test]
    fn a_rule_for_one_server_is_none_for_another() {
        for (glob, tool, covered) in [
            ("mcp__crm__*", "mcp__crm__read", true),
            ("mcp__crm__*", "mcp__crm-public__read", false),
            ("mcp__crm__*", "mcp__crmread__", false),
            ("mcp__a-b__c", "mcp__a__b_c", false),
            ("mcp__a__b__c", "mcp__a__b_c", true),
            ("MCP__Crm-Public__Read_*", "mcp__crm_public__read-one", true),
            ("mcp__crm*__read", "mcp__crm-public__read", true),
            ("mcp__crm*__read", "mcp__crm__x_read", false),
            ("mcp__*__read", "mcp__crm__read", true),
            ("mcp__*__*", "mcp__crm__read", true),
            ("mcp__crm*", "mcp__crm-public__read", true),
            ("mcp__crm_*", "mcp__crm-public__read", true),
            ("mcp*read", "mcp__crm__read", true),
            ("*crm__read", "mcp__crm__read", true),
            ("mcp__crm__*", "mcp_crm_read", true),
            ("crm__*", "crm_public__read", true),
        ] {
            let mut routing = routing();
            let source = Source::parse("web").unwrap();
            routing.tools = Some(vec![ToolRule { tool: glob.into(), source, sink: true }]);
            assert_eq!(routing.meaning_of(tool).sink, covered, "{glob} {tool}");
        }
    }

    /// Where the name of a server may hold `__`, a rule for a sink means it however that is told apart; one that is none means what
    /// clients mean.
    #[test]
    fn no_border_leads_past_a_sink() {
        let source = Source::parse("web").unwrap();
        let rule = |tool: &str, sink| ToolRule { tool: tool.into(), source: source.clone(), sink };
        for (glob, tool, covered) in [
            ("mcp__foo_bar__*", "mcp__foo__bar___pay", true),
            ("mcp__*__delete", "mcp__a__b__delete", true),
            ("mcp__a_b__delete", "mcp__a__b__delete", true),
            ("mcp__a__b__delete", "mcp__a_b__delete", true),
            ("mcp__a__*", "mcp__a__b__delete", true),
            ("mcp__ab__delete", "mcp__a__delete", false),
            ("mcp__a_b__*", "mcp__a-b-c__delete", false),
        ] {
            let mut routing = routing();
            routing.tools = Some(vec![rule(glob, true)]);
            assert_eq!(routing.is_sink(None, tool), covered, "{glob} {tool}");
        }
        for (exempt, sink) in [("mcp__a__*", false), ("mcp__a_b__*", true)] {
            let mut routing = routing();
            routing.tools = Some(vec![rule(exempt, false), rule("*", true)]);
            assert_eq!(routing.is_sink(None, "mcp__a__b__delete"), sink, "{exempt}");
        }
    }

    /// The same of names of which the middle is left out: where the server's name ends before that, no rule for another may mark
    /// them; where nobody knows where it ends, whatever might does.
    #[test]
    fn a_shortened_name_is_its_own_servers() {
        let is_sink = |rules: &[(&str, bool)], name: &str| {
            let source = Source::parse("tool").unwrap();
            let rule =
                |(tool, sink): &(&str, bool)| ToolRule { tool: (*tool).into(), source: source.clone(), sink: *sink };
            let mut routing = routing();
            routing.tools = Some(rules.iter().map(rule).collect());
            routing.is_sink(None, &known_by(name))
        };
        let long = format!("mcp__crm-public__read_{}_now", "p".repeat(100));
        let of_all = format!("mcp__*__read_{}_now", "p".repeat(100));
        for (rules, sink) in [
            (&[("mcp__crm__*", true)][..], false),
            (&[("mcp__crm__*p_now", true)], false),
            (&[("mcp__crm-public__*", true)], true),
            (&[("mcp__crm_public__read*ppqpp*", true)], true),
            (&[("mcp__crm-public__*", false), ("*ppqpp*", true)], false),
            (&[("mcp__crm__*", false), ("*ppqpp*", true)], true),
            (&[("mcp__crm-public__write*", true)], false),
            (&[("mcp__crm*", true)], true),
            (&[(&of_all, true)], true),
            (&[(&long.replace("read", "write"), true)], false),
        ] {
            assert_eq!(is_sink(rules, &long), sink, "{rules:?}");
        }
        let plain = format!("mcp_crm_read_{}_now", "p".repeat(100));
        for (rules, sink) in [(&[("mcp__crm__*", true)][..], true), (&[("mcp__erp__*", true)], false)] {
            assert_eq!(is_sink(rules, &plain), sink, "{rules:?}");
        }
        let open = format!("mcp__{}__read", "s".repeat(100));
        for (rules, sink) in [
            (&[("mcp__s*__read", true)][..], true),
            (&[("mcp__s*__*", false), ("*__read", true)], true),
            (&[("mcp__s*", false), ("*__read", true)], false),
            (&[("mcp__crm__*", true)], false),
        ] {
            assert_eq!(is_sink(rules, &open), sink, "{rules:?}");
        }
    }

    /// Every row of the default table is written folded.
    #[test]
    fn the_default_table_is_folded() {
        for (tool, _, _) in routing().tool_table() {
            assert_eq!(folded(tool), tool);
        }
    }
}
