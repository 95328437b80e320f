// How calls are routed: the workspace's mode and defaults, what results of tools count as, and what would be chosen for a call.
import { Badge, Button, Dialog, Dollars, Empty, Facts, Field, Form, Heading, Quoted, Said, Shown, Table, at, html, usePlace } from "./kit.js";
import { Share } from "./charts.js";
import { useRef, useState } from "./hooks.js";
import { useApi, useRead } from "./list.js";
import { Others, usePinned } from "./meanwhile.js";
import { isDone, wrongFields } from "./server.js";
import { CAPABILITIES, Capabilities, OBJECTIVES, capabilitiesOf } from "./terms.js";
import { count, dollars } from "./text.js";

const MODES = /** @type {Record<string, [string, string]>} */ ({
  enforce: ["Enforce", "Calls go to the model that routing chooses. What no model satisfies is refused, and budgets refuse what would pass them."],
  shadow: ["Shadow", "Calls go to the model that they name. What routing and budgets would have done is said and recorded; nothing is refused for it."],
});
const WHY = /** @type {Record<string, string>} */ ({
  models: "not among the models allowed", providers: "not a provider allowed", jurisdiction: "not under a law that is allowed", retention: "keeps what is sent", capabilities: "cannot what is needed",
  context: "takes less than is sent", quality: "not good enough", cost: "too dear", latency: "too slow", human_oversight: "wants a person's oversight", price: "has no price", enabled: "is off",
});

export function Page() {
  const routing = useRead("routing");
  return html`<${Heading} title="Routing" />
    <${Shown} of=${routing}>${(/** @type {any} */ it) => html`<${InForce} of=${it} again=${routing.again} />`}<//>
    <${Preview} mode=${routing.data && routing.data.mode} />
    <${Shown} of=${routing}>${(/** @type {any} */ it) => html`<${Tools} of=${it} again=${routing.again} />`}<//>`;
}

/** @param {string} is */
const objective = (is) => OBJECTIVES.find((it) => it[0] === is)?.[1] ?? is;

