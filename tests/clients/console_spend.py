"""A real browser at the console's pages of money and models: reports, calls, budgets, bills, the catalogue and its providers, classes,
profiles, routing and its preview; by the keyboard alone, on a phone's screen, in each role, with texts that want to mislead.
"""

import json
import pathlib
import tempfile

import approving
import browser
import tabs
import desk
import person
from tabs import at, edges_are_seen, fits_at_twice, fits_in_between, heading, is_text, opened, press

SPEND = ("/spend", "/spend/yield", "/spend/waste", "/spend/calls", "/spend/tasks", "/budgets", "/bills")
MODELS = ("/models", "/models/providers", "/models/classes", "/models/profiles", "/routing")
EVIL = "<img src=x onerror=alert(1)> \u202e" + "W" * 50


def called(dev, model="demo/demo-large", key=None, **headers):
    """A call of a model: the headers of its answer."""
    body = {"model": model, "messages": [{"role": "user", "content": "Say something."}], "max_tokens": 40}
    plain = {"authorization": f"Bearer {key or dev['inferenceKey']}", "content-type": "application/json"}
    status, answer, text = person.browse(dev["baseUrl"] + "/v1/chat/completions", json.dumps(body).encode(), headers=plain | headers)
    assert status == 200, (status, text)
    return answer


def field(scope, label):
    """What is said of a field, its fault included."""
    return scope.locator(".field", has=scope.page.get_by_label(label, exact=True)).locator(".wrong")


def empty(chromium, dev, cookie):
    """Where nothing was spent and nothing is limited, that is said, and what to do next."""
    with tabs.console(chromium, dev, cookie, "/spend") as page:
        page.get_by_text("Nothing was spent in this period.").wait_for()
        page.get_by_role("link", name="Calls", exact=True).click()
        page.get_by_text("No model was called yet.").wait_for()
        page.get_by_role("link", name="Waste", exact=True).click()
        page.get_by_text("No waste was found in this period.").wait_for()
        page.goto(at(dev, "/budgets"))
        page.get_by_text("There is no budget yet").wait_for()
        page.goto(at(dev, "/models/classes"))
        page.get_by_text("There is no class of tasks yet.").wait_for()


def spend(chromium, dev, cookie):
    """What calls cost is shown by day and by model, what came of them and what was wasted beside, each call with its price."""
    headers = [called(dev, it) for it in ("demo/demo-large", "demo/demo-large", "demo-messages/demo-small")]
    told = {"taskId": headers[0]["x-svc-task-id"], "status": "accepted"}
    key = {"authorization": f"Bearer {dev['inferenceKey']}", "content-type": "application/json"}
    assert person.browse(dev["baseUrl"] + "/v1/outcomes", json.dumps(told).encode(), headers=key)[0] == 200
    totals = desk.api(dev, "reports/spend")["totals"]
    with tabs.console(chromium, dev, cookie, "/spend") as page:
        page.get_by_role("img", name="What models cost").wait_for()
        cost = f"USD\u00a0{totals['costMicros'] / 1e6:.6f}".rstrip("0")
        assert cost in page.locator(".totals").inner_text(), (cost, page.locator(".totals").inner_text())
        assert page.locator("svg g").count() == int(desk.api(dev, "reports/spend")["rows"][0]["key"][8:]), "a bar a day so far"
        page.get_by_label("By", exact=True).select_option("model")
        page.get_by_role("row").filter(has_text="demo-messages/demo-small").wait_for()
        page.get_by_role("link", name="Yield", exact=True).click()
        page.get_by_text("1 of 1 reported").first.wait_for()
        beside = page.get_by_role("region", name="What agents did beside")
        beside.get_by_text("No agent asked for or settled anything in this period.").wait_for()
        shop = {"name": "Example Rail", "domain": "rail.example"}
        allowed, _ = (tabs.asked(dev, dev["agentKey"], "payment", payment={"amount": it, "currency": "EUR", "merchant": shop}) for it in (10_000, 31_000))
        headers = {"authorization": f"Bearer {dev['agentKey']}", "content-type": "application/json"}
        assert person.browse(f"{dev['baseUrl']}/v1/actions/{allowed['id']}/settle", b'{"status": "completed", "amount": 9000}', headers=headers)[0] == 200
        page.reload()
        beside.get_by_text("Left to a person").wait_for()
        counted = list(zip(beside.locator("dt").all_inner_texts(), beside.locator("dd").all_inner_texts(), strict=True))
        assert counted == [("Allowed by the rules", "1"), ("Left to a person", "1"), ("Settled as done", "1")], counted
        assert "Allowed were EUR\u00a0100.00; EUR\u00a090.00 count as paid." in beside.inner_text(), beside.inner_text()
        assert page.url.endswith("/spend/yield?by=model"), page.url
        page.get_by_role("link", name="Waste", exact=True).click()
        page.get_by_role("row").filter(has_text="Asked again").get_by_role("link", name="See the call").click()
        dialog = opened(page, "Call")
        dialog.get_by_text("What the provider counted, by the model's prices.").wait_for()
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        assert page.url == at(dev, "/spend/calls"), page.url
        page.get_by_role("link", name="Tasks", exact=True).click()
        page.get_by_role("table").get_by_text("Accepted").wait_for()
        page.goto(at(dev, "/spend?period=own&from=2026-01-01&to=2020-01-01"))
        page.get_by_text("The last day is before the first.").wait_for()
        approving.says(page, "alert", "Correct what is marked above: To.")
        page.get_by_label("Period", exact=True).select_option("")
        page.get_by_role("img", name="What models cost").wait_for()


