"""A real browser at the console where something goes wrong or moves on meanwhile: what others change, what cannot be read, a role
that is lowered, a session that is barred, long lists; and, as axe sees them, the pages that stand outside the console's frame.
"""

import itertools
import json
import os
import pathlib
import urllib.parse

import approving
import browser
import tabs
import desk
import person
from tabs import at, heading, opened

INTERRUPTED = "Live updates are interrupted"
NOTHING_WAITS = "Nothing waits for a person."
BARRED = {"status": 403, "json": {"error": {"type": "forbidden", "message": "this workspace takes only its own single sign-on"}}}
PART = 50


def ends_and_begins(page):
    """The line ends and begins again, as it does where a page is left and come back to."""
    page.evaluate(tabs.HIDE, True)
    with page.expect_response("**/events"):
        page.evaluate(tabs.HIDE, False)


def changed_meanwhile(chromium, dev, cookie):
    """A mandate that somebody tightens while it is being changed stays so: what is left as it was is not sent, and where both change the
    same, who changes it looks at the new version first and loses nothing that they typed."""
    wish = {"name": "Meanwhile", "actions": ["payment"], "limits": {"currency": "EUR", "perAction": 10_000}, "merchants": {"allow": ["a.example"]}}
    agent = desk.api(dev, "agents", {"name": "Moving agent", "principalEmail": "owner@localhost", "mandates": [wish]})
    mandate = desk.api(dev, f"agents/{agent['id']}/mandates")["data"][0]["id"]
    with tabs.console(chromium, dev, cookie, f"/agents/{agent['id']}") as page:
        page.get_by_role("button", name="Change Meanwhile").click()
        dialog = opened(page, "Change a mandate")
        tighter = {"limits": {"perAction": 2_000}, "merchants": {"deny": ["b.example"]}}
        assert desk.api(dev, f"mandates/{mandate}", tighter, "PATCH")["version"] == 2
        dialog.get_by_label("Name").fill("Renamed")
        dialog.get_by_label("Only these merchants").fill("")
        dialog.get_by_role("button", name="Put it in force").click()
        dialog.get_by_role("alert").filter(has_text="Somebody else has changed the same meanwhile.").and_(page.locator(":focus")).wait_for()
        note = dialog.locator(".note").filter(has_text="Changed by somebody else")
        assert "Version 2, by You: Meanwhile" in note.inner_text() and "up to EUR\u00a020.00 an action" in note.inner_text(), note.inner_text()
        assert dialog.get_by_label("Name").input_value() == "Renamed", "what was typed stays"
        assert dialog.get_by_label("Only these merchants").input_value() == ""
        assert desk.api(dev, f"mandates/{mandate}")["version"] == 2, "nothing was sent"
        with page.expect_request(lambda it: it.method == "PATCH") as sent:
            dialog.get_by_role("button", name="Put it in force").click()
        assert sent.value.post_data_json == {"name": "Renamed", "merchants": {"allow": None}}, sent.value.post_data
        dialog.get_by_label("Any merchant is meant").check()
        dialog.get_by_role("button", name="Put it in force").click()
        dialog.wait_for(state="detached")
    now = desk.api(dev, f"mandates/{mandate}")
    assert (now["version"], now["name"], now["limits"]["perAction"]) == (3, "Renamed", 2_000), now
    assert now["merchants"] == {"deny": ["b.example"]}, now
    with tabs.console(chromium, dev, cookie, f"/agents/{agent['id']}") as page:
        page.get_by_role("button", name="Change Renamed").click()
        dialog = opened(page, "Change a mandate")
        dialog.get_by_role("button", name="Put it in force").click()
        dialog.wait_for(state="detached")
    assert desk.api(dev, f"mandates/{mandate}")["version"] == 3, "what changes nothing is no version"


def not_read(chromium, dev, cookie):
    """What could not be read is not told as empty, and is read as soon as the server is there again; a page too."""
    with tabs.console(chromium, dev, cookie, "/stop") as page:
        page.get_by_text("Nothing is held.").wait_for()
        page.route("**/approvals?*", lambda it: it.abort())
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="Approvals").click()
        approving.says(page, "alert", "The server does not answer.")
        assert not page.get_by_text(NOTHING_WAITS).count(), "it is not known"
        page.unroute("**/approvals?*")
        ends_and_begins(page)
        page.get_by_text(NOTHING_WAITS).wait_for()
        assert not page.get_by_role("alert").count()
        page.route("**/activity.js", lambda it: it.abort())
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="Activity", exact=True).click()
        approving.says(page, "alert", "This page could not be loaded.")
        page.get_by_role("heading", name="Activity", level=1).and_(page.locator(":focus")).wait_for()
        assert page.title() == "Activity · First workspace", page.title()
        page.unroute("**/activity.js")
        ends_and_begins(page)
        page.get_by_label("Status").wait_for()


