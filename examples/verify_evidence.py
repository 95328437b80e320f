"""Checks an evidence bundle with nothing of svc: Python's standard library and `cryptography`, for Ed25519 alone.

    python verify_evidence.py BUNDLE [JWKS]      exit 0 fits, 1 tampered, 2 incomplete, 3 malformed, 4 no verdict

Anybody can write a bundle that fits in itself. JWKS is a file of the service's `/.well-known/jwks.json`: what keys that
are not in it signed is tampered. A bundle's records form a chain of SHA-256 hashes and the leaves of an RFC 6962 tree,
whose root a signed checkpoint names (C2SP tlog-checkpoint); a seal at its end signs the digest of all before it.
`evidence_reading.py`, beside this file, has how these are written, the key set, and the verdicts' exit codes.
"""

import functools, hashlib, json, re, sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from evidence_reading import (CLOCKS_DIFFER, USES, Incomplete, Tampered, b64, extent, had_turn, hexes, instant, key_of,
                              main, need, read, text_of, thumbprint, verdict, whose, within)

STOPS = {"agent.frozen": "agent", "agent.removed": "agent", "hold.set": "hold", "drill.started": "drill"}
RESTARTS = {"agent.restarted": "agent", "hold.lifted": "hold"}

def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def signed(key, message, signature):
    try:
        return Ed25519PublicKey.from_public_bytes(key).verify(signature, message) is None
    except InvalidSignature:
        return False

def keys_of(jwks):
    """By use and name the keys that count: in nobody else's hands, and not replaced before their turn came."""
    keys = {use: {} for use in USES}
    for jwk, key in [(it, key_of(it)) for it in jwks]:
        need(jwk["kid"] == thumbprint(jwk["x"]), "a key has another's name")
        replaced = {"notBefore", "retiredAt"} <= set(jwk) and instant(jwk["retiredAt"]) <= instant(jwk["notBefore"])
        if "compromisedAt" not in jwk and not replaced:
            keys[jwk["use"]][jwk["kid"]] = key
    return keys

def open_note(note, origin, keys, signers):
    """Size and root of a checkpoint that one of `keys` signed under its own origin; whose these are is noted."""
    body, _, lines = note.rpartition("\n\n")
    name, size, root = body.split("\n")[:3]
    found = set()
    for line in lines.rstrip("\n").split("\n"):
        dash, signer, signature = line.split(" ")
        raw = b64(signature, url=False)
        for kid, key in keys.items():
            if dash == "\u2014" and signer == name == origin and raw[:4] == sha(name.encode(), b"\n\x01", key)[:4]:
                need(signed(key, f"{body}\n".encode(), raw[4:]), "the checkpoint's signature does not fit")
                found.add(("checkpoint", kid))
    need(found, "no known key signed the checkpoint")
    signers |= found
    need(re.fullmatch("0|[1-9][0-9]*", size), "a size that has another writing")
    return int(size), b64(root, url=False, length=32)

def climb(at, last, values, path):
    """The way up of RFC 9162, 2.1.3.2 and 2.1.4.2: steps from the left are for all `values`, others for the last."""
    for step in path:
        need(last > 0, "a proof does not fit")
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
    """The tree of `new` records begins with that of `old`."""
    need(0 < old <= new and (old < new or not proof), "nothing continues a ledger without a record")
    start, *path = proof if old & (old - 1) and old < new else [old_root, *proof]
    at, last = (old - 1, new - 1) if old < new else (0, 0)
    while at & 1:
        at, last = at >> 1, last >> 1
    roots = climb(at, last, [start, start], path)
    need(roots == [old_root, new_root], "the checkpoint does not continue the previous one")