/** @param {{ of: any, again: () => any }} props */
function InForce({ of, again }) {
  const { may, wid } = usePlace();
  const [isOpen, setOpen] = useState(false);
  const [said, what] = MODES[of.mode] ?? [of.mode, ""];
  const done = () => {
    setOpen(false);
    return again();
  };
  return html`<section class="card" aria-labelledby="force">
    <header><h2 id="force">In force</h2>${may("ManageRouting") && html`<${Button} act=${() => setOpen(true)}>Change<//>`}</header>
    <${Facts} of=${[
      ["Mode", html`<${Badge} kind=${of.mode === "enforce" ? "good" : "waits"}>${said}<//> ${what}`],
      ["Chosen is", objective(of.defaultObjective)],
      ["Class of tasks", of.defaultTaskClass ? html`<${Quoted} text=${of.defaultTaskClass} />` : of.mode === "enforce" ? "none: a call is refused where neither it nor its key names one" : "none, where a call and its key name none"],
    ]} />
    <p><small>A key's <a href=${at(wid, "models", "profiles")}>policy profile</a> may set another mode, and a <a href=${at(wid, "models", "classes")}>class of tasks</a> another aim. ${!may("ManageRouting") && "An owner or an admin changes this."}</small></p>
    ${isOpen && html`<${Change} of=${of} close=${() => setOpen(false)} done=${done} />`}
  </section>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Change({ of, close, done }) {
  const api = useApi();
  const { say } = usePlace();
  const classes = useRead("task-classes?limit=500");
  const { began: was, known, others, look } = usePinned(of, "routing");
  const [mode, setMode] = useState(was.mode);
  const all = ((classes.data && classes.data.data) || []).map((/** @type {any} */ it) => [it.id, it.name ? `${it.name} (${it.id})` : it.id]);
  const isThere = !was.defaultTaskClass || all.some((/** @type {any} */ it) => it[0] === was.defaultTaskClass);
  const options = [["", "None"], ...all, ...(isThere ? [] : [[was.defaultTaskClass, was.defaultTaskClass]])];
  const save = async (/** @type {Record<string, string>} */ values) => {
    const held = /** @type {Record<string, any>} */ ({ mode: values.mode, defaultObjective: values.defaultObjective, defaultTaskClass: values.defaultTaskClass || null });
    const changed = Object.entries(held).filter(([member, it]) => it !== (was[member] ?? null));
    if (!changed.length) return "Nothing is changed yet.";
    const { stop } = await look(changed.map((it) => it[0]), (said, member) => said[member] ?? null);
    return stop ?? api("PUT", "routing", Object.fromEntries(changed));
  };
  const words = /** @type {Record<string, [string, any]>} */ ({
    mode: ["Mode", MODES[known.mode]?.[0] ?? known.mode],
    defaultObjective: ["Which is chosen of those that qualify", objective(known.defaultObjective)],
    defaultTaskClass: ["Class of tasks", known.defaultTaskClass ? html`<${Quoted} text=${known.defaultTaskClass} />` : "none"],
  });
  const saved = () => {
    say("Routing is changed.");
    done();
  };
  return html`<${Dialog} title="Change routing" close=${close}>
    <${Form} act=${save} submit="Put it in force" cancel=${close} done=${saved}>
      <${Field} name="mode" as="choice" label="Mode" options=${Object.entries(MODES).map(([is, it]) => [is, it[0]])} value=${was.mode} more=${{ onChange: (/** @type {any} */ it) => setMode(it.currentTarget.value) }} />
      <p>${MODES[mode]?.[1]}</p>
      <div role="status">${mode !== was.mode && html`<p class="note">${mode === "enforce" ? "From the next call on, calls may be sent elsewhere than they name, or refused; so are those for which neither they, nor their key, nor the workspace names a class of tasks. Preview what would be chosen first." : "From the next call on, nothing limits what models cost but what their providers do."}</p>`}</div>
      <${Field} name="defaultObjective" as="choice" label="Which is chosen of those that qualify" options=${OBJECTIVES} value=${was.defaultObjective} />
      <${Field} key=${String(all.length)} name="defaultTaskClass" as="choice" label="Class of tasks, where nothing names one" options=${options} value=${was.defaultTaskClass ?? ""} />
      <${Others} of=${others.map((it) => words[it])} />
    <//>
  <//>`;
}

/** @param {{ mode: string | null }} props */
function Preview({ mode }) {
  const api = useApi();
  const models = useRead("models?limit=500");
  const classes = useRead("task-classes?limit=500");
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const found = useRef(/** @type {any} */ (null));
  const of = (/** @type {any} */ it) => (it.data && it.data.data) || [];
  const named = of(classes).map((/** @type {any} */ it) => [it.id, it.name ? `${it.name} (${it.id})` : it.id]);
  const ask = async (/** @type {Record<string, string>} */ values) => {
    const number = (/** @type {string} */ name) => (values[name] === "" ? undefined : Number(values[name]));
    const needs = capabilitiesOf(values);
    const got = await api("POST", "route/preview", {
      ...(values.model.trim() && { model: values.model.trim() }), ...(values.taskClass && { taskClass: values.taskClass }), ...(values.objective && { objective: values.objective }),
      inputTokens: number("inputTokens"), maxOutput: number("maxOutput"), ...(needs.length && { needs }), ...(values.stream && { stream: true }), ...(values.humanOversight && { humanOversight: true }),
    });
    // That nothing qualifies is an answer too, with what would help.
    const isPlan = isDone(got) || (got.status === 409 && Array.isArray(got.said.candidates));
    setPlan(isPlan ? got.said : null);
    if (isPlan) setTimeout(() => found.current?.focus(), 0);
    return isPlan ? { ...got, status: 200 } : got;
  };
  return html`<section class="card" aria-labelledby="preview">
    <header><h2 id="preview">Preview</h2></header>
    <p>What would be chosen for a call, why, and what kept the others out. No model is called and nothing is spent.</p>
    <${Form} act=${ask} submit="Preview">
      <div class="pair">
        <${Field} name="model" label="Model that the call names" more=${{ list: "named-models", autocapitalize: "none", spellcheck: false }} hint="Empty for none." />
        <${Field} key=${String(named.length)} name="taskClass" as="choice" label="Class of tasks" options=${[["", "As the workspace has it"], ...named]} />
        <${Field} name="objective" as="choice" label="Aim" options=${[["", "As the class or the workspace has it"], ...OBJECTIVES]} />
      </div>
      <datalist id="named-models">${of(models).map((/** @type {any} */ it) => html`<option key=${`${it.provider}/${it.id}`} value=${`${it.provider}/${it.id}`}></option>`)}</datalist>
      <div class="pair">
        <${Field} name="inputTokens" as="number" label="Tokens in" value="1000" more=${{ min: 0 }} />
        <${Field} name="maxOutput" as="number" label="Tokens out, at most" more=${{ min: 1 }} hint="Empty for 1,000, or as many as the model can." />
      </div>
      <details><summary>What the call needs</summary>
        <${Capabilities} legend="It uses" />
        <${Field} name="stream" as="check" label="It is streamed" />
        <${Field} name="humanOversight" as="check" label="It says that a person oversees what comes of it" />
      </details>
    <//>
    <div ref=${found} tabindex="-1" role="region" aria-label="What would be chosen">${plan && html`<${Plan} of=${plan} mode=${mode} />`}</div>
  </section>`;
}

/** @param {{ of: any, mode: string | null }} props */
function Plan({ of, mode }) {
  const { candidates, relaxations = [] } = of;
  const best = Math.max(1, ...candidates.map((/** @type {any} */ it) => it.score));
  const columns = [
    { title: "Model", cell: (/** @type {any} */ it) => html`<${Quoted} text=${`${it.provider}/${it.model}`} />` },
    { title: "Qualifies", cell: (/** @type {any} */ it) => (it.qualifies ? html`<${Badge} kind="good">Yes<//>` : html`<${Badge} kind="bad">No<//> ${it.rejectedBy.map((/** @type {string} */ why) => WHY[why] ?? why).join(", ")}`) },
    { title: "Score", cell: (/** @type {any} */ it) => (it.qualifies ? html`<span class="number">${Math.round((100 * it.score) / best)} %</span><${Share} value=${it.score} most=${best} />` : "–") },
    { title: "Costs at most", cell: (/** @type {any} */ it) => (it.cost === null ? html`<${Badge} kind="waits">No price<//>` : html`<${Dollars} micros=${it.cost} />`) },
    { title: "Quality", kind: "end", cell: (/** @type {any} */ it) => html`<span class="number">${it.quality}</span>` },
    { title: "First token", kind: "end", cell: (/** @type {any} */ it) => html`<span class="number">${it.latencyMs === null ? "not known" : `${it.latencyMs.toLocaleString("en")} ms`}</span>` },
  ];
  return html`<div class="note">
      ${of.ok ? html`<p><strong>Chosen: <${Quoted} text=${`${of.provider}/${of.model}`} /></strong>${of.estimatedCostMicros !== undefined && html`, at most <${Dollars} micros=${of.estimatedCostMicros} />`}${of.jurisdiction && of.jurisdiction !== "unknown" && html`, under the law of <${Quoted} text=${of.jurisdiction} />`}.</p>` : html`<p><strong>No model qualifies.</strong> ${of.bindingConstraint && html`What binds: ${WHY[of.bindingConstraint] ?? of.bindingConstraint}.`}</p>`}
      ${mode === "shadow" && html`<p>The workspace is in shadow: the call would go to the model that it names all the same, and be told of this one.</p>`}
    </div>
    <p>Aim: ${objective(of.objective).toLowerCase()}. Class: ${of.taskClass ? html`<${Quoted} text=${of.taskClass} />` : "none"}.</p>
    <ul>${of.why.map((/** @type {string} */ it) => html`<li key=${it}><${Said} text=${inDollars(it)} /></li>`)}</ul>
    ${relaxations.length > 0 && html`<h3>What would help</h3><ul>${relaxations.map((/** @type {any} */ it) => html`<li key=${it.constraint + it.change}><${Said} text=${inDollars(it.change)} />: then <${Quoted} text=${it.admits.join(", ")} /> ${it.admits.length === 1 ? "qualifies" : "qualify"}.</li>`)}</ul>`}
    ${candidates.length ? html`<${Table} caption="Candidates" columns=${columns} rows=${candidates} rowKey=${(/** @type {any} */ it) => `${it.provider}/${it.model}`} />` : html`<${Empty} title="The workspace has no models."><p>There is nothing to choose from.</p><//>`}`;
}

/** What the router says, with sums as the rest of the page writes them. @param {string} said */
const inDollars = (said) => said.replace(/\b([0-9]+) micros\b/g, (_, micros) => dollars(Number(micros)));

/** A table as lines. @param {any[]} table */
const asLines = (table) => table.map(({ tool, source, sink }) => `${tool} = ${source}${sink ? " sink" : ""}`).join("\n");

/** A table as somebody changes it: lines, or JSON where lines would not say the same. @param {any[]} table */
function asText(table) {
  const { rules } = rulesOf(asLines(table));
  const isSame = JSON.stringify(rules) === JSON.stringify(table.map(({ tool, source, sink }) => ({ tool, source, ...(sink && { sink }) })));
  return isSame ? asLines(table) : JSON.stringify(table, null, 1);
}

/** @param {string} text @returns {{ rules: any[], wrong: number }} `wrong`: the first line that is none */
function rulesOf(text) {
  if (text.trim().startsWith("[")) return jsonRules(text);
  const rules = [];
  for (const [place, line] of text.split("\n").map((it) => it.trim()).entries()) {
    if (!line) continue;
    const [, tool, source, sink] = /^(.+?)\s*=\s*(\S+?)(\s+sink)?$/.exec(line) ?? [];
    if (!tool) return { rules: [], wrong: place + 1 };
    rules.push({ tool, source, ...(sink && { sink: true }) });
  }
  return { rules, wrong: 0 };
}

/** @param {string} text */
function jsonRules(text) {
  try {
    return { rules: JSON.parse(text), wrong: 0 };
  } catch {
    return { rules: [], wrong: 1 };
  }
}

/** @param {{ of: any, again: () => any }} props */
function Tools({ of, again }) {
  const { may } = usePlace();
  const [act, setAct] = useState("");
  const columns = [
    { title: "Tools named", cell: (/** @type {any} */ it) => html`<code><${Quoted} text=${it.tool} dir="ltr" /></code>` },
    { title: "Results count as", cell: (/** @type {any} */ it) => html`<code><${Quoted} text=${it.source} dir="ltr" /></code>` },
    { title: "Calling one", cell: (/** @type {any} */ it) => (it.sink ? html`<${Badge} kind="waits">Lets data out<//>` : "–") },
  ];
  const done = () => {
    setAct("");
    return again();
  };
  return html`<section class="card" aria-labelledby="tools">
    <header><h2 id="tools">What results of tools count as</h2>${may("ManageRouting") && html`<span class="acts"><${Button} act=${() => setAct("change")}>Change the table<//><${Button} act=${() => setAct("back")}>Back to the usual one<//></span>`}</header>
    <p>The first line that fits a tool's name says where its results come from, as traffic through this server is noted and compared with what actions declare. <code>*</code> stands for anything.</p>
    <details><summary>${count(of.toolTable.length, "line")}</summary><${Table} caption="Tools" columns=${columns} rows=${of.toolTable} rowKey=${(/** @type {any} */ it) => of.toolTable.indexOf(it)} /></details>
    ${act === "change" && html`<${ChangeTools} of=${of} close=${() => setAct("")} done=${done} />`}
    ${act === "back" && html`<${BackToUsual} of=${of} close=${() => setAct("")} done=${done} />`}
  </section>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function ChangeTools({ of, close, done }) {
  const api = useApi();
  const { say } = usePlace();
  const { began, known, others, look } = usePinned(of, "routing");
  const save = async (/** @type {Record<string, string>} */ { table }) => {
    const { rules, wrong } = rulesOf(table);
    if (wrong) return wrongFields({ toolTable: `Line ${wrong} is not of the form: name = source.` });
    const { stop } = await look(["toolTable"], (said, member) => said[member]);
    if (stop) return stop;
    const got = await api("PUT", "routing", { toolTable: rules });
    const errors = (got.error.errors ?? []).map((/** @type {any} */ it) => {
      const [, place] = /^toolTable\.([0-9]+)/.exec(it.field) ?? [];
      return place === undefined ? it : { field: "toolTable", message: `${asLines([rules[Number(place)]])}: ${it.message.replace(/^`[^`]*` /, "")}` };
    });
    return errors.length ? { ...got, error: { ...got.error, errors } } : got;
  };
  const saved = () => {
    say("The table is in force.");
    done();
  };
  return html`<${Dialog} title="Change the table" close=${close}>
    <p>What a tool gives is trusted less, or more, by what it counts as. A line that is gone lets the next one decide.</p>
    <${Form} act=${save} submit="Put it in force" cancel=${close} done=${saved}>
      <${Field} name="table" fault="toolTable" as="lines" label="Table" value=${asText(began.toolTable)} more=${{ rows: 16, spellcheck: false, autocapitalize: "none" }} hint=${html`A line a rule, such as <code>*webfetch* = web</code> or <code>send_mail = tool sink</code>; the first that fits wins. A source that is not known counts as the open web.`} />
      <${Others} of=${others.map(() => ["The table", html`<pre tabindex="0" aria-label="The table"><${Quoted} text=${asText(known.toolTable)} dir="ltr" /></pre>`])} />
    <//>
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function BackToUsual({ of, close, done }) {
  const api = useApi();
  const { say } = usePlace();
  const { known, others, look } = usePinned(of, "routing");
  const back = async () => {
    const { stop } = await look(["toolTable"], (said, member) => said[member]);
    return stop ?? api("PUT", "routing", { toolTable: null });
  };
  const saved = () => {
    say("The usual table is in force.");
    done();
  };
  return html`<${Dialog} title="Go back to the usual table?" close=${close}>
    <p>Every line that this workspace has of its own goes, and the program's table is in force from the next call on.</p>
    <${Form} act=${back} submit="Go back to it" kind="danger" cancel=${close} done=${saved}>
      <${Others} of=${others.map(() => ["The table", html`<pre tabindex="0" aria-label="The table"><${Quoted} text=${asText(known.toolTable)} dir="ltr" /></pre>`])} />
    <//>
  <//>`;
}
