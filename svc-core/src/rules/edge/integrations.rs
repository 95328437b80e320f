//! Integrations: made, changed, tried out and removed by owners and admins; their secrets take turns.

use std::sync::Arc;

use super::export;
use super::tell::keep;
use crate::refusal::{FieldError, Refusal};
use crate::rules::people::by::{By, entitled};
use crate::rules::people::named::{Named, faults as faults_of};
use crate::rules::people::owners;
use crate::state::edge::{
    ConfigChange, Integration, IntegrationConfig, IntegrationKind, IntegrationSlot, Job, LinkedMember, MailConfig,
    NamesKey, OVERLAP_MAX_HOURS, SealedSecret, SignalKeys, Work,
};
use crate::state::evidence::{Fact, Subject};
use crate::state::people::{Principal, Right, Role, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::{Object, canonical};
use crate::value::digest::Digest;
use crate::value::id::{EvidenceId, IntegrationId, PrincipalId, WorkspaceId};
use crate::value::json::Json;
use crate::value::text::UrlText;
use crate::value::{Span, Timestamp};

/// A secret that the shell has drawn or was given, sealed for [`Integration::purpose`].
#[derive(Clone, Debug)]
pub struct NewSecret {
    /// The sealed text.
    pub sealed: Box<str>,
    /// The last four characters of the secret.
    pub hint: Box<str>,
}

impl NewSecret {
    /// The same as it is kept from `now` on.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> SealedSecret {
        SealedSecret { sealed: self.sealed.clone(), hint: self.hint.clone(), created_at: now, ends_at: None }
    }
}

/// Makes an integration.
#[derive(Clone, Debug)]
pub struct CreateIntegration {
    /// Who asks.
    pub by: By,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// What for.
    pub kind: IntegrationKind,
    /// Its secret.
    pub secret: NewSecret,
    /// What its kind needs besides.
    pub config: ConfigChange,
}

/// Makes an integration; a workspace has one of a kind.
///
/// # Errors
/// Those of [`entitled`], also where the kind is the owners', or it links an owner, and the caller is none; `not_found` where there is no such workspace,
/// `invalid_request` naming `kind` where it has one, or every member of `config.members` who
/// is linked to nobody that decides anything.
pub fn create_integration(scope: &mut Scope<'_>, asked: &CreateIntegration) -> Result<Arc<Integration>, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageIntegrations)?;
    may(scope, &asked.by, asked.workspace, asked.kind)?;
    let slot = IntegrationSlot { workspace: asked.workspace, kind: asked.kind };
    scope.want(&[Workspace::key(asked.workspace), Integration::key(slot)])?;
    scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let empty = IntegrationConfig::empty(asked.kind);
    let mut faults = unknown(scope, asked.workspace, &empty, &asked.config)?;
    if scope.get::<Integration>(slot)?.is_some() {
        faults.push(FieldError::new("kind", "names a kind that this workspace has already"));
    }
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let config = empty.changed(&linked(&empty, &asked.config, scope.now()));
    may_speak(scope, &asked.by, asked.workspace, &config)?;
    let now = scope.now();
    let made = Integration {
        slot,
        id: scope.fresh(),
        secrets: vec![asked.secret.at(now)],
        config,
        enabled: true,
        last_event_at: None,
        last_error: None,
        failing: false,
        names_key: None,
        created_at: now,
        created_by: asked.by.principal(),
    };
    let made = keyed(scope, made);
    let mut data = Object::new().text("kind", asked.kind.as_str());
    if !made.config.is_nothing() {
        data = data.raw("new", &told(&made));
    }
    let recorded = record(scope, &asked.by, "integration.created", &made, data.finish());
    export::begin(scope, &made, recorded);
    keep(scope, slot.workspace, slot.kind, Some(&made))?;
    scope.put(made.clone());
    Ok(Arc::new(made))
}

/// Has an integration used, or not, and configured.
#[derive(Clone, Debug)]
pub struct ChangeIntegration {
    /// Who asks.
    pub by: By,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Which integration.
    pub id: IntegrationId,
    /// Whether it is used; as it was where nothing is said.
    pub enabled: Option<bool>,
    /// What of its configuration changes.
    pub config: ConfigChange,
}

