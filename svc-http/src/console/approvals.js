// What waits for a person, and what persons decided: the inbox. An approval is decided on its own page, which shows all of it.
import { Badge, Empty, Entries, Heading, Money, Pager, Quoted, Recipient, Said, Shown, Tabs, Time, at, html, useNow, usePlace } from "./kit.js";
import { Choice, Filters } from "./filters.js";
import { Who, useList, useRemembered } from "./list.js";
import { AgentChoice, useAgents } from "./named.js";
import { query as asQuery, readBy } from "./server.js";
import { ABOUT, ASKS, left } from "./text.js";

const STATES = [["waiting", "Waiting"], ["approved", "Approved"], ["denied", "Denied"], ["expired", "Expired"], ["all", "All"]];
const KINDS = /** @type {[string, string][]} */ ([["", "Everything"], ["action", "Actions"], ["freeze", "Freezes"], ["hold_lift", "Lifts of holds"], ["budget", "Budgets"], ["owner", "Owners"]]);
const NO_STATE = "The address names a state of approvals that there is not, so nothing is shown. Choose above which ones you want to see.";
const FILTERS = { kind: "What was asked", agentId: "Agent" };
const BADGES = /** @type {Record<string, [any, string]>} */ ({ waiting: ["waits", "Waiting"], approved: ["good", "Approved"], denied: ["bad", "Denied"], expired: ["plain", "Expired"] });
const MAY_NOT = /** @type {Record<string, string>} */ ({
  role: "Your role does not decide this.",
  own: "You asked for this yourself: somebody else has to decide.",
  second_person: "You have approved it. A second person has to as well.",
});

/** @param {{ query: Record<string, string> }} props */
export function Page({ query }) {
  const { wid, go } = usePlace();
  const state = query.state || "waiting";
  /** @type {Record<string, string>} */
  const wrong = STATES.some((it) => it[0] === state) ? {} : { state: NO_STATE };
  const [kind, agentId] = [query.kind ?? "", query.agentId ?? ""];
  const list = readBy(useList(wrong.state ? null : "approvals", { state: state === "all" ? null : state, kind, agentId }, ["approval", "action"]), wrong);
  const agents = useAgents();
  const address = (/** @type {Record<string, string>} */ more) => {
    const wish = { state, kind, agentId, ...more };
    return at(wid, "approvals") + asQuery({ ...wish, state: wish.state === "waiting" ? null : wish.state });
  };
  return html`<${Heading} title="Approvals" />
    <${Tabs} name="Which approvals" of=${STATES.map(([is, label]) => ({ label, href: address({ state: is }), on: is === state }))} />
    <${Filters} of=${list}>
      <${Choice} label="What was asked" fault="kind" value=${kind} options=${KINDS} choose=${(/** @type {string} */ it) => go(address({ kind: it }))} />
      <${AgentChoice} agents=${agents} fault="agentId" value=${agentId} choose=${(/** @type {string} */ it) => go(address({ agentId: it }))} />
    <//>
    <${Shown} of=${list} filters=${FILTERS}>${(/** @type {any[]} */ items) =>
      items.length
        ? html`<ul class="items">${items.map((it) => html`<${Item} key=${it.id} of=${it} />`)}</ul><${Pager} of=${list} />`
        : html`<${None} state=${state} isFiltered=${!!(kind || agentId)} all=${address({ kind: "", agentId: "" })} />`}<//>`;
}

/** @param {{ state: string, isFiltered: boolean, all: string }} props */
function None({ state, isFiltered, all }) {
  const { wid, may } = usePlace();
  if (isFiltered) return html`<${Empty} title="Nothing of this kind."><p><a href=${all}>Show everything</a></p><//>`;
  if (state !== "waiting") return html`<${Empty} title="Nothing here yet."><p>What is decided stays here, with who decided it and why.</p><//>`;
  return html`<${Empty} title="Nothing waits for a person.">
    <p>When an agent asks for something that its mandate leaves to a person, it appears here by itself.</p>
    ${may("ReadActions") && html`<p><a href=${at(wid, "activity")}>See what agents do</a></p>`}
  <//>`;
}

