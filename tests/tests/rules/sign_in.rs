//! Who gets a session, and when it ends.

use std::sync::Arc;

use svc_core::refusal::Kind;
use svc_core::rules::people::by::{self, Person};
use svc_core::rules::people::links::MakeLink;
use svc_core::rules::people::password::ChangePassword;
use svc_core::rules::people::second_factor::{ChangeSecondFactor, DropSecondFactor, FactorChange, FactorShown};
use svc_core::rules::people::sessions::{EndSession, Next, TouchSession};
use svc_core::rules::people::settings::{ChangeSettings, SettingsChange};
use svc_core::rules::people::sign_in::{FinishSignIn, Shown, SignInStep, StartSession};
use svc_core::state::people::{Account, LINK_LIFE, Proof, Role, Session, Settings, SignInLink};
use svc_core::testing::world::World;
use svc_core::value::Span;
use svc_core::value::digest::{Digest, SessionDigest};
use svc_core::value::id::AccountId;
use svc_core::value::text::Email;

fn owner() -> Email {
    Email::parse("Owner@Example.com").unwrap()
}

/// Makes a link with this token for the owner.
fn link(world: &mut World, token: &str, life: Option<Span>) -> AccountId {
    world.run(MakeLink { email: owner(), token: Digest::of(token), life }).unwrap()
}

fn show(world: &mut World, shown: Shown, cookie: &str) -> Result<SignInStep, Kind> {
    let pending = Digest::of(format!("{cookie} waits"));
    world.run(StartSession { shown, cookie: Digest::of(cookie), pending }).map_err(|it| it.kind())
}

fn by_link(world: &mut World, token: &str, cookie: &str) -> Result<SignInStep, Kind> {
    show(world, Shown::Link(Digest::of(token)), cookie)
}

fn by_password(world: &mut World, account: AccountId, hash: &str, cookie: &str) -> Result<SignInStep, Kind> {
    show(world, Shown::Password { account, hash: hash.into() }, cookie)
}

fn next(step: Result<SignInStep, Kind>) -> Next {
    match step.unwrap() {
        SignInStep::Started(started) => started.next,
        other => panic!("no session: {other:?}"),
    }
}

fn id(cookie: &str) -> SessionDigest {
    Session::id_of(&Digest::of(cookie))
}

/// Whether a cookie still signs in.
fn lives(world: &mut World, cookie: &str) -> bool {
    let digest = Digest::of(cookie);
    world.engine().read(|scope| by::signed_in(scope, &digest).map(|_| ())).is_ok()
}

/// What the cookie's person may do in the world's workspace.
fn role(world: &mut World, cookie: &str) -> Result<Role, Kind> {
    let (digest, workspace) = (Digest::of(cookie), world.workspace());
    let found = world.engine().read(|scope| {
        let signed_in = by::signed_in(scope, &digest)?;
        by::person_in(scope, &signed_in, workspace).map(|(_, role): (Person, Role)| role)
    });
    found.map_err(|failure| match failure {
        svc_core::engine::Failure::Refused(refusal) => refusal.kind(),
        other => panic!("{other:?}"),
    })
}

fn set_password(world: &mut World, cookie: &str, checked: Option<&str>, hash: &str) -> Result<(), Kind> {
    let change = ChangePassword { by: id(cookie), checked: checked.map(Into::into), hash: hash.into() };
    world.run(change).map_err(|it| it.kind())
}

fn change(world: &mut World, cookie: &str, change: FactorChange) -> Result<(), Kind> {
    world.run(ChangeSecondFactor { by: id(cookie), own: None, change }).map_err(|it| it.kind())
}

fn enrol(world: &mut World, cookie: &str, step: u64) {
    change(world, cookie, FactorChange::Begin { sealed: "sealed".into() }).unwrap();
    let recovery = vec![Digest::of("one"), Digest::of("two")];
    change(world, cookie, FactorChange::Confirm { sealed: "sealed".into(), step: Some(step), recovery }).unwrap();
}

fn code(step: u64) -> FactorShown {
    FactorShown::Code { sealed: "sealed".into(), step: Some(step) }
}

