// Keys for model traffic and administration, and service tokens, by which machines administer agents: made, shown once, revoked.
import { Badge, Button, Dialog, Empty, Field, Form, Heading, Pager, Quoted, Shown, Tabs, Table, Time, at, html, useNow, usePlace } from "./kit.js";
import { Ending } from "./ending.js";
import { useState } from "./hooks.js";
import { Choice } from "./filters.js";
import { Who, useApi, useList, useRead, useRemembered, useWatched } from "./list.js";
import { ShownOnce } from "./once.js";
import { Checks, named, ticked, useMembers, useTeams } from "./people.js";
import { ROOT } from "./server.js";
import { lines } from "./text.js";

const PART = 100;
// A longer list of addresses is folded.
const LONG = 12;
const SOON_MS = 14 * 24 * 60 * 60 * 1000;
const ENDED = /** @type {Record<string, string>} */ ({ revoked: "Revoked", expired: "Ended" });
const SCOPES = /** @type {Record<string, string>} */ ({ inference: "Model traffic", admin: "Administration and model traffic", agent: "An agent" });
/** @type {[string, string][]} */
const MAY = [
  ["agents:read", "Agents: read them and their standing"],
  ["agents:write", "Agents: register them, with mandates from templates alone"],
  ["agents:freeze", "Agents: freeze one or many, and run drills"],
  ["approvals:read", "Approvals: read what waits; no machine decides it"],
  ["evidence:read", "Evidence: read the bundle and the scorecard"],
];
/** @type {[string, string][]} */
const SHOWN = [["active", "In force"], ["all", "All, ended ones too"]];

/** @param {{ query: Record<string, string> }} props */
export function Page({ query }) {
  const { wid } = usePlace();
  const isTokens = query.tab === "tokens";
  const tabs = [
    { label: "Keys", href: at(wid, "keys"), on: !isTokens },
    { label: "Service tokens", href: `${at(wid, "keys")}?tab=tokens`, on: isTokens },
  ];
  return isTokens ? html`<${Tokens} tabs=${tabs} isAll=${query.state === "all"} />` : html`<${Keys} tabs=${tabs} isAll=${query.state === "all"} />`;
}

/** Whether those that have ended are shown as well, which stands in the address. @param {{ path: string, isAll: boolean, list: any, hidden: number }} props */
function Filter({ path, isAll, list, hidden }) {
  const { go } = usePlace();
  const choose = (/** @type {string} */ it) => go(it === "all" ? `${path}${path.includes("?") ? "&" : "?"}state=all` : path, true);
  if (!isAll && !hidden && !list.more) return null;
  return html`<div class="filters"><${Choice} label=${`Shown${list.more ? ", of those read so far" : ""}`} value=${isAll ? "all" : "active"} options=${SHOWN} choose=${choose} /></div>`;
}

/** When something ends by itself, with a word where that is soon. @param {{ of: any }} props */
function Ends({ of: { expiresAt, state } }) {
  const now = useNow(60_000);
  if (!expiresAt) return "Not by itself";
  const isSoon = state === "active" && Date.parse(expiresAt) - now < SOON_MS;
  return html`<${Time} at=${expiresAt} />${isSoon && html` <${Badge} kind="waits"><${Time} at=${expiresAt} ago /><//>`}`;
}

/** That something is in force no more. @param {{ of: any }} props */
const Ended = ({ of }) => ENDED[of.state] && html` <${Badge}>${ENDED[of.state]}<//>`;

/** Whose a key is where it is an agent's. @param {{ id: string }} props */
function AgentOf({ id }) {
  const { wid } = usePlace();
  const agent = useRemembered(`agents/${id}`);
  return html`<a href=${at(wid, "agents", id)}><${Quoted} text=${agent ? agent.name : id} /></a>`;
}

/** What a key is for: whose traffic it counts, and what its calls must satisfy. @param {{ of: any, teams: any, profile: (id: string) => string }} props */
function Bound({ of, teams, profile }) {
  if (of.agentId) return html`${SCOPES.agent}: <${AgentOf} id=${of.agentId} />`;
  const more = [
    of.teamId && html`team <${Quoted} text=${teams.name(of.teamId)} />`,
    of.taskClassId && html`class <${Quoted} text=${of.taskClassId} />${of.taskClassOpen && ", or another that a call names"}`,
    of.policyProfileId && html`profile <${Quoted} text=${profile(of.policyProfileId)} />`,
  ].filter(Boolean);
  return html`${SCOPES[of.scope]}, for <${Who} id=${of.principalId} />${more.map((it) => html`<br /><small>${it}</small>`)}`;
}

