//! Whom a workspace's identity provider signs in, and whose account it is never given.

use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::integrations::{
    ChangeIntegration, CreateIntegration, NewSecret, RemoveIntegration, RotateIntegration,
};
use svc_core::rules::people::by::{self, By, Person};
use svc_core::rules::people::links::MakeLink;
use svc_core::rules::people::members::{MemberDone, RemoveMember};
use svc_core::rules::people::second_factor::{ChangeSecondFactor, FactorChange, FactorShown};
use svc_core::rules::people::settings::{ChangeSettings, SettingsChange};
use svc_core::rules::people::sign_in::{FinishSignIn, Shown, SignInStep, StartSession};
use svc_core::rules::people::single_sign_on::{OwnProof, SignInBySso, SsoStep, Vouched, domain_to_prove};
use svc_core::state::edge::{
    ConfigChange, Integration, IntegrationConfig, IntegrationKind, IntegrationSlot, OidcConfig, Received,
};
use svc_core::state::evidence::Entry;
use svc_core::state::people::{
    Account, Member, MemberState, Membership, Principal, Proof, Role, Roster, SESSIONS_MAX, SecondFactor, Session,
    Settings, SsoLink, Workspace,
};
use svc_core::store::Row as _;
use svc_core::testing::World;
use svc_core::testing::people::invitation;
use svc_core::value::digest::{Digest, SessionDigest};
use svc_core::value::domain::Domain;
use svc_core::value::id::{IntegrationId, PrincipalId, WorkspaceId};
use svc_core::value::text::Email;
use svc_core::value::{Id as _, Span};

const ISSUER: &str = "https://idp.example.com";
const ANN: &str = "ann@example.com";

fn config(issuer: &str, client_id: &str) -> ConfigChange {
    ConfigChange {
        issuer: Some(Some(issuer.into())),
        client_id: Some(Some(client_id.into())),
        ..ConfigChange::default()
    }
}

fn secret() -> NewSecret {
    NewSecret { sealed: "sealed".into(), hint: "cret".into() }
}

fn slot(world: &World) -> IntegrationSlot {
    IntegrationSlot { workspace: world.workspace(), kind: IntegrationKind::Oidc }
}

fn create(world: &mut World, by: By) -> Result<IntegrationId, Refusal> {
    let IntegrationSlot { workspace, kind } = slot(world);
    let made = CreateIntegration { by, workspace, kind, secret: secret(), config: config(ISSUER, "svc") };
    world.run(made).map(|it| it.id)
}

/// A world whose workspace has a provider and the domain `example.com`.
fn world() -> World {
    let mut settings = Settings::default();
    settings.sign_in.sso_domains = vec![domain()];
    let mut world = World::with(settings);
    create(&mut world, By::Program).unwrap();
    world
}

fn domain() -> Domain {
    Domain::parse("example.com").unwrap()
}

fn invite(world: &mut World, email: &str, role: Role) -> PrincipalId {
    let invited = world.run(invitation(world.workspace(), email, role));
    match invited.unwrap() {
        MemberDone::Done { principal, .. } => principal.id,
        MemberDone::Asked(_) => panic!("nobody is asked"),
    }
}

/// What the provider says of whom it calls `subject`.
fn said(world: &mut World, subject: &str, email: &str) -> Vouched {
    let (workspace, slot) = (world.workspace(), slot(world));
    Vouched {
        workspace,
        integration: world.row::<Integration>(slot).id,
        issuer: ISSUER.into(),
        client_id: "svc".into(),
        subject: SsoLink::id_of(workspace, ISSUER, subject),
        email: Some(Email::parse(email).unwrap()),
        domain: Some(domain()),
        unproven: None,
        issued_at: world.now(),
        sent: Received::sign_in(slot, &Digest::of(subject)),
    }
}

