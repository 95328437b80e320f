//! What a workspace routes by: unique names, bounds, what is in use stays, and a record of every change.

use serde_json::{Value, json};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gateway::classes::{self, CLASSES_MAX, Limit};
use svc_core::rules::gateway::models::{self, NewModel, Place};
use svc_core::rules::gateway::profiles;
use svc_core::rules::gateway::routing::{Edit, EditRouting, Edited, Set};
use svc_core::rules::gateway::upstreams::{self, NewKey, SealedHeader, UPSTREAMS_MAX};
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::{CreateKey, NewKey as NewGatewayKey, RevokeKey};
use svc_core::state::gateway::{
    BoundKeys, BudgetAt, BudgetScope, Constraints, Dialect, Mode, Quality, Routing, TaskStatus, UpstreamKey, Yields,
};
use svc_core::state::people::{KeyScope, Workspace};
use svc_core::store::{Record, Row as _};
use svc_core::testing::people;
use svc_core::testing::world::World;
use svc_core::value::id::UpstreamId;
use svc_core::value::text::{ClassId, Label, ModelName, UpstreamName, UrlText};
use svc_core::value::{Id, Span};

use super::{PAY, calm};

fn edit(world: &mut World, edit: Edit) -> Result<Edited, Refusal> {
    let workspace = world.workspace();
    world.run(EditRouting { by: By::Program, workspace, edit })
}

fn upstream(name: &str) -> Vec<upstreams::Set> {
    vec![
        upstreams::Set::Name(UpstreamName::parse(name).unwrap()),
        upstreams::Set::Kind(Dialect::Chat),
        upstreams::Set::BaseUrl(UrlText::parse("https://models.example.com/v1").unwrap()),
        upstreams::Set::Key(NewKey { sealed: "sealed-one".into(), hint: "wxyz".into() }),
    ]
}

fn create_upstream(world: &mut World, name: &str) -> UpstreamId {
    edit(world, Edit::CreateUpstream(upstream(name))).unwrap().upstream.unwrap()
}

fn class(id: &str) -> ClassId {
    ClassId::parse(id).unwrap()
}

fn new_model(upstream: UpstreamId, name: &str) -> NewModel {
    NewModel { upstream, name: ModelName::parse(name).unwrap(), known: Vec::new(), set: Vec::new() }
}

/// The records of routing: kinds and data, in their order.
fn told(world: &mut World) -> Vec<(String, String)> {
    let rows = world.rows();
    let entries = rows.iter().filter_map(|(_, at, it)| if let Record::Entry(it) = it { Some((at, it)) } else { None });
    let families = ["upstream.", "model.", "task_class.", "policy_profile.", "routing."];
    let mut found: Vec<_> =
        entries.filter(|(_, it)| families.iter().any(|family| it.kind.starts_with(family))).collect();
    // By the commits that wrote them: ids of one instant are in no order.
    found.sort_by_key(|(at, it)| (**at, it.id));
    found.into_iter().map(|(_, it)| (it.kind.to_string(), it.data.to_string())).collect()
}

