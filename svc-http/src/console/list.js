// Reading from the server and staying true: what was read is read again when something of its kind happens.
import { html, usePlace, Quoted } from "./kit.js";
import { useCallback, useEffect, useRef, useState } from "./hooks.js";
import { ask, isDone, query } from "./server.js";

const GATHER_MS = 200;
// However much happens, the same is read no more often than this.
const EVERY_MS = 1_500;
const PAGE = 50;
// Parts of a list that are read again when something happens; what is beyond them is left out until it is asked for.
const PARTS_MAX = 4;

/** Addresses below a workspace; one that begins with `/` is that of something of the person's own, whatever the workspace. */
export function useApi() {
  const { wid } = usePlace();
  return useCallback(
    /** @param {string} method @param {string} path @param {unknown} [body] */
    (method, path, body) => ask(method, path.startsWith("/") ? `api${path}` : `api/w/${wid}/${path}`, body),
    [wid],
  );
}

/**
 * Calls when something of these kinds happens: for what happens together once, and not again before it is done. A kind is an event's
 * name or the part before its dot. `note` is told each event at once.
 * @param {string[]} kinds
 * @param {() => any} act
 * @param {(told: import("./live.js").Told) => void} [note]
 */
export function useLive(kinds, act, note) {
  const { listen } = usePlace();
  const current = useRef({ act, note });
  current.current = { act, note };
  const names = kinds.join(" ");
  useEffect(() => {
    const known = names.split(" ").filter(Boolean);
    let [timer, last, isStale, isOver] = [0, 0, false, false];
    const plan = () => {
      timer = setTimeout(run, Math.max(GATHER_MS, last + EVERY_MS - Date.now()));
    };
    const run = async () => {
      [last, isStale] = [Date.now(), false];
      try {
        await current.current.act();
      } finally {
        timer = 0;
      }
      if (isStale && !isOver) plan();
    };
    const stop = listen((told) => {
      if (told.type !== "reset" && !known.some((it) => told.type === it || told.type.startsWith(`${it}.`))) return;
      current.current.note?.(told);
      if (timer) isStale = true;
      else plan();
    });
    return () => {
      isOver = true;
      clearTimeout(timer);
      stop();
    };
  }, [listen, names]);
}

/**
 * One thing, read below the workspace; `null` reads nothing. What was read before stays while it cannot be read again.
 * @param {string | null} path
 * @param {string[]} [kinds]
 */
export function useRead(path, kinds = []) {
  const api = useApi();
  const [held, set] = useState(/** @type {{ path: string | null, got: any, data: any }} */ ({ path: null, got: null, data: null }));
  const turn = useRef(0);
  const again = useCallback(async () => {
    if (path === null) return;
    const mine = ++turn.current;
    const got = await api("GET", path);
    if (mine !== turn.current) return;
    const isGone = [401, 403, 404].includes(got.status);
    set((before) => ({ path, got, data: isDone(got) ? got.said : isGone || before.path !== path ? null : before.data }));
  }, [api, path]);
  useEffect(() => {
    again();
    return () => void (turn.current += 1);
  }, [again]);
  useLive(kinds, again);
  useMended(held.path === path ? held.got : null, again);
  const isCurrent = held.path === path;
  return { got: isCurrent ? held.got : null, data: isCurrent ? held.data : null, again };
}

/**
 * A list, part by part.
 * @param {string | null} path
 * @param {Record<string, string | null | undefined>} [filters]
 * @param {string[]} [kinds]
 * @param {number} [size] items a part
 */
