//! Bad input over a real socket: each is told its exact status, type and fields, the same connection then answers as if
//! nothing had been, and what was stored before is all there is.

use serde_json::{Value, json};
use svc_tests::client::{Client, Got, bearer, chunked, request};
use svc_tests::requests::{CRM, OFFICE, WIDE, charge, payment, payment_to, text, update, with};
use svc_tests::site::{Agent, Site};

const AUTHORIZE: &str = "/v1/actions/authorize";
const MIB: usize = 1024 * 1024;

/// A connection on which one good action was asked for before anything bad.
struct Bench {
    site: Site,
    client: Client,
    agent: Agent,
    before: Value,
    actions: usize,
}

impl Bench {
    async fn start() -> Self {
        let site = Site::start().await;
        let agent = site.agent(&[WIDE, CRM]);
        let mut client = site.client().await;
        let before = client.authorize(&agent.key, &payment(4_900)).await.ok();
        assert_eq!(text(&before["status"]), "allowed");
        Self { site, client, agent, before, actions: 1 }
    }

    /// Sends a body to the gate as it is.
    async fn raw(&mut self, headers: &[(&str, &str)], body: &[u8]) -> Got {
        let authorization = bearer(&self.agent.key);
        let headers: Vec<(&str, &str)> =
            [("authorization", authorization.as_str())].into_iter().chain(headers.iter().copied()).collect();
        self.client.ask("POST", AUTHORIZE, &headers, body).await
    }

    /// Sends a body to the gate that it decides on.
    async fn good(&mut self, body: &Value) -> Value {
        self.actions += 1;
        self.raw(&[], body.to_string().as_bytes()).await.ok()
    }

    /// Sends what is bad, and then finds everything as it was on the same connection.
    async fn bad(
        &mut self,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
        status: u16,
        kind: &str,
        fields: &[&str],
    ) {
        let got = self.raw(headers, body.as_ref()).await;
        let shown: String = String::from_utf8_lossy(body.as_ref()).chars().take(200).collect();
        let fields: Vec<String> = fields.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(got.refusal(), (status, kind.to_owned(), fields), "{headers:?} {shown}\n{}", got.text());
        self.unchanged().await;
    }

    /// A fault of these fields.
    async fn field(&mut self, body: &Value, fields: &[&str]) {
        self.bad(&[], body.to_string(), 400, "invalid_request", fields).await;
    }

    async fn unchanged(&mut self) {
        let read = self.client.read_action(&self.agent.key, text(&self.before["id"])).await.ok();
        assert_eq!(read, self.before);
    }

    /// Everything that was decided is there, and nothing else.
    async fn end(mut self) {
        let after = self.good(&payment(4_800)).await;
        assert_eq!(text(&after["status"]), "allowed", "{after}");
        assert_eq!(self.site.audit().actions, self.actions);
        self.site.stop().await;
    }
}

/// The body of a payment whose amount is this JSON text.
fn amount(text: &str) -> String {
    payment(77).to_string().replace("\"amount\":77", &format!("\"amount\":{text}"))
}

/// What is no whole number of minor units above zero is a fault of the amount: at the gate, in a charge and in an outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn amounts() {
    let mut bench = Bench::start().await;
    let receipt = bench.before["receipt"].clone();
    let id = text(&bench.before["id"]).to_owned();
    let bad = [
        "0",
        "-1",
        "1.5",
        "1e3",
        "1E3",
        "1.0",
        "0.0",
        "-0",
        "\"100\"",
        "true",
        "null",
        "[]",
        "{}",
        "9007199254740992",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "-9223372036854775809",
    ];
    for sent in bad {
        bench.bad(&[], amount(sent), 400, "invalid_request", &["payment.amount"]).await;
        // A receipt is a text of a thousand characters: the amount is replaced where it stands, not wherever it occurs.
        let body = charge(&receipt, 77).to_string().replace("\"amount\":77", &format!("\"amount\":{sent}"));
        let got = bench.client.ask("POST", "/v1/verify", &[], body.as_bytes()).await;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["charge.amount".into()]), "{sent}");
        if ["0", "-0"].contains(&sent) {
            continue;
        }
        let body = format!(r#"{{"status":"completed","amount":{sent}}}"#);
        let path = format!("/v1/actions/{id}/settle");
        let key = bearer(&bench.agent.key);
        let got = bench.client.ask("POST", &path, &[("authorization", &key)], body.as_bytes()).await;
        assert_eq!(got.refusal(), (400, "invalid_amount".into(), vec![]), "{sent}");
        bench.unchanged().await;
    }
    let largest = bench.good(&serde_json::from_str(&amount("9007199254740991")).unwrap()).await;
    assert_eq!(largest["payment"]["amount"], json!(9_007_199_254_740_991_i64));
    bench.end().await;
}

