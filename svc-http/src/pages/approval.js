// The script of the page of an approval. Its words, and "use strict", are approval_words.js, how texts are shown is approval_texts.js,
// and what is asked approval_matter.js: all stand before it. Nothing is decided before a person presses a button.
const LOOK_MS = 10_000;
const ANSWER_MS = 20_000;
// A page that nobody touches stops looking, so that it does not keep a session open that nobody uses.
const WATCHED_MS = 30 * 60_000;
const NOTE_MAX = 500;
const KEPT = "note";
const UNKNOWN = "The server did not answer, so it is not known whether your word arrived. What is shown here is looked up again.";
const UNHEARD = "The server did not answer, and your word has not arrived so far. Give it again.";
const TOLD = "state sum matter summary input rest origin reasons needed may approve people facts sent me".split(" ");
/** @type {(id: string) => any} */
const part = (id) => document.getElementById(id);
const [place, wid, apv] = /\/w\/([^/]+)\/approvals\/([^/]+)$/.exec(location.pathname) || [];
const within = `api/w/${wid}/`;
const own = `${within}approvals/${apv}`;
const NEXT = encodeURIComponent(place || "/");
const SIGN_IN = `../../../sign-in?next=${NEXT}&workspace=${wid}`;
const SINGLE = `../../../api/sign-in/sso/${wid}?next=${NEXT}`;

let me = null;
// Whether `me` may be somebody else by now, or may do less.
let stale = false;
let shown = null;
let turn = 0;
let timer = 0;
let busy = false;
let ahead = 0;
let asksWhy = true;
let touched = Date.now();
let moment = null;
const known = new Map();

// Asking.

// What this server answers; status 0 where it does not.
async function ask(path, body) {
  const headers = { "content-type": "application/json", "x-svc-csrf": "1" };
  const init = body ? { method: "POST", headers, body: JSON.stringify(body) } : {};
  try {
    const answer = await fetch(`../../../${path}`, { ...init, signal: AbortSignal.timeout(ANSWER_MS) });
    const said = await answer.json();
    if ([401, 403, 404].includes(answer.status)) stale = true;
    ahead = Date.parse(answer.headers.get("date")) - Date.now() || 0;
    const wait = Number(answer.headers.get("retry-after")) || 0;
    return { status: answer.status, said, error: said.error || {}, wait };
  } catch {
    return { status: 0, said: {}, error: {}, wait: 0 };
  }
}

// What is read once, or nothing where this person may not; what cannot be read now is thrown.
async function read(path) {
  if (known.has(path)) return known.get(path);
  const { status, said } = await ask(within + path);
  if (![200, 403, 404].includes(status)) throw SILENT;
  // Names stay; what a person decides by moves on, and what may not be read now may be later.
  if (status === 200 && !/^(budgets|holds|mandates)/.test(path)) known.set(path, said);
  return status === 200 ? said : null;
}

function workspace(of = me) {
  return ((of && of.workspaces) || []).find((it) => it.id === wid) || {};
}

// A person, a machine or a rule by its name; `called`: those that a record carries, for who may read no members.
async function who(by, called = new Map()) {
  if (by === workspace().principalId) return "You";
  if (by.startsWith("token:")) return `Service token ${by.slice(6)}`;
  if (by.startsWith("agt_")) return ((await read(`agents/${by}`)) || {}).name || by;
  const member = by.startsWith("prp_") && (await read(`members/${by}`));
  const rules = { policy: "The rules", freeze: "A freeze of the agent", program: "The server's operator" };
  if (member) return member.name ? `${member.name} (${member.email})` : member.email;
  return rules[by] || called.get(by) || by;
}

