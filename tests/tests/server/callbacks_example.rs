//! The receiver in `examples/`, in another language and with nothing of svc in it, takes what svc signs and nothing else.

use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use svc_core::state::edge::signature;
use svc_core::testing::FakeClock;
use svc_core::value::Timestamp;
use svc_tests::client::{Client, PATIENCE};
use svc_tests::receiver::{self, SECRET};
use svc_tests::requests::{WIDE, payment};
use svc_tests::site::Site;
use svc_tests::source;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// The example as a process; it ends with the test.
struct Example {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Example {
    fn start() -> Self {
        let mut command = Command::new("python3");
        command.arg(source::root().join("examples/callback_receiver.py")).arg("0").env("SVC_CALLBACK_SECRET", SECRET);
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("Python starts");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        Self { _child: child, lines }
    }

    async fn line(&mut self) -> String {
        timeout(PATIENCE, self.lines.next_line()).await.expect("a line in time").unwrap().expect("it runs")
    }
}

/// It takes a real call; a call that comes twice it knows; and one with a secret, body or time that does not fit it refuses,
/// as it does one that is not signed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_takes_what_is_signed_and_nothing_else() {
    #[expect(clippy::disallowed_methods, reason = "the receiver goes by wall time")]
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let clock = FakeClock::new(Timestamp::from_millis(now));
    let site = Site::with(|plan| {
        plan.clock = clock;
        plan.config.allow_private_callbacks = true;
    })
    .await;
    receiver::connect(&site);
    let (agent, mut client, mut example) = (site.agent(&[WIDE]), site.client().await, Example::start());
    let listening = example.line().await;
    let url = listening.strip_prefix("listening on ").expect("an address").to_owned();
    let action = client.authorize(&agent.key, &payment(100)).await.ok()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/actions/{action}/callback");
    client.post(&path, &agent.key, &json!({ "url": format!("{url}/decided") })).await.ok();
    assert_eq!(example.line().await, format!("{action} is allowed"));

    let address = url.trim_start_matches("http://").parse().unwrap();
    let body = br#"{"id":"cbk_1","type":"action.decided","actionId":"act_1","status":"denied"}"#;
    let (at, old) = (Timestamp::from_millis(now), Timestamp::from_millis(now - 400_000));
    let (good, stale) = (signature(at, body, [SECRET.as_bytes()]), signature(old, body, [SECRET.as_bytes()]));
    let twice = signature(at, body, [&b"whsec_next"[..], SECRET.as_bytes()]);
    let other = signature(at, body, [&b"whsec_next"[..]]);
    let altered = signature(at, b"{}", [SECRET.as_bytes()]);
    let refused = "refused: the signature does not fit";
    for (header, event, status, line) in [
        (good.as_str(), "dlv_1", 204, "act_1 is denied"),
        (&good, "dlv_1", 204, "again: dlv_1"),
        (&twice, "dlv_2", 204, "act_1 is denied"),
        (&other, "dlv_3", 401, refused),
        (&altered, "dlv_4", 401, refused),
        (&stale, "dlv_5", 401, refused),
        (&good.replace("v1=", "v0="), "dlv_6", 401, refused),
        (&format!("t=1,{good}"), "dlv_7", 401, refused),
        ("", "dlv_8", 401, refused),
    ] {
        let mut caller = Client::connect(address).await;
        let headers = [("svc-signature", header), ("svc-event-id", event)];
        let got = caller.try_ask("POST", "/decided", &headers, body).await.unwrap();
        assert_eq!((got.status, example.line().await.as_str()), (status, line), "{header}");
    }
    site.stop().await;
}
