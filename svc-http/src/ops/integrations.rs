//! Integrations and the calls to the outside that were made over them.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::edge::deliver::{self, RetryDelivery};
use svc_core::rules::edge::integrations::{
    self as rules, ChangeIntegration, CreateIntegration, NewSecret, RemoveIntegration, RotateIntegration,
    TestIntegration,
};
use svc_core::rules::people::by::By;
use svc_core::rules::people::named::Named;
use svc_core::state::edge::{
    ConfigChange, Integration, IntegrationKind, IntegrationSlot, Job, JobState, LinkedMember, SealedSecret,
};
use svc_core::store::{Range, Row as _};
use svc_core::value::Id as _;
use svc_core::value::id::{DeliveryId, IntegrationId, WorkspaceId};
use svc_core::value::link::Index;
use svc_core::value::secret::Secret;
use svc_store::Gate;

use super::aside::{Asker, Awaited};
use super::own_secret::OWN_SECRET;
use super::{Caller, GateService, log, refusal};
use crate::answer::Answer;
use crate::callback_secret;
use crate::dispatch::Call;
use crate::routes::IntegrationsOp;
use crate::secrets::hint;
use crate::wire::integration as wire;
use crate::wire::named::Names;
use crate::wire::nothing;
use crate::wire::page::{Page, Query};

/// Rows that one look at the deliveries takes.
const LOOK: usize = 500;
/// Looks at the deliveries for one page: a filter that finds little gives a short page and a cursor to go on from.
const LOOKS_MAX: usize = 20;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: IntegrationsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    let place = Place { service, by, workspace };
    match op {
        IntegrationsOp::List => place.list(call),
        IntegrationsOp::Create => place.create(call).await,
        IntegrationsOp::Get => place.shown(&*place.find(call)?, None).map(Answer::json),
        IntegrationsOp::Change => place.change(call).await,
        IntegrationsOp::Remove => place.remove(call).await,
        IntegrationsOp::Rotate => place.rotate(call).await,
        IntegrationsOp::Test => place.test(call).await,
        IntegrationsOp::Deliveries => place.deliveries(call).await,
        IntegrationsOp::Delivery => place.delivery(call),
        IntegrationsOp::Retry => place.retry(call).await,
    }
}

/// Whose workspace it is about, and who asks.
struct Place<'a> {
    service: &'a GateService,
    by: By,
    workspace: WorkspaceId,
}

