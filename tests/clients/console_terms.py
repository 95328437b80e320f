"""A real browser at the console where people grant, decide and limit: what a mandate, an application or a budget says is there
whole and right before somebody decides on it, what is wrong with it is said at its field, and nobody's change is lost.
"""

import json

import approving
import browser
import desk
import person
import tabs
from tabs import fits_at_twice, is_text, opened

ACTIONS = [f"crm.act{it}" for it in range(8)]
TOOLS = [f"server/tool{it}" for it in range(15)]
ENDS = "2031-12-30T20:30:00Z"
IN_TOKYO, IN_ST_JOHNS = "ends on 31 Dec 2031, 05:30:00 GMT+9", "ends on 30 Dec 2031, 17:00:00 GMT-3:30"


def applied(dev, cookie, kind, change, reason, target=None):
    """Asks for something as somebody else."""
    body = json.dumps({"kind": kind, "change": change, "reason": reason, **({"target": target} if target else {})}).encode()
    address = f"{dev['baseUrl']}/api/w/{dev['workspaceId']}/applications"
    status, _, text = person.browse(address, body, cookie, approving.WRITES)
    assert status == 201, (status, text)
    return json.loads(text)["id"]


def holds(scope, entries):
    """All of these are seen there."""
    text = scope.inner_text()
    assert not [it for it in entries if it not in text], text


def whole(chromium, dev, cookie, member):
    """Nothing that is asked for or in force is left out: a long list may be folded, and stands open where somebody decides."""
    wide = {"name": "Wide", "actions": ACTIONS, "tools": {"allow": TOOLS}, "fields": {"allow": [approving.WICKED[:100]]}, "expiresAt": ENDS}
    agent = desk.api(dev, "agents", {"name": "Wide agent", "principalEmail": "member@example.com", "mandates": [wide]})["id"]
    desk.api(dev, "templates", {"name": "wide", "mandate": wide})
    applied(dev, member, "mandate", wide, "For the mandate", agent)
    applied(dev, member, "agent", {"name": "Another", "principalEmail": "member@example.com", "mandates": [wide]}, "For the agent")
    desk.api(dev, "settings", {"timezone": "Asia/Tokyo"}, "PUT")
    with tabs.console(chromium, dev, cookie, f"/agents/{agent}") as page:
        item = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Wide", exact=True))
        item.get_by_text(IN_TOKYO).wait_for()
        holds(item, ACTIONS)
        item.locator("summary").focus()
        page.keyboard.press("Enter")
        item.get_by_text(TOOLS[-1]).wait_for()
        holds(item, TOOLS)
        is_text(page, "a long list")
        fits_at_twice(page, "a long list")
        item.get_by_role("button", name="Versions").click()
        versions = opened(page, "Versions")
        versions.get_by_text(IN_TOKYO).wait_for()
        holds(versions, ACTIONS)
        page.goto(tabs.at(dev, "/agents?new"))
        dialog = opened(page, "New agent")
        dialog.locator(".field").filter(has_text="server/tool14").wait_for()
        holds(dialog, [*ACTIONS, *TOOLS, IN_TOKYO])
        page.goto(tabs.at(dev, "/templates"))
        item = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="wide", exact=True))
        item.get_by_text(IN_TOKYO).wait_for()
        holds(item, [*ACTIONS, "only 15 tools"])
        desk.api(dev, "settings", {"timezone": "America/St_Johns"}, "PUT")
        page.goto(tabs.at(dev, "/applications"))
        for reason in ("For the mandate", "For the agent"):
            item = page.get_by_role("listitem").filter(has_text=reason)
            item.get_by_text(IN_ST_JOHNS).wait_for()
            holds(item, [*ACTIONS, "only 15 tools"])
            item.get_by_role("button", name="Approve").click()
            dialog = opened(page, "Approve this application?")
            dialog.get_by_text(IN_ST_JOHNS).wait_for()
            holds(dialog, [*ACTIONS, *TOOLS])
            is_text(page, reason)
            fits_at_twice(page, reason)
            dialog.get_by_role("button", name="Cancel").click()
            dialog.wait_for(state="detached")
    with tabs.console(chromium, dev, member, "/applications") as page:
        page.get_by_role("button", name="Ask for something").click()
        dialog = opened(page, "Ask for something")
        dialog.get_by_label("Mandate").select_option("wide")
        dialog.get_by_text(IN_ST_JOHNS).wait_for()
        holds(dialog, [*ACTIONS, *TOOLS])
    desk.api(dev, "settings", {"timezone": None}, "PUT")

    def opening(page, path):
        item = page.get_by_role("listitem").filter(has_text="only 15 tools").first
        item.locator("summary").click()
        if path == "/applications":
            item.get_by_role("button", name="Approve").click()
            opened(page, "Approve this application?").get_by_text(TOOLS[-1]).wait_for()

    tabs.as_axe_sees_it(chromium, dev, cookie, (f"/agents/{agent}", "/applications"), opening=opening)