def unreadable_filters(chromium, dev, cookie):
    """What cannot be looked for is said at the filter that it is about, in words for people: nothing is shown as if it had been
    looked for, and nothing is offered to be asked again."""
    decision = approving.ask(dev, 31_700)
    typed = "This is no type of actions. Choose one that is offered, or write one of your own, such as crm.update."
    no_choice = "There is no such choice. Choose another."
    no_day = "The address names garbage here, which is no day. Choose one."
    turned = "The last day is before the first."
    wide = "At most 400 days are shown at once."
    no_id = "This is no id: act_ and 26 digits and capital letters are one. Copy it whole from where it stands."
    with tabs.console(chromium, dev, cookie, "/activity?to=9999-12-31") as page:
        # The last day of all has none behind it that could be asked for.
        page.get_by_text("The address names 9999-12-31 here").wait_for()
    with tabs.console(chromium, dev, cookie, "/activity") as page:

        def told(path, label, said, address):
            page.goto(tabs.at(dev, path))
            field = page.get_by_label(label, exact=True)
            page.locator("[aria-invalid=true]").and_(field).wait_for()
            about = page.locator(f"[id='{field.get_attribute('aria-describedby')}']")
            assert said in about.inner_text(), (path, about.inner_text())
            approving.says(page, "alert", f"Nothing is shown. Correct what is marked above: {label}.")
            main = page.inner_text("main")
            assert "errors" not in main and "`" not in main and not page.get_by_role("button", name="Try again").count(), main
            assert not page.locator("main table, main .items, main .empty, main .totals").count(), main
            tabs.fits(page, path)
            assert field.input_value() == address, (path, field.input_value())

        page.get_by_role("link", name="First agent asks to pay").first.wait_for()
        page.get_by_label("Type").fill("Payment to X")
        page.keyboard.press("Enter")
        page.get_by_text(typed).wait_for()
        assert page.get_by_label("Type").evaluate("it => it === document.activeElement"), "the focus stays where it is corrected"
        page.keyboard.press("Control+A")
        page.keyboard.type("payment")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="First agent asks to pay").first.wait_for()
        assert not page.locator("[aria-invalid]").count()
        for path, label, said, address in (
            ("/activity?type=Payment+to+X", "Type", typed, "Payment to X"),
            ("/activity?status=gone", "Status", no_choice, "gone"),
            ("/activity?agentId=nobody", "Agent", no_choice, "nobody"),
            ("/activity?from=garbage", "From", no_day, ""),
            ("/activity?from=2026-02-30", "From", "which is no day", ""),
            ("/activity?from=2026-05-02&to=2026-05-01", "To", turned, "2026-05-01"),
            ("/ledger?from=garbage", "From", no_day, ""),
            ("/ledger?to=garbage", "To", no_day, ""),
            ("/ledger?kind=gone", "Kind", no_choice, "gone"),
            ("/ledger?about=act_01arz3ndektsv4rrffq69g5fav", "Names this id", no_id, "act_01arz3ndektsv4rrffq69g5fav"),
            ("/ledger?about=APV_01ARZ3NDEKTSV4RRFFQ69G5FAV", "Names this id", "This is no id: apv_ and", "APV_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            ("/ledger?about=team_01ARZ3", "Names this id", "This is no id: team_ and", "team_01ARZ3"),
            ("/ledger?about=First+agent", "Names this id", "This is no id: none holds blanks", "First agent"),
            ("/ledger?from=2026-05-02&to=2026-05-01", "To", turned, "2026-05-01"),
            ("/spend?period=own&from=2024-01-01&to=2026-01-01", "From", wide, "2024-01-01"),
            ("/spend?period=own&from=garbage&to=2026-01-01", "From", no_day, ""),
            ("/spend/yield?period=own&from=2026-05-02&to=2026-05-01", "To", turned, "2026-05-01"),
            ("/spend/waste?period=gone", "Period", no_choice, "gone"),
            ("/spend?by=gone", "By", no_choice, "gone"),
            ("/approvals?kind=gone", "What was asked", no_choice, "gone"),
            ("/deliveries?kind=gone", "Kind", no_choice, "gone"),
            ("/deliveries?state=gone", "State", no_choice, "gone"),
        ):
            told(path, label, said, address)
        page.goto(tabs.at(dev, "/approvals?state=gone"))
        approving.says(page, "alert", "The address names a state of approvals that there is not")
        assert not page.get_by_role("link", name="Look and decide").count() and not page.locator(".tabs [aria-current]").count()
        page.goto(tabs.at(dev, "/activity?from=garbage&status=gone"))
        page.get_by_role("link", name="Show everything").click()
        page.get_by_role("link", name="First agent asks to pay").first.wait_for()
        fine = desk.api(dev, "actions?limit=1")["data"][0]["createdAt"][:10]
        page.goto(tabs.at(dev, f"/activity?from={fine}&to={fine}"))
        page.get_by_role("link", name="First agent asks to pay").first.wait_for()
    tabs.as_axe_sees_it(chromium, dev, cookie, ["/activity?from=garbage&status=gone", "/ledger?kind=gone", "/deliveries?kind=gone&state=gone", "/spend?period=own&from=garbage"])
    desk.api(dev, f"approvals/{decision['approval']['id']}/deny", {})


def lowered_role(chromium, dev):
    """Nothing stays on the page of what a role that was lowered may not read."""
    decision = approving.ask(dev, 35_000)
    desk.api(dev, f"approvals/{decision['approval']['id']}/deny", {})
    made = desk.api(dev, "members", {"email": "lowered@example.com", "role": "auditor"})
    token = json.dumps({"token": made["signInLink"].split("token=")[1]}).encode()
    signed_in = person.browse(dev["baseUrl"] + "/api/sign-in/link", token, headers=approving.WRITES)[1]
    with tabs.console(chromium, dev, signed_in["set-cookie"].split(";")[0], "/activity") as page:
        payee = page.get_by_text("to Example Cloud").first
        payee.wait_for()
        with page.expect_response("**/events"):
            desk.api(dev, f"members/{made['principalId']}", {"role": "analyst"}, "PATCH")
        payee.wait_for(state="detached")
        page.get_by_role("cell", name="EUR\u00a0350.00").wait_for()
        left = page.locator("body").text_content()
        assert not any(it in left for it in ("Example Cloud", "First agent", "yearly plan")), left
        page.goto(at(dev, "/agents"))
        page.get_by_text("Your role here, analyst, does not reach this page.").wait_for()


def somebody_else(chromium, dev, cookie):
    """Whoever signs in in another window changes nothing by what stands open in this one, and sees nothing of it."""
    admin = approving.invited(dev, "admin")
    with tabs.console(chromium, dev, cookie, "/keys") as page:

        def become(somebody):
            name, value = somebody.split("=", 1)
            page.context.add_cookies([{"name": name, "value": value, "url": dev["baseUrl"]}])

        page.get_by_role("button", name="New key").click()
        dialog = tabs.opened(page, "New key")
        dialog.get_by_label("Label").fill("Of the owner")
        become(admin)
        dialog.get_by_role("button", name="Make a key").click()
        approving.says(page, "alert", "You are signed in as admin@example.com now.")
        assert not page.get_by_role("dialog").count(), "what was typed is not there for another"
        assert not [it for it in desk.api(dev, "keys")["data"] if it["label"] == "Of the owner"]
        become(cookie)
        ends_and_begins(page)
        approving.says(page, "alert", "You are signed in as owner@localhost now.")
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="Agents").first.click()
        tabs.heading(page, "Agents")
        assert not page.get_by_role("alert").count()


