"""A real browser at the console by the keyboard, where something goes away: a key that is held down ends nothing, whoever acts is led
on, a secret that is shown once is not lost by the way back, and an agent is removed by the name that its page shows.
"""

import approving
import browser
import desk
import person
import tabs
from playwright.sync_api import TimeoutError as NotInTime
from approving import LEAVES
from tabs import console, heading, opened, press

HELD = 12
# What has the focus once two frames were drawn and what was planned behind them is done.
AFTER = """() => new Promise((done) => {
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => setTimeout(() => done(document.activeElement.tagName)))));
})"""


def focus_is(page, where):
    """Waits until this has the focus."""
    where.and_(page.locator(":focus")).wait_for()


def hold_enter(page):
    """Holds Enter down for as long as it takes to press it by mistake."""
    for _ in range(HELD):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")


def go_to(page, button):
    """Goes to a button as the tabulator does, and presses nothing."""
    button.focus()
    focus_is(page, button)


def held_down(chromium, dev, cookie):
    """Enter that is held down opens a dialog and does no more: none begins at a button that ends something, and a repeated key
    presses none."""
    desk.api(dev, "keys", {"scope": "inference", "label": "Held down"})
    sent = []
    with console(chromium, dev, cookie, "/keys") as page:
        page.on("request", lambda it: it.method in ("DELETE", "POST", "PATCH") and sent.append(it.method))
        go_to(page, page.get_by_role("button", name="Revoke Held down"))
        page.keyboard.press("Enter")
        dialog = opened(page, "Revoke this key?")
        focus_is(page, dialog.get_by_role("heading"))
        page.keyboard.press("Enter")
        press(page, "Cancel")
        dialog.wait_for(state="detached")
        hold_enter(page)
        opened(page, "Revoke this key?")
        hold_enter(page)
        page.keyboard.press("Tab")
        focus_is(page, dialog.get_by_role("button", name="Revoke it"))
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        go_to(page, page.get_by_role("button", name="New key"))
        page.keyboard.down("Enter")
        dialog = opened(page, "New key")
        focus_is(page, dialog.get_by_label("Label"))
        hold_enter(page)
        press(page, "Cancel")
        dialog.wait_for(state="detached")
        assert not sent, sent
        go_to(page, page.get_by_role("button", name="Revoke Held down"))
        page.keyboard.press("Enter")
        opened(page, "Revoke this key?")
        press(page, "Revoke it")
        page.get_by_text("The key is revoked.").wait_for()
        focus_is(page, page.get_by_role("heading", name="Keys", level=1))
        assert sent == ["DELETE"], sent


def led_on(chromium, dev, cookie):
    """Where what was pressed goes away with its act, its part of the page has the focus, and else the page."""
    wish = {"name": "Led on", "principalEmail": "owner@localhost", "mandates": [{"template": "saas-subscriptions"}]}
    agent = desk.api(dev, "agents", wish)["id"]
    with console(chromium, dev, cookie, f"/agents/{agent}") as page:
        heading(page, "Led on")
        row = page.get_by_role("region", name="Keys").get_by_role("button", name="Revoke")
        row.wait_for()
        go_to(page, row)
        page.keyboard.press("Enter")
        opened(page, "Revoke this key?")
        press(page, "Revoke it")
        focus_is(page, page.get_by_role("heading", name="Keys", level=2))
        mandate = page.get_by_role("region", name="Mandates").get_by_role("button", name="Revoke")
        go_to(page, mandate)
        page.keyboard.press("Enter")
        opened(page, "Revoke this mandate?")
        press(page, "Revoke it")
        focus_is(page, page.get_by_role("heading", name="Mandates", level=2))
        for name, title, submit in (("Freeze", "Freeze this agent?", "Freeze it"), ("Start again", "Start this agent again?", "Start it again")):
            go_to(page, page.get_by_role("button", name=name, exact=True))
            page.keyboard.press("Enter")
            opened(page, title)
            page.keyboard.type("To see")
            press(page, submit)
            focus_is(page, page.get_by_role("heading", name="Led on", level=1))
        page.goto(tabs.at(dev, "/activity?status=denied"))
        press(page, "Show everything")
        page.get_by_role("link", name="Show everything").wait_for(state="detached")
        focus_is(page, page.get_by_role("heading", name="Activity", level=1))
        # The same holds of what somebody else does, but whoever had left what goes away is led nowhere.
        page.goto(tabs.at(dev, f"/agents/{agent}"))
        go_to(page, page.get_by_role("button", name="Freeze", exact=True))
        desk.api(dev, f"agents/{agent}/freeze", {"reason": "To see"})
        focus_is(page, page.get_by_role("heading", name="Led on", level=1))
        go_to(page, page.get_by_role("button", name="Start again", exact=True))
        page.evaluate("document.activeElement.blur()")
        desk.api(dev, f"agents/{agent}/restart", {"reason": "To see"})
        page.get_by_role("button", name="Freeze", exact=True).wait_for()
        assert page.evaluate(AFTER) == "BODY"


