// What happens in a workspace, as it happens: server-sent events, read by `fetch` so that a broken line is taken up where it broke
// and a refusal is told from silence.
import { ROOT, session } from "./server.js";

// A line that says nothing for so long is broken: the server says every 15 seconds that it is there.
const SILENT_MS = 40_000;
const AGAIN_MS = 2_000;
const AGAIN_MS_MAX = 60_000;

/**
 * @typedef {{ end: () => void, again: () => void }} Line
 * @typedef {{ type: string, id?: string, agentId?: string, actionId?: string, at: string }} Told
 * @typedef {"on" | "off" | "barred"} Standing
 */

/**
 * Follows a workspace until it is ended. `hear` is told each event, and one of type `reset` where some were missed; `stand` whether
 * the line is there, or that the workspace does not take this session now, which is asked again in a while, and by `again` at once.
 * @param {string} wid
 * @param {(told: Told) => void} hear
 * @param {(standing: Standing) => void} stand
 * @returns {Line}
 */
export function follow(wid, hear, stand) {
  const ended = new AbortController();
  let heard = "";
  let wait = AGAIN_MS;
  /** @type {() => void} */
  let wake = () => {};
  /** @type {() => void} */
  let cut = () => {};

  const take = (/** @type {string} */ block) => {
    const members = new Map(block.split("\n").map((it) => /** @type {[string, string]} */ ([it.split(":")[0], it.slice(it.indexOf(":") + 2)])));
    heard = members.get("id") ?? heard;
    const name = members.get("event");
    if (name && name !== "ping") hear(JSON.parse(members.get("data") ?? "{}"));
  };

  const read = async () => {
    const line = new AbortController();
    cut = () => line.abort();
    const cutThis = cut;
    ended.signal.addEventListener("abort", cutThis);
    let timer = setTimeout(cutThis, SILENT_MS);
    try {
      /** @type {Record<string, string>} */
      const headers = heard ? { "last-event-id": heard } : {};
      const answer = await fetch(new URL(`api/w/${wid}/events`, ROOT), { headers, signal: line.signal });
      if (answer.status === 401) session.dispatchEvent(new Event("ended"));
      if (answer.status === 401) return ended.abort();
      if (answer.status === 403 || answer.status === 404) {
        wait = AGAIN_MS_MAX;
        return /** @type {const} */ ("barred");
      }
      if (!answer.ok || !answer.body) return void (wait = Math.max(wait, 1000 * Number(answer.headers.get("retry-after"))));
      stand("on");
      wait = AGAIN_MS;
      let text = "";
      const pieces = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) {
        clearTimeout(timer);
        timer = setTimeout(cutThis, SILENT_MS);
        text += piece.value;
        const blocks = text.split("\n\n");
        text = blocks.pop() ?? "";
        blocks.forEach(take);
      }
    } finally {
      clearTimeout(timer);
      ended.signal.removeEventListener("abort", cutThis);
    }
  };

  const run = async () => {
    while (!ended.signal.aborted) {
      // A page that nobody sees holds no line: a browser has few of them for one server. It goes on where it was.
      const standing = document.hidden ? undefined : await read().catch(() => undefined);
      if (ended.signal.aborted) return;
      stand(standing ?? "off");
      await new Promise((done) => {
        wake = () => done(undefined);
        if (!document.hidden) setTimeout(wake, wait);
      });
      wait = Math.min(2 * wait, AGAIN_MS_MAX);
    }
  };

  const again = () => {
    wait = AGAIN_MS;
    wake();
  };
  const seen = () => (document.hidden ? cut() : again());
  document.addEventListener("visibilitychange", seen);
  ended.signal.addEventListener("abort", () => document.removeEventListener("visibilitychange", seen));
  run();
  return { end: () => ended.abort(), again };
}
