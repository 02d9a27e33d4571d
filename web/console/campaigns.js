// @ts-check
// All campaigns, drafts too.
import { html } from "../lib/html.js";
import { money, number, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { standing, Standing, standings } from "./phase.js";
import { ask, at, Link } from "./route.js";
import { AllCSV, Fault, Filter, Filters, Head, may, Named, Pager, Table, usePages, When } from "./ui.js";

export function Campaigns() {
  const q = at.value.query, word = (q.get("q") || "").toLowerCase(), is = q.get("standing") || "", kind = q.get("kind") || "";
  const keep = (/** @type {any} */ c) => (!word || (c.id + " " + c.title).toLowerCase().includes(word)) && (!is || standing(c) === is) && (!kind || c.kind === kind);
  const pages = usePages("/v1/campaigns", 50, 0, word || is || kind ? { name: [word, is, kind].map(encodeURIComponent).join("/"), keep } : null), rows = pages.items;
  const columns = [
    { title: t("campaign"), show: (/** @type {any} */ c) => html`<${Named} to=${"/campaigns/" + encodeURIComponent(c.id)} title=${c.title} id=${c.id} />` },
    { title: t("kind"), show: (/** @type {any} */ c) => t("kind." + c.kind) },
    { title: t("standing"), show: (/** @type {any} */ c) => html`<${Standing} c=${c} />`, text: (/** @type {any} */ c) => t("standing." + standing(c)) },
    { title: t("remaining"), number: true, show: (/** @type {any} */ c) => number(c.remaining) },
    { title: t("price"), number: true, show: (/** @type {any} */ c) => (c.redpacket ? money(c.redpacket.total) : money(c.price || c.product?.price)) },
    { title: t("from"), show: (/** @type {any} */ c) => html`<${When} at=${c.starts_at} />`, text: (/** @type {any} */ c) => time(c.starts_at) },
    { title: t("until"), show: (/** @type {any} */ c) => html`<${When} at=${c.ends_at} />`, text: (/** @type {any} */ c) => time(c.ends_at) },
  ];
  return html`<${Head} title=${t("screen.campaigns")}>${may("editor") && html`<${Link} class="button primary" to="/campaigns/new">${t("campaign.new")}<//>`}<//>
    <${Filters}><${Filter} label=${t("search")} value=${q.get("q") || ""} change=${(/** @type {string} */ v) => ask({ q: v })} />
      <${Filter} label=${t("standing")} value=${is} change=${(/** @type {string} */ v) => ask({ standing: v })} options=${[["", t("all")], ...standings.map((s) => [s, t("standing." + s)])]} />
      <${Filter} label=${t("kind")} value=${kind} change=${(/** @type {string} */ v) => ask({ kind: v })} options=${[["", t("all")], ...["sale", "coupon", "redpacket"].map((s) => [s, t("kind." + s)])]} /><//>
    <${Fault} text=${pages.fault} again=${pages.again} />
    <${Table} name=${t("screen.campaigns")} columns=${columns} rows=${rows} empty=${t("campaigns.none")} />
    <${Pager} pages=${pages}><${AllCSV} name="campaigns.csv" columns=${[{ title: t("w.id"), show: (/** @type {any} */ c) => c.id }, { title: t("w.title"), show: (/** @type {any} */ c) => c.title }, ...columns.slice(1)]} path="/v1/campaigns" keep=${keep} /><//>`;
}
