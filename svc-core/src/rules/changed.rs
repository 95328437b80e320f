//! What the ledger is told of a change: the members that differ, before and after (CONTRACT part 2, "Ledger and evidence").

use super::people::settings::differing;
use crate::value::canonical::Object;
use crate::value::json::Json;

/// The data of a record, from what was told of a thing before and what is told now, each an object.
pub(super) fn changed(old: &Json, new: &Json) -> String {
    let (old, new) = differing(old, new);
    Object::new().raw("new", &new).raw("old", &old).finish()
}