// Refusals, as people are told.
function refusal({ status, error, wait }) {
  if (status === 0) return SILENT;
  if (status === 401) return "You are not signed in.";
  if (status === 404) return me ? `${NONE} You are signed in as ${me.email}.` : NONE;
  if (status === 429 || status === 503) return `${sentence(error.message || "the server is busy")} Try again in ${wait || 1} s.`;
  if (status === 403 && error.type === "forbidden") return forbidden(error);
  const ended = { approved: "it was approved", denied: "it was denied", expired: "its time is up" }[error.reason];
  if (error.type === "not_allowed" && ended) return `Your word came too late: ${ended}.`;
  const faults = (error.errors || []).map((it) => `${it.field}: ${it.message}`).join("; ");
  const told = {
    selection_changed: "What is asked has changed since you looked. Nothing was decided: look at it again.",
    second_person_required: "A second person has to approve: not the first, nor anybody whom the first has lately invited or given a role, nor who did so to the first.",
    second_owner_required: "Another owner has to approve: not the one who asked, nor one who has approved already.",
    csrf: "The server did not take this for a page of its own. Nothing was decided: open the link again.",
  };
  return told[error.type] || sentence(faults || error.reason || error.message || `the server answered ${status}`);
}

function forbidden(error) {
  const { name, role } = workspace();
  if (error.message.includes("second factor")) return "This workspace asks for a second factor. Sign in to set one up, then come back.";
  if (takesSingleAlone()) return "This workspace takes only sessions of its own single sign-on.";
  return role ? `Your role in ${name}, ${role}, does not reach this.` : sentence(error.message);
}

// Whether the workspace takes single sign-on alone, by which this person is not here.
function takesSingleAlone() {
  const { signIn = {} } = workspace();
  return signIn.requireSso && me.session.proof !== `sso:${wid}`;
}

// What is asked.

// Everything that is shown of an approval, or nothing where the action cannot be read: nobody decides on half of it.
async function gather(approval) {
  const { subject, kind } = approval;
  const [settings, action, agent] = await Promise.all([
    read("settings"),
    kind === "action" ? read(`actions/${subject.actionId}`) : null,
    approval.agentId ? read(`agents/${approval.agentId}`) : null,
  ]);
  moment = momentIn(settings && settings.timezone);
  if (kind === "action" && (!action || action.actionDigest !== approval.actionDigest)) return null;
  const mandate = action && action.mandateId && approval.state === "waiting" ? await read(`mandates/${action.mandateId}`) : null;
  const people = [approval.requestedBy, approval.decidedBy, ...approval.approvals.map((it) => it.by)].filter(Boolean);
  const called = new Map((approval.people || []).map((it) => [it.id, it.name]));
  const names = new Map(await Promise.all(people.map(async (by) => /** @type {const} */ ([by, await who(by, called)]))));
  const [matter, told] = await Promise.all([about(approval), unseen((action && action.tool) || {})]);
  return { approval, action, agent, mandate, names, matter, unseen: told, me, key: JSON.stringify([approval, action, agent, mandate, me, asRead(matter)]) };
}

// What is told of what an approval is about, as it would be read: whether it is another than before.
const asRead = (rows) => rows.map((row) => row.map((it) => (typeof it === "string" ? it : it.textContent)));

// Showing it.

function paint() {
  const { approval, action, agent, names } = shown;
  const waits = approval.state === "waiting";
  const { tool = {} } = action || {};
  document.title = `${STATES[approval.state]}: approval`;
  put("state", STATES[approval.state]);
  const asks = (action && ASKS[action.type]) || "asks to do this";
  put("title", ...(action ? [quoted(agent ? agent.name : "An agent"), ` ${asks}`] : [quoted(approval.summary)]));
  const { headline, rows } = action ? matterOf(action) : { headline: [], rows: shown.matter };
  const payment = action && ABOUT[action.type] === "payment" ? action.payment : undefined;
  put("sum", ...headline);
  part("sum").className = payment ? "money" : "";
  put("matter", ...[...rows, ...usageOf(shown)].flatMap(pair));
  put("summary", quoted(approval.summary));
  part("words").hidden = !action;
  const strange = waits && action && STRANGE[action.provenance.effective];
  const isReason = approval.reasons.some((it) => it.code === "untrusted_provenance");
  put("input", ...(tool.input ? [json(tool.input)] : []));
  part("given").hidden = !tool.input;
  put("sent", ...(action && action.details ? [json(action.details)] : []));
  part("beside").hidden = !part("sent").textContent;
  put("rest", ...(shown.unseen ? [shown.unseen] : []));
  put("origin", ...(strange && !isReason ? [strange] : []));
  put("reasons", ...approval.reasons.map((it) => item(...told(sentence(it.message)))));
  if (approval.exceptions && waits) part("reasons").append(item("Approving makes an exception to its limits, this once."));
  put("because", waits ? "Why a person is asked" : "What the rules said");
  part("why").hidden = !part("reasons").children.length;
  part("expires").textContent = time(approval.expiresAt);
  part("until").hidden = !waits;
  paintWord(approval, waits, payment);
  part("readers").textContent = action ? READERS_OF_ACTIONS : READERS;
  paintPeople(approval, names);
  put("facts", ...facts(shown).flatMap(pair));
  const { name: where, role } = workspace();
  put("me", "Signed in as ", quoted(me.email), ...(where ? [`, ${role} of `, quoted(where)] : []));
  tick();
}

