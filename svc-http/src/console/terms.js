// What calls are held to: classes of tasks and policy profiles, which share their constraints; in words and in a form.
import { Badge, Button, Dialog, Empty, Field, Form, Pager, Quoted, Shown, Time, html, usePlace } from "./kit.js";
import { Ending } from "./ending.js";
import { useState } from "./hooks.js";
import { Who, useApi, useList } from "./list.js";
import { Others, isSame, usePinned } from "./meanwhile.js";
import { wrongFields } from "./server.js";
import { dollars, lines, micros, typed } from "./text.js";

/** @type {[string, string][]} */
export const OBJECTIVES = [["balanced", "Balanced"], ["cost", "The cheapest"], ["quality", "The best"], ["latency", "The fastest"], ["sovereign", "By jurisdiction"]];
/** @type {[string, string][]} */
export const CAPABILITIES = [["tools", "Tools"], ["vision", "Images"], ["streaming", "Streaming"], ["json", "JSON"], ["reasoning", "Reasoning"], ["audio", "Audio"]];
const named = (/** @type {[string, string][]} */ all, /** @type {string} */ is) => all.find((it) => it[0] === is)?.[1] ?? is;

/** The two kinds: what they are called, where they are, and what is said of them. */
const KINDS = {
  classes: {
    path: "task-classes", one: "class of tasks", name: (/** @type {any} */ it) => it.name || it.id,
    none: "A class says what kind of model a kind of task needs: at least this good, at most this dear, under these laws. Calls name theirs as x-svc-task-class, or have that of their key.",
    removed: "Calls that name it are refused from then on. It cannot go while a key is bound to it.",
  },
  profiles: {
    path: "policy-profiles", one: "policy profile", name: (/** @type {any} */ it) => it.name,
    none: "A profile is bound to keys: their calls are held to it beside their class, in the mode that it names.",
    removed: "It cannot go while a key is bound to it.",
  },
};

/** What is asked of models, in words: all of it. @param {any} of @returns {string[]} */
export function describe(of) {
  return [
    of.mode === "enforce" && "routes and refuses",
    of.mode === "shadow" && "only watches: nothing is refused or sent elsewhere",
    of.models?.length && `only ${of.models.join(", ")}, in this order`,
    of.providers?.length && `only at ${of.providers.join(", ")}`,
    of.jurisdictions?.length && `only under the law of ${of.jurisdictions.join(", ")}`,
    of.retention === "none" && "only where nothing is kept",
    of.capabilities?.length && `needs ${of.capabilities.map((/** @type {string} */ it) => named(CAPABILITIES, it).toLowerCase()).join(", ")}`,
    of.minQuality !== null && of.minQuality !== undefined && `quality at least ${of.minQuality} of 100`,
    of.maxCostMicros !== null && of.maxCostMicros !== undefined && `at most ${dollars(of.maxCostMicros)} a call`,
    of.maxLatencyMs && `the first token within ${of.maxLatencyMs.toLocaleString("en")} ms`,
    of.humanOversight && "a person oversees what comes of it",
    of.objective && `chosen by: ${named(OBJECTIVES, of.objective).toLowerCase()}`,
  ].filter(Boolean);
}

