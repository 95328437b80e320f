"""Something outside for the console's check of integrations: a room where messages are posted to, and an MCP server with tools."""

import contextlib
import hashlib
import hmac
import http.server
import json
import threading
import time


class Room(http.server.BaseHTTPRequestHandler):
    """Where messages are posted to, and an MCP server with tools."""

    status, got, tools = 200, [], []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path != "/mcp":
            Room.got.append((dict(self.headers), body))
            return self.answer(Room.status, b"")
        asked = json.loads(body)
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "room", "version": "1"}}
        if asked.get("method") == "tools/list":
            result = {"tools": Room.tools}
        if "id" not in asked or asked["method"] not in ("initialize", "tools/list"):
            error = {"jsonrpc": "2.0", "id": asked.get("id"), "error": {"code": -32601, "message": "unknown"}}
            return self.answer(202, b"") if "id" not in asked else self.answer(200, json.dumps(error).encode())
        return self.answer(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode())

    def do_GET(self):
        self.answer(405, b"")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def outside():
    """Something outside that answers; its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Room)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def tool(name, description):
    return {"name": name, "description": description, "inputSchema": {"type": "object"}}


def signed(secret, body):
    """The header by which such a body is known to be the other side's."""
    at = str(int(time.time()))
    return {"svc-signature": f"t={at},v1={hmac.new(secret.encode(), at.encode() + b'.' + body, hashlib.sha256).hexdigest()}"}
