// The workspace's settings: what each brings about, and changing them a group at a time. Only what was changed is sent.
import { Button, Dialog, Facts, Field, Form, Heading, Quoted, Shown, html, usePlace } from "./kit.js";
import { useId, useState } from "./hooks.js";
import { useApi, useRead } from "./list.js";
import { Others, isSame, usePinned } from "./meanwhile.js";
import { count, decimal, digits, lines, minorUnits, money } from "./text.js";

/**
 * A setting. `loosens`: whether going from one value to another lets through what was not before.
 * @typedef {{
 *   path: string, label: string, hint: any, as: "text" | "zone" | "number" | "choice" | "check" | "lines" | "amounts",
 *   least?: number, most?: number, usual?: any, unit?: string, options?: [string, string][], none?: string,
 *   loosens?: (was: any, is: any) => boolean,
 * }} Setting
 */

const raised = (/** @type {number} */ was, /** @type {number} */ is) => is > was;
const lowered = (/** @type {number} */ was, /** @type {number} */ is) => is < was;
const off = (/** @type {boolean} */ was, /** @type {boolean} */ is) => was && !is;
/** Whether the strictest word comes first, and a later one is taken. @param {string[]} words */
const later = (words) => (/** @type {string} */ was, /** @type {string} */ is) => words.indexOf(is) > words.indexOf(was);

/** Whether lines of amounts let an amount pass that they did not before. @param {Record<string, number>} was @param {Record<string, number>} is */
function frees(was, is) {
  if (!Object.keys(was).length) return false;
  return !Object.keys(is).length || Object.entries(is).some(([currency, line]) => was[currency] === undefined || line > was[currency]);
}

const PER_CURRENCY = html`One a line, such as <code>EUR 1000.00</code>. Once there is a line, a payment in a currency without one counts as above it.`;

