// The frame: who is signed in, where one is, and what is around every page. Addresses are links that work in a new tab too; the
// browser's own back and forward lead through them.
import { useCallback, useEffect, useMemo, useRef, useState } from "./hooks.js";
import { entitle, say, tell, useSpeaker } from "./aloud.js";
import { leadTo } from "./keyboard.js";
import { Badge, Button, Empty, Heading, Loading, Place, Quoted, Trouble, at, html, usePlace } from "./kit.js";
import { Who, forget, useList, useRead } from "./list.js";
import { follow } from "./live.js";
import { Gone, isShownOnce } from "./once.js";
import { GROUPS, PAGES } from "./pages.js";
import { comeBack, keepDown } from "./returning.js";
import { REACH } from "./rights.js";
import { ROOT, ask, isDone, keepHere, keepPerson, keepProof, keptHere, session, signInAddress, singleAddress } from "./server.js";
import { count } from "./text.js";
import { drop, dropAll, dropOthers, unsent, unsentHere } from "./unsent.js";

// Where this browser keeps which workspace was looked at last.
const LAST = "workspace";
const WAITING_READ = 100;
// Among so many the first is looked for that this person may decide.
const WAITING_LOOKED_FOR = 1_000;
const AGAIN_MS = 30_000;
const AWAY_MS = 8_000;

/** A part of an address; one that is no text names nothing. @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What an address names: `/w/{wid}/{page}/{item}` and a query. */
function here() {
  const [, wid, page, item] = location.pathname.slice(ROOT.pathname.length).split("/").map(decoded);
  return { wid, page, item, query: Object.fromEntries(new URLSearchParams(location.search)), href: location.href };
}

/** Whether an address is one of the console's own. An approval has a page of its own kind. @param {URL} url */
function isInside(url) {
  if (url.origin !== location.origin || !url.pathname.startsWith(`${ROOT.pathname}w/`)) return false;
  const [, , page, item, more] = url.pathname.slice(ROOT.pathname.length).split("/");
  return more === undefined && (!page || PAGES.some((it) => it.name === page)) && !(page === "approvals" && item);
}

/** Where one is, and how to go elsewhere; `moved` counts the pages since the first. */
function useAddress() {
  const shown = useRef(location.pathname);
  const [address, set] = useState({ ...here(), moved: 0 });
  const follow_ = useCallback(() => set((before) => {
    const next = here();
    const isOther = next.wid !== before.wid || next.page !== before.page || next.item !== before.item;
    return { ...next, moved: before.moved + (isOther ? 1 : 0) };
  }), []);
  const go = useCallback((/** @type {string} */ to, replace = false) => {
    const from = location.pathname;
    if (!replace) keepDown();
    // A filter takes nothing from what else stands here.
    const isSame = new URL(to, location.href).pathname === from;
    history[replace ? "replaceState" : "pushState"](replace && isSame ? history.state : null, "", to);
    shown.current = location.pathname;
    if (!replace && from !== location.pathname) comeBack();
    follow_();
  }, [follow_]);
  useEffect(() => {
    const click = (/** @type {MouseEvent} */ event) => {
      const link = /** @type {any} */ (event.target)?.closest?.("a[href]");
      const isOwn = event.button === 0 && !event.defaultPrevented && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
      if (!link || !isOwn || link.target || link.hash || !isInside(new URL(link.href))) return;
      event.preventDefault();
      go(link.href);
    };
    const back = () => {
      const isOther = shown.current !== location.pathname;
      shown.current = location.pathname;
      follow_();
      // A step within a page, as to what it is about, has led where it leads.
      if (isOther) comeBack();
    };
    history.scrollRestoration = "manual";
    comeBack();
    addEventListener("popstate", back);
    addEventListener("pagehide", keepDown);
    document.addEventListener("click", click);
    return () => {
      removeEventListener("popstate", back);
      removeEventListener("pagehide", keepDown);
      document.removeEventListener("click", click);
    };
  }, [go, follow_]);
  return { address, go };
}

