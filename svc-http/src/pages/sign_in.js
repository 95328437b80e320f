"use strict";
// The token stands behind `#`, which no request carries. Nothing is sent before a person presses the button: what looks
// through mail opens links too.
/** @type {(id: string) => any} */
const part = (id) => document.getElementById(id);
const steps = ["link", "password", "sso", "code", "enroll", "recovery", "linking", "done"];
// As the server has them: what waits for the second factor ends with its fifth wrong code, or after five minutes.
const TRIES = 5;
const WAIT_MS = 5 * 60 * 1000;
const WRONG = "That did not match. Try again.";
// Where this browser keeps by which session a password was set: without the one before, a session by a link sets one, once.
const SET = "password-set-by";
// A workspace whose single sign-on is offered, and one whose provider vouches for somebody whose account exists already: it is
// linked once they have signed in as before.
let [offered, linking] = [workspaceIn("workspace"), workspaceIn("link")];
let proof;
// Whether a provider vouches for the session: then the account's own proof sets up the second factor beside it.
let bySso = false;
let token = null;
let pending = null;
let session = null;
let wrong = 0;
let until = 0;

// The page of this server that sent somebody here, seen from this one; nowhere else is led to.
function onward() {
  const next = new URLSearchParams(location.search).get("next") || "";
  const isPage = /^\/w\/[A-Za-z0-9_/-]+(\?[A-Za-z0-9_.=&%:+*-]*)?$/.test(next);
  return isPage || /^\/oauth\/authorize\?[!-~]*$/.test(next) ? next.slice(1) : null;
}

function workspaceIn(name) {
  const id = new URLSearchParams(location.search).get(name) || "";
  return /^wsp_[0-9A-Z]{26}$/.test(id) ? id : null;
}

// Ways to the identity providers of workspaces, which lead back to where somebody came from.
function offer(workspaces) {
  const next = onward();
  part("places").replaceChildren(...workspaces.map(({ id, name }) => {
    const [item, way] = [document.createElement("li"), document.createElement("a")];
    way.href = `api/sign-in/sso/${id}${next ? `?next=${encodeURIComponent(`/${next}`)}` : ""}`;
    way.textContent = name ? `Sign in to ${name} with single sign-on` : "Sign in with single sign-on";
    item.append(way);
    return item;
  }));
}

// Signing in by a password, beside single sign-on where the workspace is known.
function askWho() {
  if (offered && !linking) offer([{ id: offered }]);
  show("password", ...(offered && !linking ? ["sso"] : []));
}

// Whose account it is was shown: the provider's word is linked to it where its holder says so.
function link(email) {
  say("");
  part("own").textContent = email;
  show("linking");
}

// Shows steps, and goes to the first of them. What was typed is let go of: a password or code is not there for whoever comes next.
function show(...shown) {
  for (const it of document.forms) it.reset();
  for (const it of steps) part(it).hidden = !shown.includes(it);
  part(shown[0]).querySelector("input, button, h2").focus();
}

// Setting up a second factor, beside what may be done without one.
function enroll(isAsked, ...beside) {
  part("asked").hidden = !isAsked;
  [part("begin").hidden, part("confirm").hidden] = [false, true];
  show("enroll", ...beside);
}

function say(text) {
  part("said").textContent = text;
}

async function begin() {
  say("");
  token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) history.replaceState(null, "", location.pathname + location.search);
  if (token) return show("link");
  if (linking) say("Your account exists already. Sign in to it as before, once more; then single sign-on can be linked to it.");
  const { status, said } = await ask("GET", "api/me");
  // A link was opened in this very page meanwhile.
  if (token) return undefined;
  // A session that has to set up a second factor may ask for nothing else yet.
  if (status === 403) return enroll(true);
  return status === 200 && said.session ? arrive(said, false) : askWho();
}