/// How a sign-in ends: with a session, for want of the account's own proof, or refused.
fn come(world: &mut World, vouched: Vouched, own: Option<OwnProof>, cookie: &str) -> Result<bool, Kind> {
    let vouched = Vouched { sent: Received::sign_in(slot(world), &Digest::of(cookie)), ..vouched };
    match world.run(SignInBySso { vouched, own, cookie: Digest::of(cookie) }) {
        Ok(SsoStep::Started(_)) => Ok(true),
        Ok(SsoStep::Unlinked) => Ok(false),
        // Nobody is signed in; a person reads why.
        Ok(SsoStep::SignedOut | SsoStep::Unproven) => Err(Kind::WrongSignIn),
        Err(refusal) => Err(refusal.kind()),
    }
}

fn id(cookie: &str) -> SessionDigest {
    Session::id_of(&Digest::of(cookie))
}

fn role(world: &mut World, cookie: &str) -> Option<Role> {
    let (digest, workspace) = (Digest::of(cookie), world.workspace());
    let found = world.engine().read(|scope| {
        let signed_in = by::signed_in(scope, &digest)?;
        by::person_in(scope, &signed_in, workspace).map(|(_, role)| role)
    });
    found.ok()
}

fn kinds(world: &mut World) -> Vec<String> {
    let rows = world.rows();
    let entries = rows.iter().filter_map(|(.., it)| Entry::peel(it));
    entries.map(|it| it.kind.to_string()).collect()
}

/// What is wrong with a domain is noted with the integration, once and until somebody is linked by their address; whoever is linked
/// already takes no notice of it.
#[test]
fn an_unproven_domain_is_noted() {
    let mut world = world();
    invite(&mut world, ANN, Role::Member);
    invite(&mut world, "ben@example.com", Role::Member);
    let error = |world: &mut World| {
        let slot = slot(world);
        world.row::<Integration>(slot).last_error.clone()
    };
    let why = |world: &mut World, why: &str| Vouched {
        domain: None,
        unproven: Some(why.into()),
        ..said(world, "ben", "ben@example.com")
    };
    let come_unproven = |world: &mut World, clause: &str| {
        let vouched = why(world, clause);
        let step = world.run(SignInBySso { vouched, own: None, cookie: Digest::of("a") });
        assert!(matches!(step, Ok(SsoStep::Unproven)), "{step:?}");
        assert_eq!(
            error(world).as_deref(),
            Some(&*format!("`example.com` does not say that it is this workspace's: {clause}"))
        );
    };
    let ann = said(&mut world, "ann", ANN);
    assert_eq!(come(&mut world, ann, None, "ann"), Ok(true));
    let told = kinds(&mut world);
    come_unproven(&mut world, "no line of it is");
    come_unproven(&mut world, "it is no text");
    let again = Vouched { email: None, domain: None, ..said(&mut world, "ann", ANN) };
    assert_eq!(kinds(&mut world), told, "nothing of it is on record");
    assert_eq!(come(&mut world, again, None, "again"), Ok(true));
    assert!(error(&mut world).is_some(), "whoever is linked shows nothing of a domain");
    let named = Vouched { email: Some(Email::parse("x@elsewhere.example").unwrap()), ..why(&mut world, "it is off") };
    assert_eq!(come(&mut world, named, None, "b"), WRONG, "a domain that the settings do not name");
    let ben = said(&mut world, "ben", "ben@example.com");
    assert_eq!(come(&mut world, ben, None, "ben"), Ok(true));
    assert_eq!(error(&mut world), None);
    world.audit();
}

fn account_of(world: &mut World, principal: PrincipalId) -> Account {
    let account = world.row::<Principal>(principal).membership().unwrap().account;
    Account::clone(&world.row::<Account>(account))
}

const WRONG: Result<bool, Kind> = Err(Kind::WrongSignIn);

