//! What was asked in another system says so once it has ended, however it has: no button is left that decides nothing.

use std::sync::Arc;

use svc_core::rules::edge::deliver::{ClaimDelivery, Claimed, FinishDelivery};
use svc_core::rules::edge::integrations::{CreateIntegration, NewSecret};
use svc_core::rules::edge::message::About;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::asked::Stands;
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::members::RemoveMember;
use svc_core::state::edge::{
    ConfigChange, IntegrationKind, Job, LinkedMember, News, Posted, SealedSecret, Tried, Work,
};
use svc_core::state::gate::{Action, Approval};
use svc_core::state::people::Role;
use svc_core::testing::world::{World, request};
use svc_core::value::Span;
use svc_core::value::id::{ActionId, DeliveryId};

use super::calm;
use super::fleet::note;
use super::tell::{jobs, spread};

/// A workspace that asks two people in Slack, and an agent whose every action is asked.
struct Chat {
    world: World,
    agent: Caller,
    owner: Person,
    admin: Person,
}

fn posted() -> Posted {
    Posted { channel: "D024BE91L".into(), ts: "1790847000.000100".into() }
}

impl Chat {
    fn new() -> Self {
        let (mut world, agent) = calm(&[]);
        let (owner, admin) = (world.owner(), world.person(Role::Admin));
        let now = world.now();
        let link = |name: &str, of: &Person| LinkedMember { name: name.into(), principal: of.principal, since: now };
        let token = SealedSecret { sealed: "x".into(), hint: "y".into(), created_at: now, ends_at: None };
        let members = Some(vec![link("UADMIN", &admin), link("UOWNER", &owner)]);
        let config = ConfigChange { members, bot_token: Some(Some(token)), ..ConfigChange::default() };
        let (workspace, secret) = (world.workspace(), NewSecret { sealed: "sealed".into(), hint: "seal".into() });
        let kind = IntegrationKind::Slack;
        world.run(CreateIntegration { by: By::Program, workspace, kind, secret, config }).unwrap();
        Self { world, agent, owner, admin }
    }

    fn messages(&mut self, is_it: fn(&News) -> bool) -> Vec<Arc<Job>> {
        let is_it = |it: &Arc<Job>| matches!(&it.work, Work::Message { news, .. } if is_it(news));
        jobs(&mut self.world).into_iter().filter(is_it).collect()
    }

    fn claim(&mut self, job: DeliveryId) -> Option<Claimed> {
        self.world.run(ClaimDelivery { job }).unwrap().taken()
    }

    fn finish(&mut self, claimed: &Claimed, posted: Option<Posted>) {
        let tried = Tried { status: Some(200), error: None, ms: 1 };
        let (job, claim) = (claimed.job.id, claimed.job.claims);
        self.world.run(FinishDelivery { job, claim, tried, wait_s: None, posted }).unwrap();
    }

    /// An action that waits, and those who are asked have the message.
    fn asked(&mut self, kind: &str) -> ActionId {
        let action = self.world.authorize(&self.agent, request(kind)).id();
        spread(&mut self.world);
        for job in self.messages(|it| matches!(it, News::Asked { .. })) {
            if let Some(claimed) = self.claim(job.id) {
                self.finish(&claimed, Some(posted()));
            }
        }
        action
    }

    /// How what is told of an end reads, one for each message that is changed.
    fn told(&mut self) -> Vec<Stands> {
        self.world.advance(Span::seconds(1));
        let mut found = Vec::new();
        for job in self.messages(|it| matches!(it, News::Ended { .. })) {
            let Some(claimed) = self.claim(job.id) else { continue };
            let message = claimed.message.as_ref().unwrap();
            let About::Ended(asked, at) = &message.about else { panic!("{message:?}") };
            let reach = message.reach.as_ref().unwrap();
            assert_eq!((at, &*reach.name, &*reach.token.sealed), (&posted(), "D024BE91L", "x"));
            found.push(asked.question.stands);
            self.finish(&claimed, None);
        }
        found
    }
}

/// Each message says what came of it: decided by a person, taken back by a stop, or out of time; once, and of what waits nothing.
#[test]
fn however_it_ends_each_message_says_so_once() {
    let mut chat = Chat::new();
    let (yes, no, late) = (chat.asked("deploy"), chat.asked("crm.read"), chat.asked("custom.publish"));
    assert_eq!(chat.told(), []);
    let (owner, admin) = (chat.owner, chat.admin);
    chat.world.approve(&owner, yes);
    assert_eq!(chat.told(), [Stands::Approved; 2]);
    chat.world.deny(&admin, no);
    assert_eq!(chat.told(), [Stands::Denied; 2]);
    chat.world.advance(Span::hours(24));
    assert_eq!(chat.told(), [Stands::Expired; 2]);
    let stopped = chat.asked("deploy");
    let (workspace, agent) = (chat.world.workspace(), chat.agent.agent);
    chat.world.run(FreezeAgent { workspace, agent, by: By::Program, reason: note("a test") }).unwrap();
    assert_eq!(chat.told(), [Stands::Denied; 2]);
    assert_eq!(chat.told(), []);
    for action in [yes, no, late, stopped] {
        let approval = chat.world.row::<Action>(action).approval.unwrap();
        assert!(chat.world.row::<Approval>(approval).posted.is_empty());
    }
    chat.world.audit();
}

/// A message that was under way when its question ended says so too, and one whose reader has left since; where nobody knows where a
/// message stands, nothing is changed.
#[test]
fn what_was_under_way_is_changed_too() {
    let mut chat = Chat::new();
    let action = chat.world.authorize(&chat.agent, request("deploy")).id();
    spread(&mut chat.world);
    let under_way: Vec<Claimed> = chat
        .messages(|it| matches!(it, News::Asked { .. }))
        .iter()
        .map(|it| it.id)
        .collect::<Vec<_>>()
        .into_iter()
        .filter_map(|it| chat.claim(it))
        .collect();
    let [first, second] = &*under_way else { panic!("{under_way:?}") };
    let owner = chat.owner;
    chat.world.approve(&owner, action);
    assert_eq!(chat.told(), []);
    chat.finish(first, Some(posted()));
    chat.finish(second, None);
    let (workspace, principal) = (chat.world.workspace(), chat.admin.principal);
    chat.world.run(RemoveMember { workspace, by: By::Program, principal }).unwrap();
    assert_eq!(chat.told(), [Stands::Approved]);
    chat.world.audit();
}
