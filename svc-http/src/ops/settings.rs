//! A workspace's settings and its templates.

use std::sync::Arc;

use serde_json::Value;
use svc_core::refusal::Refusal;
use svc_core::rules::people::by::By;
use svc_core::rules::people::settings::ChangeSettings;
use svc_core::rules::people::templates::{KeepTemplate, RemoveTemplate, own_template};
use svc_core::state::gate::{Template, WorkspaceTemplate};
use svc_core::state::people::Workspace;
use svc_core::store::{Found, Loaded, Range, Row as _, Stamp};
use svc_core::value::Id as _;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;
use svc_core::value::text::Label;

use super::{Caller, GateService};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::SettingsOp;
use crate::wire::page::Query;
use crate::wire::{mandate, settings};

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: SettingsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    let place = Place { service, by, workspace };
    match op {
        SettingsOp::Get => Ok(Answer::json(settings::write(&*place.own()?)?)),
        SettingsOp::Put => {
            let change = settings::read(&call.body)?;
            let changed = service.run(ChangeSettings { workspace, by: place.by.clone(), change }).await?;
            Ok(Answer::json(settings::write(&changed)?))
        }
        SettingsOp::Templates => place.templates(call),
        SettingsOp::AddTemplate => place.add(call).await,
        SettingsOp::Template => match place.template(call)? {
            Named::BuiltIn(it) => place.built_in(it),
            Named::Own(it) => written(&mandate::write_template(&it)),
        },
        SettingsOp::ChangeTemplate => place.change(call).await,
        SettingsOp::RemoveTemplate => {
            let name = place.own_template(call)?.name.clone();
            service.run(RemoveTemplate { workspace, by: place.by.clone(), name }).await?;
            Ok(Answer::empty())
        }
    }
}

/// Whose workspace it is about, and who asks.
struct Place<'a> {
    service: &'a GateService,
    by: By,
    workspace: WorkspaceId,
}

/// A template that a path names.
enum Named {
    BuiltIn(&'static Template),
    Own(Arc<WorkspaceTemplate>),
}

impl Place<'_> {
    fn own(&self) -> Result<Arc<Workspace>, Refusal> {
        self.service.read(|scope| scope.get::<Workspace>(self.workspace)?.ok_or_else(|| Refusal::not_found().into()))
    }

    /// The catalogue stands before the workspace's own: it has the first orders of the list, which no name begins with.
    fn templates(&self, call: &Call) -> Result<Answer, Refusal> {
        let mut query = Query::among(&call.uri, call.route.query);
        let page = query.page("templates", self.workspace);
        query.finish()?;
        let workspace = self.own()?;
        // One's own from the newest on, then the catalogue, which was there before them.
        let last = u128::try_from(mandate::catalogue().len()).unwrap_or(0);
        let after = page.after.map(|(order, _)| order).filter(|order| *order < last);
        let own = Range { newest_first: true, ..Range::all(Index::TemplatesOf, self.workspace.bits(), page.limit) };
        let mut found = if after.is_some() { Vec::new() } else { self.service.scan(&page.of(own))? };
        for (order, template) in (0_u128..).zip(mandate::catalogue()) {
            let name = Label::parse(template.name).map_err(|_| Refusal::internal())?;
            let key = WorkspaceTemplate::key(WorkspaceTemplate::id_of(self.workspace, &name));
            if after.is_none_or(|after| order > after) {
                found.push(Found { order, row: Loaded { key, stamp: Stamp::ABSENT, record: None } });
            }
        }
        found.truncate(page.limit.saturating_add(1));
        let answer = page.answer(&found, |row| match row.row.record.as_ref().and_then(WorkspaceTemplate::peel) {
            Some(own) => Ok(Some(mandate::write_template(own))),
            None => {
                let place = usize::try_from(row.order).unwrap_or(usize::MAX);
                let template = mandate::catalogue().get(place);
                let currency = workspace.settings.currency;
                template.map(|it| mandate::write_built_in(it, currency, workspace.created_at)).transpose()
            }
        })?;
        Ok(Answer::json(answer))
    }

    fn built_in(&self, template: &Template) -> Result<Answer, Refusal> {
        let workspace = self.own()?;
        written(&mandate::write_built_in(template, workspace.settings.currency, workspace.created_at)?)
    }

    async fn add(&self, call: &Call) -> Result<Answer, Refusal> {
        let currency = self.own()?.settings.currency;
        let read = mandate::read_template(&call.body, currency, self.service.gate.now());
        let and_named = |it| self.service.and_named(self.workspace, &call.body, mandate::TEMPLATE_IDS, it);
        let (name, terms) = read.map_err(and_named)?;
        let (workspace, by) = (self.workspace, self.by.clone());
        let made = self.service.run(KeepTemplate { workspace, by, name, terms, is_there: false }).await?;
        written(&mandate::write_template(&made)).map(Answer::created)
    }

    async fn change(&self, call: &Call) -> Result<Answer, Refusal> {
        // What is wrong with the body comes before whether there is such a template, and whether it changes.
        let template = self.own_template(call);
        let (before, currency) = (template.as_ref().ok().map(|it| &**it), self.own()?.settings.currency);
        let terms = mandate::read_template_change(&call.body, before, currency, self.service.gate.now())?;
        let template = template?;
        let (name, terms) = (template.name.clone(), terms.unwrap_or_else(|| template.terms.clone()));
        let (workspace, by) = (self.workspace, self.by.clone());
        let changed = self.service.run(KeepTemplate { workspace, by, name, terms, is_there: true }).await?;
        written(&mandate::write_template(&changed))
    }

    fn template(&self, call: &Call) -> Result<Named, Refusal> {
        let name = decoded(call.param("template")).ok_or_else(Refusal::not_found)?;
        if let Some(template) = Template::find(&name) {
            return Ok(Named::BuiltIn(template));
        }
        let name = Label::parse(&name).map_err(|_| Refusal::not_found())?;
        let found = self.service.read(|scope| own_template(scope, self.workspace, &name))?;
        found.map(Named::Own).ok_or_else(Refusal::not_found)
    }

    fn own_template(&self, call: &Call) -> Result<Arc<WorkspaceTemplate>, Refusal> {
        match self.template(call)? {
            Named::Own(it) => Ok(it),
            Named::BuiltIn(_) => Err(Refusal::not_allowed("the catalogue's templates stay as they are")),
        }
    }
}

/// A path's segment without its percent signs; `None` where it is no text.
fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let mut one = [0];
        hex::decode_to_slice(digits, &mut one).ok()?;
        bytes.extend(one);
    }
    String::from_utf8(bytes).ok()
}

fn written(shown: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(shown).map(Answer::json).map_err(|_| Refusal::internal())
}
