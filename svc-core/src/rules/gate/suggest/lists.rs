//! What the lists of an agent's mandates say of what it asked: they are gone through once for all of it, as they may hold hundreds of
//! thousands of names.
//!
//! **Invariant:** by the mandates that this gives, a decision has the effect that it has by those whose lists are whole.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;
use std::sync::Arc;

use super::asked::Asked;
use crate::rules::gate::evaluate::tool_name;
use crate::state::gate::{Fields, Mandate, Merchants, Terms, Tools};
use crate::value::domain::{Domain, DomainPattern};
use crate::value::glob::ToolGlob;
use crate::value::likeness::composed;
use crate::value::tool_name::known_by;

/// Mandates, and where in their lists stands what may speak of some questions.
#[derive(Debug)]
pub(super) struct Lists<'a> {
    mandates: &'a [Arc<Mandate>],
    /// By each host that was asked about, and each name above it, the entries over merchants that name it.
    hosts: BTreeMap<&'a str, Vec<(Spot, &'a DomainPattern)>>,
    /// By each tool's whole name, the entries that can mean no other.
    tools: BTreeMap<String, Vec<(Spot, &'a ToolGlob)>>,
    /// By each tool that they were compared with, those of the entries that can mean several tools which mean it: of each list one, as more
    /// say no more.
    meant: BTreeMap<Tool<'a>, BTreeMap<Spot, &'a ToolGlob>>,
    /// By each field, the mandates that let it be shared.
    fields: BTreeMap<&'a str, Allowing>,
}

/// How often a tool is compared at most with an entry that can mean several: beyond that, nothing is said of the other tools.
const COMPARED_MAX: usize = 500_000;

/// Whose list an entry is in, by the mandate's place, and whether it denies.
type Spot = (usize, bool);

/// Of mandates that name fields those that let all of a question's fields be shared, a bit each. One behind the 128th counts for none
/// that does, so that what it covers may be suggested beside it.
pub(super) type Allowing = u128;

/// A tool, by its server, where it has one, and its name.
pub(super) type Tool<'a> = (Option<&'a str>, &'a str);

/// What a mandate's lists say of one question.
#[derive(Clone, Debug, Default)]
struct Said {
    merchants: Merchants,
    tools: Tools,
}

impl<'a> Lists<'a> {
    /// Goes through the lists for what these questions were about.
    pub(super) fn of(mandates: &'a [Arc<Mandate>], asked: impl Iterator<Item = &'a Asked>) -> Self {
        let (mut hosts, mut tools, mut about) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        for it in asked {
            hosts.extend(it.domain().into_iter().flat_map(names_of).map(|name| (name, Vec::new())));
            tools.extend(it.tool().map(|tool| (full(tool), Vec::new())));
            about.extend(it.tool());
        }
        let mut lists = Self { mandates, hosts, tools, meant: BTreeMap::new(), fields: BTreeMap::new() };
        let mut patterns = Vec::new();
        for (place, mandate) in mandates.iter().enumerate() {
            lists.look_at(place, mandate, &mut patterns);
        }
        let reach = COMPARED_MAX.checked_div(patterns.len()).unwrap_or(usize::MAX);
        for tool in about.into_iter().take(reach) {
            let means = |((_, denies), entry): &&(Spot, &ToolGlob)| means(entry, *denies, tool);
            // The first of each list comes last, and stays.
            lists.meant.insert(tool, patterns.iter().rev().filter(means).copied().collect());
        }
        lists
    }

