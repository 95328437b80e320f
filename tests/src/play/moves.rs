//! What somebody may do, and how often.

use proptest::prelude::*;
use svc_core::state::gate::OutcomeStatus;

/// One thing that somebody does. Numbers choose among what there is, so that any number is good.
#[derive(Clone, Debug)]
pub enum Move {
    /// An agent asks to pay.
    Pay {
        /// Which agent.
        agent: usize,
        /// Which of [`AMOUNTS`](super::AMOUNTS).
        amount: usize,
        /// Which of [`MERCHANTS`](super::MERCHANTS).
        merchant: usize,
        /// Under which idempotency key.
        key: Option<u8>,
    },
    /// An agent asks for something else.
    Ask {
        /// Which agent.
        agent: usize,
        /// Which of [`KINDS`](super::KINDS).
        kind: usize,
        /// In which session.
        session: Option<u8>,
        /// Whether it says that strangers' content is behind it.
        untrusted: bool,
        /// Under which idempotency key.
        key: Option<u8>,
    },
    /// An agent settles one of its actions.
    Settle {
        /// Which action.
        action: usize,
        /// As what.
        status: OutcomeStatus,
        /// At how many percent of what was allowed, where an amount is said.
        percent: Option<u8>,
    },
    /// What the use of a receipt kept posted is released.
    Release {
        /// Of which action.
        action: usize,
    },
    /// A stranger shows a receipt.
    Verify {
        /// Of which action.
        action: usize,
        /// For how many percent of what was allowed.
        percent: u8,
        /// With which idempotency key.
        key: Option<u8>,
    },
    /// The card's issuer says something of an action; the first word connects it.
    Issuer {
        /// What it says.
        word: Word,
        /// Of which action.
        action: usize,
        /// For how many percent of what was allowed.
        percent: u8,
    },
    /// An agent is stopped.
    Freeze {
        /// Which agent.
        agent: usize,
    },
    /// An agent is removed.
    Remove {
        /// Which agent.
        agent: usize,
    },
    /// An agent is made.
    Register {
        /// Which of [`mandates`](super::mandates).
        mandate: usize,
    },
    /// A mandate is granted.
    Grant {
        /// To which agent.
        agent: usize,
        /// Which of [`mandates`](super::mandates).
        mandate: usize,
    },
    /// A mandate of an agent ends.
    Revoke {
        /// Of which agent.
        agent: usize,
        /// Which of its mandates.
        mandate: usize,
    },
    /// A person decides what was asked.
    Decide {
        /// About which action.
        action: usize,
        /// Which person.
        person: usize,
        /// Whether they say yes.
        yes: bool,
    },
    /// A callback is named for an action.
    Callback {
        /// Which action.
        action: usize,
    },
    /// Settings are changed.
    Settings {
        /// Which of [`settings`](super::settings).
        choice: usize,
    },
    /// The timer of an action and of its approval is said to be due.
    Wake {
        /// Which action.
        action: usize,
    },
    /// The approval of an action is ended, if its agent was stopped.
    End {
        /// Which action.
        action: usize,
    },
    /// Whoever an agent named is called.
    Deliver {
        /// Of which action.
        action: usize,
        /// What came of the call; it begins where nothing is said.
        taken: Option<bool>,
    },
    /// The ledger takes its places.
    Sequence,
    /// A stopped agent is started again.
    Restart {
        /// Which of those that are stopped.
        agent: usize,
        /// Which person does it; the program where nobody is said.
        person: Option<usize>,
    },
    /// Many agents are stopped.
    Fleet {
        /// Whether all are, and whoever is made later, until the hold is lifted.
        all: bool,
        /// Where not all are: those of every other place, from which on.
        first: usize,
    },
    /// A hold is lifted.
    Lift {
        /// Which, from the newest back.
        hold: usize,
        /// Whether those that it stopped are started again.
        restart: bool,
    },
    /// A mandate is changed.
    Change {
        /// Which of all.
        mandate: usize,
        /// To what.
        choice: usize,
    },
    /// A model is asked for.
    Admit {
        /// With which key: the workspace's own or an agent's.
        key: usize,
        /// Which of the lengths of an answer.
        tokens: usize,
        /// For which task.
        task: u8,
    },
    /// A call of a model has come to its end.
    Finish {
        /// Which call.
        call: usize,
        /// How many percent of what it reserved it used, where that is known.
        percent: Option<u8>,
    },
}

