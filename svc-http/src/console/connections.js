// Clients that people let act as an agent, by OAuth: what each may, when it was used, and ending it.
import { Badge, Button, Empty, Facts, Heading, Pager, Quoted, Shown, Table, Time, at, html, usePlace } from "./kit.js";
import { begun } from "./account.js";
import { Ending } from "./ending.js";
import { useState } from "./hooks.js";
import { Choice } from "./filters.js";
import { Who, useList, useRemembered } from "./list.js";
import { AgentChoice, useAgents } from "./named.js";
import { query as asQuery } from "./server.js";

// A longer list of mandates is folded.
const LONG = 12;
const ENDED = /** @type {Record<string, string>} */ ({
  revoked: "revoked",
  reuse: "a token was used twice: somebody else may have had it. Connect again.",
  code_reuse: "its code was used twice: somebody else may have had it. Connect again.",
  frozen: "its agent was frozen",
  removed: "its agent was removed",
  left: "its person left",
  unused: "not used for too long",
});

/** @param {{ query: Record<string, string> }} props */
export function Page({ query }) {
  const { wid, go, zone } = usePlace();
  const { agentId = "" } = query;
  const state = query.state === "all" ? "all" : "active";
  const list = useList("connections", {}, ["agent", "hold"]);
  const agents = useAgents();
  const [ending, setEnding] = useState(/** @type {any} */ (null));
  const shown = list.items.filter((/** @type {any} */ it) => (state === "all" || it.state === "active") && (!agentId || it.agentId === agentId));
  const address = (/** @type {object} */ more) => {
    const wish = { agentId, state, ...more };
    return at(wid, "connections") + asQuery({ agentId: wish.agentId, state: wish.state === "all" ? "all" : null });
  };
  const alike = (/** @type {any} */ it) => shown.filter((/** @type {any} */ one) => one.clientName === it.clientName);
  const since = (/** @type {any} */ it) => begun(it, alike(it), zone);
  const isAlone = (/** @type {any} */ it) => alike(it).filter((/** @type {any} */ one) => one.state === "active").length < 2;
  const columns = [
    { title: "Client", cell: (/** @type {any} */ it) => html`<${Quoted} text=${it.clientName} /><br /><small>sent back to <code><${Quoted} text=${it.redirectHost} dir="ltr" /></code></small>` },
    { title: "Acts as", cell: (/** @type {any} */ it) => html`<a href=${at(wid, "agents", it.agentId)}><${Who} id=${it.agentId} /></a><${May} of=${it} />` },
    { title: "Let in by", cell: (/** @type {any} */ it) => html`<${Who} id=${it.createdBy} /> <small>${since(it)}</small>` },
    { title: "Last used", cell: (/** @type {any} */ it) => html`<${Time} at=${it.lastUsedAt} ago />` },
    { title: "State", cell: (/** @type {any} */ it) => html`<${Standing} of=${it} />` },
    { title: "", kind: "end", cell: (/** @type {any} */ it) => it.state === "active" && html`<${Button} kind="danger" act=${() => setEnding({ of: it, since: since(it) })}>End<span class="unseen"> <${Quoted} text=${it.clientName} />${!isAlone(it) && html` as <${Who} id=${it.agentId} />, let in ${since(it)}`}</span><//>` },
  ];
  return html`<${Heading} title="Connections" />
    <p class="lead">A client that somebody has let in acts as one agent, by that agent's mandates: it asks before it acts, as the agent itself does. What the client calls itself is its own word.</p>
    <div class="filters">
      <${Choice} label="State" value=${state} options=${[["active", "In use"], ["all", "Those that ended too"]]} choose=${(/** @type {string} */ it) => go(address({ state: it }))} />
      <${AgentChoice} agents=${agents} value=${agentId} choose=${(/** @type {string} */ it) => go(address({ agentId: it }))} />
    </div>
    <${Shown} of=${list} many=${shown.length}>${() =>
      shown.length
        ? html`<${Table} caption="Connections" columns=${columns} rows=${shown} /><${Pager} of=${list} />`
        : list.more
          ? html`<${Empty} title="None of these, so far back."><p>Older connections were not looked at yet.</p><${Pager} of=${list} /><//>`
          : html`<${Empty} title=${list.items.length ? "None of these." : "No client is connected."}>${list.items.length ? html`<p><a href=${address({ state: "all", agentId: "" })}>Show everything</a></p>` : html`<p>Give an MCP client this server's address, or its <code>/mcp</code>: it leads its person here to choose an agent.</p>`}<//>`}<//>
    ${ending && html`<${End} ...${ending} close=${() => setEnding(null)} done=${() => { setEnding(null); list.again(); }} />`}`;
}

/** What it may: what its agent may. @param {{ of: any }} props */
function May({ of: { agentId, state } }) {
  const agent = useRemembered(state === "active" ? `agents/${agentId}` : null);
  if (!agent) return null;
  const names = agent.mandates.filter((/** @type {any} */ it) => it.state === "active").map((/** @type {any} */ it) => it.name);
  if (agent.standing !== "active") return html`<br /><small>which is ${agent.standing}</small>`;
  const listed = names.map((/** @type {string} */ it, /** @type {number} */ place) => html`${place > 0 && ", "}<${Quoted} key=${place} text=${it} />`);
  if (names.length > LONG) return html`<details><summary>by ${names.length} mandates</summary>${listed}</details>`;
  return html`<br /><small>${names.length ? html`by ${listed}` : "no mandate in force"}</small>`;
}

/** @param {{ of: any }} props */
const Standing = ({ of: { state, endedBy, endedAt, note } }) =>
  state === "active" ? html`<${Badge} kind="good">In use<//>` : html`<${Badge} kind=${(endedBy ?? "").includes("reuse") ? "bad" : "plain"}>Ended<//> <small>${endedAt && html`<${Time} at=${endedAt} />: `}${ENDED[endedBy] ?? endedBy}${note && !ENDED[endedBy] && html`, <${Quoted} text=${note} />`}</small>`;

/** @param {{ of: any, since: string, close: () => void, done: () => any }} props */
function End({ of, since, close, done }) {
  return html`<${Ending} title="End this connection?" path=${`connections/${of.id}`} submit="End it" said="The connection has ended." close=${close} done=${done}>
    <p><strong><${Quoted} text=${of.clientName} /></strong> can do nothing as <${Who} id=${of.agentId} /> from now on: its tokens end at once. The agent itself goes on. To come back, the client has to be let in again by a person.</p>
    <${Facts} of=${[
      ["Sent back to", html`<code><${Quoted} text=${of.redirectHost} dir="ltr" /></code>`],
      ["Let in by", html`<${Who} id=${of.createdBy} /> <small>${since}</small>`],
      ["Last used", html`<${Time} at=${of.lastUsedAt} ago />`],
    ]} />
  <//>`;
}
