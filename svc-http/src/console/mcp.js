// MCP servers behind this one: where they are, what of their tools waits for a person, and accepting it as it was looked at.
import { Badge, Button, Copy, Dialog, Empty, Entries, Facts, Field, Form, Heading, Id, Kept, Pager, Quoted, Shown, Table, Time, Trouble, at, html, usePlace } from "./kit.js";
import { Ending } from "./ending.js";
import { useState } from "./hooks.js";
import { Who, useApi, useList, useRead } from "./list.js";
import { Others, isSame, usePinned } from "./meanwhile.js";
import { ROOT, isDone } from "./server.js";
import { count, lineOf, lines } from "./text.js";

const STATES = /** @type {Record<string, [any, string]>} */ ({ ok: ["good", "Works"], held: ["waits", "Tools wait"], unreachable: ["bad", "Not reached"] });
/** @type {[string, string][]} */
const CREDENTIALS = [["none", "None"], ["bearer", "A bearer token"], ["header", "A header of its own"]];
const PARTS = { name: "Name", url: "Where it is", tools: "Which tools", credential: "Credential" };

/** @param {{ of: any }} props */
const State = ({ of }) => (of.enabled ? html`<${Badge} kind=${STATES[of.state]?.[0]}>${STATES[of.state]?.[1] ?? of.state}<//>` : html`<${Badge}>Off<//>`);

/** @param {string[] | undefined} it */
const globs = (it) => it && it.length > 0 && html`<${Entries} of=${it} dir="ltr" />`;

/** What it takes as a credential. @param {any} of */
const credentialed = ({ type, header, secretHint }) =>
  type === "none" ? "none" : html`${type === "bearer" ? "a bearer token" : html`the header <code><${Quoted} text=${header} /></code>`}${secretHint && html`, ends with <code><${Quoted} text=${secretHint} /></code>`}`;

/** @param {{ item?: string }} props */
export const Page = ({ item }) => (item === undefined ? html`<${All} />` : html`<${One} id=${item} />`);

function All() {
  const { wid, go } = usePlace();
  const list = useList("mcp-servers", {}, ["integration"]);
  const [isNew, setNew] = useState(false);
  const columns = [
    { title: "Server", cell: (/** @type {any} */ it) => html`<a href=${at(wid, "mcp-servers", it.id)}>${it.name}</a><br /><small><code><${Quoted} text=${it.url} dir="ltr" /></code></small>` },
    { title: "State", cell: (/** @type {any} */ it) => html`<${State} of=${it} />` },
    { title: "Waiting tools", cell: (/** @type {any} */ it) => (it.held.length ? html`<a href=${at(wid, "mcp-servers", it.id)}><${Badge} kind="waits">${it.held.length}<//></a>` : "–") },
    { title: "Added", cell: (/** @type {any} */ it) => html`<${Time} at=${it.createdAt} /> by <${Who} id=${it.createdBy} />` },
  ];
  const made = (/** @type {any} */ got) => go(at(wid, "mcp-servers", got.said.id));
  return html`<${Heading} title="MCP servers"><${Button} kind="main" act=${() => setNew(true)}>Add a server<//><//>
    <p class="lead">Agents reach these servers through this one: every call of a tool is asked about first, agents never see the server's credential, and a tool that is new or told of otherwise waits until a person has looked at it.</p>
    <${Shown} of=${list}>${(/** @type {any[]} */ items) => (items.length ? html`<${Table} caption="MCP servers" columns=${columns} rows=${items} /><${Pager} of=${list} />` : html`<${Empty} title="There is no server behind this one."><p>Add one, and give agents its address here in place of its own.</p><//>`)}<//>
    ${isNew && html`<${Make} close=${() => setNew(false)} done=${made} />`}`;
}

/** @param {{ id: string }} props */
function One({ id }) {
  const { wid } = usePlace();
  const read = useRead(`mcp-servers/${encodeURIComponent(id)}`, ["integration"]);
  return html`<p class="back"><a href=${at(wid, "mcp-servers")}>All MCP servers</a></p>
    ${!read.data && html`<${Heading} title="MCP server" />`}
    <${Shown} of=${read}>${(/** @type {any} */ it) => html`<${Whole} of=${it} again=${read.again} />`}<//>`;
}

