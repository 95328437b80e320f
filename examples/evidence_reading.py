"""What `verify_evidence.py` stands on: how a bundle and its keys are written, the service's key set, and the verdicts.

A bundle is signed as one text. So each value in it has one writing, and what has another is refused: else a byte of the
file could change, and what is read from it would still be what was signed.
"""

import base64, hashlib, json, re
from datetime import datetime, timedelta, timezone

MEMBERS = ["format", "workspaceId", "origin", "range", "keys", "checkpoint", "previous", "consistency", "records",
           "disclosures", "inclusionProofs", "receipts", "truncated", "nextCursor", "seal"]
OPTIONAL = {"previous", "consistency", "disclosures", "receipts", "nextCursor"}
CLOCKS_DIFFER, SECOND = timedelta(seconds=5), timedelta(seconds=1)
USES = ("receipt", "checkpoint", "scorecard")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)

class Tampered(Exception):
    """Something does not fit."""
class Incomplete(Exception):
    """What is there fits, but something was left out."""

def need(holds, what):
    if not holds:
        raise Tampered(what)

def within(what, read_it, *given):
    """What is read from a text that is signed by itself: one that cannot be read was changed."""
    try:
        return read_it(*given)
    except (ValueError, KeyError, TypeError) as fault:
        raise Tampered(f"{what}: {fault}") from None

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

def b64(text, url=True, length=None):
    """Base64, of so many bytes, in its one writing."""
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) if url else base64.b64decode(text, validate=True)
    if text != (base64.urlsafe_b64encode(raw).rstrip(b"=") if url else base64.b64encode(raw)).decode():
        raise ValueError("base64 that has another writing")
    if length not in (None, len(raw)):
        raise ValueError("base64 of more or fewer bytes")
    return raw

def hexes(text, length):
    """So many bytes of hex in its one writing."""
    if len(text) != 2 * length or text != bytes.fromhex(text).hex():
        raise ValueError("hex that has another writing")
    return bytes.fromhex(text)

def instant(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))

def read(raw):
    """A bundle, and its text as the server wrote it, also where another program has written the file anew."""
    bundle = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=members,
                        parse_int=integer, parse_float=int, parse_constant=int)
    names = list(bundle)
    if names != [it for it in MEMBERS if it in names] \
            or any(it not in names for it in MEMBERS if it not in OPTIONAL) or bundle["format"] != "svc-evidence/1":
        raise ValueError("not as a bundle is written")
    return bundle, text_of(bundle).encode()

def key_of(jwk):
    """The bytes of a bundle's key, whose members have one writing."""
    times = {name: jwk[name] for name in ("notBefore", "retiredAt", "compromisedAt") if name in jwk}
    again = {"kty": "OKP", "crv": "Ed25519", "x": jwk["x"], "kid": jwk["kid"], "alg": "EdDSA", "use": jwk["use"]}
    if list(jwk.items()) != [*again.items(), *times.items()] or jwk["use"] not in USES \
            or not all(map(INSTANT.fullmatch, times.values())):
        raise ValueError("a key that is none")
    return b64(jwk["x"])

def had_turn(sound, kid, issued):
    """Whether a receipt's key may have signed in that second, by the clock of any process that shares the store.

    Where no key surely had its turn then, as the one of that time is in other hands, another stands in, by whose turn
    nothing is told.
    """
    at = datetime.fromtimestamp(issued, timezone.utc)
    def may(jwk):
        begun = "notBefore" not in jwk or instant(jwk["notBefore"]) <= at + CLOCKS_DIFFER + SECOND
        return begun and ("retiredAt" not in jwk or at <= instant(jwk["retiredAt"]) + CLOCKS_DIFFER)
    def surely(jwk):
        begun = "notBefore" in jwk and instant(jwk["notBefore"]) <= at - CLOCKS_DIFFER
        return begun and ("retiredAt" not in jwk or at + CLOCKS_DIFFER + SECOND < instant(jwk["retiredAt"]))
    return any(may(it) for it in sound if it["kid"] == kid) or not any(map(surely, sound))

def thumbprint(x):
    """The name of a key by its bytes (RFC 7638)."""
    digest = hashlib.sha256(b'{"crv":"Ed25519","kty":"OKP","x":"%s"}' % x.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

def published(jwks):
    """The names of the keys in a key set, each that of its own bytes, and what they sign, where that is said."""
    try:
        keys = [it for it in json.loads(jwks)["keys"] if (it["kty"], it.get("crv")) == ("OKP", "Ed25519")
                and it.get("use", "sig") == "sig" and it.get("alg", "EdDSA") == "EdDSA"
                and "verify" in it.get("key_ops", ["verify"])]
        if not keys or any(it.get("kid", thumbprint(it["x"])) != thumbprint(it["x"]) for it in keys):
            raise ValueError("no key in it signs, or one has another's name")
        return {thumbprint(it["x"]): it.get("svc_use") for it in keys}
    except UNREADABLE as fault:
        raise ValueError(f"the second file is no key set: {fault!r}") from None

def whose(signers, retired, trusted):
    """What there is to say of the keys that signed, by their uses and names: each is in the key set, for its use."""
    if trusted is None:
        return "signers not checked against a key set"
    told, now = "signed by keys of the key set", datetime.now(timezone.utc)
    for use, kid in sorted(signers):
        need(trusted.get(kid) in (None, use),
             f"the key {kid}, which signed as one for a {use}, is in the key set for another use")
    for use, kid in sorted(it for it in signers if it[1] not in trusted):
        # A receipt key that has retired is published for a day after that alone: it is the service's on the word of
        # whoever sealed.
        passed = use == "receipt" and (use, kid) in retired and retired[use, kid] <= now
        need(passed, f"the key {kid}, which signed, is not in the key set")
        told += f", but for {kid}, which has retired"
    return told

def extent(first, end, size):
    """How much of a ledger with `size` records these are, of which none is missing."""
    if first == end:
        return "no records"
    return "whole" if 0 == first < end == size else f"whole from record {first} to {end - 1} of {size}"

def verdict(check, raw, trusted=None):
    """Exit code and what to say of a bundle, by what `check` finds."""
    try:
        return 0, check(raw, trusted)
    except Tampered as fault:
        return 1, f"tampered: {fault}"
    except Incomplete as fault:
        return 2, f"incomplete: {fault}"
    except UNREADABLE as fault:
        return 3, f"malformed: {fault!r}"

def main(check, names):
    """Says what there is to say of the files of these names, and gives the exit code."""
    try:
        texts = [open(name, "rb").read() for name in names[:2]]
        trusted = published(texts[1]) if texts[1:] else None
        code, said = verdict(check, texts[0], trusted) if texts else (4, "no verdict: pass a file, BUNDLE [JWKS]")
    except (OSError, ValueError) as fault:
        code, said = 4, f"no verdict: {fault}"
    print(said)
    return code
