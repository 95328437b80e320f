//! Signing in from a page of this server: the form twin of `/api/sign-in`.
//!
//! **Invariant:** a form counts only with this server's own origin and the cookie that its page came with, and leads only
//! back to the page that asked for it.

use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::people::sign_in::SignInStep;
use svc_core::state::people::SESSION_LIFE;
use svc_core::value::secret::Secret;
use svc_core::value::text::Email;

use super::authorize::with_form_cookie;
use super::page;
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::ops::GateService;
use crate::ops::sign_in::{Begun, draw, with_code, with_password};
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
    let again = draw("")?;
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
    let (base, shown) = (service.site.path(), again.text.expose());
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
            "this account signs in by its workspace's single sign-on: do so in the console first",
        )),
        Ok(Begun { step: SignInStep::Started(_), cookie, .. }) => {
            let to = HeaderValue::from_str(&format!("{base}{next}")).map_err(|_| Refusal::internal())?;
            let answer = Answer::html("").with_status(StatusCode::SEE_OTHER).with_header(LOCATION, to);
            let answer = service.with_cookie(answer, cookie.text.expose(), SESSION_LIFE.as_millis() / 1_000)?;
            with_form_cookie(service, answer, "")
        }
    }
}
