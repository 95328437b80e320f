//! Providers, models, classes, profiles and routing; what the router would choose; the lists of models.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use svc_core::refusal::{FieldError, Refusal};
use svc_core::rules::gateway::models::Place as ModelPlace;
use svc_core::rules::gateway::payer::{CallKey, principal_of};
use svc_core::rules::gateway::routing::{Edit, EditRouting, Edited, read_models, read_routing, routing_of};
use svc_core::rules::gateway::show::{prefers_cheaper, yields_of};
use svc_core::rules::gateway::upstreams::{NewKey, SealedHeader, Set};
use svc_core::rules::people::by::By;
use svc_core::rules::people::named::Named;
use svc_core::rules::people::taken::NewName;
use svc_core::state::gateway::route::{Ask, choose};
use svc_core::state::gateway::{Model, Payer, Profile, Routing, TaskClass, Upstream, UpstreamKey};
use svc_core::state::people::Credential;
use svc_core::store::Row as _;
use svc_core::value::Id as _;
use svc_core::value::digest::Digest;
use svc_core::value::id::{KeyId, PrincipalId, ProfileId, UpstreamId, WorkspaceId};
use svc_core::value::json::Json;
use svc_core::value::secret::Secret;
use svc_core::value::text::ClassId;
use tokio::time::timeout;

use super::gateway::targets::opened;
use super::own_secret::OWN_SECRET;
use super::{Caller, GateService, log, refusal};
use crate::answer::{Answer, error_body};
use crate::dispatch::Call;
use crate::routes::{RoutingOp, Shape};
use crate::secrets::hint;
use crate::upstream::{Call as Asked, Target, What, is_credential};
use crate::wire::named::{Names, aliases_of};
use crate::wire::nothing;
use crate::wire::page::Query;
use crate::wire::routing::{self as wire, list, model, policy, preview, upstream};

/// How long a provider is waited for that is tried out.
const TEST_TIME: Duration = Duration::from_secs(10);

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: RoutingOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    let place = Place { service, by, workspace };
    match op {
        RoutingOp::Upstreams | RoutingOp::AdminUpstreams => {
            let named = |it: &Upstream| (it.id.to_string(), place.shown(it));
            place.list(call, "upstreams", Place::read, |it| it.upstreams.iter().map(named).collect())
        }
        RoutingOp::CreateUpstream => place.create_upstream(call).await,
        RoutingOp::Upstream => {
            let (routing, id) = (place.read()?, call.param_id("ups")?);
            written(&place.upstream(&routing, Some(id))?)
        }
        RoutingOp::ChangeUpstream => place.change_upstream(call).await,
        RoutingOp::TestUpstream => place.test_upstream(call).await,
        RoutingOp::RemoveUpstream => place.remove(Edit::RemoveUpstream(call.param_id("ups")?)).await,
        RoutingOp::Models | RoutingOp::CreateModel | RoutingOp::Model => place.models(op, call).await,
        RoutingOp::ChangeModel | RoutingOp::RemoveModel => place.models(op, call).await,
        RoutingOp::Classes | RoutingOp::CreateClass | RoutingOp::Class => place.classes(op, call).await,
        RoutingOp::ChangeClass | RoutingOp::RemoveClass => place.classes(op, call).await,
        RoutingOp::Profiles | RoutingOp::CreateProfile | RoutingOp::Profile => place.profiles(op, call).await,
        RoutingOp::ChangeProfile | RoutingOp::RemoveProfile => place.profiles(op, call).await,
        RoutingOp::Get => written(&wire::write(&*place.read()?)),
        RoutingOp::Put => {
            let set = wire::read(&call.body).map_err(|it| place.and_named(call, wire::IDS, it))?;
            let edited = place.edit(Edit::Change(set)).await?;
            written(&wire::write(&edited.routing))
        }
        RoutingOp::ConsolePreview | RoutingOp::Preview => place.preview(call),
        RoutingOp::ChatModels => written(&list::chat(&*place.routing()?)),
        RoutingOp::MessagesModels => written(&list::messages(&*place.routing()?, &call.uri)?),
    }
}

