// Whether a record stands in the ledger as it is shown, found out here and not by asking the server: from the record's text over the
// tree to the signature. Nothing here touches the page.

const NOTE_DASH = "\u2014";
// What tells a key of Ed25519 from others in a signed note (C2SP signed-note).
const ED25519 = 1;
const [LEAF, NODE] = [0, 1];
const HASH_BYTES = 32;

/**
 * @typedef {{ name: string, holds: boolean | null, said: string }} Step what was checked; `null`: it could not be
 * @typedef {{ steps: Step[], verdict: "whole" | "partly" | "broken" | "unchecked" }} Finding
 */

/** The one writing of a JSON value (RFC 8785). @param {any} value @returns {string} */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  // Without a comparison, names are sorted by their UTF-16 units, as the form asks.
  return `{${Object.keys(value).sort().map((it) => `${JSON.stringify(it)}:${canonical(value[it])}`).join(",")}}`;
}

/** @param {(Uint8Array | number)[]} parts */
function joined(parts) {
  const all = parts.flatMap((it) => (typeof it === "number" ? [it] : [...it]));
  return new Uint8Array(all);
}

/** @param {...(Uint8Array | number)} parts */
export const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", joined(parts)));

const utf8 = (/** @type {string} */ text) => new TextEncoder().encode(text);

export const hex = (/** @type {Uint8Array} */ bytes) => [...bytes].map((it) => it.toString(16).padStart(2, "0")).join("");

/** Bytes of hex; nothing where the text is none. @param {unknown} text @returns {Uint8Array | null} */
function bytesOf(text) {
  if (typeof text !== "string" || !/^([0-9a-f]{2})*$/.test(text)) return null;
  return new Uint8Array((text.match(/../g) ?? []).map((it) => parseInt(it, 16)));
}

/** Bytes of base64, either alphabet; nothing where the text is none. @param {string} text */
function base64(text) {
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (it) => it.charCodeAt(0));
  } catch {
    return null;
  }
}

const same = (/** @type {Uint8Array | null} */ a, /** @type {Uint8Array | null} */ b) => !!a && !!b && hex(a) === hex(b);

/**
 * The root that a leaf and its way up lead to (RFC 9162, part 2.1.3.2); nothing where the way is none of this tree.
 * @param {Uint8Array} leaf
 * @param {number} index
 * @param {number} size
 * @param {unknown[]} path
 */
async function rootOver(leaf, index, size, path) {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size) || index < 0 || index >= size) return null;
  let [at, last, found] = [index, size - 1, leaf];
  const half = (/** @type {number} */ it) => Math.floor(it / 2);
  for (const text of path) {
    const step = bytesOf(text);
    if (step?.length !== HASH_BYTES || last === 0) return null;
    if (at % 2 === 1 || at === last) {
      found = await sha256(NODE, step, found);
      while (at !== 0 && at % 2 === 0) [at, last] = [half(at), half(last)];
    } else {
      found = await sha256(NODE, found, step);
    }
    [at, last] = [half(at), half(last)];
  }
  return last === 0 ? found : null;
}

/** What a checkpoint says, and its signatures (C2SP tlog-checkpoint); nothing where it is no signed note. @param {unknown} note */
function opened(note) {
  const [, body, signatures] = /^([^]*?\n)\n((?:\u2014 [^ \n]+ [^ \n]+\n)+)$/.exec(String(note)) ?? [];
  const [origin, size, root] = (body ?? "").split("\n");
  if (!signatures || !/^(0|[1-9][0-9]*)$/.test(size ?? "")) return null;
  const signed = signatures.trimEnd().split("\n").map((line) => line.split(" "));
  return { body, origin, size: Number(size), root: base64(root), signed: signed.filter((it) => it[0] === NOTE_DASH) };
}

/** Whether this browser knows the signature's algorithm. */
async function knowsEd25519() {
  return crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]).then(() => true, () => false);
}

/**
 * Which of the keys signed the note; nothing where none did.
 * @param {{ body: string, origin: string, signed: string[][] }} note
 * @param {any[]} keys
 */
async function signedBy({ body, origin, signed }, keys) {
  for (const [, name, text] of signed) {
    const raw = name === origin ? base64(text) : null;
    for (const { x, kid } of raw ? keys : []) {
      const key = base64(x);
      if (!raw || !key || !same(raw.subarray(0, 4), (await sha256(utf8(origin), 10, ED25519, key)).subarray(0, 4))) continue;
      const known = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
      if (await crypto.subtle.verify("Ed25519", known, raw.subarray(4), utf8(body))) return kid;
    }
  }
  return null;
}

