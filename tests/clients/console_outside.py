"""A real browser at the console's pages of integrations and deliveries, applications, templates, connections and MCP servers: what
is shown is what the server has, each change takes effect, and nobody is offered what their role may not do.
"""

import copy
import json
import urllib.parse

import approving
import browser
import tabs
import desk
import person
from console_ledger import EVIL, verdict
from room import Room, outside, signed, tool

PATHS = ("/ledger", "/deliveries", "/applications", "/templates", "/connections", "/mcp-servers", "/integrations")


def issuer(chromium, dev, cookie):
    """A kind is set up by keyboard, its secret shown once and good; rotated, turned off and removed, each as it says."""
    body = b'{"type":"something.else","id":"evt_%d"}'
    number = iter(range(100))

    def send(secret):
        said = body % next(number)
        headers = {"content-type": "application/json", **signed(secret, said)}
        return person.browse(f"{dev['baseUrl']}/hooks/issuer/{dev['workspaceId']}", said, headers=headers)[0]

    def shown(page, title):
        dialog = tabs.opened(page, title)
        secret = dialog.locator(".secret code").first.inner_text()
        tabs.press(page, "I have kept it")
        dialog.wait_for(state="detached")
        assert secret not in page.content(), "it is shown this once"
        return secret

    with tabs.console(chromium, dev, cookie, "/integrations") as page:
        page.get_by_role("heading", name="Card issuer").wait_for()
        tabs.press(page, "Set up Card issuer")
        tabs.opened(page, "Set up: Card issuer")
        page.keyboard.type("short")
        page.keyboard.press("Enter")
        page.locator("[aria-invalid=true]").and_(page.locator(":focus")).wait_for()
        page.keyboard.press("Control+A")
        page.keyboard.press("Delete")
        page.keyboard.press("Enter")
        first = shown(page, "Card issuer: the secret")
        assert send(first) == 200 and send("whsec_" + "x" * 30) == 401
        tabs.press(page, "Card issuer")
        page.get_by_role("heading", name="Card issuer", level=1).wait_for()
        page.get_by_text("now", exact=True).or_(page.get_by_text(" s ago")).first.wait_for()
        assert not page.get_by_role("button", name="Try it out").count(), "the other side sends"
        tabs.press(page, "Rotate the secret")
        tabs.opened(page, "Rotate the secret?")
        page.keyboard.press("Control+A")
        page.keyboard.type("200")
        page.keyboard.press("Enter")
        page.locator("[aria-invalid=true]").and_(page.get_by_label("Hours")).wait_for()
        page.keyboard.press("Control+A")
        page.keyboard.type("2")
        page.keyboard.press("Enter")
        second = shown(page, "The new secret")
        secrets = page.get_by_role("region", name="Secrets").get_by_role("rowheader")
        secrets.nth(1).wait_for()
        assert secrets.count() == 2
        assert send(first) == send(second) == 200
        tabs.press(page, "Turn off")
        tabs.press(page, "Turn it off")
        page.get_by_text("Off", exact=True).wait_for()
        assert send(second) == 401
        tabs.press(page, "Turn on")
        tabs.press(page, "Turn it on")
        page.get_by_text("Works", exact=True).wait_for()
        assert send(second) == 200
        tabs.press(page, "Remove")
        tabs.opened(page, "Remove this integration?")
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
        page.keyboard.press("Enter")
        tabs.opened(page, "Remove this integration?")
        tabs.press(page, "Remove it")
        page.get_by_role("button", name="Set up Card issuer").wait_for()
        assert send(second) == 401


