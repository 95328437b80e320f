// What agents did and asked for, with how each was decided; one of them with its reasons.
import { Badge, Button, Dialog, Empty, Entries, Facts, Field, Form, Heading, Id, Json, Money, Pager, Quoted, Recipient, Said, Shown, Table, Time, at, html, usePlace } from "./kit.js";
import { useState } from "./hooks.js";
import { Matter } from "./approvals.js";
import { Choice, Filters, Typed } from "./filters.js";
import { Given } from "./given.js";
import { Who, useApi, useList, useRead } from "./list.js";
import { AgentChoice, useAgents } from "./named.js";
import { query as asQuery, readBy, wrongDays } from "./server.js";
import { ASKS, count, dayOn, fromLocal } from "./text.js";

const STATUSES = /** @type {Record<string, [any, string]>} */ ({
  pending: ["waits", "Waiting"],
  allowed: ["good", "Allowed"],
  denied: ["bad", "Denied"],
  expired: ["plain", "Expired"],
  revoked: ["bad", "Revoked"],
  lapsed: ["plain", "Lapsed"],
  completed: ["good", "Completed"],
  failed: ["plain", "Failed"],
  cancelled: ["plain", "Cancelled"],
});
const TOLD = /** @type {Record<string, string>} */ ({
  pending: "A person has been asked.",
  allowed: "It was allowed and is not settled yet.",
  expired: "Nobody decided in time.",
  revoked: "It was allowed, then the agent was stopped. It may have happened all the same.",
  lapsed: "It was allowed and never settled; its amount counts as paid until it is released.",
  completed: "The agent says that it was done.",
  failed: "The agent says that it failed.",
  cancelled: "The agent says that it was given up.",
});
const EFFECTS = /** @type {Record<string, [any, string]>} */ ({ deny: ["bad", "Denies"], ask: ["waits", "Asks"], info: ["plain", "Notes"] });
const TRUST = /** @type {Record<string, string>} */ ({
  operator: "those who run the agent",
  user: "its user",
  first_party: "the agent itself, or your own files and databases",
  third_party: "others: mail, documents, results of tools",
  public: "the open web, or an unknown source",
});
const VERDICTS = /** @type {Record<string, string>} */ ({
  understated: "Worse than the agent declared: less trusted content was seen going into it.",
  undeclared: "The agent declared nothing.",
  unobserved: "Declared by the agent alone; none of its traffic was seen.",
  overstated: "The agent declared worse than was seen.",
  consistent: "What the agent declared is what was seen.",
});

const FILTERS = { agentId: "Agent", status: "Status", type: "Type", from: "From", to: "To" };
const NO_TYPE = "This is no type of actions. Choose one that is offered, or write one of your own, such as `crm.update`.";

/** @param {{ of: { status: string } }} props */
const Status = ({ of }) => html`<${Badge} kind=${STATUSES[of.status]?.[0]}>${STATUSES[of.status]?.[1] ?? of.status}<//>`;

/** @param {{ item?: string, query: Record<string, string> }} props */
export const Page = ({ item, query }) => (item === undefined ? html`<${All} query=${query} />` : html`<${One} id=${item} />`);

