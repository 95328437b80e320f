"""Gemini CLI with `svc hook` in front of its tools. `python gemini.py` runs it alone."""

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
        arguments = {"command": desk.COMMAND, "description": "Leave a trace"}
        return self.event({"functionCall": {"name": "run_shell_command", "args": arguments}})

    def end(self):
        return self.event({"text": "done"})


def test_gemini_is_held_by_the_gate():
    def desk_of(address):
        trusting = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": address}
        return {".gemini/settings.json": json.dumps(SETTINGS)}, trusting

    wish = ["--yolo", "--model", "gemini-2.5-flash", "--prompt", "use a tool"]
    desk.check_client("gemini", Model, desk_of, [run.node(20), desk.program("gemini"), *wish])


if __name__ == "__main__":
    test_gemini_is_held_by_the_gate()
    print("Gemini CLI is held by the gate")
