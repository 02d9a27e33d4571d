// @ts-check
// Orders and claims: looking for one, and the steps that are possible now.
import { Drawer } from "../lib/box.js";
import { now } from "../lib/clock.js";
import { html } from "../lib/html.js";
import { digits, minor, money, number, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { exact } from "./figures.js";
import { ask, at, Link } from "./route.js";
import { change, confirm, Fault, Filter, Filters, Head, Invalid, may, Pager, say, Table, useGet, usePages } from "./ui.js";

const filters = ["user_id", "campaign_id", "payment_ref", "reference", "code", "status", "refund_due"];

export function Orders() {
  const q = at.value.query, id = q.get("id") || "", open = q.get("open") || "";
  const search = filters.filter((f) => q.get(f)).map((f) => f + "=" + encodeURIComponent(q.get(f) || "")).join("&");
  const pages = usePages("/v1/claims" + (search ? "?" + search : ""));
  const one = useGet(id ? "/v1/claims/" + encodeURIComponent(id) : null);
  const rows = id ? (one.value ? [one.value] : one.fault ? [] : null) : pages.items;
  const filter = (/** @type {string} */ name) => html`<${Filter} label=${t("filter." + name)} name=${name} value=${q.get(name) || ""} change=${(/** @type {string} */ v) => ask({ [name]: v })} />`;
  return html`<${Head} title=${t("screen.orders")} />
    <${Filters}><${Filter} label=${t("filter.id")} value=${id} change=${(/** @type {string} */ v) => ask({ id: v })} />${filter("user_id")}${filter("campaign_id")}${filter("payment_ref")}${filter("reference")}
      ${filter("code")}
      <${Filter} label=${t("status")} value=${q.get("refund_due") ? "due" : q.get("status") || ""} change=${(/** @type {string} */ v) => ask(v === "due" ? { status: "", refund_due: "true" } : { status: v, refund_due: "" })}
        options=${[["", t("all")], ...["pending", "confirmed", "released", "refunded"].map((s) => [s, t("status." + s)]), ["due", t("refund.due")]]} /><//>
    <${Fault} text=${id ? one.fault : pages.fault} again=${id ? one.again : pages.again} />
    <${Table} name=${t("screen.orders")} rows=${rows} empty=${t("claims.none")} columns=${[
      { title: t("filter.id"), show: (/** @type {any} */ c) => html`<button type="button" class="link" data-open=${c.id} onClick=${() => ask({ open: c.id })}><code>${c.id}</code></button>` },
      { title: t("user"), show: (/** @type {any} */ c) => c.user_id },
      { title: t("campaign"), show: (/** @type {any} */ c) => (c.campaign_id ? html`<${Link} to=${"/campaigns/" + encodeURIComponent(c.campaign_id)}>${c.campaign_id}<//>` : c.product_id) },
      { title: t("quantity"), number: true, show: (/** @type {any} */ c) => number(c.quantity) },
      { title: t("amount"), number: true, show: (/** @type {any} */ c) => money(c.amount) },
      { title: t("status"), show: (/** @type {any} */ c) => html`<${Status} c=${c} />` },
      { title: t("filter.reference"), show: (/** @type {any} */ c) => c.reference || "–" },
      { title: t("at"), show: (/** @type {any} */ c) => time(c.created_at) },
    ]} />
    ${!id && html`<${Pager} pages=${pages}><a class="button" href=${"/v1/claims?format=csv" + (search ? "&" + search : "")} download="orders.csv">${t("csv.all")}</a><//>`}
    <${Drawer} title=${t("order.title")} open=${!!open} onClose=${() => ask({ open: "" })}>${open && html`<${Order} id=${open} key=${open} changed=${id ? one.again : pages.again} />`}<//>`;
}

/** @param {{c: any}} props */
export const Status = ({ c }) => html`<span class=${"tag " + c.status}>${t("status." + (c.shipment ? "shipped" : c.redemption ? "redeemed" : c.status))}</span>${c.payment?.refund_due && html` <span class="tag warn">${t("refund.due")}</span>`}`;