/// Somebody who was invited and has never been here is signed in by their address once, and by the provider's name of them from
/// then on, whatever their address is called; the session is good in that workspace, and all of it is one commit's record.
#[test]
fn whoever_was_invited_is_signed_in() {
    let mut world = world();
    let ann = invite(&mut world, "Ann@Example.com", Role::Admin);
    let first = said(&mut world, "ann", ANN);
    assert_eq!(come(&mut world, first, None, "a"), Ok(true));
    assert_eq!(role(&mut world, "a"), Some(Role::Admin));
    let workspace = world.workspace();
    assert_eq!(world.row::<Session>(id("a")).proof, Proof::Sso(workspace));
    let member = world.row::<Principal>(ann).membership().cloned().unwrap();
    assert_eq!((member.state, member.sso), (MemberState::Active, Some(SsoLink::id_of(workspace, ISSUER, "ann"))));
    let told = kinds(&mut world);
    for kind in ["member.linked", "member.joined", "session.started"] {
        assert_eq!(told.iter().filter(|it| *it == kind).count(), 1, "{kind}: {told:?}");
    }
    let later = Vouched { email: None, domain: None, ..said(&mut world, "ann", ANN) };
    assert_eq!(come(&mut world, later, None, "b"), Ok(true));
    let told = kinds(&mut world);
    assert_eq!(told.iter().filter(|it| *it == "member.linked").count(), 1);
    let slot = slot(&world);
    assert!(world.row::<Integration>(slot).last_event_at.is_some());
    world.audit();
}

/// A provider's word counts in its own workspace: whoever it signs in is still but invited in another.
#[test]
fn an_invitation_elsewhere_is_not_taken_up() {
    let mut world = world();
    let (here, ann) = (world.workspace(), invite(&mut world, ANN, Role::Member));
    let vouched = said(&mut world, "ann", ANN);
    assert_eq!(come(&mut world, vouched.clone(), None, "a"), Ok(true));
    let account = account_of(&mut world, ann);
    let (there, invited) = (WorkspaceId::from_bits(7), PrincipalId::from_bits(7));
    let row = world.row::<Workspace>(here);
    world.overwrite(Workspace { id: there, owner: invited, owners: vec![invited], ..Workspace::clone(&row) });
    world.overwrite(Roster { workspace: there, epoch: 0, agents: 0, mandates: 0 });
    let member = Member::new(Role::Member, MemberState::Invited, account.id);
    let of = Principal::new(invited, there, Email::parse(ANN).unwrap(), world.now());
    world.overwrite(Principal { member: Some(member), ..of });
    world.edit::<Account>(account.id, |it| it.memberships.push(Membership { workspace: there, principal: invited }));
    assert_eq!(come(&mut world, vouched, None, "b"), Ok(true));
    let state = |world: &mut World, of| world.row::<Principal>(of).membership().unwrap().state;
    assert_eq!((state(&mut world, ann), state(&mut world, invited)), (MemberState::Active, MemberState::Invited));
    assert_eq!(kinds(&mut world).iter().filter(|it| *it == "session.started").count(), 2);
}

