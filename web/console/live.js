// @ts-check
// What stands beside a campaign's live numbers: its gate as it is now, and who holds of it.
import { html } from "../lib/html.js";
import { milliseconds, number, span } from "../lib/format.js";
import { t } from "../lib/text.js";
import { count, rate, useRooms } from "./gates.js";
import { Status } from "./orders.js";
import { Link } from "./route.js";
import { Table, Tile, usePages, When } from "./ui.js";

/** A limit of claims in words. @param {any} l */
export const limited = (l) => t("limit.line", { n: number(l.rate), every: span(milliseconds(l.every) || 1000) }) + (l.burst ? t("comma") + t("limit.burst", { n: number(l.burst) }) : "") + (l.bucket === "leaky" ? t("comma") + t("limit.waits", { time: span(milliseconds(l.max_wait) || 1000) }) : "");

/** The gate of a campaign that has one. @param {{c: any}} props */
export function Gate({ c }) {
  const g = c.gate, queue = !!g?.room && g.room.mode !== "lottery", is = useRooms(queue)[c.id] || {};
  if (!queue && !g?.limits?.length) return null;
  return html`<section id="gate"><h2>${t("gate.now")}</h2>
    ${queue && html`<div class="tiles"><${Tile} label=${t("room.waiting")} value=${count(is.waiting)} /><${Tile} label=${t("room.admitted")} value=${count(is.admitted)} /><${Tile} label=${t("room.rate")} value=${rate(g.room)} /></div>`}
    ${g.limits?.length > 0 && html`<dl class="facts">${g.limits.map((/** @type {any} */ l) => html`<div><dt>${t("limit.per." + l.per)}</dt><dd>${limited(l)}</dd></div>`)}</dl>`}</section>`;
}

// How many holders are shown, and how often they are read again, in milliseconds.
const shownHolders = 10, every = 5000;

/** Who got something last. @param {{id: string}} props */
export function Holders({ id }) {
  const at = "campaign_id=" + encodeURIComponent(id), pages = usePages("/v1/claims?" + at, shownHolders, every);
  return html`<section id="holders"><h2>${t("holders.newest")}</h2><${Table} name=${t("holders.newest")} rows=${pages.items} empty=${t("claims.none")} columns=${[
    { title: t("user"), show: (/** @type {any} */ c) => html`<${Link} to=${"/orders?user_id=" + encodeURIComponent(c.user_id) + "&" + at}>${c.user_id}<//>` },
    { title: t("quantity"), number: true, show: (/** @type {any} */ c) => number(c.quantity) },
    { title: t("status"), show: (/** @type {any} */ c) => html`<${Status} c=${c} />` },
    { title: t("at"), show: (/** @type {any} */ c) => html`<${When} at=${c.created_at} />` },
  ]} /><div class="row"><a class="button" href=${"/v1/claims?format=csv&" + at} download=${id + ".csv"}>${t("csv.all")}</a></div></section>`;
}
