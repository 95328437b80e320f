"""A real browser at the page that an approval's link leads to, on a phone's screen, under the page's content policy: signed out,
by the keyboard alone, with a note, after somebody else, as somebody else, with two persons and a second factor, with texts that
want to mislead, at twice the size of letters, and without script.
"""

import contextlib
import hashlib
import json
import urllib.parse

import browser
import desk
import person
import run

WAIT_MS = 20_000
TWICE = "document.documentElement.style.fontSize = '200%'"
# Whether the page is left without a question.
LEAVES = "dispatchEvent(new Event('beforeunload', { cancelable: true }))"
# A browser that lets no page keep anything.
NOTHING_KEPT = """for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, name, { get() { throw new DOMException("closed", "SecurityError"); } });
}"""
# Turns round what follows it, is markup, has no place to break, and hides an address behind another.
WICKED = "\u202eShop\u2066 <img src=x onerror=alert(1)> \u05de\u05d5\u05ea\u05e8 " + "W" * 60
WRITES = {"content-type": "application/json", "x-svc-csrf": "1"}
PATH = "/w/{}/approvals/apv_01ARZ3NDEKTSV4RRFFQ69G5FAV"


def ask(dev, amount, currency="EUR", name="Example Cloud", domain="cloud.example", **more):
    """A payment that a person has to decide; its decision."""
    body = {
        "type": "payment", "summary": "Move to the yearly plan", "provenance": [{"source": "user"}], **more,
        "payment": {"amount": amount, "currency": currency, "merchant": {"name": name, "domain": domain}},
    }  # fmt: skip
    return authorize(dev, dev["agentKey"], body)