/// Nobody is signed in by an address that the provider has not verified, of a domain that nobody has shown to be the workspace's, that
/// the settings do not name or only name one above of; nor who was not invited, was removed, or is signed out by a signal.
#[test]
fn nobody_else_is_signed_in() {
    let mut world = world();
    let ann = invite(&mut world, ANN, Role::Member);
    let below = invite(&mut world, "ann@mail.example.com", Role::Member);
    invite(&mut world, "ann@other.example", Role::Member);
    let good = said(&mut world, "ann", ANN);
    let other = |name: &str| Some(Domain::parse(name).unwrap());
    for (vouched, why) in [
        (Vouched { email: None, ..good.clone() }, "unverified"),
        (Vouched { domain: None, ..good.clone() }, "nobody has shown whose the domain is"),
        (Vouched { domain: other("mail.example.com"), ..good.clone() }, "another domain was shown"),
        (Vouched { domain: other("mail.example.com"), ..said(&mut world, "x", "ann@mail.example.com") }, "below"),
        (Vouched { domain: other("other.example"), ..said(&mut world, "x", "ann@other.example") }, "not named"),
        (said(&mut world, "x", "nobody@example.com"), "not invited"),
        (Vouched { issuer: "https://evil.example".into(), ..good.clone() }, "another issuer"),
        (Vouched { client_id: "other".into(), ..good.clone() }, "another client"),
        (Vouched { integration: IntegrationId::from_bits(7), ..good.clone() }, "another integration"),
        (Vouched { workspace: WorkspaceId::from_bits(7), ..good.clone() }, "another workspace"),
    ] {
        assert_eq!(come(&mut world, vouched, None, "a"), WRONG, "{why}");
    }
    let looks =
        |world: &mut World, vouched: &Vouched| world.engine().read(|scope| domain_to_prove(scope, vouched)).unwrap();
    assert_eq!(looks(&mut world, &good), Some(domain()));
    let unnamed = said(&mut world, "x", "ann@other.example");
    assert_eq!(looks(&mut world, &unnamed), None, "no other domain is looked at");
    assert_eq!(come(&mut world, good.clone(), None, "b"), Ok(true));
    assert_eq!(looks(&mut world, &good), None, "who is linked needs no address");

    world.edit::<Principal>(ann, |it| {
        let member = it.member.as_mut().unwrap();
        member.signed_out_at = Some(good.issued_at.plus(Span::seconds(1)));
    });
    assert_eq!(role(&mut world, "b"), None);
    assert_eq!(come(&mut world, good.clone(), None, "c"), WRONG, "it was said before the signal");
    world.advance(Span::seconds(1));
    let anew = said(&mut world, "ann", ANN);
    assert_eq!(come(&mut world, anew.clone(), None, "c"), Ok(true));
    let workspace = world.workspace();
    for principal in [ann, below] {
        world.run(RemoveMember { workspace, by: By::Program, principal }).unwrap();
    }
    assert_eq!((role(&mut world, "c"), come(&mut world, anew, None, "d")), (None, WRONG));
    // Whoever is invited again is the same to the provider.
    invite(&mut world, ANN, Role::Member);
    world.advance(Span::seconds(1));
    let back = Vouched { email: None, domain: None, ..said(&mut world, "ann", ANN) };
    assert_eq!(come(&mut world, back, None, "e"), Ok(true));
    world.audit();
}

/// An account that has signed in, has a password or a second factor, or belongs to another workspace too, is linked by its own proof
/// alone; a provider's session, one that has to set up a second factor and one of another account are none.
#[test]
fn an_account_that_exists_is_not_given_away() {
    let mut world = world();
    let owner = world.owner();
    let person = world.person(Role::Member);
    let email = account_of(&mut world, person.principal).email.to_string();
    let used = said(&mut world, "person", &email);
    let session = Some(OwnProof::Session(person.session().unwrap()));
    assert_eq!(come(&mut world, used.clone(), None, "a"), Ok(false));
    assert_eq!(
        come(&mut world, used.clone(), Some(OwnProof::Session(owner.session().unwrap())), "a"),
        Ok(false),
        "another's"
    );
    assert_eq!(come(&mut world, used.clone(), Some(OwnProof::Session(id("none"))), "a"), Ok(false));
    let proof = |world: &mut World, proof| world.edit::<Session>(person.session().unwrap(), |it| it.proof = proof);
    proof(&mut world, Proof::Sso(WorkspaceId::from_bits(7)));
    assert_eq!(come(&mut world, used.clone(), session, "a"), Ok(false), "another workspace's provider vouches for it");
    proof(&mut world, Proof::Link);
    world.edit::<Session>(person.session().unwrap(), |it| it.must_enroll = true);
    assert_eq!(come(&mut world, used.clone(), session, "a"), Ok(false), "it may do nothing yet");
    world.edit::<Session>(person.session().unwrap(), |it| it.must_enroll = false);
    assert!(world.row::<Principal>(person.principal).membership().unwrap().sso.is_none(), "nothing was linked");
    assert_eq!(come(&mut world, used.clone(), session, "a"), Ok(true));
    assert_eq!(come(&mut world, used, None, "b"), Ok(true), "it is linked");

    let ann = invite(&mut world, ANN, Role::Member);
    let fresh = account_of(&mut world, ann);
    let elsewhere = Membership { workspace: WorkspaceId::from_bits(9), principal: PrincipalId::from_bits(9) };
    let factor = SecondFactor { sealed: "s".into(), last_step: 0, recovery: Vec::new() };
    for exists in [
        Account { signed_in_at: Some(world.now()), ..fresh.clone() },
        Account {
            password: Some(svc_core::state::people::Password { hash: "h".into(), set_at: world.now() }),
            ..fresh.clone()
        },
        Account { second_factor: Some(factor), ..fresh.clone() },
        Account { memberships: vec![fresh.memberships[0], elsewhere], ..fresh.clone() },
    ] {
        world.edit::<Account>(fresh.id, |it| *it = exists.clone());
        let vouched = said(&mut world, "ann", ANN);
        assert_eq!(come(&mut world, vouched, None, "c"), Ok(false), "{exists:?}");
    }
    world.edit::<Account>(fresh.id, |it| *it = fresh.clone());
    let vouched = said(&mut world, "ann", ANN);
    assert_eq!(come(&mut world, vouched, None, "c"), Ok(true));
}

