"""Evidence as a stranger checks it: the verifier of `examples/`, which shares no code with the server, agrees with
`svc evidence verify` on a bundle that is whole and on that bundle with each of its bytes changed in turn.

Needs `cryptography` and, in the environment variable SVC_DEV_JSON, the line that `svc dev --json` prints.
"""

import ast
import base64
import concurrent.futures
import json
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
import urllib.request

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEV = json.loads(os.environ["SVC_DEV_JSON"])
SVC = os.environ.get("SVC_BIN") or str(ROOT / "target" / "debug" / "svc")
# The program is started for one byte in so many; the example looks at every one of a redacted bundle.
STEP = 61
# Of an unredacted one, most of which is the same, it looks at one in so many, and at every one of what only that has.
FEWER = 3

EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(EXAMPLES))
import evidence_reading as reading
import verify_evidence as example


def fetch(query="", dev=DEV):
    address = dev["baseUrl"].rstrip("/") + "/v1/evidence" + query
    request = urllib.request.Request(address, headers={"authorization": "Bearer " + dev["adminKey"]})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def post(path, body, key=None, dev=DEV):
    address = dev["baseUrl"].rstrip("/") + path
    headers = {"content-type": "application/json"} | ({"authorization": "Bearer " + key} if key else {})
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def svc(bundle, jwks=None):
    with tempfile.NamedTemporaryFile() as file, tempfile.NamedTemporaryFile() as keys:
        file.write(bundle)
        file.flush()
        keys.write(jwks or b"")
        keys.flush()
        beside = ["--jwks", keys.name] if jwks else []
        command = [SVC, "evidence", "verify", file.name, "--json", *beside]
        return subprocess.run(command, capture_output=True, env={}, check=False).returncode


def svc_says(bundle):
    command = [SVC, "evidence", "verify", "-"]
    return subprocess.run(command, input=bundle, capture_output=True, env={}, check=True).stdout.decode()


