//! What the tests of several bodies share.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Debug;

use http::{HeaderMap, HeaderValue};
use svc_core::refusal::{Kind, Refusal};

use crate::headers::IDEMPOTENCY_KEY;

/// That an idempotency key sent twice is one fault beside those of an empty body, which are `fields` with it, and does not come
/// before what is no JSON.
pub(super) fn sent_twice_is_one_fault<T: Debug>(
    read: impl Fn(&HeaderMap, &[u8]) -> Result<T, Refusal>,
    fields: &[&str],
) {
    let mut headers = HeaderMap::new();
    for _ in 0..2 {
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("a"));
    }
    let refusal = read(&headers, b"{}").unwrap_err();
    let mut found: Vec<&str> = refusal.errors().iter().filter_map(|it| it.field.as_deref()).collect();
    found.sort_unstable();
    assert_eq!(found, fields);
    assert_eq!(read(&headers, b"{{").unwrap_err().kind(), Kind::InvalidJson);
}
