"""A real browser at the console: signed out and back, by the keyboard alone, on a phone's screen, in both schemes, in every role,
with texts that want to mislead, below a path of a proxy's, while things happen elsewhere; each page as axe sees it, and the types
of its sources.
"""

import urllib.parse

import approving
import browser
import desk
import person
from tabs import HIDE, PAGES, as_axe_sees_it, asked, at, console, fits_at_twice, heading, is_text, named_apart, opened, press, second

LATER = "not the first time"


def signed_out_and_back(chromium, dev):
    """Whoever is not signed in is led to signing in, and back to the page and its filters; signing out leaves nothing."""
    with console(chromium, dev, path="/activity?status=denied") as page:
        page.wait_for_url("**/sign-in?**")
        wish = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page.url).query))
        assert wish["next"] == f"/w/{dev['workspaceId']}/activity?status=denied", wish
        page.get_by_label("Password", exact=True).wait_for()
        token = dev["signInLink"].split("#")[1]
        page.goto(f"{page.url}#{token}")
        browser.press(page, "Sign in")
        page.get_by_label("New password").wait_for()
        page.keyboard.press("Tab")
        browser.fill(page, "Nothing of this kind.", browser.PASSWORD)
        heading(page, "Activity")
        assert page.get_by_label("Status").input_value() == "denied"
        page.goto(dev["baseUrl"] + "/")
        heading(page, "Approvals")
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Password", exact=True).wait_for()
        assert page.url == dev["baseUrl"] + "/sign-in", page.url
        browser.fill(page, "Nothing waits for a person.", "owner@localhost", browser.PASSWORD)
        heading(page, "Approvals")
        assert page.url == at(dev), page.url
        return next(f"{it['name']}={it['value']}" for it in page.context.cookies() if it["httpOnly"])


def session_that_ends(chromium, dev):
    """Nothing stays on the page of somebody whose session has ended elsewhere."""
    cookie = approving.invited(dev, "auditor")
    with console(chromium, dev, cookie, "/agents") as page:
        page.get_by_role("link", name="First agent").wait_for()
        assert not page.get_by_role("button", name="New agent").count(), "what a role may not do is not offered"
        assert person.browse(dev["baseUrl"] + "/api/sign-out", b"{}", cookie, approving.WRITES)[0] < 300
        heading(page, "You are no longer signed in")
        assert "First agent" not in page.locator("body").text_content()
        href = page.get_by_role("link", name="Sign in").get_attribute("href")
        assert href == "/sign-in?next=" + urllib.parse.quote(f"/w/{dev['workspaceId']}/agents", safe=""), href


def single_sign_on(chromium, dev, cookie):
    """A workspace that takes only its own single sign-on leads there, and so does signing in again whoever came by it."""
    way = f"/api/sign-in/sso/{dev['workspaceId']}?next=" + urllib.parse.quote(f"/w/{dev['workspaceId']}/stop", safe="")

    def by_it(me):
        me["session"]["proof"] = "sso:" + dev["workspaceId"]
        me["workspaces"][0]["signIn"]["requireSso"] = True

    with console(chromium, dev, cookie) as page:
        page.get_by_text("Nothing waits for a person.").wait_for()
        browser.answer_with(page, "**/api/me", by_it)
        page.route("**/settings", lambda it: it.fulfill(status=403, json={"error": {"type": "forbidden", "message": "no"}}))
        page.goto(at(dev, "/stop"))
        heading(page, "This workspace does not take your session")
        assert page.title() == "This workspace does not take your session · First workspace", page.title()
        assert page.get_by_role("link", name="single sign-on").get_attribute("href") == way
        page.unroute("**/api/me")
        page.unroute("**/settings")
        page.context.clear_cookies()
        page.goto(at(dev, "/stop"))
        page.wait_for_url("**/sign-in?**")
        assert page.url.endswith("&workspace=" + dev["workspaceId"]), page.url


