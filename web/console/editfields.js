// @ts-check
// The fields by which a campaign is changed: those of a draft, and those of what is published.
import { digits, milliseconds, minor, number, span, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { formOfGate, local } from "./gateform.js";
import { tierLines, tiersOf } from "./limits.js";

/**
 * A field: what the form has of a campaign, what the API takes of the form, and how people read it.
 * draft: only a draft has it; gate: it is a part of the gate, which the API takes as a whole.
 * @typedef {{name: string, label?: string, type?: string, long?: boolean, parts?: boolean, required?: boolean, draft?: boolean, gate?: boolean, kind?: string, hint?: string,
 *   options?: string[], has?: (c: any, form: Record<string, string>) => boolean, read: (c: any) => string, write: (v: string, c: any) => unknown, show?: (v: string, c: any) => string}} Known
 */

/** @param {any} c */
export const currency = (c) => c.price?.currency || c.product?.price?.currency || "CNY";
const whole = (/** @type {string} */ v) => (v === "" ? 0 : Number(v));
const moment = (/** @type {string} */ v) => (v ? new Date(v).toISOString() : null);
const said = (/** @type {string} */ v) => (v ? time(new Date(v)) : "");
const moments = { type: "datetime-local", write: moment, show: said };

/** A part of the gate. @param {keyof ReturnType<typeof formOfGate>} name @param {(v: string) => string} [show] @returns {Known} */
const ofGate = (name, show) => ({ name, label: "w." + name, gate: true, read: (c) => formOfGate(c.gate)[name], write: (v) => v, show });

/** @type {Known[]} */
export const fields = [
  { name: "title", required: true, read: (c) => c.title, write: (v) => v },
  { name: "product_id", label: "w.product_id", draft: true, hint: "w.product.hint", has: (c) => c.kind !== "redpacket", read: (c) => c.product_id || "", write: (v) => v || null },
  { name: "starts_at", draft: true, required: true, read: (c) => local(Date.parse(c.starts_at)), ...moments },
  { name: "ends_at", required: true, read: (c) => local(Date.parse(c.ends_at)), ...moments },
  { name: "stock", type: "number", draft: true, has: (c) => c.stock?.units !== undefined || !!c.stock?.codes, read: (c) => String(c.stock?.units ?? c.stock?.codes?.count ?? ""),
    write: (v, c) => (c.stock.codes ? { codes: { count: whole(v) } } : { units: whole(v) }), show: (v) => v && number(whole(v)) },
  { name: "limit_per_user", type: "number", read: (c) => String(c.limit_per_user), write: whole, show: (v) => number(whole(v)) },
  { name: "limit_per_product", type: "number", has: (c, form) => c.limit_per_product > 0 || (c.state === "draft" && !!form.product_id && c.kind !== "redpacket"),
    read: (c) => String(c.limit_per_product || ""), write: (v) => (v === "" ? null : Number(v)), show: (v) => v && number(whole(v)) },
  { name: "shards", type: "number", has: (c) => c.state === "draft" || !c.limit_per_product, read: (c) => String(c.shards || 1), write: whole, show: (v) => number(whole(v)) },
  { name: "price", draft: true, kind: "sale", hint: "currency", read: (c) => (c.price ? digits(c.price) : ""), write: (v, c) => (v === "" ? null : { amount: minor(v, currency(c)) ?? v, currency: currency(c) }), show: (v, c) => v && v + " " + currency(c) },
  { name: "pay_within", draft: true, kind: "sale", type: "number", parts: true, read: (c) => (c.pay_within ? String(milliseconds(c.pay_within) / 60_000) : ""), write: (v) => whole(v) + "m", show: (v) => v && span(Number(v) * 60_000) },
  { name: "late_payment", label: "w.late", draft: true, kind: "sale", options: ["reclaim", "refund_due"], has: (_, form) => Number(form.pay_within) > 0, read: (c) => c.late_payment || "reclaim", write: (v) => v, show: (v) => t("late." + v) },
  { name: "valid_for", label: "w.valid", draft: true, kind: "coupon", type: "number", parts: true, hint: "w.valid.hint", read: (c) => (c.valid_for ? String(milliseconds(c.valid_for) / 864e5) : ""), write: (v) => (v ? Number(v) * 24 + "h" : null), show: (v) => v && span(Number(v) * 864e5) },
  { name: "valid_until_at", label: "w.until", draft: true, kind: "coupon", hint: "w.until.hint", read: (c) => (c.valid_until_at ? local(Date.parse(c.valid_until_at)) : ""), ...moments },
  { name: "low_stock", type: "number", read: (c) => String(c.low_stock || 0), write: whole, show: (v) => number(whole(v)) },
  { name: "tiers", label: "w.tiers", long: true, draft: true, kind: "sale", hint: "w.tiers.hint", read: (c) => tierLines(c.tiers), write: (v) => tiersOf(v).list },
  { name: "comment", long: true, read: (c) => c.comment || "", write: (v) => v },
  ofGate("audience", (v) => t(v ? "w.audience." + v : "w.everyone")), ofGate("list"), ofGate("room", (v) => t(v ? "mode." + v : "w.room.none")), ofGate("rate"), ofGate("per"), ofGate("burst"), ofGate("opens", said), ofGate("most"),
  ofGate("closes", said), ofGate("winners"), ofGate("value"), ofGate("ticket", (v) => t(v ? "yes" : "no")), ofGate("lifetime"), ofGate("bits"), ofGate("limits"),
];

/** What the form has of a campaign. @param {any} c @returns {Record<string, string>} */
export const formOf = (c) => Object.fromEntries(fields.map((f) => [f.name, f.read(c)]));

/** The name of a field. @param {Known} f */
export const nameOf = (f) => t(f.label || "edit." + f.name);
