// Looking for something in a list, beyond the part of it that is shown.
import { Button, Trouble, html } from "./kit.js";
import { useEffect, useState } from "./hooks.js";
import { useApi } from "./list.js";
import { isDone, query } from "./server.js";
import { count } from "./text.js";

// Items that are looked through at once, and so many times before it is asked whether to go on.
const PART = 500;
const PARTS_MAX = 10;
// Whoever pauses so long has typed what they look for.
const PAUSE_MS = 400;
// So many more of what was found are shown at once.
const FOUND = 25;

const NOTHING = { rows: /** @type {any[]} */ ([]), cursor: /** @type {string | null} */ (null), parts: 0, got: /** @type {any} */ (null) };
const BEGUN = { wanted: "", least: 1, most: PARTS_MAX, places: FOUND };

/**
 * Those of a list that are meant: of what is shown of it and, where none of that is, of what comes behind, until one is found, the list
 * ends, or many were looked through. What was looked through once is kept for whatever is looked for next, until it is to `forget`.
 * `rows`: all that is known of the list; `looked`: how many were looked at; `more`: whether there may be others, which `further` looks
 * for, or shows where they are `hidden` so far.
 * @param {string} path
 * @param {{ items: any[], more: boolean }} list what is shown of it
 * @param {string} wanted what is looked for, in one text; nothing where everything is meant
 * @param {(it: any) => boolean} has whether one is meant
 * @param {(it: any) => string} [called] what tells one from all others
 */
export function useSought(path, list, wanted, has, called = ({ id }) => id) {
  const api = useApi();
  const [far, setFar] = useState(NOTHING);
  const [asked, ask] = useState(BEGUN);
  const { least, most, places } = asked.wanted === wanted ? asked : BEGUN;
  const near = list.items.filter(has);
  const known = new Set(list.items.map(called));
  const unseen = far.rows.filter((it) => !known.has(called(it)));
  const beyond = wanted ? unseen.filter(has) : [];
  const isEnd = !list.more || (far.parts > 0 && !far.cursor);
  const isStopped = !!far.got && !isDone(far.got);
  const isLooking = !!wanted && !isEnd && !isStopped && near.length + beyond.length < least && far.parts < most;
  useEffect(() => {
    if (!isLooking) return undefined;
    let isLeft = false;
    const timer = setTimeout(async () => {
      const got = await api("GET", path + query({ limit: PART, cursor: far.cursor }));
      if (isLeft) return;
      setFar((it) => (isDone(got) ? { rows: [...it.rows, ...got.said.data], cursor: got.said.nextCursor, parts: it.parts + 1, got } : { ...it, got }));
    }, far.parts ? 0 : PAUSE_MS);
    return () => {
      isLeft = true;
      clearTimeout(timer);
    };
  }, [api, path, isLooking, far.parts]);
  const hidden = Math.max(beyond.length - places, 0);
  const further = () => {
    if (isStopped) setFar((it) => ({ ...it, got: null }));
    if (hidden) ask({ wanted, least, most, places: places + FOUND });
    else ask({ wanted, least: near.length + beyond.length + 1, most: far.parts + PARTS_MAX, places: beyond.length + FOUND });
  };
  return {
    found: [...near, ...beyond.slice(0, places)],
    rows: [...list.items, ...unseen],
    isLooking,
    looked: Math.max(far.rows.length, list.items.length),
    more: wanted ? !isEnd || hidden > 0 : list.more,
    hidden,
    trouble: isStopped ? far.got : null,
    further,
    forget: () => setFar(NOTHING),
  };
}

/**
 * How far a list was looked through: of what is shown all was.
 * @param {ReturnType<typeof useSought>} seeking
 * @param {number} many how many of what was found are shown
 * @param {string} noun what one of the list is called
 */
export function toldOf({ isLooking, looked, more, hidden, trouble }, many, noun) {
  const all = count(looked, noun);
  if (isLooking) return `Looking further: the newest ${all} were looked at so far…`;
  if (trouble || hidden) return "";
  if (more) return `The newest ${all} were looked at; there are older ones.`;
  return many ? "" : `All ${all} were looked at.`;
}

/** The way on, where there may be more of what is looked for. @param {{ of: ReturnType<typeof useSought> }} props */
export function Further({ of: { more, hidden, isLooking, trouble, further } }) {
  if (trouble) return html`<${Trouble} got=${trouble} again=${further} />`;
  if (!more || isLooking) return null;
  return html`<p class="pager"><${Button} act=${further}>${hidden ? "Show more" : "Look further"}<//></p>`;
}
