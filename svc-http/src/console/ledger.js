// The ledger: what happened, in order, and one record with its proof checked here.
import { Badge, Button, Dialog, Empty, Facts, Heading, Id, Json, Money, Pager, Quoted, Shown, Table, Time, at, html, usePlace } from "./kit.js";
import { useEffect, useState } from "./hooks.js";
import { About, brief } from "./about.js";
import { Choice, Filters, Typed } from "./filters.js";
import { Who, useApi, useList, useRead } from "./list.js";
import { AgentChoice, useAgents } from "./named.js";
import { check, commitments, discloses } from "./proof.js";
import { ROOT, ask, isDone, query as asQuery, readBy, wrongDays } from "./server.js";
import { count, fromLocal, plain } from "./text.js";

// Everything that is recorded and told of live; the rest appears when it is looked at again.
const TOLD = ["action", "agent", "approval", "budget", "hold", "incident", "integration"];
/** @type {[string, string][]} */
const KINDS = [
  ["", "Every kind"], ["action", "Actions"], ["receipt", "Receipts"], ["incident", "Incidents"], ["approval", "Approvals"], ["agent", "Agents"],
  ["fleet", "Stops of many"], ["hold", "Holds"], ["mandate", "Mandates"], ["application", "Applications"], ["budget", "Budgets"], ["billing", "Bills"],
  ["key", "Keys"], ["token", "Service tokens"], ["connection", "Connections"], ["member", "Members"], ["team", "Teams"], ["session", "Sessions"],
  ["settings", "Settings"], ["integration", "Integrations"], ["delivery", "Deliveries"], ["signal", "Shared signals"], ["mcp_server", "MCP servers"],
  ["upstream", "Upstreams"], ["model", "Models"], ["routing", "Routing"], ["task_class", "Task classes"], ["policy_profile", "Policy profiles"],
  ["outcome", "Outcomes"], ["drill", "Drills"], ["refusal", "Refused requests"], ["rotation", "Signing keys"], ["erasure", "Erasures"],
];
const WORDS = /** @type {Record<string, string>} */ ({
  "action.person_denied": "Action denied by a person",
  "action.unapproved_run": "Action run without approval",
  "action.asked": "Action left to a person",
  "incident.over_settlement": "Incident: settled above what was allowed",
  "fleet.frozen": "Agents stopped",
  refusal: "Request refused",
  rotation: "Signing key follows another",
  erasure: "Texts erased",
  "signal.received": "Shared signal received",
});
const FILTERS = { kind: "Kind", about: "Names this id", from: "From", to: "To" };
const KINDS_OF_ACTORS = /** @type {Record<string, string>} */ ({ policy: "The rules", drill: "A drill", timer: "The clock", integration: "An integration", key: "A key", token: "A service token" });
const FINDINGS = /** @type {Record<string, [any, string, string]>} */ ({
  whole: ["good", "Proven", "Everything below was computed in this browser, and all of it fits."],
  partly: ["waits", "Partly checked", "What this browser could check fits. Look below for what it could not."],
  broken: ["bad", "Does not fit", "The record, or its proof, is not what was signed. Keep what is shown here and ask whoever runs this server."],
  unchecked: ["waits", "Not checked", "This browser could check nothing."],
});

