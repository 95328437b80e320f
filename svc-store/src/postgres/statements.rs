//! Every statement on rows. All of them take whole columns, so that a commit of a thousand rows is as few statements as one of one.
//!
//! A number of 128 bits is 16 bytes, whose order is the number's; a row is named by its table's name and its key's bytes.

/// Rows by key, each key answered; the order is the question's.
pub(super) const LOAD: &str = "SELECT k.n, r.stamp, r.format, r.body::text \
     FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS k (tab, key, n) \
     LEFT JOIN svc.records r ON r.tab = k.tab AND r.key = k.key";

/// Queues for rows that everybody reads, before any row is locked: a lock of rows lets readers pass a writer that waits, and a freeze
/// would wait for as long as there are any. Whoever comes behind a writer here waits for it. The first number is `svc3` in ASCII.
pub(super) const QUEUE: &str = "SELECT CASE WHEN k.written THEN pg_advisory_xact_lock(1937138483, k.queue)::text \
     ELSE pg_advisory_xact_lock_shared(1937138483, k.queue)::text END FROM unnest($1::int4[], $2::bool[]) AS k (queue, written)";

/// Locks rows that are to be written, one after the other as they are named, and gives what they are now. What is absent is not
/// locked.
pub(super) const LOCK_WRITTEN: &str = "SELECT k.n, r.stamp FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS k (tab, key, n) \
     JOIN svc.records r ON r.tab = k.tab AND r.key = k.key ORDER BY k.n FOR UPDATE OF r";

/// The same of rows that were read: others may read them too, and nobody writes them.
pub(super) const LOCK_READ: &str = "SELECT k.n, r.stamp FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS k (tab, key, n) \
     JOIN svc.records r ON r.tab = k.tab AND r.key = k.key ORDER BY k.n FOR SHARE OF r";

/// The schema that the database has now, and whether its server keeps what it confirms: settings reach sessions that are open.
pub(super) const SCHEMA: &str = "SELECT value, current_setting('fsync'), current_setting('full_page_writes') \
     FROM svc.meta WHERE name = 'schema'";

/// The commit's number: taken once, when all locks are held.
pub(super) const STAMP: &str = "SELECT nextval('svc.stamp')";

/// New rows. One that is there already fails the whole commit.
pub(super) const INSERT: &str = "INSERT INTO svc.records (tab, key, stamp, format, body) \
     SELECT k.tab, k.key, currval('svc.stamp'), k.format, k.body::json \
     FROM unnest($1::text[], $2::bytea[], $3::int2[], $4::text[]) WITH ORDINALITY AS k (tab, key, format, body, n) ORDER BY k.n";

/// The same of rows that come from another database, each with the stamp that it has there.
#[cfg(feature = "sqlite")]
pub(super) const INSERT_STAMPED: &str = "INSERT INTO svc.records (tab, key, stamp, format, body) \
     SELECT k.tab, k.key, k.stamp, k.format, k.body::json \
     FROM unnest($1::text[], $2::bytea[], $3::int8[], $4::int2[], $5::text[]) AS k (tab, key, stamp, format, body)";

/// New images of rows that are locked.
pub(super) const UPDATE: &str = "UPDATE svc.records r SET stamp = currval('svc.stamp'), format = k.format, body = k.body::json \
     FROM unnest($1::text[], $2::bytea[], $3::int2[], $4::text[]) AS k (tab, key, format, body) \
     WHERE r.tab = k.tab AND r.key = k.key";

/// Rows that are gone from now on.
pub(super) const DELETE: &str = "DELETE FROM svc.records r USING unnest($1::text[], $2::bytea[]) AS k (tab, key) \
     WHERE r.tab = k.tab AND r.key = k.key";

/// New entries of indexes; without an order it is the commit's number.
pub(super) const LINK: &str = "INSERT INTO svc.links (idx, prefix, ord, tab, key) \
     SELECT k.idx, k.prefix, coalesce(k.ord, decode(lpad(to_hex(currval('svc.stamp')), 32, '0'), 'hex')), k.tab, k.key \
     FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::text[], $5::bytea[]) AS k (idx, prefix, ord, tab, key) \
     ON CONFLICT DO NOTHING";

/// The same where each has its order.
#[cfg(feature = "sqlite")]
pub(super) const LINK_ORDERED: &str = "INSERT INTO svc.links (idx, prefix, ord, tab, key) \
     SELECT k.idx, k.prefix, k.ord, k.tab, k.key \
     FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::text[], $5::bytea[]) AS k (idx, prefix, ord, tab, key) ON CONFLICT DO NOTHING";

/// Entries that are gone.
pub(super) const UNLINK: &str = "DELETE FROM svc.links l \
     USING unnest($1::text[], $2::bytea[], $3::bytea[], $4::text[], $5::bytea[]) AS k (idx, prefix, ord, tab, key) \
     WHERE l.idx = k.idx AND l.prefix = k.prefix AND l.ord = k.ord AND l.tab = k.tab AND l.key = k.key";

/// What the other servers are told once this is durable.
pub(super) const TELL: &str = "SELECT pg_notify('svc', k.told) FROM unnest($1::text[]) AS k (told)";

/// Waits for its turn to make what a first start makes; it ends with the connection. `svc2` in ASCII.
pub(super) const TURN: &str = "SELECT pg_advisory_lock(1937138482)";

/// Hears what the others tell.
pub(super) const LISTEN: &str = "LISTEN svc";

/// The server's clock, in milliseconds, and the schema that the database has now.
pub(super) const TIME: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8, \
     (SELECT value FROM svc.meta WHERE name = 'schema')";

/// Begins a commit.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// The same, after a conflict whose locks are given back.
pub(super) const BEGIN_AGAIN: &str = "ROLLBACK; BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Before the end of a commit. A server that waits there for a standby is not told to give up: it would confirm what no standby has.
pub(super) const UNHURRIED: &str = "SET LOCAL statement_timeout = 0";

/// A commit that changes nothing and is written to the log all the same: once it is confirmed, so is whatever was committed before it,
/// also by a standby that is waited for.
pub(super) const CONFIRM: &str =
    "BEGIN; SET LOCAL statement_timeout = 0; SELECT pg_logical_emit_message(true, 'svc', ''); COMMIT";

/// Ends a commit, or a transaction that has failed.
pub(super) const COMMIT: &str = "COMMIT";

/// Begins a reader's snapshot.
pub(super) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A stretch of an index, in the direction of reading. Entries of one order sort as their tables are declared (`$6`), not by their
/// names. The last entry that the reader has seen is `$8`, its table the number `$7` and its key `$9`; a number of -1
/// means that nothing was seen.
pub(super) fn listing(newest_first: bool) -> String {
    let (direction, beyond) = if newest_first { ("DESC", "<") } else { ("ASC", ">") };
    format!(
        "SELECT l.ord, l.tab, l.key, r.stamp, r.format, r.body::text FROM svc.links l \
         JOIN svc.records r ON r.tab = l.tab AND r.key = l.key \
         WHERE l.idx = $1::text AND l.prefix = $2::bytea AND l.ord >= $3::bytea AND l.ord < $4::bytea \
         AND ($7::int4 < 0 OR l.ord {beyond} $8::bytea OR (l.ord = $8::bytea AND (array_position($6::text[], l.tab) {beyond} $7::int4 \
         OR (array_position($6::text[], l.tab) = $7::int4 AND l.key {beyond} $9::bytea)))) \
         ORDER BY l.ord {direction}, array_position($6::text[], l.tab) {direction}, l.key {direction} LIMIT $5::int8"
    )
}
