// Calls of models and the tasks that they served, one by one: what each cost, and where that number comes from.
import { Badge, Button, Dialog, Dollars, Empty, Facts, Id, Pager, Quoted, Shown, Table, Time, at, html, usePlace } from "./kit.js";
import { useState } from "./hooks.js";
import { Choice, Filters, Typed } from "./filters.js";
import { Who, useList } from "./list.js";
import { AgentChoice, useAgents, useNames } from "./named.js";
import { query as asQuery, readBy, wrongDays } from "./server.js";
import { count, dayOn, fromLocal } from "./text.js";

const ENDS = /** @type {Record<string, [any, string, string]>} */ ({
  done: ["good", "Done", "It was answered to its end."],
  hung_up: ["plain", "Hung up", "The client went before its answer ended."],
  cut: ["bad", "Cut", "The provider broke off in its answer."],
  refused: ["bad", "Refused", "It was refused before any provider was asked, or by the provider."],
  failed: ["bad", "Failed", "No provider answered."],
  lapsed: ["bad", "Lapsed", "Nobody told how it ended: it was charged its estimate."],
});
const OUTCOMES = /** @type {Record<string, [any, string]>} */ ({ accepted: ["good", "Accepted"], partial: ["waits", "Partial"], rejected: ["bad", "Rejected"], abandoned: ["bad", "Abandoned"] });
const OBJECTIVES = /** @type {Record<string, string>} */ ({ balanced: "balanced", cost: "the cheapest", quality: "the best", latency: "the fastest", sovereign: "by jurisdiction" });

/** @param {{ of: { end: string | null } }} props */
const End = ({ of: { end } }) => (end === null ? html`<${Badge} kind="waits">Runs<//>` : html`<${Badge} kind=${ENDS[end]?.[0]}>${ENDS[end]?.[1] ?? end}<//>`);

/** Whom it counts for. @param {{ of: { agentId?: string, principalId: string } }} props */
function For({ of: { agentId, principalId } }) {
  const { wid, may } = usePlace();
  if (!agentId) return html`<${Who} id=${principalId} />`;
  return may("ReadAgents") ? html`<a href=${at(wid, "agents", agentId)}><${Who} id=${agentId} /></a>` : html`<${Who} id=${agentId} />`;
}

/** What a call or a task cost, and how sure that is. @param {{ of: any }} props */
function Price({ of: { costMicros, unpriced, usage, end, reservedMicros } }) {
  if (end === null) return html`<small><${Dollars} micros=${reservedMicros} /> reserved</small>`;
  return html`<${Dollars} micros=${costMicros} />${usage.estimated && html` <${Badge}>Estimated<//>`}${unpriced && html` <${Badge} kind="waits">No price<//>`}`;
}

// What both lists are asked by, as their filters are called: some are offered, the others come with a link from a report.
const FILTERS = { agentId: "Agent", principalId: "Person", teamId: "Team", keyId: "Key", taskClass: "Class", taskId: "Task", model: "Model", end: "End", outcome: "Outcome", from: "From", to: "To" };
/** @type {[string, string, string][]} by the filter: whose names it has, and how all are called */
const OTHERS = [["principalId", "principal", "Everybody"], ["teamId", "team", "Every team"], ["keyId", "key", "Every key"], ["taskClass", "taskClass", "Every class"]];

/**
 * A list by the filters that the address names. Its days are called otherwise there than those of reports, which it keeps.
 * @param {"calls" | "tasks"} name
 * @param {Record<string, string>} query
 * @param {string[]} own the filters of this list alone
 */
function useFiltered(name, query, own) {
  const { wid, go, zone } = usePlace();
  const names = ["agentId", ...OTHERS.map((it) => it[0]), ...own];
  const { since = "", until = "" } = query;
  const wrong = wrongDays({ from: since, to: until });
  const days = { from: since && fromLocal(`${since}T00:00`, zone), to: until && fromLocal(`${dayOn(until, 1)}T00:00`, zone) };
  const isWrong = Object.keys(wrong).length > 0;
  const list = readBy(useList(isWrong ? null : name, { ...Object.fromEntries(names.map((it) => [it, query[it]])), ...(isWrong ? {} : days) }), wrong);
  const address = (/** @type {Record<string, string>} */ more) => at(wid, "spend", name) + asQuery({ ...query, ...more });
  const set = (/** @type {string} */ filter) => (/** @type {string} */ value, replace = false) => go(address({ [filter]: value }), replace);
  const used = [...names, "since", "until"].filter((it) => query[it]);
  return { list, set, used, all: address(Object.fromEntries(used.map((it) => [it, ""]))) };
}