/// The ledger tells of each thing under its own id, with the names and times of the interface; a change tells what it changed.
#[test]
fn a_record_is_of_the_thing_and_speaks_as_the_interface() {
    let (mut world, _) = calm(&[PAY]);
    let id = create_upstream(&mut world, "one");
    edit(&mut world, Edit::CreateModel(new_model(id, "some-model"))).unwrap();
    let place = || Place { provider: "one".into(), model: "some-model".into() };
    edit(&mut world, Edit::ChangeModel(place(), vec![models::Set::MaxOutput(10)])).unwrap();
    edit(&mut world, Edit::CreateClass(class("summary"), Vec::new())).unwrap();
    let set = vec![classes::Set::Limit(Limit::MaxLatencyMs(Some(9)))];
    edit(&mut world, Edit::ChangeClass(class("summary"), set)).unwrap();
    let name = |name: &str| vec![profiles::Set::Name(Label::parse(name).unwrap())];
    let profile = edit(&mut world, Edit::CreateProfile(name("Planted"))).unwrap().profile.unwrap();
    edit(&mut world, Edit::ChangeProfile(profile, name("Planted anew"))).unwrap();
    edit(&mut world, Edit::ChangeUpstream(id, vec![upstreams::Set::Enabled(false)])).unwrap();
    let rows = world.rows();
    let entries = rows.iter().filter_map(|(_, _, it)| if let Record::Entry(it) = it { Some(it) } else { None });
    let find = |kind: &str| {
        let found: Vec<_> = entries.clone().filter(|it| &*it.kind == kind).collect();
        assert_eq!(found.len(), 1, "{kind}");
        (found[0].subject.to_string(), serde_json::from_str::<Value>(&found[0].data).unwrap())
    };
    let (subject, made) = find("upstream.created");
    assert_eq!((subject, &made["kind"], &made["keyHint"]), (id.to_string(), &json!("chat"), &json!("wxyz")));
    assert_eq!(made["baseUrl"], "https://models.example.com/v1");
    assert!(made["createdAt"].as_str().is_some_and(|it| it.ends_with("Z")), "{made}");
    assert_eq!(
        find("upstream.changed"),
        (id.to_string(), json!({ "old": { "enabled": true }, "new": { "enabled": false } }))
    );
    let (subject, made) = find("model.created");
    assert_eq!((&*subject, &made["upstreamId"], &made["retention"]), ("one/some-model", &json!(id), &json!("days")));
    let (subject, changed) = find("model.changed");
    assert_eq!((&*subject, &changed["new"]), ("one/some-model", &json!({ "maxOutput": 10 })));
    assert_eq!(find("task_class.created").0, "summary");
    let (old, new) = (json!({ "maxLatencyMs": null }), json!({ "maxLatencyMs": 9 }));
    assert_eq!(find("task_class.changed"), ("summary".to_owned(), json!({ "old": old, "new": new })));
    assert_eq!(find("policy_profile.created").0, profile.to_string());
    let (subject, changed) = find("policy_profile.changed");
    let commits = |side: &str| changed[side]["name"]["commit"].is_string();
    assert!(subject == profile.to_string() && commits("old") && commits("new"), "{changed}");
}

fn fields(refusal: &Refusal) -> Vec<&str> {
    refusal.errors().iter().map(|it| it.field.as_deref().unwrap_or("body")).collect()
}

/// A provider's key lies in a row of its own, goes with it, and is in no record; neither are the values of its headers.
#[test]
fn a_providers_key_goes_with_it() {
    let (mut world, _) = calm(&[PAY]);
    let id = create_upstream(&mut world, "one");
    let key = world.row::<UpstreamKey>(id);
    assert_eq!((&*key.sealed, key.workspace), ("sealed-one", world.workspace()));
    let other = NewKey { sealed: "sealed-two".into(), hint: "wxyz".into() };
    let headers = [("x-team".into(), "planted".into())].into();
    for set in [upstreams::Set::Key(other), upstreams::Set::Headers(headers), upstreams::Set::Enabled(false)] {
        edit(&mut world, Edit::ChangeUpstream(id, vec![set])).unwrap();
    }
    assert_eq!(&*world.row::<UpstreamKey>(id).sealed, "sealed-two");
    edit(&mut world, Edit::ChangeUpstream(id, vec![upstreams::Set::Enabled(false)])).unwrap();
    edit(&mut world, Edit::RemoveUpstream(id)).unwrap();
    assert!(!world.dump().contains("sealed-"));
    let told = told(&mut world);
    let kinds: Vec<&str> = told.iter().map(|it| it.0.as_str()).collect();
    let changed = "upstream.changed";
    assert_eq!(kinds, ["upstream.created", changed, changed, changed, "upstream.removed"], "no change, no record");
    assert!(told.iter().all(|it| !it.1.contains("planted") && !it.1.contains("sealed")));
    assert!(told[2].1.contains("x-team"));
}

