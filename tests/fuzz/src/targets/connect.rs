//! What clients of OAuth and MCP send.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde_json::Value;
use svc_core::state::connect::{ClientAuth, OAuthClient, REDIRECTS_MAX, Redirect};
use svc_core::value::id::ClientId;
use svc_core::value::json::Json;
use svc_core::value::{Id as _, Timestamp};
use svc_http::wire::mcp::{self, Message};
use svc_http::wire::oauth::{self, Form};
use url::Url;

use super::{inputs, is_the_callers, line_and_rest};

/// A redirect that is taken leads a browser to the host that people are shown, by https or to its own machine; what is told there
/// stands behind what the client registered.
///
/// # Panics
/// Where it does not.
pub fn redirect(data: &[u8]) {
    let (other, text) = line_and_rest(data);
    let read = |bytes| std::str::from_utf8(bytes).ok().and_then(|it| Redirect::parse(it, &[]).ok());
    let Some(redirect) = read(text) else { return };
    let url = Url::parse(redirect.as_str()).expect("a browser reads it");
    assert_eq!(url.host_str(), Some(redirect.host()));
    assert!(url.scheme() == "https" || redirect.is_loopback(), "{url}");
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none(), "{url}");
    let origin = Url::parse(&redirect.origin().expect("an origin")).expect("it is one");
    assert_eq!(origin.origin(), url.origin());
    assert!(redirect.admits(&redirect));
    if let Some(other) = read(other).filter(|it| it != &redirect && redirect.admits(it)) {
        let mut here = Url::parse(other.as_str()).expect("a browser reads it");
        assert!(redirect.is_loopback() && other.is_loopback(), "{other:?}");
        here.set_port(url.port()).expect("it has a host");
        assert_eq!(here, url, "only the port differs");
    }
    let told = [("code", "a b&c=#"), ("iss", "https://gate.example.com")];
    let to = oauth::redirect_with(&redirect, &told);
    assert!(to.starts_with(redirect.as_str()), "{to}");
    let to = Url::parse(&to).expect("a browser reads it");
    let pairs: Vec<(String, String)> = to.query_pairs().into_owned().collect();
    let last = &pairs[pairs.len() - told.len()..];
    assert!(last.iter().zip(told).all(|((name, value), it)| (name.as_str(), value.as_str()) == it), "{pairs:?}");
    assert_eq!((to.origin(), to.path()), (url.origin(), url.path()));
}

/// Redirects that are taken and some that are not, some beside another.
#[must_use]
pub fn redirect_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "https://app.example/cb",
        "https://app.example:8443/cb?x=1&",
        "http://localhost:1/cb\nhttp://localhost:51645/cb",
        "http://127.0.0.1/\nhttp://127.0.0.1:33418/",
        "http://[::1]:7/cb?a=b\nhttp://[::1]/cb?a=b",
        "https://xn--bcher-kva.example/?\nhttps://1.2.3.4/cb",
        "https://user@app.example/cb#x\njavascript://app.example/%0aalert(1)",
        "https://2130706433/cb\nhttps://*.example\\@evil.example/",
    ])
}

/// A form is refused for the client to mend, or holds each member once.
///
/// # Panics
/// Where it does not.
pub fn form(data: &[u8]) {
    let (line, body) = line_and_rest(data);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    if let Some(value) = HeaderValue::from_bytes(line).ok().filter(|it| !it.is_empty()) {
        headers.insert("authorization", value);
    }
    let read = Form::of(&headers, &Uri::from_static("/oauth/token"), body);
    let address = std::str::from_utf8(body).ok().and_then(|it| format!("/?{it}").parse::<Uri>().ok());
    if let (Ok(form), Some(Ok(query))) = (&read, address.as_ref().map(Form::of_query)) {
        let same = |name: &str| body.contains(&b'#') || form.get(name) == query.get(name);
        assert!(["client_id", "scope", "state", "resource"].into_iter().all(same), "an address says the same");
    }
    let form = match read {
        Ok(form) => form,
        Err(refusal) => return is_the_callers(&refusal),
    };
    if let Ok(client) = form.client(&headers) {
        assert!(!format!("{client:?}").contains("planted-secret"));
    }
    let checks = [form.check_scope(), form.check_resource("https://gate.example.com")];
    checks.iter().filter_map(|it| it.as_ref().err()).for_each(is_the_callers);
    if let Ok(challenge) = oauth::check_challenge(&form) {
        assert_eq!(challenge.len(), 43);
    }
    if let Some(challenge) = form.get("code_verifier").and_then(oauth::challenge_of) {
        assert_eq!(challenge.len(), 43);
    }
}

