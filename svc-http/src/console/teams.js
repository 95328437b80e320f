// Teams: whose spend is counted together, made, changed and removed.
import { Button, Dialog, Empty, Field, Form, Heading, Pager, Quoted, Shown, Table, Time, html, usePlace } from "./kit.js";
import { Ending } from "./ending.js";
import { useState } from "./hooks.js";
import { Who, useApi, useList, useWatched } from "./list.js";
import { Others, chosenOver, isSame, usePinned } from "./meanwhile.js";
import { Checks, named, ticked, useMembers } from "./people.js";
import { count } from "./text.js";

/** @param {{ tabs: any }} props */
export function Teams({ tabs }) {
  const { may, say } = usePlace();
  const list = useList("teams");
  useWatched(list.again);
  const members = useMembers();
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const manages = may("ManageMembers");
  const close = () => setOpen(null);
  const done = (/** @type {string} */ told) => () => {
    say(told);
    close();
    return list.again();
  };
  const person = (/** @type {string} */ id) => members.all.find((it) => it.principalId === id);
  const columns = [
    { title: "Team", cell: (/** @type {any} */ it) => html`<${Quoted} text=${it.name} />` },
    { title: "Answers for it", cell: (/** @type {any} */ it) => (it.owner ? html`<${Who} id=${it.owner} />` : "Nobody") },
    { title: "Members", cell: (/** @type {any} */ it) => html`<${Inside} ids=${it.memberIds} person=${person} />` },
    { title: "Made", cell: (/** @type {any} */ it) => html`<${Time} at=${it.createdAt} /> by <${Who} id=${it.createdBy} />` },
    ...(manages ? [{ title: "", kind: "end", cell: (/** @type {any} */ it) => {
      const which = html`<span class="unseen"> <${Quoted} text=${it.name} /></span>`;
      return html`<span class="acts"><${Button} act=${() => setOpen({ act: "change", of: it })}>Change${which}<//><${Button} kind="danger" act=${() => setOpen({ act: "remove", of: it })}>Remove${which}<//></span>`;
    } }] : []),
  ];
  const make = () => setOpen({ act: "make" });
  return html`<${Heading} title="Teams">${manages && html`<${Button} kind="main" act=${make}>New team<//>`}<//>
    ${tabs}
    <p class="lead">What keys that are bound to a team spend is counted together: budgets and reports can be a team's. A team gives nobody a right.</p>
    <${Shown} of=${list}>${(/** @type {any[]} */ items) =>
      items.length
        ? html`<${Table} caption="Teams" columns=${columns} rows=${items} /><${Pager} of=${list} />`
        : html`<${Empty} title="There is no team yet."><p>${manages ? "Make one, bind keys to it, and give it a budget or look at its spend." : "Owners and admins make teams."}</p>${manages && html`<p><${Button} kind="main" act=${make}>Make the first<//></p>`}<//>`}<//>
    ${open && open.act === "make" && html`<${Keep} members=${members} close=${close} done=${done("The team is made.")} />`}
    ${open && open.act === "change" && html`<${Keep} of=${open.of} members=${members} close=${close} done=${done("The team is changed.")} />`}
    ${open && open.act === "remove" && html`<${Remove} of=${open.of} close=${close} done=${done("The team is removed.")} />`}`;
}

/** @param {{ ids: string[], person: (id: string) => any }} props */
function Inside({ ids, person }) {
  if (!ids.length) return "Nobody yet";
  const known = ids.map(person).filter(Boolean).slice(0, 3);
  const rest = ids.length - known.length;
  return html`${known.map((it, place) => html`${place > 0 && ", "}<${Quoted} key=${it.id} text=${named(it)} />`)}${rest > 0 && (known.length ? ` and ${count(rest, "more", "more")}` : count(ids.length, "person", "people"))}`;
}

/** Makes a team, or changes one. @param {{ of?: any, members: any, close: () => void, done: () => any }} props */
function Keep({ of, members, close, done }) {
  const api = useApi();
  const path = of && `teams/${of.id}`;
  const { began: was, known, others, look } = usePinned(of ?? { name: "", memberIds: [] }, path);
  const people = members.people;
  const offered = people.map((/** @type {any} */ it) => it.principalId);
  const keep = async (/** @type {Record<string, string>} */ it) => {
    const [owner, chosen] = [it.owner || null, ticked(it, "memberIds")];
    if (!of) return api("POST", "teams", { name: it.name, memberIds: chosen, ...(owner && { owner }) });
    const over = (/** @type {string[]} */ now) => chosenOver(now, { began: was.memberIds, chosen, offered });
    /** @type {Record<string, any>} */
    const body = { ...(it.name !== was.name && { name: it.name }), ...(owner !== (was.owner ?? null) && { owner }) };
    const isPeople = !isSame(over(was.memberIds), was.memberIds);
    if (!isPeople && !Object.keys(body).length) return "Nothing is changed yet.";
    const { stop, now } = await look(Object.keys(body), (said, member) => said[member] ?? null);
    // Whom somebody else let in or out meanwhile stays so.
    return stop ?? api("PATCH", path, { ...body, ...(isPeople && { memberIds: over(now.memberIds) }) });
  };
  const owners = [["", "Nobody"], ...people.map((/** @type {any} */ it) => [it.principalId, named(it)]), ...(was.owner && !offered.includes(was.owner) ? [[was.owner, was.owner]] : [])];
  return html`<${Dialog} title=${of ? "Change a team" : "New team"} of=${of && { id: of.id, name: of.name }} close=${close}>
    ${!members.data ? html`<${Shown} of=${members}>${() => null}<//>` : html`<${Form} act=${keep} submit=${of ? "Save" : "Make the team"} cancel=${close} done=${done}>
      <${Field} name="name" label="Name" value=${was.name} needed />
      <${Field} name="owner" as="choice" label="Answers for it" options=${owners} value=${was.owner ?? ""} hint="Whom others ask about it. It gives no right." />
      <${Checks} legend="Members" name="memberIds" of=${people.map((/** @type {any} */ it) => [it.principalId, it.name ? `${it.name} (${it.email})` : it.email])} chosen=${was.memberIds} empty="There is nobody to choose from." />
      ${!members.isWhole && html`<p><small>The newest ${offered.length} members are offered here; the others stay as they are, and each member's own teams are changed at the member.</small></p>`}
      <${Others} of=${others.map((member) => (member === "name" ? ["Name", html`<${Quoted} text=${known.name} />`] : ["Answers for it", known.owner ? html`<${Who} id=${known.owner} />` : "Nobody"]))} />
    <//>`}
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Remove({ of, close, done }) {
  return html`<${Ending} title="Remove this team?" path=${`teams/${of.id}`} close=${close} done=${done}>
    <p><strong><${Quoted} text=${of.name} /></strong> ends; its ${count(of.memberIds.length, "member stays a member", "members stay members")} of the workspace. Spend that was counted for it stays on record.</p>
    <p>A team that a budget is over, or that a key in force is bound to, is not removed before these are.</p>
  <//>`;
}
