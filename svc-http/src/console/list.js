// Reading from the server and staying true: what was read is read again when something of its kind happens.
import { html, usePlace, Quoted } from "./kit.js";
import { useCallback, useEffect, useRef, useState } from "./hooks.js";
import { keepParts, partsOf } from "./returning.js";
import { ask, isDone, query } from "./server.js";

const GATHER_MS = 200;
// However much happens, the same is read no more often than this.
const EVERY_MS = 1_500;
const PAGE = 50;
// Parts of a list that are read again when something happens.
const PARTS_MAX = 4;

/** Addresses below a workspace; one that begins with `/` is that of something of the person's own, whatever the workspace. */
export function useApi() {
  const { wid, me } = usePlace();
  const whom = me.id;
  return useCallback(
    /** @param {string} method @param {string} path @param {unknown} [body] @param {string} [type] */
    (method, path, body, type) => ask(method, path.startsWith("/") ? `api${path}` : `api/w/${wid}/${path}`, body, type, whom),
    [wid, whom],
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
  return useReading(path, kinds, useApi());
}

// As many as a part of a list has at most, and so many parts of one are read at once.
const WHOLE_PART = 500;
const WHOLE_PARTS_MAX = 40;

/**
 * A list to its last part, in the place of one thing: `data.data` has every item, and `data.nextCursor` only where there are more than
 * anybody could choose from.
 * @param {string | null} path
 * @param {string[]} [kinds]
 */
export function useWhole(path, kinds = []) {
  const api = useApi();
  const read = useCallback(async (/** @type {string} */ method, /** @type {string} */ list) => {
    const part = (/** @type {string | null} */ cursor) => api(method, list + query({ limit: WHOLE_PART, cursor }));
    let got = await part(null);
    for (let n = 1; n < WHOLE_PARTS_MAX && isDone(got) && got.said.nextCursor; n += 1) {
      const next = await part(got.said.nextCursor);
      got = isDone(next) ? { ...next, said: { ...next.said, data: [...got.said.data, ...next.said.data] } } : next;
    }
    return got;
  }, [api]);
  return useReading(path, kinds, read);
}

/** @param {string | null} path @param {string[]} kinds @param {(method: string, path: string) => Promise<any>} api */
function useReading(path, kinds, api) {
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

// Of what no event tells is looked after so often, and only while somebody is there: a page that nobody touches keeps no session open.
const LOOK_MS = 10_000;
const WATCHED_MS = 30 * 60_000;

/**
 * Reads again, now and then, what may change without an event; also as soon as somebody comes back to the page.
 * @param {() => any} again
 */
export function useWatched(again) {
  const current = useRef(again);
  current.current = again;
  useEffect(() => {
    let [touched, isBusy] = [Date.now(), false];
    const touch = () => void (touched = Date.now());
    const look = async () => {
      if (isBusy || document.hidden || Date.now() - touched >= WATCHED_MS) return;
      isBusy = true;
      await current.current();
      isBusy = false;
    };
    const seen = () => (touch(), look());
    const timer = setInterval(look, LOOK_MS);
    const moves = ["pointerdown", "keydown"];
    for (const it of moves) addEventListener(it, touch, { passive: true });
    document.addEventListener("visibilitychange", seen);
    return () => {
      clearInterval(timer);
      for (const it of moves) removeEventListener(it, touch);
      document.removeEventListener("visibilitychange", seen);
    };
  }, []);
}

/** What stands in a list, with the cursor that its part begins at. @typedef {{ it: any, begin: string | null }} Row */

const NOTHING = { asked: /** @type {string | null} */ (null), got: /** @type {any} */ (null), rows: /** @type {Row[]} */ ([]), items: /** @type {any[]} */ ([]), cursor: /** @type {string | null} */ (null), further: 0, isRead: false };

/** The rows of an answer that no row has already. @param {any} got @param {string | null} begin @param {Row[]} there @returns {Row[]} */
function rowsOf(got, begin, there) {
  const ids = new Set(there.map((row) => row.it.id));
  return got.said.data.filter((/** @type {any} */ it) => it.id === undefined || !ids.has(it.id)).map((/** @type {any} */ it) => ({ it, begin }));
}

/**
 * What stood beyond the rows that were read anew: behind the last of them that was there before. Where things have no id of their
 * own it is not known.
 * @param {Row[]} fresh
 * @param {Row[]} before
 */
function beyond(fresh, before) {
  const ids = new Set(fresh.map((row) => row.it.id));
  if (ids.size < fresh.length || ids.has(undefined)) return [];
  const places = before.map((row, place) => (ids.has(row.it.id) ? place : -1));
  return before.slice(Math.max(...places, -1) + 1);
}

/**
 * A list, part by part. When something happens its first parts are read again, and of those beyond them the ones in which it is
 * named; the rest stays as it was.
 * @param {string | null} path
 * @param {Record<string, string | null | undefined>} [filters]
 * @param {string[]} [kinds]
 * @param {number} [size] items a part
 */
export function useList(path, filters = {}, kinds = [], size = PAGE) {
  const api = useApi();
  const asked = path === null ? null : path + query({ ...filters, limit: size });
  const [held, set] = useState(NOTHING);
  const current = useRef(NOTHING);
  const parts = useRef(1);
  const happened = useRef({ ids: new Set(), isAll: false });
  const turn = useRef(0);
  const queue = useRef(Promise.resolve());
  /** One after the other: what is read again and what is asked for beside it would lose each other. */
  const inTurn = useCallback((/** @type {(isLate: () => boolean) => Promise<void>} */ act) => {
    const mine = turn.current;
    const isLate = () => mine !== turn.current;
    queue.current = queue.current.catch(() => {}).then(() => (isLate() ? undefined : act(isLate)));
    return queue.current;
  }, []);
  const put = useCallback((/** @type {Partial<typeof NOTHING>} */ more) => {
    const now = { ...current.current, ...more };
    current.current = { ...now, items: now.rows === current.current.rows ? now.items : now.rows.map((row) => row.it) };
    set(current.current);
  }, []);
  const part = useCallback((/** @type {string | null} */ cursor) => api("GET", asked + (cursor ? `&cursor=${encodeURIComponent(cursor)}` : "")), [api, asked]);
  // A part that is filtered may hold nothing and still have a next one: it is asked on until there is something to show.
  const read = useCallback(
    async (/** @type {string | null} */ from, /** @type {number} */ many, /** @type {Row[]} */ there) => {
      /** @type {Row[]} */
      const rows = [];
      let [cursor, got] = [from, /** @type {any} */ (null)];
      for (let n = 0; n < many || (!rows.length && cursor && n < 20); n += 1) {
        got = await part(cursor);
        if (!isDone(got)) break;
        rows.push(...rowsOf(got, cursor, there));
        cursor = got.said.nextCursor;
        if (!cursor) break;
      }
      return { got, rows, cursor };
    },
    [part],
  );
  /** What stood beyond the parts that were read again, where it is named read again too. */
  const rest = useCallback(
    async (/** @type {Row[]} */ fresh, /** @type {Set<unknown>} */ ids) => {
      let rows = beyond(fresh, current.current.rows);
      const stale = new Set(rows.filter((row) => ids.has(row.it.id)).map((row) => row.begin));
      for (const begin of [...stale].slice(0, PARTS_MAX)) {
        const got = await part(begin);
        if (!isDone(got)) continue;
        const place = rows.findIndex((row) => row.begin === begin);
        const others = rows.filter((row) => row.begin !== begin);
        rows = [...others.slice(0, place), ...rowsOf(got, begin, [...fresh, ...others]), ...others.slice(place)];
      }
      return rows;
    },
    [part],
  );
  const again = useCallback(() => inTurn(async (isLate) => {
    if (asked === null) return;
    const { ids, isAll } = happened.current;
    happened.current = { ids: new Set(), isAll: false };
    const found = await read(null, isAll ? parts.current : Math.min(parts.current, PARTS_MAX), []);
    const kept = isDone(found.got) && found.cursor && !isAll ? await rest(found.rows, ids) : [];
    if (isLate()) return;
    if (isDone(found.got)) return put({ asked, got: found.got, rows: [...found.rows, ...kept], cursor: kept.length ? current.current.cursor : found.cursor, isRead: true });
    // What could not be read now has to be read whole once it can be.
    happened.current.isAll = true;
    const isGone = [401, 403, 404].includes(found.got.status);
    put(current.current.asked === asked && !isGone ? { got: found.got } : { ...NOTHING, asked, got: found.got });
  }), [asked, inTurn, read, rest, put]);
  const next = useCallback(() => inTurn(async (isLate) => {
    const { rows, cursor } = current.current;
    if (!cursor) return;
    const found = await read(cursor, 1, rows);
    if (isLate()) return;
    if (!isDone(found.got)) return put({ got: found.got });
    parts.current += 1;
    if (asked !== null) keepParts(asked, parts.current);
    put({ got: found.got, rows: [...rows, ...found.rows], cursor: found.cursor, further: current.current.further + 1 });
  }), [asked, inTurn, read, put]);
  useEffect(() => {
    // Whoever comes back finds as much as they had asked for.
    parts.current = asked === null ? 1 : partsOf(asked);
    happened.current = { ids: new Set(), isAll: parts.current > 1 };
    current.current = NOTHING;
    queue.current = Promise.resolve();
    again();
    return () => void (turn.current += 1);
  }, [again]);
  useLive(kinds, again, ({ type, id, actionId }) => {
    if (type === "reset") happened.current.isAll = true;
    for (const it of [id, actionId]) happened.current.ids.add(it);
  });
  useMended(held.got, again);
  const isCurrent = held.asked === asked;
  const items = isCurrent ? held.items : NOTHING.items;
  // What a person asked for: which list, and how many further parts of it.
  const step = `${held.asked} ${held.further}`;
  return { got: isCurrent ? held.got : null, data: isCurrent && held.isRead ? items : null, items, more: isCurrent && !!held.cursor, step, next, again };
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

/** A person, a machine or a rule by its name; `people`: those that a record carries, for who may read no members. @param {{ id?: string | null, people?: { id: string, name: string }[] }} props */
export function Who({ id, people = [] }) {
  const { workspace, may } = usePlace();
  const by = id ?? "";
  const isAgent = by.startsWith("agt_") && may("ReadAgents");
  const isMember = by.startsWith("prp_") && by !== workspace.principalId && may("ReadMembers");
  const named = useRemembered(isAgent ? `agents/${by}` : isMember ? `members/${by}` : null);
  if (!by) return html`The server's operator`;
  if (by === workspace.principalId) return html`You`;
  if (by.startsWith("token:")) return html`Service token <${Quoted} text=${by.slice(6)} />`;
  return html`<${Quoted} text=${RULES[by] ?? (named && (named.name || named.email)) ?? people.find((it) => it.id === by)?.name ?? by} />`;
}
