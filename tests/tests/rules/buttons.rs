//! Buttons of other systems: whose word a press is, what is taken and what is not, and what is left of either.

use svc_core::refusal::Kind;
use svc_core::rules::edge::button::{
    CHANGED, DECIDED, EXPIRED, FORBIDDEN, NOT_FOUND, NOT_LINKED, NOT_POSSIBLE, ON_PAGE, Once, Press, SECOND_FACTOR,
    USED,
};
use svc_core::rules::edge::integrations::{
    ChangeIntegration, CreateIntegration, NewSecret, RemoveIntegration, RotateIntegration, TestIntegration, ended_links,
};
use svc_core::rules::edge::receive::{Deed, Event, EventName, Receive, Vouched};
use svc_core::rules::evidence::erase::{Erase, Target};
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::asked::get_approval;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gate::lift::{Lift, LiftHold};
use svc_core::rules::people::by::{By, Person, Seat};
use svc_core::rules::people::mandates::RevokeMandate;
use svc_core::rules::people::members::{ChangeMember, RemoveMember};
use svc_core::rules::people::settings::{ChangeSettings, SettingsChange};
use svc_core::state::edge::{
    ConfigChange, Heard, Integration, IntegrationKind, IntegrationSlot, LinkedMember, Received,
};
use svc_core::state::gate::{Action, Agent, Approval, ApprovalState, Via};
use svc_core::state::people::{Principal, Role, Selector, Settings, Workspace};
use svc_core::store::Row as _;
use svc_core::testing::World;
use svc_core::testing::world::payment;
use svc_core::value::digest::Digest;
use svc_core::value::id::{ActionId, ApprovalId, IntegrationId, PrincipalId};
use svc_core::value::text::Note;
use svc_core::value::{Id as _, Span, Timestamp};

use super::fleet::halted;
use super::{fast, with};

const ASKS: &str =
    r#"{"name":"Asks","actions":["payment"],"limits":{"currency":"EUR","perAction":10000,"askAbove":5000}}"#;

/// A world with an integration that links people to members.
struct Chat {
    world: World,
    agent: Caller,
    owner: Person,
    slot: IntegrationSlot,
    id: IntegrationId,
    sent: u64,
}

fn links(members: &[(&str, PrincipalId)]) -> ConfigChange {
    let link = |(name, principal): &(&str, PrincipalId)| LinkedMember {
        name: (*name).into(),
        principal: *principal,
        since: Timestamp::default(),
    };
    ConfigChange { members: Some(members.iter().map(link).collect()), ..ConfigChange::default() }
}

impl Chat {
    /// One in which the owner is `UOWNER`.
    fn new(kind: IntegrationKind, settings: Settings) -> Self {
        let (mut world, agent) = with(settings, &[ASKS]);
        let owner = world.owner();
        let slot = IntegrationSlot { workspace: world.workspace(), kind };
        let secret = NewSecret { sealed: "sealed".into(), hint: "hint".into() };
        let config = links(&[("UOWNER", owner.principal)]);
        let made = CreateIntegration { by: By::Program, workspace: slot.workspace, kind, secret, config };
        let id = world.run(made).unwrap().id;
        Self { world, agent, owner, slot, id, sent: 0 }
    }

    fn slack() -> Self {
        Self::new(IntegrationKind::Slack, fast())
    }

    fn link(&mut self, members: &[(&str, PrincipalId)]) {
        let (workspace, id) = (self.slot.workspace, self.id);
        let config = links(members);
        self.world.run(ChangeIntegration { by: By::Program, workspace, id, enabled: None, config }).unwrap();
    }

    /// Whose name is `name` from now on, beside the owner.
    fn linked(&mut self, name: &str, role: Role) -> Person {
        let person = self.world.person(role);
        self.link(&[("UOWNER", self.owner.principal), (name, person.principal)]);
        person
    }

    /// Leaves `person`, who is `UANN`, out once and names them again.
    fn linked_again(&mut self, person: &Person) {
        self.link(&[("UOWNER", self.owner.principal)]);
        self.world.advance(Span::seconds(1));
        self.link(&[("UOWNER", self.owner.principal), ("UANN", person.principal)]);
    }

