// @ts-check
// The terms of a campaign in words: of one that there is, and of one that the wizard is about to make.
import { html } from "../lib/html.js";
import { digits, milliseconds, money, number, percent, span, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { rate } from "./gates.js";
import { limited } from "./live.js";
import { Link } from "./route.js";

/** Money as people read it, and as it was written where it is none. @param {any} m */
export function sum(m) {
  if (typeof m.amount !== "number") return m.amount + " " + m.currency;
  try {
    return money(m);
  } catch {
    // The currency is being written, or is none.
    return digits(m) + " " + m.currency;
  }
}

/** @typedef {[string, any][]} Rows */

/** A row of what is there. @param {string} name @param {any} v @param {(v: any) => any} [show] @returns {Rows} */
export const row = (name, v, show = (v) => v) => (v ? [[name, show(v)]] : []);

/** What a gate asks of users. @param {any} c @returns {Rows} */
function gateOf(c) {
  const g = c.gate || {}, room = g.room || {}, mode = g.room && t("mode." + room.mode);
  return [
    ...row(t("gate.audience"), g.audience, (a) => html`<${Link} to=${"/audiences" + (a.followers_of ? "?merchant=" + encodeURIComponent(a.followers_of) : "")}>${a.list || a.followers_of || "–"}<//>`),
    // What is not made yet has no screen of its own.
    ...row(t("gate.room"), mode, () => html`${c.version ? html`<${Link} to=${"/gates/" + encodeURIComponent(c.id)}>${mode}<//>` : mode}${room.rate ? t("comma") + rate(room) : ""}`),
    ...row(t("room.burst"), room.burst, number), ...row(t("room.opens"), room.opens_at, time), ...row(t("room.max"), room.max, number),
    ...row(t("lottery.closes"), room.registration_closes_at, time), ...row(t("lottery.winners"), room.winners, number), ...row(t("lottery.value"), room.public_value),
    ...row(t("gate.ticket"), g.ticket, (x) => (x.work_bits ? t("ticket.bits", { n: x.work_bits }) : t("ticket.plain"))),
    ...row(t("w.lifetime"), milliseconds(g.ticket?.lifetime), span),
    ...(g.limits || []).map((/** @type {any} */ l) => /** @type {[string, any]} */ ([t("limit.per." + l.per), limited(l)])),
  ];
}

/** The terms, each with its name. @param {any} c a campaign, or what one is made of @returns {Rows} */
export function termsOf(c) {
  const p = { ...c.redpacket, ...c.stock?.redpacket }, share = (/** @type {number} */ amount) => sum({ amount, currency: p.total.currency });
  return [
    ...row(t("limit"), c.limit_per_user, number), ...row(t("limit.product"), c.limit_per_product, number),
    ...row(t("price"), c.price || c.product?.price, sum),
    ...(c.tiers || []).map((/** @type {any} */ x) => /** @type {[string, any]} */ ([t("tier.from", { n: x.from_unit }), percent(x.percent / 100)])),
    ...row(t("pay.time"), milliseconds(c.pay_within), span), ...row(t("late"), c.pay_within && c.late_payment, (v) => t("late." + v)),
    ...row(t("packet.total"), p.total, sum), ...row(t("packet.count"), p.count, number), ...row(t("w.split"), p.split, (v) => t("split." + v)),
    ...row(t("w.min"), p.min, share), ...row(t("w.max"), p.max, share), ...row(t("w.sender"), c.sender_id),
    ...row(t("validity.until"), c.valid_until_at, time), ...row(t("validity.for"), milliseconds(c.valid_for), span),
    ...gateOf(c), ...row(t("low.stock"), c.low_stock, number), ...row(t("w.shards"), c.shards > 1 && c.shards, number), ...row(t("comment"), c.comment),
  ];
}

/** Names with their values. @param {{rows: Rows}} props */
export const Facts = ({ rows }) => html`<dl class="facts">${rows.map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>`;

/** @param {{c: any}} props */
export const Terms = ({ c }) => html`<section><h2>${t("terms")}</h2><${Facts} rows=${termsOf(c)} /></section>`;
