"""Checks an evidence bundle with nothing of svc: Python's standard library and `cryptography`, for Ed25519 alone.

    python verify_evidence.py BUNDLE [JWKS]      exit 0 fits, 1 tampered, 2 incomplete, 3 malformed, 4 no verdict

Anybody can write a bundle that fits in itself. JWKS is a file of the service's `/.well-known/jwks.json`: what keys that are not in it signed is tampered.
A bundle is one JSON text, signed as it stands without white space around its tokens and with no escape that it can do without. Its records form a chain of SHA-256
hashes and the leaves of an RFC 6962 tree, whose root a signed checkpoint names (C2SP tlog-checkpoint); a seal at its end signs the digest of all before it.
"""

import base64, hashlib, json, re, sys
from datetime import datetime, timedelta, timezone

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MEMBERS = ["format", "workspaceId", "origin", "range", "keys", "checkpoint", "previous", "consistency", "records",
           "disclosures", "inclusionProofs", "receipts", "truncated", "nextCursor", "seal"]
OPTIONAL = {"previous", "consistency", "disclosures", "receipts", "nextCursor"}
USES = ("receipt", "checkpoint", "scorecard")
CLOCKS_DIFFER, SECOND = timedelta(seconds=5), timedelta(seconds=1)
SIZE = re.compile(r"0|[1-9][0-9]*")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)

class Tampered(Exception):
    """Something does not fit."""
class Incomplete(Exception):
    """What is there fits, but something was left out."""

def need(holds, what):
    if not holds:
        raise Tampered(what)

def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def ordered(value):
    """The same with members by their names' UTF-16 code units, as RFC 8785 has them."""
    if isinstance(value, dict):
        return {name: ordered(value[name]) for name in sorted(value, key=lambda it: it.encode("utf-16-be"))}
    return [ordered(it) for it in value] if isinstance(value, list) else value

def text_of(value, sort=False):
    return json.dumps(ordered(value) if sort else value, ensure_ascii=False, separators=(",", ":"))

