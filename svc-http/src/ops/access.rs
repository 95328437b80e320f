//! Keys and service tokens.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::people::by::{By, entitled};
use svc_core::rules::people::keys::{CreateKey, NewKey, RevokeKey, own_key};
use svc_core::rules::people::show::{self, KeyView};
use svc_core::rules::people::tokens::{CreateToken, RevokeToken, is_void};
use svc_core::state::people::{KeyScope, Right, ServiceToken};
use svc_core::store::{Found, Key, Range, Row as _};
use svc_core::value::digest::CredentialId;
use svc_core::value::id::{AgentId, KeyId, TokenId, WorkspaceId};
use svc_core::value::link::Index;
use svc_core::value::{Id as _, Span, Timestamp};
use svc_store::Gate;

use super::aside::{Asker, Awaited};
use super::{Caller, GateService, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::AccessOp;
use crate::secrets::{KEY_PREFIX, TOKEN_PREFIX, draw};
use crate::wire::page::{Page, Query};
use crate::wire::{key, token};

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: AccessOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    let place = Place { service, by, workspace, now: service.gate.now() };
    match op {
        AccessOp::Keys => place.keys(call, None).await,
        AccessOp::AgentKeys => place.keys(call, Some(call.param("aid"))).await,
        AccessOp::CreateKey => place.create_key(call).await.map(Answer::created),
        AccessOp::AdminCreateKey => place.create_key(call).await,
        AccessOp::CreateAgentKey => {
            let (label, days) = key::read_of_agent(&call.body)?;
            let scope = KeyScope::Agent(call.param_id("aid")?);
            let expires_at = place.end(days);
            let asked = |new| CreateKey::new(place.workspace, place.by.clone(), scope, new);
            place.issue(|new| CreateKey { label, expires_at, ..asked(new) }).await.map(Answer::created)
        }
        AccessOp::Key => {
            let found = place.key(call)?;
            let view = service.read(|scope| {
                let row = own_key(scope, &place.by, workspace, found)?;
                show::key(scope, row)
            })?;
            written(&place.shown(&view))
        }
        AccessOp::RevokeKey => {
            let credential = place.key(call)?;
            service.run(RevokeKey { workspace, by: place.by.clone(), credential }).await?;
            Ok(Answer::empty())
        }
        AccessOp::Tokens => place.tokens(call),
        AccessOp::CreateToken => place.create_token(call).await,
        AccessOp::Token => {
            let found = place.token(call)?;
            written(&place.shown_token(&found)?)
        }
        AccessOp::RevokeToken => {
            let token = place.token(call)?.id;
            service.run(RevokeToken { workspace, by: place.by.clone(), token }).await?;
            Ok(Answer::empty())
        }
    }
}

/// Whose workspace it is about, who asks, and when.
struct Place<'a> {
    service: &'a GateService,
    by: By,
    workspace: WorkspaceId,
    now: Timestamp,
}

