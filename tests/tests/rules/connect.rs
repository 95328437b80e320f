//! Connections: codes and tokens are good once, for whom and for what they were given, and end with what they stand on.

use svc_core::refusal::Kind;
use svc_core::rules::connect::authenticate::ClientShown;
use svc_core::rules::connect::consent::{AskConsent, DecideConsent};
use svc_core::rules::connect::end::EndConnection;
use svc_core::rules::connect::exchange::ExchangeCode;
use svc_core::rules::connect::refresh::RefreshTokens;
use svc_core::rules::connect::register::RegisterClient;
use svc_core::rules::connect::revoke::RevokeOAuth;
use svc_core::rules::connect::{Grant, NewTokens};
use svc_core::rules::gate::Caller;
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::keys::{NewKey, RevokeKey, own_key};
use svc_core::rules::people::members::{ChangeMember, RemoveMember};
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::rules::read::check_key;
use svc_core::state::connect::{
    ClientAuth, ClientTally, Connection, EndedBy, OAuthClient, Redirect, TOKENS_KEPT, UNUSED_CLIENTS_MAX, Wish,
};
use svc_core::state::people::{Credential, Role};
use svc_core::store::{MemoryStore, Record};
use svc_core::testing::people;
use svc_core::testing::world::{World, payment};
use svc_core::value::Span;
use svc_core::value::digest::Digest;
use svc_core::value::id::{AgentId, ClientId, ConnectionId};
use svc_core::value::text::Label;

use super::{PAY, calm};

const REDIRECT: &str = "http://localhost:51645/callback";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A world with an agent, its owner signed in, and a client.
pub(super) struct Scene {
    pub(super) world: World<MemoryStore>,
    pub(super) agent: Caller,
    pub(super) owner: Person,
    client: ClientShown,
    drawn: u32,
}

impl Scene {
    pub(super) fn new() -> Self {
        let (mut world, agent) = calm(&[PAY]);
        let (workspace, now) = (world.workspace(), world.now());
        let owner = people::sign_in_owner(world.engine().store(), workspace, 1, now);
        let client = world.run(register(ClientAuth::None, None)).unwrap();
        let client = ClientShown { id: client.id.to_string().into(), secret: None };
        Self { world, agent, owner, client, drawn: 0 }
    }

    fn draw(&mut self, prefix: &str) -> String {
        self.drawn += 1;
        format!("{prefix}{:043}", self.drawn)
    }

    /// What comes of a person's yes: a code.
    pub(super) fn code_of(&mut self, person: Person, agent: AgentId) -> Result<String, Kind> {
        let (token, code) = (self.draw(""), self.draw("code"));
        let token = Digest::of(token);
        let wish = Wish {
            client: self.client.id.clone(),
            name: Label::parse("App").unwrap(),
            redirect: Redirect::parse(REDIRECT, &[]).unwrap(),
            challenge: CHALLENGE.into(),
            state: None,
        };
        self.world.run(AskConsent { session: person.session().unwrap(), wish, token }).map_err(|it| it.kind())?;
        let said =
            DecideConsent { session: person.session().unwrap(), token, agent: Some(agent), code: Digest::of(&code) };
        self.world.run(said).map_err(|it| it.kind())?;
        Ok(code)
    }

    fn code(&mut self) -> String {
        self.code_of(self.owner, self.agent.agent).unwrap()
    }

    fn new_tokens(&mut self) -> (Pair, NewTokens) {
        let pair = Pair { access: self.draw("aat_"), refresh: self.draw("art_") };
        let new = NewTokens { access: NewKey::of(&pair.access), refresh: Digest::of(&pair.refresh) };
        (pair, new)
    }

    pub(super) fn exchange(&mut self, code: &str, change: impl FnOnce(&mut ExchangeCode)) -> Result<Pair, Kind> {
        let (pair, new) = self.new_tokens();
        let mut asked = ExchangeCode {
            client: self.client.clone(),
            code: Digest::of(code),
            redirect: REDIRECT.into(),
            challenge: CHALLENGE.into(),
            new,
        };
        change(&mut asked);
        match self.world.run(asked).unwrap() {
            Grant::Given(_) => Ok(pair),
            Grant::Refused(refusal) | Grant::Ended { refusal, .. } => Err(refusal.kind()),
        }
    }