/// A header that carries a credential lies beside the key: it stays where what is shown of it is sent, is never also in clear,
/// and one that stood in clear is moved there without a record.
#[test]
fn a_sealed_header_lies_beside_the_key() {
    let (mut world, _) = calm(&[PAY]);
    let id = create_upstream(&mut world, "one");
    let new = |sealed: &str| NewKey { sealed: sealed.into(), hint: "wxyz".into() };
    let stored = |hint: &str| SealedHeader::Stored { hint: hint.into() };
    let clear =
        |names: &[&str]| upstreams::Set::Headers(names.iter().map(|it| ((*it).into(), "clear".into())).collect());
    let sealed = |all: &[(&str, SealedHeader)]| {
        upstreams::Set::SealedHeaders(all.iter().map(|(name, it)| ((*name).into(), it.clone())).collect())
    };
    let mut change = |set: Vec<upstreams::Set>| {
        let refused = edit(&mut world, Edit::ChangeUpstream(id, set)).map(drop).err();
        let row = world.row::<Routing>(world.workspace());
        let key = world.row::<UpstreamKey>(id);
        let upstream = row.upstream(id).unwrap();
        let names =
            |all: &std::collections::BTreeMap<Box<str>, Box<str>>| all.keys().map(|it| it.to_string()).collect();
        let (clear, hints): (Vec<String>, Vec<String>) = (names(&upstream.headers), names(&upstream.header_hints));
        assert_eq!(hints, names(&key.headers) as Vec<String>);
        (clear.join(" "), hints.join(" "), refused.map(|it| fields(&it).join(" ")))
    };
    let is = |clear: &str, sealed: &str| (clear.to_owned(), sealed.to_owned(), None);
    assert_eq!(change(vec![clear(&["a", "b"])]), is("a b", ""));
    assert_eq!(change(vec![sealed(&[("b", SealedHeader::New(new("s1")))])]), is("a", "b"));
    assert_eq!(change(vec![clear(&["a", "b"])]), is("a", "b"));
    let seal = |name: &str| upstreams::Set::Seal([(name.into(), new("s2"))].into());
    assert_eq!(change(vec![seal("a"), seal("c")]), is("", "a b"));
    assert_eq!(change(vec![sealed(&[("a", stored("wxyz"))])]), is("", "a"));
    let url = upstreams::Set::BaseUrl(UrlText::parse("https://other.example.com/v1").unwrap());
    let moved = vec![url.clone(), upstreams::Set::Key(new("s3"))];
    for (set, faults) in [
        (vec![sealed(&[("a", stored("abcd")), ("b", stored("wxyz"))])], "headers.a headers.b"),
        (vec![url], "apiKey headers.a"),
        (moved.clone(), "headers.a"),
    ] {
        assert_eq!(change(set), (String::new(), "a".to_owned(), Some(faults.to_owned())));
    }
    let anew = sealed(&[("c", SealedHeader::New(new("s4")))]);
    assert_eq!(change(moved.into_iter().chain([anew, clear(&[])]).collect()), is("", "c"));
    let told = told(&mut world);
    let moved_in = told.iter().filter(|it| it.0 == "upstream.changed").count();
    assert_eq!(moved_in, 4, "{told:?}");
    assert!(told.iter().all(|it| !it.1.contains("\"s") && !it.1.contains("clear")), "{told:?}");
    world.audit();
}

