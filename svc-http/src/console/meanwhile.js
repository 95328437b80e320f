// Changing what others may change too: what a dialog opened with is kept, and what stands is read again just before it is changed.
import { Facts, html } from "./kit.js";
import { useState } from "./hooks.js";
import { useApi } from "./list.js";
import { isDone } from "./server.js";

const FASTER = "Somebody else has changed the same meanwhile. Look at what stands now, above; save again to put yours in its place.";
const ordered = (/** @type {string} */ _, /** @type {any} */ it) => (it && typeof it === "object" && !Array.isArray(it) ? Object.fromEntries(Object.entries(it).sort()) : it);

/** Whether two values are the same, whatever the order of their members. @param {any} a @param {any} b */
export const isSame = (a, b) => JSON.stringify(a, ordered) === JSON.stringify(b, ordered);

/**
 * What stands at `path`, as a dialog opened with it (`began`) and as it was last seen (`known`). `look` reads it again: where one of
 * the parts is not as it was known, nothing is to be sent (`stop` says why), and `others` are those parts until it is closed. Who
 * looks and sends again means it.
 * @param {any} of
 * @param {string} path
 */
export function usePinned(of, path) {
  const api = useApi();
  const [began] = useState(of);
  const [known, setKnown] = useState(of);
  const [others, setOthers] = useState(/** @type {any[]} */ ([]));
  /** @param {any[]} parts @param {(said: any, part: any) => any} at @returns {Promise<{ stop?: any, now?: any }>} */
  const look = async (parts, at) => {
    const got = await api("GET", path);
    if (!isDone(got)) return { stop: got };
    const meanwhile = parts.filter((it) => !isSame(at(got.said, it), at(known, it)));
    if (!meanwhile.length) return { now: got.said };
    setKnown(got.said);
    setOthers(meanwhile);
    return { stop: FASTER, now: got.said };
  };
  return { began, known, others, look };
}

/**
 * A list with what somebody ticked and unticked done to what stands now: what others put in or took out stays so, and what was not
 * offered too.
 * @param {string[] | number[]} now
 * @param {{ began: any[], chosen: any[], offered: any[] }} of
 * @returns {any[]}
 */
export function chosenOver(now, { began, chosen, offered }) {
  const left = offered.filter((it) => began.includes(it) && !chosen.includes(it));
  const came = chosen.filter((it) => !began.includes(it));
  return [...new Set([...now.filter((/** @type {any} */ it) => !left.includes(it)), ...came])];
}

/** What others have changed, as it stands now. @param {{ of: [string, any][] }} props */
export const Others = ({ of }) =>
  of.length > 0 && html`<div class="note"><p><strong>Changed by somebody else since you opened this</strong></p><${Facts} of=${of} /></div>`;
