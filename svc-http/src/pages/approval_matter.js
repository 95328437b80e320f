// What an approval asks and what is known of it, as its page tells it; a part of its script, before approval.js. Nothing that a person
// decides on is left out for something else that an agent has put beside it: each member of an action stands there with its name.

// Of a freeze of more agents than this a part is folded; so many are asked for one by one.
const AGENTS_OPEN = 20;
const AGENTS_ASKED = 5;

// An action's headline, which is of what its type is about alone, or the type itself where it has no words of its own; then all else
// that it holds, each with its name.
function matterOf({ type, payment, data, tool }) {
  const { name, domain } = (payment && payment.merchant) || {};
  const row = (label, it, ...nodes) => (it === undefined || it === null ? [] : [[label, ...nodes]]);
  const members = {
    payment: payment ? [["Amount", ...money(payment)], ...row("Payee", name, quoted(name)), ...row("Domain", domain, code(domain))] : [],
    data: data
      ? [["Shared with", quoted(data.recipient)], ...networkOf(data.recipient), ["Fields", ...entries(data.fields || [])], ...row("Purpose", data.purpose, quoted(data.purpose))]
      : [],
    tool: tool ? [...row("Tool", tool.name, quoted(tool.name)), ...row("Server", tool.server, quoted(tool.server))] : [],
  };
  const subject = ABOUT[type];
  const own = members[subject] || [];
  const others = Object.keys(members).filter((it) => it !== subject).flatMap((it) => members[it]);
  if (!ASKS[type]) return { headline: [code(type)], rows: others };
  const [[, ...headline] = [], ...rest] = own;
  return { headline, rows: [...rest, ...others] };
}

// The row that says by which name the network knows the domain of an address, where that is written in other letters.
function networkOf(address) {
  const name = network(address);
  return name ? [["Its domain", code(name)]] : [];
}

// What is used of the limits a period of the mandate that an action is charged to: this one is in it where it keeps within them and
// was asked in the period that runs. Of a mandate that is not read nothing is said, nor of money where none is asked for.
function usageOf({ approval, action, mandate }) {
  const { spend, count } = (mandate && mandate.usage) || {};
  const row = ({ period, periodStart, periodEnd }, ...told) => {
    const isIn = !approval.exceptions && Date.parse(action.createdAt) >= Date.parse(periodStart);
    return [`Used ${RUNNING[period] || `a ${period}`}`, ...told, `, ${isIn ? "with" : "without"} this one; clears at ${time(periodEnd)}`];
  };
  const amount = (it) => money({ amount: it, currency: spend.currency });
  return [
    ...(spend && action.payment ? [row(spend, ...amount(spend.used), " of ", ...amount(spend.limit))] : []),
    ...(count ? [row(count, `${count.used.toLocaleString("en")} of ${count.limit.toLocaleString("en")} actions`)] : []),
  ];
}

// What approvals that are about no action ask.
async function about({ kind, subject }) {
  if (kind === "freeze") {
    return [
      ["Agents", `${subject.count}`, ...(await agentsOf(subject))],
      ["Because", quoted(subject.reason)],
      ["Approving", "stops them at once. Only a person starts them again."],
      ...(subject.all ? [["Also", "a hold stops every other agent, until it is lifted."]] : []),
    ];
  }
  if (kind === "hold_lift") {
    const holds = ((await read("holds?limit=500")) || {}).data || [];
    const hold = holds.find((it) => it.id === subject.hold);
    const told = hold ? [["Set", `${time(hold.at)}, by `, quoted(await who(hold.by)), ": ", quoted(hold.reason)]] : [];
    const then = subject.restart ? "starts again the agents that the freeze stopped." : "leaves the agents stopped until a person starts each.";
    return [["Hold", quoted(subject.hold)], ...told, ["Lift because", quoted(subject.reason)], ["Approving", then]];
  }
  if (kind === "owner") return [["Whom", quoted(subject.email || subject.principalId)], ...networkOf(subject.email)];
  if (kind !== "budget") return [];
  const budget = await read(`budgets/${subject.budgetId}`);
  const told = budget && [
    ["Budget of", OVER[budget.scope.kind] || budget.scope.kind, " ", quoted(budget.scopeName || budget.scope.id || "")],
    ["Period", budget.period],
    ["Allotted", ...dollars(budget.allocationMicros)],
    ["Spent", ...dollars(budget.spentMicros)],
  ];
  return [["More", ...dollars(subject.moreMicros)], ...(told || []), ["Budget", quoted(subject.budgetId)]];
}