def whole_terms(chromium, dev, cookie):
    """A class of tasks, as a policy profile, names every law that calls are held to."""
    laws = ["at", "be", "ch", "de", "es", "fr", "it", "pt"]
    desk.api(dev, "task-classes", {"id": "held", "jurisdictions": laws})
    with tabs.console(chromium, dev, cookie, "/models/classes") as page:
        page.get_by_text(f"only under the law of {', '.join(laws)}").wait_for()


def raises(chromium, dev, cookie, member):
    """More of a budget is asked for and told with what the budget is over and has, and with how long that holds."""
    made = {it: desk.api(dev, "budgets", {"scope": {"kind": "agent", "id": dev["agentId"]}, "amount": 5_000_000, "period": it}) for it in ("total", "month")}
    for period, budget in made.items():
        applied(dev, member, "budget_raise", {"amountMicros": 9_500_000, "note": "It ran dry"}, f"Once a {period}", budget["id"])
    with tabs.console(chromium, dev, cookie, "/applications") as page:
        for period, has, until in (("total", "in all", "for good: this budget has no end"), ("month", "this month", "for the period that runs")):
            item = page.get_by_role("listitem").filter(has_text=f"Once a {period}")
            item.get_by_text(f"The budget over Agent First agent has USD\u00a05.00 {has}, of which USD\u00a00.00 are spent.").wait_for()
            item.get_by_text(f"To USD\u00a09.50 in all, {until}.").wait_for()
            item.get_by_role("button", name="Approve").click()
            dialog = opened(page, "Approve this application?")
            dialog.get_by_text(f"To USD\u00a09.50 in all, {until}.").wait_for()
            fits_at_twice(page, period)
            dialog.get_by_role("button", name="Approve it").click()
            dialog.wait_for(state="detached")
        page.get_by_role("link", name="All", exact=True).click()
        page.get_by_role("link", name="Agent First agent").first.click()
        tabs.heading(page, "Budgets")
        page.get_by_text("Raised for good; without that it has USD\u00a05.00.").wait_for()
        page.get_by_text("Raised for this period; USD\u00a05.00 after it.").wait_for()
    applied(dev, member, "budget_raise", {"amountMicros": 10_000_000}, "Unread", made["total"]["id"])
    with tabs.console(chromium, dev, member, "/applications") as page:
        page.get_by_text("To USD\u00a010.00 in all, until its period ends, or for good where it has no end.").wait_for()


def told_meanwhile(dialog, told):
    """What somebody else has changed is told before it is replaced, and replaced by who looks and saves again."""
    dialog.get_by_role("button", name="Save").click()
    approving.says(dialog, "alert", "Somebody else has changed the same meanwhile.")
    for it in told:
        dialog.locator(".note").get_by_text(it, exact=True).wait_for()