/// What a card's issuer says.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    /// It asks whether a charge is covered.
    Charge,
    /// It tells what a charge came to.
    Charged,
    /// It takes a charge back.
    Reversed,
}

/// A random move; most of them ask, settle and verify.
pub fn moves() -> impl Strategy<Value = Move> {
    let any = 0_usize..64;
    let key = || prop::option::weighted(0.3, 0_u8..4);
    let status = prop::sample::select(vec![OutcomeStatus::Completed, OutcomeStatus::Failed, OutcomeStatus::Cancelled]);
    prop_oneof![
        12 => (any.clone(), any.clone(), any.clone(), key())
            .prop_map(|(agent, amount, merchant, key)| Move::Pay { agent, amount, merchant, key }),
        8 => (any.clone(), any.clone(), prop::option::weighted(0.3, 0_u8..3), prop::bool::weighted(0.2), key())
            .prop_map(|(agent, kind, session, untrusted, key)| Move::Ask { agent, kind, session, untrusted, key }),
        6 => (any.clone(), status, prop::option::weighted(0.7, prop::sample::select(vec![0_u8, 50, 100, 100, 120])))
            .prop_map(|(action, status, percent)| Move::Settle { action, status, percent }),
        6 => (any.clone(), prop::sample::select(vec![50_u8, 100, 100, 110]), key())
            .prop_map(|(action, percent, key)| Move::Verify { action, percent, key }),
        2 => any.clone().prop_map(|action| Move::Release { action }),
        5 => (prop::sample::select(vec![Word::Charge, Word::Charged, Word::Charged, Word::Reversed]), any.clone(),
            prop::sample::select(vec![0_u8, 50, 90, 100, 100, 110]))
            .prop_map(|(word, action, percent)| Move::Issuer { word, action, percent }),
        2 => any.clone().prop_map(|agent| Move::Freeze { agent }),
        1 => any.clone().prop_map(|agent| Move::Remove { agent }),
        2 => any.clone().prop_map(|mandate| Move::Register { mandate }),
        2 => (any.clone(), any.clone()).prop_map(|(agent, mandate)| Move::Grant { agent, mandate }),
        1 => (any.clone(), any.clone()).prop_map(|(agent, mandate)| Move::Revoke { agent, mandate }),
        4 => (any.clone(), any.clone(), prop::bool::weighted(0.7))
            .prop_map(|(action, person, yes)| Move::Decide { action, person, yes }),
        3 => any.clone().prop_map(|action| Move::Callback { action }),
        3 => (any.clone(), prop::option::of(prop::bool::ANY))
            .prop_map(|(action, taken)| Move::Deliver { action, taken }),
        1 => any.clone().prop_map(|choice| Move::Settings { choice }),
        2 => any.clone().prop_map(|action| Move::Wake { action }),
        1 => any.clone().prop_map(|action| Move::End { action }),
        2 => Just(Move::Sequence),
        14 => others(),
    ]
}

/// Moves that stop agents and start them again, change what they may do, and call models.
fn others() -> impl Strategy<Value = Move> {
    let any = 0_usize..64;
    let percent = prop::option::weighted(0.8, prop::sample::select(vec![0_u8, 50, 100, 100, 150]));
    prop_oneof![
        6 => (any.clone(), prop::option::weighted(0.5, any.clone()))
            .prop_map(|(agent, person)| Move::Restart { agent, person }),
        1 => (prop::bool::ANY, any.clone()).prop_map(|(all, first)| Move::Fleet { all, first }),
        5 => (any.clone(), prop::bool::weighted(0.7)).prop_map(|(hold, restart)| Move::Lift { hold, restart }),
        4 => (any.clone(), any.clone()).prop_map(|(mandate, choice)| Move::Change { mandate, choice }),
        6 => (any.clone(), any.clone(), 0_u8..4).prop_map(|(key, tokens, task)| Move::Admit { key, tokens, task }),
        6 => (any, percent).prop_map(|(call, percent)| Move::Finish { call, percent }),
    ]
}
