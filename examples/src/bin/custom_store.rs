//! A store of one's own in some two hundred and fifty lines: a log file that commits are appended to, and two maps that are read. It
//! passes the suite that every store passes, carries a gate, and is there after a crash in the middle of a write.
//!
//! Run it with `cargo run -p svc-examples --bin custom_store`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::people::Settings as Rules;
use svc_core::store::{
    Clock as _, Commit, CommitError, Committed, Found, Key, Loaded, Range, Record, Stamp, Store, Table,
};
use svc_core::testing::contract;
use svc_core::value::link::{Index, Order};
use svc_core::{Amount, Request};
use svc_store::{AgentKey, Backend, Gate, Settings, SystemClock, keys};

/// The store. Clones are sessions of the same one.
#[derive(Clone)]
struct LogStore(Arc<Mutex<Log>>);

struct Log {
    file: File,
    rows: BTreeMap<Key, (Stamp, Record)>,
    /// Sorted as scans are answered: index, whose list, place in it, row.
    links: BTreeSet<(Index, u128, u128, Key)>,
    last: Stamp,
    /// A write has failed: what the file ends with is not known, so nothing is written any more.
    broken: bool,
}

impl LogStore {
    /// Reads the log at `path`, or begins one. A commit that a crash cut short was never acknowledged: it is cut off, with whatever
    /// rows of it were whole. They are not read, and no later commit takes them for its own.
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = committed(&bytes);
        let read = std::str::from_utf8(bytes.get(..whole).unwrap_or_default()).map_err(io::Error::other)?;
        let mut log = Log { file, rows: BTreeMap::new(), links: BTreeSet::new(), last: Stamp::ABSENT, broken: false };
        let mut rows = Vec::new();
        for line in read.lines() {
            match line.strip_prefix("commit ") {
                Some(stamp) => log.apply(Stamp(stamp.parse().map_err(io::Error::other)?), std::mem::take(&mut rows)),
                None => rows.push(read_row(line).ok_or_else(|| io::Error::other(format!("no row: {line}")))?),
            }
        }
        // Only now: a log that cannot be understood stays as it is.
        log.file.set_len(u64::try_from(whole).map_err(io::Error::other)?)?;
        log.file.seek(SeekFrom::End(0))?;
        Ok(Self(Arc::new(Mutex::new(log))))
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn loaded(&self, key: Key) -> Loaded {
        let row = self.rows.get(&key);
        Loaded { key, stamp: row.map_or(Stamp::ABSENT, |it| it.0), record: row.map(|it| it.1.clone()) }
    }

    /// Puts rows in place. By which indexes a row is found follows from the row, so the log need not hold it.
    fn apply(&mut self, stamp: Stamp, rows: Vec<(Key, Option<Record>)>) {
        let place = |order, stamp: Stamp| match order {
            Order::At(place) => place,
            Order::Stamp => u128::from(stamp.0),
        };
        for (key, record) in rows {
            if let Some((old, record)) = self.rows.remove(&key) {
                for link in record.links() {
                    self.links.remove(&(link.index, link.prefix, place(link.order, old), key));
                }
            }
            if let Some(record) = record {
                self.links.extend(record.links().iter().map(|it| (it.index, it.prefix, place(it.order, stamp), key)));
                self.rows.insert(key, (stamp, record));
            }
        }
        self.last = stamp;
    }
}

impl Store for LogStore {
    type Error = io::Error;

    fn load(&mut self, keys: &[Key]) -> io::Result<Vec<Loaded>> {
        let log = self.lock();
        Ok(keys.iter().map(|key| log.loaded(*key)).collect())
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<io::Error>> {
        let mut log = self.lock();
        if log.broken {
            return Err(CommitError::Unavailable(io::Error::other("an earlier write failed; open the log again")));
        }
        let found = commit.checks.iter().map(|(key, stamp)| (log.loaded(*key), *stamp));
        let moved: Vec<Loaded> = found.filter(|(row, stamp)| row.stamp != *stamp).map(|(row, _)| row).collect();
        if !moved.is_empty() {
            return Ok(Committed::Conflict(moved));
        }
        let stamp = Stamp(log.last.0 + 1);
        let mut text = String::new();
        for write in &commit.writes {
            let row = write_row(write.key, write.record.as_ref());
            text.push_str(&row.map_err(|error| CommitError::Rejected(io::Error::other(error)))?);
        }
        text.push_str(&format!("commit {}\n", stamp.0));
        // Nobody reads the rows before they are durable: the lock is held until the disk has them.
        let written = log.file.write_all(text.as_bytes()).and_then(|()| log.file.sync_data());
        if let Err(error) = written {
            log.broken = true;
            return Err(CommitError::Unknown(error));
        }
        log.apply(stamp, commit.writes.iter().map(|it| (it.key, it.record.clone())).collect());
        Ok(Committed::Applied(stamp))
    }

    fn scan(&mut self, range: &Range) -> io::Result<Vec<Found>> {
        let log = self.lock();
        let is_next = |place: (u128, Key)| match range.after {
            None => true,
            Some(after) if range.newest_first => place < after,
            Some(after) => place > after,
        };
        let inside = |(index, prefix, order, key): &&(Index, u128, u128, Key)| {
            let listed = (*index, *prefix) == (range.index, range.prefix);
            listed && (range.from..range.until).contains(order) && is_next((*order, *key))
        };
        let found = |link: &(Index, u128, u128, Key)| Found { order: link.2, row: log.loaded(link.3) };
        let listed = log.links.iter().filter(inside);
        Ok(if range.newest_first {
            listed.rev().take(range.limit).map(found).collect()
        } else {
            listed.take(range.limit).map(found).collect()
        })
    }
}

impl Backend for LogStore {
    type Session = Self;

