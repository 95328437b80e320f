//! A person's own account and sessions.

use serde_json::json;
use svc_core::refusal::Refusal;
use svc_core::rules::people::by::SignedIn;
use svc_core::rules::people::password::{ChangePassword, wrong_password};
use svc_core::rules::people::second_factor::{ChangeSecondFactor, FactorChange};
use svc_core::rules::people::sessions::EndSession;
use svc_core::rules::people::single_sign_on::shown_beside;
use svc_core::state::people::{Account, Proof, Session};
use svc_core::store::{Found, Range, Record, Row as _};
use svc_core::value::Id as _;
use svc_core::value::digest::Digest;
use svc_core::value::id::SessionId;
use svc_core::value::link::Index;
use svc_core::value::secret::Secret;

use super::aside::Asker;
use super::sign_in::{judged, recovery_digest};
use super::{Caller, GateService, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::MeOp;
use crate::totp;
use crate::wire::page::Query;
use crate::wire::{self, me, sign_in};

/// Recovery codes of a second factor.
const RECOVERY_CODES: usize = 10;
/// Random bytes of a recovery code.
const RECOVERY_BYTES: usize = 10;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(service: &GateService, op: MeOp, caller: &Caller, call: &Call) -> Result<Answer, Refusal> {
    let own = caller.session()?;
    let is_setting_up = matches!(op, MeOp::AddFactor | MeOp::ConfirmFactor | MeOp::SignOut);
    if own.must_enroll() && !is_setting_up {
        return Err(Refusal::must_enroll());
    }
    // Before anything is compared: the account's password and second factor are no workspace's to try out.
    if op == MeOp::Password {
        own.owns_account()?;
    }
    match op {
        MeOp::Get => read(service, own),
        MeOp::Password => set_password(service, own, call).await,
        MeOp::AddFactor => add_factor(service, own, call).await,
        MeOp::ConfirmFactor => confirm_factor(service, own, call).await,
        MeOp::RemoveFactor => {
            let (factor, proof) = sign_in::factor_beside(&call.body)?;
            let proof = beside(service, own, proof)?;
            let tried = service.begin_try(own.account.email.folded(), call)?;
            judged(tried, remove_factor(service, own, proof, &factor).await)?;
            Ok(Answer::empty())
        }
        MeOp::Sessions => sessions(service, own, call).await,
        MeOp::EndSession => {
            let ended = find_session(service, own, call.param("ses"))?;
            service.run(EndSession { by: own.row.id, ended: ended.id }).await?;
            let answer = Answer::empty();
            if ended.id == own.row.id { service.with_cookie(answer, "", 0) } else { Ok(answer) }
        }
        MeOp::SignOut => {
            wire::nothing(&call.body)?;
            service.run(EndSession { by: own.row.id, ended: own.row.id }).await?;
            service.with_cookie(Answer::json("{}"), "", 0)
        }
    }
}

fn read(service: &GateService, own: &SignedIn) -> Result<Answer, Refusal> {
    let mut workspaces = service.workspaces(own.account.id, false)?;
    // Whoever runs a workspace's provider can make sessions for its members: they tell nothing of where else these are.
    if let Proof::Sso(one) = own.row.proof {
        workspaces.retain(|it| it.workspace.id == one);
    }
    Ok(Answer::json(me::write(own, &workspaces)?))
}

async fn set_password(service: &GateService, own: &SignedIn, call: &Call) -> Result<Answer, Refusal> {
    let (current, password) = sign_in::new_password(&call.body)?;
    let mut checked = None;
    if let Some(current) = current {
        let tried = service.begin_try(own.account.email.folded(), call)?;
        let hash = own.account.password.as_ref().map(|it| it.hash.clone());
        let agrees = service.passwords.agrees(current, hash.clone()).await;
        judged(tried, agrees.and_then(|it| if it { Ok(()) } else { Err(wrong_password()) }))?;
        checked = hash;
    }
    let hash = service.passwords.hash(password).await?;
    service.run(ChangePassword { by: own.row.id, checked, hash }).await?;
    read(service, own)
}

/// The digest of the account's own proof, where one was sent: it is looked at before any code is compared.
fn beside(service: &GateService, own: &SignedIn, proof: Option<Secret<String>>) -> Result<Option<Digest>, Refusal> {
    let token = proof.map(|it| Digest::of(it.expose()));
    service.read(|scope| shown_beside(scope, own, token.as_ref()))?;
    Ok(token)
}

async fn add_factor(service: &GateService, own: &SignedIn, call: &Call) -> Result<Answer, Refusal> {
    let proof = beside(service, own, sign_in::own_proof(&call.body)?)?;
    let mut secret = [0; totp::SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(|_| Refusal::internal())?;
    let sealed = service.gate.seal(&Account::factor_purpose(own.account.id), &secret).map_err(refusal)?;
    let change = FactorChange::Begin { sealed: sealed.into() };
    service.run(ChangeSecondFactor { by: own.row.id, own: proof, change }).await?;
    let url = totp::otpauth_url(&secret, own.account.email.as_str());
    let picture = totp::qr_svg(&url).ok_or_else(Refusal::internal)?;
    let body = json!({ "secret": totp::base32(&secret), "otpauthUrl": url, "qrSvg": picture });
    Ok(Answer::json(body.to_string()))
}

async fn confirm_factor(service: &GateService, own: &SignedIn, call: &Call) -> Result<Answer, Refusal> {
    let (code, proof) = sign_in::code_beside(&call.body)?;
    let proof = beside(service, own, proof)?;
    let sealed = own.account.enrolling.clone().unwrap_or_default();
    let step = if sealed.is_empty() { None } else { service.step_of(own.account.id, &sealed, &code)? };
    let mut codes = Vec::with_capacity(RECOVERY_CODES);
    for _ in 0..RECOVERY_CODES {
        let mut bytes = [0; RECOVERY_BYTES];
        getrandom::fill(&mut bytes).map_err(|_| Refusal::internal())?;
        let text = totp::base32(&bytes).to_ascii_lowercase();
        codes.push(text.as_bytes().chunks(4).map(String::from_utf8_lossy).collect::<Vec<_>>().join("-"));
    }
    let recovery = codes.iter().map(|it| recovery_digest(own.account.id, it)).collect();
    let change = FactorChange::Confirm { sealed, step, recovery };
    service.run(ChangeSecondFactor { by: own.row.id, own: proof, change }).await?;
    Ok(Answer::json(json!({ "recoveryCodes": codes }).to_string()))
}

async fn remove_factor(
    service: &GateService,
    own: &SignedIn,
    proof: Option<Digest>,
    factor: &sign_in::Factor,
) -> Result<(), Refusal> {
    let change = FactorChange::Remove(service.look_at_factor(&own.account, factor)?);
    service.run(ChangeSecondFactor { by: own.row.id, own: proof, change }).await
}

async fn sessions(service: &GateService, own: &SignedIn, call: &Call) -> Result<Answer, Refusal> {
    let mut query = Query::among(&call.uri, call.route.query);
    let page = query.page("me/sessions", own.account.id);
    query.finish()?;
    let range = Range { newest_first: true, ..Range::all(Index::SessionsOf, own.account.id.bits(), 1) };
    let (now, who) = (service.gate.now(), own.clone());
    let is_live = move |it: &Session| it.is_live(now) && it.epoch == who.account.epoch && who.sees(it);
    let seen = move |_: &svc_store::Gate, found: &[Found]| {
        let sessions = found.iter().map(|it| it.row.record.as_ref().and_then(Session::peel));
        Ok(sessions.map(|it| it.is_some_and(|it| is_live(it))).collect())
    };
    let found = service.scan_seen(Asker::own(own.account.id, None), page.of(range), seen).await?;
    let answer = page.answer(&found, |row| {
        let session = row.row.record.as_ref().and_then(Session::peel);
        Ok(session.map(|it| me::session(it, own.session())))
    })?;
    Ok(Answer::json(answer))
}

fn find_session(service: &GateService, own: &SignedIn, id: &str) -> Result<std::sync::Arc<Session>, Refusal> {
    let id = SessionId::parse(id).map_err(|_| Refusal::not_found())?;
    let range = Range::all(Index::SessionsOf, own.account.id.bits(), 1);
    let range = Range { from: id.bits(), until: id.bits().saturating_add(1), ..range };
    let found = service.scan(&range)?.into_iter().find_map(|it| match it.row.record {
        Some(Record::Session(session)) if session.session == id => Some(session),
        _ => None,
    });
    found.ok_or_else(Refusal::not_found)
}
