// Budgets: what may be spent on models, what has been used of it, and what happens at which part.
import { Badge, Button, Dialog, Dollars, Empty, Field, Form, Heading, Pager, Shown, Time, at, html, usePlace } from "./kit.js";
import { Parts } from "./charts.js";
import { Ending } from "./ending.js";
import { createContext } from "./preact.js";
import { useContext, useState } from "./hooks.js";
import { Choice } from "./filters.js";
import { Who, useApi, useList, useWatched } from "./list.js";
import { Others, isSame, usePinned } from "./meanwhile.js";
import { Named, useNames } from "./named.js";
import { Further, toldOf, useSought } from "./seeking.js";
import { isDone, query as asQuery, wrongFields } from "./server.js";
import { dollars, micros, typed } from "./text.js";

/** @type {[string, string][]} */
const OVER = [["workspace", "The whole workspace"], ["team", "A team"], ["principal", "A person"], ["agent", "An agent"], ["key", "A key"], ["taskClass", "A class of tasks"]];
/** @type {[string, string][]} */
const PERIODS = [["day", "Every day"], ["week", "Every week"], ["month", "Every month"], ["quarter", "Every quarter"], ["total", "Once, for good"]];
const RUNNING = /** @type {Record<string, string>} */ ({ day: "today", week: "this week", month: "this month", quarter: "this quarter", total: "in all" });
/** The steps in their order, with where they stand if nobody says: [word, label, percent, what happens]. @type {[string, string, string, string][]} */
const STEPS = [
  ["observe", "Observe", "0", "calls are recorded, nothing else"],
  ["nudge", "Nudge", "80", "answers carry an advice to the caller"],
  ["downgrade", "Downgrade", "90", "the cheapest model that qualifies is chosen"],
  ["approval", "Ask the owner", "100", "calls are refused until its owner raises it"],
  ["stop", "Stop", "120", "no call that would pass it goes out, whatever runs at once"],
];
const STANDS = /** @type {Record<string, [any, string]>} */ ({ observe: ["good", "Within"], nudge: ["waits", "Nudging"], downgrade: ["waits", "Cheaper models"], approval: ["bad", "Waits for its owner"], stop: ["bad", "Used up"] });
/** What of a budget is changed. @type {Record<string, string>} */
const PARTS = { amount: "Amount", ladder: "What happens at which part", owner: "Owner" };
/** Why what was typed is no amount. @param {number | null} amount nought, or none */
export const noAmount = (amount) => (amount === 0 ? "Must be above zero." : "An amount of US dollars is a number like 250.00, without commas or spaces.");

/** What the things of each kind are called, read once for the page. */
const Names = createContext(/** @type {Record<string, { of: Map<string, string>, isRead: boolean }>} */ ({}));

/** @param {any[]} items budgets that are shown */
function useAllNames(items) {
  const kinds = new Set(items.map((it) => it.scope.kind));
  const one = (/** @type {string} */ kind) => useNames(kinds.has(kind) ? kind : "");
  return { team: one("team"), principal: one("principal"), agent: one("agent"), key: one("key"), taskClass: one("taskClass") };
}

