"""What a server built with the feature `otel` sends to a collector: one span a model call, in the caller's trace, with names and
numbers and no text of anybody. `tests/run otel` builds that server and runs this.
"""

import http.server
import json
import pathlib
import sys
import threading
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import run  # noqa: E402

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PROMPT = "planted-prompt-9d1"
NAMES = [
    b"gen_ai.operation.name", b"gen_ai.provider.name", b"gen_ai.request.model", b"gen_ai.usage.input_tokens",
    b"gen_ai.usage.output_tokens", b"svc.cost.micro_usd", b"svc.call.id", b"chat demo-large", b"service.name",
]


class Collector(http.server.BaseHTTPRequestHandler):
    got = []

    def do_POST(self):
        self.got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def call(dev, traceparent):
    body = {"model": "demo/demo-large", "max_tokens": 20, "messages": [{"role": "user", "content": PROMPT}]}
    headers = {"authorization": f"Bearer {dev['inferenceKey']}", "content-type": "application/json"}
    headers |= {"traceparent": traceparent} if traceparent else {}
    request = urllib.request.Request(f"{dev['baseUrl']}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers["traceparent"].split("-")[1]


def main():
    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    # It is asked for what waits once it stops, so nobody waits for a batch to fill.
    with run.serving("--json", settings={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}"}) as line:
        dev = json.loads(line)
        assert call(dev, f"00-{TRACE}-{CALLER}-01") == TRACE
        own = call(dev, None)
        assert call(dev, f"00-{TRACE[::-1]}-{CALLER}-00") == TRACE[::-1]
    assert Collector.got and all(path == "/v1/traces" for path, _ in Collector.got), [path for path, _ in Collector.got]
    spans = b"".join(body for _, body in Collector.got)
    for name in NAMES:
        assert name in spans, f"{name} was not sent"
    assert bytes.fromhex(TRACE) in spans and bytes.fromhex(CALLER) in spans, "a caller's trace is continued"
    assert bytes.fromhex(own) in spans, "a trace that begins here is recorded"
    assert bytes.fromhex(TRACE[::-1]) not in spans, "a trace that its caller does not record is not"
    assert spans.count(b"gen_ai.operation.name") == 2
    for text in (PROMPT, dev["inferenceKey"], dev["agentKey"]):
        assert text.encode() not in spans, f"{text} was sent"
    print("client checks: 1 passed; 0 failed")


if __name__ == "__main__":
    main()
