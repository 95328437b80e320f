//! The tables, and how servers that start at once agree on who makes them.
//!
//! There is one table for all rows, one for all entries of indexes, and the counter of commits: a new kind of row needs no new
//! table. The number of the schema counts what rows hold, as SQLite's does.

use tokio_postgres::Client;

use super::errors::{database, no_right};
use super::statements::SCHEMA as READ;
use crate::brought::tell_of;
use crate::error::StoreError;

/// The schema that this release writes. It is the number of the rows' members (`sqlite::SCHEMA`), as the tables know nothing of
/// them: a program that does not know a member drops it when it writes the row again.
pub const SCHEMA: i64 = 4;

/// Held by whoever makes or changes tables: `svc1` in ASCII.
const LOCK: i64 = 0x7376_6331;

/// The first tables. Text sorts by its bytes: the order of an index is the same whatever the language of the database. Rows leave
/// room in their page, so that a row that is written again stays in it and no index has to know.
const TABLES: &str = "CREATE SCHEMA svc; \
     CREATE TABLE svc.meta (name text PRIMARY KEY, value bigint NOT NULL); \
     CREATE SEQUENCE svc.stamp AS bigint CACHE 1; \
     CREATE TABLE svc.records (tab text COLLATE \"C\" NOT NULL, key bytea NOT NULL, stamp bigint NOT NULL, format smallint NOT NULL, \
     body json NOT NULL, PRIMARY KEY (tab, key)) WITH (fillfactor = 80); \
     CREATE TABLE svc.links (idx text COLLATE \"C\" NOT NULL, prefix bytea NOT NULL, ord bytea NOT NULL, \
     tab text COLLATE \"C\" NOT NULL, key bytea NOT NULL, PRIMARY KEY (idx, prefix, ord, tab, key)); \
     INSERT INTO svc.meta (name, value) VALUES ('schema', 0)";

/// Keeps every commit of a server out while the schema changes: whoever comes after it sees the new number and commits nothing.
const ALONE: &str = "LOCK TABLE svc.records IN EXCLUSIVE MODE";

/// Whether there is a schema of this name, and whether it has what ours has. The catalogue is read as a table: what looks names up may
/// remember that there was none before another server made it.
const MARKS: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'svc'), EXISTS (SELECT FROM pg_catalog.pg_class c \
     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'svc' AND c.relname = 'meta')";

/// What the database is now: its schema; `None` where nothing was made yet.
pub(super) async fn found(client: &Client) -> Result<Option<i64>, StoreError> {
    let marks = client.query_one(MARKS, &[]).await.map_err(|cause| database(&cause))?;
    let (named, ours): (bool, bool) = (marks.get(0), marks.get(1));
    match (named, ours) {
        (false, _) => Ok(None),
        (true, false) => Err(StoreError::ForeignSchema),
        (true, true) => {
            let row = client.query_opt(READ, &[]).await.map_err(|cause| database(&cause))?;
            row.map(|row| row.get(0)).map(Some).ok_or(StoreError::ForeignSchema)
        }
    }
}

/// Whether the role may make the tables.
const MAY_MAKE: &str = "SELECT has_database_privilege(current_database(), 'CREATE')";
/// Whether it may do with them what a server does.
const MAY_WRITE: &str = "SELECT has_schema_privilege('svc', 'USAGE') AND has_table_privilege('svc.meta', 'SELECT') \
     AND (SELECT bool_and(has_table_privilege(it, may)) FROM unnest(ARRAY['svc.records', 'svc.links']) it, \
     unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) may) AND has_sequence_privilege('svc.stamp', 'USAGE')";
/// Whether it may have a commit confirmed that changes nothing, as it does after one of which nobody knows: everybody may unless
/// somebody took that away. Releases of PostgreSQL differ in what the function takes after its text.
const MAY_CONFIRM: &str = "SELECT coalesce(bool_and(has_function_privilege(oid, 'EXECUTE')), false) FROM pg_catalog.pg_proc \
     WHERE proname = 'pg_logical_emit_message' AND pronamespace = 'pg_catalog'::regnamespace AND proargtypes[2] = 'text'::regtype";

/// That the role may do what comes next: make the tables, or read and write them.
///
/// # Errors
/// [`StoreError::NoRight`], or that the database does not answer.
pub(super) async fn is_permitted(client: &Client, found: Option<i64>) -> Result<(), StoreError> {
    let (next, lacks) = match found {
        None => (MAY_MAKE, "it may not make a schema in this database (CREATE)"),
        Some(_) => (
            MAY_WRITE,
            "it lacks USAGE of the schema `svc` or of its sequence, or the right to read and write its tables",
        ),
    };
    for (asked, lacks) in [(next, lacks), (MAY_CONFIRM, "it lacks EXECUTE of `pg_logical_emit_message`")] {
        let row = client.query_one(asked, &[]).await.map_err(|cause| database(&cause))?;
        if !row.get::<_, bool>(0) {
            return Err(no_right(lacks));
        }
    }
    Ok(())
}

/// That the database has this release's schema.
///
/// # Errors
/// [`StoreError::NewerSchema`], [`StoreError::ForeignSchema`], or that it has none yet or an older one.
pub(super) async fn check(client: &Client) -> Result<(), StoreError> {
    match found(client).await? {
        Some(found) => is_ours(found),
        None => Err(StoreError::NoTables),
    }
}

/// That a number which was read is this release's.
pub(super) fn is_ours(found: i64) -> Result<(), StoreError> {
    match found {
        SCHEMA => Ok(()),
        newer if newer > SCHEMA => Err(StoreError::NewerSchema { found, known: SCHEMA }),
        _ => Err(StoreError::NoTables),
    }
}

/// Brings the database to [`SCHEMA`] in one transaction. Another server that starts at once waits and finds it done.
///
/// # Errors
/// [`StoreError::NewerSchema`], [`StoreError::ForeignSchema`], or the tables cannot be made.
pub(super) async fn migrate(client: &Client) -> Result<(), StoreError> {
    if found(client).await? == Some(SCHEMA) {
        return Ok(());
    }
    let run = async |sql: &str| client.batch_execute(sql).await.map_err(|cause| database(&cause));
    // The lock is the connection's, which ends with this: whoever comes next begins after the tables are there.
    run(&format!("SET lock_timeout='60s'; SET synchronous_commit=on; SELECT pg_advisory_lock({LOCK})")).await?;
    run("BEGIN").await?;
    let from = match found(client).await? {
        Some(found) if found > SCHEMA => return Err(StoreError::NewerSchema { found, known: SCHEMA }),
        Some(found) => found,
        None => {
            run(TABLES).await?;
            0
        }
    };
    if from < SCHEMA {
        run(ALONE).await?;
        run(&format!("UPDATE svc.meta SET value={SCHEMA} WHERE name='schema'")).await?;
    }
    run("COMMIT").await?;
    tell_of(from, SCHEMA);
    Ok(())
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    /// One number says what rows hold, in whichever database they are.
    #[test]
    fn both_databases_count_alike() {
        assert_eq!(SCHEMA, crate::sqlite::SCHEMA);
    }
}
