// The agents of a workspace, and making one.
import { Badge, Button, Dialog, Empty, Field, Form, Heading, Kept, Money, Pager, Quoted, Shown, Table, Time, at, html, usePlace } from "./kit.js";
import { useCallback, useEffect, useMemo, useRef, useState } from "./hooks.js";
import { useApi, useList, useLive, useWhole } from "./list.js";
import { InOneLine, Terms, atTerms, bodyOf, useTemplates } from "./mandates.js";
import { ShownOnce } from "./once.js";
import { Further, toldOf, useSought } from "./seeking.js";
import { isDone, query as asQuery } from "./server.js";
import { count, sought } from "./text.js";

const PART = 25;
const WHOLE = "mandates.0.";
const STANDINGS = /** @type {Record<string, [any, string]>} */ ({ active: ["good", "Active"], frozen: ["bad", "Frozen"], removed: ["plain", "Removed"] });
/** @type {[string, string][]} */
export const TIERS = [["standard", "Standard"], ["restricted", "Restricted: a person is asked about everything"], ["trusted", "Trusted: less is asked about"]];

/** @param {{ of: { standing: string } }} props */
export const Standing = ({ of }) => html`<${Badge} kind=${STANDINGS[of.standing][0]}>${STANDINGS[of.standing][1]}<//>`;

/** Whether all of an agent is told: its kill owner, who has it by nothing else, is told which it is and how it stands. @param {any} of */
export const isWhole = (of) => of.mandates !== undefined;

/** Whether a member may be a sponsor: one who decides what agents ask. @param {{ role: string }} of */
export const mayAnswer = ({ role }) => !["analyst", "auditor"].includes(role);

/** What a month's payments come to. @param {{ of?: { currency: string, reserved: number, settled: number }[] }} props */
export const Spend = ({ of = [] }) => (of.length ? of.map((it) => html`<div key=${it.currency}><${Money} amount=${it.settled} currency=${it.currency} />${it.reserved > 0 && html` <small>and <${Money} amount=${it.reserved} currency=${it.currency} /> reserved</small>`}</div>`) : "–");

/** What is known of each agent beyond the list: read for what is shown, and again for those that something happened to. @param {any[]} items */
function useDetails(items) {
  const api = useApi();
  const { listen } = usePlace();
  const [details, set] = useState(/** @type {Record<string, any>} */ ({}));
  const asked = useRef(/** @type {Set<string>} */ (new Set()));
  const stale = useRef(/** @type {Set<string>} */ (new Set()));
  const read = useCallback(async (/** @type {string} */ id) => {
    const got = await api("GET", `agents/${id}`);
    if (isDone(got)) set((before) => ({ ...before, [id]: got.said }));
    else asked.current.delete(id);
  }, [api]);
  useEffect(() => {
    const readNew = () => {
      for (const { id } of items) {
        if (!asked.current.has(id)) {
          asked.current.add(id);
          read(id);
        }
      }
    };
    readNew();
    return listen(({ type }) => type === "on" && readNew());
  }, [items, read, listen]);
  const again = () => {
    const wanted = [...stale.current].filter((it) => asked.current.has(it));
    stale.current.clear();
    return Promise.all(wanted.map(read));
  };
  useLive(["agent", "action", "approval", "hold"], again, ({ type, id, agentId }) => {
    const meant = type === "reset" || type.startsWith("hold") ? [...asked.current] : [agentId ?? id ?? ""];
    for (const it of meant) stale.current.add(it);
  });
  return details;
}