def live(chromium, dev, cookie):
    """What is asked appears by itself, and what is decided elsewhere goes; back and forward lead through the pages."""
    with console(chromium, dev, cookie) as page:
        page.get_by_text("Nothing waits for a person.").wait_for()
        page.evaluate("window.here = 'not the first time'")
        assert page.title() == "Approvals · First workspace", page.title()
        decision = approving.ask(dev, 31_000)
        approving.says(page, "status", "1 more approval waits for you.")
        assert page.title() == "(1) Approvals · First workspace", page.title()
        page.get_by_role("heading", name="First agent asks to pay").wait_for()
        page.get_by_text("EUR\u00a0310.00 to Example Cloud").wait_for()
        assert "is above EUR 200.00" in page.inner_text("main")
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="Activity", exact=True).click()
        heading(page, "Activity")
        assert page.locator(":focus").inner_text() == "Activity", "the focus is where the new page begins"
        page.get_by_role("cell", name="Waiting").wait_for()
        desk.api(dev, f"approvals/{decision['approval']['id']}/deny", {"note": "No"})
        page.get_by_role("cell", name="Denied").wait_for()
        page.wait_for_function("() => document.title === 'Activity · First workspace'")
        page.go_back()
        page.get_by_text("Nothing waits for a person.").wait_for()
        page.get_by_role("link", name="Denied").click()
        page.get_by_text("Note: No").wait_for()
        page.go_forward()
        assert page.evaluate("window.here") == LATER, "and no page was loaded anew"


def broken_line(chromium, dev, cookie):
    """A page that is not looked at holds no line, and takes it up where it was: what happened meanwhile is not missed."""
    with console(chromium, dev, cookie) as page:
        page.get_by_text("Nothing waits for a person.").wait_for()
        page.evaluate(HIDE, True)
        decision = approving.ask(dev, 32_000)
        with page.expect_request("**/events") as again:
            page.evaluate(HIDE, False)
        assert again.value.headers["last-event-id"].isdigit(), again.value.headers
        page.get_by_role("heading", name="First agent asks to pay").wait_for()
        desk.api(dev, f"approvals/{decision['approval']['id']}/deny", {})
        page.get_by_text("Nothing waits for a person.").wait_for()


def silent_server(chromium, dev, cookie):
    """A server that does not answer is told of, nothing that was there goes, and all of it comes back by itself."""
    with console(chromium, dev, cookie, "/agents") as page:
        page.get_by_role("link", name="First agent").wait_for()
        page.clock.install()
        page.route("**/api/**", lambda it: it.abort())
        page.evaluate(HIDE, True)
        page.evaluate(HIDE, False)
        note = page.get_by_text("Live updates are interrupted")
        for _ in range(20):
            page.clock.fast_forward(2_000)
            if note.count():
                break
        note.wait_for()
        page.get_by_role("link", name="First agent").wait_for()
        page.unroute("**/api/**")
        page.clock.fast_forward(60_000)
        note.wait_for(state="detached")
        page.route("**/api/w/*/settings", lambda it: it.fulfill(status=503, json={"error": {"type": "not_ready", "message": "the server is busy"}}, headers={"retry-after": "1"}))
        page.reload()
        approving.says(page, "alert", "The server is busy. Try again in 1 s.")
        page.unroute("**/api/w/*/settings")
        page.get_by_role("button", name="Try again").click()
        page.get_by_role("link", name="First agent").wait_for()


def decided_from_the_inbox(chromium, dev, cookie):
    """The inbox leads to the page that decides, and that page back."""
    approving.ask(dev, 33_000)
    with console(chromium, dev, cookie) as page:
        page.get_by_role("link", name="Look and decide").click()
        page.get_by_role("button", name="Approve EUR 330.00").click()
        approving.says(page, "status", "You approved it.")
        page.get_by_role("link", name="All approvals").click()
        page.get_by_text("Nothing waits for a person.").wait_for()
        page.get_by_role("link", name="Approved").click()
        page.get_by_text("Approved by You").wait_for()


