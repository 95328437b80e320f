"""Gemini CLI with `svc hook` in front of its tools, and as a client of the MCP server. `python gemini.py` runs it alone."""

import json

import desk
import run

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}


class Model(desk.Model):
    """As the API for contents streams."""

    def heard(self, said):
        parts = [part for content in said["contents"] for part in content["parts"]]
        return [json.dumps(it["functionResponse"]["response"]) for it in parts if "functionResponse" in it]

    def event(self, part):
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        return f"data: {json.dumps({'candidates': [candidate], 'usageMetadata': usage})}\r\n\r\n"

    def ask(self, _):
        if self.server.tool:
            return self.event({"functionCall": {"name": f"mcp_svc_{self.server.tool}", "args": {}}})
        arguments = {"command": desk.COMMAND, "description": "Leave a trace"}
        return self.event({"functionCall": {"name": "run_shell_command", "args": arguments}})

    def end(self):
        return self.event({"text": "done"})


WISH = ["--yolo", "--model", "gemini-2.5-flash", "--prompt", "use a tool"]


def desk_of(address):
    trusting = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": address}
    return {".gemini/settings.json": json.dumps(SETTINGS)}, trusting


def command(*arguments):
    return [run.node(20), desk.program("gemini"), *arguments]


def test_gemini_is_held_by_the_gate():
    desk.check_client("gemini", Model, desk_of, command(*WISH))


def connect(dev, at):
    """Adds the server with the agent's key: its way through OAuth begins in a conversation alone."""
    key = f"authorization: Bearer {dev['agentKey']}"
    added = at.run(*command("mcp", "add", "--scope", "user", "--transport", "http", "-H", key, "svc", dev["baseUrl"] + "/mcp"))
    assert added.returncode == 0, (added.stdout, added.stderr)


def test_gemini_uses_a_tool_of_the_gate():
    desk.check_over_mcp(Model, desk_of, connect, command(*WISH))


if __name__ == "__main__":
    test_gemini_is_held_by_the_gate()
    test_gemini_uses_a_tool_of_the_gate()
    print("Gemini CLI is held by the gate, and uses it")
