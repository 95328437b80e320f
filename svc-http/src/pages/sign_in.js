"use strict";
// The token stands behind `#`, which no request carries. Nothing is sent before a person presses the button: what looks
// through mail opens links too.
const part = (id) => document.getElementById(id);
const steps = ["link", "password", "code", "done"];
let token = null;
let pending = null;

function show(step) {
  for (const it of steps) part(it).hidden = it !== step;
  part(step).querySelector("input, button, h2").focus();
}

function say(text) {
  part("said").textContent = text;
}

function begin() {
  token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) history.replaceState(null, "", location.pathname);
  show(token ? "link" : "password");
}

// Sends JSON to this server and gives what it answers, or nothing where it refuses.
async function send(method, path, body, refused) {
  say("");
  for (const it of document.querySelectorAll("button")) it.disabled = true;
  try {
    const headers = { "content-type": "application/json", "x-svc-csrf": "1" };
    const answer = await fetch(path, { method, headers, body: JSON.stringify(body) });
    const said = await answer.json().catch(() => ({}));
    if (answer.ok) return said;
    const error = said.error || {};
    const faults = (error.errors || []).map((it) => it.message);
    const text = faults.length ? faults.join("; ") : error.message || `The server answered ${answer.status}.`;
    say(answer.status === 401 && refused ? refused : text);
  } catch {
    say("The server does not answer. Try again in a moment.");
  } finally {
    for (const it of document.querySelectorAll("button")) it.disabled = false;
  }
  return null;
}

async function go(step) {
  if (step.next === "totp") {
    pending = step.pending;
    show("code");
  } else if (step.next === "sso") {
    say("Your workspace signs people in by single sign-on; this page cannot.");
  } else {
    // Who has to set up a second factor may ask for nothing else yet.
    const me = step.next === "enroll_totp" ? {} : (await send("GET", "api/me")) || {};
    const names = (step.workspaces || []).map((it) => `${it.name} (${it.role})`);
    part("who").textContent = [me.email, ...names].filter(Boolean).join(" · ");
    part("name").value = me.email || "";
    part("new-password").hidden = step.next !== "set_password";
    part("enroll").hidden = step.next !== "enroll_totp";
    show("done");
  }
}

function on(id, act) {
  part(id).addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(event.target));
    const step = await act(fields);
    if (step) await go(step);
  });
}

on("link", () => send("POST", "api/sign-in/link", { token },
  "This link was used before or is too old. Whoever runs the server makes another with `svc sign-in-link EMAIL`."));
on("password", (it) => send("POST", "api/sign-in", it, "That did not match. Try again."));
on("code", (it) => send("POST", "api/sign-in/totp", { pending, ...it }, "That did not match. Try again."));
part("new-password").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await send("POST", "api/me/password", { password: part("new").value })) {
    event.target.hidden = true;
    say("The password is set.");
  }
});
addEventListener("hashchange", begin);
begin();