def told_apart(chromium, dev, cookie):
    """The links of what waits say who asks for how much, and to whom it goes, and those of agents how many wait: each has a name of
    its own, also where the same is asked twice."""
    waiting = [approving.ask(dev, 33_100), approving.ask(dev, 33_200, name="Other Shop", domain="other.example"), approving.ask(dev, 33_100)]
    with console(chromium, dev, cookie) as page:
        told = (("331.00", "Example Cloud", "cloud.example"), ("332.00", "Other Shop", "other.example"), ("331.00", "Example Cloud", "cloud.example"))
        for it, (sum_, payee, host) in zip(waiting, told, strict=True):
            about = f"First agent asks to pay EUR\u00a0{sum_} to {payee} · {host} {it['approval']['id'][-6:]}"
            page.get_by_role("link", name=f"Look and decide {about}", exact=True).wait_for()
            page.get_by_role("link", name=about, exact=True).wait_for()
        page.goto(at(dev, "/agents"))
        page.get_by_role("link", name="3 waiting, of First agent", exact=True).wait_for()
    for it in waiting:
        desk.api(dev, f"approvals/{it['approval']['id']}/deny", {})


def agent_by_keyboard(chromium, dev, cookie):
    """An agent is made, given a key, frozen and started again without a mouse; each is so at the gate."""
    with console(chromium, dev, cookie, "/agents") as page:
        page.get_by_role("link", name="First agent").wait_for()
        press(page, "New agent")
        opened(page, "New agent")
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
        assert page.locator(":focus").inner_text() == "New agent", "the focus is back where it was"
        page.keyboard.press("Enter")
        opened(page, "New agent")
        press(page, "Make the agent")
        page.get_by_text("Must be 1 to 100 characters").wait_for()
        # The fault is where the focus is.
        page.get_by_label("Name").and_(page.locator(":focus")).wait_for()
        # What fails once more in the same way is said once more.
        said = page.get_by_role("dialog").get_by_role("alert").element_handle()
        page.keyboard.press("Enter")
        page.wait_for_function("it => !it.isConnected", arg=said)
        approving.says(page.get_by_role("dialog"), "alert", "Look at the fields that are marked.")
        page.keyboard.type("Desk agent")
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.get_by_label("coding-agent").and_(page.locator(":focus")).count():
                break
        page.keyboard.press("Space")
        press(page, "Make the agent")
        shown = opened(page, "The agent's key")
        key = shown.locator(".secret code").inner_text()
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        # A secret that is shown once is not let go of by a slip.
        shown.wait_for()
        press(page, "I have kept it")
        heading(page, "Desk agent")
        assert asked(dev, key)["decision"] == "allow"
        page.get_by_role("link", name="tool.call").wait_for()
        press(page, "Freeze")
        opened(page, "Freeze this agent?")
        press(page, "Freeze it")
        page.get_by_text("Say why, in words").wait_for()
        page.get_by_label("Why").and_(page.locator(":focus")).wait_for()
        page.keyboard.type("It reads too much")
        page.keyboard.press("Enter")
        page.get_by_text("by You: It reads too much").wait_for()
        assert [it["code"] for it in asked(dev, key)["reasons"]] == ["agent_frozen"]
        press(page, "Start again")
        opened(page, "Start this agent again?")
        page.keyboard.type("It was meant to")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Freeze").wait_for()
        assert asked(dev, key)["decision"] == "allow"
        return page.url.rsplit("/", 1)[1], key


