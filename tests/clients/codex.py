"""Codex with `svc hook` in front of its tools, and as a client of the MCP server. `python codex.py` runs it alone."""

import json
import subprocess
import threading

import desk
import person

SETTINGS = """
model = "stand-in"
model_provider = "stand-in"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stand-in]
name = "stand-in"
base_url = "ADDRESS"
wire_api = "responses"
"""


class Model(desk.Model):
    """As the responses API streams."""

    def heard(self, said):
        return [str(it["output"]) for it in said["input"] if it["type"] == "function_call_output"]

    def events(self, item):
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        events = [
            {"type": "response.created", "response": {"id": "resp_1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}},
        ]
        return "".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events)

    def ask(self, new):
        call = {"type": "function_call", "id": f"fc_{new}", "call_id": f"call_{new}", "name": "exec_command"}
        if self.server.tool:
            return self.events({**call, "namespace": "mcp__svc", "name": self.server.tool, "arguments": "{}"})
        return self.events({**call, "arguments": json.dumps({"cmd": desk.COMMAND})})

    def end(self):
        content = [{"type": "output_text", "text": "done"}]
        return self.events({"type": "message", "id": "msg_1", "role": "assistant", "content": content})


def desk_of(address):
    return {".codex/config.toml": SETTINGS.replace("ADDRESS", address)}, {}


def test_codex_is_held_by_the_gate():
    # It runs a hook once its person has trusted it, in its own terminal; this person vouches for it here.
    vouching = ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"]
    desk.check_client("codex", Model, desk_of, [desk.program("codex"), "exec", *vouching, "use a tool"])


def connect(dev, at):
    """Adds the server, which it finds to want OAuth: it registers, opens a browser and waits for the person to come back."""
    # Where it may choose it shows its own metadata document, which a server without a way to the outside cannot read.
    command = [desk.program("codex"), "mcp", "add", "svc", "--url", dev["baseUrl"] + "/mcp"]
    command += ["--oauth-client-registration", "dcr"]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, env=at.environment, cwd=at.project, **streams) as adding:
        stop = threading.Timer(desk.CLIENT_SECONDS, adding.kill)
        stop.start()
        said = ""
        for line in adding.stdout:
            said += line
            if line.startswith(dev["baseUrl"] + "/oauth/authorize?"):
                redirect = person.members(line.strip())["redirect_uri"]
                status, _, page = person.browse(person.allow(dev, line.strip(), redirect))
                assert status == 200, (status, page)
        stop.cancel()
    assert adding.returncode == 0 and "Successfully logged in" in said, said
    assert desk.connections(dev) == ["Codex"], desk.connections(dev)


def test_codex_logs_in_and_uses_a_tool_of_the_gate():
    trusting = ["--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"]
    desk.check_over_mcp(Model, desk_of, connect, [desk.program("codex"), "exec", *trusting, "use a tool"])


if __name__ == "__main__":
    test_codex_is_held_by_the_gate()
    test_codex_logs_in_and_uses_a_tool_of_the_gate()
    print("Codex is held by the gate, and uses it")
