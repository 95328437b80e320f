//! What the time of a connection brings: one whose tokens nobody renews ends, and of one that has been over for long its tokens are
//! let go of, a bounded number a commit. The connection itself stays, so that people see that there was one.
//!
//! **Invariant:** the tokens of a connection that has not ended are all kept, since a used one ends it whenever it is shown.

use std::sync::Arc;

use super::end::end;
use super::tokens::forget_access;
use crate::state::connect::{Connection, EndedBy, RefreshToken};
use crate::state::evidence::Actor;
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::digest::RefreshId;
use crate::value::id::ConnectionId;

/// Lets go of tokens that a scan found of a connection.
#[derive(Clone, Debug)]
pub struct SweepTokens {
    /// Of which connection.
    pub connection: ConnectionId,
    /// What the scan found.
    pub tokens: Vec<RefreshId>,
}

/// Sweeps tokens; those of a connection that is not over yet are left.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn sweep_tokens(scope: &mut Scope<'_>, asked: &SweepTokens) -> Result<(), Halt> {
    if due(scope, asked.connection)?.is_none() {
        return Ok(());
    }
    scope.want(&asked.tokens.iter().map(|it| RefreshToken::key(*it)).collect::<Vec<_>>())?;
    for id in &asked.tokens {
        if scope.get::<RefreshToken>(*id)?.is_some_and(|it| it.connection == asked.connection) {
            scope.delete::<RefreshToken>(*id);
        }
    }
    Ok(())
}

/// Ends a connection whose tokens nobody has renewed for long; of one that is over for long, notes that its tokens are gone, the
/// access token of a removed agent among them.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn wake(scope: &mut Scope<'_>, id: ConnectionId) -> Result<(), Halt> {
    let now = scope.now();
    if let Some(idle) = scope.get::<Connection>(id)?.filter(|it| it.is_idle(now)) {
        return end(scope, &idle, EndedBy::Unused, Actor::Policy);
    }
    if let Some(connection) = due(scope, id)? {
        forget_access(scope, &connection)?;
        scope.put(Connection { swept: true, ..Connection::clone(&connection) });
    }
    Ok(())
}

/// The connection, where its tokens are due to go.
fn due(scope: &mut Scope<'_>, id: ConnectionId) -> Result<Option<Arc<Connection>>, Halt> {
    let now = scope.now();
    Ok(scope.get::<Connection>(id)?.filter(|it| it.swept_at().is_some_and(|at| at <= now)))
}
