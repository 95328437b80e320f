"""A real browser at the pages of the console that say who may do what: keys and service tokens, members and teams, settings, and
one's own account; by the keyboard alone, on a phone's screen, in several roles, with texts that want to mislead, and as axe sees
them. What each write brings about is looked at where it counts: at the server.
"""

import json
import re

import approving
import browser
import desk
import person
from console_account import account, ended_to_the_last, me, menu, sessions_apart
from tabs import as_axe_sees_it, at, console, fits, fits_at_twice, fits_in_between, heading, is_text, opened, press, second

PATHS = ("/keys", "/keys?tab=tokens", "/team", "/team?tab=teams", "/settings", "/account")
# What each page asks for in a dialog.
DIALOGS = dict(zip(PATHS, ("New key", "New token", "Invite somebody", "New team", "Change Approvals", "Set it up"), strict=True))


def answered(dev, path, key):
    """The status of what a program is answered that shows this key."""
    return person.browse(dev["baseUrl"] + path, headers={"authorization": f"Bearer {key}"})[0]


def shown_once(page, title):
    """A secret that is shown once, and not let go of by a slip."""
    shown = opened(page, title)
    secret = shown.locator(".secret code").inner_text()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    shown.wait_for()
    press(page, "I have kept it")
    shown.wait_for(state="detached")
    assert secret not in page.content(), "nothing of it stays on the page"
    return secret


def keys(chromium, dev, cookie):
    """A key is made, shown once and revoked without a mouse; it counts for whom it was made, and ends when it is revoked."""
    team = desk.api(dev, "teams", {"name": "Desk team"})
    with console(chromium, dev, cookie) as page:
        page.get_by_text("Nothing waits for a person.").wait_for()
        menu(page, "Keys")
        heading(page, "Keys")
        page.get_by_role("rowheader", name="first start").first.wait_for()
        named = page.get_by_role("button", name="Revoke first start").all_inner_texts()
        assert len(named) > 1 and len(set(named)) == len(named), "keys of one label are told apart by ear"
        press(page, "New key")
        dialog = opened(page, "New key")
        dialog.get_by_label("Team").select_option(label="Desk team")
        dialog.get_by_label("Label").focus()
        page.keyboard.type("Night shift")
        dialog.get_by_label("Ends in, days").fill("5000")
        press(page, "Make a key")
        dialog.locator(".field", has=page.get_by_label("Ends in, days")).locator(".wrong").wait_for()
        assert page.get_by_label("Ends in, days").evaluate("it => it === document.activeElement")
        page.keyboard.press("Control+A")
        page.keyboard.type("9")
        page.keyboard.press("Enter")
        key = shown_once(page, "The new key")
        made = next(it for it in desk.api(dev, "keys")["data"] if it["label"] == "Night shift")
        assert (made["teamId"], made["scope"]) == (team["id"], "inference") and made["expiresAt"], made
        assert answered(dev, "/v1/models", key) == 200
        row = page.get_by_role("row").filter(has_text="Night shift")
        row.get_by_text("in 8 days").wait_for()
        assert "team Desk team" in row.inner_text(), row.inner_text()
        press(page, f"Revoke Night shift {made['prefix']}")
        opened(page, "Revoke this key?")
        press(page, "Revoke it")
        row.wait_for(state="detached")
        assert answered(dev, "/v1/models", key) == 401
        page.get_by_label("Shown").select_option(label="All, ended ones too")
        row.get_by_text("Revoked").wait_for()
        assert not row.get_by_role("button", name="Revoke").count()