/// A currency is a current code of three letters, in any case.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn currencies() {
    let mut bench = Bench::start().await;
    for sent in
        ["", "EU", "EURO", "E R", "EU1", "€UR", "ZZZ", "XXX", "XTS", "XAU", "XBT", "BTC", "DEM", " EUR", "EUR\u{0}"]
    {
        bench.field(&with(payment(1), "payment.currency", json!(sent)), &["payment.currency"]).await;
    }
    for sent in [json!(978), json!(null), json!(["EUR"])] {
        bench.field(&with(payment(1), "payment.currency", sent), &["payment.currency"]).await;
    }
    for (sent, normal) in [("eur", "EUR"), ("Usd", "USD"), ("xof", "XOF"), ("XCG", "XCG")] {
        let decision = bench.good(&with(payment(1), "payment.currency", json!(sent))).await;
        assert_eq!(text(&decision["payment"]["currency"]), normal);
    }
    bench.end().await;
}

/// A merchant is a host name under a public suffix and nothing more; letters of other scripts, capitals and one dot at the
/// end are normalised.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merchants() {
    let mut bench = Bench::start().await;
    let place = "payment.merchant.domain";
    for sent in [
        "",
        ".",
        "https://shop.example.com",
        "//shop.example.com",
        "shop.example.com:443",
        "shop.example.com/pay",
        "shop.example.com?x",
        "shop.example.com#x",
        "user@shop.example.com",
        "192.0.2.1",
        "[2001:db8::1]",
        "2001:db8::1",
        "0x7f.1",
        "127.1",
        "shop..example.com",
        ".example.com",
        "shop.example.com..",
        "com",
        "co.uk",
        "github.io",
        "shop example.com",
        "shop.example.com\u{0}",
        "shop\u{2028}.example.com",
        "*.example.com",
        "-.example.com",
        "shop_.exa mple.com",
        "xn--a.example.com",
        "\u{ad}.com",
    ] {
        bench.field(&payment_to(1, sent), &[place]).await;
    }
    let (label, name) = (format!("{}.example.com", "a".repeat(64)), format!("{}example.com", "a.".repeat(130)));
    for sent in [json!(label), json!(name), json!(1), json!(null)] {
        bench.field(&with(payment(1), place, sent), &[place]).await;
    }
    bench.field(&with(payment(1), "payment.merchant", json!("shop.example.com")), &["payment.merchant"]).await;
    bench.field(&with(payment(1), "payment.merchant", json!(null)), &["payment.merchant"]).await;
    for sent in ["", "  ", &"n".repeat(101), "a\u{7}b", "a\nb"] {
        bench.field(&with(payment(1), "payment.merchant.name", json!(sent)), &["payment.merchant.name"]).await;
    }
    for (sent, normal) in [
        ("SHOP.Example.COM", "shop.example.com"),
        ("shop.example.com.", "shop.example.com"),
        ("Bücher.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("shop。example。com", "shop.example.com"),
    ] {
        let decision = bench.good(&payment_to(1, sent)).await;
        assert_eq!(text(&decision["payment"]["merchant"]["domain"]), normal, "{sent}");
    }
    bench.end().await;
}