/** An order with its timeline, and the steps that are possible. @param {{id: string, changed: () => void}} props */
export function Order({ id, changed }) {
  const got = useGet("/v1/claims/" + encodeURIComponent(id)), c = got.value;
  if (!c) return html`<${Fault} text=${got.fault} again=${got.again} />`;
  const rows = /** @type {[string, any][]} */ ([[t("filter.id"), html`<code>${c.id}</code>`], [t("user"), c.user_id], [t("campaign"), c.campaign_id || c.product_id], [t("kind"), t("kind." + c.kind)], [t("quantity"), number(c.quantity)]]);
  if (c.amount) rows.push([t("amount"), money(c.amount)]);
  if (c.items.length) rows.push([t("items"), c.items.join(", ")]);
  if (c.reference) rows.push([t("filter.reference"), c.reference]);
  if (c.pay_by && c.status === "pending") rows.push([t("pay.by"), exact(c.pay_by)]);
  if (c.payment) rows.push([t("payment"), html`<code>${c.payment.payment_ref || "–"}</code> ${money(c.payment.amount)}`]);
  if (c.payment?.refunded?.amount) rows.push([t("refunded"), money(c.payment.refunded)]);
  if (c.shipment) rows.push([t("shipment"), c.shipment.carrier + " " + c.shipment.tracking_no]);
  if (c.replaces) rows.push([t("replaces"), html`<code>${c.replaces}</code>`]);
  if (c.replaced_by) rows.push([t("replacement"), html`<code>${c.replaced_by}</code>`]);
  return html`<div class="order"><p><${Status} c=${c} /></p>
    <dl class="facts">${rows.map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>
    <${Steps} c=${c} done=${() => (got.again(), changed())} />
    <h3>${t("timeline")}</h3><ol class="timeline"><li><b>${t("step.grant")}</b> <time class="muted">${exact(c.created_at)}</time></li>${(c.events || []).map((/** @type {any} */ e) => html`<li><b>${t("step." + e.step)}</b> <time class="muted">${exact(e.at)}</time>
      <div class="muted">${[e.amount && money(e.amount), e.ref, e.carrier && e.carrier + " " + e.tracking_no, e.restock && t("restocked")].filter(Boolean).join(" · ")}</div></li>`)}</ol></div>`;
}

/** The steps that are legal now, by the rules of the API, which refuses the others anyway. @param {{c: any, done: () => void}} props */
function Steps({ c, done }) {
  // A share of a red packet is the user's money: nothing follows its grant.
  if (!may("publisher") || c.kind === "redpacket") return null;
  const is = c.status, sale = c.kind === "sale", unused = is === "confirmed" && !c.redemption, due = is === "released" && c.payment?.refund_due;
  // A claim that waits for no payment counts as paid in full.
  const paid = c.payment ? c.payment.amount : c.amount, left = paid ? paid.amount - (c.payment?.refunded?.amount || 0) : 0;
  /** @param {string} name @param {any[]} fields @param {(v: any) => any} body @param {{verb?: string, danger?: boolean, news?: string}} [o] verb is what the API calls it, where that is another word */
  const step = (name, fields, body, { verb = name, danger = false, news } = {}) => html`<button type="button" class=${danger ? "danger" : ""} data-step=${name} onClick=${() => confirm({
    title: t("do." + name), text: t("do." + name + ".text", { id: c.id, user: c.user_id, sum: money(c.amount) || "–" }), action: t("do." + name), fields, danger, news,
    do: async (v) => { await change("POST", "/v1/claims/" + encodeURIComponent(c.id) + "/" + verb, body(v)); say(t("act.done", { what: t("do." + name), name: c.id })); done(); },
  })}>${t("do." + name)}</button>`;
  const pays = is === "pending" || !c.payment && (is === "confirmed" && sale || is === "released" && !c.replaced_by);
  return html`<div class="row actions" role="group" aria-label=${t("actions")}>
    ${pays && step("confirm", [{ name: "ref", label: t("payment") }], (v) => ({ amount: c.amount || undefined, payment_ref: v.ref }), { news: is === "released" ? t("do.confirm.late") : undefined })}
    ${is === "pending" && step("cancel", [], () => ({}), { danger: true })}
    ${sale && is === "confirmed" && step("ship", [{ name: "carrier", label: t("carrier") }, { name: "no", label: t("tracking") }], (v) => ({ carrier: v.carrier, tracking_no: v.no }))}
    ${(unused || due) && step("refund", [
      ...(left > 0 ? [{ name: "sum", label: t("amount"), hint: t("refund.hint"), required: false }] : []),
      // What a late payment was for has gone back already.
      ...(due ? [] : [{ name: "restock", label: t("restock"), options: [["", t("restock.no")], ["1", t("restock.yes")]] }]),
    ], (v) => ({ amount: v.sum ? { amount: sumOf(v.sum, paid.currency), currency: paid.currency } : undefined, restock: v.restock === "1" || undefined }), { danger: true })}
    ${is === "refunded" && !c.restocked && step("restock", [], () => ({ restock: true }), { verb: "refund", danger: true })}
    ${c.kind === "coupon" && unused && !(Date.parse(c.valid_until_at) <= now()) && step("redeem", [{ name: "ref", label: t("redeem.ref") }], (v) => ({ ref: v.ref }))}
    ${c.redemption && step("unredeem", [], () => ({ ref: c.redemption.ref }), { danger: true })}</div>`;
}

/** @param {string} text @param {string} currency */
function sumOf(text, currency) {
  const n = minor(text, currency);
  if (!n) throw new Invalid(t("sum.bad", { sum: text, like: digits({ amount: 1250, currency }) }));
  return n;
}
