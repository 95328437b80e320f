"""The official MCP SDK as a client: its transport in both eras with a key, and its OAuth, from discovery and registration to a
token that is refreshed while it is in use, a used one that ends the connection, and one that is revoked.
"""

import asyncio
import json
import os

from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

import person

DEV = json.loads(os.environ["SVC_DEV_JSON"])
SERVER = DEV["baseUrl"] + "/mcp"
REDIRECT = "http://127.0.0.1:51645/callback"
TOOLS = {"authorize_action", "settle_action", "check_action_status", "explain_decision", "spend_summary"}
ACTION = {"type": "tool.call", "summary": "Look a word up", "tool": {"name": "look_up", "input": {"word": "gate"}}}


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
        led.update(person.members(await asyncio.to_thread(person.allow, DEV, url, REDIRECT)))

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
    status, _, text = person.browse(token, used)
    assert status == 400 and json.loads(text)["error"] == "invalid_grant", (status, text)
    status, _, text = person.browse(token, {**used, "refresh_token": second.refresh_token})
    assert status == 400 and json.loads(text)["error"] == "invalid_grant", "reuse has ended the whole connection"
    third = Storage()
    asyncio.run(use(auth=connecting(third)))
    status, _, text = person.browse(
        DEV["baseUrl"] + "/oauth/revoke", {"token": third.tokens.refresh_token, "client_id": third.client.client_id}
    )
    assert (status, json.loads(text)) == (200, {}), (status, text)
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    bearer = {"authorization": f"Bearer {third.tokens.access_token}", "content-type": "application/json"}
    bearer |= {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    status, headers, text = person.browse(SERVER, ping, headers=bearer)
    assert status == 401 and "resource_metadata=" in headers["www-authenticate"], (status, text)
