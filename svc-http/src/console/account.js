// One's own account: the password, the second factor, and where one is signed in, whatever the workspace.
import { Badge, Button, Copy, Dialog, Facts, Field, Form, Heading, Pager, Quoted, Shown, Table, Time, at, html, usePlace } from "./kit.js";
import { useState } from "./hooks.js";
import { useApi, useList } from "./list.js";
import { Once } from "./once.js";
import { ROOT, isDone, query } from "./server.js";
import { instant } from "./text.js";
import { dropAll } from "./unsent.js";

// A person has at most 64 sessions of their own sign-in, and as many of each workspace's single sign-on.
const PART = 100;
// However often somebody signs in while all others are ended, this many looks are enough.
const LOOKS_MAX = 5;
const RECOVERY_CODES = 10;

/**
 * Since when something is there, to the second, and by the end of its id where another one of these is there since then too.
 * @param {{ id: string, createdAt: string }} of
 * @param {{ id: string, createdAt: string }[]} all
 * @param {string} zone
 */
export function begun({ id, createdAt }, all, zone) {
  const second = (/** @type {string} */ it) => Math.floor(Date.parse(it) / 1000);
  const isShared = all.some((it) => it.id !== id && second(it.createdAt) === second(createdAt));
  return instant(createdAt, zone) + (isShared ? `, id …${id.slice(-6)}` : "");
}

/** How a session was made. @param {{ proof: string }} props */
function Proof({ proof }) {
  const { me } = usePlace();
  const [way, wid] = proof.split(":");
  const place = me.workspaces.find((/** @type {any} */ it) => it.id === wid);
  if (way === "sso") return html`Single sign-on of <${Quoted} text=${place ? place.name : wid} />`;
  return way === "link" ? "A sign-in link" : "A password";
}

export function Page() {
  const { me } = usePlace();
  const isOwn = !me.session.proof.startsWith("sso");
  const list = useList("/me/sessions", {}, [], PART);
  return html`<${Heading} title="Your account"><${SignOut} /><//>
    <div class="grid">
      <section class="card" aria-labelledby="who"><header><h2 id="who">You</h2></header>
        <${Facts} of=${[
          ["Name", me.name && html`<${Quoted} text=${me.name} />`],
          ["E-mail", html`<${Quoted} text=${me.email} />`],
          ["Signed in by", html`<${Proof} proof=${me.session.proof} />`],
          ["Ends, if not used", html`<${Time} at=${me.session.expiresAt} />`],
        ]} />
        <p><small>A session ends after 12 hours without use, and after 7 days at the latest.</small></p></section>
      <section class="card" aria-labelledby="places"><header><h2 id="places">Your workspaces</h2></header>
        <ul>${me.workspaces.map((/** @type {any} */ it) => html`<li key=${it.id}><a href=${at(it.id)}><${Quoted} text=${it.name} /></a>, ${it.role}${it.signIn.requireTwoFactor && html` <small>asks for a second factor</small>`}${it.signIn.requireSso && html` <small>takes single sign-on alone</small>`}</li>`)}</ul></section>
    </div>
    ${isOwn ? html`<div class="grid"><${Password} ended=${list.again} /><${Factor} ended=${list.again} /></div>` : html`<section class="card" aria-labelledby="own"><header><h2 id="own">Password and second factor</h2></header><p>Single sign-on has signed you in, and it vouches for you in its own workspace alone. To change your password or second factor, sign in by your password or by a link.</p></section>`}
    <${Sessions} list=${list} />`;
}

/** Signs out here. */
function SignOut() {
  const api = useApi();
  const { say } = usePlace();
  const out = async () => {
    const got = await api("POST", "/sign-out", {});
    if (isDone(got) || got.status === 401) {
      dropAll();
      location.assign(new URL("sign-in", ROOT));
    } else say("The server does not answer. Try again in a moment.");
  };
  return html`<${Button} act=${out}>Sign out here<//>`;
}

/** @param {{ ended: () => any }} props */
function Password({ ended }) {
  const api = useApi();
  const { me, say, again } = usePlace();
  const [turn, setTurn] = useState(0);
  const isLink = me.session.proof === "link";
  const set = (/** @type {Record<string, string>} */ it) => {
    if (it.password !== it.repeated) return { status: 400, said: {}, error: { errors: [{ field: "repeated", message: "is not the same as the new password" }] }, wait: 0 };
    return api("POST", "/me/password", { password: it.password, ...(it.current && { current: it.current }) });
  };
  const done = () => {
    say("The password is set. Your other sessions have ended.");
    // What was typed is let go of.
    setTurn(turn + 1);
    ended();
    return again();
  };
  return html`<section class="card" aria-labelledby="password"><header><h2 id="password">Password</h2></header>
    <p>Setting it ends your other sessions, on every machine.</p>
    <${Form} key=${turn} act=${set} submit="Set the password" done=${done}>
      <input class="unseen" type="text" name="username" autocomplete="username" value=${me.email} tabindex="-1" aria-hidden="true" readonly />
      <${Field} name="current" as="password" label="Present password" hint=${isLink ? "Empty where you have none, or have forgotten it: you came by a link." : ""} needed=${!isLink} more=${{ autocomplete: "current-password" }} />
      <${Field} name="password" as="password" label="New password" hint="12 to 256 characters, of more than two kinds." needed more=${{ autocomplete: "new-password" }} />
      <${Field} name="repeated" as="password" label="New password again" needed more=${{ autocomplete: "new-password" }} />
    <//></section>`;
}

