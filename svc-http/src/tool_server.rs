//! Speaking to MCP servers as their client, in whichever era they speak (MCP 2025-11-25 and before; 2026-07-28).
//!
//! [`ToolServers`] is this server's one client of all of them. What it tells them of itself is the same for every agent: no
//! capability of a client is offered, so none is asked for, and nothing of an agent's own request goes on but the name and the
//! arguments of the tool.
//!
//! **Invariant:** nothing is sent twice that could make a tool run twice.
//! **Invariant:** nothing that a server says is handed on with what it is shown in it.
//! **Invariant:** a session with a server is one agent's, in one of its own sessions; none is shared.

mod call_off;
mod concealed;
mod definition;
mod events;
mod known;
mod meetings;
mod message;
mod places;
mod questions;
pub mod reading;
mod resume;
mod session;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use svc_core::rules::edge::proxied::Reached;
use svc_core::state::edge::MCP_TOOLS_MAX;
use svc_core::value::id::McpServerId;
use svc_core::value::json::Json;
use svc_core::value::{Span, Timestamp};
use svc_store::Gate;
use tokio::time::{Instant, timeout};

use self::call_off::CallOff;
pub(crate) use self::definition::{Definition, Definitions};
use self::events::Asked;
pub(crate) use self::events::Events;
use self::known::{Known, KnownServers};
use self::message::{Era, Sent};
pub(crate) use self::message::{Heard, OBJECT, arguments_as_looked_at, is_read_alike};
use self::places::Place;
use self::questions::Questions;
use self::resume::Resume;
use self::trouble::RpcError;
pub(crate) use self::trouble::Trouble;
use crate::upstream::{Failed, Held, Named, Posted, Reason, Times, Type, Upstreams};

/// Bytes of one message that are read.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// For how long a list of tools is believed. So much later at most than by a stream of the server's own (`GET`), of which none is
/// opened, is heard that it has others now.
const LIST_LIFE: Span = Span::seconds(60);
/// How long a server may take for anything but a call.
const SHORT: Times =
    Times { first_token: Duration::from_secs(10), idle: Duration::from_secs(10), total: Duration::from_secs(20) };
/// Pages of a list of tools that are read: none has less than a tool, where a server means well.
const PAGES_MAX: usize = MCP_TOOLS_MAX;
/// What is said of a session that no request could be made in.
const UNSENDABLE: &str = "its session has a name that is not of visible ASCII characters, or longer than 8 KiB";
/// How a tool is called.
const CALL: &str = "tools/call";
/// How long the first message of a stream is waited for before the stream is handed on: most answers come in it, and need none.
const FIRST_TIME: Duration = Duration::from_secs(1);
/// How long a list may take with all its pages, and a server that is met with it.
const LIST_TIME: Duration = Duration::from_secs(30);

/// The client of MCP servers. Clones are the same client.
#[derive(Clone, Debug)]
pub(crate) struct ToolServers {
    upstreams: Upstreams,
    known: Arc<KnownServers>,
}

/// A call of a tool as it goes on.
#[derive(Clone, Debug)]
pub(crate) struct Calling<'a> {
    /// The tool.
    pub(crate) tool: &'a Definition,
    /// Its arguments.
    pub(crate) arguments: &'a Json,
    /// The same as they were looked at, which is how they go on.
    pub(crate) sent: &'a RawValue,
    /// By what its client is to be told of its progress.
    pub(crate) progress: Option<&'a Json>,
}

/// A call that can be sent: it has its place, the server was met, and a connection waits of which nothing has left. Whatever keeps a
/// call from being sent at all was found out before there is one.
pub(crate) struct Ready {
    known: Arc<Known>,
    place: Place,
    session: String,
    first: First,
}

/// How a request is sent the first time.
type First = (Era, Held);

/// What a call brought.
pub(crate) enum Answered {
    /// Its result.
    Result(Box<RawValue>),
    /// A stream in which the result will come.
    Stream(Box<Events>),
}

impl ToolServers {
    /// A client that calls as `upstreams` does.
    #[must_use]
    pub(crate) fn new(upstreams: Upstreams) -> Self {
        Self { upstreams, known: Arc::default() }
    }

