// What things of a workspace are called, for lists of ids and for choosing one. Who may not read the list of a kind learns the
// names that reports tell.
import { Quoted, html, usePlace } from "./kit.js";
import { Choice, Typed } from "./filters.js";
import { useRead, useRemembered, useWhole } from "./list.js";
import { plain } from "./text.js";

const MOST = 500;
// Lists of people are read to their end: whoever is chosen from them may have come long ago.
const WHOLE = ["team", "principal"];
/** @type {Record<string, [string, string, (it: any) => [string, string]]>} by kind: the right to read its list, the list, an item's id and name */
const LISTS = {
  team: ["ReadMembers", "teams", (it) => [it.id, it.name]],
  principal: ["ReadMembers", "members", (it) => [it.principalId, it.name ? `${it.name} (${it.email})` : it.email]],
  agent: ["ReadAgents", "agents", (it) => [it.id, it.name]],
  key: ["ManageKeys", "keys", (it) => [it.id, `${it.label || "unnamed"} (${it.prefix}…)`]],
  taskClass: ["ReadReports", "task-classes", (it) => [it.id, it.name ? `${it.name} (${it.id})` : it.id]],
};

/**
 * The names of a kind's things; none is read where the kind is none of these. `isWhole`: no further ones exist.
 * @param {string} kind
 * @returns {{ of: Map<string, string>, isRead: boolean, isWhole: boolean }}
 */
export function useNames(kind) {
  const { may } = usePlace();
  const [right, list, pair] = LISTS[kind] ?? [];
  const isListed = !!right && may(right) === "all";
  const isWhole = isListed && WHOLE.includes(kind);
  const whole = useWhole(isWhole ? list : null);
  const part = useRead(isWhole ? null : isListed ? `${list}?limit=${MOST}` : right && may("ReadReports") ? `reports/spend?by=${kind}` : null, kind === "agent" ? ["agent"] : []);
  const read = isWhole ? whole : part;
  const rows = read.data ? (isListed ? read.data.data.filter(isThere) : read.data.rows.filter((/** @type {any} */ it) => it.key)) : [];
  const of = new Map(rows.map((/** @type {any} */ it) => (isListed && pair ? pair(it) : [it.key, it.name || it.key])));
  return { of, isRead: !right || read.got !== null, isWhole: isListed && !!read.data && read.data.nextCursor === null };
}

/** Whether something is still there to be named in anything new. @param {any} it */
const isThere = ({ standing, state }) => standing !== "removed" && state !== "revoked" && state !== "disabled" && state !== "expired";

/** One thing by its name. @param {{ kind: string, id?: string, names: { of: Map<string, string> } }} props */
export const Named = ({ id = "", names }) => html`<${Quoted} text=${names.of.get(id) ?? id} />`;

/** Every agent that the list tells, removed ones too, by id and name; `isCut` where there are more. */
export function useAgents() {
  const { may } = usePlace();
  const { data } = useRead(may("ReadAgents") ? `agents?limit=${MOST}` : null, ["agent"]);
  const of = apart(((data && data.data) || []).map((/** @type {any} */ it) => [it.id, it.name]));
  return { of, isCut: !!data && data.nextCursor !== null };
}

/** Names as they are chosen from: those that look the same have the end of their ids beside them. @param {[string, string][]} of @returns {[string, string][]} */
function apart(of) {
  /** @type {Map<string, number>} */
  const many = new Map();
  // A choice shows many spaces as one.
  const shown = (/** @type {string} */ name) => plain(name).replace(/\s+/g, " ").trim();
  for (const [, name] of of) many.set(shown(name), (many.get(shown(name)) ?? 0) + 1);
  return of.map(([id, name]) => [id, (many.get(shown(name)) ?? 0) > 1 ? `${name} (…${id.slice(-6)})` : name]);
}

/**
 * A filter by agent. Where there are more than can be offered, another one is named by its id.
 * @param {{ agents: { of: [string, string][], isCut: boolean }, value: string, choose: (id: string) => void, label?: string, all?: string, fault?: string }} props
 */
export function AgentChoice({ agents: { of, isCut }, value, choose, label = "Agent", all = "Every agent", fault }) {
  const isOffered = !value || of.some((it) => it[0] === value);
  const other = useRemembered(isCut && !isOffered && value.startsWith("agt_") ? `agents/${value}` : null);
  /** @type {[string, string][]} */
  const options = [["", all], ...of, .../** @type {[string, string][]} */ (other ? [[value, other.name]] : [])];
  if (!of.length && !value) return null;
  return html`<${Choice} label=${label} fault=${isCut ? undefined : fault} value=${value} options=${options} choose=${choose} />
    ${isCut && html`<${Typed} label="Or an older one, by its id" fault=${fault} value=${isOffered ? "" : value} choose=${choose} more=${{ placeholder: "agt_…", autocomplete: "off" }} />`}`;
}
