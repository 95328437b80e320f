//! Ids in a body, and names of what a workspace has, as far as they can be read where the body as a whole cannot.

use std::borrow::Cow;

use svc_core::rules::people::named::Named;
use svc_core::rules::people::taken::NewName;
use svc_core::state::people::TEAM_MEMBERS_MAX;
use svc_core::value::id::{AgentId, PrincipalId, ProfileId, TeamId, UpstreamId};
use svc_core::value::json::Json;
use svc_core::value::text::{ClassId, Email, Label, ModelName, ServerName, UpstreamName};

use super::page::Query;

/// What the id, or the name, at a place is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// The address of whomever an agent acts for.
    ActsFor,
    /// An agent.
    Agent,
    /// A class of tasks that the member itself is called by, whatever its value.
    CalledByClass,
    /// Somebody whose role decides approvals.
    Decider,
    /// A member.
    Member,
    /// A model, by any of its names.
    Model,
    /// What a model of the provider `upstreamId` beside it is to be called too.
    NewAliases,
    /// What a class of tasks is to be called.
    NewClass,
    /// What a model of the provider `upstreamId` beside it is to be called.
    NewModel,
    /// What a policy profile is to be called.
    NewProfile,
    /// What an MCP server is to be called.
    NewServer,
    /// What a template of mandates is to be called.
    NewTemplate,
    /// What a service token is to be called.
    NewToken,
    /// What a provider is to be called.
    NewUpstream,
    /// Anybody of the workspace.
    Principal,
    /// A policy profile.
    Profile,
    /// A provider, by its name.
    Provider,
    /// What a budget is over.
    Scope,
    /// Somebody who may answer for an agent.
    Sponsor,
    /// A class of tasks.
    TaskClass,
    /// A team.
    Team,
    /// A template of mandates.
    Template,
    /// A provider, by its id.
    Upstream,
}

/// Every id that can be read at the places `ids`, with its path. A place is written as a path is, with `[]` for each item of a list and
/// `{}` for each member of an object: as many as the longest list that is sound may have.
#[must_use]
pub fn named(body: &Json, ids: &[(&str, Names)]) -> Vec<(String, Named)> {
    let mut found = Vec::new();
    for (place, names) in ids {
        look(body, "", place, *names, &mut found);
    }
    found
}

/// The same of the parameters of a query.
#[must_use]
pub fn named_in_query(query: &Query, ids: &[(&str, Names)]) -> Vec<(String, Named)> {
    let one = |(name, names): &(&str, Names)| Some(((*name).to_owned(), one(name, query.raw(name)?, *names)?));
    ids.iter().filter_map(one).collect()
}

fn look(value: &Json, path: &str, place: &str, names: Names, found: &mut Vec<(String, Named)>) {
    let (step, rest) = place.split_once('.').map_or((place, None), |(step, rest)| (step, Some(rest)));
    for (name, inner) in within(value, step) {
        let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        match rest {
            Some(rest) => look(inner, &path, rest, names, found),
            None => {
                let it = match names {
                    Names::NewAliases | Names::NewModel => of_provider(value, inner, names),
                    _ => one(&name, inner.as_str().unwrap_or_default(), names),
                };
                found.extend(it.map(|it| (path, it)));
            }
        }
    }
}

/// Where one step of a place leads to.
fn within<'a>(value: &'a Json, step: &'a str) -> Vec<(Cow<'a, str>, &'a Json)> {
    match step {
        "[]" => {
            let items = value.as_list().unwrap_or_default().iter().take(TEAM_MEMBERS_MAX).enumerate();
            items.map(|(at, it)| (at.to_string().into(), it)).collect()
        }
        "{}" => {
            let members = value.as_object().unwrap_or_default().iter().take(TEAM_MEMBERS_MAX);
            members.map(|(name, it)| (name.as_str().into(), it)).collect()
        }
        name => value.get(name).map(|it| (name.into(), it)).into_iter().collect(),
    }
}