fn finish(world: &mut World, waiting: &str, shown: FactorShown, cookie: &str) -> Result<SignInStep, Kind> {
    let pending = Digest::of(format!("{waiting} waits"));
    world.run(FinishSignIn { pending, shown, cookie: Digest::of(cookie) }).map_err(|it| it.kind())
}

fn kinds(world: &mut World) -> Vec<String> {
    world.advance(Span::seconds(1));
    let text = world.dump();
    let kind =
        |line: &str| line.split_once("\"kind\":\"").and_then(|(_, rest)| rest.split_once('"')).map(|it| it.0.into());
    text.lines().filter(|it| it.starts_with("entry ")).filter_map(kind).collect()
}

/// A link signs in once, within the hour, and a newer one voids it; one without an end waits until it is used.
#[test]
fn a_link_signs_in_once() {
    let mut world = World::new();
    link(&mut world, "one", Some(LINK_LIFE));
    link(&mut world, "two", Some(LINK_LIFE));
    assert_eq!(by_link(&mut world, "one", "a").unwrap_err(), Kind::Unauthenticated, "a newer link voids it");
    world.advance(Span::minutes(59));
    assert_eq!(next(by_link(&mut world, "two", "a")), Next::SetPassword);
    assert_eq!(by_link(&mut world, "two", "b").unwrap_err(), Kind::Unauthenticated, "it is used up");
    assert_eq!(role(&mut world, "a"), Ok(Role::Owner));
    link(&mut world, "three", Some(LINK_LIFE));
    world.advance(Span::minutes(60));
    assert_eq!(by_link(&mut world, "three", "b").unwrap_err(), Kind::Unauthenticated, "its hour is over");
    link(&mut world, "late", Some(LINK_LIFE));
    world.clock().advance(LINK_LIFE);
    assert_eq!(
        by_link(&mut world, "late", "b").unwrap_err(),
        Kind::Unauthenticated,
        "whether or not its timer has run"
    );
    let account = link(&mut world, "four", None);
    world.advance(Span::hours(24 * 300));
    next(by_link(&mut world, "four", "b"));
    assert!(world.row::<Account>(account).link.is_none());
    assert!(!world.dump().contains("sign_in_link "), "links that are used up or over leave no row");
    world.audit();
}

/// Two who show one link at the same instant: one is signed in.
#[test]
fn of_two_who_show_one_link_one_is_signed_in() {
    let mut world = World::new();
    link(&mut world, "one", Some(LINK_LIFE));
    let start = |cookie: &str| StartSession {
        shown: Shown::Link(Digest::of("one")),
        cookie: Digest::of(cookie),
        pending: Digest::of(format!("{cookie} waits")),
    };
    let answers = world.engine().execute_batch(vec![start("a").into(), start("b").into()]).unwrap();
    assert_eq!(answers.iter().filter(|it| it.is_ok()).count(), 1);
}

/// A password signs in while its hash is the account's; changing it ends every other session and keeps one's own.
#[test]
fn a_changed_password_ends_other_sessions() {
    let mut world = World::new();
    let account = link(&mut world, "one", Some(LINK_LIFE));
    next(by_link(&mut world, "one", "a"));
    set_password(&mut world, "a", None, "hash 1").unwrap();
    assert_eq!(next(by_password(&mut world, account, "hash 1", "b")), Next::Done);
    assert!(lives(&mut world, "a") && lives(&mut world, "b"));
    assert_eq!(set_password(&mut world, "b", None, "hash 2"), Err(Kind::InvalidRequest), "the present one is needed");
    assert_eq!(set_password(&mut world, "b", Some("hash 0"), "hash 2"), Err(Kind::InvalidRequest));
    assert_eq!(set_password(&mut world, "a", None, "hash 2"), Err(Kind::InvalidRequest), "this link set it itself");
    set_password(&mut world, "b", Some("hash 1"), "hash 2").unwrap();
    assert!(!lives(&mut world, "a") && lives(&mut world, "b"));
    assert_eq!(by_password(&mut world, account, "hash 1", "c").unwrap_err(), Kind::Unauthenticated);
    // A link made for somebody who forgot it lets them set another.
    world.advance(Span::seconds(1));
    link(&mut world, "two", Some(LINK_LIFE));
    assert_eq!(next(by_link(&mut world, "two", "d")), Next::Done);
    set_password(&mut world, "d", None, "hash 3").unwrap();
    assert!(!lives(&mut world, "b") && lives(&mut world, "d"));
    let kinds = kinds(&mut world);
    assert_eq!(kinds.iter().filter(|it| *it == "session.started").count(), 3);
    assert_eq!(kinds.iter().filter(|it| *it == "session.ended").count(), 2);
    world.audit();
}

