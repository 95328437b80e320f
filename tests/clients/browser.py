"""A real browser at the pages where a person signs in and lets a client act as an agent: by the keyboard alone, with and
without script, under the pages' content policy, by a link, a password and a second factor, and where something goes wrong.
"""

import base64
import contextlib
import hashlib
import hmac
import html
import http.server
import json
import shutil
import struct
import threading
import time
import urllib.parse
import urllib.request

from playwright.sync_api import Error, sync_playwright

import run

NAME = "Desk <b>client</b>"
VERIFIER = "a" * 43
PASSWORD = "correct horse battery"
# What the console says where nothing has been asked yet.
CONSOLE = "Nothing waits for a person."


class Callback(http.server.BaseHTTPRequestHandler):
    """Where the client is sent back to."""

    got = []

    def do_GET(self):
        if self.path.startswith("/callback"):
            self.got.append((self.path, self.headers.get("referer")))
        # A browser that is closed before it has read this has what it was sent for.
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"done")

    def log_message(self, *_):
        pass


def post(url, body, cookie=""):
    headers = {"content-type": "application/json", "x-svc-csrf": "1", "cookie": cookie}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=60) as answer:
        return answer.headers, answer.read()


def answer_with(page, pattern, change):
    """Has what the server answers at such addresses changed on its way in."""

    def forged(route):
        # A page that has asked anew meanwhile, has gone on, or is answered as it is again, takes no answer any more.
        with contextlib.suppress(Error):
            told = route.fetch()
            body = told.json()
            change(body)
            route.fulfill(response=told, json=body)

    page.route(pattern, forged)


def launched(chromium, *more):
    """A browser, with switches of its own."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "chromium is needed (Debian: apt-get install chromium)"
    # Without a graphics processor one is emulated unless that is forbidden, which takes as much work as all else in the browser.
    return chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu", *more])


@contextlib.contextmanager
def browsing(*flags):
    """A server of its own and a browser."""
    with run.serving("--json", *flags) as line, sync_playwright() as playwright:
        browser = launched(playwright.chromium)
        yield json.loads(line), browser
        browser.close()


@contextlib.contextmanager
def calling_back():
    """Where clients are sent back to; its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Callback)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()


def question(base, port, back=None):
    """The address at which a person is asked, for a client that registered just now and is sent back to `back`."""
    back = back or f"http://127.0.0.1:{port}/callback"
    wish = {"client_name": NAME, "redirect_uris": [back], "token_endpoint_auth_method": "none"}
    client = json.loads(post(base + "/oauth/register", wish)[1])["client_id"]
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
    members = {
        "response_type": "code", "client_id": client, "redirect_uri": back, "state": "a b",
        "code_challenge": challenge, "code_challenge_method": "S256", "resource": base + "/mcp",
    }
    return f"{base}/oauth/authorize?{urllib.parse.urlencode(members)}"


def press(page, name):
    """Goes from control to control with the tabulator until the one with this name has the focus, and presses it."""
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.get_by_role("button", name=name).and_(page.locator(":focus")).count():
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"{name} is not reached by the keyboard")


def sign_in(browser, link):
    """Signs in by a link, by the keyboard alone, and sets a password; the session's cookie. Opening the link uses nothing up."""
    context = browser.new_context(viewport={"width": 360, "height": 640})
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.goto(link)
    page.goto("about:blank")
    page.goto(link)
    assert "token" not in page.url and page.locator("main").bounding_box()["width"] <= 360, page.url
    press(page, "Sign in")
    page.get_by_role("heading", name="You are signed in").wait_for(timeout=20_000)
    assert "(owner)" in page.inner_text("main"), page.inner_text("main")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_text("The password is set.").wait_for(timeout=20_000)
    cookie = next(f"{it['name']}={it['value']}" for it in context.cookies() if it["httpOnly"])
    assert not said, said
    page.goto("about:blank")
    page.goto(link)
    press(page, "Sign in")
    page.get_by_text("used before").wait_for(timeout=20_000)
    assert page.get_by_text("This link signs you in").is_hidden(), "it does not"
    assert page.get_by_label("E-mail").and_(page.locator(":focus")).count(), "there is another way in"
    context.close()
    return cookie


