// What is kept with each place in the browser's history, for whoever comes back to it: how much of a list stood there, and how far
// down the page they were.

// Parts of a list that are read anew at once.
const PARTS_MAX = 20;
// For how long what is still being read may lead down to where one was.
const PATIENCE_MS = 3_000;
/** What tells that somebody has gone on by themselves. */
const MOVES = ["wheel", "touchmove", "keydown", "pointerdown"];

/** @returns {{ parts?: Record<string, number>, down?: number }} */
const kept = () => history.state ?? {};
const keep = (/** @type {{ parts?: Record<string, number>, down?: number }} */ more) => history.replaceState({ ...kept(), ...more }, "");

/** How many parts of a list stood here. @param {string} list */
export const partsOf = (list) => Math.min(kept().parts?.[list] ?? 1, PARTS_MAX);

/** @param {string} list @param {number} many */
export const keepParts = (list, many) => keep({ parts: { ...kept().parts, [list]: many } });

/** Keeps how far down one is, before another page takes this one's place. */
export const keepDown = () => keep({ down: Math.round(scrollY) });

/** Stops leading down. */
let stop = () => {};

/** Leads down to where one was here, however the page grows and shrinks until it is all there, unless one has moved before. */
export function comeBack() {
  stop();
  const { down = 0 } = kept();
  scrollTo(0, down);
  if (!down) return;
  const grown = new ResizeObserver(() => scrollTo(0, down));
  const end = () => stop();
  const timer = setTimeout(end, PATIENCE_MS);
  stop = () => {
    stop = () => {};
    grown.disconnect();
    clearTimeout(timer);
    for (const move of MOVES) removeEventListener(move, end);
  };
  grown.observe(document.body);
  for (const move of MOVES) addEventListener(move, end, { passive: true });
}