def room(chromium, dev, cookie, address):
    """A room is tried out with what came of it; what could not be delivered is tried again; its address is changed."""
    with tabs.console(chromium, dev, cookie, "/integrations") as page:
        page.get_by_role("button", name="Set up Room of a chat").click()
        dialog = tabs.opened(page, "Set up: Room of a chat")
        dialog.get_by_label("Address").fill("nowhere")
        dialog.get_by_role("button", name="Set it up").click()
        dialog.locator(".field", has=page.get_by_label("Address")).locator(".wrong").wait_for()
        dialog.get_by_label("Address").fill(f"{address}/one")
        dialog.get_by_role("button", name="Set it up").click()
        page.get_by_role("button", name="I have kept it").click()
        page.get_by_role("link", name="Room of a chat").click()
        Room.status = 500
        page.get_by_role("button", name="Try it out").click()
        tabs.opened(page, "Try it out").get_by_role("button", name="Try it").click()
        page.get_by_role("region", name="What came of trying it out").get_by_text("Given up").wait_for()
        page.get_by_text("Failing").wait_for()
        Room.status = 200
        page.get_by_role("link", name="Its deliveries").click()
        tabs.heading(page, "Deliveries")
        assert page.get_by_label("Kind").input_value() == "chat"
        page.get_by_role("button", name="Try again").click()
        page.get_by_text("Delivered", exact=True).and_(page.locator(".badge")).wait_for()
        page.get_by_label("State").select_option("failed")
        page.get_by_text("Nothing of this kind.").wait_for()
        page.get_by_role("link", name="Show everything").click()
        page.get_by_role("link", name="Rooms").click()
        page.get_by_role("cell", name="200").wait_for()
        page.go_back()
        page.goto(tabs.at(dev, "/integrations"))
        page.get_by_role("link", name="Room of a chat").click()
        page.get_by_role("button", name="Change").click()
        dialog = tabs.opened(page, "Change: Room of a chat")
        assert dialog.get_by_label("Address").input_value() == f"{address}/one"
        dialog.get_by_label("Address").fill(f"{address}/two")
        dialog.get_by_role("button", name="Save").click()
        page.get_by_text(f"{address}/two").wait_for()


def trouble(chromium, dev, cookie, address):
    """What fails does not read as working before anything is given up for good, and does again once a call goes well."""
    Room.status = 500
    path = "integrations/" + desk.api(dev, "integrations", {"kind": "export", "config": {"url": f"{address}/export"}})["id"]
    for Room.status, came, word in ((500, "Given up", "Has trouble"), (200, "Delivered", "Works")):
        with tabs.console(chromium, dev, cookie, f"/{path}") as page:
            page.get_by_role("button", name="Try it out").click()
            tabs.opened(page, "Try it out").get_by_role("button", name="Try it").click()
            page.get_by_role("region", name="What came of trying it out").get_by_text(came).wait_for()
            page.locator("h1 .badge", has_text=word).wait_for()
            page.goto(tabs.at(dev, "/integrations"))
            page.get_by_role("row").filter(has_text="Export of the ledger").locator(".badge", has_text=word).wait_for()
    looked_after(chromium, dev, cookie, path)
    desk.api(dev, path, {"enabled": False}, "PATCH")


def looked_after(chromium, dev, cookie, path):
    """What comes of calls is seen on a page that stays open, although no event tells of one that is tried again; a page that nobody
    has touched for long asks for nothing."""
    with tabs.console(chromium, dev, cookie, f"/{path}") as one, tabs.console(chromium, dev, cookie, "/integrations") as all_of_them:
        marks = [one.locator("h1 .badge"), all_of_them.get_by_role("row").filter(has_text="Export of the ledger").locator(".badge")]
        for status, word in ((500, "Has trouble"), (200, "Works")):
            Room.status = status
            desk.api(dev, f"{path}/test", {})
            for mark in marks:
                mark.filter(has_text=word).wait_for()
    with tabs.console(chromium, dev, cookie, "/integrations") as page:
        page.clock.install()
        # A line that comes again has the page read all of it again.
        page.route("**/events", lambda it: it.abort())
        page.reload()
        page.get_by_role("link", name="Export of the ledger").wait_for()
        page.clock.fast_forward(31 * 60_000)
        page.wait_for_load_state("networkidle")
        asked = []
        page.on("request", lambda it: asked.append(it.url) if "integrations?" in it.url else None)
        page.clock.run_for(60_000)
        assert not asked, asked
        page.keyboard.press("Tab")
        with page.expect_request("**/integrations?*"):
            page.clock.run_for(20_000)


