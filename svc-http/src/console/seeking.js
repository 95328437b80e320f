// Looking for a name in a list, beyond the part of it that is shown.
import { useEffect, useState } from "./hooks.js";
import { useApi } from "./list.js";
import { isDone, query } from "./server.js";
import { sought } from "./text.js";

// Items that are looked through at once, and so many times before it is asked whether to go on.
const PART = 500;
const PARTS_MAX = 10;
// Whoever pauses so long has typed what they look for.
const PAUSE_MS = 400;
// So many more of what was found are shown at once.
const FOUND = 25;

const NOTHING = { rows: /** @type {any[]} */ ([]), cursor: /** @type {string | null} */ (null), parts: 0, got: /** @type {any} */ (null) };
const BEGUN = { text: "", least: 1, most: PARTS_MAX, places: FOUND };

/**
 * Those of a list that have a text in their name: of what is shown of it and, where none of that has it, of what comes behind, until one
 * is found, the list ends, or many were looked through. What was looked through once is kept for whatever is looked for next.
 * `looked`: how many were; `more`: whether there may be others, which `further` looks for, or shows where they are `hidden` so far.
 * @param {string} path
 * @param {{ items: any[], more: boolean }} list what is shown of it
 * @param {string} text
 */
export function useSought(path, list, text) {
  const api = useApi();
  const wanted = sought(text.trim());
  const [far, setFar] = useState(NOTHING);
  const [asked, ask] = useState(BEGUN);
  const { least, most, places } = asked.text === wanted ? asked : BEGUN;
  const has = (/** @type {any} */ it) => sought(it.name).includes(wanted);
  const near = list.items.filter(has);
  const known = new Set(list.items.map((it) => it.id));
  const beyond = wanted ? far.rows.filter((it) => has(it) && !known.has(it.id)) : [];
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
    if (hidden) ask({ text: wanted, least, most, places: places + FOUND });
    else ask({ text: wanted, least: near.length + beyond.length + 1, most: far.parts + PARTS_MAX, places: beyond.length + FOUND });
  };
  return {
    found: [...near, ...beyond.slice(0, places)],
    isLooking,
    looked: Math.max(far.rows.length, list.items.length),
    more: wanted ? !isEnd || hidden > 0 : list.more,
    hidden,
    trouble: isStopped ? far.got : null,
    further,
  };
}