    /// The tools of a server as it tells of them now, or did within the last minute and has not called changed since.
    ///
    /// # Errors
    /// [`Trouble`]: it does not answer, or not as an MCP server.
    pub(crate) async fn list(&self, gate: &Gate, reached: &Reached) -> Result<Arc<Definitions>, Trouble> {
        let known = self.known.of(gate, &self.upstreams, reached)?;
        if let Some(listed) = known.listed(gate.now(), LIST_LIFE) {
            return Ok(listed);
        }
        // Of those who want the list at once, one asks for it; the others get what it got.
        let since = Instant::now();
        let _turn = known.turn().await;
        match (known.listed(gate.now(), LIST_LIFE), known.failed_since(since)) {
            (Some(listed), _) => Ok(listed),
            (None, Some(trouble)) => Err(trouble),
            (None, None) => self.fetch(&known, gate.now()).await,
        }
    }

    /// The tools of a server as it tells of them from now on: asked for after this, by whomever.
    ///
    /// # Errors
    /// [`Trouble`] where it gives none.
    pub(crate) async fn list_anew(&self, gate: &Gate, reached: &Reached) -> Result<Arc<Definitions>, Trouble> {
        let known = self.known.of(gate, &self.upstreams, reached)?;
        self.anew(&known, || gate.now()).await
    }

    async fn anew(&self, known: &Arc<Known>, now: impl Fn() -> Timestamp) -> Result<Arc<Definitions>, Trouble> {
        let since = Instant::now();
        let _turn = known.turn().await;
        match (known.asked_since(since), known.failed_since(since)) {
            (Some(listed), _) => Ok(listed),
            // Of a server that does not answer each of many would else wait for its own time-out, behind all before it.
            (None, Some(trouble)) => Err(trouble),
            (None, None) => self.fetch(known, now()).await,
        }
    }

    /// The same, asked anew whatever is known.
    ///
    /// # Errors
    /// See [`list`](Self::list).
    pub(crate) async fn list_now(&self, gate: &Gate, reached: &Reached) -> Result<Arc<Definitions>, Trouble> {
        let known = self.known.of(gate, &self.upstreams, reached)?;
        let _turn = known.turn().await;
        self.fetch(&known, gate.now()).await
    }

    async fn fetch(&self, known: &Arc<Known>, now: Timestamp) -> Result<Arc<Definitions>, Trouble> {
        let (changes, asked) = (known.changes(), Instant::now());
        let mut definitions = Definitions::default();
        let read = match timeout(LIST_TIME, self.pages(known, &mut definitions)).await {
            Ok(read) => read,
            Err(_) if definitions.iter().next().is_none() => Err(Trouble::Failed(Failed::sent(Reason::Total))),
            Err(_) => {
                tracing::warn!("an MCP server's list of tools takes too long; what has not come is left out");
                Ok(())
            }
        };
        read.map(|()| known.keep(definitions, (now, asked), changes)).inspect_err(|trouble| known.fail(trouble))
    }