/// Whose workspace it is about, and who asks.
struct Place<'a> {
    service: &'a GateService,
    by: By,
    workspace: WorkspaceId,
}

impl Place<'_> {
    /// What the workspace routes by, as whoever asks may read it.
    fn read(&self) -> Result<Arc<Routing>, Refusal> {
        self.service.read(|scope| read_routing(scope, &self.by, self.workspace))
    }

    /// The same, where no more than its models is shown.
    fn read_models(&self) -> Result<Arc<Routing>, Refusal> {
        self.service.read(|scope| read_models(scope, &self.by, self.workspace))
    }

    /// The same, for whoever calls models.
    fn routing(&self) -> Result<Arc<Routing>, Refusal> {
        self.service.read(|scope| routing_of(scope, self.workspace))
    }

    async fn edit(&self, edit: Edit) -> Result<Edited, Refusal> {
        self.service.run(EditRouting { by: self.by.clone(), workspace: self.workspace, edit }).await
    }

    async fn remove(&self, edit: Edit) -> Result<Answer, Refusal> {
        self.edit(edit).await.map(|_| Answer::empty())
    }

    /// A part of a list, the newest first, of items each with its name. They have no rows of their own: a cursor says which
    /// item was the last and how many are older ([`place`]), so that one that is removed meanwhile has none shown twice.
    fn list(
        &self,
        call: &Call,
        name: &str,
        read: impl Fn(&Self) -> Result<Arc<Routing>, Refusal>,
        all: impl Fn(&Routing) -> Vec<(String, Value)>,
    ) -> Result<Answer, Refusal> {
        let mut query = Query::among(&call.uri, call.route.query);
        let page = query.page(name, self.workspace);
        query.finish()?;
        let all = all(&*read(self)?);
        let left = page.after.map_or(all.len(), |(order, _)| older(&all, order));
        let shown: Vec<&(String, Value)> = all.iter().take(left).rev().take(page.limit).collect();
        let rest = left.saturating_sub(shown.len());
        let last = shown.last().filter(|_| rest > 0);
        let next = last.map(|(name, _)| page.cursor(place(name, rest), Routing::key(self.workspace)));
        page.list(shown.into_iter().map(|(_, it)| it.clone()).collect(), next).map(Answer::json)
    }

    fn shown(&self, it: &Upstream) -> Value {
        let seen = self.service.health.snapshot(self.service.gate.now());
        upstream::write(it, seen.of_upstream(it.id), self.service.health.last_error(it.id).as_deref())
    }

    fn upstream(&self, routing: &Routing, id: Option<UpstreamId>) -> Result<Value, Refusal> {
        let found = id.and_then(|it| routing.upstream(it)).ok_or_else(Refusal::not_found)?;
        Ok(self.shown(found))
    }

    async fn create_upstream(&self, call: &Call) -> Result<Answer, Refusal> {
        let read = upstream::read(&call.body, true, |url| self.service.upstreams.judge(url));
        let set = read.and_then(|it| self.upstream_settings(it));
        let set = set.map_err(|it| self.and_named(call, upstream::IDS, it))?;
        let edited = self.edit(Edit::CreateUpstream(set)).await?;
        written(&self.upstream(&edited.routing, edited.upstream)?).map(Answer::created)
    }

    async fn change_upstream(&self, call: &Call) -> Result<Answer, Refusal> {
        let (read, id) =
            (upstream::read(&call.body, false, |url| self.service.upstreams.judge(url)), call.param_id("ups"));
        let own = |it: &Routing| Some(NewName::Upstream(it.upstream(*id.as_ref().ok()?)?.name.clone()));
        let set = read.and_then(|it| self.upstream_settings(it));
        let mut set = set.map_err(|it| self.and_but_own(call, upstream::IDS, own, it))?;
        let id: UpstreamId = id?;
        let may_mend = set.iter().any(mends);
        set.push(Set::Seal(self.seal_clear(id)?));
        let edited = self.edit(Edit::ChangeUpstream(id, set)).await?;
        if may_mend {
            self.service.health.put_right(id);
        }
        written(&self.upstream(&edited.routing, Some(id))?)
    }

    /// Asks a provider which models it has.
    async fn test_upstream(&self, call: &Call) -> Result<Answer, Refusal> {
        nothing(&call.body)?;
        let id: UpstreamId = call.param_id("ups")?;
        // At one moment: a key goes nowhere but where it was stored for.
        let (upstream, key) = self.service.read(|scope| {
            scope.want(&[Routing::key(self.workspace), UpstreamKey::key(id)])?;
            let routing = read_routing(scope, &self.by, self.workspace)?;
            let upstream = routing.upstream(id).cloned().ok_or_else(Refusal::not_found)?;
            Ok((upstream, scope.get::<UpstreamKey>(id)?))
        })?;
        let started = Instant::now();
        let failed = self.try_out(&upstream, key.as_deref()).await.err();
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut said = json!({ "ok": failed.is_none(), "latencyMs": ms });
        if let (Some(error), Some(members)) = (failed, said.as_object_mut()) {
            members.insert("error".to_owned(), json!(error));
        }
        written(&said)
    }

    /// One short call; what went wrong is a clause without secrets.
    async fn try_out(&self, upstream: &Upstream, key: Option<&UpstreamKey>) -> Result<(), String> {
        let credentials = opened(&self.service.gate, key).map_err(|failure| {
            log(&failure);
            "the key cannot be opened".to_owned()
        })?;
        let caller = &self.service.upstreams;
        let target = Target::of(caller, upstream, credentials).map_err(|it| it.to_string())?;
        let asked = Asked { what: What::Models, body: Bytes::new(), stream: false, query: None, headers: &[] };
        match timeout(TEST_TIME, caller.send(&target, &asked)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(failed)) => Err(failed.error()),
            Err(_) => Err(format!("no answer within {} seconds", TEST_TIME.as_secs())),
        }
    }

    /// What is set of a provider, its credentials sealed.
    fn upstream_settings(&self, sent: upstream::Sent) -> Result<Vec<Set>, Refusal> {
        let mut set = sent.set;
        self.are_of_others(sent.key.as_ref(), sent.credentials.as_ref(), &set)?;
        if let Some(key) = sent.key {
            set.push(Set::Key(self.sealed(key.expose())?));
        }
        if let Some(headers) = sent.credentials {
            let sealed = headers.into_iter().map(|(name, it)| {
                let header = match it {
                    upstream::Credential::New(value) => SealedHeader::New(self.sealed(value.expose())?),
                    upstream::Credential::Shown(hint) => SealedHeader::Stored { hint },
                };
                Ok((name, header))
            });
            set.push(Set::SealedHeaders(sealed.collect::<Result<_, Refusal>>()?));
        }
        Ok(set)
    }

    /// That none of these is a secret of this server's own, with which whoever runs the provider could come here.
    fn are_of_others(
        &self,
        key: Option<&Secret<String>>,
        headers: Option<&BTreeMap<Box<str>, upstream::Credential>>,
        set: &[Set],
    ) -> Result<(), Refusal> {
        let of_headers = headers.into_iter().flatten().filter_map(|(name, it)| match it {
            upstream::Credential::New(value) => Some((format!("headers.{name}"), value.expose().as_str())),
            upstream::Credential::Shown(_) => None,
        });
        // What carries no credential by its name may well be one of this server's.
        let clear = set.iter().filter_map(|it| if let Set::Headers(it) = it { Some(it) } else { None }).flatten();
        let of_clear = clear.map(|(name, value)| (format!("headers.{name}"), &**value));
        let key = key.into_iter().map(|it| ("apiKey".to_owned(), it.expose().as_str()));
        let mut faults = Vec::new();
        for (field, secret) in key.chain(of_headers).chain(of_clear) {
            if self.service.holds_own_secret(secret)? {
                faults.push(FieldError::new(field, OWN_SECRET));
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(Refusal::invalid_upstream(faults)) }
    }

    /// Headers of a provider that stand in clear and carry a credential, sealed: a store of before may hold such.
    fn seal_clear(&self, id: UpstreamId) -> Result<BTreeMap<Box<str>, NewKey>, Refusal> {
        let routing = self.routing()?;
        let headers = routing.upstream(id).into_iter().flat_map(|it| &it.headers);
        let clear = headers.filter(|(name, value)| is_credential(name, value));
        clear.map(|(name, value)| Ok((name.clone(), self.sealed(value)?))).collect()
    }

    fn sealed(&self, text: &str) -> Result<NewKey, Refusal> {
        let sealed = self.service.gate.seal(&UpstreamKey::purpose(self.workspace), text.as_bytes()).map_err(refusal)?;
        Ok(NewKey { sealed: sealed.into(), hint: hint(text) })
    }

    async fn models(&self, op: RoutingOp, call: &Call) -> Result<Answer, Refusal> {
        let of = || -> Result<ModelPlace, Refusal> {
            let part = |name: &str| decoded(call.param(name));
            Ok(ModelPlace { provider: part("provider")?, model: part("model")? })
        };
        let shown = |routing: &Routing, at: &ModelPlace| {
            let (found, upstream) = routing.model(&at.provider, &at.model).ok_or_else(Refusal::not_found)?;
            written(&model::write(found, upstream))
        };
        match op {
            RoutingOp::Models => self.list(call, "models", Self::read_models, |routing| {
                let all = routing.models.iter();
                let name = |it: &Model| format!("{} {}", it.upstream, it.name);
                all.filter_map(|it| Some((name(it), model::write(it, routing.upstream(it.upstream)?)))).collect()
            }),
            RoutingOp::CreateModel => {
                let new = model::read_new(&call.body).map_err(|it| self.and_named(call, model::IDS, it))?;
                let (upstream, name) = (new.upstream, new.name.clone());
                let routing = self.edit(Edit::CreateModel(new)).await?.routing;
                let provider = routing.upstream(upstream).ok_or_else(Refusal::internal)?.name.as_str();
                shown(&routing, &ModelPlace { provider: provider.into(), model: name.as_str().into() })
                    .map(Answer::created)
            }
            RoutingOp::ChangeModel => {
                let (read, at) = (model::read_change(&call.body), of());
                let set = read.map_err(|it| self.and_classes(call, at.as_ref().ok(), it))?;
                let at = at?;
                let routing = self.edit(Edit::ChangeModel(at.clone(), set)).await?.routing;
                shown(&routing, &at)
            }
            RoutingOp::RemoveModel => self.remove(Edit::RemoveModel(of()?)).await,
            _ => shown(&*self.read_models()?, &of()?),
        }
    }

    fn and_named(&self, call: &Call, ids: &[(&str, Names)], refusal: Refusal) -> Refusal {
        self.service.and_named(self.workspace, &call.body, ids, refusal)
    }

    /// The same of a change, which may name again what its thing is called: `own`, by what the workspace routes by.
    fn and_but_own(
        &self,
        call: &Call,
        ids: &[(&str, Names)],
        own: impl FnOnce(&Routing) -> Option<NewName>,
        refusal: Refusal,
    ) -> Refusal {
        let own = self.routing().ok().and_then(|it| own(&it));
        let stands: Vec<_> = own.into_iter().map(|it| ("name".to_owned(), Named::New(it))).collect();
        self.service.and_named_anew(self.workspace, &call.body, ids, &stands, refusal)
    }

    /// The refusal of a malformed change of the model `at`, with the classes that it names anew and that are not there, and with further
    /// names that others have.
    fn and_classes(&self, call: &Call, at: Option<&ModelPlace>, refusal: Refusal) -> Refusal {
        let routing = self.routing().ok();
        let model = routing.as_ref().zip(at).and_then(|(routing, at)| routing.model(&at.provider, &at.model));
        let classes = model.into_iter().flat_map(|(model, _)| model.quality.by_class.keys());
        let stands = classes.map(|it| (format!("quality.{it}"), Named::TaskClass(it.clone()))).collect::<Vec<_>>();
        let refusal = self.service.and_named_anew(self.workspace, &call.body, model::CHANGED_IDS, &stands, refusal);
        let sent = Json::parse(&call.body).ok();
        let aliases = model.zip(sent).and_then(|((it, _), sent)| aliases_of(&sent, it.upstream, Some(&it.name)));
        let aliases = aliases.into_iter().map(|it| ("aliases".to_owned(), Named::New(it))).collect();
        self.service.and_these(self.workspace, aliases, refusal)
    }

    async fn classes(&self, op: RoutingOp, call: &Call) -> Result<Answer, Refusal> {
        let of = || {
            let id = decoded(call.param("class"))?;
            ClassId::parse(&id).map_err(|_| Refusal::not_found())
        };
        let shown = |routing: &Routing, id: &ClassId| {
            let found = routing.class(id).ok_or_else(Refusal::not_found)?;
            written(&policy::write_class(found))
        };
        match op {
            RoutingOp::Classes => {
                let named = |it: &TaskClass| (it.id.to_string(), policy::write_class(it));
                self.list(call, "task-classes", Self::read, |it| it.classes.iter().map(named).collect())
            }
            RoutingOp::CreateClass => {
                let (id, set) =
                    policy::read_new_class(&call.body).map_err(|it| self.and_named(call, policy::CLASS_IDS, it))?;
                let routing = self.edit(Edit::CreateClass(id.clone(), set)).await?.routing;
                shown(&routing, &id).map(Answer::created)
            }
            RoutingOp::ChangeClass => {
                let set = policy::read_class(&call.body).map_err(|it| self.and_named(call, policy::IDS, it))?;
                let id = of()?;
                let routing = self.edit(Edit::ChangeClass(id.clone(), set)).await?.routing;
                shown(&routing, &id)
            }
            RoutingOp::RemoveClass => self.remove(Edit::RemoveClass(of()?)).await,
            _ => shown(&*self.read()?, &of()?),
        }
    }

    async fn profiles(&self, op: RoutingOp, call: &Call) -> Result<Answer, Refusal> {
        let of = || call.param_id::<ProfileId>("profile");
        let shown = |routing: &Routing, id: ProfileId| {
            let found = routing.profile(id).ok_or_else(Refusal::not_found)?;
            written(&policy::write_profile(found))
        };
        match op {
            RoutingOp::Profiles => {
                let named = |it: &Profile| (it.id.to_string(), policy::write_profile(it));
                self.list(call, "policy-profiles", Self::read, |it| it.profiles.iter().map(named).collect())
            }
            RoutingOp::CreateProfile => {
                let set = policy::read_profile(&call.body, true)
                    .map_err(|it| self.and_named(call, policy::PROFILE_IDS, it))?;
                let edited = self.edit(Edit::CreateProfile(set)).await?;
                let id = edited.profile.ok_or_else(Refusal::internal)?;
                shown(&edited.routing, id).map(Answer::created)
            }
            RoutingOp::ChangeProfile => {
                let (read, id) = (policy::read_profile(&call.body, false), of());
                let own = |it: &Routing| Some(NewName::Profile(it.profile(*id.as_ref().ok()?)?.name.clone()));
                let set = read.map_err(|it| self.and_but_own(call, policy::PROFILE_IDS, own, it))?;
                let id = id?;
                let routing = self.edit(Edit::ChangeProfile(id, set)).await?.routing;
                shown(&routing, id)
            }
            RoutingOp::RemoveProfile => self.remove(Edit::RemoveProfile(of()?)).await,
            _ => shown(&*self.read()?, of()?),
        }
    }

    /// What the router would choose. Where no model qualifies it says so with 409 and the error beside.
    fn preview(&self, call: &Call) -> Result<Answer, Refusal> {
        let oversight = call.headers.get("x-svc-human-oversight").map(http::HeaderValue::as_bytes);
        let asked = preview::read(&call.body, oversight)?;
        let (routing, key) = self.as_caller()?;
        let binding = key.as_ref().map(|it| &it.binding);
        let profile = binding.and_then(|it| it.profile).and_then(|it| routing.profile(it));
        let class = routing.class_for(asked.class.as_deref(), binding.map(|it| &**it))?;
        let health = self.service.health.snapshot(self.service.gate.now());
        let yields = self.service.read(|scope| yields_of(scope, self.workspace))?;
        let payer = self.payer(key.as_ref(), class)?;
        let downgrade = self.service.read(|scope| prefers_cheaper(scope, self.workspace, &payer))?;
        let ask = Ask {
            routing: &routing,
            demand: &asked.demand,
            input_tokens: Some(asked.input_tokens),
            model: asked.model.as_deref(),
            class,
            profile,
            mode: routing.mode_for(profile),
            objective: asked.objective,
            oversight: asked.oversight,
            downgrade,
            takes: svc_core::dialect::takes,
            health: &health,
            yields: &yields,
        };
        let choice = choose(&ask).map_err(|why| why.refusal(ask.model.unwrap_or_default()))?;
        let mut said = preview::write(&choice, class.map(|it| it.id.as_str()));
        let Some(refusal) = choice.refusal() else { return written(&said) };
        let docs = format!("{}/docs/errors", self.service.base_url);
        let request_id = call.request_id.to_str().unwrap_or_default();
        let error = error_body(&refusal, Shape::Plain, request_id, &docs);
        let error: Value = serde_json::from_slice(&error).map_err(|_| Refusal::internal())?;
        if let (Some(members), Value::Object(error)) = (said.as_object_mut(), error) {
            members.extend(error);
        }
        Ok(written(&said)?.with_status(StatusCode::CONFLICT))
    }

    /// What the workspace routes by, and the key where it is one that asks.
    fn as_caller(&self) -> Result<(Arc<Routing>, Option<CallKey>), Refusal> {
        match &self.by {
            By::Key(key) => self.service.read(|scope| {
                let routing = routing_of(scope, self.workspace)?;
                let binding = scope.get::<Credential>(key.row)?.map(|it| Arc::new(it.binding.clone()));
                Ok((routing, binding.map(|binding| CallKey { row: key.row, binding })))
            }),
            By::Program | By::Person(_) | By::Token(_) => Ok((self.read()?, None)),
        }
    }

    /// Who would pay for a call that is asked about. A person asks without a key: of budgets, their own cover it, the class's,
    /// and the workspace's.
    fn payer(&self, key: Option<&CallKey>, class: Option<&TaskClass>) -> Result<Payer, Refusal> {
        let class = class.map(|it| it.id.clone());
        if let Some(key) = key {
            let principal = self.service.read(|scope| principal_of(scope, key))?;
            return Ok(key.payer(principal, class));
        }
        let principal = match &self.by {
            By::Person(it) => it.principal,
            By::Program | By::Key(_) | By::Token(_) => PrincipalId::from_bits(0),
        };
        Ok(Payer { key: KeyId::from_bits(0), agent: None, principal, team: None, class })
    }
}

