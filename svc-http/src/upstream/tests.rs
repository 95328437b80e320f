//! Calls of a provider that does as the test says.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

mod calls;
mod relays;

use std::net::{IpAddr, TcpListener};

use serde_json::{Value, json};
use svc_core::state::gateway::Dialect;
use svc_core::value::secret::Secret;

use super::*;
use crate::mock::Mock;
use crate::outbound::{Asker, Resolving, SystemResolver};

/// A key that must be nowhere but in the request.
const KEY: &str = "hunter2hunter2hunter2";

fn mock() -> Mock {
    Mock::remembering(TcpListener::bind("127.0.0.1:0").unwrap(), 16).unwrap()
}

fn upstreams(own: Option<SocketAddr>, resolver: impl Resolve) -> Upstreams {
    let times = Times { first_token: secs(20), idle: secs(20), total: secs(40) };
    let allowed = Allowed::loopback();
    Upstreams::new(&allowed, times, "gate.example.com", own, Arc::new(resolver), Trust::default())
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn usual() -> Upstreams {
    upstreams(None, SystemResolver)
}

fn target_at(upstreams: &Upstreams, url: &str, dialect: Dialect, times: Times) -> Target {
    Target::new(upstreams, url, dialect, Secret::new(KEY.to_owned()), &[("x-own", "1")], times).unwrap()
}

fn chat_target(upstreams: &Upstreams, mock: &Mock) -> Target {
    target_at(upstreams, &mock.chat_url(), Dialect::Chat, upstreams.times())
}

/// A question to the model of this name, in either API.
fn call(model: &str, stream: bool) -> Call<'static> {
    let mut body = json!({ "model": model, "max_tokens": 1_000_000, "stream": stream });
    body["messages"] = json!([{ "role": "user", "content": "Hello there" }]);
    Call { what: What::Answer, body: body.to_string().into(), stream, query: None, headers: &[] }
}

async fn whole(upstreams: &Upstreams, target: &Target, call: &Call<'_>) -> Whole {
    match upstreams.send(target, call).await.unwrap() {
        Reply::Whole(whole) => whole,
        Reply::Stream(_) => panic!("a stream"),
    }
}

async fn stream(upstreams: &Upstreams, target: &Target, call: &Call<'_>) -> Incoming {
    match upstreams.send(target, call).await.unwrap() {
        Reply::Stream(incoming) => *incoming,
        Reply::Whole(_) => panic!("no stream"),
    }
}