/** Actions as a table; `isOne`: of one agent. @param {{ items: any[], isOne?: boolean }} props */
export function Actions({ items, isOne = false }) {
  const { wid } = usePlace();
  // Each link is called otherwise, also where an agent asks for the same again and again.
  const named = (/** @type {any} */ it) => ["who", "what", "when", "end"].map((part) => `${it.id}-${part}`).join(" ");
  const what = (/** @type {any} */ it) => html`<a href=${at(wid, "activity", it.id)} aria-labelledby=${named(it)}><span id=${`${it.id}-who`}>${isOne ? html`<${Kind} of=${it} />` : html`<${Who} id=${it.agentId} /> ${ASKS[it.type] ?? html`<${Kind} of=${it} />`}`}</span><span id=${`${it.id}-end`} class="unseen"> ${it.id.slice(-6)}</span></a>`;
  const columns = [
    { title: "Action", cell: what },
    { title: "What", cell: (/** @type {any} */ it) => html`<div id=${`${it.id}-what`}><${Matter} of=${it} /></div>${it.summary && html`<small><${Quoted} text=${it.summary} /></small>`}` },
    { title: "Status", cell: (/** @type {any} */ it) => html`<${Status} of=${it} />${it.incident && html` <${Badge} kind="bad">Incident<//>`}` },
    { title: "When", cell: (/** @type {any} */ it) => html`<span id=${`${it.id}-when`}><${Time} at=${it.createdAt} /></span>` },
  ];
  return html`<${Table} caption="Actions" columns=${columns} rows=${items} />`;
}

/** @param {{ of: any }} props */
const Kind = ({ of: { type } }) => html`<code><${Quoted} text=${type} /></code>`;

/** @param {{ query: Record<string, string> }} props */
function All({ query }) {
  const { wid, go, zone } = usePlace();
  const { agentId = "", status = "", type = "", from = "", to = "" } = query;
  const wrong = wrongDays({ from, to });
  const isWrong = Object.keys(wrong).length > 0;
  // A day in the address is a day of the workspace's.
  const begin = from && fromLocal(`${from}T00:00`, zone);
  const end = to && fromLocal(`${dayOn(to, 1)}T00:00`, zone);
  const list = readBy(useList(isWrong ? null : "actions", { agentId, status, type, from: begin, to: end }, ["action", "incident", "approval"]), wrong);
  const agents = useAgents();
  const address = (/** @type {Record<string, string>} */ more) => at(wid, "activity") + asQuery({ agentId, status, type, from, to, ...more });
  const set = (/** @type {string} */ name) => (/** @type {string} */ value, replace = false) => go(address({ [name]: value }), replace);
  const isFiltered = !!(agentId || status || type || from || to);
  return html`<${Heading} title="Activity" />
    <${Filters} of=${list}>
      <${AgentChoice} key="agent" agents=${agents} fault="agentId" value=${agentId} choose=${set("agentId")} />
      <${Choice} key="status" label="Status" fault="status" value=${status} options=${[["", "Every status"], ...Object.entries(STATUSES).map(([is, it]) => [is, it[1]])]} choose=${set("status")} />
      <${Typed} label="Type" fault="type" value=${type} choose=${set("type")} said=${NO_TYPE} more=${{ list: "types" }}><datalist id="types">${Object.keys(ASKS).map((it) => html`<option key=${it} value=${it}></option>`)}</datalist><//>
      <${Typed} label="From" fault="from" as="date" value=${from} choose=${set("from")} more=${{ max: to }} />
      <${Typed} label="To" fault="to" as="date" value=${to} choose=${set("to")} more=${{ min: from }} />
      ${isFiltered && html`<a href=${at(wid, "activity")}>Show everything</a>`}
    <//>
    <${Shown} of=${list} filters=${FILTERS}>${(/** @type {any[]} */ items) =>
      items.length
        ? html`<${Actions} items=${items} /><${Pager} of=${list} />`
        : list.more
          ? html`<${Empty} title="Nothing of this kind so far back."><p>Older actions were not looked at yet.</p><${Pager} of=${list} /><//>`
          : html`<${None} isFiltered=${isFiltered} />`}<//>`;
}

/** @param {{ isFiltered: boolean }} props */
const None = ({ isFiltered }) => (isFiltered ? html`<${Empty} title="Nothing of this kind." />` : html`<${Empty} title="No agent has asked for anything yet."><p>What agents ask before they act appears here by itself, with how it was decided and why.</p><//>`);

/** @param {{ id: string }} props */
function One({ id }) {
  const { wid } = usePlace();
  const read = useRead(`actions/${encodeURIComponent(id)}`, ["action", "approval", "incident"]);
  return html`<p class="back"><a href=${at(wid, "activity")}>All activity</a></p>
    ${!read.data && html`<${Heading} title="Action" />`}
    <${Shown} of=${read}>${(/** @type {any} */ action) => html`<${Whole} action=${action} again=${read.again} />`}<//>`;
}