/// Changes an integration; a change to what it is changes nothing, but that an export which was given up goes on where it is told
/// to be used. A secret that comes with it takes the place of all before at once: none of those is shown to whom it now leads.
///
/// # Errors
/// Those of [`entitled`], also where the kind is the owners', or it links an owner from then on, and the caller is none; `not_found`;
/// `not_allowed` where it is the only way into the workspace; `invalid_request` naming every member of
/// `config.members` who is linked to nobody that decides anything, or `secret` where its issuer is another and none came
/// with that.
pub fn change_integration(scope: &mut Scope<'_>, asked: &ChangeIntegration) -> Result<Arc<Integration>, Halt> {
    let before = owned(scope, &asked.by, asked.workspace, asked.id)?;
    may(scope, &asked.by, asked.workspace, before.slot.kind)?;
    let change = linked(&before.config, &asked.config, scope.now());
    let (enabled, config) = (asked.enabled.unwrap_or(before.enabled), before.config.changed(&change));
    let secret = asked.config.secret.clone();
    let mut faults = unknown(scope, asked.workspace, &before.config, &asked.config)?;
    if secret.is_none() && is_shown_elsewhere(&before.config, &config) {
        faults.push(FieldError::new("secret", SECRET_AGAIN));
    }
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    // Whoever turns it off, or lets go of every owner whom it links, gives nobody a word.
    if enabled || config != before.config {
        may_speak(scope, &asked.by, asked.workspace, &config)?;
    }
    if enabled == before.enabled && config == before.config && secret.is_none() {
        if asked.enabled == Some(true) {
            export::go_on(scope, &before, Some(&asked.by))?;
        }
        return Ok(before);
    }
    is_spared(scope, &asked.by, &before)?;
    let before = keyed(scope, Integration::clone(&before));
    // Mail that named nobody who is here names others now.
    let named_anew = before.slot.kind == IntegrationKind::Mail && config != before.config;
    let failing = before.failing && !named_anew;
    let last_error = before.last_error.clone().filter(|_| !named_anew);
    let mut after = Integration { enabled, config, failing, last_error, ..before.clone() };
    if let Some(secret) = secret {
        after = after.rotated(secret, Span::millis(0), scope.now());
        let data = Object::new().text("kind", after.slot.kind.as_str()).int("overlapHours", 0);
        record(scope, &asked.by, "integration.rotated", &after, data.finish());
    }
    if after.enabled != before.enabled || after.config != before.config {
        let data = Object::new().raw("old", &told(&before)).raw("new", &told(&after)).finish();
        record(scope, &asked.by, "integration.changed", &after, data);
    }
    keep(scope, asked.workspace, after.slot.kind, Some(&after))?;
    export::follow_change(scope, &before, &after)?;
    scope.put(after.clone());
    Ok(Arc::new(after))
}

const SECRET_AGAIN: &str = "must be sent with another issuer: what is stored was given for the one before";

/// Whether the secret would from now on be shown to another than it was given for: another issuer, also at the same host, where each of
/// many tenants may say where it is to be sent. Of all kinds only the one that signs people in shows its own to anybody; the others sign
/// with theirs.
fn is_shown_elsewhere(before: &IntegrationConfig, after: &IntegrationConfig) -> bool {
    let shown_to = |config: &IntegrationConfig| match config {
        IntegrationConfig::Oidc(it) => it.issuer.clone(),
        _ => None,
    };
    let to = shown_to(after);
    to.is_some() && to != shown_to(before)
}

/// The change with those who are linked by it, each since when. Whoever was linked so before stays linked since then, also where that
/// link is over: a list that is read can be sent again as it stood, whoever has left since, and makes no link anew that has ended. Only
/// whoever was left out of the list and is named again is linked anew.
fn linked(before: &IntegrationConfig, change: &ConfigChange, now: Timestamp) -> ConfigChange {
    let since = |it: &LinkedMember| before.links(&it.name, it.principal).cloned();
    let anew = |it: &LinkedMember| LinkedMember { since: now, ..it.clone() };
    let linked = |it: &LinkedMember| since(it).unwrap_or_else(|| anew(it));
    let members = change.members.as_ref().map(|it| it.iter().map(linked).collect());
    ConfigChange { members, ..change.clone() }
}

