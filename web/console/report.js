// @ts-check
// The report of a rehearsal as a page of its own, which needs nothing else.
import { number, percent } from "../lib/format.js";
import { language, t } from "../lib/text.js";
import { brief, exact } from "./figures.js";
import { outcome } from "./rush.js";

/** @param {unknown} v */
const safe = (v) => String(v).replace(/[&<>"']/g, (c) => "&#" + c.charCodeAt(0) + ";");

/** @param {string[][]} rows @param {string[]} head */
const table = (rows, head) => `<table><thead><tr>${head.map((h) => `<th>${safe(h)}</th>`).join("")}</tr></thead><tbody>${rows.map((r) => `<tr>${r.map((c) => `<td>${safe(c)}</td>`).join("")}</tr>`).join("")}</tbody></table>`;

/** @param {any} v */
export function report(v) {
  const r = v.report, title = t("rush.report", { run: r.run });
  const finding = (/** @type {string} */ f) => t("finding." + (f === "held" ? "good" : f === "broken" ? "bad" : "warn"));
  return `<!doctype html><html lang="${language.value === "zh" ? "zh-CN" : "en"}"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${safe(title)}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse;width:100%;margin:1rem 0}td,th{text-align:start;padding:.35rem .6rem;border-bottom:1px solid #ccc}</style>
<h1>${safe(title)}</h1><p>${safe(t(r.ok ? "rush.held" : "rush.broken"))} ${safe(exact(v.started_at))}</p>
<p>${safe(t("rush.asked", { users: number(r.users), requests: number(r.requests), stock: number(r.stock) }))}</p>
<h2>${safe(t("promises"))}</h2>${table(r.promises.map((/** @type {any} */ p) => [finding(p.finding), t("promise." + p.promise.replace(/\W+/g, "_")), p.detail]), [t("finding"), t("promise"), t("detail")])}
<h2>${safe(t("rush.outcomes"))}</h2>${table(r.outcomes.map((/** @type {any} */ o) => [outcome(o.outcome), number(o.count), percent(o.share)]), [t("outcome"), t("count"), t("share")])}
<h2>${safe(t("latency"))}</h2>${table(r.latencies.map((/** @type {any} */ l) => [t("latency.of." + l.of), number(l.count), brief(l.p50_ms), brief(l.p90_ms), brief(l.p99_ms), brief(l.max_ms)]), ["", t("count"), "p50", "p90", "p99", t("latency.max")])}</html>`;
}
