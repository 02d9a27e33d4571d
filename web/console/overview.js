// @ts-check
// What is going on now, and what needs a person.
import { html, useEffect, useMemo, useRef, useSignal } from "../lib/html.js";
import { campaignPath, get } from "../lib/api.js";
import { number, percent } from "../lib/format.js";
import { t } from "../lib/text.js";
import { brief, short } from "./figures.js";
import { standing, Standing } from "./phase.js";
import { Link } from "./route.js";
import { Fault, Head, may, Table, Tile, useGet } from "./ui.js";

// How many of the live campaigns are measured.
const watched = 20;

// How often the newest campaigns are read again, in milliseconds.
const every = 10_000;

/** @param {any} c */
const isLive = (c) => ["open", "sold_out", "paused"].includes(standing(c));

/** Reports whether a campaign is live, or needs a person. @param {any} c */
const counts = (c) => isLive(c) || c.funds?.problem || (c.low_since_at && standing(c) !== "ended");

/**
 * Reads the campaigns that count, over all pages of the list: one that is live may be older than hundreds that are not.
 * The newest page is read each time. The whole list is read the more seldom the longer it is: a look takes two calls on
 * average, however many campaigns there are.
 * @returns {typeof get}
 */
function reader() {
  let known = /** @type {any[]} */ ([]), next = 0;
  return async (path, o) => {
    const began = performance.now(), newest = await get(path, o), seen = new Set(newest.items.map((/** @type {any} */ c) => c.id));
    if (began >= next) {
      const older = [];
      let pages = 1;
      for (let page = newest; page.next_cursor; pages++) {
        page = await get(path + "&cursor=" + encodeURIComponent(page.next_cursor), o);
        older.push(...page.items.filter(counts));
      }
      known = older;
      next = began + every * pages;
    }
    known = [...newest.items.filter(counts), ...known.filter((c) => !seen.has(c.id))];
    return { items: known };
  };
}

/** The stats of the campaigns that sell, each two seconds, with their rates. @param {any[]} live */
function useRates(live) {
  const rates = useSignal(/** @type {Record<string, any>} */ ({})), before = useRef(/** @type {Record<string, any>} */ ({}));
  const ids = live.map((c) => c.id).join(" ");
  useEffect(() => {
    let over = false, timer = 0;
    const load = async () => {
      if (!document.hidden) {
        const all = await Promise.all(live.slice(0, watched).map((c) => get(campaignPath(c.id, "/stats")).catch(() => null)));
        const at = performance.now(), next = /** @type {Record<string, any>} */ ({});
        for (const s of all) {
          if (!s) continue;
          const was = before.current[s.campaign_id], seconds = was ? (at - was.at) / 1000 : 0;
          const refused = sum(s.refused), by = was ? each(s.refused, (reason, n) => Math.max(0, (n - (was.refused[reason] || 0)) / seconds)) : {}, ever = s.granted + s.released;
          next[s.campaign_id] = { ...s, at, refusedAll: refused, refusedBy: by, ever, grantsPerSecond: seconds ? Math.max(0, (ever - was.ever) / seconds) : 0, refusedPerSecond: seconds ? Math.max(0, (refused - was.refusedAll) / seconds) : 0 };
        }
        before.current = next;
        if (!over) rates.value = next;
      }
      if (!over) timer = setTimeout(load, 2000);
    };
    load();
    return () => ((over = true), clearTimeout(timer));
  }, [ids]);
  return rates.value;
}

// How often the dead letters of webhooks are counted, in milliseconds, and up to how many of each, and of refunds.
const countEvery = 30_000, countMost = 100;

// How often refunds that are due are counted, in milliseconds: the admin log has each look at orders.
const dueEvery = 300_000;

/** How many deliveries were given up, by endpoint. @param {any} hooks */
function useDead(hooks) {
  const dead = useSignal(/** @type {Record<string, number>} */ ({}));
  const ids = (hooks?.items || []).slice(0, watched).map((/** @type {any} */ e) => e.id).join(" ");
  useEffect(() => {
    if (!ids) return;
    let over = false;
    const count = async () => {
      if (document.hidden) return;
      const path = (/** @type {string} */ id) => "/v1/webhook-endpoints/" + encodeURIComponent(id) + "/deliveries?status=failed&limit=" + countMost;
      // Endpoints may be deleted meanwhile: their letters count for nothing then.
      const all = await Promise.all(ids.split(" ").map((/** @type {string} */ id) => get(path(id)).then((l) => [id, l.items.length], () => [id, 0])));
      if (!over) dead.value = Object.fromEntries(all);
    };
    count();
    const timer = setInterval(count, countEvery);
    return () => ((over = true), clearInterval(timer));
  }, [ids]);
  return dead.value;
}

