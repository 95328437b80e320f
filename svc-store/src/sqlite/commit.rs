//! One commit as one transaction.
//!
//! The checks of written rows ride on the writes: an update names the stamp that was seen, an insert fails where a row is.
//! Only rows that are read and not written are looked up, and of those only the ones this session has not seen itself. If
//! anything does not fit, the transaction is rolled back and repeated with every check made first, to say what has moved.

use std::sync::Arc;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection};
use svc_core::store::{Commit, CommitError, Committed, Encoded, Key, Loaded, Record, Stamp, Table, Write};
use svc_core::value::link::{Index, Link, Order};

use super::errors::{at_commit, before_commit, is_taken};
use super::fold::Folding;
use super::redo::{APPEND, Moved, OVERWRITE, Said, body_of, id_of};
use super::schema::{is_deferred, is_listed_apart};
use super::session::{Role, SqliteSession, Writing, load_row, number, read_stamp, run};
use super::statements::{
    BEGIN_READ, BEGIN_WRITE, COMMIT, LAST_STAMP, OVERWRITE_CELLS, OVERWRITE_PAGES, ROLLBACK, SET_STAMP, Statements,
    Text, Wide, own_indexes,
};
use crate::error::StoreError;

type Failed = CommitError<StoreError>;

/// One write with everything that can be made before the transaction begins.
struct Image<'a> {
    write: &'a Write,
    /// The stamp that the decisions saw.
    seen: Stamp,
    /// The new body; none deletes.
    body: Option<Encoded>,
}

/// A commit, taken apart.
struct Plan<'a> {
    commit: &'a Commit,
    /// The checks that no write carries: of rows that are only read, and of those that wait in `redo` once they are written.
    reads: Vec<(Key, Stamp)>,
    /// The writes, each with its check.
    images: Vec<Image<'a>>,
}

/// What a try that came to an end has done beside the writes.
struct Done {
    stamp: Stamp,
    /// What was appended to `redo`.
    said: Vec<(i64, Said)>,
    folding: Folding,
}

/// What one try came to.
enum Tried {
    Done(Done),
    /// Something has moved; which, is not known yet.
    Stale,
    Moved(Vec<Loaded>),
}

pub(super) fn apply(session: &mut SqliteSession, commit: &Commit) -> Result<Committed, Failed> {
    let plan = plan(commit).map_err(CommitError::Rejected)?;
    let (conn, role) = session.parts().map_err(CommitError::Unavailable)?;
    let Role::Writer(writing) = role else {
        return Err(CommitError::Rejected(StoreError::Malformed("this session only reads")));
    };
    writing.place.check().map_err(CommitError::Unavailable)?;
    if plan.images.is_empty() {
        return observe(conn, writing, commit);
    }
    let checkpoints = Arc::clone(&writing.checkpoints);
    let turn = checkpoints.turn();
    let erases = plan.images.iter().any(erases);
    let overwriting =
        Overwriting::begin(conn, erases || plan.images.iter().any(leaves_pages)).map_err(before_commit)?;
    let mut tried = attempt(conn, writing, &plan, false);
    if matches!(tried, Ok(Tried::Stale)) {
        tried = attempt(conn, writing, &plan, true);
    }
    drop((turn, overwriting));
    match tried {
        Ok(Tried::Done(done)) => {
            plan.images.iter().for_each(|image| writing.seen.wrote(&image.write.key, image.now(done.stamp)));
            writing.redo.appended(done.said);
            writing.folding = done.folding;
            writing.folding.committed(&mut writing.redo);
            writing.commits.wrote(done.stamp);
            checkpoints.wrote(plan.images.len());
            if erases {
                checkpoints.erased();
            }
            Ok(Committed::Applied(done.stamp))
        }
        Ok(Tried::Moved(moved)) => {
            moved.iter().for_each(|row| writing.seen.note(row.key, row.stamp));
            Ok(Committed::Conflict(moved))
        }
        Ok(Tried::Stale) => Err(CommitError::Rejected(StoreError::Malformed("a row is there that no check names"))),
        Err(failed) => {
            writing.forget();
            Err(failed)
        }
    }
}

/// While it lives, SQLite overwrites also whole pages that it lets go. Cells that it lets go within a page it overwrites always:
/// it has that page at hand. Else it would only forget where they were, and what was erased could be read in the file and in
/// every copy of its pages.
struct Overwriting<'a>(Option<&'a Connection>);