// How ids of this server's own are written, and what one begins with. Those of others that records name have forms of their own.
const OWN = /^(act|agt|app|apv|bdg|bil|cal|cbk|con|dlv|drl|evd|hld|int|key|mcp|mcs|mnd|pol|prp|rcp|sel|ses|stk|sug|team|ups|usr|wsp)_/;
const WHOLE = /^[a-z]+_[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** What is wrong with an id that is looked for, by the filter that it stands in. @param {string} id @returns {Record<string, string>} */
function wrongId(id) {
  const own = OWN.exec(id.toLowerCase())?.[0];
  if (own && !WHOLE.test(id)) return { about: `This is no id: \`${own}\` and 26 digits and capital letters are one. Copy it whole from where it stands.` };
  return /[^!-~]/.test(id) ? { about: "This is no id: none holds blanks, or letters beyond A to Z." } : {};
}

/** A kind of records in words. @param {string} kind */
const worded = (kind) => {
  if (WORDS[kind]) return WORDS[kind];
  const said = kind.replaceAll(".", " ").replaceAll("_", " ").replace("mcp server", "MCP server");
  return said.charAt(0).toUpperCase() + said.slice(1);
};

/** @param {{ item?: string, query: Record<string, string> }} props */
export const Page = ({ item, query }) => (item === undefined ? html`<${All} query=${query} />` : html`<${One} id=${item} />`);

/** @param {{ of: any }} props */
function Actor({ of: { kind, id, name } }) {
  if (id && (kind === "person" || kind === "agent")) return html`<${Who} id=${id} />`;
  if (name?.startsWith("token:")) return html`<${Who} id=${name} />`;
  return html`${KINDS_OF_ACTORS[kind] ?? kind}${id && html` <code><${Quoted} text=${brief(id)} /></code>`}`;
}

/** @param {string} day */
function dayAfter(day) {
  const next = new Date(`${day}T12:00:00Z`);
  if (Number.isNaN(next.getTime())) return day;
  next.setUTCDate(next.getUTCDate() + 1);
  return next.toISOString().slice(0, 10);
}

/** The instants that two days begin and end with, in a zone. @param {string} from @param {string} to @param {string} zone */
const instants = (from, to, zone) => ({ from: from && fromLocal(`${from}T00:00`, zone), to: to && fromLocal(`${dayAfter(to)}T00:00`, zone) });

/** @param {{ query: Record<string, string> }} props */
function All({ query }) {
  const { wid, go, zone } = usePlace();
  const { kind = "", about = "", from = "", to = "" } = query;
  const wrong = { ...wrongDays({ from, to }), ...wrongId(about) };
  const isWrong = Object.keys(wrong).length > 0;
  const list = readBy(useList(isWrong ? null : "ledger", { kind, about, ...(!isWrong && instants(from, to, zone)) }, TOLD), wrong);
  const agents = useAgents();
  const set = (/** @type {string} */ name) => (/** @type {string} */ value, replace = false) => go(at(wid, "ledger") + asQuery({ kind, about, from, to, [name]: value }), replace);
  const isFiltered = !!(kind || about || from || to);
  const isAgent = agents.of.some((it) => it[0] === about);
  const columns = [
    { title: "Record", cell: (/** @type {any} */ it) => html`<a href=${at(wid, "ledger", it.id)}>${worded(it.kind)}<span class="unseen"> ${it.seq}</span></a> <small aria-hidden="true">${it.seq}</small>` },
    { title: "About", cell: (/** @type {any} */ it) => html`<${About} id=${it.subject} />${it.data.agentId && it.data.agentId !== it.subject && html` <small>of <${Who} id=${it.data.agentId} /></small>`}` },
    { title: "By", cell: (/** @type {any} */ it) => html`<${Actor} of=${it.actor} />` },
    { title: "When", cell: (/** @type {any} */ it) => html`<${Time} at=${it.at} />` },
  ];
  const [isTaking, setTaking] = useState(false);
  return html`<${Heading} title="Ledger"><${Button} act=${() => setTaking(true)}>Download evidence<//><//>
    <p class="lead">Every decision, settlement and change, in order. Each record carries the hash of the one before it and stands in a signed tree, so that none can be changed or taken out unseen.</p>
    <${Filters} of=${list}>
      <${Choice} label="Kind" fault="kind" value=${kind} options=${KINDS.some((it) => it[0] === kind) ? KINDS : [...KINDS, [kind, worded(kind)]]} choose=${set("kind")} />
      ${agents.of.length > 0 && html`<${Choice} label=${agents.isCut ? "One of the newest agents" : "Agent"} value=${isAgent ? about : ""} options=${[["", "Every agent"], ...agents.of]} choose=${set("about")} />`}
      <${Typed} label="Names this id" fault="about" value=${isAgent ? "" : about} choose=${set("about")} more=${{ placeholder: "act_… or apv_…", autocomplete: "off" }} />
      <${Typed} label="From" fault="from" as="date" value=${from} choose=${set("from")} more=${{ max: to }} />
      <${Typed} label="To" fault="to" as="date" value=${to} choose=${set("to")} more=${{ min: from }} />
      ${isFiltered && html`<a href=${at(wid, "ledger")}>Show everything</a>`}
    <//>
    <${Shown} of=${list} filters=${FILTERS}>${(/** @type {any[]} */ items) =>
      items.length
        ? html`<${Table} caption="Records" columns=${columns} rows=${items} /><${Pager} of=${list} />`
        : list.more
          ? html`<${Empty} title="No such record so far back."><p>Older records were not looked at yet.</p><${Pager} of=${list} /><//>`
          : html`<${Empty} title=${isFiltered ? "No such record." : "Nothing is recorded yet."}>${isFiltered ? html`<p><a href=${at(wid, "ledger")}>Show everything</a></p>` : html`<p>What agents ask and people decide appears here within a second.</p>`}<//>`}<//>
    ${isTaking && html`<${Bundle} agents=${agents} close=${() => setTaking(false)} />`}`;
}

/** Downloads of what others can check. @param {{ agents: { of: [string, string][], isCut: boolean }, close: () => void }} props */
function Bundle({ agents, close }) {
  const { wid, zone } = usePlace();
  const [wish, set] = useState({ from: "", to: "", agentId: "", redact: false });
  const change = (/** @type {object} */ more) => set({ ...wish, ...more });
  const day = (/** @type {"from" | "to"} */ name) => (/** @type {any} */ event) => change({ [name]: event.currentTarget.value });
  const { from, to } = instants(wish.from, wish.to, zone);
  const address = (/** @type {string} */ path, /** @type {object} */ more) => new URL(`api/w/${wid}/${path}`, ROOT).pathname + asQuery({ from, to, agentId: wish.agentId, ...more });
  const isTurned = wish.from && wish.to && wish.to < wish.from;
  const of = (/** @type {string} */ what, /** @type {string} */ usual) => [what, wid, wish.from || (wish.to ? "" : usual), wish.to].filter(Boolean).join("-") + ".json";
  return html`<${Dialog} title="Download evidence" close=${close}>
    <p>A bundle holds the records, their proofs, the signed checkpoint and the keys. Anyone can check it without this server: <code>svc evidence verify FILE</code>. One of an agent shows that agent's records alone, and cannot show that none is missing.</p>
    <div class="filters">
      <span class="choice"><label for="begin">First day</label><input id="begin" type="date" value=${wish.from} max=${wish.to} onChange=${day("from")} /></span>
      <span class="choice"><label for="end">Last day</label><input id="end" type="date" value=${wish.to} min=${wish.from} onChange=${day("to")} /></span>
      <${AgentChoice} agents=${agents} label="Of" all="All agents" value=${wish.agentId} choose=${(/** @type {string} */ it) => change({ agentId: it })} />
    </div>
    <div class="field check"><input id="redact" type="checkbox" checked=${wish.redact} onChange=${(/** @type {any} */ it) => change({ redact: it.currentTarget.checked })} /><label for="redact">Without names, summaries and other texts</label><small>The records keep their hashes either way. Texts that were erased are in no bundle.</small></div>
    <p><small>${wish.from || wish.to ? "Days are the workspace's." : "Without a day: the last 24 hours."} At most 100,000 records; a longer one names where the next begins.</small></p>
    ${isTurned && html`<p class="trouble" role="alert">The last day is before the first.</p>`}
    <p><small>The scorecard holds signed counts of what happened in that time${!wish.from && ", without a first day in 30 days"}, without a name or a merchant.</small></p>
    <p class="acts">${!isTurned && html`<a class="button main" href=${address("evidence", { redact: wish.redact || null })} download=${of("evidence", "last-day")} target="_blank">Download the bundle</a><a class="button" href=${address("scorecard", {})} download=${of("scorecard-evidence", "last-30-days")} target="_blank">Download the scorecard</a>`}<button type="button" onClick=${close}>Close</button></p>
  <//>`;
}