    async fn pages(&self, known: &Arc<Known>, definitions: &mut Definitions) -> Result<(), Trouble> {
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let params = cursor
                .as_ref()
                .map_or_else(|| serde_json::json!({}), |it| serde_json::json!({ "cursor": it }))
                .to_string();
            let sent = Sent::new("tools/list", &params);
            let answered = self.ask(known, OWN, &sent, SHORT, None).await?;
            let page = whole(answered).await?;
            let next = definitions.take(page.get())?;
            if next.is_none() {
                return Ok(());
            }
            if next == cursor {
                tracing::warn!("an MCP server's list of tools goes on where it is; what it has beyond is left out");
                return Ok(());
            }
            cursor = next;
        }
        tracing::warn!(
            "an MCP server's list of tools has more pages than are read; what stands on the others is left out"
        );
        Ok(())
    }

    /// Whether it is known how the server is spoken to in this session of the agent's: no session is begun then.
    pub(crate) fn is_met(&self, reached: &Reached, session: &str) -> bool {
        self.known.is_met(reached, &format!("{}/{session}", reached.caller.agent))
    }

    /// Makes ready for one call of this agent's in this session of its own.
    ///
    /// # Errors
    /// [`Trouble`] where the call cannot be sent: the tool has not run.
    pub(crate) async fn ready(&self, gate: &Gate, reached: &Reached, session: &str) -> Result<Ready, Trouble> {
        let known = self.known.of(gate, &self.upstreams, reached)?;
        let agent = reached.caller.agent;
        let (place, session) = (known.place(agent)?, format!("{agent}/{session}"));
        let era = self.era(&known, &session).await.map_err(|why| Trouble::Unmet(Box::new(why)))?;
        let held = self.upstreams.hold(known.endpoint(), SHORT.total).await.map_err(Trouble::Failed)?;
        Ok(Ready { known, place, session, first: (era, held) })
    }

    /// Calls a tool. The server may have run it wherever [`Trouble::may_have_run`].
    ///
    /// # Errors
    /// [`Trouble`]: it does not answer, or not as an MCP server, or with an error.
    pub(crate) async fn call(&self, ready: Ready, call: &Calling<'_>) -> Result<Answered, Trouble> {
        let Ready { known, place, session, first } = ready;
        let params = message::call_params(call);
        let headers = call.tool.headers(call.arguments);
        let more: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, value.as_str())).collect();
        let (name, progress) = (Some(&*call.tool.name), call.progress);
        let sent = Sent { method: CALL, params: &params, progress, name, more: &more };
        let total = self.upstreams.times().total;
        let times = Times { first_token: total, idle: total, total };
        Ok(match self.ask(&known, &session, &sent, times, Some(first)).await? {
            Answered::Stream(events) => Answered::Stream(Box::new(events.at(place))),
            result @ Answered::Result(_) => result,
        })
    }

    /// Why a server gave no list of its tools when it was asked last, in a clause; nothing where that was not this process's doing.
    pub(crate) fn trouble(&self, server: McpServerId) -> Option<String> {
        self.known.trouble(server)
    }

    /// Forgets a server that is there no more.
    pub(crate) fn forget(&self, server: McpServerId) {
        self.known.forget(server);
    }

    /// Forgets all servers, as this one stops: each is told that the sessions with it have ended, which [`Upstreams::settled`] waits
    /// for.
    pub(crate) fn forget_all(&self) {
        self.known.forget_all();
    }

    /// Asks in the era that the server speaks, and in a session where it wants one. A session that the server does not
    /// know is begun anew, once: what was asked in it was not looked at. Where it may only be that, or nobody can tell,
    /// the session is begun anew as well, and what could have run is not asked again. A good answer that names a call is
    /// its tool's, whatever error it holds, and says nothing of the session.
    async fn ask(
        &self,
        known: &Arc<Known>,
        session: &str,
        sent: &Sent<'_>,
        times: Times,
        mut first: Option<First>,
    ) -> Result<Answered, Trouble> {
        let mut again = true;
        loop {
            let (era, held) = match first.take() {
                Some((era, held)) => (era, Some(held)),
                None => (self.era(known, session).await.map_err(|why| Trouble::Unmet(Box::new(why)))?, None),
            };
            let asked = self.exchange(known, &era, sent, times, held).await;
            let Err(trouble) = &asked else { return asked };
            let is_of_another_era = trouble.is_of_another_era() && !(sent.method == CALL && trouble.is_good_answer());
            // Another release may run there by now, which speaks otherwise. Where there are sessions, what becomes of
            // one says nothing of the others: only a handshake does.
            if is_of_another_era && era == Era::Modern {
                known.forget_era();
            }
            let is_unknown = *trouble == Trouble::NoSession && era.has_session();
            let ended = is_unknown || is_of_another_era || (era.has_session() && trouble.is_unread());
            if ended {
                known.end_session(session, &era, !is_unknown);
            }
            if !(ended && again && (is_unknown || sent.method != CALL)) {
                return asked;
            }
            again = false;
        }
    }

    /// How the server speaks, by asking it where that is not known; a session of its own where it has sessions. Who want the same one
    /// at once share it.
    async fn era(&self, known: &Arc<Known>, session: &str) -> Result<Era, Trouble> {
        match known.era(session) {
            Some(spoken) => Ok(spoken),
            None => known.meetings().share(session, || known.era(session), self.meet(known, session)).await,
        }
    }

    async fn meet(&self, known: &Arc<Known>, session: &str) -> Result<Era, Trouble> {
        if known.is_modern() == Some(false) {
            match self.begin(known, session).await {
                // It took such a handshake before: how it speaks by now is asked anew.
                Err(trouble) if trouble.is_of_another_era() => known.forget_era(),
                begun => return begun,
            }
        }
        match self.discover(known).await {
            Ok(true) => {
                known.speaks_modern();
                Ok(Era::Modern)
            }
            Ok(false) => self.begin(known, session).await,
            // Some of the era before close the connection, say nothing or refuse whoever asks for what they do not know.
            Err(trouble) if trouble.may_be_of_method() => self.begin(known, session).await.map_err(|_| trouble),
            Err(trouble) => Err(trouble),
        }
    }

    async fn begin(&self, known: &Arc<Known>, session: &str) -> Result<Era, Trouble> {
        let era = self.initialize(known).await?;
        known.begin_session(session, era.clone());
        Ok(era)
    }

    /// Whether the server speaks without handshake.
    async fn discover(&self, known: &Arc<Known>) -> Result<bool, Trouble> {
        let sent = Sent::new("server/discover", "{}");
        let answered = match self.exchange(known, &Era::Modern, &sent, SHORT, None).await {
            Ok(answered) => whole(answered).await,
            Err(trouble) => Err(trouble),
        };
        match answered {
            Ok(result) => message::discovered(result.get()),
            Err(Trouble::Rpc(error)) => error.speaks_legacy().ok_or(Trouble::Rpc(error)).map(|legacy| !legacy),
            // One of the era before knows neither the method nor the header, and says so in its own way.
            Err(Trouble::Status(_) | Trouble::NoSession | Trouble::NotMcp(_)) => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }

    async fn initialize(&self, known: &Arc<Known>) -> Result<Era, Trouble> {
        let first = Era::Legacy { version: None, session: None };
        let params = message::initialize_params();
        let sent = Sent::new("initialize", &params);
        let id = known.next_id();
        let posted = self.post(known, &first, &sent, Some(id), SHORT).await?;
        let session = match &posted.session {
            Named::Nothing => None,
            Named::Session(name) => Some(known.session(name)),
            Named::Unsendable => return Err(Trouble::NotMcp(UNSENDABLE)),
        };
        let here = Era::Legacy { version: None, session: session.clone() };
        let questions = Questions::new(self.upstreams.clone(), here.clone());
        let resume = Resume::new(self.upstreams.clone(), here, SHORT);
        let asked = Asked { id, progress: None, resume, call_off: CallOff::never(), questions };
        let result = whole(Events::first(known, posted, asked, SHORT.total).await?).await?;
        let version = message::initialized(result.get())?;
        session.iter().for_each(|it| it.agree_on(version));
        let era = Era::Legacy { version: Some(version), session };
        let noted = Sent::new("notifications/initialized", "{}");
        self.post(known, &era, &noted, None, SHORT).await?;
        Ok(era)
    }

    async fn exchange(
        &self,
        known: &Arc<Known>,
        era: &Era,
        sent: &Sent<'_>,
        times: Times,
        held: Option<Held>,
    ) -> Result<Answered, Trouble> {
        let id = known.next_id();
        let resume = Resume::new(self.upstreams.clone(), era.clone(), times);
        let questions = Questions::new(self.upstreams.clone(), era.clone());
        let is_call = sent.method == CALL;
        let mut call_off = if is_call { CallOff::new(self, known, era, id) } else { CallOff::never() };
        let posted = self.post_on(held, known, era, sent, Some(id), times).await.inspect_err(|trouble| {
            // Whoever answered, or was never asked, does nothing any more.
            if !matches!(trouble, Trouble::Failed(failed) if failed.was_sent) {
                call_off.is_over();
            }
        })?;
        // A client hears that a call runs, and can call it off, once there is a stream to hand on.
        let patience = if is_call { FIRST_TIME } else { times.total };
        let asked = Asked { id, progress: sent.progress.cloned(), resume, call_off, questions };
        Events::first(known, posted, asked, patience).await
    }

    async fn post(
        &self,
        known: &Known,
        era: &Era,
        sent: &Sent<'_>,
        id: Option<u64>,
        times: Times,
    ) -> Result<Posted, Trouble> {
        self.post_on(None, known, era, sent, id, times).await
    }

    async fn post_on(
        &self,
        held: Option<Held>,
        known: &Known,
        era: &Era,
        sent: &Sent<'_>,
        id: Option<u64>,
        times: Times,
    ) -> Result<Posted, Trouble> {
        let body = message::body(era, sent, id);
        let name = sent.name.map(message::header_text);
        let headers = message::headers(era, sent, name.as_deref());
        let posted = self.upstreams.post_on(held, known.endpoint(), &headers, body.as_bytes(), times).await;
        let posted = posted.map_err(Trouble::Failed)?;
        let status = posted.status;
        // Who has forgotten a session says so in different ways: by 404, as the protocol has it; by 400 and an error
        // that answers no request (servers after the example of the TypeScript SDK); by 401 and a text (older ones of
        // the Rust SDK).
        let may_tell = posted.kind == Type::Json || (status == 401 && era.has_session());
        let text = match status {
            200..=299 => return Ok(posted),
            403 => return Err(Trouble::Credential),
            404 if era.has_session() => return Err(Trouble::NoSession),
            _ if may_tell => posted.read(MESSAGE_BYTES_MAX).await.unwrap_or_default(),
            _ => Vec::new(),
        };
        if status == 401 {
            let is_of_session = era.has_session() && message::speaks_of_session(&text);
            return Err(if is_of_session { Trouble::NoSession } else { Trouble::Credential });
        }
        let Some(Heard::Error(error)) = known.hear(&text, id.unwrap_or_default()) else {
            return Err(Trouble::Status(status));
        };
        let trouble = Trouble::Rpc(RpcError { status, ..error });
        let is_of_session = era.has_session() && trouble.is_unread() && message::speaks_of_session(&text);
        Err(if is_of_session { Trouble::NoSession } else { trouble })
    }
}

