//! One commit: two rounds, the second of which ends it.
//!
//! The first locks every checked row, in the order of keys, and gives the stamps that the rows have now; the second takes the
//! commit's number, writes, and commits. All of a round is sent before its first answer is waited for. A locking read of an absent
//! row locks nothing: who inserts it first wins, and the other one's insert fails its whole commit. Before any row it queues for
//! those that everybody reads, in the order of their queues: who has a row never waits there, so that no two wait for each other.
//!
//! **Invariant:** the number is taken when all locks are held, so it is greater than that of every commit this one depends on.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use svc_core::store::{Key, Stamp};
use tokio_postgres::error::Severity;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use super::connect::{Live, keeps};
use super::errors::is_contended;
use super::plan::{Entries, Images, Keys, Plan, Queues, column, stamp_of};
use super::schema;
use super::statements::{COMMIT, UNHURRIED};
use crate::error::StoreError;

/// What came of it.
pub(super) enum Done {
    Applied(Stamp),
    /// The rows that have moved, and the answers to a load of them; the locks are kept.
    Moved(Vec<Key>, Vec<Row>),
    /// Another server was faster, or the database chose this one of two that waited for each other. No lock is left.
    Contended,
}

/// Why it came to nothing, or to nobody knows what.
pub(super) enum Fault {
    /// Nothing was written.
    Before(Error),
    /// Nothing was written, because of what the database is.
    Unfit(StoreError),
    /// It may have been written.
    Unknown(Error),
}

type Answer = Result<Vec<Row>, Error>;
type Asked<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// Applies `plan`; `begin` opens its transaction, where none is open that has the locks. `sent` is set before anything is sent that
/// could make it durable.
pub(super) async fn apply(live: &Live, plan: &Plan, begin: &'static str, sent: &AtomicBool) -> Result<Done, Fault> {
    let moved = match lock(live, plan, begin).await {
        Ok(moved) => moved,
        Err(Fault::Before(cause)) if is_contended(&cause) => {
            return give_way(live).await;
        }
        Err(fault) => return Err(fault),
    };
    if !moved.is_empty() {
        let rows = load(live, &Keys::of(&moved)).await.map_err(Fault::Before)?;
        return Ok(Done::Moved(moved, rows));
    }
    sent.store(true, Ordering::Release);
    live.was_warned();
    let mut answers = together(writes(live, plan)).await.into_iter();
    let ended = answers.next_back();
    let mut number = None;
    for answer in answers {
        match answer {
            Ok(rows) => number = number.or_else(|| rows.into_iter().next()),
            // What follows a statement that failed is rolled back, the `COMMIT` included.
            Err(cause) if is_contended(&cause) => return give_way(live).await,
            Err(cause) if has_gone_on(&cause) => return Err(Fault::Before(cause)),
            Err(cause) => return Err(Fault::Unknown(cause)),
        }
    }
    match ended {
        Some(Ok(_)) => {}
        // An error is the server's word that nothing is kept; only where no word comes nobody knows.
        Some(Err(cause)) if is_contended(&cause) => return give_way(live).await,
        Some(Err(cause)) if has_gone_on(&cause) => return Err(Fault::Before(cause)),
        Some(Err(cause)) => return Err(Fault::Unknown(cause)),
        None => return Err(Fault::Unfit(StoreError::LeftOut)),
    }
    if live.was_warned() {
        return Err(Fault::Unfit(StoreError::Unreplicated));
    }
    let number = number.ok_or(StoreError::LeftOut).and_then(|row| stamp_of(column(&row, 0)?));
    number.map(Done::Applied).map_err(Fault::Unfit)
}

/// Ends a transaction that the database has broken off for another one's sake, so that what is asked next on this connection is
/// answered.
async fn give_way(live: &Live) -> Result<Done, Fault> {
    live.client.batch_execute("ROLLBACK").await.map_err(Fault::Before)?;
    Ok(Done::Contended)
}

/// The first round: the rows that are not what the commit saw.
async fn lock(live: &Live, plan: &Plan, begin: &'static str) -> Result<Vec<Key>, Fault> {
    let mut asked: Vec<Asked<'_>> = Vec::with_capacity(plan.locks.len().saturating_add(3));
    asked.push(run(live, begin));
    asked.push(queue(live, &plan.queues));
    for run in &plan.locks {
        let statement = if run.written { &live.statements.lock_written } else { &live.statements.lock_read };
        asked.push(of_keys(live, statement, &run.rows));
    }
    // Last: whoever changes the schema has waited for these locks, or they for it.
    asked.push(Box::pin(live.client.query(&live.statements.schema, &[])));
    let mut answers = together(asked).await.into_iter();
    let _begun = answers.next().transpose().map_err(Fault::Before)?;
    let _queued = answers.next().transpose().map_err(Fault::Before)?;
    let mut now: Vec<Stamp> = vec![Stamp::ABSENT; plan.checks.len()];
    for run in &plan.locks {
        for row in answers.next().transpose().map_err(Fault::Before)?.unwrap_or_default() {
            let at = column::<i64>(&row, 0).map_err(Fault::Unfit)?;
            let at = usize::try_from(at).ok().and_then(|it| it.checked_add(run.first)?.checked_sub(1));
            let place = at.and_then(|at| now.get_mut(at)).ok_or(Fault::Unfit(StoreError::LeftOut))?;
            *place = column(&row, 1).and_then(stamp_of).map_err(Fault::Unfit)?;
        }
    }
    let schema = answers.next().transpose().map_err(Fault::Before)?.unwrap_or_default();
    let schema = schema.first().ok_or(StoreError::NoTables);
    schema.and_then(|row| is_as_it_was(row, live.may_lose)).map_err(Fault::Unfit)?;
    let moved = plan.checks.iter().zip(now).filter(|((_, seen), now)| seen != now);
    Ok(moved.map(|((key, _), _)| *key).collect())
}

