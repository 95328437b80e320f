// Asking the server, and what is said where it refuses. Addresses are below wherever these files came from, so that the console
// works below a path of a proxy's too.
import { dayOn, plain, sentence } from "./text.js";

const ANSWER_MS = 30_000;
/** The address that the server's paths begin at. */
export const ROOT = new URL("../../", import.meta.url);

/**
 * What the server answered; status 0 where it did not.
 * @typedef {{ status: number, said: any, error: Refused, wait: number }} Got
 * @typedef {{ type?: string, message?: string, fix?: string, reason?: string, errors?: { field: string, message: string }[], [more: string]: any }} Refused
 */

/** Whether the session has ended is told to whoever listens. */
export const session = new EventTarget();

/** How far the server's clock is ahead of this machine's, in milliseconds. */
let ahead = 0;
/** This moment by the server's clock. */
export const now = () => Date.now() + ahead;

/** Whom this page was opened for. */
let person = "";
/** Keeps whom this page is for: nothing is changed in the name of somebody else who signs in in this browser. @param {string} id */
export function keepPerson(id) {
  person = id;
}
/** Whom this page is for. */
export const whose = () => person;

/**
 * What stands in the way of a change that somebody was about to make: that somebody else is signed in by now, or that nobody knows.
 * @param {string} whom
 * @returns {Promise<Got | null>}
 */
async function another(whom) {
  const who = whom ? await ask("GET", "api/me") : null;
  // Whose session is not taken hears so of the change itself.
  if (!who || who.status === 401 || who.status === 403) return null;
  if (!isDone(who)) return { status: who.status || 503, said: {}, error: { message: "the server did not say who is signed in here, so nothing was sent" }, wait: who.wait };
  if (who.said.id === whom) return null;
  session.dispatchEvent(new Event("another"));
  return { status: 409, said: {}, error: { message: "somebody else is signed in in this browser now; nothing was sent" }, wait: 0 };
}

/**
 * Sends JSON to the server, below its address; or a text of another type as it is. `whom`: in whose name a change is made, as it was
 * when they began; whoever the page is for may be somebody else by the time it is sent.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {string} [type]
 * @param {string} [whom]
 * @returns {Promise<Got>}
 */
export async function ask(method, path, body, type, whom = person) {
  const stop = method === "GET" ? null : await another(whom);
  if (stop) return stop;
  const headers = { "content-type": type ?? "application/json", "x-svc-csrf": "1" };
  const sent = body === undefined ? undefined : type ? String(body) : JSON.stringify(body);
  const init = method === "GET" ? {} : { headers, body: sent };
  try {
    const answer = await fetch(new URL(path, ROOT), { method, ...init, signal: AbortSignal.timeout(ANSWER_MS) });
    const text = await answer.text();
    const said = text ? JSON.parse(text) : {};
    ahead = Date.parse(answer.headers.get("date") ?? "") - Date.now() || 0;
    if (Math.abs(ahead) < 2_000) ahead = 0;
    if (answer.status === 401) session.dispatchEvent(new Event("ended"));
    return { status: answer.status, said, error: said.error ?? {}, wait: Number(answer.headers.get("retry-after")) || 0 };
  } catch {
    return { status: 0, said: {}, error: {}, wait: 0 };
  }
}

/** An address that leads back to where one is. @param {string} path */
function leadingBack(path) {
  const here = location.pathname.slice(ROOT.pathname.length - 1) + location.search;
  return `${new URL(path, ROOT).pathname}?next=${encodeURIComponent(here)}`;
}

/** What this browser keeps under a name; nothing where it does not let pages keep anything. @param {string} name */
export function keptHere(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Keeps something under a name, or nothing any more; a browser that keeps nothing knows less the next time. @param {string} name @param {string | null} value */
export function keepHere(name, value) {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // It is full, or closed to pages.
  }
}

// Where this browser keeps by which workspace's single sign-on somebody was here last: who has no other way is offered it again.
const SINGLE = "single-sign-on";

/** The address of signing in. */
export function signInAddress() {
  const wid = keptHere(SINGLE);
  return leadingBack("sign-in") + (wid ? `&workspace=${encodeURIComponent(wid)}` : "");
}

/** Keeps how this session was made. @param {string} proof */
export function keepProof(proof) {
  const [way, wid] = proof.split(":");
  keepHere(SINGLE, way === "sso" && wid ? wid : null);
}

