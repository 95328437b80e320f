// One agent: what it may do, what it did, its keys, and stopping it.
import { Badge, Button, Dialog, Empty, Facts, Field, Form, Heading, Id, Pager, Quoted, Shown, Table, Time, at, html, usePlace } from "./kit.js";
import { useState } from "./hooks.js";
import { Actions } from "./activity.js";
import { Spend, Standing, TIERS, isWhole, mayAnswer } from "./agents.js";
import { Ending } from "./ending.js";
import { Who, useApi, useList, useRead, useWatched, useWhole } from "./list.js";
import { Mandates } from "./mandates.js";
import { Others, usePinned } from "./meanwhile.js";
import { ShownOnce } from "./once.js";
import { wrongFields } from "./server.js";
import { plain } from "./text.js";

/** @param {{ item: string }} props */
export function Page({ item }) {
  const { wid } = usePlace();
  const read = useRead(`agents/${encodeURIComponent(item)}`, ["agent", "action", "approval", "hold"]);
  return html`<p class="back"><a href=${at(wid, "agents")}>All agents</a></p>
    ${!read.data && html`<${Heading} title="Agent" />`}
    <${Shown} of=${read}>${(/** @type {any} */ agent) => (isWhole(agent) ? html`<${Whole} agent=${agent} again=${read.again} />` : html`<${ToStop} agent=${agent} again=${read.again} />`)}<//>`;
}

