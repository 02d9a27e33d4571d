// @ts-check
// A rush, simulated on a campaign of its own, and every promise checked after it.
import { html, useEffect, useRef, useSignal } from "../lib/html.js";
import { get } from "../lib/api.js";
import { number, percent } from "../lib/format.js";
import { follow } from "../lib/stream.js";
import { has, language, t } from "../lib/text.js";
import { brief, short } from "./figures.js";
import { Promises, Sums, useMeasures } from "./campaign.js";
import { Chart } from "./chart.js";
import { ask, at, Link } from "./route.js";
import { change, Fault, faultsOf, Field, Head, save, saying, Tile, who } from "./ui.js";
import { report } from "./report.js";

const phases = ["connecting", "pressing", "repeating", "reading", "crediting"];

export function Rush() {
  const id = at.value.query.get("id");
  if (!who.value.rehearsals) return html`<${Head} title=${t("screen.rush")} /><p class="note warn">${t("rush.off")}</p>`;
  return html`<${Head} title=${t("screen.rush")}>${id && html`<button type="button" onClick=${() => ask({ id: "" })}>${t("rush.another")}</button>`}<//>
    <p class="muted">${t("rush.text")}</p>${id ? html`<${Running} id=${id} key=${id} />` : html`<${Form} />`}`;
}

function Form() {
  const fault = useSignal(""), faults = useSignal(/** @type {Record<string, string>} */ ({})), busy = useSignal(false);
  const start = async (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    const v = Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (e.target)));
    busy.value = true;
    try {
      const r = await change("POST", "/v1/rehearsals", { users: Number(v.users), requests: Number(v.requests), stock: Number(v.stock), kind: v.kind, through: v.through });
      ask({ id: r.id });
    } catch (err) {
      fault.value = saying(err);
      faults.value = faultsOf(err);
    }
    busy.value = false;
  };
  const count = (/** @type {string} */ name, /** @type {number} */ value, /** @type {number} */ max) => html`<${Field} label=${t("rush." + name)} fault=${faults.value["/" + name]}>
    <input name=${name} type="number" min="1" max=${max} defaultValue=${value} required /><//>`;
  return html`<form class="form card" onSubmit=${start}><div class="grid">${count("users", 2000, 20000)}${count("requests", 5000, 50000)}${count("stock", 200, 1000000)}
    <${Field} label=${t("kind")}><select name="kind">${["sale", "coupon", "redpacket"].map((k) => html`<option value=${k}>${t("kind." + k)}</option>`)}</select><//>
    <${Field} label=${t("rush.through")}><select name="through"><option value="http">HTTP</option><option value="ws">WebSocket</option></select><//></div>
    <${Fault} text=${fault.value} /><div class="row"><button class="primary" id="start" disabled=${busy.value}>${t("rush.start")}</button></div></form>`;
}