/** @param {{ tabs: any[], isAll: boolean }} props */
function Keys({ tabs, isAll }) {
  const { wid, say } = usePlace();
  const list = useList("keys", {}, [], PART);
  useWatched(list.again);
  const teams = useTeams();
  const profiles = useRead("policy-profiles?limit=500");
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const close = () => setOpen(null);
  const profile = (/** @type {string} */ id) => ((profiles.data && profiles.data.data) || []).find((/** @type {any} */ it) => it.id === id)?.name ?? id;
  const shown = list.items.filter((/** @type {any} */ it) => isAll || it.state === "active");
  const revoked = () => {
    say("The key is revoked.");
    close();
    return list.again();
  };
  const columns = [
    { title: "Key", cell: (/** @type {any} */ it) => html`${it.label && html`<${Quoted} text=${it.label} /><br />`}<code>${it.prefix}…</code><${Ended} of=${it} />` },
    { title: "For", cell: (/** @type {any} */ it) => html`<${Bound} of=${it} teams=${teams} profile=${profile} />` },
    { title: "Last used", cell: (/** @type {any} */ it) => html`<${Time} at=${it.lastUsedAt} ago />` },
    { title: "Ends", cell: (/** @type {any} */ it) => html`<${Ends} of=${it} />` },
    { title: "Made", cell: (/** @type {any} */ it) => html`<${Time} at=${it.createdAt} /> by <${Who} id=${it.createdBy} />` },
    { title: "", kind: "end", cell: (/** @type {any} */ it) => it.state === "active" && html`<${Button} kind="danger" act=${() => setOpen({ act: "revoke", of: it })}>Revoke<span class="unseen"> <${Quoted} text=${it.label ? `${it.label} ${it.prefix}` : it.prefix} /></span><//>` },
  ];
  return html`<${Heading} title="Keys"><${Button} kind="main" act=${() => setOpen({ act: "make" })}>New key<//><//>
    <${Tabs} name="Kinds of credentials" of=${tabs} />
    <p class="lead">Programs call models with a key of their own: what they spend counts for whoever it is bound to. An agent's keys are on its page and listed here too. Last used is since the server was started.</p>
    <${Filter} path=${at(wid, "keys")} isAll=${isAll} list=${list} hidden=${list.items.length - shown.length} />
    <${Shown} of=${list} many=${shown.length}>${() =>
      shown.length
        ? html`<${Table} caption="Keys" columns=${columns} rows=${shown} /><${Pager} of=${list} />`
        : html`<${Empty} title="No key is in force."><p>Without one, no program can call a model through this server.</p><p><${Button} kind="main" act=${() => setOpen({ act: "make" })}>Make a key<//></p><//><${Pager} of=${list} />`}<//>
    ${open && open.act === "make" && html`<${NewKey} close=${close} made=${(/** @type {any} */ it) => { setOpen({ act: "made", key: it }); list.again(); }} />`}
    ${open && open.act === "made" && html`<${ShownOnce} title="The new key" secret=${open.key.key} close=${close}><${Use} scope=${open.key.binding.scope} /><//>`}
    ${open && open.act === "revoke" && html`<${Revoke} of=${open.of} close=${close} done=${revoked} />`}`;
}

/** Where a new key is used. @param {{ scope: string }} props */
function Use({ scope }) {
  const address = (/** @type {string} */ path) => new URL(path, ROOT).href;
  if (scope === "admin") return html`<p>Sent as <code>authorization: Bearer</code> to the addresses below <code>${address("v1/admin")}</code> for budgets, reports, providers and keys, and to <code>${address("v1/evidence")}</code>; it calls models as well. Whoever has it can make further keys.</p>`;
  return html`<p>Sent as <code>authorization: Bearer</code>, or as <code>x-api-key</code>. A client is given one of these addresses:</p>
    <ul><li><code>${address("v1")}</code> for chat completions</li><li><code>${address("anthropic")}</code> for messages</li></ul>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Revoke({ of, close, done }) {
  return html`<${Ending} title="Revoke this key?" path=${`keys/${of.id}`} submit="Revoke it" close=${close} done=${done}>
    <p>${of.label && html`<strong><${Quoted} text=${of.label} /></strong> `}<code>${of.prefix}…</code> ends for good, at once. Whatever uses it is refused.</p>
    ${of.scope === "admin" && html`<p>Every key that was made with it ends too.</p>`}
    ${of.agentId && html`<p>It is a key of <${AgentOf} id=${of.agentId} />. An agent without a key can ask for nothing, and so may do nothing.</p>`}
  <//>`;
}

/** @param {{ close: () => void, made: (got: any) => void }} props */
function NewKey({ close, made }) {
  const { workspace } = usePlace();
  const api = useApi();
  const [scope, setScope] = useState("inference");
  const members = useMembers();
  const teams = useTeams();
  const classes = useRead("task-classes?limit=500");
  const profiles = useRead("policy-profiles?limit=500");
  const of = (/** @type {any} */ read) => (read.data && read.data.data) || [];
  const others = members.people.filter((it) => it.principalId !== workspace.principalId);
  const make = (/** @type {Record<string, string>} */ it) =>
    api("POST", "keys", {
      scope,
      ...(it.label.trim() && { label: it.label }), ...(it.principalId && { principalId: it.principalId }), ...(it.teamId && { teamId: it.teamId }),
      ...(it.taskClassId && { taskClassId: it.taskClassId }), ...(it.policyProfileId && { policyProfileId: it.policyProfileId }),
      ...(it.taskClassOpen && { taskClassOpen: true }), ...(it.expiresInDays && { expiresInDays: Number(it.expiresInDays) }),
    });
  return html`<${Dialog} title="New key" close=${close}>
    <${Form} act=${make} submit="Make a key" cancel=${close} done=${(/** @type {any} */ got) => made(got.said)}>
      <${Field} name="label" label="Label" hint="What it is for, in your words." />
      <div class="field"><label for="scope">It may</label><select id="scope" name="scope" onChange=${(/** @type {any} */ it) => setScope(it.currentTarget.value)}>
        <option value="inference" selected=${scope === "inference"}>Call models</option><option value="admin" selected=${scope === "admin"}>Call models and administer: budgets, reports, evidence, keys</option></select>
        ${scope === "admin" && html`<small>It ends, with every key that was made with it, when you lose the right to make keys.</small>`}</div>
      <${Field} key=${others.length} name="principalId" as="choice" label="Counts for" options=${[["", "You"], ...others.map((it) => [it.principalId, `${named(it)} (${it.role})`])]} hint="Their spend, their budgets. The key ends with their membership." />
      <div class="pair">
        <${Field} key=${`team ${teams.all.length}`} name="teamId" as="choice" label="Team" options=${[["", "None"], ...teams.all.map((it) => [it.id, it.name])]} />
        <${Field} name="expiresInDays" as="number" label="Ends in, days" hint="1 to 3,650; empty: not by itself." more=${{ min: 1, max: 3650 }} />
      </div>
      <div class="pair">
        <${Field} key=${`class ${of(classes).length}`} name="taskClassId" as="choice" label="Class of tasks" options=${[["", "None"], ...of(classes).map((/** @type {any} */ it) => [it.id, it.name || it.id])]} hint="Where a call names none." />
        <${Field} key=${`profile ${of(profiles).length}`} name="policyProfileId" as="choice" label="Policy profile" options=${[["", "None"], ...of(profiles).map((/** @type {any} */ it) => [it.id, it.name])]} hint="What its calls must satisfy." />
      </div>
      <${Field} as="check" name="taskClassOpen" label="A call may name another class" hint="Otherwise one that names another is refused." />
    <//>
  <//>`;
}

/** @param {{ tabs: any[], isAll: boolean }} props */
function Tokens({ tabs, isAll }) {
  const { wid, may, say, workspace } = usePlace();
  const isMine = !!may("ManageTokens");
  const list = useList(isMine ? "service-tokens" : null, {}, [], PART);
  useWatched(list.again);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const close = () => setOpen(null);
  const shown = list.items.filter((/** @type {any} */ it) => isAll || it.state === "active");
  const columns = [
    { title: "Token", cell: (/** @type {any} */ it) => html`<${Quoted} text=${it.name} /><${Ended} of=${it} />` },
    { title: "May", cell: (/** @type {any} */ it) => it.scopes.map((/** @type {string} */ scope, /** @type {number} */ place) => html`${place > 0 && ", "}<code key=${scope}>${scope}</code>`) },
    { title: "From", cell: (/** @type {any} */ it) => html`<${From} all=${it.ipAllow} />` },
    { title: "Last used", cell: (/** @type {any} */ it) => html`<${Time} at=${it.lastUsedAt} ago />` },
    { title: "Ends", cell: (/** @type {any} */ it) => html`<${Ends} of=${it} />` },
    { title: "Made", cell: (/** @type {any} */ it) => html`<${Time} at=${it.createdAt} /> by <${Who} id=${it.createdBy} />` },
    { title: "", kind: "end", cell: (/** @type {any} */ it) => it.state === "active" && html`<${Button} kind="danger" act=${() => setOpen({ act: "revoke", of: it })}>Revoke<span class="unseen"> <${Quoted} text=${it.name} /></span><//>` },
  ];
  const revoked = () => {
    say("The token is revoked.");
    close();
    return list.again();
  };
  const make = () => setOpen({ act: "make" });
  return html`<${Heading} title="Service tokens">${isMine && html`<${Button} kind="main" act=${make}>New token<//>`}<//>
    <${Tabs} name="Kinds of credentials" of=${tabs} />
    <p class="lead">Machines administer agents with a service token: register them from templates, freeze them, read what waits and the evidence. None decides an approval, and none lifts a freeze.</p>
    ${!isMine && html`<${Empty} title="Service tokens are an owner's to make and to see."><p>Your role here is ${workspace.role}. Ask an owner.</p><//>`}
    ${isMine && html`<${Filter} path=${`${at(wid, "keys")}?tab=tokens`} isAll=${isAll} list=${list} hidden=${list.items.length - shown.length} />
    <${Shown} of=${list} many=${shown.length}>${() =>
      shown.length
        ? html`<${Table} caption="Service tokens" columns=${columns} rows=${shown} /><${Pager} of=${list} />`
        : html`<${Empty} title="No service token is in force."><p>Make one for a program that sets up agents, or for one that has to stop them.</p><p><${Button} kind="main" act=${make}>Make a token<//></p><//><${Pager} of=${list} />`}<//>`}
    ${open && open.act === "make" && html`<${NewToken} close=${close} made=${(/** @type {any} */ it) => { setOpen({ act: "made", token: it.token }); list.again(); }} />`}
    ${open && open.act === "made" && html`<${ShownOnce} title="The new service token" what="token" secret=${open.token} close=${close}><p>Sent as <code>authorization: Bearer</code> to the addresses below <code>${new URL("v1/admin", ROOT).href}</code>.</p><//>`}
    ${open && open.act === "revoke" && html`<${RevokeToken} of=${open.of} close=${close} done=${revoked} />`}`;
}

/** From where a token is taken: all of the ranges. @param {{ all: string[] }} props */
function From({ all }) {
  const listed = all.map((it, place) => html`${place > 0 && ", "}<code key=${it}>${it}</code>`);
  if (all.length > LONG) return html`<details><summary>${all.length} ranges</summary>${listed}</details>`;
  return all.length ? listed : "Anywhere";
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function RevokeToken({ of, close, done }) {
  return html`<${Ending} title="Revoke this token?" path=${`service-tokens/${of.id}`} submit="Revoke it" close=${close} done=${done}>
    <p><strong><${Quoted} text=${of.name} /></strong> ends for good, at once. Agents that were made with it stay.</p>
  <//>`;
}

/** @param {{ close: () => void, made: (got: any) => void }} props */
function NewToken({ close, made }) {
  const api = useApi();
  const make = (/** @type {Record<string, string>} */ it) =>
    api("POST", "service-tokens", { name: it.name, scopes: ticked(it, "scopes"), ipAllow: lines(it.ipAllow), ...(it.expiresInDays && { expiresInDays: Number(it.expiresInDays) }) });
  return html`<${Dialog} title="New service token" close=${close}>
    <${Form} act=${make} submit="Make a token" cancel=${close} done=${(/** @type {any} */ got) => made(got.said)}>
      <${Field} name="name" label="Name" needed hint="What the record calls it. No other token in force has it." />
      <${Checks} legend="It may" name="scopes" of=${MAY} />
      <${Field} name="expiresInDays" as="number" label="Ends in, days" value="90" hint="1 to 90." more=${{ min: 1, max: 90 }} />
      <${Field} name="ipAllow" as="lines" label="Only from these addresses" hint=${html`Ranges, one a line, such as <code>203.0.113.0/24</code>. Empty: from anywhere.`} />
    <//>
  <//>`;
}
