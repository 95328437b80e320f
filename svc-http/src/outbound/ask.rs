//! Asking a service whose answer matters: JSON there, JSON back.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use http_body_util::{BodyExt as _, Full, Limited};
use svc_core::state::edge::Trouble;
use svc_core::state::edge::outbound::OutboundUrl;
use svc_core::value::secret::Secret;
use tokio::time::timeout;

use super::call::{AGENT, ANSWER_MAX, CALL_TIME, Caller, exchange, host, path};
use super::resolve::Asker;

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The status.
    pub(crate) status: u16,
    /// How long to wait before the next request, in seconds, where it says so.
    pub(crate) retry_after_s: Option<u32>,
    /// Its bytes.
    pub(crate) body: Bytes,
}

/// The seconds of a `retry-after`: more than can be counted is as many as can be.
fn seconds(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u32::MAX))
}

impl Caller {
    /// Posts JSON, under a bearer token where there is one, and reads the answer. No redirect is followed.
    ///
    /// # Errors
    /// [`Trouble`] where there was no answer, or it was too large.
    pub(crate) async fn ask(
        &self,
        asker: Asker,
        url: &OutboundUrl,
        bearer: Option<&Secret<Vec<u8>>>,
        body: Vec<u8>,
    ) -> Result<Answered, Trouble> {
        let asked = async {
            let (stream, url) = self.open(url.as_str(), asker).await?;
            let mut request = http::Request::post(path(&url))
                .header(HOST, host(&url))
                .header(USER_AGENT, AGENT)
                .header(ACCEPT, "application/json")
                .header(CONTENT_TYPE, "application/json; charset=utf-8");
            if let Some(bearer) = bearer {
                let shown = [b"Bearer ", bearer.expose().as_slice()].concat();
                let mut shown = HeaderValue::from_maybe_shared(Bytes::from(shown)).map_err(|_| Trouble::Secret)?;
                shown.set_sensitive(true);
                request = request.header(AUTHORIZATION, shown);
            }
            let request = request.body(Full::new(Bytes::from(body))).map_err(|_| Trouble::Protocol)?;
            exchange(stream, request, async |answer| {
                let status = answer.status().as_u16();
                let retry_after = answer.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok());
                let retry_after_s = retry_after.and_then(seconds);
                let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
                let body = body.map_err(|_| Trouble::Protocol)?.to_bytes();
                Ok(Answered { status, retry_after_s, body })
            })
            .await
        };
        timeout(CALL_TIME, asked).await.unwrap_or(Err(Trouble::Timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However long a service asks to be left alone, it is; what is no number of seconds says nothing.
    #[test]
    fn a_wait_is_a_number_of_seconds() {
        let all = ["0", "60", "99999999999", "", "-1", "+1", "Thu, 01 Jan 1970 00:00:00 GMT"];
        assert_eq!(all.map(seconds), [Some(0), Some(60), Some(u32::MAX), None, None, None, None]);
    }
}
