"""The official MCP SDK on both sides of the proxy: its server behind svc, in both its manners, and its client in front, in
both eras. What the gate allows goes on, what it denies does not reach the server.
"""

import asyncio
import contextlib
import functools
import json
import os
import socket
import threading

import uvicorn
from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings

import person

DEV = json.loads(os.environ["SVC_DEV_JSON"])
SECRET = "planted-behind-the-proxy"


class Behind:
    """A server of the SDK, and what it was called with and by whom."""

    def __init__(self, **manner):
        self.calls, self.seen = [], []
        server = MCPServer("behind", log_level="CRITICAL")

        @server.tool()
        def add(a: int, b: int) -> int:
            """Adds two numbers."""
            self.calls.append(("add", a, b))
            return a + b

        @server.tool()
        async def count(to: int, ctx: Context) -> str:
            """Counts, and tells how far it is."""
            self.calls.append(("count", to))
            for step in range(1, to + 1):
                await ctx.report_progress(step, to, f"at {step}")
            return f"counted to {to}"

        @server.tool()
        def fail() -> str:
            """Fails."""
            raise ToolError("out of order")

        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        app = server.streamable_http_app(transport_security=security, **manner)

        async def noting(scope, receive, send):
            if scope["type"] == "http":
                self.seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
            await app(scope, receive, send)

        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        # Whoever connects before the server runs waits.
        self.socket.listen()
        config = uvicorn.Config(noting, log_level="error", lifespan="on")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}/mcp"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join(10)


def console(method, path, body=None):
    """What the console answers the signed-in owner."""
    cookie = person.sign_in(DEV)
    url = f"{DEV['baseUrl']}/api/w/{DEV['workspaceId']}/{path}"
    request = person.urllib.request.Request(url, method=method, data=json.dumps(body).encode() if body else None)
    for name, value in {"cookie": cookie, "x-svc-csrf": "1", "content-type": "application/json"}.items():
        request.add_header(name, value)
    with person.OPENER.open(request, timeout=30) as answer:
        text = answer.read()
        return json.loads(text) if text else None


@functools.cache
def key():
    """The key of an agent of its own: what tools of others bring in stays in the account of whoever called them."""
    wish = {"name": "Proxied", "principalEmail": "owner@localhost", "mandates": [{"template": "coding-agent"}]}
    return console("POST", "agents", wish)["key"]


@contextlib.contextmanager
def put_behind(name, behind, **more):
    credential = {"type": "bearer", "secret": SECRET}
    made = console("POST", "mcp-servers", {"name": name, "url": behind.url, "credential": credential, **more})
    try:
        assert made["state"] == "ok" and SECRET not in json.dumps(made), made
        yield made
    finally:
        console("DELETE", f"mcp-servers/{made['id']}")


async def use(name, mode, streams):
    """Lists, calls, hears of progress and of a failure; the revision that was spoken."""
    heard = []

    async def progress(done, total, message):
        heard.append((done, total, message))

    headers = {"authorization": f"Bearer {key()}"}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(f"{DEV['baseUrl']}/mcp/proxy/{name}", http_client=http)
        async with Client(transport, mode=mode) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            assert listed == ["add", "count", "fail"], listed
            added = await client.call_tool("add", {"a": 2, "b": 3})
            assert not added.is_error and added.structured_content == {"result": 5}, added
            counted = await client.call_tool("count", {"to": 3}, progress_callback=progress)
            assert counted.content[0].text == "counted to 3", counted
            failed = await client.call_tool("fail", {})
            assert failed.is_error and "out of order" in failed.content[0].text, failed
            told = [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]
            assert heard == (told if streams else []), heard
            return client.protocol_version


def check(streams=True, **manner):
    with Behind(**manner) as behind, put_behind("behind", behind):
        assert asyncio.run(use("behind", "legacy", streams)) == "2025-11-25"
        assert asyncio.run(use("behind", "auto", streams)) == "2026-07-28"
        assert behind.calls.count(("add", 2, 3)) == 2, behind.calls
        shown = {headers.get("authorization") for headers in behind.seen}
        assert shown == {f"Bearer {SECRET}"}, "the agent's credential never goes on"
        actions = console("GET", "actions?type=mcp.call&limit=6")["data"]
        assert {action["tool"]["server"] for action in actions} == {"behind"}, actions
        assert sorted(action["status"] for action in actions) == ["completed"] * 4 + ["failed"] * 2, actions


def test_a_server_with_sessions():
    check()


def test_a_server_without_sessions():
    check(streams=False, stateless_http=True, json_response=True)


def test_what_is_left_out_is_not_there():
    with Behind() as behind, put_behind("narrow", behind, tools={"deny": ["fail", "count"]}):

        async def listed():
            headers = {"authorization": f"Bearer {key()}"}
            async with create_mcp_http_client(headers=headers) as http:
                transport = streamable_http_client(f"{DEV['baseUrl']}/mcp/proxy/narrow", http_client=http)
                async with Client(transport) as client:
                    return [tool.name for tool in (await client.list_tools()).tools]

        assert asyncio.run(listed()) == ["add"]