/// Texts have their lengths, in characters, and no control characters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts() {
    let mut bench = Bench::start().await;
    for sent in
        ["", "   ", &"s".repeat(501), &"é".repeat(501), "a\u{0}b", "a\u{1b}[31m", "a\u{7f}", "a\u{9b}b", "a\nb", "a\tb"]
    {
        bench.field(&with(payment(1), "summary", json!(sent)), &["summary"]).await;
    }
    for sent in [json!(1), json!(null), json!({ "text": "x" })] {
        bench.field(&with(payment(1), "summary", sent), &["summary"]).await;
    }
    let longest = format!("  {}  ", "é".repeat(500));
    let decision = bench.good(&with(payment(1), "summary", json!(longest))).await;
    assert_eq!(text(&decision["summary"]), "é".repeat(500));
    for sent in ["", &"s".repeat(129), "a b", "a\u{7}", "é", "a\u{7f}"] {
        bench.field(&with(payment(1), "session", json!({ "id": sent })), &["session.id"]).await;
    }
    bench.field(&with(payment(1), "session", json!("s-1")), &["session"]).await;
    let many = json!(vec![json!({ "source": "user" }); 51]);
    for (sent, field) in [
        (many, "provenance"),
        (json!({ "source": "user" }), "provenance"),
        (json!(["user"]), "provenance.0"),
        (json!([{ "source": "user" }, {}]), "provenance.1.source"),
        (json!([{ "source": "" }]), "provenance.0.source"),
        (json!([{ "source": "s".repeat(65) }]), "provenance.0.source"),
        (json!([{ "source": "web", "detail": "d".repeat(501) }]), "provenance.0.detail"),
        (json!([{ "source": "web", "detail": "\u{0}" }]), "provenance.0.detail"),
    ] {
        bench.field(&with(payment(1), "provenance", sent), &[field]).await;
    }
    bench.end().await;
}

/// A type is built in or dotted; one word that is not built in is told the nearest that is meant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types() {
    let mut bench = Bench::start().await;
    for (sent, meant) in
        [("pay", "payment"), ("payments", "payment"), ("refnd", "refund"), ("qqqqqqqqzzzz", "custom.qqqqqqqqzzzz")]
    {
        let got = bench.raw(&[], with(payment(1), "type", json!(sent)).to_string().as_bytes()).await;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["type".into()]), "{sent}");
        assert_eq!(got.json()["error"]["didYouMean"], json!(meant), "{sent}");
        bench.unchanged().await;
    }
    for sent in [
        "",
        ".",
        "crm.",
        ".update",
        "crm..update",
        "a.b.c.d.e.f",
        "CRM.Update",
        "crm.upd-ate",
        "1crm.x",
        "crm.é",
        "crm update",
    ] {
        bench.field(&with(update(), "type", json!(sent)), &["type"]).await;
    }
    for sent in [json!(null), json!(1), json!(["payment"])] {
        bench.field(&with(payment(1), "type", sent), &["type"]).await;
    }
    for (kind, field) in [
        ("payment", "payment"),
        ("refund", "payment"),
        ("transfer", "payment"),
        ("data.share", "data"),
        ("tool.call", "tool.name"),
        ("mcp.call", "tool.name"),
    ] {
        bench.field(&with(update(), "type", json!(kind)), &[field]).await;
    }
    bench.end().await;
}