impl<'a> Overwriting<'a> {
    /// For a commit that lets go of pages with texts: only there, as it writes pages that would be left as they are.
    fn begin(conn: &'a Connection, lets_pages_go: bool) -> Result<Self, rusqlite::Error> {
        if !lets_pages_go {
            return Ok(Self(None));
        }
        number(conn, OVERWRITE_PAGES)?;
        Ok(Self(Some(conn)))
    }
}

impl Drop for Overwriting<'_> {
    fn drop(&mut self) {
        // If it fails, later commits are as thorough.
        let _ = self.0.map(|conn| number(conn, OVERWRITE_CELLS));
    }
}

/// Whether a write is part of an erasure: its record, or the end of a row that holds texts.
fn erases(image: &Image<'_>) -> bool {
    match &image.write.record {
        Some(Record::Entry(entry)) => &*entry.kind == "erasure",
        Some(_) => false,
        None => has_texts(image.write.key.table()),
    }
}

/// Whether a row with texts may leave pages of its own when it is written again: one that is so long that it has some, or whose last
/// image may have been.
fn leaves_pages(image: &Image<'_>) -> bool {
    let table = image.write.key.table();
    let is_long = image.body.as_ref().is_some_and(|it| it.body.len() > LONG_BYTES);
    (is_long || shrinks(table)) && image.seen != Stamp::ABSENT && has_texts(table)
}

/// Bytes of a body that has its row to a page's end: SQLite keeps less than a page of 4,096 bytes of a row in the table itself.
const LONG_BYTES: usize = 3_000;

/// Whether rows of a table with texts get shorter. How long the last image was is not known here, and they are seldom written. Actions,
/// which are written often, only grow.
const fn shrinks(table: Table) -> bool {
    use Table::{Account, Agent, Application, Approval, Hold, Principal};
    matches!(table, Account | Agent | Application | Approval | Hold | Principal)
}

/// Whether rows of a table hold texts that may be erased.
const fn has_texts(table: Table) -> bool {
    use Table::{Account, Action, Agent, Application, Approval, Disclosure, EmailUse, Hold, Payload, Principal};
    matches!(
        table,
        Account | Action | Agent | Application | Approval | Disclosure | EmailUse | Hold | Payload | Principal
    )
}

/// A commit without writes: its checks have to hold at one moment, and nothing is made durable.
fn observe(conn: &Connection, writing: &mut Writing, commit: &Commit) -> Result<Committed, Failed> {
    run(conn, BEGIN_READ).map_err(before_commit)?;
    let looked = writing
        .look_around(conn)
        .map_err(CommitError::Unavailable)
        .and_then(|()| moved(conn, writing, commit.checks.iter(), false))
        .and_then(|moved| Ok((moved, number(conn, LAST_STAMP).map_err(before_commit)?)));
    run(conn, if looked.is_ok() { COMMIT } else { ROLLBACK }).map_err(before_commit)?;
    let (moved, last) = looked?;
    if !moved.is_empty() {
        return Ok(Committed::Conflict(moved));
    }
    writing.given = writing.given.max(u64::try_from(last).unwrap_or(0)).saturating_add(1);
    Ok(Committed::Applied(Stamp(writing.given)))
}

fn attempt(conn: &Connection, writing: &mut Writing, plan: &Plan<'_>, check_all: bool) -> Result<Tried, Failed> {
    run(conn, BEGIN_WRITE).map_err(before_commit)?;
    let tried = inside(conn, writing, plan, check_all);
    if let Ok(Tried::Done(_)) = tried {
        if let Err(cause) = run(conn, COMMIT) {
            // What is still open is undone; a transaction that SQLite has ended by itself leaves nothing to undo.
            let _ = run(conn, ROLLBACK);
            return Err(at_commit(cause));
        }
        return tried;
    }
    // After some errors SQLite has rolled back already, and this one fails: nothing was written either way.
    let _ = run(conn, ROLLBACK);
    if !conn.is_autocommit() {
        return Err(CommitError::Unavailable(StoreError::Malformed("a transaction did not end")));
    }
    tried
}

