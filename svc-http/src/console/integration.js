// One integration: how it stands, what it is configured by, its secrets, and trying it out.
import { Badge, Button, Copy, Dialog, Facts, Field, Form, Heading, Id, Quoted, Shown, Table, Time, at, html, usePlace } from "./kit.js";
import { Ending } from "./ending.js";
import { useState } from "./hooks.js";
import { Came } from "./deliveries.js";
import { CLASSES, Config, KINDS, Secret, State, configOf, titleOf, useMembers } from "./integrations.js";
import { Who, useApi, useRead, useWatched } from "./list.js";
import { Others, isSame, usePinned } from "./meanwhile.js";
import { ShownOnce } from "./once.js";
import { query as asQuery } from "./server.js";

const HOURS_MAX = 168;
const KEYS = ["jwksUrl", "jwks"];

/** @param {{ item: string }} props */
export function Page({ item }) {
  const { wid } = usePlace();
  const read = useRead(`integrations/${encodeURIComponent(item)}`, ["integration"]);
  useWatched(read.again);
  return html`<p class="back"><a href=${at(wid, "integrations")}>All integrations</a></p>
    ${!read.data && html`<${Heading} title="Integration" />`}
    <${Shown} of=${read}>${(/** @type {any} */ it) => html`<${Whole} of=${it} again=${read.again} />`}<//>`;
}

/** @param {{ of: any, again: () => any }} props */
function Whole({ of, again }) {
  const { wid, may, go, say } = usePlace();
  const [act, setAct] = useState("");
  const [issued, setIssued] = useState("");
  const [tried, setTried] = useState("");
  const known = KINDS[of.kind] ?? { title: of.kind, said: "", config: [], secret: "none" };
  const mine = !known.owners || may("ManageOwners");
  const close = () => setAct("");
  const done = (/** @type {string} */ said) => async () => {
    close();
    say(said);
    await again();
  };
  const rotated = async (/** @type {any} */ got) => {
    close();
    if (got.said.secret) setIssued(got.said.secret);
    else say("Another secret is in force.");
    await again();
  };
  const tested = (/** @type {any} */ got) => {
    close();
    setTried(got.said.deliveryId ?? "");
    if (!got.said.deliveryId) say("Its secrets can be used. Nobody was called.");
    again();
  };
  return html`<${Heading} title=${known.title} name=${html`${known.title} <${State} of=${of} />`}>
      ${mine && known.test && html`<${Button} kind="main" act=${() => setAct("test")}>Try it out<//>`}
      ${mine && known.config.length > 0 && html`<${Button} act=${() => setAct("change")}>Change<//>`}
      ${mine && known.secret !== "none" && html`<${Button} act=${() => setAct("rotate")}>Rotate the secret<//>`}
      ${mine && html`<${Button} act=${() => setAct("turn")}>${of.enabled ? "Turn off" : "Turn on"}<//><${Button} kind="danger" act=${() => setAct("remove")}>Remove<//>`}
    <//>
    <p class="lead">${known.said}</p>
    ${!mine && html`<div class="note"><p>Whoever controls single sign-on can be anybody whom it signs in, so only an owner changes it.</p></div>`}
    ${of.lastError && html`<div class="trouble"><p><strong>Last error:</strong> <${Quoted} text=${of.lastError} /></p></div>`}
    ${of.kind === "export" && of.state === "failing" && html`<div class="note"><p>The export stands still and nothing is skipped. It goes on from the same record when the delivery is tried again, or the address or secret changes, or it is turned on anew.</p><p><${TurnOn} of=${of} again=${again} /></p></div>`}
    ${known.instead && html`<p>${known.instead}</p>`}
    ${tried && html`<section class="card" aria-labelledby="tried"><header><h2 id="tried">What came of trying it out</h2></header><${Came} id=${tried} told=${again} /></section>`}
    <div class="grid">
      <section class="card" aria-labelledby="stands"><header><h2 id="stands">How it stands</h2></header>
        <${Facts} of=${[
          [of.kind === "oidc" ? "Redirect address" : "The other side sends to", of.receiveUrl && html`<code>${of.receiveUrl}</code> <${Copy} text=${of.receiveUrl} name="Copy the address" />`],
          ["Last event", html`<${Time} at=${of.lastEventAt} ago />`],
          ["Set up", html`<${Time} at=${of.createdAt} /> by <${Who} id=${of.createdBy} />`],
          ["Id", html`<${Id} id=${of.id} />`],
        ]} />
        ${known.test && html`<p><a href=${at(wid, "deliveries") + asQuery({ kind: of.kind })}>Its deliveries</a></p>`}</section>
      ${known.config.length > 0 && html`<section class="card" aria-labelledby="config"><header><h2 id="config">Configuration</h2></header><${Configured} of=${of} /></section>`}
    </div>
    ${known.secret !== "none" && html`<section class="card" aria-labelledby="secrets"><header><h2 id="secrets">Secrets</h2></header><${Secrets} of=${of.secrets} /></section>`}
    ${act === "test" && html`<${Test} of=${of} known=${known} close=${close} done=${tested} />`}
    ${act === "change" && html`<${Change} of=${of} close=${close} done=${done("It is changed.")} />`}
    ${act === "rotate" && html`<${Rotate} of=${of} known=${known} close=${close} done=${rotated} />`}
    ${act === "turn" && html`<${Turn} of=${of} close=${close} done=${done(of.enabled ? "It is off." : "It is on.")} />`}
    ${act === "remove" && html`<${Remove} of=${of} close=${close} done=${() => { say("It is removed."); go(at(wid, "integrations")); }} />`}
    ${issued && html`<${ShownOnce} title="The new secret" secret=${issued} what="secret" close=${() => setIssued("")} />`}`;
}

/** @param {{ of: any, again: () => any }} props */
function TurnOn({ of, again }) {
  const api = useApi();
  const [wrong, setWrong] = useState("");
  const go = async () => {
    const got = await api("PATCH", `integrations/${of.id}`, { enabled: true });
    setWrong(got.status === 200 ? "" : (got.error.message ?? "The server does not answer."));
    await again();
  };
  return html`<${Button} act=${go}>Go on with it<//>${wrong && html`<span class="trouble" role="alert">${wrong}</span>`}`;
}

