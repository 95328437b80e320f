//! Reading a small document from an address that a stranger named.

use bytes::Bytes;
use http::header::{ACCEPT, AGE, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, DATE, EXPIRES, HOST, USER_AGENT};
use http_body_util::{BodyExt as _, Empty, Full, Limited};
use svc_core::state::edge::outbound::OutboundUrl;
use svc_core::value::secret::Secret;
use tokio::time::timeout;
use url::Url;

use super::call::{AGENT, ANSWER_MAX, CALL_TIME, Caller, exchange};
use super::dial::Io;
use super::resolve::Asker;
use crate::clock::{http_date_s, now_s};
use svc_core::state::edge::Trouble;

/// A document as it came.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The status.
    pub(crate) status: u16,
    /// How it may be kept, as its sender says in however many lines.
    pub(crate) cache: String,
    /// For how many seconds from when it was given out it is good, by its `expires`; none where it has none.
    pub(crate) expires_s: Option<u64>,
    /// For how many seconds caches on the way have kept it already.
    pub(crate) age_s: u64,
    /// Its bytes.
    pub(crate) body: Bytes,
}

impl Caller {
    /// Reads a document of at most `max` bytes, which `asker` has read. No redirect is followed.
    ///
    /// # Errors
    /// [`Trouble`] where there was no answer, or it was too large.
    pub(crate) async fn fetch(&self, asker: Asker, url: &OutboundUrl, max: usize) -> Result<Fetched, Trouble> {
        let read = async {
            let (stream, url) = self.open(url.as_str(), asker).await?;
            get(stream, &url, max).await
        };
        timeout(CALL_TIME, read).await.unwrap_or(Err(Trouble::Timeout))
    }

    /// Posts a form, with `authorization` where there is one, and reads an answer of at most `max` bytes. No redirect is followed.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    pub(crate) async fn post_form(
        &self,
        asker: Asker,
        url: &OutboundUrl,
        authorization: Option<Secret<String>>,
        form: Secret<String>,
        max: usize,
    ) -> Result<Fetched, Trouble> {
        let posted = async {
            let (stream, url) = self.open(url.as_str(), asker).await?;
            let mut request = http::Request::post(super::call::path(&url))
                .header(HOST, super::call::host(&url))
                .header(USER_AGENT, AGENT)
                .header(ACCEPT, "application/json")
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            if let Some(shown) = &authorization {
                request = request.header(AUTHORIZATION, shown.expose());
            }
            let body = Full::new(Bytes::from(form.expose().clone()));
            let request = request.body(body).map_err(|_| Trouble::Protocol)?;
            exchange(stream, request, async |answer| whole(answer, max).await).await
        };
        timeout(CALL_TIME, posted).await.unwrap_or(Err(Trouble::Timeout))
    }

    /// What it may call.
    pub(crate) fn guard(&self) -> &svc_core::state::edge::outbound::Outbound {
        &self.guard
    }
}

async fn get(stream: Io, url: &Url, max: usize) -> Result<Fetched, Trouble> {
    let request = http::Request::get(super::call::path(url))
        .header(HOST, super::call::host(url))
        .header(USER_AGENT, AGENT)
        .header(ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())
        .map_err(|_| Trouble::Protocol)?;
    exchange(stream, request, async |answer| whole(answer, max).await).await
}

/// An answer with its body, of [`ANSWER_MAX`] whatever is asked for.
async fn whole(answer: http::Response<hyper::body::Incoming>, max: usize) -> Result<Fetched, Trouble> {
    let status = answer.status().as_u16();
    // Several lines are one list (RFC 9110 part 5.3): whichever says that nobody keeps it, nobody does.
    let lines = answer.headers().get_all(CACHE_CONTROL).iter().map(|it| String::from_utf8_lossy(it.as_bytes()));
    let cache = lines.collect::<Vec<_>>().join(",");
    let dates = answer.headers().get_all(EXPIRES).iter().map(|it| it.to_str().unwrap_or_default());
    let given = answer.headers().get(DATE).and_then(|it| it.to_str().ok());
    let expires_s = dates.map(|it| expires(it, given.unwrap_or_default())).min();
    let age_s = answer.headers().get(AGE).and_then(|it| it.to_str().ok()).map_or(0, age);
    let body = Limited::new(answer.into_body(), max.min(ANSWER_MAX))
        .collect()
        .await
        .map_err(|_| Trouble::Protocol)?
        .to_bytes();
    Ok(Fetched { status, cache, expires_s, age_s, body })
}

/// The seconds to an `expires` from the answer's own `date` where it has one, as its sender's clock need not be this one. What is no
/// date, above all `0`, is one that has passed (RFC 9111 part 5.3).
fn expires(text: &str, date: &str) -> u64 {
    http_date_s(text.trim()).map_or(0, |it| it.saturating_sub(http_date_s(date.trim()).unwrap_or_else(now_s)))
}

/// The seconds of an `age`: of several the first, and none where it is no number (RFC 9111 part 5.1). More than can be counted are as
/// many as can be.
fn age(text: &str) -> u64 {
    let first = text.split(',').next().unwrap_or_default().trim();
    let is_number = !first.is_empty() && first.bytes().all(|it| it.is_ascii_digit());
    if is_number { first.parse().unwrap_or(u64::MAX) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An age is a number of seconds, the first of several.
    #[test]
    fn an_age_is_a_number_of_seconds() {
        let all = ["0", " 60 ", "60, 5", "99999999999999999999", "", "-1", "+1", "1.5", "x"];
        assert_eq!(all.map(age), [0, 60, 60, u64::MAX, 0, 0, 0, 0, 0]);
    }

    /// An answer expires so long after it was given out, by its sender's clock; by ours where it does not tell its own.
    #[test]
    fn what_expires_is_counted_from_when_it_was_given_out() {
        let (given, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:51:37 GMT");
        assert_eq!(expires(later, given), 120);
        for past in [given, "0", "-1", "", "120", "tomorrow", "Sun, 06 Nov 1994 08:51:37"] {
            assert_eq!(expires(past, given), 0, "{past}");
        }
        assert_eq!(expires(later, ""), 0, "years ago");
        assert!(expires("Fri, 01 Jan 2100 00:00:00 GMT", "x") > 1_000_000);
    }
}