def tokens(chromium, dev, cookie):
    """A service token is an owner's: what is wrong with it is said at its field, and what it may is what was ticked."""
    with console(chromium, dev, cookie, "/keys?tab=tokens") as page:
        page.get_by_role("rowheader", name="first start").wait_for()
        press(page, "New token")
        dialog = opened(page, "New service token")
        dialog.get_by_label("Name").fill("Watcher")
        dialog.get_by_label("Only from").fill("127.0.0.1/8")
        press(page, "Make a token")
        dialog.locator("fieldset .wrong").wait_for()
        dialog.get_by_label("Agents: read").check()
        press(page, "Make a token")
        dialog.locator("fieldset .wrong").wait_for(state="detached")
        dialog.get_by_text("Has host bits set").wait_for()
        dialog.get_by_label("Only from").fill("127.0.0.0/8")
        press(page, "Make a token")
        token = shown_once(page, "The new service token")
        assert answered(dev, "/v1/admin/agents", token) == 200
        assert answered(dev, "/v1/admin/approvals", token) == 403, "what was not ticked it may not"
        row = page.get_by_role("row").filter(has_text="Watcher")
        assert "127.0.0.0/8" in row.inner_text() and "agents:read" in row.inner_text(), row.inner_text()
        press(page, "Revoke Watcher")
        opened(page, "Revoke this token?")
        press(page, "Revoke it")
        row.wait_for(state="detached")
        assert answered(dev, "/v1/admin/agents", token) == 401
    with console(chromium, dev, second(dev, "admin"), "/keys?tab=tokens") as page:
        page.get_by_text("Service tokens are an owner's to make and to see.").wait_for()
        assert not page.get_by_role("button", name="New token").count()
        page.get_by_role("link", name="Keys", exact=True).last.click()
        page.get_by_role("button", name="New key").wait_for()


def members(chromium, dev, cookie):
    """Somebody is invited by a link that signs them in, given another role and removed, which ends their session."""
    with console(chromium, dev, cookie) as page:
        page.get_by_text("Nothing waits for a person.").wait_for()
        menu(page, "Team")
        heading(page, "Team")
        owner = page.get_by_role("row").filter(has_text="(you)")
        owner.get_by_role("button", name="Change").wait_for()
        assert not owner.get_by_role("button", name="Remove").count(), "the last owner cannot leave"
        press(page, "Invite somebody")
        dialog = opened(page, "Invite somebody")
        press(page, "Invite")
        dialog.locator(".field .wrong").wait_for()
        dialog.get_by_label("E-mail").fill("nina@example.com")
        dialog.get_by_label("Name").fill("Nina <i>new</i>")
        dialog.get_by_label("Role").select_option("auditor")
        dialog.get_by_label("Desk team").check()
        press(page, "Invite")
        link = shown_once(page, "The invitation")
        row = page.get_by_role("row").filter(has_text="Nina <i>new</i>")
        row.get_by_text("Invited").wait_for()
        assert "Desk team" in row.inner_text(), row.inner_text()
        token = json.dumps({"token": link.split("token=")[1]}).encode()
        status, headers, _ = person.browse(dev["baseUrl"] + "/api/sign-in/link", token, headers=approving.WRITES)
        assert status == 200
        hers = headers["set-cookie"].split(";")[0]
        page.reload()
        row.wait_for()
        assert "Invited" not in row.inner_text(), row.inner_text()
        press(page, "Change Nina <i>new</i>")
        dialog = opened(page, "Change a member")
        dialog.get_by_label("Role").select_option("owner")
        dialog.get_by_text("It is in force at once, in their open pages too.").wait_for()
        assert "agree" not in dialog.inner_text(), "the only owner is asked for nobody's word"
        dialog.get_by_label("Role").select_option("analyst")
        with page.expect_request(lambda it: it.method == "PATCH") as sent:
            press(page, "Save")
        assert sent.value.post_data_json == {"role": "analyst"}, "what is left as it was is not sent"
        row.get_by_text("Analyst").wait_for()
        assert me(dev, hers)[1]["workspaces"][0]["role"] == "analyst"
        press(page, "Change Nina <i>new</i>")
        opened(page, "Change a member").get_by_label("Desk team").uncheck()
        with page.expect_request(lambda it: it.method == "PATCH") as sent:
            press(page, "Save")
        assert sent.value.post_data_json == {"teamIds": []}, "and the role stays"
        page.get_by_role("dialog").wait_for(state="detached")
        press(page, "Remove Nina <i>new</i>")
        dialog = opened(page, "Remove this member?")
        assert "pass to their sponsors" in dialog.inner_text(), dialog.inner_text()
        press(page, "Remove")
        row.wait_for(state="detached")
        assert me(dev, hers)[0] == 401
        page.get_by_label("Shown").select_option(label="Removed")
        row.get_by_role("button", name="Invite again").wait_for()


