// @ts-check
// A campaign while it runs: the stock, the rates, and whether engine, journal and ledger say the same.
import { html, useEffect, useSignal } from "../lib/html.js";
import { campaignPath, get } from "../lib/api.js";
import { money, number, percent, time } from "../lib/format.js";
import { follow } from "../lib/stream.js";
import { t } from "../lib/text.js";
import { brief, short } from "./figures.js";
import { Chart } from "./chart.js";
import { History } from "./history.js";
import { Gate, Holders } from "./live.js";
import { standing, Standing } from "./phase.js";
import { AskAgain, change, confirm, Fault, faultsOf, Head, Invalid, may, say, saying, Tile, useGet } from "./ui.js";
import { Link } from "./route.js";
import { Terms } from "./terms.js";

const kept = 600;

/** The measures of a campaign as they come. @param {string} id @param {boolean} on */
export function useMeasures(id, on) {
  const latest = useSignal(/** @type {any} */ (null)), lost = useSignal(false), data = useSignal(/** @type {any[][]} */ ([[], [], [], [], []]));
  useEffect(() => {
    if (!on) return;
    return follow(campaignPath(id, "/stats/stream"), ["measure"], (m) => {
      latest.value = m;
      lost.value = false;
      const refused = Object.values(m.per_second.refused).reduce((a, b) => a + Number(b), 0);
      const point = [Date.parse(m.at) / 1000, m.stats.remaining, m.per_second.granted, refused, m.latency.count ? m.latency.p99_ms : null];
      // Ten minutes are kept: a screen that stays open does not grow.
      data.value = data.peek().map((row, i) => [...row.slice(-kept + 1), point[i]]);
    }, { lost: () => (lost.value = true), back: () => (lost.value = false) });
  }, [id, on]);
  return { measure: latest.value, lost: lost.value, data: data.value };
}

/** @param {{id: string}} props */
export function Campaign({ id }) {
  const got = useGet(campaignPath(id)), c = got.value;
  const { measure, lost, data } = useMeasures(id, !!c && c.state !== "draft");
  // A change that was made elsewhere is seen here.
  useEffect(() => {
    if (c && measure && (measure.version !== c.version || measure.state !== c.state)) got.again();
  }, [measure?.version, measure?.state]);
  if (!c) return html`<${Head} title=${id} /><${Fault} text=${got.fault} again=${got.again} />`;
  const s = measure?.stats;
  return html`<${Head} title=${c.title}><${Standing} c=${c} remaining=${s?.remaining} /><//>
    <p class="muted">${t("kind." + c.kind)} · <code>${c.id}</code> · ${time(c.starts_at)} – ${time(c.ends_at)} · <a href=${"/c/" + encodeURIComponent(id)} target="_blank" rel="noopener">${t("campaign.page")}</a> · <${Link} to=${"/orders?campaign_id=" + encodeURIComponent(id)}>${t("screen.orders")}<//></p>
    <${Fault} text=${got.fault} again=${got.again} />
    ${lost && html`<p class="note warn" role="status">${t("lost.connection")}</p>`}
    <${Actions} c=${c} done=${got.again} />
    ${c.state === "draft" ? html`<p class="note">${t("campaign.draft")}</p>` : html`<${Live} m=${measure} data=${data} />${measure && html`<${Gate} c=${c} /><${Holders} id=${id} />`}`}
    ${/* What stands below the live numbers waits for them: nothing that is read moves away. */ (c.state === "draft" || measure) && html`<${Terms} c=${c} />`}
    ${(c.state === "draft" || measure) && may("admin") && html`<${History} target=${"/v1/campaigns/" + id} stamp=${c.version + c.state + (s?.stock ?? 0)} />`}`;
}

