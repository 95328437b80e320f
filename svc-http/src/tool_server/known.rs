//! What is known of MCP servers between calls: how they are reached, how they speak, which sessions run, what they last told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use svc_core::rules::edge::proxied::Reached;
use svc_core::state::edge::{McpCredential, McpSecret};
use svc_core::value::id::{AgentId, McpServerId, WorkspaceId};
use svc_core::value::secret::Secret;
use svc_core::value::text::UrlText;
use svc_core::value::{Span, Timestamp};
use svc_store::Gate;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::concealed::{Forms, conceal};
use super::definition::Definitions;
use super::meetings::Meetings;
use super::message::{Era, Heard, hear, tells_of_other_tools};
use super::places::{Place, Places};
use super::session::{Ends, Session};
use super::trouble::{RpcError, Trouble};
use crate::bounded::Bounded;
use crate::upstream::{Endpoint, Upstreams};

/// Servers that are remembered, counted for their workspaces.
const SERVERS_MAX: usize = 1_000;
/// Sessions with one server that are remembered, counted for their agents: whoever has the most loses the one that it used longest ago when
/// there are more.
const SESSIONS_MAX: usize = 1_000;
/// For how long a session that nobody uses is believed to last: not every server says that it has forgotten one.
const SESSION_LIFE: Duration = Duration::from_secs(3_600);
/// Answers to what a server asks that are on their way to it at once.
const ANSWERS_MAX: usize = 64;

/// What is known of servers.
#[derive(Debug)]
pub(super) struct KnownServers(Mutex<Bounded<WorkspaceId, McpServerId, Arc<Known>>>);

/// What is known of one. Once nobody needs it any more, as the server was removed or is reached in another way by now, and the last of
/// its calls is over, the sessions with it end.
#[derive(Debug)]
pub(super) struct Known {
    url: UrlText,
    credential: McpCredential,
    secret: Option<Arc<McpSecret>>,
    endpoint: Arc<Endpoint>,
    /// What is taken out of what it says.
    shown: Forms,
    ends: Ends,
    next_id: AtomicU64,
    turn: tokio::sync::Mutex<()>,
    failed: Mutex<Option<(Instant, Trouble)>>,
    places: Arc<Places>,
    answers: Arc<Semaphore>,
    meetings: Meetings,
    spoken: Mutex<Spoken>,
    listed: Mutex<Listed>,
}

/// Its list of tools.
#[derive(Debug, Default)]
struct Listed {
    /// With when it was asked for.
    known: Option<(Timestamp, Instant, Arc<Definitions>)>,
    /// How often the server has said that it has other tools now.
    changes: u64,
}

#[derive(Debug)]
struct Spoken {
    is_modern: Option<bool>,
    /// By whose they are, with when each was used last. One that is let go of goes on while anything is asked in it.
    sessions: Bounded<Box<str>, Box<str>, (Era, Instant)>,
}

impl Default for KnownServers {
    fn default() -> Self {
        Self(Mutex::new(Bounded::new(SERVERS_MAX, SERVERS_MAX)))
    }
}

