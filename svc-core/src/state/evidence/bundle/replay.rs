//! The state machine of actions and agents, replayed from their records.
//!
//! Only what the records before say counts against a record: where a bundle begins in the middle of a ledger, an action that it
//! knows nothing of may have been decided before.

use std::collections::{BTreeMap, BTreeSet};

use crate::value::json::Json;

/// What is known of an action.
#[derive(Clone, Debug, Default)]
struct Known {
    asked: bool,
    allowed: bool,
    consumed: bool,
    settled: bool,
    ended: bool,
    revoked: bool,
    /// What its receipt has to say, as a digest of it.
    receipt: Option<[u8; 16]>,
}

/// The replay; see the module.
#[derive(Debug, Default)]
pub(super) struct Replay {
    actions: BTreeMap<u128, Known>,
    frozen: BTreeSet<u128>,
    holds: BTreeSet<u128>,
    /// Canaries of drills whose receipt is still to come.
    canaries: BTreeSet<u128>,
    /// Whether the records begin with the ledger's first and leave none out.
    pub(super) strict: bool,
    /// Records that speak of actions from before the first record.
    pub(super) unseen: u64,
}

fn name(text: &str) -> u128 {
    crate::value::digest::Digest::of(text).bits()
}

fn require(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

impl Replay {
    /// Takes the next record.
    ///
    /// # Errors
    /// Why it cannot follow those before.
    pub(super) fn take(
        &mut self,
        kind: &str,
        subject: &str,
        data: &Json,
        receipt: Option<[u8; 16]>,
    ) -> Result<(), &'static str> {
        let agent = name(data.get("agentId").and_then(Json::as_str).unwrap_or(subject));
        match kind {
            "agent.frozen" | "agent.removed" => {
                self.frozen.insert(agent);
                Ok(())
            }
            "agent.restarted" => {
                self.frozen.remove(&agent);
                Ok(())
            }
            "hold.set" => {
                if data.get("scope").and_then(Json::as_str) == Some("all") {
                    self.holds.insert(name(subject));
                }
                Ok(())
            }
            "hold.lifted" => {
                self.holds.remove(&name(subject));
                Ok(())
            }
            "drill.started" => {
                self.canaries.extend(data.get("canaryId").and_then(Json::as_str).map(name));
                Ok(())
            }
            "action.approved" if data.get("decision").and_then(Json::as_str) != Some("allow") => Ok(()),
            "action.allowed" | "action.approved" | "action.asked" => {
                let is_drill = self.is_drill(kind, agent, data);
                let held = !self.holds.is_empty() && !is_drill;
                self.decided(kind, subject, held || self.frozen.contains(&agent), receipt)
            }
            "action.denied" | "action.person_denied" | "action.expired" => self.refused(kind, subject),
            "action.settled" | "action.lapsed" | "action.revoked" | "receipt.consumed" => {
                self.later(kind, subject, agent)
            }
            _ => Ok(()),
        }
    }

    /// Whether an action that these records allow has a receipt that says this.
    pub(super) fn has_receipt(&self, action: &str, says: [u8; 16]) -> bool {
        self.actions.get(&name(action)).is_some_and(|it| it.receipt == Some(says))
    }

    /// Whether this is what a drill puts down for its canary, which does nothing and moves nothing: once a drill, and named by it
    /// before. Earlier servers did so under a hold, too.
    fn is_drill(&mut self, kind: &str, agent: u128, data: &Json) -> bool {
        let is_receipt = data.get("type").and_then(Json::as_str) == Some("drill.receipt");
        kind == "action.allowed" && is_receipt && data.get("amount").is_none() && self.canaries.remove(&agent)
    }

    fn decided(
        &mut self,
        kind: &str,
        subject: &str,
        stopped: bool,
        receipt: Option<[u8; 16]>,
    ) -> Result<(), &'static str> {
        let known = self.actions.get(&name(subject));
        if kind == "action.approved" {
            require(known.is_none_or(|it| it.asked && !it.allowed && !it.ended), "approved, but it did not wait")?;
            require(known.is_some() || !self.strict, "approved, but it was never asked")?;
        } else {
            require(known.is_none(), "decided twice")?;
        }
        require(kind == "action.asked" || !stopped, "allowed while its agent was frozen")?;
        let known = self.actions.entry(name(subject)).or_default();
        if kind == "action.asked" {
            known.asked = true;
        } else {
            known.allowed = true;
            known.receipt = receipt;
        }
        Ok(())
    }

    fn refused(&mut self, kind: &str, subject: &str) -> Result<(), &'static str> {
        let known = self.actions.get(&name(subject));
        require(known.is_none_or(|it| !it.allowed && !it.ended), "refused, but it was decided already")?;
        require(kind == "action.denied" || known.is_some() || !self.strict, "refused, but it was never asked")?;
        self.actions.entry(name(subject)).or_default().ended = true;
        Ok(())
    }

    fn later(&mut self, kind: &str, subject: &str, agent: u128) -> Result<(), &'static str> {
        let frozen = self.frozen.contains(&agent) || !self.holds.is_empty();
        let known = self.actions.entry(name(subject)).or_insert_with(|| {
            // An action that was allowed before the first record shows itself by what came after.
            self.unseen = self.unseen.saturating_add(1);
            Known { allowed: !self.strict, ..Known::default() }
        });
        require(known.allowed, "it was not allowed")?;
        match kind {
            "action.settled" => {
                require(!known.settled, "settled twice")?;
                known.settled = true;
            }
            "receipt.consumed" => {
                require(!known.consumed, "its receipt was consumed twice")?;
                require(!known.revoked && !frozen, "its receipt was consumed while its agent was frozen")?;
                known.consumed = true;
            }
            "action.revoked" => known.revoked = true,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const CANARY: &str = "agt_1";

    /// What a ledger comes to in which these records follow each other.
    fn replayed(records: &[(&str, &str, &str)]) -> Result<(), &'static str> {
        let mut replay = Replay { strict: true, ..Replay::default() };
        records.iter().try_for_each(|(kind, subject, data)| {
            replay.take(kind, subject, &Json::parse(data.as_bytes()).unwrap(), None)
        })
    }

    /// Under a hold over everybody nothing is allowed but what a drill, started before it in the ledger, puts down for its own
    /// canary, once: no other type, no money, no other agent, and no canary that is frozen.
    #[test]
    fn a_drill_under_a_hold_allows_nothing_else() {
        let hold = ("hold.set", "hld_1", r#"{"scope":"all"}"#);
        let drill = ("drill.started", "drl_1", r#"{"canaryId":"agt_1","targets":0}"#);
        let frozen = ("agent.frozen", CANARY, r#"{"agentId":"agt_1"}"#);
        let receipt = ("action.allowed", "act_1", r#"{"agentId":"agt_1","type":"drill.receipt"}"#);
        let again = ("action.allowed", "act_2", receipt.2);
        assert_eq!(replayed(&[hold, drill, receipt, frozen]), Ok(()));
        assert_eq!(replayed(&[drill, hold, receipt]), Ok(()));
        let other = |data| ("action.allowed", "act_1", data);
        for forged in [
            &[hold, receipt][..],
            &[hold, receipt, drill],
            &[hold, drill, receipt, again],
            &[drill, receipt, hold, again],
            &[hold, drill, frozen, receipt],
            &[hold, drill, other(r#"{"agentId":"agt_1","type":"crm.read"}"#)],
            &[hold, drill, other(r#"{"agentId":"agt_1","amount":1,"type":"drill.receipt"}"#)],
            &[hold, drill, other(r#"{"agentId":"agt_2","type":"drill.receipt"}"#)],
        ] {
            assert_eq!(replayed(forged), Err("allowed while its agent was frozen"), "{forged:?}");
        }
    }
}