/** @param {{m: any, data: any[][]}} props */
function Live({ m, data }) {
  if (!m) return html`<p class="muted" role="status">${t("loading")}</p>`;
  const s = m.stats, refused = Object.entries(s.refused).sort((a, b) => Number(b[1]) - Number(a[1]));
  return html`<div class="tiles" id="live">
      <${Tile} label=${t("remaining")} value=${html`<span id="remaining">${number(s.remaining)}</span>`} detail=${t("of.stock", { n: number(s.stock) })} kind=${s.low ? "warn" : ""} />
      <${Tile} label=${t("granted")} value=${html`<span id="granted">${number(s.granted)}</span>`} detail=${percent(s.stock ? s.granted / s.stock : 0)} />
      <${Tile} label=${t("tile.grants")} value=${short(m.per_second.granted)} detail=${t("per.second")} />
      <${Tile} label=${t("latency.engine")} value=${m.latency.count ? brief(m.latency.p99_ms) : "–"} detail=${html`${m.latency.count ? t("latency.rest", { p50: brief(m.latency.p50_ms), p90: brief(m.latency.p90_ms) }) : t("latency.none")}<br />${t("latency.engine.of")}`} />
    </div>
    ${s.shards_away > 0 && html`<p class="note warn" role="status">${t("sums.away", { n: number(s.shards_away) })}</p>`}
    <${Sums} sums=${m.sums} stock=${s.stock} />
    <div class="two"><${Chart} label=${t("chart.stock")} data=${[data[0], data[1]]} lines=${[{ label: t("remaining"), colour: "--brand", fill: true }]} />
    <${Chart} label=${t("chart.rates")} data=${[data[0], data[2], data[3]]} lines=${[{ label: t("tile.grants"), colour: "--good" }, { label: t("tile.refusals"), colour: "--warn" }]} /></div>
    <div class="two"><section><h2>${t("refused.why")}</h2>${refused.length ? html`<dl class="bars">${refused.map(([reason, n]) => html`<div><dt>${t("reason." + reason)}</dt>
      <dd>${number(Number(n))} <small class="muted">${short(m.per_second.refused[reason] || 0)} ${t("per.second")}</small></dd></div>`)}</dl>` : html`<p class="muted">${t("refused.none")}</p>`}<p class="muted"><small>${t("refused.nodes")}</small></p></section>
    <section><h2>${t("holders")}</h2><dl class="bars">${["pending", "confirmed", "released", "refunded"].map((k) => html`<div><dt>${t("status." + k)}</dt><dd>${number(s[k])}</dd></div>`)}
      ${s.funds && ["funded", "credited", "returned", "escrow"].map((k) => html`<div><dt>${t("funds." + k)}</dt><dd>${money(s.funds[k])}</dd></div>`)}</dl></section></div>`;
}

/** The three witnesses side by side. @param {{sums: any, stock: number}} props */
export function Sums({ sums, stock }) {
  // What has left the engine long after its end is compared no more: the ledger's number is all three.
  const state = sums.agree === false ? "bad" : sums.on_the_way > 0 || sums.journal !== sums.engine ? "moving" : "good";
  const width = (/** @type {number} */ n) => ({ width: (stock ? Math.min(100, (n / stock) * 100) : 0) + "%" });
  const rows = /** @type {[string, number|null][]} */ ([["engine", sums.engine], ["journal", sums.journal], ["ledger", sums.ledger]]);
  return html`<section class=${"sums " + state} id="sums" data-state=${state}>
    <h2>${t("sums.title")} <span class=${"tag " + (state === "moving" ? "warn" : state)}>${t("sums." + state)}</span></h2>
    ${rows.map(([name, n]) => html`<div class="sum"><span>${t("sums." + name)}</span><span class="track"><span class=${"fill " + name} style=${width(n ?? sums.engine)}></span></span><b data-sum=${name}>${n === null ? "…" : number(n)}</b></div>`)}
    <p class="muted">${sums.on_the_way ? t("sums.way", { n: number(sums.on_the_way), age: brief(sums.age_ms) }) : sums.journal !== null && t("sums.settled")}</p></section>`;
}

/**
 * Makes a change of the campaign that was read. Where another administrator changed it under the question, nothing is
 * done, and the question is asked again of what there is now.
 * @param {any} c @param {() => void} done @param {(c: any, done: () => void, news: string) => import("./ui.js").Question} question
 * @param {string} method @param {string} tail of the campaign's path @param {any} [body]
 */
async function asRead(c, done, question, method, tail, body) {
  try {
    await change(method, campaignPath(c.id, tail), { version: c.version, ...body });
  } catch (e) {
    if (!faultsOf(e)["/version"]) throw e;
    const now = await get(campaignPath(c.id));
    done();
    // The answer to an earlier try was lost: it has this end already.
    if (body?.ends_at && Date.parse(now.ends_at) === Date.parse(body.ends_at)) return;
    throw new AskAgain(question(now, done, t("edit.meanwhile")));
  }
}

/** Asks how much later a campaign ends: the new end is counted from the one that was read. @param {any} c @param {() => void} done @param {string} [news] @returns {import("./ui.js").Question} */
const later = (c, done, news) => ({
  title: t("act.extend"), text: t("act.extend.text", { name: c.title, at: time(c.ends_at) }), action: t("act.extend"), news,
  fields: [{ name: "minutes", label: t("minutes.more"), type: "number", value: "30" }],
  do: async (v) => {
    const end = new Date(Date.parse(c.ends_at) + Number(v.minutes) * 60_000);
    if (!(Number(v.minutes) > 0) || Number.isNaN(end.getTime())) throw new Invalid(t("minutes.bad"));
    await asRead(c, done, later, "PATCH", "", { ends_at: end.toISOString() });
    say(t("act.done", { what: t("act.extend"), name: c.title }));
    done();
  },
});

/** Asks whether a draft is published, with the terms that were read. @param {any} c @param {() => void} done @param {string} [news] @returns {import("./ui.js").Question} */
const published = (c, done, news) => ({
  title: t("act.publish"), text: t("act.publish.text", { name: c.title, id: c.id }), action: t("act.publish"), news,
  do: async () => {
    await asRead(c, done, published, "POST", "/publish");
    say(t("act.done", { what: t("act.publish"), name: c.title }));
    done();
  },
});

