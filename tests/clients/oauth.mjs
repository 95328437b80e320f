// A client library of OAuth that knows nothing of MCP: discovery of both kinds, registration with every client authentication,
// a code with PKCE, state and issuer, refresh, a used token that ends the connection, and revocation.

import assert from "node:assert/strict";

import * as oauth from "openid-client";

import { allow, dev, runAll } from "./harness.mjs";

const redirect = "http://127.0.0.1:51647/callback";
const resource = `${dev.baseUrl}/mcp`;
const ways = {
  none: () => oauth.None(),
  client_secret_basic: (secret) => oauth.ClientSecretBasic(secret),
  client_secret_post: (secret) => oauth.ClientSecretPost(secret),
};

/// A client that found the server by one kind of discovery, registered, and authenticates itself in one way.
async function registered(way, algorithm = "oauth2") {
  const options = { algorithm, execute: [oauth.allowInsecureRequests] };
  const metadata = {
    client_name: "Check",
    redirect_uris: [redirect],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: way,
  };
  const fresh = await oauth.dynamicClientRegistration(new URL(dev.baseUrl), metadata, undefined, options);
  const { client_id: id, client_secret: secret } = fresh.clientMetadata();
  assert.equal(secret === undefined, way === "none");
  return oauth.discovery(new URL(dev.baseUrl), id, { client_secret: secret }, ways[way](secret), options);
}

/// The tokens that a person lets the client have.
async function connected(config) {
  const pkceCodeVerifier = oauth.randomPKCECodeVerifier();
  const expectedState = oauth.randomState();
  const url = oauth.buildAuthorizationUrl(config, {
    redirect_uri: redirect,
    code_challenge: await oauth.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: "S256",
    state: expectedState,
    resource,
  });
  const back = await allow(url, redirect);
  // It refuses an answer without the issuer that the metadata promise.
  assert.equal(config.serverMetadata().authorization_response_iss_parameter_supported, true);
  assert.equal(back.searchParams.get("iss"), dev.baseUrl);
  const tokens = await oauth.authorizationCodeGrant(config, back, { pkceCodeVerifier, expectedState }, { resource });
  assert.match(tokens.access_token, /^aat_/);
  assert.match(tokens.refresh_token, /^art_/);
  assert.ok(tokens.expiresIn() > 3000);
  return tokens;
}

/// Whether the server takes an access token.
async function works(token) {
  const answer = await fetch(resource, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "mcp-protocol-version": "2025-11-25" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
  });
  const text = await answer.text();
  assert.ok([200, 401].includes(answer.status), text);
  return answer.status === 200;
}

const isInvalidGrant = (error) => error.error === "invalid_grant" && error.status === 400 && !!error.error_description;

const checks = {
  async a_used_refresh_token_ends_the_connection_of_every_kind_of_client() {
    for (const way of Object.keys(ways)) {
      const config = await registered(way);
      const first = await connected(config);
      const second = await oauth.refreshTokenGrant(config, first.refresh_token, { resource });
      assert.ok(second.refresh_token !== first.refresh_token && second.access_token !== first.access_token);
      assert.ok(await works(second.access_token));
      await assert.rejects(oauth.refreshTokenGrant(config, first.refresh_token), isInvalidGrant);
      assert.equal(await works(second.access_token), false);
      await assert.rejects(oauth.refreshTokenGrant(config, second.refresh_token), isInvalidGrant);
    }
  },

  async revocation_ends_the_connection() {
    for (const way of Object.keys(ways)) {
      for (const revoked of ["access_token", "refresh_token"]) {
        const config = await registered(way, "oidc");
        const tokens = await connected(config);
        await oauth.tokenRevocation(config, `art_${"A".repeat(43)}`);
        assert.ok(await works(tokens.access_token));
        await oauth.tokenRevocation(config, tokens[revoked], { token_type_hint: revoked });
        assert.equal(await works(tokens.access_token), false);
        await assert.rejects(oauth.refreshTokenGrant(config, tokens.refresh_token), isInvalidGrant);
      }
    }
  },

  async a_code_is_good_for_one_attempt() {
    const config = await registered("client_secret_basic");
    const [right, wrong] = [oauth.randomPKCECodeVerifier(), oauth.randomPKCECodeVerifier()];
    const members = { redirect_uri: redirect, code_challenge_method: "S256", resource };
    const url = async () => {
      const code_challenge = await oauth.calculatePKCECodeChallenge(right);
      return oauth.buildAuthorizationUrl(config, { ...members, code_challenge });
    };
    const turn = (back, pkceCodeVerifier) => oauth.authorizationCodeGrant(config, back, { pkceCodeVerifier });
    const spoiled = await allow(await url(), redirect);
    await assert.rejects(turn(spoiled, wrong), isInvalidGrant);
    await assert.rejects(turn(spoiled, right), isInvalidGrant);
    const used = await allow(await url(), redirect);
    const { access_token } = await turn(used, right);
    await assert.rejects(turn(used, wrong), isInvalidGrant);
    assert.ok(await works(access_token), "an old address in the wrong hands ends nothing");
    await assert.rejects(turn(used, right), isInvalidGrant);
    assert.equal(await works(access_token), false);
  },

  async a_client_with_a_wrong_secret_is_told_so() {
    for (const way of ["client_secret_basic", "client_secret_post"]) {
      const config = await registered(way);
      const { refresh_token } = await connected(config);
      const { client_id: id } = config.clientMetadata();
      const wrong = new oauth.Configuration(config.serverMetadata(), id, undefined, ways[way]("not the secret"));
      oauth.allowInsecureRequests(wrong);
      const isInvalidClient = (error) =>
        error.error === "invalid_client" || (error.status === 401 && error.cause?.some?.((it) => it.scheme === "basic"));
      await assert.rejects(oauth.refreshTokenGrant(wrong, refresh_token), isInvalidClient);
      assert.ok((await oauth.refreshTokenGrant(config, refresh_token)).access_token);
    }
  },
};

await runAll(checks);
