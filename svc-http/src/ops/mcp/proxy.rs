//! Tools of other MCP servers, called through this one: the gate is asked first, and nothing goes on that it does not allow.
//!
//! Each `tools/call` is an action `mcp.call`. An allowed one goes on; what comes back is noted in the session's context before
//! the agent sees it, and settles the action. A call that waits for a person is called again once they have decided: the same
//! agent, session, server, tool and arguments find the action that was approved, once.
//!
//! **Invariant:** nothing is sent to a server for an agent that is stopped, and nothing of the agent's own credential ever.
//! **Invariant:** a tool is called as a person accepted it, or not at all.

mod relay;
mod run;
mod under_way;
mod waiting;

use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use svc_core::answer::Decided;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::mcp_tools::{NoteTools, Over};
use svc_core::rules::edge::proxied::{Reached, reach};
use svc_core::rules::gate::Caller as GateCaller;
use svc_core::rules::gate::use_up::UseUp;
use svc_core::rules::gate::would::is_denied;
use svc_core::rules::gateway::payer::CallKey;
use svc_core::state::edge::{McpTool, McpTools};
use svc_core::state::gate::{Account, Code, Request as ActionRequest, Status, Verb};
use svc_core::state::people::Credential;
use svc_core::value::digest::Digest;
use svc_core::value::id::{ActionId, HoldId};
use svc_core::value::json::{Json, Number};
use svc_core::value::text::SessionId;

use self::run::Run;
use self::under_way::{Name, Named, UnderWay};
use self::waiting::{Sought, Waiting};
use super::{accepted, answered, faulty, message};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::headers::single;
use crate::metrics::ToolEnd;
use crate::ops::gate::Known;
use crate::ops::gateway::Seat;
use crate::ops::{CallOf, GateService};
use crate::tool_server::{Definition, Definitions, Ready, ToolServers, Trouble, arguments_as_looked_at, is_read_alike};
use crate::upstream::Upstreams;
use crate::wire::action_request;
use crate::wire::mcp::{self, Asked, Era, Message, Request, ToolCall};

const SESSION: &str = "x-svc-client-session";
/// Bytes of arguments that the gate is shown as they are.
const INPUT_BYTES_MAX: usize = 64 * 1024;
/// Characters of arguments that the gate is not given which a summary shows: its 500 have names of a tool and a server too.
const HEAD_CHARS: usize = 200;
/// How often a list is asked for anew, or noted, before a call goes on.
const NOTE_TURNS: usize = 8;
/// What a client is told of a server that it reaches through this one.
const INSTRUCTIONS: &str = "Every call of a tool here is asked about first. Where it is refused, read why and do not try to get around it; where a person has to approve it, show them the link and call the tool again with the same arguments once they have.";

/// What calls through this server need.
#[derive(Debug)]
pub(crate) struct Proxied {
    pub(crate) servers: ToolServers,
    waiting: Waiting,
    under_way: Arc<UnderWay>,
}

impl Proxied {
    /// Calls that go out as `upstreams` does.
    #[must_use]
    pub(crate) fn new(upstreams: Upstreams) -> Arc<Self> {
        Arc::new(Self { servers: ToolServers::new(upstreams), waiting: Waiting::default(), under_way: Arc::default() })
    }
}