impl Default for Spoken {
    fn default() -> Self {
        Self { is_modern: None, sessions: Bounded::new(SESSIONS_MAX, SESSIONS_MAX) }
    }
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KnownServers {
    /// The server as it is reached now: one whose address or credential was changed is met anew.
    pub(super) fn of(&self, gate: &Gate, upstreams: &Upstreams, reached: &Reached) -> Result<Arc<Known>, Trouble> {
        let server = &reached.server;
        let mut all = held(&self.0);
        if let Some(known) = all.get(&server.id).filter(|it| it.is_reached(reached)) {
            return Ok(Arc::clone(known));
        }
        let secret = match &reached.secret {
            Some(sealed) => {
                let opened = gate.open_sealed(&McpSecret::purpose(sealed.workspace), &sealed.sealed);
                let opened = opened.map_err(|_| Trouble::Unusable)?;
                std::str::from_utf8(opened.expose()).map_err(|_| Trouble::Unusable)?.to_owned()
            }
            None => String::new(),
        };
        let header = match &server.credential {
            McpCredential::None => None,
            McpCredential::Bearer { .. } => Some(("authorization", Secret::new(format!("Bearer {secret}")))),
            McpCredential::Header { name, .. } => Some((&**name, Secret::new(secret))),
        };
        let header = header.as_ref().map(|(name, value)| (*name, value));
        let endpoint = Endpoint::new(upstreams, server.url.as_str(), header).map_err(|_| Trouble::Unusable)?;
        let endpoint = endpoint.of(reached.caller.workspace);
        let secret = reached.secret.clone();
        let (url, credential) = (server.url.clone(), server.credential.clone());
        let known = Arc::new(Known::new(upstreams.clone(), url, credential, secret, endpoint));
        let let_go = all.keep(reached.caller.workspace, server.id, Arc::clone(&known));
        drop(all);
        drop(let_go);
        Ok(known)
    }

    /// Whether it is known how the server is spoken to in this session, as it is reached now.
    pub(super) fn is_met(&self, reached: &Reached, session: &str) -> bool {
        let known = held(&self.0).peek(&reached.server.id).map(Arc::clone);
        known.is_some_and(|it| it.is_reached(reached) && it.era(session).is_some())
    }

    /// Why a server gave no list when it was asked last, in a clause, where this process asked it.
    pub(super) fn trouble(&self, server: McpServerId) -> Option<String> {
        let known = held(&self.0).peek(&server).map(Arc::clone)?;
        let failed = held(&known.failed);
        failed.as_ref().map(|(_, why)| why.clause())
    }

    /// Forgets a server, and with it what it is shown.
    pub(super) fn forget(&self, server: McpServerId) {
        let forgotten = held(&self.0).remove(&server);
        drop(forgotten);
    }

    /// Forgets all of them.
    pub(super) fn forget_all(&self) {
        let forgotten = held(&self.0).take();
        drop(forgotten);
    }
}

impl Known {
    /// A server that nothing is known of yet, reached at `endpoint`.
    pub(super) fn new(
        upstreams: Upstreams,
        url: UrlText,
        credential: McpCredential,
        secret: Option<Arc<McpSecret>>,
        endpoint: Endpoint,
    ) -> Self {
        let endpoint = Arc::new(endpoint);
        Self {
            url,
            credential,
            secret,
            ends: Ends::new(upstreams, Arc::clone(&endpoint)),
            shown: Forms::of(endpoint.shown()),
            endpoint,
            next_id: AtomicU64::new(1),
            turn: tokio::sync::Mutex::default(),
            failed: Mutex::default(),
            places: Arc::default(),
            answers: Arc::new(Semaphore::new(ANSWERS_MAX)),
            meetings: Meetings::default(),
            spoken: Mutex::default(),
            listed: Mutex::default(),
        }
    }

    /// Whether it is what is reached now: neither its address nor its credential was changed.
    fn is_reached(&self, reached: &Reached) -> bool {
        let server = &reached.server;
        self.url == server.url && self.credential == server.credential && self.secret == reached.secret
    }

    pub(super) const fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// An id for the next request; none comes twice.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// A message of the server, without what it is shown. That it has other tools now is heard here alone: the list is asked
    /// for anew, and clients are told of no such thing.
    pub(super) fn hear(&self, text: &[u8], id: u64) -> Option<Heard> {
        let text = std::str::from_utf8(text).ok()?;
        let text = conceal(text, &self.shown);
        let heard = hear(text.as_bytes(), id)?;
        Some(match heard {
            Heard::Error(error) => {
                Heard::Error(RpcError { message: self.endpoint.without_keys(&error.message), ..error })
            }
            Heard::Note(note) if tells_of_other_tools(&note) => {
                let mut listed = held(&self.listed);
                *listed = Listed { known: None, changes: listed.changes.wrapping_add(1) };
                return None;
            }
            Heard::Result(_) | Heard::Note(_) => heard,
        })
    }

    /// A place for one call more of this agent's.
    pub(super) fn place(&self, agent: AgentId) -> Result<Place, Trouble> {
        self.places.take(agent)
    }

    /// A place for an answer to what the server asks, where there is one.
    pub(super) fn place_of_an_answer(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.answers).try_acquire_owned().ok()
    }

    /// Waits until nobody else asks for the list.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// The list, where it is younger than `life` at `now`.
    pub(super) fn listed(&self, now: Timestamp, life: Span) -> Option<Arc<Definitions>> {
        let listed = held(&self.listed);
        listed.known.as_ref().filter(|(at, ..)| now.since(*at) < life).map(|(.., it)| Arc::clone(it))
    }

    /// The list, where it was asked for at `since` or later.
    pub(super) fn asked_since(&self, since: Instant) -> Option<Arc<Definitions>> {
        let listed = held(&self.listed);
        listed.known.as_ref().filter(|(_, asked, _)| *asked >= since).map(|(.., it)| Arc::clone(it))
    }

    /// How often the server has said that it has other tools now.
    pub(super) fn changes(&self) -> u64 {
        held(&self.listed).changes
    }

    /// Why there was no list, where that was found out at `since` or later.
    pub(super) fn failed_since(&self, since: Instant) -> Option<Trouble> {
        held(&self.failed).as_ref().filter(|(at, _)| *at >= since).map(|(_, why)| why.clone())
    }

    /// Remembers why there is no list.
    pub(super) fn fail(&self, why: &Trouble) {
        *held(&self.failed) = Some((Instant::now(), why.clone()));
    }

