"""A real browser at the console's mandates: what is used of their limits a period, where they stand, where they are changed, and where
somebody decides on an action that they are charged for.
"""

import json
import re

import approving
import axe
import browser
import tabs
import desk
import person

# What the list of an agent's mandates is asked by.
LIST = "**/agents/*/mandates?*"


def holder(dev, name, limits):
    """An agent with a mandate of these limits: its id and its key."""
    mandate = {"name": name, "actions": ["payment", "crm.*"], "limits": limits, "duplicates": "record"}
    made = desk.api(dev, "agents", {"name": f"{name} agent", "principalEmail": "owner@localhost", "mandates": [mandate]})
    return made["id"], made["key"]


def pays(dev, key, amount, currency="EUR"):
    to = {"name": "Pump", "domain": "pump.example"}
    return tabs.asked(dev, key, "payment", payment={"amount": amount, "currency": currency, "merchant": to})


def settles(dev, key, action, amount):
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    body = json.dumps({"status": "completed", "amount": amount}).encode()
    status, _, text = person.browse(f"{dev['baseUrl']}/v1/actions/{action}/settle", body, headers=headers)
    assert status == 200, (status, text)


def item_of(page, name):
    return page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=name))


def meter(scope, name, now, said):
    """A meter as whoever hears the page is told of it."""
    said = re.sub(r"([A-Z]{3}) ", "\\1\u00a0", said)
    it = scope.page.locator(f"[aria-valuenow='{now}'][aria-valuetext='{said}'][aria-valuemin='0']")
    scope.get_by_role("meter", name=name).and_(it).wait_for()


def seen(scope):
    return " ".join(scope.inner_text().replace("\u00a0", " ").split())


def used_and_left(chromium, dev, cookie):
    """What is used of a mandate stands at it, in words and as a meter, follows what the agent does, and stands where it is changed."""
    limits = {"currency": "EUR", "perPeriod": {"amount": 10_000, "period": "month"}, "count": {"max": 3, "period": "year"}, "onLimit": "ask"}
    agent, key = holder(dev, "Fuel", limits)
    with tabs.console(chromium, dev, cookie, f"/agents/{agent}") as page:
        item = item_of(page, "Fuel")
        item.get_by_text("0 %").first.wait_for()
        assert "EUR 0.00 of EUR 100.00 used this month: 0 %" in seen(item) and "EUR 100.00 left" in seen(item), seen(item)
        paid = pays(dev, key, 4_050)
        item.get_by_text("40 %").wait_for()
        settles(dev, key, paid["id"], 3_050)
        item.get_by_text("EUR\u00a030.50 settled").wait_for()
        pays(dev, key, 1_000)
        meter(item, "Amount used this month", 4_050, "EUR 40.50 of EUR 100.00")
        meter(item, "Actions used this year", 2, "2 of 3 actions")
        ends = desk.api(dev, f"agents/{agent}/mandates")["data"][0]["usage"]["spend"]["periodEnd"]
        for told in ("EUR 30.50 settled", "EUR 10.00 reserved", "EUR 59.50 left", "2 of 3 actions used this year: 66 %", "1 left"):
            assert told in seen(item), (told, seen(item))
        # In December the month ends with the year.
        clears = item.locator(".meta", has_text="settled").get_by_text("clears at").locator(f"time[datetime='{ends}']")
        assert clears.count() == 1, item.inner_html()
        assert "Used up" not in seen(item)
        beyond = pays(dev, key, 9_000)
        desk.api(dev, f"approvals/{beyond['approval']['id']}/approve", {})
        item.get_by_text("besides, EUR\u00a090.00 that persons let pass beyond the limit").wait_for()
        pays(dev, key, 5_950)
        item.get_by_text("Used up").nth(1).wait_for()
        assert "EUR 100.00 of EUR 100.00 used this month: 100 % Used up" in seen(item), seen(item)
        tabs.fits_at_twice(page, "an agent's mandates")
        item.get_by_role("button", name="Change").click()
        dialog = tabs.opened(page, "Change a mandate")
        meter(dialog, "Amount used this month", 10_000, "EUR 100.00 of EUR 100.00")
        assert not axe.faults(page), axe.faults(page)
        dialog.get_by_label("At most a period").fill("400")
        dialog.get_by_role("button", name="Put it in force").click()
        meter(item, "Amount used this month", 10_000, "EUR 100.00 of EUR 400.00")
        assert "EUR 300.00 left" in seen(item), seen(item)
    tabs.as_axe_sees_it(chromium, dev, cookie, [f"/agents/{agent}"])