/// Answers a message to a server behind this one.
///
/// # Errors
/// As the route declares.
pub(super) async fn answer(service: &GateService, known: Known, call: Call) -> Result<Answer, Refusal> {
    let binding = service.gate.binding(&known.digest).map_err(crate::ops::refusal)?;
    let key = CallKey { row: Credential::id_of(&known.digest), binding: binding.ok_or_else(Refusal::invalid_api_key)? };
    // Who asks comes before what they say, and that before whom they say it to.
    GateCaller::of(&key.binding)?;
    service.in_force(&known)?;
    let docs = format!("{}/docs/errors", service.base_url);
    let message = match message(&call, &docs)? {
        Ok(message) => message,
        Err(answer) => return Ok(answer),
    };
    let reached = service.read(|scope| reach(scope, &key, call.param("server")))?;
    let Request { id, era, asked } = match message {
        Message::Request(request) => request,
        Message::Silent => return Ok(accepted()),
        Message::Cancelled(id) => {
            service.proxied.under_way.call_off(&Name::new(&key.binding, &call.headers, reached.server.id, &id));
            return Ok(accepted());
        }
    };
    let place = Place { service, known, key, reached: Arc::new(reached), docs: &docs, call: &call };
    let result = match asked {
        Asked::Initialize(version) => Ok(mcp::initialized(&version, INSTRUCTIONS)),
        Asked::Discover => Ok(mcp::discovered(INSTRUCTIONS)),
        Asked::Ping => Ok(json!({})),
        Asked::List(from) => match place.open().await? {
            Ok(open) => {
                let shown = open.shown(era);
                mcp::listed(shown.iter().map(|it| it.value.clone()), shown.len(), from, era)
            }
            Err(trouble) => return Err(place.unreachable(&trouble)),
        },
        Asked::Call(asked) => match place.called(&id, era, asked).await? {
            Called::Answer(answer) => return Ok(answer),
            Called::Refused(result) => Ok(result),
            Called::Unknown(fault) => Err(fault),
        },
    };
    match result {
        Ok(result) => answered(&mcp::answered(&id, era, result)),
        Err(fault) => faulty(&id, &fault, &call, &docs),
    }
}

/// What came of a call.
enum Called {
    /// The answer to the message.
    Answer(Answer),
    /// A result that says why not.
    Refused(Value),
    /// The message is wrong.
    Unknown(mcp::Fault),
}

/// Whether a call may go on.
enum May {
    /// By this decision, which was used up for it where a person approved it.
    Go(Decided),
    Not(Value),
}

/// The tools of a server and what a person accepted of them.
struct Open {
    definitions: Arc<Definitions>,
    known: Arc<McpTools>,
    reached: Arc<Reached>,
}

impl Open {
    /// The tools that agents see whose clients speak like this: shown by the server's lists, and as they were accepted.
    fn shown(&self, era: Era) -> Vec<&Arc<Definition>> {
        let is_open = |it: &&Arc<Definition>| {
            self.reached.server.tools.shows(&it.name) && self.known.tools.get(&it.name).is_some_and(|it| it.is_open())
        };
        let is_read = |it: &&Arc<Definition>| era == Era::Modern || !it.is_modern;
        self.definitions.iter().filter(is_open).filter(is_read).collect()
    }
}

/// What became of what the same call waited for.
enum Before {
    /// A person approved it, and this call has used that up.
    Approved(Decided),
    /// A person approved it, and the call cannot be sent, so that the approval stands.
    Unready(Refusal),
    /// It waits still, or was denied, which is told once.
    Not(Decided),
    /// Nothing is left to do about it, or there is none.
    Nothing,
}

struct Place<'a> {
    service: &'a GateService,
    known: Known,
    key: CallKey,
    reached: Arc<Reached>,
    docs: &'a str,
    call: &'a Call,
}

