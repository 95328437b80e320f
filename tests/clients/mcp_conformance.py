"""The public conformance suite of MCP against the server: what a server of tools alone is asked in both eras, and what an
authorization server is asked.

The suite has no key, so it goes through a small proxy that adds one. What is known to fail stands in KNOWN with its reason. A check
of the suite that fails and is not known, one that is known and passes, and a scenario that looked at nothing are failures.
`python mcp_conformance.py` runs it alone.
"""

import concurrent.futures
import http.client
import http.server
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import urllib.parse

import person
import run

SCENARIO_SECONDS = 90
# What the suite has for a server that has tools and neither prompts nor resources, and asks its clients nothing.
SERVER = {
    "2025-11-25": ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"],
    "2026-07-28": [
        "server-stateless", "tools-list", "dns-rebinding-protection", "caching", "http-header-validation",
        "server-sse-multiple-streams", "input-required-result-unsupported-methods",
    ],
}
# And what it has for others: how their names begin.
OTHERS = {
    "tools-call-": "calls tools of the suite's example server",
    "completion-": "there is nothing to complete",
    "prompts-": "there are no prompts",
    "resources-": "there are no resources",
    "sep-2164-resource-": "there are no resources",
    "logging-": "logs are not for clients",
    "elicitation-": "clients are asked nothing",
    "input-required-result-": "clients are asked nothing",
    "server-sse-": "there are no sessions whose streams it could look at",
}
AUTHORIZATION = ["authorization-server-metadata-endpoint", "authorization-code-grant"]
NO_TOOL = "the suite looks at it through a tool of its example server"
NO_LIST = "the server says that it has tools alone, and knows no such method"
KNOWN = {
    ("2026-07-28", "server-stateless"): {
        "sep-2575-server-rejects-undeclared-capability": NO_TOOL,
        "sep-2575-missing-capability-http-400": NO_TOOL,
        "sep-2575-http-server-no-independent-requests-on-stream": NO_TOOL,
        "sep-2575-server-no-log-without-loglevel": NO_TOOL,
    },
    ("2026-07-28", "caching"): {
        "sep-2549-prompts-list-caching-hints": NO_LIST,
        "sep-2549-resources-list-caching-hints": NO_LIST,
        "sep-2549-resources-templates-list-caching-hints": NO_LIST,
    },
}


class WithKey(http.server.BaseHTTPRequestHandler):
    """Passes a request on with the agent's key. Its own name in Host and Origin becomes the server's; any other stays for the
    server to judge."""

    protocol_version = "HTTP/1.1"

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        own, there = self.server.own, self.server.dev["baseUrl"].split("//")[1]
        names = {own: there, f"http://{own}": f"http://{there}"}
        server = http.client.HTTPConnection(there, timeout=30)
        server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() in ("host", "origin"):
                value = names.get(value, value)
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                server.putheader(name, value)
        server.putheader("authorization", f"Bearer {self.server.dev['agentKey']}")
        server.putheader("content-length", str(len(body)))
        server.endheaders(body)
        answer = server.getresponse()
        text = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        server.close()

    do_GET = do_POST = do_DELETE = pass_on

    def log_message(self, *_):
        pass