/** The same members with other numbers. @param {Record<string, number>} of @param {(name: string, n: number) => number} make */
const each = (of, make) => Object.fromEntries(Object.entries(of || {}).map(([k, n]) => [k, make(k, n)]));

/** @param {Record<string, number>} by */
const sum = (by) => Object.values(by || {}).reduce((a, b) => a + b, 0);

export function Overview() {
  const list = useGet("/v1/campaigns?limit=100", { every, read: useMemo(reader, []) });
  const health = useGet("/readyz", { every: 5000 });
  const sinks = useGet("/v1/event-sinks", { every: 15_000 }), hooks = useGet(may("admin") ? "/v1/webhook-endpoints" : null, { every: 15_000 });
  const due = useGet("/v1/claims?refund_due=true&limit=" + countMost, { every: dueEvery });
  const dead = useDead(hooks.value), all = list.value?.items || [];
  const live = all.filter(isLive);
  const rates = useRates(live);
  const grants = Object.values(rates).reduce((a, r) => a + r.grantsPerSecond, 0), refusals = Object.values(rates).reduce((a, r) => a + r.refusedPerSecond, 0);
  const h = health.value;
  return html`<${Head} title=${t("screen.overview")}><${Link} class="button" to="/rush">${t("screen.rush")}<//>${may("editor") && html`<${Link} class="button primary" to="/campaigns/new">${t("campaign.new")}<//>`}<//>
    <${Fault} text=${list.fault || health.fault} again=${list.again} />
    <div class="tiles">
      <${Tile} label=${t("tile.live")} value=${number(live.length)} />
      <${Tile} label=${t("tile.grants")} value=${short(grants)} detail=${t("per.second")} />
      <${Tile} label=${t("tile.refusals")} value=${short(refusals)} detail=${t("per.second.node")} />
      <${Tile} label=${t("tile.lag")} value=${h ? brief(h.settle_lag_ms) : "–"} detail=${h && t("tile.backlog", { n: number(h.journal_backlog) })} kind=${h && h.settle_lag_ms > 5000 ? "warn" : ""} />
      <${Tile} label=${t("tile.health")} value=${h ? t(h.ready ? "ready" : "ready.not") : "–"} detail=${h && t("level." + h.durability)} kind=${h && !h.ready ? "bad" : "good"} />
    </div>
    ${live.length > watched && html`<p class="note" id="measured">${t("overview.measured", { most: number(watched), n: number(live.length) })}</p>`}
    ${[list, health, sinks, due].some((x) => !x.value && !x.fault) ? html`<p class="muted loading" role="status">${t("loading")}</p>` : html`<${Needs} campaigns=${all} health=${h} sinks=${sinks.value} hooks=${hooks.value} dead=${dead} due=${due.value?.items.length || 0} />
    <section><h2>${t("overview.live")}</h2>
    <${Table} name=${t("overview.live")} rows=${list.value ? live : null} empty=${t("overview.none")} columns=${[
      { title: t("campaign"), show: (/** @type {any} */ c) => html`<${Link} to=${"/campaigns/" + encodeURIComponent(c.id)}>${c.title}<//>` },
      { title: t("kind"), show: (/** @type {any} */ c) => t("kind." + c.kind) },
      { title: t("standing"), show: (/** @type {any} */ c) => html`<${Standing} c=${c} remaining=${rates[c.id]?.remaining ?? c.remaining} />` },
      { title: t("sold"), show: (/** @type {any} */ c) => html`<${Stock} s=${rates[c.id]} />` },
      { title: t("tile.grants"), number: true, show: (/** @type {any} */ c) => (rates[c.id] ? short(rates[c.id].grantsPerSecond) : "–") },
      { title: t("tile.refusals"), number: true, show: (/** @type {any} */ c) => (rates[c.id] ? short(rates[c.id].refusedPerSecond) : "–") },
    ]} /></section>
    <${Reasons} of=${Object.values(rates)} />`}`;
}