/** @param {{ ended: () => any }} props */
function Factor({ ended }) {
  const api = useApi();
  const { me, say, again } = usePlace();
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState(/** @type {any} */ (null));
  const close = () => setOpen(null);
  const asking = me.workspaces.filter((/** @type {any} */ it) => it.signIn.requireTwoFactor);
  const begin = async () => {
    const got = await api("POST", "/me/totp", {});
    setWrong(isDone(got) ? null : got);
    if (isDone(got)) setOpen({ act: "set", made: got.said });
  };
  const kept = async () => {
    close();
    say("The second factor is set up. Your other sessions have ended.");
    ended();
    await again();
  };
  const removed = async () => {
    close();
    say("The second factor is removed.");
    await again();
  };
  return html`<section class="card" aria-labelledby="factor"><header><h2 id="factor">Second factor</h2><${Badge} kind=${me.twoFactor ? "good" : "plain"}>${me.twoFactor ? "Set up" : "None"}<//></header>
    <p>${me.twoFactor ? "A code of an app on your phone is asked for when you sign in, and where a workspace asks again above an amount." : "With one, whoever gets hold of your password still gets nowhere: signing in asks for a code of an app on your phone as well."}</p>
    ${me.recoveryCodesLeft !== undefined && html`<p><small>${me.recoveryCodesLeft === 1 ? "1 recovery code is" : `${me.recoveryCodesLeft} recovery codes are`} left.</small></p>`}
    ${asking.length > 0 && html`<p><small>Asked for by ${asking.map((/** @type {any} */ it, /** @type {number} */ place) => html`${place > 0 && ", "}<${Quoted} key=${it.id} text=${it.name} />`)}.</small></p>`}
    ${wrong && html`<p class="trouble" role="alert">${wrong.error.message ?? "The server does not answer."}</p>`}
    ${me.twoFactor ? html`<${Button} kind="danger" act=${() => setOpen({ act: "remove" })}>Remove it<//>` : html`<${Button} kind="main" act=${begin}>Set it up<//>`}
    ${open && open.act === "set" && html`<${SetUp} made=${open.made} close=${close} done=${(/** @type {any} */ got) => setOpen({ act: "codes", codes: got.said.recoveryCodes })} />`}
    ${open && open.act === "codes" && html`<${Codes} codes=${open.codes} close=${kept} />`}
    ${open && open.act === "remove" && html`<${Remove} asking=${asking.length > 0} close=${close} done=${removed} />`}
  </section>`;
}

/** The key of a new second factor, as a picture and as a text; nothing is asked for before a code of it was shown. @param {{ made: any, close: () => void, done: (got: any) => void }} props */
function SetUp({ made, close, done }) {
  const api = useApi();
  const confirm = (/** @type {Record<string, string>} */ it) => api("POST", "/me/totp/confirm", { code: it.code.replace(/\s/g, "") });
  return html`<${Dialog} title="Set up a second factor" close=${close}>
    <p>Read the picture with the app that makes your codes, or type the key into it.</p>
    <img class="picture" alt="QR code of the key below" src=${`data:image/svg+xml,${encodeURIComponent(made.qrSvg)}`} />
    <p class="secret"><code>${made.secret}</code></p>
    <p><${Copy} text=${made.secret} label="Copy the key" /> <a href=${made.otpauthUrl}>Open it in an app on this machine</a></p>
    <${Form} act=${confirm} submit="Set it up" cancel=${close} done=${done}>
      <${Field} name="code" label="Code that the app shows" hint="Six digits. Your other sessions end with it." needed more=${{ inputmode: "numeric", autocomplete: "one-time-code" }} />
    <//>
  <//>`;
}

/** @param {{ codes: string[], close: () => any }} props */
const Codes = ({ codes, close }) => html`<${Dialog} title="Keep your recovery codes" close=${() => {}}>
  <p>Each stands in for your second factor once, where the phone is lost. Keep them where the phone is not: they are not shown again.</p>
  <ul class="codes">${codes.map((it) => html`<li key=${it}><code>${it}</code></li>`)}</ul>
  <${Once} />
  <p class="acts"><${Copy} text=${codes.join("\n")} label="Copy all of them" /><${Button} kind="main" act=${close}>I have kept them<//></p>
<//>`;