def led_on_elsewhere(chromium, dev, cookie):
    """What is removed on other pages leaves nobody nowhere."""
    desk.api(dev, "teams", {"name": "Led on"})
    desk.api(dev, "budgets", {"scope": {"kind": "workspace"}, "amount": 1_000_000, "period": "month"})
    desk.api(dev, "task-classes", {"id": "led.on", "name": "Led on"})
    for path, name, title, at in (
        ("/team?tab=teams", "Remove Led on", "Remove this team?", "Teams"),
        ("/budgets", "Remove", "Remove this budget?", "Budgets"),
        ("/models/classes", "Remove Led on", "Remove this class of tasks?", "Classes of tasks"),
    ):
        with console(chromium, dev, cookie, path) as page:
            remove = page.get_by_role("button", name=name).first
            remove.wait_for()
            go_to(page, remove)
            page.keyboard.press("Enter")
            dialog = opened(page, title)
            focus_is(page, dialog.get_by_role("heading"))
            press(page, "Remove it")
            dialog.wait_for(state="detached")
            focus_is(page, page.get_by_role("heading", name=at, level=1))


def waited_for(chromium, dev, cookie):
    """A dialog that first reads what its form needs has the focus all the while, and begins at the first field then."""
    with console(chromium, dev, cookie, "/models") as page:
        new = page.get_by_role("button", name="New model")
        new.wait_for()
        asked = []
        page.route("**/upstreams?*", lambda it: asked.append(it))
        with page.expect_request("**/upstreams?*"):
            go_to(page, new)
            page.keyboard.press("Enter")
        dialog = opened(page, "New model")
        focus_is(page, dialog.get_by_role("button", name="Cancel"))
        asked[0].continue_()
        focus_is(page, dialog.get_by_label("Provider", exact=True))
        page.keyboard.press("Escape")
        focus_is(page, new)


# The browser's way back, until the page has heard of it.
BACK = """() => new Promise((done) => {
    navigation.addEventListener("currententrychange", () => setTimeout(() => setTimeout(done)), { once: true });
    history.back();
})"""


def stays(page, title, secret):
    """The way back leaves a secret that is shown once where it is, however often it is taken, and says why; once it is kept it leads
    back as ever."""
    shown = opened(page, title)
    text, here = secret.inner_text(), page.url
    assert not page.evaluate(LEAVES), "whoever leaves the page is asked"
    for _ in range(3):
        page.evaluate(BACK)
        approving.says(shown, "alert", "This is shown only once, so the page has not gone back.")
        assert (secret.inner_text(), page.url) == (text, here)
    tabs.fits_at_twice(page, title)
    press(page, "I have kept them" if "codes" in title else "I have kept it")
    shown.wait_for(state="detached")
    assert page.evaluate(LEAVES) and text not in page.content()


def by_the_menu(page, name):
    """Goes to a page by the menu, which closes once more where the way back from what was shown once ends only now."""
    link = page.get_by_role("link", name=name, exact=True)
    for _ in range(3):
        page.get_by_role("button", name="Menu").click()
        try:
            return link.click(timeout=3_000)
        except NotInTime:
            assert not link.is_visible()
    raise AssertionError(f"the menu never stays open for {name}")