/// Forms of both grants and of asking a person.
#[must_use]
pub fn form_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "\ngrant_type=authorization_code&code=x&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk&redirect_uri=http%3A%2F%2Flocalhost%2F&client_id=mcp_0",
        "Basic bWNwXzA6cGxhbnRlZC1zZWNyZXQ=\ngrant_type=refresh_token&refresh_token=planted&resource=https://gate.example.com/mcp",
        "\nresponse_type=code&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&scope=svc:agent",
        "Basic x\na=1&a=2&%ff=%zz&scope=openid&resource=https://gate.example.com/mcp/proxy/x/",
    ])
}

/// A registration is refused for the client to mend, or is told back with the redirects that it named, each a good one.
///
/// # Panics
/// Where it is not.
pub fn registration(data: &[u8]) {
    let asked = match oauth::registration(data, &[]) {
        Ok(asked) => asked,
        Err(refusal) => return is_the_callers(&refusal),
    };
    assert!((1..=REDIRECTS_MAX).contains(&asked.redirects.len()));
    assert!(asked.redirects.iter().all(|it| Redirect::parse(it.as_str(), &[]).as_ref() == Ok(it)));
    let client = OAuthClient {
        id: ClientId::from_bits(1),
        name: asked.name.clone(),
        redirects: asked.redirects.clone(),
        auth: asked.auth,
        secret: None,
        used: false,
        created_at: Timestamp::default(),
    };
    let secret = (asked.auth != ClientAuth::None).then_some("secret");
    let told = oauth::registered(&client, asked, secret);
    assert_eq!(told["redirect_uris"].as_array().map(Vec::len), Some(client.redirects.len()));
    assert_eq!(told["client_id"], client.id.to_string());
    assert_eq!(told.get("client_secret").and_then(Value::as_str), secret);
}

/// Registrations as real clients send them, and some that are none.
#[must_use]
pub fn registration_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        r#"{"client_name":"Desk (svc)","redirect_uris":["http://localhost:51645/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","application_type":"native","scope":"svc:agent"}"#,
        r#"{"redirect_uris":["https://app.example/cb","http://127.0.0.1/"],"token_endpoint_auth_method":"client_secret_basic","client_uri":"https://app.example"}"#,
        r#"{"client_id":"mcp_1","client_secret":"x","redirect_uris":["javascript:alert(1)"],"client_name":""}"#,
    ])
}

/// `name: value` lines, an empty one, and a message: it is answered under its own id, or refused by a code that the protocol has.
///
/// # Panics
/// Where it is not.
pub fn mcp(data: &[u8]) {
    let mut headers = HeaderMap::new();
    let mut rest = data;
    loop {
        let (line, after) = line_and_rest(rest);
        let Some(at) = line.iter().position(|it| *it == b':') else { break };
        let value = HeaderValue::from_bytes(line[at + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&line[..at]), value) {
            headers.append(name, value);
        }
        rest = after;
    }
    let Ok(json) = Json::parse(rest.trim_ascii_start()) else { return };
    let sent = json.get("id").cloned();
    let id = mcp::id_in(rest.trim_ascii_start());
    let is_id = id.is_string() || id.is_i64();
    assert!(if is_id { sent == Json::parse(id.to_string().as_bytes()).ok() } else { id.is_null() }, "{id}");
    match mcp::read(&headers, json) {
        Ok(Message::Silent | Message::Cancelled(_)) => {}
        Ok(Message::Request(request)) => {
            let id = Json::parse(request.id.to_string().as_bytes()).expect("an id is JSON");
            assert_eq!(Some(id), sent, "it is answered under its own id");
        }
        Err((id, fault)) => {
            assert!(id.is_null() || id.is_string() || id.is_i64(), "{id}");
            assert!(matches!(fault.status, 200 | 400 | 404), "{fault:?}");
            assert!([-32_600, -32_601, -32_602, -32_020, -32_022].contains(&fault.code), "{fault:?}");
            assert!(!fault.message.is_empty() && !fault.fix.is_empty(), "{fault:?}");
        }
    }
}

/// Messages of both eras.
#[must_use]
pub fn mcp_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "mcp-protocol-version: 2025-11-25\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"find_waste\",\"arguments\":{}}}",
        "mcp-protocol-version: 2026-07-28\nmcp-method: tools/call\nmcp-name: =?base64?c3BlbmRfc3VtbWFyeQ==?=\n\n{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"spend_summary\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
        "\n{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"}}",
        "\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{\"cursor\":\"dG9vbHM6MA==\"}}",
        "\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "\n[{\"jsonrpc\":\"1.0\",\"id\":1.5,\"result\":null}]",
    ])
}
