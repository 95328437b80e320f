// What members asked for that their role cannot do: asking, deciding, taking back.
import { Badge, Button, Dialog, Empty, Field, Form, Heading, Id, Json, Kept, Pager, Quoted, Shown, Tabs, Time, at, html, useNow, usePlace } from "./kit.js";
import { useCallback, useEffect, useId, useState } from "./hooks.js";
import { TIERS } from "./agents.js";
import { Brief, noAmount } from "./budgets.js";
import { Who, forget, useApi, useList, useRead, useRemembered, useWatched, useWhole } from "./list.js";
import { Broadens, Terms, Words, atTerms, bodyOf, isAsked } from "./mandates.js";
import { isSame } from "./meanwhile.js";
import { ShownOnce } from "./once.js";
import { isDone, query as asQuery, wrongFields } from "./server.js";
import { dollars, left, micros, plain } from "./text.js";
import { unsentHere } from "./unsent.js";

const STATES = /** @type {Record<string, [any, string]>} */ ({ waiting: ["waits", "Waiting"], approved: ["good", "Approved"], denied: ["bad", "Denied"], withdrawn: ["plain", "Taken back"], expired: ["plain", "Expired"] });
const TITLES = /** @type {Record<string, string>} */ ({ agent: "A new agent", mandate: "A mandate", tier: "Another tier", budget_raise: "More of a budget", role: "Another role" });
/** @type {[string, string][]} */
const ROLES = [["owner", "Owner"], ["admin", "Admin"], ["member", "Member"], ["analyst", "Analyst"], ["auditor", "Auditor"]];
const ASK = "Ask for something";
const WITHIN = "change.";
const OF_AGENT = "change.mandates.0.";