/// The session of what this server asks for itself.
const OWN: &str = "";

/// The result, where a stream is not handed on.
async fn whole(answered: Answered) -> Result<Box<RawValue>, Trouble> {
    match answered {
        Answered::Result(result) => Ok(result),
        Answered::Stream(mut events) => loop {
            match events.next().await? {
                Heard::Result(result) => return Ok(result),
                Heard::Error(error) => return Err(Trouble::Rpc(error)),
                Heard::Note(_) => {}
            }
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::sync::Mutex;

    use svc_core::state::edge::McpCredential;
    use svc_core::value::text::UrlText;
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinSet;

    use super::*;
    use crate::outbound::{SystemResolver, Trust};
    use crate::upstream::{Allowed, Endpoint};

    /// Methods that an MCP server was asked for.
    type Heard = Arc<Mutex<Vec<String>>>;
    /// What ends a session, among them.
    const END: &str = "DELETE ";

    fn count_of(heard: &Heard, method: &str) -> usize {
        heard.lock().unwrap().iter().filter(|it| *it == method).count()
    }

    /// Answers one request, of the era with handshakes and sessions; a list is refused while `fails`.
    async fn answer(mut stream: TcpStream, heard: &Heard, fails: bool) -> std::io::Result<()> {
        let (mut reader, mut length, mut line) = (BufReader::new(&mut stream), 0, String::new());
        while reader.read_line(&mut line).await? > 2 {
            if line.starts_with(END) {
                heard.lock().unwrap().push(END.to_owned());
            }
            if let Some((_, value)) =
                line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).await?;
        let asked: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let method = asked["method"].as_str().unwrap_or_default();
        heard.lock().unwrap().push(method.to_owned());
        let result = match method {
            "initialize" => Some(serde_json::json!({ "protocolVersion": "2025-11-25", "capabilities": {} })),
            "tools/list" if !fails => Some(serde_json::json!({ "tools": [] })),
            _ => None,
        };
        let (status, text) = match result {
            Some(it) => (200, serde_json::json!({ "jsonrpc": "2.0", "id": asked["id"], "result": it }).to_string()),
            None if method.starts_with("notifications/") => (202, String::new()),
            None if method == "tools/list" => (500, String::new()),
            None => (404, String::new()),
        };
        let kind = "content-type: application/json\r\nmcp-session-id: one\r\nconnection: close";
        let text = format!("HTTP/1.1 {status} x\r\n{kind}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        stream.write_all(text.as_bytes()).await
    }

    /// A client, an MCP server that it knows, and what that server hears.
    async fn meet(fails: bool) -> (ToolServers, Arc<Known>, Heard) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let heard = Heard::default();
        let own = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                answer(stream, &own, fails).await.unwrap();
            }
        });
        let times = Times { first_token: SHORT.first_token, idle: SHORT.idle, total: SHORT.total };
        let allowed = Allowed::loopback();
        let resolver = Arc::new(SystemResolver);
        let upstreams = Upstreams::new(&allowed, times, "gate.example.com", None, resolver, Trust::default());
        let endpoint = Endpoint::new(&upstreams, &url, None).unwrap();
        let url = UrlText::parse(&url).unwrap();
        let known = Known::new(upstreams.clone(), url, McpCredential::None, None, endpoint);
        (ToolServers::new(upstreams), Arc::new(known), heard)
    }

    /// How often a server is asked for its list where so many want it anew at once, and one more after them.
    async fn asked(count: usize, fails: bool) -> usize {
        let (servers, known, heard) = meet(fails).await;
        let now = || Timestamp::from_millis(0);
        let mut waiting = JoinSet::new();
        for _ in 0..count {
            let (servers, known) = (servers.clone(), Arc::clone(&known));
            waiting.spawn(async move { servers.anew(&known, now).await.is_err() });
        }
        assert!(waiting.join_all().await.into_iter().all(|it| it == fails));
        assert_eq!(servers.anew(&known, now).await.is_err(), fails);
        count_of(&heard, "tools/list")
    }

    /// A list that was asked for before is none that is asked for anew: who come while one is under way share the next. That there is
    /// none is all of theirs, as each would else wait for the server's time-out behind the others. Whoever comes later asks.
    #[tokio::test]
    async fn who_wait_for_a_list_share_it() {
        for (count, fails, lists) in
            [(0, false, 1), (1, false, 2), (8, false, 3), (0, true, 1), (1, true, 2), (8, true, 2)]
        {
            assert_eq!(asked(count, fails).await, lists, "{count} at once, {fails}");
        }
    }

    /// Calls that come at once in one session of their agent's share one with the server.
    #[tokio::test]
    async fn who_come_at_once_share_a_session() {
        let (servers, known, heard) = meet(false).await;
        let mut coming = JoinSet::new();
        for _ in 0..4 {
            let (servers, known) = (servers.clone(), Arc::clone(&known));
            coming.spawn(async move { servers.era(&known, "a/s").await.unwrap() });
        }
        let eras = coming.join_all().await;
        assert!(eras.iter().all(|it| it.has_session() && it == eras.first().unwrap()));
        assert_eq!((count_of(&heard, "initialize"), count_of(&heard, END)), (1, 0));
    }

    /// A session that is let go of lasts as long as a call runs in it: only then is its server told, once, where it may know it still.
    #[tokio::test]
    async fn a_session_ends_with_the_last_of_its_calls() {
        for is_known in [true, false] {
            let (servers, known, heard) = meet(false).await;
            let era = servers.era(&known, "a/s").await.unwrap();
            let running = era.clone();
            known.end_session("a/s", &era, is_known);
            drop(era);
            assert_ne!(servers.era(&known, "a/s").await.unwrap(), running, "another is begun");
            servers.upstreams.settled().await;
            assert_eq!((count_of(&heard, "initialize"), count_of(&heard, END)), (2, 0));
            drop(running);
            servers.upstreams.settled().await;
            assert_eq!(count_of(&heard, END), usize::from(is_known));
        }
    }
}
