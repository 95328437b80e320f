//! What a caller gets of an action: how it reads, why, and the receipt where there is one.
//!
//! [`Decided`] has all of it; [`Decided::decision`] sorts it into what there is to do, so that a `match` misses nothing.

use std::fmt::Display;
use std::ops::Deref;

use crate::rules::read::View;
use crate::state::gate::receipt::{Claims, Signer, write};
use crate::state::gate::{Action, Effect, Reason, Status, Verb};
use crate::value::Timestamp;
use crate::value::id::ActionId;

/// The page on which an approval is read and decided, of the service at this base address; a refusal has the ids as texts.
#[must_use]
pub fn approval_page(base: &str, workspace: impl Display, approval: impl Display) -> String {
    format!("{}/w/{workspace}/approvals/{approval}", base.trim_end_matches('/'))
}

/// An action as its caller sees it.
#[derive(Clone, Debug)]
pub struct Decided {
    view: View,
    receipt: Option<String>,
    url: Option<String>,
}

impl Decided {
    /// The answer over `view`; signs a receipt where there is to be one, so make it off the lane.
    #[must_use]
    pub fn of(view: View, signer: &dyn Signer) -> Self {
        let allowed = view.action.allowed().filter(|_| view.has_receipt());
        let receipt = allowed.map(|it| write(&Claims::of(&view.action, it, signer.issuer()), signer));
        let url = view.approval.as_ref().map(|it| approval_page(signer.issuer(), it.workspace, it.id));
        Self { view, receipt, url }
    }

    /// What the agent is to do.
    #[must_use]
    pub fn verb(&self) -> Verb {
        self.view.verb()
    }

    /// How the action reads.
    #[must_use]
    pub fn status(&self) -> Status {
        self.view.status()
    }

    /// The action's id.
    #[must_use]
    pub fn id(&self) -> ActionId {
        self.view.action.id
    }

    /// The action.
    #[must_use]
    pub fn action(&self) -> &Action {
        &self.view.action
    }

    /// The action with the rows that say how it reads.
    #[must_use]
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// The signed receipt, while the action may be acted on.
    #[must_use]
    pub fn receipt(&self) -> Option<&str> {
        self.receipt.as_deref()
    }

    /// Until when the receipt is good, where there is one.
    #[must_use]
    pub fn receipt_expires_at(&self) -> Option<Timestamp> {
        self.receipt.as_ref()?;
        self.view.action.allowed().map(|it| it.receipt_expires_at)
    }

    /// When the receipt was used up, where it was: the action may have been done from then on.
    #[must_use]
    pub fn receipt_used_at(&self) -> Option<Timestamp> {
        self.view.action.allowed()?.consumed.as_ref().map(|it| it.at)
    }

    /// Every rule that spoke.
    #[must_use]
    pub fn reasons(&self) -> Vec<Reason> {
        self.view.reasons()
    }

    /// The link under which a person decides, where one was asked.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Whether this answers a request that was made before.
    #[must_use]
    pub const fn is_replay(&self) -> bool {
        self.view.replayed
    }
}

/// An answer by what there is to do about it. Only [`Allow`](Self::Allow) lets anything happen.
#[must_use = "an answer may be a no"]
#[derive(Clone, Debug)]
pub enum Decision {
    /// Go on, and show the receipt to whoever asks for it.
    Allow(Allowed),
    /// A person has been asked: wait, and read the action again.
    Ask(Asked),
    /// Stop, and say why.
    Deny(Denied),
    /// It was allowed earlier and its receipt was used up, but nobody has said what became of it: the payment may have been made.
    /// Find out, and settle it; the receipt pays no second time. A request that is made again after a crash reads so.
    Used(Used),
    /// Nothing is left to do: it was allowed earlier and has been settled, has lapsed, or its receipt has expired. A request
    /// that is made again with its idempotency key reads so.
    Past(Decided),
}

/// An action that may be done now. It reads as the [`Decided`] that it is.
#[derive(Clone, Debug)]
pub struct Allowed {
    decided: Decided,
    receipt: String,
}

/// An action that may have been done: its receipt was used up. It reads as the [`Decided`] that it is.
#[derive(Clone, Debug)]
pub struct Used {
    decided: Decided,
    at: Timestamp,
}

/// An action that a person decides. It reads as the [`Decided`] that it is.
#[derive(Clone, Debug)]
pub struct Asked {
    decided: Decided,
    url: String,
}