def shown_once(chromium, dev, cookie):
    """What is shown once is not lost by the way back: an agent's first key, a further one, a key, a token, an invitation, and a
    second factor's recovery codes."""
    with console(chromium, dev, cookie, "/stop") as page:
        heading(page, "Stop everything")
        for name, new, title, submit, fields in (
            ("Keys", "New key", "The new key", "Make a key", {}),
            ("Agents", "New agent", "The agent's key", "Make the agent", {"Name": "Shown once"}),
            ("Team", "Invite somebody", "The invitation", "Invite", {"E-mail": "once@example.com"}),
        ):
            by_the_menu(page, name)
            heading(page, name)
            page.get_by_role("button", name=new).first.click()
            dialog = page.get_by_role("dialog")
            dialog.wait_for()
            for label, text in fields.items():
                dialog.get_by_label(label, exact=True).fill(text)
            dialog.get_by_role("button", name=submit, exact=True).click()
            stays(page, title, page.locator(".secret code"))
        page.evaluate(BACK)
        heading(page, "Shown once")
        page.get_by_role("button", name="New key").click()
        page.get_by_role("button", name="Make a key").click()
        stays(page, "The new key", page.locator(".secret code"))
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="Keys", exact=True).click()
        page.get_by_role("link", name="Service tokens").click()
        page.get_by_role("button", name="New token").first.click()
        dialog = opened(page, "New service token")
        dialog.get_by_label("Name").fill("Once")
        dialog.get_by_role("checkbox").first.check()
        dialog.get_by_role("button", name="Make a token").click()
        stays(page, "The new service token", page.locator(".secret code"))
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="Account", exact=True).click()
        page.get_by_role("button", name="Set it up").click()
        dialog = opened(page, "Set up a second factor")
        dialog.get_by_label("Code that the app shows").fill(browser.code(dialog.locator(".secret code").inner_text()))
        dialog.get_by_role("button", name="Set it up").click()
        stays(page, "Keep your recovery codes", page.locator(".codes li").first)


def removed_by_its_name(chromium, dev, cookie):
    """An agent whose name holds signs that nobody sees is removed by the name that its page shows; another is told at its field."""
    agent = desk.api(dev, "agents", {"name": "Pay\u200broll \u202e1", "principalEmail": "owner@localhost"})["id"]
    with console(chromium, dev, cookie, f"/agents/{agent}") as page:
        page.get_by_role("button", name="Remove").click()
        dialog = opened(page, "Remove this agent for good?")
        named = dialog.get_by_label("Its name, to be sure")
        page.keyboard.type("Payroll 1")
        page.keyboard.press("Enter")
        dialog.locator(".field").get_by_text("This is not its name. Nothing was removed.").wait_for()
        focus_is(page, named)
        assert dialog.locator("strong").inner_text() == "Pay\u2039U+200B\u203aroll \u2039U+202E\u203a1"
        named.fill(dialog.locator("strong").inner_text())
        page.keyboard.press("Enter")
        page.get_by_text("It is removed.").wait_for()
    assert desk.api(dev, f"agents/{agent}")["standing"] == "removed"


# Whether what has the focus is seen where it stands: in the window, and nothing else there in its place.
SEEN = """() => {
    const at = document.activeElement.getBoundingClientRect();
    const top = document.elementFromPoint(at.left + Math.min(at.width, 40) / 2, at.top + Math.min(at.height, 20) / 2);
    return at.top >= 0 && !!top && (document.activeElement.contains(top) || top.contains(document.activeElement));
}"""


def menu_of_a_phone(chromium, dev, cookie):
    """The menu of a phone, which lies over the page, closes for Escape, for whoever goes on to the page, and for whoever chooses
    a page in it, be it the one that they are on."""
    with console(chromium, dev, cookie, "/agents") as page:
        heading(page, "Agents")
        menu, drawer = page.get_by_role("button", name="Menu"), page.locator(".drawer")

        def at_menu():
            menu.focus()
            page.keyboard.press("Enter")
            drawer.wait_for()
            assert menu.get_attribute("aria-expanded") == "true"

        def is_closed():
            drawer.wait_for(state="hidden")
            assert menu.get_attribute("aria-expanded") == "false"

        at_menu()
        page.keyboard.press("Tab")
        page.keyboard.press("Escape")
        is_closed()
        focus_is(page, menu)
        at_menu()
        drawer.get_by_role("button", name="Sign out").focus()
        assert drawer.is_visible(), "within the menu it stays"
        page.keyboard.press("Tab")
        is_closed()
        page.wait_for_function(AFTER)
        assert page.evaluate("document.activeElement.closest('main') !== null") and page.evaluate(SEEN)
        at_menu()
        page.keyboard.press("Shift+Tab")
        assert drawer.is_visible(), "its own name stands in it"
        page.keyboard.press("Shift+Tab")
        is_closed()
        at_menu()
        drawer.get_by_role("link", name="Agents", exact=True).focus()
        page.keyboard.press("Enter")
        is_closed()
        focus_is(page, page.get_by_role("heading", name="Agents", level=1))
        at_menu()
        drawer.get_by_role("link", name="Spend", exact=True).click()
        is_closed()
        heading(page, "Spend")


def in_forced_colours(chromium, dev, cookie):
    """The tab that is shown is told from the others where the system chooses the colours."""
    colour = "it => getComputedStyle(it).borderBottomColor"
    with console(chromium, dev, cookie, "/models", forced_colors="active") as page:
        current = page.locator(".tabs [aria-current]")
        current.wait_for()
        others = {it.evaluate(colour) for it in page.locator(".tabs a:not([aria-current])").all()}
        assert len(others) == 1 and current.evaluate(colour) not in others, others


