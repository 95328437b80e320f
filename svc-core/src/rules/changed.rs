//! What the ledger is told of a change: the members that differ, before and after (CONTRACT part 2, "Ledger and evidence").

use super::people::settings::differing;
use crate::refusal::Refusal;
use crate::turn::Halt;
use crate::value::canonical::Object;
use crate::value::json::Json;

/// The data of a record, from what a row told before and what it tells now, each an object.
///
/// # Errors
/// `internal` where one of them is no JSON.
pub(super) fn changed(old: &str, new: &str) -> Result<String, Halt> {
    let read = |text: &str| Json::parse(text.as_bytes()).map_err(|_| Refusal::internal());
    let (old, new) = differing(&read(old)?, &read(new)?);
    Ok(Object::new().raw("new", &new).raw("old", &old).finish())
}
