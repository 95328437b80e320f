// The models of a workspace with what they cost and can do; beside them their providers, classes of tasks and policy profiles.
import { Badge, Button, Dialog, Empty, Facts, Field, Form, Heading, Pager, Quoted, Shown, Table, Tabs, Time, at, html, usePlace } from "./kit.js";
import { Ending } from "./ending.js";
import { useState } from "./hooks.js";
import { Choice } from "./filters.js";
import { Who, useApi, useList, useRead } from "./list.js";
import { Others, isSame, usePinned } from "./meanwhile.js";
import { PRICES, Prices, pricesOf } from "./prices.js";
import { Further, toldOf, useSought } from "./seeking.js";
import { query as asQuery, wrongFields } from "./server.js";
import { CAPABILITIES, Capabilities, Terms, capabilitiesOf } from "./terms.js";
import { dollars, lines, sought } from "./text.js";
import { Upstreams } from "./upstreams.js";

/** @type {[string, string, string][]} */
const VIEWS = [["", "Models", "ReadModels"], ["providers", "Providers", "ReadReports"], ["classes", "Classes of tasks", "ReadReports"], ["profiles", "Policy profiles", "ReadReports"]];

/** @param {{ item?: string, query: Record<string, string> }} props */
export function Page({ item = "", query }) {
  const { wid, may } = usePlace();
  const mine = VIEWS.filter((it) => may(it[2]));
  const view = mine.find((it) => it[0] === item);
  const tabs = mine.map(([is, label]) => ({ label, href: at(wid, "models", ...(is ? [is] : [])), on: is === item }));
  return html`<${Heading} title=${view ? view[1] : "Models"} />
    ${mine.length > 1 && html`<${Tabs} name="What of it" of=${tabs} />`}
    ${view ? html`<${View} of=${item} query=${query} />` : html`<${Empty} title="There is no such part of this page, or your role does not reach it."><p><a href=${at(wid, "models")}>To the models</a></p><//>`}`;
}

/** @param {{ of: string, query: Record<string, string> }} props */
function View({ of, query }) {
  if (of === "providers") return html`<${Upstreams} />`;
  return of === "classes" || of === "profiles" ? html`<${Terms} kind=${of} />` : html`<${Models} query=${query} />`;
}

/** A model's name, as calls have it. @param {any} of */
const nameOf = ({ provider, id }) => `${provider}/${id}`;

