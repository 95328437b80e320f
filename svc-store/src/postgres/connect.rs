//! One connection, set up: what it may assume of the server, how long it waits, and the statements it will run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio_postgres::error::Severity;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Row, Socket, Statement};

use super::address::{Address, PLAIN_NAME, Roots};
use super::errors::{POOLED, database, silent};
use super::io::{CONNECT_ALL, LOCK, STATEMENT};
use super::schema;
use super::served::SERVES;
use super::statements;
use super::tls::Tls;
use crate::error::StoreError;

/// The oldest server whose planner sorts what an index gives half sorted.
const VERSION_MIN: i32 = 130_000;
/// The first pause after a connection that failed, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// A server that takes longer than this over a connection is not given more of them to make.
const SLOW: Duration = Duration::from_secs(1);
/// How long a reader may keep its snapshot without asking anything, and a writer its locks.
const IDLE: (&str, &str) = ("5min", "10s");

/// What a server has to be so that what it confirmed is still there after it lost power.
const ABOUT: &str = "SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('server_encoding'), \
     current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'), \
     (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8";

/// Has the server find out within a minute that the machine behind a connection is gone, in place of the system's two hours: until then
/// it keeps the session, of which it has a bounded number, and what the session holds.
const KEPT_ALIVE: &str = "SET tcp_keepalives_idle=30; SET tcp_keepalives_interval=5; SET tcp_keepalives_count=4";

/// Has neither the time that a session does nothing nor that of a transaction end it, in whichever release has such a setting; what it
/// asks for is named as in a session for rows.
#[cfg(feature = "sqlite")]
const UNENDED: &str = "SELECT set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name IN \
     ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout'); \
     SET client_min_messages=warning; SET lock_timeout='5s'; SET search_path=pg_catalog";

const SESSION: &str = "SELECT pg_backend_pid()";

/// Has a session wait for the disk whatever the server is told later, and for a standby where that is asked for.
const DURABLE: &str = "SELECT set_config('synchronous_commit', \
     CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)";

/// Where and how connections are made.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) address: Address,
    /// Whether a server is taken that may lose what it has confirmed.
    pub(super) may_lose: bool,
    /// Whom connections trust: read once, as they are made where the bytes of others are moved.
    tls: OnceLock<Tls>,
    waits: Mutex<Waits>,
    /// What its connections are called, where a server says by it where it is reached.
    called: OnceLock<String>,
}

/// After a failure nobody knocks for a while: a server that comes up is not run over by all who wait for it.
#[derive(Debug, Default)]
struct Waits {
    until: Option<Instant>,
    /// Zero while the last answer was a good one.
    pause: Duration,
    /// How many knock now.
    knocking: usize,
    /// When the first of them did, or when one of them was let in last.
    since: Option<Instant>,
}

/// One that knocks. Where it comes to no answer, that is a failure.
struct Knock<'a> {
    door: &'a Door,
    well: bool,
}

impl Drop for Knock<'_> {
    fn drop(&mut self) {
        self.door.answered(self.well);
    }
}

/// A connection that is ready. It closes when it is dropped.
pub(super) struct Live {
    /// [`Door::may_lose`].
    pub(super) may_lose: bool,
    pub(super) client: Client,
    pub(super) statements: Statements,
    /// When the server began that it leads to, in microseconds: another one is another server, or the same after a restart.
    pub(super) server: i64,
    warned: Arc<AtomicBool>,
}

impl Live {
    /// Whether the server has warned since this was last asked. Beside a commit it does where that was made without the standby that it
    /// should have waited for.
    pub(super) fn was_warned(&self) -> bool {
        self.warned.swap(false, Ordering::AcqRel)
    }
}

/// What a connection prepares once.
pub(super) struct Statements {
    pub(super) load: Statement,
    pub(super) queue: Statement,
    pub(super) lock_written: Statement,
    pub(super) lock_read: Statement,
    pub(super) schema: Statement,
    pub(super) stamp: Statement,
    pub(super) insert: Statement,
    pub(super) update: Statement,
    pub(super) delete: Statement,
    pub(super) link: Statement,
    pub(super) unlink: Statement,
    pub(super) tell: Statement,
    pub(super) oldest: Statement,
    pub(super) newest: Statement,
}

impl Door {
    pub(super) fn new(address: Address, may_lose: bool) -> Self {
        Self { address, may_lose, tls: OnceLock::new(), waits: Mutex::default(), called: OnceLock::new() }
    }

