"""A real browser where others change what is open here, and where answers take their time: what was chosen stays chosen, a secret is not
lost to an early Cancel, what was typed outlives a bar to the session, and what stands on a page is as it stands."""

import json

import approving
import browser
import desk
import person
import tabs
from console_focus import BACK
from tabs import at, heading, opened

OWNER = "owner@localhost"
NOT_SENT = "What you have typed here was not sent."
# How often a page looks after what no event tells, and some more.
LOOKED = 12_000


def agent_of(dev, name):
    return desk.api(dev, "agents", {"name": name, "principalEmail": OWNER})["id"]


def stays_chosen(chromium, dev):
    """A choice is left alone by what comes and goes among its options."""
    old = agent_of(dev, "Old")
    newest = agent_of(dev, "Newest")
    with tabs.console(chromium, dev, person.sign_in(dev), "/budgets") as page:
        page.get_by_role("button", name="New budget").first.click()
        dialog = opened(page, "New budget")
        dialog.get_by_label("Over").select_option("agent")
        dialog.locator(f"option[value={old}]").wait_for(state="attached")
        which = dialog.get_by_label("Which agent")
        which.select_option(old)
        later = agent_of(dev, "Newcomer")
        dialog.locator(f"option[value={later}]").wait_for(state="attached")
        assert which.input_value() == old
        for agent in (later, newest):
            desk.api(dev, f"agents/{agent}", method="DELETE")
            dialog.locator(f"option[value={agent}]").wait_for(state="detached")
        assert which.input_value() == old
        dialog.get_by_label("Amount (USD)").fill("50")
        with page.expect_request(lambda it: it.method == "POST") as sent:
            dialog.get_by_role("button", name="Make the budget").click()
        assert sent.value.post_data_json["scope"] == {"kind": "agent", "id": old}, sent.value.post_data
        dialog.wait_for(state="detached")


def choices_come_back(chromium, dev):
    """Where what was typed is put back, so is what was chosen, once it may be chosen; and a choice is asked about like a text."""
    team = desk.api(dev, "teams", {"name": "Alpha", "memberIds": []})["id"]
    typist, cookie = typing(dev, "chooser@example.com")
    owner = next(it["principalId"] for it in desk.api(dev, "members")["data"] if it["email"] == OWNER)
    filled = (
        ("/budgets", "New budget", {"Over": "team", "Which team": team, "Owner": typist}, "Amount (USD)"),
        ("/keys", "New key", {"It may": "admin", "Team": team, "Counts for": owner}, "Label"),
        ("/team", "Invite somebody", {"Role": "auditor"}, "E-mail"),
        ("/agents", "New agent", {"Kill owner": owner}, "Name"),
    )
    for path, button, chosen, text in filled:
        with tabs.console(chromium, dev, cookie, path) as page:
            page.get_by_role("button", name=button).first.click()
            dialog = page.get_by_role("dialog")
            for label, value in chosen.items():
                field = dialog.get_by_label(label, exact=True)
                dialog.locator(f"option[value={value}]").first.wait_for(state="attached")
                field.select_option(value)
            page.keyboard.press("Escape")
            approving.says(dialog, "alert", NOT_SENT)
            dialog.get_by_role("button", name="Go on with it").click()
            dialog.get_by_label(text, exact=True).first.fill("777")
            assert person.browse(dev["baseUrl"] + "/api/sign-out", b"{}", cookie, approving.WRITES)[0] < 300
            heading(page, "You are no longer signed in")
            cookie = signed_in(dev, "chooser@example.com")
            name, value = cookie.split("=", 1)
            page.context.add_cookies([{"name": name, "value": value, "url": dev["baseUrl"]}])
            page.goto(at(dev, path))
            page.get_by_role("button", name=button).first.click()
            dialog.get_by_text("stands here again").wait_for()
            for label, value in chosen.items():
                field = dialog.get_by_label(label, exact=True)
                field.and_(page.locator(f"select:has(option[value='{value}']:checked)")).wait_for()
            assert dialog.get_by_label(text, exact=True).first.input_value() == "777"


def typing(dev, email):
    """A new admin who has a password, and a session of theirs."""
    cookie = approving.member(dev, email, "admin")
    word = json.dumps({"password": browser.PASSWORD}).encode()
    assert person.browse(dev["baseUrl"] + "/api/me/password", word, cookie, approving.WRITES)[0] < 300
    members = desk.api(dev, "members?limit=500")["data"]
    return next(it["principalId"] for it in members if it["email"] == email), cookie


def signed_in(dev, email):
    word = json.dumps({"email": email, "password": browser.PASSWORD}).encode()
    return person.browse(dev["baseUrl"] + "/api/sign-in", word, headers=approving.WRITES)[1]["set-cookie"].split(";")[0]