/// What is wrong with whom a change names: whoever is told by mail is a member, and whoever is linked anew decides something.
fn unknown(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    before: &IntegrationConfig,
    change: &ConfigChange,
) -> Result<Vec<FieldError>, Halt> {
    let mailed = change.to.iter().flatten().enumerate();
    let mailed = mailed.map(|(place, id)| (format!("config.to.{place}"), Named::Member(*id)));
    let linked = change.members.iter().flatten().filter(|it| before.links(&it.name, it.principal).is_none());
    let linked = linked.map(|it| (format!("config.members.{}", it.name), Named::Decider(it.principal)));
    faults_of(scope, workspace, &mailed.chain(linked).collect::<Vec<_>>())
}

/// Lets go of what other systems call somebody, and gives how many integrations did.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(in crate::rules) fn unlink(scope: &mut Scope<'_>, workspace: WorkspaceId, id: PrincipalId) -> Result<u64, Halt> {
    let slots = [IntegrationKind::Relay, IntegrationKind::Slack].map(|kind| IntegrationSlot { workspace, kind });
    scope.want(&slots.map(Integration::key))?;
    let mut count: u64 = 0;
    for slot in slots {
        let Some(found) = scope.get::<Integration>(slot)? else { continue };
        let left: Vec<LinkedMember> = found.config.members().iter().filter(|it| it.principal != id).cloned().collect();
        if left.len() < found.config.members().len() {
            let change = ConfigChange { members: Some(left), ..ConfigChange::default() };
            let config = found.config.changed(&change);
            let left = Integration { config, ..Integration::clone(&found) };
            keep(scope, workspace, slot.kind, Some(&left))?;
            scope.put(left);
            count = count.saturating_add(1);
        }
    }
    Ok(count)
}

/// The same with what the ledger's digests of other systems' names are keyed with: one that was made before there was such a key gets
/// it now. No text of a name is kept beside a record: such a text is about several people, and erasing one of them would leave it.
pub(super) fn keyed(scope: &mut Scope<'_>, mut integration: Integration) -> Integration {
    if integration.names_key.is_none() && matches!(integration.config, IntegrationConfig::Deciders(_)) {
        integration.names_key = Some(NamesKey::new(scope.draw()));
    }
    integration
}

/// What the ledger has of how an integration stands. Of a set of keys it has the digest: a set is long; of an address that may
/// hold what the receiver knows its senders by, the origin beside one.
fn told(integration: &Integration) -> String {
    let said = Object::new().bool("enabled", integration.enabled);
    let list = |items: &[Box<str>]| canonical(&Json::List(items.iter().map(|it| Json::Text(it.to_string())).collect()));
    match &integration.config {
        IntegrationConfig::Nothing => said,
        IntegrationConfig::Mail(it) => {
            said.raw("to", &list(&it.to.iter().map(|it| it.to_string().into()).collect::<Vec<Box<str>>>()))
        }
        // Of an address the host alone: what else it holds may be a room's secret.
        IntegrationConfig::Chat(it) => match &it.url {
            Some(url) => said.text("host", &host(url)).text("url", &Digest::of(url.as_str()).named()),
            None => said,
        },
        IntegrationConfig::Code(it) => {
            said.raw("repositories", &list(&it.repositories)).raw("branches", &list(&it.branches))
        }
        IntegrationConfig::Oidc(it) => {
            let members = [("issuer", &it.issuer), ("clientId", &it.client_id)];
            members.into_iter().fold(said, |said, (name, text)| text.iter().fold(said, |said, it| said.text(name, it)))
        }
        IntegrationConfig::Export(it) => {
            let uids: Vec<String> = it.classes.iter().map(|it| it.uid().to_string()).collect();
            let said = said.raw("classes", &format!("[{}]", uids.join(",")));
            match &it.url {
                None => said,
                Some(url) => said.text("origin", url.origin()).text("urlDigest", &Digest::of(url.as_str()).named()),
            }
        }
        IntegrationConfig::Deciders(it) => {
            let members: Vec<Box<str>> = it.members.iter().map(|it| it.principal.to_string().into()).collect();
            let said = said.raw("members", &list(&members)).bool("botToken", it.bot_token.is_some());
            match integration.names_key.filter(|_| !members.is_empty()) {
                Some(key) => said.text("namesDigest", &key.digest(it.members.iter().map(|it| &*it.name))),
                None => said,
            }
        }
        IntegrationConfig::Signals(it) => {
            let mut said = said;
            for (name, text) in [("issuer", &it.issuer), ("audience", &it.audience)] {
                said = text.iter().fold(said, |said, text| said.text(name, text));
            }
            match &it.keys {
                None => said,
                Some(SignalKeys::Url(url)) => said.text("jwksUrl", url.as_str()),
                Some(SignalKeys::Set(set)) => said.text("jwks", &Digest::of(&**set).named()),
            }
        }
    }
    .finish()
}