// Sends JSON to this server; the status is 0 where nothing answers.
async function ask(method, path, body) {
  const held = /** @type {HTMLElement} */ (document.activeElement);
  for (const it of document.querySelectorAll("button")) it.disabled = true;
  try {
    const headers = { "content-type": "application/json", "x-svc-csrf": "1" };
    const answer = await fetch(path, { method, headers, body: JSON.stringify(body) });
    const said = (await answer.json().catch(() => null)) || {};
    return { status: answer.status, seconds: Number(answer.headers.get("retry-after")), said };
  } catch {
    return { status: 0, seconds: 0, said: {} };
  } finally {
    for (const it of document.querySelectorAll("button")) it.disabled = false;
    held.focus();
  }
}

// The answer where it has the member `has`; else it says what is wrong, and 401 as `refused` has it.
async function send(method, path, body, has, refused = ended) {
  say("");
  const answer = await ask(method, path, body);
  if (answer.status === 200 && answer.said[has] !== undefined) return answer.said;
  say(answer.status === 401 ? refused() : fault(answer));
  return null;
}

function fault({ status, seconds, said }) {
  if (status === 0) return "The server does not answer. Try again in a moment.";
  if (status === 200) return "Something else answered in the server's place. Look at your network, then try again.";
  if (status === 403) return "The server does not take that from here. Open this page at the server's own address and try again.";
  if (status === 429) return `There were too many tries. Wait ${seconds > 90 ? `${Math.ceil(seconds / 60)} minutes` : `${seconds || 60} seconds`}, then try again.`;
  const error = said.error || {};
  const faults = (error.errors || []).map((it) => it.message);
  return (faults.join("; ") || error.reason || error.message || `The server answered ${status}.`).replaceAll("`", "");
}

function ended() {
  askWho();
  return "You are no longer signed in. Sign in again.";
}

function wrongCode() {
  wrong += 1;
  if (wrong < TRIES && Date.now() < until) return WRONG;
  show("password");
  return "This sign-in has ended. Begin again with your password, or with a new link.";
}

async function go(step) {
  if (step.next === "totp") {
    [pending, wrong, until] = [step.pending, 0, Date.now() + WAIT_MS];
    show("code");
  } else if (step.next === "sso" && linking) {
    proof = step.pending;
    link("yours");
  } else if (step.next === "sso") {
    offer(step.workspaces || []);
    proof = step.pending;
    // The account's own proof, beside a session of single sign-on in this browser, sets up the second factor.
    const { status, said } = await ask("GET", "api/me");
    if (status === 200 && said.session && !said.twoFactor) enroll(false, "sso");
    else show("sso");
  } else if (step.next === "enroll_totp") {
    enroll(true);
  } else {
    const me = await send("GET", "api/me", undefined, "session");
    if (me) arrive(me, step.next === "done");
  }
}

// Somebody is signed in; where nothing is left to set up, they go on to where they came from, else to the console.
function arrive(me, isDone) {
  if (linking && !String(me.session.proof).startsWith("sso")) return link(me.email);
  // A workspace that asks for a second factor takes no session without one, whenever it began to ask.
  const lacks = !me.twoFactor && !String(me.session.proof).startsWith("sso");
  const asking = me.workspaces.filter((it) => lacks && it.signIn.requireTwoFactor);
  // The console itself leads into a workspace that takes them, if there is one.
  const next = onward() || "./";
  const isBarred = next === "./" ? asking.length === me.workspaces.length : asking.some((it) => next.split(/[/?]/)[1] === it.id);
  if (isDone && !isBarred) return location.assign(next);
  if (asking.length) enroll(true, "done");
  else show("done");
  part("factor").hidden = Boolean(me.twoFactor) || asking.length > 0;
  bySso = String(me.session.proof).startsWith("sso");
  const names = me.workspaces.map((it) => `${it.name} (${it.role})`);
  part("who").textContent = [me.email, ...names].filter(Boolean).join(" · ");
  part("name").value = me.email;
  session = me.session.id;
  part("new-password").hidden = me.session.proof !== "link" || inBrowser((it) => it.getItem(SET)) === session;
  part("onward").hidden = isBarred;
  const way = part("onward").firstChild;
  [way.href, way.textContent] = [next, onward() ? "Go on to the page that sent you here" : "Go on to the console"];
}

