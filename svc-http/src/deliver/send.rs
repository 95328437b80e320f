//! One call or message: opened secrets, a signed post, a mail.
//!
//! **Invariant:** a secret is opened for one call and no log holds it.

use std::sync::Arc;

use serde_json::Value;
use svc_core::rules::edge::deliver::Claimed;
use svc_core::rules::edge::message::{About, Invited, Message};
use svc_core::state::edge::{Integration, IntegrationKind, Job, News, Posted, Tried, Trouble, signature};
use svc_core::value::secret::Secret;
use svc_store::{Gate, with_causes};

use super::facts::Facts;
use super::{letter, room, slack};
use crate::export;
use crate::inbound::button::buttons;
use crate::mail::{Mail, Mailer, NotTaken};
use crate::outbound::{Asker, Caller, Post};
use crate::secrets::sign_in_link;
use crate::slack::{Answered, Slack};
use crate::wire::delivery;

/// What sends, whatever is sent.
#[derive(Debug)]
pub struct Sender {
    caller: Caller,
    mailer: Option<Arc<Mailer>>,
    slack: Arc<Slack>,
    base: String,
}

/// What came of a try.
pub(super) struct Came {
    /// What is remembered of it.
    pub(super) tried: Tried,
    /// For how many seconds whoever was called wants no other.
    pub(super) wait_s: Option<u32>,
    /// Where the message stands, where whoever took it says so.
    pub(super) posted: Option<Posted>,
}

impl Sender {
    /// Calls as `caller` does, mails as `mailer` does, where it may mail, and asks in Slack as `slack` does; links lead to a server
    /// that is reached at `base`.
    #[must_use]
    pub fn new(caller: Caller, mailer: Option<Arc<Mailer>>, slack: Arc<Slack>, base: &str) -> Self {
        Self { caller, mailer, slack, base: base.trim_end_matches('/').to_owned() }
    }

    /// Whether it mails.
    pub(super) const fn mails(&self) -> bool {
        self.mailer.is_some()
    }

    /// Makes one call, or sends one message, and tells what came of it; how long it took is the caller's to say.
    pub(super) async fn send(&self, gate: &Gate, claimed: &Claimed) -> Came {
        let (mut wait_s, mut posted) = (None, None);
        let (status, error) = match (&claimed.message, claimed.job.over()) {
            (Some(message), Some(IntegrationKind::Mail)) => match self.mail(gate, &claimed.job, message).await {
                Ok(status) => (Some(status), None),
                Err(NotTaken { status, trouble }) => (status, Some(trouble)),
            },
            (Some(message), Some(IntegrationKind::Slack)) => match self.ask(gate, &claimed.job, message).await {
                Ok(answer) => {
                    (wait_s, posted) = (answer.wait_s, answer.at);
                    (Some(answer.status), answer.error)
                }
                Err(trouble) => (None, Some(trouble)),
            },
            (Some(message), _) => {
                let buttons = offered(gate, message, &self.base);
                match room::body(message, &claimed.job.id.to_string(), &self.base, buttons) {
                    Some(body) => of_call(self.post(gate, claimed, body).await),
                    None => (None, Some(Trouble::Refused)),
                }
            }
            (None, _) => {
                let body = match delivery::body(&claimed.job) {
                    Some(body) => Some(body),
                    None => export::body(gate, &claimed.job).await,
                };
                match body {
                    Some(body) => of_call(self.post(gate, claimed, body).await),
                    None => (None, Some(Trouble::Records)),
                }
            }
        };
        Came { tried: Tried { status, error, ms: 0 }, wait_s, posted }
    }

