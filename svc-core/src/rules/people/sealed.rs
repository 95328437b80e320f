//! Which rows hold texts that the shell has sealed under its master key, and what each is sealed for.
//!
//! **Invariant:** nothing here opens or seals: whoever holds the key does, text by text.

use std::sync::Arc;

use crate::state::edge::{Integration, IntegrationConfig, Job, McpSecret, News, Work};
use crate::state::gateway::UpstreamKey;
use crate::state::people::{Account, SigningKey};
use crate::store::Record;

/// What gives the text for a purpose and the text that stands there.
pub type Seal<'a, E> = dyn FnMut(&str, &str) -> Result<Box<str>, E> + 'a;

/// The row with each of its sealed texts as `seal` gives it for the purpose and the text; `None` where it has none.
///
/// # Errors
/// The first that `seal` gives.
pub fn resealed<E>(record: &Record, seal: &mut Seal<'_, E>) -> Result<Option<Record>, E> {
    let row = match record {
        Record::SigningKey(row) => {
            let sealed = seal(&SigningKey::purpose(row.id), &row.sealed)?;
            Record::SigningKey(Arc::new(SigningKey { sealed, ..SigningKey::clone(row) }))
        }
        Record::UpstreamKey(row) => Record::UpstreamKey(Arc::new(upstream_key(row, seal)?)),
        Record::McpSecret(row) => {
            let sealed = seal(&McpSecret::purpose(row.workspace), &row.sealed)?;
            Record::McpSecret(Arc::new(McpSecret { sealed, ..McpSecret::clone(row) }))
        }
        Record::Integration(row) => Record::Integration(Arc::new(integration(row, seal)?)),
        Record::Account(row) => Record::Account(Arc::new(account(row, seal)?)),
        Record::Job(row) => Record::Job(Arc::new(job(row, seal)?)),
        _ => return Ok(None),
    };
    Ok(Some(row).filter(|row| row != record))
}

fn upstream_key<E>(row: &UpstreamKey, seal: &mut Seal<'_, E>) -> Result<UpstreamKey, E> {
    let (mut row, purpose) = (row.clone(), UpstreamKey::purpose(row.workspace));
    // A provider without a key has an empty text.
    for text in std::iter::once(&mut row.sealed).chain(row.headers.values_mut()).filter(|it| !it.is_empty()) {
        *text = seal(&purpose, text)?;
    }
    Ok(row)
}

fn integration<E>(row: &Integration, seal: &mut Seal<'_, E>) -> Result<Integration, E> {
    let mut row = row.clone();
    for secret in &mut row.secrets {
        secret.sealed = seal(&Integration::purpose(row.slot), &secret.sealed)?;
    }
    if let IntegrationConfig::Deciders(config) = &mut row.config
        && let Some(token) = &mut config.bot_token
    {
        token.sealed = seal(&Integration::bot_purpose(row.slot), &token.sealed)?;
    }
    Ok(row)
}

fn account<E>(row: &Account, seal: &mut Seal<'_, E>) -> Result<Account, E> {
    let (mut row, purpose) = (row.clone(), Account::factor_purpose(row.id));
    let factor = row.second_factor.as_mut().map(|it| &mut it.sealed);
    for text in factor.into_iter().chain(&mut row.enrolling) {
        *text = seal(&purpose, text)?;
    }
    Ok(row)
}

fn job<E>(row: &Job, seal: &mut Seal<'_, E>) -> Result<Job, E> {
    let mut row = row.clone();
    if let Work::Tell { news, .. } | Work::Message { news, .. } = &mut row.work
        && let News::Invited { token: Some(token), .. } = news
    {
        *token = seal(&News::purpose(row.workspace), token)?;
    }
    Ok(row)
}