/** @param {{ of: any, again: () => any }} props */
function Whole({ of, again }) {
  const { wid, go, say } = usePlace();
  const [act, setAct] = useState("");
  const close = () => setAct("");
  const address = new URL(`mcp/proxy/${of.name}`, ROOT).href;
  const done = (/** @type {string} */ said) => async () => {
    close();
    say(said);
    await again();
  };
  return html`<${Heading} title=${of.name} name=${html`${of.name} <${State} of=${of} />`}>
      <${Button} act=${again}>Look again<//><${Button} act=${() => setAct("change")}>Change<//>
      <${Button} act=${() => setAct("turn")}>${of.enabled ? "Turn off" : "Turn on"}<//><${Button} kind="danger" act=${() => setAct("remove")}>Remove<//>
    <//>
    ${of.enabled && of.state === "unreachable" && html`<div class="note"><p>It did not answer when its tools were last asked for${of.trouble && html`: <${Quoted} text=${of.trouble} />`}. What was accepted before stays so; agents are told of no tool that was not.</p></div>`}
    <${Held} of=${of} again=${again} />
    <section class="card" aria-labelledby="about"><header><h2 id="about">About it</h2></header>
      <${Facts} of=${[
        ["Agents reach it at", html`<code>${address}</code> <${Copy} text=${address} name="Copy the address" />`],
        ["Is at", html`<code><${Quoted} text=${of.url} dir="ltr" /></code>`],
        ["Credential", credentialed(of.credential)],
        ["Only the tools", globs(of.tools.allow)],
        ["Never the tools", globs(of.tools.deny)],
        ["Added", html`<${Time} at=${of.createdAt} /> by <${Who} id=${of.createdBy} />`],
        ["Id", html`<${Id} id=${of.id} />`],
      ]} /></section>
    ${act === "change" && html`<${Change} of=${of} close=${close} done=${done("It is changed.")} />`}
    ${act === "turn" && html`<${Turn} of=${of} close=${close} done=${done(of.enabled ? "It is off." : "It is on.")} />`}
    ${act === "remove" && html`<${Remove} of=${of} close=${close} done=${() => { say("It is removed."); go(at(wid, "mcp-servers")); }} />`}`;
}