/// What the member `name` with this text names.
fn one(name: &str, text: &str, names: Names) -> Option<Named> {
    match names {
        Names::ActsFor => Email::parse(text).ok().map(Named::ActsFor),
        Names::Agent => AgentId::parse(text).ok().map(Named::Agent),
        Names::CalledByClass => ClassId::parse(name).ok().map(Named::TaskClass),
        Names::Decider => PrincipalId::parse(text).ok().map(Named::Decider),
        Names::Member => PrincipalId::parse(text).ok().map(Named::Member),
        Names::Model => ModelName::parse(text).ok().map(|it| Named::Model(it.as_str().into())),
        Names::NewClass => ClassId::parse(text).ok().map(NewName::Class).map(Named::New),
        Names::NewProfile => Label::parse(text).ok().map(NewName::Profile).map(Named::New),
        Names::NewServer => ServerName::parse(text).ok().map(NewName::Server).map(Named::New),
        Names::NewTemplate => Label::parse(text).ok().map(NewName::Template).map(Named::New),
        Names::NewToken => Label::parse(text).ok().map(NewName::Token).map(Named::New),
        Names::NewUpstream => UpstreamName::parse(text).ok().map(NewName::Upstream).map(Named::New),
        Names::Principal => PrincipalId::parse(text).ok().map(Named::Principal),
        Names::Profile => ProfileId::parse(text).ok().map(Named::Profile),
        Names::Provider => UpstreamName::parse(text).ok().map(|it| Named::Provider(it.as_str().into())),
        Names::Sponsor => PrincipalId::parse(text).ok().map(Named::Sponsor),
        Names::TaskClass => ClassId::parse(text).ok().map(Named::TaskClass),
        Names::Team => TeamId::parse(text).ok().map(Named::Team),
        Names::Template => Label::parse(text).ok().map(|it| Named::Template(it.as_str().into())),
        Names::Upstream => UpstreamId::parse(text).ok().map(Named::Upstream),
        // An object that is read by itself, and what is read with what stands beside it.
        Names::Scope | Names::NewAliases | Names::NewModel => None,
    }
}

/// What a member of a wish for a model, `wish`, would be called beside the others of its provider.
fn of_provider(wish: &Json, member: &Json, names: Names) -> Option<Named> {
    let upstream = UpstreamId::parse(wish.get("upstreamId")?.as_str()?).ok()?;
    match names {
        Names::NewAliases => aliases_of(wish, upstream, None),
        _ => ModelName::parse(member.as_str()?).ok().map(|it| NewName::Model(upstream, it)),
    }
    .map(Named::New)
}

/// The further names of a model of this provider in what was sent of it; `own` is what it is called already.
#[must_use]
pub fn aliases_of(sent: &Json, of: UpstreamId, own: Option<&ModelName>) -> Option<NewName> {
    let names = sent.get("aliases")?.as_list()?.iter().take(TEAM_MEMBERS_MAX);
    let names = names.filter_map(|it| ModelName::parse(it.as_str()?).ok()).collect();
    Some(NewName::Aliases { of, names, own: own.cloned() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use svc_core::value::Id as _;

    /// Items of lists and members of objects are found at any depth, and what is no such id is passed over.
    #[test]
    fn places_lead_into_lists_and_objects() {
        let team = TeamId::from_bits(1).to_string();
        let body = format!(r#"{{"a":{{"b":["{team}",1,"x"],"c":{{"d.e":"{team}","f":["{team}"]}}}},"q":{{"g.h":1}}}}"#);
        let body = Json::parse(body.as_bytes()).unwrap();
        let found = |place| named(&body, &[(place, Names::Team)]).into_iter().map(|it| it.0).collect::<Vec<_>>();
        assert_eq!(found("a.b.[]"), ["a.b.0"]);
        assert_eq!(found("a.c.{}"), ["a.c.d.e"]);
        assert_eq!(found("a.c.f.[]"), ["a.c.f.0"]);
        for none in ["a", "a.b", "a.b.{}", "a.c.[]", "no.[]", "q.{}"] {
            assert!(found(none).is_empty(), "{none}");
        }
        let class = Named::TaskClass(ClassId::parse("g.h").unwrap());
        assert_eq!(named(&body, &[("q.{}", Names::CalledByClass)]), [("q.g.h".to_owned(), class)]);
    }
}