export function App() {
  const { address, go } = useAddress();
  const [me, setMe] = useState(/** @type {any} */ (null));
  const [ended, setEnded] = useState(false);
  const was = useRef(/** @type {any} */ (null));
  const know = useCallback((/** @type {any} */ got) => {
    if (isDone(got)) {
      keepProof(got.said.session.proof);
      keepPerson(got.said.id);
      dropOthers();
    }
    // Who is known stays while the server does not answer.
    setMe((/** @type {any} */ before) => (isDone(got) || !before || !isDone(before) ? got : before));
  }, []);
  const look = useCallback(async () => {
    const got = await ask("GET", "api/me");
    // A session that has to set up a second factor may ask for nothing else: signing in leads on.
    if (got.status === 401 || got.status === 403) return location.replace(signInAddress());
    know(got);
  }, [know]);
  useEffect(() => {
    look();
    const end = () => setEnded(true);
    // Somebody else may have signed in in another window; a session that has ended is told by its own event.
    const whose = async () => {
      const got = document.hidden ? null : await ask("GET", "api/me");
      if (got && isDone(got)) know(got);
    };
    session.addEventListener("ended", end);
    session.addEventListener("another", whose);
    document.addEventListener("visibilitychange", whose);
    return () => {
      session.removeEventListener("ended", end);
      session.removeEventListener("another", whose);
      document.removeEventListener("visibilitychange", whose);
    };
  }, [look, know]);
  useEffect(() => {
    if (!address.wid && me && isDone(me)) {
      const all = me.said.workspaces.map((/** @type {any} */ it) => it.id);
      const last = keptHere(LAST);
      if (all.length) go(at(last && all.includes(last) ? last : all[0]), true);
    }
  }, [address.wid, me, go]);
  if (!me) return html`<${Loading} />`;
  if (ended) return html`<${Ended} />`;
  if (!isDone(me)) return html`<main class="alone"><${Trouble} got=${me} again=${look} /></main>`;
  const workspace = me.said.workspaces.find((/** @type {any} */ it) => it.id === address.wid);
  const now = workspace && { person: me.said.id, wid: workspace.id, role: workspace.role };
  // Another person, or role, begins anew: nothing stays of what only the one before might read or do.
  if (workspace) return html`<${Workspace} key=${Object.values(now).join(" ")} was=${was} now=${now} me=${me.said} workspace=${workspace} address=${address} go=${go} look=${look} />`;
  return address.wid || !me.said.workspaces.length ? html`<${Nowhere} me=${me.said} />` : html`<${Loading} />`;
}

/** Nothing of what was read stays for whoever sits here next. */
function Ended() {
  const title = useRef(/** @type {any} */ (null));
  useEffect(() => {
    entitle({ page: "Signed out", count: "" });
    title.current?.focus();
  }, []);
  const isKept = unsentHere().length > 0;
  const [isGone] = useState(isShownOnce);
  return html`<main class="alone"><h1 tabindex="-1" ref=${title}>You are no longer signed in</h1>
    <p>Your session has ended. ${isKept ? "What you had typed and not sent is kept in this tab, but for secrets." : "What you had typed and not sent is gone."} Sign in again to come back to this page${isKept && " and to it"}.</p>
    ${isGone && html`<${Gone} />`}
    <p><a class="button main" href=${signInAddress()}>Sign in</a></p></main>`;
}

/** What has changed under whoever looks at the same workspace. @param {any} was @param {any} now @param {any} me */
function changed(was, now, me) {
  if (!was || was.wid !== now.wid) return null;
  if (was.person !== now.person) return html`You are signed in as <strong><${Quoted} text=${me.email} /></strong> now.`;
  return was.role !== now.role ? html`Your role here is <strong>${now.role}</strong> now.` : null;
}

/** @param {{ me: any }} props */
function Nowhere({ me }) {
  const title = "There is no such workspace here";
  useEffect(() => entitle({ page: title, count: "" }), []);
  return html`<main class="alone"><h1>${title}</h1>
  <p>You are signed in as <${Quoted} text=${me.email} />, who is no member of it.</p>
  ${me.workspaces.length
    ? html`<p>Yours:</p><ul>${me.workspaces.map((/** @type {any} */ it) => html`<li key=${it.id}><a href=${at(it.id)}><${Quoted} text=${it.name} /></a></li>`)}</ul>`
    : html`<p>You are a member of no workspace. Whoever runs one can invite you.</p>`}
  <p><a href=${signInAddress()}>Your account and signing out</a></p></main>`;
}