/// Notes of a workspace's mail that nobody whom it names is a member any more: whoever it is for, nobody is told.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(in crate::rules) fn note_forsaken(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<(), Halt> {
    let tells = scope.get::<Workspace>(workspace)?.is_some_and(|it| it.told_over.contains(&IntegrationKind::Mail));
    if !tells {
        return Ok(());
    }
    let slot = IntegrationSlot { workspace, kind: IntegrationKind::Mail };
    let Some(mail) = scope.get::<Integration>(slot)? else { return Ok(()) };
    let IntegrationConfig::Mail(MailConfig { to }) = &mail.config else { return Ok(()) };
    scope.want(&to.iter().map(|it| Principal::key(*it)).collect::<Vec<_>>())?;
    for id in to {
        if scope.get::<Principal>(*id)?.is_some_and(|it| it.membership().is_some()) {
            return Ok(());
        }
    }
    if !to.is_empty() && !mail.failing {
        let why = Some("nobody whom `config.to` names is a member".into());
        scope.put(Integration { failing: true, last_error: why, ..Integration::clone(&mail) });
    }
    Ok(())
}

/// Ends an integration and its secrets.
#[derive(Clone, Debug)]
pub struct RemoveIntegration {
    /// Who asks.
    pub by: By,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Which integration.
    pub id: IntegrationId,
}

/// Removes an integration. What is still to be called over it is tried and given up, unless another takes its place first; an
/// export ends at once.
///
/// # Errors
/// As [`change_integration`].
pub fn remove_integration(scope: &mut Scope<'_>, asked: &RemoveIntegration) -> Result<(), Halt> {
    let removed = owned(scope, &asked.by, asked.workspace, asked.id)?;
    may(scope, &asked.by, asked.workspace, removed.slot.kind)?;
    is_spared(scope, &asked.by, &removed)?;
    let data = Object::new().text("kind", removed.slot.kind.as_str()).finish();
    record(scope, &asked.by, "integration.removed", &removed, data);
    keep(scope, asked.workspace, removed.slot.kind, None)?;
    export::end(scope, &removed)?;
    scope.delete::<Integration>(removed.slot);
    Ok(())
}

/// Puts another secret in force.
#[derive(Clone, Debug)]
pub struct RotateIntegration {
    /// Who asks.
    pub by: By,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Which integration.
    pub id: IntegrationId,
    /// The secret.
    pub secret: NewSecret,
    /// How long the one before stays good beside it, in hours: 0 to [`OVERLAP_MAX_HOURS`].
    pub overlap_hours: u16,
}

/// Puts another secret in force and lets the one before end. An export that waits or was given up is tried with it at once.
///
/// # Errors
/// Those of [`entitled`], also where the kind is the owners', or it links an owner, and the caller is none; `not_found`;
/// `not_allowed` where it is the only way into the workspace and nothing overlaps; `invalid_request` where the overlap is too long.
pub fn rotate_integration(scope: &mut Scope<'_>, asked: &RotateIntegration) -> Result<Arc<Integration>, Halt> {
    let before = owned(scope, &asked.by, asked.workspace, asked.id)?;
    may(scope, &asked.by, asked.workspace, before.slot.kind)?;
    may_speak(scope, &asked.by, asked.workspace, &before.config)?;
    if asked.overlap_hours > OVERLAP_MAX_HOURS {
        let why = format!("must be between 0 and {OVERLAP_MAX_HOURS}");
        return Err(Refusal::invalid_field("overlapHours", why).into());
    }
    // The secret before stays good beside one that may be mistyped.
    if asked.overlap_hours == 0 {
        is_spared(scope, &asked.by, &before)?;
    }
    let now = scope.now();
    let overlap = Span::hours(asked.overlap_hours.into());
    let after = Integration::clone(&before).rotated(asked.secret.at(now), overlap, now);
    let data = Object::new().text("kind", after.slot.kind.as_str()).int("overlapHours", asked.overlap_hours.into());
    record(scope, &asked.by, "integration.rotated", &after, data.finish());
    export::go_on(scope, &after, None)?;
    scope.put(after.clone());
    Ok(Arc::new(after))
}

