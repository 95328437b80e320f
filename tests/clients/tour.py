"""The README's tour, taken: each of its commands is run in one shell against a server of its own, and each answer has to
hold what the README quotes.

The tour ends with its agent stopped, so no other check may share its server. `python tour.py` runs it alone.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile

import run

README = pathlib.Path(__file__).resolve().parent.parent.parent / "README.md"
TOUR = "## A tour in five minutes\n"
# The address and the cut that the README writes.
BASE = "http://127.0.0.1:8080"
CUT = "…"
SEPARATOR = "=== the next step ==="
# What differs from run to run: ids and instants. Within a run, one id of the README is one id of the server.
VOLATILE = re.compile(r"\b[a-z]{2,5}_[0-9A-HJKMNP-TV-Z]{26}\b|\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def steps():
    """The commands of the tour with the answer that each is to have."""
    text = README.read_text()
    section = text.split(TOUR, 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"^```(sh|json)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert [kind for kind, _ in blocks] == ["sh", "json"] * (len(blocks) // 2), "each command has its answer"
    return [(blocks[at][1], json.loads(blocks[at + 1][1])) for at in range(0, len(blocks), 2)]


def shown(welcome, word):
    """The line that begins with `word` in what the server printed, to be pasted."""
    lines = [line.strip() for line in welcome.splitlines() if line.strip().startswith(word + " ")]
    assert len(lines) == 1, (word, welcome)
    return lines[0]


def answers(commands):
    """What each command prints, all of them in one shell."""
    script = f"\necho; echo '{SEPARATOR}'\n".join(commands)
    environment = {**os.environ, "no_proxy": "*"}
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            ["sh", "-euc", script], cwd=place, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return [json.loads(part) for part in done.stdout.split(SEPARATOR)]


class Comparison:
    """Holds answers against what is quoted of them."""

    def __init__(self, base):
        self.base = base
        self.ids = {}

    def text(self, place, quoted, given):
        quoted = quoted.replace(BASE, self.base)
        if quoted.endswith(CUT):
            quoted, given = quoted[:-1], given[:len(quoted) - 1]
        assert VOLATILE.sub("*", quoted) == VOLATILE.sub("*", given), f"{place}: {quoted!r} is quoted, {given!r} came"
        for one, other in zip(VOLATILE.findall(quoted), VOLATILE.findall(given), strict=True):
            if "_" in one:
                assert one[:4] == other[:4], f"{place}: {one} is quoted, {other} came"
                known = self.ids.setdefault(one, other)
                assert known == other, f"{place}: {one} was {known} before and is {other} now"

    def value(self, place, quoted, given):
        if isinstance(quoted, str) and isinstance(given, str):
            self.text(place, quoted, given)
        elif isinstance(quoted, dict) and isinstance(given, dict):
            for name, part in quoted.items():
                assert name in given, f"{place}.{name} is quoted and did not come: {given}"
                self.value(f"{place}.{name}", part, given[name])
        elif isinstance(quoted, list) and isinstance(given, list):
            assert len(quoted) == len(given), f"{place}: {quoted} is quoted, {given} came"
            for at, (part, other) in enumerate(zip(quoted, given, strict=True)):
                self.value(f"{place}[{at}]", part, other)
        else:
            assert (type(quoted), quoted) == (type(given), given), f"{place}: {quoted!r} is quoted, {given!r} came"


def test_the_tour_of_the_readme_is_what_happens():
    tour = steps()
    assert len(tour) == 11, "the tour has its eleven steps"
    with run.serving(last="Ctrl-C") as welcome:
        variables = shown(welcome, "export")
        base = re.search(r"SVC_URL=(\S+)", variables).group(1)
        link = re.search(r"#token=(sil_\S+)", welcome).group(1)
        commands = [command.replace("sil_…", link) for command, _ in tour]
        # Whoever takes the tour has pasted the first request that the server prints.
        first, *given = answers([f"{variables}\n{shown(welcome, 'curl')}", *commands])
    assert first["decision"] == "allow", first
    comparison = Comparison(base)
    for number, ((_, quoted), answer) in enumerate(zip(tour, given, strict=True), 1):
        comparison.value(f"step {number}", quoted, answer)
    ids = comparison.ids.values()
    assert len(set(ids)) == len(ids), "ids that the README tells apart are apart"


if __name__ == "__main__":
    test_the_tour_of_the_readme_is_what_happens()
    print("ok the tour")
