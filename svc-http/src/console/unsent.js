// What was typed into a dialog and not sent: it is asked about before it goes, and where the session ends it is kept in this tab for
// the same person, on the same page. Secrets are never kept.
import { whose } from "./server.js";

// Where this tab keeps it.
const KEPT = "unsent";
/** What a browser takes for a secret, or this console. */
const SECRETS = "[type=password], .masked, [data-sealed], [autocomplete^=one-time]";

/** @typedef {{ person: string, path: string, title: string, values: Record<string, string | boolean> }} Unsent */

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

const isHere = (/** @type {Unsent} */ it, /** @type {string} */ title) => it.person === whose() && it.path === location.pathname && it.title === title;

/** What this person has not sent on this page. */
export const unsentHere = () => all().filter((it) => isHere(it, it.title));

/** @param {string} title @returns {Unsent | undefined} */
export const unsentIn = (title) => all().find((it) => isHere(it, title));

/** Lets go of it. @param {string} title */
export const drop = (title) => unsentIn(title) && put(all().filter((it) => !isHere(it, title)));

/** Lets go of what is somebody else's than who sits here now. */
export function dropOthers() {
  const mine = all().filter((it) => it.person === whose());
  if (mine.length < all().length) put(mine);
}

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

/** Keeps what was typed into a dialog, but for secrets. @param {string} title @param {Set<any>} touched */
export function keepTyped(title, touched) {
  const plain = typedOf(touched).filter((it) => !it.matches(SECRETS));
  if (!title || !whose() || !plain.length) return;
  const values = Object.fromEntries(plain.map((it) => [it.name, it.type === "checkbox" ? it.checked : it.value]));
  put([...all().filter((it) => !isHere(it, title)), { person: whose(), path: location.pathname, title, values }]);
}

/**
 * Puts back what was kept into the fields that are there and were not led back yet; `done` holds the names of those that were.
 * @param {any} form
 * @param {Unsent} kept
 * @param {Set<string>} done
 */
export function putBack(form, { values }, done) {
  for (const field of form.elements) {
    if (!(field.name in values) || done.has(field.name) || field.matches(SECRETS)) continue;
    done.add(field.name);
    if (field.type === "checkbox") field.checked = values[field.name];
    else field.value = values[field.name];
    // Whoever follows the field hears of it as if it had been typed.
    for (const heard of ["input", "change"]) field.dispatchEvent(new Event(heard, { bubbles: true }));
  }
}
