// The official MCP SDK for TypeScript as a client: its transport in both eras with a key, and its OAuth, from discovery and
// registration to a token that is refreshed while it is in use, and a used one that ends the connection.

import assert from "node:assert/strict";

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

import { allow, dev, runAll } from "./harness.mjs";

const server = new URL(`${dev.baseUrl}/mcp`);
const redirect = "http://127.0.0.1:51646/callback";
const tools = ["authorize_action", "settle_action", "check_action_status", "explain_decision", "spend_summary"];
const action = { type: "tool.call", summary: "Look a word up", tool: { name: "look_up", input: { word: "gate" } } };
const eras = { legacy: "2025-11-25", auto: "2026-07-28" };

/// What a client keeps of its connection, in memory.
class Provider {
  redirectUrl = redirect;
  clientMetadata = {
    client_name: "Check",
    redirect_uris: [redirect],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  said = "state of the client";
  state = () => this.said;
  clientInformation = () => this.client;
  saveClientInformation = (client) => void (this.client = client);
  tokens = () => this.kept;
  saveTokens = (tokens) => void (this.kept = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  redirectToAuthorization = (url) => void (this.asked = url);
  discoveryState = () => this.discovered;
  saveDiscoveryState = (state) => void (this.discovered = state);
  invalidateCredentials = () => void (this.kept = undefined);

  /// A token that the server takes no more, as it is after its hour.
  expire() {
    this.kept = { ...this.kept, access_token: `aat_${"A".repeat(43)}` };
  }
}

function connection(mode, options) {
  const client = new Client({ name: "check", version: "1" }, { versionNegotiation: { mode } });
  return [client, new StreamableHTTPClientTransport(server, options)];
}

/// Uses the gate with nothing but the server's tools.
async function use(client) {
  const listed = (await client.listTools()).tools.map((it) => it.name);
  for (const tool of tools) assert.ok(listed.includes(tool), listed);
  const asked = await client.callTool({ name: "authorize_action", arguments: action });
  assert.ok(!asked.isError, JSON.stringify(asked));
  const { id } = asked.structuredContent;
  const again = await client.callTool({ name: "check_action_status", arguments: { actionId: id } });
  assert.equal(again.structuredContent.id, id);
  const wrong = await client.callTool({ name: "check_action_status", arguments: { actionId: "act_nothing" } });
  assert.ok(wrong.isError && wrong.content[0].text);
}

/// Registers, is let in by a person, and is connected.
async function connected(mode, provider) {
  const [refused, transport] = connection(mode, { authProvider: provider });
  await assert.rejects(refused.connect(transport), UnauthorizedError);
  assert.equal(provider.asked.searchParams.get("code_challenge_method"), "S256");
  assert.equal(provider.asked.searchParams.get("resource"), server.href);
  const back = await allow(provider.asked, redirect);
  assert.equal(back.searchParams.get("state"), provider.said);
  await transport.finishAuth(back.searchParams);
  const [client, fresh] = connection(mode, { authProvider: provider });
  await client.connect(fresh);
  return client;
}

const checks = {
  async both_eras_with_a_key() {
    for (const [mode, revision] of Object.entries(eras)) {
      const headers = { authorization: `Bearer ${dev.agentKey}` };
      const [client, transport] = connection(mode, { requestInit: { headers } });
      await client.connect(transport);
      await use(client);
      assert.equal(client.getNegotiatedProtocolVersion(), revision);
      await client.close();
    }
  },

  async oauth_in_both_eras() {
    for (const [mode, revision] of Object.entries(eras)) {
      const provider = new Provider();
      const client = await connected(mode, provider);
      assert.equal(client.getNegotiatedProtocolVersion(), revision);
      await use(client);
      const first = provider.kept;
      assert.match(first.access_token, /^aat_/);
      assert.match(first.refresh_token, /^art_/);
      // It goes on by itself, without a person, while it is connected.
      provider.asked = undefined;
      provider.expire();
      await use(client);
      const second = provider.kept;
      assert.ok(second.access_token !== first.access_token && second.refresh_token !== first.refresh_token);
      assert.equal(provider.asked, undefined);
      // Somebody shows the first refresh token a second time: nobody is connected any more, and a person is asked again.
      const members = { grant_type: "refresh_token", client_id: provider.client.client_id };
      const body = new URLSearchParams({ ...members, refresh_token: first.refresh_token });
      const reuse = await fetch(`${dev.baseUrl}/oauth/token`, { method: "POST", body });
      assert.deepEqual([reuse.status, (await reuse.json()).error], [400, "invalid_grant"]);
      await assert.rejects(client.listTools(undefined, { cacheMode: "bypass" }), UnauthorizedError);
      assert.ok(provider.asked, "it sends its person to the page that asks");
      await client.close();
    }
  },
};

await runAll(checks);
