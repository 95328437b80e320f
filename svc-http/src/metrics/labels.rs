//! What metrics are told apart by, and how many names of tenants' choosing there are of it at most.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use svc_core::state::edge::IntegrationKind;
use svc_core::state::gate::Verb;
use svc_core::state::gateway::{Attempt, Call, CallEnd};

use crate::tool_server::Trouble;

/// Names of models, and of MCP servers, that are told apart: whoever makes, calls and renames them at will makes no more.
pub(super) const NAMES_MAX: usize = 1_000;
/// What stands for the names beyond.
const OTHER: &str = "other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Answered {
    pub(super) route: &'static str,
    pub(super) status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfRoute {
    pub(super) route: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Refused {
    pub(super) r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Decided {
    decision: &'static str,
}

impl Decided {
    pub(super) const fn of(verb: Verb) -> Self {
        let decision = match verb {
            Verb::Allow => "allow",
            Verb::Deny => "deny",
            Verb::Ask => "approval_required",
        };
        Self { decision }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Reused {
    pub(super) by: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfModel {
    provider: Arc<str>,
    model: Arc<str>,
}

impl OfModel {
    pub(super) fn new(provider: &str, model: &str) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }

    /// The model that a call went to last.
    pub(super) fn of(call: &Call) -> Self {
        let target = call.target.as_ref();
        target.map_or_else(|| Self::new("none", "none"), |it| Self::new(it.provider.as_str(), it.model.as_str()))
    }

    /// The model that a failed try went to.
    pub(super) fn tried(attempt: &Attempt) -> Self {
        Self::new(attempt.provider.as_str(), attempt.model.as_str())
    }

    pub(super) fn ended(&self, end: CallEnd) -> CallEnded {
        let Self { provider, model } = self.clone();
        CallEnded { provider, model, end: end.as_str() }
    }

    pub(super) fn used(&self, kind: &'static str) -> Tokens {
        let Self { provider, model } = self.clone();
        Tokens { provider, model, kind }
    }

    pub(super) fn failed(&self, error: &'static str) -> TryFailed {
        let Self { provider, model } = self.clone();
        TryFailed { provider, model, error }
    }
}

impl Default for OfModel {
    /// One of those beyond the most.
    fn default() -> Self {
        Self::new(OTHER, OTHER)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CallEnded {
    provider: Arc<str>,
    model: Arc<str>,
    end: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Tokens {
    provider: Arc<str>,
    model: Arc<str>,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TryFailed {
    provider: Arc<str>,
    model: Arc<str>,
    error: &'static str,
}

/// An MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OfServer(Arc<str>);

impl OfServer {
    pub(super) fn new(server: &str) -> Self {
        Self(server.into())
    }

    pub(super) fn ended(&self, end: ToolEnd) -> ToolCalled {
        ToolCalled { server: Arc::clone(&self.0), end: end.as_str() }
    }
}

impl Default for OfServer {
    /// One of those beyond the most.
    fn default() -> Self {
        Self::new(OTHER)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ToolCalled {
    server: Arc<str>,
    end: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Delivered {
    kind: &'static str,
    end: &'static str,
}

impl Delivered {
    pub(super) const fn of(kind: IntegrationKind, end: DeliveryEnd) -> Self {
        Self { kind: kind.as_str(), end: end.as_str() }
    }
}

/// What came of a call of a tool that went on to an MCP server, or was to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolEnd {
    /// The tool has given a result.
    Done,
    /// The tool says in its result that it went wrong.
    ToolError,
    /// The server has answered with an error of the protocol.
    Rejected,
    /// There was no result: the server was not reached, did not answer in time, or answered something else.
    Failed,
    /// There was no place for it.
    Busy,
    /// It was cut: its agent was stopped, its key was taken, or this server stopped.
    Cut,
    /// Its client called it off or went away.
    HungUp,
}

impl ToolEnd {
    pub(super) const ALL: [Self; 7] =
        [Self::Done, Self::ToolError, Self::Rejected, Self::Failed, Self::Busy, Self::Cut, Self::HungUp];

    /// How a call ended that had no result.
    pub(crate) const fn of(trouble: &Trouble) -> Self {
        match trouble {
            Trouble::Rpc(_) => Self::Rejected,
            Trouble::Failed(_)
            | Trouble::Credential
            | Trouble::NoSession
            | Trouble::Status(_)
            | Trouble::NotMcp(_)
            | Trouble::Unusable
            | Trouble::Denied => Self::Failed,
            Trouble::Busy | Trouble::AgentBusy => Self::Busy,
            Trouble::Stopping => Self::Cut,
            Trouble::CalledOff => Self::HungUp,
            Trouble::Unmet(why) => Self::of(why),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::ToolError => "tool_error",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Busy => "busy",
            Self::Cut => "cut",
            Self::HungUp => "hung_up",
        }
    }
}

/// What came of a try to make a call to the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryEnd {
    /// It was taken.
    Delivered,
    /// It was the last one: the call is given up.
    Failed,
    /// It failed, and another one comes.
    PutOff,
}

impl DeliveryEnd {
    pub(super) const ALL: [Self; 3] = [Self::Delivered, Self::Failed, Self::PutOff];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::PutOff => "put_off",
        }
    }
}

/// The names that were told of: as many as are told apart, and no more.
#[derive(Debug)]
pub(super) struct Names<K>(Mutex<HashSet<K>>);

impl<K> Default for Names<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Default + Eq + Hash> Names<K> {
    /// The name that something of `name` is told under: its own where there is room for it. `begin` is given one that was not told of
    /// before.
    pub(super) fn told(&self, name: K, begin: impl FnOnce(&K)) -> K {
        // What was held when somebody panicked is whole: a name is in it or not.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&name) {
            return name;
        }
        let name = if known.len() < NAMES_MAX { name } else { K::default() };
        if known.insert(name.clone()) {
            begin(&name);
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many names there were, so many are told apart, each of those for good, and each begins once.
    #[test]
    fn names_are_bounded() {
        let (names, mut begun) = (Names::default(), 0);
        for number in 0..NAMES_MAX * 2 {
            let name = OfServer::new(&number.to_string());
            let expected = if number < NAMES_MAX { name.clone() } else { OfServer::default() };
            assert_eq!(names.told(name, |_| begun += 1), expected);
        }
        let first = OfServer::new("0");
        assert_eq!(names.told(first.clone(), |_| begun += 1), first);
        assert_eq!(begun, NAMES_MAX + 1, "those beyond are one");
    }
}