def around_by_keyboard(chromium, dev, cookie):
    """Every page is reached and left without a mouse, past the frame by one key, and a dialog that is left does nothing."""
    decision = approving.ask(dev, 31_500)
    with console(chromium, dev, cookie) as page:
        page.get_by_role("link", name="Look and decide").wait_for()
        page.keyboard.press("Tab")
        assert page.locator(":focus").inner_text() == "Skip to what this page is about"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.locator(":focus").inner_text() == "Waiting", "behind the frame"
        page.reload()
        page.get_by_role("link", name="Look and decide").wait_for()
        press(page, "Menu")
        press(page, "Activity")
        heading(page, "Activity")
        page.get_by_role("link", name="First agent asks to pay").first.wait_for()
        press(page, "First agent asks to pay", exact=False)
        page.get_by_text("A person has been asked.").wait_for()
        press(page, "All activity")
        heading(page, "Activity")
        page.reload()
        heading(page, "Activity")
        press(page, "Menu")
        press(page, "Stop everything")
        heading(page, "Stop everything")
        press(page, "Count them")
        page.get_by_role("dialog").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
        page.get_by_text("Nothing is held.").wait_for()
        page.goto(at(dev))
        press(page, "Look and decide First agent asks to pay EUR\u00a0315.00 to Example Cloud · cloud.example", exact=False)
        page.get_by_role("button", name="Deny").wait_for()
        approving.deny(page)
        approving.says(page, "status", "You denied it.")
        press(page, "All approvals")
        page.get_by_text("Nothing waits for a person.").wait_for()
    assert approving.read(dev, decision)["state"] == "denied"


def mandates(chromium, dev, cookie, agent, key):
    """A mandate is granted in its own words, changed by a version, paused and revoked; what is wrong is said at its field."""
    with console(chromium, dev, cookie, f"/agents/{agent}") as page:
        page.get_by_role("button", name="Grant a mandate").click()
        dialog = opened(page, "Grant a mandate")
        dialog.get_by_label("Name").fill("Fuel <b>only</b>")
        dialog.get_by_label("Actions", exact=True).fill("payment\n*")
        dialog.get_by_label("At most an action").fill("40,50")
        dialog.get_by_role("button", name="Grant it").click()
        amount = dialog.locator(".field", has=page.get_by_label("At most an action"))
        amount.locator(".wrong").get_by_text("An amount is a number like 1250.00, in EUR").wait_for()
        amount.locator("[aria-invalid=true]:focus").wait_for()
        dialog.get_by_label("At most an action").fill("40.50")
        dialog.get_by_role("button", name="Grant it").click()
        dialog.locator(".field", has=page.get_by_label("Actions", exact=True)).locator(".wrong").wait_for()
        dialog.get_by_label("Actions", exact=True).fill("payment")
        dialog.get_by_role("button", name="Grant it").click()
        dialog.wait_for(state="detached")
        item = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Fuel <b>only</b>"))
        item.get_by_text("up to EUR\u00a040.50 an action").wait_for()
        pay = {"payment": {"amount": 4_000, "currency": "EUR", "merchant": {"name": "Pump", "domain": "pump.example"}}}
        assert asked(dev, key, "payment", **pay)["decision"] == "allow"
        item.get_by_role("button", name="Change").click()
        dialog = opened(page, "Change a mandate")
        assert dialog.get_by_label("At most an action").input_value() == "40.50"
        dialog.get_by_label("At most an action").fill("30")
        dialog.get_by_label("Ask a person above").fill("20")
        dialog.get_by_role("button", name="Put it in force").click()
        item.get_by_text("Version 2").wait_for()
        item.get_by_text("asks a person above EUR\u00a020.00").wait_for()
        item.get_by_role("button", name="Change").click()
        dialog = opened(page, "Change a mandate")
        dialog.get_by_label("Ask a person above").fill("")
        dialog.get_by_label("At most a period").fill("0")
        dialog.get_by_role("button", name="Put it in force").click()
        dialog.locator(".field", has=page.get_by_label("At most a period")).locator(".wrong").wait_for()
        dialog.get_by_label("At most a period").fill("")
        dialog.get_by_label("At most so many actions").press_sequentially("1e")
        dialog.get_by_role("button", name="Put it in force").click()
        dialog.get_by_text("Must be a number.").wait_for()
        dialog.get_by_label("At most so many actions").fill("")
        dialog.get_by_role("button", name="Put it in force").click()
        item.get_by_text("Version 3").wait_for()
        assert "asks a person" not in item.inner_text(), "what is emptied is taken away"
        item.get_by_role("button", name="Versions").click()
        opened(page, "Versions").get_by_text("up to EUR\u00a040.50 an action").wait_for()
        page.keyboard.press("Escape")
        item.get_by_role("button", name="Pause").click()
        item.get_by_text("Paused").wait_for()
        item.get_by_role("button", name="Revoke").click()
        opened(page, "Revoke this mandate?").get_by_role("button", name="Revoke it").click()
        item.wait_for(state="detached")


