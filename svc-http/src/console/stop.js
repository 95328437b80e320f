// Stopping many agents at once, and what stays stopped: counted first, confirmed by the count, and lifted with a reason.
import { Badge, Button, Dialog, Empty, Field, Form, Heading, Pager, Quoted, Shown, Table, Time, Trouble, at, html, usePlace } from "./kit.js";
import { useEffect, useRef, useState } from "./hooks.js";
import { Standing } from "./agents.js";
import { Who, useApi, useList, useRead, useWhole } from "./list.js";
import { isDone, query, wrongFields } from "./server.js";
import { ASKS, count } from "./text.js";

// A longer list can be folded; it stands open.
const LONG = 12;
// How many agents a count names.
const NAMED = 100;
/** @type {[string, string][]} */
const BY = [["all", "Every agent"], ["namePrefix", "Agents whose name begins with"], ["principalId", "Agents of one person"], ["teamId", "Agents of a team's members"], ["template", "Agents with a mandate from a template"], ["action", "Agents with a mandate for a type of actions"]];

export function Page() {
  const { may } = usePlace();
  return html`<${Heading} title="Stop everything" />
    ${may("FreezeFleet") ? html`<${Fleet} />` : html`<p class="lead">An owner or an admin stops many agents at once. To stop one, open its page.</p>`}
    ${may("ReadHolds") && html`<${Holds} />`}`;
}

/** Chooses and counts, then confirms: what was counted is what is frozen, or nothing. */
function Fleet() {
  const api = useApi();
  const [by, setBy] = useState("all");
  const [counted, setCounted] = useState(/** @type {any} */ (null));
  const [done, setDone] = useState(/** @type {any} */ (null));
  const tally = async (/** @type {Record<string, string>} */ values) => {
    setDone(null);
    setCounted(null);
    const selector = by === "all" ? { all: true } : { [by]: values.value };
    const got = await api("POST", "freeze", { selector, dryRun: true });
    if (isDone(got)) setCounted({ selector, ...got.said });
    return got;
  };
  return html`<section class="card" aria-labelledby="fleet">
    <header><h2 id="fleet">Stop agents</h2></header>
    <p>They may do nothing until a person starts them again. First they are counted; nothing happens before you confirm the count.</p>
    <${Form} act=${tally} submit="Count them">
      <div class="pair"><div class="field"><label for="by">Which</label><select id="by" onChange=${(/** @type {any} */ it) => { setBy(it.currentTarget.value); setCounted(null); }}>${BY.map(([is, named]) => html`<option key=${is} value=${is} selected=${is === by}>${named}</option>`)}</select></div><${Value} key=${by} by=${by} /></div>
    <//>
    <div role="status">${counted && !counted.count && html`<${Empty} title="No agent is meant by this."><p>Choose otherwise.</p><//>`}
    ${done && html`<div class="note"><p><strong>${count(done.frozen ?? 0, "agent")} frozen.</strong>${done.alreadyFrozen > 0 && ` ${count(done.alreadyFrozen, "was", "were")} frozen before.`}${done.hold && " A hold stands until it is lifted below: agents that are made meanwhile are stopped too."}</p></div>`}</div>
    ${counted?.count > 0 && html`<${Confirm} of=${counted} recount=${(/** @type {any} */ said) => setCounted({ ...counted, ...said })} close=${() => setCounted(null)} done=${(/** @type {any} */ said) => { setCounted(null); setDone(said); }} />`}
  </section>`;
}

/** What goes with the kind of choice. @param {{ by: string }} props */
function Value({ by }) {
  const teams = useWhole(by === "teamId" ? "teams" : null);
  const members = useWhole(by === "principalId" ? "members" : null);
  const templates = useRead(by === "template" ? "templates?limit=500" : null);
  const of = (/** @type {any} */ it) => (it.data && it.data.data) || [];
  const choice = (/** @type {string} */ label, /** @type {any} */ options) => html`<${Field} key=${options.length} name="value" as="choice" label=${label} fault=${`selector.${by}`} options=${options} />`;
  if (by === "namePrefix") return html`<${Field} name="value" label="The beginning of the name" fault="selector.namePrefix" needed />`;
  if (by === "action") return html`<${Field} name="value" label="Type of actions" fault="selector.action" needed hint=${`For example ${Object.keys(ASKS).slice(0, 3).join(", ")}.`} />`;
  if (by === "teamId") return choice("Team", of(teams).map((/** @type {any} */ it) => [it.id, it.name]));
  if (by === "principalId") return choice("Person", of(members).map((/** @type {any} */ it) => [it.principalId, it.name ?? it.email]));
  if (by === "template") return choice("Template", of(templates).map((/** @type {any} */ it) => [it.name, it.name]));
  return null;
}

/** @param {{ of: any, recount: (said: any) => void, close: () => void, done: (said: any) => void }} props */
function Confirm({ of, recount, close, done }) {
  const api = useApi();
  const { selector, selectionDigest, alreadyFrozen } = of;
  const freeze = async (/** @type {Record<string, string>} */ { reason, typed }) => {
    if (typed.trim() !== String(of.count)) return wrongFields({ typed: `Type ${of.count} to confirm that so many are meant. Nothing was stopped.` });
    const got = await api("POST", "freeze", { selector, reason, confirmCount: of.count, selectionDigest });
    if (got.error.type === "selection_changed") {
      const again = await api("POST", "freeze", { selector, dryRun: true });
      if (isDone(again)) recount(again.said);
      return "What is meant has changed since it was counted. It is counted anew: look at it again. Nothing was done.";
    }
    return got;
  };
  return html`<${Dialog} title=${`Stop ${count(of.count, "agent")}?`} of=${{ id: JSON.stringify(selector) }} close=${close}>
    <p>${selector.all ? "Every agent of this workspace, and by a hold those that are made from now on." : "The agents that your choice means now."}${alreadyFrozen > 0 && ` ${count(alreadyFrozen, "is", "are")} frozen already.`}</p>
    <${Meant} key=${selectionDigest} of=${of} />
    <${Form} act=${freeze} submit="Stop them now" kind="danger" cancel=${close} done=${(/** @type {any} */ got) => done(got.said)}>
      <${Field} name="reason" label="Why" needed hint="Those whose agents these are can read it." />
      <${Field} name="typed" label=${`How many are meant: type ${of.count}`} needed more=${{ inputmode: "numeric" }} />
    <//>
  <//>`;
}