/// Between `BEGIN IMMEDIATE` and `COMMIT`.
fn inside(conn: &Connection, writing: &mut Writing, plan: &Plan<'_>, check_all: bool) -> Result<Tried, Failed> {
    writing.look_around(conn).map_err(CommitError::Unavailable)?;
    let moved = if check_all {
        moved(conn, writing, plan.commit.checks.iter(), true)?
    } else {
        moved(conn, writing, plan.reads.iter(), false)?
    };
    if !moved.is_empty() {
        return Ok(if check_all { Tried::Moved(moved) } else { Tried::Stale });
    }
    let stamp = next_stamp(conn, writing.given).map_err(before_commit)?;
    writing.last = i64::try_from(stamp.0).ok();
    let mut writer = Writer { conn, stamp, open: None };
    for image in plan.images.iter().filter(|image| !image.waits()) {
        match writer.write(image) {
            Ok(1) => {}
            Ok(_) => return Ok(Tried::Stale),
            Err(cause) if image.seen == Stamp::ABSENT && is_taken(&cause) => return Ok(Tried::Stale),
            Err(cause) => return Err(before_commit(cause)),
        }
    }
    let said = append(conn, writing, plan, stamp)?;
    for (image, (id, _)) in plan.images.iter().filter(|image| image.waits()).zip(&said) {
        if is_bare(image) {
            overwrite(conn, writing, image.write.key, *id)?;
        }
    }
    let folding =
        writing.folding.advance(conn, &writing.redo, steps_of(&said), plan.waiting_bytes()).map_err(before_commit)?;
    Ok(Tried::Done(Done { stamp, said, folding }))
}

/// How many steps it takes to fold what a commit appended: one for each row and each entry of a list, and one to delete what told
/// of them.
fn steps_of(said: &[(i64, Said)]) -> usize {
    let moves = said.iter().map(|(_, said)| match said {
        Said::Row(_) => 1,
        Said::Entries(moved) => moved.len(),
    });
    moves.sum::<usize>().saturating_add(said.len())
}

/// Takes the next number: greater than that of any commit, and than any that was given for a commit without writes. Two statements,
/// since one that returns what it wrote opens a table of its own for it.
fn next_stamp(conn: &Connection, given: u64) -> Result<Stamp, rusqlite::Error> {
    let next = number(conn, LAST_STAMP)?.max(i64::try_from(given).unwrap_or(i64::MAX)).saturating_add(1);
    conn.prepare_cached(SET_STAMP)?.execute([next])?;
    Ok(Stamp(u64::try_from(next).unwrap_or(0)))
}

/// Appends to `redo` what waits there for its table: images of rows, then the entries of lists that are tables of their own.
fn append(conn: &Connection, writing: &mut Writing, plan: &Plan<'_>, stamp: Stamp) -> Result<Vec<(i64, Said)>, Failed> {
    let waiting: Vec<_> = plan.images.iter().filter(|image| image.waits()).collect();
    let entries = entries(plan)?;
    if waiting.is_empty() && entries.is_empty() {
        return Ok(Vec::new());
    }
    writing.redo.catch_up(conn).map_err(CommitError::Unavailable)?;
    let mut said = Vec::with_capacity(waiting.len().saturating_add(entries.len()));
    let mut statement = conn.prepare_cached(APPEND).map_err(before_commit)?;
    let mut put = |id: i64, of: &str, key: &[u8], format: u16, body: ToSqlOutput<'_>| {
        statement.execute((id, of, key, format, body)).map_err(before_commit)
    };
    for image in waiting {
        let id = id_of(stamp, said.len()).map_err(CommitError::Rejected)?;
        let key = image.write.key;
        let body = image.body.as_ref().map_or(ValueRef::Null, |body| ValueRef::Text(&body.body));
        let format = image.body.as_ref().map_or(0, |body| body.format);
        put(id, key.table().name(), key.encode().as_ref(), format, ToSqlOutput::Borrowed(body))?;
        said.push((id, Said::Row(key)));
    }
    for (index, moved) in entries {
        let id = id_of(stamp, said.len()).map_err(CommitError::Rejected)?;
        put(id, index.name(), &[], 0, ToSqlOutput::Owned(Value::Blob(body_of(&moved))))?;
        said.push((id, Said::Entries(moved)));
    }
    Ok(said)
}

/// Whether an image that waits lacks what an erasure took from it.
fn is_bare(image: &Image<'_>) -> bool {
    matches!(&image.write.record, Some(Record::Replay(it)) if it.body.is_none())
}