/// A session ends by sign-out, 12 hours after its last use, and 7 days after it began; its row goes with it.
#[test]
fn a_session_ends() {
    let mut world = World::new();
    let account = link(&mut world, "one", None);
    next(by_link(&mut world, "one", "a"));
    set_password(&mut world, "a", None, "hash").unwrap();
    next(by_password(&mut world, account, "hash", "b"));
    world.run(EndSession { by: id("a"), ended: id("b") }).unwrap();
    assert!(!lives(&mut world, "b"));
    let again = world.run(EndSession { by: id("a"), ended: id("b") }).unwrap_err();
    assert_eq!(again.kind(), Kind::NotFound);
    world.run(EndSession { by: id("a"), ended: id("a") }).unwrap();
    assert!(!lives(&mut world, "a"));
    assert_eq!(world.run(TouchSession(id("a"))).unwrap_err().kind(), Kind::Unauthenticated);

    next(by_password(&mut world, account, "hash", "c"));
    world.advance(Span::hours(12));
    assert!(!lives(&mut world, "c"), "nobody used it for 12 hours");
    next(by_password(&mut world, account, "hash", "d"));
    for _ in 0..15 {
        world.advance(Span::hours(11));
        assert!(lives(&mut world, "d"));
        world.run(TouchSession(id("d"))).unwrap();
    }
    world.advance(Span::hours(3));
    assert!(!lives(&mut world, "d"), "7 days are over");
    world.advance(Span::hours(24 * 8));
    assert!(!world.dump().contains("\nsession "), "ended sessions leave no row");
    assert!(world.row::<Account>(account).sessions.is_empty());
    world.audit();
}

/// A session that is used writes its last use at most every five minutes.
#[test]
fn a_use_is_noted_now_and_then() {
    let mut world = World::new();
    link(&mut world, "one", None);
    next(by_link(&mut world, "one", "a"));
    let begun = world.row::<Session>(id("a")).seen_at;
    world.advance(Span::seconds(299));
    world.run(TouchSession(id("a"))).unwrap();
    assert_eq!(world.row::<Session>(id("a")).seen_at, begun);
    world.advance(Span::seconds(1));
    world.run(TouchSession(id("a"))).unwrap();
    assert_eq!(world.row::<Session>(id("a")).seen_at, world.now());
}

/// With a second factor there is no session before its code; each step and each recovery code counts once.
#[test]
fn a_code_counts_once() {
    let mut world = World::new();
    let account = link(&mut world, "one", None);
    next(by_link(&mut world, "one", "a"));
    set_password(&mut world, "a", None, "hash").unwrap();
    enrol(&mut world, "a", 100);
    let wait = |world: &mut World, cookie: &str| {
        assert!(matches!(by_password(world, account, "hash", cookie).unwrap(), SignInStep::Totp));
        assert!(!lives(world, cookie));
    };
    wait(&mut world, "b");
    let wrong = |step: SignInStep| assert!(matches!(step, SignInStep::Wrong), "{step:?}");
    wrong(finish(&mut world, "b", code(100), "b").unwrap());
    assert_eq!(next(finish(&mut world, "b", code(101), "b")), Next::Done);
    assert_eq!(finish(&mut world, "b", code(102), "x").unwrap_err(), Kind::Unauthenticated, "the wait is over");
    wait(&mut world, "c");
    wrong(finish(&mut world, "c", code(101), "c").unwrap());
    wrong(finish(&mut world, "c", FactorShown::Code { sealed: "sealed".into(), step: None }, "c").unwrap());
    wrong(finish(&mut world, "c", FactorShown::Code { sealed: "another".into(), step: Some(900) }, "c").unwrap());
    next(finish(&mut world, "c", FactorShown::Recovery(Digest::of("one")), "c"));
    wait(&mut world, "d");
    wrong(finish(&mut world, "d", FactorShown::Recovery(Digest::of("one")), "d").unwrap());
    next(finish(&mut world, "d", FactorShown::Recovery(Digest::of("two")), "d"));
    // A link does not replace it.
    link(&mut world, "two", None);
    assert!(matches!(by_link(&mut world, "two", "e").unwrap(), SignInStep::Totp));
    assert_eq!(by_link(&mut world, "two", "f").unwrap_err(), Kind::Unauthenticated);
    change(&mut world, "d", FactorChange::Remove(code(101))).unwrap_err();
    change(&mut world, "d", FactorChange::Remove(code(102))).unwrap();
    assert_eq!(next(by_password(&mut world, account, "hash", "g")), Next::Done);
    world.audit();
}

