// Who is in the workspace: members with their roles, invitations, what waits for a second owner, and teams.
import { Badge, Button, Dialog, Empty, Field, Form, Heading, Pager, Quoted, Shown, Tabs, Table, Time, at, html, usePlace } from "./kit.js";
import { Whom } from "./approvals.js";
import { Ending } from "./ending.js";
import { useState } from "./hooks.js";
import { Choice } from "./filters.js";
import { Who, useApi, useList, useRead, useWatched, useWhole } from "./list.js";
import { Others, chosenOver, isSame, usePinned } from "./meanwhile.js";
import { ShownOnce } from "./once.js";
import { Checks, SecondOwner, named, ticked, useTeams } from "./people.js";
import { Teams } from "./teams.js";
import { query as written } from "./server.js";
import { sought } from "./text.js";

const PART = 100;
const STATES = /** @type {Record<string, [any, string]>} */ ({ invited: ["waits", "Invited"], disabled: ["plain", "Removed"] });
/** @type {[string, string, string][]} */
export const ROLES = [
  ["owner", "Owner", "Everything, also service tokens and who is an owner."],
  ["admin", "Admin", "Everything but service tokens and owners."],
  ["member", "Member", "Their own agents and what these ask for."],
  ["analyst", "Analyst", "Reads spend, budgets, models and activity, without payees and summaries."],
  ["auditor", "Auditor", "Reads the ledger, the evidence, agents, approvals and members."],
];
/** @type {[string, string][]} */
const SHOWN = [["here", "Members and invited"], ["active", "Members"], ["invited", "Invited"], ["disabled", "Removed"]];
const isOwner = (/** @type {any} */ it) => it.role === "owner";
const ADMINISTERS = ["owner", "admin"];
const AGREE = "Where there are two owners or more, another one has to agree within 24 hours";
// How a change of owners comes to be in force, and an invitation of one, where it is not at once.
const CHANGED = { others: "Another owner has to agree within 24 hours; until then all stays as it is.", unknown: `${AGREE}; until then all stays as it is. Where there is only one, it is in force at once.` };
const INVITED = { others: "Another owner has to agree within 24 hours; nobody is invited before.", unknown: `${AGREE}; nobody is invited before.` };
/** Whether there are other owners, who have to agree: not known before all members were read. Whoever is invited is none yet. @typedef {"others" | "none" | "unknown"} Agreeing */

/** @param {{ query: Record<string, string> }} props */
export function Page({ query }) {
  const { wid } = usePlace();
  const isTeams = query.tab === "teams";
  const tabs = html`<${Tabs} name="Members or teams" of=${[
    { label: "Members", href: at(wid, "team"), on: !isTeams },
    { label: "Teams", href: `${at(wid, "team")}?tab=teams`, on: isTeams },
  ]} />`;
  return isTeams ? html`<${Teams} tabs=${tabs} />` : html`<${Members} tabs=${tabs} query=${query} />`;
}

/** Which change of an owner waits for another one, by whose it is. */
function useWaiting() {
  const { may } = usePlace();
  const list = useList(may("ReadApprovals") === "all" ? "approvals" : null, { state: "waiting", kind: "owner" }, ["approval"]);
  const waiting = new Map(list.items.map((/** @type {any} */ it) => [it.subject.principalId, it]));
  return { again: list.again, of: (/** @type {string} */ id) => waiting.get(id), all: list.items };
}