def authorize(dev, key, body):
    """The decision on an action that a person has to decide."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    data = json.dumps(body).encode()
    status, _, text = person.browse(dev["baseUrl"] + "/v1/actions/authorize", data, headers=headers)
    assert status == 200, (status, text)
    decision = json.loads(text)
    assert decision["decision"] == "approval_required", decision
    return decision


def read(dev, decision):
    """The approval as it stands."""
    return desk.api(dev, "approvals/" + decision["approval"]["id"])


@contextlib.contextmanager
def phone(chromium, cookies=(), base="", **more):
    """A tab on a small screen. Whatever the browser complains of but refusals of the server is an error."""
    context = chromium.new_context(viewport={"width": 360, "height": 640}, **more)
    for cookie in cookies:
        name, value = cookie.split("=", 1)
        context.add_cookies([{"name": name, "value": value, "url": base}])
    page, wrong = context.new_page(), []
    page.set_default_timeout(WAIT_MS)
    page.on("console", lambda it: "Failed to load resource" in it.text or wrong.append(it.text))
    page.on("pageerror", lambda it: wrong.append(str(it)))
    # Whoever loads the page again over what they typed means it.
    page.on("dialog", lambda it: it.accept() if it.type == "beforeunload" else (wrong.append(it.message), it.dismiss()))
    yield page
    wide = page.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert not wrong and wide <= 360, (wrong, wide)


def says(page, role, text):
    """Waits until the page says so."""
    page.get_by_role(role).filter(has_text=text).wait_for()


def deny(page):
    """A no without a note: the first press asks for one."""
    page.get_by_role("button", name="Deny").click()
    says(page, "alert", "Why not?")
    assert page.get_by_label("Note").evaluate("it => it === document.activeElement")
    page.get_by_role("button", name="Deny").click()


def signed_out(chromium, decision):
    """Nobody is told anything, and the way leads to signing in, there as the workspace has it, and back."""
    with phone(chromium) as page:
        page.goto(decision["approval"]["url"])
        says(page, "alert", "You are not signed in.")
        link = page.get_by_role("link", name="Sign in")
        parts = urllib.parse.urlsplit(link.evaluate("it => it.href"))
        back = urllib.parse.urlsplit(decision["approval"]["url"]).path
        way = {"next": back, "workspace": back.split("/")[2]}
        assert (parts.path, parts.query) == ("/sign-in", urllib.parse.urlencode(way)), parts
        assert "310" not in page.inner_text("main") and "plan" not in page.inner_text("main"), page.inner_text("main")


def approve_by_keyboard(chromium, dev, cookie, decision):
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.goto(decision["approval"]["url"])
        page.get_by_role("heading", name="First agent asks to pay", level=1).wait_for()
        main = page.inner_text("main")
        for told in ("EUR 310.00", "Payee\nExample Cloud", "Domain\ncloud.example", "above EUR 200.00", "23 h 59 min left"):
            assert told in main, (told, main)
        browser.press(page, "Approve EUR 310.00")
        says(page, "status", "You approved it.")
        assert page.evaluate("document.activeElement.id") == "news", "the focus is where the outcome is"
        assert not page.get_by_role("button").count(), page.inner_text("main")
    assert read(dev, decision)["state"] == "approved"


def deny_with_a_note(chromium, dev, cookie):
    decision = ask(dev, 32_000)
    with phone(chromium, [cookie], dev["baseUrl"], color_scheme="dark") as page:
        page.goto(decision["approval"]["url"])
        page.get_by_label("Note").fill("Not this year.\nAsk again in May.")
        assert not page.evaluate(LEAVES), "whoever leaves the page is asked"
        page.get_by_role("button", name="Deny").click()
        says(page, "status", "You denied it.")
        assert page.evaluate(LEAVES)
        assert "Not this year. Ask again in May." in page.inner_text("main"), page.inner_text("main")
    stands = read(dev, decision)
    assert (stands["state"], stands["note"]) == ("denied", "Not this year.\nAsk again in May."), stands


def after_somebody_else(chromium, dev, cookie):
    """What others decide is seen without a hand, and a word that comes too late is told so."""
    seen, late = ask(dev, 33_000), ask(dev, 34_000)
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.clock.install()
        page.goto(seen["approval"]["url"])
        page.get_by_role("button", name="Deny").wait_for()
        desk.api(dev, f"approvals/{seen['approval']['id']}/deny", {})
        page.clock.fast_forward(11_000)
        says(page, "status", "Denied meanwhile: You.")
        page.goto(late["approval"]["url"])
        button = page.get_by_role("button", name="Approve")
        button.wait_for()
        desk.api(dev, f"approvals/{late['approval']['id']}/deny", {})
        button.click()
        says(page, "alert", "Your word came too late: it was denied.")
        page.get_by_text("Denied", exact=True).wait_for()
        assert not page.get_by_role("button").count(), page.inner_text("main")
    assert read(dev, late)["state"] == "denied"


def invited(dev, role):
    """The session of a new member of this role."""
    return member(dev, f"{role}@example.com", role)


def member(dev, email, role):
    """The session of a new member of this address."""
    made = desk.api(dev, "members", {"email": email, "role": role})
    token = json.dumps({"token": made["signInLink"].split("token=")[1]}).encode()
    signed_in = person.browse(dev["baseUrl"] + "/api/sign-in/link", token, headers=WRITES)[1]
    return signed_in["set-cookie"].split(";")[0]


def session_that_ends(chromium, dev, decision):
    """Nothing of what was asked stays on the page of somebody who was signed out meanwhile."""
    cookie = invited(dev, "auditor")
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.clock.install()
        page.goto(decision["approval"]["url"])
        page.get_by_text("Your role, auditor, may see this and not decide it.").wait_for()
        assert not page.get_by_role("button").count(), "no button that would not be heard"
        assert person.browse(dev["baseUrl"] + "/api/sign-out", b"{}", cookie, WRITES)[0] < 300
        page.clock.fast_forward(11_000)
        says(page, "alert", "You are not signed in.")
        text = page.locator("main").text_content()
        assert "cloud.example" not in text and "310" not in text, text


def tool_that_goes(chromium, dev):
    """Nor does what a tool was to be given, and how much of that is not here."""
    tool = {"name": "shell", "server": "payroll", "input": {"command": "cat /srv/payroll"}, "inputBytes": 4216}
    decision = authorize(dev, desk.asker(dev), {"type": "tool.call", "summary": "Look around", "tool": tool})
    cookie = member(dev, "watching@example.com", "auditor")
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.clock.install()
        page.goto(decision["approval"]["url"])
        page.get_by_text("it is 4216 bytes in all").wait_for()
        assert person.browse(dev["baseUrl"] + "/api/sign-out", b"{}", cookie, WRITES)[0] < 300
        page.clock.fast_forward(11_000)
        says(page, "alert", "You are not signed in.")
        text = page.locator("main").text_content()
        assert "payroll" not in text and "4216" not in text, text


def note_that_stays(chromium, dev, decision):
    """A note that was typed as the session ended stands there again for the same person, once, and for nobody else."""

    def become(page, somebody):
        name, value = somebody.split("=", 1)
        page.context.add_cookies([{"name": name, "value": value, "url": dev["baseUrl"]}])
        page.reload()
        page.get_by_role("button", name="Deny").wait_for()
        return page.get_by_label("Note").input_value()

    @contextlib.contextmanager
    def ended(somebody):
        with phone(chromium, [somebody], dev["baseUrl"]) as page:
            page.clock.install()
            page.goto(decision["approval"]["url"])
            page.get_by_label("Note").fill("As we agreed")
            assert person.browse(dev["baseUrl"] + "/api/sign-out", b"{}", somebody, WRITES)[0] < 300
            page.clock.fast_forward(11_000)
            says(page, "alert", "You are not signed in.")
            assert "As we agreed" not in page.locator("main").text_content()
            yield page

    with ended(member(dev, "typing@example.com", "admin")) as page:
        assert [become(page, person.COOKIES[dev["baseUrl"]]) for _ in range(2)] == ["", ""]
    cookie = member(dev, "noting@example.com", "admin")
    word = {"email": "noting@example.com", "password": browser.PASSWORD}
    assert person.browse(dev["baseUrl"] + "/api/me/password", json.dumps({"password": browser.PASSWORD}).encode(), cookie, WRITES)[0] < 300
    with ended(cookie) as page:
        back = person.browse(dev["baseUrl"] + "/api/sign-in", json.dumps(word).encode(), headers=WRITES)[1]["set-cookie"].split(";")[0]
        assert [become(page, back), become(page, back)] == ["As we agreed", ""]


def as_somebody_else(chromium, dev, cookie):
    """Whoever decides is who the page has told that they are, whatever another window did to the session."""
    decision = ask(dev, 38_000, "USD")
    admin = invited(dev, "admin")
    with phone(chromium, [cookie], dev["baseUrl"]) as page:

        def become(somebody):
            name, value = somebody.split("=", 1)
            page.context.add_cookies([{"name": name, "value": value, "url": dev["baseUrl"]}])

        page.goto(decision["approval"]["url"])
        page.get_by_label("Note Optional, up to 500 characters. The agent and whoever may see this can read it.").fill("of the owner")
        become(admin)
        page.get_by_role("button", name="Approve").click()
        says(page, "alert", "You are signed in as admin@example.com now. Nothing was decided: look at it again.")
        page.get_by_text("Signed in as admin@example.com, admin of").wait_for()
        assert read(dev, decision)["state"] == "waiting"
        assert page.get_by_label("Note").input_value() == "", "what one person typed is not there for another"

        def overtaken(route):
            become(cookie)
            route.continue_()

        # The session changes once more when the page has looked whose it is, before its word has left.
        page.route("**/approve", overtaken)
        page.get_by_role("button", name="Approve").click()
        says(page, "alert", "You are signed in as owner@localhost now. Nothing was decided: look at it again.")
        assert read(dev, decision)["state"] == "waiting"
        page.unroute("**/approve")
        become(admin)
        page.get_by_role("button", name="Approve").click()
        says(page, "alert", "You are signed in as admin@example.com now. Nothing was decided: look at it again.")
        page.get_by_role("button", name="Approve").click()
        says(page, "status", "You approved it.")
    admin = next(it for it in desk.api(dev, "members")["data"] if it["email"] == "admin@example.com")
    assert read(dev, decision)["decidedBy"] == admin["id"]


def numbers_are_whole(chromium, dev, cookie):
    """No number is broken or cut off, however long it is and however large the letters."""
    within = "it => { const { left, right } = it.getBoundingClientRect(); return left >= 0 && right <= 360 }"
    for amount, shown in ((123_456_789, "1,234,567.89"), (9_007_199_254_740_991, "90,071,992,547,409.91")):
        decision = ask(dev, amount, "USD")
        with phone(chromium, [cookie], dev["baseUrl"]) as page:
            page.goto(decision["approval"]["url"])
            page.get_by_role("button", name=f"Approve USD {shown}").wait_for()
            for letters in ("", TWICE):
                page.evaluate(letters or "0")
                numbers = page.get_by_text(shown, exact=True)
                assert numbers.count() == 2, page.inner_text("main")
                for number in numbers.all():
                    assert number.evaluate("it => it.getClientRects().length") == 1, (shown, letters)
                    assert number.evaluate(within), (shown, letters)


def note_of_any_signs(chromium, dev, cookie):
    """A note has as many characters as the server counts, and one that is too long is told before it is sent."""
    decision = ask(dev, 39_000, "USD")
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.goto(decision["approval"]["url"])
        note = page.get_by_label("Note")
        note.fill("\U0001f642" * 501)
        assert not note.evaluate("it => it.checkValidity()")
        assert "these are 501" in note.evaluate("it => it.validationMessage")
        note.press("Backspace")
        assert note.evaluate("it => it.checkValidity()")
        page.get_by_role("button", name="Deny").click()
        says(page, "status", "You denied it.")
    assert read(dev, decision)["note"] == "\U0001f642" * 500


def second_factor_again(chromium, dev, cookie):
    """A code that the server asks for is asked for with what was typed before, and whoever has none is shown where to get one."""
    decision = ask(dev, 40_000, "USD")
    sent = []

    def answer(route):
        body = route.request.post_data_json
        sent.append({name: body[name] for name in body if name not in ("actionDigest", "principalId")})
        if body.get("recoveryCode") == "abcdefgh":
            return route.continue_(post_data=json.dumps({"note": body["note"]}))
        why = "is not the code of this moment, or was used before" if "code" in body else "is required"
        error = {"type": "forbidden", "message": "this asks for your second factor", "errors": [{"field": "code", "message": why}]}
        return route.fulfill(status=403, json={"error": error})

    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.route("**/approve", answer)
        browser.answer_with(page, "**/api/me", lambda it: it.update(twoFactor=bool(sent[1:])))
        page.goto(decision["approval"]["url"])
        page.get_by_label("Note").fill("as agreed")
        button = page.get_by_role("button", name="Approve")
        assert page.get_by_label("Code of your second factor").is_hidden()
        button.click()
        says(page, "alert", "This asks for your second factor. Set up a second factor, then come back.")
        href = page.get_by_role("link", name="Set up a second factor").get_attribute("href")
        assert href.startswith("../../../sign-in?next=%2Fw%2F"), href
        sent.append({})
        for typed, told in (("", "This asks for your second factor."), ("123 456", "The code is not the code of this moment, or was used before.")):
            page.keyboard.type(typed)
            button.click()
            says(page, "alert", told)
            assert page.evaluate("document.activeElement.id") == "code", "the code is what is wanted next"
            assert page.get_by_label("Code of your second factor").input_value() == ""
        page.keyboard.type("abcd-efgh")
        page.keyboard.press("Enter")
        says(page, "status", "You approved it.")
    note = {"note": "as agreed"}
    assert sent == [note, {}, note, note | {"code": "123456"}, note | {"recoveryCode": "abcdefgh"}], sent
    stands = read(dev, decision)
    assert (stands["state"], stands["note"]) == ("approved", "as agreed"), stands


def without_script(chromium, decision):
    """What nobody looks up is not said to be looked up."""
    with phone(chromium, java_script_enabled=False) as page:
        page.goto(decision["approval"]["url"])
        main = page.inner_text("main")
        assert "This page needs script." in main and "Looking" not in main, main
        assert page.locator("#state").is_hidden(), "nor is a state shown that nobody knows"


def budgets_owner(chromium, dev, cookie):
    """A member who owns a budget decides on more of it knowing what it is over, for how long, and what is allotted and spent."""
    owner = member(dev, "keeper@example.com", "member")
    keeper = next(it["principalId"] for it in desk.api(dev, "members")["data"] if it["email"] == "keeper@example.com")
    team = desk.api(dev, "teams", {"name": "Night shift"})
    wish = {"scope": {"kind": "team", "id": team["id"]}, "amount": 25_000_000, "period": "month", "owner": keeper}
    budget = desk.api(dev, "budgets", wish)
    agent = desk.api(dev, "agents", {"name": "Of the keeper", "principalEmail": "keeper@example.com", "mandates": [{"template": "saas-subscriptions"}]})
    decision = ask(dev | {"agentKey": agent["key"]}, 31_000)
    # What a full budget asks, in the place of what the agent does.
    asks = {"kind": "budget", "subject": {"budgetId": budget["id"], "moreMicros": 5_000_000}, "agentId": None}
    with phone(chromium, [owner], dev["baseUrl"]) as page:
        browser.answer_with(page, f"**/api/**/approvals/{decision['approval']['id']}", lambda it: it.update(asks))
        page.goto(decision["approval"]["url"])
        page.get_by_role("button", name="Deny").wait_for()
        told = " ".join(page.locator("#matter").inner_text().split())
        for words in ("USD 5.00", "Budget of the team Night shift", "Period month", "Allotted USD 25.00", "Spent USD 0.00"):
            assert words in told.replace("\u00a0", " "), (words, told)
        # What others allot meanwhile is seen, though nothing of the question itself has changed.
        desk.api(dev, f"budgets/{budget['id']}", {"amount": 75_000_000}, "PATCH")
        page.locator("#matter").get_by_text("75.00").wait_for()
    desk.api(dev, f"approvals/{decision['approval']['id']}/deny", {})


def cases():
    """Texts, and how each is shown: the server's own cases."""
    return json.loads((run.HERE.parent.parent / "svc-http/src/pages/quoted.cases.json").read_text())


