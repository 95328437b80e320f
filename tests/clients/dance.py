"""The way through OAuth with curl, as docs/mcp.md has it, run as it stands there."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

import run

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "mcp.md"


def test_the_way_with_curl_is_what_happens():
    text = DOCUMENT.read_text().split("\n## With curl\n", 1)[1]
    steps = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(steps) == 4, steps
    with run.serving("--json") as line, tempfile.TemporaryDirectory() as place:
        dev = json.loads(line)
        given = {"SVC_URL": dev["baseUrl"], "AGENT": dev["agentId"], "LINK": dev["signInLink"].split("token=")[1]}
        script = "\n".join([*steps[:3], "echo", steps[3]])
        environment = {**os.environ, **given, "no_proxy": "*"}
        done = subprocess.run(
            ["sh", "-euc", script], cwd=place, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
    summary, revoked = done.stdout.strip().split("\n")
    assert json.loads(summary)["result"]["structuredContent"]["model"]["calls"] == 0, summary
    assert json.loads(revoked) == {}, revoked