// The agents that a freeze would stop, as many as the server tells, each by its name and its id; the longer part of many is folded.
async function agentsOf({ members = [], count }) {
  const names = await namesOf(members);
  const list = (ids) => {
    const ul = document.createElement("ul");
    ul.append(...ids.map((id) => item(...(names.has(id) ? [quoted(names.get(id)), " "] : []), agentLink(id))));
    return ul;
  };
  const [first, folded, more] = [members.slice(0, AGENTS_OPEN), members.slice(AGENTS_OPEN), count - members.length];
  /** @type {Node[]} */
  const out = first.length ? [list(first)] : [];
  if (folded.length) {
    const [details, summary] = [document.createElement("details"), document.createElement("summary")];
    summary.append(`${folded.length} more of them`);
    details.append(summary, list(folded));
    out.push(details);
  }
  const rest = document.createElement("p");
  rest.append(`And ${more} more, which are not named here.`);
  return more > 0 ? [...out, rest] : out;
}

// What agents are called, by their ids, as far as this person may read it: of many all at once.
async function namesOf(ids) {
  const many = ids.length > AGENTS_ASKED ? ((await read("agents?limit=500")) || {}).data || [] : [];
  const names = new Map(many.map((it) => [it.id, it.name]));
  const missing = ids.filter((it) => !names.has(it)).slice(0, AGENTS_OPEN);
  for (const it of await Promise.all(missing.map((id) => read(`agents/${id}`)))) if (it) names.set(it.id, it.name);
  return new Map(ids.filter((it) => names.has(it)).map((it) => [it, names.get(it)]));
}

// The way to an agent's page: names are not one agent's alone.
function agentLink(id) {
  const link = document.createElement("a");
  [link.href, link.textContent] = [`../../${wid}/agents/${id}`, id];
  link.className = "agent";
  return link;
}

// What is said where a tool may be given something else than stands here: digest and length may stand for an input that was not
// sent, or beside what is left of one.
async function unseen({ input, inputDigest, inputBytes }) {
  if (!inputDigest && inputBytes === undefined) return "";
  const text = new TextEncoder().encode(input ? canonical(input) : "");
  const isOfLength = inputBytes === undefined || inputBytes === text.length;
  const sum = isOfLength && inputDigest && input && crypto.subtle && (await crypto.subtle.digest("SHA-256", text));
  if (isOfLength && (!inputDigest || (sum && inputDigest === `sha256:${hex(sum)}`))) return "";
  const all = `it is ${inputBytes ?? "an unknown number of"} bytes in all. Approving lets all of it through.`;
  if (isOfLength && input && !sum) return `Without https this page cannot tell whether what stands here is all that the tool is given: ${all}`;
  return `Not all of what the tool is given is here: ${all}`;
}

// What else is known of it.
function facts({ approval, action, agent, names }) {
  const out = [];
  const row = (label, ...nodes) => nodes.every(Boolean) && out.push([label, ...nodes]);
  const text = (it) => (it === undefined || it === null ? null : quoted(it));
  if (action) {
    const { tool = {}, provenance } = action;
    row("Kind", text(action.type));
    row("Input", tool.inputDigest && `${tool.inputBytes ?? "?"} bytes, ${tool.inputDigest}`);
    row("Content from", TRUST[provenance.effective] || text(provenance.effective));
    row("Declared", quoted(provenance.declared.join(", ") || "nothing"));
    row("Observed", quoted(provenance.observed.join(", ") || "nothing"));
    row("Compared", VERDICTS[provenance.verdict] || text(provenance.verdict));
    row("Session", text(action.session && action.session.id));
  }
  row("Agent", ...(agent ? [quoted(agent.name), " "] : []), approval.agentId && agentLink(approval.agentId));
  row("Agent's tier", text(agent && agent.tier));
  row("Acts for", text(agent && agent.principalEmail));
  if (!action) row("Asked by", quoted(names.get(approval.requestedBy)));
  row("Asked", time(approval.createdAt));
  row("Expires", time(approval.expiresAt));
  row("Approval", quoted(approval.id));
  row("Action", text(action && action.id));
  return out;
}