/// Drops the secrets of an integration that have ended.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn end_secrets(scope: &mut Scope<'_>, slot: IntegrationSlot) -> Result<(), Halt> {
    if let Some(integration) = scope.get::<Integration>(slot)? {
        scope.put(Integration::clone(&integration).swept(scope.now()));
    }
    Ok(())
}

/// Tries an integration out: one signed call, once.
#[derive(Clone, Debug)]
pub struct TestIntegration {
    /// Who asks.
    pub by: By,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Which integration.
    pub id: IntegrationId,
    /// Who is called, checked by the outbound guard; an integration that has its own address, or needs none, takes none.
    pub url: Option<UrlText>,
}

/// An integration and the call that tries it out.
#[derive(Clone, Debug)]
pub struct Tested {
    /// The integration.
    pub integration: Arc<Integration>,
    /// The call.
    pub job: Arc<Job>,
}

/// Has an integration tried out.
///
/// # Errors
/// Those of [`entitled`], also where it links an owner and the caller is none; `not_found`, `not_allowed` where it is the other side
/// that calls, and `invalid_request` naming `url` where nobody is named.
pub fn test_integration(scope: &mut Scope<'_>, asked: &TestIntegration) -> Result<Tested, Halt> {
    let integration = called(scope, &asked.by, asked.workspace, asked.id)?;
    may_speak(scope, &asked.by, asked.workspace, &integration.config)?;
    let job = test_job(scope, asked, &integration)?;
    let host = job.host();
    let data = Object::new().text("deliveryId", &job.id.to_string()).text("host", &host).finish();
    record(scope, &asked.by, "integration.tested", &integration, data);
    scope.put(job.clone());
    Ok(Tested { integration, job: Arc::new(job) })
}

/// One of a workspace's integrations over which something is called.
///
/// # Errors
/// Those of [`owned`], and `not_allowed` where it is the other side that calls.
pub fn called(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    id: IntegrationId,
) -> Result<Arc<Integration>, Halt> {
    let integration = owned(scope, by, workspace, id)?;
    if !integration.slot.kind.is_called() {
        let why = match integration.slot.kind == IntegrationKind::Oidc {
            true => "nothing is called over this kind: sign in by it in another browser",
            false => "nothing is called over this kind: have the other side send an event to its `receiveUrl`",
        };
        return Err(Refusal::not_allowed(why).into());
    }
    Ok(integration)
}

/// The call or message that tries an integration out.
fn test_job(scope: &mut Scope<'_>, asked: &TestIntegration, integration: &Integration) -> Result<Job, Halt> {
    let test = |to| Work::Test { integration: integration.id, over: integration.slot.kind, to };
    let (id, workspace, now) = (scope.fresh(), asked.workspace, scope.now());
    let none = |field: &str| Refusal::invalid_field(field, "must not be sent: this kind has its own address");
    match (&integration.config, asked.url.clone()) {
        (IntegrationConfig::Mail(_) | IntegrationConfig::Chat(_) | IntegrationConfig::Deciders(_), Some(_)) => {
            Err(none("url").into())
        }
        (IntegrationConfig::Deciders(it), None) => {
            let to = asked.by.principal().filter(|by| it.members.iter().any(|it| it.principal == *by));
            let to = to.filter(|_| it.bot_token.is_some()).ok_or_else(|| {
                Refusal::not_allowed(
                    "it goes to whoever asks: they have to be in `config.members`, beside a `botToken`",
                )
            })?;
            Ok(Job::without_url(id, workspace, test(Some(to)), now))
        }
        (IntegrationConfig::Mail(_), None) => {
            let to = asked.by.principal();
            let to = to.ok_or_else(|| Refusal::not_allowed("a person tries mail out: it goes to whoever asks"))?;
            Ok(Job::without_url(id, workspace, test(Some(to)), now))
        }
        (IntegrationConfig::Chat(chat), None) => match &chat.url {
            Some(url) => Ok(Job::new(id, workspace, test(None), url.clone(), now)),
            None => Err(Refusal::not_allowed("it has no `config.url` to post to").into()),
        },
        (_, Some(url)) => Ok(Job::new(id, workspace, test(None), url, now)),
        (config, None) => match config.export_url() {
            Some(url) => Ok(Job::new(id, workspace, test(None), url.clone(), now)),
            None => Err(Refusal::invalid_field("url", "is required").into()),
        },
    }
}