/** @param {{ id: string }} props */
function One({ id }) {
  const { wid } = usePlace();
  const read = useRead(`evidence/${encodeURIComponent(id)}/proof`);
  return html`<p class="back"><a href=${at(wid, "ledger")}>The ledger</a></p>
    ${!read.data && html`<${Heading} title="Record" />`}
    <${Shown} of=${read}>${(/** @type {any} */ proof) => html`<${Whole} proof=${proof} id=${id} again=${read.again} />`}<//>`;
}

/** @param {{ proof: any, id: string, again: () => any }} props */
function Whole({ proof, id, again }) {
  const { wid } = usePlace();
  const { record } = proof;
  const { data, actor, subject } = record;
  const related = [...new Set([subject, data.agentId, data.approvalId, data.actionId].filter((it) => typeof it === "string"))];
  return html`<${Heading} title=${worded(record.kind)} name=${html`${worded(record.kind)} <small>record ${record.seq}</small>`}>
      <a class="button" href=${at(wid, "ledger") + asQuery({ about: subject })}>All about the same</a>
    <//>
    <div class="grid">
      <section class="card" aria-labelledby="what"><header><h2 id="what">What it says</h2></header>
        <${Facts} of=${[
          ["Kind", html`<code>${record.kind}</code>`],
          ["When", html`<${Time} at=${record.at} />`],
          ["By", html`<${Actor} of=${actor} />`],
          ["Decision", data.decision && html`<code><${Quoted} text=${data.decision} /></code>`],
          ["Amount", data.currency && Number.isSafeInteger(data.amount) && html`<${Money} amount=${data.amount} currency=${data.currency} />`],
          ["Because", Array.isArray(data.codes) && data.codes.length > 0 && data.codes.map((/** @type {string} */ it) => html`<code key=${it}><${Quoted} text=${it} /></code> `)],
          ["About", related.map((it) => html`<div key=${it}><${About} id=${it} /></div>`)],
          ["Id", html`<${Id} id=${record.id} />`],
          ["Hash", html`<${Id} id=${record.hash} />`],
          ["Hash before it", html`<${Id} id=${record.prevHash} />`],
        ]} /></section>
      <${Proved} proof=${proof} id=${id} again=${again} />
    </div>
    <${Texts} record=${record} />
    <section class="card" aria-labelledby="body"><header><h2 id="body">All that it tells</h2></header>
      <${Json} of=${data} /></section>`;
}

