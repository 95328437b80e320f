"""A real coding client with `svc hook` in front of its tools: what the gate allows runs and is settled, what it denies is
blocked with the reason, and with the gate gone everything is blocked.

Its model is the stand-in of `svc mock-upstream`, which calls the one tool there is. The client lies where the packages for
Node are installed (SVC_NODE_HOME); SVC_CODING_CLIENT names another. `python coding_client.py` runs it alone.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import urllib.request

import run

BINARY = os.path.abspath(os.environ.get("SVC_BIN") or run.HERE.parent.parent / "target" / "debug" / "svc")
CLIENT_SECONDS = 120
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("SVC_", "CLAUDE", "ANTHROPIC_"))}


def client():
    """The program of the coding client."""
    named = os.environ.get("SVC_CODING_CLIENT")
    path = pathlib.Path(named or pathlib.Path(os.environ.get("SVC_NODE_HOME", "")) / "node_modules/.bin/claude")
    assert path.exists(), f"{path} is not there: tests/run clients installs it"
    return path


@contextlib.contextmanager
def model():
    """The address of a stand-in of the messages API."""
    command = [BINARY, "mock-upstream", "--listen", "127.0.0.1:0", "--json"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=PLAIN) as mock:
        try:
            yield json.loads(mock.stdout.readline())["messagesUrl"]
        finally:
            mock.kill()


class Desk:
    """A person's machine: a home with the hook in the client's settings, and a project."""

    def __init__(self, folder, dev, model_url):
        self.home, self.project = folder / "home", folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        gate = {"SVC_URL": dev["baseUrl"], "SVC_AGENT_KEY": dev["agentKey"], "SVC_HOOK_TIMEOUT_MS": "30000"}
        to_model = {"ANTHROPIC_BASE_URL": model_url, "ANTHROPIC_API_KEY": "none", "no_proxy": "*"}
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        self.environment = {**PLAIN, "HOME": str(self.home), **gate, **to_model, **quiet}
        install = [BINARY, "hook", "install", "--client", "claude-code", "--yes", "--json"]
        done = subprocess.run(install, env=self.environment, cwd=self.project, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["installed"][0]["tested"] == "allow", done

    def tool_result(self):
        """What the client's own tool gave, with the client told to run it without a question."""
        command = [client(), "-p", "use a tool", "--model", "demo-large", "--tools", "Bash", "--allowedTools", "Bash"]
        command += ["--max-turns", "3", "--output-format", "stream-json", "--verbose"]
        done = subprocess.run(
            command, env=self.environment, cwd=self.project, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=CLIENT_SECONDS, check=False,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        contents = [line["message"]["content"] for line in lines if line.get("type") == "user"]
        results = [block for content in contents for block in content if block.get("type") == "tool_result"]
        assert len(results) == 1, (done.stdout, done.stderr)
        return str(results[0]["content"])


def ask(dev, path, key, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(dev["baseUrl"] + path, data, headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        return json.load(answer)


def test_a_coding_client_is_held_by_the_gate():
    with run.serving("--json") as text, model() as model_url, tempfile.TemporaryDirectory() as folder:
        dev = json.loads(text)
        desk = Desk(pathlib.Path(folder), dev, model_url)
        allowed = desk.tool_result()
        assert "svc" not in allowed, allowed
        left = list((desk.home / ".local/state/svc/hook").iterdir())
        assert left == [], "what was allowed is settled"
        freeze = f"/v1/admin/agents/{dev['agentId']}/freeze"
        ask(dev, freeze, dev["serviceToken"], {"reason": "a test"})
        denied = desk.tool_result()
        assert "svc denied this call: the agent is stopped" in denied, denied
        desk.environment["SVC_URL"] = f"http://127.0.0.1:{run.free_port()}"
        gone = desk.tool_result()
        assert "svc refuses this call" in gone and "cannot be reached" in gone, gone
        del desk.environment["SVC_AGENT_KEY"]
        keyless = desk.tool_result()
        assert "svc refuses this call: `SVC_AGENT_KEY` is neither" in keyless, keyless


if __name__ == "__main__":
    test_a_coding_client_is_held_by_the_gate()
    print("the coding client is held by the gate")