/** @param {{ query: Record<string, string> }} props */
export function Page({ query }) {
  const { wid, may } = usePlace();
  const state = query.state === "all" ? "all" : "waiting";
  const list = useList("applications", {}, ["approval", "agent"]);
  useWatched(list.again);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const [came, setCame] = useState(/** @type {any} */ (null));
  const close = () => setOpen(null);
  const shown = list.items.filter((/** @type {any} */ it) => state === "all" || it.state === "waiting");
  const address = (/** @type {string | null} */ is) => at(wid, "applications") + asQuery({ state: is });
  const done = (/** @type {any} */ got) => {
    const { said } = got;
    close();
    list.again();
    if (said?.made?.key || said?.pending) setCame(said);
  };
  return html`<${Heading} title="Applications"><${Button} kind="main" act=${() => setOpen({ act: "ask" })}>Ask for something<//><//>
    <p class="lead">${may("ManageApplications") ? "What members asked for that their role cannot do. To approve one makes the change as your own; fourteen days without a word end it." : "Ask here for what your role cannot do. An owner or admin decides; fourteen days without a word end it."}</p>
    <${Tabs} name="Which applications" of=${[{ label: "Waiting", href: address(null), on: state === "waiting" }, { label: "All", href: address("all"), on: state === "all" }]} />
    <${Shown} of=${list} many=${shown.length}>${() =>
      shown.length
        ? html`<ul class="items">${shown.map((/** @type {any} */ it) => html`<${Item} key=${it.id} of=${it} open=${setOpen} />`)}</ul><${Pager} of=${list} />`
        : list.more
          ? html`<${Empty} title="Nothing waits among the newest."><p>Older ones were not looked at yet.</p><${Pager} of=${list} /><//>`
          : html`<${Empty} title=${state === "all" ? "Nobody has asked for anything yet." : "Nothing waits."}>${state === "waiting" && list.items.length > 0 ? html`<p><a href=${address("all")}>See what was decided</a></p>` : html`<p>A new agent, a mandate, another tier, more of a budget, another role: whoever may not change it asks here.</p>`}<//>`}<//>
    ${open && open.act === "ask" && html`<${Ask} close=${close} done=${done} />`}
    ${open && open.act !== "ask" && html`<${Decide} act=${open.act} of=${open.of} close=${close} done=${done} />`}
    ${came && came.made?.key && html`<${ShownOnce} title="The agent's key" secret=${came.made.key} close=${() => setCame(null)}><p>The agent is made. Hand the key to whoever runs it; it is sent as <code>authorization: Bearer</code>.</p><//>`}
    ${came && !came.made?.key && came.pending && html`<${Dialog} title="Another owner has to agree" close=${() => setCame(null)}>
      <p>Nothing is changed yet.${came.approval && html` Another owner finds the question among the <a href=${at(wid, "approvals", came.approval.id)}>approvals</a>.`}</p><p class="acts"><button type="button" onClick=${() => setCame(null)}>Close</button></p><//>`}`;
}

/** @param {{ of: any, open: (it: any) => void }} props */
function Item({ of, open }) {
  const { may, workspace, wid } = usePlace();
  const moment = useNow();
  const isOwn = of.createdBy === workspace.principalId;
  const isOpen = of.state === "waiting";
  const name = html`<span class="unseen"> ${TITLES[of.kind]} ${of.id.slice(-6)}</span>`;
  return html`<li class="item">
    <div>
      <h2>${TITLES[of.kind] ?? of.kind}, asked by <${Who} id=${of.createdBy} /></h2>
      <${Change} of=${of} folds />
      <blockquote><${Quoted} text=${of.reason} /></blockquote>
      <p class="meta"><span>Asked <${Time} at=${of.createdAt} ago /></span>${isOpen && html`<span>${left(of.expiresAt, moment)}</span>`}
        ${of.decidedBy && html`<span>${STATES[of.state]?.[1]} by <${Who} id=${of.decidedBy} /> <${Time} at=${of.decidedAt} ago /></span>`}${of.note && html`<span>Note: <${Quoted} text=${of.note} /></span>`}</p>
      ${isOpen && of.pending && html`<p class="note">Another owner has to agree${of.approval && html`: <a href=${at(wid, "approvals", of.approval.id)}>to the approval</a>`}.</p>`}
    </div>
    <div class="beside"><${Badge} kind=${STATES[of.state]?.[0]}>${STATES[of.state]?.[1] ?? of.state}<//>
      ${isOpen && !of.pending && html`<div class="acts">
        ${!isOwn && may("ManageApplications") && html`<${Button} kind="main" act=${() => open({ act: "approve", of })}>Approve${name}<//><${Button} kind="danger" act=${() => open({ act: "deny", of })}>Deny${name}<//>`}
        ${isOwn && html`<${Button} act=${() => open({ act: "withdraw", of })}>Take it back${name}<//>`}</div>
        ${isOwn && may("ManageApplications") && html`<small>You asked for this yourself: somebody else has to decide.</small>`}`}</div>
  </li>`;
}

/** What would change, in words. `words`: those of templates as they were read to decide by; `folds`: nobody decides here. @param {{ of: any, words?: any, folds?: boolean }} props */
function Change({ of: { kind, change, target }, words, folds = false }) {
  const { wid } = usePlace();
  const agent = target?.startsWith("agt_") && html`<a href=${at(wid, "agents", target)}><${Who} id=${target} /></a>`;
  if (kind === "agent") {
    const mandates = change.mandates ?? [];
    return html`<p><strong><${Quoted} text=${change.name} /></strong> for <${Quoted} text=${change.principalEmail} />${change.tier && change.tier !== "standard" && html`, tier ${change.tier}`}${change.sponsor && html`, sponsor <${Who} id=${change.sponsor} />`}${change.killOwner && html`, kill owner <${Who} id=${change.killOwner} />`}</p>
      ${mandates.length ? mandates.map((/** @type {any} */ it, /** @type {number} */ place) => html`<${Wording} key=${place} of=${it} words=${words} folds=${folds} />`) : html`<p><small>without a mandate</small></p>`}`;
  }
  if (kind === "mandate") return agent ? html`<p>For ${agent}</p><${Wording} of=${change} words=${words} folds=${folds} />` : html`<${Changed} id=${target} change=${change} words=${words} folds=${folds} />`;
  if (kind === "tier") return html`<p>${agent}: tier <strong>${change.tier}</strong></p>`;
  if (kind === "budget_raise") return html`<${Raised} id=${target} change=${change} />`;
  return html`<p>${target ? html`<${Who} id=${target} />` : "For themselves"}: ${change.role && html`role <strong>${change.role}</strong>`}${change.teamIds && html` teams <${Quoted} text=${change.teamIds.join(", ") || "none"} />`}</p>`;
}