/// The other members have their bounds too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_have_their_bounds() {
    let mut bench = Bench::start().await;
    let big = "x".repeat(16 * 1024);
    for (sent, field) in [
        (json!([]), "details"),
        (json!({ "a": big }), "details"),
        (json!({ "a": 9_007_199_254_740_992_i64 }), "details.a"),
    ] {
        bench.field(&with(update(), "details", sent), &[field]).await;
    }
    let tool = with(update(), "type", json!("tool.call"));
    for (sent, field) in [
        (json!("ls"), "tool"),
        (json!({ "name": "" }), "tool.name"),
        (json!({ "name": "ls", "server": 1 }), "tool.server"),
        (json!({ "name": "ls", "input": "x" }), "tool.input"),
        (json!({ "name": "ls", "input": { "a": "x".repeat(64 * 1024) } }), "tool.input"),
        (json!({ "name": "ls", "input": { "a": [1, 9_007_199_254_740_993_i64] } }), "tool.input.a.1"),
        (json!({ "name": "ls", "inputDigest": "sha256:00" }), "tool.inputDigest"),
        (json!({ "name": "ls", "inputDigest": "0".repeat(64) }), "tool.inputDigest"),
        (json!({ "name": "ls", "inputBytes": -1 }), "tool.inputBytes"),
    ] {
        bench.field(&with(tool.clone(), "tool", sent), &[field]).await;
    }
    let share = with(update(), "type", json!("data.share"));
    let shared = json!({ "recipient": "crm.example.com", "fields": ["name"] });
    let share_good = with(share.clone(), "data", shared);
    for (sent, fields) in [
        (json!({}), &["data.fields", "data.recipient"][..]),
        (json!({ "recipient": "a@b@c", "fields": ["name"] }), &["data.recipient"]),
        (json!({ "recipient": "https://example.com", "fields": ["name"] }), &["data.recipient"]),
        (json!({ "recipient": "crm.example.com", "fields": [] }), &["data.fields"]),
        (json!({ "recipient": "crm.example.com", "fields": vec!["f"; 101] }), &["data.fields"]),
        (json!({ "recipient": "crm.example.com", "fields": ["name", ""] }), &["data.fields.1"]),
        (json!({ "recipient": "crm.example.com", "fields": ["name"], "purpose": "" }), &["data.purpose"]),
    ] {
        bench.field(&with(share.clone(), "data", sent), fields).await;
    }
    let big = json!(9_007_199_254_740_992_i64);
    for (member, sent, field) in [
        ("data", json!({ "recipient": "crm.example.com", "fields": ["name"], "rows": big }), "data.rows"),
        ("unread", json!({ "a": [1, { "b": big }] }), "unread.a.1.b"),
        ("unread", json!(-9_007_199_254_740_992_i64), "unread"),
    ] {
        bench.field(&with(share_good.clone(), member, sent), &[field]).await;
    }
    bench.end().await;
}

/// Every fault of a body is told at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_faults_are_told_together() {
    let mut bench = Bench::start().await;
    let big = json!(9_007_199_254_740_992_i64);
    let several =
        json!({ "type": "crm.update", "summary": "", "details": { "b": big, "a": [big, 1e300] }, "x": [big, [big]] });
    bench.field(&several, &["details.a.0", "details.b", "summary", "x.0", "x.1.0"]).await;
    let all = json!({
        "type": "pay", "summary": "", "session": { "id": "" }, "idempotencyKey": "", "details": 1, "tool": [],
        "payment": { "amount": 0, "currency": "EURO", "merchant": { "name": "", "domain": "com" } },
        "provenance": [{ "source": "" }, 1],
    });
    let fields = "details idempotencyKey payment.amount payment.currency payment.merchant.domain payment.merchant.name \
                  provenance.0.source provenance.1 session.id summary tool type";
    let fields: Vec<&str> = fields.split_whitespace().collect();
    bench.field(&all, &fields).await;
    bench.field(&json!({}), &["summary", "type"]).await;
    bench.end().await;
}

/// Texts that are no JSON, one a line.
const NO_JSON: &str = r#"{
}
{]
nul
'a'
{'a':1}
{"a":1,}
{"a":01}
{"a":+1}
{"a":.5}
{"a":NaN}
{"a":01e400}
{"a":1}{}
{"a":1} x
{"a":"\x"}
{"a":"\ud800"}
{"a":"\udc00\ud800"}
{"type":"payment","type":"payment"}
{"a":{"b":1,"b":1}}
{"a":1,"\u0061":2}"#;

