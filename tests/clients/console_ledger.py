"""A real browser at the console's ledger: records are found and followed, each is proven in the browser, a forged proof is told at
the step that it breaks, and what is downloaded is what others take for whole.
"""

import hashlib
import json
import pathlib
import re
import subprocess
import urllib.parse

import approving
import browser
import tabs
import desk
import person

EVIL = "<img src=x onerror=alert(1)> \u202e" + "W" * 40
# A browser in which no key of Ed25519 can be made.
NO_ED25519 = "const old = crypto.subtle.generateKey; crypto.subtle.generateKey = function (how, ...rest) { return how === 'Ed25519' ? Promise.reject(new Error('unknown')) : old.call(this, how, ...rest); }"

# Where clocks change: a day without a midnight, an hour that is left out, one that comes twice, and a plain one.
LOCAL = [
    ("2026-09-06T00:00", "America/Santiago", "2026-09-06T04:00:00.000Z"),
    ("2026-04-04T23:30", "America/Santiago", "2026-04-05T02:30:00.000Z"),
    ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:30:00.000Z"),
    ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00.000Z"),
    ("2026-07-01T12:00", "Asia/Kolkata", "2026-07-01T06:30:00.000Z"),
]
# Instants around the turn of a year, each as it is told at another one: the year is left out where it runs in that zone.
YEARS = [
    ("2026-12-31T23:30:00Z", "2026-12-31T23:40:00Z", "Europe/Berlin", "1 Jan, 00:30"),
    ("2026-12-31T22:30:00Z", "2026-12-31T23:40:00Z", "Europe/Berlin", "31 Dec 2026, 23:30"),
    ("2027-01-01T02:00:00Z", "2027-01-01T03:00:00Z", "America/New_York", "31 Dec, 21:00"),
    ("2027-01-01T06:00:00Z", "2027-01-01T03:00:00Z", "America/New_York", "1 Jan 2027, 01:00"),
]
READ_YEARS = """async (all) => {
  const { instant } = await import(new URL("text.js", document.querySelector("script[type=module]").src));
  return all.map(([at, now, zone]) => instant(at, zone, Date.parse(now)));
}"""
READ_LOCAL = """async (all) => {
  const { fromLocal } = await import(new URL("text.js", document.querySelector("script[type=module]").src));
  return all.map(([local, zone]) => fromLocal(local, zone));
}"""


def verdict(page, *steps):
    """Waits until the proof was checked with this outcome, and the steps that have it."""
    section = page.get_by_role("region", name="Its proof")
    for name, word in steps:
        section.get_by_role("listitem").filter(has_text=name).get_by_text(word, exact=True).wait_for()
    return section


def ledger(chromium, dev, cookie):
    """Records appear by themselves, are found by what they name, and each is proven in this browser, its texts too."""
    with tabs.console(chromium, dev, cookie, "/ledger") as page:
        page.get_by_role("link", name="Session started").first.wait_for()
        decision = approving.ask(dev, 31_000, summary=EVIL)
        page.get_by_role("link", name="Action left to a person").wait_for()
        page.get_by_label("Names this id").fill(decision["approval"]["id"])
        page.keyboard.press("Enter")
        page.get_by_role("rowheader").nth(1).wait_for(state="detached")
        page.get_by_label("Kind").select_option("integration")
        page.get_by_text("No such record.").wait_for()
        page.get_by_role("status").get_by_text("None shown", exact=True).wait_for()
        assert page.evaluate(READ_YEARS, YEARS) == [it[3] for it in YEARS]
        assert page.evaluate(READ_LOCAL, LOCAL) == [it[2] for it in LOCAL], "days and hours are as the zone has them"
        page.get_by_role("link", name="Show everything").first.click()
        page.get_by_role("status").get_by_text(re.compile("^[1-9][0-9]* shown")).wait_for()
        tabs.named_apart(page)
        page.get_by_label("Agent").select_option(label="First agent")
        page.get_by_role("link", name="Session started").first.wait_for(state="detached")
        page.get_by_label("From").fill("2020-01-01")
        page.get_by_label("To").fill("2020-01-02")
        page.get_by_text("No such record.").wait_for()
        typed_day_by_day(page, dev)
        page.goto(tabs.at(dev, "/ledger?kind=action"))
        page.get_by_role("link", name="Action left to a person").wait_for()
        tabs.press(page, "Action left to a person", exact=False)
        section = verdict(page, ("Its text is what was hashed", "Fits"), ("leads to the checkpoint's root", "Fits"), ("The checkpoint is signed", "Fits"))
        section.get_by_text("Proven", exact=True).wait_for()
        assert page.locator(":focus").inner_text().startswith("Action left to a person"), "the focus is where the record begins"
        texts = page.get_by_role("region", name="Texts that it commits to")
        texts.get_by_text("Fits", exact=True).wait_for()
        assert "\u2039U+202E\u203a" in texts.inner_text() and not page.locator("main img").count()
        assert f"EUR\u00a0{310:.2f}" in page.inner_text("main"), page.inner_text("main")
        page.get_by_role("link", name="All about the same").wait_for()
        return page.url.rsplit("/", 1)[1]