/// Five wrong codes end a waiting sign-in, and so do five minutes.
#[test]
fn a_waiting_sign_in_has_five_tries_and_five_minutes() {
    let mut world = World::new();
    let account = link(&mut world, "one", None);
    next(by_link(&mut world, "one", "a"));
    set_password(&mut world, "a", None, "hash").unwrap();
    enrol(&mut world, "a", 100);
    by_password(&mut world, account, "hash", "b").unwrap();
    for _ in 0..5 {
        assert!(matches!(finish(&mut world, "b", code(1), "b").unwrap(), SignInStep::Wrong));
    }
    assert_eq!(finish(&mut world, "b", code(101), "b").unwrap_err(), Kind::Unauthenticated);
    by_password(&mut world, account, "hash", "c").unwrap();
    world.advance(Span::minutes(5));
    assert_eq!(finish(&mut world, "c", code(101), "c").unwrap_err(), Kind::Unauthenticated);
    by_password(&mut world, account, "hash", "d").unwrap();
    set_password(&mut world, "a", Some("hash"), "hash 2").unwrap();
    assert_eq!(finish(&mut world, "d", code(101), "d").unwrap_err(), Kind::Unauthenticated, "the password was changed");
    world.advance(Span::minutes(5));
    assert!(!world.dump().contains("pending_sign_in "), "what waited too long leaves no row");
}

/// Where a workspace asks for a second factor, a session without one may do nothing but set it up, at once.
#[test]
fn a_required_second_factor_comes_first() {
    let mut settings = Settings::default();
    settings.sign_in.require_two_factor = true;
    let mut world = World::with(settings);
    link(&mut world, "one", None);
    assert_eq!(next(by_link(&mut world, "one", "a")), Next::EnrollTotp);
    assert_eq!(role(&mut world, "a"), Err(Kind::Forbidden));
    assert_eq!(set_password(&mut world, "a", None, "hash"), Err(Kind::Forbidden));
    enrol(&mut world, "a", 100);
    assert_eq!(role(&mut world, "a"), Ok(Role::Owner));
    change(&mut world, "a", FactorChange::Remove(code(101))).unwrap();
    assert_eq!(role(&mut world, "a"), Err(Kind::Forbidden), "it is still required");
    world.change_settings(Settings::default());
    set_password(&mut world, "a", None, "hash").unwrap_err();
}

