#!/usr/bin/env python3
"""A receiver of svc's callbacks: checks each call's signature and prints what was decided.

    SVC_CALLBACK_SECRET=whsec_... python3 callback_receiver.py [PORT]

Python's standard library is all it needs. `check` is what a receiver of your own has to do; put a server that speaks TLS in
front of it. Register its address with `POST /v1/actions/{id}/callback`, and read the action when it was called: the call
carries no receipt.
"""

import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

TOLERANCE_S = 300  # how far the signature's time may be from now
BODY_MAX = 64 * 1024


def check(secret: str, header: str, body: bytes, now: float) -> bool:
    """Whether `header` (`t=<seconds>,v1=<hex>[,v1=<hex>]`) signs `body` with the whole text of `secret`, not long ago.

    While the secret rotates there are two `v1`; one that fits is enough.
    """
    pairs = [part.partition("=")[::2] for part in header.split(",")]
    times = [value for name, value in pairs if name == "t"]
    if len(times) != 1 or not times[0].isdecimal() or abs(now - int(times[0])) > TOLERANCE_S:
        return False
    signed = times[0].encode() + b"." + body  # the body as it came, before anything reads it
    wanted = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return any(hmac.compare_digest(wanted.encode(), value.encode()) for name, value in pairs if name == "v1")


class Receiver(BaseHTTPRequestHandler):
    secret = ""
    seen: set[str] = set()  # a receiver of your own remembers these where a restart does not forget them

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(min(length, BODY_MAX))
        if not check(self.secret, self.headers.get("svc-signature", ""), body, time.time()):
            return self.answer(401, "refused: the signature does not fit")
        event = self.headers.get("svc-event-id", "")
        if event in self.seen:  # calls come at least once
            return self.answer(204, f"again: {event}")
        self.seen.add(event)
        told = json.loads(body)
        self.answer(204, f"{told.get('actionId', told['id'])} is {told.get('status', told['type'])}")

    def answer(self, status: int, line: str) -> None:
        print(line, flush=True)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """What is worth saying was printed."""


def main() -> None:
    Receiver.secret = os.environ.get("SVC_CALLBACK_SECRET", "")
    if not Receiver.secret:
        sys.exit("set SVC_CALLBACK_SECRET to the `callbackSecret` that `svc dev` and `svc init` print")
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8090
    server = HTTPServer(("127.0.0.1", port), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
