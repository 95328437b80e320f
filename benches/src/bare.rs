//! SQLite without a gate: the very rows that a gate's commits wrote, written again by plain statements in transactions of
//! the same size. What a lane costs beyond this is what its decisions cost.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use rusqlite::Connection;
use rusqlite::types::Value;
use svc_core::store::{Commit, CommitError, Committed, Found, Key, Loaded, Range, Stamp, Store, Table, Write};
use svc_core::value::link::Order;

use crate::Fault;

/// A store that keeps every commit that it has passed on.
#[derive(Debug)]
pub struct Recorder<S> {
    inner: S,
    commits: Rc<RefCell<Vec<(Stamp, Commit)>>>,
}

impl<S> Recorder<S> {
    /// Stands before `inner`; the list is where the commits are kept.
    pub fn new(inner: S, commits: &Rc<RefCell<Vec<(Stamp, Commit)>>>) -> Self {
        Self { inner, commits: Rc::clone(commits) }
    }
}

impl<S: Store> Store for Recorder<S> {
    type Error = S::Error;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, S::Error> {
        self.inner.load(keys)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<S::Error>> {
        let done = self.inner.commit(commit)?;
        if let Committed::Applied(stamp) = done {
            self.commits.borrow_mut().push((stamp, commit.clone()));
        }
        Ok(done)
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, S::Error> {
        self.inner.scan(range)
    }

    fn release(&mut self) {
        self.inner.release();
    }
}

/// A database of the same tables, without anything before it.
#[derive(Debug)]
pub struct Bare {
    conn: Connection,
}

/// One statement of a transaction and what it is given.
pub type Job = (Rc<str>, Vec<Value>);

impl Bare {
    /// Makes the tables and indexes of the gate's database in a new file.
    ///
    /// # Errors
    /// SQLite cannot.
    pub fn create(path: &Path) -> Result<Self, Fault> {
        let conn = Connection::open(path)?;
        conn.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-4000;")?;
        conn.execute_batch(include_str!("../../svc-store/src/sqlite/schema.expected.sql"))?;
        // The gate appends what lies all over a table and moves it later. Here every row and every list is written in place.
        conn.execute_batch(
            "ALTER TABLE \"action\" ADD COLUMN actions_of_p; \
             CREATE INDEX \"action_actions_of\" ON \"action\" (actions_of_p, key) WHERE actions_of_p IS NOT NULL;",
        )?;
        conn.set_prepared_statement_cache_capacity(256);
        Ok(Self { conn })
    }

    /// Runs transactions, each durable before the next begins.
    ///
    /// # Errors
    /// SQLite cannot.
    pub fn run(&self, transactions: &[Vec<Job>]) -> Result<(), Fault> {
        for jobs in transactions {
            self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            for (sql, values) in jobs {
                self.conn.prepare_cached(sql)?.execute(rusqlite::params_from_iter(values))?;
            }
            self.conn.prepare_cached("COMMIT")?.execute([])?;
        }
        Ok(())
    }
}

/// Commits as transactions of plain statements, everything encoded beforehand.
///
/// # Errors
/// A row cannot be encoded.
pub fn transactions(commits: &[(Stamp, Commit)]) -> Result<Vec<Vec<Job>>, Fault> {
    let mut known: HashMap<String, Rc<str>> = HashMap::new();
    let mut all = Vec::with_capacity(commits.len());
    for (stamp, commit) in commits {
        let seen: HashMap<Key, Stamp> = commit.checks.iter().copied().collect();
        let number = i64::try_from(stamp.0)?;
        let mut jobs = vec![(text(&mut known, "UPDATE meta SET value=?1 WHERE name='stamp'"), vec![number.into()])];
        for write in &commit.writes {
            let is_new = seen.get(&write.key).copied().unwrap_or_default() == Stamp::ABSENT;
            jobs.extend(job(&mut known, write, is_new, number)?);
        }
        all.push(jobs);
    }
    Ok(all)
}

fn job(known: &mut HashMap<String, Rc<str>>, write: &Write, is_new: bool, stamp: i64) -> Result<Option<Job>, Fault> {
    let table = write.key.table();
    let key = Value::Blob(write.key.encode().as_ref().to_vec());
    let Some(record) = &write.record else {
        let sql = format!("DELETE FROM \"{}\" WHERE key=?1", table.name());
        return Ok((!is_new).then(|| (text(known, &sql), vec![key])));
    };
    let encoded = record.encode()?;
    let mut columns = vec!["key".to_owned(), "stamp".to_owned(), "format".to_owned(), "body".to_owned()];
    let mut values =
        vec![key, stamp.into(), i64::from(encoded.format).into(), Value::Text(String::from_utf8(encoded.body)?)];
    for index in table.indexes() {
        let link = write.link.iter().find(|it| it.index == *index);
        let gone = write.unlink.iter().any(|it| it.index == *index);
        if is_new || link.is_some() || gone {
            columns.push(format!("{}_p", index.name()));
            let order = |order| match order {
                Order::At(order) => wide(order),
                Order::Stamp => stamp.into(),
            };
            values.push(link.map_or(Value::Null, |it| wide(it.prefix)));
            if !index.is_by_key() {
                columns.push(format!("{}_o", index.name()));
                values.push(link.map_or(Value::Null, |it| order(it.order)));
            }
        }
    }
    let sql = if is_new { insert(table, &columns) } else { update(table, &columns) };
    Ok(Some((text(known, &sql), values)))
}

fn insert(table: Table, columns: &[String]) -> String {
    let marks: Vec<String> = (1..=columns.len()).map(|it| format!("?{it}")).collect();
    format!("INSERT INTO \"{}\" ({}) VALUES ({})", table.name(), columns.join(", "), marks.join(", "))
}

fn update(table: Table, columns: &[String]) -> String {
    let sets: Vec<String> =
        columns.iter().enumerate().skip(1).map(|(place, it)| format!("{it}=?{}", place + 1)).collect();
    format!("UPDATE \"{}\" SET {} WHERE key=?1", table.name(), sets.join(", "))
}

fn wide(number: u128) -> Value {
    i64::try_from(number).map_or_else(|_| Value::Blob(number.to_be_bytes().to_vec()), Value::Integer)
}

fn text(known: &mut HashMap<String, Rc<str>>, sql: &str) -> Rc<str> {
    if let Some(known) = known.get(sql) {
        return Rc::clone(known);
    }
    let made: Rc<str> = sql.into();
    known.insert(sql.to_owned(), Rc::clone(&made));
    made
}
