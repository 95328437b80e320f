//! Every target holds on its corpus and on variations that are the same each time; longer runs are `tests/fuzz/run`'s.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use svc_fuzz::mutate::Mutator;
use svc_fuzz::targets::console::{GATEWAY, WORKSPACE};
use svc_fuzz::targets::mandates::MANDATES;
use svc_fuzz::targets::people::PEOPLE;
use svc_fuzz::{TARGETS, corpus, target};

/// Variations of each target's corpus.
const VARIATIONS: usize = 64;

/// No input of the corpus, and none of the first variations of it, breaks a promise.
#[test]
fn targets_hold() {
    for target in TARGETS {
        let from = corpus(target);
        assert!(from.len() >= 2, "{} begins with {} inputs", target.name, from.len());
        from.iter().for_each(|input| (target.run)(input));
        let mut mutator = Mutator::new(0);
        (0..VARIATIONS).for_each(|_| (target.run)(&mutator.input(&from)));
    }
}

/// The same seed varies the same way, and another one another.
#[test]
fn variations_follow_from_their_seed() {
    let from = corpus(target("json").unwrap());
    let make = |seed| {
        let mut mutator = Mutator::new(seed);
        (0..100).map(|_| mutator.input(&from)).collect::<Vec<_>>()
    };
    assert_eq!(make(7), make(7));
    assert_ne!(make(7), make(8));
}

/// Names are looked up by, and name folders.
#[test]
fn names_are_sorted_and_different() {
    assert!(TARGETS.is_sorted_by(|a, b| a.name < b.name));
    assert!(target("json").is_some() && target("").is_none());
}

/// Each body that a target chooses from has a seed that its reader reads to the end: what follows from it is looked at.
#[test]
fn a_seed_of_every_body_is_read() {
    for (place, body) in [PEOPLE, MANDATES, GATEWAY, WORKSPACE].into_iter().flatten().enumerate() {
        let read = body.seeds.iter().map(|it| (body.read)(it.as_bytes()));
        let refused: Vec<String> = read.filter_map(Result::err).map(|it| format!("{it:?}")).collect();
        assert!(refused.len() < body.seeds.len(), "the body at {place}: {refused:?}");
    }
}