def as_they_stand(chromium, dev, cookie):
    """What others change of somebody meanwhile stays, and whoever is invited again is invited as they stand."""
    one, two = (desk.api(dev, "teams", {"name": it})["id"] for it in ("Team one", "Team two"))
    desk.api(dev, "members", {"email": "olga@example.com", "role": "analyst", "teamIds": [one]})
    olga = "members/" + next(it["principalId"] for it in desk.api(dev, "members")["data"] if it["email"] == "olga@example.com")
    with console(chromium, dev, cookie, "/team") as page:
        page.get_by_role("button", name="Change olga@example.com").click()
        dialog = opened(page, "Change a member")
        dialog.get_by_label("Team one").uncheck()
        desk.api(dev, olga, {"teamIds": [one, two]}, "PATCH")
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
        assert desk.api(dev, olga)["teamIds"] == [two], "where others put somebody they stay"
        page.get_by_role("button", name="Change olga@example.com").click()
        dialog = opened(page, "Change a member")
        dialog.get_by_label("Role").select_option("admin")
        desk.api(dev, olga, {"role": "member"}, "PATCH")
        dialog.get_by_role("button", name="Save").click()
        approving.says(dialog, "alert", "Somebody else has changed the same meanwhile.")
        dialog.locator(".note").get_by_text("Member", exact=True).wait_for()
        assert desk.api(dev, olga)["role"] == "member"
        dialog.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Invite again olga@example.com").click()
        dialog = opened(page, "Invite again")
        dialog.get_by_label("Role").wait_for()
        assert dialog.get_by_label("Role").input_value() == "member", "not as the list had it"
        desk.api(dev, olga, {"role": "auditor", "teamIds": [one, two]}, "PATCH")
        dialog.get_by_role("button", name="Invite", exact=True).click()
        approving.says(dialog, "alert", "Somebody else has changed the same meanwhile.")
        assert dialog.get_by_label("Role").input_value() == "auditor"
        with page.expect_request(lambda it: it.method == "POST") as sent:
            dialog.get_by_role("button", name="Invite", exact=True).click()
        told = sent.value.post_data_json
        assert told == {"email": "olga@example.com", "role": "auditor", "teamIds": told["teamIds"]} and set(told["teamIds"]) == {one, two}, told
        page.get_by_role("button", name="I have kept it").click()
    delete(dev, olga)
    delete(dev, f"teams/{one}")
    delete(dev, f"teams/{two}")