    /// Keeps the list that was asked for after so many changes, unless there was one since.
    pub(super) fn keep(&self, definitions: Definitions, at: (Timestamp, Instant), changes: u64) -> Arc<Definitions> {
        let definitions = Arc::new(definitions);
        let mut listed = held(&self.listed);
        if listed.changes == changes {
            listed.known = Some((at.0, at.1, Arc::clone(&definitions)));
        }
        definitions
    }

    /// A session that the server has named like this.
    pub(super) fn session(&self, id: &str) -> Session {
        Session::new(&self.ends, id)
    }

    /// The meetings with the server that are under way.
    pub(super) const fn meetings(&self) -> &Meetings {
        &self.meetings
    }

    /// How the server is spoken to in this session, where that is known.
    pub(super) fn era(&self, session: &str) -> Option<Era> {
        held(&self.spoken).era(session, Instant::now())
    }

    /// Whether the server speaks without handshake, where that is known.
    pub(super) fn is_modern(&self) -> Option<bool> {
        held(&self.spoken).is_modern
    }

    /// Whoever speaks without handshake has no sessions any more.
    pub(super) fn speaks_modern(&self) {
        let mut spoken = held(&self.spoken);
        spoken.is_modern = Some(true);
        spoken.sessions.take().iter().for_each(|(era, _)| era.forget());
    }

    /// Forgets how the server speaks, not the sessions with it: they go on until it says that one has ended, or that it
    /// speaks without.
    pub(super) fn forget_era(&self) {
        held(&self.spoken).is_modern = None;
    }

    pub(super) fn begin_session(&self, session: &str, era: Era) {
        let mut spoken = held(&self.spoken);
        spoken.is_modern = Some(false);
        let let_go = spoken.begin(session, era, Instant::now());
        drop(spoken);
        drop(let_go);
    }

    /// Lets go of this session, and of none that was begun in its place meanwhile; whether the server may still know it.
    pub(super) fn end_session(&self, session: &str, ended: &Era, is_known: bool) {
        if !is_known {
            ended.forget();
        }
        let mut spoken = held(&self.spoken);
        if spoken.sessions.peek(session).is_some_and(|(era, _)| era == ended) {
            spoken.sessions.remove(session);
        }
    }
}

impl Spoken {
    /// Remembers a session as its agent's; gives what is let go of for it.
    fn begin(&mut self, session: &str, era: Era, now: Instant) -> Option<(Era, Instant)> {
        self.sessions.keep(owner(session).into(), session.into(), (era, now))
    }

    fn era(&mut self, session: &str, now: Instant) -> Option<Era> {
        if self.is_modern == Some(true) {
            return Some(Era::Modern);
        }
        self.sessions.retain(|(_, used)| now.saturating_duration_since(*used) < SESSION_LIFE);
        let (era, used) = self.sessions.get(session)?;
        *used = now;
        Some(era.clone())
    }
}

/// Whose a session is: the agent that its name begins with, or nobody's.
fn owner(session: &str) -> &str {
    session.split_once('/').map_or("", |(agent, _)| agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent that begins any number of sessions ends none of another's, and none of this server's own.
    #[test]
    fn an_agent_ends_no_sessions_but_its_own() {
        let (mut spoken, now) = (Spoken::default(), Instant::now());
        let era = Era::Legacy { version: None, session: None };
        for name in ["", "a/s", "b/s"] {
            spoken.begin(name, era.clone(), now);
        }
        for number in 0..2 * SESSIONS_MAX {
            spoken.begin(&format!("c/{number}"), era.clone(), now);
        }
        assert_eq!(spoken.sessions.len(), SESSIONS_MAX);
        let last = format!("c/{}", 2 * SESSIONS_MAX - 1);
        assert!(["", "a/s", "b/s", &*last].into_iter().all(|it| spoken.era(it, now).is_some()));
        assert!(spoken.era("c/0", now).is_none());
    }

    /// A session that is used goes on; one that nobody uses for long is begun anew, and its server told: it is held by nobody.
    #[test]
    fn an_idle_session_is_begun_anew() {
        let (mut spoken, start) = (Spoken::default(), Instant::now());
        let session = Session::with_nobody("s");
        let era = Era::Legacy { version: None, session: Some(session.clone()) };
        spoken.begin("a", era.clone(), start);
        let nearly = SESSION_LIFE - Duration::from_secs(1);
        assert_eq!(spoken.era("a", start + nearly), Some(era.clone()));
        assert_eq!(spoken.era("a", start + nearly + nearly), Some(era.clone()));
        drop(era);
        assert!(!session.is_alone());
        assert_eq!(spoken.era("a", start + nearly + nearly + SESSION_LIFE), None);
        assert!(spoken.sessions.len() == 0 && session.is_alone());
    }
}