    fn asked(&mut self) -> (ActionId, ApprovalId) {
        let action = self.world.authorize(&self.agent, payment(6_000, "EUR", "shop.example")).id();
        (action, self.world.row::<Action>(action).approval.unwrap())
    }

    fn tell(&mut self, press: Press) -> Heard {
        self.sent += 1;
        let request = Received::request(self.slot, &[&self.sent.to_be_bytes()]);
        let event = Event { name: EventName::Known("approve"), id: None, deed: Deed::Press(Box::new(press)) };
        let (slot, integration) = (self.slot, self.id);
        let vouched = Vouched::Secret("sealed".into());
        self.world.run(Receive { slot, integration, vouched, request, kept: Span::minutes(15), event }).unwrap()
    }

    /// The digest that a button of `approval` stands beside.
    fn digest(&mut self, approval: ApprovalId) -> Option<Digest> {
        let rows = self.world.rows();
        let row = rows.iter().find_map(|(.., it)| Approval::peel(it).filter(|it| it.id == approval))?;
        row.asked_action().map(|it| it.digest)
    }

    fn press(&mut self, name: &str, approval: ApprovalId, choice: Choice) -> (String, Option<String>) {
        let digest = self.digest(approval);
        let heard = self.tell(Press { digest, ..press(name, approval, choice) });
        (heard.outcome.into(), heard.stands.map(Into::into))
    }

    fn yes(&mut self, name: &str, approval: ApprovalId) -> String {
        self.press(name, approval, Choice::Approve).0
    }

    fn state(&mut self, approval: ApprovalId) -> ApprovalState {
        self.world.row::<Approval>(approval).state.clone()
    }
}

fn press(name: &str, approval: ApprovalId, choice: Choice) -> Press {
    Press { name: name.into(), approval, choice, digest: None, once: None }
}

fn told(outcome: &str, stands: &str) -> (String, Option<String>) {
    (outcome.to_owned(), Some(stands.to_owned()))
}