    /// Has its connections from now on say that they are of a server at this base address. A name that the address of the database gives
    /// them is kept.
    pub(super) fn announce(&self, base_url: &str) {
        if self.address.config.get_application_name() == Some(PLAIN_NAME) {
            drop(self.called.set(format!("{SERVES}{base_url}")));
        }
    }

    fn config(&self) -> Config {
        let mut config = self.address.config.clone();
        if let Some(name) = self.called.get() {
            config.application_name(name);
        }
        config
    }

    /// A connection for rows, of whichever use; the database has this release's schema.
    ///
    /// # Errors
    /// The server does not answer, is not fit for use, or has another schema; or it failed a moment ago.
    pub(super) async fn open(&self, reads: bool) -> Result<Live, StoreError> {
        let mut knock = self.knock()?;
        let opened = tokio::time::timeout(CONNECT_ALL, self.set_up(reads)).await;
        let opened = opened.unwrap_or_else(|_| Err(silent()));
        knock.well = opened.is_ok();
        opened
    }

    async fn set_up(&self, reads: bool) -> Result<Live, StoreError> {
        let (client, warned, server) = self.enter().await?;
        let idle = if reads { IDLE.0 } else { IDLE.1 };
        // Each transaction says itself whether it writes.
        let settings = format!("{}; SET idle_in_transaction_session_timeout='{idle}'", settings());
        client.batch_execute(&settings).await.map_err(|cause| database(&cause))?;
        if !self.may_lose {
            client.batch_execute(DURABLE).await.map_err(|cause| database(&cause))?;
        }
        schema::check(&client).await?;
        let statements = prepare(&client).await.map_err(|cause| database(&cause))?;
        Ok(Live { may_lose: self.may_lose, client, statements, server, warned })
    }

    /// A connection to a server that is fit for use, whatever the database holds; what is asked on it may take as long as it does,
    /// whatever is said of the role.
    pub(super) async fn plain(&self) -> Result<Client, StoreError> {
        self.noted().await.map(|(client, _)| client)
    }

    /// The same for one long transaction that writes: nothing ends it for the time it takes, and what it commits is as durable as what a
    /// session does. Beside it, whether the server has warned.
    #[cfg(feature = "sqlite")]
    pub(super) async fn long(&self) -> Result<(Client, Arc<AtomicBool>), StoreError> {
        let (client, warned) = self.noted().await?;
        client.batch_execute(UNENDED).await.map_err(|cause| database(&cause))?;
        if !self.may_lose {
            client.batch_execute(DURABLE).await.map_err(|cause| database(&cause))?;
        }
        Ok((client, warned))
    }

    async fn noted(&self) -> Result<(Client, Arc<AtomicBool>), StoreError> {
        let (client, warned, _) = self.enter().await?;
        let (other, ..) = self.enter().await?;
        let turns = [session(&client).await?, session(&other).await?, session(&client).await?];
        is_kept(turns)?;
        client
            .batch_execute(&format!("{KEPT_ALIVE}; SET statement_timeout=0"))
            .await
            .map_err(|cause| database(&cause))?;
        Ok((client, warned))
    }

    /// The same, where it is noted that the server warns, and when the server began.
    async fn enter(&self) -> Result<(Client, Arc<AtomicBool>, i64), StoreError> {
        let (client, warned) = match &self.address.tls {
            None => drive(self.config().connect(NoTls).await),
            Some(roots) => self.secured(roots).await,
        }?;
        let about = client.query_one(ABOUT, &[]).await.map_err(|cause| database(&cause))?;
        is_fit(&about, self.may_lose)?;
        let server = about.try_get(6).map_err(|cause| database(&cause))?;
        Ok((client, warned, server))
    }

    async fn secured(&self, roots: &Roots) -> Result<(Client, Arc<AtomicBool>), StoreError> {
        drive(self.config().connect(self.tls(roots)?).await)
    }

    fn tls(&self, roots: &Roots) -> Result<Tls, StoreError> {
        match self.tls.get() {
            Some(tls) => Ok(tls.clone()),
            None => Tls::new(roots).map(|tls| self.tls.get_or_init(|| tls).clone()),
        }
    }

