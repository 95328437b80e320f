//! What a workspace's subscriptions stand at, as the operator's payment processor told of them.
//!
//! The processor sends its events in no certain order. So the plan is not that of the event that came last: each subscription has
//! what the newest of its events said, and the plan is that of the newest that is paid. Whatever order they come in, it is the same.

use serde::{Deserialize, Serialize};

use super::plan::Plan;
use crate::value::Timestamp;

/// Subscriptions that a workspace remembers. Beyond them the oldest is forgotten, those that give no plan before the others: an
/// event of it that is later still would be taken for new.
pub const SUBSCRIPTIONS_MAX: usize = 8;

/// A subscription, as the newest event about it said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// The processor's id of it, at most 200 characters; empty where an event names none.
    pub id: Box<str>,
    /// When the processor says that this came about.
    pub at: Timestamp,
    /// When the processor says that the subscription was made; rows of before, and events that do not tell, have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Timestamp>,
    /// The plan that it is for: [`Plan::Free`] where it is not paid.
    pub plan: Plan,
    /// Whether it was ended for good.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

impl Subscription {
    /// Whether a plan follows from it.
    fn gives(&self) -> bool {
        !self.deleted && self.plan != Plan::Free
    }

    /// Whether this makes what an event says out of date. Of two of the same instant, as far as the processor tells instants, an
    /// end stays one, and else the later to come counts.
    fn outdates(&self, told: &Self) -> bool {
        self.at > told.at || (self.at == told.at && self.deleted && !told.deleted)
    }

    /// Takes what an event says into a workspace's subscriptions, the longest known first; whether it was news.
    pub fn hear(known: &mut Vec<Self>, mut told: Self) -> bool {
        if let Some(place) = known.iter().position(|it| it.id == told.id) {
            if known.get(place).is_some_and(|it| it.outdates(&told)) {
                return false;
            }
            let before = known.remove(place);
            told.begun = told.begun.or(before.begun);
        }
        known.push(told);
        if known.len() > SUBSCRIPTIONS_MAX {
            let forgotten = known.iter().enumerate().min_by_key(|(_, it)| (it.gives(), it.at)).map(|(place, _)| place);
            forgotten.map(|place| known.remove(place));
        }
        true
    }

    /// The plan that follows: that of the newest which gives one, of several of one instant the last that was heard of. An older one that is
    /// renewed, or told to end with its period, is no newer for that.
    #[must_use]
    pub fn plan_of(known: &[Self]) -> Plan {
        known.iter().filter(|it| it.gives()).max_by_key(|it| it.begun.unwrap_or(it.at)).map_or(Plan::Free, |it| it.plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(id: &str, at: i64, plan: Plan, deleted: bool) -> Subscription {
        Subscription { id: id.into(), at: Timestamp::from_millis(at), begun: None, plan, deleted }
    }

    /// Whoever moved up stays up while the one before is renewed and runs out, whether or not each event tells when its own was made.
    #[test]
    fn an_older_one_that_is_told_of_again_is_no_newer() {
        let of = |it: Subscription, begun: i64| Subscription { begun: Some(Timestamp::from_millis(begun)), ..it };
        let mut known = Vec::new();
        for event in [
            of(told("old", 1, Plan::Team, false), 1),
            of(told("new", 2, Plan::Enterprise, false), 2),
            of(told("old", 3, Plan::Team, false), 1),
            told("old", 4, Plan::Team, false),
        ] {
            Subscription::hear(&mut known, event);
        }
        assert_eq!(Subscription::plan_of(&known), Plan::Enterprise);
        Subscription::hear(&mut known, told("new", 5, Plan::Free, true));
        assert_eq!(Subscription::plan_of(&known), Plan::Team);
    }

    /// In whichever order the same events come, the plan is the same.
    #[test]
    fn the_order_of_events_is_nothing() {
        let events = [
            told("a", 1, Plan::Team, false),
            told("a", 3, Plan::Free, true),
            told("b", 2, Plan::Enterprise, false),
            told("b", 4, Plan::Team, false),
        ];
        for first in 0..events.len() {
            for second in 0..events.len() {
                let mut order: Vec<usize> = (0..events.len()).collect();
                order.swap(first, second);
                for turn in 0..events.len() {
                    order.rotate_left(1);
                    let mut known = Vec::new();
                    for event in order.iter().filter_map(|it| events.get(*it)) {
                        Subscription::hear(&mut known, event.clone());
                    }
                    assert_eq!(Subscription::plan_of(&known), Plan::Team, "{order:?} {turn}");
                }
            }
        }
    }

    /// What is remembered is bounded, and what gives a plan outlasts what gives none.
    #[test]
    fn what_is_remembered_is_bounded() {
        let mut known = Vec::new();
        Subscription::hear(&mut known, told("paid", 0, Plan::Team, false));
        for at in 1..100 {
            Subscription::hear(&mut known, told(&at.to_string(), at, Plan::Free, true));
        }
        assert_eq!((known.len(), Subscription::plan_of(&known)), (SUBSCRIPTIONS_MAX, Plan::Team));
    }
}
