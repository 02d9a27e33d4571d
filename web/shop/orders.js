// @ts-check
// My orders: what a user has got, what is to be done about it, and, in `dibs dev`, payments to try.
import { Drawer } from "../lib/box.js";
import { html, signal, useEffect, useSignal } from "../lib/html.js";
import { get, post, Refusal } from "../lib/api.js";
import { now, tick } from "../lib/clock.js";
import { left, money, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { page, token } from "./user.js";

const state = { shown: signal(false), items: signal(/** @type {any[]|null} */ (null)), cursor: signal(""), fault: signal(""), balances: signal(/** @type {any[]} */ ([])) };

let loads = 0;

async function load(more = false) {
  const from = more ? "&cursor=" + encodeURIComponent(state.cursor.peek()) : "", nth = ++loads;
  try {
    const list = await get("/v1/me/claims?limit=20" + from, { token: token.peek() });
    const { balances } = await get("/v1/me/balance", { token: token.peek() });
    // What was asked for last counts: a page that is asked for twice is shown once.
    if (nth !== loads) return;
    state.items.value = more ? [...(state.items.peek() || []), ...list.items] : list.items;
    state.cursor.value = list.next_cursor;
    state.balances.value = balances;
    state.fault.value = "";
  } catch (e) {
    if (nth === loads) state.fault.value = e instanceof Refusal ? e.message : t("lost.connection");
  }
}

/** The drawer of the user's orders. */
export const orders = {
  open() {
    state.shown.value = true;
    load();
  },
};

export function Orders() {
  const items = state.items.value;
  return html`<${Drawer} title=${t("orders.mine")} open=${state.shown.value} onClose=${() => (state.shown.value = false)}>
    ${state.fault.value && html`<p class="note bad" role="alert">${state.fault.value} <button type="button" onClick=${() => load()}>${t("again")}</button></p>`}
    ${state.balances.value.length > 0 && html`<p class="balance">${t("balance")} ${state.balances.value.map((m) => html`<b>${money(m)}</b> `)}</p>`}
    ${items && items.length === 0 && html`<p class="muted">${t("orders.none")}</p>`}
    <ul class="orders">${(items || []).map((c) => html`<li key=${c.id}><${Order} claim=${c} changed=${(/** @type {any} */ fresh) => {
      state.items.value = (state.items.peek() || []).map((x) => (x.id === fresh.id ? fresh : x));
    }} /></li>`)}</ul>
    ${state.cursor.value && html`<button type="button" onClick=${() => load(true)}>${t("more")}</button>`}
  <//>`;
}

/** @param {any} c */
function statusOf(c) {
  if (c.shipment) return "shipped";
  if (c.redemption) return "redeemed";
  if (c.payment?.refund_due && c.status === "released") return "refund_due";
  return c.kind === "sale" && c.status === "confirmed" && c.payment ? "paid" : c.status;
}

/** An order: what it is, how it stands, and what its user can do. @param {{claim: any, changed: (claim: any) => void}} props */
export function Order({ claim: c, changed }) {
  const said = useSignal("");
  const status = statusOf(c);
  const waits = c.status === "pending" && c.pay_by;
  return html`<article class=${"order " + status} data-claim=${c.id}>
    <div class="row"><b class="what">${c.items.length && c.kind !== "redpacket" ? c.items.join(", ") : t("kind." + c.kind)}</b>
      <span class=${"tag " + status}>${t("status." + status)}</span></div>
    <p class="muted"><span>${t("order.number")} <code>${c.id}</code></span> · <time datetime=${c.created_at}>${time(c.created_at)}</time></p>
    <p>${c.amount && html`<b class="amount">${money(c.amount)}</b>`} ${c.quantity > 1 && t("times", { n: c.quantity })}
      ${waits && html` · <${PayBy} by=${c.pay_by} />`}
      ${c.valid_until_at && html` · ${t("valid.until", { at: time(c.valid_until_at) })}`}</p>
    ${c.shipment && html`<p>${t("shipped.by", { carrier: c.shipment.carrier, no: c.shipment.tracking_no })}</p>`}
    ${c.payment?.refunded?.amount > 0 && html`<p>${t("refunded.sum", { sum: money(c.payment.refunded) })}</p>`}
    ${c.replaced_by && html`<p>${t("replaced.by")} <code>${c.replaced_by}</code></p>`}
    <${Steps} claim=${c} changed=${changed} said=${said} />
  </article>`;
}

/** @param {{by: string}} props */
function PayBy({ by }) {
  tick.value;
  const ms = Date.parse(by) - now();
  return ms > 0 ? html`<span role="timer">${t("pay.within", { left: left(ms) })}</span>` : html`<span>${t("pay.over")}</span>`;
}

/** @param {{claim: any, changed: (c: any) => void, said: any}} props */
function Steps({ claim: c, changed, said }) {
  const busy = useSignal(false);
  const step = (/** @type {() => Promise<string>} */ act) => async () => {
    if (busy.peek()) return;
    busy.value = true;
    try {
      said.value = await act();
    } catch (e) {
      said.value = e instanceof Refusal ? e.message : t("lost.connection");
    }
    await get("/v1/claims/" + encodeURIComponent(c.id), { token: token.peek() }).then(changed, () => {});
    busy.value = false;
  };
  const pay = (/** @type {string} */ how) => step(async () => {
    // A payment is late when its time has run out, and not before.
    const wait = how === "late" ? Date.parse(c.pay_by) - now() + 2000 : 0;
    if (wait > 0) {
      said.value = t("sim.waits");
      await new Promise((done) => setTimeout(done, wait));
    }
    const v = await post("/v1/dev/payments", { claim_id: c.id, how }, { token: token.peek() });
    return v.steps.map((/** @type {any} */ s) => t("sim." + s.what) + " → " + (s.outcome === "done" ? t("sim.done") : t("reason." + s.outcome))).join(" · ");
  });
  const cancel = step(async () => (await post(`/v1/claims/${encodeURIComponent(c.id)}/cancel`, {}, { token: token.peek() }), t("cancelled")));
  const open = c.status === "pending";
  return html`<div class="steps">
    ${open && html`<button type="button" onClick=${() => confirm(t("cancel.sure", { id: c.id })) && cancel()}>${t("cancel")}</button>`}
    ${page.dev && open && c.amount && html`<span class="sim" role="group" aria-label=${t("sim.title")}>
      <button type="button" class="primary" onClick=${pay("now")}>${t("sim.now")}</button>
      <button type="button" onClick=${pay("late")}>${t("sim.late")}</button>
      <button type="button" onClick=${pay("twice")}>${t("sim.twice")}</button></span>`}
    <p role="status" class="muted">${said}</p>
  </div>`;
}

/** Reads orders again when their page comes back: they may have been paid elsewhere. @param {import("./press.js").Press} [press] */
export function useOrders(press) {
  useEffect(() => {
    const look = () => {
      if (document.hidden) return;
      // Without an answer they stay as they are.
      press?.renew().catch(() => {});
      if (state.shown.peek()) load();
    };
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
}
