//! A batch of n commands is n batches of one, in order: the same answers, the same rows, the same ledger.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

use proptest::prelude::*;
use svc_core::command::{Command, Reply};
use svc_core::refusal::Refusal;
use svc_core::store::{Committed, Key, MemoryStore, Record, Store};
use svc_core::testing::audit;
use svc_core::testing::world;
use svc_core::turn::{Finished, Rows, Step, Turn};
use svc_core::value::seed::Seed;
use svc_core::value::{Span, Timestamp};
use svc_tests::play::{self, Cast, Move};

/// A store, the rows kept between turns, and the instant of the next one.
struct Node {
    store: MemoryStore,
    rows: Rows,
    now: Timestamp,
}

type Answer = Result<Reply, Refusal>;

impl Node {
    fn new() -> Self {
        Self { store: MemoryStore::new(), rows: Rows::new(4_096), now: Timestamp::from_millis(1_790_847_000_000) }
    }

    /// Runs a turn to its end; whatever the rounds leave over is run in a turn of its own.
    fn turn(&mut self, seed: Seed, commands: Vec<Command>) -> Finished<Command> {
        let mut turn = Turn::new(self.now, seed, commands, std::mem::take(&mut self.rows));
        loop {
            match turn.step() {
                Step::Load(keys) => turn.handle_loaded(self.store.load(&keys).unwrap()),
                Step::Commit(commit) => match self.store.commit(commit).unwrap() {
                    Committed::Applied(stamp) => {
                        let mut finished = turn.finish(stamp);
                        self.rows = std::mem::take(&mut finished.rows);
                        return finished;
                    }
                    Committed::Conflict(moved) => turn.handle_conflict(moved),
                },
            }
        }
    }

    /// Runs `command` as the `place`-th of a turn of nothings, so that it draws the ids it would draw in the batch.
    fn alone(&mut self, seed: Seed, place: usize, command: Command, nothing: &Command) -> Answer {
        let mut commands = vec![nothing.clone(); place];
        commands.push(command);
        let mut finished = self.turn(seed, commands);
        assert!(finished.rest.is_empty());
        finished.answers.pop().unwrap()
    }

    fn records(&self) -> Vec<(Key, Record)> {
        self.store.dump().into_iter().map(|(key, _, record)| (key, record)).collect()
    }
}

fn seed(n: usize) -> Seed {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    Seed::new(bytes)
}

/// Plays `rounds` of moves one by one, then each round as one batch over a store of its own, and compares.
fn compare(rounds: &[(u16, Vec<Move>)]) {
    let (mut singly, mut batched) = (Node::new(), Node::new());
    let mut cast = Cast::default();
    let opening = singly.turn(seed(0), vec![Cast::opening()]);
    let _ = batched.turn(seed(0), vec![Cast::opening()]);
    cast.hear(opening.answers[0].as_ref().unwrap());
    let workspace = cast.workspace.unwrap();
    cast.sign_in(&mut singly.store);
    cast.sign_in(&mut batched.store);
    let mut equipped = 10;
    cast.equip(|command| {
        equipped += 1;
        let _ = batched.turn(seed(equipped), vec![command.clone()]);
        singly.turn(seed(equipped), vec![command]).answers.remove(0).unwrap()
    });
    for agent in 0..2 {
        let made = play::register(workspace, agent, 1_000_000 + agent as u64);
        let answers = singly.turn(seed(1 + agent), vec![made.clone().into()]).answers;
        let _ = batched.turn(seed(1 + agent), vec![made.into()]);
        cast.hear(answers[0].as_ref().unwrap());
    }
    for (round, (minutes, moves)) in rounds.iter().enumerate() {
        let seed = seed(100 + round);
        let (mut commands, mut answers) = (Vec::new(), Vec::new());
        for step in moves {
            cast.look(&singly.store.dump());
            let Some(command) = cast.command(step) else { continue };
            let answer = singly.alone(seed, commands.len(), command.clone(), &play::nothing(workspace));
            if let Ok(reply) = &answer {
                cast.hear(reply);
            }
            commands.push(command);
            answers.push(answer);
        }
        let finished = batched.turn(seed, commands.clone());
        assert_eq!(finished.answers.len() + finished.rest.len(), commands.len());
        // What the rounds left over would draw other ids in a turn of its own; batches here are too short for that.
        assert!(finished.rest.is_empty(), "{} commands were left over", finished.rest.len());
        for ((command, alone), together) in commands.iter().zip(&answers).zip(&finished.answers) {
            assert_eq!(format!("{together:?}"), format!("{alone:?}"), "the answer to {command:?}");
        }
        let (one, other) = (singly.records(), batched.records());
        let differing = one.iter().zip(&other).find(|(one, other)| one != other);
        assert!(one == other, "{} rows against {}, of which {differing:?}", one.len(), other.len());
        let later = singly.now.plus(Span::minutes(i64::from(*minutes)));
        (singly.now, batched.now) = (later, later);
    }
    for mut node in [singly, batched] {
        let rows = node.store.dump();
        let mut faults = audit::audit(&rows).faults;
        faults.extend(audit::audit_approvals(&rows));
        faults.extend(audit::audit_lists(&mut node.store, &rows));
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the commands: together they answer and leave what they answer and leave one after another.
    #[test]
    fn a_batch_is_its_commands_in_order(
        rounds in prop::collection::vec((prop::sample::select(vec![0_u16, 1, 11, 90, 1_600]),
            prop::collection::vec(play::moves(), 1..24)), 1..5)
    ) {
        compare(&rounds);
    }
}

/// Sixty-four commands of one agent in one turn: velocity, sums and single use hold inside the batch.
#[test]
fn many_commands_of_one_agent_see_one_another() {
    let asks = (0..40).map(|n| Move::Pay { agent: 0, amount: 0, merchant: 0, key: Some((n % 20) as u8) });
    let shows = (0..12).map(|n| Move::Verify { action: n % 3, percent: 100, key: None });
    let settles = (0..12).map(|n| Move::Settle {
        action: n % 3,
        status: svc_core::state::gate::OutcomeStatus::Completed,
        percent: Some(100),
    });
    compare(&[(0, asks.chain(shows).chain(settles).collect())]);
}

/// One batch that fills a velocity line, a sum and a backlog: as many are allowed and asked as one by one.
#[test]
fn a_batch_passes_no_limit() {
    let mut node = Node::new();
    let mut cast = Cast::default();
    cast.hear(node.turn(seed(0), vec![Cast::opening()]).answers[0].as_ref().unwrap());
    let made = play::register(cast.workspace.unwrap(), 0, 1);
    cast.hear(node.turn(seed(1), vec![made.into()]).answers[0].as_ref().unwrap());
    let asks = (0..64)
        .map(|n| play::authorize(cast.agents[0], world::payment(1_000 + n, "EUR", "shop.example.com"), None, n as u64));
    let finished = node.turn(seed(2), asks.collect());
    let verbs: Vec<_> = finished
        .answers
        .iter()
        .map(|answer| match answer {
            Ok(Reply::Action(view)) => view.verb(),
            other => panic!("{other:?}"),
        })
        .collect();
    // 2,500 a day of small ones before split payments ask; never more than 9,000 reserved, never more than ten unasked.
    assert!(verbs.iter().filter(|it| **it == svc_core::state::gate::Verb::Allow).count() <= 10);
    let report = audit::audit(&node.store.dump());
    report.assert_clean("64 payments in one batch");
    assert_eq!(report.actions, 64);
}