    /// Asks somebody in Slack.
    async fn ask(&self, gate: &Gate, job: &Job, message: &Message) -> Result<Answered, Trouble> {
        let (Some(slot), Some(reach)) = (job.slot(), &message.reach) else { return Err(Trouble::Secret) };
        let token = match gate.open_sealed(&Integration::bot_purpose(slot), &reach.token.sealed) {
            Ok(token) => token,
            Err(failure) => {
                tracing::error!(error = with_causes(&failure), "a bot's token cannot be opened");
                return Err(Trouble::Secret);
            }
        };
        let body = slack::body(message, &reach.name, &self.base).ok_or(Trouble::Refused)?;
        match &message.about {
            About::Ended(..) => self.slack.update(&token, body).await,
            About::Test
            | About::Asked(_)
            | About::Conflict(_)
            | About::Ran(_)
            | About::Loosened(_)
            | About::Invited(_) => self.slack.post(&token, body).await,
        }
    }

    async fn mail(&self, gate: &Gate, job: &Job, message: &Message) -> Result<u16, NotTaken> {
        let mailer = self.mailer.as_ref().ok_or(Trouble::NoMail)?;
        let to = message.to.as_ref().ok_or(Trouble::Refused)?;
        let link = match &message.about {
            About::Invited(Invited { token: Some((sealed, _)), .. }) => Some(self.link(gate, job, sealed)?),
            About::Invited(_)
            | About::Test
            | About::Asked(_)
            | About::Ended(..)
            | About::Conflict(_)
            | About::Ran(_)
            | About::Loosened(_) => None,
        };
        let letter = letter::of(message, &self.base, link.as_ref());
        let (id, to) = (job.id.to_string(), to.email.to_string());
        mailer.send(Mail { id, to, subject: letter.subject, text: letter.text, at: gate.now() }).await
    }

    /// The link of an invitation.
    fn link(&self, gate: &Gate, job: &Job, sealed: &str) -> Result<Secret<String>, Trouble> {
        let token = gate.open_sealed(&News::purpose(job.workspace), sealed).map_err(|failure| {
            tracing::error!(error = with_causes(&failure), "the token of an invitation cannot be opened");
            Trouble::Secret
        })?;
        let token = std::str::from_utf8(token.expose()).map_err(|_| Trouble::Secret)?;
        Ok(Secret::new(sign_in_link(&self.base, token)))
    }

    /// Posts a body, signed, and gives the status of the answer.
    async fn post(&self, gate: &Gate, claimed: &Claimed, body: Vec<u8>) -> Result<u16, Trouble> {
        let job: &Job = &claimed.job;
        let (Some(slot), Some(url)) = (job.slot(), &job.url) else { return Err(Trouble::Address) };
        let purpose = Integration::purpose(slot);
        let mut secrets: Vec<Secret<Vec<u8>>> = Vec::new();
        for sealed in &claimed.secrets {
            match gate.open_sealed(&purpose, &sealed.sealed) {
                Ok(secret) => secrets.push(secret),
                Err(failure) => {
                    tracing::error!(error = with_causes(&failure), "a secret to sign with cannot be opened");
                    return Err(Trouble::Secret);
                }
            }
        }
        if secrets.is_empty() {
            return Err(Trouble::Secret);
        }
        let signature = signature(gate.now(), &body, secrets.iter().map(|it| it.expose().as_slice()));
        self.caller
            .post(Post {
                url: url.as_str(),
                asker: Asker::Workspace(job.workspace),
                event: job.id.to_string(),
                signature,
                body,
            })
            .await
    }
}

/// The buttons that a relay is given with a message. Nobody agrees in one to what they see half of.
fn offered(gate: &Gate, message: &Message, base: &str) -> Vec<Value> {
    match (&message.relay, &message.about) {
        (Some(relay), About::Asked(asked)) => {
            buttons(gate, relay, &asked.question, Facts::of(asked, base).is_whole, gate.now())
        }
        _ => Vec::new(),
    }
}

fn of_call(answer: Result<u16, Trouble>) -> (Option<u16>, Option<Trouble>) {
    match answer {
        Ok(status) => (Some(status), trouble(status)),
        Err(trouble) => (None, Some(trouble)),
    }
}

/// What is wrong with an answer of this status.
const fn trouble(status: u16) -> Option<Trouble> {
    match status {
        200..=299 => None,
        300..=399 => Some(Trouble::Redirect),
        _ => Some(Trouble::Answer),
    }
}