def releases(chromium, dev, cookie):
    """What a used receipt keeps posted is released with a reason, by whoever may."""
    pay = {"payment": {"amount": 10_000, "currency": "EUR", "merchant": {"name": "Example Rail", "domain": "rail.example"}}}
    allowed = asked(dev, dev["agentKey"], "payment", **pay)
    charge = {"amount": 10_000, "currency": "EUR", "merchant": {"domain": "rail.example"}}
    assert person.post(dev["baseUrl"] + "/v1/verify", {"receipt": allowed["receipt"], "charge": charge})["consumed"]
    with console(chromium, dev, cookie, f"/activity/{allowed['id']}") as page:
        page.get_by_text("for EUR\u00a0100.00").wait_for()
        assert not page.get_by_role("button", name="Release").count(), "nothing is kept yet"
        headers = {"authorization": f"Bearer {dev['agentKey']}", "content-type": "application/json"}
        address = f"{dev['baseUrl']}/v1/actions/{allowed['id']}/settle"
        assert person.browse(address, b'{"status": "failed", "amount": 2500}', headers=headers)[0] == 200
        page.get_by_role("button", name="Release what is kept").click()
        dialog = opened(page, "Release what is kept?")
        assert "EUR\u00a075.00 count as paid" in dialog.inner_text(), dialog.inner_text()
        dialog.get_by_label("How you know").fill("The bank sent it back")
        dialog.get_by_role("button", name="Release", exact=True).click()
        page.get_by_text("Released by You").wait_for()
        assert not page.get_by_role("button", name="Release").count()


def keys_and_change(chromium, dev, cookie, agent):
    """A key is made, shown once and revoked; an agent is renamed and removed by its name."""
    with console(chromium, dev, cookie, f"/agents/{agent}") as page:
        page.get_by_role("button", name="New key").click()
        opened(page, "New key").get_by_label("Label").fill("of the laptop")
        page.get_by_role("button", name="Make a key").click()
        key = opened(page, "The new key").locator(".secret code").inner_text()
        page.get_by_role("button", name="I have kept it").click()
        assert asked(dev, key)["decision"] == "allow"
        row = page.get_by_role("row").filter(has_text="of the laptop")
        row.get_by_role("button", name="Revoke").click()
        opened(page, "Revoke this key?").get_by_role("button", name="Revoke it").click()
        row.get_by_text("revoked").wait_for()
        page.get_by_role("button", name="Change", exact=True).click()
        dialog = opened(page, "Change this agent")
        dialog.get_by_label("Name").fill("Desk helper")
        dialog.get_by_label("Tier").select_option("restricted")
        with page.expect_request(lambda it: it.method == "PATCH") as sent:
            dialog.get_by_role("button", name="Save").click()
        assert sent.value.post_data_json == {"name": "Desk helper", "tier": "restricted"}, "what is left as it was is not sent"
        heading(page, "Desk helper")
        page.get_by_role("button", name="Remove").click()
        dialog = opened(page, "Remove this agent for good?")
        dialog.get_by_label("Its name").fill("Desk")
        dialog.get_by_role("button", name="Remove it for good").click()
        dialog.locator(".field", has=page.locator("[aria-invalid=true]")).get_by_text("This is not its name. Nothing was removed.").wait_for()
        dialog.get_by_label("Its name").fill("Desk helper")
        dialog.get_by_role("button", name="Remove it for good").click()
        page.get_by_text("Removed", exact=True).wait_for()
        assert not page.get_by_role("button", name="Freeze").count()


