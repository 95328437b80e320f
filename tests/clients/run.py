"""Starts the server on a fresh data directory and runs every check that a foreign client does against it.

Each `*.py` beside this file may hold functions whose names begin with `test_`; each `*.mjs` is a program for Node that prints
`ok NAME` or `FAILED NAME` for each of its checks, and is run where its packages are installed (SVC_NODE_HOME), beside what they
share. What `svc dev --json` printed is in the environment as SVC_DEV_JSON, a person's session as SVC_DEV_COOKIE. The binary is
SVC_BIN, else `target/debug/svc`. Checks of the console start servers of their own and run beside the others, in a second process:
`run.py console` runs those alone, and any other beginning of a file's name those files.
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import person

HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS = 60
STOP_SECONDS = 40
NODE_SECONDS = 120
BESIDE = "console"
# A browser may be late, or early, on a machine that has other work: whoever looks through its eyes looks twice. Each of these checks
# begins with a server of its own, and none of them looks for a race of the server's.
BROWSED_TRIES = 2


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def printed(server, last):
    """What the server prints once it accepts requests, up to the line with `last`; a server that does not get there in
    time is ended, and then nothing was printed."""
    timer = threading.Timer(START_SECONDS, server.kill)
    timer.start()
    text = ""
    try:
        for line in server.stdout:
            text += line
            if last in line:
                return text
        return ""
    finally:
        timer.cancel()


def run_all(paths):
    passed = failed = 0
    for path in paths:
        spec = importlib.util.spec_from_file_location(f"check_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, check in sorted(vars(module).items()):
            if not name.startswith("test_"):
                continue
            if is_passed(f"{path.name}::{name}", check, BROWSED_TRIES if {"browser", "sync_playwright"} & set(vars(module)) else 1):
                passed += 1
            else:
                failed += 1
    return passed, failed


def is_passed(name, check, tries):
    """Whether a check passes. A try that failed is told whole, also where the next one passes."""
    for left in reversed(range(tries)):
        began = time.monotonic()
        try:
            check()
            print(f"ok      {name} ({time.monotonic() - began:.1f} s)", flush=True)
            return True
        except Exception:  # a check that fails in any way has failed
            print(f"{'AGAIN' if left else 'FAILED':<7} {name}")
            traceback.print_exc(file=sys.stdout)
    return False


def node(least):
    """The program of Node, of this version or newer: the machine's own, else the one among the packages."""
    own = shutil.which("node")
    if own and int(subprocess.check_output([own, "--version"], text=True)[1:].split(".")[0]) >= least:
        return own
    found = sorted(pathlib.Path(os.environ["SVC_NODE_HOME"]).glob("node_modules/node-*/bin/node"))
    assert found, f"Node {least} or newer is needed"
    return found[0]


def run_node(path, home):
    """What a program for Node found. One that counts nothing, or ends badly, has failed."""
    # Packages are looked for beside the program.
    program, began = shutil.copy(path, home), time.monotonic()
    done = subprocess.run([node(20), program], stdout=subprocess.PIPE, text=True, timeout=NODE_SECONDS, check=False)
    passed = failed = 0
    for line in done.stdout.splitlines():
        outcome, _, name = line.partition(" ")
        if outcome in ("ok", "FAILED"):
            passed, failed = passed + (outcome == "ok"), failed + (outcome == "FAILED")
            print(f"{outcome:<7} {path.name}::{name}")
        else:
            print(line)
    if done.returncode != 0 or passed + failed == 0:
        failed += 1
        print(f"FAILED  {path.name} ended with {done.returncode}")
    print(f"{path.name} took {time.monotonic() - began:.1f} s", flush=True)
    return passed, failed


def run_all_node(home):
    shared = pathlib.Path(shutil.copy(HERE / "harness.mjs", home))
    found = [run_node(path, home) for path in sorted(HERE.glob("*.mjs")) if path.name != shared.name]
    return sum(it for it, _ in found), sum(it for _, it in found)


@contextlib.contextmanager
def serving(*flags, last="\n", settings=(), left=None):
    """A server of its own on a fresh data directory: what it prints, up to the line with `last`, and its end when the work
    is done. `settings` are `SVC_` names and values; `left` is called once it has ended, with its data directory and all that
    it logged."""
    binary = os.environ.get("SVC_BIN") or str(HERE.parent.parent / "target" / "debug" / "svc")
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryFile("w+") as log:
        command = [binary, "dev", "--listen", f"127.0.0.1:{free_port()}", "--data", data, *flags]
        # The server takes each SVC_ name for a setting, and refuses those that are none.
        plain = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, env=plain | dict(settings)
        )
        try:
            text = printed(server, last)
            if not text:
                log.seek(0)
                sys.exit(f"{' '.join(command)} printed nothing and ended with {server.wait()}:\n{log.read()}")
            yield text
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        if left:
            log.seek(0)
            left(pathlib.Path(data), log.read())


def checks():
    """Every file of checks."""
    return [path for path in sorted(HERE.glob("*.py")) if path != pathlib.Path(__file__).resolve()]


def ended(passed, failed):
    print(f"client checks: {passed} passed; {failed} failed", flush=True)
    return 0 if failed == 0 and passed > 0 else 1


@contextlib.contextmanager
def running_beside(said, is_asked):
    """The checks that run in a process of their own, where they are asked for; it ends with the work."""
    process = subprocess.Popen([sys.executable, __file__, BESIDE], stdout=said, stderr=subprocess.STDOUT) if is_asked else None
    try:
        yield process
    finally:
        if process and process.poll() is None:
            process.kill()


def main(only=""):
    if only.startswith(BESIDE):
        return ended(*run_all(path for path in checks() if path.stem.startswith(only)))
    with tempfile.TemporaryFile("w+") as said, running_beside(said, not only) as beside:
        with serving("--json") as line:
            os.environ["SVC_DEV_JSON"] = line
            os.environ["SVC_DEV_COOKIE"] = person.sign_in(json.loads(line))
            passed, failed = run_all(it for it in checks() if it.stem.startswith(only) and not it.stem.startswith(BESIDE))
            if not only:
                node_passed, node_failed = run_all_node(os.environ["SVC_NODE_HOME"])
                passed, failed = passed + node_passed, failed + node_failed
        outcome = ended(passed, failed)
        if beside:
            outcome = max(outcome, beside.wait())
            said.seek(0)
            print(said.read(), end="", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