/** @param {{ query: Record<string, string> }} props */
export function Page({ query }) {
  const { may, go, wid } = usePlace();
  const list = useList("agents", {}, ["agent"], PART);
  const [isNew, setNew] = useState(query.new !== undefined);
  // In the address, so that whoever looks at one of them comes back to what was found.
  const part = query.name ?? "";
  const [isTyping, setTyping] = useState(!!part);
  const setPart = (/** @type {string} */ name) => {
    // The field stays when what was typed into it is deleted.
    setTyping(true);
    go(at(wid, "agents") + asQuery({ name }), true);
  };
  const wanted = sought(part.trim());
  const seeking = useSought("agents", list, wanted, (it) => sought(it.name).includes(wanted));
  const known = new Set(list.items.map((/** @type {any} */ it) => it.id));
  const beyond = seeking.found.filter((it) => !known.has(it.id));
  const items = useMemo(() => [...list.items, ...beyond], [list.items, beyond.map((it) => it.id).join()]);
  const details = useDetails(items);
  // What was looked through once may have changed since.
  const shown = seeking.found.map((it) => (known.has(it.id) ? it : (details[it.id] ?? it)));
  const can = may("ManageAgents");
  return html`<${Heading} title="Agents">${can && html`<${Button} kind="main" act=${() => setNew(true)}>New agent<//>`}<//>
    <${Shown} of=${{ ...list, more: seeking.more }} many=${shown.length}>${(/** @type {any[]} */ all) =>
      all.length
        ? html`${(all.length > 5 || list.more || part || isTyping) && html`<div class="filters"><span class="choice"><label for="part">Find by name</label><input id="part" type="search" value=${part} onInput=${(/** @type {any} */ it) => setPart(it.currentTarget.value)} /></span></div>
            <p role="status">${wanted && toldOf(seeking, shown.length, "agent")}</p>`}
          ${shown.length > 0 && html`<${Agents} of=${shown} details=${details} />`}
          ${!shown.length && !seeking.isLooking && html`<${Empty} title=${seeking.more ? "None so far has this in its name." : "No agent has this in its name."}><p><a href=${at(wid, "agents")}>Show all of them</a></p><//>`}
          ${wanted ? html`<${Further} of=${seeking} />` : html`<${Pager} of=${list} />`}`
        : html`<${None} make=${() => setNew(true)} />`}<//>
    ${isNew && can && html`<${NewAgent} close=${() => setNew(false)} made=${(/** @type {string} */ id) => go(at(wid, "agents", id))} />`}`;
}

/** @param {{ of: any[], details: Record<string, any> }} props */
function Agents({ of: agents, details }) {
  const { wid } = usePlace();
  const of = (/** @type {any} */ it) => details[it.id] ?? {};
  const columns = [
    { title: "Agent", cell: (/** @type {any} */ it) => html`<a href=${at(wid, "agents", it.id)}><${Quoted} text=${it.name} /></a><br /><small>${isWhole(it) ? html`for <${Quoted} text=${it.principalEmail || it.principalId} />` : "you may freeze it"}</small>` },
    { title: "Standing", cell: (/** @type {any} */ it) => html`<${Standing} of=${it} />${isWhole(it) && it.tier !== "standard" && html` <small>${it.tier}</small>`}` },
    { title: "Mandates", cell: (/** @type {any} */ it) => (isWhole(it) ? html`<${Mandated} of=${it} />` : "–") },
    { title: "Paid this month", cell: (/** @type {any} */ it) => html`<${Spend} of=${of(it).spend} />` },
    { title: "Waiting", cell: (/** @type {any} */ it) => (of(it).waiting ? html`<a href=${`${at(wid, "approvals")}?agentId=${it.id}`}><${Badge} kind="waits">${of(it).waiting}<span class="unseen"> waiting, of <${Quoted} text=${it.name} /></span><//></a>` : "–") },
    { title: "Last seen", cell: (/** @type {any} */ it) => html`<${Time} at=${of(it).lastSeenAt} ago />` },
  ];
  return html`<${Table} caption="Agents" columns=${columns} rows=${agents} />`;
}

/** @param {{ of: any }} props */
function Mandated({ of: { mandates } }) {
  const active = mandates.filter((/** @type {any} */ it) => it.state === "active");
  if (!active.length) return html`<small>none in force</small>`;
  const [first, ...rest] = active;
  return html`<${Quoted} text=${first.name} />${rest.length > 0 && html` <small>and ${count(rest.length, "more", "more")}</small>`}`;
}

/** @param {{ make: () => void }} props */
function None({ make }) {
  const { may } = usePlace();
  if (may("ManageAgents")) return html`<${Empty} title="There is no agent yet."><p>An agent has a key by which it asks before it acts, and mandates that say what it may do.</p><p><${Button} kind="main" act=${make}>Make the first<//></p><//>`;
  return html`<${Empty} title="No agent acts for you."><p>An owner or an admin makes agents. Those that act for you, or that you answer for, appear here.</p><//>`;
}

/** @param {{ close: () => void, made: (id: string) => void }} props */
function NewAgent({ close, made }) {
  const { me, zone, currency } = usePlace();
  const api = useApi();
  const { all, look } = useTemplates();
  const members = useWhole("members");
  const [issued, setIssued] = useState(/** @type {any} */ (null));
  const [isWhole, setWhole] = useState(false);
  const people = ((members.data && members.data.data) || []).filter((/** @type {any} */ it) => it.state !== "disabled");
  const offered = (/** @type {any[]} */ those) => [["", "Nobody"], ...those.map((it) => [it.principalId, `${it.name ?? it.email} (${it.role})`])];
  const make = async (/** @type {Record<string, string>} */ values) => {
    const chosen = all.filter((/** @type {any} */ it) => values[`template ${it.name}`]);
    const { name, principalEmail, tier, sponsor, killOwner } = values;
    // The one of its own wording comes first, so that it is known what its faults are called.
    const whole = isWhole ? bodyOf(values, zone, null, WHOLE) : null;
    if (whole?.wrong) return whole.wrong;
    return (await look(chosen.map((/** @type {any} */ it) => it.name))) ?? atTerms(await api("POST", "agents", {
      name, principalEmail, tier,
      mandates: [...(whole ? [whole.body] : []), ...chosen.map((/** @type {any} */ it) => ({ template: it.name }))],
      ...(sponsor && { sponsor }), ...(killOwner && { killOwner }),
    }), WHOLE);
  };
  if (issued) return html`<${ShownOnce} title="The agent's key" secret=${issued.key} close=${() => made(issued.id)}><p>The agent sends it as <code>authorization: Bearer</code>.</p><//>`;
  return html`<${Dialog} title="New agent" close=${close}>
    <${Form} act=${make} submit="Make the agent" cancel=${close} done=${(/** @type {any} */ got) => setIssued(got.said)}>
      <${Field} name="name" label="Name" needed hint="What people see where it asks for something." />
      <${Field} name="principalEmail" as="email" label="Acts for" value=${me.email} needed hint="The e-mail address of the person whose agent it is. They may decide what it asks for." />
      <fieldset><legend>Mandates, from templates</legend>
        <small>What no mandate covers is left to a person, or denied, as the workspace's settings say.</small>
        ${all.map((/** @type {any} */ it) => html`<${Field} key=${it.id} as="check" name=${`template ${it.name}`} label=${html`<${Quoted} text=${it.name} />`} hint=${html`<${InOneLine} of=${it.mandate} />`} fault=${`template ${it.name}`} />`)}
      </fieldset>
      <${Kept} on=${isWhole}><fieldset><legend>A mandate of its own wording</legend><${Terms} currency=${currency} within=${WHOLE} /><p><${Button} act=${() => setWhole(false)}>Leave it out<//></p></fieldset><//>
      ${!isWhole && html`<p><${Button} act=${() => setWhole(true)}>Add a mandate of its own wording<//></p>`}
      <${Field} name="tier" as="choice" label="Tier" options=${TIERS} />
      <div class="pair">
        <${Field} name="sponsor" as="choice" label="Sponsor" options=${offered(people.filter(mayAnswer))} hint="Answers for it where its person has no sign-in." />
        <${Field} name="killOwner" as="choice" label="Kill owner" options=${offered(people)} hint="May freeze it, whatever their role." />
      </div>
    <//>
  <//>`;
}