    fn look_at(&mut self, place: usize, mandate: &'a Mandate, patterns: &mut Vec<(Spot, &'a ToolGlob)>) {
        let allowed = mandate.merchants_allowed().unwrap_or_default().iter().map(|it| (false, it));
        for (denies, entry) in allowed.chain(mandate.merchants_denied().iter().map(|it| (true, it))) {
            let (DomainPattern::Exact(host) | DomainPattern::Under(host)) = entry;
            if let Some(found) = self.hosts.get_mut(host.as_str()) {
                found.push(((place, denies), entry));
            }
        }
        let allowed = mandate.tools.iter().flat_map(|it| it.allow.iter().flatten()).map(|it| (false, it));
        for (denies, entry) in allowed.chain(mandate.tools_denied().iter().map(|it| (true, it))) {
            let text = entry.as_str();
            if text.contains('*') || known_by(text) != text {
                patterns.push(((place, denies), entry));
            } else if let Some(found) = self.tools.get_mut(&*composed(text)) {
                found.push(((place, denies), entry));
            }
        }
        for name in mandate.fields.iter().flat_map(|it| &it.allow).filter(|it| it.as_str() != Fields::NONE) {
            *self.fields.entry(name.as_str()).or_default() |= bit(place);
        }
    }

    /// Which mandates let all of these fields be shared; none where there is no field.
    pub(super) fn allowing<'n>(&self, names: impl Iterator<Item = &'n str>) -> Allowing {
        let all = names.map(|it| self.fields.get(it).copied().unwrap_or_default()).reduce(|all, one| all & one);
        all.unwrap_or_default()
    }

    /// The mandates with what in their lists speaks of a question about this merchant, this tool and fields that these mandates let be
    /// shared; nothing where the tool is one beyond those that the lists were compared with.
    pub(super) fn about(
        &self,
        host: Option<&Domain>,
        tool: Option<Tool<'_>>,
        allowing: Allowing,
    ) -> Option<Arc<[Arc<Mandate>]>> {
        let mut said: BTreeMap<usize, Said> = BTreeMap::new();
        for (host, name) in host.into_iter().flat_map(|host| names_of(host).map(move |name| (host, name))) {
            for ((place, denies), entry) in self.hosts.get(name).into_iter().flatten().filter(|it| it.1.covers(host)) {
                let lists = &mut said.entry(*place).or_default().merchants;
                let list = if *denies { &mut lists.deny } else { &mut lists.allow };
                list.get_or_insert_default().push((*entry).clone());
            }
        }
        if let Some(tool) = tool {
            let (exact, several) = (self.tools.get(&full(tool)), self.meant.get(&tool)?);
            let several = several.iter().map(|(spot, entry)| (*spot, *entry));
            for ((place, denies), entry) in exact.into_iter().flatten().copied().chain(several) {
                let lists = &mut said.entry(place).or_default().tools;
                let list = if denies { &mut lists.deny } else { &mut lists.allow };
                if list.is_none() && means(entry, denies, tool) {
                    *list = Some(vec![entry.clone()]);
                }
            }
        }
        let one = |(place, mandate)| abridged(mandate, said.remove(&place).unwrap_or_default(), allowing & bit(place));
        Some(self.mandates.iter().enumerate().map(one).collect())
    }
}

/// Whether an entry of a list means a tool.
fn means(entry: &ToolGlob, denies: bool, (server, name): Tool<'_>) -> bool {
    if denies { entry.denies(server, name) } else { entry.covers(server, name) }
}

/// The mandate with what its lists say. An empty list that allows is one on which nothing is.
fn abridged(mandate: &Arc<Mandate>, said: Said, allowing: Allowing) -> Arc<Mandate> {
    if mandate.merchants.is_none() && mandate.tools.is_none() && mandate.fields.is_none() {
        return Arc::clone(mandate);
    }
    let Terms { name, actions, limits, merchants, fields, tools, duplicates, expires_at } = mandate.terms();
    let confines = merchants.as_ref().is_some_and(|it| it.allow.is_some());
    let merchants = Merchants { allow: confines.then(|| said.merchants.allow.unwrap_or_default()), ..said.merchants };
    let confines = tools.as_ref().is_some_and(|it| it.allow.is_some());
    let tools = Tools { allow: confines.then(|| said.tools.allow.unwrap_or_default()), ..said.tools };
    let terms = Terms {
        name: name.clone(),
        actions: actions.clone(),
        limits: limits.clone(),
        merchants: Some(merchants),
        fields: fields.as_ref().filter(|_| allowing == 0).map(|_| Fields { allow: Vec::new() }),
        tools: Some(tools),
        duplicates: *duplicates,
        expires_at: *expires_at,
    };
    Arc::new(Mandate::new(mandate.id, mandate.agent, None, terms, (None, mandate.created_at)))
}