/** The filters that both lists have, and `children` among them. @param {{ of: ReturnType<typeof useFiltered>, query: Record<string, string>, children?: any }} props */
function Asked({ of: { list, set, used, all }, query, children }) {
  const agents = useAgents();
  const { agentId = "", since = "", until = "" } = query;
  return html`<${Filters} of=${list}>
    <${AgentChoice} key="agent" agents=${agents} fault="agentId" value=${agentId} choose=${set("agentId")} />
    ${children}
    ${OTHERS.map(([name, kind, every]) => query[name] && html`<${Other} key=${name} name=${name} kind=${kind} every=${every} value=${query[name]} choose=${set(name)} />`)}
    <${Typed} label="From" fault="from" as="date" value=${since} choose=${set("since")} more=${{ max: until }} />
    <${Typed} label="To" fault="to" as="date" value=${until} choose=${set("until")} more=${{ min: since }} />
    ${used.length > 0 && html`<a href=${all}>Show everything</a>`}
  <//>`;
}

/** A filter that came with a link, which can be taken away. @param {{ name: string, kind: string, every: string, value: string, choose: (value: string) => void }} props */
function Other({ name, kind, every, value, choose }) {
  const names = useNames(kind);
  return html`<${Choice} label=${/** @type {any} */ (FILTERS)[name]} fault=${name} value=${value} options=${[["", every], [value, names.of.get(value) ?? value]]} choose=${choose} />`;
}

/** What stands where a list holds nothing. @param {{ of: ReturnType<typeof useFiltered>, none: string, children?: any }} props */
function Nothing({ of: { list, used }, none, children }) {
  if (list.more) return html`<${Empty} title="Nothing of this kind so far back."><p>Older ones were not looked at yet.</p><${Pager} of=${list} /><//>`;
  return used.length ? html`<${Empty} title="Nothing of this kind." />` : html`<${Empty} title=${none}>${children}<//>`;
}