/** @type {{ id: string, title: string, about: string, settings: Setting[] }[]} */
const GROUPS = [
  { id: "workspace", title: "Workspace", about: "", settings: [
    { path: "name", label: "Name", as: "text", hint: "What people call it." },
    { path: "timezone", label: "Time zone", as: "zone", usual: "UTC", hint: "Where days, weeks and months of limits and budgets begin, and in which times are shown. Periods that run end as they began; the next ones follow the new zone." },
    { path: "currency", label: "Currency", as: "text", usual: "EUR", hint: "In which templates are read, three letters. Mandates that were granted keep theirs." },
  ] },
  { id: "agents", title: "What agents may do", about: "What holds for every agent beside its mandates.", settings: [
    { path: "outsideMandate", label: "What no mandate covers", as: "choice", options: [["ask", "Ask a person"], ["deny", "Deny"]], hint: "Turning to deny also ends what waits for a person outside every mandate.", loosens: later(["deny", "ask"]) },
    { path: "agentVelocity.toolVelocityCount", label: "Calls of tools in a window", as: "number", least: 1, most: 1_000_000, usual: 200, hint: "An agent that makes more has a person asked.", loosens: raised },
    { path: "agentVelocity.velocityCount", label: "Other actions in a window", as: "number", least: 1, most: 1_000_000, usual: 10, hint: "The same for payments and all else, counted apart.", loosens: raised },
    { path: "agentVelocity.velocityMinutes", label: "Length of the window", as: "number", unit: "minute", least: 1, most: 1440, usual: 10, hint: "It slides: the last so many minutes count. Shorter lets more through.", loosens: lowered },
    { path: "receiptMinutes", label: "Receipts are good for", as: "number", unit: "minute", least: 1, most: 1440, usual: 15, hint: "How long after a yes an agent may act on it. Receipts that exist keep theirs." },
    { path: "freezeCeilingPerHour", label: "Agents that a token may freeze in an hour", as: "number", least: 1, most: 1_000_000, usual: 50, hint: "A service token that means to stop more has a person asked. People are not bound by it.", loosens: raised },
  ] },
  { id: "provenance", title: "Where an agent's wishes come from", about: "An agent says whether a person, a tool or a stranger's text led to what it asks for; its traffic shows what it has read.", settings: [
    { path: "provenance.mismatch", label: "It has read less trustworthy text than it says", as: "choice", options: [["deny", "Deny what can do harm, ask about the rest"], ["ask", "Ask a person"], ["record", "Only record it"]], hint: "", loosens: later(["deny", "ask", "record"]) },
    { path: "provenance.undeclared", label: "It says nothing", as: "choice", options: [["record", "Only record it"], ["ask", "Ask a person"], ["deny", "Deny"]], hint: "For what can do harm: payments, sharing, code and the like.", loosens: later(["deny", "ask", "record"]) },
    { path: "provenance.windowMinutes", label: "What it has read counts for", as: "number", unit: "minute", least: 5, most: 1440, usual: 60, hint: "Shorter forgets sooner, and lets more through.", loosens: lowered },
  ] },
  { id: "approvals", title: "Approvals", about: "", settings: [
    { path: "approvalHours", label: "A question waits for", as: "number", unit: "hour", least: 1, most: 168, usual: 24, hint: "Then it has expired, which is a no. Questions that wait keep their end." },
    { path: "maxWaiting", label: "Questions of one agent that may wait", as: "number", least: 1, most: 1000, usual: 100, hint: "What it asks beyond them is denied.", loosens: raised },
    { path: "secondPersonAbove", label: "Two persons decide above", as: "amounts", none: "No amount: one is enough", hint: PER_CURRENCY, loosens: frees },
    { path: "secondPersonAgeDays", label: "Whom the other one raised counts after", as: "number", unit: "day", least: 0, most: 90, usual: 0, hint: "Invited, given a sign-in link or another role by the other. 0: they count at once; 7 is advised.", loosens: lowered },
    { path: "stepUpAbove", label: "The second factor is asked for again above", as: "amounts", none: "No amount", hint: html`${PER_CURRENCY} Whoever approves has to have a second factor then.`, loosens: frees },
  ] },
  { id: "data", title: "Data", about: "", settings: [
    { path: "dataLoss", label: "Sensitive data on its way to a model", as: "choice", options: [["off", "Not looked for"], ["flag", "Counted in the record"], ["redact", "Blackened"], ["block", "The call is refused"]], hint: "Numbers of cards and accounts, keys, addresses and the like; never kept, only counted.", loosens: later(["block", "redact", "flag", "off"]) },
    { path: "retentionDays", label: "What is personal in actions is kept for", as: "number", unit: "day", least: 30, most: 3650, usual: null, none: "For good", hint: "30 to 3,650 days; empty: for good. What is older loses it and cannot get it back; the record of what was decided stays." },
  ] },
  { id: "sign-in", title: "Signing in", about: "", settings: [
    { path: "signIn.requireTwoFactor", label: "Everybody needs a second factor", as: "check", hint: "Whoever has none sets one up before anything else. Single sign-on is not concerned.", loosens: off },
    { path: "signIn.requireSso", label: "Only single sign-on counts", as: "check", hint: "Other sessions are taken no more, yours too if it is one.", loosens: off },
    { path: "signIn.ssoDomains", label: "Domains that single sign-on brings people in from", as: "lines", none: "None", hint: html`One a line, such as <code>example.com</code>. Whoever the provider vouches for there is let in where they were invited.`, loosens: (was, is) => is.some((/** @type {string} */ it) => !was.includes(it)) },
  ] },
];

/** What stands at a dotted path. @param {any} settings @param {string} path */
const at = (settings, path) => path.split(".").reduce((it, name) => it?.[name], settings);

/** A value in words. @param {{ of: Setting, value: any }} props */
function Value({ of, value }) {
  const { as, unit, none, options } = of;
  if (as === "check") return value ? "Yes" : "No";
  if (as === "choice") return options?.find((it) => it[0] === value)?.[1] ?? value;
  if (as === "amounts") {
    const all = Object.entries(value);
    return all.length ? all.map(([currency, line]) => html`<div key=${currency} class="number">${money(line, currency)}</div>`) : none;
  }
  if (as === "lines") return value.length ? value.map((/** @type {string} */ it) => html`<div key=${it}><${Quoted} text=${it} /></div>`) : none;
  if (value === null || value === undefined) return none ?? "–";
  if (as === "number") return unit ? count(value, unit) : value.toLocaleString("en");
  return html`<${Quoted} text=${value} />`;
}

