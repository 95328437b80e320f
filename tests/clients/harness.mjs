// What the programs for Node share: the server they speak with, a person who lets them in, and how they tell what they found.

import assert from "node:assert/strict";

export const dev = JSON.parse(process.env.SVC_DEV_JSON);

/// Says yes on the page that asks, in the session that there is; where the browser is sent then, which is the client's own
/// address.
export async function allow(url, redirect) {
  const cookie = process.env.SVC_DEV_COOKIE;
  const page = await fetch(url, { headers: { cookie } });
  const text = await page.text();
  assert.equal(page.status, 200, text);
  const request = /name="request" value="([A-Za-z0-9_.-]*)"/.exec(text)[1];
  const answer = await fetch(`${dev.baseUrl}/oauth/authorize`, {
    method: "POST",
    redirect: "manual",
    headers: { cookie, origin: dev.baseUrl },
    body: new URLSearchParams({ request, agentId: dev.agentId, choice: "allow" }),
  });
  assert.ok([302, 303].includes(answer.status), await answer.text());
  const location = answer.headers.get("location");
  assert.ok(location.startsWith(`${redirect}?`), location);
  return new URL(location);
}

/// Does each of the checks, and prints a line of it.
export async function runAll(checks) {
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok ${name}`);
    } catch (error) {
      console.log(`FAILED ${name}`);
      console.log(error);
    }
  }
}
