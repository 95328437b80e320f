// What pages are made of. Others' text goes through `Quoted` and is text alone: none of it can be markup, turn round what stands
// beside it, or hide in it.
import { createContext, h } from "./preact.js";
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from "./hooks.js";
import htm from "./htm.js";
import { entitle, useSpeaker } from "./aloud.js";
import { focused, leadBack, leadTo } from "./keyboard.js";
import { ROOT, isDone, now, session, signInAddress, told } from "./server.js";
import * as text from "./text.js";
import { drop, keepTyped, putBack, typedOf, unsentIn } from "./unsent.js";

/** @type {(parts: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);

/**
 * Where one is: the workspace, who one is in it, and what one may; `again` reads who one is and the workspace's settings anew.
 * @typedef {{
 *   me: any, workspace: any, wid: string, zone: string, currency: string,
 *   may: (right: string) => "all" | "own" | undefined,
 *   isKillOwner: boolean | undefined,
 *   listen: (hear: (told: import("./live.js").Told) => void) => () => void,
 *   go: (address: string, replace?: boolean) => void,
 *   say: (text: string) => void,
 *   again: () => Promise<any>,
 *   moved: number,
 * }} At
 */
export const Place = createContext(/** @type {At} */ (/** @type {unknown} */ (null)));
/** @returns {At} */
export const usePlace = () => useContext(Place);

/**
 * The address of a page of a workspace.
 * @param {string} wid
 * @param {...string} parts
 */
export const at = (wid, ...parts) => ROOT.pathname + ["w", wid, ...parts].map(encodeURIComponent).join("/");

// Texts.

/** Others' text. The name of a sign is read from the left, whichever way what stands around it is. @param {{ text: unknown, dir?: string }} props */
export const Quoted = ({ text: said, dir = "auto" }) => html`<bdi dir=${dir}>${text.plain(said).split(text.NAMED).map((it, place) => (place % 2 ? html`<bdi dir="ltr">${it}</bdi>` : it))}</bdi>`;

/** An address or a host, with the name that the network has for it where it is written in other letters. @param {{ of: string }} props */
export const Recipient = ({ of }) => html`<${Quoted} text=${of} />${text.network(of) && html` (<code>${text.network(of)}</code>)`}`;

/** JSON that others sent, all of it, on as many lines as it takes. @param {{ of: unknown }} props */
export const Json = ({ of }) => html`<pre class="whole"><bdi dir="ltr">${text.json(of)}</bdi></pre>`;

/** Others' texts in a row: where one ends is seen also where it holds a comma. @param {{ of: string[], dir?: string }} props */
export const Entries = ({ of, dir }) => of.map((it, place) => html`${place > 0 && ", "}<code key=${place} class="entry"><${Quoted} text=${it} dir=${dir} /></code>`);

/** A message of the server's: what it quotes stands between backticks. @param {{ text: string }} props */
export const Said = ({ text: said }) =>
  said.split("`").map((part, place) => (place % 2 ? html`<code><${Quoted} text=${part} /></code>` : html`<${Quoted} text=${part} />`));

/** @param {{ amount: number, currency: string }} props */
export const Money = ({ amount, currency }) => html`<span class="number">${text.money(amount, currency)}</span>`;

/** @param {{ micros: number }} props */
export const Dollars = ({ micros }) => html`<span class="number">${text.dollars(micros)}</span>`;