def test_the_example_is_short_and_needs_one_package():
    files = [EXAMPLES / "verify_evidence.py", EXAMPLES / "evidence_reading.py"]
    lines = [it.read_text().splitlines() for it in files]
    # What the documentation promises of the verifier: somebody reads it to the end before they trust it.
    assert len(lines[0]) < 200, len(lines[0])
    assert not [it for file in lines for it in file if len(it) > 120]
    nodes = [it for file in files for it in ast.walk(ast.parse(file.read_text()))]
    names = {it.name for node in nodes if isinstance(node, ast.Import) for it in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    foreign = {it.split(".")[0] for it in names} - set(sys.stdlib_module_names)
    assert foreign == {"cryptography", "evidence_reading"}, foreign


def test_both_verifiers_find_a_bundle_whole():
    bundle = fetch()
    assert example.judge(bundle)[0] == 0, example.judge(bundle)
    assert svc(bundle) == 0


def test_both_verifiers_say_of_a_part_that_it_is_one():
    whole = json.loads(fetch())
    records = whole["records"]
    middle = next(it for it in records if it["at"] > records[0]["at"])
    far = "2999-01-01T00:00:00.000Z"
    for query, first in (
        ("", "whole; "),
        (f"?to={middle['at']}&from={records[0]['at']}", f"whole from record 0 to {middle['seq'] - 1} of "),
        (f"?from={middle['at']}", f"whole from record {middle['seq']} to "),
        (f"?from={far}", "no records; "),
    ):
        bundle = fetch(query)
        code, said = example.judge(bundle)
        told = svc_says(bundle)
        assert code == 0 and said.startswith(first) and told.startswith("ok: " + first), (query, said, told)


def test_both_verifiers_find_by_the_published_keys_whose_a_bundle_is():
    with urllib.request.urlopen(DEV["baseUrl"].rstrip("/") + "/.well-known/jwks.json", timeout=30) as answer:
        jwks = answer.read()
    bundle = fetch()
    sealed_by = json.loads(bundle)["seal"]["kid"]
    others = json.dumps({"keys": [it for it in json.loads(jwks)["keys"] if it["kid"] != sealed_by]}).encode()
    assert jwks.count(sealed_by.encode()) == 1 and others != jwks
    # A key that is published for one use signs for no other.
    keys = json.loads(jwks)["keys"]
    swapped = [it | {"svc_use": "scorecard"} if it["kid"] == sealed_by else it for it in keys]
    of_another_use, before = (json.dumps({"keys": it}).encode() for it in (swapped, [{n: it[n] for n in it if n != "svc_use"} for it in keys]))
    assert {it["svc_use"] for it in keys} == {"receipt", "checkpoint", "scorecard"}
    for keys, code in ((jwks, 0), (others, 1), (of_another_use, 1), (before, 0)):
        found = example.judge(bundle, reading.published(keys))
        assert found[0] == svc(bundle, keys) == code, (found, code)
    assert sealed_by in example.judge(bundle, reading.published(others))[1]
    assert "not checked" in example.judge(bundle)[1] and "not checked" not in example.judge(bundle, reading.published(jwks))[1]


def test_both_verifiers_find_a_used_receipt_genuine():
    # Several, so that one is used within the second of its issue: both records then speak of the receipt at one instant.
    for number in range(5):
        merchant = {"name": "Shop", "domain": f"used-{secrets.token_hex(6)}.com"}
        asked = {"type": "payment", "summary": "Buy a stamp", "provenance": [{"source": "user"}]}
        asked |= {"payment": {"amount": 100 + number, "currency": "EUR", "merchant": merchant}}
        receipt = post("/v1/actions/authorize", asked, DEV["agentKey"])["receipt"]
        charge = {"amount": 100 + number, "currency": "EUR", "merchant": {"domain": merchant["domain"]}}
        assert post("/v1/verify", {"receipt": receipt, "charge": charge})["valid"]
    bundle = fetch()
    assert len(json.loads(bundle)["receipts"]) >= 5
    assert example.judge(bundle)[0] == 0, example.judge(bundle)
    assert svc(bundle) == 0


def test_both_verifiers_take_a_bundle_that_was_written_anew():
    bundle = json.loads(fetch())
    # As programs write JSON: with the texts as they are, with every letter that is not ASCII escaped, and with slashes too.
    for anew in (
        json.dumps(bundle, indent=2, ensure_ascii=False) + "\n",
        json.dumps(bundle),
        json.dumps(bundle).replace("/", "\\/"),
    ):
        assert example.judge(anew.encode())[0] == 0, example.judge(anew.encode())
        assert svc(anew.encode()) == 0


def test_both_verifiers_call_what_json_has_another_writing_of_malformed():
    bundle = fetch()
    for twice in (
        bundle.replace(b'"truncated":', b'"truncated":false,"truncated":', 1),
        bundle.replace(b'"fromSeq":0', b'"fromSeq":-0', 1),
        bundle.replace(b'"fromSeq":0', b'"fromSeq":0.0', 1),
    ):
        assert twice != bundle
        assert example.judge(twice)[0] == 3, example.judge(twice)
        assert svc(twice) == 3


def test_both_verifiers_call_a_choice_incomplete():
    bundle = fetch("?agentId=" + DEV["agentId"])
    assert example.judge(bundle)[0] == 2, example.judge(bundle)
    assert svc(bundle) == 2


def pay(dev, amount):
    """A payment from its question on; what is allowed is charged and settled."""
    merchant = {"name": "Example Tools", "domain": "tools.example.com"}
    payment = {"amount": amount, "currency": "EUR", "merchant": merchant}
    asked = {"type": "payment", "summary": "Renew the design tool", "payment": payment, "provenance": [{"source": "user"}]}
    told = post("/v1/actions/authorize", asked, dev["agentKey"], dev)
    if told["decision"] == "allow":
        charge = {"amount": amount, "currency": "EUR", "merchant": {"domain": "tools.example.com"}}
        assert post("/v1/verify", {"receipt": told["receipt"], "charge": charge}, dev=dev)["valid"]
        post(f"/v1/actions/{told['id']}/settle", {"status": "completed", "amount": amount}, dev["agentKey"], dev)


def flipped(raw, at):
    changed = bytearray(raw)
    changed[at] ^= 1
    return bytes(changed)


def test_both_verifiers_find_every_changed_byte():
    # Of a server of its own, whose ledger is short and has a record of each thing that an agent does.
    with run.serving("--json") as line:
        dev = json.loads(line)
        for amount in (4_900, 5_100, 900_000):
            pay(dev, amount)
        bundle = fetch("?redact=true", dev)
    for at in range(len(bundle)):
        changed = flipped(bundle, at)
        code, said = example.judge(changed)
        assert code in (1, 3), (at, code, said)
        if at % STEP == 0:
            # A byte that is no bundle's to one may be a bundle's that does not fit to the other.
            told = svc(changed)
            assert told in (1, 3), (at, told, code, said)


def test_both_verifiers_find_every_changed_byte_of_receipts_and_texts():
    with run.serving("--json") as line:
        dev = json.loads(line)
        pay(dev, 4_900)
        bundle = fetch("", dev)
    assert len(json.loads(bundle)["receipts"]) == 1 and json.loads(bundle)["disclosures"]
    for at in range(0, len(bundle), FEWER):
        code, said = example.judge(flipped(bundle, at))
        assert code in (1, 3), (at, code, said)
    # A seal finds each of these bytes, whatever they are. So whoever has a key of their own seals the bundle anew.
    signer = Ed25519PrivateKey.generate()
    own = sealed_anew(bundle, signer=signer)
    assert example.judge(own)[0] == svc(own) == 0
    cut, texts, proofs, receipts, behind = (
        own.index(b',"%s":' % it) for it in (b"seal", b"disclosures", b"inclusionProofs", b"receipts", b"truncated")
    )
    sealed = {at: seal(flipped(own[:cut], at), signer) for at in (*range(texts, proofs), *range(receipts, behind))}
    for at, changed in sealed.items():
        code, said = example.judge(changed)
        assert code in (1, 3), (at, code, said)
        # What can be read is found for itself, and not by what stands behind it.
        assert code == 3 or ("receipt" if at >= receipts else "a text is not what it commits to") in said, (at, said)
    asked = {at: flipped(bundle, at) for at in range(0, len(bundle), STEP)}
    asked |= {-at: changed for at, changed in sealed.items() if at >= receipts}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for at, told in zip(asked, pool.map(svc, asked.values())):
            assert told in (1, 3), (at, told)


def places(value, path=()):
    """Where the texts, numbers and words of a bundle stand."""
    if isinstance(value, (dict, list)):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, name))
    elif value is not None:
        yield path


