// What an agent may do: its mandates, each in versions that do not change, in words and in a form.
import { Badge, Button, Dialog, Empty, Entries, Field, Form, Kept, Pager, Quoted, Shown, Time, html, usePlace } from "./kit.js";
import { Ending } from "./ending.js";
import { useMemo, useState } from "./hooks.js";
import { Who, useApi, useList, useRead } from "./list.js";
import { Others, isSame, usePinned } from "./meanwhile.js";
import { isDone, wrongFields } from "./server.js";
import { decimal, digits, fromLocal, instant, lines, localTime, minorUnits, money, plain } from "./text.js";
import { Usage, useTurn } from "./usage.js";

const STATES = /** @type {Record<string, [any, string]>} */ ({ active: ["good", "In force"], paused: ["waits", "Paused"], revoked: ["plain", "Revoked"], expired: ["plain", "Expired"] });
/** @type {[string, string][]} */
const PERIODS = [["day", "a day"], ["week", "a week"], ["month", "a month"], ["year", "a year"], ["hour", "an hour"]];
const TEMPLATES = "templates?limit=500";
const perPeriod = (/** @type {string} */ period) => PERIODS.find((it) => it[0] === period)?.[1] ?? period;
// A list of more may be folded.
const LONG = 12;

/** What one line of a mandate says; `all`: what it lists; `many`: how many, for where that is folded. @typedef {{ said: string, all?: string[], many?: string }} Line */

/** @param {any} mandate @param {string} zone @returns {Line[]} */
function linesOf({ actions, limits = {}, merchants = {}, fields, tools = {}, duplicates, expiresAt }, zone) {
  const { currency, perAction, perPeriod: period, count, askAbove, onLimit } = limits;
  const amount = (/** @type {number} */ it) => money(it, currency);
  const above = onLimit === "ask" ? "above that a person is asked" : "above that it is denied";
  /** @param {string} said @param {string[] | undefined} all @param {string} many @param {string} [begin] */
  const listed = (said, all, many, begin = said) => all && { said, all, many: `${begin} ${all.length} ${many}` };
  const said = [
    listed("covers", actions, "types of actions"),
    perAction && `up to ${amount(perAction)} an action`,
    period && `up to ${amount(period.amount)} ${perPeriod(period.period)}`,
    count && `at most ${count.max} actions ${perPeriod(count.period)}`,
    (perAction || period || count) && above,
    askAbove && `asks a person above ${amount(askAbove)}`,
    currency && !perAction && !period && `in ${currency}`,
    listed("only to", merchants.allow, "merchants"),
    listed("never to", merchants.deny, "merchants"),
    listed("shares only", fields?.allow, "fields"),
    listed("only the tools", tools.allow, "tools", "only"),
    listed("never the tools", tools.deny, "tools", "never"),
    duplicates === "record" && "does not ask about repeated payments",
    expiresAt && `ends on ${instant(expiresAt, zone)}`,
  ];
  return said.filter((it) => !!it).map((it) => (typeof it === "string" ? { said: it } : /** @type {Line} */ (it)));
}

/** What a mandate says: all of it, in one line. @param {{ of: any }} props */
export function InOneLine({ of }) {
  const { zone } = usePlace();
  return linesOf(of, zone).map((it, place) => html`${place > 0 && "; "}<${Line} key=${it.said} of=${it} folds=${false} />`);
}

/** What a mandate says. `folds`: long lists are folded, which they never are where somebody decides. @param {{ of: any, folds?: boolean }} props */
export function Words({ of, folds = false }) {
  const { zone } = usePlace();
  return html`<ul>${linesOf(of, zone).map((it) => html`<li key=${it.said}><${Line} of=${it} folds=${folds} /></li>`)}</ul>`;
}

/** @param {{ of: Line, folds: boolean }} props */
function Line({ of: { said, all, many }, folds }) {
  if (!all) return html`<${Quoted} text=${said} />`;
  const listed = html`<${Entries} of=${all} />`;
  if (!folds || all.length <= LONG) return html`${said} ${listed}`;
  return html`<details><summary>${many}</summary>${listed}</details>`;
}