def replay(record, strict, actions, stopped):
    """No settlement before an allow, no second use of a receipt, no allow while the agent is frozen."""
    kind, subject, data = record["kind"], record["subject"], record["data"]
    agent, known = data.get("agentId", subject), actions.setdefault(subject, set())
    whom = {"agent": agent, "hold": subject, "drill": data.get("canaryId")}
    if kind in STOPS and (kind != "hold.set" or data.get("scope") == "all"):
        stopped.add((STOPS[kind], whom[STOPS[kind]]))
    elif kind in RESTARTS:
        stopped.discard((RESTARTS[kind], whom[RESTARTS[kind]]))
    # What a drill puts down for its canary, once, does nothing; earlier servers did so under a hold, too.
    drill = kind == "action.allowed" and data.get("type") == "drill.receipt" and "amount" not in data
    drill = drill and ("drill", agent) in stopped
    if drill:
        stopped.discard(("drill", agent))
    halted = ("agent", agent) in stopped or (not drill and any(why == "hold" for why, _ in stopped))
    approved = kind == "action.approved" and data.get("decision") == "allow"
    if approved or kind in ("action.allowed", "action.asked"):
        need(approved or not known, "decided twice")
        need(not approved or known == {"asked"} or not (known or strict), "approved, but it did not wait")
        need(kind == "action.asked" or not halted, "allowed while its agent was frozen")
        known.add("asked" if kind == "action.asked" else "allowed")
    elif kind in ("action.denied", "action.person_denied", "action.expired"):
        need(not known & {"allowed", "ended"}, "refused, but it was decided already")
        need(kind == "action.denied" or known or not strict, "refused, but it was never asked")
        known.add("ended")
    elif kind in ("action.settled", "action.lapsed", "action.revoked", "receipt.consumed"):
        need("allowed" in known or not (known or strict), "it was not allowed")
        need(kind not in known or kind not in ("action.settled", "receipt.consumed"), "it happened twice")
        need(kind != "receipt.consumed" or not (halted or "action.revoked" in known), "consumed while frozen")
        known.update({"allowed", kind})

def walk(records, first, whole):
    """The records by their places, where each fits those before it; the first that does not is named."""
    walked, actions, stopped, before, expected = {}, {}, set(), None, first
    for record in records:
        seq, name = record["seq"], f"record {record['seq']} ({record['id']})"
        body = {member: record[member] for member in record if member != "hash"}
        digest = sha(text_of(body, sort=True).encode()).hex()
        need(digest == record["hash"], f"{name}: its hash is not that of its text")
        need(seq == expected if whole else seq >= expected, f"{name}: it does not stand where it was to")
        before = "0" * 64 if seq == 0 else before if seq == expected else None
        need(before in (None, record["prevHash"]), f"{name}: it does not name the record before it")
        try:
            replay(record, whole and first == 0, actions, stopped)
        except Tampered as fault:
            raise Tampered(f"{name}: {fault}") from None
        walked[seq], before, expected = record, record["hash"], seq + 1
    return walked

def commitments(path, value):
    """What a value commits to, and where."""
    inner = value.items() if isinstance(value, dict) else ()
    own = {(*path, it) for name, it in inner if len(inner) == 1 and name == "commit"}
    return own.union(*(commitments((path[0], f"{path[1]}.{name}"), it) for name, it in inner))

def verify_receipt(receipt, keys, sound, allowed, signers, origin):
    """A receipt that one of `keys` signed in its turn says what a record allowed; whose that is is noted."""
    head, payload, signature = receipt["jws"].split(".")
    kid, message = json.loads(b64(head))["kid"], f"{head}.{payload}".encode()
    need(kid in keys and signed(keys[kid], message, b64(signature)), "a receipt's signature does not fit")
    signers.add(("receipt", kid))
    claims = json.loads(b64(payload))
    data, action = allowed.get((receipt["id"], claims["iat"]), ({}, None))
    pairs = {"sub": "agentId", "jti": "receiptId", "dig": "digest"} | {it: it for it in ("type", "amount", "currency")}
    need(data and all(claims.get(a) == data.get(b) for a, b in pairs.items()), "no record allowed what a receipt says")
    need(claims["act"] == action, "a receipt is of another action")
    need(had_turn(sound, kid, claims["iat"]), "the key of a receipt had not its turn when that was issued")
    need(f"{claims['iss'].split('://', 1)[-1].rstrip('/')}/{claims['wid']}" == origin, "a receipt is another ledger's")
    need(claims.get("merchant", {}).get("domain") == data.get("domain"), "a receipt is for another merchant")