/// Of one member the provider vouches for one name at a time: another one takes its place by the account's own proof.
#[test]
fn a_member_has_one_link() {
    let mut world = world();
    let person = world.person(Role::Member);
    let email = account_of(&mut world, person.principal).email.to_string();
    let own = Some(OwnProof::Session(person.session().unwrap()));
    let (one, two) = (said(&mut world, "one", &email), said(&mut world, "two", &email));
    assert_eq!(come(&mut world, one.clone(), own, "a"), Ok(true));
    assert_eq!(come(&mut world, two.clone(), None, "b"), Ok(false), "it is another name");
    assert_eq!(come(&mut world, two.clone(), own, "b"), Ok(true));
    assert_eq!(come(&mut world, one, None, "c"), Ok(false), "it was replaced");
    assert_eq!(come(&mut world, two, None, "c"), Ok(true));
    assert_eq!(world.dump().matches("\nsso_link ").count() + usize::from(world.dump().starts_with("sso_link ")), 1);
    world.audit();
}

/// Where only single sign-on gives a session, what was shown proves for five minutes whose the account is, once; it is no wait for a
/// second factor, and such a wait is no proof.
#[test]
fn what_leads_to_single_sign_on_alone_links_it() {
    let mut world = world();
    let person = world.person(Role::Member);
    let email = account_of(&mut world, person.principal).email;
    let mut settings = Settings::default();
    settings.sign_in.sso_domains = vec![domain()];
    settings.sign_in.require_sso = true;
    world.change_settings(settings);
    let show = |world: &mut World, token: &str| {
        world.run(MakeLink { email: email.clone(), token: Digest::of(token), life: None }).unwrap();
        let shown = Shown::Link(Digest::of(token));
        let (cookie, pending) = (Digest::of("no session"), Digest::of(format!("{token} waits")));
        world.run(StartSession { shown, cookie, pending }).unwrap()
    };
    let waits = |token: &str| Some(OwnProof::SignIn(Digest::of(format!("{token} waits"))));
    let vouched = |world: &mut World| said(world, "person", email.as_str());
    assert!(matches!(show(&mut world, "one"), SignInStep::Sso(_)));
    world.advance(Span::minutes(5));
    let late = vouched(&mut world);
    assert_eq!(come(&mut world, late, waits("one"), "a"), Ok(false), "five minutes are over");
    assert!(matches!(show(&mut world, "two"), SignInStep::Sso(_)));
    let code = FactorShown::Recovery(Digest::of("x"));
    let finish = FinishSignIn { pending: Digest::of("two waits"), shown: code.clone(), cookie: Digest::of("a") };
    assert_eq!(world.run(finish).unwrap_err().kind(), Kind::Unauthenticated, "nothing waits for a second factor");

    let account = person.account;
    let recovery = vec![Digest::of("x")];
    world.edit::<Account>(account, |it| {
        it.second_factor = Some(SecondFactor { sealed: "s".into(), last_step: 0, recovery });
    });
    assert!(matches!(show(&mut world, "three"), SignInStep::Totp));
    let early = vouched(&mut world);
    assert_eq!(come(&mut world, early, waits("three"), "a"), Ok(false), "the second factor was not shown");
    let finish = FinishSignIn { pending: Digest::of("three waits"), shown: code, cookie: Digest::of("a") };
    assert!(matches!(world.run(finish).unwrap(), SignInStep::Sso(_)));
    let good = vouched(&mut world);
    assert_eq!(come(&mut world, good.clone(), waits("three"), "a"), Ok(true));
    assert_eq!(role(&mut world, "a"), Some(Role::Member));
    world.edit::<Principal>(person.principal, |it| it.member.as_mut().unwrap().sso = None);
    assert_eq!(come(&mut world, good, waits("three"), "b"), Ok(false), "it is used up");
    world.audit();
}

