//! Rates: the three headers on every answer of the gate, 429, and who is counted with whom.

use svc_http::rate_limit::Rates;

use crate::server::{AGENT, Got, Server};

async fn slow() -> Server {
    Server::with(|it| {
        it.rates = Rates { gate: 3, verify: 2, ..Rates::default() };
        it.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await
}

/// Status, limit, what remains, and the seconds to wait. Those fall while a test runs, so they count by tens.
fn rate(got: &Got) -> (u16, Option<&str>, Option<&str>, Option<u32>) {
    let wait = got.header("retry-after").map(|_| tens(got, "retry-after"));
    (got.status, got.header("ratelimit-limit"), got.header("ratelimit-remaining"), wait)
}

fn tens(got: &Got, name: &str) -> u32 {
    got.header(name).unwrap().parse::<u32>().unwrap().next_multiple_of(10)
}

/// An agent's requests are counted, whatever the answer, and the one too many is told when to come again.
#[tokio::test]
async fn an_agents_requests_are_counted() {
    let server = slow().await;
    let mut client = server.client().await;
    assert_eq!(
        rate(&client.ask("POST", "/v1/actions/authorize", AGENT, "{}").await),
        (200, Some("3"), Some("2"), None)
    );
    let got = client.ask("GET", "/v1/actions/act_missing", AGENT, "").await;
    assert_eq!(rate(&got), (404, Some("3"), Some("1"), None));
    assert_eq!(tens(&got, "ratelimit-reset"), 40);
    assert_eq!(
        rate(&client.ask("POST", "/v1/actions/act_1/callback", AGENT, "{}").await),
        (400, Some("3"), Some("0"), None)
    );
    let got = client.ask("POST", "/v1/actions/authorize", AGENT, "{}").await;
    assert_eq!(rate(&got), (429, Some("3"), Some("0"), Some(20)));
    assert_eq!((got.error().as_str(), tens(&got, "ratelimit-reset")), ("rate_limited", 60));
    // The rate is told before the size.
    let got = client.ask("POST", "/v1/actions/authorize", AGENT, &"x".repeat(1024 * 1024 + 1)).await;
    assert_eq!(got.status, 429);
    // Another agent, an unlimited route and the same agent's other credential kinds are not touched.
    assert_eq!(
        rate(&client.ask("POST", "/v1/actions/authorize", "authorization: Bearer ask_agent8\r\n", "{}").await),
        (200, Some("3"), Some("2"), None)
    );
    assert_eq!(rate(&client.ask("GET", "/healthz", "", "").await), (200, None, None, None));
}

/// What comes before a caller is known counts by address: an address out of its rate is told nothing else of keys that are
/// none, while good ones go on behind it, whether this server has seen them before or not.
#[tokio::test]
async fn callers_who_are_not_known_are_counted_by_address() {
    let server = slow().await;
    let mut client = server.client().await;
    let ask = "/v1/actions/authorize";
    assert_eq!(rate(&client.ask("POST", ask, "", "{}").await), (401, Some("3"), Some("2"), None));
    assert_eq!(
        rate(&client.ask("POST", ask, "authorization: Bearer ask_unknown\r\n", "{}").await),
        (401, Some("3"), Some("1"), None)
    );
    let twice = format!("{AGENT}{AGENT}");
    assert_eq!(rate(&client.ask("POST", ask, &twice, "{}").await), (400, Some("3"), Some("0"), None));
    assert_eq!(rate(&client.ask("POST", ask, "", "{}").await), (429, Some("3"), Some("0"), Some(20)));
    assert_eq!(
        rate(&client.ask("POST", ask, "authorization: Bearer ask_unknown\r\n", "{}").await),
        (429, Some("3"), Some("0"), Some(20))
    );
    for good in ["ask_agent9", "ask_known10"] {
        let shown = format!("authorization: Bearer {good}\r\n");
        assert_eq!(rate(&client.ask("POST", ask, &shown, "{}").await), (200, Some("3"), Some("2"), None), "{good}");
    }
    // Another address has its own rate.
    assert_eq!(client.ask("POST", ask, "x-forwarded-for: 192.0.2.7\r\n", "{}").await.status, 401);
}

/// What cannot be a credential by its form is refused like an unknown one, and nobody looks for it.
#[tokio::test]
async fn what_cannot_be_a_credential_costs_no_look() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let looked = |it: &Server| it.looks.counted().0;
    for (sent, looks) in
        [("ask_unknown".to_owned(), 1), ("ask_".to_owned(), 1), ("aat_1".to_owned(), 1), ("ask_a b".to_owned(), 1)]
            .into_iter()
            .chain([(format!("ask_{}", "x".repeat(253)), 1), (format!("ask_{}", "x".repeat(252)), 2)])
    {
        let shown = format!("authorization: Bearer {sent}\r\n");
        let got = client.ask("POST", "/v1/actions/authorize", &shown, "{}").await;
        assert_eq!((got.status, got.error().as_str(), looked(&server)), (401, "invalid_api_key", looks), "{sent}");
    }
}

/// From addresses out of their rate, all of them together, two credentials are looked for at once; the others wait for their turn,
/// and a good one has it. Nobody else waits for them: no other address, and nobody whom this server has seen before.
#[tokio::test]
async fn a_guesser_keeps_nobody_else_from_being_looked_for() {
    let server = slow().await;
    let mut client = server.client().await;
    let (ask, at) = ("/v1/actions/authorize", |it: usize| format!("x-forwarded-for: 192.0.2.{}\r\n", it % 2));
    for number in 0..6 {
        assert_eq!(client.ask("POST", ask, &at(number), "{}").await.status, 401);
    }
    let mut asking = Vec::new();
    for number in 0..6 {
        let mut client = server.client().await;
        // The last one is good.
        let key = if number == 5 { "ask_slow9" } else { "ask_slow_guess" };
        let head =
            format!("POST {ask} HTTP/1.1\r\nhost: gate.example\r\nauthorization: Bearer {key}\r\n{}", at(number));
        client.send(&format!("{head}content-length: 2\r\n\r\n{{}}")).await;
        server.looks.shown().await;
        asking.push(client);
    }
    assert_eq!(server.looks.counted(), (2, 2));
    for (key, from) in [("ask_agent9", "x-forwarded-for: 192.0.2.9\r\n"), ("ask_known10", &at(0))] {
        let got = client.ask("POST", ask, &format!("authorization: Bearer {key}\r\n{from}"), "{}").await;
        assert_eq!(got.status, 200, "{key}");
    }
    (0..6).for_each(|_| server.looks.slow.open());
    let mut told = Vec::new();
    for client in &mut asking {
        told.push(client.answer().await.status);
    }
    assert_eq!((told, server.looks.counted()), (vec![429, 429, 429, 429, 429, 200], (7, 3)));
}

/// Verification counts by address, as told by a trusted proxy, IPv6 by its first 64 bits.
#[tokio::test]
async fn verification_is_counted_by_address() {
    let server = slow().await;
    let mut client = server.client().await;
    let of = |address: &str| format!("x-forwarded-for: {address}\r\n");
    assert_eq!(
        rate(&client.ask("POST", "/v1/verify", &of("2001:db8::1"), "{}").await),
        (200, Some("2"), Some("1"), None)
    );
    assert_eq!(
        rate(&client.ask("POST", "/v1/verify", &of("2001:db8::2"), "{}").await),
        (200, Some("2"), Some("0"), None)
    );
    assert_eq!(
        rate(&client.ask("POST", "/v1/verify", &of("2001:db8::3"), "{}").await),
        (429, Some("2"), Some("0"), Some(30))
    );
    let got = client.ask("POST", "/v1/verify", &of("2001:db8:1::1"), "{}").await;
    assert_eq!(
        (rate(&got), got.json()["address"].as_str()),
        ((200, Some("2"), Some("1"), None), Some("2001:db8:1::1"))
    );
}

/// Paths of the gate tell the rate where there is no route or method, too, and count nothing for it.
#[tokio::test]
async fn a_wrong_path_tells_the_rate_and_counts_nothing() {
    let server = slow().await;
    let mut client = server.client().await;
    for _ in 0..5 {
        assert_eq!(rate(&client.ask("GET", "/v1/verify", "", "").await), (405, Some("2"), Some("2"), None));
        assert_eq!(rate(&client.ask("GET", "/v1/actions/a/b", "", "").await), (404, Some("3"), Some("3"), None));
        assert_eq!(rate(&client.ask("GET", "/v1/nowhere", "", "").await), (404, None, None, None));
    }
}