// What this browser keeps, where it lets pages keep anything.
function inBrowser(act) {
  try {
    return act(localStorage);
  } catch {
    return null;
  }
}

function on(id, act) {
  part(id).addEventListener("submit", async (event) => {
    event.preventDefault();
    await act(Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (event.target))));
  });
}

// Where this is right, the sign-in goes on.
function leadsOn(id, path, body, refused) {
  on(id, async (fields) => {
    const answer = await send("POST", path, body(fields), "next", refused);
    if (answer) await go(answer);
  });
}

leadsOn("link", "api/sign-in/link", () => ({ token }), () => {
  // It signs nobody in any more; who has a password needs none.
  token = null;
  askWho();
  return "This link was used before or is too old. Sign in by your password, or have whoever runs the server make another with svc sign-in-link.";
});
leadsOn("password", "api/sign-in", (it) => it, () => WRONG);
leadsOn("code", "api/sign-in/totp", ({ code }) => {
  const typed = code.replace(/[\s-]/g, "");
  return /^[0-9]{6}$/.test(typed) ? { pending, code: typed } : { pending, recoveryCode: typed };
}, wrongCode);
part("again").addEventListener("click", () => {
  say("");
  askWho();
});
on("linking", async () => {
  const answer = await send("POST", `api/sign-in/sso/${linking}`, proof ? { pending: proof } : {}, "next",
    () => "You are not signed in to the account that the provider knows. Sign in to it, then link it.");
  if (!answer) return;
  [linking, proof] = [null, undefined];
  await go(answer);
});
on("factor", () => {
  say("");
  if (!bySso) return enroll(false);
  show("password");
  say("The second factor is your account's own. Show first that it is yours, by its password, or open a sign-in link in this page.");
});
// What is sent to set up the second factor, with the account's own proof where there is one.
const proven = (fields) => (proof ? { ...fields, pending: proof } : fields);
on("begin", async () => {
  const made = await send("POST", "api/me/totp", proven({}), "qrSvg");
  if (!made) return;
  const picture = new DOMParser().parseFromString(made.qrSvg, "image/svg+xml").documentElement;
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", "The key below as a QR code");
  part("picture").replaceChildren(picture);
  part("secret").textContent = made.secret;
  [part("begin").hidden, part("confirm").hidden] = [true, false];
  part("confirm").querySelector("input").focus();
});
on("confirm", async ({ code }) => {
  const made = await send("POST", "api/me/totp/confirm", proven({ code: code.replace(/\s/g, "") }), "recoveryCodes");
  if (!made) return;
  proof = undefined;
  part("codes").replaceChildren(...made.recoveryCodes.map((it) => {
    const [line, text] = [document.createElement("li"), document.createElement("code")];
    text.textContent = it;
    line.append(text);
    return line;
  }));
  show("recovery");
});
on("kept", async () => {
  const me = await send("GET", "api/me", undefined, "session");
  if (!me) return;
  for (const it of ["picture", "secret", "codes"]) part(it).replaceChildren();
  arrive(me, me.session.proof !== "link");
});
on("new-password", async () => {
  say("");
  const answer = await ask("POST", "api/me/password", { password: part("new").value });
  const isSet = answer.status === 200 && answer.said.session;
  // Another page of this sign-in has set one meanwhile.
  const wasSet = answer.status === 400 && ((answer.said.error || {}).errors || []).some((it) => it.field === "current");
  if (!isSet && !wasSet) return say(answer.status === 401 ? ended() : fault(answer));
  inBrowser((it) => it.setItem(SET, session));
  if (isSet && onward() && !part("onward").hidden) return location.assign(onward());
  part("new-password").hidden = true;
  part(part("enroll").hidden ? "done" : "enroll").querySelector("h2").focus();
  say(isSet ? "The password is set." : "A password was set with this link before. Another link lets you set another.");
});
on("out", async () => {
  const { status } = await ask("POST", "api/sign-out", {});
  if (status !== 200 && status !== 401) return say("The server does not answer. Try again in a moment.");
  show("password");
  say("You are signed out.");
});
addEventListener("hashchange", begin);
begin();