function pair([label, ...nodes]) {
  const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
  dt.append(label);
  dd.append(...nodes);
  return [dt, dd];
}

// The buttons that would be heard, and why others are not there. Whoever may not say yes as the second may still say no.
function paintWord({ needed, approvals, mayDecide, mayNot }, waits, payment) {
  const given = approvals.length ? `${approvals.length} of ${needed} approvals is given.` : "Two persons have to approve this.";
  put("needed", ...(waits && needed > 1 ? [`${given} One no is enough to deny it.`] : []));
  const yours = approvals.some((it) => it.by === workspace().principalId);
  const why = {
    role: `Your role, ${workspace().role}, may see this and not decide it.`,
    own: "You asked for this yourself, so another owner has to approve. You can take it back: deny it.",
    second_person: yours
      ? "You have approved; now somebody else has to. You can still deny it."
      : "You cannot be the second person: the first has lately invited you or given you your role. You can still deny it.",
  };
  put("may", ...(waits && why[mayNot] ? [why[mayNot]] : []));
  const mayDeny = waits && (mayDecide || mayNot === "own" || mayNot === "second_person");
  part("word").hidden = !mayDeny;
  put("approve", "Approve", ...(payment ? [" ", ...money(payment)] : []));
  part("approve").hidden = !mayDecide;
}

function paintPeople({ state, approvals, decidedBy, decidedAt, note }, names) {
  const word = (what, by, at, why) => item(`${what}: `, by, `, ${time(at)}`, ...(why ? [": \u201c", quoted(why), "\u201d"] : []));
  const list = approvals.map((it) => word("Approved", quoted(names.get(it.by)), it.at, it.note));
  if (decidedBy && state !== "approved") {
    const by = state === "expired" ? "nobody decided in time" : quoted(names.get(decidedBy));
    list.push(word(STATES[state], by, decidedAt, note));
  }
  put("people", ...list);
  part("decided").hidden = !list.length;
}

function tick() {
  if (!shown || shown.approval.state !== "waiting") return;
  const left = Date.parse(shown.approval.expiresAt) - Date.now() - ahead;
  const text = span(left);
  if (part("left").textContent !== text) part("left").textContent = text;
}

// Following it.

// Nothing of an approval stays on the page of somebody who may not see it any more.
function hide(got) {
  const focused = part("asked").contains(document.activeElement);
  part("asked").hidden = true;
  for (const id of TOLD) put(id);
  if (got.status === 401 || got.status === 403) keepNote();
  forget();
  part("title").textContent = document.title = "Approval";
  shown = null;
  known.clear();
  say("news");
  say("said", refusal(got));
  const link = part("enter").firstElementChild;
  const isSingle = got.status === 403 && takesSingleAlone();
  link.href = isSingle ? SINGLE : SIGN_IN;
  link.textContent = isSingle ? "Sign in with single sign-on" : got.status === 404 ? "Sign in as somebody else" : "Sign in";
  part("enter").hidden = false;
  if (focused) part("said").focus();
}

// What one person has typed is not there for another.
function forget() {
  part("word").reset();
  part("note").setCustomValidity("");
  part("proof").hidden = true;
}

