"""Codex with `svc hook` in front of its tools. `python codex.py` runs it alone."""

import json

import desk

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

    def ask(self, number):
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "exec_command"}
        return self.events({**call, "arguments": json.dumps({"cmd": desk.COMMAND})})

    def end(self):
        content = [{"type": "output_text", "text": "done"}]
        return self.events({"type": "message", "id": "msg_1", "role": "assistant", "content": content})


def test_codex_is_held_by_the_gate():
    def desk_of(address):
        return {".codex/config.toml": SETTINGS.replace("ADDRESS", address)}, {}

    # It runs a hook once its person has trusted it, in its own terminal; this person vouches for it here.
    vouching = ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"]
    desk.check_client("codex", Model, desk_of, [desk.program("codex"), "exec", *vouching, "use a tool"])


if __name__ == "__main__":
    test_codex_is_held_by_the_gate()
    print("Codex is held by the gate")
