//! Where an action came from, and whose its session is.

use svc_core::rules::gate::Caller;
use svc_core::rules::gate::would::would;
use svc_core::state::gate::provenance::{Class, Verdict};
use svc_core::state::gate::{Account, Activity, ClientSession, Code, Declared, Effect, Request, Tier, Verb};
use svc_core::state::people::{OnMismatch, OnUndeclared};
use svc_core::testing::world::{World, paying, payment, request, terms, tool_call};
use svc_core::turn::Scope;
use svc_core::value::Span;
use svc_core::value::text::{SessionId, Source};

use super::{PAY, ask, calm, codes, fast};

fn from(request: Request, sources: &[&str]) -> Request {
    let declared = sources.iter().map(|it| Declared { source: Source::parse(it).unwrap(), detail: None });
    request.from_sources(declared.collect())
}

fn session(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

/// Puts what the gateway would have seen into a session.
fn observe(world: &mut World, caller: &Caller, id: &str, sources: &[&str]) {
    world.overwrite(ClientSession {
        carried: true,
        id: ClientSession::id_of(caller.workspace, &session(id)),
        owner: Some(caller.agent),
        named_at: world.now(),
        observed: sources.iter().map(|it| Source::parse(it).unwrap()).collect(),
        told: Vec::new(),
    });
}

/// Content that others wrote asks before a sink, and nowhere else; the least trusted source counts.
#[test]
fn untrusted_content_asks_before_a_sink() {
    let (mut world, agent) = calm(&[PAY, r#"{"name":"T","actions":["tool.call"]}"#]);
    let paid = world.authorize(&agent, from(payment(100, "EUR", "a.example"), &["user", "web"]));
    assert_eq!((paid.verb(), codes(&paid)), (Verb::Ask, vec![Code::UntrustedProvenance]));
    assert_eq!(paid.action().provenance.effective, Class::Public);
    assert_eq!(ask(&mut world, &agent, from(tool_call("ls"), &["web"])).0, Verb::Allow);
    assert_eq!(ask(&mut world, &agent, from(payment(101, "EUR", "b.example"), &["user", "file"])).0, Verb::Allow);
}

/// Every sink type asks on untrusted content; other types do not.
#[test]
fn the_sinks_are_sinks() {
    let everything = r#"{"name":"All","actions":["message.send","code.execute","deploy","record.delete","access.grant","infra.change","data.share","file.write","crm.*"]}"#;
    let (mut world, agent) = calm(&[everything]);
    for kind in
        ["message.send", "code.execute", "deploy", "record.delete", "access.grant", "infra.change", "data.share"]
    {
        assert_eq!(ask(&mut world, &agent, from(request(kind), &["email"])).1, [Code::UntrustedProvenance], "{kind}");
    }
    for kind in ["file.write", "crm.read"] {
        assert_eq!(ask(&mut world, &agent, from(request(kind), &["email"])).0, Verb::Allow, "{kind}");
    }
}

/// A trusted agent's untrusted content is noted only.
#[test]
fn a_trusted_agent_is_noted() {
    let mut world = World::with(fast());
    let agent = world.agent().with_mandate(terms(PAY)).tier(Tier::Trusted).register();
    let answer = world.authorize(&agent, from(payment(100, "EUR", "a.example"), &["web"]));
    assert_eq!((answer.verb(), answer.reasons()[0].effect), (Verb::Allow, Effect::Info));
}

/// Nothing declared counts as `agent` and is signalled; on a sink the workspace may ask or deny.
#[test]
fn undeclared_goes_by_the_setting_on_sinks() {
    let (mut world, agent) = calm(&[PAY, r#"{"name":"T","actions":["tool.call"]}"#]);
    let noted = world.authorize(&agent, payment(100, "EUR", "a.example"));
    assert_eq!((noted.verb(), noted.action().signals.clone()), (Verb::Allow, vec![Code::ProvenanceUndeclared]));
    assert_eq!(noted.action().provenance.effective, Class::FirstParty);
    for (setting, verb, minor) in [(OnUndeclared::Ask, Verb::Ask, 200), (OnUndeclared::Deny, Verb::Deny, 300)] {
        let mut settings = fast();
        settings.provenance.undeclared = setting;
        world.change_settings(settings);
        assert_eq!(
            ask(&mut world, &agent, payment(minor, "EUR", "b.example")),
            (verb, vec![Code::ProvenanceUndeclared])
        );
        assert_eq!(ask(&mut world, &agent, tool_call("ls")).0, Verb::Allow, "no sink");
    }
}

/// What the gate itself declares for a proxied call is declared: no setting for what nobody told touches it.
#[test]
fn what_the_gate_declares_is_declared() {
    let (mut world, agent) = calm(&[r#"{"name":"D","actions":["deploy"]}"#]);
    for setting in [OnUndeclared::Record, OnUndeclared::Ask, OnUndeclared::Deny] {
        let mut settings = fast();
        settings.provenance.undeclared = setting;
        world.change_settings(settings);
        let proxied = world.authorize(&agent, request("deploy").by_account_of(Account::Gate));
        assert_eq!((proxied.verb(), proxied.action().signals.len()), (Verb::Allow, 0), "{setting:?}");
        assert_eq!(proxied.action().provenance.declared.len(), 1);
    }
}

/// What the gate declared it declares again where its word is asked for later: what has been seen since is no account that an
/// agent gave too well. An agent's own account stays what it said.
#[test]
fn what_the_gate_declared_is_judged_again_by_what_it_has_seen() {
    let (mut world, agent) = calm(&[r#"{"name":"C","actions":["crm.*"]}"#]);
    for (account, verdict) in [(Account::Gate, Verdict::Consistent), (Account::Agent, Verdict::Understated)] {
        observe(&mut world, &agent, "s-1", &["file"]);
        let asked = from(request("crm.read"), &["file"]).in_session(session("s-1"));
        let decided = world.authorize(&agent, asked.by_account_of(account));
        assert_eq!((decided.verb(), decided.action().provenance.account), (Verb::Allow, account));
        observe(&mut world, &agent, "s-1", &["file", "web"]);
        let action = decided.action().clone();
        let said = world.engine().read(|scope: &mut Scope<'_>| would(scope, &action, None)).unwrap().unwrap();
        let mismatch = said.reasons.iter().any(|it| it.code == Code::ProvenanceMismatch);
        assert_eq!(mismatch, verdict == Verdict::Understated, "{account:?}: {:?}", said.reasons);
    }
}

/// What was seen entering the session and was not told: sinks are denied, all else asks, or as the workspace says.
#[test]
fn an_understated_account_goes_by_the_setting() {
    let (mut world, agent) = calm(&[PAY, r#"{"name":"T","actions":["tool.call"]}"#]);
    observe(&mut world, &agent, "s-1", &["web"]);
    let told = |request: Request| from(request, &["user"]).in_session(session("s-1"));
    let denied = world.authorize(&agent, told(payment(100, "EUR", "a.example")));
    assert_eq!(denied.verb(), Verb::Deny);
    assert_eq!(codes(&denied), [Code::UntrustedProvenance, Code::ProvenanceMismatch]);
    assert_eq!(
        (denied.action().provenance.verdict, denied.action().provenance.effective),
        (Verdict::Understated, Class::Public)
    );
    assert_eq!(ask(&mut world, &agent, told(tool_call("ls"))), (Verb::Ask, vec![Code::ProvenanceMismatch]));
    for (setting, effect) in [(OnMismatch::Ask, Effect::Ask), (OnMismatch::Record, Effect::Info)] {
        let mut settings = fast();
        settings.provenance.mismatch = setting;
        world.change_settings(settings);
        let answer = world.authorize(&agent, told(tool_call("ls")));
        assert_eq!(answer.reasons()[0].effect, effect);
    }
}

/// A session belongs to the agent that named it first; another agent is denied, until a day has passed.
#[test]
fn a_session_belongs_to_who_named_it_first() {
    let (mut world, first) = calm(&[r#"{"name":"T","actions":["tool.call"]}"#]);
    let second = world.agent().with_template("coding-agent").register();
    let trusted = world.agent().with_template("coding-agent").tier(Tier::Trusted).register();
    let call = || tool_call("ls").in_session(session("shared"));
    assert_eq!(ask(&mut world, &first, call()).0, Verb::Allow);
    assert_eq!(ask(&mut world, &second, call()), (Verb::Deny, vec![Code::SessionConflict]));
    assert_eq!(ask(&mut world, &trusted, call()), (Verb::Allow, vec![Code::SessionConflict]));
    assert_eq!(ask(&mut world, &first, call()).0, Verb::Allow, "the first keeps it");
    world.advance(Span::hours(24));
    assert_eq!(ask(&mut world, &second, call()).0, Verb::Allow);
    assert_eq!(ask(&mut world, &first, call()).0, Verb::Deny);
}

/// What an agent has read counts in a session that is another's, or was until now, as well: it was noted for the agent alone. Once the
/// session is its own, and its traffic has gone through it, what was seen there is all that counts.
#[test]
fn nothing_read_is_left_behind_in_anothers_session() {
    let (mut world, first) = calm(&[r#"{"name":"T","actions":["tool.call"]}"#]);
    let second = world.agent().with_template("coding-agent").tier(Tier::Trusted).register();
    let told = |text: &str| from(tool_call("ls"), &["user"]).in_session(session(text));
    let read = |world: &mut World| {
        let (now, web) = (world.now(), Source::parse("web").unwrap());
        world.edit::<Activity>(second.agent, |it| assert!(it.see([&web].into_iter(), now)));
    };
    observe(&mut world, &first, "shared", &["user"]);
    read(&mut world);
    let conflicting = world.authorize(&second, told("shared"));
    assert_eq!(codes(&conflicting), [Code::SessionConflict, Code::ProvenanceMismatch]);
    assert_eq!(conflicting.action().provenance.verdict, Verdict::Understated);
    world.advance(Span::hours(24));
    read(&mut world);
    for _ in 0..2 {
        assert_eq!(codes(&world.authorize(&second, told("shared"))), [Code::ProvenanceMismatch], "it passed on");
    }
    observe(&mut world, &second, "shared", &["user"]);
    assert_eq!(codes(&world.authorize(&second, told("shared"))), []);
}

/// A session that its owner goes on naming is theirs until a day after they named it last.
#[test]
fn a_session_is_kept_for_a_whole_day() {
    let (mut world, first) = calm(&[r#"{"name":"T","actions":["tool.call"]}"#]);
    let second = world.agent().with_template("coding-agent").register();
    let call = || tool_call("ls").in_session(session("shared"));
    assert_eq!(ask(&mut world, &first, call()).0, Verb::Allow);
    world.advance(Span::minutes(4));
    assert_eq!(ask(&mut world, &first, call()).0, Verb::Allow);
    world.advance(Span::millis(Span::hours(24).as_millis() - 1));
    assert_eq!(ask(&mut world, &second, call()).0, Verb::Deny);
    world.advance(Span::millis(1));
    assert_eq!(ask(&mut world, &second, call()).0, Verb::Allow);
}

/// What the gate puts where a client names no session, the id of its key, is the session of the key's own agent: another one
/// that names it neither takes it nor puts anything into it.
#[test]
fn the_name_for_no_session_is_its_own_agents() {
    let (mut world, first) = calm(&[r#"{"name":"T","actions":["tool.call"]}"#]);
    let second = world.agent().with_template("coding-agent").register();
    let key = first.key.to_string();
    let call = || tool_call("ls").in_session(session(&key));
    assert_eq!(ask(&mut world, &second, call()).0, Verb::Allow, "it means nothing to the second");
    assert_eq!(ask(&mut world, &first, call()).0, Verb::Allow, "nobody else has taken it");
    assert_eq!(ask(&mut world, &second, call()), (Verb::Deny, vec![Code::SessionConflict]));
    assert_eq!(ask(&mut world, &first, call()).0, Verb::Allow);
}

/// Whatever pays is a sink, whatever its type.
#[test]
fn whatever_pays_is_a_sink() {
    let pays = r#"{"name":"P","actions":["refund","transfer","crm.*"],"limits":{"currency":"EUR","perAction":10000}}"#;
    let (mut world, agent) = calm(&[pays]);
    for (kind, shop) in [("refund", "a.example"), ("transfer", "b.example"), ("crm.order", "c.example")] {
        assert_eq!(
            ask(&mut world, &agent, from(paying(kind, 100, "EUR", shop), &["web"])).1,
            [Code::UntrustedProvenance],
            "{kind}"
        );
    }
}