/// What is no JSON, or JSON that readers could take for different things, is told so before anything in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_that_is_none() {
    let mut bench = Bench::start().await;
    let good = payment(1).to_string();
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let wrapped = |inner: &str| good.replacen(r"{", &format!(r#"{{"x":{inner},"#), 1);
    let mut bad: Vec<Vec<u8>> = NO_JSON.lines().map(|it| it.as_bytes().to_vec()).collect();
    bad.extend(["", " ", "// x\n{}", "{\"a\":\"\n\"}", "\u{feff}{}"].map(|it| it.as_bytes().to_vec()));
    bad.extend([nested(10_000), "[".repeat(10_000)].map(String::into_bytes));
    bad.extend([wrapped(&nested(10_000)), wrapped(&nested(64))].map(String::into_bytes));
    bad.extend([b"{\"a\":\"\xff\"}".to_vec(), b"\xff\xfe{\x00}\x00".to_vec(), b"{\"a\":\"\xed\xa0\x80\"}".to_vec()]);
    bad.extend([b"{\"a\":\"\xc0\xaf\"}".to_vec(), b"{\"a\":\"\x00\"}".to_vec(), b"\x00".to_vec()]);
    let id = text(&bench.before["id"]).to_owned();
    for body in bad {
        bench.bad(&[], &body, 400, "invalid_json", &[]).await;
        for path in [format!("/v1/actions/{id}/settle"), format!("/v1/actions/{id}/callback"), "/v1/verify".to_owned()]
        {
            let key = bearer(&bench.agent.key);
            let got = bench.client.ask("POST", &path, &[("authorization", &key)], &body).await;
            assert_eq!(
                got.refusal(),
                (400, "invalid_json".into(), vec![]),
                "{path} {}",
                String::from_utf8_lossy(&body)
            );
        }
    }
    for body in ["[]", "1", "\"x\"", "null", "true", "[{}]"] {
        bench.bad(&[], body, 400, "invalid_request", &["null"]).await;
    }
    let deepest: Value = serde_json::from_str(&wrapped(&nested(63))).unwrap();
    bench.good(&deepest).await;
    bench.end().await;
}

/// A mebibyte is taken and one byte more is not, by length and in chunks, and the connection goes on; so it does after a
/// body that says it is compressed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sizes_and_encodings() {
    let mut bench = Bench::start().await;
    let sized = |bytes: usize| {
        let body = with(payment(1), "filler", json!("")).to_string();
        let filler = "x".repeat(bytes - body.len());
        with(payment(1), "filler", json!(filler)).to_string().into_bytes()
    };
    let (largest, larger) = (sized(MIB), sized(MIB + 1));
    assert_eq!((largest.len(), larger.len()), (MIB, MIB + 1));
    bench.bad(&[], &larger, 413, "body_too_large", &[]).await;
    bench.bad(&[], vec![b'x'; MIB + 1], 413, "body_too_large", &[]).await;
    bench.raw(&[], &largest).await.ok();
    let coded = [("transfer-encoding", "chunked")];
    for size in [1, 7, 65_536] {
        let small = chunked(payment(1).to_string().as_bytes(), size);
        bench.raw(&coded, &small).await.ok();
        bench.actions += 1;
        bench.unchanged().await;
    }
    bench.raw(&coded, &chunked(&largest, 65_537)).await.ok();
    bench.actions += 2;
    bench.bad(&coded, chunked(&larger, 65_537), 413, "body_too_large", &[]).await;
    bench.bad(&coded, chunked(b"{\"a\":", 2), 400, "invalid_json", &[]).await;
    for encoding in ["gzip", "br", "deflate", "identity, gzip", "x"] {
        let headers = [("content-encoding", encoding)];
        bench.bad(&headers, payment(1).to_string(), 400, "invalid_request", &["content-encoding"]).await;
    }
    bench
        .raw(&[("content-encoding", "identity"), ("content-type", "text/plain")], payment(1).to_string().as_bytes())
        .await
        .ok();
    bench.actions += 1;
    bench.end().await;
}