def digits_of_its_currency(chromium, dev, cookie):
    """Amounts have the digits of their currency, the largest one fits a phone, and a mandate without limits a period says nothing."""
    cases = [
        ("JPY", 1_250, 900, "JPY 900 of JPY 1,250 used today: 72 %"),
        ("KWD", 5_000, 1_234, "KWD 1.234 of KWD 5.000 used today: 24 %"),
        ("JPY", 2**53 - 1, 2**53 - 1, "JPY 9,007,199,254,740,991 of JPY 9,007,199,254,740,991 used today: 100 %"),
    ]  # fmt: skip
    for currency, limit, amount, told in cases:
        agent, key = holder(dev, "Abroad", {"currency": currency, "perPeriod": {"amount": limit, "period": "day"}})
        assert pays(dev, key, amount, currency)["decision"] == "allow"
        with tabs.console(chromium, dev, cookie, f"/agents/{agent}") as page:
            item = item_of(page, "Abroad")
            item.get_by_role("meter").wait_for()
            assert told in seen(item) and item.get_by_role("meter").count() == 1, seen(item)
            tabs.fits(page, told)
    agent, _ = holder(dev, "Plain", {"currency": "EUR", "perAction": 10_000})
    with tabs.console(chromium, dev, cookie, f"/agents/{agent}") as page:
        item_of(page, "Plain").get_by_text("up to EUR\u00a0100.00 an action").wait_for()
        assert not page.locator(".usage").count(), page.inner_text("main")


def period_that_ends(chromium, dev, cookie):
    """A period that ends while the page is open is read anew by itself."""
    agent, _ = holder(dev, "Turning", {"currency": "EUR", "perPeriod": {"amount": 10_000, "period": "hour"}})
    asked = []

    def over(route):
        answer = route.fetch()
        said = answer.json()
        if not asked:
            said["data"][0]["usage"]["spend"].update(used=9_900, settled=9_900, remaining=100, periodEnd="2026-01-01T00:00:00.000Z")
        asked.append(route.request.url)
        route.fulfill(response=answer, json=said)

    with tabs.console(chromium, dev, cookie) as page:
        page.route(LIST, over)
        page.goto(tabs.at(dev, f"/agents/{agent}"))
        item_of(page, "Turning").get_by_text("0 %", exact=True).wait_for()
    assert len(asked) == 2, asked


def where_it_is_decided(chromium, dev, cookie):
    """Whoever decides is told what is used of the mandate: with the action where it is reserved, and without it beyond a limit."""
    limits = {"currency": "EUR", "perPeriod": {"amount": 10_000, "period": "year"}, "count": {"max": 9, "period": "year"}, "askAbove": 2_500, "onLimit": "ask"}
    _, key = holder(dev, "Asked", limits)
    pays(dev, key, 2_000)
    within, beyond = pays(dev, key, 3_000), pays(dev, key, 7_000)
    for decision, told in ((beyond, "without this one"), (within, "with this one")):
        with approving.phone(chromium, [cookie], dev["baseUrl"]) as page:
            page.goto(decision["approval"]["url"])
            page.get_by_role("button", name="Approve").wait_for()
            matter = seen(page.locator("#matter"))
            assert f"Used this year EUR 50.00 of EUR 100.00, {told}; clears at 1 Jan" in matter, matter
            assert f"Used this year 2 of 9 actions, {told}; clears at 1 Jan" in matter, matter
            assert not axe.faults(page), axe.faults(page)
            approving.deny(page)
            approving.says(page, "status", "You denied it.")
            assert "Used this year" not in seen(page.locator("main")), "it is told where it is decided"


def test_the_console_tells_what_is_used_of_a_limit():
    with browser.browsing() as (dev, chromium):
        cookie = browser.sign_in(chromium, dev["signInLink"])
        person.COOKIES[dev["baseUrl"]] = cookie
        used_and_left(chromium, dev, cookie)
        digits_of_its_currency(chromium, dev, cookie)
        period_that_ends(chromium, dev, cookie)
        where_it_is_decided(chromium, dev, cookie)