def owners(chromium, dev, cookie):
    """Where there are two owners the second agrees: nothing has changed before, and what waits is seen and led to."""
    other = second(dev, "owner")
    with console(chromium, dev, cookie, "/team") as page:
        page.get_by_role("row").filter(has_text="second-owner@example.com").get_by_role("button", name="Change").click()
        dialog = opened(page, "Change a member")
        dialog.get_by_label("Role").select_option("admin")
        dialog.get_by_text("Another owner has to agree within 24 hours; until then all stays as it is.").wait_for()
        assert "at once" not in dialog.inner_text(), dialog.inner_text()
        dialog.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Invite somebody").click()
        dialog = opened(page, "Invite somebody")
        dialog.get_by_label("E-mail").fill("third@example.com")
        dialog.get_by_label("Role").select_option("owner")
        dialog.get_by_text("Another owner has to agree within 24 hours; nobody is invited before.").wait_for()
        dialog.get_by_role("button", name="Invite", exact=True).click()
        dialog = opened(page, "Another owner has to agree")
        assert "third@example.com" not in [it["email"] for it in desk.api(dev, "members")["data"]]
        dialog.get_by_role("button", name="Close").click()
        waits = page.locator(".note").filter(has_text="Waits for another owner")
        waits.get_by_role("link", name="Look", exact=True).wait_for()
        waits.get_by_text("Invite somebody as an owner: third@example.com, asked for by You").wait_for()
        row = page.get_by_role("row").filter(has_text="second-owner@example.com")
        row.get_by_role("button", name="Remove").click()
        opened(page, "Remove this member?").get_by_role("button", name="Remove", exact=True).click()
        opened(page, "Another owner has to agree").get_by_role("button", name="Close").click()
        row.get_by_role("link", name="Waits for an owner").wait_for()
        row.get_by_role("button", name="Remove").click()
        dialog = opened(page, "Remove this member?")
        dialog.get_by_role("button", name="Remove", exact=True).click()
        approving.says(dialog, "alert", "Another owner has to agree: not the one who asked.")
        page.keyboard.press("Escape")
        with console(chromium, dev, other, "/team") as others:
            others.locator(".note").get_by_role("link", name="Look and decide").first.wait_for()
            others.goto(at(dev, "/approvals?kind=owner"))
            others.get_by_role("link", name=re.compile("^Remove an owner: second-owner@example.com .{6}$")).wait_for()
            others.get_by_role("link", name=re.compile("^Invite somebody as an owner: third@example.com .{6}$")).click()
            others.get_by_text("Whoever may see this can read it.").wait_for()
            assert "agent" not in others.locator("label[for=note]").inner_text(), "no agent has asked for it"
        for it in reversed(desk.api(dev, "approvals?state=waiting&kind=owner")["data"]):
            status = person.browse(f"{dev['baseUrl']}/api/w/{dev['workspaceId']}/approvals/{it['id']}/approve", b"{}", other, approving.WRITES)[0]
            assert status == 200, status
        waits.wait_for(state="detached")
        row.wait_for(state="detached")
        row = page.get_by_role("row").filter(has_text="third@example.com")
        row.get_by_text("Owner").wait_for()
        row.get_by_role("button", name="Change").click()
        dialog = opened(page, "Change a member")
        dialog.get_by_label("Role").select_option("member")
        dialog.get_by_text("It is in force at once, in their open pages too.").wait_for()
        assert "agree" not in dialog.inner_text(), "whoever is invited has no word yet"
        dialog.get_by_role("button", name="Cancel").click()
    with console(chromium, dev, approving.invited(dev, "admin"), "/team") as page:
        page.get_by_text("Owners are changed by owners").first.wait_for()
        page.get_by_role("button", name="Invite somebody").click()
        offered = opened(page, "Invite somebody").get_by_label("Role").locator("option").all_inner_texts()
        assert offered == ["Admin", "Member", "Analyst", "Auditor"], offered


def teams(chromium, dev, cookie):
    """A team is made and changed, keeps whom somebody else lets in meanwhile, and is not removed while a key is bound to it."""
    everybody = {it["email"]: it["principalId"] for it in desk.api(dev, "members")["data"]}
    with console(chromium, dev, cookie, "/team?tab=teams") as page:
        page.get_by_role("rowheader", name="Desk team").wait_for()
        press(page, "New team")
        dialog = opened(page, "New team")
        press(page, "Make the team")
        dialog.locator(".field .wrong").wait_for()
        dialog.get_by_label("Name").fill("Research")
        dialog.get_by_label("owner@localhost").check()
        press(page, "Make the team")
        row = page.get_by_role("row").filter(has_text="Research")
        row.wait_for()
        press(page, "Change Research")
        dialog = opened(page, "Change a team")
        dialog.get_by_label("owner@localhost").uncheck()
        dialog.get_by_label("admin@example.com").first.check()
        team = next(it for it in desk.api(dev, "teams")["data"] if it["name"] == "Research")
        late = everybody["second-admin@example.com"]
        desk.api(dev, f"teams/{team['id']}", {"memberIds": [everybody["owner@localhost"], late]}, "PATCH")
        dialog.get_by_label("Answers for it").select_option(label="owner@localhost")
        press(page, "Save")
        dialog.wait_for(state="detached")
        team = desk.api(dev, f"teams/{team['id']}")
        assert late in team["memberIds"] and everybody["owner@localhost"] not in team["memberIds"], team
        assert len(team["memberIds"]) == 2, team
        assert team["owner"] == everybody["owner@localhost"], team
        row.get_by_text("You").first.wait_for()
        key = desk.api(dev, "keys", {"teamId": team["id"]})["binding"]["id"]
        press(page, "Remove Research")
        dialog = opened(page, "Remove this team?")
        press(page, "Remove it")
        dialog.get_by_role("alert").wait_for()
        delete(dev, f"keys/{key}")
        press(page, "Remove it")
        row.wait_for(state="detached")
        assert "Research" not in [it["name"] for it in desk.api(dev, "teams")["data"]]