export function useList(path, filters = {}, kinds = [], size = PAGE) {
  const api = useApi();
  const asked = path === null ? null : path + query({ ...filters, limit: size });
  const [held, set] = useState(/** @type {any} */ ({ asked: null, got: null, items: [], cursor: null, isRead: false }));
  const turn = useRef(0);
  const part = useCallback((/** @type {string | null} */ cursor) => api("GET", asked + (cursor ? `&cursor=${encodeURIComponent(cursor)}` : "")), [api, asked]);
  // A part that is filtered may hold nothing and still have a next one: it is asked on until there is something to show.
  const read = useCallback(
    async (/** @type {string | null} */ from, /** @type {number} */ parts) => {
      /** @type {any[]} */
      const items = [];
      let [cursor, got] = [from, /** @type {any} */ (null)];
      for (let n = 0; n < parts || (!items.length && cursor && n < 20); n += 1) {
        got = await part(cursor);
        if (!isDone(got)) break;
        items.push(...got.said.data);
        cursor = got.said.nextCursor;
        if (!cursor) break;
      }
      return { got, items, cursor };
    },
    [part],
  );
  const parts = useRef(1);
  const again = useCallback(async () => {
    if (asked === null) return;
    const mine = ++turn.current;
    const found = await read(null, Math.min(parts.current, PARTS_MAX));
    if (mine !== turn.current) return;
    set((/** @type {any} */ before) => {
      if (isDone(found.got)) return { asked, ...found, isRead: true };
      const isGone = [401, 403, 404].includes(found.got.status);
      const kept = before.asked === asked && !isGone ? before : { items: [], cursor: null, isRead: false };
      return { ...kept, asked, got: found.got };
    });
  }, [asked, read]);
  const next = useCallback(async () => {
    const mine = ++turn.current;
    const found = await read(held.cursor, 1);
    if (mine !== turn.current) return;
    parts.current += 1;
    set((/** @type {any} */ before) =>
      isDone(found.got) ? { ...before, got: found.got, items: [...before.items, ...found.items], cursor: found.cursor } : { ...before, got: found.got },
    );
  }, [read, held.cursor]);
  useEffect(() => {
    parts.current = 1;
    again();
    return () => void (turn.current += 1);
  }, [again]);
  useLive(kinds, again);
  useMended(held.got, again);
  const isCurrent = held.asked === asked;
  const items = isCurrent ? held.items : [];
  return { got: isCurrent ? held.got : null, data: isCurrent && held.isRead ? items : null, items, more: isCurrent && !!held.cursor, next, again };
}

/**
 * Reads again, once the line is there again, what could not be read while it was away.
 * @param {any} got what was answered last
 * @param {() => any} again
 */
function useMended(got, again) {
  const { listen } = usePlace();
  const current = useRef({ got, again });
  current.current = { got, again };
  useEffect(() => listen(({ type }) => {
    if (type === "on" && current.current.got && !isDone(current.current.got)) current.current.again();
  }), [listen]);
}

// What is remembered; beyond that many the one that was not used for longest is let go.
const REMEMBERED_MAX = 300;
/** Whatever was used last stands last. @type {Map<string, Promise<any>>} */
const read = new Map();

/** What stands at an address, asked for once by however many show it; a refusal is not kept. @param {string} path */
function remembered(path) {
  const known = read.get(path) ?? ask("GET", path);
  read.delete(path);
  read.set(path, known);
  const [oldest] = read.keys();
  if (read.size > REMEMBERED_MAX) read.delete(oldest);
  known.then((got) => {
    if (!isDone(got) && read.get(path) === known) read.delete(path);
  });
  return known;
}

/** Lets go of what is remembered of others: somebody else may sit here now, or a name has changed. @param {string} [id] */
export function forget(id) {
  for (const path of [...read.keys()]) if (!id || path.endsWith(id)) read.delete(path);
}

/**
 * What is read once and remembered: names, actions that were decided.
 * @param {string | null} path
 */
export function useRemembered(path) {
  const { wid } = usePlace();
  const [held, set] = useState(/** @type {{ path: string | null, got: any }} */ ({ path: null, got: null }));
  const turn = useRef(0);
  const again = useCallback(async () => {
    if (path === null) return;
    const mine = ++turn.current;
    const got = await remembered(`api/w/${wid}/${path}`);
    if (mine === turn.current) set({ path, got });
  }, [wid, path]);
  useEffect(() => {
    again();
    return () => void (turn.current += 1);
  }, [again]);
  const got = held.path === path ? held.got : null;
  useMended(got, again);
  return got && isDone(got) ? got.said : null;
}

const RULES = /** @type {Record<string, string>} */ ({ policy: "The rules", freeze: "A freeze", expiry: "Nobody in time", drill: "A drill", program: "The server's operator", integration: "An integration" });

/** A person, a machine or a rule by its name. @param {{ id?: string | null }} props */
export function Who({ id }) {
  const { workspace, may } = usePlace();
  const by = id ?? "";
  const isAgent = by.startsWith("agt_") && may("ReadAgents");
  const isMember = by.startsWith("prp_") && by !== workspace.principalId && may("ReadMembers");
  const named = useRemembered(isAgent ? `agents/${by}` : isMember ? `members/${by}` : null);
  if (!by) return html`The server's operator`;
  if (by === workspace.principalId) return html`You`;
  if (by.startsWith("token:")) return html`Service token <${Quoted} text=${by.slice(6)} />`;
  return html`<${Quoted} text=${RULES[by] ?? (named && (named.name || named.email)) ?? by} />`;
}
