//! Signed-in persons of any role, put into a store as rows: what signing in leaves behind, without the way there.

use super::World;
use crate::answer::Decided;
use crate::refusal::Refusal;
use crate::rules::gate::release::ReleaseAction;
use crate::rules::people::by::{By, Person, Seat};
use crate::rules::people::members::InviteMember;
use crate::state::people::{
    Account, EmailUse, Member, MemberState, Membership, Principal, Proof, Role, Session, Workspace,
};
use crate::store::{Commit, Committed, Key, Loaded, Record, Row, Store, Write};
use crate::value::digest::Digest;
use crate::value::id::{AccountId, ActionId, PrincipalId, SessionId, WorkspaceId};
use crate::value::text::{Email, Note};
use crate::value::{Id, Timestamp};

/// A new member of `workspace` with this role, signed in at `now`. `n` tells persons apart: each is another account in
/// another session.
///
/// # Panics
/// Where the store fails.
pub fn sign_in<S: Store>(store: &mut S, workspace: WorkspaceId, role: Role, n: u64, now: Timestamp) -> Person {
    let account: AccountId = id_of("account", n);
    let principal: PrincipalId = id_of("principal", n);
    let email = Email::parse(&format!("person-{n}@example.com")).expect("an address");
    let member = Member::new(role, MemberState::Active, account);
    let of_account = EmailUse::of_account(&email);
    let of_principal = EmailUse::of_principal(workspace, &email);
    let mut rows = vec![
        EmailUse::wrap(EmailUse { id: of_account, account: Some(account), principal: None }.into()),
        EmailUse::wrap(EmailUse { id: of_principal, account: None, principal: Some(principal) }.into()),
        Principal::wrap(
            Principal { member: Some(member), ..Principal::new(principal, workspace, email.clone(), now) }.into(),
        ),
        Account::wrap(
            Account {
                memberships: vec![Membership { workspace, principal }],
                signed_in_at: Some(now),
                ..Account::new(account, email.clone(), now)
            }
            .into(),
        ),
    ];
    if role == Role::Owner {
        let found = store.load(&[Workspace::key(workspace)]).expect("a load succeeds").remove(0).record;
        let row = found.as_ref().and_then(Workspace::peel).expect("a workspace");
        let mut owners = row.owners.clone();
        owners.push(principal);
        rows.push(Workspace::wrap(Workspace { owners, ..Workspace::clone(row) }.into()));
    }
    write(store, rows);
    let session = session(store, account, n, now);
    Person { workspace, principal, account, seat: Seat::Session(session) }
}

/// The operator's invitation of `email`, whose link nobody but the test knows.
///
/// # Panics
/// Where `email` is none.
#[must_use]
pub fn invitation(workspace: WorkspaceId, email: &str, role: Role) -> InviteMember {
    InviteMember {
        workspace,
        by: By::Program,
        email: Email::parse(email).expect("an address"),
        name: None,
        role,
        teams: None,
        token: Digest::of(format!("link of {email}")),
        mailed: None,
    }
}

/// The first owner of `workspace`, signed in at `now`.
///
/// # Panics
/// Where the store fails or there is no such workspace.
pub fn sign_in_owner<S: Store>(store: &mut S, workspace: WorkspaceId, n: u64, now: Timestamp) -> Person {
    let row = |loaded: Loaded| loaded.record.expect("the row is there");
    let load = |store: &mut S, key: Key| row(store.load(&[key]).expect("a load succeeds").remove(0));
    let found = load(store, Workspace::key(workspace));
    let principal = Workspace::peel(&found).expect("a workspace").owner;
    let found = load(store, Principal::key(principal));
    let account = Principal::peel(&found).and_then(|it| it.membership()).expect("a member").account;
    let session = session(store, account, n, now);
    Person { workspace, principal, account, seat: Seat::Session(session) }
}

/// A session of `account`, made at `now`. `n` tells sessions apart.
fn session<S: Store>(store: &mut S, account: AccountId, n: u64, now: Timestamp) -> crate::value::digest::SessionDigest {
    let digest = Digest::of(format!("session {n} of {account}"));
    let session: SessionId = id_of("session", n);
    let row = Session {
        id: Session::id_of(&digest),
        digest,
        session,
        account,
        epoch: 0,
        proof: Proof::Password,
        must_enroll: false,
        created_at: now,
        seen_at: now,
        ended_at: None,
    };
    let id = row.id;
    write(store, vec![Session::wrap(row.into())]);
    id
}

impl<S: Store> World<S> {
    /// Releases what the use of a receipt kept posted.
    ///
    /// # Errors
    /// The refusal.
    ///
    /// # Panics
    /// Where the store fails.
    pub fn release(&mut self, by: By, action: ActionId) -> Result<Decided, Refusal> {
        let reason = Note::parse("the charge was reversed").expect("a note");
        let workspace = self.workspace();
        self.run(ReleaseAction { by, workspace, action, reason })
    }
}

/// Puts rows into a store with the lists that they belong to, whatever was there before.
///
/// # Panics
/// Where the store fails.
pub fn write<S: Store>(store: &mut S, rows: Vec<Record>) {
    let keys: Vec<Key> = rows.iter().map(Record::key).collect();
    let loaded = store.load(&keys).expect("a load succeeds");
    let mut writes: Vec<(Write, crate::store::Stamp)> = Vec::new();
    for record in rows {
        let key = record.key();
        let before = loaded.iter().find(|it| it.key == key);
        let unlink = before.and_then(|it| it.record.as_ref()).map(Record::links).unwrap_or_default();
        let stamp = before.map_or(crate::store::Stamp::ABSENT, |it| it.stamp);
        let link = record.links();
        let (gone, new) =
            (unlink.iter().filter(|it| !link.contains(it)), link.iter().filter(|it| !unlink.contains(it)));
        let (unlink, link) = (gone.copied().collect(), new.copied().collect());
        writes.push((Write { key, record: Some(record), unlink, link }, stamp));
    }
    writes.sort_by_key(|(write, _)| write.key);
    let checks = writes.iter().map(|(write, stamp)| (write.key, *stamp)).collect();
    let commit = Commit { checks, writes: writes.into_iter().map(|(write, _)| write).collect() };
    let done = store.commit(&commit).expect("a commit succeeds");
    assert!(matches!(done, Committed::Applied(_)), "nobody else writes");
}

fn id_of<I: Id>(what: &str, n: u64) -> I {
    I::from_bits(Digest::of(format!("{what} {n}")).bits() >> 8)
}