def in_parts(page, size):
    """Has a list of members answered in two parts, of which the first holds the newest alone."""
    beyond = f"**/members?limit={size}&cursor=beyond"
    page.route(beyond, lambda it: it.fulfill(response=it.fetch(url=it.request.url.replace("&cursor=beyond", ""))))
    browser.answer_with(page, f"**/members?limit={size}", lambda it: it.update(nextCursor="beyond", data=it["data"][:1]))


def beyond_a_part(chromium, dev, cookie):
    """Whoever came long ago is offered wherever a person is chosen, however many came since, and is found by name in the team."""
    relay = desk.api(dev, "integrations", {"kind": "relay", "config": {}})["id"]
    oldest = [it for it in desk.api(dev, "members")["data"] if it["state"] == "active"][-2]
    email, agent = oldest["email"], dev["agentId"]

    def by(label):
        return lambda page: page.get_by_role("dialog").get_by_label(label)

    def person_of(page):
        page.get_by_label("Which").select_option("principalId")
        return page.get_by_label("Person")

    places = (
        ("/agents", "New agent", by("Sponsor")), ("/agents", "New agent", by("Kill owner")), (f"/agents/{agent}", "Change", by("Sponsor")),
        ("/keys", "New key", by("Counts for")), ("/budgets", "New budget", by("Owner")), ("/team?tab=teams", "New team", by("Answers for it")),
        ("/stop", None, person_of),
    )  # fmt: skip
    with console(chromium, dev, cookie) as page:
        in_parts(page, 500)
        in_parts(page, 100)
        for path, button, field in places:
            page.goto(at(dev, path))
            if button:
                page.get_by_role("button", name=button, exact=True).first.click()
            field(page).locator("option", has_text=oldest["name"] or email).wait_for(state="attached")
        page.goto(at(dev, f"/integrations/{relay}"))
        page.get_by_role("button", name="Change").click()
        dialog = opened(page, "Change: Relay")
        dialog.get_by_label("Who is who").fill(f"U1 = {email}")
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
        page.goto(at(dev, "/team"))
        page.get_by_role("table").wait_for()
        assert not page.get_by_role("row").filter(has_text=email).count()
        page.get_by_label("Find by name or e-mail").fill(email.upper())
        page.get_by_role("row").filter(has_text=email).wait_for()
        assert page.get_by_role("row").count() == 2 and f"name={email.split('@')[0].upper()}" in page.url, page.url
        page.reload()
        page.get_by_role("row").filter(has_text=email).wait_for()
        page.get_by_label("Find by name or e-mail").fill("nobody at all")
        page.get_by_text("Nobody is shown by this choice.").wait_for()
    assert desk.api(dev, f"integrations/{relay}")["config"]["members"] == {"U1": oldest["principalId"]}
    delete(dev, f"integrations/{relay}")


def delete(dev, path):
    """Ends something below the workspace."""
    address = f"{dev['baseUrl']}/api/w/{dev['workspaceId']}/{path}"
    status, _, text = person.browse(address, None, person.sign_in(dev), approving.WRITES, "DELETE")
    assert status == 204, (status, text)