def let_in_again(chromium, dev, cookie):
    """A session that a workspace did not take for a while has a live line again; meanwhile that is said."""
    with tabs.console(chromium, dev, cookie) as page:
        page.get_by_text(NOTHING_WAITS).wait_for()
        for path in ("**/events", "**/settings"):
            page.route(path, lambda it: it.fulfill(**BARRED))
        ends_and_begins(page)
        heading(page, "This workspace does not take your session")
        for path in ("**/events", "**/settings"):
            page.unroute(path)
        with page.expect_response("**/events"):
            page.get_by_role("button", name="Try again").click()
        page.get_by_text(NOTHING_WAITS).wait_for()
        decision = approving.ask(dev, 36_000)
        page.get_by_role("heading", name="First agent asks to pay").wait_for()
        desk.api(dev, f"approvals/{decision['approval']['id']}/deny", {})
        page.get_by_text(NOTHING_WAITS).wait_for()
        page.clock.install()
        page.route("**/events", lambda it: it.fulfill(**BARRED))
        ends_and_begins(page)
        for _ in range(10):
            page.clock.fast_forward(2_000)
        page.get_by_text(INTERRUPTED).wait_for()
        page.unroute("**/events")
        with page.expect_response("**/events"):
            page.clock.fast_forward(60_000)
        page.get_by_text(INTERRUPTED).wait_for(state="detached")


