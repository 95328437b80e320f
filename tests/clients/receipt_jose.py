"""Receipts as a stranger sees them: fetched keys, an independent JOSE library, and `POST /v1/verify` beside it.

Needs `pyjwt[crypto]` and, in the environment variable SVC_DEV_JSON, the line that `svc dev --json` prints. Allows four
payments of a few cents and one tool call. Run it as `python receipt_jose.py`.
"""

import base64
import hashlib
import http.server
import json
import os
import pathlib
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from functools import cache

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run

DEV = json.loads(os.environ["SVC_DEV_JSON"])
BASE = DEV["baseUrl"].rstrip("/")
CLAIMS = {"iss", "sub", "jti", "act", "wid", "type", "dig", "iat", "nbf", "exp"}
PAYMENT_CLAIMS = CLAIMS | {"amount", "currency", "merchant"}


def call(path, body=None, headers=None, base=BASE):
    """Status, headers and JSON of one request."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data=data, headers={"content-type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, json.load(refused)


def authorize(body):
    """The decision on an action, which must be an allow with a receipt."""
    key = {"authorization": "Bearer " + DEV["agentKey"], "idempotency-key": secrets.token_hex(16)}
    status, _, decision = call("/v1/actions/authorize", body, key)
    assert status == 200, (status, decision)
    assert decision["decision"] == "allow" and decision["status"] == "allowed", decision
    return decision


def payment(amount=1250):
    """An allowed payment to a merchant of its own, so that none looks like a duplicate of another."""
    merchant = {"name": "Größe & \"Co\" 東京", "domain": f"shop-{secrets.token_hex(6)}.com"}
    return authorize({
        "type": "payment",
        "summary": "Renew the design tool for one month",
        "payment": {"amount": amount, "currency": "EUR", "merchant": merchant},
        "provenance": [{"source": "user", "detail": "asked in the chat"}],
    })


@cache
def shared():
    """One payment that the tests look at and none of them consumes."""
    return payment()


def charge(decision):
    """The charge that the decision's payment allows."""
    paid = decision["payment"]
    merchant = {"domain": paid["merchant"]["domain"]}
    return {"amount": paid["amount"], "currency": paid["currency"], "merchant": merchant}


def verify(receipt, decision=None, key=None):
    """The verdict on a receipt, 200 whatever it says, and the answer's headers."""
    body = {"receipt": receipt} if decision is None else {"receipt": receipt, "charge": charge(decision)}
    status, headers, verdict = call("/v1/verify", body, key and {"idempotency-key": key})
    assert status == 200, (status, verdict)
    return verdict, headers


def jose(receipt):
    """The claims, by PyJWT alone: the key is found by `kid` in the published set."""
    key = jwt.PyJWKClient(BASE + "/.well-known/jwks.json").get_signing_key_from_jwt(receipt)
    options = {"verify_iat": False, "require": ["iss", "iat", "nbf", "exp"]}
    return jwt.decode(receipt, key.key, algorithms=["EdDSA"], issuer=BASE, options=options)


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def with_header(receipt, change):
    """The receipt under a changed header, the rest as it was."""
    header, rest = receipt.split(".", 1)
    members = json.loads(unb64(header))
    members.update(change)
    return b64(json.dumps(members, separators=(",", ":")).encode()) + "." + rest


def with_claim(receipt, change):
    """The receipt with changed claims, the signature as it was."""
    header, payload, signature = receipt.split(".")
    claims = json.loads(unb64(payload))
    claims.update(change)
    payload = b64(json.dumps(claims, separators=(",", ":"), ensure_ascii=False).encode())
    return f"{header}.{payload}.{signature}"


def signed_by(private, receipt):
    """The receipt's own header and claims, signed by another key."""
    header, payload, _ = receipt.split(".")
    return f"{header}.{payload}." + b64(private.sign(f"{header}.{payload}".encode()))


def jose_refuses(receipt):
    try:
        jose(receipt)
    except (jwt.PyJWTError, ValueError):
        return True
    return False


def test_the_key_set_is_public_and_names_keys_by_thumbprint():
    status, headers, keys = call("/.well-known/jwks.json")
    assert status == 200 and headers["cache-control"] == "max-age=300", headers.items()
    assert keys["keys"]
    for key in keys["keys"]:
        assert set(key) == {"kty", "crv", "x", "kid", "use", "alg", "svc_use"}, key
        assert (key["kty"], key["crv"], key["use"], key["alg"]) == ("OKP", "Ed25519", "sig", "EdDSA"), key
        members = {"crv": key["crv"], "kty": key["kty"], "x": key["x"]}
        canonical = json.dumps(members, separators=(",", ":"), sort_keys=True)
        assert key["kid"] == b64(hashlib.sha256(canonical.encode()).digest()), key