/** Why claims of the live campaigns are refused, the most frequent reason first. @param {{of: any[]}} props */
function Reasons({ of }) {
  const all = /** @type {Record<string, number>} */ ({}), rate = /** @type {Record<string, number>} */ ({});
  for (const s of of) {
    for (const [reason, n] of Object.entries(s.refused)) all[reason] = (all[reason] || 0) + Number(n);
    for (const [reason, n] of Object.entries(s.refusedBy)) rate[reason] = (rate[reason] || 0) + Number(n);
  }
  const rows = Object.entries(all).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
  return html`<section class="card" id="reasons"><h2>${t("refused.why")}</h2>${rows.length ? html`<dl class="bars">${rows.map(([reason, n]) => html`<div key=${reason} data-reason=${reason}><dt>${t("reason." + reason)}</dt>
    <dd>${number(n)} <small class="muted">${short(rate[reason] || 0)} ${t("per.second")}</small></dd></div>`)}</dl>` : html`<p class="muted">${t("refused.none")}</p>`}<p class="muted"><small>${t("refused.node")}</small></p></section>`;
}

/** How much of a stock is gone. @param {{s: any}} props */
function Stock({ s }) {
  if (!s) return "–";
  return html`<span class="stockline"><meter min="0" max=${Math.max(1, s.stock)} value=${s.granted} aria-label=${t("sold")}></meter> ${number(s.granted)} / ${number(s.stock)} <small class="muted">${percent(s.stock ? s.granted / s.stock : 0)}</small></span>`;
}

/** What somebody has to look at. @param {{campaigns: any[], health: any, sinks: any, hooks: any, dead: Record<string, number>, due: number}} props */
function Needs({ campaigns, health, sinks, hooks, dead, due }) {
  const list = /** @type {{kind: string, what: any, why: string}[]} */ ([]);
  for (const [name, d] of Object.entries(health?.dependencies || {})) {
    const dep = /** @type {any} */ (d);
    if (!dep.ok) list.push({ kind: "bad", what: html`<${Link} to="/health">${t("dependency." + name)}<//>`, why: dep.error });
    else if (dep.warning) list.push({ kind: "warn", what: html`<${Link} to="/health">${t("dependency." + name)}<//>`, why: dep.warning });
  }
  for (const c of campaigns) {
    const link = html`<${Link} to=${"/campaigns/" + encodeURIComponent(c.id)}>${c.title}<//>`;
    if (c.low_since_at && standing(c) !== "ended") list.push({ kind: "warn", what: link, why: t("need.low", { n: number(c.remaining) }) });
    if (c.funds?.problem) list.push({ kind: "bad", what: link, why: c.funds.problem });
    if (c.state === "paused") list.push({ kind: "warn", what: link, why: t("need.paused") });
  }
  if (due) list.push({ kind: "warn", what: html`<${Link} to="/orders?refund_due=true">${t("need.due")}<//>`, why: t(due < countMost ? "need.due.n" : "need.due.many", { n: number(due) }) });
  for (const s of sinks?.items || []) if (!s.ok) list.push({ kind: "bad", what: html`<${Link} to="/events">${s.name}<//>`, why: s.problem || t("need.sink") });
  for (const e of hooks?.items || []) {
    const open = "/events?open=" + encodeURIComponent(e.id);
    if (e.disabled || e.failing_since) list.push({ kind: e.disabled ? "warn" : "bad", what: html`<${Link} to=${open}>${e.url}<//>`, why: e.disabled_reason || t("need.hook") });
    if (dead[e.id]) list.push({ kind: "warn", what: html`<${Link} to=${open + "&delivery=failed"}>${e.url}<//>`, why: t(dead[e.id] < countMost ? "need.dead" : "need.dead.many", { n: number(dead[e.id]) }) });
  }
  return html`<section class="needs"><h2>${t("needs")}</h2>${list.length
    ? html`<ul>${list.map((n) => html`<li><span class=${"dot " + n.kind}></span> <b>${n.what}</b> <span>${n.why}</span></li>`)}</ul>`
    : html`<p class="muted"><span class="dot ok"></span> ${t("needs.none")}</p>`}
    <ul class="row dependencies" aria-label=${t("dependencies")}>${Object.entries(health?.dependencies || {}).map(([id, d]) => {
      const dep = /** @type {any} */ (d);
      return html`<li key=${id} data-dependency=${id}><span class=${"dot " + (!dep.ok ? "bad" : dep.warning ? "warn" : "ok")}></span> ${t("dependency." + id)}<span class="unseen"> ${t(dep.ok ? "ok" : "ready.not")}</span></li>`;
    })}</ul></section>`;
}