/** @param {{ me: any, workspace: any, was: { current: any }, now: any, address: any, go: any, look: () => any }} props */
function Workspace({ me, workspace, was, now, address, go, look }) {
  const [news] = useState(() => ({ said: changed(was.current, now, me), isGone: isShownOnce(), moved: address.moved }));
  useEffect(() => {
    was.current = now;
  }, []);
  const { wid } = address;
  const hearers = useRef(new Set());
  const followed = useRef(/** @type {import("./live.js").Line | null} */ (null));
  const [line, setLine] = useState("");
  const { said, told, hush } = useSpeaker();
  // What came of an act belongs to the page that it was done on.
  useEffect(hush, [address.moved]);
  useEffect(() => {
    document.documentElement.classList.toggle("says", !!said);
    return () => document.documentElement.classList.remove("says");
  }, [said]);
  const [settings, setSettings] = useState(/** @type {any} */ (null));
  const lacks = useRef(false);
  const isKillOwner = useKillOwner(wid, workspace, line);
  const listen = useCallback((/** @type {any} */ hear) => {
    hearers.current.add(hear);
    return () => hearers.current.delete(hear);
  }, []);
  const read = useCallback(async () => {
    const got = await ask("GET", `api/w/${wid}/settings`);
    const isRefused = got.status === 403 || got.status === 404;
    lacks.current = !isDone(got);
    // What is open is closed with it; what was typed into it is kept as where a session ends.
    if (isRefused) session.dispatchEvent(new Event("barred"));
    setSettings((/** @type {any} */ before) => (isDone(got) ? got.said : before && !isRefused ? before : { refused: got }));
  }, [wid]);
  useEffect(() => {
    keepHere(LAST, wid);
    read();
    const tell = (/** @type {any} */ told) => {
      if (told.type === "agent.changed" && told.id) forget(told.id);
      for (const hear of [...hearers.current]) hear(told);
    };
    let [isFirst, isWhole] = [true, false];
    const line = follow(wid, tell, (standing) => {
      setLine(standing);
      // A line also ends where somebody's role has changed, or what the workspace asks of sessions.
      if (standing === "barred" || (standing === "on" && (!isFirst || lacks.current))) void (read(), look());
      // What happened between the first look and the beginning of the line is looked for once, and what could not be read while
      // the line was away once it is there again.
      if (standing === "on") tell({ type: isWhole ? "on" : "reset" });
      isFirst = false;
      isWhole = standing === "on" || (isWhole && standing === "off");
    });
    followed.current = line;
    return () => {
      line.end();
      forget();
    };
  }, [wid, read, look]);
  const retry = useCallback(async () => {
    await read();
    followed.current?.again();
  }, [read]);
  const place = useMemo(() => {
    const may = (/** @type {string} */ right) => (REACH[workspace.role] ?? {})[right];
    const [zone, currency] = [settings?.timezone, settings?.currency ?? "EUR"];
    const again = () => Promise.all([read(), look()]);
    return { me, workspace, wid, zone, currency, may, isKillOwner, listen, go, say, again, moved: address.moved };
  }, [me, workspace, wid, settings, isKillOwner, listen, go, read, look, address.moved]);
  if (!settings || isKillOwner === undefined) return html`<${Loading} />`;
  const barred = settings.refused;
  return html`<${Place.Provider} value=${place}>
    <a class="skip" href="#main">Skip to what this page is about</a>
    <${Bar} address=${address} isBarred=${!!barred} />
    <main id="main" tabindex="-1">
      ${barred ? html`<${Barred} got=${barred} again=${retry} />` : html`${news.said && news.moved === address.moved && html`<div class="note" role="alert"><p>${news.said} What was open here is closed. What you had typed and not sent is gone.</p></div>${news.isGone && html`<${Gone} />`}`}<${Interrupted} line=${line} /><${Held} /><${Unsent} key=${address.href} /><${Page} address=${address} />`}
    </main>
    <p class="said" role="status">${said}</p>
    <p class="unseen" role="status">${told}</p>
  <//>`;
}

