"""A real browser at what somebody typed into the console and did not send: Escape, the way back and the end of the session lose none
of it unasked, and secrets are never kept.
"""

import json

import approving
import browser
import desk
import person
import tabs
from console_focus import BACK, focus_is
from tabs import at, heading, opened, press

NOT_SENT = "What you have typed here was not sent."
KEPT = "is kept, but for secrets"
SECRET = "sk-not-to-be-kept"


def asked_before(chromium, dev, cookie):
    """A dialog that something was typed into asks before Escape or the way back closes it; one that nothing was typed into, or whose
    text is as it was, closes at once, and Cancel does."""
    with tabs.console(chromium, dev, cookie, "/agents") as page:
        page.get_by_role("link", name="First agent").click()
        heading(page, "First agent")
        press(page, "Freeze")
        dialog = opened(page, "Freeze this agent?")
        dialog.get_by_label("Why").fill("It reads too much")
        dialog.get_by_label("Why").fill("")
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        page.keyboard.press("Enter")
        opened(page, "Freeze this agent?").get_by_label("Why").fill("It reads too much")
        for _ in range(3):
            page.keyboard.press("Escape")
            approving.says(dialog, "alert", NOT_SENT)
        focus_is(page, dialog.get_by_role("button", name="Go on with it"))
        page.keyboard.press("Enter")
        focus_is(page, dialog.get_by_label("Why"))
        assert dialog.get_by_label("Why").input_value() == "It reads too much"
        here = page.url
        page.evaluate(BACK)
        approving.says(dialog, "alert", NOT_SENT)
        assert page.url == here, page.url
        tabs.fits_at_twice(page, "asked")
        page.reload()
        press(page, "Freeze")
        dialog.get_by_label("Why").fill("It reads too much")
        page.evaluate(BACK)
        press(page, "Throw it away")
        heading(page, "Agents")
        page.go_forward()
        heading(page, "First agent")
        press(page, "Freeze")
        assert dialog.get_by_label("Why").input_value() == ""
        dialog.get_by_label("Why").fill("It reads too much")
        dialog.get_by_role("button", name="Cancel").click()
        dialog.wait_for(state="detached")


def kept_from_others(chromium, dev):
    """What was typed when the session ended is kept, but for secrets; whoever else signs in in this tab finds none of it."""
    cookie = tabs.second(dev, "admin")
    with tabs.console(chromium, dev, cookie, "/models/providers") as page:
        page.get_by_role("button", name="New provider").first.click()
        dialog = opened(page, "New provider")
        dialog.get_by_label("Name", exact=True).fill("kept-provider")
        dialog.get_by_label("Speaks").select_option(index=1)
        dialog.get_by_label("Key", exact=True).fill(SECRET)
        dialog.get_by_text("Times and headers").click()
        dialog.get_by_label("Further headers").fill(f"authorization: {SECRET}")
        dialog.get_by_label("Calls may go to it").uncheck()
        assert person.browse(dev["baseUrl"] + "/api/sign-out", b"{}", cookie, approving.WRITES)[0] < 300
        heading(page, "You are no longer signed in")
        page.get_by_text("What you had typed and not sent is kept in this tab, but for secrets.").wait_for()
        kept = page.evaluate("JSON.stringify(sessionStorage)")
        assert "kept-provider" in kept and SECRET not in kept, kept
        name, value = person.COOKIES[dev["baseUrl"]].split("=", 1)
        page.context.add_cookies([{"name": name, "value": value, "url": dev["baseUrl"]}])
        page.goto(at(dev, "/models/providers"))
        page.get_by_role("button", name="New provider").first.wait_for()
        assert not page.get_by_text(KEPT).count() and "kept-provider" not in page.evaluate("JSON.stringify(sessionStorage)")


def comes_back(chromium, dev):
    """The same person finds it in the dialog that they open again, and sends it."""
    made = desk.api(dev, "members", {"email": "typing@example.com", "role": "admin"})
    token = json.dumps({"token": made["signInLink"].split("token=")[1]}).encode()
    sign_in = dev["baseUrl"] + "/api/sign-in/link"
    cookie = person.browse(sign_in, token, headers=approving.WRITES)[1]["set-cookie"].split(";")[0]
    word = json.dumps({"password": browser.PASSWORD}).encode()
    assert person.browse(dev["baseUrl"] + "/api/me/password", word, cookie, approving.WRITES)[0] < 300
    with tabs.console(chromium, dev, cookie, "/agents") as page:
        page.get_by_role("button", name="New agent").click()
        dialog = opened(page, "New agent")
        dialog.get_by_label("Name", exact=True).fill("Typed twice")
        dialog.get_by_label("coding-agent").check()
        assert person.browse(dev["baseUrl"] + "/api/sign-out", b"{}", cookie, approving.WRITES)[0] < 300
        heading(page, "You are no longer signed in")
        page.get_by_role("link", name="Sign in").click()
        page.get_by_label("Password", exact=True).wait_for()
        browser.fill(page, KEPT, "typing@example.com", browser.PASSWORD)
        heading(page, "Agents")
        page.get_by_text("What you had typed in New agent before your session ended is kept").wait_for()
        tabs.fits_at_twice(page, "kept")
        page.get_by_role("button", name="New agent").click()
        dialog.get_by_text("stands here again").wait_for()
        assert dialog.get_by_label("Name", exact=True).input_value() == "Typed twice" and dialog.get_by_label("coding-agent").is_checked()
        dialog.get_by_role("button", name="Make the agent").click()
        press(page, "I have kept it")
        heading(page, "Typed twice")
        page.goto(at(dev, "/agents"))
        page.get_by_role("link", name="Typed twice").wait_for()
        assert not page.get_by_text(KEPT).count()


def test_the_console_loses_nothing_that_was_typed():
    with browser.browsing() as (dev, chromium):
        cookie = person.sign_in(dev)
        person.COOKIES[dev["baseUrl"]] = cookie
        asked_before(chromium, dev, cookie)
        kept_from_others(chromium, dev)
        comes_back(chromium, dev)
