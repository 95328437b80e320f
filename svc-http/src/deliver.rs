//! The outbox's worker: takes calls that are due, makes them, and tells the gate what came of each.
//!
//! What is due is in the store; this holds a part of it in memory, a bounded number of calls spread over hosts, and makes a
//! bounded number at once. A server that stops makes no new ones; whatever did not come to its end is still due when one
//! starts again.
//!
//! **Invariant:** nothing is decided here: a claim and its outcome are commands. A secret is opened for one call and no log
//! holds it, nor any part of a URL but its host.

mod facts;
mod letter;
mod queue;
pub(crate) mod room;
mod send;
mod slack;
mod spread;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use svc_core::rules::edge::deliver::{Claim, ClaimDelivery, FinishDelivery, GivenUp, find};
use svc_core::state::edge::{IntegrationKind, Job, JobState, Tried, Trouble, Work};
use svc_core::store::{Key, Range, Record};
use svc_core::value::Id as _;
use svc_core::value::id::{AgentId, DeliveryId};
use svc_core::value::link::{Index, instant_order};
use svc_store::{Gate, with_causes};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{self, MissedTickBehavior, interval, timeout_at};

use self::queue::{Line, Queue, Whose};
use self::send::Came;
pub use self::send::Sender;
use self::spread::spread;
use crate::metrics::{DeliveryEnd, Metrics};
use crate::shards::{Missed, Shards, readable};
use crate::supervised::supervise;

/// How often what is due is looked for; what is written meanwhile is heard of at once.
const PERIOD: Duration = Duration::from_millis(500);
/// Rows that one look takes from one shard at a time.
const PAGE: usize = 256;
/// Pages of one shard that one look turns: calls of a host that does not answer are passed over to find those of others.
const PAGES_MAX: usize = 16;

/// The worker of a running server.
#[derive(Debug)]
pub struct Deliveries {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Deliveries {
    /// Starts to make the calls of `gate` as `sender` makes them; what comes of them is counted in `metrics`. Needs a Tokio runtime.
    #[must_use]
    pub fn start(gate: Gate, sender: Sender, metrics: Arc<Metrics>) -> Self {
        let (stop, stopping) = watch::channel(false);
        let sender = Arc::new(sender);
        // What one that panicked had under way is dropped with it, and due again once its lease is over.
        let task = supervise("deliveries", move |_| {
            let (gate, sender, metrics) = (gate.clone(), Arc::clone(&sender), Arc::clone(&metrics));
            let (queue, running) = (Queue::default(), JoinSet::new());
            let (shards, reached) = (Shards::default(), BTreeMap::new());
            let worker = Worker { gate, sender, metrics, queue, running, shards, reached };
            worker.run(stopping.clone())
        });
        Self { stop, task }
    }

    /// What tells it to make no new calls.
    pub fn stopper(&self) -> impl FnOnce() + use<> {
        let stop = self.stop.clone();
        move || {
            stop.send_replace(true);
        }
    }

    /// Makes no new calls, gives those under way until then, and ends.
    pub async fn stop(mut self, until: time::Instant) {
        self.stop.send_replace(true);
        // What has not ended by then is dropped with this.
        let _ = timeout_at(until, &mut self.task).await;
    }
}

/// A server that is dropped makes no calls.
impl Drop for Deliveries {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Worker {
    gate: Gate,
    sender: Arc<Sender>,
    metrics: Arc<Metrics>,
    queue: Queue,
    running: JoinSet<(Whose, DeliveryId)>,
    shards: Shards,
    /// How far the last look came in a shard whose end it did not reach: hosts that do not answer must not hide what is behind.
    reached: BTreeMap<u128, (u128, Key)>,
}

impl Worker {
    async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        let mut changes = self.gate.changes();
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !*stopping.borrow_and_update() {
            while let Some((whose, job)) = self.queue.next() {
                let (gate, sender, metrics) = (self.gate.clone(), Arc::clone(&self.sender), Arc::clone(&self.metrics));
                self.running.spawn(attempt(gate, sender, metrics, whose, job));
            }
            tokio::select! {
                _ = stopping.changed() => {}
                Some(done) = self.running.join_next() => match done {
                    Ok((whose, job)) => self.queue.done(&whose, job),
                    // One that panicked has told so, and its lease ends by itself; nobody knows whose place it had.
                    Err(_) => self.queue.forget_running(),
                },
                change = changes.recv() => match change {
                    Ok(change) => change.keys.iter().for_each(|key| self.hear(key)),
                    Err(RecvError::Lagged(_)) => self.look(),
                    Err(RecvError::Closed) => return,
                },
                _ = ticks.tick() => self.look(),
            }
        }
        while self.running.join_next().await.is_some() {}
    }

    /// A row has changed: a call that is due now is made as soon as there is a place.
    fn hear(&mut self, key: &Key) {
        let Key::Job(id) = key else { return };
        if self.queue.knows(*id) {
            return;
        }
        match self.gate.read(|scope| find(scope, *id)) {
            Ok(Some(job)) if job.due().is_some_and(|due| due <= self.gate.now()) => self.queue.put(whose(&job), job.id),
            Ok(_) => {}
            // What is due is looked for again before long.
            Err(failure) => tracing::debug!(%failure, "a call could not be read"),
        }
    }

    /// Looks over all shards for what is due.
    fn look(&mut self) {
        let mut shards = std::mem::take(&mut self.shards);
        shards.look("calls that are due cannot be looked for", |shard| self.look_at(shard));
        self.shards = shards;
    }

