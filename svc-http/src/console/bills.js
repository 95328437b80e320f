// Providers' bills against what was metered: what differs, by day and model. A comparison changes nothing.
import { Badge, Button, Dialog, Dollars, Empty, Field, Form, Heading, Pager, Quoted, Shown, Table, Time, html, usePlace } from "./kit.js";
import { useState } from "./hooks.js";
import { Who, useApi, useList, useRead } from "./list.js";
import { query as asQuery, wrongFields } from "./server.js";
import { count, dollars } from "./text.js";

// More of a comparison at once is slow to show.
const PART = 200;

/** @param {string} day */
function dayAfter(day) {
  const next = new Date(`${day}T12:00:00Z`);
  if (Number.isNaN(next.getTime())) return day;
  next.setUTCDate(next.getUTCDate() + 1);
  return next.toISOString().slice(0, 10);
}

/** @param {string} day the first that is out */
function dayBefore(day) {
  const last = new Date(Date.parse(`${day}T12:00:00Z`) - 86_400_000);
  return Number.isNaN(last.getTime()) ? day : last.toISOString().slice(0, 10);
}

/** @param {{ by: number }} props micros that were billed above what was metered */
const Above = ({ by }) => (by === 0 ? html`<${Badge} kind="good">The same<//>` : html`<span class="number">${by > 0 ? "+" : "−"}${dollars(Math.abs(by))}</span>`);

export function Page() {
  const { may } = usePlace();
  const list = useList("billing-imports");
  const upstreams = useRead("upstreams?limit=500");
  const named = ((upstreams.data && upstreams.data.data) || []).map((/** @type {any} */ it) => [it.id, it.name]);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const nameOf = (/** @type {string} */ id) => named.find((/** @type {any} */ it) => it[0] === id)?.[1] ?? id;
  const columns = [
    { title: "Bill", cell: (/** @type {any} */ it) => html`<${Quoted} text=${nameOf(it.upstreamId)} /> <small>${it.from} to ${dayBefore(it.to)}</small>` },
    { title: "Billed", cell: (/** @type {any} */ it) => html`<${Dollars} micros=${it.billedMicros} />` },
    { title: "Metered", cell: (/** @type {any} */ it) => html`<${Dollars} micros=${it.meteredMicros} />` },
    { title: "Billed above", cell: (/** @type {any} */ it) => html`<${Above} by=${it.billedMicros - it.meteredMicros} />` },
    { title: "Compared", cell: (/** @type {any} */ it) => html`<${Time} at=${it.createdAt} /> by <${Who} id=${it.createdBy} />` },
    { title: "", kind: "end", cell: (/** @type {any} */ it) => it.differences.length > 0 && html`<${Button} act=${() => setOpen({ of: it })}>${count(it.differences.length, "difference")}<span class="unseen"> of ${nameOf(it.upstreamId)} ${it.from}</span><//>` },
  ];
  const made = (/** @type {any} */ got) => {
    list.again();
    setOpen({ of: got.said });
  };
  return html`<${Heading} title="Bills">${may("ManageBudgets") && html`<${Button} kind="main" act=${() => setOpen({ act: "compare" })}>Compare a bill<//>`}<//>
    <p class="lead">What providers billed for models, against what was metered here. A comparison changes no record: it shows where prices or meters are to be looked at.${!may("ManageBudgets") && " An owner or admin compares bills."}</p>
    <${Shown} of=${list}>${(/** @type {any[]} */ items) => (items.length ? html`<${Table} caption="Bills" columns=${columns} rows=${items} /><${Pager} of=${list} />` : html`<${Empty} title="No bill was compared yet."><p>A CSV will do whose first line names columns for the model, the day and the cost.</p><//>`)}<//>
    ${open && open.act === "compare" && html`<${Compare} named=${named} close=${() => setOpen(null)} done=${made} />`}
    ${open && open.of && html`<${Differences} of=${open.of} name=${nameOf(open.of.upstreamId)} close=${() => setOpen(null)} />`}`;
}

/** @param {{ named: any[], close: () => void, done: (got: any) => void }} props */
function Compare({ named, close, done }) {
  const api = useApi();
  const { wid } = usePlace();
  const compare = async (/** @type {Record<string, string>} */ { upstreamId, from, last }, /** @type {any} */ form) => {
    const file = form.elements.file.files[0];
    /** @type {Record<string, string>} */
    const missing = { ...(!from && { from: "The first day that the bill is of." }), ...(!last && { to: "The last day that the bill is of." }), ...(!file && { file: "Choose the file that the provider gave you." }) };
    if (Object.keys(missing).length) return wrongFields(missing);
    const text = await file.text().catch(() => null);
    if (text === null) {
      // One that was changed since it was chosen cannot be read any more, nor chosen anew while it stands there.
      form.elements.file.value = "";
      return wrongFields({ file: "The file has changed since you chose it. Choose it again." });
    }
    const to = dayAfter(last);
    if (!text.trimStart().startsWith("{") && !text.trimStart().startsWith("[")) return api("POST", `billing-imports${asQuery({ upstreamId, from, to })}`, text, "text/csv");
    let said = null;
    try {
      said = JSON.parse(text);
    } catch {
      return wrongFields({ file: "The file is neither CSV nor JSON." });
    }
    return api("POST", "billing-imports", { upstreamId, from, to, lines: Array.isArray(said) ? said : said.lines });
  };
  return html`<${Dialog} title="Compare a bill" close=${close}>
    ${named.length === 0 ? html`<p class="note">There is no upstream whose bill it could be.</p><p class="acts"><button type="button" onClick=${close}>Close</button></p>` : html`<${Form} act=${compare} submit="Compare it" cancel=${close} done=${done}>
      <${Field} name="upstreamId" as="choice" label="Whose bill" options=${named} />
      <div class="pair"><${Field} name="from" as="date" label="First day" needed /><${Field} name="last" as="date" label="Last day" fault="to" needed /></div>
      <${Field} name="file" as="file" label="The bill" needed more=${{ accept: ".csv,.json,text/csv,application/json" }} hint=${html`CSV whose first line names <code>model</code>, <code>day</code> or <code>date</code>, and <code>micros</code> or <code>cost</code> in dollars; or JSON with <code>lines</code>. Days are those of the workspace.`} />
    <//>`}
  <//>`;
}

