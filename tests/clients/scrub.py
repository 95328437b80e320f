"""A full run with secrets planted in everything that a client can send: none of them is in a log, in an error, in metrics or,
but for what an action says of itself, in the data directory. `python scrub.py` runs it alone.
"""

import base64
import contextlib
import hashlib
import html
import json
import socket
import urllib.error
import urllib.parse
import urllib.request

import run

PROMPT, SYSTEM, TOOL, ANSWER = "planted-prompt-7c1", "planted-system-7c2", "planted-result-7c3", "planted-answer-7c4"
UPSTREAM_KEY, PASSWORD, QUERY = "sk-planted-upstream-7c5", "planted-password-7c6", "planted-query-7c7"
SUMMARY, REASON, EMAIL = "planted-summary-7c8", "planted-reason-7c9", "planted-7ca@example.com"
VERIFIER = "planted-verifier-7cb-" + "v" * 43
# What an action says of itself is kept with it, and an address with its account: in rows, never in a log.
KEPT_IN_ROWS = {SUMMARY, REASON, EMAIL}
NEVER = {PROMPT, SYSTEM, TOOL, ANSWER, UPSTREAM_KEY, PASSWORD, QUERY}
# Models whose providers break in every way that there is.
FAULTS = [
    "status-500", "status-400", "status-401", "status-429", "drop", "cut-1", "half-1", "short-1", "error-1", "body-html",
    "body-empty", "body-garbage", "type-html", "gzip", "usage-missing",
]


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A browser that goes nowhere by itself."""

    def redirect_request(self, *_):
        return None


class Client:
    """Requests with a credential or a session; whatever is answered is remembered."""

    def __init__(self, base):
        self.base, self.cookie, self.errors = base, None, []

    def ask(self, method, path, body=None, key=None, headers=()):
        sent = {"content-type": "application/json", "x-svc-csrf": "1", **dict(headers)}
        if key:
            sent["authorization"] = f"Bearer {key}"
        elif self.cookie:
            sent["cookie"] = self.cookie
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=raw, method=method, headers=sent)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                if found := answer.headers.get("set-cookie"):
                    self.cookie = found.split(";")[0]
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            self.errors.append(f"{error.headers}\n{text}")
            return error.code, text

    def led(self, path, raw, headers):
        """Where an answer leads to."""
        request = urllib.request.Request(self.base + path, data=raw, headers={"cookie": self.cookie, **headers})
        try:
            with urllib.request.build_opener(NoRedirect).open(request, timeout=60) as answer:
                raise AssertionError((answer.status, answer.read()))
        except urllib.error.HTTPError as error:
            assert error.code == 303, (error.code, error.read())
            return error.headers["location"]

    def must(self, *arguments, **named):
        status, text = self.ask(*arguments, **named)
        assert status < 300, (arguments, status, text)
        return json.loads(text) if text else None


def free_port():
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def administer(client, dev):
    """Signs in, badly and well, and makes a provider whose models echo and break."""
    client.ask("POST", "/api/sign-in", {"email": EMAIL, "password": PASSWORD})
    client.ask("POST", "/api/sign-in", b'{"email": "' + EMAIL.encode() + b'", "password": "' + PASSWORD.encode())
    client.ask("GET", f"/api/sign-in/nowhere?token={QUERY}")
    client.must("POST", "/api/sign-in/link", {"token": dev["signInLink"].split("token=")[1]})
    space = f"/api/w/{dev['workspaceId']}"
    demo = client.must("GET", f"{space}/upstreams")["data"][0]
    wish = {"name": "planted", "kind": demo["kind"], "baseUrl": demo["baseUrl"], "jurisdiction": "eu", "apiKey": UPSTREAM_KEY}
    upstream = client.must("POST", f"{space}/upstreams", wish)
    client.ask("POST", f"{space}/upstreams", {**wish, "name": "?", "apiKey": UPSTREAM_KEY, "surprise": UPSTREAM_KEY})
    client.must("POST", f"{space}/upstreams/{upstream['id']}/test")
    for name in ["mock--echo", *(f"mock--{fault}" for fault in FAULTS)]:
        model = {"id": name, "upstreamId": upstream["id"], "contextWindow": 200000, "maxOutput": 1000}
        model |= {"capabilities": ["tools", "streaming"], "prices": {"input": 1000000, "output": 1000000}}
        client.must("POST", f"{space}/models", model)
    client.must("POST", f"{space}/members", {"email": EMAIL, "role": "member"})


def call_models(client, key):
    """Every model, in both shapes, whole and streamed, with texts in every place, and with bodies that are none."""
    answered = 0
    tool = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
    call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": json.dumps({"q": PROMPT})}}
    for name in ["mock--echo", *(f"mock--{fault}" for fault in FAULTS), "mock--nowhere"]:
        for stream in (False, True):
            chat = {"model": f"planted/{name}", "max_tokens": 60, "stream": stream, "tools": [tool], "messages": [
                {"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_1", "content": TOOL}, {"role": "user", "content": ANSWER}]}
            messages = {"model": f"planted/{name}", "max_tokens": 60, "stream": stream, "system": SYSTEM,
                        "messages": [{"role": "user", "content": f"{PROMPT} {ANSWER}"}]}
            for path, body in (("/v1/chat/completions", chat), ("/anthropic/v1/messages", messages)):
                with contextlib.suppress(OSError, ValueError):  # a stream that breaks off is what some of them are for
                    _, text = client.ask("POST", path, body, key=key, headers={"x-svc-client-session": "planted-session"})
                    answered += ANSWER in text
    for body in (b'{"messages": [{"role": "user", "content": "' + PROMPT.encode(),
                 {"model": "planted/mock--echo", "messages": PROMPT},
                 {"model": "planted/mock--echo", "messages": [{"role": "nobody", "content": PROMPT}]}):
        client.ask("POST", "/v1/chat/completions", body, key=key)
        client.ask("POST", "/anthropic/v1/messages", body, key=key)
    client.ask("POST", f"/v1/chat/completions?key={QUERY}", {"model": "planted/mock--echo"}, key=key)
    client.ask("GET", f"/v1/{QUERY}?api_key={QUERY}")
    client.ask("POST", "/v1/chat/completions", {}, key=f"ask_{QUERY}")
    assert answered >= 4, "the answers hold what they are looked through for"


def connect(client, dev):
    """Lets a client in by OAuth and speaks MCP with what it is given; the secrets of the way."""
    redirect, form = "http://127.0.0.1/callback", {"content-type": "application/x-www-form-urlencoded"}
    wish = {"client_name": "Planted", "redirect_uris": [redirect], "token_endpoint_auth_method": "client_secret_post"}
    known = client.must("POST", "/oauth/register", wish)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
    members = {"response_type": "code", "client_id": known["client_id"], "redirect_uri": redirect, "state": "planted",
               "code_challenge": challenge, "code_challenge_method": "S256", "resource": dev["baseUrl"] + "/mcp"}
    _, page = client.ask("GET", "/oauth/authorize?" + urllib.parse.urlencode(members))
    request = html.unescape(page.split('name="request" value="', 1)[1].split('"', 1)[0])
    said = urllib.parse.urlencode({"request": request, "agentId": dev["agentId"], "choice": "allow"}).encode()
    location = client.led("/oauth/authorize", said, {**form, "origin": dev["baseUrl"]})
    code = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))["code"]
    asked = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER, "redirect_uri": redirect,
             "client_id": known["client_id"], "client_secret": known["client_secret"]}
    tokens = client.must("POST", "/oauth/token", urllib.parse.urlencode(asked).encode(), headers=form)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    client.must("POST", "/mcp", ping, key=tokens["access_token"], headers={"mcp-protocol-version": "2025-11-25"})
    client.ask("POST", "/oauth/token", urllib.parse.urlencode({**asked, "code_verifier": VERIFIER + "x"}).encode(), headers=form)
    client.ask("GET", f"/mcp?access_token={tokens['access_token']}")
    return {code, VERIFIER, request, known["client_secret"], tokens["access_token"], tokens["refresh_token"]}


def act(client, dev):
    """Actions, good and bad."""
    action = {"type": "tool.call", "summary": SUMMARY, "tool": {"name": "look_up", "input": {"q": SUMMARY}}}
    client.must("POST", "/v1/actions/authorize", action, key=dev["agentKey"])
    client.ask("POST", "/v1/actions/authorize", {**action, "surprise": SUMMARY}, key=dev["agentKey"])
    client.ask("POST", "/v1/verify", {"receipt": f"{QUERY}.{QUERY}.{QUERY}"})


def test_no_secret_is_logged_told_or_kept():
    port, found = free_port(), {}

    def left(data, log):
        found["log"] = log
        found["rows"] = b"".join(path.read_bytes() for path in data.iterdir() if path.is_file()).decode("latin-1")

    settings = {"SVC_LOG_LEVEL": "trace", "SVC_LOG_FORMAT": "json", "SVC_METRICS_LISTEN": f"127.0.0.1:{port}"}
    with run.serving("--json", settings=settings, left=left) as line:
        dev = json.loads(line)
        client = Client(dev["baseUrl"])
        administer(client, dev)
        call_models(client, dev["inferenceKey"])
        act(client, dev)
        passed = connect(client, dev)
        client.must("POST", f"/api/w/{dev['workspaceId']}/agents/{dev['agentId']}/freeze", {"reason": REASON})
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            metrics = answer.read().decode()
        cookie = client.cookie.split("=", 1)[1]
    shown = {name: dev[name] for name in ("adminKey", "agentKey", "inferenceKey", "serviceToken", "callbackSecret")}
    secrets = {*shown.values(), *passed, cookie, dev["signInLink"].split("token=")[1]}
    assert found["log"].count("/v1/chat/completions") > 2 * len(FAULTS), "requests are logged"
    assert "svc_model_calls_total" in metrics and len(client.errors) > 2 * len(FAULTS) and len(found["rows"]) > 100_000
    errors = "\n".join(client.errors)
    for place, text in (("the log", found["log"]), ("metrics", metrics)):
        told = [secret for secret in NEVER | KEPT_IN_ROWS | secrets if secret in text]
        assert not told, f"{place} tells {told}: " + "\n".join(it for it in text.splitlines() if told[0] in it)[:2000]
    told = [secret for secret in NEVER | secrets if secret in errors]
    assert not told, f"errors tell {told}: " + "\n".join(it for it in client.errors if told[0] in it)[:2000]
    kept = [secret for secret in NEVER | secrets if secret in found["rows"]]
    assert not kept, f"the data directory holds {kept}"
    assert SUMMARY in found["rows"], "what is looked through is what was written"


if __name__ == "__main__":
    test_no_secret_is_logged_told_or_kept()