def settings(chromium, dev, cookie):
    """Settings are changed one by one, in their bounds; nobody's change is lost, and none lets more through by a slip."""
    with console(chromium, dev, cookie) as page:
        page.get_by_text("Nothing waits for a person.").wait_for()
        menu(page, "Settings")
        heading(page, "Settings")
        press(page, "Change Approvals")
        dialog = opened(page, "Approvals")
        press(page, "Save")
        approving.says(dialog, "alert", "Nothing is changed yet.")
        dialog.get_by_label("A question waits for").fill("200")
        press(page, "Save")
        dialog.locator(".field", has=page.get_by_label("A question waits for")).locator(".wrong").wait_for()
        dialog.get_by_label("A question waits for").fill("48")
        dialog.get_by_label("Two persons decide above").fill("EUR 1,000.00")
        press(page, "Save")
        dialog.get_by_text("Must be a currency and an amount on each line, such as EUR 1000.00").wait_for()
        dialog.get_by_label("Two persons decide above").fill("EUR 1000.00\nJPY 1000.50")
        press(page, "Save")
        dialog.get_by_text("such as JPY 1000, without commas").wait_for()
        dialog.get_by_label("Two persons decide above").fill("eur 1000.50\nJPY 90000")
        with page.expect_request(lambda it: it.method == "PUT") as sent:
            press(page, "Save")
        assert sent.value.post_data_json == {"approvalHours": 48, "secondPersonAbove": {"EUR": 100_050, "JPY": 90_000}}
        dialog.wait_for(state="detached")
        page.get_by_text("EUR\u00a01,000.50").wait_for()
        page.get_by_text("48 hours").wait_for()
        press(page, "Change Approvals")
        dialog = opened(page, "Approvals")
        dialog.get_by_label("A question waits for").fill("30")
        dialog.get_by_label("Two persons decide above").fill("")
        desk.api(dev, "settings", {"approvalHours": 12, "maxWaiting": 7}, "PUT")
        press(page, "Save")
        approving.says(dialog, "alert", "Somebody else has changed the same meanwhile.")
        dialog.locator(".note").get_by_text("12 hours").wait_for()
        press(page, "Save")
        approving.says(dialog, "alert", "Nothing is saved yet: this lets more through than before.")
        dialog.locator(".note").get_by_text("Two persons decide above").wait_for()
        assert desk.api(dev, "settings")["approvalHours"] == 12
        press(page, "Save all the same")
        dialog.wait_for(state="detached")
        now = desk.api(dev, "settings")
        assert (now["approvalHours"], now["secondPersonAbove"], now["maxWaiting"]) == (30, {}, 7), "what was not touched stays"
        press(page, "Change Workspace")
        dialog = opened(page, "Workspace")
        dialog.get_by_label("Name").fill("Workshop <b>one</b>")
        dialog.get_by_label("Time zone").fill("Mars/Olympus")
        press(page, "Save")
        dialog.locator(".field", has=page.get_by_label("Time zone")).locator(".wrong").wait_for()
        dialog.get_by_label("Time zone").fill("Pacific/Kiritimati")
        press(page, "Save")
        dialog.wait_for(state="detached")
        page.locator(".home").get_by_text("Workshop <b>one</b>").wait_for()
        menu(page, "Keys")
        page.locator("time[title*='GMT+14']").first.wait_for()
        desk.api(dev, "settings", {"name": "First workspace", "timezone": None, "approvalHours": None, "maxWaiting": None}, "PUT")


def no_single_sign_on(chromium, dev, cookie):
    """What nobody may ask for from here is not offered, and said."""
    with console(chromium, dev, cookie, "/settings") as page:
        page.get_by_role("button", name="Change Signing in").click()
        dialog = opened(page, "Signing in")
        dialog.get_by_text("sign in that way, then it can be chosen here").wait_for()
        assert not dialog.get_by_label("Only single sign-on counts").count()
        dialog.get_by_text("You have none yourself").wait_for()


