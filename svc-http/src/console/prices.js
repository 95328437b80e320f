// What a model costs: the usual prices as fields in US dollars, the rest as the interface has it.
import { Field, html } from "./kit.js";
import { ROOT } from "./server.js";
import { micros, typed } from "./text.js";

/** Prices that are plain numbers: of a million tokens, then of one use. @type {[string, string][]} */
export const PRICES = [
  ["input", "Input (USD)"], ["output", "Output (USD)"], ["cachedInput", "Input from cache (USD)"], ["cacheWrite", "Input to cache (USD)"],
  ["cacheWriteLong", "Input to cache for an hour (USD)"], ["reasoning", "Reasoning (USD)"], ["audioOutput", "Audio output (USD)"],
  ["imageOutput", "Image output (USD)"],
  ["perRequest", "A call (USD)"], ["perImage", "An image (USD)"], ["perAudioSecond", "A second of audio (USD)"],
];
const USUAL = 4;
const MILLION = 8;
const PRICE = "A price is a number like 0.25, without commas or spaces.";

/** @param {{ of?: any, isNew?: boolean }} props */
export function Prices({ of, isNew = false }) {
  const was = of ?? {};
  const { more } = pricesOf.split(of);
  const field = (/** @type {[string, string]} */ [name, label]) => html`<${Field} key=${name} name=${`price ${name}`} fault=${`prices.${name}`} label=${label} value=${typed(was[name])} more=${{ inputmode: "decimal" }} />`;
  const isMore = PRICES.slice(USUAL).some((it) => was[it[0]] !== undefined) || !!more;
  return html`<fieldset><legend>Prices of a million tokens</legend>
    <small>${isNew ? "All empty: as the catalogue knows them, if it does." : "All empty: it has no price of its own, but that of the catalogue, if that knows one."} Without any its calls are refused where policy is enforced.</small>
    <div class="pair">${PRICES.slice(0, USUAL).map(field)}</div>
    <details open=${isMore}><summary>Further prices</summary>
      <div class="pair">${PRICES.slice(USUAL, MILLION).map(field)}</div>
      <p>Of one use:</p>
      <div class="pair">${PRICES.slice(MILLION).map(field)}</div>
      <${Field} name="price more" fault="prices" as="lines" label="Steps, service tiers, places and tools" value=${more} more=${{ spellcheck: false }} hint=${html`JSON as the <a href=${new URL("docs", ROOT).pathname} target="_blank" rel="noopener">reference</a> has it, in micros (millionths of a US dollar), such as <code>{"tiers": [{"aboveInputTokens": 200000, "prices": {"input": 6000000, "output": 22500000}}]}</code>.`} />
    </details>
  </fieldset>`;
}

export const pricesOf = {
  /** The prices that have no field, as a text. @param {any} prices */
  split(prices) {
    const rest = Object.entries(prices ?? {}).filter(([name]) => !PRICES.some((it) => it[0] === name));
    return { more: rest.length ? JSON.stringify(Object.fromEntries(rest), null, 1) : "" };
  },

  /**
   * What the fields say: prices, `null` for none, or what is wrong with which field.
   * @param {Record<string, string>} values
   * @returns {{ all: Record<string, any> | null, faults?: Record<string, string> }}
   */
  fields(values) {
    const faults = /** @type {Record<string, string>} */ ({});
    const all = /** @type {Record<string, any>} */ ({});
    for (const [name] of PRICES) {
      const text = values[`price ${name}`].trim();
      if (!text) continue;
      const price = micros(text);
      if (price === null) faults[`prices.${name}`] = PRICE;
      else all[name] = price;
    }
    const more = values["price more"].trim();
    const read = more ? objectOf(more) : {};
    if (read) Object.assign(all, read);
    else faults.prices = "This is no JSON object.";
    return Object.keys(faults).length ? { all: null, faults } : { all: Object.keys(all).length ? all : null };
  },
};

/** @param {string} text */
function objectOf(text) {
  try {
    const said = JSON.parse(text);
    return said && typeof said === "object" && !Array.isArray(said) ? said : null;
  } catch {
    return null;
  }
}