def altered(bundle, path):
    """The bundle with another value there: the number behind, the other word, a text whose last character is another."""
    bundle = json.loads(json.dumps(bundle))
    holder = bundle
    for name in path[:-1]:
        holder = holder[name]
    was = holder[path[-1]]
    if isinstance(was, str):
        holder[path[-1]] = was[:-1] + ("B" if was[-1:] == "A" else "A")
    else:
        holder[path[-1]] = not was if isinstance(was, bool) else was + 1
    return bundle


def test_both_verifiers_say_the_same_of_every_altered_member():
    for bundle in (json.loads(fetch()), json.loads(fetch("?since=1"))):
        # The last of each kind: a list's last record, proof or receipt is at the edge of what is there.
        kinds = {tuple("*" if isinstance(it, int) else it for it in path): path for path in places(bundle)}
        # Whether bytes are a point of the curve, of which a key's name knows nothing, svc alone asks.
        del kinds["keys", "*", "x"]
        changed = {path: altered(bundle, path) for path in kinds.values()}
        changed["another's key"] = altered(bundle, ("keys", 0, "kid"))
        changed["another's key"]["keys"][0]["x"] = bundle["keys"][1]["x"]
        changed["without the last record"] = altered(bundle, ("range", "toSeq"))
        changed["without the last record"]["range"]["toSeq"] -= 2
        changed["without the last record"]["records"].pop()
        changed["a short seal"] = json.loads(json.dumps(bundle))
        changed["a short seal"]["seal"]["signature"] = bundle["seal"]["signature"][:8]
        for path, other in changed.items():
            text = json.dumps(other, ensure_ascii=False, separators=(",", ":")).encode()
            (code, said), told = example.judge(text), svc(text)
            assert code == told and code in (1, 3), (path, told, code, said)