def open_seal(seal, text, keys, signers):
    """One of `keys` signed every byte before the seal; which did is noted."""
    digest, signature = sha(text[:text.rindex(b',"seal":')]).hex(), b64(seal["signature"], length=64)
    key, message = keys.get(seal["kid"]), f"svc-evidence/1\n{digest}\n".encode()
    need(seal["digest"] == digest and key and signed(key, message, signature), "the seal")
    signers.add(("checkpoint", seal["kid"]))

def check(raw, trusted=None):
    """What there is to say of a bundle that fits; `trusted` has the published keys' names, and what each signs."""
    (bundle, text), signers = read(raw), set()
    keys, origin, whole = keys_of(bundle["keys"]), bundle["origin"], bundle["range"]["complete"]
    first, end = bundle["range"]["fromSeq"], bundle["range"]["toSeq"]
    need(origin.endswith("/" + bundle["workspaceId"]), "the origin is another ledger's")
    size, root = within("the checkpoint", open_note, bundle["checkpoint"], origin, keys["checkpoint"], signers)
    if "previous" in bundle:
        held = within("the previous one", open_note, bundle["previous"], origin, keys["checkpoint"], signers)
        continues(*held, size, root, [hexes(it, 32) for it in bundle["consistency"]])
    records = walk(bundle["records"], first, whole)
    need(not whole or first + len(records) == end <= size, f"records from {first + len(records)} on are missing")
    found = set().union(*(commitments((seq, "data"), it["data"]) for seq, it in records.items()))
    for shown in bundle.get("disclosures", []):
        commit = sha(hexes(shown["salt"], 16), shown["text"].encode()).hex()
        need((shown["seq"], shown["path"], commit) in found, f"record {shown['seq']}: a text is not what it commits to")
    for proof in bundle["inclusionProofs"]:
        seq, path = proof["seq"], [hexes(it, 32) for it in proof["path"]]
        need(seq in records, f"record {seq}: a proof is of no record here")
        leaf = sha(b"\x00", bytes.fromhex(records[seq]["hash"]))
        need(climb(seq, size - 1, [leaf], path) == [root], f"record {seq}: it is not in the checkpoint's tree")
    allowed = {(it["data"]["receiptId"], int(instant(it["at"]).timestamp())): (it["data"], it["subject"])
               for it in records.values()
               if it["kind"] in ("action.allowed", "action.approved") and "receiptId" in it["data"]}
    sound = [it for it in bundle["keys"] if it["kid"] in keys["receipt"]]
    for receipt in bundle.get("receipts", []):
        within("a receipt", verify_receipt, receipt, keys["receipt"], sound, allowed, signers, origin)
    open_seal(bundle["seal"], text, keys["checkpoint"], signers)
    retired = {(it["use"], it["kid"]): instant(it["retiredAt"]) for it in bundle["keys"] if "retiredAt" in it}
    times = {instant(it["at"]) for it in records.values()}
    over = {it for it in retired if it[0] == "checkpoint" and times and retired[it] + CLOCKS_DIFFER < max(times)}
    need(not signers & over, "a key signed that had retired before the last record was written")
    told, proved = whose(signers, retired, trusted), {it["seq"] for it in bundle["inclusionProofs"]}
    if not whole or not {min(records, default=0), max(records, default=0)} & set(records) <= proved:
        raise Incomplete("records or proofs were left out")
    return f"{extent(first, end, size)}; {told}: {len(records)} records of {origin}, checkpoint {size}"

judge = functools.partial(verdict, check)

if __name__ == "__main__":
    sys.exit(main(check, sys.argv[1:]))
