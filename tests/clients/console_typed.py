"""A real browser at what somebody typed into the console and did not send: Escape, the way back, a reload and the end of the session
lose none of it unasked, and secrets are never kept.
"""

import json

import approving
import browser
import desk
import person
import tabs
from console_focus import BACK, LEAVES, focus_is
from tabs import at, heading, opened, press

NOT_SENT = "What you have typed here was not sent."
KEPT = "is kept, but for secrets"
SECRET = "sk-not-to-be-kept"
TYPIST = "typing@example.com"


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
        assert not page.evaluate(LEAVES), "to leave the page is asked about"
        dialog.get_by_role("button", name="Cancel").click()
        dialog.wait_for(state="detached")
        assert page.evaluate(LEAVES)
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
    cookie = approving.member(dev, TYPIST, "admin")
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
        browser.fill(page, KEPT, TYPIST, browser.PASSWORD)
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


def signed_in(dev):
    """Another session of who types."""
    word = json.dumps({"email": TYPIST, "password": browser.PASSWORD}).encode()
    return person.browse(dev["baseUrl"] + "/api/sign-in", word, headers=approving.WRITES)[1]["set-cookie"].split(";")[0]


def ends_and_begins(page, dev, path):
    """The session ends while a dialog is open, and the same person comes back to the page by another."""
    cookies = page.context.cookies()
    assert person.browse(dev["baseUrl"] + "/api/sign-out", b"{}", "; ".join(f"{it['name']}={it['value']}" for it in cookies), approving.WRITES)[0] < 300
    heading(page, "You are no longer signed in")
    name, value = signed_in(dev).split("=", 1)
    page.context.add_cookies([{"name": name, "value": value, "url": dev["baseUrl"]}])
    page.goto(at(dev, path))


def to_its_own(chromium, dev):
    """What was typed for one thing of a page is put into no other's form, by whatever name its dialog goes; it waits for its own, which
    says where somebody has changed that meanwhile."""
    mandates = [{"name": name, "actions": ["payment"], "limits": {"currency": "EUR", "perAction": 10_000}} for name in ("Alpha", "Beta")]
    agent = desk.api(dev, "agents", {"name": "Two mandates", "principalEmail": "owner@localhost", "mandates": mandates})["id"]
    alpha = next(it for it in desk.api(dev, f"agents/{agent}/mandates")["data"] if it["name"] == "Alpha")["id"]
    ladder = [{"at": 0, "step": "observe"}]
    for scope in ({"kind": "workspace"}, {"kind": "agent", "id": agent}):
        desk.api(dev, "budgets", {"scope": scope, "amount": 50_000_000, "period": "month", "ladder": ladder})
    things = (
        (f"/agents/{agent}", "Change Alpha", "Change Beta", "Change a mandate", "At most an action", "Alpha"),
        ("/budgets", "Raise the budget over The whole workspace", "Raise the budget over Agent Two mandates", "Raise this budget?", "Why", "the whole workspace"),
    )
    for path, one, other, title, field, called in things:
        with tabs.console(chromium, dev, signed_in(dev), path) as page:
            page.get_by_role("button", name=one).click()
            dialog = opened(page, title)
            was = dialog.get_by_label(field).input_value()
            dialog.get_by_label(field).fill("777")
            ends_and_begins(page, dev, path)
            page.get_by_text(f"What you had typed in {title} ({called}) before your session ended is kept").wait_for()
            page.get_by_role("button", name=other).click()
            assert opened(page, title).get_by_label(field).input_value() == was
            assert not dialog.get_by_text("stands here again").count()
            dialog.get_by_role("button", name="Cancel").click()
            dialog.wait_for(state="detached")
            if called == "Alpha":
                desk.api(dev, f"mandates/{alpha}", {"limits": {"askAbove": 2_000}}, "PATCH")
                page.reload()
            page.get_by_role("button", name=one).click()
            opened(page, title).get_by_text("stands here again").wait_for()
            assert dialog.get_by_label(field).input_value() == "777"
            assert dialog.get_by_text("Somebody has changed this since").count() == (called == "Alpha")
            dialog.get_by_role("button", name="Cancel").click()
            dialog.wait_for(state="detached")
            page.get_by_text(KEPT).wait_for(state="detached")


def gone_with_sign_out(chromium, dev):
    """Whoever signs out leaves nothing of it in the tab."""
    for path, asked, button in (("/agents", "Agents", "Sign out"), ("/account", "Your account", "Sign out here")):
        with tabs.console(chromium, dev, signed_in(dev), "/agents") as page:
            page.get_by_role("button", name="New agent").click()
            opened(page, "New agent").get_by_label("Name", exact=True).fill("left-behind")
            ends_and_begins(page, dev, path)
            heading(page, asked)
            assert "left-behind" in page.evaluate("JSON.stringify(sessionStorage)")
            if path == "/agents":
                press(page, "Menu")
            press(page, button)
            page.wait_for_url("**/sign-in")
            left = page.evaluate("JSON.stringify(sessionStorage)")
            assert "left-behind" not in left, f"{path}: {left}"


