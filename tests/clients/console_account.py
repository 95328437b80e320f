"""One's own account in the console: the sessions, each told apart and ended, the password and the second factor; for the check of the
pages that say who may do what.
"""

import json

import approving
import browser
import person
from tabs import at, console, fits_at_twice, heading, opened, press

ANOTHER = "another horse entirely"


def me(dev, cookie, path=""):
    """What a person is answered about themselves."""
    status, _, text = person.browse(f"{dev['baseUrl']}/api/me{path}", cookie=cookie)
    return status, json.loads(text)


def signed_in(dev, password=browser.PASSWORD):
    """One more session of the owner's."""
    body = json.dumps({"email": "owner@localhost", "password": password}).encode()
    status, headers, text = person.browse(dev["baseUrl"] + "/api/sign-in", body, headers=approving.WRITES)
    assert status == 200, (status, text)
    return headers["set-cookie"].split(";")[0]


def menu(page, name):
    """Goes to a page by the frame's menu, by the keyboard."""
    press(page, "Menu")
    press(page, name)


def ended_to_the_last(chromium, dev, cookie):
    """All other sessions are ended, those too that the list has not shown yet."""
    others = [signed_in(dev) for _ in range(3)]
    with console(chromium, dev, cookie) as page:
        page.route("**/me/sessions?*", lambda it: it.continue_(url=it.request.url.replace("limit=100", "limit=2")))
        page.goto(at(dev, "/account"))
        page.get_by_role("button", name="Show more").wait_for()
        page.get_by_role("button", name="End all others").click()
        opened(page, "End all other sessions?").get_by_role("button", name="End", exact=True).click()
        page.get_by_text("Nowhere else.").wait_for()
    assert [me(dev, it)[0] for it in (*others, cookie)] == [401, 401, 401, 200]


def sessions_apart(chromium, dev, cookie):
    """Sessions of one minute, and of one second, are told apart by ear, and the one that is meant is told once more and ended."""
    others = [signed_in(dev) for _ in range(3)]
    ids = [me(dev, it)[1]["session"]["id"] for it in others]
    begun = dict(zip(ids, ("2026-11-20T10:20:30.100Z", "2026-11-20T10:20:30.900Z", "2026-11-20T10:20:31.000Z"), strict=True))

    def answer(body):
        for it in body["data"]:
            it["createdAt"] = begun.get(it["id"], it["createdAt"])

    with console(chromium, dev, cookie) as page:
        browser.answer_with(page, "**/me/sessions?*", answer)
        page.goto(at(dev, "/account"))
        same = [f"20 Nov 2026, 10:20:30 UTC, id …{it[-6:]}" for it in ids[:2]]
        for name in (*same, "20 Nov 2026, 10:20:31 UTC"):
            page.get_by_role("button", name=f"End the session since {name}", exact=True).wait_for()
            page.locator("td div").get_by_text(name, exact=True).wait_for()
        assert page.locator("tbody tr").evaluate_all("all => all.every(it => it.scrollWidth <= it.clientWidth)"), "rows hold what they say"
        fits_at_twice(page, "sessions")
        press(page, f"End the session since {same[1]}")
        dialog = opened(page, "End this session?")
        dialog.get_by_text(same[1], exact=True).wait_for()
        dialog.get_by_text("A password", exact=True).wait_for()
        fits_at_twice(page, "a session that is to end")
        press(page, "End")
        dialog.wait_for(state="detached")
        assert [me(dev, it)[0] for it in others] == [200, 401, 200]


def account(chromium, dev, cookie):
    """A password is set, and a second factor set up and removed; other sessions end where that is said, one by one or all."""
    one, two, three = signed_in(dev), signed_in(dev), signed_in(dev)
    with console(chromium, dev, cookie) as page:
        page.get_by_text("Nothing waits for a person.").wait_for()
        menu(page, "Account")
        heading(page, "Your account")
        page.get_by_role("button", name="End all others").wait_for()
        newest = me(dev, cookie, "/sessions")[1]["data"][0]
        assert me(dev, three)[1]["session"]["id"] == newest["id"]
        page.locator("tbody tr").first.get_by_role("button").focus()
        page.keyboard.press("Enter")
        opened(page, "End this session?")
        press(page, "End")
        page.get_by_role("dialog").wait_for(state="detached")
        assert [me(dev, it)[0] for it in (one, two, three)] == [200, 200, 401]
        press(page, "End all others")
        opened(page, "End ")
        press(page, "End")
        page.get_by_text("Nowhere else.").wait_for()
        assert [me(dev, it)[0] for it in (one, two, cookie)] == [401, 401, 200]
        password(page, dev)
        factor(page, dev, cookie)
        press(page, "Sign out here")
        page.wait_for_url("**/sign-in")
        page.get_by_label("E-mail").wait_for()
        assert me(dev, cookie)[0] == 401


def password(page, dev):
    """The password: the present one has to be right, the new one long enough and typed twice."""
    other = signed_in(dev)
    for present, new, again, wrong in (
        (browser.PASSWORD, ANOTHER, "something else", "Is not the same as the new password."),
        ("not this one at all", ANOTHER, ANOTHER, "Is not the present password."),
        (browser.PASSWORD, "short", "short", "12 to 256 characters."),
    ):
        page.get_by_label("Present password").fill(present)
        page.get_by_label("New password", exact=True).fill(new)
        page.get_by_label("New password again").fill(again)
        page.keyboard.press("Enter")
        page.locator(".wrong").get_by_text(wrong).wait_for()
    page.get_by_label("New password", exact=True).fill(ANOTHER)
    page.get_by_label("New password again").fill(ANOTHER)
    page.keyboard.press("Enter")
    page.get_by_text("The password is set. Your other sessions have ended.").wait_for()
    assert page.get_by_label("Present password").input_value() == "", "what was typed is let go of"
    assert me(dev, other)[0] == 401
    signed_in(dev, ANOTHER)


def factor(page, dev, cookie):
    """The second factor: shown as a picture and a text, in force by a code of it, gone by a recovery code."""
    press(page, "Set it up")
    dialog = opened(page, "Set up a second factor")
    picture = dialog.get_by_role("img", name="QR code")
    assert picture.evaluate("async (it) => (await it.decode(), it.naturalWidth)") > 0 and picture.bounding_box()["width"] > 100
    dialog.get_by_label("Code that the app shows").fill("000000")
    press(page, "Set it up")
    dialog.locator(".field .wrong").wait_for()
    dialog.get_by_label("Code that the app shows").fill(browser.code(dialog.locator(".secret code").inner_text()))
    press(page, "Set it up")
    dialog = opened(page, "Keep your recovery codes")
    codes = dialog.locator("li").all_inner_texts()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert len(set(codes)) == 10, codes
    press(page, "I have kept them")
    page.get_by_role("button", name="Remove it").wait_for()
    assert me(dev, cookie)[1]["twoFactor"] and codes[0] not in page.content()
    press(page, "Remove it")
    dialog = opened(page, "Remove your second factor?")
    dialog.get_by_label("A code of it").fill("000000")
    press(page, "Remove it")
    dialog.get_by_role("alert").wait_for()
    dialog.get_by_label("A code of it").fill(codes[3].upper())
    press(page, "Remove it")
    page.get_by_role("button", name="Set it up").wait_for()
    assert not me(dev, cookie)[1]["twoFactor"]
