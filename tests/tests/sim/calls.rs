//! What clients were told of calls of models, and what no later answer may say then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use svc_core::command::{Command, Reply};
use svc_core::rules::gateway::admit::Admission;
use svc_core::state::gateway::{Call, CallEnd, CallState};
use svc_core::store::Row;
use svc_core::value::id::CallId;
use svc_tests::play::Rows;

use super::stops::Stops;

/// What was told.
#[derive(Default)]
pub(crate) struct Calls {
    admitted: BTreeSet<CallId>,
    /// Calls as they were told to have ended, for good.
    pub(crate) ended: BTreeMap<CallId, Arc<Call>>,
    /// How many were refused.
    pub(crate) refused: usize,
}

impl Calls {
    /// What an answer tells, and what it may not tell by what was told before.
    pub(crate) fn hear(&mut self, command: &Command, reply: &Reply, stops: &Stops) -> Result<(), &'static str> {
        match (command, reply) {
            (Command::AdmitCall(asked), Reply::Admission(admission)) => match &**admission {
                Admission::Admitted(made) => {
                    if asked.caller.agent().is_some_and(|it| stops.is_stopped(it)) {
                        return Err("a stopped agent may call a model");
                    }
                    self.admitted.insert(made.call.id);
                }
                Admission::Refused(_) | Admission::Rescan(_) => self.refused += 1,
            },
            (_, Reply::Finished(finished)) => {
                let call = &finished.call;
                if !is_over(call) {
                    return Err("a call was told to have ended that has not");
                }
                if self.ended.get(&call.id).is_some_and(|told| told != call) {
                    return Err("a call has ended twice");
                }
                self.ended.insert(call.id, Arc::clone(call));
            }
            _ => {}
        }
        Ok(())
    }

    /// What of it the rows deny.
    pub(crate) fn check(&self, rows: &Rows) -> Vec<String> {
        let kept: BTreeMap<CallId, &Arc<Call>> =
            rows.iter().filter_map(|(_, _, record)| Call::peel(record)).map(|it| (it.id, it)).collect();
        let mut faults = Vec::new();
        for id in self.admitted.iter().filter(|it| !kept.contains_key(it)) {
            faults.push(format!("{id} was admitted and is not there"));
        }
        for (id, told) in &self.ended {
            if kept.get(id) != Some(&told) {
                faults.push(format!("{id} was told as {told:?} and is {:?}", kept.get(id)));
            }
        }
        faults
    }
}

/// Whether nothing of a call can change any more: one that has lapsed may end after all.
fn is_over(call: &Call) -> bool {
    matches!(call.state, CallState::Ended { end, .. } if end != CallEnd::Lapsed)
}
