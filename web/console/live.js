// @ts-check
// What stands beside a campaign's live numbers: its gate as it is now, and who holds of it.
import { html } from "../lib/html.js";
import { campaignPath } from "../lib/api.js";
import { milliseconds, number, span, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { count, rate, useRooms } from "./gates.js";
import { Status } from "./orders.js";
import { Link } from "./route.js";
import { Table, Tile, useGet, usePages, When } from "./ui.js";

/** A limit of claims in words. @param {any} l */
export const limited = (l) => t("limit.line", { n: number(l.rate), every: span(milliseconds(l.every) || 1000) }) + (l.burst ? t("comma") + t("limit.burst", { n: number(l.burst) }) : "") + (l.bucket === "leaky" ? t("comma") + t("limit.waits", { time: span(milliseconds(l.max_wait) || 1000) }) : "");

/** What the gate of a campaign asks for, and how far that is now. @param {{c: any}} props */
export function Gate({ c }) {
  const g = c.gate || {}, tiles = [g.room && html`<${g.room.mode === "lottery" ? Draw : Queue} c=${c} />`, g.audience && html`<${Allowed} of=${g.audience} />`, g.ticket && html`<${Ticket} is=${g.ticket} />`].filter(Boolean);
  if (!tiles.length && !g.limits?.length) return null;
  return html`<section id="gate"><h2>${t("gate.now")}</h2>${tiles.length > 0 && html`<div class="tiles">${tiles}</div>`}
    ${g.limits?.length > 0 && html`<dl class="facts">${g.limits.map((/** @type {any} */ l) => html`<div><dt>${t("limit.per." + l.per)}</dt><dd>${limited(l)}</dd></div>`)}</dl>`}</section>`;
}

/** A waiting room: who waits, and how fast they are let in. @param {{c: any}} props */
function Queue({ c }) {
  const is = useRooms()[c.id] || {};
  return html`<${Tile} label=${t("room.waiting")} value=${count(is.waiting)} /><${Tile} label=${t("room.admitted")} value=${count(is.admitted)} /><${Tile} label=${t("room.rate")} value=${rate(c.gate.room)} />`;
}

// How often a draw, and how often the size of an audience is asked for, in milliseconds.
const drawEvery = 3000, sizeEvery = 15_000;

/** A draw: where it stands and since when, who registered, and how many can win. @param {{c: any}} props */
function Draw({ c }) {
  const got = useGet(campaignPath(c.id, "/lottery"), { every: drawEvery }), v = got.value;
  if (!v) return html`<${Tile} label=${t("gate.draw")} value="–" detail=${got.fault} kind=${got.fault ? "bad" : ""} />`;
  const told = v.public_value !== undefined || !v.public_value_is;
  const next = { upcoming: ["lottery.opens", v.registration_opens_at], open: ["lottery.closes", v.registration_closes_at], closed: ["lottery.closes", v.closed_at], drawn: ["lottery.drawn", v.drawn_at] }[/** @type {string} */ (v.state)];
  return html`<${Tile} label=${t("gate.draw")} value=${html`<${Link} to=${"/gates/" + encodeURIComponent(c.id)}>${t("lottery.is." + v.state)}<//>`} kind=${v.state === "drawn" ? "good" : v.state === "closed" ? "warn" : ""}
      detail=${v.state === "closed" && !told ? t("lottery.waits", { what: v.public_value_is }) : next?.[1] && html`${t(next[0])} ${time(next[1])}`} />
    <${Tile} label=${t("lottery.entries")} value=${v.closed_at ? number(v.entries) : "–"} detail=${v.closed_at ? "" : t("lottery.entries.later")} />
    <${Tile} label=${t("lottery.winners")} value=${number(v.winners)} />`;
}

/** How many users a list or a merchant has, who alone may claim. @param {{of: {list?: string, followers_of?: string}}} props */
function Allowed({ of }) {
  const id = of.list || of.followers_of || "", name = encodeURIComponent(id);
  const got = useGet(of.list ? "/v1/audiences/" + name : "/v1/merchants/" + name, { every: sizeEvery }), v = got.value;
  return html`<${Tile} label=${t(of.list ? "gate.list" : "followers")} value=${count(of.list ? v?.users : v?.followers)} kind=${got.fault ? "bad" : ""}
    detail=${html`<${Link} to=${of.list ? "/audiences" : "/audiences?merchant=" + name}>${id}<//>${got.fault ? html`<br />${got.fault}` : v?.updated_at && html`<br />${t("changed")} ${time(v.updated_at)}`}`} />`;
}

/** What a claim has to bring: a ticket, which may cost work, or a check for people. @param {{is: any}} props */
const Ticket = ({ is }) => html`<${Tile} label=${t("gate.ticket")} value=${t("ticket.needed")}
  detail=${[is.work_bits ? t("ticket.bits", { n: is.work_bits }) : t("ticket.plain"), is.human_check && t("ticket.human"), t("ticket.for", { time: span(milliseconds(is.lifetime)) })].filter(Boolean).join(t("comma"))} />`;

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