def sign_out_that_fails(chromium, dev, cookie):
    """Signing out says where it was not done."""
    with tabs.console(chromium, dev, cookie) as page:
        page.get_by_text(NOTHING_WAITS).wait_for()
        page.route("**/api/sign-out", lambda it: it.abort())
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("button", name="Sign out").click()
        approving.says(page, "alert", "The server did not answer, so it is not known whether this was done.")
        busy = {"error": {"type": "not_ready", "message": "the server is busy"}}
        page.route("**/api/sign-out", lambda it: it.fulfill(status=503, json=busy, headers={"retry-after": "3"}))
        page.get_by_role("button", name="Sign out").click()
        approving.says(page, "alert", "The server is busy. Try again in 3 s.")


def comes_back(page, to):
    """Waits until one is led down to where one was."""
    to.wait_for()
    box = "it => it.getBoundingClientRect().top > 0 && it.getBoundingClientRect().bottom < innerHeight && scrollY > 0"
    page.wait_for_function(box, arg=to.element_handle())


def long_list(chromium, dev, cookie):
    """An event leaves the reader of a long list where they are, with all that they have asked for; what it names is true beyond
    the first parts too. The last part leads on to its first item."""
    decision = approving.ask(dev, 37_000)
    one = approving.read(dev, decision)
    items = [{**one, "kind": "owner", "id": f"apv_{it:026}", "summary": f"Owner {it}", "subject": {}} for it in range(320)]
    items[260]["id"] = one["id"]

    def answer(route):
        wish = dict(it.split("=", 1) for it in route.request.url.split("?")[1].split("&"))
        ids, cursor = [it["id"] for it in items], wish.get("cursor", "")
        begin = ids.index(cursor) if cursor else 0
        end = begin + int(wish["limit"])
        route.fulfill(json={"data": items[begin:end], "nextCursor": ids[end] if end < len(ids) else None})

    with tabs.console(chromium, dev, cookie, "/stop") as page:
        page.get_by_text("Nothing is held.").wait_for()
        page.route("**/approvals?*", answer)
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="Approvals").click()
        for many in range(2, 7):
            page.get_by_role("button", name="Show more").click()
            page.locator(f".items > li:nth-child({many * PART})").wait_for()
        reader = page.get_by_role("link", name="Owner 280 000280", exact=True)
        reader.focus()
        before = reader.bounding_box()["y"]
        items[260] |= {"state": "denied", "decidedBy": "policy", "decidedAt": one["createdAt"]}
        items[3]["summary"] = "Changed 3"
        desk.api(dev, f"approvals/{one['id']}/deny", {})
        page.locator(".items > li:nth-child(261)").get_by_text("Denied", exact=True).wait_for()
        page.get_by_role("link", name="Changed 3 000003", exact=True).wait_for()
        assert page.locator(".items > li").count() == 6 * PART, "nothing that was asked for goes"
        reader.and_(page.locator(":focus")).wait_for()
        assert abs(reader.bounding_box()["y"] - before) < 60, (reader.bounding_box(), before)
        page.get_by_role("button", name="Show more").click()
        page.get_by_role("link", name="Owner 300 000300", exact=True).and_(page.locator(":focus")).wait_for()
        assert page.locator(".items > li").count() == 320
        reader.click()
        page.wait_for_url("**/approvals/apv_*")
        page.go_back()
        comes_back(page, reader)
        assert page.locator(".items > li").count() == 320, "whoever comes back finds all that they had asked for"


