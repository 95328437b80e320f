//! Signing in from a page of this server: the form twin of `/api/sign-in`.
//!
//! **Invariant:** a form counts once and for ten minutes, only with this server's own origin and the cookie of the browser that
//! its page was shown in, and leads only back to the page that asked for it.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::people::sign_in::{SignInStep, pending};
use svc_core::state::people::SESSION_LIFE;
use svc_core::value::digest::Digest;
use svc_core::value::id::AccountId;
use svc_core::value::secret::Secret;
use svc_core::value::text::Email;
use svc_core::value::{Span, Timestamp};

use super::authorize::session;
use super::page;
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::headers::URI_BYTES_MAX;
use crate::ops::sign_in::{Begun, draw, with_code, with_password};
use crate::ops::single_sign_on::NEXT_MAX;
use crate::ops::{GateService, refusal};
use crate::pages::refused;
use crate::wire::oauth::Form;
use crate::wire::sign_in::Factor;

/// How long the page can be answered, in seconds.
const FORM_SECONDS: i64 = 600;
/// Where signing in may lead, as this server's routes have it: the path before them is put there on the way out.
const NEXT: &str = "/oauth/authorize?";
const WRONG: &str = "That did not match. Try again.";
const STALE: &str = "This page was sent before, or is too old. Sign in here.";
const ENDED: &str = "This sign-in has ended: there were too many wrong codes, or it took too long. Begin again.";
/// Characters of a browser's cookie, of base64url.
const COOKIE_CHARACTERS: usize = 43;

/// Whether this is the address of a question, as this server's routes have it.
pub(in crate::ops) fn is_question(next: &str) -> bool {
    next.starts_with(NEXT) && next.bytes().all(|it| it.is_ascii_graphic())
}

/// The page that asks who somebody is, before the question at `next`.
pub(super) fn ask(service: &GateService, call: &Call, next: &str) -> Result<Answer, Refusal> {
    Browser::of(service, call)?.shown(next, |form| page::sign_in(form, None))
}

/// Answers the form.
pub(super) async fn answer(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let form = Form::of(&call.headers, &call.uri, &call.body)?;
    if !service.site.is_own_form(&call.headers) {
        return Err(Refusal::csrf());
    }
    let next = form.need("next")?;
    if !is_question(next) {
        return Err(Refusal::invalid_field("next", "leads elsewhere"));
    }
    // A question came by an address of this server; what is longer came from no page of it, and is not kept.
    if next.len() > URI_BYTES_MAX {
        return Err(Refusal::invalid_field("next", format!("is longer than {URI_BYTES_MAX} bytes")));
    }
    let browser = Browser::of(service, call)?;
    if !browser.sent(form.get("request").unwrap_or_default(), next) {
        return stale(&browser, call, next);
    }
    let waiting = form.get("pending");
    let begun = match waiting {
        Some(waiting) => {
            let factor = Factor::typed(form.need("code")?);
            with_code(service, &Secret::new(waiting.to_owned()), &factor, call).await
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
    match begun {
        Err(refusal) => again(&browser, next, waiting, &refusal),
        Ok(Begun { step: SignInStep::Wrong, .. }) => again(&browser, next, waiting, &Refusal::wrong_sign_in()),
        Ok(Begun { step: SignInStep::Totp, waiting, .. }) => {
            let waiting = waiting.as_ref().map(|it| it.text.expose().as_str()).unwrap_or_default();
            browser.shown(next, |form| page::second_factor(form, waiting, None))
        }
        Ok(Begun { step: SignInStep::Sso(account), .. }) => {
            let places = service.workspaces(account, true)?;
            let places = places.iter().map(|it| (it.workspace.id.to_string(), it.workspace.name.as_str()));
            Ok(page::single_sign_on(service.site.path(), &way_back(service, account, next)?, places))
        }
        Ok(Begun { step: SignInStep::Started(_), cookie, .. }) => {
            let answer = onward(service, next)?;
            let answer = service.with_cookie(answer, cookie.text.expose(), SESSION_LIFE.as_millis() / 1_000)?;
            with_form_cookie(service, answer, "")
        }
    }
}

/// The page again where it led nowhere, with a form that counts: the second factor's for as long as its sign-in waits, else the
/// first one.
fn again(browser: &Browser<'_>, next: &str, waiting: Option<&str>, refusal: &Refusal) -> Result<Answer, Refusal> {
    let said = match refusal.kind() {
        Kind::Unauthenticated | Kind::WrongSignIn => WRONG.to_owned(),
        _ => {
            let (said, fix) = refused::words(refusal);
            format!("{said} {fix}")
        }
    };
    let shown = match waiting.map(|it| (it, browser.service.read(|scope| pending(scope, &Digest::of(it))))) {
        None => browser.shown(next, |form| page::sign_in(form, Some(&said))),
        Some((_, Err(ended))) if ended.kind() == Kind::Unauthenticated => {
            browser.shown(next, |form| page::sign_in(form, Some(ENDED)))
        }
        Some((waiting, _)) => browser.shown(next, |form| page::second_factor(form, waiting, Some(&said))),
    };
    Ok(refused::told(refusal, shown?))
}

/// What a form leads to that does not count: to the question where its browser is signed in by now, as it was sent twice or
/// another page was answered meanwhile, else to a form that counts.
fn stale(browser: &Browser<'_>, call: &Call, next: &str) -> Result<Answer, Refusal> {
    if session(browser.service, call)?.is_some() {
        return onward(browser.service, next);
    }
    Ok(browser.shown(next, |form| page::sign_in(form, Some(STALE)))?.with_status(StatusCode::FORBIDDEN))
}

/// The address of a question that travels to an identity provider and back: its own, or a short one where that is too long.
pub(super) fn way_back<'a>(
    service: &GateService,
    account: AccountId,
    question: &'a str,
) -> Result<Cow<'a, str>, Refusal> {
    if question.len() <= NEXT_MAX {
        return Ok(Cow::Borrowed(question));
    }
    service.questions.keep(account, question, service.gate.now()).map(Cow::Owned)
}