/// Chunks that are none end their own connection, as what follows cannot be told apart, and harm nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_that_are_none_harm_nobody() {
    let mut bench = Bench::start().await;
    let key = bearer(&bench.agent.key);
    let headers = [("authorization", key.as_str()), ("transfer-encoding", "chunked")];
    for body in ["zz\r\n{}\r\n0\r\n\r\n", "-1\r\n{}\r\n", "ffffffffffffffffff\r\n", "2\r\n{}xx\r\n0\r\n\r\n"] {
        let mut other = bench.site.client().await;
        other.send(&request("POST", AUTHORIZE, &headers, body.as_bytes())).await;
        if let Ok(got) = other.hear(false).await {
            assert_eq!(got.status, 400, "{body}");
        }
        bench.unchanged().await;
    }
    bench.end().await;
}

/// Keys of idempotency: too long, empty, not the same twice, sent twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_idempotency() {
    let mut bench = Bench::start().await;
    let (long, body) = ("k".repeat(129), payment(1).to_string());
    for sent in [json!(long), json!(""), json!("a\u{0}b"), json!("a\nb"), json!(1), json!(["k"])] {
        bench.field(&with(payment(1), "idempotencyKey", sent), &["idempotencyKey"]).await;
    }
    for sent in [long.as_str(), "", "\u{80}"] {
        bench.bad(&[("idempotency-key", sent)], &body, 400, "invalid_request", &["idempotency-key"]).await;
    }
    let twice = [("idempotency-key", "k-1"), ("idempotency-key", "k-1")];
    bench.bad(&twice, &body, 400, "invalid_request", &["idempotency-key"]).await;
    let in_body = with(payment(1), "idempotencyKey", json!("k-1")).to_string();
    bench.bad(&[("idempotency-key", "k-2")], &in_body, 400, "invalid_request", &["idempotencyKey"]).await;
    for sent in ["k".repeat(128), "é".repeat(128)] {
        bench.good(&with(payment(1), "idempotencyKey", json!(sent))).await;
    }
    bench.end().await;
}

/// Credentials of the wrong kind, in the wrong place or twice are told so, and no body behind them is looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials() {
    let mut bench = Bench::start().await;
    let (key, secret) = (bench.agent.key.clone(), "A".repeat(43));
    let good = bearer(&key);
    let other = |prefix: &str| bearer(&format!("{prefix}_{secret}"));
    let (ims, art, sil, whsec, aat) = (other("ims"), other("art"), other("sil"), other("whsec"), other("aat"));
    let (basic, bare, tail) = (format!("Basic {key}"), key.clone(), format!("{good}x"));
    let (unknown, upper) = (other("ask"), format!("Bearer {}", key.to_uppercase()));
    type Case<'a> = (Vec<(&'a str, &'a str)>, u16, &'a str, Vec<&'a str>);
    let cases: Vec<Case<'_>> = vec![
        (vec![], 401, "unauthenticated", vec![]),
        (vec![("authorization", "")], 401, "unauthenticated", vec![]),
        (vec![("authorization", "Bearer")], 401, "unauthenticated", vec![]),
        (vec![("authorization", "Bearer ")], 401, "unauthenticated", vec![]),
        (vec![("authorization", &basic)], 401, "unauthenticated", vec![]),
        (vec![("authorization", &bare)], 401, "unauthenticated", vec![]),
        (vec![("authorization", &ims)], 401, "unauthenticated", vec![]),
        (vec![("authorization", &art)], 401, "unauthenticated", vec![]),
        (vec![("authorization", &sil)], 401, "unauthenticated", vec![]),
        (vec![("authorization", &whsec)], 401, "unauthenticated", vec![]),
        (vec![("authorization", &upper)], 401, "unauthenticated", vec![]),
        (vec![("x-api-key", &key)], 401, "unauthenticated", vec![]),
        (vec![("cookie", "sid=1")], 401, "unauthenticated", vec![]),
        (vec![("authorization", &unknown)], 401, "invalid_api_key", vec![]),
        (vec![("authorization", &aat)], 401, "invalid_api_key", vec![]),
        (vec![("authorization", &tail)], 401, "invalid_api_key", vec![]),
        (vec![("authorization", &good), ("authorization", &good)], 400, "invalid_request", vec!["authorization"]),
        (vec![("authorization", &good), ("x-api-key", "ask_1")], 400, "invalid_request", vec!["x-api-key"]),
    ];
    for (headers, status, kind, fields) in cases {
        for body in ["{", "{}", &payment(1).to_string()] {
            let got = bench.client.ask("POST", AUTHORIZE, &headers, body.as_bytes()).await;
            let fields: Vec<String> = fields.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(got.refusal(), (status, kind.to_owned(), fields), "{headers:?}");
        }
        bench.unchanged().await;
    }
    // A credential is not read where none is taken.
    let got = bench.client.ask("POST", "/v1/verify", &[("authorization", &unknown)], br#"{"receipt":"x"}"#).await;
    assert_eq!(got.ok()["reason"], json!("malformed"));
    bench.end().await;
}