def calls_found(chromium, dev, cookie):
    """From a report's row to its calls, by what they were on from there, and from a task to its own; what nothing is found by says so."""
    with tabs.console(chromium, dev, cookie, "/spend?by=model&period=7") as page:
        page.get_by_role("link", name="2 calls of demo/demo-large").click()
        rows = page.get_by_role("table", name="Calls, newest first").locator("tbody tr")
        page.get_by_role("button", name="Look again").wait_for()
        rows.nth(1).wait_for()
        assert rows.count() == 2 and "model=demo%2Fdemo-large" in page.url and "since=" in page.url, (rows.count(), page.url)
        page.get_by_label("End", exact=True).select_option("refused")
        page.get_by_text("Nothing of this kind.").wait_for()
        page.get_by_label("End", exact=True).select_option("done")
        rows.nth(1).wait_for()
        page.get_by_label("Model", exact=True).fill("demo-small")
        page.get_by_label("Model", exact=True).press("Enter")
        rows.filter(has_text="demo-messages/demo-small").first.wait_for()
        assert rows.count() == 1, rows.all_inner_texts()
        page.get_by_label("Model", exact=True).fill("no name")
        page.get_by_label("Model", exact=True).press("Enter")
        approving.says(page, "alert", "Correct what is marked above: Model.")
        page.get_by_role("link", name="Show everything").click()
        rows.nth(2).wait_for()
        assert "period=7" in page.url and "model=" not in page.url, page.url
        page.get_by_role("link", name="Tasks", exact=True).click()
        tasks = page.get_by_role("table").locator("tbody tr")
        tasks.nth(2).wait_for()
        page.get_by_label("Outcome", exact=True).select_option("accepted")
        page.wait_for_url("**outcome=accepted")
        tasks.nth(1).wait_for(state="detached")
        tasks.get_by_role("link", name="1 call of tsk_").click()
        rows.first.wait_for()
        assert rows.count() == 1 and page.get_by_label("Task", exact=True).input_value().startswith("tsk_"), page.url
        page.goto(at(dev, "/spend/calls?since=2026-01-02&until=2026-01-01"))
        page.get_by_text("The last day is before the first.").wait_for()


def budget_by_keyboard(chromium, dev, cookie):
    """A budget is made without a mouse; what is wrong is said at its field, and what it is used for beside its bar."""
    with tabs.console(chromium, dev, cookie, "/budgets") as page:
        page.get_by_text("There is no budget yet").wait_for()
        press(page, "New budget")
        dialog = opened(page, "New budget")
        press(page, "Make the budget")
        field(dialog, "Amount (USD)").wait_for()
        assert dialog.get_by_label("Amount (USD)").evaluate("it => it === document.activeElement")
        page.keyboard.type("0.001")
        dialog.get_by_label("Downgrade").fill("70")
        dialog.get_by_label("Downgrade").press("Enter")
        field(dialog, "Downgrade").get_by_text("Must be above the one before").wait_for()
        page.keyboard.press("Control+A")
        page.keyboard.type("95")
        page.keyboard.press("Enter")
        dialog.wait_for(state="detached")
        item = page.get_by_role("listitem").filter(has_text="The whole workspace").first
        item.get_by_text("Downgrade at 95 %").wait_for()
        made = desk.api(dev, "budgets")["data"][0]
        assert (made["amount"], made["period"], made["ladder"][2]) == (1000, "month", {"at": 95, "step": "downgrade"}), made
        page.get_by_text("The workspace is in shadow").wait_for()
        for _ in range(8):
            called(dev)
        page.reload()
        item.get_by_role("img", name="% used").wait_for()
        item.get_by_text("Used up").wait_for()
        return made["id"]