fn host(url: &UrlText) -> String {
    let url = url::Url::parse(url.as_str()).ok();
    url.and_then(|it| it.host_str().map(str::to_owned)).unwrap_or_default()
}

/// One of a workspace's integrations.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn owned(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    id: IntegrationId,
) -> Result<Arc<Integration>, Halt> {
    let found = all(scope, by, workspace)?.into_iter().find(|it| it.id == id);
    found.ok_or_else(|| Refusal::not_found().into())
}

/// A workspace's integrations, the newest first.
///
/// # Errors
/// Those of [`entitled`].
pub fn all(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId) -> Result<Vec<Arc<Integration>>, Halt> {
    entitled(scope, by, workspace, Right::ManageIntegrations)?;
    let slots: Vec<IntegrationSlot> =
        IntegrationKind::ALL.iter().map(|kind| IntegrationSlot { workspace, kind: *kind }).collect();
    let keys: Vec<_> = slots.iter().map(|slot| Integration::key(*slot)).collect();
    scope.want(&keys)?;
    let mut found = Vec::new();
    for slot in slots {
        found.extend(scope.get::<Integration>(slot)?);
    }
    found.sort_by_key(|it| core::cmp::Reverse(it.id));
    Ok(found)
}

/// The names of those whom an integration links no more: their links are over, and nothing that they press is heard.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn ended_links(scope: &mut Scope<'_>, of: &Integration) -> Result<Vec<Box<str>>, Halt> {
    let members = of.config.members();
    scope.want(&members.iter().map(|it| Principal::key(it.principal)).collect::<Vec<_>>())?;
    let mut ended = Vec::new();
    for link in members {
        if !scope.get::<Principal>(link.principal)?.is_some_and(|it| link.holds(&it)) {
            ended.push(link.name.clone());
        }
    }
    Ok(ended)
}

/// That `by` may make, change, rotate or remove an integration of this kind: whoever controls the one that signs people in can be
/// anybody whom it signs in, an owner too, and whoever controls the one that ends sessions ends an owner's.
fn may(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, kind: IntegrationKind) -> Result<(), Halt> {
    if kind.is_owners() { owners::may(scope, by, workspace) } else { Ok(()) }
}

/// That `by` may have an integration stand so: whoever controls one that links an owner speaks as that owner. A link that is over
/// speaks for nobody, and stays over.
fn may_speak(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, config: &IntegrationConfig) -> Result<(), Halt> {
    scope.want(&config.members().iter().map(|it| Principal::key(it.principal)).collect::<Vec<_>>())?;
    for link in config.members() {
        let linked = scope.get::<Principal>(link.principal)?.filter(|it| link.holds(it));
        if linked.as_ref().and_then(|it| it.membership()).is_some_and(|it| it.role == Role::Owner) {
            return owners::may(scope, by, workspace);
        }
    }
    Ok(())
}

/// That nobody is locked out where an integration changes or goes: while it is the only way into the workspace, it stays as it is.
fn is_spared(scope: &mut Scope<'_>, by: &By, integration: &Integration) -> Result<(), Halt> {
    let slot = integration.slot;
    let workspace = scope.get::<Workspace>(slot.workspace)?.ok_or_else(Refusal::not_found)?;
    if slot.kind == IntegrationKind::Oidc && workspace.settings.sign_in.require_sso && !matches!(by, By::Program) {
        let why = "nobody could sign in any more: set `signIn.requireSso` to false first";
        return Err(Refusal::not_allowed(why).into());
    }
    Ok(())
}

fn record(scope: &mut Scope<'_>, by: &By, kind: &'static str, of: &Integration, data: String) -> EvidenceId {
    let fact = Fact { kind, actor: by.actor(), subject: Subject::Integration(of.id), data };
    scope.append(of.slot.workspace, fact)
}