/// That the database has this release's schema and its server keeps what it confirms, as when the connection was made.
fn is_as_it_was(about: &Row, may_lose: bool) -> Result<(), StoreError> {
    schema::is_ours(column(about, 0)?)?;
    if !may_lose {
        keeps(about, 1, "fsync")?;
        keeps(about, 2, "full_page_writes")?;
    }
    Ok(())
}

/// The second round: the number first, `COMMIT` last.
fn writes<'a>(live: &'a Live, plan: &'a Plan) -> Vec<Asked<'a>> {
    let statements = &live.statements;
    let mut asked: Vec<Asked<'a>> = vec![Box::pin(live.client.query(&statements.stamp, &[]))];
    for (images, statement) in [(&plan.inserts, &statements.insert), (&plan.updates, &statements.update)] {
        if !images.rows.is_empty() {
            asked.push(of_images(live, statement, images));
        }
    }
    if !plan.deletes.is_empty() {
        asked.push(of_keys(live, &statements.delete, &plan.deletes));
    }
    for (entries, statement) in [(&plan.unlinks, &statements.unlink), (&plan.links, &statements.link)] {
        if !entries.rows.is_empty() {
            asked.push(of_entries(live, statement, entries));
        }
    }
    if !plan.told.is_empty() {
        asked.push(Box::pin(async { live.client.query(&statements.tell, &[&plan.told]).await }));
    }
    asked.push(run(live, UNHURRIED));
    // By itself: behind a statement that failed in the same message it would not be looked at, and the transaction stay open.
    asked.push(run(live, COMMIT));
    asked
}

/// Rows by key.
pub(super) async fn load(live: &Live, rows: &Keys) -> Answer {
    live.client.query(&live.statements.load, &[&rows.tables, &rows.keys]).await
}

/// A statement of no parameters and no answer. Without one nothing is sent.
fn run<'a>(live: &'a Live, sql: &'static str) -> Asked<'a> {
    Box::pin(async move {
        if !sql.is_empty() {
            live.client.batch_execute(sql).await?;
        }
        Ok(Vec::new())
    })
}

/// Without a row that everybody reads nothing is sent.
fn queue<'a>(live: &'a Live, queues: &'a Queues) -> Asked<'a> {
    Box::pin(async move {
        if queues.numbers.is_empty() {
            return Ok(Vec::new());
        }
        live.client.query(&live.statements.queue, &[&queues.numbers, &queues.written]).await
    })
}

fn of_keys<'a>(live: &'a Live, statement: &'a Statement, rows: &'a Keys) -> Asked<'a> {
    Box::pin(async move { live.client.query(statement, &[&rows.tables, &rows.keys]).await })
}

fn of_images<'a>(live: &'a Live, statement: &'a Statement, images: &'a Images) -> Asked<'a> {
    Box::pin(async move {
        let Images { rows, formats, bodies } = images;
        let parameters: [&(dyn ToSql + Sync); 4] = [&rows.tables, &rows.keys, formats, bodies];
        live.client.query(statement, &parameters).await
    })
}

fn of_entries<'a>(live: &'a Live, statement: &'a Statement, entries: &'a Entries) -> Asked<'a> {
    Box::pin(async move {
        let Entries { indexes, prefixes, orders, rows } = entries;
        let parameters: [&(dyn ToSql + Sync); 5] = [indexes, prefixes, orders, &rows.tables, &rows.keys];
        live.client.query(statement, &parameters).await
    })
}

/// All answers, in order. A request is sent when it is polled first, so all are sent, in order, before any is waited for.
async fn together(mut asked: Vec<Asked<'_>>) -> Vec<Answer> {
    let mut answers: Vec<Option<Answer>> = asked.iter().map(|_| None).collect();
    poll_fn(move |cx| {
        let mut whole = true;
        for (asked, answer) in asked.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match asked.as_mut().poll(cx) {
                    Poll::Ready(told) => *answer = Some(told),
                    Poll::Pending => whole = false,
                }
            }
        }
        if whole { Poll::Ready(std::mem::take(&mut answers).into_iter().flatten().collect()) } else { Poll::Pending }
    })
    .await
}

/// Whether the server told of the error and went on to what was sent behind the statement, which it then rolled back.
pub(super) fn has_gone_on(cause: &Error) -> bool {
    cause.as_db_error().is_some_and(|it| it.parsed_severity() == Some(Severity::Error))
}
