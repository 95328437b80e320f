//! Where the servers are reached that work on a database: each says it in the names of its connections, which end with it.

use super::errors::database;
use super::plan::column;
use super::{PostgresStore, Terms};
use crate::error::StoreError;

/// What the names of a server's connections begin with; its base address follows.
pub(super) const SERVES: &str = "svc at ";
/// Bytes of a connection's name that the database keeps.
const NAME_BYTES: usize = 63;

const NAMES: &str = "SELECT DISTINCT application_name FROM pg_catalog.pg_stat_activity \
     WHERE datname = current_database() AND starts_with(application_name, $1) ORDER BY 1";

impl PostgresStore {
    /// The same for a server with this base address: whoever shares the database finds it by [`served_elsewhere`] while it runs. Where the
    /// address of the database names its connections otherwise, they keep that name, and nobody finds it.
    #[must_use]
    pub fn serving(self, base_url: &str) -> Self {
        self.shared.door.announce(base_url);
        self
    }
}

/// The base addresses other than `base_url` of the servers that work on the database at `address` now, each once, and as much of each as
/// a connection's name has room for.
///
/// # Errors
/// As [`PostgresStore::open`].
pub fn served_elsewhere(address: &str, terms: Terms, base_url: &str) -> Result<Vec<String>, StoreError> {
    let store = PostgresStore::at(address, terms)?;
    let names: Vec<String> = store.plain(async |client| {
        let rows = client.query(NAMES, &[&SERVES]).await.map_err(|cause| database(&cause))?;
        rows.iter().map(|row| column(row, 0)).collect()
    })?;
    Ok(elsewhere(&names, base_url))
}

fn elsewhere(names: &[String], base_url: &str) -> Vec<String> {
    let own: String = base_url.chars().take(NAME_BYTES.saturating_sub(SERVES.len())).collect();
    let all = names.iter().filter_map(|it| it.strip_prefix(SERVES));
    all.filter(|it| *it != own).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One's own address is none of another server's, also where a name has no room for all of it.
    #[test]
    fn ones_own_address_is_nobody_elses() {
        let (own, other) = ("https://gate.example.com", "https://old.example.com");
        let long = format!("https://{}.example.com", "x".repeat(80));
        let kept = |base: &str| format!("{SERVES}{base}").chars().take(NAME_BYTES).collect::<String>();
        let names = [own, other, &long].map(kept);
        assert_eq!(elsewhere(&names, own), [other, &kept(&long)[SERVES.len()..]]);
        assert_eq!(elsewhere(&names, &long), [own, other]);
        assert_eq!(elsewhere(&names[..1], own), [""; 0]);
    }
}