/** @param {{ query: Record<string, string> }} props */
export function Calls({ query }) {
  const { wid, go } = usePlace();
  const asked = useFiltered("calls", query, ["taskId", "model", "end"]);
  const { list, set } = asked;
  const { taskId = "", model = "", end = "" } = query;
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const wanted = query.call;
  const named = wanted && list.items.find((/** @type {any} */ it) => it.id === wanted);
  const shown = open ?? named;
  const close = () => {
    setOpen(null);
    if (wanted) go(at(wid, "spend", "calls") + asQuery({ ...query, call: "" }), true);
  };
  const columns = [
    { title: "When", cell: (/** @type {any} */ it) => html`<${Time} at=${it.createdAt} />` },
    { title: "Model", cell: (/** @type {any} */ it) => html`<${Routed} of=${it} />${it.taskClass && html`<br /><small>class <${Quoted} text=${it.taskClass} /></small>`}` },
    { title: "For", cell: (/** @type {any} */ it) => html`<${For} of=${it} />` },
    { title: "Cost", cell: (/** @type {any} */ it) => html`<${Price} of=${it} />` },
    { title: "Tokens", kind: "end", cell: (/** @type {any} */ it) => html`<span class="number">${tokensIn(it.usage).toLocaleString("en")} → ${(it.usage.output + it.usage.reasoning).toLocaleString("en")}</span>` },
    { title: "End", cell: (/** @type {any} */ it) => html`<${End} of=${it} />${it.pastStop && html` <${Badge} kind="bad">Past a stop<//>`}` },
    { title: "", kind: "end", cell: (/** @type {any} */ it) => html`<${Button} kind="link" label=${`Details of ${it.id}`} act=${() => setOpen(it)}>Details<//>` },
  ];
  return html`
    ${wanted && list.got && !named && html`<div class="note"><p>The call <code><${Quoted} text=${wanted} /></code> is not among those shown. ${list.more ? "It may be older: show more." : "It is no more kept."}</p></div>`}
    <${Asked} of=${asked} query=${query}>
      <${Typed} key="model" label="Model" fault="model" value=${model} choose=${set("model")} more=${{ placeholder: "any", autocomplete: "off" }} />
      <${Choice} key="end" label="End" fault="end" value=${end} options=${[["", "Every end"], ["running", "Runs"], ...Object.entries(ENDS).map(([is, it]) => [is, it[1]])]} choose=${set("end")} />
      ${taskId && html`<${Typed} key="task" label="Task" fault="taskId" value=${taskId} choose=${set("taskId")} />`}
    <//>
    <p class="acts filters"><${Button} act=${list.again}>Look again<//><small>Calls are not told of as they happen.</small></p>
    <${Shown} of=${list} filters=${FILTERS}>${(/** @type {any[]} */ items) => (items.length ? html`<${Table} caption="Calls, newest first" columns=${columns} rows=${items} /><${Pager} of=${list} />` : html`<${Nothing} of=${asked} none="No model was called yet."><p>Programs call models with a key of the workspace, at <code>/v1</code> or <code>/anthropic</code> below this server's address.</p><//>`)}<//>
    ${shown && html`<${One} of=${shown} close=${close} />`}`;
}

/** Tokens that went in, whatever they were charged as. @param {any} usage */
const tokensIn = ({ input, cachedInput, cacheWrite, cacheWriteLong }) => input + cachedInput + cacheWrite + cacheWriteLong;

/** Which model answered, and which was asked for where that is another. @param {{ of: any }} props */
function Routed({ of: { requestedModel, provider, model } }) {
  const used = model && `${provider}/${model}`;
  if (!used) return html`<${Quoted} text=${requestedModel} /> <small>not sent</small>`;
  return html`<${Quoted} text=${used} />${requestedModel !== used && requestedModel !== model && html`<br /><small>asked for <${Quoted} text=${requestedModel} /></small>`}`;
}

/** @param {{ of: any, close: () => void }} props */
function One({ of, close }) {
  const { wid } = usePlace();
  const { usage, attempts, dataLoss } = of;
  const found = Object.entries(dataLoss).map(([kind, n]) => `${kind.replaceAll("_", " ")}: ${n}`);
  const columns = [
    { title: "Tried", cell: (/** @type {any} */ it) => html`<${Quoted} text=${it.model} />` },
    { title: "Answer", cell: (/** @type {any} */ it) => html`${it.status ?? "none"}${it.error && html` <small><${Quoted} text=${it.error} /></small>`}` },
    { title: "Took", kind: "end", cell: (/** @type {any} */ it) => html`<span class="number">${it.ms.toLocaleString("en")} ms</span>` },
  ];
  return html`<${Dialog} title="Call" close=${close}>
    <p><${End} of=${of} /> ${of.end === null ? "It has not ended yet." : ENDS[of.end]?.[2]}</p>
    <${Facts} of=${[
      ["Model", html`<${Routed} of=${of} />`],
      ["Cost", html`<${Price} of=${of} />`],
      ["How known", provenance(of)],
      ["Reserved", html`<${Dollars} micros=${of.reservedMicros} /> at most, before it was sent`],
      ["Tokens", html`${kinds(usage)}`],
      ["For", html`<${For} of=${of} />`],
      ["Key", html`<${Id} id=${of.keyId} brief />`],
      ["Task", html`<${Id} id=${of.taskId} /> <a href=${at(wid, "spend", "calls") + asQuery({ taskId: of.taskId })} onClick=${close}>all its calls</a>`],
      ["Class", of.taskClass && html`<${Quoted} text=${of.taskClass} />`],
      ["Session", html`<${Quoted} text=${of.session} />`],
      ["Mode", of.mode === "enforce" ? "routed and held to budgets" : "shadow: sent where it was named"],
      ["Objective", OBJECTIVES[of.objective] ?? of.objective],
      ["Budgets", of.budgets.length > 0 && html`${count(of.budgets.length, "budget")}${of.pastStop && ", past the stop of one"}`],
      ["Jurisdiction", of.jurisdiction && html`<${Quoted} text=${of.jurisdiction} />`],
      ["Oversight", of.humanOversight && "acknowledged by a person"],
      ["Should not leave", found.length > 0 && html`<${Quoted} text=${found.join(", ")} />`],
      ["Began", html`<${Time} at=${of.startedAt} />`],
      ["Took", of.durationMs !== null && `${of.durationMs.toLocaleString("en")} ms${of.firstTokenMs === null ? "" : `, the first token after ${of.firstTokenMs.toLocaleString("en")} ms`}${of.overheadMs === null ? "" : `; ${of.overheadMs.toLocaleString("en")} ms of it here`}`],
      ["Id", html`<${Id} id=${of.id} />`],
    ]} />
    ${attempts.length > 0 && html`<h3>Attempts</h3><${Table} caption="Attempts" columns=${columns} rows=${attempts} rowKey=${(/** @type {any} */ it) => attempts.indexOf(it)} />`}
    <p class="acts"><button type="button" onClick=${close}>Close</button></p>
  <//>`;
}

/** Where the number of a call's cost comes from. @param {any} call */
function provenance({ end, unpriced, usage }) {
  if (end === null) return "not known before it ends";
  if (unpriced) return "Something that it used has no price: it cost more than this, and budgets cannot see it.";
  return usage.estimated ? "Estimated: the provider did not say what was used." : "What the provider counted, by the model's prices.";
}

/** @param {any} usage */
function kinds(usage) {
  const names = /** @type {[string, string][]} */ ([["input", "in"], ["cachedInput", "from cache"], ["cacheWrite", "to cache"], ["cacheWriteLong", "to cache for an hour"], ["output", "out"], ["reasoning", "reasoning"]]);
  return names.filter(([name]) => usage[name] > 0).map(([name, said]) => `${usage[name].toLocaleString("en")} ${said}`).join(", ") || "none";
}

/** @param {{ query: Record<string, string> }} props */
export function Tasks({ query }) {
  const { wid } = usePlace();
  const asked = useFiltered("tasks", query, ["outcome"]);
  const { list, set } = asked;
  const { outcome = "" } = query;
  const columns = [
    { title: "Task", cell: (/** @type {any} */ it) => html`<${Id} id=${it.id} />` },
    { title: "For", cell: (/** @type {any} */ it) => html`<${For} of=${it} />` },
    { title: "Class", cell: (/** @type {any} */ it) => (it.taskClass ? html`<${Quoted} text=${it.taskClass} />` : "–") },
    { title: "Spent", cell: (/** @type {any} */ it) => html`<${Dollars} micros=${it.spentMicros} /> <small>in <a href=${at(wid, "spend", "calls") + asQuery({ taskId: it.id })} aria-label=${`${count(it.calls, "call")} of ${it.id}`}>${count(it.calls, "call")}</a></small>` },
    { title: "Outcome", cell: (/** @type {any} */ it) => (it.outcome ? html`<${Badge} kind=${OUTCOMES[it.outcome][0]}>${OUTCOMES[it.outcome][1]}<//>` : html`<small>not reported</small>`) },
    { title: "Begun", cell: (/** @type {any} */ it) => html`<${Time} at=${it.createdAt} />` },
  ];
  return html`<${Asked} of=${asked} query=${query}>
      <${Choice} key="outcome" label="Outcome" fault="outcome" value=${outcome} options=${[["", "Every outcome"], ["unreported", "Not reported"], ...Object.entries(OUTCOMES).map(([is, it]) => [is, it[1]])]} choose=${set("outcome")} />
    <//>
    <p class="acts filters"><${Button} act=${list.again}>Look again<//><small>Tasks are not told of as they happen.</small></p>
    <${Shown} of=${list} filters=${FILTERS}>${(/** @type {any[]} */ items) => (items.length ? html`<${Table} caption="Tasks, newest first" columns=${columns} rows=${items} /><${Pager} of=${list} />` : html`<${Nothing} of=${asked} none="No call has served a task yet."><p>Each call belongs to a task: the one that its client names as <code>x-svc-task-id</code>, else one of its own.</p><//>`)}<//>`;
}