export function Page() {
  const { may, workspace } = usePlace();
  const read = useRead("settings");
  const [open, setOpen] = useState("");
  const mayChange = may("ManageSettings");
  return html`<${Heading} title="Settings" />
    <p class="lead">${mayChange ? "Each change is in force at once and is on record with both values. A change that lets more through is told to the other owners and admins, by mail or chat where messages are set up." : `Owners and admins change these; your role here is ${workspace.role}.`}</p>
    <${Shown} of=${read}>${(/** @type {any} */ settings) => html`${GROUPS.map((group) => html`<section class="card even" key=${group.id} aria-labelledby=${group.id}>
      <header><h2 id=${group.id}>${group.title}</h2>${mayChange && html`<${Button} act=${() => setOpen(group.id)}>Change<span class="unseen"> ${group.title}</span><//>`}</header>
      ${group.about && html`<p><small>${group.about}</small></p>`}
      <${Facts} of=${group.settings.map((it) => [it.label, html`<${Value} of=${it} value=${at(settings, it.path)} />`])} />
      ${open === group.id && html`<${Change} group=${group} settings=${settings} read=${read} close=${() => setOpen("")} />`}
    </section>`)}`}<//>`;
}

/** An amount as it may be typed, with the digits of its currency. @param {string} currency */
const amountIn = (currency) => `${currency} ${decimal(1000 * 10 ** digits(currency), digits(currency))}`;

/** What a field holds. @param {Setting} setting @param {any} value */
function held({ as }, value) {
  if (as === "lines") return value.join("\n");
  if (as === "amounts") return Object.entries(value).map(([currency, line]) => `${currency} ${decimal(line, digits(currency))}`).join("\n");
  return value ?? "";
}

/**
 * What is meant by what a field holds; a text is what is wrong with it.
 * @param {Setting} setting
 * @param {string | undefined} text
 * @returns {{ value?: any, wrong?: string }}
 */
function meant({ as, usual }, text = "") {
  if (as === "check") return { value: !!text };
  if (as === "number") return { value: text === "" ? usual : Number(text) };
  if (as === "lines") return { value: lines(text) };
  if (as !== "amounts") return { value: text.trim() || (usual ?? "") };
  const all = lines(text).map((it) => /^([A-Za-z]{3})\s+(\S+)$/.exec(it));
  const [, currency = "EUR"] = all.find((it) => it && minorUnits(it[2], it[1].toUpperCase()) === null) ?? [];
  const value = Object.fromEntries(all.map((it) => (it ? [it[1].toUpperCase(), minorUnits(it[2], it[1].toUpperCase())] : ["", null])));
  if (Object.values(value).includes(null)) return { wrong: `must be a currency and an amount on each line, such as \`${amountIn(currency.toUpperCase())}\`, without commas` };
  return Object.keys(value).length === all.length ? { value } : { wrong: "must name each currency once" };
}

/** The members of a change, each at its place. @param {[Setting, any][]} changes */
function bodyOf(changes) {
  /** @type {Record<string, any>} */
  const body = {};
  for (const [{ path }, value] of changes) {
    const [name, inner] = path.split(".");
    if (inner) body[name] = { ...body[name], [inner]: value };
    else body[name] = value;
  }
  return body;
}

/** Whether single sign-on may be asked for alone from here: by an owner who came by it. */
function useSingle() {
  const { me, wid, workspace } = usePlace();
  return workspace.role === "owner" && me.session.proof === `sso:${wid}`;
}

/** @param {{ group: any, settings: any, read: any, close: () => void }} props */
function Change({ group, settings, read, close }) {
  const { say, again } = usePlace();
  const api = useApi();
  const isSingle = useSingle();
  const { began, known, others, look } = usePinned(settings, "settings");
  const [warned, setWarned] = useState(/** @type {Setting[]} */ ([]));
  /** @type {Setting[]} */
  const offered = group.settings.filter((/** @type {Setting} */ it) => it.path !== "signIn.requireSso" || isSingle || began.signIn.requireSso);
  const change = async (/** @type {Record<string, string>} */ values) => {
    const all = offered.map((it) => ({ it, ...meant(it, values[it.path]) }));
    const errors = all.filter((it) => it.wrong).map(({ it, wrong }) => ({ field: it.path, message: wrong }));
    if (errors.length) return { status: 400, said: {}, error: { errors }, wait: 0 };
    const changed = all.filter(({ it, value }) => !isSame(value, at(began, it.path)));
    if (!changed.length) return "Nothing is changed yet.";
    const { stop, now } = await look(changed.map(({ it }) => it), (said, it) => at(said, it.path));
    if (stop) return stop;
    const looser = changed.filter(({ it, value }) => it.loosens?.(at(now, it.path), value)).map(({ it }) => it);
    if (looser.some((it) => !warned.includes(it))) {
      setWarned(looser);
      return "Nothing is saved yet: this lets more through than before. Save again if it is meant.";
    }
    return api("PUT", "settings", bodyOf(changed.map(({ it, value }) => [it, value])));
  };
  const saved = async () => {
    await Promise.all([read.again(), again()]);
    say("The settings are saved.");
    close();
  };
  return html`<${Dialog} title=${group.title} close=${close}>
    <${Form} act=${change} submit=${warned.length ? "Save all the same" : "Save"} cancel=${close} done=${saved}>
      ${offered.map((it) => html`<${Single} key=${it.path} of=${it} value=${at(began, it.path)} />`)}
      ${offered.length < group.settings.length && html`<p><small>Only single sign-on counts from the moment that an owner asks for it who has signed in by it themselves: sign in that way, then it can be chosen here.</small></p>`}
      <${Others} of=${others.map((it) => [it.label, html`<${Value} of=${it} value=${at(known, it.path)} />`])} />
      ${warned.length > 0 && html`<div class="note"><p><strong>This lets more through than before</strong></p><ul>${warned.map((it) => html`<li key=${it.path}>${it.label}: it was <${Value} of=${it} value=${at(known, it.path)} /></li>`)}</ul><p>It is in force at once. The other owners and admins are told.</p></div>`}
    <//>
  <//>`;
}

/** A setting as a field. @param {{ of: Setting, value: any }} props */
function Single({ of, value }) {
  const { me } = usePlace();
  const id = useId();
  const { path, label, as, hint, least, most, usual, unit, options } = of;
  const common = { name: path, label, value: held(of, value) };
  if (as === "check") {
    const lacks = path === "signIn.requireTwoFactor" && !value && !me.twoFactor && !me.session.proof.startsWith("sso");
    return html`<${Field} ...${common} as="check" value=${value} hint=${html`${hint}${lacks && " You have none yourself: you are led to its set-up at once."}`} />`;
  }
  if (as === "choice") return html`<${Field} ...${common} as="choice" options=${options} hint=${hint} />`;
  if (as === "number") {
    const bounds = `${least?.toLocaleString("en")} to ${most?.toLocaleString("en")}${usual === null ? "" : `; empty: ${usual}`}.`;
    return html`<${Field} ...${common} label=${unit ? `${label}, ${unit}s` : label} as="number" hint=${usual === null ? hint : html`${hint} ${bounds}`} more=${{ min: least, max: most }} />`;
  }
  if (as === "zone") {
    return html`<${Field} ...${common} hint=${hint} more=${{ list: id }} /><datalist id=${id}>${Intl.supportedValuesOf("timeZone").map((it) => html`<option key=${it} value=${it} />`)}</datalist>`;
  }
  return html`<${Field} ...${common} as=${as === "text" ? "text" : "lines"} hint=${hint} />`;
}
