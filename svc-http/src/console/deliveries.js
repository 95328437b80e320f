// Calls to the outside and messages to people: what came of each, and trying one again.
import { Badge, Button, Empty, Facts, Heading, Id, Pager, Quoted, Shown, Table, Time, Trouble, at, html, usePlace } from "./kit.js";
import { useEffect, useRef, useState } from "./hooks.js";
import { About } from "./about.js";
import { Choice, Filters } from "./filters.js";
import { useApi, useList, useRead } from "./list.js";
import { isDone, query as asQuery } from "./server.js";
import { count } from "./text.js";

// Nothing tells live of a delivery that goes well, so what is under way is looked at again.
const AGAIN_MS = 2_000;
const TURNS_MAX = 60;
const STATES = /** @type {Record<string, [any, string]>} */ ({ waiting: ["waits", "Waiting"], sending: ["waits", "Being sent"], delivered: ["good", "Delivered"], failed: ["bad", "Given up"], replaced: ["plain", "Not needed any more"] });
/** @type {[string, string][]} */
const KINDS = [["", "Every kind"], ["callbacks", "Callbacks"], ["mail", "Mail"], ["chat", "Rooms"], ["slack", "Slack"], ["export", "Export"]];
const FILTERS = { kind: "Kind", state: "State" };
const isOpen = (/** @type {any} */ it) => it.state === "waiting" || it.state === "sending";
const isRetried = (/** @type {any} */ it) => it.state === "waiting" || it.state === "failed";

/** @param {{ of: { state: string } }} props */
const State = ({ of }) => html`<${Badge} kind=${STATES[of.state]?.[0]}>${STATES[of.state]?.[1] ?? of.state}<//>`;

/** @param {{ item?: string, query: Record<string, string> }} props */
export const Page = ({ item, query }) => (item === undefined ? html`<${All} query=${query} />` : html`<${One} id=${item} />`);

/** Reads again while something is under way. @param {boolean} isUnderWay @param {() => any} again */
function useAgain(isUnderWay, again) {
  const current = useRef(again);
  current.current = again;
  useEffect(() => {
    if (!isUnderWay) return;
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
      if (turns > TURNS_MAX) clearInterval(timer);
      else if (!document.hidden) current.current();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [isUnderWay]);
}

/** @param {{ query: Record<string, string> }} props */
function All({ query }) {
  const { wid, go } = usePlace();
  const { state = "", kind = "" } = query;
  const list = useList("deliveries", { state, kind }, ["integration"]);
  useAgain(list.items.some((/** @type {any} */ it) => isOpen(it) && (!it.nextAt || Date.parse(it.nextAt) - Date.now() < 60_000)), list.again);
  const set = (/** @type {string} */ name) => (/** @type {string} */ value) => go(at(wid, "deliveries") + asQuery({ state, kind, [name]: value }));
  const last = (/** @type {any} */ it) => it.attempts[it.attempts.length - 1];
  const columns = [
    { title: "Delivery", cell: (/** @type {any} */ it) => html`<a id=${it.id} href=${at(wid, "deliveries", it.id)} aria-labelledby=${["", "-to", "-since"].map((part) => it.id + part).join(" ")}>${KINDS.find((one) => one[0] === it.kind)?.[1] ?? it.kind}<span class="unseen"> ${it.id.slice(-6)}</span></a> <small id=${`${it.id}-to`}>to <${Quoted} text=${it.host || "nowhere"} dir="ltr" /></small>` },
    { title: "About", cell: (/** @type {any} */ it) => html`<${About} id=${it.subject} />` },
    { title: "State", cell: (/** @type {any} */ it) => html`<${State} of=${it} />${last(it)?.error && html`<br /><small><${Quoted} text=${last(it).error} /></small>`}` },
    { title: "Tries", cell: (/** @type {any} */ it) => html`${it.attempts.length}${it.nextAt && html` <small>next <${Time} at=${it.nextAt} ago /></small>`}` },
    { title: "Since", cell: (/** @type {any} */ it) => html`<span id=${`${it.id}-since`}><${Time} at=${it.createdAt} /></span>` },
    { title: "", kind: "end", cell: (/** @type {any} */ it) => isRetried(it) && html`<${Retry} of=${it} done=${list.again} />` },
  ];
  const isFiltered = !!(state || kind);
  return html`<${Heading} title="Deliveries"><a class="button" href=${at(wid, "integrations")}>Integrations</a><//>
    <p class="lead">What tells of something is tried up to eight times within a day, a test once. What could not be delivered is given up, and stays here for somebody to have it tried again.</p>
    <${Filters} of=${list}>
      <${Choice} label="Kind" fault="kind" value=${kind} options=${KINDS} choose=${set("kind")} />
      <${Choice} label="State" fault="state" value=${state} options=${[["", "Every state"], ...Object.entries(STATES).map(([is, it]) => [is, it[1]])]} choose=${set("state")} />
      ${isFiltered && html`<a href=${at(wid, "deliveries")}>Show everything</a>`}
    <//>
    <${Shown} of=${list} filters=${FILTERS}>${(/** @type {any[]} */ items) =>
      items.length
        ? html`<${Table} caption="Deliveries" columns=${columns} rows=${items} /><${Pager} of=${list} />`
        : list.more
          ? html`<${Empty} title="Nothing of this kind so far back."><${Pager} of=${list} /><//>`
          : html`<${Empty} title=${isFiltered ? "Nothing of this kind." : "Nothing was sent yet."}>${!isFiltered && html`<p>Once an integration tells somebody of something, it appears here with what came of it.</p>`}<//>`}<//>`;
}

