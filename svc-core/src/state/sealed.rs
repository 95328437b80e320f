//! Which rows hold texts that the shell has sealed under its master key, and what each is sealed for.
//!
//! **Invariant:** nothing here opens or seals: whoever holds the key does, text by text.

use std::sync::Arc;

use super::edge::{Integration, IntegrationConfig, Job, McpSecret, News, Work};
use super::gateway::UpstreamKey;
use super::people::{Account, SigningKey};
use crate::store::Record;

/// The row with each of its sealed texts as `seal` gives it for the purpose and the text; `None` where it has none.
///
/// # Errors
/// The first that `seal` gives.
pub fn resealed<E>(
    record: &Record,
    seal: &mut dyn FnMut(&str, &str) -> Result<Box<str>, E>,
) -> Result<Option<Record>, E> {
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

fn upstream_key<E>(
    row: &UpstreamKey,
    seal: &mut dyn FnMut(&str, &str) -> Result<Box<str>, E>,
) -> Result<UpstreamKey, E> {
    let (mut row, purpose) = (row.clone(), UpstreamKey::purpose(row.workspace));
    // A provider without a key has an empty text.
    for text in std::iter::once(&mut row.sealed).chain(row.headers.values_mut()).filter(|it| !it.is_empty()) {
        *text = seal(&purpose, text)?;
    }
    Ok(row)
}

fn integration<E>(
    row: &Integration,
    seal: &mut dyn FnMut(&str, &str) -> Result<Box<str>, E>,
) -> Result<Integration, E> {
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

fn account<E>(row: &Account, seal: &mut dyn FnMut(&str, &str) -> Result<Box<str>, E>) -> Result<Account, E> {
    let (mut row, purpose) = (row.clone(), Account::factor_purpose(row.id));
    let factor = row.second_factor.as_mut().map(|it| &mut it.sealed);
    for text in factor.into_iter().chain(&mut row.enrolling) {
        *text = seal(&purpose, text)?;
    }
    Ok(row)
}

fn job<E>(row: &Job, seal: &mut dyn FnMut(&str, &str) -> Result<Box<str>, E>) -> Result<Job, E> {
    let mut row = row.clone();
    if let Work::Tell { news, .. } | Work::Message { news, .. } = &mut row.work
        && let News::Invited { token: Some(token), .. } = news
    {
        *token = seal(&News::purpose(row.workspace), token)?;
    }
    Ok(row)
}

#[cfg(all(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use serde_json::Value;

    use super::*;
    use crate::testing::sample;

    /// The texts of a row that were sealed: whatever is named so, and in some tables what is named otherwise.
    fn sealed(row: &Value, also: &str, is: bool, into: &mut BTreeSet<String>) {
        match row {
            Value::Object(members) => members.iter().for_each(|(name, value)| {
                let named = matches!(&**name, "sealed" | "enrolling") || name == also;
                sealed(value, also, is || named, into);
            }),
            Value::Array(values) => values.iter().for_each(|it| sealed(it, also, is, into)),
            Value::String(text) if is && !text.is_empty() => {
                into.insert(text.clone());
            }
            _ => {}
        }
    }

    /// No sealed text of any row of this release is left as it was, and nothing else is changed.
    #[test]
    fn all_that_is_sealed_is_sealed_anew() {
        let mut tables = BTreeSet::new();
        for row in sample::rows() {
            let encoded = row.encode().unwrap();
            let (mut expected, mut texts) = (String::from_utf8(encoded.body).unwrap(), BTreeSet::new());
            let also = if matches!(row, Record::UpstreamKey(_)) { "headers" } else { "" };
            sealed(&serde_json::from_str(&expected).unwrap(), also, false, &mut texts);
            let mut seen = BTreeSet::new();
            let changed = resealed(&row, &mut |_, text| {
                if text.is_empty() {
                    return Ok("".into());
                }
                seen.insert(text.to_owned());
                Ok::<_, Infallible>(format!("anew {text}").into())
            });
            assert_eq!(seen, texts, "{expected}");
            let Some(changed) = changed.unwrap() else { continue };
            tables.insert(row.key().table().name());
            texts.iter().for_each(|it| expected = expected.replace(&format!("\"{it}\""), &format!("\"anew {it}\"")));
            assert_eq!(String::from_utf8(changed.encode().unwrap().body).unwrap(), expected);
        }
        // No sample of a call carries the token of an invitation: a test of the store's has one.
        let all = ["account", "integration", "mcp_secret", "signing_key", "upstream_key"];
        assert_eq!(tables.into_iter().collect::<Vec<_>>(), all);
    }
}