    pub(super) fn refresh(&mut self, token: &str) -> Result<Pair, Kind> {
        let (pair, new) = self.new_tokens();
        let asked = RefreshTokens { client: self.client.clone(), token: Digest::of(token), new };
        match self.world.run(asked).unwrap() {
            Grant::Given(_) => Ok(pair),
            Grant::Refused(refusal) | Grant::Ended { refusal, .. } => Err(refusal.kind()),
        }
    }

    pub(super) fn connect(&mut self) -> Pair {
        let code = self.code();
        self.exchange(&code, |_| {}).unwrap()
    }

    /// Whether an access token is good for asking the gate.
    pub(super) fn works(&mut self, access: &str) -> Result<(), Kind> {
        let digest = Digest::of(access);
        let binding = self.world.engine().read(|scope| check_key(scope, &digest));
        let binding = match binding {
            Ok(binding) => binding,
            Err(svc_core::engine::Failure::Refused(refusal)) => return Err(refusal.kind()),
            Err(failure) => panic!("{failure:?}"),
        };
        let caller = Caller::of(&binding).unwrap();
        let asked = self.world.try_authorize(&caller, payment(100, "EUR", "shop.example.com"));
        asked.map(drop).map_err(|it| it.kind())
    }

    fn connections(&mut self) -> Vec<Connection> {
        let rows = self.world.rows();
        let found = rows.iter().filter_map(|(_, _, it)| if let Record::Connection(it) = it { Some(it) } else { None });
        found.map(|it| Connection::clone(it)).collect()
    }

    pub(super) fn ended(&mut self) -> Option<EndedBy> {
        self.connections().pop().and_then(|it| it.ended).map(|it| it.by)
    }
}

pub(super) struct Pair {
    pub(super) access: String,
    pub(super) refresh: String,
}

fn register(auth: ClientAuth, secret: Option<Digest>) -> RegisterClient {
    let redirects = vec![Redirect::parse("http://localhost/callback", &[]).unwrap()];
    RegisterClient { name: Label::parse("App").unwrap(), redirects, auth, secret, instead_of: None }
}

/// A yes becomes a code, the code a pair of tokens, and the access token is the agent's for an hour.
#[test]
fn a_yes_becomes_tokens_that_are_the_agents_for_an_hour() {
    let mut scene = Scene::new();
    let pair = scene.connect();
    assert_eq!(scene.works(&pair.access), Ok(()));
    scene.world.advance(Span::minutes(59));
    assert_eq!(scene.works(&pair.access), Ok(()));
    scene.world.advance(Span::minutes(1));
    assert_eq!(scene.works(&pair.access), Err(Kind::InvalidApiKey));
    let next = scene.refresh(&pair.refresh).unwrap();
    assert_eq!(scene.works(&next.access), Ok(()));
    let ledger = scene.world.ledger();
    assert!(ledger.contains("connection.created"), "{ledger}");
    scene.world.audit();
}

/// A renewal ends the pair before it.
#[test]
fn a_renewal_ends_the_pair_before_it() {
    let mut scene = Scene::new();
    let first = scene.connect();
    let second = scene.refresh(&first.refresh).unwrap();
    assert_eq!(scene.works(&first.access), Err(Kind::InvalidApiKey));
    assert_eq!(scene.works(&second.access), Ok(()));
    assert_eq!(scene.connections().len(), 1);
}

