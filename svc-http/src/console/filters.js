// Filters of a list or a report: each acts when it is chosen or left, and says what is wrong with it where something could not be read by it.
import { Faults, Said, faultOf, faultsOf, html, option } from "./kit.js";
import { useContext, useEffect, useId, useRef, useState } from "./hooks.js";
import { isDay } from "./server.js";

/** Filters, each of which says what is wrong with it where something could not be read by it. @param {{ of?: { got: any }, children?: any }} props */
export const Filters = ({ of, children }) => html`<${Faults.Provider} value=${faultsOf(of?.got?.error ?? {})}><div class="filters">${children}</div><//>`;

/** A filter that acts when it is chosen; what an address names beside the options is shown as it is. `fault`: the name that its faults have. @param {{ label: string, value: string, options: [string, any][], choose: (value: string) => void, fault?: string }} props */
export function Choice({ label, value, options, choose, fault }) {
  const id = useId();
  const wrong = useWrong(fault);
  const pick = (/** @type {any} */ event) => choose(event.currentTarget.value);
  const all = !value || options.some((it) => it[0] === value) ? options : [...options, [value, value]];
  return html`<span class="choice"><label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${pick} ...${marks(id, wrong)}>${all.map(([is, named]) => html`<option key=${is} value=${is} selected=${is === value}>${option(named)}</option>`)}</select>
    ${wrong && html`<${WrongFilter} id=${id} text="There is no such choice. Choose another." />`}</span>`;
}

/**
 * A filter that is typed and acts once it is left. `said`: what its fault is called; a day's is said where it is found. `choose` is told
 * whether the place in the browser's history is this filter's already.
 * @param {{ label: string, value: string, choose: (value: string, replace?: boolean) => void, fault?: string, said?: string, as?: "text" | "date", more?: Record<string, any>, children?: any }} props
 */
export function Typed({ label, value, choose, fault, said, as = "text", more = {}, children }) {
  const id = useId();
  const wrong = useWrong(fault);
  // What is being typed stays while the page is drawn anew.
  const [draft, setDraft] = useState(/** @type {string | null} */ (null));
  const type = (/** @type {any} */ event) => setDraft(event.currentTarget.value);
  const leave = (/** @type {any} */ event) => {
    setDraft(null);
    choose(event.currentTarget.value.trim());
  };
  const day = useDay(value, choose, setDraft);
  const acts = as === "date" ? day : { onInput: type, onChange: leave, onBlur: () => setDraft(null) };
  return html`<span class="choice"><label for=${id}>${label}</label>
    <input id=${id} type=${as} value=${draft ?? (as === "date" && !isDay(value) ? "" : value)} ...${acts} autocapitalize="none" spellcheck=${false} ...${marks(id, wrong)} ...${more} />
    ${children}${wrong && html`<${WrongFilter} id=${id} text=${said ?? wrong} />`}</span>`;
}

// A browser tells of every digit of a day's year: whoever pauses so long has typed all of it, unless it is no year that anybody means.
const PAUSE_MS = 1_000;
const FIRST_YEAR = "1000";

/** What a field for a day does: it acts once it is left, by Enter, or after a pause. @param {string} value @param {(value: string, replace?: boolean) => void} choose @param {(draft: string | null) => void} setDraft */
function useDay(value, choose, setDraft) {
  const timer = useRef(0);
  const isOwn = useRef(false);
  const current = useRef({ value, choose });
  current.current = { value, choose };
  useEffect(() => () => clearTimeout(timer.current), []);
  const act = (/** @type {any} */ field, isPaused = false) => {
    clearTimeout(timer.current);
    const now = current.current;
    // Half of a day is none, and not one that was taken away.
    if (field.validity.badInput || field.value === (isDay(now.value) ? now.value : "") || (isPaused && field.value && field.value < FIRST_YEAR)) return;
    setDraft(null);
    now.choose(field.value, isOwn.current);
    isOwn.current = true;
  };
  return {
    onFocus: () => void (isOwn.current = false),
    onInput: (/** @type {any} */ { currentTarget: field }) => {
      setDraft(field.value);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => act(field, true), PAUSE_MS);
    },
    onKeyDown: (/** @type {any} */ event) => event.key === "Enter" && act(event.currentTarget),
    onBlur: (/** @type {any} */ event) => {
      act(event.currentTarget);
      setDraft(null);
    },
  };
}

/** The fault of a filter. @param {string | undefined} fault */
function useWrong(fault) {
  const faults = useContext(Faults);
  return fault && faultOf(faults, fault);
}

/** @param {string} id @param {any} wrong */
const marks = (id, wrong) => (wrong ? { "aria-invalid": "true", "aria-describedby": `${id}-wrong` } : {});

/** @param {{ id: string, text: string }} props */
const WrongFilter = ({ id, text: said }) => html`<small id=${`${id}-wrong`} class="wrong"><${Said} text=${said} /></small>`;
