"""What the checks of coding clients share: a person's machine with `svc hook` in a client's settings, and a model that asks for
one command to be run and hears what came of it."""

import contextlib
import http.server
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import uuid

import person
import run

BINARY = os.path.abspath(os.environ.get("SVC_BIN") or run.HERE.parent.parent / "target" / "debug" / "svc")
CLIENT_SECONDS = 120
OTHERS = ("SVC_", "CLAUDE", "ANTHROPIC_", "CODEX_", "OPENAI_", "GEMINI_", "GOOGLE_")
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
# What the model asks for, and what is there once it has run.
COMMAND, TRACE = "echo it has run | tee trace.txt", "trace.txt"
# Where the hook stands.
SETTINGS = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
# How long the model thinks, in seconds. Clients write a session down a moment after it happened, and no model is faster.
THINKS = 0.3


def program(name):
    """A client among the packages for Node."""
    path = pathlib.Path(os.environ.get("SVC_NODE_HOME", "")) / "node_modules/.bin" / name
    assert path.exists(), f"{path} is not there: tests/run clients installs it"
    return path


class Desk:
    """A person's machine: a home with a client's settings, and a project."""

    def __init__(self, folder, dev, settings=(), environment=()):
        self.home, self.project = pathlib.Path(folder) / "home", pathlib.Path(folder) / "project"
        self.project.mkdir()
        for name, text in dict(settings).items():
            path = self.home / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
        gate = {"SVC_URL": dev["baseUrl"], "SVC_AGENT_KEY": dev["agentKey"], "SVC_HOOK_TIMEOUT_MS": "30000"}
        self.environment = {**PLAIN, "HOME": str(self.home), "no_proxy": "*", **gate, **dict(environment)}
        self.home.mkdir(exist_ok=True)

    def install(self, client):
        """Puts the hook into the client's settings."""
        install = [BINARY, "hook", "install", "--client", client, "--yes", "--json"]
        done = subprocess.run(install, env=self.environment, cwd=self.project, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["installed"][0]["tested"] is True, done

    def lose(self, client, signal):
        """Puts a program in the place of the hook that ends by a signal, or none at all."""
        settings, program = self.home / SETTINGS[client], self.home / "lost"
        settings.write_text(settings.read_text().replace(BINARY, str(program)))
        program.unlink(missing_ok=True)
        if signal:
            program.write_text(f"#!/bin/sh\nkill -{signal} $$\n")
            program.chmod(0o755)

    def run(self, *command):
        """What a client printed that was told to run everything without a question."""
        return subprocess.run(
            command, env=self.environment, cwd=self.project, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=CLIENT_SECONDS, check=False,
        )  # fmt: skip

    def has_run(self):
        """Whether the command of the model ran, since this was asked last."""
        trace = self.project / TRACE
        ran = trace.exists()
        trace.unlink(missing_ok=True)
        return ran

    def unsettled(self):
        """What was allowed, and nobody has told yet what came of it."""
        asked = [json.loads(it.read_text()) for it in (self.home / ".local/state/svc/hook").iterdir()]
        return [it for it in asked if it["allowed"] and not it.get("over")]


def freeze(dev):
    """Stops the agent, as a machine does."""
    body = json.dumps({"reason": "a test"}).encode()
    headers = {"authorization": f"Bearer {dev['serviceToken']}", "content-type": "application/json"}
    status, _, text = person.browse(f"{dev['baseUrl']}/v1/admin/agents/{dev['agentId']}/freeze", body, headers=headers)
    assert status == 200, (status, text)


def api(dev, path, body=None, method=None):
    """What the person is answered below their workspace."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "x-svc-csrf": "1", "origin": dev["baseUrl"]}
    url = f"{dev['baseUrl']}/api/w/{dev['workspaceId']}/{path}"
    status, _, text = person.browse(url, data, person.sign_in(dev), headers, method)
    assert 200 <= status < 300, (path, status, text)
    return json.loads(text) if text else None


def asker(dev):
    """The key of an agent that has to ask a person before it runs a command."""
    mandate = {"name": "Reading", "actions": ["tool.call"], "tools": {"allow": ["Read"]}}
    return api(dev, "agents", {"name": "Asker", "principalEmail": "owner@localhost", "mandates": [mandate]})["key"]


def accounts(dev):
    """What each action of the model says of where its context came from, the oldest first."""
    actions = [api(dev, "actions/" + it["id"]) for it in api(dev, "actions")["data"]]
    return [it["provenance"]["declared"] for it in reversed(actions) if "it has run" in it["summary"]]


class Model(http.server.BaseHTTPRequestHandler):
    """A model that asks for the command, once or more often, and is done when it has heard of all of them. It asks for a tool of the
    MCP server `svc` where the server at work names one (`tool`). Who derives from it knows a wire: what a request tells of the
    tool (`heard`), and how to say `ask`, with a word that is new, and `end`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        time.sleep(THINKS)
        told = self.heard(said)
        if told and not self.server.told and self.server.meanwhile:
            self.server.meanwhile(told[0])
        self.server.told[:] = told or self.server.told
        answer = (self.ask(uuid.uuid4().hex) if len(told) < self.server.wishes else self.end()).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(model):
    """The model at work: its address, and the server."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), model) as server:
        server.told, server.wishes, server.tool, server.meanwhile = [], 1, None, None
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", server
        server.shutdown()


def check_over_mcp(model, desk_of, connect, command):
    """A client that `connect` connects to the gate as an MCP server has its model use a tool of it."""
    home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with run.serving("--json") as line, serving(model) as (address, asking), home as folder:
        dev, asking.tool = json.loads(line), "spend_summary"
        desk = Desk(folder, dev, *desk_of(address))
        connect(dev, desk)
        done = desk.run(*command)
        assert len(asking.told) == 1 and "costMicros" in asking.told[0], (asking.told, done.stdout, done.stderr)


def connections(dev):
    """The names of the clients that a person let in, and that are still connected."""
    return [it["clientName"] for it in api(dev, "connections")["data"] if it["state"] == "active"]


def check_client(client, model, desk_of, command):
    """The whole story of a client: what the gate allows runs and is settled, with the client's own account of the session; what
    a person has to be asked about does not run before their yes at the link; what it denies does not run and the model hears
    why; with the gate gone or another one in the environment, without a key, or where the hook is ended or is not there, nothing runs.
    `desk_of` gives settings and environment for a model's address."""
    # A client may go on writing to its home for a moment after its end.
    home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with run.serving("--json") as line, serving(model) as (address, asking), home as folder:
        dev = json.loads(line)
        desk = Desk(folder, dev, *desk_of(address))
        desk.install(client)

        def step(wishes=1, meanwhile=None):
            asking.told.clear()
            asking.wishes, asking.meanwhile = wishes, meanwhile
            done = desk.run(*command)
            assert len(asking.told) == wishes, (asking.told, done.stdout, done.stderr)
            return desk.has_run(), asking.told[-1]

        approved = []

        def approve(heard):
            """What a person does who is shown the link, before the model makes the same call again."""
            link = re.search(re.escape(dev["baseUrl"]) + r"/[\w/-]*(apv_\w+)", heard)
            approved.append(link is not None and not desk.has_run())
            api(dev, f"approvals/{link[1]}/approve", {})

        ran, heard = step(wishes=2)
        assert ran and "it has run" in heard and "svc" not in heard, heard
        assert desk.unsettled() == [], "what was allowed is settled"
        assert accounts(dev) == [["user"], ["user", "tool_result"]], accounts(dev)
        key, desk.environment["SVC_AGENT_KEY"] = dev["agentKey"], asker(dev)
        ran, heard = step(wishes=2, meanwhile=approve)
        assert approved == [True] and ran and "it has run" in heard and desk.unsettled() == [], (approved, heard)
        desk.environment["SVC_AGENT_KEY"] = key
        freeze(dev)
        ran, heard = step()
        assert not ran and "svc denied this call: the agent is stopped" in heard, heard
        gone = desk.environment["SVC_URL"] = f"http://127.0.0.1:{run.free_port()}"
        ran, heard = step()
        assert not ran and "svc refuses this call: `SVC_URL` in the environment is not what" in heard, heard
        (desk.home / ".config/svc/hook.toml").write_text(f'url = "{gone}"\n')
        ran, heard = step()
        assert not ran and "svc refuses this call" in heard and "cannot be reached" in heard, heard
        del desk.environment["SVC_AGENT_KEY"]
        ran, heard = step()
        assert not ran and "svc refuses this call: `SVC_AGENT_KEY` is neither" in heard, heard
        for signal in ("INT", None):
            desk.lose(client, signal)
            ran, heard = step()
            assert not ran and "svc has not allowed this call, so it does not run" in heard, (signal, heard)