/// Names are unique, references are of the workspace, and every fault is told at once.
#[test]
fn every_fault_is_told_at_once() {
    let (mut world, _) = calm(&[PAY]);
    let refused = edit(&mut world, Edit::CreateUpstream(Vec::new())).unwrap_err();
    assert_eq!((refused.kind(), fields(&refused)), (Kind::InvalidUpstream, vec!["name", "kind", "baseUrl", "apiKey"]));
    let id = create_upstream(&mut world, "one");
    let refused = edit(&mut world, Edit::CreateUpstream(upstream("one"))).unwrap_err();
    assert_eq!(fields(&refused), ["name"]);
    edit(&mut world, Edit::CreateModel(new_model(id, "a"))).unwrap();
    let by_class = [(class("no.such"), 1)].into();
    let mut bad = new_model(id, "a");
    bad.set = vec![
        models::Set::MaxOutput(10),
        models::Set::ContextWindow(9),
        models::Set::Quality(Quality { general: 50, by_class }),
    ];
    let refused = edit(&mut world, Edit::CreateModel(bad)).unwrap_err();
    assert_eq!((refused.kind(), fields(&refused)), (Kind::InvalidRequest, vec!["id", "maxOutput", "quality.no.such"]));
    for dots in [".", ".."] {
        let refused = edit(&mut world, Edit::CreateModel(new_model(id, dots))).unwrap_err();
        assert_eq!((refused.kind(), fields(&refused)), (Kind::InvalidRequest, vec!["id"]), "no path leads to `{dots}`");
    }
    edit(&mut world, Edit::CreateModel(new_model(id, "..."))).unwrap();
    let refused = edit(&mut world, Edit::Change(vec![Set::DefaultClass(Some(class("no.such")))])).unwrap_err();
    assert_eq!(fields(&refused), ["defaultTaskClass"]);
    for gone in [
        Edit::RemoveModel(Place { provider: "one".into(), model: "b".into() }),
        Edit::ChangeClass(class("no.such"), Vec::new()),
        Edit::RemoveProfile(Id::from_bits(7)),
    ] {
        assert_eq!(edit(&mut world, gone).unwrap_err().kind(), Kind::NotFound);
    }
}

/// A model takes after its provider and what the catalogue knows of it; what is wished comes last.
#[test]
fn a_model_takes_after_its_provider_and_the_catalogue() {
    let (mut world, _) = calm(&[PAY]);
    let mut set = upstream("one");
    set.push(upstreams::Set::Jurisdiction(Some("eu".into())));
    let id = edit(&mut world, Edit::CreateUpstream(set)).unwrap().upstream.unwrap();
    let mut new = new_model(id, "a");
    new.known = vec![models::Set::ContextWindow(4_096), models::Set::MaxOutput(4_096)];
    new.set = vec![models::Set::ContextWindow(2_048)];
    let routing = edit(&mut world, Edit::CreateModel(new)).unwrap().routing;
    let made = routing.model("one", "a").unwrap().0;
    assert_eq!((&*made.jurisdiction, made.context_window, made.max_output), ("eu", 2_048, 2_048));
    let place = Place { provider: "one".into(), model: "a".into() };
    let own = vec![models::Set::Jurisdiction(Some("us".into()))];
    let routing = edit(&mut world, Edit::ChangeModel(place.clone(), own)).unwrap().routing;
    assert_eq!(&*routing.model("one", "a").unwrap().0.jurisdiction, "us");
    let routing = edit(&mut world, Edit::ChangeModel(place, vec![models::Set::Jurisdiction(None)])).unwrap().routing;
    assert_eq!(&*routing.model("one", "a").unwrap().0.jurisdiction, "eu");
}

