//! What the rules refuse by themselves: also of a program that asks them without a body that was read before.

use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::people::agents::ChangeAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::ChangeMandate;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::rules::people::tokens::CreateToken;
use svc_core::state::gate::{Agent, LimitsChange, Set, TermsChange, Tier};
use svc_core::state::people::{Role, ServiceToken, TokenScope};
use svc_core::testing::World;
use svc_core::value::digest::Digest;
use svc_core::value::id::PrincipalId;
use svc_core::value::text::Label;

use super::fleet::token;
use super::{PAY, calm};

fn fields(refusal: &Refusal) -> Vec<&str> {
    refusal.errors().iter().filter_map(|it| it.field.as_deref()).collect()
}

/// A service token lives for 1 to 90 days.
#[test]
fn a_token_has_its_days() {
    let mut world = World::new();
    let (workspace, by) = (world.workspace(), By::Person(world.owner()));
    for (days, is_made) in [(0, false), (1, true), (90, true), (91, false)] {
        let text = format!("soar of {days}");
        let made = world.run(CreateToken {
            workspace,
            by: by.clone(),
            name: Label::parse(&text).unwrap(),
            scopes: vec![TokenScope::AgentsFreeze],
            days,
            ip_allow: Vec::new(),
            digest: Digest::of(&text),
        });
        match made {
            Ok(_) => assert!(is_made, "{days}"),
            Err(refusal) => {
                let told = (refusal.kind(), fields(&refusal));
                assert!(!is_made && told == (Kind::InvalidRequest, vec!["expiresInDays"]), "{days}: {told:?}");
            }
        }
    }
    world.audit();
}

/// A mandate stays in the currency in which it was granted.
#[test]
fn a_mandate_keeps_its_currency() {
    let (mut world, agent) = calm(&[PAY]);
    let mandate = world.row::<Agent>(agent.agent).mandates[0].id;
    for (currency, is_refused) in [("USD", true), ("EUR", false)] {
        let limits = LimitsChange { currency: Set::To(currency.parse().unwrap()), ..LimitsChange::default() };
        let changed = world.run(ChangeMandate {
            workspace: world.workspace(),
            by: By::Program,
            agent: agent.agent,
            mandate,
            change: TermsChange { limits: Set::To(limits), ..TermsChange::default() },
            paused: None,
            confirm_broaden: true,
            counted: None,
        });
        let told = changed.err().map(|it| it.kind());
        assert_eq!(told, is_refused.then_some(Kind::InvalidMandate), "{currency}");
    }
    world.audit();
}

/// What makes an agent trusted, and who answers for it or stops it, is set by whoever manages agents: no token, and no member for
/// an agent of their own.
#[test]
fn trust_is_given_by_whoever_manages_agents() {
    let (mut world, agent) = calm(&[]);
    let (owner, member) = (world.owner().principal, world.person(Role::Member));
    world.edit::<Agent>(agent.agent, |it| it.principal = member.principal);
    let workspace = world.workspace();
    let machine = token(&mut world, 7);
    let By::Token(caller) = &machine else { panic!("a token") };
    world.edit::<ServiceToken>(caller.row, |it| it.scopes.push(TokenScope::AgentsWrite));
    type Given = (Option<Tier>, Option<PrincipalId>, Option<PrincipalId>);
    let given: [Given; 4] =
        [(None, None, None), (Some(Tier::Trusted), None, None), (None, Some(owner), None), (None, None, Some(owner))];
    for (number, (tier, sponsor, kill_owner)) in given.into_iter().enumerate() {
        let expected = (number > 0).then_some(Kind::Forbidden);
        let name = Label::parse(&format!("Agent {number}")).unwrap();
        let new = RegisterAgent::new(workspace, name.clone(), NewKey::of(&format!("ask_{number:043}")));
        let new =
            RegisterAgent { by: machine.clone(), tier: tier.unwrap_or(Tier::Standard), sponsor, kill_owner, ..new };
        assert_eq!(world.run(new).err().map(|it| it.kind()), expected, "registered {number}");
        let changed = world.run(ChangeAgent {
            workspace,
            by: By::Person(member),
            agent: agent.agent,
            name: Some(name),
            tier,
            sponsor: sponsor.map(Some),
            kill_owner: kill_owner.map(Some),
        });
        assert_eq!(changed.err().map(|it| it.kind()), expected, "changed {number}");
    }
    world.audit();
}