def who_is_who(chromium, dev, cookie):
    """People are named by their address, and whoever is not a member is told; what is sent is the member's id."""
    with tabs.console(chromium, dev, cookie, "/integrations") as page:
        page.get_by_role("button", name="Set up Relay").click()
        dialog = tabs.opened(page, "Set up: Relay of a team chat")
        dialog.get_by_label("Who is who").fill("ann@chat = nobody@example.com")
        dialog.get_by_role("button", name="Set it up").click()
        approving.says(dialog, "alert", "No member of this workspace has the address nobody@example.com.")
        dialog.get_by_label("Who is who").fill("ann@chat = owner@localhost\n\nben = admin@example.com")
        with page.expect_request(lambda it: it.method == "POST") as sent:
            dialog.get_by_role("button", name="Set it up").click()
        linked = sent.value.post_data_json["config"]["members"]
        assert set(linked) == {"ann@chat", "ben"} and all(it.startswith("prp_") for it in linked.values()), linked
        page.get_by_role("button", name="I have kept it").click()
        page.get_by_role("link", name="Relay").click()
        page.get_by_role("region", name="Configuration").get_by_text("ann@chat").wait_for()


def others_links(chromium, dev, cookie):
    """Whom somebody else has taken out of who is who stays out, and what was not touched is not sent."""
    relay = next(it for it in desk.api(dev, "integrations")["data"] if it["kind"] == "relay")
    path, ann = f"integrations/{relay['id']}", relay["config"]["members"]["ann@chat"]
    with tabs.console(chromium, dev, cookie, "/" + path) as page:
        page.get_by_role("button", name="Change").click()
        dialog = tabs.opened(page, "Change: Relay of a team chat")
        dialog.get_by_role("button", name="Save").click()
        approving.says(dialog, "alert", "Nothing is changed yet.")
        wish = dialog.get_by_label("Who is who")
        wish.fill(wish.input_value() + "\ncat = owner@localhost")
        desk.api(dev, path, {"config": {"members": {"ann@chat": ann}}}, "PATCH")
        dialog.get_by_role("button", name="Save").click()
        approving.says(dialog, "alert", "Somebody else has changed the same meanwhile.")
        assert "ben" not in dialog.locator(".note").inner_text(), dialog.inner_text()
        assert desk.api(dev, path)["config"]["members"] == {"ann@chat": ann}
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
    assert desk.api(dev, path)["config"]["members"] == {"ann@chat": ann, "cat": ann}, "ben stays out"


def mailed(chromium, dev, cookie):
    """Everybody is mailed where that was chosen, not where a list became empty; whoever is not listed here stays named."""
    everybody = {it["email"]: it["principalId"] for it in desk.api(dev, "members")["data"]}
    owner, admin = everybody["owner@localhost"], everybody["admin@example.com"]
    relay = next(it for it in desk.api(dev, "integrations")["data"] if it["kind"] == "relay")
    # This server sends no mail: what one that does would answer.
    mail = relay | {"kind": "mail", "config": {"to": [owner, admin]}}

    def answer(route):
        if route.request.method == "PATCH":
            mail["config"] |= route.request.post_data_json["config"]
        route.fulfill(json=mail)

    with tabs.console(chromium, dev, cookie) as page:
        page.route(f"**/integrations/{mail['id']}", lambda it: answer(it) if "/api/" in it.request.url else it.fallback())
        browser.answer_with(page, "**/members?limit=500", lambda it: it.update(data=[one for one in it["data"] if one["principalId"] != admin]))
        page.goto(tabs.at(dev, f"/integrations/{mail['id']}"))
        page.get_by_role("button", name="Change").click()
        dialog = tabs.opened(page, "Change: Mail")
        dialog.get_by_text("1 other who cannot be listed here stays").wait_for()
        dialog.get_by_label("owner@localhost").uncheck()
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
        assert mail["config"]["to"] == [admin], "whoever was not offered stays"
        page.unroute("**/members?limit=500")
        page.get_by_role("button", name="Change").click()
        dialog = tabs.opened(page, "Change: Mail")
        dialog.get_by_label("admin@example.com").first.uncheck()
        dialog.get_by_role("button", name="Save").click()
        approving.says(dialog, "alert", "Choose whom to mail, or everybody who may decide.")
        dialog.get_by_label("Mailed are").select_option("all")
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
    assert mail["config"]["to"] == []


