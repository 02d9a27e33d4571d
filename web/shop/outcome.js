// @ts-check
// What came of a press, in words: what happened, and what to do next.
import { html } from "../lib/html.js";
import { money, span, time } from "../lib/format.js";
import { has, t } from "../lib/text.js";
import { Order, orders } from "./orders.js";
import { page } from "./user.js";

/** @param {{press: import("./press.js").Press}} props */
export function Outcome({ press }) {
  const a = press.answer.value;
  return html`<section class="outcome" id="answer" role="status" aria-live="polite">
    ${a && (a.kind === "granted" || a.kind === "again") && html`<${Yes} press=${press} claim=${a.claim} again=${a.kind === "again"} />`}
    ${a && a.kind === "lost" && html`<div class="note warn"><b>${t("lost.title")}</b><p>${t("lost.next")}</p></div>`}
    ${a && a.kind === "refused" && html`<${No} press=${press} problem=${a.problem} retryAfter=${a.retryAfter} />`}
    ${!a && html`<${Mine} press=${press} />`}
  </section>`;
}

/** What was got: codes or seats, a share's amount. @param {any} c */
export function got(c) {
  if (c.kind === "redpacket") return money(c.amount);
  return c.items && c.items.length ? c.items.join(", ") : "";
}

/** @param {{press: import("./press.js").Press, claim: any, again: boolean}} props */
function Yes({ press, claim, again }) {
  const thing = got(claim);
  return html`<div class="note good yes">
    <p class="big"><b>${t(again ? "yours.again" : "yours")}</b></p>
    ${thing && html`<p class="thing">${thing}</p>`}
    <p>${t("yours.next." + next(claim))}</p>
    <${Order} claim=${claim} changed=${() => press.refresh(claim.id).catch(() => {})} />
  </div>`;
}

/** @param {any} c */
function next(c) {
  if (c.kind === "redpacket") return "share";
  if (c.kind === "coupon") return "coupon";
  return c.status === "pending" ? "pay" : "keep";
}

/** Claims from before, and money that comes back. @param {{press: import("./press.js").Press}} props */
function Mine({ press }) {
  const list = (/** @type {any[]} */ some) => some.map((c) => html`<${Order} key=${c.id} claim=${c} changed=${() => press.refresh(c.id).catch(() => {})} />`);
  const live = press.mine.value.filter((c) => c.status !== "released" && c.status !== "refunded"), owed = press.mine.value.filter((c) => c.payment?.refund_due);
  return html`${live.length > 0 && html`<div class="note good"><p><b>${t("yours.before")}</b></p>${list(live)}</div>`}
    ${owed.length > 0 && html`<div class="note warn">${list(owed)}</div>`}`;
}

/** A refusal. @param {{press: import("./press.js").Press, problem: import("../lib/api.js").Problem, retryAfter: number}} props */
function No({ problem: p, retryAfter }) {
  // What is gone of a red packet does not come back.
  const gone = p.reason === "sold_out" && page.campaign?.kind === "redpacket", why = gone ? "phase.gone" : "why." + p.reason, then = gone ? "next.gone" : "next." + p.reason;
  return html`<div class="note bad" data-reason=${p.reason}>
    <b>${has(why) ? t(why) : t("reason." + p.reason)}</b>
    ${p.detail && (p.reason !== "sold_out" || p.remaining) && !p.starts_at && html`<p>${p.detail}</p>`}
    ${p.reason === "not_started" && p.starts_at && html`<p>${t("starts.at", { at: time(p.starts_at) })}</p>`}
    <p>${has(then) ? t(then) : t("next.other")} ${retryAfter > 0 && t("retry.in", { span: span(retryAfter) })}</p>
    ${p.reason === "limit_reached" && html`<button type="button" onClick=${() => orders.open()}>${t("orders.mine")}</button>`}
  </div>`;
}