def not_among_those_shown(chromium, dev, cookie):
    """A name that no agent among those shown has is looked for among the older ones."""
    for n in range(26):
        desk.api(dev, "agents", {"name": f"Newer {n}", "principalEmail": "owner@localhost"})
    with tabs.console(chromium, dev, cookie, "/agents") as page:
        found = page.get_by_label("Find by name", exact=True)
        found.fill("Newer 25")
        page.get_by_role("status").get_by_text("The newest 25 agents were looked at; there are older ones.").wait_for()
        found.fill("First agent")
        page.get_by_role("status").get_by_text("1 shown", exact=True).wait_for(state="attached")
        page.get_by_role("link", name="First agent").click()
        page.get_by_role("heading", name="First agent", level=1).wait_for()
        page.go_back()
        page.get_by_role("link", name="First agent").wait_for()
        assert found.input_value() == "First agent", "what was looked for is kept through the way back"
        found.fill("Nobody has this")
        page.get_by_text("No agent has this in its name.").wait_for()
        many = len(desk.api(dev, "agents?limit=500")["data"])
        page.get_by_role("status").get_by_text(f"All {many} agents were looked at.").wait_for()
        found.fill("")
        page.get_by_role("button", name="Show more").click()
        last = page.get_by_role("link", name="First agent")
        last.click()
        page.get_by_role("heading", name="First agent", level=1).wait_for()
        assert page.evaluate("scrollY") == 0, "a page begins at its top"
        page.go_back()
        comes_back(page, last)
        page.go_forward()
        page.get_by_role("heading", name="First agent", level=1).wait_for()
        assert page.evaluate("scrollY") == 0, "and so it does on the way forward"


def looked_for_in_parts(chromium, dev, cookie):
    """Older agents are looked through a part at a time, and it is said how far; after many it is asked whether to go on, and what of
    them was found is shown a few at once."""
    like = desk.api(dev, "agents?limit=500")["data"][-1]
    asked = []

    def part(route):
        n = int((urllib.parse.parse_qs(urllib.parse.urlsplit(route.request.url).query).get("cursor") or ["0"])[0])
        asked.append(n)
        names = [f"Needle {k}" for k in range(30)] if n == 11 else [f"Hay {n}-{k}" for k in range(500)]
        data = [{**like, "id": like["id"][:-6] + f"{n * 500 + k:06d}", "name": name} for k, name in enumerate(names)]
        route.fulfill(json={"data": data, "nextCursor": str(n + 1) if n < 11 else None})

    with tabs.console(chromium, dev, cookie) as page:
        page.route("**/agents?limit=500*", part)
        page.goto(at(dev, "/agents"))
        told = page.get_by_role("status")
        page.get_by_label("Find by name").fill("needle")
        told.get_by_text("The newest 5,000 agents were looked at; there are older ones.").wait_for()
        page.get_by_text("None so far has this in its name.").wait_for()
        assert asked == list(range(10)), asked
        page.get_by_role("button", name="Look further").click()
        page.get_by_role("link", name="Needle 24").wait_for()
        assert asked == list(range(12)) and not page.get_by_role("link", name="Needle 25").count(), asked
        page.get_by_role("button", name="Show more").click()
        page.get_by_role("link", name="Needle 29").wait_for()
        assert not page.get_by_role("button", name="Show more").count()
        page.get_by_label("Find by name").fill("hay 3-7")
        page.get_by_role("link", name="Hay 3-7", exact=True).wait_for()
        assert asked == list(range(12)), "what was looked through once is not read again"
        page.get_by_label("Find by name").fill("nobody")
        told.get_by_text("All 5,530 agents were looked at.").wait_for()


def looked_for_beyond(chromium, dev, cookie):
    """Budgets and models are looked for beyond those that are shown, which are a part of them here."""
    budget = desk.api(dev, "budgets", {"scope": {"kind": "workspace"}, "amount": 1_000_000, "period": "month"})
    model = desk.api(dev, "models?limit=500")["data"][0]

    def page_of(shown, behind):
        def answer(route):
            is_next = "cursor=" in route.request.url
            route.fulfill(json={"data": behind if is_next else shown, "nextCursor": None if is_next else "1"})

        return answer

    def like(of, n, **more):
        return {**of, "id": of["id"][:-6] + f"{n:06d}", **more}

    over_agents = [like(budget, n, scope={"kind": "agent", "id": f"agt_{n:026d}"}) for n in range(100)]
    named = [{**model, "id": f"near-{n}"} for n in range(100)]
    with tabs.console(chromium, dev, cookie) as page:
        page.route("**/budgets?*", page_of(over_agents, [budget]))
        page.goto(at(dev, "/budgets"))
        page.get_by_label("Over", exact=True).select_option("workspace")
        page.get_by_role("heading", name="The whole workspace").wait_for()
        page.get_by_label("Used", exact=True).select_option("yes")
        page.get_by_text("No budget is like this.").wait_for()
        page.get_by_role("status").get_by_text("All 101 budgets were looked at.").wait_for()
        page.route("**/models?*", page_of(named, [{**model, "id": "far-away"}]))
        page.goto(at(dev, "/models"))
        page.get_by_label("Find by name", exact=True).fill("far-away")
        page.get_by_role("button", name=f"{model['provider']}/far-away").wait_for()