/** A budget as it is, where one may read it, and what it would have. @param {{ id: string, change: any }} props */
function Raised({ id, change }) {
  const { may } = usePlace();
  const budget = useRead(may("ReadReports") ? `budgets/${encodeURIComponent(id)}` : null, ["budget"]).data;
  const until = !budget ? "until its period ends, or for good where it has no end" : budget.period === "total" ? "for good: this budget has no end" : "for the period that runs";
  return html`<p>${budget ? html`<${Brief} of=${budget} />` : html`The budget <${Id} id=${id} brief />`}</p>
    <p>To <strong>${dollars(change.amountMicros)}</strong> in all, ${until}.</p>${change.note && html`<p>Note: <${Quoted} text=${change.note} /></p>`}`;
}

const isFromTemplate = (/** @type {any} */ of) => !!of.template && !of.actions;
const templateAt = (/** @type {string} */ name) => `templates/${encodeURIComponent(name)}`;

const mandateAt = (/** @type {string} */ id) => `mandates/${encodeURIComponent(id)}`;

/** Where the words lie that an application would put in force: those of templates, and of a mandate that it changes. @param {any} of */
function wordsOf({ kind, change, target }) {
  if (kind === "mandate" && target?.startsWith("mnd_")) return [mandateAt(target)];
  const all = kind === "agent" ? (change.mandates ?? []) : kind === "mandate" ? [change] : [];
  return /** @type {string[]} */ ([...new Set(all.filter(isFromTemplate).map((/** @type {any} */ it) => templateAt(it.template)))]);
}

// A mandate tells its version, and beside its words what was used of it, which changes while one looks.
const marks = (/** @type {Record<string, any>} */ all) => Object.values(all).map((it) => it?.version ?? it);

/**
 * The words that lie at these paths, read now and not remembered: `was` as they were shown first, `now` as they were read last; one that is not
 * there has none. `look` reads them again, and says why nothing is to be approved where they are others.
 * @param {string[]} paths
 */
function useWords(paths) {
  const api = useApi();
  const [held, set] = useState(/** @type {any} */ (paths.length ? { got: null, was: null, now: null } : { got: { status: 200 }, was: {}, now: {} }));
  const all = JSON.stringify(paths);
  const read = useCallback(async () => {
    const asked = /** @type {string[]} */ (JSON.parse(all));
    const came = await Promise.all(asked.map((path) => api("GET", path)));
    const failed = came.find((it) => !isDone(it) && it.status !== 404);
    return { failed, now: Object.fromEntries(asked.map((path, place) => [path, isDone(came[place]) ? (came[place].said.mandate ?? came[place].said) : null])) };
  }, [api, all]);
  const again = useCallback(async () => {
    const { failed, now } = await read();
    set(failed ? { got: failed, was: null, now: null } : { got: { status: 200 }, was: now, now });
  }, [read]);
  useEffect(() => {
    if (paths.length) again();
  }, [again]);
  const look = async () => {
    const { failed, now } = await read();
    if (failed || isSame(marks(now), marks(held.now))) return failed;
    paths.forEach(forget);
    set({ ...held, now });
    return `Nothing is approved: ${paths.some((it) => it.startsWith("mandates/")) ? "the mandate" : "a template"} has changed since you looked. See above what it says now; approve again if it is meant.`;
  };
  return { got: held.got, data: held.was && held, again, look };
}

