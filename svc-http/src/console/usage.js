// What is used of a mandate's limits a period: in words, and as a meter. The sums are those that the gate goes by.
import { Badge, Money, Time, html, useNow } from "./kit.js";
import { Parts } from "./charts.js";
import { useEffect } from "./hooks.js";
import { count, money } from "./text.js";

const RUNNING = /** @type {Record<string, string>} */ ({ hour: "this hour", day: "today", week: "this week", month: "this month", year: "this year" });
// The server's clock and this one may be apart by so much.
const APART_MS = 2_000;

/** What a running period holds. @typedef {{ period: string, periodEnd: string, limit: number, used: number, remaining: number, clearsAt?: string }} Running */

/** @param {Running} of */
const partOf = ({ limit, used }) => `${limit ? Math.floor((100 * used) / limit) : 100} %`;

/** What of each limit a period is used, what is left and when it clears. @param {{ of?: { spend?: Running & { currency: string, reserved: number, settled: number, excess: number }, count?: Running } }} props */
export function Usage({ of: { spend, count: actions } = {} }) {
  if (!spend && !actions) return null;
  return html`<div class="usage">${spend && html`<${Spent} of=${spend} />`}${actions && html`<${Counted} of=${actions} />`}</div>`;
}

/** @param {{ of: Running & { currency: string, reserved: number, settled: number, excess: number } }} props */
function Spent({ of }) {
  const { currency, limit, used, remaining, reserved, settled, excess, period } = of;
  const amount = (/** @type {number} */ it) => html`<${Money} amount=${it} currency=${currency} />`;
  return html`<p><strong>${amount(used)}</strong> of ${amount(limit)} used ${RUNNING[period]}: <span class="number">${partOf(of)}</span><${Full} of=${of} /></p>
    <${Meter} label=${`Amount used ${RUNNING[period]}`} said=${`${money(used, currency)} of ${money(limit, currency)}`} of=${of} parts=${[{ kind: of.clearsAt ? "past" : "used", value: settled }, { kind: "reserved", value: reserved }]} />
    <p class="meta"><span>${amount(settled)} settled</span><span>${amount(reserved)} reserved</span><span>${amount(remaining)} left</span><${Clears} of=${of} />${excess > 0 && html`<span>besides, ${amount(excess)} that persons let pass beyond the limit</span>`}</p>`;
}

/** @param {{ of: Running }} props */
function Counted({ of }) {
  const { limit, used, remaining, period } = of;
  return html`<p><strong class="number">${used.toLocaleString("en")}</strong> of ${count(limit, "action")} used ${RUNNING[period]}: <span class="number">${partOf(of)}</span><${Full} of=${of} /></p>
    <${Meter} label=${`Actions used ${RUNNING[period]}`} said=${`${used.toLocaleString("en")} of ${count(limit, "action")}`} of=${of} parts=${[{ kind: of.clearsAt ? "past" : "used", value: used }]} />
    <p class="meta"><span>${remaining.toLocaleString("en")} left</span><${Clears} of=${of} /></p>`;
}

/** @param {{ of: Running }} props */
const Full = ({ of: { remaining } }) => remaining === 0 && html` <${Badge} kind="bad">Used up<//>`;

/** @param {{ of: Running }} props */
const Clears = ({ of: { periodEnd } }) => html`<span>clears at <${Time} at=${periodEnd} /></span>`;

/** Where more than the limit is used, the whole is what is used. @param {{ label: string, said: string, of: Running, parts: { kind: string, value: number }[] }} props */
function Meter({ label, said, of: { limit, used }, parts }) {
  const as = { role: "meter", "aria-valuemin": 0, "aria-valuemax": limit, "aria-valuenow": Math.min(used, limit), "aria-valuetext": said };
  return html`<${Parts} label=${label} whole=${Math.max(limit, used)} parts=${parts} as=${as} />`;
}

/** Reads again once a period has ended, of which no event tells. @param {{ usage?: { spend?: Running, count?: Running } }[]} items @param {() => any} again */
export function useTurn(items, again) {
  const moment = useNow() - APART_MS;
  const running = items.flatMap(({ usage }) => [usage?.spend, usage?.count]);
  const ended = running.map((it) => it?.periodEnd ?? "").filter((it) => Date.parse(it) <= moment);
  const turn = [...new Set(ended)].sort().join();
  useEffect(() => {
    if (turn) again();
  }, [turn]);
}