/// A press is its member's word: the approval names them, from where, in no session; the ledger has it and no name of theirs.
#[test]
fn a_press_is_its_members_word() {
    for (kind, via) in [(IntegrationKind::Slack, Via::Slack), (IntegrationKind::Relay, Via::Relay)] {
        let mut chat = Chat::new(kind, fast());
        let (action, approval) = chat.asked();
        assert_eq!(chat.press("UOWNER", approval, Choice::Approve), told("approved", "approved"));
        let row = chat.world.row::<Approval>(approval);
        let consent = row.approvals.first().unwrap();
        assert_eq!((consent.by, consent.via, consent.session), (chat.owner.principal, via, None));
        assert!(chat.world.read(&chat.agent.clone(), action).receipt().is_some());
        let ledger = chat.world.ledger();
        assert!(ledger.contains(&format!(r#""via":"{}""#, via.as_str())) && !ledger.contains("UOWNER"), "{ledger}");
        let (_, approval) = chat.asked();
        assert_eq!(chat.press("UOWNER", approval, Choice::Deny), told("denied", "denied"));
        assert_eq!(chat.press("UOWNER", approval, Choice::Approve), told(DECIDED, "denied"));
        chat.world.audit();
    }
}

/// A yes that the rules do not let pass any more is told as what it came to, and not as taken.
#[test]
fn a_yes_that_came_to_a_no_is_told_so() {
    let mut chat = Chat::slack();
    let (action, approval) = chat.asked();
    let (_, other) = chat.asked();
    let mandate = chat.world.row::<Action>(action).mandate.unwrap().mandate;
    let (workspace, agent, by) = (chat.world.workspace(), chat.agent.agent, By::Program);
    chat.world.run(RevokeMandate { workspace, by, agent, mandate }).unwrap();
    assert_eq!(chat.press("UOWNER", approval, Choice::Approve), told(NOT_POSSIBLE, "denied"));
    assert_eq!(chat.press("UOWNER", other, Choice::Deny), told("denied", "denied"));
    chat.world.audit();
}

/// Whoever is linked to nobody is told alike, whether there is such an approval or not; so is a member of what is not theirs.
#[test]
fn strangers_learn_nothing() {
    let mut chat = Chat::slack();
    let (_, approval) = chat.asked();
    let nowhere = ApprovalId::from_bits(7);
    let ann = chat.linked("UANN", Role::Member);
    for id in [approval, nowhere] {
        for choice in [Choice::Approve, Choice::Deny] {
            assert_eq!(chat.press("USTRANGER", id, choice), (NOT_LINKED.to_owned(), None));
            assert_eq!(chat.press("UANN", id, choice), (NOT_FOUND.to_owned(), None));
        }
    }
    let (agent, sponsor) = (chat.agent.agent, ann.principal);
    chat.world.edit::<Agent>(agent, |it| it.sponsor = Some(sponsor));
    assert_eq!(chat.yes("UANN", approval), "approved");
    chat.world.edit::<Principal>(chat.owner.principal, |it| it.member.as_mut().unwrap().role = Role::Analyst);
    let (_, approval) = chat.asked();
    assert_eq!(chat.press("UOWNER", approval, Choice::Approve), (FORBIDDEN.to_owned(), None));
    chat.world.audit();
}

/// What has changed, is over or was stopped is told, and nothing is decided.
#[test]
fn what_is_over_is_told() {
    let mut chat = Chat::slack();
    let (_, approval) = chat.asked();
    for choice in [Choice::Approve, Choice::Deny] {
        let other = Press { digest: Some(Digest::of("other")), ..press("UOWNER", approval, Choice::Approve) };
        assert_eq!(&*chat.tell(other).outcome, CHANGED);
        let none = press("UOWNER", approval, choice);
        assert_eq!(&*chat.tell(none).outcome, CHANGED, "what it stood beside is said");
    }
    assert_eq!(chat.state(approval), ApprovalState::Waiting);
    chat.world.clock().advance(Span::hours(24));
    assert_eq!(chat.press("UOWNER", approval, Choice::Approve), told(EXPIRED, "expired"));
    let (_, approval) = chat.asked();
    let agent = chat.agent.agent;
    chat.world.freeze(agent);
    assert_eq!(chat.press("UOWNER", approval, Choice::Approve), told(DECIDED, "denied"));
    chat.world.audit();
}

/// Where two have to agree, neither says so over a link, first or second: whoever signs for it could be both. A no is heard.
#[test]
fn two_persons_agree_in_sessions_alone() {
    let mut settings = fast();
    settings.second_person_above.insert("EUR".parse().unwrap(), 5_000);
    for kind in [IntegrationKind::Relay, IntegrationKind::Slack] {
        let mut chat = Chat::new(kind, settings.clone());
        let admin = chat.linked("UADMIN", Role::Admin);
        let (_, approval) = chat.asked();
        assert_eq!(chat.press("UOWNER", approval, Choice::Approve), told(ON_PAGE, "waiting"));
        assert_eq!(chat.world.row::<Approval>(approval).approvals.len(), 0);
        chat.world.run(DecideApproval::new(admin, approval, Choice::Approve)).unwrap();
        for name in ["UADMIN", "UOWNER"] {
            assert_eq!(chat.press(name, approval, Choice::Approve), told(ON_PAGE, "waiting"));
        }
        let row = chat.world.row::<Approval>(approval);
        assert_eq!((&row.state, row.approvals.len()), (&ApprovalState::Waiting, 1));
        assert_eq!(chat.press("UOWNER", approval, Choice::Deny), told("denied", "denied"));
        chat.world.audit();
    }
}

/// How many have to agree is what the settings say at the press, not what they said when the message was sent.
#[test]
fn a_line_counts_once_it_is_drawn() {
    let mut chat = Chat::slack();
    let (_, approval) = chat.asked();
    let workspace = chat.slot.workspace;
    chat.world.edit::<Workspace>(workspace, |it| {
        it.settings.second_person_above.insert("EUR".parse().unwrap(), 5_000);
    });
    assert_eq!(chat.press("UOWNER", approval, Choice::Approve), told(ON_PAGE, "waiting"));
    chat.world.audit();
}

/// What takes the second factor is not decided by a button, and a member who has to set one up decides nothing.
#[test]
fn a_button_shows_no_second_factor() {
    let mut settings = fast();
    settings.step_up_above.insert("EUR".parse().unwrap(), 5_000);
    let mut chat = Chat::new(IntegrationKind::Slack, settings);
    let (_, approval) = chat.asked();
    assert_eq!(chat.press("UOWNER", approval, Choice::Approve), told(SECOND_FACTOR, "waiting"));
    assert_eq!(
        (chat.state(approval), chat.world.row::<Approval>(approval).approvals.len()),
        (ApprovalState::Waiting, 0)
    );
    assert_eq!(chat.press("UOWNER", approval, Choice::Deny), told("denied", "denied"));
    let workspace = chat.slot.workspace;
    let mut settings = chat.world.row::<Workspace>(workspace).settings.clone();
    settings.sign_in.require_two_factor = true;
    chat.world.edit::<Workspace>(workspace, |it| it.settings = settings);
    let (_, approval) = chat.asked();
    for id in [approval, ApprovalId::from_bits(7)] {
        for choice in [Choice::Approve, Choice::Deny] {
            assert_eq!(chat.press("UOWNER", id, choice), (SECOND_FACTOR.to_owned(), None));
        }
    }
    chat.world.audit();
}

/// The names whose links are over.
fn ended(chat: &mut Chat) -> Vec<String> {
    let row = chat.world.row::<Integration>(chat.slot);
    let names = chat.world.engine().read(|scope| ended_links(scope, &row)).unwrap();
    names.iter().map(ToString::to_string).collect()
}

/// A link is over once its member is signed out by an identity provider, or has left; the same list sent again leaves it over, and
/// whoever is left out and named again is linked anew.
#[test]
fn a_link_ends_with_its_members_sessions() {
    let mut chat = Chat::slack();
    let ann = chat.linked("UANN", Role::Admin);
    let (_, approval) = chat.asked();
    let now = chat.world.now();
    chat.world.edit::<Principal>(ann.principal, |it| it.member.as_mut().unwrap().signed_out_at = Some(now));
    assert_eq!(chat.yes("UANN", approval), NOT_LINKED);
    chat.world.advance(Span::seconds(1));
    let since = |chat: &mut Chat, name: &str| {
        let row = chat.world.row::<Integration>(chat.slot);
        row.config.members().iter().find(|it| &*it.name == name).unwrap().since
    };
    let before = (since(&mut chat, "UOWNER"), since(&mut chat, "UANN"));
    let all = [("UOWNER", chat.owner.principal), ("UANN", ann.principal)];
    chat.link(&all);
    assert_eq!((since(&mut chat, "UOWNER"), since(&mut chat, "UANN")), before);
    assert_eq!(chat.yes("UANN", approval), NOT_LINKED);
    assert_eq!(ended(&mut chat), ["UANN"]);
    let row = chat.world.row::<Integration>(chat.slot);
    assert_eq!(
        (row.state_without(1).as_str(), row.state_without(2).as_str()),
        ("ok", "off"),
        "off where nobody decides by it any more"
    );
    chat.link(&all[..1]);
    chat.link(&all);
    assert_eq!((since(&mut chat, "UOWNER"), since(&mut chat, "UANN")), (before.0, chat.world.now()));
    assert!(ended(&mut chat).is_empty());
    assert_eq!(chat.yes("UANN", approval), "approved");
    let (_, approval) = chat.asked();
    let workspace = chat.slot.workspace;
    chat.world.run(RemoveMember { by: By::Program, workspace, principal: ann.principal }).unwrap();
    assert_eq!(chat.yes("UANN", approval), NOT_LINKED);
    let erase = Erase::new(workspace, By::Program, Target::Principal(ann.principal));
    chat.world.run(erase).unwrap();
    let row = chat.world.row::<Integration>(chat.slot);
    let names: Vec<&str> = row.config.members().iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["UOWNER"], "whoever is erased is named by nothing");
    chat.world.audit();
}

/// What a chat calls somebody stands in the integration and in no record or text beside one, linked or not, so that it goes with them;
/// another name is another digest.
#[test]
fn no_record_keeps_what_a_chat_calls_somebody() {
    let mut chat = Chat::slack();
    let ann = chat.linked("UANN", Role::Admin);
    let (_, approval) = chat.asked();
    assert_eq!(chat.yes("USTRANGER", approval), NOT_LINKED);
    assert_eq!(chat.yes("UANN", approval), "approved");
    chat.link(&[("UOWNER", chat.owner.principal), ("UOTHER", ann.principal)]);
    let ledger = chat.world.ledger();
    assert_eq!(ledger.matches("memberDigest").count(), 1, "{ledger}");
    let digests = ledger.split(r#""namesDigest":""#).skip(1).filter_map(|it| it.split('"').next());
    let digests: std::collections::BTreeSet<&str> = digests.collect();
    assert_eq!(digests.len(), 3, "{ledger}");
    let rows = chat.world.dump();
    let holders = |name: &str| rows.lines().filter(|it| it.contains(name)).count();
    let held = ["UOWNER", "UOTHER", "UANN", "USTRANGER"].map(holders);
    assert_eq!(held, [1, 1, 0, 0], "the integration alone names those whom it links");
    chat.world.audit();
}

/// Whoever holds the ledger finds no name by trying: a digest takes the integration's key, which no record has. An integration that
/// was made before there were keys gets one with the first name that it writes, and keeps it.
#[test]
fn nobody_finds_a_name_by_trying() {
    let mut chat = Chat::slack();
    let ann = chat.linked("UANN", Role::Admin);
    let slot = chat.slot;
    let key = chat.world.row::<Integration>(slot).names_key.unwrap();
    let all = key.digest(["UOWNER", "UANN"].into_iter());
    let (plain, ledger) = (format!("{}\n[\"UOWNER\",\"UANN\"]", chat.id), chat.world.ledger());
    assert!(ledger.contains(&all) && !ledger.contains(&Digest::of(plain).named()), "{ledger}");

    chat.world.edit::<Integration>(slot, |it| it.names_key = None);
    let (_, approval) = chat.asked();
    for _ in 0..2 {
        assert_eq!(chat.yes("USTRANGER", approval), NOT_LINKED);
    }
    let anew = chat.world.row::<Integration>(slot).names_key.unwrap();
    let stranger = anew.digest(["USTRANGER"].into_iter());
    let ledger = chat.world.ledger();
    assert_eq!((ledger.matches(&stranger).count(), anew == key), (2, false), "{ledger}");
    let key = serde_json::to_string(&anew).unwrap();
    assert!(!ledger.contains(key.trim_matches('"')) && !format!("{anew:?}").contains(key.trim_matches('"')));
    chat.world.edit::<Integration>(slot, |it| it.names_key = None);
    chat.link(&[("UOTHER", ann.principal)]);
    assert!(chat.world.row::<Integration>(slot).names_key.is_some_and(|it| it != anew));
    chat.world.audit();
}

/// Who is linked is a member of this workspace whose role decides; each who is not is named.
#[test]
fn only_members_who_decide_are_linked() {
    let mut chat = Chat::slack();
    let (analyst, elsewhere) = (chat.world.person(Role::Analyst).principal, PrincipalId::from_bits(7));
    let (workspace, id) = (chat.slot.workspace, chat.id);
    let config = links(&[("UA", analyst), ("UB", chat.owner.principal), ("UC", elsewhere)]);
    let refusal =
        chat.world.run(ChangeIntegration { by: By::Program, workspace, id, enabled: None, config }).unwrap_err();
    let named: Vec<_> = refusal.errors().iter().filter_map(|it| it.field.as_deref()).collect();
    assert_eq!((refusal.kind(), named), (Kind::InvalidRequest, vec!["config.members.UA", "config.members.UC"]));
    chat.world.audit();
}

/// A button that is pressed once is used by the word that it brought, and by nothing that was not taken; its time ends it.
#[test]
fn a_button_is_used_by_the_word_that_was_taken() {
    let mut chat = Chat::new(IntegrationKind::Relay, fast());
    let (_, approval) = chat.asked();
    let row = Received::button(chat.slot, chat.id, b"one");
    let once = Some(Once { row, until: chat.world.now().plus(Span::hours(1)) });
    let tell = |chat: &mut Chat, name: &str, once| {
        let digest = chat.digest(approval);
        let heard = chat.tell(Press { once, digest, ..press(name, approval, Choice::Approve) });
        heard.outcome.into_string()
    };
    assert_eq!(tell(&mut chat, "USTRANGER", once), NOT_LINKED);
    let over = Some(Once { row, until: chat.world.now() });
    assert_eq!(tell(&mut chat, "UOWNER", over), EXPIRED);
    assert_eq!(tell(&mut chat, "UOWNER", once), "approved");
    assert_eq!(tell(&mut chat, "UOWNER", once), USED);
    let kept = |chat: &mut Chat| {
        let key = svc_core::store::Key::Received(row);
        chat.world.rows().iter().any(|it| it.0 == key)
    };
    assert!(kept(&mut chat));
    chat.world.advance(Span::hours(1));
    assert!(!kept(&mut chat), "what is good no more is not remembered");
    chat.world.audit();
}

/// Who owns a workspace and what starts every agent again is said on its page; a no is heard anywhere.
#[test]
fn owners_words_are_said_on_the_page() {
    let mut chat = Chat::slack();
    let second = chat.linked("USECOND", Role::Owner);
    let (workspace, reason) = (chat.slot.workspace, Note::parse("a test").unwrap());
    let hold = halted(&mut chat.world, &By::Program, &Selector::everyone()).hold.unwrap();
    chat.world.advance(Span::seconds(1));
    let lift = LiftHold { by: By::Person(second), workspace, hold, reason, restart: false };
    let Lift::Asked(asked) = chat.world.run(lift).unwrap() else { panic!("a second owner is asked") };
    let approval = asked.id;
    assert_eq!(chat.press("UOWNER", approval, Choice::Approve), told(ON_PAGE, "waiting"));
    assert_eq!(chat.press("UOWNER", approval, Choice::Deny), told("denied", "denied"));
    chat.world.audit();
}

/// What vouches for a word on an approval vouches for nothing else.
#[test]
fn a_link_does_nothing_but_decide() {
    let mut chat = Chat::slack();
    let (_, approval) = chat.asked();
    let by = Person { seat: Seat::Link(chat.slot), ..chat.owner };
    let seen = |chat: &mut Chat, by: Person| {
        chat.world.engine().read(|scope| get_approval(scope, &By::Person(by), by.workspace, approval)).is_ok()
    };
    assert!(seen(&mut chat, by));
    let change =
        ChangeSettings { by: By::Person(by), workspace: chat.slot.workspace, change: SettingsChange::default() };
    assert_eq!(chat.world.run(change).unwrap_err().kind(), Kind::Forbidden);
    let stranger = chat.world.person(Role::Admin);
    let by = Person { seat: Seat::Link(chat.slot), ..stranger };
    assert!(!seen(&mut chat, by), "nobody is linked who is not named");
    let (workspace, id, config) = (chat.slot.workspace, chat.id, ConfigChange::default());
    chat.world.run(ChangeIntegration { by: By::Program, workspace, id, enabled: Some(false), config }).unwrap();
    let by = Person { seat: Seat::Link(chat.slot), ..chat.owner };
    assert!(!seen(&mut chat, by), "an integration that is off vouches for nobody");
}

/// An owner's word is the owners' to lend: whoever controls what links one speaks as them. An admin makes none that does, changes
/// nothing that proves it, and may take it away.
#[test]
fn no_admin_speaks_as_an_owner() {
    for kind in [IntegrationKind::Slack, IntegrationKind::Relay] {
        let mut chat = Chat::new(kind, fast());
        let (owner, admin, other) = (chat.owner, chat.world.person(Role::Admin), chat.world.person(Role::Admin));
        let (workspace, id) = (chat.slot.workspace, chat.id);
        let change = |by: Person, enabled: Option<bool>, config: ConfigChange| ChangeIntegration {
            by: By::Person(by),
            workspace,
            id,
            enabled,
            config,
        };
        let rotate = |by: Person| RotateIntegration {
            by: By::Person(by),
            workspace,
            id,
            secret: NewSecret { sealed: "sealed".into(), hint: "hint".into() },
            overlap_hours: 1,
        };
        let token = || ConfigChange { bot_token: Some(None), ..ConfigChange::default() };
        let both = || links(&[("UOWNER", owner.principal), ("UADMIN", admin.principal)]);
        let refused = [
            chat.world.run(change(admin, None, both())).map(drop),
            chat.world.run(change(admin, None, links(&[("UADMIN", owner.principal)]))).map(drop),
            chat.world.run(change(admin, Some(true), token())).map(drop),
            chat.world.run(rotate(admin)).map(drop),
            chat.world.run(TestIntegration { by: By::Person(admin), workspace, id, url: None }).map(drop),
        ];
        let kinds: Vec<_> = refused.into_iter().map(|it| it.unwrap_err().kind()).collect();
        let tried = if kind == IntegrationKind::Slack { Kind::Forbidden } else { Kind::NotAllowed };
        assert_eq!(kinds, [Kind::Forbidden, Kind::Forbidden, Kind::Forbidden, Kind::Forbidden, tried]);
        chat.world.run(change(admin, Some(false), ConfigChange::default())).unwrap();
        let on = change(admin, Some(true), ConfigChange::default());
        assert_eq!(chat.world.run(on).unwrap_err().kind(), Kind::Forbidden, "what an owner may have turned off");
        chat.world.run(change(owner, Some(true), both())).unwrap();
        chat.world.run(rotate(owner)).unwrap();

        let (_, approval) = chat.asked();
        chat.world.run(change(admin, None, links(&[("UADMIN", admin.principal)]))).unwrap();
        assert_eq!(chat.yes("UOWNER", approval), NOT_LINKED, "an admin takes it away");
        chat.world.run(rotate(admin)).unwrap();
        let again = links(&[("UADMIN", admin.principal), ("UOWNER", owner.principal)]);
        assert_eq!(chat.world.run(change(admin, None, again)).unwrap_err().kind(), Kind::Forbidden);
        chat.world.run(RemoveIntegration { by: By::Person(admin), workspace, id }).unwrap();
        let make = |by: Person, config| CreateIntegration {
            by: By::Person(by),
            workspace,
            kind,
            secret: NewSecret { sealed: "sealed".into(), hint: "hint".into() },
            config,
        };
        let made = make(admin, links(&[("UX", owner.principal)]));
        assert_eq!(chat.world.run(made).unwrap_err().kind(), Kind::Forbidden);
        chat.world.run(make(admin, links(&[("UX", other.principal)]))).unwrap();
        chat.world.audit();
    }
}

/// A link that was made before its member became an owner is over: whoever linked an admin was not lent an owner's word. So is one of
/// an owner who has ceased to be one and become one again.
#[test]
fn a_link_is_over_once_its_member_becomes_an_owner() {
    let mut chat = Chat::slack();
    let ann = chat.linked("UANN", Role::Admin);
    let (_, approval) = chat.asked();
    let workspace = chat.slot.workspace;
    let becomes = |chat: &mut Chat, role| {
        chat.world.advance(Span::seconds(1));
        let (by, principal) = (By::Program, ann.principal);
        chat.world.run(ChangeMember { workspace, by, principal, role: Some(role), teams: None }).unwrap();
    };
    becomes(&mut chat, Role::Owner);
    assert_eq!(chat.yes("UANN", approval), NOT_LINKED);
    chat.linked_again(&ann);
    becomes(&mut chat, Role::Admin);
    becomes(&mut chat, Role::Owner);
    assert_eq!(chat.yes("UANN", approval), NOT_LINKED);
    chat.linked_again(&ann);
    assert_eq!(chat.yes("UANN", approval), "approved");
    chat.world.audit();
}

/// A list that is read can be sent again: whoever has left, or decides no more, stands in it still and is linked no more for it.
#[test]
fn a_list_is_taken_as_it_was_read() {
    let mut chat = Chat::slack();
    let (ann, ben) = (chat.world.person(Role::Admin), chat.world.person(Role::Member));
    let all = [("UOWNER", chat.owner.principal), ("UANN", ann.principal), ("UBEN", ben.principal)];
    chat.link(&all);
    let workspace = chat.slot.workspace;
    chat.world.run(RemoveMember { by: By::Program, workspace, principal: ann.principal }).unwrap();
    chat.world.edit::<Principal>(ben.principal, |it| it.member.as_mut().unwrap().role = Role::Analyst);
    chat.link(&all);
    assert_eq!(chat.world.row::<Integration>(chat.slot).config.members().len(), 3);
    let (_, approval) = chat.asked();
    assert_eq!((chat.yes("UANN", approval), chat.yes("UBEN", approval)), (NOT_LINKED.into(), FORBIDDEN.into()));
    let (id, config) = (chat.id, links(&[("UANN2", ann.principal)]));
    let anew = ChangeIntegration { by: By::Program, workspace, id, enabled: None, config };
    assert_eq!(chat.world.run(anew).unwrap_err().kind(), Kind::InvalidRequest);
    chat.world.audit();
}