def waits_for_its_answer(chromium, dev):
    """Cancel, Escape and the way back wait for an answer that is under way: what it shows is shown once."""
    with tabs.console(chromium, dev, person.sign_in(dev), "/agents") as page:
        heading(page, "Agents")
        page.evaluate("history.pushState(null, '', location.href)")
        answers = []
        page.route("**/agents", lambda route: answers.append(route) if route.request.method == "POST" else route.continue_())
        page.get_by_role("button", name="New agent").click()
        dialog = opened(page, "New agent")
        dialog.get_by_label("Name", exact=True).fill("Made slowly")
        with page.expect_request(lambda it: it.method == "POST"):
            dialog.get_by_role("button", name="Make the agent").click()
        for leave in (lambda: dialog.get_by_role("button", name="Cancel").click(), lambda: page.keyboard.press("Escape"), lambda: page.evaluate(BACK)):
            leave()
            approving.says(dialog, "status", "It is being sent.")
            assert dialog.is_visible() and not dialog.get_by_text(NOT_SENT).count()
        answers[0].continue_()
        opened(page, "The agent's key").get_by_role("button", name="I have kept it").click()
        heading(page, "Made slowly")


def outlives_a_bar(chromium, dev):
    """A workspace that takes a session no longer closes what is open; what was typed is kept and said to be, and stands there again."""
    _, cookie = typing(dev, "barred@example.com")
    with tabs.console(chromium, dev, cookie, "/budgets") as page:
        page.get_by_role("button", name="New budget").first.click()
        dialog = opened(page, "New budget")
        dialog.get_by_label("Amount (USD)").fill("777")
        barred = {"status": 403, "json": {"error": {"type": "forbidden", "message": "this workspace asks for a second factor"}}}
        page.route("**/settings", lambda route: route.fulfill(**barred))
        page.route("**/events", lambda route: route.fulfill(**barred))
        page.evaluate(tabs.HIDE, True)
        page.evaluate(tabs.HIDE, False)
        heading(page, "This workspace does not take your session")
        page.get_by_text("What you had typed and not sent is kept in this tab, but for secrets.").wait_for()
        page.unroute("**/settings")
        page.unroute("**/events")
        page.get_by_role("button", name="Try again").click()
        page.get_by_role("button", name="New budget").first.click()
        opened(page, "New budget").get_by_text("stands here again").wait_for()
        assert dialog.get_by_label("Amount (USD)").input_value() == "777"


def stands_as_it_is(chromium, dev):
    """What others do where no event tells of it is seen: sums of a budget, and a budget that is gone is removed."""
    wish = {"scope": {"kind": "workspace"}, "amount": 100_000_000, "period": "month", "ladder": [{"at": 100, "step": "stop"}]}
    budget = desk.api(dev, "budgets", wish)["id"]
    with tabs.console(chromium, dev, person.sign_in(dev), "/budgets", ) as page:
        one = page.get_by_role("listitem").filter(has_text="The whole workspace")
        one.get_by_role("button", name="Raise").first.click()
        dialog = opened(page, "Raise this budget?")
        desk.api(dev, f"budgets/{budget}", {"amount": 500_000_000}, "PATCH")
        dialog.get_by_label("To, in all (USD)").fill("300")
        dialog.get_by_role("button", name="Raise it").click()
        dialog.get_by_text("Must be above what is allotted now, USD 500.00.").wait_for()
        dialog.get_by_text("has USD 500.00").wait_for(timeout=LOOKED)
        dialog.get_by_role("button", name="Cancel").click()
        one.get_by_role("button", name="Remove").first.click()
        dialog = opened(page, "Remove this budget?")
        desk.api(dev, f"budgets/{budget}", method="DELETE")
        dialog.get_by_role("button", name="Remove").click()
        dialog.wait_for(state="detached")
        approving.says(page, "status", "It was not there any more, or is not yours to see now.")
        one.wait_for(state="detached")


def closes_with_the_way_back(chromium, dev):
    """The way back closes a dialog that nothing was typed into, where it leads to another state of the same page too."""
    with tabs.console(chromium, dev, person.sign_in(dev), "/applications") as page:
        page.get_by_role("link", name="All", exact=True).click()
        page.wait_for_url("**state=all")
        page.get_by_role("button", name="Ask for something").click()
        dialog = opened(page, "Ask for something")
        page.evaluate(BACK)
        dialog.wait_for(state="detached")
        assert "state=all" not in page.url, page.url


def test_others_change_what_is_open():
    with browser.browsing() as (dev, chromium):
        person.COOKIES[dev["baseUrl"]] = person.sign_in(dev)
        stays_chosen(chromium, dev)
        choices_come_back(chromium, dev)
        waits_for_its_answer(chromium, dev)
        outlives_a_bar(chromium, dev)
        stands_as_it_is(chromium, dev)
        closes_with_the_way_back(chromium, dev)