/** All agents that are meant; the first of them are named by the count, the others are read when they are asked for. @param {{ of: any }} props */
function Meant({ of: { selector, count: many, agents } }) {
  const api = useApi();
  const [all, setAll] = useState(/** @type {any[]} */ (agents));
  const [wrong, setWrong] = useState(/** @type {any} */ (null));
  const head = useRef(/** @type {any} */ (null));
  useEffect(() => {
    if (all !== agents) head.current?.focus();
  }, [all, agents]);
  const more = async () => {
    const { got, found } = await othersOf(api, selector, agents);
    setWrong(got);
    if (!got) setAll([...agents, ...found]);
  };
  const list = html`<ul class="few">${all.map((it) => html`<li key=${it.id}><${Quoted} text=${it.name} /> <${Standing} of=${it} /></li>`)}</ul>`;
  const isWhole = all.length > agents.length || many === agents.length;
  return html`${all.length > LONG ? html`<details open><summary ref=${head}>${isWhole ? count(all.length, "agent") : `The first ${all.length} of ${count(many, "agent")}`}</summary>${list}</details>` : list}
    ${wrong && html`<${Trouble} got=${wrong} />`}
    ${!isWhole && html`<p><${Button} act=${more}>Show the other ${(many - all.length).toLocaleString("en")}<//></p>`}`;
}

