//! Members: who may make whom what, and that a workspace always has an owner.

use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::keys::{CreateKey, NewKey};
use svc_core::rules::people::members::{ChangeMember, InviteMember, MemberDone, RemoveMember};
use svc_core::rules::read::check_key;
use svc_core::state::gate::Via;
use svc_core::state::people::{KeyScope, Principal, Role, Workspace};
use svc_core::testing::people;
use svc_core::testing::world::World;
use svc_core::value::digest::Digest;
use svc_core::value::id::{ApprovalId, PrincipalId};
use svc_core::value::text::Email;

/// A world with its first owner and another one, both signed in.
fn owners() -> (World, Person, Person) {
    let mut world = World::new();
    let (workspace, now) = (world.workspace(), world.now());
    let first = people::sign_in_owner(world.engine().store(), workspace, 1, now);
    let second = people::sign_in(world.engine().store(), workspace, Role::Owner, 2, now);
    (world, first, second)
}

fn remove(world: &mut World, by: Person, principal: PrincipalId) -> Result<MemberDone, Refusal> {
    world.run(RemoveMember { workspace: by.workspace, by: By::Person(by), principal })
}

fn asked(done: Result<MemberDone, Refusal>) -> ApprovalId {
    if let MemberDone::Asked(approval) = done.unwrap() { approval.id } else { panic!("it was done at once") }
}

fn approve(by: Person, approval: ApprovalId) -> DecideApproval {
    DecideApproval { by, approval, choice: Choice::Approve, note: None, digest: None, via: Via::Console }
}

/// Two owners who remove each other at once: the second agreement finds that who asked for it is an owner no more.
#[test]
fn two_owners_who_remove_each_other_leave_one() {
    let (mut world, first, second) = owners();
    let of_second = asked(remove(&mut world, first, second.principal));
    let of_first = asked(remove(&mut world, second, first.principal));
    let workspace = world.workspace();
    world.run(approve(second, of_second)).unwrap();
    assert_eq!(world.row::<Workspace>(workspace).owners, [first.principal]);
    assert_eq!(world.run(approve(first, of_first)).unwrap_err().kind(), Kind::NotAllowed);
    let alone = remove(&mut world, first, first.principal).unwrap_err();
    assert_eq!((alone.kind(), alone.reason().is_some()), (Kind::NotAllowed, true));
    let role = Some(Role::Admin);
    let (by, principal) = (By::Person(first), first.principal);
    let demoted = world.run(ChangeMember { workspace, by, principal, role, teams: None });
    assert_eq!(demoted.unwrap_err().kind(), Kind::NotAllowed);
    assert_eq!(world.row::<Workspace>(workspace).owners, [first.principal]);
    assert!(world.ledger().contains("member.removed"));
    world.audit();
}

/// An invited owner counts from the first sign-in on: until then the last owner cannot leave.
#[test]
fn an_invited_owner_lets_nobody_leave_yet() {
    let mut world = World::new();
    let (workspace, now) = (world.workspace(), world.now());
    let owner = people::sign_in_owner(world.engine().store(), workspace, 1, now);
    let invite = InviteMember {
        workspace,
        by: By::Person(owner),
        email: Email::parse("next@example.com").unwrap(),
        name: None,
        role: Role::Owner,
        teams: Vec::new(),
        token: Digest::of("link"),
    };
    let MemberDone::Done { linked, .. } = world.run(invite).unwrap() else { panic!("one owner asks nobody") };
    assert!(linked);
    assert_eq!(world.row::<Workspace>(workspace).owners, [owner.principal]);
    assert_eq!(remove(&mut world, owner, owner.principal).unwrap_err().kind(), Kind::NotAllowed);
    world.audit();
}

/// Who is removed keeps no key, and a key that was made for them stays void when they are invited anew.
#[test]
fn keys_end_with_the_membership() {
    let (mut world, first, _) = owners();
    let (workspace, now) = (world.workspace(), world.now());
    let member = people::sign_in(world.engine().store(), workspace, Role::Member, 3, now);
    let key = NewKey::of("ask_members_own_key");
    let make = CreateKey::new(workspace, By::Person(first), KeyScope::Inference, key);
    world.run(CreateKey { principal: Some(member.principal), ..make }).unwrap();
    let digest = Digest::of("ask_members_own_key");
    assert!(world.engine().read(|scope| check_key(scope, &digest).map(drop)).is_ok());
    assert!(matches!(remove(&mut world, first, member.principal).unwrap(), MemberDone::Done { .. }));
    assert!(world.engine().read(|scope| check_key(scope, &digest).map(drop)).is_err());
    let email = world.row::<Principal>(member.principal).email.clone();
    let (by, role, token) = (By::Person(first), Role::Member, Digest::of("link"));
    let teams = Vec::new();
    world.run(InviteMember { workspace, by, email, name: None, role, teams, token }).unwrap();
    assert!(world.engine().read(|scope| check_key(scope, &digest).map(drop)).is_err());
    world.audit();
}