/** @param {{ tabs: any, query: Record<string, string> }} props */
function Members({ tabs, query }) {
  const { wid, may, workspace, go, say, again: whole } = usePlace();
  const list = useList("members", {}, ["approval"], PART);
  useWatched(list.again);
  const teams = useTeams();
  const waiting = useWaiting();
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const close = () => setOpen(null);
  const { state = "here", role = "", name = "" } = query;
  const manages = may("ManageMembers");
  // Whoever is looked for is found wherever they stand in the list.
  const wanted = sought(name.trim());
  const all = useWhole(wanted ? "members" : null, ["approval"]);
  const read = wanted ? { ...all, data: all.data && all.data.data, items: (all.data && all.data.data) || [], more: !!(all.data && all.data.nextCursor), step: `name ${wanted}` } : list;
  const isNamed = (/** @type {any} */ it) => !wanted || sought(`${it.name ?? ""} ${it.email}`).includes(wanted);
  const shown = read.items.filter((/** @type {any} */ it) => (state === "here" ? it.state !== "disabled" : it.state === state) && (!role || it.role === role) && isNamed(it));
  const isFiltered = state !== "here" || !!role || !!wanted;
  const owners = list.items.filter((/** @type {any} */ it) => isOwner(it) && it.state === "active");
  /** @type {Agreeing} */
  const agreeing = owners.length > 1 ? "others" : list.more || !list.data ? "unknown" : "none";
  // Whether somebody is the only owner is known once all members are.
  const isLast = (/** @type {any} */ it) => !list.more && owners.length === 1 && owners[0].id === it.id;
  const pick = (/** @type {Record<string, string>} */ more) => go(at(wid, "team") + written({ state: state === "here" ? "" : state, role, name, ...more }), true);
  const again = () => Promise.all([list.again(), all.again(), waiting.again()]);
  const done = (/** @type {any} */ got, /** @type {string} */ told) => {
    again();
    if (got.status === 202) return setOpen({ act: "asked", approval: got.said.approval });
    say(told);
    close();
    // What one may has changed with one's own role.
    if (open.of.principalId === workspace.principalId) whole();
  };
  const columns = [
    { title: "Person", kind: "wide", cell: (/** @type {any} */ it) => html`<${Quoted} text=${named(it)} />${it.principalId === workspace.principalId && " (you)"}${it.name && html`<br /><small><${Quoted} text=${it.email} /></small>`}` },
    { title: "Role", cell: (/** @type {any} */ it) => html`${ROLES.find((role) => role[0] === it.role)?.[1]}${STATES[it.state] && html` <${Badge} kind=${STATES[it.state][0]}>${STATES[it.state][1]}<//>`}${waiting.of(it.principalId) && html`<br /><a href=${at(wid, "approvals", waiting.of(it.principalId).id)}><${Badge} kind="waits">Waits for an owner<//></a>`}` },
    { title: "Teams", cell: (/** @type {any} */ it) => (it.teamIds.length ? it.teamIds.map((/** @type {string} */ id, /** @type {number} */ place) => html`${place > 0 && ", "}<${Quoted} key=${id} text=${teams.name(id)} />`) : "–") },
    { title: "Came", cell: (/** @type {any} */ it) => html`<${Time} at=${it.createdAt} />${it.invitedBy && html` by <${Who} id=${it.invitedBy} />`}` },
    ...(manages ? [{ title: "", kind: "end", cell: (/** @type {any} */ it) => html`<${Acts} of=${it} isLast=${isLast(it)} open=${setOpen} />` }] : []),
  ];
  return html`<${Heading} title="Team">${manages && html`<${Button} kind="main" act=${() => setOpen({ act: "invite" })}>Invite somebody<//>`}<//>
    ${tabs}
    ${!manages && html`<p class="lead">Owners and admins invite, change and remove members.</p>`}
    <${Pending} all=${waiting.all} />
    <div class="filters">
      <span class="choice"><label for="part">Find by name or e-mail</label><input id="part" type="search" value=${name} onInput=${(/** @type {any} */ it) => pick({ name: it.currentTarget.value })} /></span>
      <${Choice} label=${`Shown${read.more ? ", of those read so far" : ""}`} value=${state} options=${SHOWN} choose=${(/** @type {string} */ it) => pick({ state: it === "here" ? "" : it })} />
      <${Choice} label="Role" value=${role} options=${[["", "Any"], ...ROLES.map(([is, label]) => [is, label])]} choose=${(/** @type {string} */ it) => pick({ role: it })} />
    </div>
    <${Shown} of=${read} many=${shown.length}>${() =>
      shown.length
        ? html`<${Table} caption="Members" columns=${columns} rows=${shown} />${!wanted && html`<${Pager} of=${list} />`}`
        : html`<${Empty} title=${isFiltered ? "Nobody is shown by this choice." : "Nobody is here."}><p>${isFiltered ? html`<a href=${at(wid, "team")}>Show all members</a>` : "Whoever is invited appears here."}</p><//>${!wanted && html`<${Pager} of=${list} />`}`}<//>
    ${open && open.act === "invite" && html`<${open.of ? InviteAgain : Invite} of=${open.of} agreeing=${agreeing} teams=${teams} close=${close} done=${(/** @type {any} */ got) => { again(); setOpen(got.status === 202 ? { act: "asked", approval: got.said.approval } : { act: "invited", of: got.said }); }} />`}
    ${open && open.act === "invited" && html`<${Invited} of=${open.of} close=${close} />`}
    ${open && open.act === "change" && html`<${Change} of=${open.of} isLast=${isLast(open.of)} agreeing=${agreeing} teams=${teams} close=${close} done=${(/** @type {any} */ got) => done(got, "The member is changed.")} />`}
    ${open && open.act === "remove" && html`<${Remove} of=${open.of} agreeing=${agreeing} close=${close} done=${(/** @type {any} */ got) => done(got, "The member is removed.")} />`}
    ${open && open.act === "asked" && html`<${SecondOwner} approval=${open.approval} close=${close} />`}`;
}

/** Changes of owners that wait. @param {{ all: any[] }} props */
function Pending({ all }) {
  const { wid } = usePlace();
  if (!all.length) return null;
  return html`<div class="note"><p><strong>Waits for another owner</strong></p><ul>${all.map((it) => html`<li key=${it.id}><${Quoted} text=${it.summary} /><${Whom} of=${it} />, asked for by <${Who} id=${it.requestedBy} />. <a href=${at(wid, "approvals", it.id)}>${it.mayDecide ? "Look and decide" : "Look"}</a></li>`)}</ul></div>`;
}

/** What may be done about somebody; the rest is not offered. @param {{ of: any, isLast: boolean, open: (it: any) => void }} props */
function Acts({ of, isLast, open }) {
  const { may } = usePlace();
  const who = html`<span class="unseen"> <${Quoted} text=${named(of)} /></span>`;
  if (isOwner(of) && !may("ManageOwners")) return html`<small>Owners are changed by owners</small>`;
  if (of.state === "disabled") return html`<${Button} act=${() => open({ act: "invite", of })}>Invite again${who}<//>`;
  return html`<span class="acts">
    ${of.state === "invited" && html`<${Button} act=${() => open({ act: "invite", of })}>Invite again${who}<//>`}
    <${Button} act=${() => open({ act: "change", of })}>Change${who}<//>
    ${!isLast && html`<${Button} kind="danger" act=${() => open({ act: "remove", of })}>Remove${who}<//>`}
  </span>`;
}

/** The roles that this person may give. */
function useRoles() {
  const { may } = usePlace();
  const mine = ROLES.filter((it) => it[0] !== "owner" || may("ManageOwners"));
  return { options: mine.map(([is, label]) => [is, label]), about: html`<details><summary>What each role may do</summary><ul>${mine.map(([is, label, what]) => html`<li key=${is}><strong>${label}</strong>: ${what}</li>`)}</ul></details>` };
}

/** That an invitation waits for another owner. @param {{ agreeing: Agreeing }} props */
const OwnerInvited = ({ agreeing }) => agreeing !== "none" && html`<div class="note"><p>${INVITED[agreeing]}</p></div>`;

/** @param {{ agreeing: Agreeing, teams: any, close: () => void, done: (got: any) => void }} props */
function Invite({ agreeing, teams, close, done }) {
  const api = useApi();
  const { options, about } = useRoles();
  const [role, setRole] = useState("member");
  const invite = (/** @type {Record<string, string>} */ it) =>
    api("POST", "members", { email: it.email, role, ...(it.name && it.name.trim() && { name: it.name }), ...(teams.all.length && { teamIds: ticked(it, "teamIds") }) });
  return html`<${Dialog} title="Invite somebody" close=${close}>
    <${Form} act=${invite} submit="Invite" cancel=${close} done=${done}>
      <div class="pair"><${Field} name="email" as="email" label="E-mail" needed /><${Field} name="name" label="Name" hint="What others see." /></div>
      <${RolePick} role=${role} setRole=${setRole} options=${options} />
      ${about}
      ${role === "owner" && html`<${OwnerInvited} agreeing=${agreeing} />`}
      ${teams.all.length > 0 && html`<${Checks} legend="Teams" name="teamIds" of=${teams.all.map((/** @type {any} */ it) => [it.id, it.name])} />`}
    <//>
  <//>`;
}

/** Invites somebody again, as they stand now and not as a list had them. @param {{ of: any, agreeing: Agreeing, teams: any, close: () => void, done: (got: any) => void }} props */
function InviteAgain({ of, agreeing, teams, close, done }) {
  const read = useRead(memberAt(of));
  return html`<${Dialog} title="Invite again" of=${{ id: of.principalId, name: named(of) }} close=${close}>
    <p><strong><${Quoted} text=${named(of)} /></strong>, <${Quoted} text=${of.email} /></p>
    <${Shown} of=${read}>${(/** @type {any} */ it) => html`<${Again} of=${it} agreeing=${agreeing} teams=${teams} close=${close} done=${done} />`}<//>
  <//>`;
}

/** @param {{ of: any, agreeing: Agreeing, teams: any, close: () => void, done: (got: any) => void }} props */
function Again({ of, agreeing, teams, close, done }) {
  const api = useApi();
  const { options, about } = useRoles();
  const { began, known, others, look } = usePinned(of, memberAt(of));
  const [role, setRole] = useState(began.role);
  // Somebody who was invited as an owner already was agreed to then.
  const concerns = began.state === "invited" ? role !== began.role && [role, began.role].includes("owner") : role === "owner";
  const invite = async (/** @type {Record<string, string>} */ it) => {
    const { stop, now } = await look(["role", "state"], memberOf);
    // A role that nobody chose here follows what stands.
    if (stop && now && role === known.role) setRole(now.role);
    if (stop) return stop;
    return api("POST", "members", { email: now.email, role, teamIds: teamsOver(now, began, it, teams) });
  };
  return html`${began.state === "invited" && html`<p>A sign-in link that was made before is void from now on.</p>`}
    <${Form} act=${invite} submit="Invite" cancel=${close} done=${done}>
      <${RolePick} role=${role} setRole=${setRole} options=${options} />
      ${about}
      ${concerns && html`<${OwnerInvited} agreeing=${agreeing} />`}
      ${teams.all.length > 0 && html`<${Checks} legend="Teams" name="teamIds" of=${teams.all.map((/** @type {any} */ it) => [it.id, it.name])} chosen=${began.teamIds} />`}
      <${Others} of=${others.map((it) => said(known, it))} />
    <//>`;
}

const memberAt = (/** @type {any} */ of) => `members/${encodeURIComponent(of.principalId)}`;
const memberOf = (/** @type {any} */ it, /** @type {string} */ part) => it[part];

/** What others have changed of a member, in words. @param {any} member @param {string} part @returns {[string, string]} */
function said(member, part) {
  if (part === "role") return ["Role", ROLES.find((it) => it[0] === member.role)?.[1] ?? member.role];
  return ["State", STATES[member.state]?.[1] ?? "Member"];
}

/** Somebody's teams with what was ticked and unticked: where others put them meanwhile, and teams that are not offered, stay. @param {any} now @param {any} began @param {Record<string, string>} values @param {any} teams */
const teamsOver = (now, began, values, teams) => chosenOver(now.teamIds, { began: began.teamIds, chosen: ticked(values, "teamIds"), offered: teams.all.map((/** @type {any} */ it) => it.id) });

/** @param {{ role: string, setRole: (role: string) => void, options: string[][], disabled?: boolean }} props */
const RolePick = ({ role, setRole, options }) => html`<div class="field"><label for="role">Role</label><select id="role" name="role" onChange=${(/** @type {any} */ it) => setRole(it.currentTarget.value)}>${options.map(([is, label]) => html`<option key=${is} value=${is} selected=${is === role}>${label}</option>`)}</select></div>`;

/** @param {{ of: any, close: () => void }} props */
function Invited({ of, close }) {
  const who = html`<strong><${Quoted} text=${named(of)} /></strong>`;
  if (of.signInLink) return html`<${ShownOnce} title="The invitation" what="link" secret=${of.signInLink} close=${close}><p>Send this link to ${who} yourself: this server sends no mail. It signs in once, within an hour; whoever has it is let in.</p><//>`;
  return html`<${Dialog} title="Invited" close=${close}>
    <p>${who} is invited. Where this server sends mail, they are told there; somebody who has signed in to this server before signs in as they do.</p>
    <p class="acts"><button type="button" class="main" onClick=${close}>Close</button></p>
  <//>`;
}

/** @param {{ of: any, isLast: boolean, agreeing: Agreeing, teams: any, close: () => void, done: (got: any) => void }} props */
function Change({ of, isLast, agreeing, teams, close, done }) {
  const api = useApi();
  const { workspace } = usePlace();
  const { options, about } = useRoles();
  const { began: was, known, others, look } = usePinned(of, memberAt(of));
  const [role, setRole] = useState(was.role);
  const isSelf = of.principalId === workspace.principalId;
  const waits = (role === "owner" || was.role === "owner") && agreeing !== "none" && agreeing;
  const ends = ADMINISTERS.includes(was.role) && !ADMINISTERS.includes(role);
  const change = async (/** @type {Record<string, string>} */ it) => {
    const [isRole, isTeams] = [role !== was.role, !isSame(teamsOver(was, was, it, teams), was.teamIds)];
    if (!isRole && !isTeams) return "Nothing is changed yet.";
    const { stop, now } = await look(isRole ? ["role"] : [], memberOf);
    if (stop) return stop;
    return api("PATCH", memberAt(of), { ...(isRole && { role }), ...(isTeams && { teamIds: teamsOver(now, was, it, teams) }) });
  };
  return html`<${Dialog} title="Change a member" of=${{ id: of.principalId, name: named(of) }} close=${close}>
    <p><strong><${Quoted} text=${named(of)} /></strong>, <${Quoted} text=${of.email} /></p>
    <${Form} act=${change} submit="Save" cancel=${close} done=${done}>
      ${isLast ? html`<p><small>The only owner stays an owner: make another one first.</small></p>` : html`<${RolePick} role=${role} setRole=${setRole} options=${options} />${about}`}
      ${role !== was.role && html`<div class="note"><p>${waits ? CHANGED[waits] : `It is in force at once${isSelf ? "" : ", in their open pages too"}.`}${ends && ` Keys for administration that ${isSelf ? "you" : "they"} made end with it.`}${isSelf && " What you see here changes with your role."}</p></div>`}
      ${teams.all.length > 0 && html`<${Checks} legend="Teams" name="teamIds" of=${teams.all.map((/** @type {any} */ it) => [it.id, it.name])} chosen=${was.teamIds} />`}
      <${Others} of=${others.map((it) => said(known, it))} />
    <//>
  <//>`;
}

/** @param {{ of: any, agreeing: Agreeing, close: () => void, done: (got: any) => void }} props */
function Remove({ of, agreeing, close, done }) {
  const { workspace } = usePlace();
  const isSelf = of.principalId === workspace.principalId;
  return html`<${Ending} title=${isSelf ? "Leave this workspace?" : "Remove this member?"} path=${`members/${of.principalId}`} submit=${isSelf ? "Leave" : "Remove"} close=${close} done=${done}>
    <p><strong><${Quoted} text=${named(of)} /></strong>, <${Quoted} text=${of.email} /></p>
    <ul>
      <li>${isSelf ? "You are" : "They are"} let into nothing here from now on, in no session.</li>
      <li>Keys that count for them end, and further keys that they made for agents or for administration; what runs on these is cut.</li>
      <li>Keys for model traffic that they made for others stay, and agents' first keys: replace them on the page Keys, where their maker stands.</li>
      <li>Agents that act for them stay and pass to their sponsors; one without a sponsor waits for an owner. They are sponsor and kill owner of none any more.</li>
      <li>Teams that they answer for have no owner. What they did stays on record.</li>
    </ul>
    ${isOwner(of) && agreeing !== "none" && html`<div class="note"><p>An owner is removed once another one agrees, within 24 hours.</p></div>`}
  <//>`;
}