/** Whether somebody whose role reads no agents may freeze some all the same; known once it was answered, so it is asked again with the line. @param {string} wid @param {any} workspace @param {string} line */
function useKillOwner(wid, workspace, line) {
  const [is, set] = useState(/** @type {boolean | undefined} */ (undefined));
  const told = useRef("");
  const reads = !!(REACH[workspace.role] ?? {}).ReadAgents;
  useEffect(() => {
    if (reads || told.current === wid) return;
    let isHere = true;
    ask("GET", `api/w/${wid}/agents?limit=1`).then((got) => {
      if (!isHere) return;
      if (isDone(got) || got.status === 403 || got.status === 404) told.current = wid;
      set(isDone(got));
    });
    return () => void (isHere = false);
  }, [wid, reads, line]);
  return reads ? false : is;
}

/** @param {{ got: any, again: () => void }} props */
function Barred({ got, again }) {
  const { workspace, wid } = usePlace();
  const isSingle = workspace.signIn.requireSso;
  const [isGone] = useState(isShownOnce);
  const isKept = unsentHere().length > 0;
  if (got.status !== 403) return html`<${Heading} title=${workspace.name} name=${html`<${Quoted} text=${workspace.name} />`} /><${Trouble} got=${got} again=${again} />`;
  return html`<${Heading} title="This workspace does not take your session" />
    <p><${Quoted} text=${workspace.name} /> ${isSingle ? "takes only sessions of its own single sign-on." : "asks for more than you have signed in with."}</p>
    ${isSingle && html`<p><a class="button main" href=${singleAddress(wid)}>Sign in with single sign-on</a></p>`}
    ${isKept && html`<p>What you had typed and not sent is kept in this tab, but for secrets.</p>`}
    ${isGone && html`<${Gone} />`}<${Trouble} got=${got} again=${again} />`;
}

/** A line that stays away for long is told of: what is shown may be old. @param {{ line: string }} props */
function Interrupted({ line }) {
  const [isLong, set] = useState(false);
  useEffect(() => {
    set(false);
    const timer = line === "off" || line === "barred" ? setTimeout(() => set(true), AWAY_MS) : 0;
    return () => clearTimeout(timer);
  }, [line]);
  return html`<div role="status">${isLong && html`<p class="note">Live updates are interrupted, so what is shown may be old. They are tried again by themselves.</p>`}</div>`;
}

/** What was typed on this page before the session ended, and where it is found. */
function Unsent() {
  const [kept, set] = useState(unsentHere);
  useEffect(() => {
    const look = () => set(unsentHere());
    unsent.addEventListener("changed", look);
    return () => unsent.removeEventListener("changed", look);
  }, []);
  return kept.map((it) => html`<div class="note" key=${`${it.title} ${it.id}`}><p>What you had typed in <strong><${Quoted} text=${it.title} /></strong>${it.name && html` (<${Quoted} text=${it.name} />)`} before your session ended is kept, but for secrets. Open it again: it stands there.</p>
    <p><${Button} act=${() => drop(it)}>Let go of it<//></p></div>`);
}

/** What this person may open: what their role reaches, and the agents that they may freeze whatever their role. */
function useMine() {
  const { may, isKillOwner } = usePlace();
  return PAGES.filter((it) => !it.rights.length || it.rights.some(may) || (it.name === "agents" && isKillOwner));
}

/**
 * The menu of a small screen, which lies over the page: whether it is open, how to change that, and where it stands. Nobody goes on
 * behind it: it closes for Escape, for whoever leaves it, and for whoever follows one of its links, also to where they are.
 * @param {string} href
 */