def two_tabs(chromium, dev, cookie):
    """Of a budget, an agent, a class of tasks and a team, nobody's change replaces another's that they have not seen."""
    me = next(it["principalId"] for it in desk.api(dev, "members")["data"] if it["email"] == "owner@localhost")
    other = next(it["principalId"] for it in desk.api(dev, "members")["data"] if it["email"] == "member@example.com")
    budget = "budgets/" + desk.api(dev, "budgets", {"scope": {"kind": "workspace"}, "amount": 5_000_000, "period": "week"})["id"]
    agent = "agents/" + desk.api(dev, "agents", {"name": "Shared agent", "principalEmail": "owner@localhost"})["id"]
    desk.api(dev, "task-classes", {"id": "shared", "minQuality": 20})
    team = "teams/" + desk.api(dev, "teams", {"name": "Shared team"})["id"]
    with tabs.console(chromium, dev, cookie, "/budgets") as page:
        page.get_by_role("button", name="Change the budget over The whole workspace").click()
        dialog = opened(page, "Change this budget")
        dialog.get_by_label("Amount (USD)").fill("50")
        dialog.get_by_label("Nudge").fill("70")
        steps = [{"at": 10, "step": "nudge"}, {"at": 90, "step": "stop"}]
        desk.api(dev, budget, {"amount": 1_000_000, "ladder": steps, "owner": other}, "PATCH")
        told_meanwhile(dialog, ("USD\u00a01.00", "Nudge at 10 %, Stop at 90 %"))
        assert desk.api(dev, budget)["amount"] == 1_000_000, "nothing was sent"
        fits_at_twice(page, budget)
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
        now = desk.api(dev, budget)
        assert (now["amount"], now["ladder"][1]["at"], now["owner"]) == (50_000_000, 70, other), now
        page.goto(tabs.at(dev, "/" + agent))
        page.get_by_role("button", name="Change", exact=True).click()
        dialog = opened(page, "Change this agent")
        dialog.get_by_label("Name").fill("Mine")
        dialog.get_by_label("Kill owner").select_option(me)
        desk.api(dev, agent, {"name": "Theirs", "killOwner": other, "tier": "restricted"}, "PATCH")
        told_meanwhile(dialog, ("Theirs", "member@example.com"))
        assert desk.api(dev, agent)["name"] == "Theirs", "nothing was sent"
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
        now = desk.api(dev, agent)
        assert (now["name"], now["killOwner"], now["tier"]) == ("Mine", me, "restricted"), now
        page.goto(tabs.at(dev, "/models/classes"))
        page.get_by_role("button", name="Change shared").click()
        dialog = opened(page, "Change this class of tasks")
        dialog.get_by_label("Quality at least").fill("60")
        dialog.get_by_label("Only under the law of").fill("ch")
        desk.api(dev, "task-classes/shared", {"minQuality": 80, "humanOversight": True}, "PATCH")
        told_meanwhile(dialog, ("quality at least 80 of 100", "a person oversees what comes of it"))
        assert desk.api(dev, "task-classes/shared")["minQuality"] == 80, "nothing was sent"
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
        now = desk.api(dev, "task-classes/shared")
        assert (now["minQuality"], now["jurisdictions"], now["humanOversight"]) == (60, ["ch"], True), now
        page.goto(tabs.at(dev, "/team?tab=teams"))
        page.get_by_role("button", name="Change Shared team").click()
        dialog = opened(page, "Change a team")
        dialog.get_by_label("Name").fill("Mine")
        dialog.get_by_label("Answers for it").select_option(me)
        desk.api(dev, team, {"name": "Theirs", "owner": other}, "PATCH")
        told_meanwhile(dialog, ("Theirs", "member@example.com"))
        assert desk.api(dev, team)["name"] == "Theirs", "nothing was sent"
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
        now = desk.api(dev, team)
        assert (now["name"], now["owner"]) == ("Mine", me), now