/** The tools that wait, each with what differs. @param {{ of: any, again: () => any }} props */
function Held({ of, again }) {
  const api = useApi();
  const { say } = usePlace();
  const [wrong, setWrong] = useState(/** @type {any} */ (null));
  const open = of.held.filter((/** @type {any} */ it) => !it.reason);
  const accept = async (/** @type {string[]} */ tools) => {
    const got = await api("POST", `mcp-servers/${of.id}/accept`, { tools, toolsHash: of.toolsHash });
    setWrong(isDone(got) ? null : got);
    if (isDone(got)) say(count(tools.length, "tool was accepted.", "tools were accepted."));
    await again();
  };
  if (!of.held.length) return wrong ? html`<${Trouble} got=${wrong} isWrite=${true} />` : null;
  return html`<section class="card" aria-labelledby="held">
    <header><h2 id="held">${count(of.held.length, "tool waits", "tools wait")} for a person</h2>${open.length > 1 && html`<${Button} act=${() => accept(open.map((/** @type {any} */ it) => it.name))}>Accept all ${open.length} as shown<//>`}</header>
    <p>Agents neither see nor call these. Read what the server tells of them: a description is an instruction to whoever reads it, and a changed one is a known way to mislead agents.</p>
    ${wrong && html`<${Trouble} got=${wrong} isWrite=${true} />`}
    <ul class="items">${of.held.map((/** @type {any} */ it) => html`<${Tool} key=${it.name} of=${it} accept=${() => accept([it.name])} />`)}</ul>
  </section>`;
}

/** @param {{ of: any, accept: () => any }} props */
function Tool({ of: { name, before, after, diff, reason }, accept }) {
  const what = !before ? "New" : !after ? "Not offered any more" : "Changed";
  return html`<li class="item">
    <div><h3><${Quoted} text=${name} dir="ltr" /> <${Badge} kind="waits">${what}<//></h3>
      ${after?.description && html`<blockquote><${Quoted} text=${after.description} /></blockquote>`}
      <${Difference} text=${diff} name=${name} />
      ${reason && html`<p><small><${Quoted} text=${reason} /></small></p>`}</div>
    <div class="beside">${reason ? html`<small>It cannot be accepted.</small>` : html`<${Button} kind="main" act=${accept}>Accept<span class="unseen"> <${Quoted} text=${name} /></span><//>`}</div>
  </li>`;
}

/** What differs, line by line; the sign before a line says what came of it, its colour only says it again. @param {{ text: string, name: string }} props */
const Difference = ({ text, name }) => html`<pre class="difference" tabindex="0" aria-label=${`What differs in ${name}`}>${text.trimEnd().split("\n").map((line, place) => html`<span key=${place} class=${line.startsWith("+") ? "added" : line.startsWith("-") ? "taken" : undefined}><bdi dir="ltr">${lineOf(line)}</bdi>${"\n"}</span>`)}</pre>`;

/** Its credential as fields. @param {{ of?: any }} props */
function Credential({ of }) {
  const [type, setType] = useState(of?.type ?? "none");
  return html`<fieldset><legend>What it takes as a credential</legend>
    <div class="field"><label for="credential">Kind</label><select id="credential" name="type" onChange=${(/** @type {any} */ it) => setType(it.currentTarget.value)}>${CREDENTIALS.map(([is, named]) => html`<option key=${is} value=${is} selected=${is === type}>${named}</option>`)}</select></div>
    <${Kept} on=${type === "header"}><${Field} name="header" label="Name of the header" fault="credential.header" value=${of?.header} needed /><//>
    <${Kept} on=${type !== "none"}><${Field} name="secret" as="password" label=${of?.secretHint ? `Secret, to replace the one that ends with ${of.secretHint}` : "Secret"} fault="credential.secret" needed=${!of?.secretHint} hint="Kept sealed and shown to nobody again." more=${{ autocomplete: "new-password" }} /><//>
  </fieldset>`;
}

/** What is sent of the credential's fields; nothing where it stays as it was. @param {Record<string, string>} values @param {any} [was] */
function credentialOf({ type, header, secret }, was) {
  const isSame = was && was.type === type && !secret && (type !== "header" || was.header === header);
  if (isSame) return {};
  return { credential: { type, ...(type === "header" && { header }), ...(type !== "none" && { secret: secret || undefined }) } };
}

/** @param {{ of?: any }} props */
const Tools = ({ of }) => html`<details open=${!!(of?.allow?.length || of?.deny?.length)}><summary>Which tools</summary>
  <${Field} name="allow" as="lines" label="Only these tools" fault="tools.allow" value=${(of?.allow ?? []).join("\n")} hint=${html`Names, one a line; <code>read_*</code> for those that begin so.`} />
  <${Field} name="deny" as="lines" label="Never these tools" fault="tools.deny" value=${(of?.deny ?? []).join("\n")} /></details>`;

/** @param {Record<string, string>} values @param {any} [was] */
function toolsOf({ allow, deny }, was) {
  const [only, never] = [lines(allow ?? "", was?.allow), lines(deny ?? "", was?.deny)];
  return only.length || never.length ? { ...(only.length && { allow: only }), ...(never.length && { deny: never }) } : null;
}

/** @param {{ close: () => void, done: (got: any) => void }} props */
function Make({ close, done }) {
  const api = useApi();
  const make = (/** @type {Record<string, string>} */ values) => api("POST", "mcp-servers", { name: values.name, url: values.url.trim(), ...credentialOf(values), tools: toolsOf(values) ?? undefined });
  return html`<${Dialog} title="Add an MCP server" close=${close}>
    <p>The tools that it has now are accepted with it. If it does not answer, all of them wait for a person.</p>
    <${Form} act=${make} submit="Add it" cancel=${close} done=${done}>
      <${Field} name="name" label="Name" needed hint=${html`Of <code>a-z</code>, <code>0-9</code> and <code>-</code>; mandates name its tools as <code>name/tool</code>.`} more=${{ autocapitalize: "none", spellcheck: false }} />
      <${Field} name="url" label="Where it is" needed hint="An https address. One of a private network has to be allowed by whoever runs this server." more=${{ inputmode: "url" }} />
      <${Credential} /><${Tools} />
    <//>
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Change({ of, close, done }) {
  const api = useApi();
  const path = `mcp-servers/${of.id}`;
  // What is left as it was when this was opened is not sent.
  const { began: was, known, others, look } = usePinned(of, path);
  const change = async (/** @type {Record<string, string>} */ values) => {
    const tools = toolsOf(values, was.tools);
    const held = was.tools.allow?.length || was.tools.deny?.length ? was.tools : null;
    const sent = {
      ...(values.name !== was.name && { name: values.name }),
      ...(values.url.trim() !== was.url && { url: values.url.trim() }),
      ...(!isSame(tools, held) && { tools }),
      ...credentialOf(values, was.credential),
    };
    // A secret is for where the server is said to be.
    const parts = new Set([...Object.keys(sent), ...("credential" in sent ? ["url"] : [])]);
    const { stop } = await look([...parts], (it, part) => it[part]);
    return stop ?? api("PATCH", path, sent);
  };
  const lists = ({ allow, deny } = known.tools) => (allow?.length || deny?.length ? html`${allow?.length > 0 && html`only ${globs(allow)} `}${deny?.length > 0 && html`never ${globs(deny)}`}` : "all");
  const stands = { name: html`<${Quoted} text=${known.name} />`, url: html`<${Quoted} text=${known.url} dir="ltr" />`, tools: lists(), credential: credentialed(known.credential) };
  return html`<${Dialog} title="Change this server" close=${close}>
    <p>Another name is another address for agents, and mandates that name the tools of the old one cover none of the new.</p>
    <${Others} of=${others.map((/** @type {keyof typeof PARTS} */ part) => [PARTS[part], stands[part]])} />
    <${Form} act=${change} submit="Save" cancel=${close} done=${done}>
      <${Field} name="name" label="Name" value=${was.name} needed more=${{ autocapitalize: "none", spellcheck: false }} />
      <${Field} name="url" label="Where it is" value=${was.url} needed more=${{ inputmode: "url" }} />
      <${Credential} of=${was.credential} /><${Tools} of=${was.tools} />
    <//>
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Turn({ of, close, done }) {
  const api = useApi();
  return html`<${Dialog} title=${of.enabled ? "Turn it off?" : "Turn it on?"} close=${close}>
    <p>${of.enabled ? "Agents reach none of its tools until it is turned on again. What was accepted stays accepted." : "Agents reach its accepted tools again."}</p>
    <${Form} act=${() => api("PATCH", `mcp-servers/${of.id}`, { enabled: !of.enabled })} submit=${of.enabled ? "Turn it off" : "Turn it on"} kind=${of.enabled ? "danger" : "main"} cancel=${close} done=${done} /><//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Remove({ of, close, done }) {
  return html`<${Ending} title="Remove this server?" path=${`mcp-servers/${of.id}`} close=${close} done=${done}>
    <p><strong>${of.name}</strong> and its credential go for good; agents reach it here no more. Mandates that name its tools stay and cover nothing. To stop it for a while, turn it off.</p>
  <//>`;
}