def budget_changes(chromium, dev, cookie, budget):
    """A budget is raised, changed and removed; what is left as it was is not sent."""
    with tabs.console(chromium, dev, cookie, "/budgets") as page:
        page.get_by_role("button", name="Raise").click()
        dialog = opened(page, "Raise this budget?")
        dialog.get_by_label("To, in all (USD)").fill("0.0005")
        dialog.get_by_role("button", name="Raise it").click()
        field(dialog, "To, in all (USD)").get_by_text("Must be above what is allotted now, USD").wait_for()
        dialog.get_by_label("To, in all (USD)").fill("5")
        dialog.get_by_role("button", name="Raise it").click()
        page.get_by_text("Raised for this period").wait_for()
        page.get_by_text("Within", exact=True).wait_for()
        assert desk.api(dev, f"budgets/{budget}")["allocationMicros"] == 5_000_000
        page.get_by_role("button", name="Change").click()
        dialog = opened(page, "Change this budget")
        assert dialog.get_by_label("Amount (USD)").input_value() == "0.001"
        dialog.get_by_label("Amount (USD)").fill("12.50")
        with page.expect_request(lambda it: it.method == "PATCH") as sent:
            dialog.get_by_role("button", name="Save").click()
        assert sent.value.post_data_json == {"amount": 12_500_000}, sent.value.post_data_json
        page.get_by_text("of USD\u00a012.50 this month").wait_for()
        page.get_by_role("button", name="Remove").click()
        opened(page, "Remove this budget?").get_by_role("button", name="Remove it").click()
        page.get_by_text("There is no budget yet").wait_for()
        assert desk.api(dev, "budgets")["data"] == []


def providers(chromium, dev, cookie):
    """A provider is made and its key never seen again, tested, changed with all that was sealed, and removed."""
    with tabs.console(chromium, dev, cookie, "/models/providers") as page:
        page.get_by_role("button", name="New provider").click()
        dialog = opened(page, "New provider")
        dialog.get_by_label("Name", exact=True).fill("Far Away")
        dialog.get_by_label("Address").fill("http://far.example")
        dialog.get_by_role("button", name="Make the provider").click()
        for label in ("Name", "Address", "Key"):
            field(dialog, label).wait_for()
        dialog.get_by_label("Name", exact=True).fill("far")
        dialog.get_by_label("Address").fill("https://127.0.0.1:9/v1")
        dialog.get_by_label("Key", exact=True).fill("not-a-secret-6789")
        dialog.get_by_text("Times and headers").click()
        dialog.get_by_label("Further headers").fill("x-token: Bearer sealed-1234")
        dialog.get_by_label("Between two tokens (ms)").fill("5000")
        with page.expect_response(lambda it: it.url.endswith("/upstreams") and it.request.method == "POST") as answer:
            dialog.get_by_role("button", name="Make the provider").click()
        if not answer.value.ok:
            # Where private addresses are no providers, an address that leads nowhere is one.
            dialog.get_by_label("Address").fill("https://far.invalid/v1")
            dialog.get_by_role("button", name="Make the provider").click()
        dialog.wait_for(state="detached")
        item = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="far", exact=False)).first
        item.get_by_text("x-token: …1234").wait_for()
        body = page.inner_text("body")
        assert "6789" in body and "not-a-secret" not in body and "sealed" not in body, body
        item.get_by_role("button", name="Test").click()
        item.get_by_text("It did not take this address and key").wait_for()
        item.get_by_role("button", name="Change").click()
        dialog = opened(page, "Change this provider")
        dialog.get_by_label("Under the law of").fill("EU")
        with page.expect_request(lambda it: it.method == "PATCH") as sent:
            dialog.get_by_role("button", name="Save").click()
        assert sent.value.post_data_json == {"jurisdiction": "eu"}, sent.value.post_data_json
        item.get_by_text("eu", exact=True).wait_for()
        demo = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="demo-messages"))
        demo.get_by_role("button", name="Test").click()
        demo.get_by_text("Address and key are right").wait_for()