/** The agents that are meant beside those that the count names, or what was answered where they could not be read. @param {ReturnType<typeof useApi>} api @param {any} selector @param {any[]} named */
async function othersOf(api, selector, named) {
  const known = new Set(named.map((it) => it.id));
  /** @type {any[]} */
  const found = [];
  let cursor = null;
  do {
    const got = await api("GET", `agents${query({ limit: 500, cursor })}`);
    if (!isDone(got)) return { got, found };
    const others = got.said.data.filter((/** @type {any} */ it) => it.standing !== "removed" && !known.has(it.id));
    for (let from = 0; from < others.length; from += NAMED) {
      const part = others.slice(from, from + NAMED);
      // Who is meant is the server's to say: of so few agents it names each.
      const agentIds = part.map((/** @type {any} */ it) => it.id);
      const meant = selector.all ? null : await api("POST", "freeze", { selector: { ...selector, agentIds }, dryRun: true });
      if (meant && !isDone(meant)) return { got: meant, found };
      found.push(...(meant ? meant.said.agents : part));
    }
    cursor = got.said.nextCursor;
  } while (cursor);
  return { got: null, found };
}

function Holds() {
  const { may } = usePlace();
  const list = useList("holds", {}, ["hold", "agent"]);
  const [lifting, setLifting] = useState(/** @type {any} */ (null));
  const columns = [
    { title: "Hold", cell: (/** @type {any} */ it) => (it.scope === "all" ? "Every agent" : count(it.agents, "agent")) },
    { title: "State", cell: (/** @type {any} */ it) => (it.liftedAt ? html`<${Badge}>Lifted<//>` : html`<${Badge} kind="bad">Stands<//>`) },
    { title: "Why", cell: (/** @type {any} */ it) => html`<${Quoted} text=${it.reason} />` },
    { title: "Set", cell: (/** @type {any} */ it) => html`<${Time} at=${it.at} /> by <${Who} id=${it.by} />` },
    { title: "Lifted", cell: (/** @type {any} */ it) => (it.liftedAt ? html`<${Time} at=${it.liftedAt} /> by <${Who} id=${it.liftedBy} />` : "–") },
    { title: "", kind: "end", cell: (/** @type {any} */ it) => !it.liftedAt && may("LiftHolds") && html`<${Button} act=${() => setLifting(it)}>Lift<//>` },
  ];
  return html`<section class="card" aria-labelledby="holds">
    <header><h2 id="holds">Holds</h2></header>
    <${Shown} of=${list}>${(/** @type {any[]} */ items) => (items.length ? html`<${Table} caption="Holds" columns=${columns} rows=${items} /><${Pager} of=${list} />` : html`<${Empty} title="Nothing is held."><p>Stopping every agent at once sets a hold, which stands here until it is lifted.</p><//>`)}<//>
    ${lifting && html`<${Lift} of=${lifting} close=${() => setLifting(null)} done=${() => list.again()} />`}
  </section>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Lift({ of, close, done }) {
  const api = useApi();
  const { wid, say } = usePlace();
  const [asked, setAsked] = useState(/** @type {any} */ (null));
  const lift = (/** @type {Record<string, string>} */ { reason, restart }) => api("POST", `holds/${of.id}/lift`, { reason, restart: !!restart });
  const lifted = (/** @type {any} */ got) => {
    done();
    if (got.status === 202) return setAsked(got.said.approval);
    say("The hold is lifted.");
    close();
  };
  if (asked) return html`<${Dialog} title="Another owner has to agree" close=${close}>
    <p>Nothing is lifted yet. Another owner finds the question among the <a href=${at(wid, "approvals", asked.id)}>approvals</a>.</p><p class="acts"><button type="button" onClick=${close}>Close</button></p><//>`;
  return html`<${Dialog} title="Lift this hold?" of=${{ id: of.id, name: of.reason }} close=${close}>
    <p>It was set <${Time} at=${of.at} /> by <${Who} id=${of.by} />: <${Quoted} text=${of.reason} /></p>
    <${Form} act=${lift} submit="Lift it" cancel=${close} done=${lifted}>
      <${Field} name="reason" label="Why it is safe to go on" needed />
      <${Field} as="check" name="restart" label="Start again the agents that it froze" hint="Those that nothing else has stopped since. Without this, a person starts each." />
    <//>
  <//>`;
}