    fn look_at(&mut self, shard: u128) -> Result<(), Missed> {
        let until = instant_order(self.gate.now()).saturating_add(1);
        let after = self.reached.remove(&shard);
        let mut range = Range { until, after, ..Range::all(Index::Outbox, shard, PAGE) };
        let mut missed = None;
        for _ in 0..PAGES_MAX {
            if self.queue.is_full() {
                break;
            }
            let page = self.gate.scan_each(&range)?;
            let next = page.last().filter(|_| page.len() == PAGE).map(|last| (last.order, last.key));
            for found in readable(page, &mut missed) {
                if let Some(Record::Job(job)) = &found.row.record {
                    self.queue.put(whose(job), job.id);
                }
            }
            range.after = next;
            if next.is_none() {
                break;
            }
        }
        self.reached.extend(range.after.map(|after| (shard, after)));
        missed.map_or(Ok(()), Err)
    }
}

fn whose(job: &Job) -> Whose {
    // Mail and Slack are one server each, whosever the call is.
    let shared = job.url.is_none() && matches!(job.over(), Some(IntegrationKind::Mail | IntegrationKind::Slack));
    // Whoever asks for an action says whom to call once it is decided; everything else goes where people have it go.
    let agent = match job.work {
        Work::Decided { agent, .. } => Some(agent.unwrap_or_else(|| AgentId::from_bits(0))),
        Work::Export { .. } | Work::Test { .. } | Work::Tell { .. } | Work::Message { .. } => None,
    };
    Whose { workspace: job.workspace, host: Line { name: job.line(), shared, agent } }
}

/// Claims a call, makes it, and tells what came of it. What is news becomes messages.
async fn attempt(
    gate: Gate,
    sender: Arc<Sender>,
    metrics: Arc<Metrics>,
    whose: Whose,
    job: DeliveryId,
) -> (Whose, DeliveryId) {
    match gate.submit(ClaimDelivery { job }).await {
        Ok(Claim::Taken(claimed)) if claimed.job.is_to_spread() => {
            if let Err(failure) = spread(&gate, &claimed.job, sender.mails()).await {
                // The lease ends, and it goes on from where it came to.
                tracing::warn!(error = with_causes(&failure), "people could not be told");
            }
        }
        Ok(Claim::Taken(claimed)) => {
            let began = Instant::now();
            let Came { tried, wait_s, posted } = sender.send(&gate, &claimed).await;
            let ms = u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX);
            tracing::info!(
                delivery = %job,
                host = %whose.host.name,
                status = tried.status,
                error = tried.error.map(Trouble::as_str),
                ms,
                "a call was tried"
            );
            let tried = Tried { ms, ..tried };
            let told = FinishDelivery { job, claim: claimed.job.claims, tried, wait_s, posted };
            match gate.submit(told).await {
                // What it was claimed under and its last try tell whether this one has brought it there: one that comes back after its
                // lease has not.
                Ok(now) if now.claims == claimed.job.claims && now.last().is_some_and(|it| it.tried == tried) => {
                    count(&metrics, &now);
                }
                Ok(_) => {}
                // The lease ends, and somebody tries again: whoever was called hears the same event twice.
                Err(failure) => {
                    tracing::warn!(error = with_causes(&failure), "what came of a call could not be kept");
                }
            }
        }
        // Its last try never came back, or what it was to say is over: this claim has ended it.
        Ok(Claim::GivenUp(given_up)) => count_given_up(&metrics, &given_up),
        Ok(Claim::Nothing) => {}
        Err(failure) => {
            tracing::warn!(error = with_causes(&failure), "a call could not be claimed");
        }
    }
    (whose, job)
}

/// Counts what a try has come to, and tells whoever reads the log that it was the last.
fn count(metrics: &Metrics, job: &Arc<Job>) {
    let Some(over) = job.over() else { return };
    match job.state {
        JobState::Delivered { .. } => metrics.delivered(over, DeliveryEnd::Delivered),
        JobState::Waiting { .. } => metrics.delivered(over, DeliveryEnd::PutOff),
        JobState::Failed { .. } => {
            let why = job.last().and_then(|it| it.tried.error).unwrap_or(Trouble::Interrupted);
            count_given_up(metrics, &GivenUp { job: Arc::clone(job), why });
        }
        JobState::Sending { .. } | JobState::Replaced { .. } => {}
    }
}

fn count_given_up(metrics: &Metrics, GivenUp { job, why }: &GivenUp) {
    let Some(over) = job.over() else { return };
    metrics.delivered(over, DeliveryEnd::Failed);
    let (delivery, workspace, kind, host, tries) = (job.id, job.workspace, over.as_str(), job.host(), job.tries);
    tracing::warn!(%delivery, %workspace, kind, %host, error = why.as_str(), tries, "a call was given up");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::state::gate::{Status, Verb};
    use svc_core::value::Timestamp;
    use svc_core::value::id::{ActionId, CallbackId, WorkspaceId};
    use svc_core::value::text::UrlText;

    use super::*;

    /// What agents named waits in lines of theirs, each in its own; jobs of before, of which nobody knows the agent, in those of one.
    #[test]
    fn what_agents_named_waits_in_their_lines() {
        let line = |agent| {
            let now = Timestamp::default();
            let work = Work::Decided {
                callback: CallbackId::from_bits(1),
                action: ActionId::from_bits(2),
                verb: Verb::Allow,
                status: Status::Allowed,
                at: now,
                agent,
            };
            let url = UrlText::parse("https://agent.example.com/hook").unwrap();
            whose(&Job::new(DeliveryId::from_bits(1), WorkspaceId::from_bits(3), work, url, now)).host
        };
        let [one, two, before] = [Some(7), Some(8), None].map(|it| line(it.map(AgentId::from_bits)));
        assert_eq!((one.agent, two.agent), (Some(AgentId::from_bits(7)), Some(AgentId::from_bits(8))));
        assert_eq!((before.agent, &one.name), (Some(AgentId::from_bits(0)), &two.name));
    }
}