class Proxy(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, dev):
        super().__init__(("127.0.0.1", 0), WithKey)
        self.dev, self.own = dev, f"127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """A client that goes away is no matter; what else goes wrong is seen by the suite as no answer."""


def program():
    return pathlib.Path(os.environ["SVC_NODE_HOME"]) / "node_modules/@modelcontextprotocol/conformance/dist/index.js"


def suite(folder, *arguments):
    """The suite at work, which leaves what it found in the folder."""
    command = [run.node(22), program(), *arguments, "--output-dir", folder]
    return subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def judge(revision, scenario, folder, said):
    """Compares what the suite found with what is known."""
    found = list(pathlib.Path(folder).glob(f"*{scenario}-2*/checks.json"))
    assert len(found) == 1, (found, said)
    checks = [it for it in json.loads(found[0].read_text()) if it["status"] not in ("INFO", "SKIPPED")]
    failed = {it["id"]: it.get("errorMessage") for it in checks if it["status"] != "SUCCESS"}
    known = KNOWN.get((revision, scenario), {})
    assert len(checks) > len(failed), f"it looked at nothing else: {checks}"
    unknown = {name: why for name, why in failed.items() if name not in known}
    assert not unknown, unknown
    assert not set(known) - set(failed), f"known to fail and does not: {set(known) - set(failed)}"


def every_scenario_has_its_place(revision):
    """Each scenario that the revision requires is run, or known to be for others."""
    command = [run.node(22), program(), "list", "--requirements", revision]
    said = subprocess.run(command, capture_output=True, text=True, timeout=SCENARIO_SECONDS, check=True).stdout
    required = re.findall(r"^  - (\S+)$", said.split("Server scenarios")[1].split("\n\n")[0], re.MULTILINE)
    assert len(required) > 20, said
    left = [it for it in required if it not in SERVER[revision] and not it.startswith(tuple(OTHERS))]
    assert not left, left


def of_server(revision, scenario):
    proxy = Proxy(json.loads(os.environ["SVC_DEV_JSON"]))
    try:
        with tempfile.TemporaryDirectory() as folder:
            wish = ["--url", f"http://{proxy.own}/mcp", "--scenario", scenario, "--spec-version", revision]
            said, _ = suite(folder, "server", *wish).communicate(timeout=SCENARIO_SECONDS)
            judge(revision, scenario, folder, said)
    finally:
        proxy.shutdown()
        proxy.server_close()


def of_authorization(revision):
    """Both scenarios in one run, as the second one begins with what the first one found. A person lets the client in at the
    address that the suite prints."""
    dev = json.loads(os.environ["SVC_DEV_JSON"])
    port = run.free_port()
    redirect = f"http://127.0.0.1:{port}/callback"
    wish = {"client_name": "Suite", "redirect_uris": [redirect], "token_endpoint_auth_method": "none"}
    client = person.post(dev["baseUrl"] + "/oauth/register", wish)["client_id"]
    with tempfile.TemporaryDirectory() as folder:
        wish = ["--url", dev["baseUrl"], "--client-id", client, "--resource", dev["baseUrl"] + "/mcp"]
        running = suite(folder, "authorization", *wish, "--port", str(port), "--spec-version", revision)
        stop = threading.Timer(SCENARIO_SECONDS, running.kill)
        stop.start()
        said = url = ""
        for line in running.stdout:
            said += line
            if line.startswith(dev["baseUrl"] + "/oauth/authorize?"):
                url = line.strip()
            # It says this once it listens, after the address.
            if "Callback server started" in line:
                person.browse(person.allow(dev, url, redirect))
        running.wait()
        stop.cancel()
        for scenario in AUTHORIZATION:
            judge(revision, scenario, folder, said)


def of_era(revision):
    """All scenarios of an era, two at a time."""
    failed = {}

    def look(scenario):
        try:
            of_server(revision, scenario)
        except Exception as why:  # a scenario that ends in any other way has failed
            failed[scenario] = repr(why)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(look, SERVER[revision]))
    assert not failed, failed


def test_the_era_with_handshake():
    of_era("2025-11-25")


def test_the_stateless_era():
    of_era("2026-07-28")


def test_the_authorization_server():
    for revision in SERVER:
        of_authorization(revision)


def test_every_scenario_is_run_or_has_its_reason():
    for revision in SERVER:
        every_scenario_has_its_place(revision)


if __name__ == "__main__":
    with run.serving("--json") as line:
        os.environ["SVC_DEV_JSON"] = line
        for name in [name for name in globals() if name.startswith("test_")]:
            globals()[name]()
            print("ok", name)
