// Going about by the keyboard: where the focus goes on once what had it has gone, and keys that are held down.

/** What has the focus, and the parts of the page that it stands in, the innermost first. @typedef {{ node: any, around: Element[] }} Focused */

const NOWHERE = /** @type {Focused} */ ({ node: null, around: [] });
let held = NOWHERE;

/** @param {any} node @returns {Focused} */
function focusedAt(node) {
  const around = [];
  for (let part = node.closest?.("section, dialog, main"); part; part = part.parentElement?.closest("section, dialog, main")) around.push(part);
  return { node, around };
}

const isLost = () => !document.activeElement || document.activeElement === document.body;

/** What has the focus, or had it last where that has gone. */
export const focused = () => (isLost() ? held : focusedAt(document.activeElement));

/** Leads back to what had the focus. @param {Focused} from */
export function leadBack(from) {
  held = from;
  from.node?.focus?.();
}

/** @param {any} heading */
export function leadTo(heading) {
  if (!heading.hasAttribute("tabindex")) heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

/** Leads to the heading of what the focus was in, where it has gone with what had it. */
function leadOn() {
  if (!held.node || held.node.isConnected || !isLost()) return;
  const inside = held.around.filter((it) => it.isConnected).map((it) => it.querySelector("h1, h2, h3"));
  const heading = [...inside, document.querySelector("main h1")].find(Boolean);
  if (heading) leadTo(heading);
}

/**
 * Once for the whole page. Whoever pressed what goes away with its act goes on at the heading of where it stood: browsers let the
 * focus fall to the page as a whole. A key that is held down presses no further button, of which the next may end something.
 */
export function keepToKeyboard() {
  document.addEventListener("focusin", (event) => void (held = focusedAt(event.target)));
  // Whoever leaves something that stays, to nothing else, is not led anywhere.
  document.addEventListener("focusout", () => {
    const { node } = held;
    queueMicrotask(() => {
      if (node && held.node === node && node.isConnected && document.activeElement !== node) held = NOWHERE;
    });
  });
  // What a page leads to itself comes first: its effects run after the frame is drawn.
  const look = () => held.node && !held.node.isConnected && isLost() && requestAnimationFrame(() => setTimeout(leadOn));
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  const press = (/** @type {any} */ event) => event.repeat && event.key === "Enter" && event.target.localName !== "textarea" && event.preventDefault();
  document.addEventListener("keydown", press, true);
}
