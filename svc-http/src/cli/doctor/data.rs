//! What `svc doctor` looks at in the database.

use svc_core::state::people::{SigningKey, SigningUse};
use svc_core::store::{Row as _, Store as _};
use svc_core::value::Timestamp;
use svc_http::clock;
use svc_http::config::Config;
use svc_store::newest::newest_record;
use svc_store::{Backend as _, SqliteStore, StoreError, keys, seal, sqlite};

use super::Finding::{self, Broken, Odd, Well};
use crate::cli::output::Problem;

/// Whether the database is this service's, and of a release up to this one.
pub(super) fn schema(config: &Config) -> Finding {
    match sqlite::schema_of(config.database_directory()) {
        Ok(found) if found == sqlite::SCHEMA => Well(format!("the database has schema {found}")),
        Ok(found) => Odd(
            format!("the database has schema {found}, and this release writes schema {}", sqlite::SCHEMA),
            "The next start brings it up to date; back it up first.".to_owned(),
        ),
        Err(error) => broken(error),
    }
}

/// Whether the key that signs receipts can be opened.
pub(super) fn keys(config: &Config) -> Finding {
    if !matches!(sqlite::schema_of(config.database_directory()), Ok(sqlite::SCHEMA)) {
        return Odd("they lie in the database".to_owned(), "See above.".to_owned());
    }
    match opened(config) {
        Ok(Some(kid)) => Well(format!("receipts are signed with {kid}")),
        Ok(None) => Odd("there is none to sign receipts yet".to_owned(), "The next start makes it.".to_owned()),
        Err(error) => broken(error),
    }
}

/// The instant of the newest record, where there is a database of this release that can be read.
pub(super) fn newest(config: &Config) -> Option<Timestamp> {
    if !matches!(sqlite::schema_of(config.database_directory()), Ok(sqlite::SCHEMA)) {
        return None;
    }
    let store = SqliteStore::existing(config.database_directory()).ok()?;
    let mut reader = store.reader().ok()?;
    newest_record(|range| reader.scan(range)).ok().flatten()
}

fn opened(config: &Config) -> Result<Option<String>, StoreError> {
    let store = SqliteStore::existing(config.database_directory())?;
    let mut reader = store.reader()?;
    let stored = reader.load(&[SigningKey::key(SigningUse::RECEIPT)])?;
    if stored.iter().all(|row| row.record.is_none()) {
        return Ok(None);
    }
    let master = config.master_key.as_ref().map(|key| seal::MasterKey::parse(key.expose())).transpose()?;
    let issuer = config.base_url(config.listen);
    let signer = keys::receipt_signer(&mut reader, &config.data, master, clock::now(), issuer.as_str(), &keys::dalek)?;
    Ok(Some(signer.kid().to_owned()))
}

/// What the store says names the file and, behind a colon, what to do.
pub(super) fn broken(error: StoreError) -> Finding {
    let problem = Problem::from(error);
    let text = problem.faults().iter().map(|(what, _)| what.clone()).collect::<Vec<_>>().join("; ");
    Broken(text, String::new())
}