/// Setting up a second factor ends every session that has not shown it, whether made before it was required or since, by a
/// password or by a link.
#[test]
fn a_new_second_factor_ends_sessions_without_it() {
    let mut settings = Settings::default();
    let mut world = World::with(settings.clone());
    let account = link(&mut world, "one", None);
    next(by_link(&mut world, "one", "before"));
    set_password(&mut world, "before", None, "hash").unwrap();
    settings.sign_in.require_two_factor = true;
    world.change_settings(settings);
    link(&mut world, "two", None);
    assert_eq!(next(by_link(&mut world, "two", "linked")), Next::EnrollTotp);
    for cookie in ["stolen", "own"] {
        assert_eq!(next(by_password(&mut world, account, "hash", cookie)), Next::EnrollTotp);
    }
    for cookie in ["before", "linked", "stolen", "own"] {
        assert_eq!(role(&mut world, cookie), Err(Kind::Forbidden), "{cookie}");
    }
    enrol(&mut world, "own", 100);
    assert_eq!(role(&mut world, "own"), Ok(Role::Owner));
    for cookie in ["before", "linked", "stolen"] {
        assert_eq!(role(&mut world, cookie), Err(Kind::Unauthenticated), "{cookie}");
    }
    assert_eq!(world.row::<Account>(account).sessions, [id("own")]);
    assert_eq!(kinds(&mut world).iter().filter(|it| *it == "session.ended").count(), 3);
    // Taken away, it is asked for anew of whoever is signed in.
    by_password(&mut world, account, "hash", "second").unwrap();
    next(finish(&mut world, "second", code(101), "second"));
    change(&mut world, "own", FactorChange::Remove(code(102))).unwrap();
    assert_eq!(role(&mut world, "second"), Err(Kind::Forbidden));
    enrol(&mut world, "own", 200);
    assert_eq!(role(&mut world, "second"), Err(Kind::Unauthenticated));
    world.audit();
}

/// A second factor that was lost is taken away by the operator: it, its recovery codes, what waited for it and every session are void,
/// the ledger says that no person did it, and a link alone signs in.
#[test]
fn the_operator_takes_a_lost_second_factor_away() {
    let mut world = World::new();
    let account = link(&mut world, "one", None);
    next(by_link(&mut world, "one", "own"));
    set_password(&mut world, "own", None, "hash").unwrap();
    enrol(&mut world, "own", 100);
    assert!(matches!(by_password(&mut world, account, "hash", "stolen").unwrap(), SignInStep::Totp));
    link(&mut world, "two", None);
    world.run(DropSecondFactor { email: owner() }).unwrap();
    let row = world.row::<Account>(account);
    assert!(row.second_factor.is_none() && row.enrolling.is_none() && row.sessions.is_empty());
    assert_eq!(role(&mut world, "own"), Err(Kind::Unauthenticated));
    let recovery = FactorShown::Recovery(Digest::of("one"));
    assert_eq!(finish(&mut world, "stolen", recovery, "stolen").unwrap_err(), Kind::Unauthenticated);
    next(by_link(&mut world, "two", "new"));
    assert_eq!(role(&mut world, "new"), Ok(Role::Owner));
    world.advance(Span::seconds(1));
    let told = world.dump();
    let removals: Vec<&str> = told.lines().filter(|it| it.contains("member.two_factor_removed")).collect();
    assert!(removals.len() == 1 && removals[0].contains("policy"), "{removals:?}");
    // An account without one stays as it is, and one that waits to be confirmed is void.
    world.run(DropSecondFactor { email: owner() }).unwrap();
    assert_eq!(role(&mut world, "new"), Ok(Role::Owner));
    change(&mut world, "new", FactorChange::Begin { sealed: "begun".into() }).unwrap();
    world.run(DropSecondFactor { email: owner() }).unwrap();
    assert_eq!(world.row::<Account>(account).enrolling, None);
    let nobody = Email::parse("nobody@example.com").unwrap();
    assert_eq!(world.run(DropSecondFactor { email: nobody }).unwrap_err().kind(), Kind::NotFound);
    world.audit();
}

/// A secret is confirmed with a code of its own, and one factor is enough.
#[test]
fn a_second_factor_is_confirmed() {
    let mut world = World::new();
    let account = link(&mut world, "one", None);
    next(by_link(&mut world, "one", "a"));
    let confirm = |sealed: &str, step| FactorChange::Confirm { sealed: sealed.into(), step, recovery: Vec::new() };
    assert_eq!(change(&mut world, "a", confirm("sealed", Some(1))), Err(Kind::NotAllowed), "nothing waits");
    change(&mut world, "a", FactorChange::Begin { sealed: "first".into() }).unwrap();
    change(&mut world, "a", FactorChange::Begin { sealed: "sealed".into() }).unwrap();
    assert_eq!(change(&mut world, "a", confirm("first", Some(1))), Err(Kind::InvalidRequest), "another took its place");
    assert_eq!(change(&mut world, "a", confirm("sealed", None)), Err(Kind::InvalidRequest));
    assert!(world.row::<Account>(account).second_factor.is_none());
    change(&mut world, "a", confirm("sealed", Some(1))).unwrap();
    assert_eq!(change(&mut world, "a", FactorChange::Begin { sealed: "x".into() }), Err(Kind::NotAllowed));
    change(&mut world, "a", FactorChange::Remove(code(1))).unwrap_err();
    change(&mut world, "a", FactorChange::Remove(code(2))).unwrap();
    assert_eq!(change(&mut world, "a", FactorChange::Remove(code(3))), Err(Kind::NotAllowed));
}

