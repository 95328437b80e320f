//! What comes with a good status and is no answer that can be passed on. It may have been made, and is billed, all the same: what
//! it says of its use is kept, else how long it is.

use std::sync::atomic::{AtomicU64, Ordering};

use svc_core::dialect::{Answer, Unreadable};
use tokio::time::timeout;

use super::failed::{Failed, Reason, Said};
use super::framing::{HEAD_BYTES_MAX, Head, Type};
use super::incoming::Incoming;
use super::{ANSWER_BYTES_MAX, ERROR_TIME, Target, status};

/// Bytes of text that one byte of a packed answer stands for, roughly.
const UNPACKED: u64 = 4;

/// Reads what came packed, or in the place of an answer of another content type, as far as it comes soon; `received` has its bytes as
/// they come. An error that it tells is told.
pub(super) async fn read(incoming: &mut Incoming, head: &Head, target: &Target, received: &AtomicU64) -> Failed {
    let reason = if head.packed { Reason::Packed } else { Reason::ContentType };
    let failed = status(reason, head);
    if head.content_type == Type::Events {
        return failed;
    }
    let body = timeout(ERROR_TIME, incoming.read_counting(ANSWER_BYTES_MAX, ERROR_TIME, received)).await;
    let body = body.ok().and_then(Result::ok);
    let is_json = head.content_type == Type::Json;
    if head.packed {
        // Of anything else nobody knows whether it is a page.
        let bytes = received.swap(0, Ordering::Relaxed);
        return Failed { received: if is_json { bytes.saturating_mul(UNPACKED) } else { 0 }, ..failed };
    }
    let Some(body) = body else { return failed };
    if is_page(&body) {
        received.store(0, Ordering::Relaxed);
        return failed;
    }
    let reported = match Answer::read(target.dialect(), &body) {
        Err(why @ Unreadable::Failed(..)) if is_json && body.len() <= HEAD_BYTES_MAX => {
            let Failed { status, retry_after_s, .. } = failed;
            return Failed { status, retry_after_s, ..self::failed(target, &body, &why) };
        }
        Err(why) => {
            if matches!(why, Unreadable::Failed(..)) {
                received.store(0, Ordering::Relaxed);
            }
            why.reported()
        }
        Ok(answer) => answer.reported(),
    };
    // Where its output is told, nothing is guessed.
    if reported.is_some_and(|it| it.all_output() > 0) {
        received.store(0, Ordering::Relaxed);
    }
    Failed { reported: reported.map(Box::new), ..failed }
}

/// What came of a call whose answer has this body, which cannot be read.
pub(super) fn failed(target: &Target, body: &[u8], why: &Unreadable) -> Failed {
    let (is_told, reported) = (matches!(why, Unreadable::Failed(..)), why.reported());
    let made_tokens = reported.is_some_and(|it| it.all_output() > 0);
    let received = if is_told || made_tokens { 0 } else { body.len().try_into().unwrap_or(u64::MAX) };
    let said = if is_told { target.said(body) } else { Said::default() };
    let reason = if is_told { Reason::Told } else { Reason::Unreadable };
    let reported = reported.map(Box::new);
    Failed { said, made_tokens, reported, received, ..Failed::new(reason) }
}

/// Whether it is a page of whatever stands between, which no model has made.
pub(super) fn is_page(body: &[u8]) -> bool {
    body.iter().find(|it| !it.is_ascii_whitespace()) == Some(&b'<')
}