def templates(chromium, dev, cookie):
    """A template is made, changed and removed; its faults are at their fields."""
    with tabs.console(chromium, dev, cookie, "/templates") as page:
        page.get_by_role("heading", name="coding-agent").wait_for()
        tabs.press(page, "New template")
        dialog = tabs.opened(page, "New template")
        page.keyboard.type(EVIL[:60])
        dialog.get_by_label("Actions", exact=True).fill("payment\n*")
        dialog.get_by_label("At most an action").fill("40.50")
        tabs.press(page, "Make it")
        dialog.locator(".field", has=page.get_by_label("Actions", exact=True)).locator(".wrong").wait_for()
        dialog.get_by_label("Actions", exact=True).fill("payment")
        tabs.press(page, "Make it")
        dialog.wait_for(state="detached")
        item = page.get_by_role("listitem").filter(has_text="<img src=x")
        item.get_by_text("up to EUR\u00a040.50 an action").wait_for()
        item.get_by_role("button", name="Change").click()
        dialog = tabs.opened(page, "Change a template")
        assert dialog.get_by_label("At most an action").input_value() == "40.50"
        dialog.get_by_label("At most an action").fill("")
        dialog.get_by_label("At most a period").fill("900")
        own = next(it for it in desk.api(dev, "templates")["data"] if not it["builtIn"])
        changed = {"actions": ["payment"], "limits": {"currency": "EUR", "perAction": 7_000}}
        desk.api(dev, f"templates/{urllib.parse.quote(own['name'], safe='')}", {"mandate": changed}, "PATCH")
        dialog.get_by_role("button", name="Save").click()
        approving.says(dialog, "alert", "Somebody else has changed the same meanwhile.")
        dialog.locator(".note").get_by_text("up to EUR\u00a070.00 an action").wait_for()
        dialog.get_by_role("button", name="Save").click()
        item.get_by_text("up to EUR\u00a0900.00 a month").wait_for()
        assert "an action" not in item.inner_text(), "what is emptied is taken away"
        item.get_by_role("button", name="Remove").click()
        tabs.opened(page, "Remove this template?").get_by_role("button", name="Remove it").click()
        item.wait_for(state="detached")
        assert not page.get_by_role("listitem").filter(has_text="coding-agent").get_by_role("button").count()


def another_currency(chromium, dev, cookie):
    """An amount stays what it says where a template's currency is changed; what the other one has no digits for is refused as it stands."""
    limits = {"currency": "EUR", "perAction": 100_000, "askAbove": 1_050}
    desk.api(dev, "templates", {"name": "To Tokyo", "mandate": {"name": "To Tokyo", "actions": ["payment"], "limits": limits}})
    with tabs.console(chromium, dev, cookie, "/templates") as page:
        page.get_by_role("button", name="Change To Tokyo").click()
        dialog = tabs.opened(page, "Change a template")
        most, above = dialog.get_by_label("At most an action"), dialog.get_by_label("Ask a person above")
        for currency, shown in (("JPY", ("1000", "10.50")), ("BHD", ("1000.000", "10.500")), ("EUR", ("1000.00", "10.50")), ("JPY", ("1000", "10.50"))):
            dialog.get_by_label("Currency").fill(currency)
            assert (most.input_value(), above.input_value()) == shown, currency
        dialog.get_by_role("button", name="Save").click()
        dialog.locator(".field", has=page.get_by_label("Ask a person above")).locator(".wrong").get_by_text("in JPY").wait_for()
        above.fill("10")
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
    held = next(it for it in desk.api(dev, "templates")["data"] if it["name"] == "To Tokyo")["mandate"]["limits"]
    assert (held["currency"], held["perAction"], held["askAbove"]) == ("JPY", 1_000, 10), held