def test_a_jose_library_verifies_a_payment_receipt():
    decision = shared()
    claims = jose(decision["receipt"])
    assert set(claims) == PAYMENT_CLAIMS, claims
    assert claims["sub"] == decision["agentId"] and claims["act"] == decision["id"]
    assert claims["dig"] == decision["actionDigest"] and claims["type"] == "payment"
    assert re.fullmatch(r"rcp_[0-9A-HJKMNP-TV-Z]{26}", claims["jti"]), claims
    assert re.fullmatch(r"wsp_[0-9A-HJKMNP-TV-Z]{26}", claims["wid"]), claims
    assert claims["amount"] == decision["payment"]["amount"] and claims["currency"] == "EUR"
    assert claims["merchant"] == decision["payment"]["merchant"]
    assert all(type(claims[name]) is int for name in ("iat", "nbf", "exp", "amount"))
    assert claims["nbf"] == claims["iat"] - 60 and claims["exp"] - claims["iat"] == 900, claims
    assert abs(claims["iat"] - time.time()) < 60, claims


def documented(language):
    """The program of docs/receipts.md in this language that checks a receipt."""
    document = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "receipts.md"
    programs = re.findall(rf"```{language}\n(.*?)```", document.read_text(), re.DOTALL)
    return next(it for it in programs if "jwks.json" in it)


def published_for(use):
    """A server that publishes the gate's keys, all of them for this use."""
    keys = call("/.well-known/jwks.json")[2]["keys"]
    text = json.dumps({"keys": [it | {"svc_use": use} for it in keys]}).encode()

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def test_the_documented_programs_take_a_receipt_by_a_clock_that_is_behind():
    # As far behind as `nbf` makes up for, and further. The claims are those of a receipt that was given just now.
    receipt = payment()["receipt"]
    behind = "import datetime, jwt.api_jwt\nclass Behind(datetime.datetime):\n    now = classmethod(lambda it, tz=None: " \
        "datetime.datetime.now(tz) - datetime.timedelta(seconds={}))\njwt.api_jwt.datetime = Behind\n"
    for seconds, code in ((0, 0), (50, 0), (90, 1)):
        command = [sys.executable, "-c", behind.format(seconds) + documented("python"), BASE, receipt]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code and ("act_" in done.stdout) == (code == 0), (seconds, done)
    if home := jose_home():
        for seconds, code in ((0, 0), (50, 0), (90, 1)):
            date = f"const OwnDate = Date\nglobalThis.Date = class extends OwnDate {{ constructor(...it) {{ super(...(it.length ? it : [OwnDate.now() - {seconds * 1000}])) }} }}\n"
            done = in_node(home, date, BASE, receipt)
            assert done.returncode == code and ("act_" in done.stdout) == (code == 0), (seconds, done)


def test_the_documented_programs_take_no_key_of_another_use():
    receipt = shared()["receipt"]
    for use, code in (("receipt", 0), ("scorecard", 1)):
        with published_for(use) as server:
            # The issuer is the gate; its keys are told elsewhere.
            keys = f"http://127.0.0.1:{server.server_address[1]}/.well-known/jwks.json"
            python = documented("python").replace('base + "/.well-known/jwks.json"', repr(keys))
            done = subprocess.run([sys.executable, "-c", python, BASE, receipt], capture_output=True, text=True, check=False)
            assert done.returncode == code, (use, done)
            if home := jose_home():
                done = in_node(home, "", BASE, receipt, lambda it: it.replace("base + '/.well-known/jwks.json'", repr(keys)))
                assert done.returncode == code, (use, done)
            server.shutdown()


def jose_home():
    """Where jose is installed for Node, beside what needs it; nothing where there is no Node."""
    home = pathlib.Path(os.environ.get("SVC_NODE_HOME") or "/nowhere")
    return home if (home / "node_modules" / "jose").is_dir() else None


def in_node(home, before, base, receipt, change=lambda it: it):
    """What the documented program for Node says of a receipt, with `before` put before its own words."""
    imported, rest = change(documented("js")).split("\n", 1)
    with tempfile.NamedTemporaryFile("w", suffix=".mjs", dir=home) as file:
        file.write(imported + "\n" + before + rest)
        file.flush()
        return subprocess.run(["node", file.name, base, receipt], capture_output=True, text=True, check=False)