impl Place<'_> {
    async fn keys(&self, call: &Call, of: Option<&str>) -> Result<Answer, Refusal> {
        let mut query = Query::among(&call.uri, call.route.query);
        let page = query.page("keys", of.map_or_else(|| self.workspace.to_string(), str::to_owned));
        query.finish()?;
        let agent: Option<AgentId> = of.map(|_| call.param_id("aid")).transpose()?;
        let (gate, by, workspace, part) = (self.service.gate.clone(), self.by.clone(), self.workspace, page.clone());
        let look = move |awaited: &Awaited| keys_of(&gate, &by, (workspace, agent), &part, awaited);
        let (keys, next) = self.service.aside.run_awaited(Asker::of(&self.by, self.workspace), look).await?;
        page.list(keys.iter().map(|it| self.shown(it)).collect(), next).map(Answer::json)
    }

    fn shown(&self, view: &KeyView) -> Value {
        key::write(view, self.service.seen.of(view.row.binding.key.bits()))
    }

    async fn create_key(&self, call: &Call) -> Result<Answer, Refusal> {
        let read = key::read(&call.body);
        let asked = read.map_err(|it| self.service.and_named(self.workspace, &call.body, key::IDS, it))?;
        let (by, expires_at) = (self.by.clone(), self.end(asked.days));
        let new = |new| CreateKey {
            principal: asked.principal,
            team: asked.team,
            label: asked.label,
            task_class: asked.task_class,
            profile: asked.profile,
            task_class_open: asked.task_class_open,
            expires_at,
            ..CreateKey::new(self.workspace, by, asked.scope, new)
        };
        self.issue(new).await
    }

    /// When a key ends that is to live for so many days.
    fn end(&self, days: Option<i64>) -> Option<Timestamp> {
        days.map(|it| self.now.plus(Span::hours(24 * it)))
    }

    /// Makes a key and shows it, this once.
    async fn issue(&self, make: impl FnOnce(NewKey) -> CreateKey) -> Result<Answer, Refusal> {
        let key = draw(KEY_PREFIX).map_err(refusal)?;
        let row = self.service.run(make(NewKey::of(key.text.expose()))).await?;
        let view = KeyView::of_new(row);
        written(&json!({ "key": key.text.expose(), "binding": key::write(&view, None) }))
    }

    /// The row of the key that the path names.
    fn key(&self, call: &Call) -> Result<CredentialId, Refusal> {
        let id: KeyId = call.param_id("key")?;
        let found = self.service.scan(&one(Index::KeysOf, self.workspace, id.bits()))?;
        found.first().and_then(row_of).ok_or_else(Refusal::not_found)
    }

    fn tokens(&self, call: &Call) -> Result<Answer, Refusal> {
        let mut query = Query::among(&call.uri, call.route.query);
        let page = query.page("service tokens", self.workspace);
        query.finish()?;
        self.service.read(|scope| entitled(scope, &self.by, self.workspace, Right::ManageTokens))?;
        let all = Range::all(Index::TokensOf, self.workspace.bits(), page.limit);
        let found = self.service.scan(&page.of(Range { newest_first: true, ..all }))?;
        let answer = page.answer(&found, |row| {
            let token = row.row.record.as_ref().and_then(ServiceToken::peel);
            token.map(|it| self.shown_token(it)).transpose()
        })?;
        Ok(Answer::json(answer))
    }

    fn shown_token(&self, it: &ServiceToken) -> Result<Value, Refusal> {
        let is_void = self.service.read(|scope| is_void(scope, it))?;
        Ok(Value::Object(token::write(it, self.now, is_void, self.service.seen.of(it.token.bits()))))
    }

    async fn create_token(&self, call: &Call) -> Result<Answer, Refusal> {
        let read = token::read(&call.body);
        let asked = read.map_err(|it| self.service.and_named(self.workspace, &call.body, token::IDS, it))?;
        let token = draw(TOKEN_PREFIX).map_err(refusal)?;
        let create = CreateToken {
            workspace: self.workspace,
            by: self.by.clone(),
            name: asked.name,
            scopes: asked.scopes,
            days: asked.days,
            ip_allow: asked.ip_allow,
            digest: token.digest,
        };
        let made = self.service.run(create).await?;
        let mut shown = token::write(&made, self.now, false, None);
        shown.insert("token".to_owned(), json!(token.text.expose()));
        written(&Value::Object(shown)).map(Answer::created)
    }

    /// The token that the path names.
    fn token(&self, call: &Call) -> Result<std::sync::Arc<ServiceToken>, Refusal> {
        let id: TokenId = call.param_id("stk")?;
        self.service.read(|scope| entitled(scope, &self.by, self.workspace, Right::ManageTokens))?;
        let found = self.service.scan(&one(Index::TokensOf, self.workspace, id.bits()))?;
        let token = found.first().and_then(|it| ServiceToken::peel(it.row.record.as_ref()?)).cloned();
        token.ok_or_else(Refusal::not_found)
    }
}

/// Rows of one look at the keys.
const LOOK: usize = 500;
/// Looks for one page: an agent whose keys lie far apart gets a short page and a cursor to go on from.
const LOOKS_MAX: usize = 20;

/// A part of a workspace's keys, or of those of one agent, which lie among all others, and the cursor of the next one: for as long as
/// anybody waits for it.
fn keys_of(
    gate: &Gate,
    by: &By,
    (workspace, agent): (WorkspaceId, Option<AgentId>),
    page: &Page,
    awaited: &Awaited,
) -> Result<(Vec<KeyView>, Option<String>), Refusal> {
    let all = Range { newest_first: true, ..Range::all(Index::KeysOf, workspace.bits(), LOOK) };
    let (mut keys, mut after) = (Vec::new(), page.after);
    for _ in 0..LOOKS_MAX {
        awaited.go_on()?;
        let found = gate.scan(&Range { after, ..all.clone() }).map_err(refusal)?;
        let ids: Vec<CredentialId> = found.iter().filter_map(row_of).collect();
        let views = gate.read(|scope| show::keys(scope, by, workspace, &ids, agent)).map_err(refusal)?;
        let mut views: BTreeMap<CredentialId, KeyView> =
            views.into_iter().flatten().map(|it| (it.row.id, it)).collect();
        for row in &found {
            if keys.len() == page.limit {
                return Ok((keys, after.map(|(order, key)| page.cursor(order, key))));
            }
            after = Some((row.order, row.row.key));
            keys.extend(row_of(row).and_then(|it| views.remove(&it)));
        }
        if found.len() < LOOK {
            return Ok((keys, None));
        }
    }
    Ok((keys, after.map(|(order, key)| page.cursor(order, key))))
}

/// The one entry of an index with this order.
fn one(index: Index, workspace: WorkspaceId, order: u128) -> Range {
    Range { from: order, until: order.saturating_add(1), ..Range::all(index, workspace.bits(), 1) }
}

fn row_of(found: &Found) -> Option<CredentialId> {
    if let Key::Credential(id) = found.row.key { Some(id) } else { None }
}

fn written(shown: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(shown).map(Answer::json).map_err(|_| Refusal::internal())
}