def more_than_are_offered(chromium, dev, cookie):
    """Where there are more agents than a filter offers, another one is named by its id, and then by its name."""
    first = next(it for it in desk.api(dev, "agents?limit=500")["data"] if it["name"] == "First agent")
    with tabs.console(chromium, dev, cookie) as page:
        browser.answer_with(page, "**/agents?limit=500", lambda it: it.update(nextCursor="more", data=it["data"][:2]))
        page.goto(at(dev, "/activity"))
        page.get_by_label("Or an older one, by its id").fill(first["id"])
        page.keyboard.press("Tab")
        page.wait_for_url(f"**/activity?agentId={first['id']}")
        chosen = page.get_by_label("Agent", exact=True)
        chosen.locator("option:checked").get_by_text("First agent").wait_for(state="attached")
        chosen.select_option(label="Every agent")
        page.wait_for_url("**/activity")
        page.goto(at(dev, "/applications"))
        page.get_by_role("button", name="Ask for something").click()
        dialog = opened(page, "Ask for something")
        dialog.get_by_label("What").select_option(label="Another tier")
        dialog.get_by_label("Or one that is not offered, by its id").fill(f" {first['id']} ")
        dialog.get_by_label("Tier").select_option(label="Trusted: less is asked about")
        dialog.get_by_label("Why").filter(visible=True).fill("It has grown up")
        dialog.get_by_role("button", name="Ask for it").click()
        dialog.wait_for(state="detached")
    assert desk.api(dev, "applications")["data"][0]["target"] == first["id"]


def on_half_a_screen(chromium, dev, cookie, agent):
    """No page scrolls sideways on a screen of 640 pixels, which is one of 1,280 at twice the size."""
    action = desk.api(dev, "actions?limit=1")["data"][0]["id"]
    with tabs.console(chromium, dev, cookie) as page:
        page.set_viewport_size({"width": 640, "height": 700})
        for path in [f"/{it}" for it in tabs.PAGES] + [f"/agents/{agent}", f"/activity/{action}", "/approvals?state=all"]:
            page.goto(at(dev, path))
            page.locator("h1").wait_for()
            page.locator(".loading").first.wait_for(state="detached")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 640, (path, wide)
        page.set_viewport_size({"width": 360, "height": 640})


def page_that_is_not_there(chromium, dev, cookie):
    """An address below a page that has nothing below it, and one of no page, are told as that, and not as a matter of roles."""
    with tabs.console(chromium, dev, cookie, "/budgets/zzz") as page:
        heading(page, "There is no such page")
        assert "Your role" not in page.inner_text("main"), page.inner_text("main")
        page.get_by_role("main").get_by_role("link", name="Budgets").click()
        heading(page, "Budgets")
        assert page.url == at(dev, "/budgets"), page.url


def largest_amount(chromium, dev, cookie, agent):
    """The largest amount that there is fits a small phone."""
    decision = approving.ask(dev, 2**53 - 1, "JPY")
    with tabs.console(chromium, dev, cookie) as page:
        for path, width in itertools.product((f"/agents/{agent}", f"/activity/{decision['id']}", "/activity", "/approvals"), (340, 360)):
            page.set_viewport_size({"width": width, "height": 640})
            page.goto(at(dev, path))
            page.get_by_text("9,007,199,254,740,991").first.wait_for()
            tabs.fits(page, path, width)
        page.set_viewport_size({"width": 360, "height": 640})
    desk.api(dev, f"approvals/{decision['approval']['id']}/deny", {})