// A note that stands here as the session ends is kept in this tab, until the same person is here again.
function keepNote() {
  const note = part("note").value;
  if (note.trim() && shown) inTab((tab) => tab.setItem(KEPT, JSON.stringify({ apv, person: shown.me.id, note })));
}

function noteBack() {
  const kept = JSON.parse(inTab((tab) => tab.getItem(KEPT)) || "{}");
  const isOwn = kept.person === shown.me.id;
  if (isOwn && (kept.apv !== apv || part("word").hidden)) return;
  if (isOwn) part("note").value = kept.note;
  inTab((tab) => tab.removeItem(KEPT));
}

// What a tab keeps, where the browser lets pages keep anything.
function inTab(act) {
  try {
    return act(sessionStorage);
  } catch {
    return null;
  }
}

// Shows an approval as it stands; whether all of it could be read.
async function take(approval, mine) {
  const view = await gather(approval).catch((it) => {
    if (it !== SILENT) throw it;
  });
  if (mine !== turn) return true;
  if (!view) return false;
  const before = shown;
  const focused = part("word").contains(document.activeElement);
  if (before && before.me.id !== view.me.id) forget();
  shown = view;
  if (!before || before.key !== view.key) paint();
  if (!before) noteBack();
  part("asked").hidden = false;
  part("enter").hidden = true;
  if (before) follow(before.approval, view);
  else if (!busy) say("news");
  if (focused && part("word").hidden) part("news").focus();
  return true;
}

// Says what others did meanwhile.
function follow(before, { approval, names }) {
  const { state, approvals, decidedBy } = approval;
  if (busy || (before.state === state && before.approvals.length === approvals.length)) return;
  if (state === "expired") return say("news", "Its time is up: nobody decided.");
  const by = quoted(names.get(state === "waiting" ? approvals.at(-1)?.by : decidedBy) || "somebody");
  say("news", state === "waiting" ? "Approved meanwhile by the first of two: " : `${STATES[state]} meanwhile: `, by, ".");
}

// What came of this person's own word.
function outcome({ state, needed, kind }, choice) {
  const isAction = kind === "action";
  if (state === "waiting") return `Your yes is noted, the first of ${needed}. It waits for another person.`;
  if (state === "approved") return isAction ? "You approved it. The agent can go on." : "You approved it. It is done.";
  if (choice === "approve") return "It is denied in spite of your yes: the rules have changed since it was asked.";
  return isAction ? "You denied it. The agent is told so." : "You denied it. Nothing was changed.";
}

function rest() {
  clearTimeout(timer);
  timer = 0;
}

async function look() {
  rest();
  if (busy) return;
  const mine = ++turn;
  const isKnown = me && !stale;
  stale = false;
  const [person, got] = await Promise.all([isKnown ? { status: 200, said: me } : ask("api/me"), ask(own)]);
  if (mine !== turn) return;
  me = got.status === 401 ? null : person.status === 200 ? person.said : null;
  /** @type {any} */
  let trouble = got.status === 200 && !me ? person : got;
  if (trouble.status === 200 && !(await take(got.said, mine))) trouble = { status: 0 };
  if (mine !== turn) return;
  const passes = trouble.status === 0 || trouble.status === 429 || trouble.status >= 500;
  if (trouble.status === 200) settle();
  if (passes && !part("said").textContent) say("said", refusal(trouble));
  if (passes && !shown) say("news");
  if (trouble.status !== 200 && !passes) hide(trouble);
  again(trouble, passes);
}

// What is known again once the server answers, also what came of a word whose answer was lost.
function settle() {
  const said = part("said").textContent;
  const { state, approvals } = shown.approval;
  const isHeard = state !== "waiting" || approvals.some((it) => it.by === workspace().principalId);
  if (said === SILENT || (isHeard && [UNKNOWN, UNHEARD].includes(said))) say("said");
  else if (said === UNKNOWN) say("said", UNHEARD);
}

// Looks again in a while, for as long as something can change and somebody is there.
function again({ wait = 0 }, passes) {
  const waits = passes || (shown && shown.approval.state === "waiting");
  const isThere = !document.hidden && Date.now() - touched < WATCHED_MS;
  if (waits && isThere) timer = setTimeout(look, Math.max(LOOK_MS, wait * 1000));
}

