"use strict";
// The words of the page of an approval, which its script, approval.js, is joined to: of every state, kind of action, source
// and verdict that the interface knows.
// The digits of minor units that are not two. A browser's own table differs from ISO 4217, by which amounts are sent.
const DIGITS = {
  0: "BIF BYR CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
  3: "BHD IQD JOD KWD LYD OMR TND",
  4: "CLF UYW",
};
const NONE = "There is no such approval, or it is not yours to see.";
const SILENT = "The server does not answer. This page tries again by itself.";
const READERS = "Whoever may see this can read it.";
const READERS_OF_ACTIONS = "The agent and whoever may see this can read it.";
const STATES = { waiting: "Waiting for a decision", approved: "Approved", denied: "Denied", expired: "Expired" };
const ASKS = {
  payment: "asks to pay",
  refund: "asks to pay back",
  transfer: "asks to transfer money",
  deploy: "asks to deploy software",
  "tool.call": "asks to use a tool",
  "mcp.call": "asks to use a tool",
  "data.share": "asks to share data with",
  "message.send": "asks to send a message",
  "code.execute": "asks to run code",
  "file.write": "asks to write a file",
  "record.delete": "asks to delete a record",
  "access.grant": "asks to give access",
  "infra.change": "asks to change infrastructure",
};
// What an action of a type is about; one of another type is about none of these members, whichever it holds.
const ABOUT = {
  payment: "payment",
  refund: "payment",
  transfer: "payment",
  "tool.call": "tool",
  "mcp.call": "tool",
  "data.share": "data",
};
const RUNNING = { hour: "this hour", day: "today", week: "this week", month: "this month", year: "this year" };
const OVER = { workspace: "the whole workspace", team: "the team", principal: "the person", agent: "the agent", key: "the key", taskClass: "the class of tasks" };
const TRUST = {
  operator: "those who run the agent",
  user: "its user",
  first_party: "the agent itself, or your own files and databases",
  third_party: "others: mail, documents, results of tools",
  public: "the open web, or an unknown source",
};
const STRANGE = {
  third_party: "Others wrote some of what led to this: mail, documents or results of tools.",
  public: "Content from the open web, or from an unknown source, led to this.",
};
const VERDICTS = {
  understated: "Worse than the agent declared: less trusted content was seen going into it.",
  undeclared: "The agent declared nothing.",
  unobserved: "Declared by the agent alone; none of its traffic was seen.",
  overstated: "The agent declared worse than was seen.",
  consistent: "What the agent declared is what was seen.",
};