def slash_after_it(chromium, dev, cookie):
    """An address with a slash after it leads to the page."""
    with tabs.console(chromium, dev, cookie, "/activity/?status=denied") as page:
        heading(page, "Activity")
        assert page.url == at(dev, "/activity?status=denied"), page.url
        page.goto(at(dev, "/"))
        heading(page, "Approvals")
        assert page.url == at(dev), page.url


def zone_of_the_workspace(chromium, dev, cookie):
    """The page of an approval tells times in the workspace's zone and names it, wherever its reader is."""
    desk.api(dev, "settings", {"timezone": "Asia/Tokyo"}, "PUT")
    decision = approving.ask(dev, 38_000)
    with approving.phone(chromium, [cookie], dev["baseUrl"], timezone_id="America/New_York") as page:
        page.goto(decision["approval"]["url"])
        expires = page.locator("#expires")
        expires.filter(has_text="GMT+9").wait_for()
        shown = page.evaluate("(at) => new Date(at).toLocaleTimeString('en-GB', { timeZone: 'Asia/Tokyo', timeStyle: 'short' })", approving.read(dev, decision)["expiresAt"])
        assert shown in expires.inner_text(), (shown, expires.inner_text())
        desk.api(dev, f"approvals/{decision['approval']['id']}/deny", {})
    desk.api(dev, "settings", {"timezone": "UTC"}, "PUT")


def as_axe_sees_what_is_outside(chromium, dev, cookie, port):
    """No page outside the frame has a fault that axe finds, in either scheme: signing in, the reference, an approval in each state,
    the question whether a client may act."""
    axe = (pathlib.Path(os.environ["SVC_NODE_HOME"]) / "node_modules/axe-core/axe.min.js").read_text()
    look = "async () => (await axe.run()).violations.map((it) => [it.id, it.nodes.map((node) => [node.html, node.failureSummary])])"
    decisions = {it: approving.ask(dev, 39_000 + place) for place, it in enumerate(("waiting", "approve", "deny"))}
    for word in ("approve", "deny"):
        desk.api(dev, f"approvals/{decisions[word]['approval']['id']}/{word}", {"note": "As agreed"})
    base, wrong = dev["baseUrl"], []
    question = browser.question(base, port)
    nowhere = base + approving.PATH.format(dev["workspaceId"])
    approvals = [it["approval"]["url"] for it in decisions.values()]
    signed_in = ["/sign-in", "/docs", "/docs/errors", "/nowhere", f"/w/{dev['workspaceId']}/nowhere", *approvals, nowhere, question]
    for scheme in ("light", "dark"):
        for cookies, addresses in (([], ["/sign-in", question, approvals[0]]), ([cookie], signed_in)):
            # What looks at the page is no part of it, so the page's policy is not asked about it.
            with approving.phone(chromium, cookies, base, color_scheme=scheme, bypass_csp=True) as page:
                for address in addresses:
                    page.goto(address if "://" in address else base + address)
                    page.locator("h1").first.wait_for()
                    page.wait_for_load_state("networkidle")
                    page.evaluate(axe)
                    wrong += [(scheme, bool(cookies), address, it) for it in page.evaluate(look)]
    desk.api(dev, f"approvals/{decisions['waiting']['approval']['id']}/deny", {})
    assert not wrong, wrong


def test_the_console_stays_true():
    with browser.browsing() as (dev, chromium), browser.calling_back() as port:
        cookie = browser.sign_in(chromium, dev["signInLink"])
        person.COOKIES[dev["baseUrl"]] = cookie
        agent = dev["agentId"]
        changed_meanwhile(chromium, dev, cookie)
        not_read(chromium, dev, cookie)
        unreadable_filters(chromium, dev, cookie)
        lowered_role(chromium, dev)
        somebody_else(chromium, dev, cookie)
        let_in_again(chromium, dev, cookie)
        sign_out_that_fails(chromium, dev, cookie)
        long_list(chromium, dev, cookie)
        on_half_a_screen(chromium, dev, cookie, agent)
        slash_after_it(chromium, dev, cookie)
        page_that_is_not_there(chromium, dev, cookie)
        largest_amount(chromium, dev, cookie, agent)
        zone_of_the_workspace(chromium, dev, cookie)
        not_among_those_shown(chromium, dev, cookie)
        looked_for_in_parts(chromium, dev, cookie)
        looked_for_beyond(chromium, dev, cookie)
        more_than_are_offered(chromium, dev, cookie)
        as_axe_sees_what_is_outside(chromium, dev, cookie, port)