def applications(chromium, dev, cookie, member):
    """A member asks by keyboard; whoever may decides, and the change is made; one's own is not offered to decide."""
    with tabs.console(chromium, dev, member, "/applications") as page:
        page.get_by_text("Nothing waits.").wait_for()
        tabs.press(page, "Ask for something")
        dialog = tabs.opened(page, "Ask for something")
        for text in ("", "x", EVIL[:50]):
            dialog.get_by_label("Name").fill(text)
            if text == "x":
                dialog.get_by_label("Mandate").select_option("coding-agent")
                dialog.get_by_text("covers").first.wait_for()
            dialog.get_by_label("Why").fill("" if text != EVIL[:50] else "For trips")
            tabs.press(page, "Ask for it")
            if text == "":
                dialog.locator(".field", has=page.get_by_label("Name")).locator(".wrong").wait_for()
            elif text == "x":
                # The answer leads to the first field that is wrong; a letter typed before it would go there.
                dialog.locator("textarea:focus").and_(page.get_by_label("Why")).wait_for()
        dialog.wait_for(state="detached")
        page.get_by_role("heading", name="A new agent").wait_for()
        assert page.locator("li.item button").count() == page.get_by_role("button", name="Take it back").count() == 1, "nobody decides their own"
        for kind, name, value, reason in (("Another role", "Role", "analyst", "I count"), ("Another role", "Role", "auditor", "I read")):
            page.get_by_role("button", name="Ask for something").click()
            dialog = tabs.opened(page, "Ask for something")
            dialog.get_by_label("What").select_option(label=kind)
            dialog.get_by_label(name, exact=True).select_option(value)
            dialog.get_by_label("Why").filter(visible=True).fill(reason)
            dialog.get_by_role("button", name="Ask for it").click()
            page.get_by_role("listitem").filter(has_text=reason).wait_for()
        page.get_by_role("listitem").filter(has_text="I read").get_by_role("button").click()
        tabs.opened(page, "Take this application back?").get_by_role("button", name="Take it back").click()
        page.get_by_role("listitem").filter(has_text="I read").wait_for(state="detached")
    with tabs.console(chromium, dev, cookie, "/applications") as page:
        item = page.get_by_role("listitem").filter(has_text="I count")
        item.get_by_role("button", name="Deny").click()
        dialog = tabs.opened(page, "Deny this application?")
        dialog.get_by_label("Why not").fill("Ask Ben to")
        dialog.get_by_role("button", name="Deny it").click()
        item.wait_for(state="detached")
        item = page.get_by_role("listitem").filter(has_text="For trips")
        item.get_by_text("From the template coding-agent").wait_for()
        item.get_by_role("button", name="Approve").click()
        tabs.opened(page, "Approve this application?").get_by_role("button", name="Approve it").click()
        key = tabs.opened(page, "The agent's key").locator(".secret code").inner_text()
        page.get_by_role("button", name="I have kept it").click()
        assert tabs.asked(dev, key)["decision"] == "allow"
        page.get_by_role("link", name="All", exact=True).click()
        page.get_by_text("Note: Ask Ben to").wait_for()
        named = {it["name"]: it for it in desk.api(dev, "agents")["data"]}
        assert EVIL[:50] in named, list(named)
        agent = named[EVIL[:50]]
        desk.api(dev, "applications", {"kind": "tier", "target": agent["id"], "change": {"tier": "trusted"}, "reason": "mine"})
        page.goto(tabs.at(dev, "/applications"))
        page.get_by_text("somebody else has to decide").wait_for()
        assert not page.get_by_role("button", name="Approve").count()
        page.get_by_role("button", name="Take it back").wait_for()