/// A provider's law that is put right is that of its models, too, which had the one before from it; a model with one of its own
/// keeps that.
#[test]
fn a_providers_law_is_that_of_its_models() {
    let (mut world, _) = calm(&[PAY]);
    let (id, other) = (create_upstream(&mut world, "one"), create_upstream(&mut world, "two"));
    for (at, name, law) in [(id, "a", None), (id, "own", Some("de")), (other, "b", None)] {
        let law = law.map(|it: &str| models::Set::Jurisdiction(Some(it.into())));
        edit(&mut world, Edit::CreateModel(NewModel { set: law.into_iter().collect(), ..new_model(at, name) }))
            .unwrap();
    }
    for (law, had) in [(Some("eu"), "unknown"), (Some("us"), "eu"), (None, "us")] {
        let before = told(&mut world).len();
        let set = vec![upstreams::Set::Jurisdiction(law.map(Into::into))];
        let routing = edit(&mut world, Edit::ChangeUpstream(id, set)).unwrap().routing;
        let laws: Vec<&str> = routing.models.iter().map(|it| &*it.jurisdiction).collect();
        let law = law.unwrap_or("unknown");
        assert_eq!(laws, [law, "de", "unknown"]);
        let told = told(&mut world);
        assert_eq!(told.len(), before + 2, "the provider and one model");
        let changed = format!(r#"{{"new":{{"jurisdiction":"{law}"}},"old":{{"jurisdiction":"{had}"}}}}"#);
        assert!(told[before..].contains(&("model.changed".to_owned(), changed)), "{told:?}");
    }
    world.audit();
}

/// What a key is bound to stays until the key is revoked or its time is up; a class that is the default, or that a budget is over,
/// stays too.
#[test]
fn what_is_in_use_stays() {
    let (mut world, _) = calm(&[PAY]);
    let workspace = world.workspace();
    let name = profiles::Set::Name(Label::parse("strict").unwrap());
    let profile = edit(&mut world, Edit::CreateProfile(vec![name])).unwrap().profile.unwrap();
    edit(&mut world, Edit::CreateClass(class("a"), Vec::new())).unwrap();
    edit(&mut world, Edit::CreateClass(class("b"), Vec::new())).unwrap();
    edit(&mut world, Edit::Change(vec![Set::DefaultClass(Some(class("b")))])).unwrap();
    let make = |world: &mut World, text: &str, class: Option<ClassId>, profile, life: Option<Span>| {
        let expires_at = life.map(|it| world.now().plus(it));
        let key = NewGatewayKey::of(text);
        let new = CreateKey::new(workspace, By::Program, KeyScope::Inference, key);
        world.run(CreateKey { task_class: class, profile, expires_at, ..new })
    };
    let refused = make(&mut world, "ask_0", Some(class("c")), Some(Id::from_bits(7)), None).unwrap_err();
    assert_eq!(fields(&refused), ["taskClassId", "policyProfileId"]);
    let key = make(&mut world, "ask_1", Some(class("a")), None, None).unwrap();
    make(&mut world, "ask_2", None, Some(profile), Some(Span::hours(24))).unwrap();
    make(&mut world, "ask_3", None, None, None).unwrap();
    assert_eq!(world.row::<BoundKeys>(workspace).keys.len(), 2);
    for used in [Edit::RemoveClass(class("a")), Edit::RemoveClass(class("b")), Edit::RemoveProfile(profile)] {
        assert_eq!(edit(&mut world, used).unwrap_err().kind(), Kind::NotAllowed);
    }
    world.run(RevokeKey { workspace, by: By::Program, credential: key.id }).unwrap();
    let over = BudgetAt { id: Id::from_bits(1), scope: BudgetScope::TaskClass(class("a")) };
    world.edit::<Workspace>(workspace, |it| it.budgets.push(over));
    assert_eq!(edit(&mut world, Edit::RemoveClass(class("a"))).unwrap_err().reason(), Some("a budget is over it"));
    world.edit::<Workspace>(workspace, |it| it.budgets.clear());
    edit(&mut world, Edit::RemoveClass(class("a"))).unwrap();
    world.advance(Span::hours(24));
    edit(&mut world, Edit::RemoveProfile(profile)).unwrap();
    let id = create_upstream(&mut world, "one");
    edit(&mut world, Edit::CreateModel(new_model(id, "m"))).unwrap();
    assert_eq!(edit(&mut world, Edit::RemoveUpstream(id)).unwrap_err().kind(), Kind::NotAllowed);
}

fn place(provider: &str, model: &str) -> Place {
    Place { provider: provider.into(), model: model.into() }
}

/// A class that names this provider and these models, and a profile that names the provider.
fn confined(world: &mut World, provider: &str, models: &[&str]) {
    let limits = |models: Vec<Box<str>>| [Limit::Providers(vec![provider.into()]), Limit::Models(models)];
    let named = models.iter().map(|it| (*it).into()).collect();
    edit(world, Edit::CreateClass(class("a"), limits(named).map(classes::Set::Limit).into())).unwrap();
    let mut set = vec![profiles::Set::Name(Label::parse("Strict").unwrap())];
    set.extend(limits(Vec::new()).map(profiles::Set::Limit));
    edit(world, Edit::CreateProfile(set)).unwrap();
}

/// A provider's new name stands in every list that had the old one, in the same commit and in the ledger, and its models' yields go
/// with it: a provider that is given the old name is in none of them.
#[test]
fn a_providers_new_name_is_taken_into_every_list() {
    let (mut world, _) = calm(&[PAY]);
    let workspace = world.workspace();
    let (id, other) = (create_upstream(&mut world, "one"), create_upstream(&mut world, "two"));
    for (at, name) in [(id, "m"), (id, "both"), (other, "one/both"), (other, "one/their")] {
        edit(&mut world, Edit::CreateModel(new_model(at, name))).unwrap();
    }
    confined(&mut world, "one", &["two/one/both", "one/m", "one/both", "one/their", "m"]);
    let mut yields = Yields::new(workspace);
    yields.add(None, "one/m", 1, TaskStatus::Accepted);
    yields.add(None, "two/one/m", 1, TaskStatus::Accepted);
    people::write(world.engine().store(), vec![Yields::wrap(yields.into())]);
    let renamed = vec![upstreams::Set::Name(UpstreamName::parse("uno").unwrap())];
    let routing = edit(&mut world, Edit::ChangeUpstream(id, renamed)).unwrap().routing;
    let asked = &routing.class(&class("a")).unwrap().constraints;
    let models: Vec<&str> = asked.models.iter().map(|it| &**it).collect();
    // What is another model's own id as well meant this provider's, and does; what was no other than that is that one's still.
    assert_eq!(models, ["two/one/both", "uno/m", "uno/both", "one/their", "m"]);
    let providers = |asked: &Constraints| asked.providers.iter().map(|it| it.to_string()).collect::<Vec<_>>();
    assert_eq!(
        (providers(asked), providers(&routing.profiles[0].constraints)),
        (vec!["uno".into()], vec!["uno".into()])
    );
    let told = told(&mut world);
    let kinds: Vec<&str> = told.iter().map(|it| it.0.as_str()).collect();
    for kind in ["upstream.changed", "task_class.changed", "policy_profile.changed"] {
        assert_eq!(kinds.iter().filter(|it| **it == kind).count(), 1, "{kind}");
    }
    let lines: Vec<String> = world.row::<Yields>(workspace).lines.iter().map(|it| it.model.to_string()).collect();
    assert_eq!(lines, ["uno/m", "two/one/m"]);
    let new = edit(&mut world, Edit::CreateUpstream(upstream("one"))).unwrap().upstream.unwrap();
    let routing = edit(&mut world, Edit::CreateModel(new_model(new, "m"))).unwrap().routing;
    assert!(!routing.class(&class("a")).unwrap().constraints.providers.contains("one"));
    world.audit();
}

/// A provider or model that a class or profile names is not removed, and no alias taken away that one names, until that names it no
/// more; a name that a list has of a provider that is gone is given to none.
#[test]
fn what_a_list_names_stays() {
    let (mut world, _) = calm(&[PAY]);
    let workspace = world.workspace();
    let id = create_upstream(&mut world, "one");
    let aliased =
        |names: &[&str]| vec![models::Set::Aliases(names.iter().map(|it| ModelName::parse(it).unwrap()).collect())];
    let mut new = new_model(id, "m");
    new.set = aliased(&["fast", "free"]);
    edit(&mut world, Edit::CreateModel(new)).unwrap();
    confined(&mut world, "one", &["one/fast"]);
    let refused = edit(&mut world, Edit::RemoveModel(place("one", "m"))).unwrap_err();
    let why = "task class `a` names it, as `one/fast`";
    assert_eq!((refused.kind(), refused.reason()), (Kind::NotAllowed, Some(why)));
    let refused = edit(&mut world, Edit::ChangeModel(place("one", "m"), aliased(&[]))).unwrap_err();
    assert_eq!((refused.kind(), fields(&refused)), (Kind::InvalidRequest, vec!["aliases"]));
    edit(&mut world, Edit::ChangeModel(place("one", "m"), aliased(&["fast"]))).unwrap();
    let any = |limit| vec![classes::Set::Limit(limit)];
    edit(&mut world, Edit::ChangeClass(class("a"), any(Limit::Models(Vec::new())))).unwrap();
    edit(&mut world, Edit::RemoveModel(place("one", "m"))).unwrap();
    let refused = edit(&mut world, Edit::RemoveUpstream(id)).unwrap_err();
    assert_eq!((refused.kind(), refused.reason()), (Kind::NotAllowed, Some("task class `a` names it")));
    edit(&mut world, Edit::ChangeClass(class("a"), any(Limit::Providers(Vec::new())))).unwrap();
    let refused = edit(&mut world, Edit::RemoveUpstream(id)).unwrap_err();
    assert_eq!(refused.reason(), Some("policy profile `Strict` names it"));
    // As an earlier release left it, which removed what was named.
    world.edit::<Routing>(workspace, |it| {
        it.upstreams.clear();
        it.classes[0].constraints.models = vec!["two/m".into()];
    });
    let other = edit(&mut world, Edit::CreateUpstream(upstream("three"))).unwrap().upstream.unwrap();
    for name in ["one", "two"] {
        let refused = edit(&mut world, Edit::CreateUpstream(upstream(name))).unwrap_err();
        assert_eq!((refused.kind(), fields(&refused)), (Kind::InvalidUpstream, vec!["name"]), "{name}");
        let renamed = vec![upstreams::Set::Name(UpstreamName::parse(name).unwrap())];
        assert_eq!(fields(&edit(&mut world, Edit::ChangeUpstream(other, renamed)).unwrap_err()), ["name"], "{name}");
    }
    world.edit::<Routing>(workspace, |it| {
        it.profiles.clear();
        it.classes.clear();
    });
    edit(&mut world, Edit::CreateUpstream(upstream("one"))).unwrap();
}

/// A list means what a call that names the same would: a provider's model before another whose own id reads the same, and that before
/// an alias. What would move an entry to other models is refused, whichever side it comes from.
#[test]
fn a_list_means_the_same_models_for_good() {
    let (mut world, _) = calm(&[PAY]);
    let (a, c) = (create_upstream(&mut world, "a"), create_upstream(&mut world, "c"));
    edit(&mut world, Edit::CreateModel(new_model(a, "m"))).unwrap();
    edit(&mut world, Edit::CreateModel(new_model(c, "open/gpt"))).unwrap();
    let aliased = |name: &str| vec![models::Set::Aliases([ModelName::parse(name).unwrap()].into())];
    edit(&mut world, Edit::ChangeModel(place("a", "m"), aliased("quick"))).unwrap();
    confined(&mut world, "a", &["a/m", "open/gpt", "quick"]);
    let meant = |routing: &Routing| {
        let entries = ["a/m", "open/gpt", "quick"].into_iter();
        let by = |it: &str| routing.models.iter().filter(|model| routing.means(model, it) == routing.meant(it)).count();
        entries.map(by).collect::<Vec<_>>()
    };
    // Another's own id that reads like a provider's model takes nothing, and neither does an alias.
    let routing = edit(&mut world, Edit::CreateModel(new_model(c, "a/m"))).unwrap().routing;
    assert_eq!(meant(&routing), [1, 1, 1]);
    edit(&mut world, Edit::CreateModel(NewModel { set: aliased("open/gpt"), ..new_model(a, "other") })).unwrap();
    // The provider's model, though another bears the name.
    let refused = edit(&mut world, Edit::RemoveModel(place("a", "m"))).unwrap_err();
    assert_eq!((refused.kind(), refused.reason()), (Kind::NotAllowed, Some("task class `a` names it, as `a/m`")));
    let refused = edit(&mut world, Edit::RemoveModel(place("c", "open/gpt"))).unwrap_err();
    assert_eq!(refused.reason(), Some("task class `a` names it, as `open/gpt`"));
    // What a list has as an alias becomes no model's id, and what it has as an id no provider's model.
    let refused = edit(&mut world, Edit::CreateModel(new_model(c, "quick"))).unwrap_err();
    assert_eq!((refused.kind(), fields(&refused)), (Kind::InvalidRequest, vec!["id"]));
    let open = create_upstream(&mut world, "open");
    let refused = edit(&mut world, Edit::CreateModel(new_model(open, "gpt"))).unwrap_err();
    assert_eq!((refused.kind(), fields(&refused)), (Kind::InvalidRequest, vec!["id"]));
    edit(&mut world, Edit::CreateModel(new_model(open, "large"))).unwrap();
    let refused = edit(&mut world, Edit::ChangeModel(place("open", "large"), aliased("gpt"))).unwrap_err();
    assert_eq!((refused.kind(), fields(&refused)), (Kind::InvalidRequest, vec!["aliases"]));
    edit(&mut world, Edit::RemoveModel(place("open", "large"))).unwrap();
    edit(&mut world, Edit::RemoveUpstream(open)).unwrap();
    let later = create_upstream(&mut world, "later");
    edit(&mut world, Edit::CreateModel(new_model(later, "gpt"))).unwrap();
    let renamed = vec![upstreams::Set::Name(UpstreamName::parse("open").unwrap())];
    let refused = edit(&mut world, Edit::ChangeUpstream(later, renamed.clone())).unwrap_err();
    assert_eq!((refused.kind(), fields(&refused)), (Kind::InvalidUpstream, vec!["name"]));
    // With its provider it is nobody else's, whoever comes.
    let named = Limit::Models(vec!["a/m".into(), "c/open/gpt".into(), "quick".into()]);
    edit(&mut world, Edit::ChangeClass(class("a"), vec![classes::Set::Limit(named)])).unwrap();
    edit(&mut world, Edit::ChangeUpstream(later, renamed)).unwrap();
    world.audit();
}

/// A workspace has so many of each and no more, and what people call things is in the ledger as a commitment.
#[test]
fn there_are_bounds_and_commitments() {
    let (mut world, _) = calm(&[PAY]);
    for number in 0..UPSTREAMS_MAX {
        create_upstream(&mut world, &format!("u{number}"));
    }
    let refused = edit(&mut world, Edit::CreateUpstream(upstream("more"))).unwrap_err();
    assert_eq!((refused.kind(), fields(&refused)), (Kind::InvalidUpstream, vec!["body"]));
    let set = vec![
        classes::Set::Name(Some(Label::parse("Planted name").unwrap())),
        classes::Set::Limit(Limit::MinQuality(Some(3))),
    ];
    let routing = edit(&mut world, Edit::CreateClass(class("a"), set)).unwrap().routing;
    assert_eq!(routing.class(&class("a")).unwrap().constraints.min_quality, Some(3));
    let told = told(&mut world);
    let (kind, data) = told.last().unwrap();
    assert!(kind == "task_class.created" && data.contains("minQuality") && !data.contains("Planted"));
    let routing = edit(&mut world, Edit::Change(vec![Set::Mode(Mode::Enforce)])).unwrap().routing;
    let mode = |routing: &Routing| routing.mode_for(None);
    assert_eq!((mode(&routing), CLASSES_MAX), (Mode::Enforce, 500));
}
