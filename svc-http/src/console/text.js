// Words for people: what others wrote, amounts and times. Nothing here touches the page.

// Signs that nobody sees, each by itself; what joins those beside it or chooses their form is found first, with the one before it. As
// the server has them, which writes this.
const UNSEEN = /([\u0620-\u06dc\u06de-\u06ff\u0750-\u077f\u08a0-\u08e1\u08e3-\u08ff][\u200c\u200d](?=[\u0620-\u06dc\u06de-\u06ff\u0750-\u077f\u08a0-\u08e1\u08e3-\u08ff])|[\u0710-\u074f][\u200c\u200d](?=[\u0710-\u074f])|[\u07ca-\u07f5][\u200c\u200d](?=[\u07ca-\u07f5])|[\u0900-\u097f][\u200c\u200d](?=[\u0900-\u097f])|[\u0980-\u09ff][\u200c\u200d](?=[\u0980-\u09ff])|[\u0a00-\u0a7f][\u200c\u200d](?=[\u0a00-\u0a7f])|[\u0a80-\u0aff][\u200c\u200d](?=[\u0a80-\u0aff])|[\u0b00-\u0b7f][\u200c\u200d](?=[\u0b00-\u0b7f])|[\u0b80-\u0bff][\u200c\u200d](?=[\u0b80-\u0bff])|[\u0c00-\u0c7f][\u200c\u200d](?=[\u0c00-\u0c7f])|[\u0c80-\u0cff][\u200c\u200d](?=[\u0c80-\u0cff])|[\u0d00-\u0d7f][\u200c\u200d](?=[\u0d00-\u0d7f])|[\u0d80-\u0dff][\u200c\u200d](?=[\u0d80-\u0dff])|[\u1000-\u109f][\u200c\u200d](?=[\u1000-\u109f])|[\u1780-\u17b3\u17b6-\u17d3][\u200c\u200d](?=[\u1780-\u17b3\u17b6-\u17d3])|[\u1820-\u18aa][\u200c\u200d](?=[\u1820-\u18aa])|[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca][\u200c\u200d]|\p{ExtPict}(?:\p{EMod}|\ufe0f)?\u200d(?=\p{ExtPict})|\p{ExtPict}[\ufe0e\ufe0f]|[0-9#*]\ufe0f(?=\u20e3)|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}][\ufe00-\ufe02\u{e0100}-\u{e011f}]|[\u1820-\u18aa][\u180b-\u180d\u180f])|(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}\u2800]/gu;
// Texts of which nothing would be seen.
const BLANK = /^[\s\p{Cc}\p{Cf}\p{DI}\u2800]*$/u;
// The digits of minor units that are not two, of currencies that were withdrawn too. A browser's own table differs from ISO 4217, by which amounts are sent.
const DIGITS = {
  0: "BIF BYR CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
  3: "BHD IQD JOD KWD LYD OMR TND",
  4: "CLF UYW",
};
const MINUTE = 60_000;
const [HOUR, DAY] = [60 * MINUTE, 24 * 60 * MINUTE];

// So many spaces and ends of lines in a row push what follows out of sight: they are counted.
const RUN = /[\p{Zs}\t\n]{17,}/gu;

// Marks in a row, with what they stand on; none stands on a space, or on the name of a sign, which is ours.
const MARKS = /([^\p{M}\u200c\u200d\s\u203a])?([\p{M}\u200c\u200d]+)/gu;
// So many of them stand as they are; more would leave their line.
const MARKS_MAX = 8;

/** @param {string} sign */
const code = (sign) => `U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
const named = (/** @type {string} */ sign) => `\u2039${code(sign)}\u203a`;
const counted = (/** @type {string} */ run) => `\u2039${run.length} \u00d7 ${[...new Set(run)].map(code).join(" ")}\u203a`;

/** @param {string} _ @param {string | undefined} base @param {string} run */
const upheld = (_, base, run) => (base ?? "") + Array.from(run, (mark, place) => (base && place < MARKS_MAX ? mark : named(mark))).join("");

/** Where others' text has such a name, or what reads as one. */
export const NAMED = /(\u2039(?:\d+ \u00d7 )?U\+[^\u2039\u203a]*\u203a)/u;

/**
 * Others' text with a name in the place of each sign that nobody sees, of many spaces in a row, and of marks that stand on no sign of it
 * or on many others.
 * @param {unknown} text
 */
export function plain(text) {
  const said = String(text ?? "");
  if (BLANK.test(said)) return said.replace(/([\p{Zs}\t\n]{17,})|[^ \n\t]/gu, (it, /** @type {string | undefined} */ run) => (run ? counted(it) : named(it)));
  return said.replace(UNSEEN, (it, /** @type {string | undefined} */ shown) => shown ?? named(it)).replace(MARKS, upheld).replace(RUN, counted);
}

/** A text as it is looked for and found: in any case, whichever way its accents are written. @param {string} text */
export const sought = (text) => text.normalize("NFC").toLowerCase();

/** Said in the place of a name, where the network has none for what was written. */
const NO_HOST = "none: no host is written like this";

/**
 * The domain of an address as the network has it, where it is written in other letters than those: some look like these. Empty where
 * it is not.
 * @param {string} written
 */
export function network(written) {
  const host = written.split("@").at(-1) ?? "";
  if (/^[!-~]*$/.test(host)) return "";
  // A reader of addresses would take what stands behind one of these for another part, or for signs that are not there.
  if (/[%/?#:\\[\]]/.test(host)) return NO_HOST;
  try {
    return new URL(`https://${host}`).hostname;
  } catch {
    return NO_HOST;
  }
}

