// What is said where it happens, for those who hear the page and those who see it, and what stands in the title. Nothing behind an
// open dialog is heard, so it is the dialog that says it.
import { useEffect, useState } from "./hooks.js";

// Browsers read aloud what changes: what is said twice goes away in between.
const APART_MS = 50;
const STANDS_MS = 10_000;
// Whoever says that a dialog did its work closes it: what it has said just before is said once more behind it.
const LEFT_MS = 1_000;

/** Whoever says aloud, the innermost last. @type {((kind: Kind, text: string) => void)[]} */
const speakers = [];

/** `said`: what came of an act, shown too. `told`: what others did, which the page shows where it belongs. @typedef {"said" | "told"} Kind */

/** What was said last, and when. @type {{ kind: Kind, text: string, at: number }} */
let last = { kind: "said", text: "", at: 0 };

/** @param {Kind} kind @param {string} text */
function speak(kind, text) {
  speakers.at(-1)?.(kind, "");
  setTimeout(() => {
    last = { kind, text, at: Date.now() };
    speakers.at(-1)?.(kind, text);
  }, APART_MS);
}

/** Says what came of an act. @param {string} text */
export const say = (text) => speak("said", text);

/** Says what others did meanwhile. @param {string} text */
export const tell = (text) => speak("told", text);

/** What is to be said here for as long as this is there and nothing lies over it: each for a while. */
export function useSpeaker() {
  const [held, set] = useState({ said: "", told: "" });
  useEffect(() => {
    const timers = { said: 0, told: 0 };
    const hear = (/** @type {Kind} */ kind, /** @type {string} */ text) => {
      clearTimeout(timers[kind]);
      if (text) timers[kind] = setTimeout(() => hear(kind, ""), STANDS_MS);
      set((before) => (before[kind] === text ? before : { ...before, [kind]: text }));
    };
    speakers.push(hear);
    return () => {
      speakers.splice(speakers.indexOf(hear), 1);
      if (Date.now() - last.at < LEFT_MS) speakers.at(-1)?.(last.kind, last.text);
      Object.values(timers).forEach(clearTimeout);
    };
  }, []);
  const hush = () => set((before) => (before.said ? { ...before, said: "" } : before));
  return { ...held, hush };
}

const titled = { page: "", count: "" };

/** What the page is called, or how much waits: the title says both, also of a tab that nobody looks at. @param {{ page?: string, count?: string }} more */
export function entitle(more) {
  Object.assign(titled, more);
  document.title = (titled.count && `(${titled.count}) `) + titled.page;
}
