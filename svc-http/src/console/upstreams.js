// Providers of models: where calls go, and how they fare. A key goes in and never comes out; what is shown is its end.
import { Badge, Button, Dialog, Empty, Facts, Field, Form, Pager, Quoted, Shown, Time, html, usePlace } from "./kit.js";
import { Ending } from "./ending.js";
import { useState } from "./hooks.js";
import { Who, useApi, useList } from "./list.js";
import { Others, isSame, usePinned } from "./meanwhile.js";
import { isDone, told, wrongFields } from "./server.js";

/** @type {[string, string][]} */
const SHAPES = [["chat", "The chat-completions shape"], ["messages", "The messages shape"]];
const HEALTH = /** @type {Record<string, [any, string]>} */ ({ ok: ["good", "Answers"], degraded: ["waits", "Some calls fail"], open: ["bad", "Is left out for a while"] });
/** @type {[string, string, string][]} */
const TIMES = [["firstTokenMs", "Until the first token (ms)", "first token within"], ["idleMs", "Between two tokens (ms)", "between tokens"], ["totalMs", "In all (ms)", "in all"]];

export function Upstreams() {
  const { may } = usePlace();
  const list = useList("upstreams");
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const mayChange = may("ManageRouting");
  const close = () => setOpen(null);
  const done = () => {
    close();
    return list.again();
  };
  return html`${mayChange && list.items.length > 0 && html`<p class="acts filters"><${Button} kind="main" act=${() => setOpen({ act: "edit" })}>New provider<//></p>`}
    <${Shown} of=${list}>${(/** @type {any[]} */ items) =>
      items.length
        ? html`<ul class="items">${items.map((it) => html`<${One} key=${it.id} of=${it} open=${setOpen} />`)}</ul><${Pager} of=${list} />`
        : html`<${Empty} title="There is no provider yet, so no model can be called."><p>A provider is an address that speaks one of the two shapes of model traffic, and a key for it.</p>${mayChange && html`<p><${Button} kind="main" act=${() => setOpen({ act: "edit" })}>Add the first<//></p>`}<//>`}<//>
    ${open && open.act === "edit" && html`<${Edit} of=${open.of} close=${close} done=${done} />`}
    ${open && open.act === "remove" && html`<${Remove} of=${open.of} close=${close} done=${done} />`}`;
}

/** @param {{ of: any, open: (it: any) => void }} props */
function One({ of, open }) {
  const api = useApi();
  const { may } = usePlace();
  const [tested, setTested] = useState(/** @type {any} */ (null));
  const name = html`<span class="unseen"> <${Quoted} text=${of.name} /></span>`;
  const test = async () => {
    setTested(null);
    setTested(await api("POST", `upstreams/${of.id}/test`, {}));
  };
  return html`<li class="item">
    <div>
      <h2><${Quoted} text=${of.name} /> ${of.enabled === false ? html`<${Badge}>Off<//>` : html`<${Badge} kind=${HEALTH[of.health]?.[0]}>${HEALTH[of.health]?.[1] ?? of.health}<//>`}</h2>
      <${Facts} of=${[
        ["Address", html`<code><${Quoted} text=${of.baseUrl} dir="ltr" /></code>`],
        ["Speaks", spoken(of)],
        ["Key", html`<${KeyEnd} of=${of} />`],
        ["Law", of.jurisdiction && html`<${Quoted} text=${of.jurisdiction} />${of.region && html`, region <${Quoted} text=${of.region} />`}`],
        ["Region", !of.jurisdiction && of.region && html`<${Quoted} text=${of.region} />`],
        ["Times", timed(of).join(", ")],
        ["Headers", Object.keys(of.headers ?? {}).length > 0 && html`<${Headers} of=${of.headers} />`],
        ["Last failure", of.lastError && html`<${Quoted} text=${of.lastError} />`],
      ]} />
      ${of.createdAt && html`<p class="meta"><span>made <${Time} at=${of.createdAt} /> by <${Who} id=${of.createdBy} /></span></p>`}
      <div role="status">${tested && html`<${Tested} got=${tested} />`}</div>
    </div>
    ${may("ManageRouting") && html`<div class="beside"><div class="acts"><${Button} act=${test}>Test${name}<//><${Button} act=${() => open({ act: "edit", of })}>Change${name}<//><${Button} kind="danger" act=${() => open({ act: "remove", of })}>Remove${name}<//></div></div>`}
  </li>`;
}

/** @param {any} of */
const spoken = (of) => SHAPES.find((it) => it[0] === of.kind)?.[1].toLowerCase();

/** @param {any} of @returns {string[]} */
const timed = (of) => TIMES.filter((it) => of.timeouts?.[it[0]]).map((it) => `${it[2]} ${of.timeouts[it[0]].toLocaleString("en")} ms`);

/** @param {{ of: any }} props */
const KeyEnd = ({ of }) => html`ends with <code><${Quoted} text=${of.keyHint} dir="ltr" /></code>`;

/** @param {{ of: Record<string, string> }} props */
const Headers = ({ of }) => Object.entries(of).map(([header, value]) => html`<div key=${header}><code><${Quoted} text=${`${header}: ${value}`} dir="ltr" /></code></div>`);

/** What came of asking a provider for its models. @param {{ got: any }} props */
function Tested({ got }) {
  if (!isDone(got)) return html`<p class="trouble">${told(got, false).said} ${told(got, false).fix}</p>`;
  const { ok, latencyMs, error } = got.said;
  return ok ? html`<p class="note">Address and key are right: it answered in ${latencyMs.toLocaleString("en")} ms.</p>` : html`<p class="trouble">It did not take this address and key: <${Quoted} text=${error ?? "no answer"} /></p>`;
}

/** Headers as lines, and back; `null` where a line is none. @param {string} text @returns {Record<string, string> | null} */
function headersOf(text) {
  const all = text.split("\n").map((it) => it.trim()).filter(Boolean);
  if (all.some((it) => it.indexOf(":") < 1)) return null;
  return Object.fromEntries(all.map((it) => [it.slice(0, it.indexOf(":")).trim().toLowerCase(), it.slice(it.indexOf(":") + 1).trim()]));
}

/** What of a provider is changed. @type {Record<string, string>} */
const MEMBERS = { name: "Name", kind: "Speaks", baseUrl: "Address", apiKey: "Key", jurisdiction: "Under the law of", region: "Region", timeouts: "Times", headers: "Further headers", enabled: "Calls may go to it" };

/** A member as it is compared; of a key only its end is known. @param {any} of @param {string} member */
const memberOf = (of, member) => (member === "apiKey" ? of.keyHint : member === "enabled" ? of.enabled !== false : (of[member] ?? (member === "timeouts" || member === "headers" ? {} : null)));

/** A member as it stands. @param {any} of @param {string} member */
function said(of, member) {
  const it = memberOf(of, member);
  if (member === "kind") return spoken(of);
  if (member === "apiKey") return html`<${KeyEnd} of=${of} />`;
  if (member === "timeouts") return timed(of).join(", ") || "none";
  if (member === "headers") return Object.keys(it).length ? html`<${Headers} of=${it} />` : "none";
  if (member === "enabled") return it ? "Yes" : "No";
  return it ? html`<${Quoted} text=${it} />` : "none";
}

/** @param {{ of?: any, close: () => void, done: () => any }} props */
function Edit({ of, close, done }) {
  const api = useApi();
  const { say } = usePlace();
  const path = of && `upstreams/${of.id}`;
  // What is left as it was is not sent, whatever others change meanwhile.
  const { began: was, known, others, look } = usePinned(of, path);
  const save = async (/** @type {Record<string, string>} */ values) => {
    const headers = headersOf(values.headers);
    if (!headers) return wrongFields({ headers: "Each line is a name, a colon and a value." });
    const times = Object.fromEntries(TIMES.filter((it) => values[it[0]] !== "").map((it) => [it[0], Number(values[it[0]])]));
    const body = /** @type {Record<string, any>} */ ({
      name: values.name.trim(), kind: values.kind, baseUrl: values.baseUrl.trim(), jurisdiction: values.jurisdiction.trim().toLowerCase() || null,
      region: values.region.trim() || null, timeouts: times, headers, enabled: !!values.enabled, ...((values.apiKey || !was) && { apiKey: values.apiKey }),
    });
    if (!was) return api("POST", "upstreams", Object.fromEntries(Object.entries(body).filter((it) => it[1] !== null)));
    const changed = Object.entries(body).filter(([member, it]) => member === "apiKey" || !isSame(it, memberOf(was, member)));
    const { stop } = await look(changed.map((it) => it[0]), memberOf);
    return stop ?? api("PATCH", path, Object.fromEntries(changed));
  };
  const saved = () => {
    say(was ? "The provider is changed." : "The provider is made. Test it before you rely on it.");
    done();
  };
  const { timeouts = {}, headers = {} } = was ?? {};
  const plainText = { autocapitalize: "none", spellcheck: false };
  return html`<${Dialog} title=${was ? "Change this provider" : "New provider"} of=${was && { id: was.id, name: was.name }} close=${close}>
    <${Form} act=${save} submit=${was ? "Save" : "Make the provider"} cancel=${close} done=${saved}>
      <${Field} name="name" label="Name" value=${was?.name} needed more=${plainText} hint=${html`What stands before the slash in <code>provider/model</code>: small letters, digits and hyphens.`} />
      <${Field} name="kind" as="choice" label="Speaks" options=${SHAPES} value=${was?.kind} />
      <${Field} name="baseUrl" label="Address" value=${was?.baseUrl} needed more=${plainText} hint=${html`For the chat-completions shape with <code>/v1</code>, for the messages shape the host.`} />
      <${Field} name="apiKey" as="password" label=${was ? "Another key" : "Key"} needed=${!was} more=${{ autocomplete: "new-password" }} hint=${was ? html`Empty: the one that ends with <code><${Quoted} text=${was.keyHint} dir="ltr" /></code> stays.` : "It is sealed, and shown never again."} />
      <div class="pair">
        <${Field} name="jurisdiction" label="Under the law of" value=${was?.jurisdiction} more=${plainText} hint=${html`A country such as <code>ch</code>, or <code>eu</code>.`} />
        <${Field} name="region" label="Region" value=${was?.region} more=${plainText} hint="In the provider's own word." />
      </div>
      <details open=${Object.keys(timeouts).length + Object.keys(headers).length > 0}><summary>Times and headers</summary>
        <div class="pair">${TIMES.map(([name, label]) => html`<${Field} key=${name} name=${name} fault=${`timeouts.${name}`} as="number" label=${label} value=${timeouts[name] ?? ""} more=${{ min: 1 }} />`)}</div>
        <${Field} name="headers" as="lines" label="Further headers" value=${Object.entries(headers).map((it) => it.join(": ")).join("\n")} more=${{ ...plainText, "data-sealed": "" }} hint=${html`<code>name: value</code>, one a line. A credential in one is sealed and shown as <code>…</code> and its end; left so, it stays.`} />
      </details>
      <${Field} name="enabled" as="check" label="Calls may go to it" value=${was ? was.enabled !== false : true} />
      <${Others} of=${others.map((member) => [MEMBERS[member], said(known, member)])} />
    <//>
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Remove({ of, close, done }) {
  return html`<${Ending} title="Remove this provider?" path=${`upstreams/${of.id}`} said="The provider is removed." close=${close} done=${done}>
    <p><strong><${Quoted} text=${of.name} /></strong> and its key go for good. Its models have to be removed first.</p>
  <//>`;
}