/**
 * Checks a proof step by step. What comes behind a step that fails is checked all the same: each says what it found.
 * @param {any} proof as the server answered it
 * @param {any[] | null} keys those that the server publishes
 * @param {string} wid
 * @param {string} id the record that was asked for
 * @returns {Promise<Finding>}
 */
export async function check(proof, keys, wid, id) {
  if (!globalThis.crypto?.subtle) {
    return { steps: [{ name: "Nothing could be checked", holds: null, said: "A browser computes hashes only on pages that came by https, or from the same machine." }], verdict: "unchecked" };
  }
  const { hash, ...rest } = proof.record;
  const own = await sha256(utf8(canonical(rest)));
  const leaf = await sha256(LEAF, own);
  const root = await rootOver(leaf, proof.leafIndex, proof.treeSize, proof.path);
  const note = opened(proof.checkpoint);
  const isPlaced = proof.leafIndex === proof.record.seq && proof.record.id === id;
  /** @type {Step[]} */
  const steps = [
    { name: "The record is the one that was asked for", holds: isPlaced, said: isPlaced ? `It is record ${proof.record.seq}, and the proof is of that place.` : "Its id or its place is another's." },
    { name: "Its text is what was hashed", holds: hex(own) === hash, said: hex(own) === hash ? "SHA-256 over its canonical text (RFC 8785) is the hash that it carries." : "SHA-256 over its text is not the hash that it carries: the text or the hash was changed." },
    { name: "The hash is a leaf of the tree", holds: hex(leaf) === proof.leafHash, said: hex(leaf) === proof.leafHash ? "The leaf was computed anew from it (RFC 6962)." : "The leaf that the proof names is not that of this record." },
    climbed(root, note, proof),
    { name: "The checkpoint is this workspace's", holds: !!note?.origin.endsWith(`/${wid}`), said: note ? (note.origin.endsWith(`/${wid}`) ? `It is of the ledger ${note.origin}.` : "It is of another ledger.") : "It is no signed note." },
    await signature(note, keys),
  ];
  const isBroken = steps.some((it) => it.holds === false);
  return { steps, verdict: isBroken ? "broken" : steps.some((it) => it.holds === null) ? "partly" : "whole" };
}

/** @param {Uint8Array | null} root @param {any} note @param {any} proof @returns {Step} */
function climbed(root, note, proof) {
  const holds = same(root, note?.root ?? null) && note?.size === proof.treeSize;
  const many = proof.path.length;
  const said = holds
    ? `The leaf and ${many} ${many === 1 ? "hash" : "hashes"} beside its way lead to the root over all ${proof.treeSize} records that the checkpoint names.`
    : "The leaf and the hashes beside its way do not lead to the root that the checkpoint names.";
  return { name: "The way up leads to the checkpoint's root", holds, said };
}

/** @param {any} note @param {any[] | null} keys @returns {Promise<Step>} */
async function signature(note, keys) {
  const name = "The checkpoint is signed";
  if (!note) return { name, holds: false, said: "It is no signed note." };
  if (!keys) return { name, holds: null, said: "The published keys could not be read." };
  if (!(await knowsEd25519())) return { name, holds: null, said: "This browser has no Ed25519. The rest was checked; check the signature in another browser, or a bundle with svc evidence verify." };
  const kid = await signedBy(note, keys).catch(() => null);
  return kid
    ? { name, holds: true, said: `By the key ${kid}, which this server publishes at /.well-known/jwks.json.` }
    : { name, holds: false, said: "By none of the keys that this server publishes at /.well-known/jwks.json." };
}

/**
 * The commitments of a record by their dotted places.
 * @param {any} value
 * @param {string} path
 * @returns {[string, string][]}
 */
export function commitments(value, path = "data") {
  if (value === null || typeof value !== "object") return [];
  if (Object.keys(value).length === 1 && typeof value.commit === "string") return [[path, value.commit]];
  return Object.entries(value).flatMap(([name, it]) => commitments(it, `${path}.${name}`));
}

/**
 * Whether a text is what a record commits to.
 * @param {{ salt: string, text: string }} shown
 * @param {string} commit
 */
export async function discloses({ salt, text }, commit) {
  const bytes = bytesOf(salt);
  if (!globalThis.crypto?.subtle || !bytes) return null;
  return hex(await sha256(bytes, utf8(text))) === commit;
}
