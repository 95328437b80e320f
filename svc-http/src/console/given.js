// What a tool is given, as the gate was shown it, and whether that is all of it.
import { useEffect, useState } from "./hooks.js";
import { Json, html } from "./kit.js";
import { canonical, hex, sha256 } from "./proof.js";
import { count } from "./text.js";

/** @param {{ of: { input?: any, inputDigest?: string, inputBytes?: number } }} props */
export function Given({ of: { input, inputDigest, inputBytes } }) {
  const shown = input ? canonical(input) : "";
  const rest = useRest(shown, inputDigest, inputBytes);
  return html`
    ${rest && html`<div class="note"><p>${rest}</p></div>`}
    ${input && html`<details class="card" open><summary>What the tool is given</summary><${Json} of=${input} /></details>`}`;
}

/**
 * What is said where a tool may be given something else than stands on the page: digest and length may stand for an input that was not
 * sent, or beside what is left of one. Empty where all of it stands there, and until that is known.
 * @param {string} shown @param {string | undefined} digest @param {number | undefined} bytes
 */
function useRest(shown, digest, bytes) {
  const [own, setOwn] = useState(/** @type {string | null} */ (null));
  const text = new TextEncoder().encode(shown);
  const isOfLength = bytes === undefined || bytes === text.length;
  const canCompare = !!(isOfLength && digest && shown && crypto.subtle);
  useEffect(() => {
    let isLeft = false;
    setOwn(null);
    if (canCompare) sha256(text).then((it) => !isLeft && setOwn(`sha256:${hex(it)}`));
    return () => {
      isLeft = true;
    };
  }, [shown, digest, canCompare]);
  if (!digest && bytes === undefined) return "";
  const all = `it is ${bytes === undefined ? "an unknown number of bytes" : count(bytes, "byte")} in all.`;
  if (!isOfLength || !shown) return `Not all of what the tool is given is here: ${all}`;
  if (!digest) return "";
  if (!canCompare) return `Without https this page cannot tell whether what stands here is all that the tool is given: ${all}`;
  return own === null || own === digest ? "" : `Not all of what the tool is given is here: ${all}`;
}