def models(chromium, dev, cookie):
    """A model is made by the keyboard, found, priced to the micro, changed without losing prices that have no field, and removed."""
    with tabs.console(chromium, dev, cookie, "/models") as page:
        page.get_by_role("button", name="demo/demo-large").wait_for()
        press(page, "New model")
        dialog = opened(page, "New model")
        dialog.get_by_label("Provider", exact=True).select_option(label="far")
        dialog.get_by_label("Input (USD)", exact=True).fill("1,5")
        press(page, "Make the model")
        field(dialog, "Input (USD)").get_by_text("A price is a number like").wait_for()
        dialog.get_by_label("Input (USD)", exact=True).fill("1.5")
        dialog.get_by_label("Output (USD)", exact=True).fill("0.000001")
        dialog.get_by_text("Further prices").click()
        dialog.get_by_label("Steps, service tiers").fill('{"tiers": [{"aboveInputTokens": 9, "prices": {"input": 3}}]}')
        dialog.get_by_label("Id", exact=True).fill("own-model")
        dialog.get_by_role("button", name="Make the model").click()
        field(dialog, "Steps, service tiers, places and tools").wait_for()
        dialog.get_by_label("Steps, service tiers").fill('{"tiers": [{"aboveInputTokens": 9, "prices": {"input": 3, "output": 4}}]}')
        dialog.get_by_role("button", name="Make the model").click()
        dialog.wait_for(state="detached")
        row = page.get_by_role("row").filter(has_text="far/own-model")
        row.get_by_text("USD\u00a01.50 in").wait_for()
        row.get_by_role("button").click()
        opened(page, "Model").get_by_role("button", name="Change").click()
        dialog = opened(page, "Change this model")
        dialog.get_by_label("Quality", exact=True).fill("nothing")
        dialog.get_by_role("button", name="Save").click()
        field(dialog, "Quality").wait_for()
        dialog.get_by_label("Quality", exact=True).fill("90")
        dialog.get_by_label("Input (USD)", exact=True).fill("2")
        with page.expect_request(lambda it: it.method == "PATCH") as sent:
            dialog.get_by_role("button", name="Save").click()
        tiers = [{"aboveInputTokens": 9, "prices": {"input": 3, "output": 4}}]
        prices = sent.value.post_data_json["prices"]
        assert set(sent.value.post_data_json) == {"prices", "quality"}, sent.value.post_data_json
        assert (prices["input"], prices["output"], prices["tiers"]) == (2_000_000, 1, tiers), prices
        row.get_by_text("90").wait_for()
        row.get_by_role("button").click()
        opened(page, "Model").get_by_role("button", name="Remove").click()
        opened(page, "Remove this model?").get_by_role("button", name="Remove it").click()
        row.wait_for(state="detached")
        page.goto(at(dev, "/models/providers"))
        far = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="far", exact=False)).first
        far.get_by_role("button", name="Remove").click()
        opened(page, "Remove this provider?").get_by_role("button", name="Remove it").click()
        far.filter(has_text="x-token").wait_for(state="detached")
        demo = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="demo-messages"))
        demo.get_by_role("button", name="Remove").click()
        dialog = opened(page, "Remove this provider?")
        dialog.get_by_role("button", name="Remove it").click()
        dialog.get_by_role("alert").wait_for()


