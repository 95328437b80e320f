//! The request that is worked on, for whatever is logged meanwhile: the line of a cause and the line of the answer that it led to
//! carry one id.
//!
//! **Invariant:** of a request nothing is kept here but its id, its route's template and the id of a workspace.

use std::cell::Cell;
use std::fmt::Write as _;

use http::HeaderValue;
use svc_core::value::id::WorkspaceId;
use tokio::task::JoinHandle;
use tokio::task_local;

task_local! {
    static AT_HAND: AtHand;
}

/// A request, as far as its lines are tied together by it.
#[derive(Clone, Debug)]
pub(crate) struct AtHand {
    request_id: HeaderValue,
    route: Cell<Option<&'static str>>,
    workspace: Cell<Option<WorkspaceId>>,
}

impl AtHand {
    /// The request of this id, of which nothing else is known yet.
    pub(crate) const fn of(request_id: HeaderValue) -> Self {
        Self { request_id, route: Cell::new(None), workspace: Cell::new(None) }
    }

    /// The future as work on this request.
    pub(crate) fn within<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        AT_HAND.scope(self, future)
    }

    /// The request that is worked on here, where there is one.
    pub(crate) fn now() -> Option<Self> {
        AT_HAND.try_with(Clone::clone).ok()
    }

    /// Adds what is known of it to a line that does not say so itself.
    pub(crate) fn tie(&self, line: &mut String, json: bool) {
        let end = if json { "}\n" } else { "\n" };
        let Some(length) = line.strip_suffix(end).map(str::len) else { return };
        line.truncate(length);
        let workspace = self.workspace.get().map(|it| it.to_string());
        let known = [
            ("request_id", self.request_id.to_str().ok()),
            ("route", self.route.get()),
            ("workspace", workspace.as_deref()),
        ];
        for (name, value) in known {
            let Some(value) = value else { continue };
            // None of these values has a character that JSON writes otherwise.
            let _ = match (json, line.contains(&format!("\"{name}\":"))) {
                (true, true) => Ok(()),
                (true, false) => write!(line, ",\"{name}\":\"{value}\""),
                (false, _) => write!(line, " {name}={value}"),
            };
        }
        line.push_str(end);
    }
}

/// Notes which route the request at hand is for, and which workspace its path names.
pub(crate) fn found(route: &'static str, workspace: Option<WorkspaceId>) {
    let _ = AT_HAND.try_with(|it| {
        it.route.set(Some(route));
        it.workspace.set(workspace);
    });
}

/// The future as work on the request at hand, wherever it is run.
pub(crate) fn carried<F: Future>(future: F) -> impl Future<Output = F::Output> {
    carried_by(AtHand::now(), future)
}

/// The same for a request that was at hand before.
pub(crate) async fn carried_by<F: Future>(at_hand: Option<AtHand>, future: F) -> F::Output {
    match at_hand.or_else(AtHand::now) {
        Some(it) => it.within(future).await,
        None => future.await,
    }
}

/// Work that blocks, for the request at hand.
pub(crate) fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let at_hand = AtHand::now();
    tokio::task::spawn_blocking(move || match at_hand {
        Some(it) => AT_HAND.sync_scope(it, work),
        None => work(),
    })
}
