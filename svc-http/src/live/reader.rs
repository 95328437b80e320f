//! One watcher's stream: what it may hear of, from where it left off, for as long as its session is good.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use svc_core::rules::gate::asked::get_approval;
use svc_core::rules::people::by::{By, member};
use svc_core::state::people::Reach;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::event::{Event, write};
use super::{Seat, page};
use crate::answer::Stream;

/// How often a stream says that it is alive.
const PING: Duration = Duration::from_secs(15);
/// How long a client may take for what it was sent before it is cut; it comes back and goes on where it was.
const SLOW: Duration = Duration::from_secs(30);
/// Pieces that wait for a client.
const PIECES: usize = 4;
/// What a piece is filled up to, in bytes.
const PIECE: usize = 16 * 1024;
/// A client that is further behind is told to begin again.
const BEHIND_MAX: u64 = 10_000;
/// How soon a client comes back by itself, in milliseconds.
const RETRY: &str = "retry: 2000\n\n";

/// The stream of a watcher who has heard of all records up to `heard`, or begins now.
pub(crate) fn stream(seat: Seat, heard: Option<u64>) -> Stream {
    let (out, pieces) = mpsc::channel(PIECES);
    tokio::spawn(Reader { seat, next: 0, out }.run(heard));
    crate::pieces::body(pieces)
}

/// Waits until all streams are to end.
async fn over(ended: &mut watch::Receiver<bool>) {
    let _ = ended.wait_for(|it| *it).await;
}

struct Reader {
    seat: Seat,
    /// The first record that is not looked at.
    next: u64,
    out: mpsc::Sender<Bytes>,
}

impl Reader {
    async fn run(mut self, heard: Option<u64>) {
        let mut ended = self.seat.live.ended.subscribe();
        let mut read = self.seat.follower.read.subscribe();
        if !self.open(heard).await {
            return;
        }
        let mut pings = interval_at(Instant::now() + PING, PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let touched = Arc::clone(&self.seat.touched);
        loop {
            while self.next < *read.borrow_and_update() {
                if !self.tell().await {
                    return;
                }
            }
            let goes_on = tokio::select! {
                biased;
                () = over(&mut ended) => false,
                () = self.out.closed() => false,
                () = touched.notified() => self.is_good(),
                changed = read.changed() => changed.is_ok(),
                _ = pings.tick() => self.is_good() && self.ping().await,
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Finds where to begin, and says so: a client that is cut before the first event comes back to the same place.
    async fn open(&mut self, heard: Option<u64>) -> bool {
        let size = self.seat.size;
        let mut text = String::from(RETRY);
        self.next = match heard {
            None => size,
            // The newest record is the one before `size`.
            Some(heard) if heard < size && size - heard <= BEHIND_MAX + 1 => {
                if !self.repeat(heard, &mut text) {
                    return false;
                }
                heard.saturating_add(1)
            }
            Some(_) => {
                let at = self.seat.live.gate.now();
                write(&mut text, size.checked_sub(1), "reset", &format!(r#"{{"type":"reset","at":"{at}"}}"#));
                size
            }
        };
        self.give(text).await && self.ping().await
    }

    /// Writes the events of a record that is told as several once more: its place does not say which of them was heard. Whether
    /// the stream goes on.
    fn repeat(&self, heard: u64, out: &mut String) -> bool {
        match page(&self.seat.live.gate, self.seat.person.workspace, heard) {
            Ok(found) => {
                let events = found.into_iter().flat_map(|it| it.events);
                let paired = events.take_while(|it| it.seq == heard).filter(|it| it.paired);
                paired.filter(|it| self.may_hear(it)).for_each(|it| it.write(out));
                true
            }
            Err(failure) => {
                crate::ops::log(&failure);
                false
            }
        }
    }

    async fn ping(&self) -> bool {
        let (mut text, at) = (String::new(), self.seat.live.gate.now());
        write(&mut text, self.next.checked_sub(1), "ping", &format!(r#"{{"type":"ping","at":"{at}"}}"#));
        self.give(text).await
    }

    /// Tells of the next records; whether the stream goes on.
    async fn tell(&mut self) -> bool {
        let (events, next) = match self.seat.follower.recall(self.next) {
            Some(recalled) => recalled,
            None => match page(&self.seat.live.gate, self.seat.person.workspace, self.next) {
                Ok(Some(page)) => (page.events.into_iter().map(Arc::new).collect(), page.next),
                Ok(None) => return false,
                Err(failure) => {
                    crate::ops::log(&failure);
                    return false;
                }
            },
        };
        let mut text = String::new();
        let mut good = false;
        for event in events {
            // Of many agents that were stopped at once each has a record of its own, which its people hear of.
            if !self.may_hear(&event) {
                continue;
            }
            // Looked at anew for what was read anew, so that nothing reaches a session that has ended.
            good = good || self.is_good();
            if !good {
                return false;
            }
            event.write(&mut text);
            if text.len() >= PIECE && !event.more && !self.give(std::mem::take(&mut text)).await {
                return false;
            }
        }
        self.next = next;
        text.is_empty() || self.give(text).await
    }

    fn may_hear(&self, event: &Event) -> bool {
        let principal = self.seat.person.principal;
        if event.is_freeze_for(principal) {
            return true;
        }
        match self.seat.role.reach(event.right) {
            Reach::All => true,
            Reach::Own => event.is_of(principal) || self.may_read(event),
            // Whoever owns a budget is asked about it, whatever their role.
            Reach::No => self.may_read(event),
        }
    }

    /// Whether it is about an approval that this person may read though their role does not reach to all of them, such as one of
    /// a budget of theirs.
    fn may_read(&self, event: &Event) -> bool {
        let Some(id) = event.approval else { return false };
        let person = self.seat.person;
        self.seat.live.gate.read(|scope| get_approval(scope, &By::Person(person), person.workspace, id)).is_ok()
    }

    /// Whether the session is still good, with the role that the stream began with.
    fn is_good(&self) -> bool {
        let found = self.seat.live.gate.read(|scope| member(scope, &self.seat.person).map(|it| it.1));
        found.is_ok_and(|role| role == self.seat.role)
    }

    /// Hands a piece to the connection; whether it was taken in time.
    async fn give(&self, text: String) -> bool {
        let mut ended = self.seat.live.ended.subscribe();
        tokio::select! {
            biased;
            () = over(&mut ended) => false,
            sent = self.out.send(Bytes::from(text)) => sent.is_ok(),
            () = sleep(SLOW) => false,
        }
    }
}
