// @ts-check
// The members of API objects as people read them: money with its currency, moments and spans in words.
import { html } from "../lib/html.js";
import { milliseconds, money, number, span } from "../lib/format.js";
import { t } from "../lib/text.js";
import { brief, exact } from "./figures.js";

const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;
const lasting = /^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/;

/** @param {any} v */
const isMoney = (v) => typeof v?.amount === "number" && typeof v.currency === "string";

/**
 * A member's value in words.
 * @param {string} name @param {unknown} v
 * @param {any} [beside] the object that it is a member of: a red packet's bounds have the currency of its total
 * @returns {string}
 */
export function shown(name, v, beside = null) {
  if (v === undefined || v === null || v === "") return "–";
  if (typeof v === "boolean") return t(v ? "yes" : "no");
  if (typeof v === "number") {
    if (["min", "max"].includes(name) && isMoney(beside?.total)) return money({ amount: v, currency: beside.total.currency });
    return name.endsWith("_ms") ? brief(v) : number(v);
  }
  if (typeof v === "string") return moment.test(v) ? exact(v) : lasting.test(v) ? span(milliseconds(v)) : v;
  if (isMoney(v)) return money(/** @type {any} */ (v));
  if (Array.isArray(v)) return v.map((x) => shown(name, x)).join(t("comma")) || "–";
  return Object.entries(/** @type {any} */ (v)).map(([k, x]) => t("member", { name: k, value: shown(k, x, v) })).join(t("semicolon")) || "–";
}

/** The members of an object, each on a line of its own. @param {{of: any}} props */
export const Members = ({ of }) => html`<dl class="facts">${Object.entries(of || {}).map(([k, v]) => html`<div><dt><code>${k}</code></dt><dd>${shown(k, v, of)}</dd></div>`)}</dl>`;
