//! Rows that cannot be read, whatever is the matter with them.

use svc_core::store::{Range, Store as _};
use svc_core::testing::sample;
use svc_core::value::Id as _;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;
use svc_store::{Backend as _, StoreError, with_causes};

use super::database::Database;
use super::{applied, insert, open};

/// One whose stamp or format is out of range is told in its place in a list, as one that cannot be decoded is, and keeps none beside it
/// from being read; what is told says that a row was read, and what is the matter.
#[test]
fn a_number_that_is_none_is_its_rows_own_trouble() {
    let server = Database::start();
    let store = open(&server.address());
    let mut writer = store.writer().unwrap();
    let workspace: WorkspaceId = sample::id(1);
    let rows = [0, 1].map(|seq| sample::entry(workspace, sample::id(seq.into()), Some(seq)));
    for row in &rows {
        let _ = applied(&mut writer, &insert(row));
    }
    drop(writer);
    let key: String = rows[0].key().encode().as_ref().iter().map(|it| format!("{it:02x}")).collect();
    for spoilt in ["stamp = -1", "stamp = 1, format = -1"] {
        server.sql(&format!("UPDATE svc.records SET {spoilt} WHERE key = '\\x{key}'"));
        let listed = store.reader().unwrap().scan_each(&Range::all(Index::LedgerOf, workspace.bits(), 10)).unwrap();
        assert_eq!(listed.iter().map(|it| it.row.is_ok()).collect::<Vec<_>>(), [false, true], "{spoilt}");
        let listed = listed[0].row.as_ref().unwrap_err().clone();
        let loaded = store.reader().unwrap().load(&[rows[0].key()]).unwrap_err();
        for error in [listed, loaded] {
            let text = with_causes(&error);
            assert!(
                matches!(error, StoreError::Row { .. }) && text.starts_with("a stored row cannot be read"),
                "{text}"
            );
        }
    }
}