/** @param {{ proof: any, id: string, again: () => any }} props */
function Proved({ proof, id, again }) {
  const { wid } = usePlace();
  const [found, set] = useState(/** @type {any} */ (null));
  useEffect(() => {
    let isHere = true;
    const run = async () => {
      const got = await ask("GET", ".well-known/jwks.json");
      const keys = isDone(got) && Array.isArray(got.said.keys) ? got.said.keys : null;
      const said = await check(proof, keys, wid, id).catch(() => ({ steps: [{ name: "The proof can be read", holds: false, said: "It is not as proofs are written." }], verdict: "broken" }));
      if (isHere) set(said);
    };
    set(null);
    run();
    return () => void (isHere = false);
  }, [proof, wid, id]);
  const [kind, word, said] = FINDINGS[found?.verdict] ?? [];
  return html`<section class="card" aria-labelledby="proof"><header><h2 id="proof">Its proof</h2>${found && html`<${Button} act=${again}>Check again<//>`}</header>
    <div role="status">${found ? html`<p><${Badge} kind=${kind}>${word}<//> ${said}</p>` : html`<p>Checking…</p>`}</div>
    ${found && html`<ol class="steps">${found.steps.map((/** @type {any} */ it) => html`<li key=${it.name}>
      <strong>${it.name}</strong> <${Badge} kind=${it.holds === null ? "waits" : it.holds ? "good" : "bad"}>${it.holds === null ? "Not checked" : it.holds ? "Fits" : "Does not fit"}<//><br /><small><${Quoted} text=${it.said} dir="ltr" /></small></li>`)}</ol>
    <details><summary>What this does not show</summary><ul>
      <li>That the published keys are those of whoever you think: they came from the same server. Compare their names with ones that you got another way.</li>
      <li>That everybody is shown the same ledger: keep a bundle, and let a later one show that it continues it (<code>since</code>).</li>
      <li>That what is recorded is true. It shows that it was recorded so, at this place, and not changed since.</li>
    </ul></details>
    <details><summary>The checkpoint</summary><pre tabindex="0" aria-label="The signed checkpoint"><${Quoted} text=${proof.checkpoint} dir="ltr" /></pre></details>`}
  </section>`;
}

/** Whether a bundle is of the place of a record and holds it: only then is a text that it does not show not kept. @param {any} bundle @param {number} seq */
const holds = ({ range, records }, seq) => !!range && range.fromSeq <= seq && seq < range.toSeq && Array.isArray(records) && records.some((it) => it.seq === seq);

/** The texts that a record commits to, as far as they were not erased. @param {{ record: any }} props */
function Texts({ record }) {
  const api = useApi();
  const { wid } = usePlace();
  const wanted = commitments(record.data);
  const [read, set] = useState(/** @type {any} */ (null));
  useEffect(() => {
    let isHere = true;
    const run = async () => {
      const next = new Date(Date.parse(record.at) + 1).toISOString();
      const got = await api("GET", `evidence${asQuery({ from: record.at, to: next })}`);
      const shown = isDone(got) ? (got.said.disclosures ?? []).filter((/** @type {any} */ it) => it.seq === record.seq) : [];
      const texts = await Promise.all(wanted.map(async ([path, commit]) => {
        const of = shown.find((/** @type {any} */ it) => it.path === path);
        return { path, text: of?.text, fits: of ? await discloses(of, commit) : null };
      }));
      if (isHere) set({ isRead: isDone(got), isFound: isDone(got) && holds(got.said, record.seq), texts });
    };
    if (wanted.length) run();
    return () => void (isHere = false);
  }, [api, record.id]);
  if (!wanted.length) return null;
  const fits = (/** @type {any} */ it) => (it.text === undefined ? (read.isFound ? html`<${Badge}>Erased, or not kept<//>` : read.isRead ? html`<${Badge} kind="waits">Could not be found here<//>` : "–") : it.fits === false ? html`<${Badge} kind="bad">Not what the record commits to<//>` : it.fits ? html`<${Badge} kind="good">Fits<//>` : html`<${Badge} kind="waits">Not checked<//>`);
  const columns = [
    { title: "Place", cell: (/** @type {any} */ it) => html`<code>${plain(it.path)}</code>` },
    { title: "Text", cell: (/** @type {any} */ it) => (it.text === undefined ? "–" : html`<${Quoted} text=${it.text} />`) },
    { title: "Checked here", cell: fits },
  ];
  return html`<section class="card" aria-labelledby="texts"><header><h2 id="texts">Texts that it commits to</h2></header>
    <p><small>The record holds a salted hash of ${count(wanted.length, "text")}. Erasing a text leaves the hash, and so the ledger, as they are.</small></p>
    ${read ? html`${read.isRead && !read.isFound && html`<p class="note">The server's answer did not hold this record, so it is not known here whether its texts are kept. Open the page again; where that does not help, download the evidence of its day from the <a href=${at(wid, "ledger")}>ledger</a> and look for record ${record.seq} in it.</p>`}${!read.isRead && html`<p class="trouble" role="alert">The texts could not be read just now. Open the page again to try anew.</p>`}<${Table} caption="Texts" columns=${columns} rows=${read.texts} rowKey=${(/** @type {any} */ it) => it.path} />` : html`<p class="loading">Loading…</p>`}
  </section>`;
}
