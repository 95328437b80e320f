// What this workspace is connected with, one of a kind: what there is, and setting up another.
import { Badge, Button, Dialog, Empty, Field, Form, Heading, Kept, Quoted, Shown, Table, Time, at, html, usePlace } from "./kit.js";
import { useState } from "./hooks.js";
import { useApi, useList, useWatched, useWhole } from "./list.js";
import { chosenOver } from "./meanwhile.js";
import { ShownOnce } from "./once.js";
import { count, lines } from "./text.js";

/**
 * A kind of integration. `config`: the members that it is configured by; `secret`: whose the secret is: drawn `here` unless one is
 * given, drawn by the other side (`theirs`), or of no use (`none`); `test`: what trying it out does, and whether an address may be named.
 * @typedef {{ title: string, said: string, config: string[], secret: "here" | "theirs" | "none", test?: { said: string, url?: "may" | "should" }, instead?: string, owners?: boolean }} Kind
 */

const SENT = "The other side sends: have it send an event to the address, and look here for when one came.";

export const KINDS = /** @type {Record<string, Kind>} */ ({
  callbacks: { title: "Callbacks", said: "Agents are called back once their action is decided. The calls are signed with this secret.", config: [], secret: "here", test: { said: "One signed call is made to the address. Without one nobody is called, and it is only looked whether the secrets can be used.", url: "should" } },
  mail: { title: "Mail", said: "Mails whoever may decide what waits for a person.", config: ["to"], secret: "none", test: { said: "A message is mailed to you." } },
  chat: { title: "Room of a chat", said: "Posts what waits for a person to a room, signed. Everybody in the room reads it.", config: ["url"], secret: "here", test: { said: "One message is posted to the room." } },
  slack: { title: "Slack", said: "Asks people in Slack by direct messages with buttons. A press is its linked member's word.", config: ["botToken", "members"], secret: "theirs", test: { said: "A message is sent to you in Slack, where you are linked and there is a bot token." } },
  relay: { title: "Relay of a team chat", said: "Takes the presses of another team chat's buttons, passed on by a relay of yours.", config: ["members"], secret: "here", instead: SENT },
  export: { title: "Export of the ledger", said: "Sends every record to a security-information system, in order, as OCSF events.", config: ["url", "classes"], secret: "here", test: { said: "One event of the type test is sent to the export's address, or to another that you name.", url: "may" } },
  issuer: { title: "Card issuer", said: "A card issuer asks whether a charge is covered by an allowed action, and tells what was settled.", config: [], secret: "here", instead: SENT },
  stripe: { title: "Stripe Issuing", said: "Charges of cards that Stripe issues are approved where an action covers them.", config: [], secret: "theirs", instead: SENT },
  github: { title: "Code host (GitHub)", said: "Tasks that a pull request names are accepted or rejected with it.", config: ["repositories", "branches"], secret: "here", instead: SENT },
  ssf: { title: "Shared signals", said: "An identity provider tells whose sessions end and who is shut out; their agents stop.", config: ["issuer", "audience", "jwksUrl", "jwks"], secret: "none", instead: SENT },
  oidc: { title: "Single sign-on", said: "Your identity provider signs people in (OpenID Connect).", config: ["issuer", "clientId"], secret: "theirs", instead: "Sign in by it in another browser.", owners: true },
});
const STATES = /** @type {Record<string, [any, string]>} */ ({ ok: ["good", "Works"], trouble: ["waits", "Has trouble"], failing: ["bad", "Failing"], off: ["plain", "Off"] });
/** @type {[number, string][]} */
export const CLASSES = [[2004, "Decisions, refusals and incidents"], [6003, "Approvals and other calls"], [3004, "Agents, stops and other things managed"], [3002, "Sign-ins"], [3001, "Members, keys and tokens"]];
const SECRETS = /** @type {Record<string, string>} */ ({ stripe: "The signing secret that Stripe shows for the endpoint.", slack: "The signing secret of your Slack app.", oidc: "The client secret that the provider has drawn." });

/** How an integration stands. An error is gone once anything goes well: one that is there is what came last, though nothing was given up yet. @param {{ of: { state: string, lastError?: string | null } }} props */
export function State({ of: { state, lastError } }) {
  const is = state === "ok" && lastError ? "trouble" : state;
  return html`<${Badge} kind=${STATES[is]?.[0]}>${STATES[is]?.[1] ?? is}<//>`;
}

export const titleOf = (/** @type {string} */ kind) => KINDS[kind]?.title ?? kind;