def terms(chromium, dev, cookie):
    """A class and a profile are made, changed and removed; what is emptied is taken away."""
    with tabs.console(chromium, dev, cookie, "/models/classes") as page:
        page.get_by_role("button", name="Make the first").click()
        dialog = opened(page, "New class of tasks")
        dialog.get_by_label("Id", exact=True).fill("Code review")
        dialog.get_by_label("Quality at least").fill("101")
        dialog.get_by_role("button", name="Make it").click()
        field(dialog, "Id").wait_for()
        field(dialog, "Quality at least (0 to 100)").wait_for()
        dialog.get_by_label("Id", exact=True).fill("code.review")
        dialog.get_by_label("Name", exact=True).fill(EVIL)
        dialog.get_by_label("Quality at least").fill("60")
        dialog.get_by_label("At most a call (USD)").fill("0.05")
        dialog.get_by_role("button", name="Make it").click()
        page.get_by_text("at most USD\u00a00.05 a call").wait_for()
        page.get_by_role("button", name="Change").click()
        dialog = opened(page, "Change this class of tasks")
        dialog.get_by_label("At most a call (USD)").fill("")
        with page.expect_request(lambda it: it.method == "PATCH") as sent:
            dialog.get_by_role("button", name="Save").click()
        assert sent.value.post_data_json == {"maxCostMicros": None}, sent.value.post_data_json
        page.get_by_text("at most USD").wait_for(state="detached")
        page.goto(at(dev, "/models/profiles"))
        page.get_by_role("button", name="Make the first").click()
        dialog = opened(page, "New policy profile")
        dialog.get_by_label("Name", exact=True).fill("Careful")
        dialog.get_by_label("Mode", exact=True).select_option("enforce")
        dialog.get_by_label("Only where nothing is kept").check()
        dialog.get_by_role("button", name="Make it").click()
        page.get_by_text("only where nothing is kept").wait_for()
        page.get_by_role("button", name="Remove").click()
        opened(page, "Remove this policy profile?").get_by_role("button", name="Remove it").click()
        page.get_by_text("There is no policy profile yet.").wait_for()


def routing(chromium, dev, cookie):
    """A preview says what would be chosen and what keeps the others out; the mode and the table of tools are changed, and go back."""
    with tabs.console(chromium, dev, cookie, "/routing") as page:
        page.get_by_text("Shadow", exact=True).wait_for()
        press(page, "Preview")
        plan = desk.api(dev, "route/preview", {})
        page.get_by_text(f"Chosen: {plan['provider']}/{plan['model']}").wait_for()
        page.get_by_text("the call would go to the model that it names all the same").wait_for()
        assert page.get_by_role("region", name="What would be chosen").evaluate("it => it === document.activeElement")
        page.get_by_label("Class of tasks").first.select_option("code.review")
        page.get_by_label("Tokens in").fill("200000")
        page.get_by_role("button", name="Preview").click()
        page.get_by_text("No model qualifies.").wait_for()
        row = page.get_by_role("row").filter(has_text="demo/demo-small")
        assert "takes less than is sent" in row.inner_text() and "not good enough" in row.inner_text(), row.inner_text()
        page.get_by_role("button", name="Change", exact=True).click()
        dialog = opened(page, "Change routing")
        dialog.get_by_label("Mode", exact=True).select_option("enforce")
        dialog.get_by_text("From the next call on, calls may be sent elsewhere").wait_for()
        dialog.get_by_label("Class of tasks, where").select_option("code.review")
        with page.expect_request(lambda it: it.method == "PUT") as sent:
            dialog.get_by_role("button", name="Put it in force").click()
        assert sent.value.post_data_json == {"mode": "enforce", "defaultTaskClass": "code.review"}, sent.value.post_data_json
        page.get_by_text("Enforce", exact=True).wait_for()
        assert called(dev, "demo/demo-small")["x-svc-routed-to"] == "demo/demo-large", "the class wants more than the small one"
        page.get_by_role("button", name="Change the table").click()
        dialog = opened(page, "Change the table")
        dialog.get_by_label("Table", exact=True).fill("send_mail = email sink\n* nothing")
        dialog.get_by_role("button", name="Put it in force").click()
        field(dialog, "Table").get_by_text("Line 2 is not of the form").wait_for()
        dialog.get_by_label("Table", exact=True).fill("send_mail = email sink\n" + "x" * 257 + " = web")
        dialog.get_by_role("button", name="Put it in force").click()
        field(dialog, "Table").get_by_text("xxx = web: must be 1 to 256 characters").wait_for()
        dialog.get_by_label("Table", exact=True).fill("send_mail = email sink\n* = tool")
        desk.api(dev, "routing", {"toolTable": [{"tool": "theirs", "source": "email"}]}, "PUT")
        dialog.get_by_role("button", name="Put it in force").click()
        dialog.get_by_text("Somebody else has changed the same meanwhile.").wait_for()
        dialog.locator(".note").get_by_text("theirs = email").wait_for()
        assert desk.api(dev, "routing")["toolTable"][0]["tool"] == "theirs"
        dialog.get_by_role("button", name="Put it in force").click()
        page.get_by_text("2 lines", exact=True).wait_for()
        assert desk.api(dev, "routing")["toolTable"][0] == {"tool": "send_mail", "source": "email", "sink": True}
        page.get_by_role("button", name="Back to the usual one").click()
        opened(page, "Go back to the usual table?").get_by_role("button", name="Go back to it").click()
        page.get_by_text("2 lines", exact=True).wait_for(state="detached")