/// A workspace that takes only its own single sign-on takes no session of a password or a link.
#[test]
fn single_sign_on_alone_is_told() {
    let mut settings = Settings::default();
    let mut world = World::with(settings.clone());
    link(&mut world, "one", None);
    next(by_link(&mut world, "one", "a"));
    settings.sign_in.require_sso = true;
    world.change_settings(settings);
    assert_eq!(role(&mut world, "a"), Err(Kind::Forbidden));
    link(&mut world, "two", None);
    assert!(matches!(by_link(&mut world, "two", "b").unwrap(), SignInStep::Sso(_)));
    assert!(!lives(&mut world, "b"));
    assert_eq!(by_link(&mut world, "two", "c").unwrap_err(), Kind::Unauthenticated, "it is used up all the same");
}

/// Single sign-on is not asked for where there is no provider of it: nobody could sign in to take it back. Returning to the default
/// stays open.
#[test]
fn single_sign_on_needs_a_provider() {
    let mut world = World::new();
    let by = world.owner();
    let mut change = |require_sso| {
        let change = SettingsChange { require_sso: Some(require_sso), ..SettingsChange::default() };
        world.run(ChangeSettings { workspace: by.workspace, by: by::By::Person(by), change })
    };
    let refused = change(true).unwrap_err();
    assert_eq!((refused.kind(), refused.errors().len()), (Kind::InvalidRequest, 1));
    assert_eq!(refused.errors()[0].field.as_deref(), Some("signIn.requireSso"));
    assert!(!change(false).unwrap().settings.sign_in.require_sso);
}

/// A session that a workspace's own single sign-on made is good there alone; one of a password nowhere that asks for the other.
#[test]
fn a_session_is_good_where_its_proof_counts() {
    let mut settings = Settings::default();
    let mut world = World::with(settings.clone());
    link(&mut world, "one", None);
    next(by_link(&mut world, "one", "a"));
    assert_eq!(role(&mut world, "a"), Ok(Role::Owner));
    let (own, other) = (world.workspace(), svc_core::value::Id::from_bits(7));
    let proved = |world: &mut World, proof| world.edit::<Session>(id("a"), |it| it.proof = proof);
    proved(&mut world, Proof::Sso(other));
    assert_eq!(role(&mut world, "a"), Err(Kind::Forbidden), "it was made for another workspace");
    settings.sign_in.require_sso = true;
    world.change_settings(settings);
    proved(&mut world, Proof::Sso(own));
    assert_eq!(role(&mut world, "a"), Ok(Role::Owner));
    assert_eq!(set_password(&mut world, "a", None, "new"), Err(Kind::Forbidden), "the account is good elsewhere too");
    assert_eq!(change(&mut world, "a", FactorChange::Begin { sealed: "x".into() }), Err(Kind::Forbidden));
    proved(&mut world, Proof::Password);
    assert_eq!(role(&mut world, "a"), Err(Kind::Forbidden));
}

/// A link is no link of another's digest, and rows of links name no secret.
#[test]
fn a_link_is_its_digest() {
    let mut world = World::new();
    link(&mut world, "sil_secret", None);
    let row: Arc<SignInLink> = world.row(SignInLink::id_of(&Digest::of("sil_secret")));
    assert_eq!(row.digest, Digest::of("sil_secret"));
    assert!(!world.dump().contains("sil_secret"));
    let nobody = Email::parse("nobody@example.com").unwrap();
    let made = world.run(MakeLink { email: nobody, token: Digest::of("x"), life: None });
    assert_eq!(made.unwrap_err().kind(), Kind::NotFound);
}
