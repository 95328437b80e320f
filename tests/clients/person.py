"""A person at a browser that follows nothing by itself, who signs in once and lets clients act as the agent of `svc dev`."""

import html
import json
import re
import urllib.error
import urllib.parse
import urllib.request

# The session at each server: a sign-in link works once.
COOKIES = {}


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect)


def browse(url, form=None, cookie="", headers=(), method=None):
    """One step of the browser: status, headers and text."""
    data = urllib.parse.urlencode(form).encode() if isinstance(form, dict) else form
    request = urllib.request.Request(url, data=data, headers={"cookie": cookie, **dict(headers)}, method=method)
    try:
        answer = OPENER.open(request, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers, answer.read().decode()


def post(url, body):
    """What a program is answered that posts JSON."""
    status, _, text = browse(url, json.dumps(body).encode(), headers={"content-type": "application/json"})
    assert 200 <= status < 300, (status, text)
    return json.loads(text)


def sign_in(dev):
    """The session's cookie."""
    if dev["baseUrl"] not in COOKIES:
        token = json.dumps({"token": dev["signInLink"].split("token=")[1]}).encode()
        headers = {"content-type": "application/json", "x-svc-csrf": "1"}
        status, answer, text = browse(dev["baseUrl"] + "/api/sign-in/link", token, headers=headers)
        assert status == 200, (status, text)
        COOKIES[dev["baseUrl"]] = answer["set-cookie"].split(";")[0]
    return COOKIES[dev["baseUrl"]]


def allow(dev, url, redirect):
    """Says yes on the page that asks; where the browser is sent then, which is the client's own address."""
    cookie = sign_in(dev)
    status, _, page = browse(url, cookie=cookie)
    assert status == 200, (status, page)
    request = html.unescape(re.search(r'name="request" value="([^"]*)"', page).group(1))
    said = {"request": request, "agentId": dev["agentId"], "choice": "allow"}
    status, headers, page = browse(dev["baseUrl"] + "/oauth/authorize", said, cookie, {"origin": dev["baseUrl"]})
    assert status in (302, 303), (status, page)
    assert headers["location"].startswith(redirect + "?"), headers["location"]
    return headers["location"]


def members(url):
    """The members of an address's query."""
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