def words_that_change(chromium, dev, cookie, member):
    """What is approved is what a template says at that moment, not what it said when somebody looked."""
    limits = {"currency": "EUR", "perAction": 4_050}
    desk.api(dev, "templates", {"name": "trips", "mandate": {"actions": ["payment"], "limits": limits}})
    change = {"name": "Traveller", "principalEmail": "member@example.com", "mandates": [{"template": "trips"}]}
    body = json.dumps({"kind": "agent", "reason": "For rails", "change": change}).encode()
    status, _, text = person.browse(f"{dev['baseUrl']}/api/w/{dev['workspaceId']}/applications", body, member, approving.WRITES)
    assert status == 201, (status, text)
    application = f"applications/{json.loads(text)['id']}"
    with tabs.console(chromium, dev, cookie, "/applications") as page:
        item = page.get_by_role("listitem").filter(has_text="For rails")
        item.get_by_text("up to EUR\u00a040.50 an action").wait_for()
        desk.api(dev, "templates/trips", {"mandate": {"actions": ["payment"], "limits": limits | {"perAction": 9_000}}}, "PATCH")
        item.get_by_role("button", name="Approve").click()
        dialog = tabs.opened(page, "Approve this application?")
        dialog.get_by_text("up to EUR\u00a090.00 an action").wait_for()
        assert "40.50" not in dialog.inner_text(), "it is read anew"
        desk.api(dev, "templates/trips", {"mandate": {"actions": ["payment"], "limits": limits | {"perAction": 90_000}}}, "PATCH")
        dialog.get_by_role("button", name="Approve it").click()
        approving.says(dialog, "alert", "Nothing is approved: a template has changed since you looked.")
        dialog.get_by_text("up to EUR\u00a090.00 an action").wait_for()
        dialog.get_by_text("up to EUR\u00a0900.00 an action").wait_for()
        assert desk.api(dev, application)["state"] == "waiting"
        dialog.get_by_role("button", name="Approve it").click()
        tabs.opened(page, "The agent's key")
        page.get_by_role("button", name="I have kept it").click()
    assert desk.api(dev, application)["state"] == "approved"


def connections(chromium, dev, cookie):
    """A client that was let in is there with what it may, and is refused once it is ended."""
    token = tabs.let_in(dev)
    with tabs.console(chromium, dev, cookie, "/connections") as page:
        row = page.get_by_role("row").filter(has_text=browser.NAME)
        row.get_by_text("First agent").wait_for()
        row.get_by_text("saas-subscriptions").wait_for()
        assert tabs.asked(dev, token)["decision"] == "allow"
        tabs.press(page, f"End {browser.NAME}")
        tabs.opened(page, "End this connection?")
        tabs.press(page, "End it")
        page.get_by_text("None of these.").wait_for()
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        assert person.browse(dev["baseUrl"] + "/v1/actions/authorize", b"{}", headers=headers)[0] == 401
        page.get_by_label("State").select_option("all")
        page.get_by_text(": revoked").wait_for()


def listed(dev, name):
    """The names of the tools that an agent is shown."""
    headers = {"authorization": f"Bearer {dev['agentKey']}", "content-type": "application/json", "accept": "application/json, text/event-stream"}
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
    status, _, text = person.browse(f"{dev['baseUrl']}/mcp/proxy/{name}", body, headers=headers)
    assert status == 200, (status, text)
    return [it["name"] for it in json.loads(text)["result"]["tools"]]


