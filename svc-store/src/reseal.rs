//! Another master key in the place of the one that a gate has: everything is opened under the one and sealed under the other.

use svc_core::engine::Failure;
use svc_core::rules::people::reseal::{Reseal, sealed_in};
use svc_core::rules::people::sealed::resealed;
use svc_core::state::people::{Account, Principal, SigningKey};
use svc_core::store::{Key, Range, Record, Row as _, Table};
use svc_core::value::Id as _;
use svc_core::value::link::{Index, SHARDS};

use crate::error::StoreError;
use crate::gate::{Gate, PAGE};
use crate::seal::MasterKey;

/// What was sealed anew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resealed {
    /// How many rows.
    pub rows: usize,
    /// Rows with a text that the key of before did not open, which was left as it is.
    pub left: Vec<Key>,
}

impl Gate {
    /// Seals all that the gate keeps sealed under `to`, in one commit of which every ledger tells. What did not open before is left as it
    /// is and named, as it is of no use under either key; a signing key that does not open ends it.
    ///
    /// From then on the gate opens nothing any more: close it, have its vault hold `to`, and open another. Nobody else may have the
    /// store open meanwhile, neither a server nor a program: what they seal under the key of before can be opened by nobody. What lies sealed outside of the
    /// store, such as the cookie of a sign-in under way or a button in a message, is void.
    ///
    /// # Errors
    /// [`StoreError::NoVault`]; [`StoreError::Sealed`] where a signing key is sealed under another key; `not_allowed` where something was sealed
    /// meanwhile. Nothing is changed then, unless the commit is [`Unknown`](svc_core::store::CommitError::Unknown).
    pub fn reseal(&self, to: &MasterKey) -> Result<Resealed, Failure<StoreError>> {
        let from = self.vault().map_err(Failure::Load)?;
        let workspaces = self.workspaces()?;
        let (mut rows, mut left) = (Vec::new(), Vec::new());
        for row in self.sealed_rows(&workspaces)? {
            let (key, mut is_left) = (row.key(), false);
            let mut seal = |purpose: &str, sealed: &str| match from.open(purpose, sealed) {
                Ok(opened) => to.seal(purpose, opened.expose()).map(Into::into),
                Err(StoreError::Sealed) if key.table() != Table::SigningKey => {
                    is_left = true;
                    Ok(sealed.into())
                }
                Err(error) => Err(error),
            };
            let after = resealed(&row, &mut seal).map_err(Failure::Load)?;
            rows.extend(after.map(|after| (row, after)));
            left.extend(is_left.then_some(key));
        }
        let sealed = rows.len();
        self.execute(Reseal { rows, workspaces })?;
        Ok(Resealed { rows: sealed, left })
    }

    /// Every row that may hold sealed texts, each once.
    fn sealed_rows(&self, workspaces: &[svc_core::value::id::WorkspaceId]) -> Result<Vec<Record>, Failure<StoreError>> {
        let mut rows: Vec<Record> = self.signing_keys()?.into_iter().map(|it| SigningKey::wrap(it.into())).collect();
        let mut accounts = Vec::new();
        for workspace in workspaces {
            let keys = self.read(|scope| sealed_in(scope, *workspace))?;
            rows.extend(self.load(&keys)?);
            let people = self.scan_all(Range::all(Index::PrincipalsOf, workspace.bits(), PAGE))?;
            let people = people.iter().filter_map(|it| Principal::peel(it.row.record.as_ref()?));
            accounts.extend(people.filter_map(|it| it.member.as_ref()).map(|it| Account::key(it.account)));
        }
        // Whoever is a member of several workspaces has one account.
        accounts.sort_unstable();
        accounts.dedup();
        for some in accounts.chunks(PAGE) {
            rows.extend(self.load(some)?);
        }
        for shard in 0..SHARDS {
            let waiting = self.scan_all(Range::all(Index::Outbox, shard, PAGE))?;
            rows.extend(waiting.into_iter().filter_map(|it| it.row.record));
        }
        Ok(rows)
    }
}
