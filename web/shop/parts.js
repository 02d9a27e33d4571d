// @ts-check
// What several pages of the shop show.
import { html, useRef } from "../lib/html.js";
import { now, tick } from "../lib/clock.js";
import { parts } from "../lib/format.js";
import { choose, language, t } from "../lib/text.js";
import { answer, become, leave, nameOf, offered, page, token } from "./user.js";
import { orders } from "./orders.js";

/** The bar at the top: the shop, who this is, their orders, the language. */
export function Header() {
  return html`<header class="top">
    ${page.shop ? html`<a class="home" href="/"><${Mark} /> dibs</a>` : html`<span class="home"><${Mark} /> dibs</span>`}
    <div class="grow"></div>
    ${token.value && html`<button type="button" class="quiet" onClick=${() => orders.open()}>${t("orders.mine")}</button>`}
    ${page.dev ? html`<${Who} />` : null}
    <button type="button" class="quiet" lang=${language.value === "zh" ? "en" : "zh-CN"}
      onClick=${() => choose(language.value === "zh" ? "en" : "zh")}>${language.value === "zh" ? "English" : "中文"}</button>
  </header>${offered.value && html`<${Another} />`}`;
}

/** A link named another user than this tab has: which of them is it? */
function Another() {
  const me = nameOf(token.value), other = nameOf(offered.value);
  return html`<div class="row another" role="alert"><p>${t("who.offered", { now: me, other })}</p>
    <button type="button" id="stay" onClick=${() => answer(false)}>${t("who.stay", { name: me })}</button>
    <button type="button" id="switch" onClick=${() => answer(true)}>${t("who.switch", { name: other })}</button></div>`;
}

/** Where a campaign stands, in words: what is gone of a red packet does not come back. @param {{kind: string}} c @param {string} phase */
export const phaseOf = (c, phase) => t(phase === "sold_out" && c.kind === "redpacket" ? "phase.gone" : "phase." + phase);

/** The mark of the shop. */
export const Mark = () => html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6" /><path d="M7 12.5l3.4 3.4L17 8.6" /></svg>`;

/** In `dibs dev`: who one is. */
function Who() {
  const box = /** @type {{current: HTMLDialogElement|null}} */ (useRef(null));
  const name = nameOf(token.value);
  const take = (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    const to = String(new FormData(/** @type {HTMLFormElement} */ (e.target)).get("user")).trim();
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(to)) return;
    become(to);
    box.current?.close();
    location.reload();
  };
  return html`<button type="button" class="quiet who" onClick=${() => box.current?.showModal()}>${name ? t("who.is", { name }) : t("who.none")}</button>
    <dialog ref=${box} class="small" aria-labelledby="who-title">
      <form onSubmit=${take}>
        <h2 id="who-title">${t("who.title")}</h2>
        <p class="muted">${t("who.dev")}</p>
        <label>${t("who.name")}<input name="user" required maxlength="64" pattern="[A-Za-z0-9._\\-]+" value=${name || "42"} autocomplete="off" /></label>
        <div class="row"><button class="primary">${t("who.take")}</button>
        ${name && html`<button type="button" onClick=${() => (leave(), location.reload())}>${t("who.leave")}</button>`}
        <button type="button" onClick=${() => box.current?.close()}>${t("close")}</button></div>
      </form>
    </dialog>`;
}

/** The time until a moment, by the server's clock. @param {{to: number}} props */
export function Countdown({ to }) {
  tick.value;
  const p = parts(to - now()), two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return html`<p class="count" role="timer" id="count">
    ${p.days > 0 && html`<span><b>${p.days}</b> <small>${t("days")}</small></span>`}
    <span><b>${two(p.hours)}</b> <small>${t("hours")}</small></span>
    <span><b>${two(p.minutes)}</b> <small>${t("minutes")}</small></span>
    <span><b>${two(p.seconds)}</b> <small>${t("seconds")}</small></span>
  </p>`;
}

const drawings = /** @type {Record<string, string>} */ ({
  sale: "M6 8h12l-1 12H7L6 8zm3 0a3 3 0 0 1 6 0",
  coupon: "M4 8h16v3a2 2 0 0 0 0 4v3H4v-3a2 2 0 0 0 0-4V8zm9 0v10",
  redpacket: "M6 4h12v16H6zM6 8q6 5 12 0M12 10.5v3M10.5 12h3",
});

/** The picture of a product, or a drawing of what kind of thing there is. @param {{c: any}} props */
export function Picture({ c }) {
  const at = c.product?.thumbnail || "";
  // A picture from where none may be shown would be an empty frame.
  const shown = /^(\/[^/]|https?:)/.test(at);
  return html`<div class=${"picture " + c.kind}>
    ${shown ? html`<img src=${at} alt="" loading="lazy" onError=${(/** @type {Event} */ e) => (/** @type {HTMLElement} */ (e.target).hidden = true)} />` : null}
    <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${drawings[c.kind] || drawings.sale} /></svg>
  </div>`;
}