def fleet(chromium, dev, cookie):
    """Everything is counted, confirmed by the count and stopped; every page says so until the hold is lifted."""
    with console(chromium, dev, cookie, "/stop") as page:
        page.get_by_label("Which").select_option("namePrefix")
        page.get_by_label("The beginning of the name").fill("Nobody")
        page.get_by_role("button", name="Count them").click()
        approving.says(page, "status", "No agent is meant by this.")
        page.get_by_label("Which").select_option("all")
        page.get_by_role("button", name="Count them").click()
        many = len([it for it in desk.api(dev, "agents")["data"] if it["standing"] != "removed"])
        dialog = opened(page, f"Stop {many} agent")
        dialog.get_by_label("Why").fill("A drill")
        dialog.get_by_label("How many").fill(str(many + 1))
        dialog.get_by_role("button", name="Stop them now").click()
        dialog.locator(".field", has=page.locator("[aria-invalid=true]:focus")).get_by_text(f"Type {many} to confirm").wait_for()
        desk.api(dev, "agents", {"name": "Late agent", "principalEmail": "owner@localhost"})
        dialog.get_by_label("How many").fill(str(many))
        dialog.get_by_role("button", name="Stop them now").click()
        dialog = opened(page, f"Stop {many + 1} agents?")
        assert asked(dev, dev["agentKey"])["decision"] == "allow", "what was not counted so is not stopped"
        dialog.get_by_label("Why").fill("A drill")
        dialog.get_by_label("How many").fill(str(many + 1))
        dialog.get_by_role("button", name="Stop them now").click()
        page.get_by_text(f"{many + 1} agents frozen.").wait_for()
        page.get_by_text("Everything is stopped").wait_for()
        approving.says(page, "status", "Every agent is stopped")
        assert [it["code"] for it in asked(dev, dev["agentKey"])["reasons"]] == ["agent_frozen"]
        page.get_by_role("button", name="Lift").click()
        dialog = opened(page, "Lift this hold?")
        dialog.get_by_label("Why it is safe").fill("The drill is over")
        dialog.get_by_label("Start again").check()
        dialog.get_by_role("button", name="Lift it").click()
        page.get_by_text("Everything is stopped").wait_for(state="detached")
        assert asked(dev, dev["agentKey"])["decision"] == "allow"