def said_at(dialog, label, text):
    """What is wrong is said at this field alone, and leads there."""
    field = dialog.locator(".field", has=dialog.page.get_by_label(label, exact=True))
    field.locator(".wrong").get_by_text(text, exact=True).wait_for()
    field.locator("[aria-invalid=true]:focus").wait_for()
    dialog.get_by_role("alert").get_by_text("Look at the fields that are marked.").wait_for()


def faults(page, dialog, submit):
    """What is wrong with the limits of a mandate, whatever it is part of, is said at their fields and by their labels."""
    number = "An amount is a number like 1250.00, in EUR, without commas or spaces."
    dialog.get_by_label("Actions", exact=True).fill("payment")
    for values, label, text in (
        ({}, "At most an action", "Fill in “At most an action” or “At most a period” where the mandate covers payments."),
        ({"At most an action": "1,50"}, "At most an action", number),
        ({"At most an action": "1.50", "Ask a person above": "x"}, "Ask a person above", number),
        ({"Ask a person above": "2"}, "Ask a person above", "Must not be above “At most an action”."),
        ({"Ask a person above": "0"}, "Ask a person above", "Must be an amount above zero."),
        ({"Ask a person above": "", "At most a period": "1 000"}, "At most a period", number),
    ):
        for name, value in values.items():
            dialog.get_by_label(name, exact=True).fill(value)
        dialog.get_by_role("button", name=submit).click()
        said_at(dialog, label, text)
        assert dialog.locator(".wrong").count() == 1, dialog.inner_text()
    fits_at_twice(page, submit)
    page.reload()


def at_their_fields(chromium, dev, cookie, member):
    """Faults of a mandate are at its fields where it is granted, asked for, a template or a new agent's, and those of dollars too."""
    budget = desk.api(dev, "budgets", {"scope": {"kind": "workspace"}, "amount": 5_000_000, "period": "day"})["id"]
    with tabs.console(chromium, dev, cookie, f"/agents/{dev['agentId']}") as page:
        page.get_by_role("button", name="Grant a mandate").click()
        dialog = opened(page, "Grant a mandate")
        dialog.get_by_label("Name").fill("Faulty")
        faults(page, dialog, "Grant it")
        page.goto(tabs.at(dev, "/templates"))
        page.get_by_role("button", name="New template").click()
        dialog = opened(page, "New template")
        dialog.get_by_label("Name of the template").fill("faulty")
        faults(page, dialog, "Make it")
        page.goto(tabs.at(dev, "/agents?new"))
        dialog = opened(page, "New agent")
        dialog.get_by_label("Name", exact=True).fill("Faulty")
        dialog.get_by_role("button", name="Add a mandate of its own wording").click()
        dialog.get_by_label("Name", exact=True).nth(1).fill("Faulty")
        faults(page, dialog, "Make the agent")
        page.goto(tabs.at(dev, "/budgets"))
        page.get_by_role("button", name="New budget").click()
        dialog = opened(page, "New budget")
        dialog.get_by_label("Amount (USD)").fill("0")
        dialog.get_by_role("button", name="Make the budget").click()
        said_at(dialog, "Amount (USD)", "Must be above zero.")
    with tabs.console(chromium, dev, member, "/applications") as page:
        for kind in ("A mandate", "A new agent"):
            page.get_by_role("button", name="Ask for something").click()
            dialog = opened(page, "Ask for something")
            dialog.get_by_label("What", exact=True).select_option(label=kind)
            # What was typed for another choice stays beside it, and is not seen.
            form = dialog.locator("form").filter(visible=True)
            form.get_by_label("Mandate", exact=True).select_option("own")
            form.get_by_label("Actions", exact=True).wait_for()
            for name in form.get_by_label("Name", exact=True).all():
                name.fill("Faulty")
            form.get_by_label("Why", exact=True).fill("To see")
            faults(page, form, "Ask for it")
        page.get_by_role("button", name="Ask for something").click()
        dialog = opened(page, "Ask for something")
        dialog.get_by_label("What", exact=True).select_option(label="More of a budget")
        form = dialog.locator("form").filter(visible=True)
        form.get_by_label("Budget", exact=True).fill(budget)
        form.get_by_label("Why", exact=True).fill("To see")
        for text, told in (("1,50", "An amount of US dollars is a number like 250.00, without commas or spaces."), ("0", "Must be above zero.")):
            form.get_by_label("To so many dollars").fill(text)
            form.get_by_role("button", name="Ask for it").click()
            said_at(form, "To so many dollars", told)