/** @param {{ of: any, name: string, close: () => void }} props */
function Differences({ of, name, close }) {
  const [shown, setShown] = useState(PART);
  const columns = [
    { title: "Model", cell: (/** @type {any} */ it) => html`<${Quoted} text=${it.model} /> <small>${it.day}</small>` },
    { title: "Billed", cell: (/** @type {any} */ it) => html`<${Dollars} micros=${it.billedMicros} />` },
    { title: "Metered", cell: (/** @type {any} */ it) => html`<${Dollars} micros=${it.meteredMicros} />` },
    { title: "Billed above", cell: (/** @type {any} */ it) => html`<${Above} by=${it.billedMicros - it.meteredMicros} />` },
  ];
  const rest = of.differences.length - shown;
  return html`<${Dialog} title="What differs" close=${close}>
    <p><${Quoted} text=${name} />, ${of.from} to ${dayBefore(of.to)}: billed <${Dollars} micros=${of.billedMicros} />, metered <${Dollars} micros=${of.meteredMicros} />.</p>
    ${of.differences.length ? html`<${Table} caption="Differences" columns=${columns} rows=${of.differences.slice(0, shown)} rowKey=${(/** @type {any} */ it) => `${it.day} ${it.model}`} />` : html`<p>Every day and model is billed as it was metered.</p>`}
    ${rest > 0 && html`<p class="pager"><${Button} act=${() => setShown(shown + PART)}>Show more<//></p>`}
    <p class="acts"><button type="button" onClick=${close}>Close</button></p>
  <//>`;
}