impl Place<'_> {
    fn guards(&self) -> wire::Guards<'_> {
        wire::Guards { receivers: &self.service.outbound, providers: &self.service.strangers }
    }

    fn list(&self, call: &Call) -> Result<Answer, Refusal> {
        let mut query = Query::among(&call.uri, call.route.query);
        let page = query.page("integrations", self.workspace);
        query.finish()?;
        let all = self.service.read(|scope| {
            let all = rules::all(scope, &self.by, self.workspace)?.into_iter();
            all.map(|it| rules::ended_links(scope, &it).map(|ended| (it, ended))).collect::<Result<Vec<_>, _>>()
        })?;
        let place = |(it, _): &(Arc<Integration>, _)| (it.id.bits(), Integration::key(it.slot));
        page.of_all(&all, place, |(it, ended)| Value::Object(self.written(it, ended, None))).map(Answer::json)
    }

    async fn create(&self, call: &Call) -> Result<Answer, Refusal> {
        let and_named = |it| self.and_named(call, wire::new_ids(&call.body), &[], it);
        let asked = wire::read_new(&call.body, self.guards()).map_err(and_named)?;
        let slot = IntegrationSlot { workspace: self.workspace, kind: asked.kind };
        let (drawn, kept) = self.secret(slot, asked.secret).map_err(and_named)?;
        let (by, workspace, kind) = (self.by.clone(), self.workspace, asked.kind);
        let config = self.configured(slot, asked.config)?;
        let create = CreateIntegration { by, workspace, kind, secret: kept, config };
        if kind == IntegrationKind::Mail && self.service.mailer.is_none() {
            // What is at fault in it is told of before what the server lacks.
            self.service.read(|scope| rules::create_integration(scope, &create))?;
            return Err(Refusal::not_allowed(
                "this server sends no mail: whoever runs it sets `mail.url` and `mail.from`",
            ));
        }
        let made = self.service.run(create).await?;
        Ok(Answer::json(self.shown(&made, drawn.as_ref())?).created())
    }

    async fn change(&self, call: &Call) -> Result<Answer, Refusal> {
        // A body that is read in vain is told of before that there is nothing to change.
        let found = self.find(call);
        let kind = found.as_ref().ok().map(|it| it.slot.kind);
        let links = found.iter().flat_map(|it| it.config.members());
        let link = |it: &LinkedMember| (format!("config.members.{}", it.name), Named::Decider(it.principal));
        let stands = || links.map(link).collect::<Vec<_>>();
        let read = wire::read_change(&call.body, kind, self.guards());
        let read = read.map_err(|it| self.and_named(call, wire::ids(kind), &stands(), it));
        let wire::Change { enabled, config, secret } = read?;
        let found = found?;
        let secret = secret.map(|it| self.secret(found.slot, Some(it))).transpose()?;
        let secret = secret.map(|(_, kept)| kept.at(self.service.gate.now()));
        let config = ConfigChange { secret, ..self.configured(found.slot, config)? };
        let (by, workspace, id) = (self.by.clone(), self.workspace, found.id);
        let changed = self.service.run(ChangeIntegration { by, workspace, id, enabled, config }).await?;
        self.shown(&changed, None).map(Answer::json)
    }

    async fn remove(&self, call: &Call) -> Result<Answer, Refusal> {
        let (by, workspace, id) = (self.by.clone(), self.workspace, call.param_id("int")?);
        self.service.run(RemoveIntegration { by, workspace, id }).await?;
        Ok(Answer::empty())
    }

    async fn rotate(&self, call: &Call) -> Result<Answer, Refusal> {
        // A body that is read in vain is told of before that there is nothing to rotate.
        let found = self.find(call);
        let kind = found.as_ref().ok().map(|it| it.slot.kind);
        let (overlap_hours, secret) = wire::read_rotation(&call.body, kind)?;
        let found = found?;
        let (drawn, kept) = self.secret(found.slot, secret)?;
        let (by, workspace, id) = (self.by.clone(), self.workspace, found.id);
        let rotate = RotateIntegration { by, workspace, id, secret: kept, overlap_hours };
        let rotated = self.service.run(rotate).await?;
        self.shown(&rotated, drawn.as_ref()).map(Answer::json)
    }

    async fn test(&self, call: &Call) -> Result<Answer, Refusal> {
        let url = wire::read_test(&call.body, &self.service.outbound)?;
        let (by, workspace, id) = (self.by.clone(), self.workspace, call.param_id("int")?);
        if url.is_none() {
            let found = self.service.read(|scope| rules::called(scope, &by, workspace, id))?;
            // Other kinds have an address of their own.
            if found.slot.kind == IntegrationKind::Callbacks {
                self.opens(&found)?;
                return self.shown(&found, None).map(Answer::json);
            }
        }
        let tested = self.service.run(TestIntegration { by, workspace, id, url }).await?;
        let ended = self.service.read(|scope| rules::ended_links(scope, &tested.integration))?;
        let mut shown = self.written(&tested.integration, &ended, None);
        shown.insert("deliveryId".to_owned(), json!(tested.job.id));
        written(&Value::Object(shown)).map(Answer::json)
    }

    async fn deliveries(&self, call: &Call) -> Result<Answer, Refusal> {
        let mut query = Query::among(&call.uri, call.route.query);
        let page = query.page("deliveries", self.workspace);
        let state = query.take("state", |text| {
            let known = JobState::WORDS.into_iter().find(|it| *it == text);
            known.ok_or_else(|| format!("must be one of `{}`", JobState::WORDS.join("`, `")))
        });
        let kind = query.take("kind", |text| {
            let kind = IntegrationKind::parse(text).ok().filter(|it| it.is_called());
            kind.ok_or_else(|| {
                let called = IntegrationKind::ALL.iter().filter(|it| it.is_called());
                let names: Vec<&str> = called.map(|it| it.as_str()).collect();
                format!("must be a kind that is called: `{}`", names.join("`, `"))
            })
        });
        query.finish()?;
        let is_asked = move |job: &Job| {
            state.is_none_or(|it| job.state.as_str() == it) && kind.is_none_or(|it| job.over() == Some(it))
        };
        let (gate, workspace, part) = (self.service.gate.clone(), self.workspace, page.clone());
        let look = move |awaited: &Awaited| jobs(&gate, workspace, &part, is_asked, awaited);
        let (jobs, next) = self.service.aside.run_awaited(Asker::of(&self.by, self.workspace), look).await?;
        page.list(jobs.iter().map(|it| wire::write_delivery(it, self.host(it))).collect(), next).map(Answer::json)
    }

    fn delivery(&self, call: &Call) -> Result<Answer, Refusal> {
        let id: DeliveryId = call.param_id("dlv")?;
        let job = self.service.read(|scope| deliver::owned(scope, &self.by, self.workspace, id))?;
        written(&wire::write_delivery(&job, self.host(&job))).map(Answer::json)
    }

    async fn retry(&self, call: &Call) -> Result<Answer, Refusal> {
        nothing(&call.body)?;
        let (by, workspace, id) = (self.by.clone(), self.workspace, call.param_id("dlv")?);
        let job = self.service.run(RetryDelivery { by, workspace, id }).await?;
        written(&wire::write_delivery(&job, self.host(&job))).map(Answer::json)
    }

    /// The host that takes what has no address of its own: the mail server's, where there is one, or Slack's.
    fn host(&self, job: &Job) -> &str {
        match job.over() {
            Some(IntegrationKind::Mail) => self.service.mailer.as_ref().map(|it| it.host()).unwrap_or_default(),
            Some(IntegrationKind::Slack) => self.service.slack.host(),
            _ => "",
        }
    }

    fn find(&self, call: &Call) -> Result<Arc<Integration>, Refusal> {
        let id: IntegrationId = call.param_id("int")?;
        self.service.read(|scope| rules::owned(scope, &self.by, self.workspace, id))
    }

    fn and_named(&self, call: &Call, ids: &[(&str, Names)], stands: &[(String, Named)], refusal: Refusal) -> Refusal {
        self.service.and_named_anew(self.workspace, &call.body, ids, stands, refusal)
    }

    /// That its secrets in force can be used here. Who is called over it, and with what, each call brings with it: that is all
    /// that can be looked at where nobody is to be called.
    fn opens(&self, integration: &Integration) -> Result<(), Refusal> {
        let purpose = Integration::purpose(integration.slot);
        for sealed in integration.in_force(self.service.gate.now()) {
            self.service.gate.open_sealed(&purpose, &sealed.sealed).map_err(|failure| {
                log(&failure);
                Refusal::not_allowed("a secret of it does not open under this server's master key: rotate it")
            })?;
        }
        Ok(())
    }

    /// What is kept of a secret that was sent, or of a new one, which alone is shown: nobody is given back what they sent.
    fn secret(
        &self,
        slot: IntegrationSlot,
        sent: Option<Secret<String>>,
    ) -> Result<(Option<Secret<String>>, NewSecret), Refusal> {
        let seal = |secret: &_| callback_secret::seal(&self.service.gate, slot, secret).map_err(refusal);
        match sent {
            // A client's secret goes to the identity provider.
            Some(sent) if self.service.holds_own_secret(sent.expose())? => {
                Err(Refusal::invalid_field("secret", OWN_SECRET))
            }
            Some(sent) => Ok((None, seal(&sent)?)),
            None => {
                let drawn = callback_secret::draw().map_err(refusal)?;
                let kept = seal(&drawn)?;
                Ok((Some(drawn), kept))
            }
        }
    }

    /// What is configured, with what messages are sent with sealed.
    fn configured(&self, slot: IntegrationSlot, sent: wire::Configured) -> Result<ConfigChange, Refusal> {
        let seal = |token: Secret<String>| {
            let text = token.expose();
            let sealed = self.service.gate.seal(&Integration::bot_purpose(slot), text.as_bytes()).map_err(refusal)?;
            let created_at = self.service.gate.now();
            Ok::<_, Refusal>(SealedSecret { sealed: sealed.into(), hint: hint(text), created_at, ends_at: None })
        };
        let bot_token = sent.bot_token.map(|it| it.map(seal).transpose()).transpose()?;
        Ok(ConfigChange { bot_token, ..sent.change })
    }

    fn shown(&self, integration: &Integration, secret: Option<&Secret<String>>) -> Result<Vec<u8>, Refusal> {
        let ended = match self.service.read(|scope| rules::ended_links(scope, integration)) {
            Ok(ended) => ended,
            Err(refusal) if secret.is_none() => return Err(refusal),
            // The secret is shown this once: it is told whatever could not be read beside it.
            Err(_) => Vec::new(),
        };
        written(&Value::Object(self.written(integration, &ended, secret)))
    }

    fn written(
        &self,
        integration: &Integration,
        ended: &[Box<str>],
        secret: Option<&Secret<String>>,
    ) -> Map<String, Value> {
        wire::write(integration, ended, &self.service.base_url, self.service.gate.now(), secret)
    }
}

fn written(value: &Value) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(value).map_err(|_| Refusal::internal())
}

/// A part of the calls to the outside that are asked for, and the cursor of the next one: for as long as anybody waits for it.
fn jobs(
    gate: &Gate,
    workspace: WorkspaceId,
    page: &Page,
    is_asked: impl Fn(&Job) -> bool,
    awaited: &Awaited,
) -> Result<(Vec<Arc<Job>>, Option<String>), Refusal> {
    let all = Range::all(Index::DeliveriesOf, workspace.bits(), LOOK);
    let mut range = Range { newest_first: true, after: page.after, ..all };
    let mut jobs = Vec::new();
    for _ in 0..LOOKS_MAX {
        awaited.go_on()?;
        let found = gate.scan(&range).map_err(refusal)?;
        for row in &found {
            if jobs.len() == page.limit {
                return Ok((jobs, range.after.map(|(order, key)| page.cursor(order, key))));
            }
            jobs.extend(row.row.record.as_ref().and_then(Job::peel).filter(|it| is_asked(it)).cloned());
            range.after = Some((row.order, row.row.key));
        }
        if found.len() < LOOK {
            return Ok((jobs, None));
        }
    }
    Ok((jobs, range.after.map(|(order, key)| page.cursor(order, key))))
}
