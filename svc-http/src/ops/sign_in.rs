//! Signing in.
//!
//! **Invariant:** whatever is wrong is told in one text and after the same work, so nobody learns who has an account.

use std::time::Instant;

use http::HeaderValue;
use http::header::SET_COOKIE;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::people::by::{InWorkspace, workspaces_of};
use svc_core::rules::people::second_factor::FactorShown;
use svc_core::rules::people::sessions::Started;
use svc_core::rules::people::sign_in::{FinishSignIn, Shown, SignInStep, StartSession, password_of, pending};
use svc_core::state::people::{Account, MemberState, SESSION_LIFE};
use svc_core::value::digest::Digest;
use svc_core::value::id::AccountId;
use svc_core::value::secret::Secret;
use svc_core::value::text::Email;

use super::{GateService, refusal, single_sign_on};
use crate::address::RateAddress;
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::SignInOp;
use crate::secrets::{self, NewSecret};
use crate::totp;
use crate::wire::me;
use crate::wire::sign_in::{self, Factor, NextStep};
use crate::wrong_sign_ins::Try;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(service: &GateService, op: SignInOp, call: &Call) -> Result<Answer, Refusal> {
    // People come by these two, who read pages.
    match op {
        SignInOp::Sso => return Ok(single_sign_on::begin(service, call).await),
        SignInOp::SsoCallback => return Ok(single_sign_on::returned(service, call).await),
        SignInOp::Password | SignInOp::Link | SignInOp::Totp | SignInOp::SsoLink => {}
    }
    let answered = match op {
        SignInOp::Password => by_password(service, call).await,
        SignInOp::Link => {
            let token = sign_in::link(&call.body)?;
            start(service, Shown::Link(Digest::of(token.expose()))).await
        }
        SignInOp::Totp => by_second_factor(service, call).await,
        SignInOp::Sso | SignInOp::SsoCallback => Err(Refusal::internal()),
        SignInOp::SsoLink => single_sign_on::confirm(service, call).await,
    };
    // No credential was missing: the one that was sent is wrong.
    answered.map_err(|it| if it.kind() == Kind::Unauthenticated { Refusal::wrong_sign_in() } else { it })
}

async fn by_password(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let (email, password) = sign_in::credentials(&call.body)?;
    let Begun { step, cookie, waiting } = with_password(service, &email, password, call).await?;
    told(service, step, &cookie, waiting.as_ref())
}

/// A sign-in as it stands, and the secrets that it may have given.
pub(super) struct Begun {
    pub(super) step: SignInStep,
    pub(super) cookie: NewSecret,
    pub(super) waiting: Option<NewSecret>,
}

/// Signs in by e-mail and password.
pub(super) async fn with_password(
    service: &GateService,
    email: &Email,
    password: Secret<String>,
    call: &Call,
) -> Result<Begun, Refusal> {
    let tried = service.begin_try(email.folded(), call)?;
    judged(tried, show_password(service, email, password).await)
}

async fn show_password(service: &GateService, email: &Email, password: Secret<String>) -> Result<Begun, Refusal> {
    let found = service.read(|scope| password_of(scope, email))?;
    let hash = found.as_ref().map(|(_, hash)| hash.clone());
    let agrees = service.passwords.agrees(password, hash).await?;
    let (account, hash) = found.filter(|_| agrees).ok_or_else(Refusal::unauthenticated)?;
    begin(service, Shown::Password { account, hash }).await
}

/// What came of a try, which ends with it. It was wrong where that says so of what was shown; what this server could not look at is
/// nobody's wrong try.
pub(super) fn judged<T>(tried: Try<'_>, came: Result<T, Refusal>) -> Result<T, Refusal> {
    let is_wrong = |it: &Refusal| matches!(it.kind(), Kind::InvalidRequest | Kind::Unauthenticated);
    if !came.as_ref().is_err_and(is_wrong) {
        tried.forgive();
    }
    came
}

async fn start(service: &GateService, shown: Shown) -> Result<Answer, Refusal> {
    let Begun { step, cookie, waiting } = begin(service, shown).await?;
    told(service, step, &cookie, waiting.as_ref())
}

async fn begin(service: &GateService, shown: Shown) -> Result<Begun, Refusal> {
    let (cookie, waiting) = (draw("")?, draw("")?);
    let step = service.run(StartSession { shown, cookie: cookie.digest, pending: waiting.digest }).await?;
    Ok(Begun { step, cookie, waiting: Some(waiting) })
}

async fn by_second_factor(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let (token, factor) = sign_in::second_factor(&call.body)?;
    let Begun { step, cookie, waiting } = with_code(service, &token, &factor, call).await?;
    told(service, step, &cookie, waiting.as_ref())
}

/// Shows the second factor of a sign-in that waits for it.
pub(super) async fn with_code(
    service: &GateService,
    token: &Secret<String>,
    factor: &Factor,
    call: &Call,
) -> Result<Begun, Refusal> {
    let waiting = NewSecret { text: Secret::new(token.expose().clone()), digest: Digest::of(token.expose()) };
    let token = waiting.digest;
    let (_, account) = service.read(|scope| pending(scope, &token))?;
    let tried = service.begin_try(account.email.folded(), call)?;
    let (step, cookie) = match show_code(service, token, &account, factor).await {
        Ok((SignInStep::Wrong, cookie)) => {
            drop(tried);
            (SignInStep::Wrong, cookie)
        }
        came => judged(tried, came)?,
    };
    Ok(Begun { step, cookie, waiting: Some(waiting) })
}

