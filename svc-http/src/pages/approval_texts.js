// How the page of an approval shows texts, amounts and instants, and writes JSON; a part of its script, before approval.js.
// What agents, strangers and members have written becomes text alone, each in a <bdi> of its own: none of it can be markup,
// turn round what stands beside it, or hide in it.
// Signs that nobody sees, each by itself; what joins those beside it or chooses their form is found first, with the one before it.
const UNSEEN = /([\u0620-\u06dc\u06de-\u06ff\u0750-\u077f\u08a0-\u08e1\u08e3-\u08ff][\u200c\u200d](?=[\u0620-\u06dc\u06de-\u06ff\u0750-\u077f\u08a0-\u08e1\u08e3-\u08ff])|[\u0710-\u074f][\u200c\u200d](?=[\u0710-\u074f])|[\u07ca-\u07f5][\u200c\u200d](?=[\u07ca-\u07f5])|[\u0900-\u097f][\u200c\u200d](?=[\u0900-\u097f])|[\u0980-\u09ff][\u200c\u200d](?=[\u0980-\u09ff])|[\u0a00-\u0a7f][\u200c\u200d](?=[\u0a00-\u0a7f])|[\u0a80-\u0aff][\u200c\u200d](?=[\u0a80-\u0aff])|[\u0b00-\u0b7f][\u200c\u200d](?=[\u0b00-\u0b7f])|[\u0b80-\u0bff][\u200c\u200d](?=[\u0b80-\u0bff])|[\u0c00-\u0c7f][\u200c\u200d](?=[\u0c00-\u0c7f])|[\u0c80-\u0cff][\u200c\u200d](?=[\u0c80-\u0cff])|[\u0d00-\u0d7f][\u200c\u200d](?=[\u0d00-\u0d7f])|[\u0d80-\u0dff][\u200c\u200d](?=[\u0d80-\u0dff])|[\u1000-\u109f][\u200c\u200d](?=[\u1000-\u109f])|[\u1780-\u17b3\u17b6-\u17d3][\u200c\u200d](?=[\u1780-\u17b3\u17b6-\u17d3])|[\u1820-\u18aa][\u200c\u200d](?=[\u1820-\u18aa])|[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca][\u200c\u200d]|\p{ExtPict}(?:\p{EMod}|\ufe0f)?\u200d(?=\p{ExtPict})|\p{ExtPict}[\ufe0e\ufe0f]|[0-9#*]\ufe0f(?=\u20e3)|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}][\ufe00-\ufe02\u{e0100}-\u{e011f}]|[\u1820-\u18aa][\u180b-\u180d\u180f])|(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}\u2800]/gu;

// Texts of which nothing would be seen.
const BLANK = /^[\s\p{Cc}\p{Cf}\p{DI}\u2800]*$/u;

// So many spaces and ends of lines in a row push what follows out of sight: they are counted.
const RUN = /[\p{Zs}\t\n]{17,}/gu;

// Marks in a row, with what they stand on; none stands on a space, or on the name of a sign, which is ours.
const MARKS = /([^\p{M}\u200c\u200d\s\u203a])?([\p{M}\u200c\u200d]+)/gu;

// So many of them stand as they are; more would leave their line.
const MARKS_MAX = 8;

// Where others' text has the name of a sign, or what reads as one.
const NAMED = /(\u2039(?:\d+ \u00d7 )?U\+[^\u2039\u203a]*\u203a)/u;

function plain(text) {
  const code = (it) => `U+${it.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  const named = (it) => `\u2039${code(it)}\u203a`;
  const counted = (it) => `\u2039${it.length} \u00d7 ${[...new Set(it)].map(code).join(" ")}\u203a`;
  const upheld = (it, base, run) => (base ?? "") + Array.from(run, (mark, place) => (base && place < MARKS_MAX ? mark : named(mark))).join("");
  const said = String(text);
  if (BLANK.test(said)) return said.replace(/([\p{Zs}\t\n]{17,})|[^ \n\t]/gu, (it, run) => (run ? counted(it) : named(it)));
  return said.replace(UNSEEN, (it, shown) => shown ?? named(it)).replace(MARKS, upheld).replace(RUN, counted);
}

function quoted(text, dir = "auto") {
  const bdi = document.createElement("bdi");
  bdi.dir = dir;
  // The name of a sign is read from the left, whichever way what stands around it is.
  bdi.append(...plain(text).split(NAMED).map((it, place) => (place % 2 ? named(it) : it)));
  return bdi;
}

function named(sign) {
  const bdi = document.createElement("bdi");
  [bdi.dir, bdi.textContent] = ["ltr", sign];
  return bdi;
}

function code(text) {
  const it = document.createElement("code");
  it.append(quoted(text, "ltr"));
  return it;
}

// A message of the server's: what it quotes, which others may have written, stands between backticks.
function told(message) {
  return message.split("`").map((it, place) => (place % 2 ? code(it) : quoted(it)));
}

// Said in the place of a name, where the network has none for what was written.
const NO_HOST = "none: no host is written like this";

// The domain of an address as the network has it, where it is written in other letters than those: some look like these.
function network(written) {
  const host = String(written ?? "").split("@").at(-1);
  if (/^[!-~]*$/.test(host)) return null;
  // A reader of addresses would take what stands behind one of these for another part, or for signs that are not there.
  if (/[%/?#:\\[\]]/.test(host)) return NO_HOST;
  try {
    return new URL(`https://${host}`).hostname;
  } catch {
    return NO_HOST;
  }
}

// JSON that others sent. What stands before a line's first sign is this page's, and no line of it begins within a text.
function json(value) {
  const bdi = quoted("", "ltr");
  const lines = JSON.stringify(value, null, 2).split("\n");
  bdi.textContent = lines.map((it) => " ".repeat(it.search(/[^ ]/)) + plain(it.trimStart())).join("\n");
  return bdi;
}

// Others' texts in a row: where one ends is seen also where it holds a comma.
function entries(list) {
  return list.flatMap((it, place) => {
    const entry = document.createElement("code");
    entry.className = "entry";
    entry.append(quoted(it));
    return place ? [", ", entry] : [entry];
  });
}

// JSON in the one writing that digests are of (RFC 8785).
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((it) => `${JSON.stringify(it)}:${canonical(value[it])}`).join()}}`;
}

function hex(bytes) {
  return Array.from(new Uint8Array(bytes), (it) => it.toString(16).padStart(2, "0")).join("");
}

function put(id, ...nodes) {
  part(id).replaceChildren(...nodes);
  part(id).hidden = !nodes.length;
}

// A live region speaks when it is written, so it is written only where it changes.
function say(id, ...parts) {
  const nodes = parts.map((it) => (typeof it === "string" ? plain(it) : it));
  const text = nodes.map((it) => it.textContent ?? it).join("");
  if (part(id).textContent !== text) part(id).replaceChildren(...nodes);
}

function item(...nodes) {
  const li = document.createElement("li");
  li.append(...nodes);
  return li;
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

// A whole number of units as a decimal number, without a floating point on the way.
function decimal(units, digits) {
  const text = String(units).padStart(digits + 1, "0");
  return digits ? `${text.slice(0, -digits)}.${text.slice(-digits)}` : text;
}

// A currency and a number: the number is never broken, and smaller where a line has no room for it. A browser keeps all digits of one that
// is given as text.
/** @param {any} text @param {string} currency @param {number} least @param {number} most */
function amount(text, currency, least, most) {
  const number = document.createElement("span");
  number.className = "number";
  number.textContent = new Intl.NumberFormat("en", { minimumFractionDigits: least, maximumFractionDigits: most }).format(text);
  number.style.setProperty("--signs", `${number.textContent.length}`);
  return [`${currency} `, number];
}

function money({ amount: units, currency }) {
  const digits = Number(Object.keys(DIGITS).find((it) => DIGITS[it].includes(currency)) ?? 2);
  return amount(decimal(units, digits), currency, digits, digits);
}

const dollars = (micros) => amount(decimal(micros, 6), "USD", 2, 6);

/** @type {Intl.DateTimeFormatOptions} */
const MOMENT = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" };

// An instant in the workspace's zone, which is named: whoever reads this may be anywhere.
function time(at) {
  return moment.format(new Date(at));
}

// How instants are written in a zone; in UTC where the workspace's cannot be read, or is not known to this browser.
function momentIn(zone) {
  try {
    return new Intl.DateTimeFormat("en-GB", { ...MOMENT, timeZone: zone || "UTC" });
  } catch {
    return momentIn("UTC");
  }
}

function span(ms) {
  if (ms <= 0) return "no time left";
  const seconds = Math.floor(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours >= 48) return `${Math.floor(hours / 24)} days ${hours % 24} h left`;
  if (hours) return `${hours} h ${minutes} min left`;
  return minutes ? `${minutes} min left` : `${seconds} s left`;
}