/// On to a page of this server, or to the question itself.
pub(super) fn onward(service: &GateService, next: &str) -> Result<Answer, Refusal> {
    let to = HeaderValue::from_str(&format!("{}{next}", service.site.path())).map_err(|_| Refusal::internal())?;
    Ok(Answer::html("").with_status(StatusCode::SEE_OTHER).with_header(LOCATION, to))
}

/// The same answer with the cookie that a form of this server has to come with, or its end where it is empty.
fn with_form_cookie(service: &GateService, answer: Answer, cookie: &str) -> Result<Answer, Refusal> {
    let seconds = if cookie.is_empty() { 0 } else { FORM_SECONDS };
    let cookie = HeaderValue::from_str(&service.site.set_form_cookie(cookie, seconds));
    Ok(answer.with_header(SET_COOKIE, cookie.map_err(|_| Refusal::internal())?))
}

/// A browser that forms are shown in, known by a cookie that all of them share: it may have several open at once.
struct Browser<'call> {
    service: &'call GateService,
    cookie: String,
}

impl<'call> Browser<'call> {
    fn of(service: &'call GateService, call: &Call) -> Result<Self, Refusal> {
        let plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
        let sent = service.site.form_cookie(&call.headers);
        let sent = sent.filter(|it| it.len() == COOKIE_CHARACTERS && it.bytes().all(plain));
        let cookie = match sent {
            Some(cookie) => cookie.to_owned(),
            None => draw("")?.text.expose().clone(),
        };
        Ok(Self { service, cookie })
    }

