"""`svc hook install` and `uninstall` at a terminal: the change is shown, then somebody is asked, and a yes alone writes it.
`python hook_terminal.py` runs it alone."""

import json
import os
import pathlib
import pty
import select
import tempfile
import time

import desk
import run

ASKED = "Write this? [y/N] "
BEFORE = '{\n  "model": "mine"\n}\n'
SECONDS = 60


def at_a_terminal(environment, project, typed, *arguments):
    """What a command shows on a terminal of its own where this is typed once it asks, and how it ended: below zero by a
    signal."""
    child, terminal = pty.fork()
    if child == 0:
        try:
            os.chdir(project)
            os.execve(desk.BINARY, [desk.BINARY, "hook", *arguments], environment)
        finally:
            os._exit(127)
    shown, end, waits = "", time.monotonic() + SECONDS, True
    while select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
        try:
            shown += os.read(terminal, 65_536).decode()
        except OSError:  # nobody is at the other end any more
            break
        if waits and shown.endswith(ASKED):
            os.write(terminal, typed)
            waits = False
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return shown.replace("\r\n", "\n"), os.waitstatus_to_exitcode(status)


def test_a_yes_alone_changes_the_settings():
    dev = json.loads(os.environ["SVC_DEV_JSON"])
    with tempfile.TemporaryDirectory() as folder:
        home, project = pathlib.Path(folder) / "home", pathlib.Path(folder) / "project"
        settings = home / ".claude/settings.json"
        settings.parent.mkdir(parents=True)
        project.mkdir()
        settings.write_text(BEFORE)
        environment = {**desk.PLAIN, "HOME": str(home), "SVC_URL": dev["baseUrl"], "SVC_AGENT_KEY": dev["agentKey"]}

        def answer(typed, *arguments):
            return at_a_terminal(environment, project, typed, *arguments)

        # Whoever says nothing, something else, ends the input or stops the program, has not said yes.
        for no in (b"\n", b"n\n", b"no\n", b"yess\n", b"y y\n", b"\x04", b"\x03"):
            shown, ended = answer(no, "install")
            assert ASKED in shown and '+   "hooks": {' in shown and "PreToolUse" in shown, shown
            assert ended != 0 and settings.read_text() == BEFORE, (no, ended, shown)
            assert no == b"\x03" or f"{settings} was not changed" in shown, shown
        for yes in (b"y\n", b"yes\n", b" Y \n"):
            shown, ended = answer(yes, "install")
            assert ended == 0 and "tested once; the gate answered `allow`" in shown, (yes, ended, shown)
            written = settings.read_text()
            assert '"onFailure": "block"' in written and '"model": "mine"' in written, written
            added = [line[2:] for line in shown.splitlines() if line.startswith("+ ")]
            assert all(line in written.splitlines() for line in added), "what was shown is what was written"
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