/** That of a workspace's single sign-on. @param {string} wid */
export const singleAddress = (wid) => leadingBack(`api/sign-in/sso/${wid}`);

/**
 * A query of the members that hold something.
 * @param {Record<string, string | number | null | undefined>} members
 */
export function query(members) {
  const held = Object.entries(members).filter((it) => it[1] !== undefined && it[1] !== null && it[1] !== "");
  const text = new URLSearchParams(held.map(([name, value]) => [name, String(value)])).toString();
  return text ? `?${text}` : "";
}

/** @param {Got} got */
export const isDone = (got) => got.status >= 200 && got.status < 300;

/**
 * What is wrong with fields, as the server would say it; a form tells it at the fields.
 * @param {Record<string, string>} faults by the names of fields
 * @returns {Got}
 */
export const wrongFields = (faults) => {
  const errors = Object.entries(faults).map(([field, message]) => ({ field, message }));
  return { status: 400, said: {}, error: { errors }, wait: 0 };
};

const [DAYS_BEGIN, DAYS_END] = ["0001-01-01", "9999-01-01"];
/** Whether a text is a day as a calendar has it. @param {string} day */
export const isDay = (day) => /^\d{4}-\d\d-\d\d$/.test(day) && dayOn(day, 0) === day && day >= DAYS_BEGIN && day < DAYS_END;
/** Quoted in a message. @param {string} text */
const quoted = (text) => `\`${text.replaceAll("`", "'")}\``;

/**
 * What is wrong with the days that an address names, the last one included, by the names of filters.
 * @param {{ from: string, to: string }} days
 * @param {number} [most] how many days may be looked at
 * @returns {Record<string, string>}
 */
export function wrongDays({ from, to }, most) {
  const unread = Object.entries({ from, to }).filter(([, day]) => day && !isDay(day));
  if (unread.length) return Object.fromEntries(unread.map(([name, day]) => [name, `The address names ${quoted(day)} here, which is no day. Choose one.`]));
  if (from && to && to < from) return { to: "The last day is before the first." };
  return most && from && to && dayOn(from, most - 1) < to ? { from: `At most ${most} days are shown at once. Choose a later day, or an earlier last one.` } : {};
}

/**
 * What was read, or what is wrong with the filters that it was to be read by: then nothing was asked for and nothing is shown.
 * @template Read
 * @param {Read} read
 * @param {Record<string, string>} wrong by the names of filters
 * @returns {Read}
 */
export const readBy = (read, wrong) => (Object.keys(wrong).length ? { ...read, got: wrongFields(wrong), data: null, items: [], more: false } : read);

const NOT_KNOWN = "The server did not answer, so it is not known whether this was done. Look before you try again.";
const TOLD = /** @type {Record<string, string>} */ ({
  csrf: "The server did not take this for a page of its own. Open the console at the server's own address.",
  selection_changed: "What is meant has changed since you looked. Nothing was done: count again.",
  second_person_required: "A second person has to do this.",
  second_owner_required: "Another owner has to agree: not the one who asked.",
});

/**
 * What a refusal says and what to do about it, for people.
 * @param {Got} got
 * @param {boolean} [isWrite]
 * @returns {{ said: string, fix: string }}
 */
export function told(got, isWrite = false) {
  const { status, error, wait } = got;
  const said = sentence(plain(error.message || `the server answered ${status}`));
  const fix = error.fix ? sentence(plain(error.fix)) : "";
  if (status === 0) return { said: isWrite ? NOT_KNOWN : "The server does not answer.", fix: isWrite ? "" : "Try again in a moment." };
  if (status === 401) return { said: "You are no longer signed in.", fix: "Sign in again." };
  if (status === 404) return { said: "There is no such thing, or it is not yours to see.", fix: "" };
  if (status === 429 || status === 503) return { said, fix: `Try again in ${wait || 1} s.` };
  // Where there is no question that another owner could answer, it is said in its own words: the last one cannot leave.
  const own = error.type && !(error.type === "second_owner_required" && !error.approval) && TOLD[error.type];
  if (own) return { said: own, fix: "" };
  if (error.reason) return { said, fix: sentence(plain(error.reason)) };
  // What is wrong with a read stands in what is chosen on the page, and there is no request that a person could correct.
  if (error.errors?.length && !isWrite) return { said, fix: "" };
  return { said, fix };
}