/** What may be done now. @param {{c: any, done: () => void}} props */
function Actions({ c, done }) {
  const busy = useSignal(false), verdict = useSignal(/** @type {any} */ (null));
  const is = standing(c), name = c.title;
  if (!may("publisher")) return html`<div class="row actions" role="group" aria-label=${t("actions")}>${is === "draft" && may("editor") && html`<${Link} class="button" data-act="edit" to=${"/campaigns/" + encodeURIComponent(c.id) + "/edit"}>${t("act.edit")}<//>`}
    ${is !== "draft" && html`<${Verify} id=${c.id} verdict=${verdict} busy=${busy} />`}</div>${verdict.value && html`<${Promises} title=${t("verify.title")} list=${verdict.value} />`}`;
  const act = (/** @type {string} */ verb, /** @type {boolean} */ danger = false) => html`<button type="button" class=${danger ? "danger" : ""} data-act=${verb} onClick=${() => confirm({
    title: t("act." + verb), text: t("act." + verb + ".text", { name, id: c.id }), action: t("act." + verb), danger,
    do: async () => { await change("POST", campaignPath(c.id, "/" + verb)); say(t("act.done", { what: t("act." + verb), name })); done(); },
  })}>${t("act." + verb)}</button>`;
  // Codes and seats that people wrote are added with their names, on a screen of their own; the shares of a red packet stay.
  const live = is !== "draft" && is !== "ended", named = c.stock?.items_count !== undefined;
  const stock = (/** @type {"restock"|"withdraw"} */ way) => html`<button type="button" data-act=${way} onClick=${() => confirm({
    title: t("act." + way), text: t("act." + way + ".text", { name, n: number(c.remaining) }), action: t("act." + way), danger: way === "withdraw",
    fields: [{ name: "n", label: t("units"), type: "number", value: "10" }, { name: "why", label: t("why") }],
    do: async (v) => {
      const n = Math.abs(Math.trunc(Number(v.n)));
      await change("POST", campaignPath(c.id, "/stock"), { delta: way === "restock" ? n : -n, why: v.why });
      say(t("act.done", { what: t("act." + way), name }));
      done();
    },
  })}>${t("act." + way)}</button>`;
  const extend = html`<button type="button" data-act="extend" onClick=${() => confirm(later(c, done))}>${t("act.extend")}</button>`;
  return html`<div class="row actions" role="group" aria-label=${t("actions")}>
    ${is === "draft" && html`<button type="button" data-act="publish" onClick=${() => confirm(published(c, done))}>${t("act.publish")}</button>`}
    ${["open", "upcoming", "sold_out"].includes(is) && act("pause")}${is === "paused" && act("resume")}
    ${live && c.kind !== "redpacket" && html`${!named && stock("restock")}${stock("withdraw")}`}
    ${named && html`<${Link} class="button" data-act="items" to=${"/coupons/" + encodeURIComponent(c.id)}>${t("act.items")}<//>`}
    ${live && html`${extend}${act("end", true)}`}
    ${is !== "draft" && html`<${Verify} id=${c.id} verdict=${verdict} busy=${busy} />`}
    ${is !== "ended" && may(is === "draft" ? "editor" : "publisher") && html`<${Link} class="button" data-act="edit" to=${"/campaigns/" + encodeURIComponent(c.id) + "/edit"}>${t("act.edit")}<//>`}
    <${Link} class="button" to=${"/campaigns/new?copy=" + encodeURIComponent(c.id)}>${t("act.copy")}<//>
  </div>${verdict.value && html`<${Promises} title=${t("verify.title")} list=${verdict.value} />`}`;
}

/** @param {{id: string, verdict: any, busy: any}} props */
function Verify({ id, verdict, busy }) {
  const look = async () => {
    busy.value = true;
    try {
      const r = await get("/v1/verify?campaign=" + encodeURIComponent(id));
      verdict.value = r.campaigns.flatMap((/** @type {any} */ c) => c.promises.map((/** @type {any} */ p) => ({ promise: p.promise, finding: p.held ? "held" : "broken", detail: p.detail })));
    } catch (e) {
      say(saying(e), "bad");
    }
    busy.value = false;
  };
  return html`<button type="button" data-act="verify" disabled=${busy.value} onClick=${look}>${t(busy.value ? "working" : "act.verify")}</button>`;
}

/** Promises with their verdicts. @param {{title: string, list: any[]}} props */
export const Promises = ({ title, list }) => html`<section class="promises"><h2>${title}</h2><ul>${list.map((p) => {
  const is = p.finding === "held" ? "good" : p.finding === "broken" ? "bad" : "warn";
  return html`<li data-finding=${p.finding}><span class=${"tag " + is}>${t("finding." + is)}</span> <b>${t("promise." + p.promise.replace(/\W+/g, "_"))}</b> <small class="muted">${p.detail}</small></li>`;
})}</ul></section>`;