def as_read(chromium, dev, cookie, member):
    """A change of a mandate is approved as it was read: one that somebody has changed meanwhile is shown anew first."""
    old = {"name": "Old", "actions": ["crm.read"]}
    agent = desk.api(dev, "agents", {"name": "Asked agent", "principalEmail": "member@example.com", "mandates": [old]})["id"]
    mandate = desk.api(dev, f"agents/{agent}/mandates")["data"][0]["id"]
    applied(dev, member, "mandate", {"actions": ["crm.read", "crm.write"], "confirmBroaden": True}, "For writing", mandate)
    with tabs.console(chromium, dev, cookie, "/applications") as page:
        item = page.get_by_role("listitem").filter(has_text="For writing")
        item.get_by_role("button", name="Approve").click()
        dialog = opened(page, "Approve this application?")
        dialog.get_by_text("As it is asked for").wait_for()
        dialog.get_by_text("Whoever asked has confirmed").wait_for()
        desk.api(dev, f"mandates/{mandate}", {"name": "Newer"}, "PATCH")
        dialog.get_by_role("button", name="Approve it").click()
        approving.says(dialog, "alert", "Nothing is approved: the mandate has changed since you looked.")
        dialog.get_by_text("Newer").first.wait_for()
        assert desk.api(dev, f"mandates/{mandate}")["actions"] == ["crm.read"]
        dialog.get_by_role("button", name="Approve it").click()
        dialog.wait_for(state="detached")
    assert desk.api(dev, f"mandates/{mandate}")["actions"] == ["crm.read", "crm.write"]


def granted_as_read(chromium, dev, cookie):
    """What a template grants is what was read of it, to an agent and to a new one; entries that hold commas stay what they are."""
    desk.api(dev, "templates", {"name": "quiet", "mandate": {"actions": ["tool.call"], "tools": {"deny": ["pay, now"]}}})
    agent = desk.api(dev, "agents", {"name": "Quiet agent", "principalEmail": "owner@localhost"})["id"]

    def loosened(tool):
        desk.api(dev, "templates/quiet", {"mandate": {"actions": ["tool.call"], "tools": {"deny": ["pay, now", tool]}}}, "PATCH")

    with tabs.console(chromium, dev, cookie, f"/agents/{agent}") as page:
        page.get_by_role("button", name="Grant a mandate").click()
        dialog = opened(page, "Grant a mandate")
        dialog.get_by_label("From").select_option("quiet")
        dialog.locator(".entry").get_by_text("pay, now", exact=True).wait_for()
        loosened("first")
        dialog.get_by_role("button", name="Grant it").click()
        approving.says(dialog, "alert", "Nothing was granted: the template quiet has changed since you looked.")
        dialog.locator(".entry").get_by_text("first", exact=True).wait_for()
        dialog.get_by_role("button", name="Grant it").click()
        dialog.wait_for(state="detached")
        item = page.locator("li.item").filter(has_text="never the tools")
        assert item.locator(".entry").all_inner_texts() == ["tool.call", "pay, now", "first"], item.inner_text()
        item.get_by_role("button", name="Change").click()
        dialog = opened(page, "Change a mandate")
        never = dialog.get_by_label("Never these tools")
        never.fill(never.input_value() + "\nsecond, third")
        dialog.get_by_role("button", name="Put it in force").click()
        dialog.wait_for(state="detached")
        mandate = desk.api(dev, f"agents/{agent}/mandates")["data"][0]
        assert mandate["tools"]["deny"] == ["pay, now", "first", "second", "third"], mandate
        page.goto(tabs.at(dev, "/agents?new"))
        dialog = opened(page, "New agent")
        dialog.get_by_label("Name", exact=True).fill("Quiet too")
        dialog.get_by_label("quiet").check()
        loosened("other")
        dialog.get_by_role("button", name="Make the agent").click()
        approving.says(dialog, "alert", "the template quiet has changed since you looked.")
        dialog.locator(".entry").get_by_text("other", exact=True).wait_for()
        assert not [it for it in desk.api(dev, "agents")["data"] if it["name"] == "Quiet too"]
        dialog.get_by_role("button", name="Make the agent").click()
        opened(page, "The agent's key").wait_for()