/** A mandate that is asked for: by a template, or in its own words. @param {{ of: any, words?: any, folds: boolean }} props */
function Wording({ of, words, folds }) {
  const isTemplate = isFromTemplate(of);
  const template = useRemembered(isTemplate && !words ? templateAt(of.template) : null);
  if (isTemplate && words) return html`<p>From the template <strong><${Quoted} text=${of.template} /></strong></p><${Read} was=${words.was[templateAt(of.template)]} now=${words.now[templateAt(of.template)]} />`;
  if (isTemplate) return html`<p>From the template <strong><${Quoted} text=${of.template} /></strong></p>${template && html`<${Words} of=${template.mandate} folds=${folds} />`}`;
  return html`<p>Mandate <strong><${Quoted} text=${of.name} /></strong></p><${Words} of=${of} folds=${folds} /><${Broadened} of=${of} />`;
}

/** That whoever asks has confirmed what whoever decides is otherwise asked. @param {{ of: any }} props */
const Broadened = ({ of }) => of.confirmBroaden && html`<p class="note">Whoever asked has confirmed that it may let the agent go to any merchant or domain: approving confirms it too.</p>`;

/** What a template says, and what it said before where that is something else. @param {{ was: any, now: any }} props */
function Read({ was, now }) {
  const said = (/** @type {any} */ it) => (it ? html`${it.name && html`<p>Mandate <strong><${Quoted} text=${it.name} /></strong></p>`}<${Words} of=${it} />` : html`<p>There is no such template any more.</p>`);
  if (isSame(was, now)) return said(now);
  return html`<div class="pair"><div><p><small>As you saw it</small></p>${said(was)}</div><div><p><small>As it is now</small></p>${said(now)}</div></div>`;
}

/** @param {any} was @param {any} change */
function merged(was, change) {
  if (change === null || typeof change !== "object" || Array.isArray(change)) return change;
  const out = { ...(was ?? {}) };
  for (const [name, it] of Object.entries(change)) {
    if (it === null) delete out[name];
    else out[name] = merged(out[name], it);
  }
  return out;
}

/** A mandate as it is and as it would be. `words`: as it was read to decide by. @param {{ id: string, change: any, words?: any, folds: boolean }} props */
function Changed({ id, change, words, folds }) {
  const mandate = useRead(words ? null : mandateAt(id), ["agent"]);
  const sent = html`<details><summary>As it was asked</summary><${Json} of=${change} /></details>`;
  const now = words ? words.now[mandateAt(id)] : mandate.data;
  if (!now) return html`<p>A change of the mandate <${Id} id=${id} brief />${words && ", which is not there any more"}</p>${sent}`;
  return html`<p>A change of <strong><${Quoted} text=${now.name} /></strong> of <${Who} id=${now.agentId} />${change.state && html`: ${change.state === "paused" ? "paused" : "in force again"}`}</p>
    <div class="pair"><div><p><small>As it is now</small></p><${Words} of=${now} folds=${folds} /></div><div><p><small>As it is asked for</small></p><${Words} of=${merged(now, change)} folds=${folds} /></div></div><${Broadened} of=${change} />${sent}`;
}

const ACTS = /** @type {Record<string, [string, string, string]>} */ ({
  approve: ["Approve this application?", "Approve it", "The change is made at once, as your own. Where you could not make it yourself, the server says why and it waits on."],
  deny: ["Deny this application?", "Deny it", "Nothing is changed. Whoever asked can read your note."],
  withdraw: ["Take this application back?", "Take it back", "It ends, and nobody decides it any more. You can ask again."],
});

