//! Keeps what a full stretch of the ledger comes to.

use crate::refusal::Refusal;
use crate::state::evidence::{Chain, TALLIED, Tally};
use crate::turn::{Halt, Scope};

/// Keeps a tally: what [`Counter`](crate::state::evidence::Counter) made of a full stretch of placed records.
#[derive(Clone, Debug)]
pub struct KeepTally(pub Tally);

/// Keeps a tally unless it is there: whoever counts the same records by the same days counts the same. One by the days of
/// another zone, or by earlier rules, makes way.
///
/// # Errors
/// `internal` where the stretch is not full, so that its tally would change.
pub fn keep_tally(scope: &mut Scope<'_>, asked: &KeepTally) -> Result<(), Halt> {
    let chain = scope.get::<Chain>(asked.0.id.workspace)?.ok_or_else(Refusal::internal)?;
    let end = u64::from(asked.0.id.number).saturating_add(1).saturating_mul(TALLIED);
    if chain.size < end {
        return Err(Refusal::internal().into());
    }
    if scope.get::<Tally>(asked.0.id)?.is_none_or(|it| (&it.zone, it.by) != (&asked.0.zone, asked.0.by)) {
        scope.put(asked.0.clone());
    }
    Ok(())
}