def two_tabs_of_models(chromium, dev, cookie):
    """Of a provider and a model neither."""
    far = {"name": "far", "kind": "chat", "baseUrl": "https://far.invalid/v1", "apiKey": "not-a-secret-6789", "headers": {"x-team": "one"}}
    provider = desk.api(dev, "upstreams", far)["id"]
    prices = {"input": 1_000_000, "output": 2_000_000}
    for it in ("near", "wide"):
        desk.api(dev, "task-classes", {"id": it})
    desk.api(dev, "models", {"id": "shared", "upstreamId": provider, "prices": prices, "quality": 50, "retention": "days", "retentionDays": 30})
    with tabs.console(chromium, dev, cookie, "/models/providers") as page:
        page.get_by_role("button", name="Change far").click()
        dialog = opened(page, "Change this provider")
        dialog.get_by_label("Address").fill("https://mine.invalid/v1")
        dialog.get_by_label("Another key").fill("not-a-secret-mine")
        dialog.get_by_label("Between two tokens (ms)").fill("5000")
        dialog.get_by_label("Further headers").fill("x-team: mine")
        theirs = {"baseUrl": "https://theirs.invalid/v1", "apiKey": "not-a-secret-1234", "timeouts": {"idleMs": 7000}, "headers": {"x-team": "theirs <i>"}, "region": "north"}
        desk.api(dev, f"upstreams/{provider}", theirs, "PATCH")
        told_meanwhile(dialog, ("https://theirs.invalid/v1", "1234", "between tokens 7,000 ms", "x-team: theirs <i>"))
        assert desk.api(dev, f"upstreams/{provider}")["baseUrl"] == theirs["baseUrl"], "nothing was sent"
        is_text(page, "a provider")
        fits_at_twice(page, "a provider")
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
        now = desk.api(dev, f"upstreams/{provider}")
        mine = ("https://mine.invalid/v1", "mine", 5000, {"x-team": "mine"}, "north")
        assert (now["baseUrl"], now["keyHint"], now["timeouts"]["idleMs"], now["headers"], now["region"]) == mine, now
        page.goto(tabs.at(dev, "/models"))
        page.get_by_role("button", name="far/shared").click()
        opened(page, "Model").get_by_role("button", name="Change").click()
        dialog = opened(page, "Change this model")
        dialog.get_by_label("Input (USD)", exact=True).fill("3")
        dialog.get_by_label("Quality", exact=True).fill("90")
        dialog.get_by_label("Its provider keeps what is sent").select_option("none")
        dialog.get_by_label("For so many days").fill("")
        theirs = {"prices": {**prices, "input": 1_500_000, "perImage": 9}, "quality": {"near": 70, "wide": 20}, "retentionDays": 7, "enabled": False}
        desk.api(dev, "models/far/shared", theirs, "PATCH")
        told_meanwhile(dialog, ("USD\u00a01.50", "USD\u00a00.000009", "near: 70, wide: 20", "7"))
        assert desk.api(dev, "models/far/shared")["prices"]["input"] == 1_500_000, "nothing was sent"
        fits_at_twice(page, "a model")
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
        now = desk.api(dev, "models/far/shared")
        assert (now["prices"], now["quality"], now["retention"], now["enabled"]) == ({**prices, "input": 3_000_000}, 90, "none", False), now

    def opening(page, path):
        wide = page.viewport_size["width"]
        if path == "/models":
            page.get_by_role("button", name="far/shared").click()
            page.get_by_role("button", name="Change", exact=True).click()
            page.get_by_label("Quality", exact=True).fill("40")
            desk.api(dev, "models/far/shared", {"quality": wide // 20}, "PATCH")
        else:
            page.get_by_role("button", name="Change far").click()
            page.get_by_label("Region").fill("mine")
            desk.api(dev, f"upstreams/{provider}", {"region": f"at-{wide}"}, "PATCH")
        told_meanwhile(page.get_by_role("dialog"), ())
        page.get_by_role("dialog").locator(".note").wait_for()

    tabs.as_axe_sees_it(chromium, dev, cookie, ("/models/providers", "/models"), opening=opening)


def let_in(dev, agent, times):
    """A client of one name that a person lets act as an agent, so many times."""
    for _ in range(times):
        tabs.let_in({**dev, "agentId": agent})


def whole_lists(chromium, dev, cookie):
    """Every agent that is to be stopped is named before it is, every range of a token and every mandate of a connection's agent."""
    few, many = [f"203.0.113.{it}/32" for it in range(5)], [f"198.51.100.{it}/32" for it in range(20)]
    desk.api(dev, "service-tokens", {"name": "near", "scopes": ["agents:read"], "ipAllow": few})
    desk.api(dev, "service-tokens", {"name": "far", "scopes": ["agents:read"], "ipAllow": many})
    names = [approving.WICKED[:100], *(f"mandate {it}" for it in range(12))]
    agents = {}
    for name, own in (("Five ways", names[:5]), ("All ways", names)):
        mandates = [{"name": it, "actions": ["crm.update"]} for it in own]
        agents[name] = desk.api(dev, "agents", {"name": name, "principalEmail": "owner@localhost", "mandates": mandates})["id"]
        let_in(dev, agents[name], 1)
    for it in range(104):
        desk.api(dev, "agents", {"name": f"Fleet {it:03}", "principalEmail": "owner@localhost"})

    def opening(page, path):
        if path != "/stop":
            page.locator("summary").last.focus()
            page.keyboard.press("Enter")
            return
        page.get_by_label("Which").select_option("namePrefix")
        page.get_by_label("The beginning of the name").fill("Fleet ")
        page.get_by_role("button", name="Count them").click()
        opened(page, "Stop 104 agents?").get_by_text("Fleet 000").wait_for()

    with tabs.console(chromium, dev, cookie, "/keys?tab=tokens") as page:
        page.get_by_text("20 ranges", exact=True).wait_for()
        holds(page.get_by_role("row").filter(has_text="near"), few)
        opening(page, "/keys?tab=tokens")
        page.get_by_text(many[-1]).wait_for()
        holds(page.get_by_role("row").filter(has_text="far"), many)
        fits_at_twice(page, "ranges")
        page.goto(tabs.at(dev, "/connections"))
        page.get_by_text("by 13 mandates", exact=True).wait_for()
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name="Five ways"))
        row.get_by_text(names[4], exact=True).wait_for()
        holds(row, names[1:5])
        opening(page, "/connections")
        page.get_by_text(names[12], exact=True).wait_for()
        holds(page.get_by_role("row").filter(has=page.get_by_role("link", name="All ways")), names[1:])
        is_text(page, "mandates of a connection")
        fits_at_twice(page, "mandates of a connection")
        page.goto(tabs.at(dev, "/stop"))
        opening(page, "/stop")
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("The first 100 of 104 agents").wait_for()
        tabs.press(page, "Show the other 4")
        dialog.get_by_text("104 agents", exact=True).wait_for()
        dialog.locator("summary:focus").wait_for()
        holds(dialog, [f"Fleet {it:03}" for it in range(104)])
        assert dialog.get_by_role("listitem").count() == 104, "nobody else is meant"
        fits_at_twice(page, "agents to stop")
        dialog.get_by_role("button", name="Cancel").click()
        everybody = len(desk.api(dev, "agents?limit=500")["data"])
        page.get_by_label("Which").select_option("all")
        page.get_by_role("button", name="Count them").click()
        dialog = opened(page, f"Stop {everybody} agents?")
        dialog.get_by_role("button", name="Show the other").click()
        dialog.get_by_text(f"{everybody} agents", exact=True).wait_for()
        assert dialog.get_by_role("listitem").count() == everybody
    tabs.as_axe_sees_it(chromium, dev, cookie, ("/keys?tab=tokens", "/connections", "/stop"), opening=opening)


