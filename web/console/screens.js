// @ts-check
// All screens with their addresses. parent is the screen above it, role what a key needs.
import { Accounts } from "./accounts.js";
import { Announcements } from "./announcements.js";
import { Approvals } from "./approvals.js";
import { Audiences } from "./audiences.js";
import { Audit } from "./audit.js";
import { Campaign } from "./campaign.js";
import { Campaigns } from "./campaigns.js";
import { Batch, Coupons } from "./coupons.js";
import { Edit } from "./edit.js";
import { Events } from "./events.js";
import { Gate, Gates } from "./gates.js";
import { Health } from "./health.js";
import { Keys } from "./keys.js";
import { Orders } from "./orders.js";
import { Overview } from "./overview.js";
import { Products } from "./products.js";
import { Rush } from "./rush.js";
import { Sessions } from "./sessions.js";
import { Users } from "./users.js";
import { Wizard } from "./wizard.js";

/** @type {{path: string, name: string, view: any, menu?: string, parent?: string, role?: string}[]} */
export const screens = [
  { path: "/", name: "overview", view: Overview, menu: "sell" },
  { path: "/campaigns", name: "campaigns", view: Campaigns, menu: "sell" },
  { path: "/campaigns/new", name: "wizard", view: Wizard, parent: "/campaigns", role: "editor" },
  { path: "/campaigns/:id", name: "campaign", view: Campaign, parent: "/campaigns" },
  { path: "/campaigns/:id/edit", name: "edit", view: Edit, parent: "/campaigns", role: "editor" },
  { path: "/coupons", name: "coupons", view: Coupons, menu: "sell" },
  { path: "/coupons/:id", name: "coupons", view: Batch, parent: "/coupons" },
  { path: "/gates", name: "gates", view: Gates, menu: "sell" },
  { path: "/gates/:id", name: "gates", view: Gate, parent: "/gates" },
  { path: "/products", name: "products", view: Products, menu: "sell" },
  { path: "/rush", name: "rush", view: Rush, menu: "sell", role: "admin" },
  { path: "/orders", name: "orders", view: Orders, menu: "customers" },
  { path: "/accounts", name: "accounts", view: Accounts, menu: "customers" },
  { path: "/audiences", name: "audiences", view: Audiences, menu: "customers" },
  { path: "/announcements", name: "announcements", view: Announcements, menu: "customers" },
  { path: "/users", name: "users", view: Users, menu: "customers", role: "admin" },
  { path: "/events", name: "events", view: Events, menu: "operate" },
  { path: "/keys", name: "keys", view: Keys, menu: "operate", role: "admin" },
  { path: "/sessions", name: "sessions", view: Sessions, menu: "operate" },
  { path: "/approvals", name: "approvals", view: Approvals, menu: "operate", role: "admin" },
  { path: "/audit", name: "audit", view: Audit, menu: "operate", role: "admin" },
  { path: "/health", name: "health", view: Health, menu: "operate" },
];