def hosts():
    """Hosts and addresses, and the name that is told of each: the server's own cases."""
    return json.loads((run.HERE.parent.parent / "svc-http/src/pages/network.cases.json").read_text())


def texts_that_mislead(chromium, dev, cookie):
    decision = ask(
        dev, 35_000, name=WICKED[:100], domain="xn--80ak6aa92e.com", summary=WICKED, details={"it": WICKED},
        provenance=[{"source": "web"}],
    )  # fmt: skip
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.goto(decision["approval"]["url"])
        page.get_by_role("button", name="Deny").wait_for()
        main = page.locator("main")
        assert not main.locator("img").count() and "\u202e" not in main.inner_text(), main.inner_text()
        assert "\u2039U+202E\u203aShop\u2039U+2066\u203a <img" in main.inner_text(), main.inner_text()
        assert "Domain\nxn--80ak6aa92e.com" in main.inner_text() and "EUR 350.00" in main.inner_text(), main.inner_text()
        assert "\u2039U+202E\u203aShop" in page.locator("#sent").inner_text()
        assert page.locator("#summary bdi bdi[dir=ltr]").first.inner_text() == "\u2039U+202E\u203a"
    decision = ask(dev, 35_000, "USD", name="\u200d")
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.add_init_script(NOTHING_KEPT)
        page.goto(decision["approval"]["url"])
        page.locator("#matter").get_by_text("\u2039U+200D\u203a").wait_for()
        for text, shown in cases():
            assert page.evaluate("it => plain(it)", text) == shown, ascii(text)
        for written, name in hosts():
            assert page.evaluate("it => network(it)", written) == name, ascii(written)