/** @param {{ query: Record<string, string> }} props */
function Models({ query }) {
  const { may, wid, go } = usePlace();
  const list = useList("models");
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const [part, setPart] = useState("");
  const mayChange = may("ManageRouting");
  const { price = "", provider = "" } = query;
  const set = (/** @type {Record<string, string>} */ more) => go(at(wid, "models") + asQuery({ price, provider, ...more }), true);
  const named = sought(part.trim());
  const isMeant = (/** @type {any} */ it) => (!provider || it.provider === provider) && (!price || (price === "none") === !it.prices) && sought(nameOf(it)).includes(named);
  const wanted = provider || price || named ? [provider, price, named].join(" ") : "";
  const seeking = useSought("models", list, wanted, isMeant, nameOf);
  const shown = seeking.found;
  const providers = [...new Set(seeking.rows.map((it) => it.provider))].sort();
  const close = () => setOpen(null);
  const done = () => {
    close();
    seeking.forget();
    return list.again();
  };
  const columns = [
    { title: "Model", cell: (/** @type {any} */ it) => html`<${Button} kind="link" act=${() => setOpen({ act: "see", of: it })}><${Quoted} text=${nameOf(it)} /><//>${it.enabled === false && html` <${Badge}>Off<//>`}${it.aliases?.length > 0 && html`<br /><small>also <${Quoted} text=${it.aliases.join(", ")} /></small>`}` },
    { title: "Price a million tokens", cell: (/** @type {any} */ it) => html`<${Price} of=${it.prices} />` },
    { title: "Quality", kind: "end", cell: (/** @type {any} */ it) => html`<${Quality} of=${it.quality} />` },
    { title: "Can", cell: (/** @type {any} */ it) => can(it.capabilities) },
    { title: "Where", cell: (/** @type {any} */ it) => html`<${Law} of=${it} />` },
  ];
  return html`
    <p class="lead">What calls can go to. A model is named as <code>provider/model</code>, by its own id, or by another name that it has.</p>
    <div class="filters">
      ${mayChange && html`<${Button} kind="main" act=${() => setOpen({ act: "edit" })}>New model<//>`}
      ${(list.items.length > 5 || list.more || wanted) && html`<${Choice} label="Provider" value=${provider} options=${[["", "Every provider"], ...providers.map((it) => [it, it])]} choose=${(/** @type {string} */ it) => set({ provider: it })} />
        <${Choice} label="Price" value=${price} options=${[["", "Any"], ["known", "Known"], ["none", "None"]]} choose=${(/** @type {string} */ it) => set({ price: it })} />
        <span class="choice"><label for="part">Find by name</label><input id="part" type="search" value=${part} onInput=${(/** @type {any} */ it) => setPart(it.currentTarget.value)} /></span>`}
    </div>
    <${Shown} of=${{ ...list, more: seeking.more }} many=${shown.length}>${(/** @type {any[]} */ items) =>
      items.length
        ? html`<p role="status">${wanted && toldOf(seeking, shown.length, "model")}</p>
          ${shown.length > 0 && html`<${Table} caption="Models" columns=${columns} rows=${shown} rowKey=${nameOf} />`}
          ${!shown.length && !seeking.isLooking && html`<${Empty} title=${seeking.more ? "None so far is like this." : "No model is like this."}><p><a href=${at(wid, "models")}>Show all of them</a></p><//>`}
          ${wanted ? html`<${Further} of=${seeking} />` : html`<${Pager} of=${list} />`}`
        : html`<${Empty} title="There is no model yet."><p>${mayChange ? html`First comes a <a href=${at(wid, "models", "providers")}>provider</a>, then its models.` : "An owner or an admin adds providers and their models."}</p><//>`}<//>
    ${open && open.act === "see" && html`<${See} of=${open.of} close=${close} open=${setOpen} />`}
    ${open && open.act === "edit" && html`<${Edit} of=${open.of} close=${close} done=${done} />`}
    ${open && open.act === "remove" && html`<${Remove} of=${open.of} close=${close} done=${done} />`}`;
}

/** @param {{ of: any }} props */
function Price({ of }) {
  if (!of) return html`<${Badge} kind="waits">No price<//>`;
  return html`<span class="number">${dollars(of.input)} in</span>, <span class="number">${dollars(of.output)} out</span>${of.tiers?.length > 0 && html`<br /><small>more for long input</small>`}`;
}

/** @param {{ of: any }} props */
function Quality({ of }) {
  if (typeof of !== "object" || of === null) return html`<span class="number">${of ?? "–"}</span>`;
  const all = Object.values(of);
  return html`<span class="number">${Math.min(...all)}–${Math.max(...all)}</span> <small>by class</small>`;
}

/** @param {{ of: any }} props */
const Law = ({ of: { jurisdiction, retention, retentionDays } }) => html`<${Quoted} text=${jurisdiction ?? "unknown"} /><br /><small>${retention === "none" ? "keeps nothing" : retentionDays ? `keeps for ${retentionDays} days` : "keeps for days"}</small>`;

/** @param {string[] | null} all */
const can = (all) => CAPABILITIES.filter((it) => (all ?? []).includes(it[0])).map((it) => it[1].toLowerCase()).join(", ") || "text";

/** @param {{ of: any, close: () => void, open: (it: any) => void }} props */
function See({ of, close, open }) {
  const { may } = usePlace();
  const { prices, figures } = of;
  return html`<${Dialog} title="Model" close=${close}>
    <p><strong><${Quoted} text=${nameOf(of)} /></strong> ${of.enabled === false && html`<${Badge}>Off<//>`}</p>
    <${Facts} of=${[
      ["Also named", of.aliases?.length > 0 && html`<${Quoted} text=${of.aliases.join(", ")} />`],
      ["Can", can(of.capabilities)],
      ["Quality", html`<${Quoted} text=${qualities(of.quality)} /> of 100`],
      ["Takes in all", of.contextWindow && `${of.contextWindow.toLocaleString("en")} tokens`],
      ["Answers at most", of.maxOutput && `${of.maxOutput.toLocaleString("en")} tokens`],
      ["Law, retention", html`<${Law} of=${of} />`],
      ["Reckoned for", figures && Object.entries({ image: "an image", page: "a page", audioSecond: "a second of audio" }).filter((it) => figures[it[0]] !== undefined).map(([it, said]) => `${figures[it].toLocaleString("en")} tokens for ${said}`).join(", ")],
      ["Made", of.createdAt && html`<${Time} at=${of.createdAt} /> by <${Who} id=${of.createdBy} />`],
    ]} />
    <h3>Prices</h3>
    ${prices ? html`<${Priced} of=${prices} />` : html`<p>It has none: where policy is enforced its calls are refused, in shadow they go out and no budget sees them.</p>`}
    <p class="acts"><button type="button" onClick=${close}>Close</button>${may("ManageRouting") && html`<${Button} act=${() => open({ act: "edit", of })}>Change<//><${Button} kind="danger" act=${() => open({ act: "remove", of })}>Remove<//>`}</p>
  <//>`;
}

/** Prices, each with what it is of. @param {{ of: any }} props */
function Priced({ of }) {
  const { more } = pricesOf.split(of);
  const all = PRICES.filter((it) => of[it[0]] !== undefined).map((it) => [it[1].replace(" (USD)", ""), html`<span class="number">${dollars(of[it[0]])}</span>`]);
  return html`<${Facts} of=${all} />${more && html`<p>Further prices, in micros:</p><pre tabindex="0" aria-label="Further prices, in micros"><${Quoted} text=${more} dir="ltr" /></pre>`}`;
}

/** @param {any} quality */
const qualities = (quality) => (typeof quality === "object" && quality ? Object.entries(quality).map(([it, n]) => `${it}: ${n}`).join(", ") : (quality ?? "–"));

/** What is asked of quality: a number, or one a class. @param {string} text @returns {any} `undefined` where it is neither */
function qualityOf(text) {
  const all = lines(text);
  if (!all.length) return null;
  if (all.length === 1 && /^[0-9]+$/.test(all[0])) return Number(all[0]);
  const pairs = all.map((it) => /^([^:\s]+)\s*:\s*([0-9]+)$/.exec(it));
  return pairs.every(Boolean) ? Object.fromEntries(pairs.map((it) => [it?.[1], Number(it?.[2])])) : undefined;
}

/** @param {any} quality */
const qualityText = (quality) => (typeof quality === "object" && quality ? Object.entries(quality).map((it) => it.join(": ")).join("\n") : (quality ?? ""));

/** @param {{ of?: any, close: () => void, done: () => any }} props */
function Edit({ of, close, done }) {
  const api = useApi();
  const { say } = usePlace();
  const providers = useRead("upstreams?limit=500");
  const path = of && `models/${encodeURIComponent(of.provider)}/${encodeURIComponent(of.id)}`;
  // What is left as it was is not sent, whatever others change meanwhile.
  const { began: was, known, others, look } = usePinned(of, path);
  const all = (providers.data && providers.data.data) || [];
  const save = async (/** @type {Record<string, string>} */ values) => {
    const prices = pricesOf.fields(values);
    if (prices.faults) return wrongFields(prices.faults);
    const quality = qualityOf(values.quality);
    if (quality === undefined) return wrongFields({ quality: "One number from 0 to 100, or a line a class, such as code.review: 80." });
    const body = bodyOf(values, quality, prices.all);
    if (was) {
      const changed = Object.entries(body).filter(([member, it]) => !isSame(plainly(it), plainly(was[member])));
      const names = changed.map((it) => it[0]);
      // How long something is kept goes with whether it is.
      const parts = names.some((it) => KEPT.includes(it)) ? [...new Set([...names, ...KEPT])] : names;
      const { stop } = await look(parts, (said, member) => plainly(said[member]));
      return stop ?? api("PATCH", path, Object.fromEntries(changed));
    }
    return api("POST", "models", { id: values.id.trim(), upstreamId: values.upstreamId ?? "", ...Object.fromEntries(Object.entries(body).filter((it) => it[1] !== null)) });
  };
  const saved = () => {
    say(was ? "The model is changed." : "The model is made.");
    done();
  };
  const isReady = was || providers.data;
  return html`<${Dialog} title=${was ? "Change this model" : "New model"} of=${was && { id: nameOf(was), name: nameOf(was) }} close=${close}>
    ${!isReady && html`<${Shown} of=${providers}>${() => null}<//><p class="acts"><button type="button" onClick=${close}>Cancel</button></p>`}
    ${isReady && !was && html`<p>What is left empty is as the catalogue knows the model, and else as usual.</p>`}
    ${isReady && html`<${Form} act=${save} submit=${was ? "Save" : "Make the model"} cancel=${close} done=${saved}>
      ${was ? html`<p><strong><${Quoted} text=${nameOf(was)} /></strong></p>` : html`<div class="pair">
        <${Field} name="upstreamId" as="choice" label="Provider" options=${all.map((/** @type {any} */ it) => [it.id, it.name])} hint=${!all.length && "Make a provider first."} />
        <${Field} name="id" label="Id" needed more=${{ autocapitalize: "none", spellcheck: false }} hint="As its provider has it." />
      </div>`}
      <${Prices} of=${was?.prices} isNew=${!was} />
      <${Traits} of=${was} />
      <${Others} of=${others.map((member) => [MEMBERS[member], said(known, member)])} />
    <//>`}
  <//>`;
}

/** @param {{ of?: any }} props */
function Traits({ of: was }) {
  const usual = was ? undefined : "As the catalogue has it";
  return html`<${Field} name="quality" as="lines" label="Quality" value=${qualityText(was?.quality)} hint=${html`One number from 0 to 100, or a line a class, such as <code>code.review: 80</code>.`} />
    ${was ? html`<${Capabilities} legend="It can" of=${was.capabilities} />` : html`<details><summary>What it can</summary><${Capabilities} legend="It can" /><small>None ticked: as the catalogue has it.</small></details>`}
    <div class="pair">
      <${Field} name="contextWindow" as="number" label="Takes in all (tokens)" value=${was?.contextWindow ?? ""} hint=${usual} more=${{ min: 1 }} />
      <${Field} name="maxOutput" as="number" label="Answers at most (tokens)" value=${was?.maxOutput ?? ""} hint=${usual} more=${{ min: 1 }} />
    </div>
    <div class="pair">
      <${Field} name="jurisdiction" label="Under the law of" value=${was?.jurisdiction ?? ""} more=${{ autocapitalize: "none", spellcheck: false }} hint=${html`A country such as <code>ch</code>, <code>eu</code>, or <code>unknown</code>.`} />
      <${Field} name="retention" as="choice" label="Its provider keeps what is sent" options=${[...(was ? [] : [["", "As the catalogue has it"]]), ["days", "For days"], ["none", "Not at all"]]} value=${was?.retention ?? ""} />
      <${Field} name="retentionDays" as="number" label="For so many days" value=${was?.retentionDays ?? ""} more=${{ min: 1 }} />
    </div>
    <${Field} name="aliases" as="lines" label="Other names" value=${(was?.aliases ?? []).join("\n")} hint="One a line: calls that name one of them mean this model." />
    <${Field} name="enabled" as="check" label="Calls may go to it" value=${was ? was.enabled !== false : true} />`;
}

/** @param {Record<string, string>} values @param {any} quality @param {any} prices */
function bodyOf(values, quality, prices) {
  const number = (/** @type {string} */ name) => (values[name] === "" ? null : Number(values[name]));
  return {
    prices, quality, capabilities: capabilitiesOf(values).length ? capabilitiesOf(values) : null,
    contextWindow: number("contextWindow"), maxOutput: number("maxOutput"), jurisdiction: values.jurisdiction.trim().toLowerCase() || null,
    retention: values.retention || null, retentionDays: number("retentionDays"), aliases: lines(values.aliases).length ? lines(values.aliases) : null, enabled: !!values.enabled,
  };
}

/** A value without what says nothing, its members and capabilities in one order. @param {any} it @returns {any} */
const plainly = (it) => {
  if (Array.isArray(it)) return it.length ? [...it.map(plainly)].sort() : null;
  if (it && typeof it === "object") return Object.keys(it).sort().filter((name) => plainly(it[name]) !== null).map((name) => [name, plainly(it[name])]);
  return it === undefined || it === false ? null : it;
};
/** What of a model is changed. @type {Record<string, string>} */
const MEMBERS = {
  prices: "Prices", quality: "Quality", capabilities: "It can", contextWindow: "Takes in all (tokens)", maxOutput: "Answers at most (tokens)",
  jurisdiction: "Under the law of", retention: "Its provider keeps what is sent", retentionDays: "For so many days", aliases: "Other names",
  enabled: "Calls may go to it",
};

const KEPT = ["retention", "retentionDays"];

/** A member as it stands. @param {any} of @param {string} member */
function said(of, member) {
  const it = of[member];
  if (member === "prices" && it) return html`<${Priced} of=${it} />`;
  if (member === "capabilities") return can(it);
  if (member === "quality") return html`<${Quoted} text=${qualities(it)} />`;
  if (member === "retention") return it === "none" ? "Not at all" : "For days";
  if (member === "enabled") return it === false ? "No" : "Yes";
  if (member === "aliases") return html`<${Quoted} text=${(it ?? []).join(", ") || "none"} />`;
  return it ? html`<${Quoted} text=${typeof it === "number" ? it.toLocaleString("en") : it} />` : "none";
}


/** @param {{ of: any, close: () => void, done: () => any }} props */
function Remove({ of, close, done }) {
  return html`<${Ending} title="Remove this model?" path=${`models/${encodeURIComponent(of.provider)}/${encodeURIComponent(of.id)}`} said="The model is removed." close=${close} done=${done}>
    <p><strong><${Quoted} text=${nameOf(of)} /></strong>: calls that name it are refused, and nothing is sent to it. What it cost so far stays in the reports.</p>
  <//>`;
}