    /// A connection that listens, and where what it hears goes.
    pub(super) async fn listen(&self, heard: tokio::sync::mpsc::Sender<Option<String>>) -> Result<Client, StoreError> {
        let client = match &self.address.tls {
            None => forward(self.config().connect(NoTls).await, heard),
            Some(roots) => forward(self.config().connect(self.tls(roots)?).await, heard),
        }?;
        // By itself, so that whoever looks at the database's sessions finds what this one is for.
        for asked in [KEPT_ALIVE, statements::LISTEN] {
            client.batch_execute(asked).await.map_err(|cause| database(&cause))?;
        }
        Ok(client)
    }

    /// Where the server fails, or keeps one waiting, one at a time finds out whether it does still; all others hear so at once.
    fn knock(&self) -> Result<Knock<'_>, StoreError> {
        let (mut waits, now) = (self.waits(), Instant::now());
        let is_slow = waits.since.is_some_and(|since| now.duration_since(since) > SLOW);
        let is_doubtful = waits.pause > Duration::ZERO || is_slow;
        if waits.until.is_some_and(|until| now < until) || (waits.knocking > 0 && is_doubtful) {
            return Err(StoreError::Resting);
        }
        waits.knocking = waits.knocking.saturating_add(1);
        waits.since.get_or_insert(now);
        Ok(Knock { door: self, well: false })
    }

    fn answered(&self, well: bool) {
        let mut waits = self.waits();
        waits.knocking = waits.knocking.saturating_sub(1);
        if well || waits.knocking == 0 {
            waits.since = (waits.knocking > 0).then(Instant::now);
        }
        if well {
            (waits.until, waits.pause) = (None, Duration::ZERO);
        } else {
            waits.pause = waits.pause.saturating_mul(2).clamp(PAUSES.0, PAUSES.1);
            waits.until = Instant::now().checked_add(waits.pause);
        }
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Connected<S> = Result<(Client, Connection<Socket, S>), tokio_postgres::Error>;

/// The function of PostgreSQL's in which a commit waits for its standbys.
const SYNC_WAIT: &str = "SyncRepWaitForLSN";

/// Has a connection's bytes moved for as long as it lasts, and notes where the server warns of a standby that it did not wait for:
/// before anything that it says afterwards is passed on.
fn drive<S>(connected: Connected<S>) -> Result<(Client, Arc<AtomicBool>), StoreError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (client, mut connection) = connected.map_err(|cause| database(&cause))?;
    let warned = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&warned);
    tokio::spawn(async move {
        // How it ended, whoever asks next is told.
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            let AsyncMessage::Notice(told) = message else { continue };
            // A commit may be warned in for other reasons, ids or a queue that run out, which say nothing of it. These warnings have no
            // code of their own and are translated; the name of the function is what tells them apart.
            let is_of_wait = told.routine().is_none_or(|it| it == SYNC_WAIT);
            noted.fetch_or(is_of_wait && told.parsed_severity() == Some(Severity::Warning), Ordering::AcqRel);
        }
    });
    Ok((client, warned))
}

/// The same, and passes on what others tell: `None` where a message was dropped, because nobody took them.
fn forward<S>(connected: Connected<S>, heard: tokio::sync::mpsc::Sender<Option<String>>) -> Result<Client, StoreError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (client, mut connection) = connected.map_err(|cause| database(&cause))?;
    tokio::spawn(async move {
        let mut missed = false;
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            let AsyncMessage::Notification(told) = message else { continue };
            let full = heard.try_send(Some(told.payload().to_owned())).is_err();
            missed = (missed || full) && heard.try_send(None).is_err();
        }
    });
    Ok(client)
}

/// How a session waits and plans. Every statement here finds its rows by an index, so that no other plan is ever a better one,
/// whatever the planner believes of a table that grew since it looked.
fn settings() -> String {
    format!(
        "{KEPT_ALIVE}; SET client_min_messages=warning; SET statement_timeout={}; SET lock_timeout={}; SET default_transaction_isolation='read committed'; SET client_encoding='UTF8'; \
         SET plan_cache_mode=force_generic_plan; SET jit=off; SET enable_seqscan=off; SET enable_bitmapscan=off; \
         SET enable_hashjoin=off; SET enable_mergejoin=off; SET enable_sort=off; SET search_path=pg_catalog",
        STATEMENT.as_millis(),
        LOCK.as_millis()
    )
}