function setBusy(is) {
  busy = is;
  for (const it of document.querySelectorAll("button")) it.disabled = is;
}

async function decide(choice, button) {
  // Whoever asked does better where they know why not: it is asked for once, and left out by pressing again.
  if (choice === "deny" && asksWhy && !part("note").value.trim()) {
    asksWhy = false;
    say("said", "Why not? Write it as a note, or press Deny again to send none.");
    part("note").focus();
    return;
  }
  rest();
  const mine = ++turn;
  setBusy(true);
  say("said");
  say("news", "Sending your word…");
  // Whoever decides has been told who they are: the session may have become another's in another window. Where it becomes so after
  // this look, the server refuses a word that names who gave it.
  const person = await ask("api/me");
  const isToldOne = person.status === 200 && person.said.id === shown.me.id;
  const got = isToldOne ? await ask(`${own}/${choice}`, word(choice)) : person;
  if (isToldOne && got.status === 200) {
    forget();
    say("news", outcome(got.said, choice));
    await take(got.said, mine);
    part("news").focus();
    setBusy(false);
    return again(got);
  }
  setBusy(false);
  say("news");
  stale = true;
  const fault = (...fields) => isToldOne && (got.error.errors || []).find((it) => fields.includes(it.field));
  const wants = fault("code", "recoveryCode");
  if (wants) return prove(got.error, wants, person.said);
  const isOther = fault("principalId");
  say("said", isToldOne && !isOther ? unsaid(got) : unasked(isOther ? await ask("api/me") : person));
  button.focus();
  await look();
  if (part("word").hidden || part("asked").hidden) part(part("said").textContent ? "said" : "news").focus();
}

// What is sent with a yes or no.
function word(choice) {
  const [note, typed] = [part("note").value.trim(), part("code").value.replace(/[\s-]/g, "")];
  const code = /^[0-9]{6}$/.test(typed) ? { code: typed } : { recoveryCode: typed };
  const { action } = shown;
  return {
    principalId: workspace(shown.me).principalId,
    ...(note && { note }),
    ...(action && { actionDigest: action.actionDigest }),
    ...(choice === "approve" && typed && code),
  };
}

// Asks for the second factor again, or says that there is none.
function prove(error, { message }, { twoFactor }) {
  const isWrong = !!part("code").value;
  const link = document.createElement("a");
  [link.href, link.textContent] = [SIGN_IN, "Set up a second factor"];
  part("proof").hidden = !twoFactor;
  part("code").value = "";
  say("said", sentence(isWrong ? `the code ${message}` : error.message), ...(twoFactor ? [] : [" ", link, ", then come back."]));
  part(twoFactor ? "code" : "said").focus();
  again({});
}

// Why a word was not taken, or was not sent.
function unsaid(got) {
  return got.status === 0 ? UNKNOWN : refusal(got);
}

function unasked(person) {
  if (person.status !== 200) return refusal(person);
  return `You are signed in as ${person.said.email} now. Nothing was decided: look at it again.`;
}

function touch() {
  const wasAway = Date.now() - touched >= WATCHED_MS;
  touched = Date.now();
  if (wasAway) look();
}

part("inbox").firstElementChild.href = `../../${wid}/approvals`;
// The limit counts characters, a field's own `maxlength` half of some.
part("note").addEventListener("input", () => {
  const count = [...part("note").value.trim()].length;
  part("note").setCustomValidity(count > NOTE_MAX ? `A note has at most ${NOTE_MAX} characters; these are ${count}.` : "");
});
part("word").addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.submitter && shown) decide(event.submitter.value, event.submitter);
});
// A note that is not sent is asked about, in the browser's own words, before the page is loaded again, left or closed.
addEventListener("beforeunload", (event) => {
  if (part("note").value.trim() && !part("word").hidden) event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  rest();
  if (document.hidden) return;
  stale = true;
  known.clear();
  touched = Date.now();
  look();
});
for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, touch);
setInterval(tick, 1000);
say("news", "Looking it up…");
look();