/** @param {{ query: Record<string, string> }} props */
export function Page({ query }) {
  const { may, wid, go } = usePlace();
  const [over, isUsed] = [query.over ?? "", query.used === "yes"];
  const list = useList("budgets", {}, ["budget", "approval"]);
  useWatched(list.again);
  const isMeant = (/** @type {any} */ it) => (!over || it.scope.kind === over) && (!isUsed || partOf(it) >= 80);
  const wanted = over || isUsed ? `${over} ${isUsed}` : "";
  const seeking = useSought("budgets", list, wanted, isMeant);
  const shown = seeking.found;
  const names = useAllNames(seeking.rows);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const set = (/** @type {Record<string, string>} */ more) => go(at(wid, "budgets") + asQuery({ ...query, ...more }), true);
  const close = () => setOpen(null);
  const done = () => {
    close();
    seeking.forget();
    return list.again();
  };
  return html`<${Names.Provider} value=${names}><${Heading} title="Budgets">${may("ManageBudgets") && html`<${Button} kind="main" act=${() => setOpen({ act: "new" })}>New budget<//>`}<//>
    <p class="lead">Money for calls of models, in US dollars. What agents pay for has its limits in their mandates.</p>
    <${Shown} of=${{ ...list, more: seeking.more }} many=${shown.length}>${(/** @type {any[]} */ items) =>
      items.length
        ? html`<${How} isEnforcing=${items.some((it) => it.enforcing)} />
          ${(items.length > 3 || list.more || over || isUsed) && html`<div class="filters">
            <${Choice} label="Over" value=${over} options=${[["", "Anything"], ...OVER]} choose=${(/** @type {string} */ it) => set({ over: it })} />
            <${Choice} label="Used" value=${isUsed ? "yes" : ""} options=${[["", "Any part"], ["yes", "80 % and more"]]} choose=${(/** @type {string} */ it) => set({ used: it })} />
          </div>`}
          <p role="status">${wanted && toldOf(seeking, shown.length, "budget")}</p>
          ${shown.length > 0 && html`<ul class="items">${shown.map((/** @type {any} */ it) => html`<${One} key=${it.id} of=${it} open=${setOpen} />`)}</ul>`}
          ${!shown.length && !seeking.isLooking && html`<${Empty} title=${seeking.more ? "None so far is like this." : "No budget is like this."}><p><a href=${at(wid, "budgets")}>Show all of them</a></p><//>`}
          ${wanted ? html`<${Further} of=${seeking} />` : html`<${Pager} of=${list} />`}`
        : html`<${None} make=${() => setOpen({ act: "new" })} />`}<//>
    ${open && open.act === "new" && html`<${New} close=${close} done=${done} />`}
    ${open && open.act === "change" && html`<${Change} of=${open.of} close=${close} done=${done} />`}
    ${open && open.act === "raise" && html`<${Raise} of=${list.items.find((/** @type {any} */ it) => it.id === open.of.id) ?? open.of} close=${close} done=${done} />`}
    ${open && open.act === "remove" && html`<${Remove} of=${open.of} close=${close} done=${done} />`}
  <//>`;
}

/** @param {{ make: () => void }} props */
function None({ make }) {
  const { may } = usePlace();
  if (!may("ManageBudgets")) return html`<${Empty} title="There is no budget."><p>An owner or an admin sets what may be spent on models, by workspace, team, person, agent, key or class of tasks.</p><//>`;
  return html`<${Empty} title="There is no budget yet, so nothing limits what models cost."><p>A budget says what may be spent in a period, and what happens on the way there.</p><p><${Button} kind="main" act=${make}>Make the first<//></p><//>`;
}

/** What a budget does, and what it cannot. @param {{ isEnforcing: boolean }} props */
function How({ isEnforcing }) {
  const { wid, may } = usePlace();
  return html`${!isEnforcing && html`<div class="note"><p><strong>The workspace is in shadow:</strong> budgets are counted and say what they would do, but refuse nothing. ${may("ReadReports") && html`<a href=${at(wid, "routing")}>Routing</a> sets the mode; a key's policy profile may set another.`}</p></div>`}
    <details class="card"><summary>What budgets do</summary>
      <p>Before a call is sent, the most that it can cost is reserved on every budget that covers it; what it did cost takes that place after. Each step begins at its part of what is allotted:</p>
      <ul>${STEPS.map(([word, label, , what]) => html`<li key=${word}><strong>${label}:</strong> ${what}.</li>`)}</ul>
      <p>A call without a known price cannot be held against a budget: where policy is enforced it is refused, in shadow it goes out and is marked.</p>
    </details>`;
}

/** Which part is used, reserved sums too, in percent. @param {any} of */
const partOf = ({ spentMicros, reservedMicros, allocationMicros }) => (100 * (spentMicros + reservedMicros)) / allocationMicros;

/** The step that a budget has reached. @param {any} of */
function reached(of) {
  const part = partOf(of);
  return [...of.ladder].reverse().find((/** @type {any} */ it) => it.at <= part)?.step ?? "observe";
}

/** What a budget is over. @param {{ of: any }} props */
function Over({ of: { scope } }) {
  const names = useContext(Names)[scope.kind] ?? { of: new Map(), isRead: false };
  const kind = OVER.find((it) => it[0] === scope.kind)?.[1] ?? scope.kind;
  if (scope.kind === "workspace") return html`The whole workspace`;
  // A list of names has an end, and what stands behind it is asked for by itself.
  const isBehind = scope.kind === "agent" && names.isRead && !names.of.has(scope.id);
  return html`<small>${kind.replace(/^An? /, "").replace(/^./, (/** @type {string} */ it) => it.toUpperCase())}</small> ${isBehind ? html`<${Who} id=${scope.id} />` : html`<${Named} id=${scope.id} names=${names} />`}`;
}

/** Which budget a dialog is about. @param {any} of */
function useCalled({ id, scope }) {
  const names = useContext(Names)[scope.kind];
  return { id, name: scope.kind === "workspace" ? "the whole workspace" : (names?.of.get(scope.id) ?? scope.id) };
}

/** A budget where it is not among others: what it is over and what it has, with the way to it. @param {{ of: any }} props */
export function Brief({ of }) {
  const { wid } = usePlace();
  const names = useAllNames([of]);
  return html`<${Names.Provider} value=${names}>The budget over <strong><a href=${at(wid, "budgets") + asQuery({ over: of.scope.kind })}><${Over} of=${of} /></a></strong> has <${Dollars} micros=${of.allocationMicros} /> ${RUNNING[of.period]}, of which <${Dollars} micros=${of.spentMicros} /> are spent.<//>`;
}

/** @param {{ of: any, open: (it: any) => void }} props */
function One({ of, open }) {
  const { may, workspace } = usePlace();
  const { ladder, spentMicros, reservedMicros, allocationMicros, amount, period } = of;
  const part = partOf(of);
  const shownPart = `${part < 10 && part > 0 ? (Math.floor(part * 10) / 10).toFixed(1) : Math.floor(part)} %`;
  const last = Math.max(100, ...ladder.map((/** @type {any} */ it) => it.at));
  const marks = ladder.filter((/** @type {any} */ it) => it.at > 0).map((/** @type {any} */ it) => ({ kind: it.step, value: (allocationMicros * it.at) / 100 }));
  const [kind, said] = STANDS[reached(of)];
  const mayRaise = may("RaiseBudgets") === "all" || of.owner === workspace.principalId;
  const name = html`<span class="unseen"> the budget over <${Over} of=${of} />, ${PERIODS.find((it) => it[0] === period)?.[1].toLowerCase()}, <${Dollars} micros=${amount} /></span>`;
  return html`<li class="item">
    <div>
      <h2><${Over} of=${of} /> <${Badge} kind=${kind}>${said}<//>${!of.enforcing && html` <${Badge}>Only counted<//>`}${!of.refuses && html` <${Badge}>Never refuses<//>`}</h2>
      <${Parts} label=${`${shownPart} used: ${dollars(spentMicros)} spent, ${dollars(reservedMicros)} reserved, of ${dollars(allocationMicros)}`} whole=${(allocationMicros * last) / 100}
        parts=${[{ kind: part >= 100 ? "past" : "used", value: spentMicros }, { kind: "reserved", value: reservedMicros }]} marks=${marks} />
      <p><span class="sum"><${Dollars} micros=${spentMicros} /></span> spent${reservedMicros > 0 && html` and <${Dollars} micros=${reservedMicros} /> reserved for running calls`}, of <${Dollars} micros=${allocationMicros} /> ${RUNNING[period]}: <span class="number">${shownPart}</span></p>
      ${allocationMicros !== amount && html`<p><small>${period === "total" ? html`Raised for good; without that it has <${Dollars} micros=${amount} />.` : html`Raised for this period; <${Dollars} micros=${amount} /> after it.`}</small></p>`}
      <p class="meta">${stepped(of).map((it) => html`<span key=${it}>${it}</span>`)}</p>
      <p class="meta"><span>Owner: <${Who} id=${of.owner} /></span>${of.periodEnd && html`<span>until <${Time} at=${of.periodEnd} /></span>`}<span>made <${Time} at=${of.createdAt} /> by <${Who} id=${of.createdBy} /></span></p>
      ${!mayRaise && part >= 80 && html`<p><small>Its owner, an owner or an admin of the workspace can raise it.</small></p>`}
    </div>
    <div class="beside"><div class="acts">
      ${mayRaise && html`<${Button} act=${() => open({ act: "raise", of })}>Raise${name}<//>`}
      ${may("ManageBudgets") && html`<${Button} act=${() => open({ act: "change", of })}>Change${name}<//><${Button} kind="danger" act=${() => open({ act: "remove", of })}>Remove${name}<//>`}
    </div></div>
  </li>`;
}

/** Where the steps of a budget stand. @param {any} of @returns {string[]} */
const stepped = ({ ladder }) => ladder.map((/** @type {any} */ it) => `${STEPS.find((step) => step[0] === it.step)?.[1]} at ${it.at} %`);

/** The steps of a budget, each at its part or left out. @param {{ of?: { at: number, step: string }[] }} props */
const Ladder = ({ of }) => html`<fieldset><legend>What happens at which part</legend>
  <small>In percent of what is allotted, each above the one before; an empty one is left out. Without “Ask the owner” and “Stop” nothing is ever refused.</small>
  <div class="pair">${STEPS.map(([word, label, usual, what]) => html`<${Field} key=${word} as="number" name=${`step ${word}`} fault=${`step ${word}`} label=${label} value=${of ? (of.find((it) => it.step === word)?.at ?? "") : usual} hint=${what} more=${{ min: 0, max: 1000 }} />`)}</div>
</fieldset>`;

/** The steps that are filled. @param {Record<string, string>} values */
const ladderOf = (values) => STEPS.filter((it) => values[`step ${it[0]}`] !== "").map(([step]) => ({ at: Number(values[`step ${step}`]), step }));

/** The steps of a budget as they are sent. @param {any} of */
const stepsOf = (of) => of.ladder.map((/** @type {any} */ it) => ({ at: it.at, step: it.step }));

/** What the server says of a step, said at that step's field. @param {any} got @param {{ step: string }[]} ladder */
function atSteps(got, ladder) {
  const errors = (got.error.errors ?? []).map((/** @type {any} */ it) => {
    const [, place] = /^ladder\.([0-9]+)/.exec(it.field) ?? [];
    return place === undefined ? it : { ...it, field: `step ${ladder[Number(place)]?.step}` };
  });
  return errors.length ? { ...got, error: { ...got.error, errors } } : got;
}

/** Who could own a budget. @param {{ value?: string }} props */
function Owner({ value }) {
  const names = useNames("principal");
  const all = [...names.of];
  const isThere = !value || names.of.has(value);
  const options = [...(value ? [] : [["", "The workspace's first owner"]]), ...all, ...(isThere ? [] : [[value, value]])];
  return html`<${Field} key=${String(names.isRead)} name="owner" as="choice" label="Owner" options=${options} value=${value ?? ""} hint="Is asked for more where it is used up, and may raise it." />`;
}

/** What a new budget is over, of one kind. @param {{ kind: string }} props */
function Which({ kind }) {
  const names = useNames(kind);
  const label = OVER.find((it) => it[0] === kind)?.[1].replace(/^An? /, "") ?? "";
  if (kind === "workspace") return null;
  const hint = html`None of this kind is there yet.`;
  if (names.isRead && !names.isWhole) return html`<${Field} name="id" fault="scope.id" label=${`The id of the ${label}`} needed />`;
  return html`<${Field} key=${String(names.isRead)} name="id" fault="scope.id" as="choice" label=${`Which ${label}`} options=${[...names.of]} hint=${names.isRead && !names.of.size && hint} />`;
}

/** @param {{ close: () => void, done: () => any }} props */
function New({ close, done }) {
  const api = useApi();
  const { say } = usePlace();
  const [kind, setKind] = useState("workspace");
  const make = async (/** @type {Record<string, string>} */ values) => {
    const amount = micros(values.amount);
    if (!amount) return wrongFields({ amount: noAmount(amount) });
    const ladder = ladderOf(values);
    const scope = kind === "workspace" ? { kind } : { kind, id: values.id ?? "" };
    return atSteps(await api("POST", "budgets", { scope, amount, period: values.period, ladder, ...(values.owner && { owner: values.owner }) }), ladder);
  };
  const made = () => {
    say("The budget is made.");
    done();
  };
  return html`<${Dialog} title="New budget" close=${close}>
    <${Form} act=${make} submit="Make the budget" cancel=${close} done=${made}>
      <div class="pair">
        <div class="field"><label for="over">Over</label><select id="over" name="over" data-field="scope.kind" onChange=${(/** @type {any} */ it) => setKind(it.currentTarget.value)}>${OVER.map(([is, named]) => html`<option key=${is} value=${is} selected=${is === kind}>${named}</option>`)}</select></div>
        <${Which} key=${kind} kind=${kind} />
      </div>
      <div class="pair">
        <${Field} name="amount" label="Amount (USD)" needed more=${{ inputmode: "decimal" }} hint="What may be spent in each period." />
        <${Field} name="period" as="choice" label="Renewed" options=${PERIODS} value="month" hint="In the workspace's time zone." />
      </div>
      <${Ladder} />
      <${Owner} />
    <//>
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Change({ of, close, done }) {
  const api = useApi();
  const { say } = usePlace();
  const path = `budgets/${of.id}`;
  // What is left as it was is not sent, whatever others change meanwhile.
  const { began: was, known, others, look } = usePinned(of, path);
  const change = async (/** @type {Record<string, string>} */ values) => {
    const amount = micros(values.amount);
    if (!amount) return wrongFields({ amount: noAmount(amount) });
    const ladder = ladderOf(values);
    const isMoved = !isSame(ladder, stepsOf(was));
    const body = { ...(amount !== was.amount && { amount }), ...(isMoved && { ladder }), ...(values.owner !== was.owner && { owner: values.owner }) };
    const { stop } = await look(Object.keys(body), (said, part) => (part === "ladder" ? stepsOf(said) : said[part]));
    return stop ?? atSteps(await api("PATCH", path, body), ladder);
  };
  const changed = () => {
    say("The budget is changed.");
    done();
  };
  return html`<${Dialog} title="Change this budget" of=${useCalled(of)} close=${close}>
    <p><strong><${Over} of=${was} /></strong>, ${PERIODS.find((it) => it[0] === was.period)?.[1].toLowerCase()}. What it is over and its period stay; for another there is a new budget.</p>
    <${Form} act=${change} submit="Save" cancel=${close} done=${changed}>
      <${Field} name="amount" label="Amount (USD)" value=${typed(was.amount)} needed more=${{ inputmode: "decimal" }} hint=${was.period === "total" ? "From now on, whatever it was raised to." : "From now on, the running period included, whatever that was raised to."} />
      <${Ladder} of=${was.ladder} />
      <${Owner} value=${was.owner} />
      <${Others} of=${others.map((part) => [PARTS[part], part === "amount" ? html`<${Dollars} micros=${known.amount} />` : part === "owner" ? html`<${Who} id=${known.owner} />` : stepped(known).join(", ")])} />
    <//>
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Raise({ of, close, done }) {
  const api = useApi();
  const { say } = usePlace();
  const raise = async (/** @type {Record<string, string>} */ { to, note }) => {
    const amountMicros = micros(to);
    if (!amountMicros) return wrongFields({ amountMicros: noAmount(amountMicros) });
    const got = await api("POST", `budgets/${of.id}/raise`, { amountMicros, ...(note.trim() && { note }) });
    if (!got.error.errors?.some((/** @type {any} */ it) => it.field === "amountMicros")) return got;
    // The server says it in millionths; and it may have been raised meanwhile.
    const now = await api("GET", `budgets/${of.id}`);
    const isBelow = isDone(now) && amountMicros <= now.said.allocationMicros;
    return isBelow ? wrongFields({ amountMicros: `Must be above what is allotted now, ${dollars(now.said.allocationMicros)}.` }) : got;
  };
  const raised = () => {
    say("The budget is raised.");
    done();
  };
  return html`<${Dialog} title="Raise this budget?" of=${useCalled(of)} close=${close}>
    <p><strong><${Over} of=${of} /></strong> has <${Dollars} micros=${of.allocationMicros} /> ${RUNNING[of.period]}, of which <${Dollars} micros=${of.spentMicros} /> are spent. More is allotted ${of.period === "total" ? "for good" : "for the running period alone"}; what waits for it is answered.</p>
    <${Form} act=${raise} submit="Raise it" cancel=${close} done=${raised}>
      <${Field} name="to" fault="amountMicros" label="To, in all (USD)" needed more=${{ inputmode: "decimal" }} hint=${`Above ${dollars(of.allocationMicros)}.`} />
      <${Field} name="note" label="Why" hint="For whoever reads the ledger." />
    <//>
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Remove({ of, close, done }) {
  return html`<${Ending} title="Remove this budget?" path=${`budgets/${of.id}`} said="The budget is removed." close=${close} done=${done}>
    <p><strong><${Over} of=${of} /></strong>: <${Dollars} micros=${of.amount} />, ${PERIODS.find((it) => it[0] === of.period)?.[1].toLowerCase()}. From then on it limits nothing. Calls that run go on, and a question about it ends; the ledger keeps what it was.</p>
  <//>`;
}
