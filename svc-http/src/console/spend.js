// What models and payments cost, what came of it, and what could have been saved; calls and tasks one by one.
import { Badge, Dollars, Empty, Facts, Heading, Id, Money, Quoted, Shown, Table, Tabs, at, html, usePlace } from "./kit.js";
import { Calls, Tasks } from "./calls.js";
import { Days, Share } from "./charts.js";
import { Choice, Filters, Typed } from "./filters.js";
import { useRead } from "./list.js";
import { query as asQuery, now, readBy, wrongDays } from "./server.js";
import { count, dayOn, dollars, localTime } from "./text.js";

/** @type {[string, string, string][]} */
const VIEWS = [["", "Spend", "ReadSpend"], ["yield", "Yield", "ReadReports"], ["waste", "Waste", "ReadReports"], ["calls", "Calls", "ReadReports"], ["tasks", "Tasks", "ReadReports"]];
/** @type {[string, string][]} */
const BY = [["day", "Day"], ["agent", "Agent"], ["principal", "Person"], ["team", "Team"], ["model", "Model"], ["taskClass", "Task class"], ["key", "Key"]];
const NONE = /** @type {Record<string, string>} */ ({ agent: "no agent", principal: "nobody", team: "no team", model: "no model", taskClass: "no class", key: "no key", day: "no day" });
/** @type {[string, string][]} */
const PERIODS = [["", "This month"], ["last", "Last month"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["own", "Own dates"]];
// As many days as a report covers.
const DAYS_MAX = 400;
const FILTERS = { period: "Period", from: "From", to: "To", by: "By", currency: "Payments in" };
const WASTE = /** @type {Record<string, [string, string]>} */ ({
  repeat: ["Asked again", "The same call was made again: keep its answer, or look for a loop."],
  abandoned: ["Abandoned", "The task was given up: what it cost brought nothing."],
  oversized: ["Larger than needed", "A smaller model would have done for the class: name it in the class's models."],
  retry: ["Failed and charged", "An attempt failed and cost all the same: look at the provider's health."],
  cache_miss: ["Not cached", "Input was paid in full that a provider's cache could have served."],
});

/** @param {{ item?: string, query: Record<string, string> }} props */
export function Page({ item = "", query }) {
  const { wid, may } = usePlace();
  const mine = VIEWS.filter((it) => may(it[2]));
  const view = mine.find((it) => it[0] === item);
  const address = (/** @type {string} */ name) => at(wid, "spend", ...(name ? [name] : [])) + asQuery(query);
  const tabs = mine.map(([is, label]) => ({ label, href: address(is), on: is === item }));
  return html`<${Heading} title=${view ? (view[0] ? view[1] : "Spend") : "Spend"} />
    ${mine.length > 1 && html`<${Tabs} name="What of it" of=${tabs} />`}
    ${may("ReadSpend") === "own" && html`<p class="lead">What counts for you, and what your agents spend.</p>`}
    ${view ? html`<${View} of=${item} query=${query} />` : html`<${Empty} title="There is no such part of this page, or your role does not reach it."><p><a href=${at(wid, "spend")}>To what was spent</a></p><//>`}`;
}

/** @param {{ of: string, query: Record<string, string> }} props */
function View({ of, query }) {
  if (of === "calls") return html`<${Calls} query=${query} />`;
  if (of === "tasks") return html`<${Tasks} query=${query} />`;
  if (of === "yield") return html`<${Yield} query=${query} />`;
  return of === "waste" ? html`<${Waste} query=${query} />` : html`<${Spend} query=${query} />`;
}

/**
 * The days that a period means in the workspace's zone, the last one included; the server's own are those of this month.
 * @param {Record<string, string>} query
 * @param {string} zone
 */
function daysOf({ period = "", from = "", to = "" }, zone) {
  const today = localTime(now(), zone).slice(0, 10);
  const month = `${today.slice(0, 8)}01`;
  if (period === "own") return { from: from || month, to: to || today };
  if (period === "last") return { from: `${dayOn(month, -1).slice(0, 8)}01`, to: dayOn(month, -1) };
  if (/^(7|30|90)$/.test(period)) return { from: dayOn(today, 1 - Number(period)), to: today };
  return { from: month, to: today };
}

/** What a report is read by. @param {{ view: string, of: { got: any }, query: Record<string, string>, isGrouped?: boolean, currencies?: string[] }} props */
function By({ view, of, query, isGrouped = true, currencies = [] }) {
  const { wid, go, zone } = usePlace();
  const { period = "", by = "day", currency = "" } = query;
  const days = daysOf(query, zone);
  const set = (/** @type {Record<string, string>} */ more) => go(at(wid, "spend", ...(view ? [view] : [])) + asQuery({ ...query, ...more }), true);
  const date = (/** @type {"from" | "to"} */ name, /** @type {string} */ label) => html`<${Typed} label=${label} fault=${name} as="date" value=${days[name]} choose=${(/** @type {string} */ it) => set({ ...days, [name]: it })} />`;
  return html`<${Filters} of=${of}>
    <${Choice} label="Period" fault="period" value=${period} options=${PERIODS} choose=${(/** @type {string} */ it) => set(it === "own" ? { period: it, ...days } : { period: it, from: "", to: "" })} />
    ${period === "own" && html`${date("from", "From")}${date("to", "To")}`}
    ${isGrouped && html`<${Choice} label="By" fault="by" value=${by} options=${BY} choose=${(/** @type {string} */ it) => set({ by: it === "day" ? "" : it })} />`}
    ${!view && (currency || currencies.length > 1) && html`<${Choice} label="Payments in" fault="currency" value=${currency} options=${[["", "Every currency"], ...[...new Set([...currencies, currency])].filter(Boolean).map((it) => [it, it])]} choose=${(/** @type {string} */ it) => set({ currency: it })} />`}
  <//>`;
}

/** A report of the period. @param {string} name @param {Record<string, string>} query @param {string[]} more which filters it takes */
function useReport(name, query, more) {
  const { zone } = usePlace();
  const days = daysOf(query, zone);
  const wrong = PERIODS.some((it) => it[0] === (query.period ?? "")) ? wrongDays(days, DAYS_MAX) : { period: "is none" };
  const range = query.period ? { from: days.from, to: dayOn(days.to, 1) } : {};
  const filters = Object.fromEntries(more.map((it) => [it, query[it]]));
  const path = `reports/${name}${asQuery({ ...range, ...filters })}`;
  return readBy(useRead(Object.keys(wrong).length ? null : path, ["action.settled", "incident", "budget"]), wrong);
}

/** What a row is of. @param {{ by: string, of: { key: string | null, name: string | null } }} props */
function Of({ by, of: { key, name } }) {
  const { wid, may } = usePlace();
  if (key === null) return html`<small>${NONE[by] ?? "nothing"}</small>`;
  const named = html`<${Quoted} text=${name || key} />`;
  return by === "agent" && may("ReadAgents") ? html`<a href=${at(wid, "agents", key)}>${named}</a>` : named;
}

/** @param {{ of: any }} props */
function Tokens({ of: usage }) {
  const { input, cachedInput, cacheWrite, cacheWriteLong, output, reasoning } = usage;
  const written = cacheWrite + cacheWriteLong;
  const number = (/** @type {number} */ it) => it.toLocaleString("en");
  const more = [cachedInput && `${number(cachedInput)} from cache`, written && `${number(written)} to cache`, reasoning && `${number(reasoning)} reasoning`].filter(Boolean);
  return html`<span class="number">${number(input)} in, ${number(output)} out</span>${more.length > 0 && html`<br /><small>${more.join(", ")}</small>`}`;
}

/** @param {{ of: { currency: string, settled: number, reserved: number }[] }} props */
const Paid = ({ of }) => (of.length ? of.map((it) => html`<div key=${it.currency}><${Money} amount=${it.settled} currency=${it.currency} />${it.reserved !== 0 && html` <small>and <${Money} amount=${it.reserved} currency=${it.currency} /> reserved</small>`}</div>`) : "–");

/** @param {{ query: Record<string, string> }} props */
function Spend({ query }) {
  const { by = "day" } = query;
  const read = useReport("spend", query, ["by", "currency"]);
  const currencies = ((read.data && read.data.totals.payments) || []).map((/** @type {any} */ it) => it.currency);
  return html`<${By} view="" of=${read} query=${query} currencies=${currencies} />
    <${Shown} of=${read} filters=${FILTERS}>${(/** @type {any} */ report) => (report.rows.length ? html`<${Spent} of=${report} by=${by} query=${query} />` : html`<${NothingSpent} />`)}<//>`;
}

const NothingCalled = () => html`<${Empty} title="No model was called in this period.">
  <p>What calls to models through this server cost, and what came of it, appears here. What agents paid stands under Spend.</p><//>`;

const NothingSpent = () => html`<${Empty} title="Nothing was spent in this period.">
  <p>Calls to models through this server and payments of agents appear here. A program calls models with a key of the workspace at <code>/v1</code> or <code>/anthropic</code>; what it costs follows from the prices of the models.</p><//>`;

/** @param {{ of: any, by: string, query: Record<string, string> }} props */
function Spent({ of: { rows, totals, from, to }, by, query }) {
  const most = Math.max(...rows.map((/** @type {any} */ it) => it.costMicros));
  const hasUnpriced = totals.unpricedCalls > 0;
  const columns = [
    { title: title(by), cell: (/** @type {any} */ it) => html`<${Of} by=${by} of=${it} />` },
    { title: "Models", cell: (/** @type {any} */ it) => html`<${Dollars} micros=${it.costMicros} />${it.estimatedMicros > 0 && html` <small>of it <${Dollars} micros=${it.estimatedMicros} /> estimated</small>`}<${Share} value=${it.costMicros} most=${most} />` },
    { title: "Calls", kind: "end", cell: (/** @type {any} */ it) => html`<${Called} by=${by} of=${it} query=${query} />${it.unpricedCalls > 0 && html`<br /><${Badge} kind="waits">${it.unpricedCalls} without a price<//>`}` },
    { title: "Tokens", cell: (/** @type {any} */ it) => html`<${Tokens} of=${it.usage} />` },
    { title: "Payments", cell: (/** @type {any} */ it) => html`<${Paid} of=${it.payments} />` },
  ];
  return html`<${Totals} of=${totals} />
    ${hasUnpriced && html`<${Unpriced} n=${totals.unpricedCalls} />`}
    ${by === "day" && html`<section class="card" aria-labelledby="days"><header><h2 id="days">Day by day</h2></header><${OverDays} rows=${rows} from=${from} to=${to} query=${query} /></section>`}
    <${Table} caption=${`Spend by ${title(by).toLowerCase()}`} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ it) => it.key ?? ""} />`;
}

// By what calls are found that a row of a report counts.
const FOUND = /** @type {Record<string, string>} */ ({ agent: "agentId", principal: "principalId", team: "teamId", model: "model", taskClass: "taskClass", key: "keyId" });

/** How many calls a row counts, with the way to them. @param {{ by: string, of: any, query: Record<string, string> }} props */
function Called({ by, of: { key, name, calls }, query }) {
  const { wid, may, zone } = usePlace();
  const many = html`<span class="number">${calls.toLocaleString("en")}</span>`;
  if (!calls || key === null || !may("ReadReports")) return many;
  const { from, to } = by === "day" ? { from: key, to: key } : daysOf(query, zone);
  const filter = by === "day" ? {} : { [FOUND[by] ?? ""]: key };
  const href = at(wid, "spend", "calls") + asQuery({ ...query, ...filter, since: from, until: to });
  return html`<a href=${href} aria-label=${`${count(calls, "call")} of ${name || key}`}>${many}</a>`;
}

/** @param {{ of: any }} props */
const Totals = ({ of }) => html`<dl class="totals">
  <div><dt>Models, billed by use</dt><dd><${Dollars} micros=${of.costMicros} />${of.estimatedMicros > 0 && html`<small>of it <${Dollars} micros=${of.estimatedMicros} /> estimated: the provider did not say what was used</small>`}</dd></div>
  <div><dt>Calls</dt><dd><span class="number">${of.calls.toLocaleString("en")}</span><small><${Tokens} of=${of.usage} /></small></dd></div>
  ${of.payments.map((/** @type {any} */ it) => html`<div key=${it.currency}><dt>Payments in ${it.currency}</dt><dd><${Money} amount=${it.settled} currency=${it.currency} />${it.reserved !== 0 && html`<small>and <${Money} amount=${it.reserved} currency=${it.currency} /> reserved: allowed and not settled yet</small>`}</dd></div>`)}
</dl>`;

/** @param {{ n: number }} props */
function Unpriced({ n }) {
  const { wid, may } = usePlace();
  return html`<div class="note"><p><strong>${count(n, "call")} cost more than is shown:</strong> something that they used has no price, and what has none is never counted as free. ${may("ReadModels") && html`<a href=${`${at(wid, "models")}?price=none`}>Models without a price</a>`}</p></div>`;
}

/** Every day of the period up to today, those without anything too. @param {{ rows: any[], from: string, to: string, query: Record<string, string> }} props */
function OverDays({ rows, query }) {
  const { zone } = usePlace();
  const { from, to } = daysOf(query, zone);
  const costs = new Map(rows.map((it) => [it.key, it.costMicros]));
  const last = [...costs.keys()].reduce((a, b) => (b > a ? b : a), to);
  const days = [];
  for (let day = from; day <= last && days.length < 400; day = dayOn(day, 1)) days.push({ day, value: costs.get(day) ?? 0 });
  return days.length ? html`<${Days} title="What models cost" of=${days} shown=${dollars} />` : null;
}

/** @param {{ query: Record<string, string> }} props */
function Yield({ query }) {
  const { by = "day" } = query;
  const { may } = usePlace();
  const read = useReport("yield", query, ["by"]);
  return html`<${By} view="yield" of=${read} query=${query} />
    <p class="lead">What came of the tasks that calls served, where somebody reported it: <code>POST /v1/outcomes</code>, or a pull request that was merged.</p>
    <${Shown} of=${read} filters=${FILTERS}>${(/** @type {any} */ report) => html`${report.rows.length ? html`<${Yielded} rows=${report.rows} by=${by} />` : html`<${NothingCalled} />`}${may("ReadEvidence") && html`<${Came} from=${report.from} to=${report.to} />`}`}<//>`;
}

/** @param {{ rows: any[], by: string }} props */
function Yielded({ rows, by }) {
  const sum = (/** @type {string} */ name) => rows.reduce((all, it) => all + it[name], 0);
  const columns = [
    { title: title(by), cell: (/** @type {any} */ it) => html`<${Of} by=${by} of=${it} />` },
    { title: "Accepted", cell: (/** @type {any} */ it) => html`<span class="number">${it.reported ? `${it.accepted} of ${it.reported} reported` : "nothing reported"}</span><${Share} value=${it.accepted} most=${it.reported} kind="good" />` },
    { title: "Otherwise", cell: (/** @type {any} */ it) => OTHERWISE.filter((name) => it[name] > 0).map((name) => `${it[name].toLocaleString("en")} ${name}`).join(", ") || "–" },
    { title: "Tasks", kind: "end", cell: (/** @type {any} */ it) => html`<span class="number">${it.tasks.toLocaleString("en")}</span>` },
    { title: "Cost", cell: (/** @type {any} */ it) => html`<${Dollars} micros=${it.costMicros} />` },
    { title: "An accepted task", cell: (/** @type {any} */ it) => (it.costPerAcceptedMicros === null ? "–" : html`<${Dollars} micros=${it.costPerAcceptedMicros} />`) },
  ];
  const [tasks, reported, accepted] = [sum("tasks"), sum("reported"), sum("accepted")];
  return html`<dl class="totals">
      <div><dt>Tasks</dt><dd><span class="number">${tasks.toLocaleString("en")}</span><small>${count(reported, "outcome")} reported</small></dd></div>
      <div><dt>Accepted</dt><dd><span class="number">${reported ? `${Math.round((100 * accepted) / reported)} %` : "–"}</span><small>${accepted} of ${reported} reported</small></dd></div>
      <div><dt>Cost</dt><dd><${Dollars} micros=${sum("costMicros")} /></dd></div>
    </dl>
    ${reported === 0 && html`<div class="note"><p>No outcome was reported in this period, so it cannot be said what came of the money. A program reports one with the task's id, which each answer carries as <code>x-svc-task-id</code>.</p></div>`}
    <${Table} caption=${`Yield by ${title(by).toLowerCase()}`} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ it) => it.key ?? ""} />`;
}

const OTHERWISE = ["partial", "rejected", "abandoned"];
const COUNTS = /** @type {Record<string, string>} */ ({ allowed: "Allowed by the rules", denied: "Denied by the rules or a stop", asked: "Left to a person", approved: "Approved by a person", personDenied: "Denied by a person", expired: "Nobody decided in time", settled: "Settled as done", failed: "Settled as failed or given up", overSettled: "Settled above what was allowed", lapsed: "Never settled" });

/** What agents did beside their calls, as the ledger counts it. @param {{ from: string, to: string }} props */
function Came({ from, to }) {
  const read = useRead(`scorecard${asQuery({ from, to })}`);
  return html`<section class="card" aria-labelledby="came"><header><h2 id="came">What agents did beside</h2></header>
    <${Shown} of=${read}>${(/** @type {any} */ said) => {
      const { counts, amounts } = claims(said.scorecard);
      const all = Object.entries(COUNTS).filter((it) => counts[it[0]] > 0);
      if (!all.length) return html`<p>No agent asked for or settled anything in this period.</p>`;
      return html`<${Facts} of=${all.map(([name, said]) => [said, html`<span class="number">${counts[name].toLocaleString("en")}</span>`])} />
        ${amounts.map((/** @type {any} */ it) => html`<p key=${it.currency}>Allowed were <${Money} amount=${it.allowed} currency=${it.currency} />; <${Money} amount=${it.settled} currency=${it.currency} /> count as paid.</p>`)}`;
    }}<//></section>`;
}