export function Page() {
  const { wid, may } = usePlace();
  const list = useList("integrations", {}, ["integration"]);
  // A call that failed and is tried again is no event, nor one that went well.
  useWatched(list.again);
  const [making, setMaking] = useState("");
  const [made, setMade] = useState(/** @type {any} */ (null));
  const columns = [
    { title: "Integration", cell: (/** @type {any} */ it) => html`<a href=${at(wid, "integrations", it.id)}>${titleOf(it.kind)}</a>` },
    { title: "State", cell: (/** @type {any} */ it) => html`<${State} of=${it} />${it.lastError && html`<br /><small><${Quoted} text=${it.lastError} /></small>`}` },
    { title: "Last event", cell: (/** @type {any} */ it) => html`<${Time} at=${it.lastEventAt} ago />` },
    { title: "Set up", cell: (/** @type {any} */ it) => html`<${Time} at=${it.createdAt} />` },
  ];
  const done = (/** @type {any} */ got) => {
    setMaking("");
    setMade(got.said);
    list.again();
  };
  const seen = () => {
    setMade(null);
  };
  return html`<${Heading} title="Integrations"><a class="button" href=${at(wid, "deliveries")}>Deliveries</a><//>
    <${Shown} of=${list}>${(/** @type {any[]} */ items) => {
      const missing = Object.keys(KINDS).filter((kind) => !items.some((it) => it.kind === kind));
      return html`${items.length ? html`<${Table} caption="Integrations" columns=${columns} rows=${items} />` : html`<${Empty} title="Nothing is connected yet."><p>Choose below what this workspace hears from and whom it tells.</p><//>`}
        ${missing.length > 0 && html`<h2 class="apart">Set up another</h2>
        <ul class="items">${missing.map((kind) => html`<li class="item" key=${kind}><div><h3>${titleOf(kind)}</h3><p>${KINDS[kind].said}</p></div>
          <div class="beside">${KINDS[kind].owners && !may("ManageOwners") ? html`<small>An owner sets this up.</small>` : html`<${Button} act=${() => setMaking(kind)}>Set up<span class="unseen"> ${titleOf(kind)}</span><//>`}</div></li>`)}</ul>`}`;
    }}<//>
    ${making && html`<${Make} kind=${making} close=${() => setMaking("")} done=${done} />`}
    ${made && html`<${Made} of=${made} close=${seen} />`}`;
}

/** What was made: its secret this once, and where the other side sends to. @param {{ of: any, close: () => void }} props */
function Made({ of, close }) {
  const { wid } = usePlace();
  const name = titleOf(of.kind);
  const receives = of.receiveUrl && html`<p>${of.kind === "oidc" ? "Register this redirect address at the provider:" : "Have the other side send to:"}</p><p class="secret"><code>${of.receiveUrl}</code></p>`;
  if (of.secret && KINDS[of.kind]?.secret !== "none") return html`<${ShownOnce} title=${`${name}: the secret`} secret=${of.secret} what="secret" close=${close}>${receives}<//>`;
  return html`<${Dialog} title=${`${name} is set up`} close=${close}>${receives || html`<p>It is in use from now on.</p>`}
    <p class="acts"><a class="button main" href=${at(wid, "integrations", of.id)}>Go to it</a><button type="button" onClick=${close}>Close</button></p><//>`;
}

/** @param {{ kind: string, close: () => void, done: (got: any) => void }} props */
function Make({ kind, close, done }) {
  const api = useApi();
  const people = useMembers(kind);
  const make = (/** @type {Record<string, string>} */ values) => {
    const config = configOf(kind, values, people.all, null);
    if (typeof config === "string") return config;
    return api("POST", "integrations", { kind, ...(values.secret && { secret: values.secret }), config });
  };
  return html`<${Dialog} title=${`Set up: ${titleOf(kind)}`} close=${close}>
    <p>${KINDS[kind].said}</p>
    ${people.read && !people.read.data ? html`<${Shown} of=${people.read}>${() => null}<//>` : html`<${Form} act=${make} submit="Set it up" cancel=${close} done=${done}>
      <${Config} kind=${kind} people=${people.all} />
      <${Secret} kind=${kind} />
    <//>`}
  <//>`;
}

/** The secret as a field, where one may be given. @param {{ kind: string }} props */
export function Secret({ kind }) {
  const { secret } = KINDS[kind];
  if (secret === "none") return null;
  const isTheirs = secret === "theirs";
  // Nobody's password: a browser would ask whose it is, and offer to keep it.
  return html`<${Field} name="secret" label=${isTheirs ? "Secret" : "Secret, if the other side has drawn one"} needed=${isTheirs}
    hint=${SECRETS[kind] ?? "24 to 256 characters. Left empty, one is drawn here and shown once."} more=${{ class: "masked", spellcheck: false, autocapitalize: "off" }} />`;
}