/** What its kill owner sees of it, who has it by nothing else. @param {{ agent: any, again: () => any }} props */
function ToStop({ agent, again }) {
  const [isFreezing, setFreezing] = useState(false);
  // That it was started again no event tells them.
  useWatched(again);
  const done = async () => {
    setFreezing(false);
    await again();
  };
  return html`
    <${Heading} title=${agent.name} name=${html`<${Quoted} text=${agent.name} /> <${Standing} of=${agent} />`}>${agent.standing === "active" && html`<${Button} kind="danger" act=${() => setFreezing(true)}>Freeze<//>`}<//>
    <${Stopped} agent=${agent} />
    <section class="card" aria-labelledby="facts"><header><h2 id="facts">About it</h2></header>
      <p>You are its kill owner: you may freeze it, and are told when it is frozen. What else there is of it is for whose agent it is.</p>
      <${Facts} of=${[["Made", html`<${Time} at=${agent.createdAt} />`], ["Id", html`<${Id} id=${agent.id} />`]]} /></section>
    ${isFreezing && html`<${Freeze} agent=${agent} close=${() => setFreezing(false)} done=${done} />`}`;
}

/** Since when it is frozen, by whom and why. @param {{ agent: any }} props */
const Stopped = ({ agent: { frozen } }) => frozen && html`<div class="note"><p><strong>Frozen</strong> <${Time} at=${frozen.at} /> by <${Who} id=${frozen.by} />: <${Quoted} text=${frozen.reason} /></p>
  ${frozen.incident && html`<p>An incident froze it: <${Id} id=${frozen.incident} /></p>`}</div>`;

/** @param {{ agent: any, again: () => any }} props */
function Whole({ agent, again }) {
  const { wid, may } = usePlace();
  const { name, standing, tier } = agent;
  const [act, setAct] = useState("");
  const close = () => setAct("");
  const done = async () => {
    close();
    await again();
  };
  const actions = useList(may("ReadActions") ? "actions" : null, { agentId: agent.id }, ["action"], 10);
  return html`
    <${Heading} title=${name} name=${html`<${Quoted} text=${name} /> <${Standing} of=${agent} />`}><${Acts} agent=${agent} open=${setAct} /><//>
    <${Stopped} agent=${agent} />
    <div class="grid">
      <div><section class="card" aria-labelledby="month"><header><h2 id="month">Paid this month</h2></header><p class="sum"><${Spend} of=${agent.spend} /></p>
        ${agent.waiting > 0 && html`<p><a href=${`${at(wid, "approvals")}?agentId=${agent.id}`}><${Badge} kind="waits">${agent.waiting} waiting<//></a></p>`}</section>
      <${Pace} of=${agent.velocity} /></div>
      <section class="card" aria-labelledby="facts"><header><h2 id="facts">About it</h2></header>
        <${Facts} of=${[
          ["Acts for", html`<${Quoted} text=${agent.principalEmail || agent.principalId} />`],
          ["Tier", tier],
          ["Sponsor", agent.sponsor && html`<${Who} id=${agent.sponsor} />`],
          ["Kill owner", agent.killOwner && html`<${Who} id=${agent.killOwner} />`],
          ["Last seen", html`<${Time} at=${agent.lastSeenAt} ago />`],
          ["Made", html`<${Time} at=${agent.createdAt} /> by <${Who} id=${agent.createdBy} />`],
          ["Id", html`<${Id} id=${agent.id} />`],
        ]} /></section>
    </div>
    <${Mandates} agent=${agent} again=${again} />
    ${may("ReadActions") && html`<section class="card" aria-labelledby="lately"><header><h2 id="lately">Lately</h2><a href=${`${at(wid, "activity")}?agentId=${agent.id}`}>All of its activity</a>${may("ReadReports") && html`<a href=${`${at(wid, "spend", "calls")}?agentId=${agent.id}`}>Its model calls</a>`}</header>
      <${Shown} of=${actions}>${(/** @type {any[]} */ items) => (items.length ? html`<${Actions} items=${items} isOne />` : html`<${Empty} title="It has asked for nothing yet."><p>Its first action appears here by itself.</p><//>`)}<//></section>`}
    ${may("AgentKeys") && html`<${Keys} agent=${agent} />`}
    ${act === "freeze" && html`<${Freeze} agent=${agent} close=${close} done=${done} />`}
    ${act === "restart" && html`<${Restart} agent=${agent} close=${close} done=${done} />`}
    ${act === "change" && html`<${Change} agent=${agent} close=${close} done=${done} />`}
    ${act === "remove" && html`<${Remove} agent=${agent} close=${close} done=${done} />`}`;
}

/** What this person may do to it; the rest is not offered. @param {{ agent: any, open: (act: string) => void }} props */
function Acts({ agent, open }) {
  const { may, workspace } = usePlace();
  if (agent.standing === "removed") return null;
  const runs = may("RunAgents");
  const freezes = runs || agent.killOwner === workspace.principalId;
  return html`
    ${agent.standing === "active" && freezes && html`<${Button} kind="danger" act=${() => open("freeze")}>Freeze<//>`}
    ${agent.standing === "frozen" && runs && html`<${Button} kind="main" act=${() => open("restart")}>Start again<//>`}
    ${runs && html`<${Button} act=${() => open("change")}>${may("ManageAgents") ? "Change" : "Rename"}<//>`}
    ${may("ManageAgents") && html`<${Button} kind="danger" act=${() => open("remove")}>Remove<//>`}`;
}

/** How full the two lines are. @param {{ of?: Record<string, { used: number, limit: number, clearsAt?: string }> }} props */
function Pace({ of }) {
  if (!of) return null;
  const line = (/** @type {string} */ label, /** @type {{ used: number, limit: number, clearsAt?: string }} */ it) => html`<div>
    <p>${label}: <span class="number">${it.used} of ${it.limit}</span>${it.clearsAt && html` <small>full until <${Time} at=${it.clearsAt} /></small>`}</p>
    <meter min="0" max=${it.limit} high=${it.limit * 0.9} value=${it.used} aria-label=${label}>${it.used} of ${it.limit}</meter></div>`;
  return html`<section class="card" aria-labelledby="pace"><header><h2 id="pace">Pace</h2></header>
    <div class="bars">${line("Calls of tools", of.tool)}${line("Other actions", of.other)}</div>
    <p><small>Past a full line, a person is asked.</small></p></section>`;
}

/** @param {{ agent: any, close: () => void, done: () => any }} props */
function Freeze({ agent, close, done }) {
  const api = useApi();
  const { say, workspace, may } = usePlace();
  const frozen = () => {
    say("It is frozen.");
    done();
  };
  const isAll = may("ManageAgents");
  return html`<${Dialog} title="Freeze this agent?" close=${close}>
    <p><strong><${Quoted} text=${agent.name} /></strong> may do nothing until a person starts it again. What waits for a person is denied, receipts that were not used are void.</p>
    ${!isAll && agent.killOwner === workspace.principalId && html`<p>You may do this as its kill owner.</p>`}
    <${Form} act=${(/** @type {any} */ it) => api("POST", `agents/${agent.id}/freeze`, { reason: it.reason })} submit="Freeze it" kind="danger" cancel=${close} done=${frozen}>
      <${Field} name="reason" label="Why" needed hint="Whoever may see the agent can read it." />
    <//>
  <//>`;
}

/** @param {{ agent: any, close: () => void, done: () => any }} props */
function Restart({ agent, close, done }) {
  const api = useApi();
  const { say } = usePlace();
  const restarted = () => {
    say("It runs again.");
    done();
  };
  return html`<${Dialog} title="Start this agent again?" close=${close}>
    <p><strong><${Quoted} text=${agent.name} /></strong> may ask and act again, by its mandates. What the stop ended stays ended.</p>
    <${Form} act=${(/** @type {any} */ it) => api("POST", `agents/${agent.id}/restart`, { reason: it.reason })} submit="Start it again" cancel=${close} done=${restarted}>
      <${Field} name="reason" label="Why it is safe to go on" needed />
    <//>
  <//>`;
}

/** What of an agent is changed. @type {Record<string, string>} */
const MEMBERS = { name: "Name", tier: "Tier", sponsor: "Sponsor", killOwner: "Kill owner" };

/** One of them as it stands. @param {any} agent @param {string} member */
function said(agent, member) {
  if (member === "name") return html`<${Quoted} text=${agent.name} />`;
  if (member === "tier") return TIERS.find((it) => it[0] === agent.tier)?.[1] ?? agent.tier;
  return agent[member] ? html`<${Who} id=${agent[member]} />` : "Nobody";
}

/** @param {{ agent: any, close: () => void, done: () => any }} props */
function Change({ agent, close, done }) {
  const api = useApi();
  const { may } = usePlace();
  const isAll = may("ManageAgents");
  const members = useWhole(isAll ? "members" : null);
  const path = `agents/${agent.id}`;
  // A member that is left as it was is not sent, whatever others change meanwhile.
  const { began: was, known, others, look } = usePinned(agent, path);
  const all = (members.data && members.data.data) || [];
  // Whoever it is now can be chosen even where they are disabled or beyond the members that were read: a name alone removes nobody.
  const persons = (/** @type {string | undefined} */ now, may = (/** @type {any} */ _) => true) => {
    const people = all.filter((/** @type {any} */ it) => (it.state !== "disabled" && may(it)) || it.principalId === now);
    const isThere = !now || people.some((/** @type {any} */ it) => it.principalId === now);
    return [["", "Nobody"], ...people.map((/** @type {any} */ it) => [it.principalId, `${it.name ?? it.email} (${it.state === "disabled" ? "disabled" : it.role})`]), ...(isThere ? [] : [[now, now]])];
  };
  const change = async (/** @type {Record<string, string>} */ { name, tier, sponsor, killOwner }) => {
    const held = isAll ? { name, tier, sponsor: sponsor || null, killOwner: killOwner || null } : { name };
    const body = Object.fromEntries(Object.entries(held).filter(([member, it]) => it !== (was[member] ?? null)));
    const { stop } = await look(Object.keys(body), (said, member) => said[member] ?? null);
    return stop ?? api("PATCH", path, body);
  };
  return html`<${Dialog} title=${isAll ? "Change this agent" : "Rename this agent"} close=${close}>
    ${isAll && !members.data ? html`<${Shown} of=${members}>${() => null}<//>` : html`<${Form} act=${change} submit="Save" cancel=${close} done=${done}>
      <${Field} name="name" label="Name" value=${was.name} needed />
      ${isAll && html`<${Field} name="tier" as="choice" label="Tier" options=${TIERS} value=${was.tier} />
        <${Field} name="sponsor" as="choice" label="Sponsor" options=${persons(was.sponsor, mayAnswer)} value=${was.sponsor ?? ""} />
        <${Field} name="killOwner" as="choice" label="Kill owner" options=${persons(was.killOwner)} value=${was.killOwner ?? ""} />`}
      <${Others} of=${others.map((member) => [MEMBERS[member], said(known, member)])} />
    <//>`}
  <//>`;
}

/** @param {{ agent: any, close: () => void, done: () => any }} props */
function Remove({ agent, close, done }) {
  const api = useApi();
  const { say } = usePlace();
  // Signs that nobody sees are named where it is shown, and nobody can type them.
  const names = [agent.name, plain(agent.name)].map((it) => it.trim().normalize("NFC"));
  const remove = (/** @type {any} */ it) => (names.includes(it.typed.trim().normalize("NFC")) ? api("DELETE", `agents/${agent.id}`) : wrongFields({ typed: "This is not its name. Nothing was removed." }));
  const removed = () => {
    say("It is removed.");
    done();
  };
  return html`<${Dialog} title="Remove this agent for good?" close=${close}>
    <p><strong><${Quoted} text=${agent.name} /></strong> is stopped as by a freeze, its keys end, and nobody can start it again. What it did stays on record. To stop it for a while, freeze it.</p>
    <${Form} act=${remove} submit="Remove it for good" kind="danger" cancel=${close} done=${removed}>
      <${Field} name="typed" label="Its name, to be sure" needed />
    <//>
  <//>`;
}

/** @param {{ agent: any }} props */
function Keys({ agent }) {
  const api = useApi();
  const list = useList(`agents/${agent.id}/keys`);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const close = () => setOpen(null);
  const columns = [
    { title: "Key", cell: (/** @type {any} */ it) => html`<code>${it.prefix}…</code>${it.label && html` <${Quoted} text=${it.label} />`}` },
    { title: "State", cell: (/** @type {any} */ it) => html`<${Badge} kind=${it.state === "active" ? "good" : "plain"}>${it.state}<//>` },
    { title: "Last used", cell: (/** @type {any} */ it) => html`<${Time} at=${it.lastUsedAt} ago />` },
    { title: "Made", cell: (/** @type {any} */ it) => html`<${Time} at=${it.createdAt} /> by <${Who} id=${it.createdBy} />` },
    { title: "", kind: "end", cell: (/** @type {any} */ it) => it.state === "active" && html`<${Button} kind="danger" act=${() => setOpen({ act: "revoke", of: it })}>Revoke<span class="unseen"> ${it.prefix}</span><//>` },
  ];
  return html`<section class="card" aria-labelledby="keys"><header><h2 id="keys">Keys</h2>${agent.standing !== "removed" && html`<${Button} act=${() => setOpen({ act: "make" })}>New key<//>`}</header>
    <${Shown} of=${list}>${(/** @type {any[]} */ items) => (items.length ? html`<${Table} caption="Keys of this agent" columns=${columns} rows=${items} /><${Pager} of=${list} />` : html`<${Empty} title="It has no key."><p>Without one it can ask for nothing.</p><//>`)}<//>
    ${open && open.act === "make" && html`<${Dialog} title="New key" close=${close}>
      <${Form} act=${(/** @type {any} */ it) => api("POST", `agents/${agent.id}/keys`, it.label.trim() ? { label: it.label } : {})} submit="Make a key" cancel=${close} done=${(/** @type {any} */ got) => setOpen({ act: "made", key: got.said.key })}>
        <${Field} name="label" label="Label" hint="What it is for, in your words." />
      <//><//>`}
    ${open && open.act === "made" && html`<${ShownOnce} title="The new key" secret=${open.key} close=${() => { close(); list.again(); }} />`}
    ${open && open.act === "revoke" && html`<${Ending} title="Revoke this key?" path=${`keys/${open.of.id}`} submit="Revoke it" said="The key is revoked." close=${close} done=${() => { close(); list.again(); }}>
      <p>${open.of.label && html`<strong><${Quoted} text=${open.of.label} /></strong> `}<code>${open.of.prefix}…</code> ends for good, at once. Whatever uses it is refused. ${open.of.lastUsedAt ? html`It was used last <${Time} at=${open.of.lastUsedAt} ago />.` : "It was never used."}</p><//>`}
  </section>`;
}