/** What a signed text says; its signature is for those whom it is shown to. @param {string} jws */
function claims(jws) {
  const text = atob(jws.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"));
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (it) => it.charCodeAt(0))));
}

/** @param {{ query: Record<string, string> }} props */
function Waste({ query }) {
  const { wid } = usePlace();
  const read = useReport("waste", query, []);
  const columns = (/** @type {number} */ most) => [
    { title: "What", cell: (/** @type {any} */ it) => html`${WASTE[it.kind][0]}<br /><small>${WASTE[it.kind][1]}</small>` },
    { title: "Could be saved", cell: (/** @type {any} */ it) => html`<${Dollars} micros=${it.savableMicros} /><${Share} value=${it.savableMicros} most=${most} />` },
    { title: "Cost", cell: (/** @type {any} */ it) => html`<${Dollars} micros=${it.costMicros} />` },
    { title: "How often", kind: "end", cell: (/** @type {any} */ it) => html`<span class="number">${it.count.toLocaleString("en")}</span>` },
    { title: "The latest", cell: (/** @type {any} */ it) => (it.example ? html`<a href=${`${at(wid, "spend", "calls")}?call=${it.example}`}>See the call</a> <${Id} id=${it.example} brief />` : "–") },
  ];
  return html`<${By} view="waste" of=${read} query=${query} isGrouped=${false} />
    <${Shown} of=${read} filters=${FILTERS}>${(/** @type {any} */ { rows }) => {
      const found = rows.filter((/** @type {any} */ it) => it.count > 0).sort((/** @type {any} */ a, /** @type {any} */ b) => b.savableMicros - a.savableMicros);
      if (!found.length) return html`<${Empty} title="No waste was found in this period."><p>Looked for are calls that were made again, tasks that were given up, models larger than needed, failures that cost, and input that was not cached.</p><//>`;
      const most = Math.max(...found.map((/** @type {any} */ it) => it.savableMicros));
      return html`<p class="lead">One call may stand under several of these, so they do not add up.</p><${Table} caption="What could have been saved" columns=${columns(most)} rows=${found} rowKey=${(/** @type {any} */ it) => it.kind} />`;
    }}<//>`;
}

/** @param {string} by */
const title = (by) => BY.find((it) => it[0] === by)?.[1] ?? "Row";
