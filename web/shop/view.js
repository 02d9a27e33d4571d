// @ts-check
// The page of a sale or of coupons: what it is, when, and the button.
import { html, signal, useEffect } from "../lib/html.js";
import { now, tick } from "../lib/clock.js";
import { left, milliseconds, money, number, percent, span, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { Outcome } from "./outcome.js";
import { Countdown, phaseOf, Picture } from "./parts.js";
import { page, token, voucher } from "./user.js";

/** @typedef {ReturnType<import("./campaign.js").campaignOf>} Campaign */
/** @typedef {import("./press.js").Press} Press */

/** @param {{campaign: Campaign, press: Press}} props */
export function SaleView({ campaign, press }) {
  useEffect(() => {
    press.find();
  }, []);
  const c = campaign.c.value;
  return html`<main class="sale" data-phase=${campaign.phase.value}>
    <${Picture} c=${c} />
    <section class="about">
      <h1>${c.title}</h1>
      ${c.product && html`<p class="product">${c.product.name}</p>`}
      ${c.product?.description && html`<p class="muted">${c.product.description}</p>`}
      <${Price} c=${c} />
      <${PhaseLine} campaign=${campaign} />
      <${Terms} c=${c} />
    </section>
    <${Act} campaign=${campaign} press=${press} />
    <${Outcome} press=${press} />
  </main>`;
}

/** @param {{c: any}} props */
export function Price({ c }) {
  const was = c.product?.price;
  const price = c.price || was;
  if (!price) return null;
  return html`<p class="price"><b>${money(price)}</b>
    ${was && c.price && was.currency === c.price.currency && was.amount > c.price.amount && html` <s><span class="unseen">${t("price.was")} </span>${money(was)}</s>`}
    ${(c.tiers || []).map((/** @type {any} */ x) => html` <span class="tag">${t("tier", { n: x.from_unit, percent: percent(x.percent / 100) })}</span>`)}</p>`;
}

/** Where the campaign stands, with its countdown. @param {{campaign: Campaign}} props */
export function PhaseLine({ campaign }) {
  const c = campaign.c.value, phase = campaign.phase.value, n = campaign.remaining.value;
  const to = phase === "upcoming" ? c.starts_at : phase === "open" || phase === "sold_out" ? c.ends_at : null;
  return html`<div class="phase" id="phase">
    <p role="status"><span class=${"dot " + phase}></span> ${phaseOf(c, phase)}</p>
    ${to && html`<div class="until"><span class="muted">${t(phase === "upcoming" ? "starts.in" : "ends.in")}</span><${Countdown} to=${Date.parse(to)} /></div>`}
    ${n !== null && phase !== "ended" && html`<p id="left">${t("left")} <b id="remaining">${number(n)}</b></p>`}
    ${!campaign.connected.value && html`<p class="note warn" role="status">${t("lost.connection")}</p>`}
  </div>`;
}

/** @param {{c: any}} props */
function Terms({ c }) {
  const room = c.gate?.room, rows = /** @type {[string, any][]} */ ([
    [t("from"), html`<time datetime=${c.starts_at}>${time(c.starts_at)}</time>`],
    [t("until"), html`<time datetime=${c.ends_at}>${time(c.ends_at)}</time>`],
    [t("limit"), number(c.limit_per_user)],
  ]);
  if (c.limit_per_product) rows.push([t("limit.product"), number(c.limit_per_product)]);
  if (c.pay_within) rows.push([t("terms.pay"), span(milliseconds(c.pay_within))]);
  if (c.valid_until_at) rows.push([t("terms.valid"), time(c.valid_until_at)]);
  if (c.valid_for) rows.push([t("terms.valid"), span(milliseconds(c.valid_for))]);
  if (room) rows.push([t("terms.room"), room.mode === "lottery" ? t("room.lottery", { at: time(room.registration_closes_at) }) : t("room." + room.mode)]);
  if (c.gate?.ticket?.work_bits) rows.push([t("terms.ticket"), t("ticket.work")]);
  if (c.gate?.audience) rows.push([t("terms.for"), t(c.gate.audience.list ? "for.list" : "for.followers")]);
  return html`<dl>${rows.map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>`;
}

/** The draw of a campaign, where there is one, and whether this user has won it. */
export const draw = { view: /** @type {any} */ (null), won: signal(false) };

/** The button, and why there may be none. @param {{campaign: Campaign, press: Press}} props */
export function Act({ campaign, press }) {
  const c = campaign.c.value, phase = campaign.phase.value, does = press.does(), gate = c.gate || {};
  const useful = phase === "open" || press.missing() || (phase === "upcoming" && press.waiting());
  // Whether an order's time to pay is over depends on the time.
  tick.value;
  if (!token.value) return phase === "ended" ? null : html`<p class="note" id="act">${t(page.dev ? "who.first.dev" : "who.first")}</p>`;
  const more = press.more(), lottery = draw.view && phase !== "ended" && more > 0 && html`<${draw.view} key="draw" campaign=${campaign} />`;
  if (lottery && !press.missing() && (!draw.won.value || phase !== "open")) return lottery;
  if (!more && phase === "open" && !press.missing())
    return html`<div class="act" id="act"><button type="button" class="press" id="press" data-press="full" disabled>${t("yours.before")}</button></div>`;
  if (gate.ticket?.human_check && !voucher && useful) return html`<p class="note">${t("human.first")}</p>`;
  if (gate.ticket?.work_bits && !crypto.subtle && useful) return html`<p class="note bad">${t("https.first")}</p>`;
  if (!useful) return null;
  const label = does === "join" ? "press.join" : does === "wait" ? "press.wait" : press.held() > 0 ? "press.more" : c.kind === "coupon" ? "press.coupon" : c.kind === "redpacket" ? "press.packet" : "press.sale";
  const most = Math.min(press.missing() ? c.limit_per_user : more, 10);
  return html`${lottery}<div class="act" id="act">
    ${does === "claim" && c.kind === "sale" && most > 1 && html`<label class="quantity">${t("quantity")}
      <select value=${press.quantity.value} disabled=${press.missing() || press.busy.value} onChange=${(/** @type {any} */ e) => (press.quantity.value = Number(e.target.value))}>
      ${Array.from({ length: most }, (_, i) => html`<option value=${i + 1}>${number(i + 1)}</option>`)}</select></label>`}
    <button type="button" class="press" id="press" data-press=${does}
      disabled=${press.busy.value || does === "wait" || (does === "claim" && phase === "upcoming")} onClick=${press.press}>
      ${press.busy.value ? t("press.busy") : t(press.missing() ? "press.find" : label)}</button>
    <${Work} press=${press} /><${Place} press=${press} />
  </div>`;
}

/** @param {{press: Press}} props */
function Work({ press }) {
  const p = press.progress.value;
  if (p === null) return null;
  return html`<p class="work"><label>${t("work.doing")} <progress max="1" value=${p}></progress></label></p>`;
}

/** The place in the waiting room. @param {{press: Press}} props */
function Place({ press }) {
  const p = press.place.value;
  tick.value;
  if (!p) return null;
  if (p.state === "admitted") {
    const ms = p.admission_expires_at ? Date.parse(p.admission_expires_at) - now() : 0;
    return html`<p class="note good" id="place" role="status"><b>${t("turn.now")}</b> ${ms > 0 && html`<span role="timer">${t("turn.within", { left: left(ms) })}</span>`}</p>`;
  }
  return html`<div class="note" id="place" role="status">
    ${p.position ? html`<p>${t("place.position")} <b class="position" id="position">${number(p.position)}</b></p>` : html`<p>${t("place.arrived")}</p>`}
    ${p.position > 0 && milliseconds(p.estimate) > 0 && html`<p class="muted">${t("place.estimate", { span: span(milliseconds(p.estimate)) })}</p>`}
    <p class="muted">${t("place.keep")}</p></div>`;
}
