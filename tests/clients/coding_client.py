"""Claude Code with `svc hook` in front of its tools. SVC_CODING_CLIENT names another program of it. `python coding_client.py`
runs it alone."""

import json
import os

import desk


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

    def ask(self, number):
        arguments = json.dumps({"command": desk.COMMAND, "description": "Leave a trace"})
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {}}
        return self.events(block, {"type": "input_json_delta", "partial_json": arguments}, "tool_use")

    def end(self):
        return self.events({"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}, "end_turn")


def test_a_coding_client_is_held_by_the_gate():
    def desk_of(address):
        to_model = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "none"}
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        return {}, to_model | quiet

    command = [os.environ.get("SVC_CODING_CLIENT") or desk.program("claude"), "-p", "use a tool", "--model", "stand-in"]
    command += ["--tools", "Bash", "--allowedTools", "Bash", "--max-turns", "5"]
    desk.check_client("claude-code", Model, desk_of, command)


if __name__ == "__main__":
    test_a_coding_client_is_held_by_the_gate()
    print("Claude Code is held by the gate")
