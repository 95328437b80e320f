// The pages of a workspace, in the order of the navigation. A page is a module whose `Page` is given what its address names; who may
// open it follows from the rights that its routes ask for. The server serves the names that stand here, and no other.

/**
 * @typedef {{ name: string, title: string, group: string, rights: string[], load: () => Promise<{ Page: any }>, item?: () => Promise<{ Page: any }> }} Known
 */

/** @type {Known[]} */
export const PAGES = [
  {
    name: "approvals",
    title: "Approvals",
    group: "Agents",
    rights: ["ReadApprovals"],
    load: () => import("./approvals.js"),
  },
  {
    name: "agents",
    title: "Agents",
    group: "Agents",
    rights: ["ReadAgents"],
    load: () => import("./agents.js"),
    item: () => import("./agent.js"),
  },
  {
    name: "activity",
    title: "Activity",
    group: "Agents",
    rights: ["ReadActions"],
    load: () => import("./activity.js"),
    item: () => import("./activity.js"),
  },
  {
    name: "stop",
    title: "Stop everything",
    group: "Agents",
    rights: ["FreezeFleet", "ReadHolds"],
    load: () => import("./stop.js"),
  },
  {
    name: "spend",
    title: "Spend",
    group: "Spend",
    rights: ["ReadSpend"],
    load: () => import("./spend.js"),
    item: () => import("./spend.js"),
  },
  {
    name: "budgets",
    title: "Budgets",
    group: "Spend",
    rights: ["ReadReports"],
    load: () => import("./budgets.js"),
  },
  {
    name: "models",
    title: "Models",
    group: "Models",
    rights: ["ReadModels"],
    load: () => import("./models.js"),
    item: () => import("./models.js"),
  },
  {
    name: "routing",
    title: "Routing",
    group: "Models",
    rights: ["ReadReports"],
    load: () => import("./routing.js"),
  },
  {
    name: "ledger",
    title: "Ledger",
    group: "Records",
    rights: ["ReadEvidence"],
    load: () => import("./ledger.js"),
    item: () => import("./ledger.js"),
  },
  {
    name: "deliveries",
    title: "Deliveries",
    group: "Records",
    rights: ["ManageIntegrations"],
    load: () => import("./deliveries.js"),
    item: () => import("./deliveries.js"),
  },
  {
    name: "bills",
    title: "Bills",
    group: "Records",
    rights: ["ReadReports"],
    load: () => import("./bills.js"),
  },
  {
    name: "team",
    title: "Team",
    group: "Workspace",
    rights: ["ReadMembers"],
    load: () => import("./team.js"),
  },
  {
    name: "keys",
    title: "Keys",
    group: "Workspace",
    rights: ["ManageKeys", "ManageTokens"],
    load: () => import("./keys.js"),
  },
  {
    name: "applications",
    title: "Applications",
    group: "Workspace",
    rights: [],
    load: () => import("./applications.js"),
  },
  {
    name: "templates",
    title: "Templates",
    group: "Workspace",
    rights: ["ReadTemplates"],
    load: () => import("./templates.js"),
  },
  {
    name: "connections",
    title: "Connections",
    group: "Workspace",
    rights: ["AgentKeys"],
    load: () => import("./connections.js"),
  },
  {
    name: "mcp-servers",
    title: "MCP servers",
    group: "Workspace",
    rights: ["ManageIntegrations"],
    load: () => import("./mcp.js"),
    item: () => import("./mcp.js"),
  },
  {
    name: "integrations",
    title: "Integrations",
    group: "Workspace",
    rights: ["ManageIntegrations"],
    load: () => import("./integrations.js"),
    item: () => import("./integration.js"),
  },
  {
    name: "settings",
    title: "Settings",
    group: "Workspace",
    rights: [],
    load: () => import("./settings.js"),
  },
  {
    name: "account",
    title: "Your account",
    group: "Account",
    rights: [],
    load: () => import("./account.js"),
  },
];

/** The names of the groups, in order. What is in none of them is reached from the person's own menu. */
export const GROUPS = [
  "Agents",
  "Spend",
  "Models",
  "Records",
  "Workspace",
];