/** @param {{ of: any, done: () => any }} props */
function Retry({ of, done }) {
  const api = useApi();
  const { say } = usePlace();
  const [got, set] = useState(/** @type {any} */ (null));
  const retry = async () => {
    const said = await api("POST", `deliveries/${of.id}/retry`, {});
    set(isDone(said) ? null : said);
    if (isDone(said)) say("It is tried again now.");
    await done();
  };
  return html`<${Button} act=${retry}>Try again<span class="unseen"> ${of.id.slice(-6)}</span><//>${got && html`<${Trouble} got=${got} isWrite=${true} />`}`;
}

/** @param {{ id: string }} props */
function One({ id }) {
  const { wid } = usePlace();
  return html`<p class="back"><a href=${at(wid, "deliveries")}>All deliveries</a></p><${Heading} title="Delivery" /><div class="card"><${Came} id=${id} /></div>`;
}

/** What came of a delivery, as long as it is under way; `told` is called once that is known. @param {{ id: string, told?: () => any }} props */
export function Came({ id, told }) {
  const read = useRead(`deliveries/${encodeURIComponent(id)}`, ["integration"]);
  const isUnderWay = !read.data || isOpen(read.data);
  useAgain(!!read.data && isUnderWay, read.again);
  useEffect(() => void (isUnderWay || told?.()), [isUnderWay]);
  return html`<${Shown} of=${read}>${(/** @type {any} */ it) => html`<${Tries} of=${it} again=${read.again} />`}<//>`;
}

/** @param {{ of: any, again: () => any }} props */
function Tries({ of, again }) {
  const rows = of.attempts.map((/** @type {any} */ it, /** @type {number} */ place) => ({ ...it, place: place + 1 }));
  const columns = [
    { title: "Try", cell: (/** @type {any} */ it) => it.place },
    { title: "When", cell: (/** @type {any} */ it) => html`<${Time} at=${it.at} />` },
    { title: "Answer", cell: (/** @type {any} */ it) => html`${it.status ?? ""} ${it.error && html`<${Quoted} text=${it.error} />`}${it.status === undefined && !it.error && "taken"}` },
    { title: "Took", cell: (/** @type {any} */ it) => html`<span class="number">${it.ms.toLocaleString("en")} ms</span>` },
  ];
  return html`<div role="status"><p><${State} of=${of} /> ${of.attempts.length ? count(of.attempts.length, "try", "tries") : "not tried yet"}${of.nextAt && isOpen(of) && html`, next <${Time} at=${of.nextAt} ago />`}</p></div>
    <${Facts} of=${[
      ["Kind", KINDS.find((it) => it[0] === of.kind)?.[1] ?? of.kind],
      ["To", html`<code><${Quoted} text=${of.host} dir="ltr" /></code>`],
      ["About", html`<${About} id=${of.subject} />`],
      ["Since", html`<${Time} at=${of.createdAt} />`],
      ["Id", html`<${Id} id=${of.id} />`],
    ]} />
    ${rows.length > 0 && html`<${Table} caption="Tries" columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ it) => String(it.place)} />`}
    ${isRetried(of) && html`<p class="acts"><${Retry} of=${of} done=${again} /></p>`}`;
}