def roles(chromium, dev):
    """Each role is offered what it may do, and is told where it may not go."""
    cookie = approving.invited(dev, "member")
    own = desk.api(dev, "agents", {"name": "Own agent", "principalEmail": "member@example.com", "mandates": [{"template": "saas-subscriptions"}]})
    with console(chromium, dev, cookie, "/agents") as page:
        page.get_by_role("link", name="Own agent").click()
        heading(page, "Own agent")
        page.get_by_role("heading", name="saas-subscriptions").wait_for()
        offered = {" ".join(it.inner_text().split()) for it in page.get_by_role("button").all()}
        assert {"Freeze", "Rename", "New key"} <= offered, offered
        assert not {"Remove", "Change", "Grant a mandate"} & offered, offered
        assert not {f"{it} saas-subscriptions" for it in ("Change", "Pause", "Revoke")} & offered, offered
        assert "First agent" not in page.inner_text("body")
        page.get_by_role("button", name="Menu").click()
        assert not page.get_by_role("link", name="Stop everything").count()
        page.goto(at(dev, "/stop"))
        page.get_by_text("Your role here, member, does not reach this page.").wait_for()
        assert page.title() == "Stop everything · First workspace", page.title()
        page.goto(at(dev | {"workspaceId": "wsp_01ARZ3NDEKTSV4RRFFQ69G5FAV"}))
        heading(page, "There is no such workspace here")
        assert page.title() == "There is no such workspace here", page.title()
        approving.ask(dev | {"agentKey": own["key"]}, 31_000)
        page.goto(at(dev))
        page.get_by_role("link", name="Look and decide").wait_for()
        decision = approving.ask(dev | {"agentKey": own["key"]}, 32_000)
        desk.api(dev, f"approvals/{decision['approval']['id']}/deny", {})
        page.goto(at(dev, "/approvals?state=denied"))
        page.get_by_text("Denied by owner@localhost").wait_for()
        page.goto(at(dev, f"/activity/{decision['id']}"))
        page.get_by_role("region", name="What came of it").get_by_text("by owner@localhost").wait_for()
        page.goto(decision["approval"]["url"])
        page.locator("#people").get_by_text("owner@localhost").wait_for()
        assert "prp_" not in page.locator("#people").inner_text(), page.inner_text("main")
    with console(chromium, dev, approving.invited(dev, "analyst")) as page:
        heading(page, "Activity")
        page.get_by_role("cell", name="EUR\u00a0310.00").first.wait_for()
        named_apart(page)
        assert "Example Cloud" not in page.inner_text("body") and not page.get_by_role("link", name="Agents").count()
    with console(chromium, dev, second(dev, "auditor")) as page:
        page.get_by_text("Your role does not decide this.").wait_for()
        page.get_by_text("Look", exact=True).first.wait_for()
        page.goto(at(dev, "/stop"))
        page.get_by_role("heading", name="Holds").wait_for()
        assert not page.get_by_role("button", name="Count them").count() and not page.get_by_role("button", name="Lift").count()


def kill_owners(chromium, dev):
    """A kill owner finds the agent that is theirs by nothing else, and stops it, whatever their role; no more of it is shown or offered."""
    for role in ("member", "analyst"):
        email = f"stops-{role}@example.com"
        cookie = approving.member(dev, email, role)
        killer = next(it["principalId"] for it in desk.api(dev, "members")["data"] if it["email"] == email)
        wish = {"name": f"Watched by the {role}", "principalEmail": "owner@localhost", "mandates": [{"template": "saas-subscriptions"}], "killOwner": killer}
        agent = desk.api(dev, "agents", wish)["id"]
        with console(chromium, dev, cookie, "/agents") as page:
            page.get_by_role("row").filter(has_text=f"Watched by the {role}").get_by_text("you may freeze it").wait_for()
            page.get_by_role("link", name=f"Watched by the {role}").click()
            heading(page, f"Watched by the {role}")
            page.get_by_text("You are its kill owner").wait_for()
            assert [" ".join(it.inner_text().split()) for it in page.locator(".heading").get_by_role("button").all()] == ["Freeze"]
            assert "saas-subscriptions" not in page.inner_text("main") and "owner@localhost" not in page.inner_text("main")
            page.get_by_role("button", name="Freeze").click()
            dialog = opened(page, "Freeze this agent?")
            dialog.get_by_label("Why").fill("It buys at night")
            dialog.get_by_role("button", name="Freeze it").click()
            page.locator("main").get_by_text("It buys at night").wait_for()
            page.get_by_role("heading", name="Frozen").wait_for()
            assert not page.locator(".heading").get_by_role("button").count()
            page.clock.install()
            page.reload()
            heading(page, f"Watched by the {role}")
            desk.api(dev, f"agents/{agent}/restart", {"reason": "Looked at"})
            page.clock.fast_forward(11_000)
            page.get_by_role("heading", name="Active").wait_for()


