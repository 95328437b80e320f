"""A real browser at the pages where a person signs in by a link and lets a client act as an agent: by the keyboard alone, the
second with and without script, under the pages' content policy, and from signing in by a form.
"""

import base64
import contextlib
import hashlib
import html
import http.server
import json
import shutil
import threading
import urllib.parse
import urllib.request

from playwright.sync_api import sync_playwright

import run

NAME = "Desk <b>client</b>"
VERIFIER = "a" * 43
PASSWORD = "correct horse battery"


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


def question(base, port):
    """The address at which a person is asked, for a client that registered just now."""
    wish = {"client_name": NAME, "redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "none"}
    client = json.loads(post(base + "/oauth/register", wish)[1])["client_id"]
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
    members = {
        "response_type": "code", "client_id": client, "redirect_uri": f"http://127.0.0.1:{port}/callback", "state": "a b",
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


def test_a_person_lets_a_client_in():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Callback)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert chromium, "chromium is needed (Debian: apt-get install chromium)"
    with run.serving("--json") as line, sync_playwright() as playwright:
        dev = json.loads(line)
        base = dev["baseUrl"]
        ask = question(base, server.server_port)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        cookie = sign_in(browser, dev["signInLink"])
        for script in (False, True):
            assert len(decide(browser, base, ask, cookie, "Allow", script)["code"]) >= 43
        assert decide(browser, base, ask, cookie, "Deny", False)["error"] == "access_denied"
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(ask)
        assert "Sign in" in page.inner_text("main"), html.escape(page.inner_text("main"))
        page.keyboard.press("Tab")
        page.keyboard.type("nobody@example.com")
        page.keyboard.press("Tab")
        page.keyboard.type("not the password at all")
        page.keyboard.press("Enter")
        page.wait_for_selector("[role=alert]", timeout=20_000)
        browser.close()
    assert len(Callback.got) == 3 and all(referer is None for _, referer in Callback.got), Callback.got
