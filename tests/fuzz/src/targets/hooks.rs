//! What other systems send, signed.

use http::{HeaderMap, HeaderName, HeaderValue};
use svc_core::state::edge::signature;
use svc_core::value::Timestamp;
use svc_core::value::secret::Secret;
use svc_http::inbound::signature::{Secrets, stamped};
use svc_http::wire::issuer::{self, IssuerDeed};
use svc_http::wire::stripe;

use super::{inputs, is_the_callers, line_and_rest};

const NAME: HeaderName = HeaderName::from_static("svc-signature");
const SECRET: &[u8] = b"whsec_of_the_fuzzer";
const NOW: i64 = 1_790_847_000;

/// The first line is a signature, the rest a body: a signature that is taken has the body's own in it, and what is signed here is
/// taken. An event is read, or refused in the sender's words.
///
/// # Panics
/// Where that is not so.
pub fn events(data: &[u8]) {
    let (line, body) = line_and_rest(data);
    let secrets = Secrets::new(vec![Secret::new(SECRET.to_vec())]);
    let now = Timestamp::from_millis(NOW * 1_000);
    let verify = |value: HeaderValue| {
        let headers = HeaderMap::from_iter([(NAME, value)]);
        stamped(&headers, &NAME, body, &secrets, now)
    };
    if let Some(taken) = HeaderValue::from_bytes(line).ok().and_then(verify) {
        let at: i64 = taken.stamp.parse().expect("a taken time is a number");
        assert!((NOW - at).abs() <= 300, "{at}");
    }
    let own = signature(now, body, [SECRET]);
    let taken = verify(HeaderValue::from_str(&own).expect("a signature is a header's value"));
    assert_eq!(taken.map(|it| it.stamp.into_string()), Some(NOW.to_string()));
    match issuer::read(body) {
        Err(refusal) => is_the_callers(&refusal),
        Ok(event) => {
            assert!((1..=200).contains(&event.id.chars().count()), "{event:?}");
            if let IssuerDeed::Request(wish) = event.deed {
                assert!(wish.amount.minor() > 0 && wish.merchant.is_some(), "{wish:?}");
            }
        }
    }
    match stripe::read(body) {
        Err(refusal) => is_the_callers(&refusal),
        Ok(event) => {
            assert!(event.charge().is_none_or(|it| it.amount.minor() > 0));
            let _ = (event.workspace(), event.price());
        }
    }
}

/// Events of both senders, and signatures of several forms.
#[must_use]
pub fn event_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "t=1790847000,v1=00,v1=0a,v0=x\n{\"type\":\"authorization.request\",\"id\":\"e\",\"actionId\":\"act_00000000000000000000000001\",\"amount\":1,\"currency\":\"EUR\",\"merchant\":{\"domain\":\"a.example\"}}",
        "v1=ff,t=1\n{\"type\":\"authorization.settled\",\"id\":\"e\",\"actionId\":\"act_00000000000000000000000001\",\"amount\":0}",
        "\n{\"type\":\"authorization.reversed\",\"id\":\"e\",\"actionId\":\"act_00000000000000000000000001\"}",
        "t=1790847000\n{\"id\":\"evt_1\",\"type\":\"issuing_authorization.request\",\"api_version\":\"v\",\"data\":{\"object\":{\"pending_request\":{\"amount\":1,\"currency\":\"eur\"},\"card\":{\"metadata\":{\"svc_agent\":\"agt_00000000000000000000000001\"}},\"merchant_data\":{\"url\":\"https://a.example/x\"}}}}",
        "t=,\n{\"id\":\"evt_2\",\"type\":\"customer.subscription.updated\",\"data\":{\"object\":{\"metadata\":{\"wid\":\"wsp_00000000000000000000000001\"},\"items\":{\"data\":[{\"price\":{\"id\":\"price_1\"}}]}}}}",
    ])
}