def decide(browser, base, ask, cookie, button, script):
    """One person's way through the page; where they end up, and what the browser said of it."""
    context = browser.new_context(java_script_enabled=script, viewport={"width": 360, "height": 640})
    name, value = cookie.split("=", 1)
    context.add_cookies([{"name": name, "value": value, "url": base}])
    page, said, origins = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda it: it.method == "POST" and origins.append(it.all_headers().get("origin")))
    page.goto(ask)
    main = page.inner_text("main")
    assert NAME in main and "127.0.0.1" in main, main
    assert page.locator("main").bounding_box()["width"] <= 360, "it fits a phone"
    press(page, button)
    page.wait_for_url("**/callback**", timeout=20_000)
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page.url).query))
    context.close()
    assert not said and origins == [base], (said, origins)
    assert (query["state"], query["iss"]) == ("a b", base), query
    return query


def fill(page, name, *texts):
    """Types each text into the field that has the focus and the ones behind it, and sends the form."""
    for text in texts:
        page.keyboard.type(text)
        if text is not texts[-1]:
            page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text(name).first.wait_for(timeout=20_000)


def fresh(browser, address, **more):
    """A page of a browser that knows nothing, once it shows what there is to do."""
    page = browser.new_context(viewport={"width": 360, "height": 640}, **more).new_page()
    page.goto(address)
    page.locator("button:visible").first.wait_for(timeout=20_000)
    return page


def code(secret):
    """The code of this moment (RFC 6238)."""
    key, step = base64.b32decode(secret + "=" * (-len(secret) % 8)), struct.pack(">Q", int(time.time()) // 30)
    digest = hmac.new(key, step, hashlib.sha1).digest()
    place = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[place:place + 4])[0] & 0x7FFFFFFF) % 10**6:06}"


def require_two_factors(dev, cookie):
    headers = {"content-type": "application/json", "x-svc-csrf": "1", "cookie": cookie}
    body = json.dumps({"signIn": {"requireTwoFactor": True}}).encode()
    address = f"{dev['baseUrl']}/api/w/{dev['workspaceId']}/settings"
    urllib.request.urlopen(urllib.request.Request(address, body, headers, method="PUT"), timeout=60).close()


def test_a_person_lets_a_client_in():
    with calling_back() as port, browsing() as (dev, browser):
        base = dev["baseUrl"]
        ask = question(base, port)
        cookie = sign_in(browser, dev["signInLink"])
        for script in (False, True):
            assert len(decide(browser, base, ask, cookie, "Allow", script)["code"]) >= 43
        assert decide(browser, base, ask, cookie, "Deny", False)["error"] == "access_denied"
        page = fresh(browser, ask, java_script_enabled=False)
        assert "Sign in" in page.inner_text("main"), html.escape(page.inner_text("main"))
        page.keyboard.press("Tab")
        fill(page, "did not match", "nobody@example.com", "not the password at all")
        got = list(Callback.got)
        Callback.got.clear()
    assert len(got) == 3 and all(referer is None for _, referer in got), got


def test_a_second_factor_is_set_up_and_replaced_by_recovery_codes():
    """All of it on the pages: who has only a browser is not kept out."""
    with calling_back() as port, browsing() as (dev, browser):
        base = dev["baseUrl"]
        require_two_factors(dev, sign_in(browser, dev["signInLink"]))
        page = fresh(browser, base + "/sign-in")
        said = []
        fill(page, "Set up a second factor", "owner@localhost", PASSWORD)
        page.on("console", lambda message: "status of 40" in message.text or said.append(message.text))
        assert "connect it again" not in page.inner_text("main"), page.inner_text("main")
        page.reload()
        page.get_by_role("heading", name="Set up a second factor").wait_for(timeout=20_000)
        press(page, "Begin")
        page.get_by_role("img", name="QR code").wait_for(timeout=20_000)
        assert page.get_by_role("img").bounding_box()["width"] > 100 and not said, said
        fill(page, "is not the code of this moment", "000000")
        page.get_by_label("Code that the app shows").fill("")
        fill(page, "Keep your recovery codes", code(page.inner_text("#secret")))
        codes = page.locator("#codes li").all_inner_texts()
        assert len(codes) == 10, codes
        press(page, "I have kept them")
        page.get_by_text(CONSOLE).wait_for(timeout=20_000)
        for script in (True, False):
            page = fresh(browser, base + "/sign-in" if script else question(base, port), java_script_enabled=script)
            if not script:
                page.keyboard.press("Tab")
            fill(page, "recovery code", "owner@localhost", PASSWORD)
            page.get_by_label("recovery code").focus()
            fill(page, CONSOLE if script else "Act as", codes.pop().replace("-", " ").upper())
        page = fresh(browser, base + "/sign-in")
        fill(page, "recovery code", "owner@localhost", PASSWORD)
        for _ in range(5):
            assert page.get_by_label("recovery code").is_visible(), page.inner_text("main")
            with page.expect_response("**/totp"):
                fill(page, "did not match", "000 000") if _ < 4 else fill(page, "Begin again with", "000 000")
            page.get_by_label("recovery code").fill("") if _ < 4 else None
        assert page.get_by_label("Password", exact=True).is_visible()


