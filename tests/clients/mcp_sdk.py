"""The official MCP SDK as a client: its transport in both eras with a key, and its OAuth, from discovery and registration to a
token that is refreshed while it is in use, a used one that ends the connection, and one that is revoked.
"""

import asyncio
import html
import json
import os
import re
import urllib.parse
import urllib.request

from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

DEV = json.loads(os.environ["SVC_DEV_JSON"])
SERVER = DEV["baseUrl"] + "/mcp"
REDIRECT = "http://127.0.0.1:51645/callback"
TOOLS = {"authorize_action", "settle_action", "check_action_status", "explain_decision", "spend_summary"}
ACTION = {"type": "tool.call", "summary": "Look a word up", "tool": {"name": "look_up", "input": {"word": "gate"}}}


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


def browse(url, form=None, cookie="", headers=()):
    """One step of a browser that follows nothing by itself: status, headers and text."""
    data = urllib.parse.urlencode(form).encode() if isinstance(form, dict) else form
    request = urllib.request.Request(url, data=data, headers={"cookie": cookie, **dict(headers)})
    try:
        answer = OPENER.open(request, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers, answer.read().decode()


class Person:
    """Somebody with a session, who says yes for an agent. The sign-in link works once, so there is one of them."""

    cookie = None

    @classmethod
    def sign_in(cls):
        if cls.cookie is None:
            token = json.dumps({"token": DEV["signInLink"].split("token=")[1]}).encode()
            headers = {"content-type": "application/json", "x-svc-csrf": "1"}
            status, answer, text = browse(DEV["baseUrl"] + "/api/sign-in/link", token, headers=headers)
            assert status == 200, (status, text)
            cls.cookie = answer["set-cookie"].split(";")[0]
        return cls.cookie

    @classmethod
    def allow(cls, url):
        cookie = cls.sign_in()
        status, _, page = browse(url, cookie=cookie)
        assert status == 200, (status, page)
        request = html.unescape(re.search(r'name="request" value="([^"]*)"', page).group(1))
        said = {"request": request, "agentId": DEV["agentId"], "choice": "allow"}
        status, headers, page = browse(DEV["baseUrl"] + "/oauth/authorize", said, cookie, {"origin": DEV["baseUrl"]})
        assert status in (302, 303), (status, page)
        found = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(headers["location"]).query))
        assert headers["location"].startswith(REDIRECT + "?"), headers["location"]
        return found


class Storage:
    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


def connecting(storage):
    led = {}

    async def redirect(url):
        led.update(await asyncio.to_thread(Person.allow, url))

    async def callback():
        return AuthorizationCodeResult(code=led["code"], state=led.get("state"), iss=led.get("iss"))

    metadata = OAuthClientMetadata(
        client_name="Check", redirect_uris=[REDIRECT], grant_types=["authorization_code", "refresh_token"],
        response_types=["code"], token_endpoint_auth_method="none",
    )
    return OAuthClientProvider(SERVER, metadata, storage, redirect, callback)


async def use(mode="auto", headers=None, auth=None):
    """Lists the tools and uses the gate with nothing but them; the revision that was spoken."""
    async with create_mcp_http_client(headers=headers, auth=auth) as http:
        async with Client(streamable_http_client(SERVER, http_client=http), mode=mode) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert TOOLS <= listed, listed
            asked = await client.call_tool("authorize_action", ACTION)
            assert not asked.is_error, asked
            told = asked.structured_content
            again = await client.call_tool("check_action_status", {"actionId": told["id"]})
            assert again.structured_content["id"] == told["id"], again
            wrong = await client.call_tool("check_action_status", {"actionId": "act_nothing"})
            assert wrong.is_error and wrong.content[0].text, wrong
            return client.protocol_version


async def use_past_expiry(provider, storage):
    """Connects, and goes on with a token that is past its time as far as the client knows: it refreshes by itself, without a
    person. The first tokens."""
    await use(auth=provider)
    first = storage.tokens
    provider.context.token_expiry_time = 1
    provider.context.redirect_handler = provider.context.callback_handler = None
    await use(auth=provider)
    return first


def test_both_eras_with_a_key():
    headers = {"authorization": f"Bearer {DEV['agentKey']}"}
    assert asyncio.run(use("legacy", headers)) == "2025-11-25"
    assert asyncio.run(use("auto", headers)) == "2026-07-28"


def test_oauth_from_discovery_to_revocation():
    storage = Storage()
    first = asyncio.run(use_past_expiry(connecting(storage), storage))
    assert first.access_token.startswith("aat_") and first.refresh_token.startswith("art_") and storage.client.client_id
    second = storage.tokens
    assert second.refresh_token != first.refresh_token and second.access_token != first.access_token
    token = DEV["baseUrl"] + "/oauth/token"
    used = {"grant_type": "refresh_token", "refresh_token": first.refresh_token, "client_id": storage.client.client_id}
    status, _, text = browse(token, used)
    assert status == 400 and json.loads(text)["error"] == "invalid_grant", (status, text)
    status, _, text = browse(token, {**used, "refresh_token": second.refresh_token})
    assert status == 400 and json.loads(text)["error"] == "invalid_grant", "reuse has ended the whole connection"
    third = Storage()
    asyncio.run(use(auth=connecting(third)))
    status, _, text = browse(
        DEV["baseUrl"] + "/oauth/revoke", {"token": third.tokens.refresh_token, "client_id": third.client.client_id}
    )
    assert (status, json.loads(text)) == (200, {}), (status, text)
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    bearer = {"authorization": f"Bearer {third.tokens.access_token}", "content-type": "application/json"}
    bearer |= {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    status, headers, text = browse(SERVER, ping, headers=bearer)
    assert status == 401 and "resource_metadata=" in headers["www-authenticate"], (status, text)