async fn show_code(
    service: &GateService,
    pending: Digest,
    account: &Account,
    factor: &Factor,
) -> Result<(SignInStep, NewSecret), Refusal> {
    let shown = service.look_at_factor(account, factor)?;
    let cookie = draw("")?;
    let step = service.run(FinishSignIn { pending, shown, cookie: cookie.digest }).await?;
    Ok((step, cookie))
}

/// The answer of a sign-in as it stands.
pub(super) fn told(
    service: &GateService,
    step: SignInStep,
    cookie: &NewSecret,
    waiting: Option<&NewSecret>,
) -> Result<Answer, Refusal> {
    match step {
        SignInStep::Wrong => Err(Refusal::unauthenticated()),
        SignInStep::Totp => {
            let pending = waiting.map(|it| it.text.expose().as_str());
            Ok(Answer::json(sign_in::write(NextStep::Totp, pending, None)?))
        }
        SignInStep::Sso(account) => {
            let workspaces: Vec<_> = service.workspaces(account, true)?.iter().map(me::workspace).collect();
            let proof = waiting.map(|it| it.text.expose().as_str());
            Ok(Answer::json(sign_in::write(NextStep::Sso, proof, Some(&workspaces))?))
        }
        SignInStep::Started(Started { account, next, .. }) => {
            let workspaces: Vec<_> = service.workspaces(account, false)?.iter().map(me::workspace).collect();
            let answer = Answer::json(sign_in::write(next.into(), None, Some(&workspaces))?);
            let seconds = SESSION_LIFE.as_millis() / 1_000;
            service.with_cookie(answer, cookie.text.expose(), seconds)
        }
    }
}

pub(super) fn draw(prefix: &str) -> Result<NewSecret, Refusal> {
    secrets::draw(prefix).map_err(refusal)
}

/// What is kept of a recovery code: whose it is goes in, and how it was typed does not.
pub(super) fn recovery_digest(account: AccountId, code: &str) -> Digest {
    let code: String = code.chars().filter(char::is_ascii_alphanumeric).map(|it| it.to_ascii_lowercase()).collect();
    Digest::of(format!("recovery {account} {code}"))
}

impl GateService {
    /// Begins a try to sign in, which counts as wrong where it is not forgiven.
    pub(super) fn begin_try(&self, email: &str, call: &Call) -> Result<Try<'_>, Refusal> {
        let address = RateAddress::from(call.address);
        self.wrong.begin(email, address, Instant::now()).map_err(Refusal::rate_limited)
    }

    /// Begins a try that is at nobody's account: however many were wrong, it ends no other's behind the same address.
    pub(super) fn begin_in_line(&self, what: &str, call: &Call) -> Result<Try<'_>, Refusal> {
        let address = RateAddress::from(call.address);
        self.wrong.begin_in_line(what, address, Instant::now()).map_err(Refusal::rate_limited)
    }

    /// A second factor as the commit judges it.
    pub(super) fn look_at_factor(&self, account: &Account, factor: &Factor) -> Result<FactorShown, Refusal> {
        match (factor, &account.second_factor) {
            (Factor::Recovery(code), _) => Ok(FactorShown::Recovery(recovery_digest(account.id, code.expose()))),
            (Factor::Code(_), None) => Ok(FactorShown::Code { sealed: "".into(), step: None }),
            (Factor::Code(code), Some(second)) => {
                let step = self.step_of(account.id, &second.sealed, code)?;
                Ok(FactorShown::Code { sealed: second.sealed.clone(), step })
            }
        }
    }

    /// The time step that a code belongs to, of those that count now.
    pub(super) fn step_of(
        &self,
        account: AccountId,
        sealed: &str,
        code: &Secret<String>,
    ) -> Result<Option<u64>, Refusal> {
        let secret = self.gate.open_sealed(&Account::factor_purpose(account), sealed).map_err(refusal)?;
        Ok(totp::step_of(secret.expose(), code.expose(), self.gate.now()))
    }

    /// The workspaces of an account; without `all` those alone where its membership is active.
    pub(super) fn workspaces(&self, account: AccountId, all: bool) -> Result<Vec<InWorkspace>, Refusal> {
        let mut found = self.read(|scope| {
            let account = scope.get::<Account>(account)?.ok_or_else(Refusal::internal)?;
            workspaces_of(scope, &account)
        })?;
        let is_active = |it: &InWorkspace| it.principal.membership().is_some_and(|it| it.state == MemberState::Active);
        found.retain(|it| all || is_active(it));
        Ok(found)
    }

    /// The same answer with the session's cookie, or with its end where `sid` is empty.
    pub(super) fn with_cookie(&self, answer: Answer, sid: &str, seconds: i64) -> Result<Answer, Refusal> {
        let value = HeaderValue::from_str(&self.site.set_cookie(sid, seconds)).map_err(|_| Refusal::internal())?;
        Ok(answer.with_header(SET_COOKIE, value))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::wrong_sign_ins::WrongSignIns;

    /// A try was wrong where that is what it was told, and nowhere else.
    #[test]
    fn only_what_is_told_so_was_wrong() {
        let wrong = Refusal::invalid_field("current", "is not the present password");
        for (told, counts) in [
            (Ok(()), false),
            (Err(Refusal::not_ready()), false),
            (Err(Refusal::internal()), false),
            (Err(wrong), true),
            (Err(Refusal::unauthenticated()), true),
        ] {
            let (tries, now) = (WrongSignIns::default(), Instant::now());
            for _ in 0..10 {
                let tried = tries.begin("ann", RateAddress(1), now).unwrap();
                assert_eq!(judged(tried, told.clone()).is_ok(), told.is_ok());
            }
            assert_eq!(tries.begin("ann", RateAddress(1), now).is_err(), counts, "{told:?}");
        }
    }
}
