// @ts-check
// The server: its dependencies, what doctor finds, and the settings that count.
import { html, useSignal } from "../lib/html.js";
import { number } from "../lib/format.js";
import { t } from "../lib/text.js";
import { brief } from "./figures.js";
import { ask, at } from "./route.js";
import { AllCSV, Fault, Filter, Filters, Head, may, Table, Tile, useGet } from "./ui.js";

export function Health() {
  const got = useGet("/readyz", { every: 3000 }), alive = useGet("/healthz"), h = got.value;
  return html`<${Head} title=${t("screen.health")}><a class="button" href="/docs">${t("docs")}</a><a class="button" href="/metrics">${t("metrics")}</a><//><${Fault} text=${got.fault} again=${got.again} />
    ${h && html`<div class="tiles"><${Tile} label=${t("tile.health")} value=${t(h.ready ? "ready" : "ready.not")} kind=${h.ready ? "good" : "bad"} />
      <${Tile} label=${t("durability")} value=${t("level." + h.durability)} detail=${t("level." + h.durability + ".text")} />
      <${Tile} label=${t("tile.lag")} value=${brief(h.settle_lag_ms)} detail=${t("tile.backlog", { n: number(h.journal_backlog) })} />
      ${alive.value && html`<${Tile} label=${t("version")} value=${alive.value.version} />`}</div>
    <section><h2>${t("dependencies")}</h2><${Table} name=${t("dependencies")} rows=${Object.entries(h.dependencies).map(([id, d]) => ({ id, .../** @type {any} */ (d) }))} empty="" columns=${[
      { title: t("dependency"), show: (/** @type {any} */ d) => t("dependency." + d.id) },
      { title: t("standing"), show: (/** @type {any} */ d) => html`<span class="standing"><span class=${"dot " + (!d.ok ? "bad" : d.warning ? "warn" : "ok")}></span> ${t(!d.ok ? "ready.not" : "ok")}</span>` },
      { title: t("detail"), show: (/** @type {any} */ d) => d.error || d.warning || html`<span class="muted">–</span>` },
    ]} /></section>`}
    ${may("admin") && html`<${Doctor} /><${Settings} />`}`;
}

const dots = /** @type {Record<string, string>} */ ({ OK: "ok", WARN: "warn", FAIL: "bad" });
const areas = ["settings", "machine", "engine", "ledger"];

/** What doctor finds; it is asked for, since it tries databases and disks. */
function Doctor() {
  const on = useSignal(false), got = useGet(on.value ? "/v1/doctor" : null), all = got.value?.items;
  const count = (/** @type {string} */ s) => number(all.filter((/** @type {any} */ f) => f.standing === s).length);
  const rows = all ? [...all].sort((a, b) => areas.indexOf(a.area) - areas.indexOf(b.area)) : null, stands = (/** @type {any} */ f) => t("doctor.is." + f.standing.toLowerCase());
  const columns = [
    { title: t("standing"), show: (/** @type {any} */ f) => html`<span class="standing"><span class=${"dot " + dots[f.standing]}></span> ${stands(f)}</span>`, text: stands },
    { title: t("doctor.area"), show: (/** @type {any} */ f) => t("doctor.of." + f.area) },
    { title: t("doctor.subject"), show: (/** @type {any} */ f) => f.subject },
    { title: t("doctor.found"), show: (/** @type {any} */ f) => html`${f.found}${f.wanted && html`<div class="muted">${t("doctor.wanted")} ${f.wanted}</div>`}${f.remedy && html`<div class="muted">${t("doctor.remedy")} ${f.remedy}</div>`}`,
      text: (/** @type {any} */ f) => [f.found, f.wanted && t("doctor.wanted") + " " + f.wanted, f.remedy && t("doctor.remedy") + " " + f.remedy].filter(Boolean).join(" ") },
  ];
  return html`<section id="doctor"><div class="row title"><h2>${t("doctor")}</h2><div class="grow"></div><button type="button" data-act="examine" onClick=${() => (on.value ? got.again() : (on.value = true))}>${t(on.value ? "doctor.again" : "doctor.do")}</button></div>
    ${!on.value ? html`<p class="muted">${t("doctor.text")}</p>` : html`<${Fault} text=${got.fault} again=${got.again} />
    ${all && html`<p class="muted" role="status">${t("doctor.sum", { ok: count("OK"), warn: count("WARN"), fail: count("FAIL") })}</p>`}
    <${Table} name=${t("doctor")} rows=${rows} empty=${t("doctor.none")} columns=${columns} />
    ${rows && html`<div class="row pager"><div class="grow"></div><${AllCSV} name="doctor.csv" columns=${columns} rows=${rows} /></div>`}`}</section>`;
}

/** The settings of this node with their sources. */
function Settings() {
  const got = useGet("/v1/settings"), q = at.value.query, word = (q.get("setting") || "").toLowerCase(), own = q.get("every") !== "1";
  const rows = got.value?.items.filter((/** @type {any} */ s) => (!word || (s.key + " " + s.value).toLowerCase().includes(word)) && (!own || s.from !== "default")) ?? null;
  const columns = [
    { title: t("setting"), show: (/** @type {any} */ s) => html`<code>${s.key}</code>`, text: (/** @type {any} */ s) => s.key },
    { title: t("setting.value"), show: (/** @type {any} */ s) => (s.value === "" ? html`<span class="muted">–</span>` : s.value), text: (/** @type {any} */ s) => s.value },
    { title: t("setting.from"), show: (/** @type {any} */ s) => (s.from === "default" ? html`<span class="muted">${t("setting.default")}</span>` : html`<code>${s.from}</code>`), text: (/** @type {any} */ s) => (s.from === "default" ? t("setting.default") : s.from) },
  ];
  return html`<section id="settings"><h2>${t("settings")}</h2><${Filters}><${Filter} label=${t("search")} value=${q.get("setting") || ""} change=${(/** @type {string} */ v) => ask({ setting: v })} />
      <${Filter} label=${t("setting.from")} value=${own ? "" : "1"} change=${(/** @type {string} */ v) => ask({ every: v })} options=${[["", t("setting.own")], ["1", t("all")]]} /><//>
    <${Fault} text=${got.fault} again=${got.again} />
    <${Table} name=${t("settings")} rows=${rows && rows.map((/** @type {any} */ s) => ({ ...s, id: s.key }))} empty=${t("settings.none")} columns=${columns} />
    ${rows && html`<div class="row pager"><div class="grow"></div><${AllCSV} name="settings.csv" columns=${columns} rows=${rows} /></div>`}</section>`;
}