/// An action that is not to be done. It reads as the [`Decided`] that it is.
#[derive(Clone, Debug)]
pub struct Denied {
    decided: Decided,
}

impl Decided {
    /// Sorts the answer by what there is to do about it.
    pub fn decision(mut self) -> Decision {
        if let (Status::Allowed, Some(at)) = (self.status(), self.receipt_used_at()) {
            return Decision::Used(Used { decided: self, at });
        }
        match (self.verb(), self.receipt.take(), self.url.take()) {
            (Verb::Allow, Some(receipt), url) => {
                Decision::Allow(Allowed { decided: Self { receipt: Some(receipt.clone()), url, ..self }, receipt })
            }
            (Verb::Allow, None, url) => Decision::Past(Self { url, ..self }),
            (Verb::Ask, _, Some(url)) => Decision::Ask(Asked { decided: Self { url: Some(url.clone()), ..self }, url }),
            // An ask without anybody to ask permits nothing either.
            (Verb::Ask | Verb::Deny, _, url) => Decision::Deny(Denied { decided: Self { url, ..self } }),
        }
    }
}

impl Allowed {
    /// The signed receipt: whoever is to be paid or to act verifies it, once.
    #[must_use]
    pub fn receipt(&self) -> &str {
        &self.receipt
    }
}

impl Used {
    /// When the receipt was used up.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }
}

impl Asked {
    /// The link under which the person decides.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Denied {
    /// Why not, in one line for a person.
    #[must_use]
    pub fn why(&self) -> String {
        let denies = |it: &Reason| (it.effect == Effect::Deny).then(|| it.message());
        self.reasons().iter().filter_map(denies).collect::<Vec<_>>().join("; ")
    }
}

macro_rules! reads_as_decided {
    ($($name:ident)*) => {$(
        impl Deref for $name {
            type Target = Decided;
            fn deref(&self) -> &Decided {
                &self.decided
            }
        }
    )*};
}
reads_as_decided! { Allowed Used Asked Denied }

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "a test may panic")]
    use super::Decision;
    use crate::state::gate::{OutcomeStatus, Status};
    use crate::testing::World;
    use crate::testing::world::{key, payment, terms};
    use crate::value::Span;

    const OFFICE: &str = r#"{"name":"Office","actions":["payment"],
        "limits":{"currency":"EUR","perAction":5000,"askAbove":1000}}"#;

    /// Each decision comes with what there is to do about it, and what is over lets nothing happen a second time.
    #[test]
    fn an_answer_is_sorted_by_what_there_is_to_do() {
        let mut world = World::new();
        let agent = world.agent().with_mandate(terms(OFFICE)).register();
        let ask = |minor| payment(minor, "EUR", "shop.example.com").keyed(key(&minor.to_string()));
        let Decision::Allow(allowed) = world.authorize(&agent, ask(900)).decision() else { panic!("an allow") };
        assert_eq!(Some(allowed.receipt()), allowed.decided.receipt());
        let Decision::Ask(asked) = world.authorize(&agent, ask(4_000)).decision() else { panic!("an ask") };
        assert!(asked.url().ends_with(&asked.view().approval.as_ref().map_or(String::new(), |it| it.id.to_string())));
        let Decision::Deny(denied) = world.authorize(&agent, ask(6_000)).decision() else { panic!("a deny") };
        assert_eq!(denied.why(), "EUR 60.00 is above EUR 50.00 for one action");
        assert!(denied.receipt().is_none());
        world.settle(&agent, allowed.id(), OutcomeStatus::Completed, Some(900));
        let Decision::Past(past) = world.authorize(&agent, ask(900)).decision() else { panic!("a replay") };
        assert_eq!((past.id(), past.status(), past.receipt()), (allowed.id(), Status::Completed, None));
        world.advance(Span::hours(24));
        let Decision::Deny(expired) = world.read(&agent, asked.id()).decision() else { panic!("nobody decided") };
        assert_eq!((expired.status(), expired.why()), (Status::Expired, "nobody decided in time".to_owned()));
        world.freeze(agent.agent);
        let Decision::Deny(stopped) = world.authorize(&agent, ask(1)).decision() else { panic!("a stopped agent") };
        assert_eq!(stopped.why(), "the agent is stopped; only a person can start it again");
    }
}