/** @param {{ kind: "classes" | "profiles" }} props */
export function Terms({ kind }) {
  const { may } = usePlace();
  const { path, one, name, none } = KINDS[kind];
  const list = useList(path);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const mayChange = may("ManageRouting");
  const done = () => {
    setOpen(null);
    return list.again();
  };
  return html`${mayChange && list.items.length > 0 && html`<p class="acts filters"><${Button} kind="main" act=${() => setOpen({})}>New ${one}<//></p>`}
    <${Shown} of=${list}>${(/** @type {any[]} */ items) =>
      items.length
        ? html`<ul class="items">${items.map((it) => html`<li class="item" key=${it.id}><div>
            <h2><${Quoted} text=${name(it)} />${kind === "classes" && it.name && html` <small><code><${Quoted} text=${it.id} /></code></small>`}${it.mode && html` <${Badge}>${it.mode}<//>`}</h2>
            <ul>${worded(it).map((said) => html`<li key=${said}><${Quoted} text=${said} /></li>`)}</ul>
            ${it.createdAt && html`<p class="meta"><span>made <${Time} at=${it.createdAt} /> by <${Who} id=${it.createdBy} /></span></p>`}</div>
          ${mayChange && html`<div class="beside"><div class="acts"><${Button} act=${() => setOpen(it)}>Change<span class="unseen"> <${Quoted} text=${name(it)} /></span><//><${Button} kind="danger" act=${() => setOpen({ remove: it })}>Remove<span class="unseen"> <${Quoted} text=${name(it)} /></span><//></div></div>`}
        </li>`)}</ul><${Pager} of=${list} />`
        : html`<${Empty} title=${`There is no ${one} yet.`}><p>${none}</p>${mayChange && html`<p><${Button} kind="main" act=${() => setOpen({})}>Make the first<//></p>`}<//>`}<//>
    ${open && (open.remove ? html`<${Remove} kind=${kind} of=${open.remove} close=${() => setOpen(null)} done=${done} />` : html`<${Edit} kind=${kind} of=${open.id ? open : null} close=${() => setOpen(null)} done=${done} />`)}`;
}

/** @param {{ of?: any }} props */
function Constraints({ of }) {
  const was = of ?? {};
  const list = (/** @type {string[] | undefined} */ it) => (it ?? []).join("\n");
  const any = html`Empty for any.`;
  return html`<${Field} name="objective" as="choice" label="Which is chosen of those that qualify" options=${[["", "As the workspace has it"], ...OBJECTIVES]} value=${was.objective ?? ""} />
    <div class="pair">
      <${Field} name="minQuality" as="number" label="Quality at least (0 to 100)" value=${was.minQuality ?? ""} more=${{ min: 0, max: 100 }} />
      <${Field} name="maxCost" fault="maxCostMicros" label="At most a call (USD)" value=${typed(was.maxCostMicros)} more=${{ inputmode: "decimal" }} />
      <${Field} name="maxLatencyMs" as="number" label="First token within (ms)" value=${was.maxLatencyMs ?? ""} more=${{ min: 1 }} />
    </div>
    <${Field} name="models" as="lines" label="Only these models" value=${list(was.models)} hint=${html`<code>provider/model</code>, one a line, in order of preference. ${any}`} />
    <div class="pair">
      <${Field} name="providers" as="lines" label="Only these providers" value=${list(was.providers)} hint=${any} />
      <${Field} name="jurisdictions" as="lines" label="Only under the law of" value=${list(was.jurisdictions)} hint=${html`Such as <code>eu</code> or <code>ch</code>. ${any}`} />
    </div>
    <${Capabilities} legend="Models need" of=${was.capabilities} />
    <${Field} name="retention" as="check" label="Only where nothing is kept of what is sent" value=${was.retention === "none"} />
    <${Field} name="humanOversight" as="check" label="A person has to oversee what comes of it" value=${was.humanOversight} hint=${html`Calls have to say so: <code>x-svc-human-oversight: acknowledged</code>.`} />`;
}

/** @param {{ legend: string, of?: string[] | null }} props */
export const Capabilities = ({ legend, of }) => html`<fieldset><legend>${legend}</legend><div class="pair">
  ${CAPABILITIES.map(([is, said]) => html`<${Field} key=${is} as="check" name=${`capability ${is}`} label=${said} value=${(of ?? []).includes(is)} />`)}
</div></fieldset>`;

/** The capabilities that are ticked. @param {Record<string, string>} values */
export const capabilitiesOf = (values) => CAPABILITIES.map((it) => it[0]).filter((it) => values[`capability ${it}`]);

/** What the fields say, in the server's words; a text where an amount is none. @param {Record<string, string>} values */
function bodyOf(values) {
  const cost = values.maxCost.trim() ? micros(values.maxCost) : undefined;
  if (cost === null) return null;
  const number = (/** @type {string} */ name) => (values[name] === "" ? null : Number(values[name]));
  const list = (/** @type {string} */ name) => (lines(values[name]).length ? lines(values[name]) : null);
  return {
    objective: values.objective || null, minQuality: number("minQuality"), maxCostMicros: cost ?? null, maxLatencyMs: number("maxLatencyMs"),
    models: list("models"), providers: list("providers"), jurisdictions: list("jurisdictions"),
    capabilities: capabilitiesOf(values).length ? capabilitiesOf(values) : null, retention: values.retention ? "none" : null, humanOversight: !!values.humanOversight,
    ...(values.name !== undefined && { name: values.name.trim() || null }), ...(values.mode !== undefined && { mode: values.mode || null }),
  };
}

/** A member as it is compared: an empty list says what none says. @param {any} of @param {string} member */
function memberOf(of, member) {
  const it = of?.[member] ?? (of && member === "humanOversight" ? false : null);
  return Array.isArray(it) && !it.length ? null : it;
}

/** All that is said of one, where nothing is that any model qualifies. @param {any} it */
const worded = (it) => (describe(it).length ? describe(it) : ["any model"]);

/** @param {{ kind: "classes" | "profiles", of: any, close: () => void, done: () => any }} props */
function Edit({ kind, of, close, done }) {
  const api = useApi();
  const { say } = usePlace();
  const { path, one, name } = KINDS[kind];
  const itself = of && `${path}/${encodeURIComponent(of.id)}`;
  // What is left as it was is not sent, whatever others change meanwhile.
  const { began: was, known, others, look } = usePinned(of, itself);
  const save = async (/** @type {Record<string, string>} */ values) => {
    const body = bodyOf(values);
    if (!body) return wrongFields({ maxCostMicros: "An amount of US dollars is a number like 0.05, without commas or spaces." });
    const changed = Object.fromEntries(Object.entries(body).filter(([member]) => !isSame(memberOf(body, member), memberOf(was, member))));
    if (was) return (await look(Object.keys(changed), memberOf)).stop ?? api("PATCH", itself, changed);
    return api("POST", path, { ...changed, ...(kind === "classes" ? { id: values.id.trim() } : { name: values.name.trim() }) });
  };
  const saved = () => {
    say(was ? "It is changed." : "It is made.");
    done();
  };
  return html`<${Dialog} title=${was ? `Change this ${one}` : `New ${one}`} of=${was && { id: was.id, name: name(was) }} close=${close}>
    <${Form} act=${save} submit=${was ? "Save" : "Make it"} cancel=${close} done=${saved}>
      ${kind === "classes" && (was ? html`<p><code><${Quoted} text=${was.id} /></code></p>` : html`<${Field} name="id" label="Id" needed more=${{ autocapitalize: "none", spellcheck: false }} hint=${html`What calls name: small letters, digits, <code>_</code>, <code>-</code> and dots, such as <code>code.review</code>. It stays.`} />`)}
      <${Field} name="name" label="Name" value=${was?.name ?? ""} needed=${kind === "profiles"} />
      ${kind === "profiles" && html`<${Field} name="mode" as="choice" label="Mode" options=${[["", "As the workspace has it"], ["enforce", "Enforce: routes, refuses, holds to budgets"], ["shadow", "Shadow: only says what it would do"]]} value=${was?.mode ?? ""} />`}
      <${Constraints} of=${was} />
      <${Others} of=${others.length ? [["Name", html`<${Quoted} text=${name(known)} />`], ["It says now", html`<ul>${worded(known).map((it) => html`<li key=${it}><${Quoted} text=${it} /></li>`)}</ul>`]] : []} />
    <//>
  <//>`;
}

/** @param {{ kind: "classes" | "profiles", of: any, close: () => void, done: () => any }} props */
function Remove({ kind, of, close, done }) {
  const { path, one, name, removed } = KINDS[kind];
  return html`<${Ending} title=${`Remove this ${one}?`} path=${`${path}/${encodeURIComponent(of.id)}`} said="It is removed." close=${close} done=${done}>
    <p><strong><${Quoted} text=${name(of)} /></strong>: ${removed}</p>
  <//>`;
}