def roles(chromium, dev):
    """Each role is offered what it may do, and is told where it may not go."""
    with console(chromium, dev, approving.invited(dev, "member"), "/settings") as page:
        page.get_by_text("Owners and admins change these; your role here is member.").wait_for()
        page.get_by_text("24 hours").wait_for()
        assert not page.get_by_role("button", name="Change").count()
        page.get_by_role("button", name="Menu").click()
        named = page.get_by_role("navigation", name="Pages").get_by_role("link").all_inner_texts()
        assert "Settings" in named and not {"Keys", "Team"} & set(named), named
        for path in ("/keys", "/team"):
            page.goto(at(dev, path))
            page.get_by_text("Your role here, member, does not reach this page.").wait_for()
        page.goto(at(dev, "/account"))
        heading(page, "Your account")
        page.locator("main").get_by_text("member@example.com").wait_for()
    with console(chromium, dev, approving.invited(dev, "auditor"), "/team") as page:
        page.get_by_text("Owners and admins invite, change and remove members.").wait_for()
        page.get_by_role("row").filter(has_text="(you)").wait_for()
        for path in ("/team", "/team?tab=teams"):
            page.goto(at(dev, path))
            page.locator("table").wait_for()
            offered = {it.inner_text().split()[0] for it in page.locator("main").get_by_role("button").all()}
            assert not {"Invite", "Change", "Remove", "New"} & offered, offered


def texts_that_mislead(chromium, dev, cookie):
    """What others wrote is text on these pages too: no markup, nothing turned round, nothing too wide for a phone."""
    name = approving.WICKED[:100]
    team = desk.api(dev, "teams", {"name": name})
    desk.api(dev, "members", {"email": "wicked@example.com", "name": name, "role": "member", "teamIds": [team["id"]]})
    desk.api(dev, "keys", {"label": name, "teamId": team["id"]})
    desk.api(dev, "service-tokens", {"name": name, "scopes": ["agents:read"]})
    desk.api(dev, "settings", {"name": name}, "PUT")
    for path in PATHS:
        with console(chromium, dev, cookie, path) as page:
            page.locator("main bdi", has_text="<img src=x").first.wait_for()
            page.locator(".loading").first.wait_for(state="detached")
            is_text(page, path)
            assert page.locator(".bar").bounding_box()["height"] <= 64, "the bar leaves room for the page"
            fits_in_between(page, path)
            page.get_by_role("button", name=DIALOGS[path]).first.click()
            page.get_by_role("dialog").locator("form").wait_for()
            if path == "/team":
                page.get_by_role("dialog").locator("label", has_text="<img src=x").wait_for()
            is_text(page, path)
            for size in (390, 360):
                page.set_viewport_size({"width": size, "height": 800})
                fits(page, path, size)
            page.set_viewport_size({"width": 360, "height": 640})
            fits_at_twice(page, path)
    desk.api(dev, "settings", {"name": "First workspace"}, "PUT")


def opens(page, path):
    """The dialog of a page, with what it says where nothing was typed."""
    page.get_by_role("button", name=DIALOGS[path]).first.click()
    page.get_by_role("dialog").locator("form").wait_for()
    # A key needs nothing to be said of it.
    if path != "/keys":
        page.get_by_role("dialog").locator("form button").first.click()
        page.get_by_role("dialog").get_by_role("alert").wait_for()


def test_people_and_what_they_may_are_administered():
    with browser.browsing() as (dev, chromium):
        cookie = browser.sign_in(chromium, dev["signInLink"])
        person.COOKIES[dev["baseUrl"]] = cookie
        keys(chromium, dev, cookie)
        tokens(chromium, dev, cookie)
        members(chromium, dev, cookie)
        as_they_stand(chromium, dev, cookie)
        owners(chromium, dev, cookie)
        teams(chromium, dev, cookie)
        beyond_a_part(chromium, dev, cookie)
        settings(chromium, dev, cookie)
        no_single_sign_on(chromium, dev, cookie)
        as_axe_sees_it(chromium, dev, cookie, PATHS, opening=opens)
        texts_that_mislead(chromium, dev, cookie)
        roles(chromium, dev)
        sessions_apart(chromium, dev, cookie)
        ended_to_the_last(chromium, dev, cookie)
        account(chromium, dev, cookie)
