"""What every check of the console's pages does: a tab at a page, going about by the keyboard, and what must hold of each page."""

import contextlib
import json
import os
import pathlib

import approving
import axe
import browser
import desk
import person

PAGES = ("approvals", "agents", "activity", "stop")
FILES = os.environ.get("SVC_CONSOLE_FILES")
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
HIDE = """(is) => {
    Object.defineProperty(document, "hidden", { value: is, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@contextlib.contextmanager
def console(chromium, dev, cookie=None, path="", **more):
    """A tab at a page of the workspace."""
    with approving.phone(chromium, [cookie] if cookie else (), dev["baseUrl"], **more) as page:
        if FILES:
            page.route("**/assets/*/*", from_disk)
        page.goto(at(dev, path))
        yield page


def let_in(dev):
    """A client that a person has let act as the agent: its access token."""
    question = browser.question(dev["baseUrl"], 1)
    back = person.allow(dev, question, "http://127.0.0.1:1/callback")
    form = {
        "grant_type": "authorization_code", "code": person.members(back)["code"], "client_id": person.members(question)["client_id"],
        "redirect_uri": "http://127.0.0.1:1/callback", "code_verifier": browser.VERIFIER, "resource": dev["baseUrl"] + "/mcp",
    }  # fmt: skip
    status, _, text = person.browse(dev["baseUrl"] + "/oauth/token", form)
    assert status == 200, text
    return json.loads(text)["access_token"]


def from_disk(route):
    path = pathlib.Path(FILES) / route.request.url.rsplit("/", 1)[1]
    route.fulfill(path=path, content_type=KINDS[path.suffix])


def at(dev, path=""):
    return f"{dev['baseUrl']}/w/{dev['workspaceId']}{path}"


def heading(page, name):
    """Waits for a page with this heading."""
    page.get_by_role("heading", name=name, level=1).first.wait_for()


def opened(page, name):
    """A dialog that has opened."""
    dialog = page.get_by_role("dialog", name=name)
    dialog.wait_for()
    return dialog


def press(page, name, turns=80, exact=True):
    """Goes to a button or link by the tabulator, and presses it; one that is called after more than that is not `exact`."""
    for _ in range(turns):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        named = page.get_by_role("button", name=name, exact=exact).or_(page.get_by_role("link", name=name, exact=exact))
        if focused.and_(named).count():
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"{name} is not reached by the keyboard: {page.inner_text('body')}")


def asked(dev, key, kind="tool.call", **more):
    """What an agent is answered."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    body = {"type": kind, "summary": "Look", "tool": {"name": "grep"}, "provenance": [{"source": "user"}], **more}
    status, _, text = person.browse(dev["baseUrl"] + "/v1/actions/authorize", json.dumps(body).encode(), headers=headers)
    assert status == 200, (status, text)
    return json.loads(text)


def second(dev, role):
    """The session of one more member of this role."""
    made = desk.api(dev, "members", {"email": f"second-{role}@example.com", "role": role})
    token = json.dumps({"token": made["signInLink"].split("token=")[1]}).encode()
    signed_in = person.browse(dev["baseUrl"] + "/api/sign-in/link", token, headers=approving.WRITES)[1]
    return signed_in["set-cookie"].split(";")[0]


def as_axe_sees_it(chromium, dev, cookie, paths, act=None, opening=None):
    """No page has a fault that axe finds, in either scheme, on a phone or a desk, nor has what `opening` opens on each of them or
    `act` at last."""
    wrong = []

    def look(page, path):
        wrong.extend((page.viewport_size["width"], path, it) for it in axe.faults(page))

    for scheme, size in (("light", (1280, 900)), ("dark", (390, 844))):
        with console(chromium, dev, cookie, color_scheme=scheme) as page:
            for path in paths:
                page.set_viewport_size({"width": size[0], "height": size[1]})
                page.goto(at(dev, path))
                page.locator("h1").wait_for()
                page.locator(".loading").first.wait_for(state="detached")
                look(page, path)
                if opening:
                    opening(page, path)
                    look(page, f"{path}, opened")
            if act:
                act(page)
                look(page, "opened")
            page.set_viewport_size({"width": 360, "height": 640})
    assert not wrong, wrong


# What links of rows are called, each with where it leads.
NAMES = """(all) => all.map((it) => {
    const named = (it.getAttribute("aria-labelledby") ?? "").split(" ").filter(Boolean).map((id) => document.getElementById(id).textContent);
    return [named.join(" ") || it.textContent, it.href];
})"""


def named_apart(page, many=2):
    """No two links that name a row are called the same and lead elsewhere."""
    page.locator("tbody th a").nth(many - 1).wait_for()
    names = dict()
    for name, href in page.locator("tbody th a").evaluate_all(NAMES):
        assert names.setdefault(" ".join(name.split()), href) == href, name


def is_text(page, where):
    """Nothing that was written by somebody became markup, or turns round what stands beside it."""
    body = page.locator("body")
    assert not body.locator("img:not(.picture), i, b").count() and "\u202e" not in body.text_content(), where


def fits(page, where, width=360):
    """Nothing is too wide for a phone."""
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, (where, wide)


# How far the edge of what is pressed or typed into is from what it stands on, as WCAG reckons; the least of them, and how many there are.
EDGES = """() => {
    const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map((it) => it / 255).map((it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (it) => (!it ? "rgb(255, 255, 255)" : / 0\\)$/.test(getComputedStyle(it).backgroundColor) ? ground(it.parentElement) : getComputedStyle(it).backgroundColor);
    const of = [...document.querySelectorAll("input, select, textarea, button:not(.main, .danger, .link)")].filter((it) => it.checkVisibility());
    const ratios = of.map((it) => [getComputedStyle(it).borderTopColor, ground(it.parentElement)].map(light).sort((a, b) => b - a)).map(([a, b]) => (a + 0.05) / (b + 0.05));
    return [Math.min(...ratios), ratios.length];
}"""


def edges_are_seen(page, where):
    """Fields and buttons are found by their edges, by day and by night (WCAG 1.4.11)."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        least, many = page.evaluate(EDGES)
        assert many and least >= 3, (where, scheme, least, many)


def fits_at_twice(page, where):
    """Nothing is too wide for a small phone where letters are twice their size."""
    page.evaluate(approving.TWICE)
    fits(page, where)


def fits_in_between(page, where):
    """Nothing goes sideways between a phone and a desk either: on screens a little wider than those on which rows are cards, tables have
    the least room for their columns."""
    for width in (640, 700, 800, 940, 1020, 1160):
        page.set_viewport_size({"width": width, "height": 700})
        fits(page, where, width)
    page.set_viewport_size({"width": 360, "height": 640})