/** @param {{ of: any }} props */
function Item({ of: approval }) {
  const { wid } = usePlace();
  const { id, kind, state, agentId, requestedBy, subject } = approval;
  const action = useRemembered(kind === "action" ? `actions/${subject.actionId}` : null);
  const asks = kind === "action" ? ((action && ASKS[action.type]) ?? "asks") : "";
  return html`<li class="item">
    <div>
      <h2><a id=${`${id}-who`} href=${at(wid, "approvals", id)} aria-labelledby=${`${id}-who ${id}-what ${id}-end`}>${kind === "action" ? html`<${Who} id=${agentId} /> ${asks}` : html`<${Quoted} text=${approval.summary} /><${Whom} of=${approval} />`}</a></h2>
      ${action && html`<div id=${`${id}-what`}>${!ASKS[action.type] && html`<p><code><${Quoted} text=${action.type} dir="ltr" /></code></p>`}<${Matter} of=${action} /></div>`}
      ${kind === "action" && html`<blockquote><${Quoted} text=${approval.summary} /></blockquote>`}
      ${subject.reason && html`<p>Because: <${Quoted} text=${subject.reason} /></p>`}
      ${state === "waiting" && approval.reasons.length > 0 && html`<ul>${approval.reasons.map((/** @type {any} */ it) => html`<li key=${it.code}><${Said} text=${it.message} /></li>`)}</ul>`}
      <p class="meta"><span>Asked <${Time} at=${approval.createdAt} ago /></span>${kind !== "action" && html`<span>by <${Who} id=${requestedBy} /></span>`}<${Progress} of=${approval} /></p>
    </div>
    <div class="beside"><${Badge} kind=${BADGES[state][0]}>${BADGES[state][1]}<//><${Way} of=${approval} /><span id=${`${id}-end`} class="unseen" aria-hidden="true"> ${id.slice(-6)}</span></div>
  </li>`;
}

/** Whom a question about an owner is about, behind what it asks. @param {{ of: any }} props */
export function Whom({ of: { kind, subject } }) {
  if (kind !== "owner" || !(subject.email || subject.principalId)) return null;
  return html`: ${subject.email ? html`<${Recipient} of=${subject.email} />` : html`<${Who} id=${subject.principalId} />`}`;
}

// So many fields are named where one action stands among others.
const FIELDS_NAMED = 5;

/** What an action is about, by its type, and then all else that it holds: an agent may put anything beside anything. @param {{ of: any }} props */
export function Matter({ of: { payment, tool, data, type } }) {
  const { name, domain } = payment?.merchant ?? {};
  const more = (data?.fields?.length ?? 0) - FIELDS_NAMED;
  const fields = data?.fields && html`<${Entries} of=${data.fields.slice(0, FIELDS_NAMED)} />${more > 0 && ` and ${more} more`}`;
  /** @type {Record<string, [string, any] | undefined>} by the member: what stands before it beside another, and what it holds */
  const held = {
    payment: payment && ["Also pays ", html`<span class="sum"><${Money} ...${payment} /></span>${(name || domain) && html` to <${Quoted} text=${name || domain} />`}${name && domain && html` · <code><${Quoted} text=${domain} dir="ltr" /></code>`}`],
    data: data?.recipient && ["Also shares ", html`with <${Recipient} of=${data.recipient} />${fields && html`: ${fields}`}`],
    tool: tool && (tool.name || tool.server) && ["Also uses a tool: ", html`${tool.name && html`<code><${Quoted} text=${tool.name} /></code>`}${tool.server && html` of <${Quoted} text=${tool.server} />`}`],
  };
  const own = ABOUT[type] ?? "";
  const others = Object.keys(held).filter((it) => it !== own);
  return html`${held[own] && html`<p>${held[own][1]}</p>`}${others.map((it) => held[it] && html`<p key=${it}>${held[it][0]}${held[it][1]}</p>`)}`;
}

/** @param {{ of: any }} props */
function Progress({ of: { state, expiresAt, needed, approvals, decidedBy, decidedAt, note, people } }) {
  const moment = useNow();
  if (state === "waiting") {
    return html`<span>${left(expiresAt, moment)}, then it is a no</span>${needed > 1 && html`<span>${approvals.length} of ${needed} persons have approved</span>`}`;
  }
  if (state === "expired") return html`<span>Nobody decided in time</span>`;
  return html`<span>${state === "approved" ? "Approved" : "Denied"} by <${Who} id=${decidedBy} people=${people} /> <${Time} at=${decidedAt} ago /></span>${note && html`<span>Note: <${Quoted} text=${note} /></span>`}`;
}

/** The way to the page that decides; whoever may not decide is told why. Beside the others it is named by what is asked, and by the end of its id where the same is asked twice. @param {{ of: any }} props */
function Way({ of: { id, state, mayDecide, mayNot } }) {
  const { wid } = usePlace();
  const named = { id: `${id}-way`, href: at(wid, "approvals", id), "aria-labelledby": `${id}-way ${id}-who ${id}-what ${id}-end` };
  if (state === "waiting" && mayDecide) return html`<a class="button main" ...${named}>Look and decide</a>`;
  return html`<a class="button" ...${named}>Look</a>${state === "waiting" && html`<small>${MAY_NOT[mayNot] ?? "You cannot decide this."}</small>`}`;
}