def members(pairs):
    """An object, each of whose members stands in it once."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a member that stands twice")
    return dict(pairs)

def integer(digits):
    """An integer in its one writing."""
    if digits != str(int(digits)):
        raise ValueError("a number that has another writing")
    return int(digits)

def b64(text, url=True):
    """Base64 in its one writing."""
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) if url else base64.b64decode(text, validate=True)
    if text != (base64.urlsafe_b64encode(raw).rstrip(b"=") if url else base64.b64encode(raw)).decode():
        raise ValueError("base64 that has another writing")
    return raw

def hexes(text, length):
    """So many bytes of hex in its one writing."""
    if len(text) != 2 * length or text != bytes.fromhex(text).hex():
        raise ValueError("hex that has another writing")
    return bytes.fromhex(text)

def key_of(jwk):
    """The bytes of a key, whose members have one writing."""
    times = {name: jwk[name] for name in ("notBefore", "retiredAt", "compromisedAt") if name in jwk}
    again = {"kty": "OKP", "crv": "Ed25519", "x": jwk["x"], "kid": jwk["kid"], "alg": "EdDSA", "use": jwk["use"], **times}
    if list(jwk.items()) != list(again.items()) or jwk["use"] not in USES or not all(map(INSTANT.fullmatch, times.values())):
        raise ValueError("a key that is none")
    return b64(jwk["x"])

def instant(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))

def has_turn(jwk):
    """Whether a key signed at all: one that was replaced before its turn came did not."""
    return not {"notBefore", "retiredAt"} <= set(jwk) or instant(jwk["notBefore"]) < instant(jwk["retiredAt"])

def had_turn(jwk, at):
    """Whether a key may have signed at an instant in whole seconds, by any clock of processes that share a store."""
    begun = "notBefore" not in jwk or instant(jwk["notBefore"]) <= at + CLOCKS_DIFFER + SECOND
    return begun and ("retiredAt" not in jwk or at <= instant(jwk["retiredAt"]) + CLOCKS_DIFFER)

def surely_had_turn(jwk, at):
    """Whether it was its turn then by every one of these clocks."""
    begun = "notBefore" in jwk and instant(jwk["notBefore"]) <= at - CLOCKS_DIFFER
    return begun and ("retiredAt" not in jwk or at + CLOCKS_DIFFER + SECOND < instant(jwk["retiredAt"]))

def within(what, read, *given):
    """What `read` makes of a text that is signed by itself: one that cannot be read was changed."""
    try:
        return read(*given)
    except (ValueError, KeyError, TypeError) as fault:
        raise Tampered(f"{what}: {fault}") from None

def signed(key, message, signature):
    try:
        return Ed25519PublicKey.from_public_bytes(key).verify(signature, message) is None
    except InvalidSignature:
        return False

def thumbprint(x):
    return base64.urlsafe_b64encode(sha(b'{"crv":"Ed25519","kty":"OKP","x":"%s"}' % x.encode())).rstrip(b"=").decode()

def open_note(note, origin, keys, signers):
    """Size and root of a checkpoint that one of `keys` signed under its own origin; whose these are is noted."""
    body, _, lines = note.rpartition("\n\n")
    body += "\n"
    name, size, root = body.split("\n")[:3]
    found = set()
    for line in lines.rstrip("\n").split("\n"):
        dash, signer, signature = line.split(" ")
        raw = b64(signature, url=False)
        for kid, key in keys.items():
            if dash == "\u2014" and signer == name == origin and raw[:4] == sha(name.encode(), b"\n\x01", key)[:4]:
                need(signed(key, body.encode(), raw[4:]), "the checkpoint's signature does not fit")
                found.add(("checkpoint", kid))
    need(found, "no known key signed the checkpoint")
    signers |= found
    need(len(b64(root, url=False)) == 32, "the root is no hash")
    if not SIZE.fullmatch(size):
        raise ValueError("a size that has another writing")
    return int(size), b64(root, url=False)

def climb(at, last, values, path):
    """The way up of RFC 9162, 2.1.3.2 and 2.1.4.2: all of `values` take steps from the left, the last those from the right too."""
    for step in path:
        need(last > 0 and len(step) == 32, "a proof does not fit")
        if at & 1 or at == last:
            values = [sha(b"\x01", step, it) for it in values]
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            values = values[:-1] + [sha(b"\x01", values[-1], step)]
        at, last = at >> 1, last >> 1
    need(last == 0, "a proof does not fit")
    return values

def continues(old, old_root, new, new_root, proof):
    need(0 < old <= new and (old < new or not proof), "nothing continues a ledger without a record")
    start, *path = proof if old & (old - 1) and old < new else [old_root, *proof]
    at, last = (old - 1, new - 1) if old < new else (0, 0)
    while at & 1:
        at, last = at >> 1, last >> 1
    need(climb(at, last, [start, start], path) == [old_root, new_root], "the checkpoint does not continue the previous one")

def replay(record, strict, actions, stopped):
    """No settlement before an allow, no second use of a receipt, no allow while the agent is frozen."""
    kind, subject, data = record["kind"], record["subject"], record["data"]
    agent, known = data.get("agentId", subject), actions.get(subject)
    if kind in ("agent.frozen", "agent.removed") or (kind == "hold.set" and data.get("scope") == "all"):
        stopped.add(agent if kind != "hold.set" else subject + " holds")
    elif kind in ("agent.restarted", "hold.lifted"):
        stopped.discard(agent if kind != "hold.lifted" else subject + " holds")
    elif kind == "drill.started":
        stopped.add(data.get("canaryId", "") + " drills")
    # What a drill puts down for its canary, once, does nothing; earlier servers did so under a hold, too.
    drill = kind == "action.allowed" and data.get("type") == "drill.receipt" and "amount" not in data
    drill = drill and agent + " drills" in stopped
    if drill:
        stopped.discard(agent + " drills")
    halted = agent in stopped or (not drill and any(it.endswith(" holds") for it in stopped))
    if kind in ("action.allowed", "action.asked") or (kind == "action.approved" and data.get("decision") == "allow"):
        if kind == "action.approved":
            need(known == {"asked"} or (known is None and not strict), "approved, but it did not wait")
        else:
            need(known is None, "decided twice")
        need(kind == "action.asked" or not halted, "allowed while its agent was frozen")
        actions.setdefault(subject, set()).add("asked" if kind == "action.asked" else "allowed")
    elif kind in ("action.denied", "action.person_denied", "action.expired"):
        need(not known or not known & {"allowed", "ended"}, "refused, but it was decided already")
        need(kind == "action.denied" or known is not None or not strict, "refused, but it was never asked")
        actions.setdefault(subject, set()).add("ended")
    elif kind in ("action.settled", "action.lapsed", "action.revoked", "receipt.consumed"):
        known = actions.setdefault(subject, set() if strict else {"allowed"})
        need("allowed" in known, "it was not allowed")
        need(kind not in known or kind not in ("action.settled", "receipt.consumed"), "it happened twice")
        need(kind != "receipt.consumed" or not (halted or "action.revoked" in known), "consumed while frozen")
        known.add(kind)

def commitments(seq, path, value, found):
    if isinstance(value, dict):
        if list(value) == ["commit"]:
            found.add((seq, path, value["commit"]))
        for name, inner in value.items():
            commitments(seq, f"{path}.{name}", inner, found)

def verify_receipt(receipt, keys, turns, allowed, signers, origin):
    """A receipt that one of `keys` signed in its turn says what a record allowed; whose that is is noted."""
    head, payload, signature = receipt["jws"].split(".")
    kid = json.loads(b64(head))["kid"]
    key = keys.get(kid)
    signers.add(("receipt", kid))
    need(key and signed(key, f"{head}.{payload}".encode(), b64(signature)), "a receipt's signature does not fit")
    claims = json.loads(b64(payload))
    data, action = allowed.get((receipt["id"], claims["iat"]), ({}, None))
    pairs = [("sub", "agentId"), ("jti", "receiptId"), ("dig", "digest"), ("type", "type"),
             ("amount", "amount"), ("currency", "currency")]
    need(data and all(claims.get(a) == data.get(b) for a, b in pairs), "no record allowed what a receipt says")
    need(claims["act"] == action, "a receipt is of another action")
    issued = datetime.fromtimestamp(claims["iat"], timezone.utc)
    # Where the key of that time is in other hands, another stands in for it, by whose turn nothing is told.
    need(had_turn(turns[kid], issued) or not any(surely_had_turn(it, issued) for it in turns.values()),
         "the key of a receipt had not its turn when that was issued")
    need(f"{claims['iss'].split('://', 1)[-1].rstrip('/')}/{claims['wid']}" == origin, "a receipt is another ledger's")
    need(claims.get("merchant", {}).get("domain") == data.get("domain"), "a receipt is for another merchant")

def published(jwks):
    """The names of the keys in a key set, each that of its own bytes, and what they sign, where that is said."""
    try:
        keys = [it for it in json.loads(jwks)["keys"] if (it["kty"], it.get("crv")) == ("OKP", "Ed25519")
                and it.get("use", "sig") == "sig" and it.get("alg", "EdDSA") == "EdDSA" and "verify" in it.get("key_ops", ["verify"])]
        if not keys or any(it.get("kid", thumbprint(it["x"])) != thumbprint(it["x"]) for it in keys):
            raise ValueError("no key in it signs, or one has another's name")
        return {thumbprint(it["x"]): it.get("svc_use") for it in keys}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise ValueError(f"the second file is no key set: {fault!r}") from None

def check(raw, trusted=None):
    bundle = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=members, parse_int=integer, parse_float=int, parse_constant=int)
    raw, names = text_of(bundle).encode(), list(bundle)
    if names != [it for it in MEMBERS if it in names] \
            or any(it not in names for it in MEMBERS if it not in OPTIONAL) or bundle["format"] != "svc-evidence/1":
        raise ValueError("not as a bundle is written")
    known = [(it, key_of(it)) for it in bundle["keys"]]
    sound = [(it, key) for it, key in known if "compromisedAt" not in it and has_turn(it)]
    keys = {use: {it["kid"]: key for it, key in sound if it["use"] == use} for use in USES}
    turns = {it["kid"]: it for it, _ in sound if it["use"] == "receipt"}
    need(all(it["kid"] == thumbprint(it["x"]) for it, _ in known), "a key has another's name")
    origin, first, end = bundle["origin"], bundle["range"]["fromSeq"], bundle["range"]["toSeq"]
    whole = bundle["range"]["complete"]
    need(origin.endswith("/" + bundle["workspaceId"]), "the origin is another ledger's")
    signers = set()
    size, root = within("the checkpoint", open_note, bundle["checkpoint"], origin, keys["checkpoint"], signers)
    if "previous" in bundle:
        old, old_root = within("the previous one", open_note, bundle["previous"], origin, keys["checkpoint"], signers)
        continues(old, old_root, size, root, [hexes(it, 32) for it in bundle["consistency"]])
    hashes, allowed, actions, stopped, found, before, expected, latest = {}, {}, {}, set(), set(), None, first, None
    for record in bundle["records"]:
        seq, data = record["seq"], record["data"]
        name = f"record {seq} ({record['id']})"
        body = {member: record[member] for member in record if member != "hash"}
        need(sha(text_of(body, sort=True).encode()).hex() == record["hash"], name + ": its hash is not that of its text")
        need(seq == expected if whole else seq >= expected, name + ": it does not stand where it was to")
        before = before if seq == expected else None
        before = "0" * 64 if seq == 0 else before
        need(before in (None, record["prevHash"]), name + ": it does not name the record before it")
        latest = max(latest or instant(record["at"]), instant(record["at"]))
        try:
            replay(record, whole and first == 0, actions, stopped)
        except Tampered as fault:
            raise Tampered(f"{name}: {fault}") from None
        commitments(seq, "data", data, found)
        hashes[seq], before, expected = bytes.fromhex(record["hash"]), record["hash"], seq + 1
        if record["kind"] in ("action.allowed", "action.approved") and "receiptId" in data:
            allowed[data["receiptId"], int(instant(record["at"]).timestamp())] = data, record["subject"]
    need(not whole or expected == end <= size, f"record {expected} and those behind it are missing")
    for shown in bundle.get("disclosures", []):
        commit = sha(hexes(shown["salt"], 16), shown["text"].encode()).hex()
        need((shown["seq"], shown["path"], commit) in found, f"record {shown['seq']}: a text is not what it commits to")
    for proof in bundle["inclusionProofs"]:
        path = [hexes(it, 32) for it in proof["path"]]
        need(proof["seq"] in hashes, f"record {proof['seq']}: a proof is of no record here")
        leaf = sha(b"\x00", hashes[proof["seq"]])
        need(climb(proof["seq"], size - 1, [leaf], path) == [root], f"record {proof['seq']}: it is not in the checkpoint's tree")
    for receipt in bundle.get("receipts", []):
        within("a receipt", verify_receipt, receipt, keys["receipt"], turns, allowed, signers, origin)
    cut = raw.rindex(b',"seal":')
    seal, digest = bundle["seal"], sha(raw[:cut]).hex()
    sealed = f"svc-evidence/1\n{digest}\n".encode()
    key, signature = keys["checkpoint"].get(seal["kid"]), b64(seal["signature"])
    if len(signature) != 64:
        raise ValueError("a seal that is none")
    need(seal["digest"] == digest and key and signed(key, sealed, signature), "the seal")
    signers.add(("checkpoint", seal["kid"]))
    over = {("checkpoint", it["kid"]) for it, _ in known if it["use"] == "checkpoint" and "retiredAt" in it
            and latest and instant(it["retiredAt"]) + CLOCKS_DIFFER < latest}
    need(not signers & over, "a key signed that had retired before the last record was written")
    # A receipt key that has retired is published for a day after that alone: it is the service's on the word of whoever sealed.
    retired = {("receipt", it["kid"]) for it, _ in known if it["use"] == "receipt" and "retiredAt" in it
               and instant(it["retiredAt"]) <= datetime.now(timezone.utc)}
    for use, kid in sorted(signers):
        need((trusted or {}).get(kid) in (None, use), f"the key {kid}, which signed as one for a {use}, is in the key set for another use")
    strange = {it for it in signers if trusted is not None and it[1] not in trusted}
    for _, kid in sorted(strange - retired):
        need(False, f"the key {kid}, which signed, is not in the key set")
    proved = {it["seq"] for it in bundle["inclusionProofs"]}
    if not whole or not {min(hashes, default=0), max(hashes, default=0)} & set(hashes) <= proved:
        raise Incomplete("records or proofs were left out")
    told = "signed by keys of the key set" if trusted is not None else "signers not checked against a key set"
    told += "".join(f", but for {kid}, which has retired" for _, kid in sorted(strange))
    extent = "whole" if 0 == first < end == size else f"whole from record {first} to {end - 1} of {size}"
    return f"{extent if hashes else 'no records'}; {told}: {len(hashes)} records of {origin}, checkpoint {size}"

def judge(raw, trusted=None):
    """Exit code and what to say."""
    try:
        return 0, check(raw, trusted)
    except Tampered as fault:
        return 1, f"tampered: {fault}"
    except Incomplete as fault:
        return 2, f"incomplete: {fault}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        return 3, f"malformed: {fault!r}"

if __name__ == "__main__":
    try:
        texts = [open(name, "rb").read() for name in sys.argv[1:3]]
        code, said = judge(texts[0], published(texts[1]) if texts[1:] else None) if texts else (4, "no verdict: pass a file, BUNDLE [JWKS]")
    except (OSError, ValueError) as fault:
        code, said = 4, f"no verdict: {fault}"
    print(said)
    sys.exit(code)