def around_by_keyboard(chromium, dev, cookie):
    """Every page is reached and left without a mouse."""
    with tabs.console(chromium, dev, cookie) as page:
        heading(page, "Approvals")
        for name, tab in (("Spend", "Calls"), ("Budgets", None), ("Models", "Providers"), ("Routing", None)):
            press(page, "Menu")
            press(page, name)
            heading(page, name)
            if tab:
                press(page, tab)
                heading(page, tab)
            page.goto(page.url)
            heading(page, tab or name)


def roles(chromium, dev):
    """Whoever may only read is offered nothing else, whoever may not read is told so, and a budget's owner raises it."""
    cookie = approving.invited(dev, "analyst")
    me = person.browse(dev["baseUrl"] + "/api/me", cookie=cookie)[2]
    owner = json.loads(me)["workspaces"][0]["principalId"]
    desk.api(dev, "budgets", {"scope": {"kind": "workspace"}, "amount": 7_000_000, "period": "week", "owner": owner})
    desk.api(dev, "budgets", {"scope": {"kind": "agent", "id": dev["agentId"]}, "amount": 9_000_000, "period": "week"})
    with tabs.console(chromium, dev, cookie, "/budgets") as page:
        page.get_by_text("of USD\u00a09.00 this week").wait_for()
        offered = [" ".join(it.inner_text().split()) for it in page.locator("main").get_by_role("button").all()]
        assert offered == ["Raise the budget over The whole workspace, every week, USD 7.00"], offered
        page.get_by_role("button", name="Raise").click()
        dialog = opened(page, "Raise this budget?")
        dialog.get_by_label("To, in all (USD)").fill("8")
        dialog.get_by_role("button", name="Raise it").click()
        page.get_by_text("of USD\u00a08.00 this week").wait_for()
        for path in MODELS:
            page.goto(at(dev, path))
            page.locator("h1").wait_for()
            page.locator(".loading").first.wait_for(state="detached")
            offered = {it.inner_text() for it in page.locator("main").get_by_role("button").all()}
            assert not {it for it in offered if it.split(" ")[0] in ("New", "Make", "Change", "Remove", "Test", "Back", "Add")}, (path, offered)
    with tabs.console(chromium, dev, approving.invited(dev, "member"), "/spend") as page:
        page.get_by_text("What counts for you, and what your agents spend.").wait_for()
        assert not page.get_by_role("link", name="Waste").count()
        page.goto(at(dev, "/spend/waste"))
        page.get_by_text("your role does not reach it").wait_for()
        page.goto(at(dev, "/budgets"))
        page.get_by_text("Your role here, member, does not reach this page.").wait_for()
        page.goto(at(dev, "/models"))
        page.get_by_role("button", name="demo/demo-large").wait_for()
        assert not page.get_by_role("button", name="New model").count() and not page.get_by_role("link", name="Providers").count()


