//! Slack, as this server calls it.
//!
//! **Invariant:** an answer to a press goes to Slack's own hosts alone, whatever address the press names.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use svc_core::state::edge::outbound::OutboundUrl;
use svc_core::state::edge::{Posted, Trouble};
use svc_core::value::json::Json;
use svc_core::value::secret::Secret;
use tokio::sync::Semaphore;
use url::Url;

use crate::outbound::{Asker, Caller};

/// Where Slack's methods are, unless the configuration says otherwise.
pub const API: &str = "https://slack.com/api";
/// Answers to presses that are under way at once; one more is not given, and the message stays as it was.
const ANSWERS_MAX: usize = 64;

/// Characters of a name that Slack gives a conversation, or a message in one.
const NAME_MAX: usize = 64;
/// What Slack says of a message that it has no more.
const GONE: &str = "message_not_found";

/// What came of a message.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The status of the answer.
    pub(crate) status: u16,
    /// What was wrong with it: Slack answers 200 to what it does not do as well.
    pub(crate) error: Option<Trouble>,
    /// For how many seconds Slack wants no other, where it says so.
    pub(crate) wait_s: Option<u32>,
    /// Where the message stands, where Slack has taken it and says so.
    pub(crate) at: Option<Posted>,
}

/// Slack.
#[derive(Debug)]
pub struct Slack {
    api: Box<str>,
    host: Box<str>,
    caller: OnceLock<Arc<Caller>>,
    places: Arc<Semaphore>,
}

impl Slack {
    /// Slack, with its methods at this address.
    #[must_use]
    pub fn at(api: &str) -> Self {
        let api: Box<str> = api.trim_end_matches('/').into();
        let host = Url::parse(&api).ok().and_then(|it| it.host_str().map(Into::into)).unwrap_or_default();
        Self { api, host, caller: OnceLock::new(), places: Arc::new(Semaphore::new(ANSWERS_MAX)) }
    }

    /// The host of its methods; empty where the address names none.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Calls with this caller from now on; before, nothing is called.
    pub(crate) fn call_with(&self, caller: Caller) {
        drop(self.caller.set(Arc::new(caller)));
    }

    /// Posts a message under a bot's token, whose body says to whom.
    ///
    /// # Errors
    /// [`Trouble`] where there was no answer, or none that can be read.
    pub(crate) async fn post(&self, token: &Secret<Vec<u8>>, body: Vec<u8>) -> Result<Answered, Trouble> {
        self.call("chat.postMessage", token, body).await
    }

    /// Changes a message, which its body names. One that somebody has taken away needs no change any more.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub(crate) async fn update(&self, token: &Secret<Vec<u8>>, body: Vec<u8>) -> Result<Answered, Trouble> {
        self.call("chat.update", token, body).await
    }

    async fn call(&self, method: &str, token: &Secret<Vec<u8>>, body: Vec<u8>) -> Result<Answered, Trouble> {
        let caller = self.caller.get().ok_or(Trouble::Interrupted)?;
        let url = format!("{}/{method}", self.api);
        let url = OutboundUrl::parse(&url, caller.guard()).map_err(|_| Trouble::Address)?;
        let answered = caller.ask(Asker::Server, &url, Some(token), body).await?;
        let (status, wait_s) = (answered.status, answered.retry_after_s);
        if !(200..300).contains(&status) {
            let error = Some(if (300..400).contains(&status) { Trouble::Redirect } else { Trouble::Answer });
            return Ok(Answered { status, error, wait_s, at: None });
        }
        let said = Json::parse(&answered.body).map_err(|_| Trouble::Protocol)?;
        if said.get("ok").and_then(Json::as_bool) == Some(true) {
            return Ok(Answered { status, error: None, wait_s: None, at: stands_at(&said) });
        }
        let why = said.get("error").and_then(Json::as_str).filter(|it| is_word(it)).unwrap_or("none that is a word");
        if why == GONE {
            return Ok(Answered { status, error: None, wait_s: None, at: None });
        }
        tracing::warn!(host = url.host(), why, method, "Slack did not take a message");
        Ok(Answered { status, error: Some(Trouble::Declined), wait_s, at: None })
    }

    /// Answers to a press at the address that came with it, which is good for half an hour: what was pressed has been decided, and
    /// whoever did is told here. Where it fails, pressing again tells the same.
    pub(crate) fn answer(&self, to: &str, message: &Value) {
        let Some(caller) = self.caller.get().map(Arc::clone) else { return };
        let url = OutboundUrl::parse(to, caller.guard()).ok().filter(|it| self.is_own(it));
        let Some(url) = url else {
            tracing::info!("a press names an address for answers that is not Slack's");
            return;
        };
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            tracing::info!(host = url.host(), "too many answers to presses are under way");
            return;
        };
        let body = message.to_string().into_bytes();
        tokio::spawn(async move {
            match caller.ask(Asker::Server, &url, None, body).await {
                Ok(answered) if answered.status == 200 => {}
                Ok(answered) => {
                    tracing::info!(host = url.host(), status = answered.status, "an answer to a press was refused");
                }
                Err(trouble) => tracing::info!(host = url.host(), error = trouble.as_str(), "a press was not answered"),
            }
            drop(place);
        });
    }

    /// Whether a host is one that Slack has presses answered at: `hooks.` before the host of its methods, or that itself.
    fn is_own(&self, url: &OutboundUrl) -> bool {
        url.host() == &*self.host || url.host().strip_prefix("hooks.") == Some(&*self.host)
    }
}

/// Where Slack says that a message stands: both names are short and plain, or none is kept.
fn stands_at(said: &Json) -> Option<Posted> {
    let named = |name: &str| {
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'.';
        let text = said.get(name).and_then(Json::as_str)?;
        ((1..=NAME_MAX).contains(&text.len()) && text.bytes().all(is_plain)).then(|| text.into())
    };
    Some(Posted { channel: named("channel")?, ts: named("ts")? })
}

/// Whether a text is a word as Slack has for its errors: nothing else of an answer is logged.
fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_lowercase() || it == b'_')
}

/// Slack where it is.
impl Default for Slack {
    fn default() -> Self {
        Self::at(API)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::state::edge::outbound::{Outbound, Private};

    use super::*;

    /// Presses are answered at Slack's own hosts alone.
    #[test]
    fn answers_go_to_slack_alone() {
        let guard = Outbound { private: Private::Nowhere, own_host: "svc.example".into() };
        let is_own = |slack: &Slack, url: &str| slack.is_own(&OutboundUrl::parse(url, &guard).unwrap());
        let slack = Slack::default();
        for (url, own) in [
            ("https://hooks.slack.com/actions/T1/2/3", true),
            ("https://slack.com/api/x", true),
            ("https://hooks.slack.com.example.com/actions", false),
            ("https://evilslack.com/actions", false),
            ("https://hooks.example.com/actions", false),
        ] {
            assert_eq!(is_own(&slack, url), own, "{url}");
        }
        assert!(is_own(&Slack::at("https://slack-gov.com/api/"), "https://hooks.slack-gov.com/actions/1"));
    }
}
