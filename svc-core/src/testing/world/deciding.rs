//! Persons of a world, and what they decide.

use std::sync::Arc;

use super::World;
use crate::refusal::Refusal;
use crate::rules::gate::asked::Question;
use crate::rules::gate::decide::{Choice, DecideApproval};
use crate::rules::people::by::Person;
use crate::state::gate::Action;
use crate::state::people::{Role, Session};
use crate::store::{Row, Store};
use crate::testing::people;
use crate::value::id::ActionId;

impl<S: Store> World<S> {
    /// The first owner, in a session of their own.
    ///
    /// # Panics
    /// Where the store fails.
    pub fn owner(&mut self) -> Person {
        self.people += 1;
        let (workspace, n, now) = (self.workspace, self.people, self.now());
        people::sign_in_owner(self.engine.store(), workspace, n, now)
    }

    /// A new member with this role, signed in.
    ///
    /// # Panics
    /// Where the store fails.
    pub fn person(&mut self, role: Role) -> Person {
        self.people += 1;
        let (workspace, n, now) = (self.workspace, self.people, self.now());
        people::sign_in(self.engine.store(), workspace, role, n, now)
    }

    /// Keeps a person's session from ending while time goes by.
    ///
    /// # Panics
    /// Where the store fails.
    pub fn keep_signed_in(&mut self, person: &Person) {
        let (now, session) = (self.now(), person.session().expect("a session"));
        self.edit::<Session>(session, |it| (it.created_at, it.seen_at, it.ended_at) = (now, now, None));
    }

    /// Changes one row behind the gate's back, and the lists it is in.
    ///
    /// # Panics
    /// Where there is no such row or the store fails.
    pub fn edit<R: Row + Clone>(&mut self, id: R::Id, change: impl FnOnce(&mut R)) {
        let mut row = R::clone(&self.row::<R>(id));
        change(&mut row);
        people::write(self.engine.store(), vec![R::wrap(Arc::new(row))]);
    }

    /// What a person says to the approval of an action.
    ///
    /// # Errors
    /// The refusal.
    ///
    /// # Panics
    /// Where nobody was asked about the action.
    pub fn decide(&mut self, by: &Person, action: ActionId, choice: Choice) -> Result<Question, Refusal> {
        let decide = self.decision(by, action, choice);
        self.run(decide)
    }

    /// The command that decides the approval of an action.
    ///
    /// # Panics
    /// Where nobody was asked about the action.
    pub fn decision(&mut self, by: &Person, action: ActionId, choice: Choice) -> DecideApproval {
        let approval = self.row::<Action>(action).approval.expect("a person was asked");
        DecideApproval::new(*by, approval, choice)
    }

    /// A person's yes to an action.
    ///
    /// # Panics
    /// Where that is refused.
    pub fn approve(&mut self, by: &Person, action: ActionId) -> Question {
        self.decide(by, action, Choice::Approve).expect("a yes is taken")
    }

    /// A person's no to an action.
    ///
    /// # Panics
    /// Where that is refused.
    pub fn deny(&mut self, by: &Person, action: ActionId) -> Question {
        self.decide(by, action, Choice::Deny).expect("a no is taken")
    }
}