function useMenu(href) {
  const [open, set] = useState(false);
  const bar = useRef(/** @type {any} */ (null));
  const next = useRef(/** @type {any} */ (null));
  useEffect(() => set(false), [href]);
  useEffect(() => {
    const header = bar.current;
    if (!open) {
      // What had lain behind the menu has moved up.
      next.current?.scrollIntoView({ block: "nearest" });
      next.current = null;
      return;
    }
    const leave = (/** @type {any} */ { relatedTarget: to }) => {
      if (!to || header.contains(to)) return;
      next.current = to;
      set(false);
    };
    const escape = (/** @type {any} */ { key }) => {
      if (key !== "Escape") return;
      set(false);
      header.querySelector("button.menu").focus();
    };
    const choose = (/** @type {any} */ event) => {
      const link = event.target.closest("a[href]");
      if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      set(false);
      const heading = new URL(link.href).pathname === location.pathname && document.querySelector("main h1");
      if (heading) leadTo(heading);
    };
    const all = /** @type {[string, any][]} */ ([["focusout", leave], ["keydown", escape], ["click", choose]]);
    for (const [name, act] of all) header.addEventListener(name, act);
    return () => all.forEach(([name, act]) => header.removeEventListener(name, act));
  }, [open]);
  return { open, toggle: () => set(!open), bar };
}

/** @param {{ address: any, isBarred: boolean }} props */
function Bar({ address, isBarred }) {
  const { me, workspace, wid } = usePlace();
  const { open, toggle, bar } = useMenu(address.href);
  const mine = useMine();
  const current = address.page ?? mine[0]?.name;
  const [wrong, setWrong] = useState(/** @type {any} */ (null));
  const out = async () => {
    const got = await ask("POST", "api/sign-out", {});
    if (isDone(got) || got.status === 401) {
      dropAll();
      return location.assign(new URL("sign-in", ROOT));
    }
    setWrong(got);
  };
  const link = (/** @type {any} */ it) => html`<li key=${it.name}>
    <a href=${at(wid, it.name)} aria-current=${it.name === current ? "page" : undefined}>${it.title}${it.name === "approvals" && html`<${Waiting} />`}</a>
  </li>`;
  return html`<header class=${`bar ${open ? "open" : ""}`} ref=${bar}>
    <div class="brand">
      <a href=${at(wid)} class="home"><${Quoted} text=${workspace.name} /></a>
      <${Button} kind="menu" expanded=${open} act=${toggle}>Menu<//>
    </div>
    <div class="drawer">
      ${me.workspaces.length > 1 && html`<details class="switch"><summary>Other workspaces</summary><ul>
        ${me.workspaces.filter((/** @type {any} */ it) => it.id !== wid).map((/** @type {any} */ it) => html`<li key=${it.id}><a href=${at(it.id)}><${Quoted} text=${it.name} /> <small>${it.role}</small></a></li>`)}
      </ul></details>`}
      ${!isBarred && html`<nav aria-label="Pages">${GROUPS.map((group) => {
        const pages = mine.filter((it) => it.group === group);
        return pages.length > 0 && html`<section key=${group}>${GROUPS.length > 1 && html`<h2>${group}</h2>`}<ul>${pages.map(link)}</ul></section>`;
      })}</nav>`}
      <div class="foot">
        <p class="who"><${Quoted} text=${me.name || me.email} /><small>${workspace.role}</small></p>
        <p><a href=${isBarred ? new URL("sign-in", ROOT).pathname : at(wid, "account")} aria-current=${current === "account" ? "page" : undefined}>Account</a> · <a href=${new URL("docs", ROOT).pathname}>Reference</a></p>
        <${Button} act=${out}>Sign out<//>
        ${wrong && html`<${Trouble} got=${wrong} isWrite=${true} />`}
      </div>
    </div>
  </header>`;
}