/**
 * A line of JSON that others sent: what stands before its first sign is not theirs, as no line begins within a text. `+` or `-` may
 * stand before it.
 * @param {string} line
 */
export function lineOf(line) {
  const before = /^[+-]? */.exec(line)?.[0] ?? "";
  return before + plain(line.slice(before.length));
}

/**
 * JSON that others sent, to be shown as it is.
 * @param {unknown} value
 */
export const json = (value) => JSON.stringify(value, null, 2).split("\n").map(lineOf).join("\n");

/**
 * A message as a sentence.
 * @param {string} text
 */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

/**
 * `1 agent`, `2 agents`.
 * @param {number} n
 * @param {string} one
 * @param {string} many
 */
export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** @param {string} currency */
export function digits(currency) {
  return Number(Object.entries(DIGITS).find((it) => it[1].includes(currency))?.[0] ?? 2);
}

/**
 * A whole number of units as a decimal number, without a floating point on the way.
 * @param {number} units
 * @param {number} places
 */
export function decimal(units, places) {
  const sign = units < 0 ? "-" : "";
  const text = String(Math.abs(units)).padStart(places + 1, "0");
  return sign + (places ? `${text.slice(0, -places)}.${text.slice(-places)}` : text);
}

/**
 * @param {string} text a decimal number
 * @param {number} least
 * @param {number} most
 */
function grouped(text, least, most) {
  // A browser keeps all digits of a number that is given as text.
  const number = /** @type {any} */ (text);
  return new Intl.NumberFormat("en", { minimumFractionDigits: least, maximumFractionDigits: most }).format(number);
}

/**
 * `EUR 310.00`, of minor units.
 * @param {number} amount
 * @param {string} currency
 */
export function money(amount, currency) {
  const places = digits(currency);
  return `${currency}\u00a0${grouped(decimal(amount, places), places, places)}`;
}

/**
 * `USD 0.0021`, of micros: what model calls cost.
 * @param {number} micros
 */
export const dollars = (micros) => `USD\u00a0${grouped(decimal(micros, 6), 2, 6)}`;

/**
 * The minor units of what somebody typed as an amount of this currency; `null` where it is none. A comma means one thing here and
 * another there, so no amount has one.
 * @param {string} text
 * @param {string} currency
 */
export const minorUnits = (text, currency) => wholeUnits(text, digits(currency));

/**
 * The micros of what somebody typed as an amount of US dollars; `null` where it is none.
 * @param {string} text
 */
export const micros = (text) => wholeUnits(text, 6);

/**
 * Micros as somebody would type them: `0.25`, `3.00`, `0.000177`.
 * @param {number | null | undefined} amount
 */
export const typed = (amount) => (amount === null || amount === undefined ? "" : decimal(amount, 6).replace(/0{1,4}$/, ""));

/** @param {string} text @param {number} places */
function wholeUnits(text, places) {
  const [, whole, part = ""] = /^([0-9]{1,15})(?:\.([0-9]*))?$/.exec(text.trim()) ?? [];
  if (whole === undefined || part.length > places) return null;
  const units = Number(whole + part.padEnd(places, "0"));
  return Number.isSafeInteger(units) ? units : null;
}

/**
 * A day as a calendar has it, `2026-11-30`, so many days on.
 * @param {string} day
 * @param {number} by
 */
export function dayOn(day, by) {
  const next = new Date(`${day}T12:00:00Z`);
  if (Number.isNaN(next.getTime())) return day;
  next.setUTCDate(next.getUTCDate() + by);
  // Behind the last day that has four digits for its year there is none that could be asked for.
  return next.getUTCFullYear() > 9999 || Number.isNaN(next.getTime()) ? day : next.toISOString().slice(0, 10);
}

