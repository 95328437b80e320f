//! Signing in from a page of this server: the form twin of `/api/sign-in`.
//!
//! **Invariant:** a form counts once and for ten minutes, only with this server's own origin and the cookie that its page came
//! with, and leads only back to the page that asked for it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::people::sign_in::SignInStep;
use svc_core::state::people::SESSION_LIFE;
use svc_core::value::digest::Digest;
use svc_core::value::secret::Secret;
use svc_core::value::text::Email;
use svc_core::value::{Span, Timestamp};

use super::authorize::with_form_cookie;
use super::page;
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::ops::sign_in::{Begun, with_code, with_password};
use crate::ops::{GateService, refusal};
use crate::wire::oauth::Form;
use crate::wire::sign_in::Factor;

/// How long the page can be answered, in seconds.
pub(super) const FORM_SECONDS: i64 = 600;
/// Where signing in may lead, as this server's routes have it: the path before them is put there on the way out.
const NEXT: &str = "/oauth/authorize?";
const WRONG: &str = "That did not match. Try again.";

/// Answers the form.
pub(super) async fn answer(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let form = Form::of(&call.headers, &call.uri, &call.body)?;
    let token = service.site.form_token(&call.headers);
    if !service.site.is_own_form(&call.headers) || token.is_none() || token != form.get("request") {
        return Err(Refusal::csrf());
    }
    let next = form.need("next")?;
    if !next.starts_with(NEXT) || !next.bytes().all(|it| it.is_ascii_graphic()) {
        return Err(Refusal::invalid_field("next", "leads elsewhere"));
    }
    if !is_good(service, token.unwrap_or_default(), next) {
        return Err(Refusal::csrf());
    }
    let again = form_token(service, next)?;
    let pending = form.get("pending");
    let begun = match pending {
        Some(pending) => {
            let (pending, code) = (Secret::new(pending.to_owned()), Secret::new(form.need("code")?.to_owned()));
            with_code(service, &pending, &Factor::Code(code), call).await
        }
        None => {
            let email = Email::parse(form.need("email")?).map_err(|_| Refusal::unauthenticated());
            match (email, form.get("password")) {
                (Ok(email), Some(password)) => {
                    with_password(service, &email, Secret::new(password.to_owned()), call).await
                }
                _ => Err(Refusal::unauthenticated()),
            }
        }
    };
    let (base, shown) = (service.site.path(), again.as_str());
    let retry = |said| match pending {
        Some(pending) => page::second_factor(base, shown, next, pending, said),
        None => page::sign_in(base, shown, next, said),
    };
    match begun {
        Err(refusal) if refusal.kind() == Kind::Unauthenticated => with_form_cookie(service, retry(Some(WRONG)), shown),
        Err(refusal) => Err(refusal),
        Ok(Begun { step: SignInStep::Wrong, .. }) => with_form_cookie(service, retry(Some(WRONG)), shown),
        Ok(Begun { step: SignInStep::Totp, waiting, .. }) => {
            let waiting = waiting.as_ref().map(|it| it.text.expose().as_str()).unwrap_or_default();
            with_form_cookie(service, page::second_factor(base, shown, next, waiting, None), shown)
        }
        Ok(Begun { step: SignInStep::Sso(_), .. }) => Err(Refusal::forbidden(
            "this account signs in by its workspace's single sign-on, which this page cannot do",
        )),
        Ok(Begun { step: SignInStep::Started(_), cookie, .. }) => {
            let to = HeaderValue::from_str(&format!("{base}{next}")).map_err(|_| Refusal::internal())?;
            let answer = Answer::html("").with_status(StatusCode::SEE_OTHER).with_header(LOCATION, to);
            let answer = service.with_cookie(answer, cookie.text.expose(), SESSION_LIFE.as_millis() / 1_000)?;
            with_form_cookie(service, answer, "")
        }
    }
}

/// A token for a form that leads to `next`: when it was made, sealed for that place, so that it is good nowhere else.
pub(super) fn form_token(service: &GateService, next: &str) -> Result<String, Refusal> {
    let now = service.gate.now().as_millis().to_be_bytes();
    service.gate.seal(&purpose(next), &now).map_err(refusal)
}

/// Whether a form's token was made for `next` within ten minutes and was not shown before.
fn is_good(service: &GateService, token: &str, next: &str) -> bool {
    let Ok(opened) = service.gate.open_sealed(&purpose(next), token) else { return false };
    let Ok(made) = <[u8; 8]>::try_from(opened.expose().as_slice()) else { return false };
    service.forms.spend(token, Timestamp::from_millis(i64::from_be_bytes(made)), service.gate.now())
}

fn purpose(next: &str) -> String {
    format!("sign-in form {next}")
}

/// Forms that have been sent, for as long as their tokens would be good.
#[derive(Debug, Default)]
pub(crate) struct SentForms(Mutex<BTreeSet<(Timestamp, Digest)>>);

/// So many of them are remembered, the newest.
const SENT_MAX: usize = 10_000;

impl SentForms {
    /// Remembers a token that was made then; whether it is good.
    fn spend(&self, token: &str, made: Timestamp, now: Timestamp) -> bool {
        let life = Span::seconds(FORM_SECONDS);
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while sent.len() >= SENT_MAX || sent.first().is_some_and(|(made, _)| made.plus(life) <= now) {
            sent.pop_first();
        }
        now < made.plus(life) && sent.insert((made, Digest::of(token)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token is good once, for ten minutes; what is too old is not remembered, nor more than so many.
    #[test]
    fn a_form_is_sent_once() {
        let (forms, made) = (SentForms::default(), Timestamp::from_millis(1_000));
        let later = |seconds| made.plus(Span::seconds(seconds));
        assert!(forms.spend("a", made, later(599)) && !forms.spend("a", made, later(599)));
        assert!(!forms.spend("b", made, later(600)));
        for n in 0..=SENT_MAX {
            assert!(forms.spend(&n.to_string(), later(1), later(2)));
        }
        let sent = forms.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert_eq!(sent, SENT_MAX);
    }
}