def test_a_factor_that_is_asked_for_comes_first():
    """Where a workspace begins to ask for a second factor, nothing leads past it; elsewhere it is offered."""
    with browsing() as (dev, browser):
        base, back = dev["baseUrl"], f"/w/{dev['workspaceId']}/approvals/two_2"
        page = fresh(browser, dev["signInLink"].replace("#", f"?next={back}#"))
        press(page, "Sign in")
        page.get_by_role("link", name="Go on to the page").wait_for(timeout=20_000)
        press(page, "Set up a second factor")
        page.get_by_role("heading", name="Set up a second factor").and_(page.locator(":focus")).wait_for(timeout=20_000)
        assert "Your workspace asks" not in page.inner_text("main"), page.inner_text("main")
        require_two_factors(dev, "; ".join(f"{it['name']}={it['value']}" for it in page.context.cookies()))
        page.reload()
        page.get_by_role("heading", name="Set up a second factor").and_(page.locator(":focus")).wait_for(timeout=20_000)
        assert "Your workspace asks" in page.inner_text("main") and page.locator("#onward").is_hidden()
        page.get_by_label("New password").focus()
        fill(page, "The password is set.", PASSWORD)
        assert page.url.startswith(base + "/sign-in?"), "nor does setting a password lead past it"
        press(page, "Begin")
        page.get_by_role("img", name="QR code").wait_for(timeout=20_000)
        fill(page, "Keep your recovery codes", code(page.inner_text("#secret")))
        press(page, "I have kept them")
        page.get_by_role("link", name="Go on to the page").wait_for(timeout=20_000)


def test_the_reference_fits_a_phone():
    """No page of the reference scrolls sideways, at twice the size of letters either."""
    with browsing() as (dev, browser):
        page = browser.new_context(viewport={"width": 360, "height": 640}).new_page()
        for path in ("/docs", "/docs/errors"):
            page.goto(dev["baseUrl"] + path)
            for letters in ("100%", "200%"):
                page.evaluate(f"document.documentElement.style.fontSize = '{letters}'")
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= 360, (path, letters, wide)