def servers(chromium, dev, cookie, address):
    """A server is added by keyboard; what waits of its tools is shown as it is told and accepted as it was looked at."""
    Room.tools = [tool("read_it", EVIL)]
    with tabs.console(chromium, dev, cookie, "/mcp-servers") as page:
        page.get_by_text("There is no server behind this one.").wait_for()
        tabs.press(page, "Add a server")
        dialog = tabs.opened(page, "Add an MCP server")
        page.keyboard.type("Rooms")
        page.keyboard.press("Tab")
        page.keyboard.type(address + "/mcp")
        page.keyboard.press("Enter")
        dialog.locator(".field", has=page.get_by_label("Name", exact=True)).locator(".wrong").wait_for()
        page.keyboard.press("Control+A")
        page.keyboard.type("rooms")
        dialog.get_by_label("Kind").select_option("bearer")
        dialog.get_by_label("Secret").fill("planted-behind-it")
        tabs.press(page, "Add it")
        tabs.heading(page, "rooms")
        page.get_by_text("Works", exact=True).wait_for()
        assert "planted" not in page.content() and listed(dev, "rooms") == ["read_it"]

        def told(change):
            """What waits, as the server would tell of it once it was asked again, which it is once a minute."""
            browser.answer_with(page, "**/mcp-servers/mcs_*", change)
            page.get_by_role("button", name="Look again").click()

        held = {"name": "read_it", "before": tool("read_it", "Reads."), "after": tool("read_it", EVIL), "diff": '  {\n-   "description": "Reads."\n+   "description": "%s"\n' % EVIL}
        told(lambda it: it.update(state="held", held=[held, copy.deepcopy(held) | {"name": "other", "before": None}, copy.deepcopy(held) | {"name": "third", "reason": "no action can have it"}]))
        page.get_by_role("heading", name="3 tools wait for a person").wait_for()
        item = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="read_it"))
        assert "\u2039U+202E\u203a" in item.inner_text() and item.locator(".added").count() == item.locator(".taken").count() == 1
        assert not page.locator("main img").count() and not page.get_by_role("button", name="Accept third").count()
        with page.expect_request("**/accept") as sent:
            item.get_by_role("button", name="Accept").click()
        server = desk.api(dev, "mcp-servers")["data"][0]
        assert sent.value.post_data_json == {"tools": ["read_it"], "toolsHash": server["toolsHash"]}, "as it was looked at"
        page.get_by_role("alert").first.wait_for()
        page.unroute("**/mcp-servers/mcs_*")
        page.get_by_role("button", name="Look again").click()
        page.get_by_text("Works", exact=True).wait_for()
        page.get_by_role("button", name="Change").click()
        dialog = tabs.opened(page, "Change this server")
        dialog.get_by_text("Which tools").click()
        dialog.get_by_label("Never these tools").fill("read_*")
        with page.expect_request(lambda it: it.method == "PATCH") as sent:
            dialog.get_by_role("button", name="Save").click()
        assert sent.value.post_data_json == {"tools": {"deny": ["read_*"]}}, "what is left as it was is not sent"
        page.get_by_text("Never the tools").wait_for()
        assert listed(dev, "rooms") == []
        page.get_by_role("button", name="Change").click()
        dialog = tabs.opened(page, "Change this server")
        dialog.get_by_label("Secret, to replace").fill("planted-anew")
        browser.answer_with(page, "**/mcp-servers/mcs_*", lambda it: it.update(url="https://elsewhere.example/mcp"))
        dialog.get_by_role("button", name="Save").click()
        approving.says(dialog, "alert", "Somebody else has changed the same meanwhile.")
        assert "https://elsewhere.example/mcp" in dialog.locator(".note").inner_text(), "a secret goes nowhere that was not seen"
        page.unroute("**/mcp-servers/mcs_*")
        dialog.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Turn off").click()
        tabs.opened(page, "Turn it off?").get_by_role("button", name="Turn it off").click()
        page.get_by_text("Off", exact=True).wait_for()
        page.get_by_role("button", name="Remove").click()
        tabs.opened(page, "Remove this server?").get_by_role("button", name="Remove it").click()
        page.get_by_text("There is no server behind this one.").wait_for()
    assert not desk.api(dev, "mcp-servers")["data"]


