// Persons to choose from, teams by their names, and what waits for a second owner's word.
import { Dialog, Field, Group, Quoted, at, html, usePlace } from "./kit.js";
import { useWhole } from "./list.js";

/** @param {any} it a member */
export const named = (it) => it.name || it.email;

/** The members who may be chosen; whoever was removed is not. */
export function useMembers() {
  const { may } = usePlace();
  const read = useWhole(may("ReadMembers") ? "members" : null);
  const all = /** @type {any[]} */ ((read.data && read.data.data) || []);
  return { ...read, all, people: all.filter((it) => it.state !== "disabled"), isWhole: !!read.data && !read.data.nextCursor };
}

/** The teams of the workspace, and what one is called. */
export function useTeams() {
  const { may } = usePlace();
  const read = useWhole(may("ReadMembers") ? "teams" : null);
  const all = /** @type {any[]} */ ((read.data && read.data.data) || []);
  return { ...read, all, name: (/** @type {string} */ id) => all.find((it) => it.id === id)?.name ?? id };
}

/**
 * Several of many, each a box to tick.
 * @param {{ legend: string, name: string, of: [string, string][], chosen?: string[], hint?: any, empty?: string, fault?: string }} props
 */
export const Checks = ({ legend, name, of, chosen = [], hint, empty, fault = name }) => html`<${Group} legend=${legend} fault=${fault} hint=${hint}>
  ${of.length ? html`<div class="checks">${of.map(([id, label]) => html`<${Field} key=${id} as="check" name=${`${name} ${id}`} label=${html`<${Quoted} text=${label} />`} value=${chosen.includes(id)} fault=${`${name} ${id}`} />`)}</div>` : html`<p><small>${empty}</small></p>`}
<//>`;

/** What is ticked there. @param {Record<string, string>} values @param {string} name */
export const ticked = (values, name) => Object.keys(values).filter((it) => it.startsWith(`${name} `)).map((it) => it.slice(name.length + 1));

/** What is said where another owner has to agree first. @param {{ approval: any, close: () => void, children?: any }} props */
export function SecondOwner({ approval, close, children }) {
  const { wid } = usePlace();
  return html`<${Dialog} title="Another owner has to agree" close=${close}>
    <p>Nothing has changed yet. Another owner finds the question among the <a href=${at(wid, "approvals", approval.id)}>approvals</a> and has 24 hours to answer it.</p>
    ${children}
    <p class="acts"><button type="button" class="main" onClick=${close}>Close</button></p>
  <//>`;
}