def heard_where_it_is_said(chromium, dev, cookie):
    """What is said while a dialog is open is said in it, as nothing behind it is heard; what came of an act goes with its page, and
    after a while, and what has the focus is not below it."""
    desk.api(dev, "keys", {"scope": "inference", "label": "Soon revoked"})
    padding = "parseFloat(getComputedStyle(document.documentElement).scrollPaddingBottom) || 0"
    with console(chromium, dev, cookie, "/keys") as page:
        said = page.locator(".said")
        page.get_by_role("button", name="New key").click()
        page.get_by_role("button", name="Make a key").click()
        dialog = opened(page, "The new key")
        page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
        dialog.get_by_role("button", name="Copy the key").click()
        approving.says(dialog, "alert", "The browser does not let this page copy")
        page.evaluate("() => { navigator.clipboard.writeText = () => Promise.resolve(); }")
        dialog.get_by_role("button", name="Copy the key").click()
        approving.says(dialog, "status", "Copied.")
        assert not dialog.get_by_role("alert").count() and not said.inner_text()
        press(page, "I have kept it")
        dialog.wait_for(state="detached")
        page.clock.install()
        for leaves in (True, False):
            page.get_by_role("button", name="Revoke").first.click()
            opened(page, "Revoke this key?").get_by_role("button", name="Revoke it").click()
            said.get_by_text("The key is revoked.").wait_for()
            page.wait_for_function(f"() => ({padding}) > 40")
            if leaves:
                page.get_by_role("button", name="Menu").click()
                page.get_by_role("link", name="Agents", exact=True).click()
                page.wait_for_function("() => !document.querySelector('.said').textContent")
                page.go_back()
                heading(page, "Keys")
            else:
                page.clock.fast_forward(11_000)
                page.wait_for_function("() => !document.querySelector('.said').textContent")
        page.wait_for_function(f"() => ({padding}) === 0")


def gone_unasked(chromium, dev):
    """Whoever was shown a secret that went with a lowered role, or with the session, is told so."""
    cookie = tabs.second(dev, "admin")
    member = next(it for it in desk.api(dev, "members")["data"] if it["email"] == "second-admin@example.com")["principalId"]
    with console(chromium, dev, cookie, "/keys") as page:

        def shown():
            page.get_by_role("button", name="New key").click()
            page.get_by_role("button", name="Make a key").click()
            opened(page, "The new key")

        shown()
        desk.api(dev, f"members/{member}", {"role": "member"}, "PATCH")
        approving.says(page, "alert", "Your role here is member now.")
        page.get_by_text("A secret that is shown only once stood here.").wait_for()
        desk.api(dev, f"members/{member}", {"role": "admin"}, "PATCH")
        approving.says(page, "alert", "Your role here is admin now.")
        assert not page.get_by_text("A secret that is shown only once stood here.").count()
        shown()
        assert person.browse(dev["baseUrl"] + "/api/sign-out", b"{}", cookie, approving.WRITES)[0] < 300
        heading(page, "You are no longer signed in")
        page.get_by_text("A secret that is shown only once stood here.").wait_for()


def in_letters_of_the_browsers(chromium, dev, cookie):
    """Letters are as large as the browser is set to, and nothing is too wide in them; and a browser that lets no page keep anything
    shows the pages all the same."""
    large = browser.launched(chromium.browser_type, "--blink-settings=defaultFontSize=32")
    with console(large, dev, cookie, "/keys") as page:
        page.add_init_script(approving.NOTHING_KEPT)
        for path, name in (("/keys?tab=tokens", "Service tokens"), ("/agents", "Agents")):
            page.goto(tabs.at(dev, path))
            heading(page, name)
            assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "30px"
            tabs.fits(page, path)
    large.close()


def test_the_console_keeps_the_focus():
    with browser.browsing() as (dev, chromium):
        cookie = person.sign_in(dev)
        held_down(chromium, dev, cookie)
        led_on(chromium, dev, cookie)
        led_on_elsewhere(chromium, dev, cookie)
        waited_for(chromium, dev, cookie)
        removed_by_its_name(chromium, dev, cookie)
        in_forced_colours(chromium, dev, cookie)
        in_letters_of_the_browsers(chromium, dev, cookie)
        heard_where_it_is_said(chromium, dev, cookie)
        gone_unasked(chromium, dev)
        menu_of_a_phone(chromium, dev, cookie)
        shown_once(chromium, dev, cookie)