/// A used refresh token ends the connection and what it gave, however long ago it was used.
#[test]
fn a_used_refresh_token_ends_the_connection() {
    let mut scene = Scene::new();
    let first = scene.connect();
    let second = scene.refresh(&first.refresh).unwrap();
    scene.world.advance(Span::hours(48));
    let third = scene.refresh(&second.refresh).unwrap();
    assert_eq!(scene.refresh(&first.refresh).err(), Some(Kind::InvalidGrant));
    assert_eq!(scene.ended(), Some(EndedBy::Reuse));
    assert_eq!(scene.works(&third.access), Err(Kind::InvalidApiKey));
    assert_eq!(scene.refresh(&third.refresh).err(), Some(Kind::InvalidGrant));
    let ledger = scene.world.ledger();
    assert!(ledger.contains(r#""endedBy":"reuse""#), "{ledger}");
}

/// Sixty-four renewals in one batch: one is first, the second ends everything.
#[test]
fn racing_renewals_end_the_connection() {
    let mut scene = Scene::new();
    let first = scene.connect();
    let mut batch = Vec::new();
    let mut pairs = Vec::new();
    for _ in 0..64 {
        let (pair, new) = scene.new_tokens();
        pairs.push(pair);
        batch.push(RefreshTokens { client: scene.client.clone(), token: Digest::of(&first.refresh), new }.into());
    }
    let replies = scene.world.engine().execute_batch(batch).unwrap();
    assert_eq!(replies.len(), 64);
    for pair in pairs {
        assert_eq!(scene.works(&pair.access), Err(Kind::InvalidApiKey));
        assert_eq!(scene.refresh(&pair.refresh).err(), Some(Kind::InvalidGrant));
    }
    assert_eq!(scene.ended(), Some(EndedBy::Reuse));
}

/// A code works once; shown again with its verifier it ends what it gave, and without it nothing.
#[test]
fn a_code_works_once() {
    let mut scene = Scene::new();
    let code = scene.code();
    let pair = scene.exchange(&code, |_| {}).unwrap();
    assert_eq!(scene.exchange(&code, |it| it.challenge = "x".into()).err(), Some(Kind::InvalidGrant));
    assert_eq!(scene.works(&pair.access), Ok(()), "a leaked old URL ends nothing");
    assert_eq!(scene.exchange(&code, |_| {}).err(), Some(Kind::InvalidGrant));
    assert_eq!(scene.ended(), Some(EndedBy::CodeReuse));
    assert_eq!(scene.works(&pair.access), Err(Kind::InvalidApiKey));
}

/// Any wrong attempt uses a code up.
#[test]
fn a_wrong_attempt_uses_the_code_up() {
    let mut scene = Scene::new();
    let other = scene.world.run(register(ClientAuth::None, None)).unwrap();
    let other = ClientShown { id: other.id.to_string().into(), secret: None };
    let wrong: [&dyn Fn(&mut ExchangeCode); 4] = [
        &|it| it.challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cN".into(),
        &|it| it.redirect = "http://localhost:51645/callback/".into(),
        &|it| it.redirect = "http://localhost:51646/callback".into(),
        &|it| it.client = other.clone(),
    ];
    for change in wrong {
        let code = scene.code();
        assert_eq!(scene.exchange(&code, change).err(), Some(Kind::InvalidGrant));
        assert_eq!(scene.exchange(&code, |_| {}).err(), Some(Kind::InvalidGrant));
    }
    assert!(scene.connections().is_empty());
    assert_eq!(scene.exchange("unknown", |_| {}).err(), Some(Kind::InvalidGrant));
}

/// A code lives five minutes.
#[test]
fn a_code_lives_five_minutes() {
    let mut scene = Scene::new();
    let (early, late) = (scene.code(), scene.code());
    scene.world.advance(Span::seconds(299));
    assert!(scene.exchange(&early, |_| {}).is_ok());
    scene.world.advance(Span::seconds(1));
    assert_eq!(scene.exchange(&late, |_| {}).err(), Some(Kind::InvalidGrant));
    scene.world.advance(Span::hours(25));
    let rows = scene.world.rows();
    assert!(!rows.iter().any(|(_, _, it)| matches!(it, Record::AuthCode(_))), "codes go by themselves");
}

/// A page is answered once, by the session that saw it, within ten minutes.
#[test]
fn a_page_is_answered_once_by_whom_it_was_shown_to() {
    let mut scene = Scene::new();
    let (workspace, now, store) = (scene.world.workspace(), scene.world.now(), scene.world.engine());
    let other = people::sign_in(store.store(), workspace, Role::Owner, 9, now);
    let wish = Wish {
        client: scene.client.id.clone(),
        name: Label::parse("App").unwrap(),
        redirect: Redirect::parse(REDIRECT, &[]).unwrap(),
        challenge: CHALLENGE.into(),
        state: None,
    };
    let (owner, agent) = (scene.owner, scene.agent.agent);
    let ask = |scene: &mut Scene, token: Digest| {
        scene.world.run(AskConsent { session: owner.session().unwrap(), wish: wish.clone(), token }).unwrap();
    };
    let say = |scene: &mut Scene, person: Person, token: Digest| {
        let code = Digest::of(scene.draw("code"));
        let said = DecideConsent { session: person.session().unwrap(), token, agent: Some(agent), code };
        scene.world.run(said).map(drop).map_err(|it| it.kind())
    };
    let token = Digest::of("one");
    ask(&mut scene, token);
    assert_eq!(say(&mut scene, other, token), Err(Kind::NotAllowed));
    assert_eq!(say(&mut scene, owner, token), Ok(()));
    assert_eq!(say(&mut scene, owner, token), Err(Kind::NotAllowed));
    assert_eq!(say(&mut scene, owner, Digest::of("none")), Err(Kind::NotAllowed));
    let token = Digest::of("two");
    ask(&mut scene, token);
    scene.world.advance(Span::minutes(10));
    assert_eq!(say(&mut scene, owner, token), Err(Kind::NotAllowed));
}

/// An agent is connected by its principal, owners and admins, and not while it is stopped.
#[test]
fn principal_owners_and_admins_connect_an_agent() {
    let mut scene = Scene::new();
    let (workspace, now) = (scene.world.workspace(), scene.world.now());
    let agent = scene.agent.agent;
    for (n, role, good) in [
        (10, Role::Owner, true),
        (11, Role::Admin, true),
        (12, Role::Member, false),
        (13, Role::Analyst, false),
        (14, Role::Auditor, false),
    ] {
        let person = people::sign_in(scene.world.engine().store(), workspace, role, n, now);
        let code = scene.code_of(person, agent);
        assert_eq!(code.err(), if good { None } else { Some(Kind::NotFound) }, "{role:?}");
    }
    scene.world.freeze(agent);
    assert_eq!(scene.code_of(scene.owner, agent).err(), Some(Kind::Forbidden));
}

/// A freeze ends the agent's connections in its own commit, and a restart brings none back.
#[test]
fn a_freeze_ends_connections() {
    let mut scene = Scene::new();
    let (pair, code) = (scene.connect(), scene.code());
    let agent = scene.agent.agent;
    scene.world.freeze(agent);
    assert_eq!(scene.works(&pair.access), Err(Kind::InvalidApiKey));
    assert_eq!(scene.refresh(&pair.refresh).err(), Some(Kind::InvalidGrant));
    assert_eq!(scene.exchange(&code, |_| {}).err(), Some(Kind::InvalidGrant), "a code of before is void, too");
    assert_eq!(scene.ended(), Some(EndedBy::Frozen));
    scene.world.advance(Span::minutes(1));
    let restart = svc_core::rules::gate::restart::RestartAgent {
        workspace: scene.world.workspace(),
        agent,
        by: By::Person(scene.owner),
        reason: svc_core::value::text::Note::parse("over").unwrap(),
        admin: None,
    };
    scene.world.run(restart).unwrap();
    assert_eq!(scene.works(&pair.access), Err(Kind::InvalidApiKey));
    assert_eq!(scene.refresh(&pair.refresh).err(), Some(Kind::InvalidGrant));
    scene.world.audit();
}

/// Removing the agent ends its connections.
#[test]
fn a_removal_ends_connections() {
    let mut scene = Scene::new();
    let pair = scene.connect();
    let (workspace, agent) = (scene.world.workspace(), scene.agent.agent);
    scene.world.run(RemoveAgent { workspace, by: By::Program, agent }).unwrap();
    assert_eq!(scene.works(&pair.access), Err(Kind::AgentNotFound), "as its keys are told");
    assert_eq!(scene.refresh(&pair.refresh).err(), Some(Kind::InvalidGrant));
    assert_eq!(scene.ended(), Some(EndedBy::Removed));
}

/// Whoever connected an agent leaves, or may connect it no more: tokens stop at once, and a moment later the connection says so. A role
/// that comes back brings none back.
#[test]
fn a_leaving_person_ends_their_connections() {
    for role in [None, Some(Role::Auditor)] {
        let mut scene = Scene::new();
        let (workspace, now) = (scene.world.workspace(), scene.world.now());
        let admin = people::sign_in(scene.world.engine().store(), workspace, Role::Admin, 20, now);
        let code = scene.code_of(admin, scene.agent.agent).unwrap();
        let pair = scene.exchange(&code, |_| {}).unwrap();
        let open = scene.code_of(admin, scene.agent.agent).unwrap();
        assert_eq!(scene.works(&pair.access), Ok(()));
        let (by, principal) = (By::Person(scene.owner), admin.principal);
        match role {
            None => drop(scene.world.run(RemoveMember { workspace, by, principal }).unwrap()),
            Some(_) => {
                scene.world.run(ChangeMember { workspace, by: by.clone(), principal, role, teams: None }).unwrap();
                assert_eq!(scene.works(&pair.access), Err(Kind::InvalidApiKey));
                let back = Some(Role::Admin);
                scene.world.run(ChangeMember { workspace, by, principal, role: back, teams: None }).unwrap();
            }
        }
        assert_eq!(scene.works(&pair.access), Err(Kind::InvalidApiKey));
        assert_eq!(scene.refresh(&pair.refresh).err(), Some(Kind::InvalidGrant));
        assert_eq!(scene.exchange(&open, |_| {}).err(), Some(Kind::InvalidGrant));
        scene.world.advance(Span::seconds(1));
        assert_eq!(scene.ended(), Some(EndedBy::Left));
        scene.world.audit();
    }
}

/// Either token ends the connection, for its own client alone; an unknown token ends nothing and tells nothing.
#[test]
fn a_client_gives_its_tokens_back() {
    let mut scene = Scene::new();
    let other = scene.world.run(register(ClientAuth::None, None)).unwrap();
    let other = ClientShown { id: other.id.to_string().into(), secret: None };
    for by_access in [true, false] {
        let pair = scene.connect();
        let token = Digest::of(if by_access { &pair.access } else { &pair.refresh });
        scene.world.run(RevokeOAuth { client: other.clone(), token }).unwrap();
        assert_eq!(scene.works(&pair.access), Ok(()));
        let client = scene.client.clone();
        scene.world.run(RevokeOAuth { client: client.clone(), token: Digest::of("unknown") }).unwrap();
        scene.world.run(RevokeOAuth { client, token }).unwrap();
        assert_eq!(scene.works(&pair.access), Err(Kind::InvalidApiKey));
        assert_eq!(scene.ended(), Some(EndedBy::Revoked));
    }
}

/// A member ends a connection of their own agent; of another's they do not know.
#[test]
fn a_person_ends_a_connection() {
    let mut scene = Scene::new();
    let pair = scene.connect();
    let (workspace, now) = (scene.world.workspace(), scene.world.now());
    let stranger = people::sign_in(scene.world.engine().store(), workspace, Role::Member, 30, now);
    let connection: ConnectionId = scene.connections()[0].id;
    let end = |by: Person| EndConnection { workspace, by: By::Person(by), connection };
    assert_eq!(scene.world.run(end(stranger)).map(drop).map_err(|it| it.kind()), Err(Kind::NotFound));
    for _ in 0..2 {
        let ended = scene.world.run(end(scene.owner)).unwrap();
        assert_eq!(ended.ended.map(|it| it.by), Some(EndedBy::Revoked));
    }
    assert_eq!(scene.works(&pair.access), Err(Kind::InvalidApiKey));
    assert_eq!(scene.world.ledger().matches("connection.ended").count(), 1);
}

/// A client with a secret shows it; one without shows none; nobody else is a client.
#[test]
fn clients_show_who_they_are() {
    let mut scene = Scene::new();
    let secret = Digest::of("secret");
    let client = scene.world.run(register(ClientAuth::ClientSecretPost, Some(secret))).unwrap();
    let id: Box<str> = client.id.to_string().into();
    let public = scene.client.id.clone();
    for (id, shown, good) in [
        (id.clone(), Some(secret), true),
        (id.clone(), None, false),
        (id, Some(Digest::of("other")), false),
        (public.clone(), None, true),
        (public, Some(secret), false),
        ("mcp_00000000000000000000000000".into(), None, false),
        ("".into(), None, false),
        ("https://app.example/client.json".into(), None, true),
        ("https://app.example/client.json".into(), Some(secret), false),
    ] {
        let (_, new) = scene.new_tokens();
        let client = ClientShown { id: id.clone(), secret: shown };
        let Grant::Refused(refusal) =
            scene.world.run(RefreshTokens { client, token: Digest::of("unknown"), new }).unwrap()
        else {
            panic!("an unknown token is refused")
        };
        let expected = if good { Kind::InvalidGrant } else { Kind::InvalidClient };
        assert_eq!(refusal.kind(), expected, "{id}");
    }
}

/// How many rows there are of pages, codes, refresh tokens and access tokens.
pub(super) fn kept(scene: &mut Scene) -> [usize; 4] {
    let mut count = [0; 4];
    for (_, _, record) in scene.world.rows() {
        let place = match record {
            Record::Consent(_) => 0,
            Record::AuthCode(_) => 1,
            Record::RefreshToken(_) => 2,
            Record::Credential(it) if it.binding.connection.is_some() => 3,
            _ => continue,
        };
        count[place] += 1;
    }
    count
}

/// Pages, codes and the tokens of connections that ended long ago go by themselves; all tokens of one that lasts are kept, and
/// a used one ends it however old it is. More of them than one commit sweeps go all the same.
#[test]
fn what_is_over_goes_by_itself() {
    let mut scene = Scene::new();
    let (first, mut pair) = (scene.connect(), scene.connect());
    let begun = pair.refresh.clone();
    for _ in 0..300 {
        pair = scene.refresh(&pair.refresh).unwrap();
    }
    scene.code();
    assert_eq!(kept(&mut scene), [0, 3, 302, 2]);
    scene.world.advance(Span::hours(25));
    assert_eq!(kept(&mut scene), [0, 0, 302, 2]);
    scene.world.advance(TOKENS_KEPT);
    assert_eq!(kept(&mut scene), [0, 0, 302, 2], "neither connection has ended");
    assert_eq!(scene.refresh(&begun).err(), Some(Kind::InvalidGrant));
    assert_eq!(scene.ended(), Some(EndedBy::Reuse));
    scene.world.advance(Span::millis(TOKENS_KEPT.as_millis() - 1));
    assert_eq!(kept(&mut scene), [0, 0, 302, 1], "whoever shows one is told that the connection has ended");
    scene.world.advance(Span::millis(1));
    assert_eq!(kept(&mut scene), [0, 0, 1, 1]);
    assert_eq!(scene.refresh(&begun).err(), Some(Kind::InvalidGrant));
    assert!(scene.refresh(&first.refresh).is_ok(), "another connection is not touched");
    assert_eq!(scene.connections().len(), 2, "people still see that there was one");
    scene.world.audit();
}

/// A page that nobody answers goes when it could be answered no more.
#[test]
fn pages_that_nobody_answers_go() {
    let mut scene = Scene::new();
    let wish = Wish {
        client: scene.client.id.clone(),
        name: Label::parse("App").unwrap(),
        redirect: Redirect::parse(REDIRECT, &[]).unwrap(),
        challenge: CHALLENGE.into(),
        state: None,
    };
    let token = Digest::of("page");
    scene.world.run(AskConsent { session: scene.owner.session().unwrap(), wish, token }).unwrap();
    assert_eq!(kept(&mut scene)[0], 1);
    scene.world.advance(Span::minutes(10));
    assert_eq!(kept(&mut scene)[0], 0);
}

/// A removed agent's access token is known for one, and goes with what else is left of its connection.
#[test]
fn a_removed_agents_token_is_let_go_of() {
    let mut scene = Scene::new();
    let pair = scene.connect();
    let (workspace, agent) = (scene.world.workspace(), scene.agent.agent);
    scene.world.run(RemoveAgent { workspace, by: By::Program, agent }).unwrap();
    assert_eq!(scene.works(&pair.access), Err(Kind::AgentNotFound));
    scene.world.advance(TOKENS_KEPT);
    assert_eq!(kept(&mut scene), [0, 0, 0, 0]);
    assert_eq!(scene.works(&pair.access), Err(Kind::InvalidApiKey));
    scene.world.audit();
}

/// A client that nobody uses goes after a day, one that was used stays, and there is a bound on those that wait.
#[test]
fn unused_clients_go_after_a_day() {
    let mut scene = Scene::new();
    scene.world.run(register(ClientAuth::None, None)).unwrap();
    scene.connect();
    let clients = |scene: &mut Scene| {
        let rows = scene.world.rows();
        rows.iter().filter(|(_, _, it)| matches!(it, Record::OAuthClient(_))).count()
    };
    scene.world.advance(Span::millis(24 * 3_600_000 - 1));
    assert_eq!(clients(&mut scene), 2);
    scene.world.advance(Span::millis(1));
    assert_eq!(clients(&mut scene), 1);
    scene.world.overwrite(ClientTally { id: ClientTally::key_id(), unused: UNUSED_CLIENTS_MAX });
    let mut ask = |instead_of| {
        let asked = RegisterClient { instead_of, ..register(ClientAuth::None, None) };
        scene.world.run(asked).map(|it: std::sync::Arc<OAuthClient>| it.id).map_err(|it| it.kind())
    };
    assert_eq!(ask(None), Err(Kind::NotReady));
    let used = ClientId::parse(&scene.client.id).unwrap();
    assert_eq!(ask(Some(used)), Err(Kind::NotReady), "one that is used gives its place to nobody");
}

/// Where there are as many unused clients as there may be, a new one takes the place of the oldest, and of that alone.
#[test]
fn a_flood_of_registrations_keeps_nobody_out() {
    let mut scene = Scene::new();
    let first = ClientId::parse(&scene.client.id).unwrap();
    let second = scene.world.run(register(ClientAuth::None, None)).unwrap().id;
    let tally = ClientTally { id: ClientTally::key_id(), unused: UNUSED_CLIENTS_MAX };
    scene.world.overwrite(tally.clone());
    let asked = |oldest| RegisterClient { instead_of: Some(oldest), ..register(ClientAuth::None, None) };
    scene.world.clock().advance(Span::millis(1));
    let third = scene.world.run(asked(first)).unwrap().id;
    let ids = |scene: &mut Scene| {
        let rows = scene.world.rows();
        let mut ids: Vec<_> = rows
            .iter()
            .filter_map(|(.., it)| if let Record::OAuthClient(it) = it { Some(it.id) } else { None })
            .collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&mut scene), [second, third]);
    assert_eq!(scene.world.row::<ClientTally>(ClientTally::key_id()).unused, tally.unused);
    assert_eq!(scene.world.run(asked(first)).map_err(|it| it.kind()).err(), Some(Kind::NotReady), "its place is taken");
    scene.world.overwrite(ClientTally { unused: 2, ..tally });
    scene.world.run(asked(second)).unwrap();
    assert_eq!(ids(&mut scene).len(), 3, "nobody goes while there is room");
}

/// An access token is none of the keys that are read and revoked one by one: it is its connection that is ended, or the client
/// would have another by its next renewal.
#[test]
fn an_access_token_is_ended_with_its_connection_alone() {
    let mut scene = Scene::new();
    let pair = scene.connect();
    let (workspace, by) = (scene.owner.workspace, || By::Person(scene.owner));
    let credential = Credential::id_of(&Digest::of(&pair.access));
    let revoke = RevokeKey { workspace, by: by(), credential };
    assert_eq!(scene.world.run(revoke).unwrap_err().kind(), Kind::NotFound);
    let read = scene.world.engine().read(|scope| own_key(scope, &by(), workspace, credential));
    assert!(read.is_err());
    assert_eq!((scene.works(&pair.access), scene.ended()), (Ok(()), None));
}