def typed_day_by_day(page, dev):
    """A day that is typed acts once it is whole, not at each digit of its year; what is typed in its place takes its place in the
    browser's history too."""
    # What happens meanwhile, such as a record that gets its place, would have the list read once more.
    page.route("**/events", lambda it: it.abort())
    page.goto(tabs.at(dev, "/ledger"))
    page.get_by_role("link", name="Session started").first.wait_for()
    many, asked = page.evaluate("history.length"), []
    page.on("request", lambda it: "/ledger?" in it.url and asked.append(urllib.parse.parse_qs(urllib.parse.urlsplit(it.url).query).get("from")))
    page.get_by_label("From").focus()
    page.keyboard.type("11302020")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ledger?from=2020-11-30")
    page.keyboard.press("ArrowUp")
    # Whoever has paused has typed all of it.
    page.wait_for_url("**/ledger?from=2021-11-30")
    with page.expect_request(lambda it: "/ledger?" in it.url and "from=0020-11-30" in it.url):
        page.keyboard.type("0020")
        page.get_by_label("Kind").focus()
    page.wait_for_url("**/ledger?from=0020-11-30")
    assert page.evaluate("history.length") == many + 1
    assert asked == [["2020-11-30T00:00:00.000Z"], ["2021-11-30T00:00:00.000Z"], ["0020-11-30T00:00:00.000Z"]], asked
    page.go_back()
    page.wait_for_url("**/ledger")
    page.unroute("**/events")


def forgeries(chromium, dev, cookie, record):
    """Whatever is changed of a proof on its way is told, at the step that it breaks."""
    signed = "The checkpoint is signed"

    def text(proof):
        proof["record"]["data"]["amount"] += 1

    def rehashed(proof):
        text(proof)
        rest = {name: it for name, it in proof["record"].items() if name != "hash"}
        canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        own = hashlib.sha256(canonical.encode()).digest()
        proof["record"]["hash"] = own.hex()
        proof["leafHash"] = hashlib.sha256(b"\0" + own).hexdigest()

    def way(proof):
        proof["path"][0] = "00" * 32

    def short(proof):
        proof["path"] = proof["path"][:-1]

    def another(proof):
        proof["record"]["id"] = proof["record"]["id"][:-1] + ("0" if proof["record"]["id"][-1] != "0" else "1")

    def elsewhere(proof):
        proof["checkpoint"] = proof["checkpoint"].replace(dev["workspaceId"], "wsp_01ARZ3NDEKTSV4RRFFQ69G5FAV")

    def signature(proof):
        start, line = proof["checkpoint"].rstrip("\n").rsplit(" ", 1)
        middle = len(line) // 2
        proof["checkpoint"] = f"{start} {line[:middle]}{'A' if line[middle] != 'A' else 'B'}{line[middle + 1:]}\n"

    def empty(proof):
        proof["checkpoint"] = "none"

    for change, step in (
        (text, "Its text is what was hashed"), (rehashed, "leads to the checkpoint's root"), (way, "leads to the checkpoint's root"),
        (short, "leads to the checkpoint's root"), (another, "The record is the one that was asked for"),
        (elsewhere, "The checkpoint is this workspace's"), (signature, signed), (empty, signed),
    ):  # fmt: skip
        with tabs.console(chromium, dev, cookie) as page:
            browser.answer_with(page, "**/proof", change)
            page.goto(tabs.at(dev, f"/ledger/{record}"))
            section = verdict(page, (step, "Does not fit"))
            assert not section.get_by_text("Proven", exact=True).count(), change

    def salted(bundle):
        for it in bundle["disclosures"]:
            it["text"] += "!"

    def other_key(keys):
        for it in keys["keys"]:
            it["x"] = "A" * 43

    with tabs.console(chromium, dev, cookie) as page:
        browser.answer_with(page, "**/evidence?*", salted)
        browser.answer_with(page, "**/jwks.json", other_key)
        page.goto(tabs.at(dev, f"/ledger/{record}"))
        verdict(page, (signed, "Does not fit"), ("Its text is what was hashed", "Fits"))
        page.get_by_text("Not what the record commits to").wait_for()
        page.unroute("**/evidence?*")
        browser.answer_with(page, "**/evidence?*", lambda it: it.pop("disclosures"))
        page.reload()
        page.get_by_text("Erased, or not kept").wait_for()
        page.unroute("**/evidence?*")
        browser.answer_with(page, "**/evidence?*", lambda it: (it.pop("disclosures"), it["range"].update(toSeq=it["range"]["fromSeq"])))
        page.reload()
        page.get_by_text("Could not be found here").wait_for()
        page.get_by_text("The server's answer did not hold this record").wait_for()
        assert not page.get_by_text("Erased, or not kept").count()
    with tabs.console(chromium, dev, cookie) as page:
        page.add_init_script(NO_ED25519)
        page.goto(tabs.at(dev, f"/ledger/{record}"))
        section = verdict(page, (signed, "Not checked"), ("leads to the checkpoint's root", "Fits"))
        section.get_by_text("Partly checked", exact=True).wait_for()


def downloads(chromium, dev, cookie):
    """What is downloaded is what `svc evidence verify` takes for whole, and without texts where that is asked."""
    with tabs.console(chromium, dev, cookie, "/ledger", accept_downloads=True) as page:
        page.get_by_role("button", name="Download evidence").click()
        dialog = tabs.opened(page, "Download evidence")
        dialog.get_by_label("Without names").check()
        with page.expect_download() as began:
            dialog.get_by_role("link", name="Download the bundle").click()
        path = began.value.path()
        verified = subprocess.run([desk.BINARY, "evidence", "verify", path], capture_output=True, text=True, check=False)
        assert verified.returncode == 0, verified
        bundle = json.loads(pathlib.Path(path).read_text())
        assert "disclosures" not in bundle and bundle["range"]["complete"], bundle["range"]
        dialog.get_by_label("First day").fill("2026-01-02")
        dialog.get_by_label("Last day").fill("2026-01-01")
        approving.says(dialog, "alert", "The last day is before the first.")
        assert not dialog.get_by_role("link").count()


def test_the_console_shows_and_proves_the_ledger():
    with browser.browsing() as (dev, chromium):
        cookie = person.sign_in(dev)
        record = ledger(chromium, dev, cookie)
        forgeries(chromium, dev, cookie, record)
        downloads(chromium, dev, cookie)
