// @ts-check
// Coupons: the batches, the coupons of one with their use, and the codes that are left.
import { Drawer } from "../lib/box.js";
import { html, useSignal } from "../lib/html.js";
import { campaignPath } from "../lib/api.js";
import { milliseconds, money, number, percent, span, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { Order, Status } from "./orders.js";
import { standing, Standing } from "./phase.js";
import { ask, at, Link } from "./route.js";
import { AllCSV, BadLines, change, Fault, Field, Filter, Filters, Head, may, Named, Pager, say, Table, Tile, useGet, usePages, When } from "./ui.js";

/** Where the codes of a campaign come from. @param {any} c */
const source = (c) => (c.stock?.codes ? t("codes.made", { pattern: c.stock.codes.pattern }) : c.stock?.items_count !== undefined ? t("codes.given") : t("codes.none"));

/** How long a coupon of a campaign is valid. @param {any} c */
const validity = (c) => (c.valid_until_at ? t("valid.ends", { at: time(c.valid_until_at) }) : c.valid_for ? t("valid.for", { span: span(milliseconds(c.valid_for)) }) : t("valid.always"));

/** @param {any} c */
const total = (c) => c.stock?.units ?? c.stock?.items_count ?? c.stock?.codes?.count ?? 0;

export function Coupons() {
  const q = at.value.query, word = (q.get("q") || "").toLowerCase();
  const keep = (/** @type {any} */ c) => c.kind === "coupon" && (!word || (c.id + " " + c.title).toLowerCase().includes(word));
  const pages = usePages("/v1/campaigns", 20, 0, { name: encodeURIComponent(word), keep }), rows = pages.items;
  const columns = [
    { title: t("batch"), show: (/** @type {any} */ c) => html`<${Named} to=${"/coupons/" + encodeURIComponent(c.id)} title=${c.title} id=${c.id} />`, text: (/** @type {any} */ c) => c.id },
    { title: t("standing"), show: (/** @type {any} */ c) => html`<${Standing} c=${c} />`, text: (/** @type {any} */ c) => t("standing." + standing(c)) },
    { title: t("codes"), show: source },
    { title: t("batch.size"), number: true, show: (/** @type {any} */ c) => number(total(c)) },
    { title: t("remaining"), number: true, show: (/** @type {any} */ c) => number(c.remaining) },
    { title: t("valid"), show: validity },
    { title: t("until"), show: (/** @type {any} */ c) => html`<${When} at=${c.ends_at} />`, text: (/** @type {any} */ c) => time(c.ends_at) },
  ];
  return html`<${Head} title=${t("screen.coupons")}>${may("editor") && html`<${Link} class="button primary" to="/campaigns/new?kind=coupon">${t("batch.new")}<//>`}<//>
    <${Filters}><${Filter} label=${t("search")} value=${q.get("q") || ""} change=${(/** @type {string} */ v) => ask({ q: v })} /><//>
    <${Fault} text=${pages.fault} again=${pages.again} />
    <${Table} name=${t("screen.coupons")} rows=${rows} empty=${t("batches.none")} columns=${columns} /><${Pager} pages=${pages}><${AllCSV} name="coupons.csv" columns=${columns} path="/v1/campaigns" keep=${keep} /><//>`;
}

/** One batch. @param {{id: string}} props */
export function Batch({ id }) {
  const got = useGet(campaignPath(id)), stats = useGet(campaignPath(id, "/stats"), { every: 3000 }), c = got.value, s = stats.value;
  if (!c) return html`<${Head} title=${id} /><${Fault} text=${got.fault} again=${got.again} />`;
  const own = c.stock?.units === undefined;
  return html`<${Head} title=${c.title}><${Standing} c=${c} remaining=${s?.remaining} /><//>
    <p class="muted">${source(c)} · ${c.kind === "coupon" && html`${validity(c)} · `}<${Link} to=${"/campaigns/" + encodeURIComponent(id)}>${t("campaign")}<//></p>
    <${Fault} text=${got.fault} again=${got.again} />
    <div class="tiles"><${Tile} label=${t("batch.size")} value=${s ? number(s.stock) : "–"} /><${Tile} label=${t("sold")} value=${s ? number(s.granted) : "–"} detail=${s && percent(s.stock ? s.granted / s.stock : 0)} />
      <${Tile} label=${t("remaining")} value=${s ? number(s.remaining) : "–"} kind=${s?.low ? "warn" : ""} /></div>
    <${Used} id=${id} />
    ${own && may("publisher") && html`<div class="two"><${Left} c=${c} />${c.stock?.items_count !== undefined && html`<${Import} id=${id} ended=${standing(c) === "ended"} done=${() => (got.again(), stats.again())} />`}</div>`}`;
}

/** The coupons that users have, and what became of them. @param {{id: string}} props */
function Used({ id }) {
  const q = at.value.query, code = q.get("code") || "", user = q.get("user_id") || "", open = q.get("open") || "";
  const search = "campaign_id=" + encodeURIComponent(id) + (code ? "&code=" + encodeURIComponent(code) : "") + (user ? "&user_id=" + encodeURIComponent(user) : "");
  const pages = usePages("/v1/claims?" + search, 20, 5000);
  return html`<section><h2>${t("coupons.given")}</h2>
    <${Filters}><${Filter} label=${t("coupon.code")} value=${code} change=${(/** @type {string} */ v) => ask({ code: v })} /><${Filter} label=${t("user")} value=${user} change=${(/** @type {string} */ v) => ask({ user_id: v })} /><//>
    <${Fault} text=${pages.fault} again=${pages.again} />
    <${Table} name=${t("coupons.given")} rows=${pages.items} empty=${t("coupons.given.none")} columns=${[
      { title: t("coupon.code"), show: (/** @type {any} */ c) => html`<button type="button" class="link" data-open=${c.id} onClick=${() => ask({ open: c.id })}><code>${c.items[0] || c.id}</code></button>` },
      { title: t("user"), show: (/** @type {any} */ c) => c.user_id },
      { title: t("status"), show: (/** @type {any} */ c) => html`<${Status} c=${c} />` },
      { title: t("coupon.used.for"), show: (/** @type {any} */ c) => (c.redemption ? html`<code>${c.redemption.ref}</code> ${money(c.redemption.amount)}` : "–") },
      { title: t("coupon.used.at"), show: (/** @type {any} */ c) => html`<${When} at=${c.redemption?.at} />` },
      { title: t("valid.to"), show: (/** @type {any} */ c) => html`<${When} at=${c.valid_until_at} none=${t("valid.always")} />` },
      { title: t("coupon.at"), show: (/** @type {any} */ c) => html`<${When} at=${c.created_at} />` },
    ]} /><${Pager} pages=${pages}><a class="button" href=${"/v1/claims?format=csv&" + search} download=${id + ".csv"}>${t("csv.all")}</a><//>
    <${Drawer} title=${t("coupon")} open=${!!open} onClose=${() => ask({ open: "" })}>${open && html`<${Order} id=${open} key=${open} changed=${pages.again} />`}<//></section>`;
}

/** The codes that are left, which the log notes each time they are read. @param {{c: any}} props */
function Left({ c }) {
  const shown = useSignal(false), pages = usePages(shown.value ? campaignPath(c.id, "/codes") : null);
  return html`<section><h2>${t("codes.left")}</h2><p class="muted">${t(standing(c) === "ended" || c.state === "paused" ? "codes.left.text" : "codes.left.open")}</p>
    ${shown.value ? html`<${Fault} text=${pages.fault} again=${pages.again} /><${Table} name=${t("codes.left")} rows=${pages.items} empty=${t("codes.left.none")} columns=${[{ title: t("coupon.code"), show: (/** @type {any} */ x) => html`<code>${x.code}</code>` }]} /><${Pager} pages=${pages}><${CodesCSV} id=${c.id} /><//>`
      : html`<div class="row"><button type="button" data-act="codes" onClick=${() => (shown.value = true)}>${t("codes.show")}</button><${CodesCSV} id=${c.id} /></div>`}</section>`;
}

/** The codes that are left, as the server's own file. @param {{id: string}} props */
const CodesCSV = ({ id }) => html`<a class="button" href=${campaignPath(id, "/codes?format=csv")} download=${id + "-codes.csv"}>${t("csv.all")}</a>`;

/** More codes from a file: all of them, or none. @param {{id: string, ended: boolean, done: () => void}} props */
function Import({ id, ended, done }) {
  const busy = useSignal(false), error = useSignal(/** @type {unknown} */ (null));
  if (ended) return null;
  const act = async (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    const form = /** @type {HTMLFormElement} */ (e.target), file = new FormData(form).get("file");
    if (busy.peek() || !(file instanceof File)) return;
    busy.value = true;
    error.value = null;
    try {
      const v = await change("POST", campaignPath(id, "/codes"), undefined, file);
      say(t("codes.imported", { n: number(v.imported) }));
      form.reset();
      done();
    } catch (err) {
      error.value = err;
    }
    busy.value = false;
  };
  return html`<section><h2>${t("codes.import")}</h2><form class="form" onSubmit=${act}><${Field} label=${t("w.file")} hint=${t("w.file.hint")}><input name="file" type="file" required accept=".csv,text/csv" /><//>
    <${BadLines} error=${error.value} /><div class="row"><button disabled=${busy.value}>${t(busy.value ? "working" : "codes.import")}</button></div></form></section>`;
}
