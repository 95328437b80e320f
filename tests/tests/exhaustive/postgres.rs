//! The same two nodes over a real PostgreSQL, a whole load or commit at a step. What happens between the statements of a commit the
//! store with its locks shows; here it is the server's own that are in the way.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex};

use svc_core::store::{Commit, Committed, Key, Loaded, Stamp, Store, Write};
use svc_store::Backend as _;
use svc_store::postgres::{PostgresSession, PostgresStore, Terms};
use svc_tests::database::Database;

use super::Dump;

/// A server that begins again and again with the same rows.
#[derive(Clone)]
pub(crate) struct Server(Arc<Mutex<Inner>>);

struct Inner {
    start: Dump,
    /// A session of each of two servers, in turns.
    sessions: [PostgresSession; 2],
    turn: usize,
    /// Every key that was ever written, to be read again.
    written: BTreeSet<Key>,
    shell: Child,
    say: ChildStdin,
    hear: BufReader<ChildStdout>,
    _database: Database,
}

impl Server {
    /// A server with these rows. What it confirms need not outlive it here.
    pub(crate) fn over(rows: &Dump) -> Self {
        let database = Database::with(&["fsync=off", "full_page_writes=off", "synchronous_commit=off"]);
        let mut terms = Terms::default();
        terms.may_lose = true;
        let session = || PostgresStore::open(&database.address(), terms).unwrap().writer().unwrap();
        let sessions = [session(), session()];
        let mut shell = database.shell();
        let (say, hear) = (shell.stdin.take().unwrap(), BufReader::new(shell.stdout.take().unwrap()));
        let (start, written) = (rows.clone(), BTreeSet::new());
        let inner = Inner { start, sessions, turn: 0, written, shell, say, hear, _database: database };
        let server = Self(Arc::new(Mutex::new(inner)));
        server.begin_again();
        server
    }

    /// The rows of the beginning and no others, under the stamps that both nodes believe in.
    pub(crate) fn begin_again(&self) {
        let inner = &mut *self.0.lock().unwrap();
        let sql = "DELETE FROM svc.links; DELETE FROM svc.records; SELECT 'done', setval('svc.stamp', 1, false);";
        writeln!(inner.say, "{sql}").unwrap();
        let mut line = String::new();
        while !line.starts_with("done|") {
            line.clear();
            assert!(inner.hear.read_line(&mut line).unwrap() > 0, "the shell has ended");
        }
        let write = |(key, _, record): &(Key, Stamp, svc_core::store::Record)| Write {
            key: *key,
            record: Some(record.clone()),
            unlink: Vec::new(),
            link: record.links(),
        };
        let checks = inner.start.iter().map(|(key, ..)| (*key, Stamp::ABSENT)).collect();
        let commit = Commit { checks, writes: inner.start.iter().map(write).collect() };
        inner.written = inner.start.iter().map(|(key, ..)| *key).collect();
        let done = inner.sessions[0].commit(&commit);
        assert!(matches!(done, Ok(Committed::Applied(Stamp(1)))), "{done:?}");
    }

    pub(crate) fn load(&self, keys: &[Key]) -> Vec<Loaded> {
        self.0.lock().unwrap().session().load(keys).unwrap()
    }

    pub(crate) fn dump(&self) -> Dump {
        let keys: Vec<Key> = self.0.lock().unwrap().written.iter().copied().collect();
        let rows = self.load(&keys).into_iter();
        rows.filter_map(|row| Some((row.key, row.stamp, row.record?))).collect()
    }

    /// Commits; what a conflict keeps is given back, as the node's next step may be long after the other's.
    pub(crate) fn commit(&self, commit: &Commit) -> Committed {
        let inner = &mut *self.0.lock().unwrap();
        inner.written.extend(commit.writes.iter().map(|it| it.key));
        let session = inner.session();
        let done = session.commit(commit).unwrap();
        session.release();
        done
    }
}

impl Inner {
    fn session(&mut self) -> &mut PostgresSession {
        self.turn += 1;
        let at = self.turn % self.sessions.len();
        &mut self.sessions[at]
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