def bills(chromium, dev, cookie, folder):
    """A provider's CSV is held against what was metered, in days of both ends; what is wrong with it is told."""
    changed = pathlib.Path(folder) / "changed.csv"
    with tabs.console(chromium, dev, cookie, "/bills") as page:
        page.get_by_text("No bill was compared yet.").wait_for()
        press(page, "Compare a bill")
        dialog = opened(page, "Compare a bill")
        press(page, "Compare it")
        for label in ("First day", "Last day", "The bill"):
            field(dialog, label).wait_for()
        dialog.get_by_label("First day").and_(page.locator("[aria-invalid=true]:focus")).wait_for()
        dialog.get_by_label("First day").fill("2026-01-02")
        dialog.get_by_label("Last day").fill("2026-01-03")
        changed.write_text("model,day,cost\n")
        bill = dialog.get_by_label("The bill")
        bill.set_input_files(changed)
        bill.evaluate("it => it.files[0].text()")  # a browser that has not looked at the file yet finds it unchanged
        changed.write_text("model,day,cost,more\n")
        press(page, "Compare it")
        field(dialog, "The bill").get_by_text("Choose it again.").wait_for()
        for place, (text, told) in enumerate((("day,cost\n", "must name the columns"), ("model,day,cost\ndemo-large,2026-01-04,1\n", "Lies outside"), ("{", "neither CSV nor JSON"))):
            file = pathlib.Path(folder) / f"{place}.csv"
            file.write_text(text)
            dialog.get_by_label("The bill").set_input_files(file)
            press(page, "Compare it")
            dialog.locator(".wrong, [role=alert]").filter(has_text=told).first.wait_for()
        file = pathlib.Path(folder) / "bill.csv"
        file.write_text("model,day,cost\ndemo-large,2026-01-02,1.5\n<b>x</b>,2026-01-03,0.25\n")
        dialog.get_by_label("The bill").set_input_files(file)
        press(page, "Compare it")
        dialog = opened(page, "What differs")
        row = dialog.get_by_role("row").filter(has_text="<b>x</b>")
        assert row.get_by_role("cell").all_inner_texts()[0] == "USD\u00a00.25", row.inner_text()
        assert dialog.get_by_text("+USD\u00a01.50").count() == 1 and "2026-01-02 to 2026-01-03" in dialog.inner_text()
        press(page, "Close")
        page.get_by_role("cell", name="+USD\u00a01.75").wait_for()
        fits_at_twice(page, "/bills")
        page.set_viewport_size({"width": 320, "height": 640})
        page.get_by_role("button", name="Compare a bill").click()
        dialog = opened(page, "Compare a bill")
        edges_are_seen(page, "a dialog")
        assert dialog.evaluate("it => it.scrollWidth <= it.clientWidth"), "a dialog goes sideways"
        for day in dialog.locator("input[type=date]").all():
            assert day.evaluate("it => it.scrollWidth <= it.clientWidth"), "a day is cut"
        made = desk.api(dev, "billing-imports")["data"][0]
        assert (made["from"], made["to"], made["billedMicros"]) == ("2026-01-02", "2026-01-04", 1_750_000), made


def texts_that_mislead(chromium, dev, cookie):
    """What others wrote is text on every page, at twice the size of letters too: no markup, nothing turned round, nothing too wide."""
    evil = desk.api(dev, "agents", {"name": EVIL, "principalEmail": "owner@localhost"})
    task = "tsk_" + "t" * 60
    called(dev, key=evil["key"])
    called(dev, key=evil["key"], **{"x-svc-task-id": task})
    desk.api(dev, "budgets", {"scope": {"kind": "agent", "id": evil["id"]}, "amount": 9_007_199_254_740_991, "period": "total"})
    for path in ("/spend?by=agent", "/spend/yield?by=agent", "/spend/calls", "/spend/tasks", "/budgets", "/models/classes"):
        with tabs.console(chromium, dev, cookie, path) as page:
            page.locator("main bdi", has_text="<img src=x").first.wait_for()
            is_text(page, path)
            fits_in_between(page, path)
            fits_at_twice(page, path)
            if path == "/spend/tasks":
                # The names that clients give are told apart by all of them.
                page.get_by_role("rowheader").get_by_text(task, exact=True).wait_for()


def test_the_console_tells_of_money_and_models():
    with browser.browsing() as (dev, chromium):
        cookie = person.sign_in(dev)
        empty(chromium, dev, cookie)
        spend(chromium, dev, cookie)
        calls_found(chromium, dev, cookie)
        budget = budget_by_keyboard(chromium, dev, cookie)
        budget_changes(chromium, dev, cookie, budget)
        providers(chromium, dev, cookie)
        models(chromium, dev, cookie)
        terms(chromium, dev, cookie)
        routing(chromium, dev, cookie)
        around_by_keyboard(chromium, dev, cookie)
        roles(chromium, dev)
        with tempfile.TemporaryDirectory() as folder:
            bills(chromium, dev, cookie, folder)
        texts_that_mislead(chromium, dev, cookie)

        def act(page):
            page.goto(at(dev, "/budgets"))
            page.get_by_role("button", name="New budget").click()
            opened(page, "New budget").get_by_role("button", name="Make the budget").click()
            page.locator("[aria-invalid=true]").wait_for()

        tabs.as_axe_sees_it(chromium, dev, cookie, SPEND + MODELS, act)
