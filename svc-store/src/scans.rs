//! What a gate finds in its indexes, a page or all of it.

use svc_core::engine::Failure;
use svc_core::store::{Found, Listed, Range};

use crate::error::StoreError;
use crate::gate::{Core, Gate};

impl Gate {
    /// The rows that an index has in a range, from one moment.
    ///
    /// # Errors
    /// Rows could not be read.
    pub fn scan(&self, range: &Range) -> Result<Vec<Found>, Failure<StoreError>> {
        scan(self.core(), range)
    }

    /// As [`scan`](Self::scan), but that a row that cannot be understood is told in its place, so that nothing behind it waits for it.
    ///
    /// # Errors
    /// Nothing could be read.
    pub fn scan_each(&self, range: &Range) -> Result<Vec<Listed<StoreError>>, Failure<StoreError>> {
        scan_each(self.core(), range)
    }

    /// All that an index has in a range, a page at a time.
    pub(crate) fn scan_all(&self, mut range: Range) -> Result<Vec<Found>, Failure<StoreError>> {
        let mut all = Vec::new();
        loop {
            let page = self.scan(&range)?;
            let more = range.turn_page(&page);
            all.extend(page);
            if !more {
                return Ok(all);
            }
        }
    }
}

/// The rows that an index has in a range, from one moment.
pub(crate) fn scan(core: &Core, range: &Range) -> Result<Vec<Found>, Failure<StoreError>> {
    core.readers.open().and_then(|mut reader| reader.scan(range)).map_err(Failure::Load)
}

/// As [`scan`], each row for itself: what is due waits for none that cannot be read.
pub(crate) fn scan_each(core: &Core, range: &Range) -> Result<Vec<Listed<StoreError>>, Failure<StoreError>> {
    core.readers.open().and_then(|mut reader| reader.scan_each(range)).map_err(Failure::Load)
}
