"""Claude Code with `svc hook` in front of its tools, and as a client of the MCP server. SVC_CODING_CLIENT names another program of
it. `python coding_client.py` runs it alone."""

import json
import os
import re

import desk
import person
import run
from terminal import at_a_terminal


class Model(desk.Model):
    """As the messages API streams."""

    def heard(self, said):
        contents = [it["content"] for it in said["messages"] if isinstance(it["content"], list)]
        blocks = [block for content in contents for block in content if block["type"] == "tool_result"]
        return [str(block["content"]) for block in blocks]

    def events(self, block, delta, stop):
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stand-in", "content": []}
        usage = {"input_tokens": 1, "output_tokens": 1}
        events = [
            {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
        return "".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events)

    def ask(self, new):
        tool = self.server.tool
        arguments = json.dumps({} if tool else {"command": desk.COMMAND, "description": "Leave a trace"})
        block = {"type": "tool_use", "id": f"toolu_{new}", "name": f"mcp__svc__{tool}" if tool else "Bash", "input": {}}
        return self.events(block, {"type": "input_json_delta", "partial_json": arguments}, "tool_use")

    def end(self):
        return self.events({"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}, "end_turn")


def desk_of(address):
    to_model = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "none"}
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    return {}, to_model | quiet


def program():
    return os.environ.get("SVC_CODING_CLIENT") or desk.program("claude")


def wish(tool):
    return [program(), "-p", "use a tool", "--model", "stand-in", "--tools", "Bash", "--allowedTools", tool, "--max-turns", "5"]


def test_a_coding_client_is_held_by_the_gate():
    desk.check_client("claude-code", Model, desk_of, wish("Bash"))


def connect(dev, at):
    """Adds the server and logs in at a terminal, where the person pastes the address that the browser was sent back to."""
    port = str(run.free_port())
    # Where it may choose it shows its own metadata document, which a server without a way to the outside cannot read.
    metadata = {"client_name": "Claude Code", "redirect_uris": ["http://localhost/callback"]}
    registered = person.post(dev["baseUrl"] + "/oauth/register", {**metadata, "token_endpoint_auth_method": "none"})
    known = ["--client-id", registered["client_id"], "--callback-port", port]
    added = at.run(program(), "mcp", "add", "--scope", "user", "--transport", "http", *known, "svc", dev["baseUrl"] + "/mcp")
    assert added.returncode == 0, (added.stdout, added.stderr)
    pasted = []

    def paste_once(shown):
        asked = re.search(re.escape(dev["baseUrl"]) + r"/oauth/authorize\?\S+", shown)
        if pasted or not asked or "aste" not in shown[asked.end() :]:
            return None
        pasted.append(person.allow(dev, asked[0], person.members(asked[0])["redirect_uri"]))
        return pasted[0].encode() + b"\r"

    login = [program(), "mcp", "login", "svc", "--no-browser"]
    shown, ended = at_a_terminal(login, {**at.environment, "TERM": "xterm"}, at.project, paste_once)
    assert ended == 0 and desk.connections(dev) == ["Claude Code"], (ended, shown)


def test_a_coding_client_logs_in_and_uses_a_tool_of_the_gate():
    desk.check_over_mcp(Model, desk_of, connect, wish("mcp__svc__spend_summary"))


if __name__ == "__main__":
    test_a_coding_client_is_held_by_the_gate()
    test_a_coding_client_logs_in_and_uses_a_tool_of_the_gate()
    print("Claude Code is held by the gate, and uses it")