def waiting_tools(chromium, dev, cookie, address):
    """Tools of a server that did not answer when it was added wait, and agents see them once a person has accepted them."""
    made = desk.api(dev, "mcp-servers", {"name": "late", "url": address + "/none"})
    assert made["state"] == "unreachable", made
    Room.tools = [tool("one", "First."), tool("two", "Second.")]
    desk.api(dev, f"mcp-servers/{made['id']}", {"url": address + "/mcp"}, "PATCH")
    assert listed(dev, "late") == []
    with tabs.console(chromium, dev, cookie, f"/mcp-servers/{made['id']}") as page:
        page.get_by_role("heading", name="2 tools wait for a person").wait_for()
        page.get_by_role("button", name="Accept one").click()
        page.get_by_role("heading", name="1 tool waits for a person").wait_for()
        assert listed(dev, "late") == ["one"]
        tabs.press(page, "Accept two")
        page.get_by_text("Works", exact=True).wait_for()
        assert listed(dev, "late") == ["one", "two"]


def roles(chromium, dev, admin, member):
    """Each role is offered what it may do, and is told where it may not go."""
    with tabs.console(chromium, dev, admin, "/integrations") as page:
        page.get_by_text("An owner sets this up.").wait_for()
        assert not page.get_by_role("button", name="Set up Single sign-on").count()
    with tabs.console(chromium, dev, member, "/templates") as page:
        page.get_by_role("heading", name="coding-agent").wait_for()
        assert not page.locator("main button").count(), page.inner_text("main")
        for path in ("/ledger", "/integrations", "/deliveries", "/mcp-servers"):
            page.goto(tabs.at(dev, path))
            page.get_by_text("Your role here, member, does not reach this page.").wait_for()
        page.goto(tabs.at(dev, "/connections"))
        tabs.heading(page, "Connections")
        assert browser.NAME not in page.inner_text("main"), "those of others' agents are not theirs to see"
    with tabs.console(chromium, dev, approving.invited(dev, "auditor"), "/ledger") as page:
        page.get_by_role("link", name="Member joined").first.click()
        verdict(page, ("The checkpoint is signed", "Fits"))
        page.goto(tabs.at(dev, "/integrations"))
        page.get_by_text("Your role here, auditor, does not reach this page.").wait_for()


def as_axe_sees_it(chromium, dev, cookie, record):
    """No page has a fault that axe finds, in either scheme, on a phone or a desk, and none is too wide at twice the letters."""
    integration = desk.api(dev, "integrations")["data"][0]["id"]
    server = desk.api(dev, "mcp-servers")["data"][0]["id"]
    delivery = desk.api(dev, "deliveries")["data"][0]["id"]
    paths = [*PATHS, f"/ledger/{record}", f"/integrations/{integration}", f"/mcp-servers/{server}", f"/deliveries/{delivery}", "/applications?state=all"]
    tabs.as_axe_sees_it(chromium, dev, cookie, paths)
    with tabs.console(chromium, dev, cookie) as page:
        for path in paths:
            page.goto(tabs.at(dev, path))
            page.locator("h1").wait_for()
            page.locator(".loading").first.wait_for(state="detached")
            if path in ("/ledger", "/deliveries"):
                tabs.named_apart(page)
            tabs.fits_at_twice(page, path)


def test_the_console_connects_a_workspace():
    with browser.browsing("--allow-private-callbacks") as (dev, chromium), outside() as address:
        cookie = person.sign_in(dev)
        admin, member = approving.invited(dev, "admin"), approving.invited(dev, "member")
        issuer(chromium, dev, cookie)
        room(chromium, dev, cookie, address)
        trouble(chromium, dev, cookie, address)
        who_is_who(chromium, dev, cookie)
        others_links(chromium, dev, cookie)
        mailed(chromium, dev, cookie)
        templates(chromium, dev, cookie)
        another_currency(chromium, dev, cookie)
        applications(chromium, dev, cookie, member)
        words_that_change(chromium, dev, cookie, member)
        connections(chromium, dev, cookie)
        servers(chromium, dev, cookie, address)
        waiting_tools(chromium, dev, cookie, address)
        approving.ask(dev, 31_000, summary=EVIL)
        roles(chromium, dev, admin, member)
        record = desk.api(dev, "ledger?kind=action.asked")["data"][0]["id"]
        as_axe_sees_it(chromium, dev, cookie, record)
