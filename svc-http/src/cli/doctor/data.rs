//! What `svc doctor` looks at in the database.

use svc_core::state::people::{SigningKey, SigningUse};
use svc_core::store::{Row as _, Store as _};
use svc_core::value::Timestamp;
use svc_http::clock;
use svc_http::config::Config;
use svc_store::newest::newest_record;
use svc_store::seal::MASTER_KEY;
use svc_store::{Backend as _, SqliteStore, StoreError, keys, seal, sqlite};

use super::Finding::{self, Broken, Odd, Well};
use crate::cli::output::Problem;

/// Whether the database is this service's, and of a release up to this one; `named` stands behind a command that makes it.
pub(super) fn schema(config: &Config, named: &str) -> Finding {
    let folder = config.database_directory();
    match sqlite::schema_of(&folder) {
        Ok(found) if found == sqlite::SCHEMA => Well(format!("the database has schema {found}")),
        Ok(0) => Odd("nothing was written to the database yet".to_owned(), "The next start does so.".to_owned()),
        Ok(found) => Odd(
            format!("the database has schema {found}, and this release writes schema {}", sqlite::SCHEMA),
            "The next start brings it up to date; back it up first.".to_owned(),
        ),
        Err(StoreError::NoData { path }) => match sqlite::may_begin(&folder) {
            Ok(()) => Broken(
                format!("there is no svc data in `{}`", path.display()),
                format!("Name the right data directory, or start one with `svc init{named}`."),
            ),
            Err(error) => broken(error),
        },
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
        Err(error @ (StoreError::MasterKeyMalformed | StoreError::Sealed)) => {
            let place = match config.master_key {
                Some(_) => "the setting `masterKey`".to_owned(),
                None => format!("`{}`", config.data.join(MASTER_KEY).display()),
            };
            Broken(error.to_string(), format!("Put the master key that this database was begun with back in {place}."))
        }
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

/// What the store says names the file; what to do stands behind a colon in it, and is a sentence here.
pub(super) fn broken(error: StoreError) -> Finding {
    let fix = error.fix().unwrap_or("report it with this text");
    let problem = Problem::from(error);
    let text = problem.faults().iter().map(|(what, _)| what.clone()).collect::<Vec<_>>().join("; ");
    let (first, rest) = fix.split_at(1);
    Broken(text.replacen(&format!(": {fix}"), "", 1), format!("{}{rest}.", first.to_ascii_uppercase()))
}