    fn lanes(&self) -> usize {
        1
    }

    fn writer(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    fn reader(&self) -> io::Result<Self> {
        Ok(self.clone())
    }
}

/// How many bytes of a log are whole commits: up to behind the last line that is one's end, newline and all. Bytes, as what a crash
/// cut may end within a letter; lines, as the text in a row may say `commit ` too.
fn committed(log: &[u8]) -> usize {
    let (mut read, mut whole) = (0, 0);
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        read += line.len();
        if line.starts_with(b"commit ") && line.ends_with(b"\n") {
            whole = read;
        }
    }
    whole
}

/// `row TABLE KEY FORMAT JSON`, or `gone TABLE KEY`; neither holds a newline, nor begins as the end of a commit does.
fn write_row(key: Key, record: Option<&Record>) -> Result<String, Box<dyn Error + Send + Sync>> {
    let (table, bytes) = (key.table().name(), hex::encode(key.encode()));
    let Some(record) = record else { return Ok(format!("gone {table} {bytes}\n")) };
    let encoded = record.encode()?;
    Ok(format!("row {table} {bytes} {} {}\n", encoded.format, String::from_utf8(encoded.body)?))
}

fn read_row(line: &str) -> Option<(Key, Option<Record>)> {
    let (verb, rest) = line.split_once(' ')?;
    let (table, rest) = rest.split_once(' ')?;
    let table = *Table::ALL.iter().find(|it| it.name() == table)?;
    let key = |text: &str| Key::decode(table, &hex::decode(text).ok()?);
    if verb == "gone" {
        return Some((key(rest)?, None));
    }
    let (bytes, rest) = rest.split_once(' ')?;
    let (format, body) = rest.split_once(' ')?;
    Some((key(bytes)?, Some(Record::decode(table, format.parse().ok()?, body.as_bytes()).ok()?)))
}

const BASE_URL: &str = "https://gate.example.com";
/// A real one is 256 random bits; see the example `in_process`.
const KEY: &str = "ask_the-key-of-an-example";

/// A gate over the log in `home`, its receipt key sealed in that log too.
fn gate(home: &Path) -> Result<Gate, Box<dyn Error>> {
    let mut store = LogStore::open(&home.join("gate.log"))?;
    let clock = SystemClock::new();
    let signer = keys::receipt_signer(&mut store, home, None, clock.now(), BASE_URL, &keys::dalek)?;
    Ok(Gate::over(store, clock, signer, Settings::default())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    suite(home.path())?;

    let first = gate(home.path())?;
    let workspace = first.execute(CreateWorkspace {
        name: "Home".parse()?,
        owner: "owner@example.com".parse()?,
        settings: Rules::default(),
    })?;
    first.execute(RegisterAgent {
        mandates: vec![Content::Template("saas-subscriptions".into())],
        ..RegisterAgent::new(workspace.id, "Bookkeeper".parse()?, NewKey::of(KEY))
    })?;
    let agent = first.agent(AgentKey::parse(KEY)?)?;
    let merchant = ("Example Tools".parse()?, "tools.example.com".parse()?);
    let request = Request::payment("Renew the design tool", Amount::new(49_00)?, "EUR".parse()?, merchant)?;
    let allowed = agent.authorize(request)?;
    println!("before the crash: {}", allowed.status().as_str());
    first.close();
    drop((agent, first));

    // Power goes in the middle of the next commit.
    let mut file = OpenOptions::new().append(true).open(home.path().join("gate.log"))?;
    file.write_all(b"row action 00")?;
    drop(file);

    let second = gate(home.path())?;
    let agent = second.agent(AgentKey::parse(KEY)?)?;
    let again = agent.get(allowed.id())?;
    println!(
        "after the crash: {}, the same receipt: {}",
        again.status().as_str(),
        again.receipt() == allowed.receipt()
    );
    second.close();
    Ok(())
}

/// The promises of a store, each shown over new logs; a broken one ends the program with its name.
fn suite(home: &Path) -> io::Result<()> {
    let logs = (0..LOGS).map(|n| LogStore::open(&home.join(format!("{n}.log")))).collect::<io::Result<Vec<_>>>()?;
    let shared = LogStore::open(&home.join("shared.log"))?;
    let mut logs = logs.into_iter();
    contract::suite(|| logs.next().unwrap_or_else(|| unreachable!("the suite takes fewer logs than {LOGS}")));
    contract::sessions(|| shared.clone());
    let raced = LogStore::open(&home.join("raced.log"))?;
    contract::races(|| raced.clone(), on_threads);
    println!("the suite that every store passes: passed");
    Ok(())
}

/// Sessions that commit at once, each on a thread of its own.
fn on_threads(racers: Vec<contract::Racer<'_>>) {
    thread::scope(|threads| racers.into_iter().for_each(|racer| drop(threads.spawn(racer))));
}

/// More than the suite has promises; each is shown over a log of its own.
const LOGS: usize = 100;

#[cfg(test)]
mod tests {
    use svc_core::store::Write;
    use svc_core::testing::sample;

    use super::*;

    /// A row whose text looks like the end of a commit, with a letter of two bytes.
    fn row(bits: u128) -> Record {
        sample::payload(sample::id(bits), &format!("git commit the {bits}. change\ncommit 7\nä"))
    }

    /// Commits new rows.
    fn insert(store: &mut LogStore, rows: &[Record]) -> Stamp {
        let write =
            |row: &Record| Write { key: row.key(), record: Some(row.clone()), unlink: vec![], link: row.links() };
        let checks = rows.iter().map(|row| (row.key(), Stamp::ABSENT)).collect();
        match store.commit(&Commit { checks, writes: rows.iter().map(write).collect() }).unwrap() {
            Committed::Applied(stamp) => stamp,
            Committed::Conflict(moved) => panic!("{moved:?}"),
        }
    }

    /// The rows that are there, of four.
    fn held(store: &mut LogStore) -> Vec<(Stamp, Record)> {
        let rows = store.load(&[1, 2, 3, 4].map(|bits| row(bits).key())).unwrap();
        rows.into_iter().filter_map(|it| Some((it.stamp, it.record?))).collect()
    }

    /// Wherever a crash cuts the log, the commits before it are there, nothing is of the one that it cut, and the next one is there
    /// after another start.
    #[test]
    fn a_log_cut_anywhere_has_its_whole_commits() {
        let home = tempfile::tempdir().unwrap();
        let (log, cut) = (home.path().join("whole.log"), home.path().join("cut.log"));
        let mut store = LogStore::open(&log).unwrap();
        let first = insert(&mut store, &[row(1)]);
        let one = usize::try_from(std::fs::metadata(&log).unwrap().len()).unwrap();
        let second = insert(&mut store, &[row(2), row(3)]);
        let bytes = std::fs::read(&log).unwrap();
        for end in 0..=bytes.len() {
            std::fs::write(&cut, &bytes[..end]).unwrap();
            let mut expected = Vec::new();
            expected.extend((end >= one).then(|| (first, row(1))));
            expected.extend((end == bytes.len()).then(|| [2, 3].map(|bits| (second, row(bits)))).into_iter().flatten());
            let mut store = LogStore::open(&cut).unwrap();
            assert_eq!(held(&mut store), expected, "cut at {end}");
            let next = insert(&mut store, &[row(4)]);
            assert!(expected.iter().all(|(stamp, _)| *stamp < next), "cut at {end}");
            expected.push((next, row(4)));
            assert_eq!(held(&mut LogStore::open(&cut).unwrap()), expected, "cut at {end}, after the next commit");
        }
    }

    /// A log that cannot be understood is refused, and nothing is taken from it.
    #[test]
    fn a_log_that_is_none_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("strange.log");
        for strange in [&b"row of nothing\ncommit 1\n"[..], b"row \xff\ncommit 1\nrow"] {
            std::fs::write(&log, strange).unwrap();
            assert!(LogStore::open(&log).is_err());
            assert_eq!(std::fs::read(&log).unwrap(), strange);
        }
    }
}
