// What was typed into a dialog and not sent: it is asked about before it goes, and where the session ends it is kept in this tab for
// the same person, on the same page, until that person signs out. Secrets are never kept.
import { whose } from "./server.js";

// Where this tab keeps it.
const KEPT = "unsent";
/** What a browser takes for a secret, or this console. */
const SECRETS = "[type=password], .masked, [data-sealed], [autocomplete^=one-time]";
/** What confirms something: it is given for what stands there then. */
const CONFIRMS = "[name^=confirm]";

/**
 * Which dialog it is: its title, and what it is about where the same one opens for several things of a page: its id, what it is
 * called, and the version that it had.
 * @typedef {{ title: string, id?: string, name?: string, version?: number }} Box
 * @typedef {{ person: string, path: string, title: string, id: string, name: string, version?: number, values: Record<string, string | boolean> }} Unsent
 */

/** Tells whoever listens that there is more or less of it. */
export const unsent = new EventTarget();

/** @returns {Unsent[]} */
function all() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
  } catch {
    return [];
  }
}

/** @param {Unsent[]} list */
function put(list) {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(list));
  } catch {
    // A browser that keeps nothing more has lost it, as if it had not been tried.
  }
  unsent.dispatchEvent(new Event("changed"));
}

const isHere = (/** @type {Unsent} */ it, /** @type {Box} */ { title, id = "" }) => it.person === whose() && it.path === location.pathname && it.title === title && it.id === id;

/** What this person has not sent on this page. */
export const unsentHere = () => all().filter((it) => isHere(it, it));

/** @param {Box} box @returns {Unsent | undefined} */
export const unsentIn = (box) => all().find((it) => isHere(it, box));

/** Lets go of it. @param {Box} box */
export const drop = (box) => unsentIn(box) && put(all().filter((it) => !isHere(it, box)));

/** Lets go of what is somebody else's than who sits here now. */
export function dropOthers() {
  const mine = all().filter((it) => it.person === whose());
  if (mine.length < all().length) put(mine);
}

/** Lets go of all of it: whoever signs out leaves nothing in the tab. */
export const dropAll = () => put([]);

/** Whether a field holds something else than what it began with. @param {any} field */
function isTyped(field) {
  if (field.type === "checkbox") return field.checked !== field.defaultChecked;
  return field.localName === "select" || field.value.trim() !== field.defaultValue.trim();
}

/**
 * The fields that somebody has touched and that hold something else than before.
 * @param {Set<any>} touched
 */
export const typedOf = (touched) => [...touched].filter((it) => it.isConnected && it.name && isTyped(it));

/** Keeps what was typed into a dialog, but for secrets and confirmations. @param {Box} box @param {Set<any>} touched */
export function keepTyped(box, touched) {
  const plain = typedOf(touched).filter((it) => !it.matches(SECRETS) && !it.matches(CONFIRMS));
  const { title, id = "", name = "", version } = box;
  if (!title || !whose() || !plain.length) return;
  const values = Object.fromEntries(plain.map((it) => [it.name, it.type === "checkbox" ? it.checked : it.value]));
  put([...all().filter((it) => !isHere(it, box)), { person: whose(), path: location.pathname, title, id, name, version, values }]);
}

/**
 * Puts back what was kept into the fields that are there and were not led back yet; `done` holds those that were, by their names. A choice
 * waits for what it may hold to be read.
 * @param {any} form
 * @param {Unsent} kept
 * @param {Map<string, any>} done
 */
export function putBack(form, { values }, done) {
  for (const field of form.elements) {
    const was = done.get(field.name);
    if (!(field.name in values) || was === field || was === "changed" || field.matches(SECRETS)) continue;
    if (field.localName === "select" && ![...field.options].some((it) => it.value === values[field.name])) continue;
    done.set(field.name, field);
    if (field.type === "checkbox") field.checked = values[field.name];
    else field.value = values[field.name];
    // Whoever follows the field hears of it as if it had been typed.
    for (const heard of ["input", "change"]) field.dispatchEvent(new Event(heard, { bubbles: true }));
  }
}