def fields_apart(chromium, dev, cookie):
    """What is to be shared is told field by field, also where the name of one holds a comma."""
    body = {"type": "data.share", "summary": "Share", "provenance": [{"source": "user"}], "data": {"recipient": "x.example", "fields": ["name, street", "city"]}}
    headers = {"authorization": f"Bearer {dev['agentKey']}", "content-type": "application/json"}
    status, _, text = person.browse(dev["baseUrl"] + "/v1/actions/authorize", json.dumps(body).encode(), headers=headers)
    assert status == 200, (status, text)
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.goto(json.loads(text)["approval"]["url"])
        page.get_by_role("button", name="Deny").wait_for()
        assert page.locator("#matter .entry").all_inner_texts() == ["name, street", "city"], page.inner_text("main")


def two_persons(chromium, dev, cookie):
    """The first yes is noted, and the first person may still say no."""
    desk.api(dev, "settings", {"secondPersonAbove": {"EUR": 10_000}}, "PUT")
    decision = ask(dev, 36_000)
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.goto(decision["approval"]["url"])
        page.get_by_text("Two persons have to approve this.").wait_for()
        page.get_by_role("button", name="Approve").click()
        says(page, "status", "Your yes is noted, the first of 2.")
        assert not page.get_by_role("button", name="Approve").count(), page.inner_text("main")
        deny(page)
        says(page, "status", "You denied it.")
    assert read(dev, decision)["state"] == "denied"