/** This moment, told again every so often. */
export function useNow(everyMs = 15_000) {
  const [, set] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => set(now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now();
}

/** An instant in the workspace's zone; `ago`: as a distance, with the instant beside it. @param {{ at?: string | null, ago?: boolean }} props */
export function Time({ at: moment, ago = false }) {
  const { zone } = usePlace();
  const current = useNow();
  if (!moment) return "–";
  const full = text.instant(moment, zone);
  return html`<time datetime=${moment} title=${full}>${ago ? text.distance(moment, current) : text.instant(moment, zone, current)}</time>`;
}

/** An id that can be copied. @param {{ id: string, brief?: boolean }} props */
export function Id({ id, brief = false }) {
  const shown = brief ? `${id.slice(0, 4)}…${id.slice(-6)}` : id;
  return html`<span class="id"><code title=${id}>${text.plain(shown)}</code><${Copy} text=${id} name=${`Copy ${id}`} /></span>`;
}

/** @param {{ text: string, name?: string, label?: string }} props */
export function Copy({ text: copied, name, label }) {
  const { say } = usePlace();
  const [came, set] = useState(/** @type {"" | "done" | "failed"} */ (""));
  if (!navigator.clipboard) return null;
  const copy = async () => {
    set("");
    const wasTaken = await navigator.clipboard.writeText(copied).then(() => true, () => false);
    set(wasTaken ? "done" : "failed");
    if (!wasTaken) return;
    say("Copied.");
    setTimeout(() => set(""), 1500);
  };
  return html`<button type="button" class="copy" aria-label=${name} onClick=${copy}>${came === "done" ? "Copied" : (label ?? "Copy")}</button>${came === "failed" && html` <small class="wrong" role="alert">The browser does not let this page copy: select the text and copy it.</small>`}`;
}

/** @param {{ kind?: "good" | "bad" | "waits" | "plain", children?: any }} props */
export const Badge = ({ kind = "plain", children }) => html`<span class=${`badge ${kind}`}>${children}</span>`;

/** The heading of a page; whoever comes from another page is led to it. @param {{ title: string, name?: any, children?: any }} props */
export function Heading({ title, name, children }) {
  const { workspace, moved } = usePlace();
  const heading = useRef(/** @type {any} */ (null));
  useEffect(() => {
    entitle({ page: `${text.plain(title)} · ${text.plain(workspace.name)}` });
  }, [title, workspace.name]);
  useEffect(() => {
    if (moved) heading.current?.focus({ preventScroll: true });
  }, [moved]);
  return html`<header class="heading"><h1 tabindex="-1" ref=${heading}>${name ?? title}</h1><div class="acts">${children}</div></header>`;
}

/** Facts of one thing: pairs of a name and what it is; those without anything are left out. @param {{ of: [string, any][] }} props */
export const Facts = ({ of }) => html`<dl class="facts">
  ${of.filter((it) => it[1] !== undefined && it[1] !== null && it[1] !== "" && it[1] !== false).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
</dl>`;

// What is there, what is not, and why.

export const Loading = () => html`<p class="loading" role="status">Loading…</p>`;

/** Nothing to show: what to do next. @param {{ title: string, children?: any }} props */
export const Empty = ({ title, children }) => html`<div class="empty"><p><strong>${title}</strong></p>${children}</div>`;

/** That nothing was read, as it was not asked for as it could be; `filters`: what the filters are called that say so themselves. @param {{ errors: { field: string, message: string }[], filters: Record<string, string> }} props */
function Unread({ errors, filters }) {
  const marked = [...new Set(errors.map((it) => filters[it.field]).filter(Boolean))];
  return html`<div class="trouble" role="alert" tabindex="-1">
    ${errors.filter((it) => !filters[it.field]).map((it) => html`<p key=${it.field}><${Said} text=${text.sentence(it.message)} /></p>`)}
    ${marked.length > 0 && html`<p>Nothing is shown. Correct what is marked above: ${marked.join(", ")}.</p>`}
  </div>`;
}

/** Why something was not done or read, and what to do. @param {{ got: import("./server.js").Got, isWrite?: boolean, again?: () => void, filters?: Record<string, string> }} props */
export function Trouble({ got, isWrite = false, again, filters = {} }) {
  // To ask the same again would be refused again.
  if (!isWrite && got.error.errors?.length) return html`<${Unread} errors=${got.error.errors} filters=${filters} />`;
  const { said, fix } = told(got, isWrite);
  const leads = got.status === 401 || (got.status === 403 && (got.error.message ?? "").includes("second factor"));
  return html`<div class="trouble" role="alert" tabindex="-1">
    <p><${Said} text=${said} /> ${fix && html`<${Said} text=${fix} />`}</p>
    ${leads && html`<p><a href=${signInAddress()}>Sign in</a></p>`}
    ${again && got.status !== 401 && html`<p><${Button} act=${again}>Try again<//></p>`}
  </div>`;
}

/**
 * Shows what was read once it is there; `filters`: what those are called that it was read by. Of a list it is said aloud how much is
 * shown once it was filtered or asked for more, and not whenever something happens; `many`: so much, where that is not all that was read.
 * @param {{ of: { data: any, got: any, again: () => void, more?: boolean, step?: string }, filters?: Record<string, string>, many?: number, children: (data: any) => any }} props
 */
export function Shown({ of, filters, many, children }) {
  const { data, got, again, more } = of;
  const told = useShown(of, many);
  // It stands there before there is anything to say: browsers read aloud what changes in it.
  const said = more === undefined ? null : html`<p key="said" class="unseen" role="status">${got && data ? told : ""}</p>`;
  if (!got) return html`${said}<${Loading} key="loading" />`;
  return html`${said}${!isDone(got) && html`<${Trouble} key="trouble" got=${got} again=${again} filters=${filters} />`}${data && children(data)}`;
}

/** How much of a list is shown, as it was when that changed by what a person asked for. @param {{ data: any, more?: boolean, step?: string }} of @param {number} [many] */
function useShown({ data, more = false, step }, many) {
  const held = useRef({ step: /** @type {string | undefined} */ (undefined), read: -1, many: -1, said: "" });
  if (!data || step === undefined) return "";
  const [before, now] = [held.current, { step, read: data.length, many: many ?? data.length }];
  // What is there first is led to by the page's heading.
  const isAsked = before.step !== undefined && (before.step !== step || (before.read === now.read && before.many !== now.many));
  held.current = { ...now, said: isAsked ? shownOf(now.many, more) : before.said };
  return held.current.said;
}

/** @param {number} many @param {boolean} more */
const shownOf = (many, more) => (many ? `${many.toLocaleString("en")} shown${more ? ", and there are more" : ""}` : more ? "None shown so far, and there are more" : "None shown");

/**
 * A button that is busy for as long as its act takes, and acts once.
 * @param {{ act: () => any, kind?: "plain" | "main" | "danger" | "link", children?: any, label?: string, expanded?: boolean }} props
 */
export function Button({ act, kind = "plain", children, label, expanded }) {
  const [busy, set] = useState(false);
  const press = async () => {
    if (busy) return;
    set(true);
    try {
      await act();
    } finally {
      set(false);
    }
  };
  return html`<button type="button" class=${kind} aria-label=${label} aria-expanded=${expanded} aria-disabled=${busy ? "true" : undefined} onClick=${press}>${children}</button>`;
}

// Tables of so many columns are wider than the others.
const MANY = 6;

/**
 * A table; where it has no room for its columns each row is a card. The first column names the row.
 * @param {{ caption: string, columns: { title: string, cell: (row: any) => any, kind?: string }[], rows: any[], rowKey?: (row: any) => string }} props
 */
export function Table({ caption, columns, rows, rowKey = (row) => row.id }) {
  const cell = (/** @type {any} */ column, /** @type {any} */ row, /** @type {number} */ place) =>
    place === 0
      ? html`<th scope="row" role="rowheader" class=${column.kind}>${column.cell(row)}</th>`
      : html`<td role="cell" class=${column.kind} data-title=${column.title || undefined}><div>${column.cell(row)}</div></td>`;
  return html`<table role="table" class=${columns.length >= MANY ? "many" : undefined}>
    <caption class="unseen">${caption}</caption>
    <thead role="rowgroup"><tr role="row">${columns.map((it) => html`<th scope="col" role="columnheader" class=${it.kind}>${it.title || html`<span class="unseen">What can be done</span>`}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map((row) => html`<tr role="row" key=${rowKey(row)}>${columns.map((column, place) => cell(column, row, place))}</tr>`)}</tbody>
  </table>`;
}

/**
 * The way to the next part of the list that stands before it. Where that was the last, whoever pressed goes on at its first item.
 * @param {{ of: { more: boolean, next: () => any } }} props
 */
export function Pager({ of }) {
  const place = useRef(/** @type {any} */ (null));
  const from = useRef(/** @type {{ list: any, many: number } | null} */ (null));
  const rows = (/** @type {any} */ list) => [...(list?.querySelectorAll(":scope > li, :scope > tbody > tr") ?? [])];
  const next = () => {
    const list = place.current?.previousElementSibling;
    from.current = { list, many: rows(list).length };
    return of.next();
  };
  useEffect(() => {
    if (of.more || !from.current) return;
    const { list, many } = from.current;
    from.current = null;
    // Whoever has gone on meanwhile stays where they are.
    if (document.activeElement && document.activeElement !== document.body) return;
    const row = rows(list)[many];
    const first = row?.querySelector("a[href], button") ?? row;
    if (first === row) row?.setAttribute("tabindex", "-1");
    first?.focus();
  }, [of.more]);
  return of.more ? html`<p class="pager" ref=${place}><${Button} act=${next}>Show more<//></p>` : null;
}

/** A choice among few that stands in the address. @param {{ name: string, of: { label: string, href: string, on: boolean }[] }} props */
export const Tabs = ({ name, of }) => html`<nav class="tabs" aria-label=${name}>${of.map((it) => html`<a key=${it.label} href=${it.href} aria-current=${it.on ? "true" : undefined}>${it.label}</a>`)}</nav>`;

/** What an option shows, which is text alone. @param {any} named */
export const option = (named) => text.plain(named);

// Asking for more: dialogs and forms.

/** Forms that are there, each with what asks before it is left. @type {Map<any, { isTyped: () => boolean, forget: () => void, ask: (leave: () => void) => void, sending: Sending }>} */
const forms = new Map();

/** What asks before a dialog is left that holds what was not sent: in the form that is seen, for all of them. @param {any} dialog */
function typedIn(dialog) {
  const inside = [...forms].filter(([form]) => dialog.contains(form));
  const sending = inside.find((it) => it[1].sending.current);
  // What comes of it may be shown once, and is known soon.
  if (sending) return { ask: sending[1].sending.wait };
  if (!inside.some((it) => it[1].isTyped())) return null;
  const seen = inside.find(([form]) => !form.closest("[hidden]")) ?? inside[0];
  return { ask: (/** @type {() => void} */ leave) => seen?.[1].ask(() => (inside.forEach((it) => it[1].forget()), leave())) };
}

/** What is there for one choice of several: it stays, with what was typed into it, while another is chosen. @param {{ on: boolean, children?: any }} props */
export function Kept({ on, children }) {
  const was = useRef(false);
  was.current ||= on;
  return was.current && html`<div hidden=${!on}>${children}</div>`;
}

/** What may be done in the place of going back, the last one first; what answers true has done it. @type {((event: PopStateEvent) => boolean)[]} */
const stays = [];
// Heard from the beginning, and so before the frame hears of it and shows another page.
addEventListener("popstate", (event) => void [...stays].reverse().some((it) => it(event)));

/** Stays at an address that was gone back from. @param {PopStateEvent} event @param {string} address */
export function stayAt(event, address) {
  event.stopImmediatePropagation();
  history.pushState(null, "", address);
  return true;
}

/** @param {(event: PopStateEvent) => boolean} stay */
export function staying(stay) {
  stays.push(stay);
  return () => void stays.splice(stays.indexOf(stay), 1);
}

/**
 * A dialog: what is behind it waits, Escape and the browser's way back leave it, once what was typed into it was asked about. A
 * browser lets a second Escape close even one that may not be left yet; it is
 * shown again then. None begins at a button that ends something. `of`: what it is about, where the same dialog opens for several
 * things of a page: what is typed for one is never put into another's.
 * @param {{ title: string, of?: Omit<import("./unsent.js").Box, "title">, close: () => void, children?: any }} props
 */
export function Dialog({ title, of, close, children }) {
  const id = useId();
  const box = useRef(/** @type {any} */ (null));
  const shut = useRef(close);
  shut.current = close;
  useLayoutEffect(() => {
    const dialog = box.current;
    const from = focused();
    dialog.showModal();
    if (document.activeElement?.matches("button.danger")) leadTo(dialog.querySelector("h2"));
    const address = location.href;
    const leaving = staying((event) => {
      const typed = typedIn(dialog);
      if (!typed) {
        // What stands behind it may be another page then, or the same.
        shut.current();
        return false;
      }
      typed.ask(() => {
        shut.current();
        history.back();
      });
      return stayAt(event, address);
    });
    return () => {
      leaving();
      dialog.close();
      leadBack(from);
    };
  }, []);
  const leave = (/** @type {any} */ event) => {
    // A choice of files that is given up says the same from its field.
    if (event.target !== box.current) return;
    event.preventDefault();
    const typed = typedIn(box.current);
    if (typed) typed.ask(close);
    else close();
  };
  return html`<dialog ref=${box} aria-labelledby=${id} onCancel=${leave} onClose=${() => box.current?.showModal()}>
    <h2 id=${id}>${title}</h2>
    <${Box.Provider} value=${{ title, ...of }}>${children}<//>
    <${Spoken} />
  </dialog>`;
}

/** What is said while a dialog is open. */
function Spoken() {
  const { said, told } = useSpeaker();
  return html`<p class="unseen" role="status">${said} ${told}</p>`;
}

/** The dialog that a form stands in. */
const Box = createContext(/** @type {import("./unsent.js").Box} */ ({ title: "" }));

/** What is wrong with fields or filters, by their names. */
export const Faults = createContext(/** @type {Record<string, string>} */ ({}));

/** The fault of a field, or of something in it. @param {Record<string, string>} faults @param {string} field */
export const faultOf = (faults, field) => faults[field] ?? faults[Object.keys(faults).find((it) => it.startsWith(`${field}.`)) ?? ""];

/**
 * What the browser cannot read of what was typed, by the names of fields. The form's values hold nothing for such a field, as if it
 * had been emptied on purpose.
 * @param {any} form
 */
const unread = (form) =>
  [...form.elements]
    .filter((it) => it.validity?.badInput && !it.closest("[hidden]"))
    .map((it) => ({ field: it.dataset.field ?? it.name, message: it.type === "number" ? "must be a number" : "must be a whole date and time, or empty" }));

/** What is wrong, by the names of fields. @param {import("./server.js").Refused} error @returns {Record<string, string>} */
export function faultsOf({ type, errors = [] }) {
  if (type === "reason_required") return { reason: "Say why, in words for whoever reads it." };
  return Object.fromEntries(errors.map((it) => [it.field, unnamed(it.message)]));
}

/** A fault without the field's own name before it. @param {string} message */
const unnamed = (message) => text.sentence(message.replace(/^`[^`]*` /, ""));

/** Whether a form's answer is awaited, and what says so to whoever would leave it. @typedef {{ current: boolean, wait: () => void }} Sending */

/**
 * A form. `act` is given what the fields hold and answers what the server did, or a text of what is wrong; what is wrong is said at
 * the field it is about, and else above the button. `part`: which of several in one dialog it is.
 * @param {{ part?: { id: string, name: string }, act: (values: Record<string, string>, form: any) => any, submit: string, kind?: "main" | "danger", done?: (got: any) => void, cancel?: () => void, children?: any }} props
 */
export function Form({ part, act, submit, kind = "main", done, cancel, children }) {
  const [busy, setBusy] = useState(false);
  const [wrong, set] = useState(/** @type {any} */ (null));
  // What is wrong once more in the same way is said once more.
  const turn = useRef(0);
  const setWrong = (/** @type {any} */ it) => {
    turn.current += 1;
    set(it);
  };
  const form = useRef(/** @type {any} */ (null));
  const [isHeld, setHeld] = useState(false);
  const sending = useRef(/** @type {Sending} */ ({ current: false, wait: () => setHeld(true) })).current;
  const typed = useTyped(form, kind === "danger", sending, part);
  const faults = faultsOf(wrong?.error ?? {});
  const send = async (/** @type {any} */ event) => {
    event.preventDefault();
    if (busy) return;
    const errors = unread(form.current);
    if (errors.length) return setWrong({ status: 400, said: {}, error: { errors }, wait: 0 });
    setBusy(true);
    setHeld(false);
    sending.current = true;
    const values = Object.fromEntries([...new FormData(form.current)].map(([name, value]) => [name, String(value)]));
    let got = null;
    try {
      got = await act(values, form.current);
    } finally {
      sending.current = false;
      setBusy(false);
    }
    const isWrong = typeof got === "string" || (got && got.status !== undefined && !isDone(got));
    setWrong(isWrong ? (typeof got === "string" ? { said: got } : got) : null);
    if (isWrong) return;
    typed.forget();
    if (done) done(got);
  };
  const leave = () => {
    if (sending.current) return sending.wait();
    typed.forget();
    cancel?.();
  };
  useLayoutEffect(() => {
    // In a dialog that had to wait for what the form needs, whoever waited begins at its first field.
    const dialog = form.current.closest("dialog[open]");
    if (dialog && [dialog, document.body].includes(document.activeElement)) form.current.querySelector("input, select, textarea")?.focus();
  }, []);
  useEffect(() => {
    if (!wrong) return;
    const first = form.current.querySelector("[aria-invalid=true]:not([hidden] *)") ?? form.current.querySelector("[role=alert]");
    // A field that is folded away can neither be seen nor led to.
    const folded = first?.closest("details");
    if (folded) folded.open = true;
    first?.focus();
  }, [wrong]);
  const placed = wrong && form.current ? [...form.current.querySelectorAll("[data-field]:not([hidden] *)")].map((it) => it.dataset.field) : [];
  const beside = Object.entries(faults).filter(([field]) => !placed.some((it) => field === it || field.startsWith(`${it}.`)));
  return html`<form ref=${form} onSubmit=${send} onInput=${typed.touch} novalidate aria-busy=${busy ? "true" : undefined}>
    ${typed.isBack && html`<p class="note" role="status">What you had typed before stands here again, but for secrets. It was not sent: look it over first.${typed.isOver && " Somebody has changed this since: what you had not typed is as it stands now."}</p>`}
    <${Faults.Provider} value=${faults}>${children}<//>
    ${typed.leave && html`<${Leaving} leave=${typed.leave} stay=${typed.stay} />`}
    ${wrong && html`<${Wrong} key=${turn.current} wrong=${wrong} beside=${beside} isPlaced=${Object.keys(faults).length > 0} />`}
    <div role="status">${busy && isHeld && html`<p class="note">It is being sent. What comes of it is known within half a minute.</p>`}</div>
    <p class="acts"><button class=${kind} aria-disabled=${busy ? "true" : undefined}>${busy ? "Sending…" : submit}</button>${cancel && html`<button type="button" onClick=${leave}>Cancel</button>`}</p>
  </form>`;
}

/**
 * What was typed into a form of a dialog and not sent. What ends something is not led back to where it was: of it the words alone
 * are kept, and never what it is confirmed by.
 * @param {{ current: any }} form
 * @param {boolean} isEnding
 * @param {Sending} sending
 * @param {{ id: string, name: string }} [part]
 */
function useTyped(form, isEnding, sending, part) {
  const touched = useRef(/** @type {Set<any>} */ (new Set()));
  const [leaving, setLeaving] = useState({ leave: /** @type {(() => void) | null} */ (null) });
  const [isBack, setBack] = useState(false);
  const led = useRef(/** @type {{ kept: any, done: Map<string, any> } | null} */ (null));
  const from = useRef(/** @type {any} */ (null));
  const around = { ...useContext(Box), ...part };
  const box = useRef(around);
  box.current = around;
  const forget = () => {
    touched.current.clear();
    drop(box.current);
  };
  useLayoutEffect(() => {
    const own = form.current;
    const ask = (/** @type {() => void} */ leave) => {
      from.current ??= document.activeElement;
      setLeaving({ leave: () => (forget(), leave()) });
    };
    forms.set(own, { isTyped: () => typedOf(touched.current).length > 0, forget, ask, sending });
    const end = () => keepTyped(box.current, isEnding ? new Set([...touched.current].filter((it) => WORDS.includes(it.name))) : touched.current);
    for (const it of ["ended", "barred"]) session.addEventListener(it, end);
    // The browser asks in its own words before the page is loaded again, left or closed.
    const unload = (/** @type {BeforeUnloadEvent} */ event) => typedOf(touched.current).length > 0 && event.preventDefault();
    addEventListener("beforeunload", unload);
    return () => {
      forms.delete(own);
      for (const it of ["ended", "barred"]) session.removeEventListener(it, end);
      removeEventListener("beforeunload", unload);
    };
  }, []);
  // A field may be there only once another holds something.
  useLayoutEffect(() => {
    led.current ??= { kept: unsentIn(box.current), done: new Map() };
    const { kept, done } = led.current;
    if (!kept) return;
    putBack(form.current, kept, done);
    setBack(done.size > 0);
  });
  const touch = (/** @type {any} */ event) => {
    touched.current.add(event.target);
    // What somebody changes themselves is led back no more, though its field were another one.
    if (event.isTrusted) led.current?.done.set(event.target.name, "changed");
  };
  const stay = () => {
    setLeaving({ leave: null });
    from.current?.focus();
    from.current = null;
  };
  return { touch, forget, leave: leaving.leave, stay, isBack, isOver: led.current?.kept?.version !== around.version };
}

/** Fields that say why something is done. */
const WORDS = ["reason", "note"];

/** Before what was typed goes. @param {{ leave: () => void, stay: () => void }} props */
function Leaving({ leave, stay }) {
  const button = useRef(/** @type {any} */ (null));
  useEffect(() => button.current?.focus(), [leave]);
  // A dialog that is shown again begins here.
  return html`<div class="note" role="alert"><p><strong>What you have typed here was not sent.</strong></p>
    <p class="acts"><button type="button" ref=${button} autofocus onClick=${stay}>Go on with it</button><button type="button" class="danger" onClick=${leave}>Throw it away</button></p></div>`;
}

/** @param {{ wrong: any, beside: [string, string][], isPlaced: boolean }} props */
function Wrong({ wrong, beside, isPlaced }) {
  if (wrong.status === undefined || typeof wrong.said === "string") return html`<p class="trouble" role="alert" tabindex="-1">${wrong.said}</p>`;
  if (!isPlaced) return html`<${Trouble} got=${wrong} isWrite=${true} />`;
  return html`<div class="trouble" role="alert" tabindex="-1">
    ${beside.length ? html`<ul>${beside.map(([field, message]) => html`<li key=${field}><code><${Quoted} text=${field} /></code>: <${Said} text=${message} /></li>`)}</ul>` : html`<p>Look at the fields that are marked.</p>`}
  </div>`;
}

/**
 * A field of a form. `as`: what it is; `fault`: the name that the server has for it, where it is another.
 * @param {{ name: string, label: string, as?: "text" | "email" | "number" | "date" | "datetime-local" | "file" | "password" | "lines" | "choice" | "check", value?: any, hint?: any, options?: [string, any][], fault?: string, needed?: boolean, more?: Record<string, any> }} props
 */
export function Field({ name, label, as = "text", value, hint, options = [], fault = name, needed = false, more = {} }) {
  const id = useId();
  const wrong = faultOf(useContext(Faults), fault);
  const about = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ") || undefined;
  const common = { id, name, autocomplete: "off", "data-field": fault, "aria-describedby": about, "aria-invalid": wrong ? "true" : undefined, "aria-required": needed ? "true" : undefined, ...more };
  const control = () => {
    if (as === "lines") return html`<textarea rows="3" ...${common} defaultValue=${value ?? ""}></textarea>`;
    if (as === "choice") return html`<select ...${common}>${options.map(([is, named]) => html`<option key=${is} value=${is} selected=${value != null && is === value}>${option(named)}</option>`)}</select>`;
    return html`<input ...${common} type=${as === "check" ? "checkbox" : as} defaultValue=${as === "check" ? "yes" : (value ?? "")} defaultChecked=${as === "check" ? !!value : undefined} />`;
  };
  const named = html`<label for=${id}>${label}</label>`;
  return html`<div class=${as === "check" ? "field check" : "field"}>
    ${as === "check" ? html`${control()}${named}` : html`${named}${control()}`}
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${wrong && html`<small id=${`${id}-wrong`} class="wrong"><${Said} text=${wrong} /></small>`}
  </div>`;
}

/** Fields that are chosen from together; `fault`: the server's name for all of them. @param {{ legend: string, fault: string, hint?: any, children?: any }} props */
export function Group({ legend, fault, hint, children }) {
  const id = useId();
  const wrong = faultOf(useContext(Faults), fault);
  const about = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ") || undefined;
  return html`<fieldset data-field=${fault} aria-describedby=${about}><legend>${legend}</legend>
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${wrong && html`<p id=${`${id}-wrong`} class="wrong"><${Said} text=${wrong} /></p>`}
    ${children}
  </fieldset>`;
}