impl Place<'_> {
    /// The server's tools as it tells of them now; what it tells otherwise than before is noted first. Another server may have noted
    /// something newer than what is in memory here, so that it is asked again before anything is noted over that.
    ///
    /// # Errors
    /// What went wrong here; within, what went wrong there.
    async fn open(&self) -> Result<Result<Open, Trouble>, Refusal> {
        let Self { service, reached, .. } = self;
        let servers = &service.proxied.servers;
        let mut listed = servers.list(&service.gate, reached).await;
        let (mut known, mut is_new) = (reached.tools.clone(), false);
        for _ in 0..NOTE_TURNS {
            listed = match (listed, &known) {
                (Ok(definitions), Some(known)) if known.reached && tells(known, &definitions) => {
                    return Ok(Ok(Open { definitions, known: Arc::clone(known), reached: Arc::clone(reached) }));
                }
                (Err(trouble), Some(known)) if !known.reached => return Ok(Err(trouble)),
                (Ok(_), Some(_)) if !is_new => {
                    is_new = true;
                    servers.list_anew(&service.gate, reached).await
                }
                (told, _) => {
                    let (workspace, server) = (self.key.binding.workspace, reached.server.id);
                    let found = told.as_ref().ok().map(|it| it.texts());
                    let over = Over::Known(known.as_ref().map(|it| it.hash()));
                    let noted = service.run(NoteTools { workspace, server, found, over, accepted_by: None }).await?;
                    (known, is_new) = (noted.tools, false);
                    told
                }
            };
        }
        // It tells something else each time, here and to others: none of it is known to be what a person accepted.
        Err(Refusal::not_ready())
    }

    fn unreachable(&self, trouble: &Trouble) -> Refusal {
        let name = &self.reached.server.name;
        Refusal::tool_server(
            Kind::ToolServerFailure,
            format!("the MCP server `{name}` gave no answer: {}", trouble.clause()),
        )
    }

    /// Asks about a call and makes it.
    async fn called(&self, id: &Value, era: Era, asked: ToolCall) -> Result<Called, Refusal> {
        let session = self.session()?;
        let name = Name::new(&self.key.binding, &self.call.headers, self.reached.server.id, id);
        let named = self.service.proxied.under_way.begin(name);
        self.service.metrics.may_call_tools(self.reached.server.name.as_str());
        let open = match self.open().await? {
            Ok(open) => open,
            Err(trouble) => {
                self.counted(&trouble);
                return Ok(self.refused(&self.unreachable(&trouble)));
            }
        };
        let tool = open.definitions.get(&asked.name).filter(|it| open.reached.server.tools.shows(&it.name));
        let Some(tool) = tool else { return Ok(Called::Unknown(mcp::unknown_tool(&asked.name))) };
        // Its list may have been long in coming.
        if let Some(changed) = self.changed(tool)? {
            return Ok(self.refused(&changed));
        }
        // Before it is asked about, so that a freeze that comes right after finds it.
        let seat = self.service.running.enter(CallOf::Tool, &self.key);
        let sent = arguments_as_looked_at(&self.call.body, &asked.arguments);
        let ready = if self.is_in_vain(&session, &asked, &sent).await? {
            Err(Trouble::Denied)
        } else {
            self.ready(&session, &named, &seat).await
        };
        // The server may have been long in being met.
        if let Some(changed) = self.changed(tool)? {
            return Ok(self.refused(&changed));
        }
        if let Err(off @ (Trouble::CalledOff | Trouble::Stopping)) = &ready {
            self.counted(off);
            return Ok(self.refused(&self.unsent(off)));
        }
        let decided = match self.may(&session, &asked, &sent, ready.as_ref().err()).await? {
            May::Go(decided) => decided,
            May::Not(result) => return Ok(Called::Refused(result)),
        };
        // A client that hangs up calls it off.
        self.call.ends.set(true);
        let run = Run {
            named,
            gate: self.service.gate.clone(),
            upstreams: self.service.upstreams.clone(),
            proxied: Arc::clone(&self.service.proxied),
            metrics: Arc::clone(&self.service.metrics),
            key: self.key.clone(),
            reached: Arc::clone(&self.reached),
            tool: Arc::clone(tool),
            asked,
            sent,
            session,
            action: decided.id(),
            seat,
            id: id.clone(),
            era,
            docs: self.docs.into(),
            request_id: self.call.request_id.clone(),
            takes_events: takes_events(&self.call.headers),
        };
        run.answer(ready).await.map(Called::Answer)
    }

    /// Whether a session with the server would be begun for a call that is denied as things stand: whoever asks in vain is to have its
    /// server keep none, beside those of others. What a person was asked about is met for, as they may have approved it.
    async fn is_in_vain(&self, session: &SessionId, asked: &ToolCall, sent: &RawValue) -> Result<bool, Refusal> {
        let Self { service, known, reached, .. } = self;
        if service.proxied.servers.is_met(reached, session.as_str()) {
            return Ok(false);
        }
        let (request, same) = (self.request(session, asked, sent)?, self.same(session, asked, sent));
        if !self.waiting(session, &request, &same).await?.is_empty() {
            return Ok(false);
        }
        service.read(|scope| is_denied(scope, &known.caller, &request))
    }

    /// The actions that the same call waits for.
    async fn waiting(
        &self,
        session: &SessionId,
        request: &ActionRequest,
        same: &Digest,
    ) -> Result<Vec<ActionId>, Refusal> {
        let (service, now) = (self.service, self.service.gate.now());
        let (agent, server) = (self.known.caller.agent, self.reached.server.id);
        service.proxied.waiting.recall(service, same, &Sought { agent, session, server, request }, now).await?;
        Ok(service.proxied.waiting.of(agent, same, now))
    }

    /// Makes ready for the call before it is decided: meeting its server takes time, in which what a decision rests on changes, and
    /// a client that calls the call off or hangs up meanwhile has used up nothing and left nothing open.
    async fn ready(&self, session: &SessionId, named: &Named, seat: &Seat) -> Result<Ready, Trouble> {
        let switch = seat.switch();
        self.call.ends.set(true);
        let ready = tokio::select! {
            biased;
            // Whose agent was stopped is told so by what is read next.
            _ = switch.cut_off() => Err(Trouble::Stopping),
            () = named.called_off() => Err(Trouble::CalledOff),
            ready = self.service.proxied.servers.ready(&self.service.gate, &self.reached, session.as_str()) => ready,
        };
        // What is committed from here on is gone through with.
        self.call.ends.set(false);
        ready
    }

    /// Why the tool may not be called as the server stands now, where it may not: what was read before says nothing of now.
    fn changed(&self, tool: &Definition) -> Result<Option<Refusal>, Refusal> {
        let reached = self.service.read(|scope| reach(scope, &self.key, self.reached.server.name.as_str()))?;
        if !is_same(&reached, &self.reached) {
            let changed = "the MCP server was changed while it was called";
            return Ok(Some(Refusal::tool_server(Kind::NotAllowed, changed)));
        }
        let known = reached.tools.as_ref().and_then(|it| it.tools.get(&tool.name));
        if known.is_some_and(|it| it.is_open() && it.accepted.as_ref() == Some(&tool.text)) {
            return Ok(None);
        }
        let why = if McpTool::is_callable(&tool.name) {
            format!("the tool `{}` is not as a person accepted it, and waits until one does", tool.name)
        } else {
            format!("the tool `{}` has a longer name than an action can have", tool.name)
        };
        Ok(Some(Refusal::tool_server(Kind::ToolHeld, why)))
    }

    /// Counts a call that cannot be sent.
    fn counted(&self, trouble: &Trouble) {
        self.service.metrics.tool_called(self.reached.server.name.as_str(), ToolEnd::of(trouble));
    }

    fn refused(&self, refusal: &Refusal) -> Called {
        Called::Refused(mcp::refused(refusal, self.docs))
    }

    /// What a call is told that was given up before it was sent.
    fn unsent(&self, trouble: &Trouble) -> Refusal {
        let (name, clause) = (&self.reached.server.name, trouble.clause());
        let why = format!("the MCP server `{name}` was not asked, and the tool has not run: {clause}");
        Refusal::tool_server(Kind::ToolServerFailure, why)
    }

    /// Whether the call may go on, by the gate: as an action of its own, or as the one that a person has approved for it.
    /// `trouble` is why it cannot be sent, where it cannot.
    async fn may(
        &self,
        session: &SessionId,
        asked: &ToolCall,
        sent: &RawValue,
        trouble: Option<&Trouble>,
    ) -> Result<May, Refusal> {
        let Self { service, known, .. } = self;
        let same = self.same(session, asked, sent);
        let request = self.request(session, asked, sent)?;
        let waiting = self.waiting(session, &request, &same).await?;
        let decided = match self.before(&same, waiting, trouble).await? {
            Before::Approved(decided) => return Ok(May::Go(decided)),
            Before::Unready(refusal) => return Ok(May::Not(mcp::refused(&refusal, self.docs))),
            Before::Not(decided) => decided,
            Before::Nothing => {
                let decided = service.decide(known, request).await?;
                if may_run(&decided) {
                    return Ok(May::Go(decided));
                }
                if decided.verb() == Verb::Ask {
                    let (agent, now) = (known.caller.agent, service.gate.now());
                    service.proxied.waiting.put(agent, same, decided.id(), now);
                }
                decided
            }
        };
        if was_stopped(&decided) {
            let stopped = service.read(|scope| reach(scope, &self.key, self.reached.server.name.as_str()).map(drop));
            return Err(stopped.err().unwrap_or_else(|| Refusal::agent_stopped(known.caller.agent, None::<HoldId>)));
        }
        Ok(May::Not(refused(&decided, &self.service.base_url)?))
    }

    /// What became of the actions that the same call waits for. Each is remembered until it is known to be over:
    /// whatever goes wrong on the way here, what a person has approved is found the next time.
    async fn before(
        &self,
        same: &Digest,
        actions: Vec<ActionId>,
        trouble: Option<&Trouble>,
    ) -> Result<Before, Refusal> {
        let Self { service, known, .. } = self;
        let forget = |action| service.proxied.waiting.forget(known.caller.agent, same, action);
        let mut told = None;
        for action in actions {
            let decided = match service.action(known, action).await {
                Ok(decided) => decided,
                Err(refusal) if refusal.kind() == Kind::NotFound => {
                    forget(action);
                    continue;
                }
                Err(refusal) => return Err(refusal),
            };
            if may_run(&decided) {
                if let Some(trouble) = trouble {
                    self.counted(trouble);
                    return Ok(Before::Unready(self.unreachable(trouble)));
                }
                // What a person approved is used up by the call like by anybody else who is shown the receipt: once,
                // wherever. Nothing gives that back, so that nothing is used up for a call that cannot be sent.
                let is_ours = self.use_up(&decided).await?;
                forget(action);
                if is_ours {
                    return Ok(Before::Approved(decided));
                }
            } else if is_over(&decided) {
                forget(action);
            } else if told.is_none() {
                told = Some(decided);
            }
        }
        let Some(decided) = told else { return Ok(Before::Nothing) };
        if decided.verb() != Verb::Ask {
            forget(decided.id());
        }
        Ok(Before::Not(decided))
    }

    /// Uses up the receipt of an action, in one commit that finds it unused, unexpired, forbidden by nothing and its agent not
    /// stopped since. What was approved of a server that had another name or address then is none of this one's.
    async fn use_up(&self, decided: &Decided) -> Result<bool, Refusal> {
        let action = decided.action();
        if action.created_at() < self.reached.server.since() {
            return Ok(false);
        }
        let body = Digest::of("a proxied call");
        Ok(self.service.run(UseUp { action: action.id, digest: action.digest, body }).await?.is_valid())
    }

    /// What makes two calls the same one.
    fn same(&self, session: &SessionId, asked: &ToolCall, sent: &RawValue) -> Digest {
        let (agent, server) = (self.known.caller.agent.to_string(), self.reached.server.id.to_string());
        let parts = [&*agent, session.as_str(), &*server, &*asked.name, sent.get()];
        Digest::of(parts.map(|it| format!("{}:{it}", it.len())).concat())
    }

    /// The action that the gate is asked about: what goes on, or where that is long or readers differ about it, its digest.
    fn request(&self, session: &SessionId, asked: &ToolCall, sent: &RawValue) -> Result<ActionRequest, Refusal> {
        let server = &self.reached.server.name;
        let text = |it: &str| Json::Text(it.to_owned());
        let object = |members: Vec<(&str, Json)>| {
            Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        };
        let mut tool = vec![("name", text(&asked.name)), ("server", text(server.as_str()))];
        let whole = sent.get();
        let mut summary = format!("Call {} of the MCP server {server}", asked.name);
        if whole.len() <= INPUT_BYTES_MAX && is_read_alike(&asked.arguments, sent) {
            tool.push(("input", asked.arguments.clone()));
        } else {
            let bytes = i64::try_from(whole.len()).unwrap_or(i64::MAX);
            tool.push(("inputBytes", Json::Number(Number::Int(bytes))));
            tool.push(("inputDigest", text(&format!("sha256:{}", Digest::of(whole)))));
            // The gate keeps none of it, and whoever decides is to see what it can.
            summary.push_str(&format!(" with {bytes} bytes that begin: {}", head(whole)));
        }
        let action = object(vec![
            ("type", text("mcp.call")),
            ("summary", text(&summary)),
            ("tool", object(tool)),
            ("session", object(vec![("id", text(session.as_str()))])),
        ]);
        // MCP has no place for an agent's own account: this server gives its own, which is what it has seen.
        Ok(action_request::of_json(&action, None)?.by_account_of(Account::Gate))
    }

    /// The session of the call: as the client names it, else its connection or its key.
    fn session(&self) -> Result<SessionId, Refusal> {
        let binding = &self.key.binding;
        let sent = single(&self.call.headers, &HeaderName::from_static(SESSION))?;
        let (text, field) = match (sent, binding.connection) {
            (Some(it), _) => (it.to_str().unwrap_or_default().trim().to_owned(), SESSION),
            (None, Some(connection)) => (connection.to_string(), "authorization"),
            (None, None) => (binding.key.to_string(), "authorization"),
        };
        SessionId::parse(&text).map_err(|why| Refusal::invalid_field(field, why.to_string()))
    }
}