def confirmed_anew(chromium, dev):
    """What confirms something is given for what stands there: it goes once that changes, and with the session."""
    narrow = {"name": "Narrow", "actions": ["payment"], "limits": {"currency": "EUR", "perAction": 10_000}, "merchants": {"allow": ["a.example"]}}
    agent = desk.api(dev, "agents", {"name": "To be widened", "principalEmail": "owner@localhost", "mandates": [narrow]})["id"]
    with tabs.console(chromium, dev, signed_in(dev), f"/agents/{agent}") as page:
        page.get_by_role("button", name="Grant a mandate").click()
        dialog = opened(page, "Grant a mandate")
        box = dialog.get_by_label("Any merchant is meant")
        dialog.get_by_label("Name").fill("Wide")
        dialog.get_by_label("Actions", exact=True).fill("payment")
        dialog.get_by_label("At most an action").fill("10.00")
        grant = dialog.get_by_role("button", name="Grant it")
        grant.click()
        box.check()
        dialog.get_by_label("At most an action").fill("9000.00")
        box.wait_for(state="detached")
        grant.click()
        box.wait_for()
        assert not box.is_checked()
        box.check()
        ends_and_begins(page, dev, f"/agents/{agent}")
        page.get_by_role("button", name="Grant a mandate").click()
        opened(page, "Grant a mandate").get_by_text("stands here again").wait_for()
        assert dialog.get_by_label("At most an action").input_value() == "9000.00"
        grant.click()
        box.wait_for()
        assert not box.is_checked()


def held_by_choice(chromium, dev):
    """What was typed for one choice stays while another is looked at, is asked about like the rest, and is not sent for the other."""
    with tabs.console(chromium, dev, signed_in(dev), "/applications") as page:
        page.get_by_role("button", name="Ask for something").click()
        dialog = opened(page, "Ask for something")
        kind = dialog.get_by_label("What", exact=True)
        dialog.get_by_label("Name", exact=True).fill("Wished for")
        dialog.get_by_label("Mandate", exact=True).select_option("own")
        dialog.get_by_label("Actions", exact=True).fill("payment")
        dialog.get_by_label("Mandate", exact=True).select_option("")
        kind.select_option(label="Another role")
        assert not dialog.get_by_label("Name", exact=True).filter(visible=True).count()
        page.keyboard.press("Escape")
        approving.says(dialog, "alert", NOT_SENT)
        dialog.get_by_role("button", name="Go on with it").click()
        kind.select_option(label="A new agent")
        assert dialog.get_by_label("Name", exact=True).first.input_value() == "Wished for"
        dialog.get_by_label("Mandate", exact=True).select_option("own")
        assert dialog.get_by_label("Actions", exact=True).input_value() == "payment"
        kind.select_option(label="Another role")
        dialog.get_by_label("Role", exact=True).select_option("owner")
        dialog.get_by_label("Why").filter(visible=True).fill("To help")
        with page.expect_request(lambda it: it.method == "POST") as sent:
            dialog.get_by_role("button", name="Ask for it").filter(visible=True).click()
        assert sent.value.post_data_json["kind"] == "role" and "name" not in sent.value.post_data_json["change"], sent.value.post_data
        dialog.wait_for(state="detached")
        page.goto(at(dev, f"/agents/{dev['agentId']}"))
        page.get_by_role("button", name="Grant a mandate").click()
        dialog = opened(page, "Grant a mandate")
        dialog.get_by_label("Name", exact=True).fill("Of its own")
        dialog.get_by_label("At most so many actions").fill("7")
        dialog.get_by_label("From").select_option("coding-agent")
        assert not dialog.get_by_label("Name", exact=True).is_visible()
        dialog.get_by_label("From").select_option("")
        assert dialog.get_by_label("Name", exact=True).input_value() == "Of its own"
        assert dialog.get_by_label("At most so many actions").input_value() == "7"
        dialog.get_by_label("From").select_option("coding-agent")
        with page.expect_request(lambda it: it.method == "POST") as sent:
            dialog.get_by_role("button", name="Grant it").click()
        assert sent.value.post_data_json == {"template": "coding-agent"}, sent.value.post_data
        dialog.wait_for(state="detached")


def test_the_console_loses_nothing_that_was_typed():
    with browser.browsing() as (dev, chromium):
        cookie = person.sign_in(dev)
        person.COOKIES[dev["baseUrl"]] = cookie
        asked_before(chromium, dev, cookie)
        kept_from_others(chromium, dev)
        comes_back(chromium, dev)
        to_its_own(chromium, dev)
        gone_with_sign_out(chromium, dev)
        confirmed_anew(chromium, dev)
        held_by_choice(chromium, dev)
