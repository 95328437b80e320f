// What an id leads to: the page of what it names, where there is one.
import { Quoted, at, html, usePlace } from "./kit.js";
import { Who } from "./list.js";

const PAGES_OF = /** @type {Record<string, [string, string]>} */ ({
  act: ["activity", "ReadActions"],
  agt: ["agents", "ReadAgents"],
  apv: ["approvals", "ReadApprovals"],
  dlv: ["deliveries", "ManageIntegrations"],
  evd: ["ledger", "ReadEvidence"],
  int: ["integrations", "ManageIntegrations"],
  mcs: ["mcp-servers", "ManageIntegrations"],
});
const SHOWN_CHARS = 24;

/** An id as it stands in a table. @param {string} id */
export const brief = (id) => (id.length > SHOWN_CHARS ? `${id.slice(0, 4)}…${id.slice(-6)}` : id);

/** @param {{ id: string }} props */
export function About({ id }) {
  const { wid, may } = usePlace();
  const [page, right] = PAGES_OF[id.slice(0, 3)] ?? [];
  const isNamed = /^(agt|prp)_/.test(id);
  const name = isNamed ? html`<${Who} id=${id} />` : html`<code title=${id}><${Quoted} text=${brief(id)} dir="ltr" /></code>`;
  return page && right && may(right) ? html`<a href=${at(wid, page, id)}>${name}</a>` : name;
}