/** @param {{ act: string, of: any, close: () => void, done: (got: any) => void }} props */
function Decide({ act, of, close, done }) {
  const api = useApi();
  const { say } = usePlace();
  const [title, submit, what] = ACTS[act];
  const words = useWords(act === "approve" ? wordsOf(of) : []);
  const [broadens, setBroadens] = useState(false);
  const run = async (/** @type {Record<string, string>} */ { note, confirmBroaden }) => {
    if (act === "withdraw") return api("DELETE", `applications/${of.id}`);
    const changed = await words.look();
    if (changed) setBroadens(false);
    if (changed) return changed;
    const got = await api("POST", `applications/${of.id}/${act}`, { ...(note?.trim() && { note }), ...(confirmBroaden && { confirmBroaden: true }) });
    setBroadens(isAsked(got));
    return got;
  };
  const ran = (/** @type {any} */ got) => {
    if (got.status !== 202) say(act === "approve" ? "The change is made." : act === "deny" ? "It is denied." : "It is taken back.");
    done(got);
  };
  return html`<${Dialog} title=${title} of=${{ id: of.id, name: `${TITLES[of.kind] ?? of.kind} ${of.id.slice(-6)}` }} close=${close}>
    <${Shown} of=${words}>${(/** @type {any} */ read) => html`
      <div class="quoted"><${Change} of=${of} words=${act === "approve" ? read : undefined} /><blockquote><${Quoted} text=${of.reason} /></blockquote></div>
      <p>${what}</p>
      <${Form} act=${run} submit=${submit} kind=${act === "approve" ? "main" : "danger"} cancel=${close} done=${ran}>
        ${act !== "withdraw" && html`<${Field} name="note" as="lines" label=${act === "deny" ? "Why not" : "Note"} hint="Whoever asked can read it." />`}
        ${broadens && html`<${Broadens} />`}
      <//>`}<//>
  <//>`;
}

/** @param {{ close: () => void, done: (got: any) => void }} props */
function Ask({ close, done }) {
  const api = useApi();
  const { zone, say, may } = usePlace();
  // What was kept of a session that has ended is where one begins.
  const [kind, setKind] = useState(() => unsentHere().find((it) => it.title === ASK)?.id || "agent");
  const kinds = Object.entries(TITLES).filter(([is]) => may("ReadAgents") || !["mandate", "tier"].includes(is));
  const ask = async (/** @type {string} */ kind, /** @type {Record<string, string>} */ values) => {
    const { wrong, ...change } = changeOf(kind, values, zone);
    return wrong ?? atTerms(await api("POST", "applications", { kind, reason: values.reason, ...change }), kind === "agent" ? OF_AGENT : WITHIN);
  };
  const asked = (/** @type {any} */ got) => {
    say("It is asked for.");
    done(got);
  };
  const pick = (/** @type {any} */ event) => setKind(event.currentTarget.value);
  return html`<${Dialog} title=${ASK} close=${close}>
    <div class="field"><label for="kind">What</label><select id="kind" onChange=${pick}>${kinds.map(([is, named]) => html`<option key=${is} value=${is} selected=${is === kind}>${named}</option>`)}</select></div>
    ${kinds.map(([is, named]) => html`<${Kept} key=${is} on=${is === kind}><${Form} part=${{ id: is, name: named }} act=${(/** @type {Record<string, string>} */ values) => ask(is, values)} submit="Ask for it" cancel=${close} done=${asked}>
      <${Wish} kind=${is} />
      <${Field} name="reason" as="lines" label="Why" needed hint="For whoever decides." />
    <//><//>`)}
  <//>`;
}