/** @param {{id: string}} props */
function Running({ id }) {
  const view = useSignal(/** @type {any} */ (null)), lost = useSignal(false), last = useRef(/** @type {any} */ (null)), atEnd = useRef(/** @type {any} */ (undefined));
  const campaign = view.value?.campaign_id, over = !!view.value && view.value.state !== "running";
  useEffect(() => {
    if (over) return;
    return follow("/v1/rehearsals/" + encodeURIComponent(id) + "/stream", ["rehearsal"], (v) => ((view.value = v), (lost.value = false)), { lost: () => (lost.value = true) });
  }, [id, over]);
  // A stream speaks the language of the browser; what was judged is asked for in that of the page.
  useEffect(() => {
    if (over) get("/v1/rehearsals/" + encodeURIComponent(id)).then((v) => (view.value = v), () => {});
  }, [id, over, language.value]);
  // The promises are judged when everything is in the ledger; the bars follow until they say so. The measure that there
  // was at the end may be older than the rush: what comes after it counts.
  const before = last.current;
  if (over && atEnd.current === undefined) atEnd.current = before;
  const settled = over && before !== atEnd.current && before.sums.agree !== null && before.sums.on_the_way === 0;
  const { measure: m, data } = useMeasures(campaign || "", !!campaign && !settled), v = view.value, r = v?.report;
  last.current = m;
  if (!v) return html`<p class="muted" role="status">${t(lost.value ? "lost.connection" : "loading")}</p>`;
  return html`<section class="card" id="rush" data-state=${v.state}>
      <h2>${over ? t(v.state === "failed" ? "rush.failed" : r?.ok ? "rush.held" : "rush.broken") : t("rush.phase." + (v.phase || "connecting"))}
        <span class=${"tag " + (!over ? "warn" : v.state === "done" && r?.ok ? "good" : "bad")}>${t("rush.state." + v.state)}</span></h2>
      ${v.error && html`<p class="note bad">${v.error}</p>`}
      ${!over && html`<ol class="phases">${phases.slice(0, v.request.kind === "redpacket" ? 5 : 4).map((p) => html`<li class=${p === v.phase ? "now" : phases.indexOf(p) < phases.indexOf(v.phase) ? "done" : ""}>${t("rush.phase." + p)}</li>`)}</ol>
        <label class="wide"><span class="unseen">${t("rush.progress")}</span><progress max=${Math.max(1, v.total)} value=${v.done}></progress></label><p class="muted">${number(v.done)} / ${number(v.total)}</p>`}
      <p class="muted">${t("rush.asked", { users: number(v.request.users || 2000), requests: number(v.request.requests || 5000), stock: number(v.request.stock || 200) })} ${campaign && html`<${Link} to=${"/campaigns/" + encodeURIComponent(campaign)}>${campaign}<//>`}</p>
    </section>
    ${m && html`<${Falling} m=${m} data=${data} /><${Sums} sums=${m.sums} stock=${m.stats.stock} />`}
    ${r && html`<${Results} r=${r} />`}
    <div class="two">${["answers", "server"].map((by) => v.promises.some((/** @type {any} */ p) => p.witness === by) && html`<${Promises} key=${by} title=${t("promises." + by)} list=${v.promises.filter((/** @type {any} */ p) => p.witness === by)} />`)}</div>
    ${r && html`<div class="row"><button type="button" onClick=${() => save("rehearsal-" + r.run + ".html", "text/html", report(v))}>${t("rush.keep")}</button></div>`}`;
}

/** The stock as it falls, and what is answered a second. @param {{m: any, data: any[][]}} props */
function Falling({ m, data }) {
  const s = m.stats, refused = Object.values(m.per_second.refused).reduce((a, b) => a + Number(b), 0);
  return html`<div class="tiles" id="falling"><${Tile} label=${t("remaining")} value=${html`<span id="remaining">${number(s.remaining)}</span>`} detail=${t("of.stock", { n: number(s.stock) })} />
      <${Tile} label=${t("granted")} value=${number(s.granted)} detail=${percent(s.stock ? s.granted / s.stock : 0)} />
      <${Tile} label=${t("tile.grants")} value=${short(m.per_second.granted)} detail=${t("per.second")} /><${Tile} label=${t("tile.refusals")} value=${short(refused)} detail=${t("per.second")} /></div>
    <${Chart} label=${t("chart.stock")} data=${[data[0], data[1]]} lines=${[{ label: t("remaining"), colour: "--brand", fill: true }]} />`;
}

/** @param {{r: any}} props */
function Results({ r }) {
  const all = r.latencies.find((/** @type {any} */ l) => l.of === "all");
  return html`<div class="tiles"><${Tile} label=${t("rush.answers")} value=${short(r.per_second)} detail=${t("per.second")} />
      <${Tile} label=${t("rush.took")} value=${brief(r.load_ms)} />${all && html`<${Tile} label=${t("latency.p99")} value=${brief(all.p99_ms)} detail=${t("latency.rest", { p50: brief(all.p50_ms), p90: brief(all.p90_ms) })} />`}</div>
    <section class="card"><h2>${t("rush.outcomes")}</h2><dl class="bars">${r.outcomes.map((/** @type {any} */ o) => html`<div><dt>${outcome(o.outcome)}</dt>
      <dd>${number(o.count)} <small class="muted">${percent(o.share)}</small></dd></div>`)}</dl></section>`;
}

/** @param {string} word */
export const outcome = (word) => (has("reason." + word) ? t("reason." + word) : has("outcome." + word.replace(/\W+/g, "_")) ? t("outcome." + word.replace(/\W+/g, "_")) : word);

