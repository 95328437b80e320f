"""Receipts read by PyJWT: a stranger verifies one with the published keys and nothing else."""

import base64
import hashlib
import json
import os
import time
import urllib.error
import urllib.request

import jwt

DEV = json.loads(os.environ["SVC_DEV_JSON"])
BASE = DEV["baseUrl"]


def call(method, path, body=None, key=None):
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(BASE + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, dict(answer.headers), json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, dict(refused.headers), json.load(refused)


def allowed(**more):
    """An action that the developer's own agent may do, with its receipt."""
    asked = {
        "type": "tool.call",
        "summary": "Read the list of open orders",
        "tool": {"name": "orders_list"},
        "provenance": [{"source": "user", "detail": "asked for the open orders"}],
    }
    asked.update(more)
    asked = {name: value for name, value in asked.items() if value is not None}
    status, _, decision = call("POST", "/v1/actions/authorize", asked, DEV["agentKey"])
    assert status == 200, decision
    assert (decision["decision"], decision["status"]) == ("allow", "allowed"), decision
    return decision


def keys():
    status, headers, found = call("GET", "/.well-known/jwks.json")
    assert status == 200, found
    assert "max-age=300" in headers["cache-control"], headers
    return {key["kid"]: key for key in found["keys"]}


def read(receipt):
    header = jwt.get_unverified_header(receipt)
    key = jwt.PyJWK(keys()[header["kid"]]).key
    required = ["iss", "sub", "jti", "iat", "nbf", "exp"]
    return jwt.decode(receipt, key, algorithms=["EdDSA"], issuer=BASE, options={"require": required})


def unpadded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_pyjwt_verifies_a_receipt():
    decision = allowed()
    claims = read(decision["receipt"])
    assert claims["sub"] == DEV["agentId"]
    assert claims["act"] == decision["id"]
    assert claims["wid"] == DEV["workspaceId"]
    assert claims["type"] == "tool.call"
    assert claims["dig"] == decision["actionDigest"]
    assert claims["jti"].startswith("rcp_") and claims["jti"][4:] == decision["id"][4:]
    assert claims["nbf"] == claims["iat"] - 60 and claims["exp"] - claims["iat"] == 15 * 60
    assert abs(claims["iat"] - time.time()) < 60
    assert not {"summary", "email", "principalEmail"} & claims.keys()


def test_pyjwt_reads_what_was_paid():
    payment = {"amount": 4900, "currency": "eur", "merchant": {"name": "Design Tool", "domain": "Design.Example.COM."}}
    decision = allowed(type="payment", summary="Renew the design tool", payment=payment, tool=None)
    claims = read(decision["receipt"])
    assert (claims["amount"], claims["currency"]) == (4900, "EUR"), claims
    assert claims["merchant"] == {"name": "Design Tool", "domain": "design.example.com"}, claims


def test_the_header_is_exact_and_the_kid_a_thumbprint():
    header = jwt.get_unverified_header(allowed()["receipt"])
    assert header.keys() == {"alg", "typ", "kid"}, header
    assert (header["alg"], header["typ"]) == ("EdDSA", "svc-receipt+jwt"), header
    key = keys()[header["kid"]]
    members = json.dumps({name: key[name] for name in ("crv", "kty", "x")}, separators=(",", ":"), sort_keys=True)
    assert header["kid"] == unpadded(hashlib.sha256(members.encode()).digest())


def test_altered_receipts_are_refused_by_both():
    receipt = allowed()["receipt"]
    parts = receipt.split(".")
    for number, part in enumerate(parts):
        at = len(part) // 2
        other = "A" if part[at] != "A" else "B"
        altered = ".".join(parts[:number] + [part[:at] + other + part[at + 1 :]] + parts[number + 1 :])
        try:
            read(altered)
        except (jwt.InvalidTokenError, KeyError, ValueError):
            pass
        else:
            raise AssertionError(f"PyJWT takes a receipt altered in part {number}")
        status, _, verdict = call("POST", "/v1/verify", {"receipt": altered})
        assert status == 200 and not verdict["valid"] and not verdict["consumed"], verdict
        assert verdict["reason"] in ("malformed", "unknown_key", "bad_signature"), verdict
        assert "actionId" not in verdict, verdict
    status, _, verdict = call("POST", "/v1/verify", {"receipt": receipt})
    assert verdict["valid"] and verdict["consumed"], verdict


def test_unsigned_and_foreign_receipts_are_refused():
    receipt = allowed()["receipt"]
    claims = jwt.decode(receipt, options={"verify_signature": False})
    header = jwt.get_unverified_header(receipt)
    unsigned = jwt.encode(claims, None, algorithm="none", headers=header | {"alg": "none"})
    hmac = jwt.encode(claims, json.dumps(keys()), algorithm="HS256", headers={"typ": header["typ"], "kid": header["kid"]})
    for forged in (unsigned, hmac):
        status, _, verdict = call("POST", "/v1/verify", {"receipt": forged})
        assert status == 200 and verdict["reason"] == "malformed", verdict


def test_a_receipt_is_consumed_once():
    decision = allowed()
    _, _, first = call("POST", "/v1/verify", {"receipt": decision["receipt"]})
    assert first["valid"] and first["consumed"] and first["actionId"] == decision["id"], first
    _, _, second = call("POST", "/v1/verify", {"receipt": decision["receipt"]})
    assert not second["valid"] and second["reason"] == "already_consumed" and second["consumedAt"], second
    _, _, action = call("GET", f"/v1/actions/{decision['id']}", key=DEV["agentKey"])
    assert action["consumedAt"] == second["consumedAt"], action