/// A provider has as many sessions of an account as the account has of its own: one more ends the oldest of its own, and neither one
/// that the account's own sign-in made nor another provider's.
#[test]
fn a_provider_ends_no_session_but_its_own() {
    let mut world = world();
    let ann = invite(&mut world, ANN, Role::Member);
    let begin = |world: &mut World, cookie: &str| {
        let vouched = said(world, "ann", ANN);
        assert_eq!(come(world, vouched, None, cookie), Ok(true), "{cookie}");
    };
    for (cookie, proof) in [("own", Proof::Password), ("of another", Proof::Sso(WorkspaceId::from_bits(7)))] {
        begin(&mut world, cookie);
        world.edit::<Session>(id(cookie), |it| it.proof = proof);
    }
    for n in 0..=SESSIONS_MAX {
        begin(&mut world, &n.to_string());
    }
    let kept = account_of(&mut world, ann).sessions;
    assert!(kept.contains(&id("own")) && kept.contains(&id("of another")) && kept.contains(&id("1")));
    assert_eq!((kept.len(), kept.contains(&id("0"))), (SESSIONS_MAX + 2, false));
    let ended = |world: &mut World, cookie: &str| world.row::<Session>(id(cookie)).ended_at.is_some();
    assert!(ended(&mut world, "0") && !ended(&mut world, "own") && !ended(&mut world, "of another"));
    world.audit();
}

fn require(world: &mut World, by: Person, is_required: bool) -> Result<(), Kind> {
    let change = SettingsChange { require_sso: Some(is_required), ..SettingsChange::default() };
    let asked = ChangeSettings { workspace: world.workspace(), by: By::Person(by), change };
    world.run(asked).map(drop).map_err(|it| it.kind())
}

/// Single sign-on becomes the only way in by an owner's word who has come by it; from then on it stays as it is, and whoever it
/// signs in can take the rule back.
#[test]
fn nobody_is_locked_out() {
    let mut world = world();
    let (owner, slot) = (world.owner(), slot(&world));
    assert_eq!(require(&mut world, owner, true), Err(Kind::InvalidRequest), "a password brought them");
    let workspace = world.workspace();
    world.edit::<Session>(owner.session().unwrap(), |it| it.proof = Proof::Sso(WorkspaceId::from_bits(7)));
    assert!(require(&mut world, owner, true).is_err(), "another workspace's brought them");
    let admin = world.person(Role::Admin);
    world.edit::<Session>(admin.session().unwrap(), |it| it.proof = Proof::Sso(workspace));
    assert_eq!(require(&mut world, admin, true), Err(Kind::InvalidRequest), "an admin");
    world.edit::<Session>(owner.session().unwrap(), |it| it.proof = Proof::Sso(workspace));
    world.edit::<Integration>(slot, |it| it.enabled = false);
    assert_eq!(require(&mut world, owner, true), Err(Kind::InvalidRequest), "the provider is off");
    world.edit::<Integration>(slot, |it| it.enabled = true);
    require(&mut world, owner, true).unwrap();
    require(&mut world, owner, true).unwrap();

    let (by, id) = (By::Person(owner), world.row::<Integration>(slot).id);
    let change = |enabled, config| ChangeIntegration { by: by.clone(), workspace, id, enabled, config };
    let unsent = world.run(change(None, config("https://other.example", "svc"))).unwrap_err();
    assert_eq!(unsent.kind(), Kind::InvalidRequest, "the secret is not for another provider");
    let elsewhere = ConfigChange { secret: Some(secret().at(world.now())), ..config("https://other.example", "svc") };
    for refused in [
        world.run(change(Some(false), ConfigChange::default())).map(drop),
        world.run(change(None, elsewhere)).map(drop),
        world.run(RemoveIntegration { by: by.clone(), workspace, id }),
    ] {
        assert_eq!(refused.unwrap_err().kind(), Kind::NotAllowed);
    }
    world.run(change(Some(true), config(ISSUER, "svc"))).unwrap();
    world.run(RotateIntegration { by: by.clone(), workspace, id, secret: secret(), overlap_hours: 1 }).unwrap();
    require(&mut world, owner, false).unwrap();
    world.run(RemoveIntegration { by, workspace, id }).unwrap();
    assert_eq!(require(&mut world, owner, true), Err(Kind::InvalidRequest), "there is no provider");
}