/** What it is configured by, in words, by the names of the members. @param {{ kind: string, config: any, ended?: string[] }} of @returns {Record<string, [string, any]>} */
function wordsOf({ kind, config, ended = [] }) {
  const quoted = (/** @type {any} */ it) => it && html`<code><${Quoted} text=${it} dir="ltr" /></code>`;
  const all = (/** @type {string[]} */ it) => (it && it.length ? it.map((one) => html`<div key=${one}>${quoted(one)}</div>`) : "–");
  const has = (/** @type {string} */ name) => KINDS[kind]?.config.includes(name);
  return {
    url: ["Address", has("url") && (quoted(config.url) || "–")],
    issuer: ["Issuer", quoted(config.issuer)],
    clientId: ["Client id", quoted(config.clientId)],
    audience: ["Audience", quoted(config.audience)],
    jwksUrl: ["Keys at", quoted(config.jwksUrl)],
    jwks: ["Keys", config.jwks && `${config.jwks.keys?.length ?? 0} given here`],
    repositories: ["Repositories", has("repositories") && all(config.repositories)],
    branches: ["Branches", has("branches") && all(config.branches)],
    botToken: ["Bot token", has("botToken") && (config.botTokenHint ? html`ends with <code>${config.botTokenHint}</code>` : "none: nobody is asked")],
    members: ["Who is who", has("members") && (Object.keys(config.members ?? {}).length ? Object.entries(config.members).map(([name, id]) => html`<div key=${name}><${Quoted} text=${name} /> is <${Who} id=${/** @type {string} */ (id)} />${ended.includes(name) && html` <${Badge} kind="bad">Over<//> <small>leave the name out once, then name it again</small>`}</div>`) : "nobody is linked")],
    to: ["Mailed", has("to") && ((config.to ?? []).length ? config.to.map((/** @type {string} */ it) => html`<div key=${it}><${Who} id=${it} /></div>`) : "everybody who may decide")],
    classes: ["Classes", has("classes") && ((config.classes ?? []).length ? CLASSES.filter((it) => config.classes.includes(it[0])).map((it) => html`<div key=${it[0]}>${it[1]}</div>`) : "all of them")],
  };
}

/** @param {{ of: any }} props */
const Configured = ({ of }) => html`<${Facts} of=${Object.values(wordsOf(of))} />`;

/** @param {{ of: any[] }} props */
function Secrets({ of }) {
  const columns = [
    { title: "Secret", cell: (/** @type {any} */ it) => html`ends with <code><${Quoted} text=${it.hint} /></code>` },
    { title: "State", cell: (/** @type {any} */ it) => (it.endsAt ? html`<${Badge} kind="waits">Until <${Time} at=${it.endsAt} /><//>` : html`<${Badge} kind="good">In force<//>`) },
    { title: "Since", cell: (/** @type {any} */ it) => html`<${Time} at=${it.createdAt} />` },
  ];
  return html`<${Table} caption="Secrets" columns=${columns} rows=${of} rowKey=${(/** @type {any} */ it) => it.createdAt + it.hint} />`;
}

/** @param {{ of: any, known: any, close: () => void, done: (got: any) => void }} props */
function Test({ of, known, close, done }) {
  const api = useApi();
  const { test } = known;
  const run = (/** @type {Record<string, string>} */ { url }) => api("POST", `integrations/${of.id}/test`, url?.trim() ? { url: url.trim() } : {});
  return html`<${Dialog} title="Try it out" close=${close}><p>${test.said}</p>
    <${Form} act=${run} submit="Try it" cancel=${close} done=${done}>
      ${test.url && html`<${Field} name="url" label=${test.url === "may" ? "Another address" : "Address"} hint="An https address; addresses of private networks are not called." more=${{ inputmode: "url" }} />`}
    <//><//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Change({ of, close, done }) {
  const api = useApi();
  const people = useMembers(of.kind);
  const path = `integrations/${encodeURIComponent(of.id)}`;
  const { began, known, others, look } = usePinned(of, path);
  const change = async (/** @type {Record<string, string>} */ values) => {
    const { secret, ...rest } = values;
    const wish = configOf(of.kind, rest, people.all, { began: began.config });
    if (typeof wish === "string") return wish;
    const isTouched = (/** @type {string} */ name) => name in wish && !isSame(wish[name] ?? null, began.config[name] ?? null);
    // Keys come from one place: both are sent, so that neither is put over the other unseen.
    const touched = Object.keys(wish).filter((name) => isTouched(name) || (KEYS.includes(name) && KEYS.some(isTouched)));
    if (!touched.length && !secret) return "Nothing is changed yet.";
    const { stop, now } = await look(touched, (said, name) => said.config[name === "botToken" ? "botTokenHint" : name] ?? null);
    if (stop) return stop;
    const config = configOf(of.kind, rest, people.all, { began: began.config, now: now.config });
    return typeof config === "string" ? config : api("PATCH", path, { config: Object.fromEntries(touched.map((name) => [name, config[name]])), ...(secret && { secret }) });
  };
  const words = wordsOf(known);
  return html`<${Dialog} title=${`Change: ${titleOf(of.kind)}`} close=${close}>
    ${people.read && !people.read.data ? html`<${Shown} of=${people.read}>${() => null}<//>` : html`<${Form} act=${change} submit="Save" cancel=${close} done=${done}>
      <${Config} kind=${of.kind} of=${began.config} people=${people.all} />
      ${of.kind === "oidc" && html`<${Field} name="secret" label="Client secret" hint="Needed with another issuer. Empty: the one that is stored stays." more=${{ class: "masked", spellcheck: false, autocapitalize: "off" }} />`}
      <${Others} of=${others.map((name) => [words[name][0], words[name][1] || "–"])} />
    <//>`}
  <//>`;
}

/** @param {{ of: any, known: any, close: () => void, done: (got: any) => void }} props */
function Rotate({ of, known, close, done }) {
  const api = useApi();
  const rotate = (/** @type {Record<string, string>} */ { overlapHours, secret }) =>
    api("POST", `integrations/${of.id}/rotate`, { ...(overlapHours !== "" && { overlapHours: Number(overlapHours) }), ...(secret && { secret }) });
  return html`<${Dialog} title="Rotate the secret?" close=${close}>
    <p>Another secret is in force at once. The one before stays good for as long as you say, so that the other side can be changed without a gap. If it may have leaked, choose 0.</p>
    <${Form} act=${rotate} submit="Rotate it" cancel=${close} done=${done}>
      <${Field} name="overlapHours" as="number" label="Hours that the one before stays good" value="24" hint=${`0 to ${HOURS_MAX}, which is a week.`} more=${{ min: 0, max: HOURS_MAX }} />
      ${known.secret !== "none" && html`<${Secret} kind=${of.kind} />`}
    <//>
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Turn({ of, close, done }) {
  const api = useApi();
  const what = of.enabled ? "Nothing is sent over it, and what the other side sends is refused, until it is turned on again. Its secrets and configuration stay." : "It is used again as it is configured.";
  return html`<${Dialog} title=${of.enabled ? "Turn it off?" : "Turn it on?"} close=${close}><p>${what}</p>
    <${Form} act=${() => api("PATCH", `integrations/${of.id}`, { enabled: !of.enabled })} submit=${of.enabled ? "Turn it off" : "Turn it on"} kind=${of.enabled ? "danger" : "main"} cancel=${close} done=${done} /><//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Remove({ of, close, done }) {
  return html`<${Ending} title="Remove this integration?" path=${`integrations/${of.id}`} close=${close} done=${done}>
    <p><strong>${titleOf(of.kind)}</strong> ends with its secrets and configuration, at once. To set it up again the other side needs another secret.${of.kind === "export" && " Its place in the ledger goes too: another export begins with its own record."} To stop it for a while, turn it off.</p>
  <//>`;
}