def test_the_example_says_where_there_is_no_verdict():
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "b.json").write_bytes(fetch())
        (place / "rsa").write_text('{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"r"}]}')
        (place / "none").write_text("[]")
        for beside, code in ((["b.json"], 0), ([], 4), (["gone"], 4), (["b.json", "gone"], 4), (["b.json", "none"], 4), (["b.json", "rsa"], 4)):
            command = [sys.executable, str(EXAMPLES / "verify_evidence.py"), *beside]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == code and not done.stderr, (beside, done)


def test_both_verifiers_pass_over_keys_of_other_kinds():
    with urllib.request.urlopen(DEV["baseUrl"].rstrip("/") + "/.well-known/jwks.json", timeout=30) as answer:
        keys = json.load(answer)["keys"]
    others = [{"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "r"}, {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]
    jwks = json.dumps({"keys": others + [{name: it[name] for name in it if name != "kid"} for it in keys]}).encode()
    bundle = fetch()
    assert example.judge(bundle, reading.published(jwks))[0] == svc(bundle, jwks) == 0


def b64(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def seal(before, signer):
    """A bundle of which this is the text up to its seal."""
    digest = example.sha(before).hex()
    kid = example.thumbprint(b64(signer.public_key().public_bytes_raw()))
    signature = b64(signer.sign(f"svc-evidence/1\n{digest}\n".encode()))
    return before + b',"seal":' + example.text_of({"kid": kid, "digest": digest, "signature": signature}).encode() + b"}"


def sealed_anew(bundle, standing=(), size=None, of_receipts=None, signer=None):
    """The bundle as whoever has a checkpoint key of their own writes it, with this standing of the key, this writing of the size and these
    keys of receipts."""
    signer = signer or Ed25519PrivateKey.generate()
    public = signer.public_key().public_bytes_raw()
    x, bundle = b64(public), json.loads(bundle)
    kid = example.thumbprint(x)
    key = next(it for it in bundle["keys"] if it["use"] == "checkpoint")
    key |= {"x": x, "kid": kid, **dict(standing)}
    if of_receipts:
        bundle["keys"] = of_receipts + [it for it in bundle["keys"] if it["use"] != "receipt"]
    name, was, *rest = bundle["checkpoint"].split("\n\n")[0].split("\n")
    body = "\n".join([name, size(was) if size else was, *rest]) + "\n"
    signature = example.sha(name.encode(), b"\n\x01", public)[:4] + signer.sign(body.encode())
    bundle["checkpoint"] = f"{body}\n\u2014 {name} {base64.b64encode(signature).decode()}\n"
    del bundle["seal"]
    return seal(example.text_of(bundle)[:-1].encode(), signer)


def test_both_verifiers_say_the_same_of_a_keys_turn_and_of_a_size():
    bundle = fetch()
    begun = next(it["notBefore"] for it in json.loads(bundle)["keys"] if it["use"] == "checkpoint")
    long_ago = {"notBefore": "2001-01-01T00:00:00.000Z", "retiredAt": "2002-01-01T00:00:00.000Z"}
    for forged, code in (
        (sealed_anew(bundle), 0),
        (sealed_anew(bundle, {"retiredAt": "2999-01-01T00:00:00.000Z"}), 0),
        (sealed_anew(bundle, {"retiredAt": begun}), 1),
        (sealed_anew(bundle, long_ago), 1),
        (sealed_anew(bundle, size=lambda it: "0" + it), 1),
        (sealed_anew(bundle, size=lambda it: "+" + it), 1),
    ):
        found = example.judge(forged)
        assert found[0] == svc(forged) == code, (found, svc(forged), code)


def test_both_verifiers_say_the_same_of_the_turn_of_a_receipts_key():
    # The agent of the shared server has few actions left in these minutes.
    with run.serving("--json") as line:
        dev = json.loads(line)
        pay(dev, 100)
        bundle = fetch("", dev)
    issued = [json.loads(example.b64(it["jws"].split(".")[1]))["iat"] for it in json.loads(bundle)["receipts"]]
    first, last = (reading.datetime.fromtimestamp(pick(issued), reading.timezone.utc) for pick in (min, max))
    own = next(it for it in json.loads(bundle)["keys"] if it["use"] == "receipt")
    x = b64(Ed25519PrivateKey.generate().public_key().public_bytes_raw())

    def turn(begun, over=None, jwk=own):
        written = {name: (it.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z") for name, it in (("notBefore", begun), ("retiredAt", over)) if it}
        return {name: it for name, it in jwk.items() if name not in ("notBefore", "retiredAt")} | written

    after = lambda at, **more: at + reading.timedelta(**more)
    long_ago = after(first, days=-400)
    other = turn(long_ago, jwk={**own, "x": x, "kid": example.thumbprint(x)})
    for keys, code in (
        ([turn(long_ago)], 0),
        # Its turn comes when the last receipt is a day old. While no other key had it, one that is left out may have been that.
        ([turn(after(last, days=1))], 0),
        ([turn(after(last, days=1)), other], 1),
        # Clocks of processes that share a store may be five seconds apart, and the receipt tells whole seconds.
        ([turn(after(first, seconds=6)), other], 0),
        ([turn(after(first, seconds=6, milliseconds=1)), other], 1),
        ([turn(long_ago, after(last, seconds=-5)), other], 0),
        ([turn(long_ago, after(last, seconds=-5, milliseconds=-1)), other], 1),
        ([turn(after(last, days=1)), turn(after(last, days=1), jwk=other)], 0),
    ):
        forged = sealed_anew(bundle, of_receipts=keys)
        found = example.judge(forged)
        assert found[0] == svc(forged) == code, (found, svc(forged), code, keys)


def test_the_example_orders_members_by_code_units():
    assert example.text_of({"\ufb33": 1, "\U0001f600": [{"b": 2, "a": 3}]}, sort=True) == '{"\U0001f600":[{"a":3,"b":2}],"\ufb33":1}'


def test_the_example_compares_a_receipt_with_its_record():
    signer = Ed25519PrivateKey.generate()
    data = {"agentId": "agt_1", "receiptId": "rcp_1", "digest": "d", "type": "payment", "amount": 5, "currency": "EUR"}
    allowed = {("rcp_1", 7): (data | {"domain": "shop.example"}, "act_1")}
    claims = {"sub": "agt_1", "jti": "rcp_1", "dig": "d", "type": "payment", "amount": 5, "currency": "EUR", "iat": 7}
    claims |= {"act": "act_1", "iss": "https://gate.example", "wid": "wsp_1", "merchant": {"domain": "shop.example"}}
    # Whoever has the key may sign any claim: each is another than the record's in turn.
    others = {"amount": 6, "iat": 8, "merchant": {"domain": "other.example"}, "iss": "https://other.example"}
    for changed in ({}, *({name: others.get(name, "other")} for name in claims)):
        text = json.dumps(claims | changed).encode()
        signed = b64(b'{"kid":"k"}') + "." + b64(text)
        receipt = {"id": "rcp_1", "jws": signed + "." + b64(signer.sign(signed.encode()))}
        try:
            example.verify_receipt(receipt, {"k": signer.public_key().public_bytes_raw()}, [{"kid": "k"}], allowed, set(), "gate.example/wsp_1")
            found = True
        except example.Tampered:
            found = False
        assert found == (not changed), changed