/** The members of a workspace, where a kind names some. @param {string} kind */
export function useMembers(kind) {
  const names = KINDS[kind]?.config ?? [];
  const read = useWhole(names.includes("members") || names.includes("to") ? "members" : null);
  const isRead = names.includes("members") || names.includes("to");
  return { read: isRead ? read : null, all: ((read.data && read.data.data) || []).filter((/** @type {any} */ it) => it.state !== "disabled") };
}

/** What a kind is configured by, as fields. @param {{ kind: string, of?: any, people: any[] }} props */
export function Config({ kind, of = {}, people }) {
  const isOf = (/** @type {string} */ name) => KINDS[kind].config.includes(name);
  const list = (/** @type {string[] | null | undefined} */ it) => (it ?? []).join("\n");
  const mailOf = (/** @type {string} */ id) => people.find((it) => it.principalId === id)?.email ?? id;
  const linked = Object.entries(of.members ?? {}).map(([name, id]) => `${name} = ${mailOf(/** @type {string} */ (id))}`);
  return html`
    ${isOf("issuer") && html`<${Field} name="issuer" label="Issuer" fault="config.issuer" value=${of.issuer} needed hint=${html`The very text of <code>iss</code> in the provider's tokens.`} />`}
    ${isOf("clientId") && html`<${Field} name="clientId" label="Client id" fault="config.clientId" value=${of.clientId} needed />`}
    ${isOf("audience") && html`<${Field} name="audience" label="Audience" fault="config.audience" value=${of.audience} needed />`}
    ${isOf("jwksUrl") && html`<${Field} name="jwksUrl" label="Where its keys are" fault="config.jwksUrl" value=${of.jwksUrl} hint="An https address. Or give the keys themselves below." more=${{ inputmode: "url" }} />`}
    ${isOf("jwks") && html`<${Field} name="jwks" as="lines" label="Its public keys (JWKS)" fault="config.jwks" value=${of.jwks ? JSON.stringify(of.jwks, null, 2) : ""} more=${{ spellcheck: false }} />`}
    ${isOf("url") && html`<${Field} name="url" label="Address" fault="config.url" value=${of.url} needed hint="An https address." more=${{ inputmode: "url", "data-sealed": "" }} />`}
    ${isOf("repositories") && html`<${Field} name="repositories" as="lines" label="Repositories" fault="config.repositories" value=${list(of.repositories)} needed hint=${html`<code>owner/name</code>, one a line. Others count nowhere.`} />`}
    ${isOf("branches") && html`<${Field} name="branches" as="lines" label="Branches that are merged into" fault="config.branches" value=${list(of.branches)} needed hint="One a line." />`}
    ${isOf("botToken") && html`<${Field} name="botToken" as="password" label=${of.botTokenHint ? `Bot token, to replace the one that ends with ${of.botTokenHint}` : "Bot token"} fault="config.botToken" hint=${html`Begins with <code>xoxb-</code>. It is kept sealed. Without one nobody is asked in Slack.`} more=${{ autocomplete: "new-password" }} />
      ${of.botTokenHint && html`<${Field} as="check" name="noBotToken" label="Take the bot token away" />`}`}
    ${isOf("members") && html`<${Field} name="members" as="lines" label="Who is who" fault="config.members" value=${linked.join("\n")} hint=${html`One a line: what the other system calls somebody, <code>=</code>, and the member's e-mail address. Whoever is not here decides nothing.`} more=${{ spellcheck: false }} />`}
    ${isOf("to") && html`<${Mailed} to=${of.to ?? []} people=${people} />`}
    ${isOf("classes") && html`<fieldset><legend>Only events of these classes</legend><small>None chosen: all of them.</small>
      ${CLASSES.map(([is, named]) => html`<${Field} key=${is} as="check" name=${`class ${is}`} fault=${`config.classes ${is}`} label=${`${named} (${is})`} value=${(of.classes ?? []).includes(is)} />`)}</fieldset>`}`;
}