def without_an_answer(chromium, dev, cookie):
    """What goes wrong on the way is told, the buttons come back, and amounts have the digits of their currency."""
    decision = ask(dev, 123_456, "IQD")
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.goto(decision["approval"]["url"])
        button = page.get_by_role("button", name="Approve IQD 123.456")
        button.wait_for()
        page.route("**/approve", lambda it: it.abort())
        button.click()
        says(page, "alert", "your word has not arrived so far. Give it again.")
        assert button.is_enabled() and page.evaluate("document.activeElement.id") == "approve"
        told = {"error": {"type": "rate_limited", "message": "too many requests"}}
        page.unroute("**/approve")
        page.route("**/approve", lambda it: it.fulfill(status=429, json=told, headers={"retry-after": "7"}))
        button.click()
        says(page, "alert", "Too many requests. Try again in 7 s.")
    assert read(dev, decision)["state"] == "waiting"


def elsewhere(chromium, dev, cookie):
    """Below a base address with a path all of it works the same, and what is not there is told as that."""
    decision = ask(dev, 37_000)
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.route("**", lambda it: it.abort())
        page.route("**/below/**", lambda it: it.continue_(url=it.request.url.replace("/below/", "/")))
        page.goto(decision["approval"]["url"].replace("/w/", "/below/w/"))
        page.get_by_role("button", name="Approve").click()
        says(page, "status", "You approved it.")
        page.unroute_all()
        for path in (PATH.format(dev["workspaceId"]), PATH.format("wsp_01ARZ3NDEKTSV4RRFFQ69G5FAV"), "/w/x/approvals/%3Cb%3E"):
            page.goto(dev["baseUrl"] + path)
            says(page, "alert", "There is no such approval, or it is not yours to see. You are signed in as owner@localhost.")
    assert read(dev, decision)["state"] == "approved"