/// A host's name, and each that it is below.
fn names_of(host: &Domain) -> impl Iterator<Item = &str> {
    let name = host.as_str();
    once(name).chain(name.match_indices('.').filter_map(|(dot, _)| name.get(dot.saturating_add(1)..)))
}

/// A tool's whole name, as it is composed.
fn full((server, name): Tool<'_>) -> String {
    let whole = server.map_or_else(|| name.to_owned(), |server| format!("{server}/{name}"));
    composed(&whole).into_owned()
}

fn bit(place: usize) -> Allowing {
    u32::try_from(place).ok().and_then(|it| 1_u128.checked_shl(it)).unwrap_or_default()
}

/// The tool that is asked for, where its name is known.
pub(super) fn tool_of(asked: &crate::state::gate::Request) -> Option<Tool<'_>> {
    asked.tool.as_ref().and_then(|it| tool_name(&it.tool))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::rules::gate::evaluate::{Facts, PayeeFacts, evaluate};
    use crate::state::gate::{Activity, Details, Effect, Origin, Request, Tier};
    use crate::state::people::Settings;
    use crate::testing::world::{payment, request, terms, tool_call};
    use crate::value::id::{AgentId, MandateId, MandateVersionId};
    use crate::value::json::Json;
    use crate::value::text::Label;
    use crate::value::{Id as _, Timestamp};

    const HOSTS: [&str; 6] = ["a.example", "b.a.example", "c.b.a.example", "xa.example", "other.test", "b.other.test"];
    const TOOLS: [&str; 6] = ["read", "crm/read", "crm/*", "re*", "caf\u{e9}", "crm/cafe\u{301}"];
    const FIELDS: [&str; 3] = ["city", "name", "none"];

    fn list<T: Clone + std::fmt::Debug + 'static>(
        of: impl Strategy<Value = T> + 'static,
    ) -> impl Strategy<Value = Option<Vec<T>>> {
        prop_oneof![Just(None), prop::collection::vec(of, 1..4).prop_map(Some)]
    }

    fn hosts() -> impl Strategy<Value = DomainPattern> {
        (any::<bool>(), select(&HOSTS[..])).prop_map(|(under, host)| {
            let domain = Domain::parse(host).unwrap();
            if under { DomainPattern::Under(domain) } else { DomainPattern::Exact(domain) }
        })
    }

    fn globs() -> impl Strategy<Value = ToolGlob> {
        let long = "x".repeat(120);
        let all: Vec<String> =
            TOOLS.iter().map(ToString::to_string).chain([long.clone(), format!("crm/{long}")]).collect();
        select(all).prop_map(|it| ToolGlob::parse(&it).unwrap())
    }

    fn mandate() -> impl Strategy<Value = Terms> {
        let fields = list(select(&FIELDS[..]).prop_map(|it| Label::parse(it).unwrap()));
        let lists = (list(hosts()), list(hosts()), list(globs()), list(globs()), fields);
        (lists, 50_i64..200).prop_map(|((allow, deny, tools, no_tools, fields), most)| Terms {
            merchants: (allow.is_some() || deny.is_some()).then_some(Merchants { allow, deny }),
            tools: (tools.is_some() || no_tools.is_some()).then_some(Tools { allow: tools, deny: no_tools }),
            fields: fields.map(|allow| Fields { allow }),
            ..terms(&format!(
                r#"{{"name":"M","actions":["payment","crm.*"],"limits":{{"currency":"EUR","perAction":{most},"askAbove":120}}}}"#
            ))
        })
    }

    fn asked() -> impl Strategy<Value = Request> {
        let named =
            (prop::option::of(select(&["crm", "other"][..])), select(&["read", "cafe\u{301}", "caf\u{e9}"][..]));
        let long = known_by(&"x".repeat(120)).into_owned();
        let tool = prop_oneof![named.prop_map(|(server, name)| (server, name.to_owned())), Just((Some("crm"), long))];
        let host = prop::option::of(select(&HOSTS[..]));
        (host, prop::option::of(tool), prop::collection::btree_set(select(&FIELDS[..]), 0..3)).prop_map(
            |(host, tool, names)| {
                let plain = host.map_or_else(|| request("crm.read"), |host| payment(100, "EUR", host));
                let members = names.into_iter().map(|it| (it.to_owned(), Json::Null)).collect();
                let mut asked = plain.with_details(Details::of(&Json::Object(members)).unwrap());
                asked.tool = tool.map(|(server, name)| {
                    let mut tool = tool_call(&name).tool.unwrap();
                    tool.tool.server = server.map(|it| Label::parse(it).unwrap());
                    tool
                });
                asked
            },
        )
    }

    fn effect(request: &Request, mandates: &[Arc<Mandate>]) -> Effect {
        let agent = AgentId::from_bits(1);
        evaluate(&Facts {
            now: Timestamp::default(),
            request,
            settings: &Settings::default(),
            tier: Tier::Standard,
            mandates,
            unreadable: false,
            activity: &Activity::none(agent),
            waiting: 0,
            velocity: None,
            payee: PayeeFacts::default(),
            session_conflict: false,
            origin: &Origin::default(),
            tool_is_sink: false,
        })
        .effect
    }

    proptest! {
        /// Whatever stands in the lists, what of it speaks of a question says of it what the whole lists say, its fields included.
        #[test]
        fn what_speaks_of_a_question_says_what_all_does(
            all in prop::collection::vec(mandate(), 1..5),
            request in asked(),
        ) {
            let id = |bits| MandateVersionId { mandate: MandateId::from_bits(bits), version: 1 };
            let one = |(bits, terms)| Mandate::new(id(bits), AgentId::from_bits(1), None, terms, (None, Timestamp::default()));
            let mandates: Vec<_> = (1..).zip(all).map(one).map(Arc::new).collect();
            let mut bare = request.clone();
            bare.details = None;
            let asked = Asked::testing(bare.clone());
            let lists = Lists::of(&mandates, once(&asked));
            let names: Vec<&str> = request.details.iter().flat_map(|it| &it.names).map(|it| &**it).collect();
            let allowing = lists.allowing(names.into_iter());
            let host = request.payment.as_ref().map(|it| &it.domain);
            let abridged = lists.about(host, tool_of(&request), allowing).unwrap();
            prop_assert_eq!(effect(&bare, &abridged), effect(&request, &mandates));
        }
    }

    /// However many entries there are that can mean several tools, they are compared so often and no more: of the tools beyond that nothing
    /// is said, and of the others all.
    #[test]
    fn patterns_are_compared_so_often() {
        let pattern = |number: usize| ToolGlob::parse(&format!("{number}*")).unwrap();
        let tools = Tools { allow: None, deny: Some((0..COMPARED_MAX / 4).map(pattern).collect()) };
        let terms = Terms { tools: Some(tools), ..terms(r#"{"name":"M","actions":["tool.call"]}"#) };
        let id = MandateVersionId { mandate: MandateId::from_bits(1), version: 1 };
        let mandates = [Arc::new(Mandate::new(id, AgentId::from_bits(1), None, terms, (None, Timestamp::default())))];
        let asked: Vec<Asked> = (0..10).map(|number| Asked::testing(tool_call(&format!("{number}9_read")))).collect();
        let lists = Lists::of(&mandates, asked.iter());
        let denied = |it: &Asked| {
            let said = lists.about(None, it.tool(), 0)?;
            Some(said[0].tools_denied().iter().map(|it| it.as_str().to_owned()).collect::<Vec<_>>())
        };
        let heard: Vec<_> = asked.iter().map(denied).collect();
        let first = |number: usize| Some(vec![format!("{number}*")]);
        assert_eq!(heard, [first(0), first(1), first(2), first(3), None, None, None, None, None, None]);
    }
}