/** What goes with the kind. @param {{ kind: string }} props */
function Wish({ kind }) {
  const { me, workspace, may } = usePlace();
  const agents = useRead(kind === "mandate" || kind === "tier" ? "agents?limit=500" : null);
  const budgets = useRead(kind === "budget_raise" && may("ReadReports") ? "budgets?limit=500" : null);
  const members = useWhole(kind === "role" && may("ReadMembers") ? "members" : null);
  const of = (/** @type {any} */ it) => (it.data && it.data.data) || [];
  const older = (/** @type {any} */ it) => it.data && it.data.nextCursor !== null && html`<${Field} name="older" label="Or one that is not offered, by its id" fault="target" more=${{ autocapitalize: "none", spellcheck: false }} />`;
  const named = of(agents).filter((/** @type {any} */ it) => it.standing !== "removed").map((/** @type {any} */ it) => [it.id, it.name]);
  if (kind === "agent") return html`<${Field} name="name" label="Name" fault="change.name" needed />
    <${Field} name="principalEmail" as="email" label="Acts for" fault="change.principalEmail" value=${me.email} needed />
    <${Mandate} within=${OF_AGENT} none />`;
  if (kind === "mandate" || kind === "tier") {
    if (agents.data && !named.length) return html`<p class="note">There is no agent of yours yet: ask for one first.</p>`;
    const choice = html`<${Field} key=${named.length} name="target" as="choice" label="Agent" options=${named} />${older(agents)}`;
    return kind === "tier" ? html`${choice}<${Field} name="tier" as="choice" label="Tier" fault="change.tier" options=${TIERS} />` : html`${choice}<${Mandate} within=${WITHIN} />`;
  }
  if (kind === "budget_raise") {
    const all = of(budgets).map((/** @type {any} */ it) => [it.id, it.name || it.id]);
    return html`${all.length ? html`<${Field} key=${all.length} name="target" as="choice" label="Budget" options=${all} />${older(budgets)}` : html`<${Field} name="target" label="Budget" needed hint=${html`Its id, as the refusal named it: <code>bdg_…</code>`} more=${{ autocapitalize: "none", spellcheck: false }} />`}
      <${Field} name="amount" label="To so many dollars" fault="change.amountMicros" needed hint="The whole, not what is added. It holds until the budget's period ends, or for good where it has no end." more=${{ inputmode: "decimal" }} />`;
  }
  const people = of(members).map((/** @type {any} */ it) => [it.principalId, it.principalId === workspace.principalId ? "You" : `${it.name ?? it.email} (${it.role})`]);
  return html`${people.length > 0 && html`<${Field} key=${people.length} name="target" as="choice" label="For" options=${people} value=${workspace.principalId} />${older(members)}`}
    <${Field} name="role" as="choice" label="Role" fault="change.role" options=${ROLES} value=${workspace.role} />`;
}

/** A mandate from a template or in its own words. @param {{ within: string, none?: boolean }} props */
function Mandate({ within, none = false }) {
  const { currency, may } = usePlace();
  const templates = useRead(may("ReadTemplates") ? "templates?limit=500" : null);
  const all = (templates.data && templates.data.data) || [];
  const id = useId();
  const [from, setFrom] = useState(none ? "" : "own");
  /** @type {[string, string][]} */
  const options = [...(none ? [/** @type {[string, string]} */ (["", "None yet"])] : []), ["own", "Its own wording"], ...all.map((/** @type {any} */ it) => /** @type {[string, string]} */ ([`of ${it.name}`, it.name]))];
  const template = all.find((/** @type {any} */ it) => from === `of ${it.name}`);
  return html`<div class="field"><label for=${id}>Mandate</label><select id=${id} name="from" onChange=${(/** @type {any} */ it) => setFrom(it.currentTarget.value)}>${options.map(([is, named]) => html`<option key=${is} value=${is} selected=${is === from}>${plain(named)}</option>`)}</select></div>
    ${template && html`<${Words} of=${template.mandate} />`}
    <${Kept} on=${from === "own"}><fieldset><legend>The mandate</legend><${Terms} currency=${currency} within=${within} /></fieldset><//>`;
}

/** What is asked for, of the fields, or what is wrong with it. @param {string} kind @param {Record<string, string>} values @param {string} zone @returns {{ wrong?: import("./server.js").Got, target?: string, change?: any }} */
function changeOf(kind, values, zone) {
  const { from = "" } = values;
  const target = values.older?.trim() || values.target;
  if (kind === "tier") return { target, change: { tier: values.tier } };
  if (kind === "role") return { ...(target && { target }), change: { role: values.role } };
  if (kind === "budget_raise") {
    const amountMicros = micros(values.amount);
    return amountMicros ? { target: target.trim(), change: { amountMicros } } : { wrong: wrongFields({ "change.amountMicros": noAmount(amountMicros) }) };
  }
  const isNamed = from.startsWith("of ");
  const own = from === "own" ? bodyOf(values, zone, null, kind === "agent" ? OF_AGENT : WITHIN) : null;
  if (own?.wrong) return own;
  const mandate = isNamed ? { template: from.slice(3) } : own?.body;
  if (kind === "mandate") return { target, change: mandate };
  return { change: { name: values.name, principalEmail: values.principalEmail, ...(mandate && { mandates: [mandate] }) } };
}