def test_the_documented_program_finds_the_digest_of_what_was_sent():
    document = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "receipts.md"
    programs = re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)
    [program] = [it for it in programs if "import rfc8785" in it]
    share = {"recipient": "A@Example.COM", "fields": ["name"], "purpose": "As agreed ", "note": 1}
    tool = {"name": "read", "input": {"path": "größe", "b": 1}}
    # With a server of its own: what the agent may do in ten minutes is for the other checks.
    with run.serving("--json") as line, tempfile.TemporaryDirectory() as folder:
        own = json.loads(line)
        key = {"authorization": "Bearer " + own["agentKey"]}
        place = pathlib.Path(folder)
        (place / "digest.py").write_text(program)
        for asked in (
            {"type": "data.share", "summary": "Send the list", "data": share},
            {"type": "tool.call", "summary": " Read it ", "tool": tool, "details": {"z": 1, "a": [True]}},
            {"type": "tool.call", "summary": "Read on", "tool": tool, "details": None, "data": None},
            {"type": "payment", "summary": "Pay", "payment": {"amount": 5, "currency": "eur", "merchant": {"name": "S", "domain": "Shop.Example.com"}}},
        ):
            status, _, decision = call("/v1/actions/authorize", asked, key, own["baseUrl"].rstrip("/"))
            assert status == 200, decision
            (place / "request.json").write_text(json.dumps(asked))
            (place / "decision.json").write_text(json.dumps(decision))
            command = [sys.executable, "digest.py", "request.json", "decision.json"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout.strip()) == (0, decision["actionDigest"]), (asked, done)


def test_the_header_has_three_members():
    header = jwt.get_unverified_header(shared()["receipt"])
    kid = header.pop("kid")
    assert header == {"alg": "EdDSA", "typ": "svc-receipt+jwt"}, header
    assert len(kid) == 43, kid


def test_no_summary_and_no_person_travel_in_a_receipt():
    payload = unb64(shared()["receipt"].split(".")[1]).decode()
    assert "design tool" not in payload and "@" not in payload and shared()["digestSalt"] not in payload, payload


def test_the_same_action_reads_the_same_receipt():
    status, _, again = call("/v1/actions/" + shared()["id"], headers={"authorization": "Bearer " + DEV["agentKey"]})
    assert status == 200 and again["receipt"] == shared()["receipt"], again


def test_altered_receipts_are_refused_by_both():
    decision = shared()
    good = decision["receipt"]
    header, payload, signature = good.split(".")
    flipped = bytearray(unb64(signature))
    flipped[17] ^= 4
    stranger = Ed25519PrivateKey.generate()
    public = b64(stranger.public_key().public_bytes_raw())
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": public}
    faults = [
        ("malformed", with_header(good, {"alg": "none"}).rsplit(".", 1)[0] + "."),
        ("malformed", with_header(good, {"alg": "none"})),
        ("malformed", with_header(good, {"alg": "HS256"})),
        ("malformed", with_header(good, {"typ": "JWT"})),
        ("malformed", with_header(good, {"crit": ["exp"]})),
        ("malformed", signed_by(stranger, with_header(good, {"jwk": jwk}))),
        ("malformed", with_header(good, {"jku": "https://keys.example/jwks.json"})),
        ("malformed", with_header(good, {"x5c": []})),
        ("malformed", with_header(good, {"b64": False})),
        ("malformed", with_claim(good, {"admin": True})),
        ("malformed", f"{header}.{payload}"),
        ("malformed", ""),
        ("unknown_key", with_header(good, {"kid": b64(bytes(32))})),
        ("bad_signature", with_claim(good, {"amount": 999_999})),
        ("bad_signature", with_claim(good, {"exp": int(time.time()) + 86_400})),
        ("bad_signature", f"{header}.{payload}.{b64(bytes(flipped))}"),
        ("bad_signature", signed_by(stranger, good)),
    ]
    for reason, altered in faults:
        assert jose_refuses(altered), (reason, altered)
        verdict, _ = verify(altered, decision)
        assert verdict == {"valid": False, "consumed": False, "reason": reason}, (verdict, altered)
    # Nothing of all this used the receipt up.
    assert jose(good)["jti"]


def test_only_one_text_is_the_receipt():
    decision = shared()
    good = decision["receipt"]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    stray = good[:-1] + alphabet[alphabet.index(good[-1]) ^ 1]
    assert unb64(stray.rsplit(".", 1)[1]) == unb64(good.rsplit(".", 1)[1])
    for text in (stray, good + "==", good + "\n", " " + good, good + ".", good + "A" * (4097 - len(good))):
        verdict, _ = verify(text, decision)
        assert verdict == {"valid": False, "consumed": False, "reason": "malformed"}, (verdict, text)