def test_a_password_is_set_after_a_reload():
    """A link is used up by the first page it leads to, but its session sets a password for as long as it lives."""
    with browsing() as (dev, browser):
        base = dev["baseUrl"]
        page = fresh(browser, dev["signInLink"])
        press(page, "Sign in")
        page.get_by_role("heading", name="You are signed in").wait_for(timeout=20_000)
        page.get_by_role("link", name="reference").click()
        page.go_back()
        page.get_by_role("heading", name="You are signed in").wait_for(timeout=20_000)
        page.get_by_label("New password").focus()
        fill(page, "must be 12 to 256 characters", "x" * 300)
        page.get_by_label("New password").fill("")
        fill(page, "The password is set.", PASSWORD)
        beside = page.context.new_page()
        for shown in (page, beside):
            shown.goto(base + "/sign-in")
            shown.get_by_role("heading", name="You are signed in").wait_for(timeout=20_000)
            assert shown.get_by_label("New password").is_hidden(), "what would be refused is not offered"
        page.evaluate("localStorage.clear()")
        page.reload()
        # The page puts the focus where it belongs once it knows who is there.
        page.get_by_role("heading", name="You are signed in").wait_for(timeout=20_000)
        page.get_by_label("New password").focus()
        fill(page, "A password was set with this link before.", PASSWORD)
        assert page.get_by_label("New password").is_hidden()
        beside.close()
        press(page, "Sign out")
        page.get_by_text("You are signed out.").wait_for(timeout=20_000)
        fill(page, CONSOLE, "owner@localhost", PASSWORD)
        page.goto(base + "/sign-in")
        page.get_by_role("heading", name="You are signed in").wait_for(timeout=20_000)
        press(page, "Sign out")
        page.get_by_text("You are signed out.").wait_for(timeout=20_000)
        assert page.get_by_label("Password", exact=True).input_value() == "", "nothing is left for who comes next"
        page = fresh(browser, base)
        # Whatever is typed into a filter of the console stands so in its address.
        typed = "".join(map(chr, range(0x20, 0x7F))) + "ü€"
        filtered = "/w/one/agents?" + page.evaluate("it => new URLSearchParams({ name: it }).toString()", typed)
        page = fresh(browser, f"{base}/sign-in?next={urllib.parse.quote(filtered, safe='')}")
        fill(page, "did not match", "jörg@example.de", "not the password at all")
        page.get_by_label("Password", exact=True).fill("")
        page.get_by_label("E-mail").fill("")
        with page.expect_navigation(url=lambda it: it == base + filtered):
            page.keyboard.type("owner@localhost")
            page.keyboard.press("Tab")
            page.keyboard.type(PASSWORD)
            page.keyboard.press("Enter")
        for elsewhere in ("//evil.example/w/a", "/w/../docs", "/w/a%0a", "javascript:alert(1)"):
            page = fresh(browser, f"{base}/sign-in?next={elsewhere}")
            fill(page, CONSOLE, "owner@localhost", PASSWORD)
            assert page.url == f"{base}/w/{dev['workspaceId']}", page.url


def test_a_second_click_loses_nothing():
    """On a slow line a second click lets the answer to the first go; whoever follows the page gets there all the same."""
    with calling_back() as port, browsing() as (dev, browser):
        cookie = sign_in(browser, dev["signInLink"])
        page = browser.new_context(java_script_enabled=False).new_page()
        name, value = cookie.split("=", 1)
        page.context.add_cookies([{"name": name, "value": value, "url": dev["baseUrl"]}])
        page.goto(question(dev["baseUrl"], port))
        line = page.context.new_cdp_session(page)
        slow = {"offline": False, "latency": 900, "downloadThroughput": -1, "uploadThroughput": -1}
        line.send("Network.enable")
        line.send("Network.emulateNetworkConditions", slow)
        allow = page.get_by_role("button", name="Allow").bounding_box()
        for _ in range(2):
            with page.expect_request(lambda it: it.method == "POST"):
                page.mouse.click(allow["x"] + 5, allow["y"] + 5)
        line.send("Network.emulateNetworkConditions", slow | {"latency": 0})
        page.wait_for_function("location.pathname === '/callback' || document.querySelector('[role=alert]')")
        if "/callback" not in page.url:
            assert "answered already" in page.inner_text("main"), page.inner_text("main")
            page.get_by_role("link", name="Back to the question").click()
            press(page, "Allow")
        page.wait_for_url("**/callback?code=**", timeout=20_000)
        Callback.got.clear()


def test_a_long_host_is_seen_to_its_end():
    """Where a person is sent is decided by the end of a host, which a long one could keep off a small screen."""
    with browsing() as (dev, browser):
        cookie = sign_in(browser, dev["signInLink"])
        host = f"accounts.google.com.{'a' * 60}.{'b' * 60}.evil.example"
        page = browser.new_context(viewport={"width": 360, "height": 640}).new_page()
        name, value = cookie.split("=", 1)
        page.context.add_cookies([{"name": name, "value": value, "url": dev["baseUrl"]}])
        page.goto(question(dev["baseUrl"], 0, f"https://{host}/callback"))
        assert host in page.inner_text("main"), page.inner_text("main")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, wide
