"""What a server built with the feature `otel` sends to a collector: one span a model call, in the caller's trace, with names and
numbers and no text of anybody; and what it heeds of what the environment says. `tests/run otel` builds that server and runs this.
"""

import contextlib
import http.server
import json
import pathlib
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import run  # noqa: E402

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PROMPT = "planted-prompt-9d1"
NAMES = [
    b"gen_ai.operation.name", b"gen_ai.provider.name", b"gen_ai.request.model", b"gen_ai.usage.input_tokens",
    b"gen_ai.usage.output_tokens", b"svc.cost.micro_usd", b"svc.call.id", b"chat demo-large",
]


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def collecting(status=200, certified=None):
    """A collector that answers so, on https where it has a certificate and its key in this file."""
    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    collector.got, collector.status, scheme = [], status, "http"
    if certified:
        scheme, context = "https", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certified)
        collector.socket = context.wrap_socket(collector.socket, server_side=True)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    try:
        yield collector, {"OTEL_EXPORTER_OTLP_ENDPOINT": f"{scheme}://127.0.0.1:{collector.server_port}"}
    finally:
        collector.shutdown()


def call(dev, traceparent, tracestate=None):
    """The trace that the answer to a model call tells: its id, the place in it, and the flags."""
    body = {"model": "demo/demo-large", "max_tokens": 20, "messages": [{"role": "user", "content": PROMPT}]}
    headers = {"authorization": f"Bearer {dev['inferenceKey']}", "content-type": "application/json"}
    headers |= {"traceparent": traceparent} if traceparent else {}
    headers |= {"tracestate": tracestate} if tracestate else {}
    request = urllib.request.Request(f"{dev['baseUrl']}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return tuple(answer.headers["traceparent"].split("-")[1:])


def fields(data):
    """The fields of a message of protocol buffers: their numbers, and what is in them where it has a length."""
    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value, shift = value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    at, found = 0, []
    while at < len(data):
        kind, number_of = (lambda it: (it & 7, it >> 3))(number())
        length = {0: 0, 1: 8, 5: 4}.get(kind)
        if kind == 0:
            number()
        if length is None:
            length = number()
        found, at = found + [(number_of, data[at:at + length])], at + length
    return found


def inner(data, *path):
    """What is at such places in a message."""
    for step in path[:1]:
        return [found for number, value in fields(data) if number == step for found in inner(value, *path[1:])]
    return [data]


def spans(collector):
    """Each span by its id: the id of its trace, that of the span above it, and its state."""
    found = [span for _, body in collector.got for span in inner(body, 1, 2, 2)]
    first = lambda span, field: next(iter(inner(span, field)), b"")  # noqa: E731
    return {first(it, 2).hex(): (first(it, 1).hex(), first(it, 4).hex(), first(it, 3).decode()) for it in found}


def sent(settings, *asked):
    """What these calls of a server that is set so are told; it is asked for the spans that wait once it stops, so nobody waits for a
    batch to fill. And what it logged."""
    logged = []
    keep = lambda _data, log: logged.append(log)  # noqa: E731
    with run.serving("--json", settings=settings, left=keep) as line:
        dev = json.loads(line)
        told = [call(dev, *it) for it in asked]
    return dev, told, logged[0]


def test_spans_stand_where_answers_say():
    with collecting() as (collector, settings):
        recorded = (f"00-{TRACE}-{CALLER}-01", "a=1, b@c=2")
        dev, told, log = sent(settings, recorded, (None,), (f"00-{TRACE[::-1]}-{CALLER}-00",))
        (trace, place, flags), (own, root, begun), (other, _, unrecorded) = told
        assert collector.got and all(path == "/v1/traces" for path, _ in collector.got), collector.got
        assert (trace, flags) == (TRACE, "01") and (other, unrecorded) == (TRACE[::-1], "00") and begun == "01", told
        # Below the caller's, or at the root of a trace that begins here; one that its caller does not record is none.
        assert spans(collector) == {place: (TRACE, CALLER, "a=1,b@c=2"), root: (own, "", "")}, (told, spans(collector))
        bodies = b"".join(body for _, body in collector.got)
        for name in NAMES:
            assert name in bodies, f"{name} was not sent"
        assert b"service.name\x12\x05\n\x03svc" in bodies
        for text in (PROMPT, dev["inferenceKey"], dev["agentKey"]):
            assert text.encode() not in bodies, f"{text} was sent"
        assert "span" not in log, log


def test_the_sampler_is_heeded():
    with collecting() as (collector, settings):
        recorded = (f"00-{TRACE}-{CALLER}-01",)
        _, told, _ = sent(settings | {"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, (None,), recorded)
        assert [it[2] for it in told] == ["00", "01"], told
        assert [it[0] for it in spans(collector).values()] == [TRACE], spans(collector)


def test_what_is_switched_off_is_off():
    for off in ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}):
        with collecting() as (collector, settings):
            _, [(_, _, flags)], _ = sent(settings | off, (None,))
            assert (flags, collector.got) == ("00", []), off


def test_a_name_of_ones_own_stands():
    with collecting() as (collector, settings):
        sent(settings | {"OTEL_RESOURCE_ATTRIBUTES": "service.name=gate-7"}, (None,))
        assert b"service.name\x12\x08\n\x06gate-7" in collector.got[0][1], collector.got


def test_what_is_lost_is_told():
    with collecting(503) as (_, settings):
        _, _, log = sent(settings, (None,), (None,))
        assert "spans cannot be sent to the collector" in log and '"spans":2' in log, log
    # Only so many wait.
    with collecting() as (collector, settings):
        _, _, log = sent(settings | {"OTEL_BSP_MAX_QUEUE_SIZE": "1", "OTEL_BSP_SCHEDULE_DELAY": "60000"}, (None,))
        assert len(spans(collector)) == 1 and "spans" not in log, log


def test_a_certificate_is_believed_where_it_is_named():
    with tempfile.TemporaryDirectory() as made:
        authority, certified = f"{made}/authority.pem", f"{made}/collector.pem"
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
        make += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
        subprocess.run([*make, "-keyout", f"{made}/key.pem", "-out", authority], check=True, capture_output=True)
        pathlib.Path(certified).write_text(pathlib.Path(f"{made}/key.pem").read_text() + pathlib.Path(authority).read_text())
        for named in ({"OTEL_EXPORTER_OTLP_CERTIFICATE": authority}, {"SVC_OUTBOUND_CA_FILE": authority}):
            with collecting(certified=certified) as (collector, settings):
                _, _, log = sent(settings | named, (None,))
                assert len(spans(collector)) == 1, (named, log)
        with collecting(certified=certified) as (collector, settings):
            _, _, log = sent(settings, (None,))
            assert not collector.got and "spans cannot be sent" in log and '"spans":1' in log, log


def main():
    checks = [(name, check) for name, check in sorted(globals().items()) if name.startswith("test_")]
    passed = sum(run.is_passed(f"spans.py::{name}", check, 1) for name, check in checks)
    print(f"client checks: {passed} passed; {len(checks) - passed} failed")
    sys.exit(passed != len(checks))


if __name__ == "__main__":
    main()