/** The templates, and a look whether those that were chosen say still what was read. */
export function useTemplates() {
  const api = useApi();
  const read = useRead(TEMPLATES);
  const all = /** @type {any[]} */ ((read.data && read.data.data) || []);
  const look = async (/** @type {string[]} */ names) => {
    const got = await api("GET", TEMPLATES);
    if (!isDone(got)) return got;
    const says = (/** @type {any[]} */ them, /** @type {string} */ name) => them.find((it) => it.name === name)?.mandate ?? null;
    const moved = names.find((name) => !isSame(says(got.said.data, name), says(all, name)));
    if (moved === undefined) return undefined;
    await read.again();
    return `Nothing was granted: the template ${plain(moved)} has changed since you looked. See what it says now; grant it again if it is meant.`;
  };
  return { all, look };
}

/** @param {{ agent: any, again: () => void }} props */
export function Mandates({ agent, again }) {
  const { may } = usePlace();
  const list = useList(`agents/${agent.id}/mandates`, {}, ["agent", "action", "approval"]);
  useTurn(list.items, list.again);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const mayChange = may("ManageMandates") && agent.standing !== "removed";
  const done = () => {
    setOpen(null);
    again();
    return list.again();
  };
  return html`<section class="card" aria-labelledby="mandates">
    <header><h2 id="mandates">Mandates</h2>${mayChange && html`<${Button} act=${() => setOpen({ act: "grant" })}>Grant a mandate<//>`}</header>
    <${Shown} of=${list}>${(/** @type {any[]} */ items) =>
      items.length
        ? html`<ul class="items">${items.map((it) => html`<${Mandate} key=${it.id} of=${it} mayChange=${mayChange} open=${setOpen} done=${done} />`)}</ul><${Pager} of=${list} />`
        : html`<${Empty} title="It has no mandate."><p>Everything that it asks for is left to a person, or denied, as the workspace's settings say.</p><//>`}<//>
    ${open && open.act === "grant" && html`<${Grant} agent=${agent} close=${() => setOpen(null)} done=${done} />`}
    ${open && open.act === "change" && html`<${Change} of=${open.of} close=${() => setOpen(null)} done=${done} />`}
    ${open && open.act === "revoke" && html`<${Revoke} of=${open.of} close=${() => setOpen(null)} done=${done} />`}
    ${open && open.act === "versions" && html`<${Versions} of=${open.of} close=${() => setOpen(null)} />`}
  </section>`;
}

/** @param {{ of: any, mayChange: any, open: (it: any) => void, done: () => any }} props */
function Mandate({ of, mayChange, open, done }) {
  const api = useApi();
  const { say } = usePlace();
  const [wrong, setWrong] = useState("");
  const name = html`<span class="unseen"> <${Quoted} text=${of.name} /></span>`;
  const isOpen = of.state === "active" || of.state === "paused";
  const turn = async () => {
    const state = of.state === "active" ? "paused" : "active";
    const got = await api("PATCH", `mandates/${of.id}`, { state });
    setWrong(got.status === 200 ? "" : (got.error.message ?? "The server does not answer."));
    if (got.status === 200) say(state === "paused" ? "The mandate is paused." : "The mandate is in force again.");
    await done();
  };
  return html`<li class="item">
    <div>
      <h3><${Quoted} text=${of.name} /></h3>
      <${Words} of=${of} folds />
      <${Usage} of=${of.usage} />
      <p class="meta"><span>Version ${of.version}</span>${of.template && html`<span>from <${Quoted} text=${of.template} /></span>`}<span><${Time} at=${of.createdAt} /> by <${Who} id=${of.createdBy} /></span></p>
      ${wrong && html`<p class="trouble" role="alert">${wrong}</p>`}
    </div>
    <div class="beside"><${Badge} kind=${STATES[of.state][0]}>${STATES[of.state][1]}<//>
      <div class="acts">
        ${mayChange && isOpen && html`<${Button} act=${() => open({ act: "change", of })}>Change${name}<//><${Button} act=${turn}>${of.state === "active" ? "Pause" : "Go on with"}${name}<//>`}
        <${Button} act=${() => open({ act: "versions", of })}>Versions${name}<//>
        ${mayChange && html`<${Button} kind="danger" act=${() => open({ act: "revoke", of })}>Revoke${name}<//>`}
      </div>
    </div>
  </li>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Revoke({ of, close, done }) {
  return html`<${Ending} title="Revoke this mandate?" path=${`mandates/${of.id}`} submit="Revoke it" said="The mandate is revoked." close=${close} done=${done}>
    <p><strong><${Quoted} text=${of.name} /></strong> ends for good. Actions that were allowed under it can still be settled.</p>
  <//>`;
}

/** @param {{ of: any, close: () => void }} props */
function Versions({ of, close }) {
  const list = useList(`mandates/${of.id}/versions`);
  return html`<${Dialog} title="Versions" close=${close}>
    <p><${Quoted} text=${of.name} />, the newest first. A decision names the version that it was made by.</p>
    <${Shown} of=${list}>${(/** @type {any[]} */ items) => html`<ul class="items">${items.map((it) => html`<li class="item" key=${it.version}><div><h3>Version ${it.version}</h3><p><small><${Time} at=${it.createdAt} /> by <${Who} id=${it.createdBy} /></small></p><${Words} of=${it} folds /></div></li>`)}</ul><${Pager} of=${list} />`}<//>
    <p class="acts"><button type="button" onClick=${close}>Close</button></p>
  <//>`;
}

/**
 * A form that is sent again where the server asks whether a wider mandate is meant.
 * @param {{ act: (more: object, values: Record<string, string>) => any, submit: string, close: () => void, done: () => any, children?: any }} props
 */
function Asking({ act, submit, close, done, children }) {
  const [asked, setAsked] = useState(false);
  const send = async (/** @type {Record<string, string>} */ values) => {
    const got = await act(values.confirmBroaden ? { confirmBroaden: true } : {}, values);
    setAsked(isAsked(got));
    return got;
  };
  return html`<${Form} act=${send} submit=${submit} cancel=${close} done=${done}>
    <div onInput=${() => setAsked(false)}>${children}</div>
    ${asked && html`<${Broadens} />`}
  <//>`;
}

/** Whether the server asks if a wider mandate is meant. @param {any} got */
export const isAsked = (got) => got?.error?.type === "confirm_broaden";

/** That question. It is asked for what was sent: once that changes, it goes, and the server asks anew. */
export const Broadens = () => html`<div class="note"><p>Another mandate of this agent says which merchants may be paid; this one would let it pay any.</p><${Field} as="check" name="confirmBroaden" label="Any merchant is meant" /></div>`;

/** @param {{ agent: any, close: () => void, done: () => any }} props */
function Grant({ agent, close, done }) {
  const api = useApi();
  const { zone, currency } = usePlace();
  const { all, look } = useTemplates();
  const [from, setFrom] = useState("");
  const template = all.find((/** @type {any} */ it) => it.name === from);
  const grant = async (/** @type {object} */ more, /** @type {Record<string, string>} */ values) => {
    if (template) return (await look([from])) ?? api("POST", `agents/${agent.id}/mandates`, { template: from, ...more });
    const { wrong, body } = bodyOf(values, zone, null);
    return wrong ?? atTerms(await api("POST", `agents/${agent.id}/mandates`, { ...body, ...more }));
  };
  /** @type {[string, any][]} */
  const options = [["", "Its own wording"], ...all.map((it) => /** @type {[string, any]} */ ([it.name, it.name]))];
  return html`<${Dialog} title="Grant a mandate" close=${close}>
    <${Asking} act=${grant} submit="Grant it" close=${close} done=${done}>
      <div class="field"><label for="from">From</label><select id="from" name="from" onChange=${(/** @type {any} */ it) => setFrom(it.currentTarget.value)}>${options.map(([is, named]) => html`<option key=${is} value=${is} selected=${is === from}>${plain(named)}</option>`)}</select></div>
      ${template && html`<${Words} of=${template.mandate} />`}
      <${Kept} on=${!template}><${Terms} currency=${currency} /><//>
    <//>
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Change({ of, close, done }) {
  const api = useApi();
  const { zone, currency } = usePlace();
  const path = `mandates/${of.id}`;
  // A member that is left as it was is not sent, whatever others change meanwhile.
  const { began: was, known, others, look } = usePinned(of, path);
  const change = async (/** @type {object} */ more, /** @type {Record<string, string>} */ values) => {
    const { wrong, body } = bodyOf(values, zone, was);
    if (wrong) return wrong;
    const sent = changed(body, was);
    if (!Object.keys(sent).length) return undefined;
    const { stop } = await look(Object.keys(sent), (said, member) => said[member] ?? null);
    return stop ?? atTerms(await api("PATCH", path, { ...sent, ...more }));
  };
  const now = html`<p>Version ${known.version}, by <${Who} id=${known.createdBy} />: <${Quoted} text=${known.name} /></p><${Words} of=${known} />`;
  return html`<${Dialog} title="Change a mandate" of=${{ id: of.id, name: of.name, version: of.version }} close=${close}>
    <p>A change is a new version, in force at once. What was decided keeps the version it was decided by; totals go on.</p>
    <${Usage} of=${of.usage} />
    <${Asking} act=${change} submit="Put it in force" close=${close} done=${done}>
      <${Terms} of=${was} currency=${currency} />
      <${Others} of=${others.length ? [["It says now", now]] : []} />
    <//>
  <//>`;
}

// Members of a mandate whose own members are changed one by one; every other is one value.
const PARTS = ["limits", "merchants", "tools"];

/**
 * What of a change differs from what was there. `null` takes away, so it is sent only for what was there.
 * @param {Record<string, any>} now
 * @param {Record<string, any>} was
 */
export function changed(now, was) {
  /** @type {Record<string, any>} */
  const out = {};
  for (const [name, value] of Object.entries(now)) {
    const before = was[name];
    if (value === undefined || same(value, before)) continue;
    // One that holds nothing any more loses what it held then, and not what somebody has put there since.
    const gone = () => Object.fromEntries(Object.keys(before).map((it) => [it, null]));
    const part = PARTS.includes(name) && (before || value) ? changed(value ?? gone(), before ?? {}) : null;
    if (!part) out[name] = value;
    else if (Object.keys(part).length) out[name] = part;
  }
  return out;
}

/** Whether two values of members are one; nothing and `null` are. @param {any} one @param {any} other @returns {boolean} */
function same(one, other) {
  const [a, b] = [one ?? null, other ?? null];
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b;
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return names.every((it) => same(a[it], b[it]));
}

// The server's names of the fields that hold an amount.
const AMOUNTS = /** @type {Record<string, string>} */ ({ perAction: "limits.perAction", askAbove: "limits.askAbove", periodAmount: "limits.perPeriod" });
const LABELS = /** @type {Record<string, string>} */ ({ perAction: "At most an action", askAbove: "Ask a person above", perPeriod: "At most a period" });

/** A decimal number with as many digits behind the point, where it loses nothing by that. @param {string} amount @param {number} places */
function inDigits(amount, places) {
  const [whole, part = ""] = amount.split(".");
  if (/[1-9]/.test(part.slice(places))) return amount;
  return places ? `${whole}.${part.slice(0, places).padEnd(places, "0")}` : whole;
}

/** The terms of a mandate as fields. `within`: what stands before the names of its faults; `isNew`: what is there binds nothing yet. @param {{ of?: any, currency: string, within?: string, isNew?: boolean }} props */
export function Terms({ of = {}, currency, within = "", isNew = false }) {
  const { zone } = usePlace();
  const { limits = {}, merchants = {}, fields = {}, tools = {} } = of;
  const [code, setCode] = useState(limits.currency ?? currency);
  const places = useMemo(() => digits(code), [code]);
  // What an amount says stays, whatever currency is typed; one that this has no digits for is refused as it stands.
  const shown = (/** @type {number | undefined} */ it) => (it === undefined ? "" : inDigits(decimal(it, digits(limits.currency ?? currency)), places));
  const list = (/** @type {string[] | undefined} */ it) => (it ?? []).join("\n");
  const isFixed = !!limits.currency && !isNew;
  const pick = { onInput: (/** @type {any} */ it) => setCode(it.currentTarget.value.trim().toUpperCase()), readonly: isFixed };
  const inUnits = { inputmode: "decimal" };
  return html`
    <${Field} name=${`${within}name`} label="Name" value=${of.name} needed />
    <${Field} name=${`${within}actions`} as="lines" label="Actions" value=${list(of.actions)} needed hint=${html`One a line: a type such as <code>payment</code>, or <code>crm.*</code> for every type that begins so.`} />
    <fieldset><legend>Limits</legend>
      <div class="pair">
        <${Field} name=${`${within}currency`} label="Currency" fault=${`${within}limits.currency`} value=${code} more=${pick} hint=${isFixed ? "Stays as it is; another needs a new mandate." : "Needed for payments; amounts are in it."} />
        <${Field} name=${`${within}perAction`} label=${LABELS.perAction} fault=${`${within}limits.perAction`} value=${shown(limits.perAction)} more=${inUnits} />
        <${Field} name=${`${within}askAbove`} label=${LABELS.askAbove} fault=${`${within}limits.askAbove`} value=${shown(limits.askAbove)} more=${inUnits} />
      </div>
      <div class="pair">
        <${Field} name=${`${within}periodAmount`} label=${LABELS.perPeriod} fault=${`${within}limits.perPeriod`} value=${shown(limits.perPeriod?.amount)} more=${inUnits} />
        <${Field} name=${`${within}period`} as="choice" label="That period" options=${PERIODS} value=${limits.perPeriod?.period ?? "month"} />
      </div>
      <div class="pair">
        <${Field} name=${`${within}countMax`} as="number" label="At most so many actions" fault=${`${within}limits.count`} value=${limits.count?.max} more=${{ min: 1 }} />
        <${Field} name=${`${within}countPeriod`} as="choice" label="In" options=${PERIODS} value=${limits.count?.period ?? "day"} />
      </div>
      <${Field} name=${`${within}onLimit`} as="choice" label="Above a limit" fault=${`${within}limits.onLimit`} options=${[["deny", "Deny"], ["ask", "Ask a person"]]} value=${limits.onLimit} />
    </fieldset>
    <details open=${!!(of.merchants || of.fields || of.tools || of.expiresAt)}><summary>Merchants, fields, tools, end</summary>
      <${Field} name=${`${within}merchantsAllow`} as="lines" label="Only these merchants" fault=${`${within}merchants.allow`} value=${list(merchants.allow)} hint=${html`Domains, one a line; <code>*.example.com</code> for those under it.`} />
      <${Field} name=${`${within}merchantsDeny`} as="lines" label="Never these merchants" fault=${`${within}merchants.deny`} value=${list(merchants.deny)} />
      <${Field} name=${`${within}fieldsAllow`} as="lines" label="Only these fields may be shared" fault=${`${within}fields.allow`} value=${list(fields.allow)} />
      <${Field} name=${`${within}toolsAllow`} as="lines" label="Only these tools" fault=${`${within}tools.allow`} value=${list(tools.allow)} hint=${html`<code>server/name</code>, one a line; <code>*</code> for any within one part.`} />
      <${Field} name=${`${within}toolsDeny`} as="lines" label="Never these tools" fault=${`${within}tools.deny`} value=${list(tools.deny)} />
      <${Field} name=${`${within}duplicates`} as="choice" label="The same payment again within ten minutes" options=${[["ask", "Ask a person"], ["record", "Only record it"]]} value=${of.duplicates} />
      <${Field} name=${`${within}expiresAt`} as="datetime-local" label=${`Ends (${zone})`} value=${of.expiresAt ? localTime(of.expiresAt, zone) : ""} />
    </details>`;
}

/**
 * What is sent of the fields: for a change (`of`), what was there and is no more is taken away by `null`.
 * @param {Record<string, string>} all
 * @param {string} zone
 * @param {any} of
 * @param {string} [within]
 * @returns {{ wrong?: import("./server.js").Got, body: Record<string, any> }} `wrong`: what is no amount, or no instant
 */
export function bodyOf(all, zone, of, within = "") {
  const own = Object.entries(all).filter((it) => it[0].startsWith(within));
  const values = Object.fromEntries(own.map(([name, value]) => [name.slice(within.length), value]));
  const currency = values.currency.trim().toUpperCase();
  const amounts = Object.keys(AMOUNTS).map((name) => [name, values[name].trim()]).filter((it) => it[1]);
  const units = Object.fromEntries(amounts.map(([name, text]) => [name, minorUnits(text, currency)]));
  const noAmount = `An amount is a number like ${decimal(125_000, digits(currency))}, in ${currency}, without commas or spaces.`;
  /** @type {Record<string, string>} */
  const faults = Object.fromEntries(amounts.filter(([name]) => units[name] === null).map(([name]) => [`${within}${AMOUNTS[name]}`, noAmount]));
  const nothing = of ? null : undefined;
  const list = (/** @type {string} */ name, /** @type {string[] | undefined} */ before = undefined) => (lines(values[name]).length ? lines(values[name], before) : nothing);
  const isMoney = !!of?.limits?.currency || Object.keys(units).length > 0 || lines(values.actions).some((it) => /^(payment|refund|transfer)$/.test(it));
  const limits = {
    currency: isMoney ? currency : undefined,
    perAction: units.perAction ?? nothing,
    askAbove: units.askAbove ?? nothing,
    // Nought is sent too: the server says that it is no limit.
    perPeriod: units.periodAmount === undefined ? nothing : { amount: units.periodAmount, period: values.period },
    count: values.countMax ? { max: Number(values.countMax), period: values.countPeriod } : nothing,
    onLimit: values.onLimit,
  };
  const both = (/** @type {string} */ name) => ({ allow: list(`${name}Allow`, of?.[name]?.allow), deny: list(`${name}Deny`, of?.[name]?.deny) });
  const some = (/** @type {{ allow?: any, deny?: any }} */ it) => (it.allow || it.deny ? it : nothing);
  const ends = values.expiresAt ? fromLocal(values.expiresAt, zone) : nothing;
  if (values.expiresAt && !ends) faults[`${within}expiresAt`] = "The end is not a date and time that can be read.";
  const hasLimits = isMoney || limits.count || of?.limits;
  const body = {
    name: values.name,
    actions: lines(values.actions),
    limits: hasLimits ? limits : undefined,
    merchants: some(both("merchants")),
    fields: list("fieldsAllow") ? { allow: list("fieldsAllow", of?.fields?.allow) } : nothing,
    tools: some(both("tools")),
    duplicates: values.duplicates,
    // A moment that is not touched keeps its seconds.
    expiresAt: of?.expiresAt && values.expiresAt === localTime(of.expiresAt, zone) ? of.expiresAt : ends,
  };
  return Object.keys(faults).length ? { wrong: wrongFields(faults), body } : { body };
}

/**
 * What the server says of terms, at the fields and in the words of their labels.
 * @param {import("./server.js").Got} got
 * @param {string} [within]
 * @returns {import("./server.js").Got}
 */
export function atTerms(got, within = "") {
  const errors = (got.error.errors ?? []).map(({ field, message }) => {
    const said = message.replace(/^`[^`]*` /, "").replace(/`(?:limits\.)?(\w+)`/g, (all, name) => (Object.hasOwn(LABELS, name) ? `“${LABELS[name]}”` : all));
    return { field: field === `${within}limits` ? `${within}limits.perAction` : field, message: said.replace(/^must hold/, "fill in").replace("a whole number of minor units", "an amount") };
  });
  return errors.length ? { ...got, error: { ...got.error, errors } } : got;
}