/** @param {{ asking: boolean, close: () => void, done: () => any }} props */
function Remove({ asking, close, done }) {
  const api = useApi();
  const remove = (/** @type {Record<string, string>} */ it) => {
    const typed = it.code.replace(/[\s-]/g, "");
    return api("DELETE", "/me/totp", /^[0-9]{6}$/.test(typed) ? { code: typed } : { recoveryCode: typed });
  };
  return html`<${Dialog} title="Remove your second factor?" close=${close}>
    <p>From then on your password alone lets you in, and what is left of its ${RECOVERY_CODES} recovery codes is void.</p>
    ${asking && html`<div class="note"><p>A workspace of yours asks for one: it takes you in again once you have set up another.</p></div>`}
    <${Form} act=${remove} submit="Remove it" kind="danger" cancel=${close} done=${done}>
      <${Field} name="code" label="A code of it, or a recovery code" needed more=${{ autocomplete: "one-time-code" }} />
    <//>
  <//>`;
}

/** @param {{ list: any }} props */
function Sessions({ list }) {
  const api = useApi();
  const { say, zone } = usePlace();
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const close = () => setOpen(null);
  const since = (/** @type {any} */ it) => begun(it, list.items, zone);
  const others = list.items.filter((/** @type {any} */ it) => !it.current);
  const end = async (/** @type {any[]} */ all) => {
    for (const it of all) {
      const got = await api("DELETE", `/me/sessions/${it.id}`);
      // One that has ended meanwhile is as it should be.
      if (!isDone(got) && got.status !== 404) return got;
    }
    return null;
  };
  /** The sessions but this one, to the last part of the list; or what was answered where it could not be read. */
  const readOthers = async () => {
    /** @type {any[]} */
    const found = [];
    let cursor = null;
    do {
      const got = await api("GET", `/me/sessions${query({ limit: PART, cursor })}`);
      if (!isDone(got)) return { got, found };
      found.push(...got.said.data.filter((/** @type {any} */ it) => !it.current));
      cursor = got.said.nextCursor;
    } while (cursor);
    return { got: null, found };
  };
  const endOthers = async () => {
    for (let n = 0; n < LOOKS_MAX; n += 1) {
      const { got, found } = await readOthers();
      if (got) return got;
      if (!found.length) return null;
      const refused = await end(found);
      if (refused) return refused;
    }
    return "Somebody goes on signing in as you: set another password, which ends every other session, and look again.";
  };
  const ended = () => {
    say("Ended.");
    close();
    return list.again();
  };
  const columns = [
    { title: "Signed in by", cell: (/** @type {any} */ it) => html`<${Proof} proof=${it.proof} />${it.current && html` <${Badge} kind="good">This one<//>`}` },
    { title: "Since", cell: (/** @type {any} */ it) => since(it) },
    { title: "Last seen", cell: (/** @type {any} */ it) => html`<${Time} at=${it.lastSeenAt} ago />` },
    { title: "Ends, if not used", cell: (/** @type {any} */ it) => html`<${Time} at=${it.expiresAt} />` },
    { title: "", kind: "end", cell: (/** @type {any} */ it) => !it.current && html`<${Button} kind="danger" act=${() => setOpen({ one: it, since: since(it) })}>End<span class="unseen"> the session since ${since(it)}</span><//>` },
  ];
  return html`<section class="card" aria-labelledby="sessions"><header><h2 id="sessions">Where you are signed in</h2>${(others.length > 0 || list.more) && html`<${Button} kind="danger" act=${() => setOpen("others")}>End all others<//>`}</header>
    <${Shown} of=${list}>${(/** @type {any[]} */ items) => html`${items.length > 0 && html`<${Table} caption="Your sessions" columns=${columns} rows=${items} />`}<${Pager} of=${list} />
      ${!others.length && !list.more && html`<p><small>Nowhere else.</small></p>`}`}<//>
    <p><small>One that you do not know: end it, then set another password.</small></p>
    ${open && html`<${Dialog} title=${open === "others" ? "End all other sessions?" : "End this session?"} close=${close}>
      ${open.one && html`<${Facts} of=${[["Signed in by", html`<${Proof} proof=${open.one.proof} />`], ["Since", open.since], ["Last seen", html`<${Time} at=${open.one.lastSeenAt} ago />`]]} />`}
      <p>${open === "others" ? "All of yours but this one, also those that are not listed yet. Whoever uses them has to sign in again." : "Whoever uses it has to sign in again."}</p>
      <${Form} act=${() => (open === "others" ? endOthers() : end([open.one]))} submit="End" kind="danger" cancel=${close} done=${ended} /><//>`}
  </section>`;
}