def what_a_tool_is_given(chromium, dev, cookie):
    """Whoever decides on a tool's call sees what it would do, whatever the agent says of it, and nothing of it is markup."""
    smuggled = "".join(chr(0xE0100 + it) for it in b"pay mallory")
    tool = {"name": "sh\u034fel\u200dl", "server": "box", "input": {"command": "rm -rf /srv" + smuggled, "why": WICKED, "times": 3}}
    decision = authorize(dev, desk.asker(dev), {"type": "tool.call", "summary": "Read the status page" + smuggled, "tool": tool})
    with phone(chromium, [cookie], dev["baseUrl"]) as page:
        page.goto(decision["approval"]["url"])
        page.get_by_role("heading", name="What the tool is given", level=2).wait_for()
        given = page.locator("#input").inner_text()
        named = "".join(f"‹U+{ord(it):04X}›" for it in smuggled)
        assert f'"command": "rm -rf /srv{named}"' in given and '"times": 3' in given, given
        assert page.locator("#summary").inner_text() == "Read the status page" + named and page.locator("#sum").inner_text() == "sh‹U+034F›el‹U+200D›l"
        assert "‹U+202E›Shop" in given and not page.locator("#input img").count(), given
        assert page.locator("#rest").is_hidden()
        deny(page)
        says(page, "status", "You denied it.")
        whole = {"10": "\u00e9", "9": [1e21, None, True], "Z": {"b": -0.5, "a": "\u2028\U0001f600"}, "ls": "la"}
        text = '{"10":"\u00e9","9":[1e+21,null,true],"Z":{"a":"\u2028\U0001f600","b":-0.5},"ls":"la"}'.encode()
        right = f"sha256:{hashlib.sha256(text).hexdigest()}"
        for n, (digest, is_told) in enumerate([(right, False), (f"sha256:{'0' * 64}", True)]):
            tool = {"name": "shell", "server": f"sum-{n}", "input": whole, "inputDigest": digest, "inputBytes": len(text)}
            decision = authorize(dev, desk.asker(dev), {"type": "tool.call", "summary": "Look around", "tool": tool})
            page.goto(decision["approval"]["url"])
            page.get_by_role("button", name="Deny").wait_for()
            told = page.locator("#rest").inner_text()
            assert told == (f"Not all of what the tool is given is here: it is {len(text)} bytes in all. Approving lets all of it through." if is_told else ""), told
            page.goto(f"{dev['baseUrl']}/w/{dev['workspaceId']}/activity/{decision['id']}")
            page.get_by_text("What the tool is given", exact=True).wait_for()
            rest = page.get_by_text(f"Not all of what the tool is given is here: it is {len(text)} bytes in all.")
            # A sum of the test's own is behind the page's.
            rest.wait_for() if is_told else page.evaluate("crypto.subtle.digest('SHA-256', new Uint8Array(9)).then(() => new Promise(requestAnimationFrame))")
            assert rest.count() == is_told, page.inner_text("main")
        for n, left in enumerate([{"input": {"command": "ls"}, "inputBytes": 4216}, {"inputDigest": f"sha256:{'0' * 64}", "inputBytes": 4216}]):
            cut = {"name": "shell", "server": f"box-{n}"} | left
            decision = authorize(dev, desk.asker(dev), {"type": "tool.call", "summary": "Look around", "tool": cut})
            page.goto(decision["approval"]["url"])
            page.get_by_text("Not all of what the tool is given is here: it is 4216 bytes in all.").wait_for()
            page.goto(f"{dev['baseUrl']}/w/{dev['workspaceId']}/activity/{decision['id']}")
            page.get_by_text("Not all of what the tool is given is here: it is 4,216 bytes in all.").wait_for()


def test_a_person_decides_at_the_link():
    with browser.browsing() as (dev, chromium):
        cookie = person.sign_in(dev)
        decision = ask(dev, 31_000)
        signed_out(chromium, decision)
        without_script(chromium, decision)
        session_that_ends(chromium, dev, decision)
        tool_that_goes(chromium, dev)
        note_that_stays(chromium, dev, decision)
        approve_by_keyboard(chromium, dev, cookie, decision)
        deny_with_a_note(chromium, dev, cookie)
        after_somebody_else(chromium, dev, cookie)
        as_somebody_else(chromium, dev, cookie)
        texts_that_mislead(chromium, dev, cookie)
        numbers_are_whole(chromium, dev, cookie)
        note_of_any_signs(chromium, dev, cookie)
        second_factor_again(chromium, dev, cookie)
        without_an_answer(chromium, dev, cookie)
        elsewhere(chromium, dev, cookie)
        budgets_owner(chromium, dev, cookie)
        fields_apart(chromium, dev, cookie)
        what_a_tool_is_given(chromium, dev, cookie)
        two_persons(chromium, dev, cookie)