def test_verify_consumes_once():
    decision = payment(1260)
    verdict, _ = verify(decision["receipt"], decision)
    claims = jose(decision["receipt"])
    assert verdict["valid"] is True and verdict["consumed"] is True and "reason" not in verdict, verdict
    assert verdict["receiptId"] == claims["jti"] and verdict["actionId"] == decision["id"], verdict
    assert verdict["agentId"] == decision["agentId"] and verdict["type"] == "payment", verdict
    assert (verdict["amount"], verdict["currency"]) == (1260, "EUR"), verdict
    assert verdict["merchant"]["domain"] == decision["payment"]["merchant"]["domain"], verdict
    again, _ = verify(decision["receipt"], decision)
    assert again["valid"] is False and again["consumed"] is False, again
    assert again["reason"] == "already_consumed" and again["consumedAt"], again
    # The signature stays good for ever: what the text cannot show is that it was spent.
    assert jose(decision["receipt"]) == claims


def test_the_same_verification_is_answered_again_to_its_key_alone():
    decision = payment(1270)
    key = secrets.token_hex(16)
    first, headers = verify(decision["receipt"], decision, key)
    assert first["consumed"] is True and headers["idempotent-replayed"] is None, first
    again, headers = verify(decision["receipt"], decision, key)
    assert again == first and headers["idempotent-replayed"] == "true", again
    for other in (secrets.token_hex(16), None):
        verdict, headers = verify(decision["receipt"], decision, other)
        assert verdict["reason"] == "already_consumed" and headers["idempotent-replayed"] is None, verdict


def test_a_key_made_from_the_receipt_is_refused():
    decision = shared()
    receipt = decision["receipt"]
    keys = [receipt[-40:], "k" * 15, "k" * 129]
    for name in ("md5", "sha1", "sha256", "sha512"):
        digest = hashlib.new(name, receipt.encode()).digest()
        keys += [digest.hex(), digest.hex().upper(), b64(digest), base64.b64encode(digest).decode()]
    for key in keys:
        body = {"receipt": receipt, "charge": charge(decision)}
        status, _, answer = call("/v1/verify", body, {"idempotency-key": key})
        assert status == 400 and answer["error"]["type"] == "invalid_request", (key, answer)
        assert answer["error"]["errors"][0]["field"] == "idempotency-key", answer


def test_a_receipt_that_pays_nothing_needs_no_charge():
    decision = authorize({
        "type": "tool.call",
        "summary": "List the open issues",
        "tool": {"name": "list_issues", "server": "tracker"},
        "provenance": [{"source": "user", "detail": "asked in the chat"}],
    })
    claims = jose(decision["receipt"])
    assert set(claims) == CLAIMS and claims["type"] == "tool.call", claims
    verdict, _ = verify(decision["receipt"], shared())
    assert verdict["valid"] is False and verdict["reason"] == "type_mismatch", verdict
    verdict, _ = verify(decision["receipt"])
    assert verdict["valid"] is True and verdict["consumed"] is True, verdict


def test_a_charge_that_the_receipt_does_not_cover_consumes_nothing():
    decision = payment(1280)
    domain = decision["payment"]["merchant"]["domain"]
    whole = charge(decision)
    for reason, changed in (
        ("charge_required", None),
        ("charge_required", {"amount": 1280, "currency": "EUR"}),
        ("currency_mismatch", {**whole, "currency": "USD"}),
        ("amount_exceeds", {**whole, "amount": 1281}),
        ("merchant_mismatch", {**whole, "merchant": {"domain": "evil-" + domain}}),
        ("merchant_mismatch", {**whole, "merchant": {"domain": "other-shop.com"}}),
    ):
        body = {"receipt": decision["receipt"]} if changed is None else {"receipt": decision["receipt"], "charge": changed}
        status, _, verdict = call("/v1/verify", body)
        assert status == 200 and verdict["valid"] is False and verdict["consumed"] is False, verdict
        assert verdict["reason"] == reason, (reason, verdict)
    below = {**whole, "amount": 1000, "merchant": {"domain": "PAY." + domain.upper() + "."}}
    status, _, verdict = call("/v1/verify", {"receipt": decision["receipt"], "charge": below})
    assert status == 200 and verdict["valid"] is True and verdict["consumed"] is True, verdict


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("ok", name, flush=True)


if __name__ == "__main__":
    main()