def connections_apart(chromium, dev, cookie):
    """Connections of one client are told apart by ear, and the one that is meant is told once more and ended."""
    agent = desk.api(dev, "agents", {"name": "Twice let in", "principalEmail": "owner@localhost"})["id"]
    let_in(dev, agent, 3)

    def of_agent():
        return [it for it in desk.api(dev, "connections")["data"] if it["agentId"] == agent and it["state"] == "active"]

    ids = [it["id"] for it in of_agent()]
    begun = dict(zip(ids, ("2026-11-20T10:20:30.100Z", "2026-11-20T10:20:30.900Z", "2026-11-20T10:20:31.000Z"), strict=True))

    def answer(body):
        for it in body["data"]:
            it["createdAt"] = begun.get(it["id"], it["createdAt"])

    with tabs.console(chromium, dev, cookie) as page:
        browser.answer_with(page, "**/api/w/*/connections?*", answer)
        page.goto(tabs.at(dev, f"/connections?agentId={agent}"))
        same = [f"20 Nov 2026, 10:20:30 UTC, id …{it[-6:]}" for it in ids[:2]]
        for since in (*same, "20 Nov 2026, 10:20:31 UTC"):
            page.get_by_role("button", name=f"End {browser.NAME} as Twice let in, let in {since}", exact=True).wait_for()
        assert page.locator("tbody tr").evaluate_all("all => all.every(it => it.scrollWidth <= it.clientWidth)"), "rows hold what they say"
        fits_at_twice(page, "connections of one client")
        tabs.press(page, f"End {browser.NAME} as Twice let in, let in {same[1]}")
        dialog = opened(page, "End this connection?")
        dialog.get_by_text(same[1], exact=True).wait_for()
        is_text(page, "a connection that is to end")
        fits_at_twice(page, "a connection that is to end")
        tabs.press(page, "End it")
        dialog.wait_for(state="detached")
        assert [it["id"] for it in of_agent()] == [ids[0], ids[2]]
        # One that is alone of its name is called by that.
        tabs.press(page, f"End {browser.NAME} as Twice let in, let in 20 Nov 2026, 10:20:31 UTC")
        opened(page, "End this connection?").get_by_role("button", name="End it").click()
        page.get_by_role("button", name=f"End {browser.NAME}", exact=True).wait_for()


def test_what_people_decide_on_is_said_whole():
    with browser.browsing() as (dev, chromium):
        cookie, member = person.sign_in(dev), approving.invited(dev, "member")
        whole(chromium, dev, cookie, member)
        whole_terms(chromium, dev, cookie)
        raises(chromium, dev, cookie, member)
        two_tabs(chromium, dev, cookie)
        at_their_fields(chromium, dev, cookie, member)
        as_read(chromium, dev, cookie, member)
        granted_as_read(chromium, dev, cookie)
        two_tabs_of_models(chromium, dev, cookie)
        whole_lists(chromium, dev, cookie)
        connections_apart(chromium, dev, cookie)
