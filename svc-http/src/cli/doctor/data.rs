//! What `svc doctor` looks at in the database.

use std::time::Duration;

use svc_core::state::people::{Purpose, SigningKey, SigningUse};
use svc_core::store::{Range, Row as _};
use svc_core::value::Timestamp;
use svc_core::value::link::Index;
use svc_http::clock;
use svc_http::config::Config;
use svc_store::newest::newest_record;
use svc_store::read_back::{self, ReadBack};
use svc_store::seal::MASTER_KEY;
use svc_store::{StoreError, keys, seal, sqlite};

use super::Finding::{self, Broken, Odd, Well};
use crate::cli::database::{Database, SCHEMA, is_current, is_unserved_backup, place, schema_of};
use crate::cli::output::Problem;

/// Whether the database is this service's, and of a release up to this one; `named` stands behind a command that makes it.
pub(super) fn schema(config: &Config, named: &str) -> Finding {
    match schema_of(config) {
        Ok(SCHEMA) if config.postgres.is_none() => Well(format!("the database has schema {SCHEMA}")),
        Ok(SCHEMA) if config.may_lose => Odd(
            format!("{} has schema {SCHEMA}, and whether it keeps what it confirms is not looked at", place(config)),
            "Leave `store.mayLose` out.".to_owned(),
        ),
        Ok(SCHEMA) => Well(format!(
            "{} has schema {SCHEMA} and keeps what it confirms: fsync, full_page_writes and synchronous_commit are not off",
            place(config)
        )),
        Ok(0) => Odd("nothing was written to the database yet".to_owned(), "The next start does so.".to_owned()),
        Ok(found) => Odd(
            format!("the database has schema {found}, and this release writes schema {SCHEMA}"),
            "The next start brings it up to date; back it up first.".to_owned(),
        ),
        Err(StoreError::NoData { path }) => match sqlite::may_begin(config.database_directory()) {
            Ok(()) => Broken(
                format!("there is no svc data in `{}`", path.display()),
                format!("Name the right data directory, or start one with `svc init{named}`."),
            ),
            Err(error) => broken(error),
        },
        Err(error) => broken(error),
    }
}

/// That the database is a backup which nobody has served yet, where it is.
pub(super) fn backup(config: &Config) -> Option<Finding> {
    is_unserved_backup(config).then(|| {
        Odd(
            "the database is a backup that nobody has served yet: receipts that were used since it was made are good again, and stops and \
             revocations since are undone"
                .to_owned(),
            "Before anybody is let in, run `svc key rotate --use receipt --compromised` and freeze all agents: the README has the steps \
             (\"Restoring a backup\")."
                .to_owned(),
        )
    })
}

/// How long is looked for pages that are damaged.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether the pages of a database in a file fit together, where it is one of this service's.
pub(super) fn pages(config: &Config) -> Option<Finding> {
    if config.postgres.is_some() || !schema_of(config).is_ok_and(|found| found > 0) {
        return None;
    }
    Some(match sqlite::look_through(config.database_directory(), PATIENCE) {
        Ok(true) => Well("its pages fit together".to_owned()),
        Ok(false) => Odd(
            format!(
                "none of its pages was found damaged in {} seconds, and not all were looked at",
                PATIENCE.as_secs()
            ),
            "Make a copy with `svc backup`, which looks at all of them.".to_owned(),
        ),
        Err(error) => broken(error),
    })
}

/// How long the ledger is read back.
const READ_BACK: Duration = Duration::from_secs(5);

/// Whether the ledger's records are those that were written, the newest first, where there is a database of this release that can be read.
pub(super) fn ledger(config: &Config) -> Option<Finding> {
    if !is_current(config) {
        return None;
    }
    let read = Database::existing(config).and_then(|it| it.reader());
    Some(match read.and_then(|mut reader| read_back::newest(&mut *reader, READ_BACK)) {
        Ok(ReadBack { records, is_all: true }) => {
            Well(format!("all of its {records} records are as they were written"))
        }
        Ok(ReadBack { records, is_all: false }) => Well(format!(
            "its newest {records} records are as they were written; in {} seconds it was not read further",
            READ_BACK.as_secs()
        )),
        Err(error) => broken(error),
    })
}

/// Whether the key that signs receipts can be opened.
pub(super) fn keys(config: &Config) -> Finding {
    if !is_current(config) {
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
            let text = error.to_string();
            let advice = error.fix().map(|it| format!(": {it}")).unwrap_or_default();
            Broken(
                text.replacen(&advice, "", 1),
                format!(
                    "Put the master key of this database back in {place}; for a backup that is the one that was in force when it was made."
                ),
            )
        }
        Err(error) => broken(error),
    }
}

/// Whether a server that tells these keys is that of this data; `None` where it cannot be told.
pub(super) fn is_own(config: &Config, jwks: &str) -> Option<bool> {
    if !is_current(config) {
        return matches!(schema_of(config), Ok(0) | Err(StoreError::NoData { .. })).then_some(false);
    }
    opened(config).ok().map(|kid| kid.is_some_and(|kid| jwks.contains(&format!("\"{kid}\""))))
}

/// Whether anybody can have a key at all, where there is a database of this release that can be read.
pub(super) fn workspace(config: &Config, named: &str) -> Option<Finding> {
    if !is_current(config) {
        return None;
    }
    let look = || Database::existing(config)?.reader()?.scan(&Range::all(Index::Workspaces, 0, 1));
    Some(match look() {
        Ok(found) if found.is_empty() => Broken(
            "there is no workspace, so no key is known".to_owned(),
            format!("Stop the server if it runs, and make one with `svc init{named}`."),
        ),
        Ok(_) => Well("there is one".to_owned()),
        Err(error) => broken(error),
    })
}

/// The instant of the newest record, where there is a database of this release that can be read.
pub(super) fn newest(config: &Config) -> Option<Timestamp> {
    if !is_current(config) {
        return None;
    }
    let mut reader = Database::existing(config).ok()?.reader().ok()?;
    newest_record(|range| reader.scan(range)).ok().flatten()
}

/// What the database's own clock shows, where it has one and answers.
pub(super) fn time(config: &Config) -> Option<Timestamp> {
    config.postgres.as_ref().and_then(|_| Database::existing(config).ok()?.time().ok()?)
}

fn opened(config: &Config) -> Result<Option<String>, StoreError> {
    let mut reader = Database::existing(config)?.reader()?;
    let stored = reader.load(&[SigningKey::key(SigningUse::RECEIPT)])?;
    if stored.iter().all(|row| row.record.is_none()) {
        return Ok(None);
    }
    let master = config.master_key.as_ref().map(|key| seal::MasterKey::parse(key.expose())).transpose()?;
    let issuer = config.base_url(config.listen);
    let now = clock::now();
    let ring = keys::receipt_signer(&mut *reader, &config.data, master, now, issuer.as_str(), &keys::dalek)?;
    // Of several the one whose turn it is: the next one is published a day before.
    Ok(Some(ring.of(Purpose::Receipt, now).map_or_else(|| ring.kid().to_owned(), |it| it.kid().to_owned())))
}

/// What the store says names the file; what to do stands behind a colon in it, and is a sentence here.
pub(super) fn broken(error: StoreError) -> Finding {
    let fix = error.fix().unwrap_or("report it with this text");
    let problem = Problem::from(error);
    let text = problem.faults().iter().map(|(what, _)| what.clone()).collect::<Vec<_>>().join("; ");
    let (first, rest) = fix.split_at(1);
    Broken(text.replacen(&format!(": {fix}"), "", 1), format!("{}{rest}.", first.to_ascii_uppercase()))
}
