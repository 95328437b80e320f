//! Another master key in the place of the one that a gate has: everything is opened under the one and sealed under the other.

use svc_core::engine::Failure;
use svc_core::rules::people::reseal::{Reseal, sealed_in};
use svc_core::rules::people::sealed::resealed;
use svc_core::state::people::{Account, Principal, SigningKey};
use svc_core::store::{Range, Record, Row as _};
use svc_core::value::Id as _;
use svc_core::value::link::{Index, SHARDS};

use crate::error::StoreError;
use crate::gate::{Gate, PAGE};
use crate::seal::MasterKey;

impl Gate {
    /// Seals all that the gate keeps sealed under `to`, in one commit of which every ledger tells, and says how many rows that were.
    ///
    /// From then on the gate opens nothing any more: close it, have its vault hold `to`, and open another. Nobody else may have the
    /// store open meanwhile, as what they sealed under the key of before could be opened by nobody. What lies sealed outside of the
    /// store, such as the cookie of a sign-in under way or a button in a message, is void.
    ///
    /// # Errors
    /// [`StoreError::NoVault`]; [`StoreError::Sealed`] where a text is sealed under another key; `not_allowed` where something was sealed
    /// meanwhile. Nothing is changed then, unless the commit is [`Unknown`](svc_core::store::CommitError::Unknown).
    pub fn reseal(&self, to: &MasterKey) -> Result<usize, Failure<StoreError>> {
        let from = self.vault().map_err(Failure::Load)?;
        let workspaces = self.workspaces()?;
        let mut rows = Vec::new();
        for row in self.sealed_rows(&workspaces)? {
            let mut seal = |purpose: &str, sealed: &str| {
                from.open(purpose, sealed).and_then(|it| to.seal(purpose, it.expose())).map(Into::into)
            };
            rows.extend(resealed(&row, &mut seal).map_err(Failure::Load)?.map(|after| (row, after)));
        }
        let count = rows.len();
        self.execute(Reseal { rows, workspaces })?;
        Ok(count)
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
            let waiting = self.scan_all(Range::all(Index::Outbox, u128::from(shard), PAGE))?;
            rows.extend(waiting.into_iter().filter_map(|it| it.row.record));
        }
        Ok(rows)
    }
}