/// Whether a server keeps what it confirms, and takes writes.
fn is_fit(about: &Row, may_lose: bool) -> Result<(), StoreError> {
    let text = |column: usize| about.try_get::<_, String>(column).map_err(|cause| database(&cause));
    let version: i32 = about.try_get(0).map_err(|cause| database(&cause))?;
    if version < VERSION_MIN {
        return Err(StoreError::UnfitServer { why: "it is older than PostgreSQL 13" });
    }
    if about.try_get(1).map_err(|cause| database(&cause))? {
        return Err(StoreError::UnfitServer { why: "it is a standby, which takes no writes" });
    }
    if text(2)? != "UTF8" {
        return Err(StoreError::UnfitServer { why: "the database's encoding is not UTF8" });
    }
    if may_lose {
        return Ok(());
    }
    for (column, setting) in [(3, "synchronous_commit"), (4, "fsync"), (5, "full_page_writes")] {
        keeps(about, column, setting)?;
    }
    Ok(())
}

/// Which session of the server answers on this connection.
async fn session(client: &Client) -> Result<i32, StoreError> {
    let row = client.query_one(SESSION, &[]).await.map_err(|cause| database(&cause))?;
    row.try_get(0).map_err(|cause| database(&cause))
}

/// That a connection keeps its session, by those that answered on one, on another beside it, and on the first again. A pooler in
/// transaction mode gives the other one what the first has just left: what is set for one would be set for strangers, and a lock would
/// be anybody's.
fn is_kept([first, beside, again]: [i32; 3]) -> Result<(), StoreError> {
    if first == again && first != beside {
        return Ok(());
    }
    Err(POOLED)
}

/// That a setting on which durability rests is not off.
pub(super) fn keeps(about: &Row, column: usize, setting: &'static str) -> Result<(), StoreError> {
    let value: &str = about.try_get(column).map_err(|cause| database(&cause))?;
    if value == "off" { Err(StoreError::Lossy { setting }) } else { Ok(()) }
}

/// All statements in one round: they are sent before the first answer is waited for.
async fn prepare(client: &Client) -> Result<Statements, tokio_postgres::Error> {
    let (oldest, newest) = (statements::listing(false), statements::listing(true));
    let (load, lock_written, lock_read, schema, stamp, insert, update) = tokio::try_join!(
        client.prepare(statements::LOAD),
        client.prepare(statements::LOCK_WRITTEN),
        client.prepare(statements::LOCK_READ),
        client.prepare(statements::SCHEMA),
        client.prepare(statements::STAMP),
        client.prepare(statements::INSERT),
        client.prepare(statements::UPDATE),
    )?;
    let (queue, delete, link, unlink, tell, oldest, newest) = tokio::try_join!(
        client.prepare(statements::QUEUE),
        client.prepare(statements::DELETE),
        client.prepare(statements::LINK),
        client.prepare(statements::UNLINK),
        client.prepare(statements::TELL),
        client.prepare(&oldest),
        client.prepare(&newest),
    )?;
    Ok(Statements {
        load,
        queue,
        lock_written,
        lock_read,
        schema,
        stamp,
        insert,
        update,
        delete,
        link,
        unlink,
        tell,
        oldest,
        newest,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A pooler is told by sessions that change hands; a server, or a pooler that keeps them, passes.
    #[test]
    fn a_pooler_that_mixes_sessions_is_refused() {
        assert!(is_kept([7, 8, 7]).is_ok());
        for turns in [[7, 7, 7], [7, 8, 9], [7, 7, 8]] {
            let told = is_kept(turns).unwrap_err();
            assert!(matches!(told, StoreError::UnfitServer { why } if why.contains("pooler")), "{turns:?}: {told}");
        }
    }

    /// Where a server has failed, or keeps one waiting, one finds out whether it does still and the others hear so at once.
    #[test]
    fn one_at_a_time_knocks_where_nobody_answers() {
        let door = Door::new(Address::parse("postgres://svc@localhost/svc").unwrap(), false);
        let both = (door.knock().unwrap(), door.knock().unwrap());
        drop(both);
        assert!(matches!(door.knock(), Err(StoreError::Resting)), "it failed a moment ago");
        door.waits().until = None;
        let mut one = door.knock().unwrap();
        assert!(matches!(door.knock(), Err(StoreError::Resting)), "one knocks already");
        one.well = true;
        drop(one);
        let waits = door.knock().unwrap();
        assert!(door.knock().is_ok_and(|mut it| {
            it.well = true;
            true
        }));
        door.waits().since = Instant::now().checked_sub(SLOW.saturating_mul(2));
        assert!(matches!(door.knock(), Err(StoreError::Resting)), "it has waited for long");
        drop(waits);
    }
}