/**
 * An instant in a zone, with its seconds and the zone's name; `now`: without them, and without the year where it is the one that
 * runs there at this moment.
 * @param {string | number} at
 * @param {string} [zone]
 * @param {number} [now]
 */
export function instant(at, zone, now) {
  /** @type {Intl.DateTimeFormatOptions} */
  const how = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const year = /** @type {const} */ ({ year: "numeric" });
  const yearOf = (/** @type {string | number} */ moment) => new Intl.DateTimeFormat("en-GB", { ...year, timeZone: zone }).format(new Date(moment));
  const more = now === undefined ? { ...year, second: "2-digit", timeZoneName: "short" } : yearOf(at) === yearOf(now) ? {} : year;
  return new Intl.DateTimeFormat("en-GB", { ...how, .../** @type {object} */ (more), timeZone: zone }).format(new Date(at));
}

/** @param {number} ms a span, positive */
function span(ms) {
  if (ms < MINUTE) return `${Math.max(1, Math.floor(ms / 1000))} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} days`;
}

/**
 * How long ago something was, or how long until it is.
 * @param {string} at
 * @param {number} now
 */
export function distance(at, now) {
  const ms = Date.parse(at) - now;
  if (Math.abs(ms) < 5_000) return "now";
  return ms < 0 ? `${span(-ms)} ago` : `in ${span(ms)}`;
}

/**
 * How long is left until an instant.
 * @param {string} at
 * @param {number} now
 */
export function left(at, now) {
  const ms = Date.parse(at) - now;
  return ms <= 0 ? "no time left" : `${span(ms)} left`;
}

/**
 * What a field of local date and time holds for an instant, in a zone.
 * @param {string | number} at
 * @param {string} [zone]
 */
export function localTime(at, zone) {
  /** @type {Intl.DateTimeFormatOptions} */
  const how = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const parts = new Intl.DateTimeFormat("en-GB", { ...how, timeZone: zone }).formatToParts(new Date(at));
  const of = (/** @type {string} */ type) => parts.find((it) => it.type === type)?.value ?? "00";
  return `${of("year").padStart(4, "0")}-${of("month")}-${of("day")}T${of("hour")}:${of("minute")}`;
}

/**
 * The instant of what a field of local date and time holds, in a zone; `null` where it is none. Where clocks are turned back, an
 * hour that comes twice is meant as it comes first; one that is left out is counted on by the clock before it, so that a day which
 * has no midnight begins with its first minute.
 * @param {string} local
 * @param {string} [zone]
 */
export function fromLocal(local, zone) {
  const wanted = Date.parse(`${local}Z`);
  // A day to each side, as far as it goes, holds the one change that there may be.
  const [before, after] = [wanted - DAY, wanted + DAY].map((at) => (Number.isNaN(new Date(at).getTime()) ? NaN : wanted - (Date.parse(`${localTime(at, zone)}Z`) - at)));
  if (before === undefined || after === undefined || Number.isNaN(before)) return null;
  const isThere = (/** @type {number} */ at) => Date.parse(`${localTime(at, zone)}Z`) === wanted;
  return new Date(isThere(before) || !isThere(after) ? before : after).toISOString();
}

/**
 * The lines of a text that hold something, and on each what stands between commas. What was there before stays as it was, commas
 * and all.
 * @param {string} text
 * @param {string[]} [before]
 */
export const lines = (text, before = []) =>
  text.split("\n").flatMap((line) => (before.includes(line.trim()) ? [line] : line.split(","))).map((it) => it.trim()).filter(Boolean);

/** Which member an action of a type is about; one of another type is about none of them, whichever it holds. */
export const ABOUT = /** @type {Record<string, string>} */ ({
  payment: "payment",
  refund: "payment",
  transfer: "payment",
  "tool.call": "tool",
  "mcp.call": "tool",
  "data.share": "data",
});

/** What an agent asks, by the type of its action. */
export const ASKS = /** @type {Record<string, string>} */ ({
  payment: "asks to pay",
  refund: "asks to pay back",
  transfer: "asks to transfer money",
  deploy: "asks to deploy software",
  "tool.call": "asks to use a tool",
  "mcp.call": "asks to use a tool",
  "data.share": "asks to share data",
  "message.send": "asks to send a message",
  "code.execute": "asks to run code",
  "file.write": "asks to write a file",
  "record.delete": "asks to delete a record",
  "access.grant": "asks to give access",
  "infra.change": "asks to change infrastructure",
});