/** How much waits for this person: what they cannot decide is not counted. Where more wait than are read, it is so much at least. */
function Waiting() {
  const { items, data, more, next, got, step } = useList("approvals", { state: "waiting" }, ["approval"], WAITING_READ);
  const n = items.filter((/** @type {any} */ it) => it.mayDecide).length;
  const before = useRef({ step: "", n: 0 });
  const isLookedFor = !n && more && items.length < WAITING_LOOKED_FOR;
  useEffect(() => {
    if (!isLookedFor) return;
    const timer = setTimeout(next, isDone(got) ? 0 : AGAIN_MS);
    return () => clearTimeout(timer);
  }, [isLookedFor, got, next]);
  const many = n ? `${n}${more ? "+" : ""}` : "";
  useEffect(() => {
    if (!data) return;
    const { step: was, n: of } = before.current;
    before.current = { step, n };
    entitle({ count: many });
    // What was there before this page was opened, or is only found now, has not come just now.
    if (was === step && n > of) tell(`${count(n - of, "more approval waits", "more approvals wait")} for you.`);
  }, [data, step, n, many]);
  useEffect(() => () => entitle({ count: "" }), []);
  if (!n) return null;
  return html` <span class="waiting" aria-hidden="true">${many}</span><span class="unseen">, ${many} waiting</span>`;
}

/** Where a hold stops every agent, that is said on every page. */
function Held() {
  const { may, wid } = usePlace();
  const { data } = useRead(may("ReadHolds") ? "holds?limit=100" : null, ["hold"]);
  const hold = ((data && data.data) || []).find((/** @type {any} */ it) => it.scope === "all" && !it.liftedAt);
  const was = useRef(/** @type {boolean | null} */ (null));
  useEffect(() => {
    if (!data) return;
    if (was.current === !hold) tell(hold ? "Every agent is stopped, and none may do anything." : "The stop of every agent is lifted.");
    was.current = !!hold;
  }, [data, hold]);
  if (!hold) return null;
  return html`<div class="held"><p><${Badge} kind="bad">Everything is stopped<//> Since it was set by <${Who} id=${hold.by} />, no agent may do anything: <${Quoted} text=${hold.reason} /></p>
    <p><a href=${at(wid, "stop")}>See the hold</a></p></div>`;
}

/** @param {{ address: any }} props */
function Page({ address }) {
  const mine = useMine();
  const { listen } = usePlace();
  const known = address.page ? mine.find((it) => it.name === address.page) : mine[0];
  const load = known && (address.item ? known.item : known.load);
  const name = known ? `${known.name} ${address.item ? "item" : ""}` : "";
  const [loaded, set] = useState(/** @type {any} */ ({ name: "" }));
  useEffect(() => {
    if (!load) return;
    let isHere = true;
    load().then((it) => isHere && set({ name, Page: it.Page }), () => isHere && set({ name, isMissing: true }));
    return () => void (isHere = false);
  }, [name]);
  const isMissing = loaded.name === name && loaded.isMissing;
  // Browsers remember that a module could not be loaded: only another page loads it again.
  useEffect(() => (isMissing ? listen(({ type }) => type === "on" && location.reload()) : undefined), [isMissing, listen]);
  if (!load) return html`<${Unreached} name=${address.page} />`;
  if (loaded.name !== name) return html`<${Loading} />`;
  if (isMissing) return html`<${Heading} title=${known?.title} /><div role="alert"><${Empty} title="This page could not be loaded."><p>The server does not answer, or it was updated since you opened the console.</p><p><${Button} act=${() => location.reload()}>Load it again<//></p><//></div>`;
  const isList = address.item === undefined;
  return html`<${loaded.Page} key=${isList ? name : address.item} item=${address.item} query=${address.query} />`;
}

/** @param {{ name?: string }} props */
function Unreached({ name }) {
  const { workspace, wid } = usePlace();
  const mine = useMine();
  const known = PAGES.find((it) => it.name === name);
  // A page that this person may open has nothing below it at such an address.
  if (!known || mine.includes(known)) {
    return html`<${Heading} title="There is no such page" />
      <${Empty} title="Nothing stands at this address.">${known && html`<p><a href=${at(wid, known.name)}>${known.title}</a></p>`}<//>`;
  }
  return html`<${Heading} title=${known.title} />
    <${Empty} title=${`Your role here, ${workspace.role}, does not reach this page.`}><p>An owner or an admin of <${Quoted} text=${workspace.name} /> can give you another role.</p><//>`;
}