/// The older images of a row that wait, and the one that its table has, become that at `id`: it would be long until it takes their
/// place, and what was erased could be read in them. Whoever looks for the row finds the newest by its id as before.
fn overwrite(conn: &Connection, writing: &mut Writing, key: Key, id: i64) -> Result<(), Failed> {
    for older in writing.redo.all(conn, &key).map_err(CommitError::Unavailable)? {
        conn.prepare_cached(OVERWRITE).and_then(|mut it| it.execute((older, id))).map_err(before_commit)?;
    }
    let statements = Statements::on(key.table()).ok_or(StoreError::Malformed("a table has no statements"));
    let fold = &statements.map_err(CommitError::Rejected)?.fold;
    conn.prepare_cached(fold).and_then(|mut it| it.execute([id])).map(drop).map_err(before_commit)
}

/// The entries that come to lists which are tables of their own, and that leave them.
fn entries(plan: &Plan<'_>) -> Result<Vec<(Index, Vec<Moved>)>, Failed> {
    let mut all: Vec<(Index, Vec<Moved>)> = Vec::new();
    for image in &plan.images {
        let left = image.write.unlink.iter().map(|link| (link, false));
        let came = image.write.link.iter().map(|link| (link, true));
        for (link, came) in left.chain(came).filter(|(link, _)| is_listed_apart(link.index)) {
            let Order::At(order) = link.order else {
                return Err(CommitError::Rejected(StoreError::Malformed("this list is ordered by ids")));
            };
            let moved = Moved { index: link.index, prefix: link.prefix, order, came };
            match all.iter_mut().find(|(index, _)| *index == link.index) {
                Some((_, of_index)) => of_index.push(moved),
                None => all.push((link.index, vec![moved])),
            }
        }
    }
    Ok(all)
}

/// The rows of `checks` that are not as they were seen.
fn moved<'a>(
    conn: &Connection,
    writing: &mut Writing,
    checks: impl Iterator<Item = &'a (Key, Stamp)>,
    trust_nothing: bool,
) -> Result<Vec<Loaded>, Failed> {
    let Writing { seen, redo, .. } = writing;
    let mut moved = Vec::new();
    for (key, expected) in checks {
        if !trust_nothing && seen.agrees(key, *expected) {
            continue;
        }
        if is_deferred(key.table()) {
            let found = load_row(conn, redo, *key).map_err(CommitError::Unavailable)?;
            if found.stamp == *expected {
                seen.note(*key, found.stamp);
            } else {
                moved.push(found);
            }
            continue;
        }
        let found = stamp_of(conn, *key).map_err(before_commit)?;
        if found == *expected {
            seen.note(*key, found);
        } else {
            moved.push(load_row(conn, redo, *key).map_err(CommitError::Unavailable)?);
        }
    }
    Ok(moved)
}

fn stamp_of(conn: &Connection, key: Key) -> Result<Stamp, rusqlite::Error> {
    let Some(statements) = Statements::on(key.table()) else { return Ok(Stamp::ABSENT) };
    let mut statement = conn.prepare_cached(&statements.stamp)?;
    statement.raw_bind_parameter(1, key.encode().as_ref())?;
    let mut rows = statement.raw_query();
    Ok(match rows.next()? {
        Some(row) => read_stamp(row, 0)?,
        None => Stamp::ABSENT,
    })
}

/// Parts the checks into those of rows that are only read and those that ride on a write, and encodes the bodies: all of it
/// before the transaction begins.
fn plan(commit: &Commit) -> Result<Plan<'_>, StoreError> {
    let mut reads = Vec::with_capacity(commit.checks.len().saturating_sub(commit.writes.len()));
    let mut images = Vec::with_capacity(commit.writes.len());
    let mut writes = commit.writes.iter().peekable();
    for (key, stamp) in &commit.checks {
        match writes.next_if(|write| write.key == *key) {
            Some(write) => {
                if is_deferred(key.table()) {
                    reads.push((*key, *stamp));
                }
                images.push(Image::new(write, *stamp)?);
            }
            None => reads.push((*key, *stamp)),
        }
    }
    match writes.next() {
        None => Ok(Plan { commit, reads, images }),
        Some(_) => Err(StoreError::Malformed("checks and writes are sorted by key, and every write is checked")),
    }
}

impl Plan<'_> {
    /// The bytes of the bodies that wait.
    fn waiting_bytes(&self) -> usize {
        let bodies = self.images.iter().filter(|image| image.waits()).filter_map(|image| image.body.as_ref());
        bodies.map(|body| body.body.len()).sum()
    }
}

