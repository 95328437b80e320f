//! Lines on their way to whoever reads the log.
//!
//! A reader that stalls fills the pipe, and then every write to it waits. Requests are not to wait with it: one thread writes, and what
//! does not fit in memory meanwhile is dropped and counted.
//!
//! **Invariant:** nobody but the thread itself waits for a write, unless for a bounded time at an end; the order of lines is kept.

use std::collections::VecDeque;
use std::io::{self, Stderr, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Bytes of lines that wait at most, give or take the last line.
const BYTES_MAX: usize = 4 << 20;

/// Lines that wait, and the thread that writes them.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    came: Condvar,
    written: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Dropped since that was told last.
    dropped: u64,
    /// Whether the thread has a line in hand.
    writes: bool,
    /// Who writes, once it runs: what it logs itself always has room, as that is how many were dropped.
    writer: Option<ThreadId>,
}

impl Queue {
    /// Writes to `sink` from now on; `tell` logs how many lines were dropped, once there is room again.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn start(
        sink: impl Write + Send + 'static,
        tell: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let queue = Arc::new(Self::default());
        let own = Arc::clone(&queue);
        thread::Builder::new().name("svc-log".to_owned()).spawn(move || own.write_all(sink, tell))?;
        Ok(queue)
    }

    /// One line, whole.
    pub(super) fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.bytes >= BYTES_MAX && state.writer != Some(thread::current().id()) {
            state.dropped = state.dropped.saturating_add(1);
            return;
        }
        state.bytes = state.bytes.saturating_add(line.len());
        state.lines.push_back(line.to_vec());
        drop(state);
        self.came.notify_one();
    }

    /// Waits until all that was pushed is written, or so long.
    pub(super) fn settle(&self, patience: Duration) {
        let busy = |state: &mut State| state.writes || !state.lines.is_empty();
        drop(self.written.wait_timeout_while(self.lock(), patience, busy));
    }

    fn write_all(&self, mut sink: impl Write, tell: impl Fn(u64)) {
        self.lock().writer = Some(thread::current().id());
        loop {
            let line = self.next();
            // Nobody is left to tell that the log cannot be written.
            let _ = sink.write_all(&line).and_then(|()| sink.flush());
            let dropped = std::mem::take(&mut self.lock().dropped);
            if dropped > 0 {
                tell(dropped);
            }
        }
    }

    /// The next line, once there is one; the one before it is written.
    fn next(&self) -> Vec<u8> {
        let mut state = self.lock();
        state.writes = false;
        if state.lines.is_empty() {
            self.written.notify_all();
        }
        let idle = |state: &mut State| state.lines.is_empty();
        let mut state = self.came.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        let line = state.lines.pop_front().unwrap_or_default();
        state.bytes = state.bytes.saturating_sub(line.len());
        state.writes = true;
        line
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a line goes: to the thread, or straight out where there is none.
#[derive(Debug)]
pub(super) enum Sink {
    /// To the thread that writes.
    Queued(Arc<Queue>),
    /// To standard error.
    Plain(Stderr),
}

impl Write for Sink {
    /// A whole line is one write.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self {
            Self::Queued(queue) => {
                queue.push(line);
                Ok(line.len())
            }
            Self::Plain(out) => out.write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Queued(_) => Ok(()),
            Self::Plain(out) => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    /// A reader that takes a line once it is let.
    struct Slow {
        entered: SyncSender<()>,
        go: Receiver<()>,
        read: Arc<Mutex<Vec<String>>>,
    }

    impl Write for Slow {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _ = self.entered.try_send(());
            // Once nobody holds it back any more it reads all.
            let _ = self.go.recv();
            self.read.lock().unwrap().push(String::from_utf8_lossy(line).trim_end().to_owned());
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Whoever logs waits for no reader; once it reads again it finds the lines in their order, and how many it lacks.
    #[test]
    fn a_reader_that_stalls_holds_nobody_up() {
        let ((entered, enters), (go, goes)) = (sync_channel(1), sync_channel(1));
        let read = Arc::new(Mutex::new(Vec::new()));
        let (tell, told) = sync_channel(8);
        let slow = Slow { entered, go: goes, read: Arc::clone(&read) };
        let queue = Queue::start(slow, move |lines| tell.send(lines).unwrap()).unwrap();
        queue.push(b"first\n");
        enters.recv().unwrap();
        let line = |at: usize| format!("{at:01023}\n");
        let (fit, more) = (BYTES_MAX / line(0).len(), 10);
        (0..fit + more).for_each(|at| queue.push(line(at).as_bytes()));
        queue.settle(Duration::from_millis(1));
        assert!(read.lock().unwrap().is_empty(), "it waits no longer than it was told to");
        drop(go);
        assert_eq!(told.recv().unwrap(), u64::try_from(more).unwrap());
        // There is room for one more once those before it are written.
        queue.settle(Duration::from_secs(60));
        queue.push(b"last\n");
        queue.settle(Duration::from_secs(60));
        let read = read.lock().unwrap();
        let wanted: Vec<String> = (0..fit).map(|at| line(at).trim_end().to_owned()).collect();
        assert_eq!(
            (read.len(), &read[0], &read[1..=fit], &read[fit + 1]),
            (fit + 2, &"first".to_owned(), &*wanted, &"last".to_owned())
        );
    }
}