    /// A page with a form that leads to `next`, under a token of its own.
    fn shown(&self, next: &str, page: impl FnOnce(page::Form<'_>) -> Answer) -> Result<Answer, Refusal> {
        let now = self.service.gate.now().as_millis().to_be_bytes();
        let request = self.service.gate.seal(&self.purpose(next), &now).map_err(refusal)?;
        let form = page::Form { base: self.service.site.path(), request: &request, next };
        with_form_cookie(self.service, page(form), &self.cookie)
    }

    /// Whether a form's token was made for this browser and for `next` within ten minutes, and was not shown before.
    fn sent(&self, token: &str, next: &str) -> bool {
        let Ok(opened) = self.service.gate.open_sealed(&self.purpose(next), token) else { return false };
        let Ok(made) = <[u8; 8]>::try_from(opened.expose().as_slice()) else { return false };
        self.service.forms.spend(token, Timestamp::from_millis(i64::from_be_bytes(made)), self.service.gate.now())
    }

    /// What a token is sealed for, so that it is good nowhere else.
    fn purpose(&self, next: &str) -> String {
        format!("sign-in form {} {next}", self.cookie)
    }
}

/// Questions that are too long to travel to an identity provider and back: they wait here, and a short address stands for each. Only
/// whoever has shown a good password, or is signed in, has one kept.
#[derive(Debug, Default)]
pub(crate) struct KeptQuestions(Mutex<VecDeque<Kept>>);

#[derive(Debug)]
struct Kept {
    token: Digest,
    account: AccountId,
    until: Timestamp,
    question: Box<str>,
}

/// So many questions wait, the newest, each of at most `URI_BYTES_MAX`: 8 MiB.
const QUESTIONS_MAX: usize = 512;
/// So many of one account, so that nobody takes the place of others.
const QUESTIONS_OF_ONE: usize = 8;
/// How long a question waits: as long as a person may be away, and as long again until what the provider says is linked.
const QUESTION_LIFE: Span = Span::minutes(30);
/// The member of a query by which a question that is kept is named.
pub(super) const QUESTION: &str = "question";

impl KeptQuestions {
    /// Keeps a question for an account, and gives the address that stands for it.
    fn keep(&self, account: AccountId, question: &str, now: Timestamp) -> Result<String, Refusal> {
        let token = draw("")?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|it| now < it.until);
        let own = all.iter().filter(|it| it.account == account).count();
        if own >= QUESTIONS_OF_ONE
            && let Some(oldest) = all.iter().position(|it| it.account == account)
        {
            all.remove(oldest);
        }
        if all.len() >= QUESTIONS_MAX {
            all.pop_front();
        }
        all.push_back(Kept { token: token.digest, account, until: now.plus(QUESTION_LIFE), question: question.into() });
        Ok(format!("{NEXT}{QUESTION}={}", token.text.expose()))
    }

    /// The question that a name stands for, as long as it waits.
    pub(super) fn named(&self, token: &str, now: Timestamp) -> Option<Box<str>> {
        let token = Digest::of(token);
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|it| it.token == token && now < it.until).map(|it| it.question.clone())
    }
}

/// Forms that have been sent, for as long as their tokens would be good.
#[derive(Debug, Default)]
pub(crate) struct SentForms(Mutex<BTreeSet<(Timestamp, Digest)>>);

/// So many of them are remembered, the newest.
const SENT_MAX: usize = 10_000;

impl SentForms {
    /// Remembers a token that was made then; whether it is good.
    pub(in crate::ops) fn spend(&self, token: &str, made: Timestamp, now: Timestamp) -> bool {
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
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use svc_core::value::Id as _;

    use super::*;

    /// A question waits for half an hour under a name that nobody guesses; one account has few, and all of them together are bounded.
    #[test]
    fn a_question_is_kept_for_a_while() {
        let (kept, now) = (KeptQuestions::default(), Timestamp::from_millis(1_000));
        let (own, other) = (AccountId::from_bits(1), AccountId::from_bits(2));
        let keep = |account, question: &str| {
            let address = kept.keep(account, question, now).unwrap();
            assert!(is_question(&address) && address.len() < NEXT_MAX, "{address}");
            address.rsplit_once('=').unwrap().1.to_owned()
        };
        let first = keep(other, "/oauth/authorize?a");
        let names: Vec<String> = (0..=QUESTIONS_OF_ONE).map(|n| keep(own, &n.to_string())).collect();
        assert_eq!(kept.named(&first, now).as_deref(), Some("/oauth/authorize?a"), "another's takes no place of it");
        assert_eq!((kept.named(&names[0], now), kept.named(&names[1], now).as_deref()), (None, Some("1")));
        assert_eq!(kept.named(&first, now.plus(QUESTION_LIFE)), None);
        for n in 0..=QUESTIONS_MAX as u128 {
            keep(AccountId::from_bits(n + 10), "q");
        }
        let all = kept.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert_eq!(all, QUESTIONS_MAX);
    }

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