/// What verify is asked is read as strictly; a receipt of any text is a verdict, one that is no text is a fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_about_receipts() {
    let mut bench = Bench::start().await;
    let receipt = bench.before["receipt"].clone();
    let good = charge(&receipt, 4_900);
    for (body, fields) in [
        (json!({}), &["receipt"][..]),
        (json!({ "receipt": null }), &["receipt"]),
        (json!({ "receipt": 1 }), &["receipt"]),
        (json!({ "receipt": [receipt.clone()] }), &["receipt"]),
        (with(good.clone(), "charge", json!(4_900)), &["charge"]),
        (with(good.clone(), "charge", json!({})), &["charge.amount", "charge.currency"]),
        (with(good.clone(), "charge.currency", json!("EURO")), &["charge.currency"]),
        (with(good.clone(), "charge.merchant", json!("shop.example.com")), &["charge.merchant"]),
        (with(good.clone(), "charge.merchant.domain", json!("https://shop.example.com")), &["charge.merchant.domain"]),
        (with(good.clone(), "charge.merchant.domain", json!(1)), &["charge.merchant.domain"]),
        (with(good.clone(), "charge.merchant.domain", json!(null)), &["charge.merchant.domain"]),
        (with(good.clone(), "charge.merchant", json!({})), &["charge.merchant.domain"]),
        (with(good.clone(), "type", json!(1)), &["type"]),
        (with(good.clone(), "type", json!("")), &["type"]),
        (with(good.clone(), "type", json!("PAY!")), &["type"]),
        (with(good.clone(), "type", json!("pay")), &["type"]),
        (json!([]), &["null"]),
    ] {
        let got = bench.client.verify(&body).await;
        let fields: Vec<String> = fields.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(got.refusal(), (400, "invalid_request".to_owned(), fields), "{body}");
        bench.unchanged().await;
    }
    assert_eq!(bench.client.verify(&good).await.ok()["valid"], json!(true));
    bench.before = bench.client.read_action(&bench.agent.key, text(&bench.before["id"])).await.ok();
    bench.end().await;
}

/// The limit on a mandate counts what was allowed and nothing that was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_reserves_nothing() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    for _ in 0..20 {
        let got = client.authorize(&agent.key, &with(payment(50_000), "summary", json!(""))).await;
        assert_eq!(got.status, 400);
    }
    let decision = client.authorize(&agent.key, &payment(20_000)).await.ok();
    assert_eq!(text(&decision["decision"]), "allow", "{decision}");
    assert_eq!(site.audit().actions, 1);
    site.stop().await;
}