/** Who is mailed: everybody by an own choice, never by a list that became empty. @param {{ to: string[], people: any[] }} props */
function Mailed({ to, people }) {
  const [whom, setWhom] = useState(to.length ? "some" : "all");
  const unlisted = to.filter((id) => !people.some((it) => it.principalId === id)).length;
  return html`<${Field} name="mailed" as="choice" label="Mailed are" fault="config.to" options=${[["all", "Everybody who may decide what waits"], ["some", "Only some"]]} value=${whom} more=${{ onChange: (/** @type {any} */ it) => setWhom(it.currentTarget.value) }} />
    <${Kept} on=${whom === "some"}><fieldset><legend>Only these are mailed</legend>
      ${unlisted > 0 && html`<small>${count(unlisted, "other")} who cannot be listed here ${unlisted === 1 ? "stays" : "stay"} among them.</small>`}
      ${people.map((it) => html`<${Field} key=${it.principalId} as="check" name=${`to ${it.principalId}`} fault=${`config.to ${it.principalId}`} label=${html`<${Quoted} text=${it.name ?? it.email} />`} value=${to.includes(it.principalId)} />`)}</fieldset><//>`;
}

/**
 * What the fields of a configuration mean: for a new one what holds something; for a change all that the kind has, each as it is once
 * what was touched since it `began` is done to what stands `now`.
 * @param {string} kind
 * @param {Record<string, string>} values
 * @param {any[]} people
 * @param {{ began: any, now?: any } | null} of nothing where it is new
 * @returns {string | Record<string, any>} a text where something cannot be read
 */
export function configOf(kind, values, people, of) {
  const isNew = !of;
  const { began = {}, now = began } = of ?? {};
  const config = /** @type {Record<string, any>} */ ({});
  for (const name of KINDS[kind].config) {
    const text = (values[name] ?? "").trim();
    if (name === "to") {
      const to = mailedOf(values, people, began.to ?? [], now.to ?? []);
      if (typeof to === "string") return to;
      config.to = to;
    } else if (name === "classes") {
      const offered = CLASSES.map((it) => it[0]);
      const named = chosenOver(now.classes ?? [], { began: began.classes ?? [], chosen: offered.filter((it) => values[`class ${it}`]), offered });
      config.classes = named.length ? named : null;
    } else if (name === "repositories" || name === "branches") config[name] = lines(text);
    else if (name === "members") {
      const members = linksOf(text, people, began.members ?? {});
      if (typeof members === "string") return members;
      config.members = linkedOver(now.members ?? {}, began.members ?? {}, members);
    } else if (name === "jwks" && text) {
      try {
        config.jwks = JSON.parse(text);
      } catch {
        return "The public keys are no JSON.";
      }
    } else if (name === "botToken") {
      if (text) config.botToken = text;
      else if (values.noBotToken) config.botToken = null;
    } else if (text || !isNew) config[name] = text || null;
  }
  return Object.fromEntries(Object.entries(config).filter((it) => !isNew || (it[1] !== null && (!Array.isArray(it[1]) || it[1].length))));
}

/**
 * Who is mailed; nobody named means everybody, so that an empty list is meant by the choice of everybody alone.
 * @param {Record<string, string>} values
 * @param {any[]} people
 * @param {string[]} began
 * @param {string[]} now
 */
function mailedOf(values, people, began, now) {
  if (values.mailed === "all") return [];
  const offered = people.map((it) => it.principalId);
  const to = chosenOver(now.length ? now : began, { began, chosen: offered.filter((it) => values[`to ${it}`]), offered });
  return to.length ? to : "Choose whom to mail, or everybody who may decide.";
}

/** What was touched of who is who, done to what stands now. @param {Record<string, string>} now @param {Record<string, string>} began @param {Record<string, string>} wish */
function linkedOver(now, began, wish) {
  const over = { ...now };
  for (const name of new Set([...Object.keys(began), ...Object.keys(wish)])) {
    if (wish[name] === began[name]) continue;
    if (wish[name]) over[name] = wish[name];
    else delete over[name];
  }
  return over;
}

/** Who is who, of lines; whom a line named before it may go on naming by their id. @param {string} text @param {any[]} people @param {Record<string, string>} began @returns {string | Record<string, string>} */
function linksOf(text, people, began) {
  const found = /** @type {Record<string, string>} */ ({});
  for (const line of text.split("\n").map((it) => it.trim()).filter(Boolean)) {
    const place = line.lastIndexOf("=");
    const [name, mail] = place < 0 ? [line, ""] : [line.slice(0, place).trim(), line.slice(place + 1).trim()];
    const member = people.find((it) => it.email.toLowerCase() === mail.toLowerCase() || it.principalId === mail)?.principalId ?? Object.values(began).find((it) => it === mail);
    if (!name || !mail) return `A line is a name, = and an e-mail address: ${line}`;
    if (!member) return `No member of this workspace has the address ${mail}.`;
    if (found[name]) return `${name} stands in two lines.`;
    found[name] = member;
  }
  return found;
}