/** @param {{ action: any, again: () => any }} props */
function Whole({ action, again }) {
  const { wid, may } = usePlace();
  const [isOpen, setOpen] = useState(false);
  const { approval, released, keptAmount = 0, reasons, payment, provenance } = action;
  // Who may read no members is told by the approval what its people are called.
  const asked = useRead(approval && may("ReadApprovals") && !may("ReadMembers") ? `approvals/${approval.id}` : null, ["approval"]);
  const named = may("ReadAgents") ? html`<a href=${at(wid, "agents", action.agentId)}><${Who} id=${action.agentId} /></a>` : html`<code>${action.agentId}</code>`;
  const done = async () => {
    setOpen(false);
    await again();
  };
  return html`
    <${Heading} title="Action" name=${html`<${Who} id=${action.agentId} /> ${ASKS[action.type] ?? html`<${Kind} of=${action} />`} <${Status} of=${action} />`}>
      ${approval && may("ReadApprovals") && html`<a class="button" href=${at(wid, "approvals", approval.id)}>${approval.state === "waiting" ? "To the approval" : "See the approval"}</a>`}
      ${keptAmount > 0 && may("ReleaseActions") && html`<${Button} act=${() => setOpen(true)}>Release what is kept<//>`}
    <//>
    <${Matter} of=${action} />
    ${action.summary && html`<blockquote><${Quoted} text=${action.summary} /></blockquote>`}
    <p class="lead">${TOLD[action.status]}</p>
    ${action.incident && html`<div class="note"><p><strong>Incident:</strong> settled for <${Money} amount=${action.incident.settledAmount} currency=${payment.currency} />, allowed were <${Money} amount=${action.incident.allowedAmount} currency=${payment.currency} />.</p></div>`}
    <div class="grid">
      <${Reasons} of=${reasons} decided=${action} />
      <section class="card" aria-labelledby="came"><header><h2 id="came">What came of it</h2></header><${Came} of=${action} people=${asked.data?.people} named=${named} /></section>
      <section class="card" aria-labelledby="origin"><header><h2 id="origin">Where its content came from</h2></header>
        <p>${VERDICTS[provenance.verdict]}</p>
        <${Facts} of=${[["Taken as", TRUST[provenance.effective]], ["Declared", html`<${Quoted} text=${provenance.declared.join(", ") || "nothing"} />`], ["Observed", html`<${Quoted} text=${provenance.observed.join(", ") || "nothing"} />`]]} />
      </section>
      <section class="card" aria-labelledby="known"><header><h2 id="known">Everything that is known of it</h2></header><${Known} of=${action} /></section>
    </div>
    ${action.tool && html`<${Given} of=${action.tool} />`}
    ${action.details && html`<details class="card" open><summary>Details that the agent sent</summary><${Json} of=${action.details} /></details>`}
    ${isOpen && html`<${Release} action=${action} kept=${keptAmount} close=${() => setOpen(false)} done=${done} />`}
    ${released?.by && html`<p><small>Released by <${Who} id=${released.by} />.</small></p>`}`;
}

/** @param {{ of: any[], decided: any }} props */
const Reasons = ({ of, decided: { signals } }) => html`<section class="card" aria-labelledby="why"><header><h2 id="why">Why it was decided so</h2></header>
  ${of.length ? html`<ul>${of.map((it) => html`<li key=${it.code + (it.mandateId ?? "")}><${Badge} kind=${EFFECTS[it.effect][0]}>${EFFECTS[it.effect][1]}<//> <${Said} text=${it.message} /> <small><code>${it.code}</code>${it.clearsAt && html`, until <${Time} at=${it.clearsAt} />`}</small></li>`)}</ul>` : html`<p>Its mandate covers it and nothing spoke against it.</p>`}
  ${signals.length > 0 && html`<p><small>Noted: ${signals.map((/** @type {string} */ it) => html`<code key=${it}>${it}</code> `)}</small></p>`}
</section>`;

/** @param {{ of: any, named: any, people?: any[] }} props */
function Came({ of: { status, approval, decidedAt, decidedBy, consumedAt, consumedAmount, outcome, keptAmount, released, payment, createdAt }, named, people }) {
  const amount = (/** @type {number | undefined} */ it) => it !== undefined && payment && html`<${Money} amount=${it} currency=${payment.currency} />`;
  return html`<${Facts} of=${[
    ["Agent", named],
    ["Asked", html`<${Time} at=${createdAt} />`],
    ["Decided", decidedAt && html`<${Time} at=${decidedAt} /> by <${Who} id=${decidedBy} people=${people} />`],
    ["Approved by", approval && approval.approvals.length > 0 && approval.approvals.map((/** @type {any} */ it) => html`<div key=${it.by}><${Who} id=${it.by} people=${people} />${it.note && html`: <${Quoted} text=${it.note} />`}</div>`)],
    ["Note", approval && approval.note && html`<${Quoted} text=${approval.note} />`],
    ["Receipt", status === "allowed" && !consumedAt && "not used yet"],
    ["Receipt used", consumedAt && html`<${Time} at=${consumedAt} />${consumedAmount !== undefined && html` for ${amount(consumedAmount)}`}`],
    ["Settled", outcome && html`<${Time} at=${outcome.settledAt} />${outcome.amount !== undefined && payment && html` for ${amount(outcome.amount)}`}${outcome.late && ", late"}`],
    ["Kept", amount(keptAmount)],
    ["Released", released && html`${amount(released.amount)}, <${Time} at=${released.at} />`],
  ]} />`;
}

/** @param {{ of: any }} props */
function Known({ of: action }) {
  const { tool = {}, data = {}, session, payment } = action;
  const quoted = (/** @type {any} */ it) => it !== undefined && it !== null && html`<${Quoted} text=${it} />`;
  return html`<${Facts} of=${[
    ["Type", html`<${Kind} of=${action} />`],
    ["Payee", quoted(payment?.merchant?.name)],
    ["Domain", payment?.merchant?.domain && html`<code><${Quoted} text=${payment.merchant.domain} dir="ltr" /></code>`],
    ["Tool", quoted(tool.name)],
    ["Server", quoted(tool.server)],
    ["Input", tool.inputDigest && html`${tool.inputBytes === undefined ? "of unknown length" : count(tool.inputBytes, "byte")}, <code>${tool.inputDigest}</code>`],
    ["Recipient", data.recipient && html`<${Recipient} of=${data.recipient} />`],
    ["Fields", data.fields && html`<${Entries} of=${data.fields} />`],
    ["Purpose", quoted(data.purpose)],
    ["Session", quoted(session?.id)],
    ["Mandate", action.mandateId && html`<${Id} id=${action.mandateId} brief />, version ${action.mandateVersion}`],
    ["Action", html`<${Id} id=${action.id} />`],
    ["Digest", html`<code>${action.actionDigest}</code>`],
    ["Evidence", html`<${Id} id=${action.evidenceRecord} />`],
  ]} />`;
}

/** @param {{ action: any, kept: number, close: () => void, done: () => any }} props */
function Release({ action, kept, close, done }) {
  const api = useApi();
  const release = (/** @type {Record<string, string>} */ { reason }) => api("POST", `actions/${action.id}/release`, { reason });
  return html`<${Dialog} title="Release what is kept?" close=${close}>
    <p>The receipt was used, so <${Money} amount=${kept} currency=${action.payment.currency} /> count as paid although the agent ${action.outcome ? "settled otherwise" : "never settled"}. Release them once you know that the money was not taken, or came back.</p>
    <${Form} act=${release} submit="Release" cancel=${close} done=${done}>
      <${Field} name="reason" label="How you know" needed hint="For whoever reads the ledger." />
    <//>
  <//>`;
}