/// Whether a provider that failed may be right after this change.
const fn mends(set: &Set) -> bool {
    match set {
        Set::Kind(_) | Set::BaseUrl(_) | Set::Key(_) | Set::Headers(_) | Set::SealedHeaders(_) | Set::Enabled(_) => {
            true
        }
        Set::Name(_) | Set::Seal(_) | Set::Jurisdiction(_) | Set::Region(_) | Set::Timeouts(_) => false,
    }
}

/// Where a list of a workspace's routing is to go on behind the item with this name, which so many older ones follow.
fn place(name: &str, older: usize) -> u128 {
    (u128::from(mark(name)) << 64) | older as u128
}

/// How many items are older than the one that a [`place`] names: where it was removed meanwhile, as many as there were then.
fn older(all: &[(String, Value)], place: u128) -> usize {
    let known = all.iter().position(|(name, _)| u128::from(mark(name)) == place >> 64);
    known.unwrap_or_else(|| usize::try_from(place & u128::from(u64::MAX)).unwrap_or(usize::MAX).min(all.len()))
}

fn mark(name: &str) -> u64 {
    Digest::of(name).as_bytes().first_chunk().map_or(0, |it| u64::from_be_bytes(*it))
}

/// A part of a path as it was meant.
fn decoded(part: &str) -> Result<Box<str>, Refusal> {
    let text: Cow<'_, str> = percent_decode_str(part).decode_utf8().map_err(|_| Refusal::not_found())?;
    Ok(text.into())
}

fn written(value: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(value).map(Answer::json).map_err(|_| Refusal::internal())
}
