// Charts: plain SVG whose numbers also stand beside it as text, so nobody needs the picture. They are drawn with attributes alone,
// as the page's policy takes no style that a script writes.
import { html } from "./kit.js";

const HIGH = 100;
const STEP = 10;
const GAP = 2;
// A bar that is there is seen, however small its part.
const LEAST = 1.5;

/**
 * A bar a day; `shown` writes a value.
 * @param {{ title: string, of: { day: string, value: number }[], shown: (value: number) => string }} props
 */
export function Days({ title, of, shown }) {
  const most = Math.max(...of.map((it) => it.value), 1);
  const bar = (/** @type {{ day: string, value: number }} */ { day, value }, /** @type {number} */ place) => {
    const high = value > 0 ? Math.max((HIGH * value) / most, LEAST) : 0;
    return html`<g key=${day}><title>${day}: ${shown(value)}</title>
      <rect class="back" x=${place * STEP} y="0" width=${STEP} height=${HIGH} />
      <rect class="used" x=${place * STEP + GAP / 2} y=${HIGH - high} width=${STEP - GAP} height=${high} /></g>`;
  };
  const best = of.reduce((a, b) => (b.value > a.value ? b : a), of[0]);
  const said = best.value > 0 ? `the most on ${best.day}, ${shown(best.value)}` : "nothing on any day";
  return html`<figure class="chart">
    <figcaption><span>${title}</span><span class="number">up to ${shown(best.value)} a day</span></figcaption>
    <svg role="img" aria-label=${`${title}, ${of[0].day} to ${of[of.length - 1].day}: ${said}`} viewBox=${`0 0 ${of.length * STEP} ${HIGH}`} preserveAspectRatio="none">${of.map(bar)}</svg>
    <p class="ends" aria-hidden="true"><span>${of[0].day}</span><span>${of[of.length - 1].day}</span></p>
  </figure>`;
}

/** How much of the most a number is, beside the number. @param {{ value: number, most: number, kind?: string }} props */
export const Share = ({ value, most, kind = "used" }) => html`<svg class="share" aria-hidden="true" viewBox="0 0 100 8" preserveAspectRatio="none">
  <rect class="track" width="100" height="8" /><rect class=${kind} width=${value > 0 ? Math.max((100 * value) / Math.max(most, 1), LEAST) : 0} height="8" />
</svg>`;

/**
 * Parts of a whole, one behind the other, with marks across: what has been used of a limit and what happens where. `as`: what it is to
 * whoever hears the page.
 * @param {{ label: string, parts: { kind: string, value: number }[], whole: number, marks?: { kind: string, value: number }[], as?: Record<string, any> }} props
 */
export function Parts({ label, parts, whole, marks = [], as = { role: "img" } }) {
  const at = (/** @type {number} */ value) => (100 * value) / Math.max(whole, 1);
  let from = 0;
  const part = (/** @type {{ kind: string, value: number }} */ { kind, value }) => {
    const width = value > 0 ? Math.max(at(value), 0.4) : 0;
    from += width;
    return html`<rect key=${kind} class=${kind} x=${Math.min(from, 100) - width} width=${width} height="14" />`;
  };
  return html`<svg class="parts" ...${as} aria-label=${label} viewBox="0 0 100 14" preserveAspectRatio="none">
    <rect class="track" width="100" height="14" />${parts.map(part)}
    ${marks.map((it) => html`<rect key=${it.kind} class=${`mark ${it.kind}`} x=${Math.min(at(it.value), 99.6)} width=".4" height="14" />`)}
  </svg>`;
}
