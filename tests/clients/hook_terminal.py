"""`svc hook install` and `uninstall` at a terminal: the change is shown, then somebody is asked, and a yes alone writes it.
`python hook_terminal.py` runs it alone."""

import json
import os
import pathlib
import tempfile

import desk
import run
from terminal import at_a_terminal

ASKED = "Write this? [y/N] "
BEFORE = '{\n  "model": "mine"\n}\n'


def test_a_yes_alone_changes_the_settings():
    dev = json.loads(os.environ["SVC_DEV_JSON"])
    with tempfile.TemporaryDirectory() as folder:
        home, project = pathlib.Path(folder) / "home", pathlib.Path(folder) / "project"
        settings, own = home / ".claude/settings.json", home / ".config/svc/hook.toml"
        settings.parent.mkdir(parents=True)
        project.mkdir()
        settings.write_text(BEFORE)
        environment = {**desk.PLAIN, "HOME": str(home), "SVC_URL": dev["baseUrl"], "SVC_AGENT_KEY": dev["agentKey"]}

        def answer(typed, *arguments):
            left = [typed]

            def type_once(shown):
                return left.pop() if left and shown.endswith(ASKED) else None

            return at_a_terminal([desk.BINARY, "hook", *arguments], environment, project, type_once)

        # Whoever says nothing, something else, ends the input or stops the program, has not said yes.
        for no in (b"\n", b"n\n", b"no\n", b"yess\n", b"y y\n", b"\x04", b"\x03"):
            shown, ended = answer(no, "install")
            assert ASKED in shown and '+   "hooks": {' in shown and "PreToolUse" in shown, shown
            assert ended != 0 and settings.read_text() == BEFORE and not own.exists(), (no, ended, shown)
            assert no == b"\x03" or f"{settings} was not changed" in shown, shown
        for yes in (b"y\n", b"yes\n", b" Y \n"):
            shown, ended = answer(yes, "install")
            assert ended == 0 and "tested once; the gate at http://127.0.0.1:" in shown, (yes, ended, shown)
            written = settings.read_text()
            assert '"onFailure": "block"' in written and '"model": "mine"' in written, written
            added = [line[2:] for line in shown.splitlines() if line.startswith("+ ")]
            made = written.splitlines() + own.read_text().splitlines()
            assert all(line in made for line in added), "what was shown is what was written"
            shown, ended = answer(b"", "install")
            assert ended == 0 and ASKED not in shown and "stays as it is" in shown, shown
            shown, ended = answer(b"\n", "uninstall", "--client", "claude-code")
            assert ended != 0 and settings.read_text() == written, shown
            shown, ended = answer(yes, "uninstall", "--client", "claude-code")
            assert ended == 0 and settings.read_text() == BEFORE, shown


if __name__ == "__main__":
    with run.serving("--json") as line:
        os.environ["SVC_DEV_JSON"] = line
        test_a_yes_alone_changes_the_settings()
        print("a yes alone changes the settings")
