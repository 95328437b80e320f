// Templates: wordings of mandates that agents are made with, the workspace's own and the catalogue's.
import { Badge, Button, Dialog, Empty, Field, Form, Heading, Pager, Quoted, Shown, Time, html, usePlace } from "./kit.js";
import { Ending } from "./ending.js";
import { useState } from "./hooks.js";
import { Who, forget, useApi, useList } from "./list.js";
import { Terms, Words, atTerms, bodyOf } from "./mandates.js";
import { Others, usePinned } from "./meanwhile.js";

const WITHIN = "mandate.";

export function Page() {
  const { may } = usePlace();
  const list = useList("templates", {}, ["agent"]);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const mayChange = !!may("ManageTemplates");
  const close = () => setOpen(null);
  const done = () => {
    if (open.of) forget(`templates/${encodeURIComponent(open.of.name)}`);
    close();
    return list.again();
  };
  return html`<${Heading} title="Templates">${mayChange && html`<${Button} kind="main" act=${() => setOpen({ act: "make" })}>New template<//>`}<//>
    <p class="lead">What mandates are made from. A mandate keeps the wording that it was made with: changing or removing a template changes no mandate.${!mayChange && " An owner or admin makes templates; you can ask for a mandate by one of them among the applications."}</p>
    <${Shown} of=${list}>${(/** @type {any[]} */ items) => (items.length ? html`<ul class="items">${items.map((it) => html`<${Template} key=${it.id} of=${it} mayChange=${mayChange} open=${setOpen} />`)}</ul><${Pager} of=${list} />` : html`<${Empty} title="There is no template." />`)}<//>
    ${open && open.act === "make" && html`<${Make} close=${close} done=${done} />`}
    ${open && open.act === "change" && html`<${Change} of=${open.of} close=${close} done=${done} />`}
    ${open && open.act === "remove" && html`<${Remove} of=${open.of} close=${close} done=${done} />`}`;
}

/** @param {{ of: any, mayChange: boolean, open: (it: any) => void }} props */
function Template({ of, mayChange, open }) {
  const name = html`<span class="unseen"> <${Quoted} text=${of.name} /></span>`;
  const isRenamed = of.mandate.name && of.mandate.name !== of.name;
  return html`<li class="item">
    <div><h2><${Quoted} text=${of.name} /></h2><${Words} of=${of.mandate} folds />
      <p class="meta">${isRenamed && html`<span>mandates are called <${Quoted} text=${of.mandate.name} /></span>`}${!of.builtIn && html`<span><${Time} at=${of.createdAt} /> by <${Who} id=${of.createdBy} /></span>`}</p></div>
    <div class="beside">${of.builtIn ? html`<${Badge}>Of the catalogue<//>` : html`<${Badge} kind="good">Your own<//>`}
      ${mayChange && !of.builtIn && html`<div class="acts"><${Button} act=${() => open({ act: "change", of })}>Change${name}<//><${Button} kind="danger" act=${() => open({ act: "remove", of })}>Remove${name}<//></div>`}</div>
  </li>`;
}

/** What a template says, of the fields, or what is wrong with it. @param {Record<string, string>} values @param {string} zone */
function termsOf(values, zone) {
  const { wrong, body } = bodyOf(values, zone, null, WITHIN);
  return { wrong, mandate: { ...body, name: body.name || undefined } };
}

/** @param {{ close: () => void, done: () => any }} props */
function Make({ close, done }) {
  const api = useApi();
  const { zone, currency } = usePlace();
  const make = async (/** @type {Record<string, string>} */ values) => {
    const { wrong, mandate } = termsOf(values, zone);
    return wrong ?? atTerms(await api("POST", "templates", { name: values.name, mandate }), WITHIN);
  };
  return html`<${Dialog} title="New template" close=${close}>
    <${Form} act=${make} submit="Make it" cancel=${close} done=${done}>
      <${Field} name="name" label="Name of the template" needed hint="Agents and applications name it by this. It stays." />
      <fieldset><legend>The mandate</legend><${Terms} currency=${currency} within=${WITHIN} /></fieldset>
    <//>
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Change({ of, close, done }) {
  const api = useApi();
  const { zone, currency } = usePlace();
  const path = `templates/${encodeURIComponent(of.name)}`;
  const { began, known, others, look } = usePinned(of, path);
  const change = async (/** @type {Record<string, string>} */ values) => {
    const { wrong, mandate } = termsOf(values, zone);
    if (wrong) return wrong;
    const { stop } = await look(["mandate"], (said, name) => said[name]);
    return stop ?? atTerms(await api("PATCH", path, { mandate }), WITHIN);
  };
  return html`<${Dialog} title="Change a template" of=${{ id: of.id ?? of.name, name: of.name }} close=${close}>
    <p><strong><${Quoted} text=${of.name} /></strong>: mandates that were made from it stay as they are.</p>
    <${Form} act=${change} submit="Save" cancel=${close} done=${done}>
      <${Terms} of=${began.mandate} currency=${currency} within=${WITHIN} isNew />
      <${Others} of=${others.map(() => ["It says now", html`<${Words} of=${known.mandate} />`])} />
    <//>
  <//>`;
}

/** @param {{ of: any, close: () => void, done: () => any }} props */
function Remove({ of, close, done }) {
  return html`<${Ending} title="Remove this template?" path=${`templates/${encodeURIComponent(of.name)}`} said="It is removed." close=${close} done=${done}>
    <p><strong><${Quoted} text=${of.name} /></strong> cannot be chosen any more. Mandates that were made from it stay in force; applications that name it and wait cannot be approved.</p>
  <//>`;
}