impl<'a> Image<'a> {
    fn new(write: &'a Write, seen: Stamp) -> Result<Self, StoreError> {
        let body = write.record.as_ref().map(Record::encode).transpose()?;
        Ok(Self { write, seen, body })
    }

    /// Whether it is appended to `redo`.
    const fn waits(&self) -> bool {
        is_deferred(self.write.key.table())
    }

    /// The row's stamp once the commit has got `stamp`.
    const fn now(&self, stamp: Stamp) -> Stamp {
        if self.body.is_some() { stamp } else { Stamp::ABSENT }
    }
}

/// What a run of writes asks of one table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Insert,
    Update(usize),
    Delete,
}

/// Writes rows one after the other and keeps the last statement at hand, since writes come sorted by table.
struct Writer<'c> {
    conn: &'c Connection,
    stamp: Stamp,
    open: Option<(Table, Verb, CachedStatement<'c>)>,
}

impl<'c> Writer<'c> {
    /// How many rows were written: 1, or none where the row is not as it was seen.
    fn write(&mut self, image: &Image<'_>) -> Result<usize, rusqlite::Error> {
        let table = image.write.key.table();
        let key = image.write.key.encode();
        let seen = Wide::of(image.seen.0.into());
        let Some(body) = &image.body else {
            if image.seen == Stamp::ABSENT {
                // A row that came and went within one turn: there is nothing to delete, if it is still absent.
                return stamp_of(self.conn, image.write.key).map(|found| usize::from(found == Stamp::ABSENT));
            }
            let statement = self.statement(table, Verb::Delete)?;
            statement.raw_bind_parameter(1, key.as_ref())?;
            statement.raw_bind_parameter(2, seen)?;
            return statement.raw_execute();
        };
        let stamp = self.stamp;
        let indexes = own_indexes(table);
        let mut at;
        let (statement, all) = if image.seen == Stamp::ABSENT {
            let statement = self.statement(table, Verb::Insert)?;
            statement.raw_bind_parameter(1, key.as_ref())?;
            at = 2;
            (statement, true)
        } else {
            let changed = indexes.clone().enumerate().fold(0, |set, (bit, index)| {
                let links = image.write.unlink.iter().chain(&image.write.link);
                if links.into_iter().any(|link| link.index == index) { set | (1 << bit) } else { set }
            });
            let statement = self.statement(table, Verb::Update(changed))?;
            statement.raw_bind_parameter(1, key.as_ref())?;
            statement.raw_bind_parameter(2, seen)?;
            at = 3;
            (statement, false)
        };
        statement.raw_bind_parameter(at, Wide::of(stamp.0.into()))?;
        statement.raw_bind_parameter(at + 1, body.format)?;
        statement.raw_bind_parameter(at + 2, Text(&body.body))?;
        at += 3;
        for index in indexes {
            let link = image.write.link.iter().find(|link| link.index == index);
            if all || link.is_some() || image.write.unlink.iter().any(|link| link.index == index) {
                statement.raw_bind_parameter(at, link.map(|link| Wide::of(link.prefix)))?;
                at += 1;
                if !index.is_by_key() {
                    statement.raw_bind_parameter(at, link.map(|link| order_of(link, stamp)))?;
                    at += 1;
                }
            }
        }
        statement.raw_execute()
    }

    fn statement(&mut self, table: Table, verb: Verb) -> Result<&mut CachedStatement<'c>, rusqlite::Error> {
        let fits = |(of, is, _): &(Table, Verb, CachedStatement<'_>)| (*of, *is) == (table, verb);
        if !self.open.as_ref().is_some_and(fits) {
            let on = Statements::on(table).ok_or(rusqlite::Error::InvalidQuery)?;
            let sql = match verb {
                Verb::Insert => &on.insert,
                Verb::Update(changed) => on.update(changed).ok_or(rusqlite::Error::InvalidQuery)?,
                Verb::Delete => &on.delete,
            };
            self.open = Some((table, verb, self.conn.prepare_cached(sql)?));
        }
        self.open.as_mut().map(|(_, _, statement)| statement).ok_or(rusqlite::Error::InvalidQuery)
    }
}

fn order_of(link: &Link, stamp: Stamp) -> Wide {
    Wide::of(match link.order {
        Order::At(order) => order,
        Order::Stamp => stamp.0.into(),
    })
}
