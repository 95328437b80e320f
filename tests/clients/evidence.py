"""Evidence as a stranger checks it: the verifier of `examples/`, which shares no code with the server, agrees with
`svc evidence verify` on a bundle that is whole and on that bundle with each of its bytes changed in turn.

Needs `cryptography` and, in the environment variable SVC_DEV_JSON, the line that `svc dev --json` prints.
"""

import importlib.util
import json
import os
import pathlib
import secrets
import subprocess
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEV = json.loads(os.environ["SVC_DEV_JSON"])
SVC = os.environ.get("SVC_BIN") or str(ROOT / "target" / "debug" / "svc")
# The program is started for one byte in so many; the example looks at every one.
STEP = 61

spec = importlib.util.spec_from_file_location("verify_evidence", ROOT / "examples" / "verify_evidence.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)


def fetch(query=""):
    address = DEV["baseUrl"].rstrip("/") + "/v1/evidence" + query
    request = urllib.request.Request(address, headers={"authorization": "Bearer " + DEV["adminKey"]})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def post(path, body, key=None):
    address = DEV["baseUrl"].rstrip("/") + path
    headers = {"content-type": "application/json"} | ({"authorization": "Bearer " + key} if key else {})
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def svc(bundle):
    with tempfile.NamedTemporaryFile() as file:
        file.write(bundle)
        file.flush()
        done = subprocess.run([SVC, "evidence", "verify", file.name, "--json"], capture_output=True, env={}, check=False)
        return done.returncode


def test_both_verifiers_find_a_bundle_whole():
    bundle = fetch()
    assert example.judge(bundle)[0] == 0, example.judge(bundle)
    assert svc(bundle) == 0


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


def test_both_verifiers_find_every_changed_byte():
    bundle = fetch("?redact=true")
    for at in range(len(bundle)):
        changed = bytearray(bundle)
        changed[at] ^= 1
        code, said = example.judge(bytes(changed))
        assert code in (1, 3), (at, code, said)
        if at % STEP == 0:
            # A byte that is no bundle's to one may be a bundle's that does not fit to the other.
            told = svc(bytes(changed))
            assert told in (1, 3), (at, told, code, said)