/// Whoever controls the provider can be anybody whom it signs in, so it is the owners'; each change is recorded, and is over for who was
/// signing in meanwhile.
#[test]
fn the_provider_is_the_owners() {
    let mut world = World::new();
    let (owner, admin) = (world.owner(), world.person(Role::Admin));
    let workspace = world.workspace();
    assert_eq!(create(&mut world, By::Person(admin)).unwrap_err().kind(), Kind::Forbidden);
    let id = create(&mut world, By::Person(owner)).unwrap();
    let slot = slot(&world);
    let rotate = |by| RotateIntegration { by: By::Person(by), workspace, id, secret: secret(), overlap_hours: 0 };
    let change = |by, client: &str| ChangeIntegration {
        by: By::Person(by),
        workspace,
        id,
        enabled: None,
        config: config(ISSUER, client),
    };
    let refused = [
        world.run(change(admin, "other")).map(drop),
        world.run(rotate(admin)).map(drop),
        world.run(RemoveIntegration { by: By::Person(admin), workspace, id }),
    ];
    assert!(refused.into_iter().all(|it| it.is_err_and(|it| it.kind() == Kind::Forbidden)));
    let vouched = said(&mut world, "ann", ANN);
    world.run(change(owner, "other")).unwrap();
    world.run(rotate(owner)).unwrap();
    let issuer = Some(ISSUER.into());
    let expected = IntegrationConfig::Oidc(OidcConfig { issuer, client_id: Some("other".into()) });
    assert_eq!(world.row::<Integration>(slot).config, expected);
    assert_eq!(come(&mut world, vouched, None, "a"), WRONG);
    world.run(RemoveIntegration { by: By::Person(owner), workspace, id }).unwrap();
    let told = kinds(&mut world);
    for kind in ["integration.created", "integration.changed", "integration.rotated", "integration.removed"] {
        assert_eq!(told.iter().filter(|it| *it == kind).count(), 1, "{kind}");
    }
    let entries: Vec<String> =
        world.rows().iter().filter_map(|(.., it)| Entry::peel(it).map(|it| it.data.to_string())).collect();
    assert!(entries.iter().any(|it| it.contains(r#""clientId":"other""#)), "the ledger has what the provider is");
}

/// Whoever controls what ends sessions ends an owner's: it is the owners', as what signs in is.
#[test]
fn shared_signals_are_the_owners() {
    let mut world = World::new();
    let (owner, admin) = (By::Person(world.owner()), By::Person(world.person(Role::Admin)));
    let (workspace, kind) = (world.workspace(), IntegrationKind::Ssf);
    let create = |by: &By| CreateIntegration {
        by: by.clone(),
        workspace,
        kind,
        secret: secret(),
        config: ConfigChange::default(),
    };
    assert_eq!(world.run(create(&admin)).unwrap_err().kind(), Kind::Forbidden);
    let id = world.run(create(&owner)).unwrap().id;
    let change =
        ChangeIntegration { by: admin.clone(), workspace, id, enabled: Some(false), config: ConfigChange::default() };
    let rotate = RotateIntegration { by: admin.clone(), workspace, id, secret: secret(), overlap_hours: 1 };
    let refused = [
        world.run(change).map(drop),
        world.run(rotate).map(drop),
        world.run(RemoveIntegration { by: admin, workspace, id }),
    ];
    assert!(refused.into_iter().all(|it| it.is_err_and(|it| it.kind() == Kind::Forbidden)));
    world.run(RemoveIntegration { by: owner, workspace, id }).unwrap();
    world.audit();
}

/// Within a provider's session the second factor is set up and taken away by the account's own proof beside it: not without, not by
/// another account's, and not by one that is used up.
#[test]
fn the_accounts_own_proof_sets_a_factor_up() {
    let mut world = world();
    let (person, other) = (world.person(Role::Member), world.person(Role::Member));
    let workspace = world.workspace();
    world.edit::<Session>(person.session().unwrap(), |it| it.proof = Proof::Sso(workspace));
    let mut settings = Settings::default();
    settings.sign_in.sso_domains = vec![domain()];
    settings.sign_in.require_sso = true;
    world.change_settings(settings);
    let show = |world: &mut World, whose: &Person, token: &str| {
        let email = account_of(world, whose.principal).email;
        world.run(MakeLink { email, token: Digest::of(token), life: None }).unwrap();
        let (cookie, pending) = (Digest::of("no session"), Digest::of(format!("{token} waits")));
        let shown = Shown::Link(Digest::of(token));
        assert!(matches!(world.run(StartSession { shown, cookie, pending }).unwrap(), SignInStep::Sso(_)));
        Some(pending)
    };
    let by = person.session().unwrap();
    let begin = |own| ChangeSecondFactor { by, own, change: FactorChange::Begin { sealed: "s".into() } };
    let confirm = |own| {
        let (sealed, step, recovery) = ("s".into(), Some(1), vec![Digest::of("x")]);
        ChangeSecondFactor { by, own, change: FactorChange::Confirm { sealed, step, recovery } }
    };
    let others = show(&mut world, &other, "others");
    for own in [None, others, Some(Digest::of("guessed"))] {
        assert_eq!(world.run(begin(own)).unwrap_err().kind(), Kind::Forbidden);
    }
    let own = show(&mut world, &person, "own");
    world.run(begin(own)).unwrap();
    for none in [None, others] {
        assert_eq!(world.run(confirm(none)).unwrap_err().kind(), Kind::Forbidden);
    }
    world.run(confirm(own)).unwrap();
    assert!(account_of(&mut world, person.principal).second_factor.is_some());
    assert_eq!(world.row::<Session>(by).proof, Proof::Sso(workspace), "the session that it was set up in stays");
    let remove = FactorChange::Remove(FactorShown::Recovery(Digest::of("x")));
    let remove = ChangeSecondFactor { by, own, change: remove };
    assert_eq!(world.run(remove).unwrap_err().kind(), Kind::Forbidden, "it is used up");
    world.audit();
}

/// What came back from a provider signs in once, whichever server takes it: also where the first time led to the account's own proof,
/// and not where it led nowhere.
#[test]
fn a_sign_in_comes_back_once() {
    let mut world = world();
    invite(&mut world, ANN, Role::Member);
    let vouched = said(&mut world, "ann", ANN);
    let again = |world: &mut World, vouched: &Vouched, cookie: &str| {
        world.run(SignInBySso { vouched: vouched.clone(), own: None, cookie: Digest::of(cookie) })
    };
    let not_yet = Vouched { email: None, ..vouched.clone() };
    assert_eq!(again(&mut world, &not_yet, "zero").unwrap_err().kind(), Kind::WrongSignIn);
    assert!(matches!(again(&mut world, &vouched, "one"), Ok(SsoStep::Started(_))));
    assert_eq!(again(&mut world, &vouched, "two").unwrap_err().kind(), Kind::WrongSignIn);
    assert_eq!(role(&mut world, "two"), None);
    let other = Vouched { sent: Received::sign_in(slot(&world), &Digest::of("other")), ..vouched };
    assert!(matches!(again(&mut world, &other, "three"), Ok(SsoStep::Started(_))));
    world.advance(Span::hours(2));
    assert!(!world.rows().iter().any(|(key, ..)| matches!(key, svc_core::store::Key::Received(_))));
}