def texts_that_mislead(chromium, dev, cookie):
    """What agents and strangers wrote is text, on every page: no markup, nothing turned round, nothing unseen, nothing too wide."""
    named = "<img src=x onerror=alert(1)> " + "W" * 60
    evil = desk.api(dev, "agents", {"name": named, "principalEmail": "owner@localhost", "mandates": [{"template": "saas-subscriptions"}]})
    name = approving.WICKED[:100]
    decision = approving.ask(dev | {"agentKey": evil["key"]}, 34_000, name=name, summary=approving.WICKED, details={"it": approving.WICKED})
    action = next(it for it in desk.api(dev, "actions")["data"] if it["id"] == decision["id"])
    assert "\u202e" in action["summary"]
    for path in ("", "/agents", f"/agents/{evil['id']}", "/activity", f"/activity/{decision['id']}"):
        with console(chromium, dev, cookie, path) as page:
            page.locator("main bdi", has_text="<img src=x").first.wait_for()
            is_text(page, path)
            if path != "/agents":
                page.get_by_text("\u2039U+202E\u203aShop").first.wait_for()
                # What stands around it has a name read from the right.
                assert page.locator("bdi bdi[dir=ltr]").first.inner_text() == "\u2039U+202E\u203a"
            fits_at_twice(page, path)
    with console(chromium, dev, cookie) as page:
        page.locator("h1").wait_for()
        texts = page.locator("link[href$='/text.js']").evaluate("it => it.href")
        for text, shown in approving.cases():
            assert page.evaluate("async ([at, it]) => (await import(at)).plain(it)", [texts, text]) == shown, ascii(text)
    desk.api(dev, f"approvals/{decision['approval']['id']}/deny", {})


def below_a_path(chromium, dev, cookie):
    """Below a base address with a path all of it works the same."""
    with approving.phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.route("**", lambda it: it.abort())
        page.route("**/below/**", lambda it: it.continue_(url=it.request.url.replace("/below/", "/")))
        page.goto(dev["baseUrl"] + "/below/")
        heading(page, "Approvals")
        assert page.url == at(dev).replace("/w/", "/below/w/"), page.url
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="Agents", exact=True).click()
        page.get_by_role("link", name="First agent").click()
        heading(page, "First agent")
        page.reload()
        heading(page, "First agent")


def agents_as_axe_sees_them(chromium, dev, cookie, agent):
    action = desk.api(dev, "actions?limit=1")["data"][0]["id"]
    paths = [f"/{it}" for it in PAGES] + [f"/agents/{agent}", f"/activity/{action}", "/approvals?state=all"]

    def act(page):
        page.goto(at(dev, "/agents"))
        page.get_by_role("button", name="New agent").click()
        opened(page, "New agent").get_by_role("button", name="Make the agent").click()
        page.locator("[aria-invalid=true]").wait_for()

    as_axe_sees_it(chromium, dev, cookie, paths, act)


def test_the_console_serves_people():
    with browser.browsing() as (dev, chromium):
        cookie = signed_out_and_back(chromium, dev)
        person.COOKIES[dev["baseUrl"]] = cookie
        session_that_ends(chromium, dev)
        single_sign_on(chromium, dev, cookie)
        live(chromium, dev, cookie)
        broken_line(chromium, dev, cookie)
        silent_server(chromium, dev, cookie)
        decided_from_the_inbox(chromium, dev, cookie)
        told_apart(chromium, dev, cookie)
        around_by_keyboard(chromium, dev, cookie)
        agent, key = agent_by_keyboard(chromium, dev, cookie)
        mandates(chromium, dev, cookie, agent, key)
        below_a_path(chromium, dev, cookie)
        agents_as_axe_sees_them(chromium, dev, cookie, agent)
        keys_and_change(chromium, dev, cookie, agent)
        releases(chromium, dev, cookie)
        fleet(chromium, dev, cookie)
        texts_that_mislead(chromium, dev, cookie)
        roles(chromium, dev)
        kill_owners(chromium, dev)