/// As much of arguments as a summary has room for: without signs that it may not have, and without space between what they say.
fn head(arguments: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let mut said = arguments.chars().filter(|it| {
        let counts = is_text || !it.is_ascii_whitespace();
        match it {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_text = !is_text,
            _ => {}
        }
        counts && !it.is_control()
    });
    let mut head: String = said.by_ref().take(HEAD_CHARS).collect();
    if said.next().is_some() {
        head.push('…');
    }
    head
}

/// Whether a decision lets the call be made: allowed, and with its receipt still good.
fn may_run(decided: &Decided) -> bool {
    (decided.verb(), decided.status()) == (Verb::Allow, Status::Allowed) && decided.receipt().is_some()
}

/// Whether the agent was stopped before or after the decision.
fn was_stopped(decided: &Decided) -> bool {
    decided.reasons().iter().any(|it| it.code == Code::AgentFrozen)
}

/// Whether nothing is left to do about an action that waited: it has run, has lapsed or was too late, or its agent was stopped
/// meanwhile, which says nothing of how the agent stands now.
fn is_over(decided: &Decided) -> bool {
    let is_done = decided.verb() == Verb::Allow && !may_run(decided);
    decided.status() == Status::Expired || is_done || was_stopped(decided)
}

/// Whether a client takes a stream of events.
fn takes_events(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(http::header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let kinds = accept.flat_map(|it| it.split(',')).filter_map(|it| it.split(';').next()).map(str::trim);
    kinds.into_iter().any(|it| it.eq_ignore_ascii_case("text/event-stream") || it == "*/*")
}

/// Whether a server is still the one that it was, shown the same.
fn is_same(now: &Reached, before: &Reached) -> bool {
    now.server == before.server && now.secret == before.secret
}

/// Whether a server tells what it told before.
fn tells(known: &McpTools, now: &Definitions) -> bool {
    let seen = known.tools.iter().filter_map(|(name, it)| it.seen.as_ref().map(|text| (name, text)));
    seen.eq(now.iter().map(|it| (&it.name, &it.text)))
}

/// A decision that is no allow, as a result: why, and what to do.
fn refused(decided: &Decided, base_url: &str) -> Result<Value, Refusal> {
    let whole: Value =
        serde_json::from_slice(&crate::wire::decision::write(decided)?).map_err(|_| Refusal::internal())?;
    let reasons = whole.get("reasons").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let why: Vec<&str> = reasons.iter().filter_map(|it| it.get("message").and_then(Value::as_str)).collect();
    let why = if why.is_empty() { "no reason was given".to_owned() } else { why.join("; ") };
    // On one line: what follows is told a line each.
    let note = whole.pointer("/approval/note").and_then(Value::as_str).unwrap_or_default();
    let note = note.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = if note.is_empty() { note } else { format!("; their note: {note}") };
    let (said, fix) = match decided.url() {
        Some(url) if decided.verb() == Verb::Ask => (
            format!("approval_required: a person has to approve this call: {why}\nlink: {url}"),
            "Show the person the link; once they have approved it, call the tool again with the same arguments.",
        ),
        _ => (
            format!("denied: {why}{note}"),
            "Do not call the tool like this again. Tell the person why; whoever manages this agent can change the rules.",
        ),
    };
    let text = format!("{said}\naction: {}\nfix: {fix}\ndocs: {base_url}/docs", decided.id());
    Ok(json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
        "_meta": { "svc/decision": whole },
    }))
}
