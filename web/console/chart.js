// @ts-check
// Charts by uPlot, which is loaded when the first one is drawn.
import { html, useEffect, useRef } from "../lib/html.js";
import { clock, short } from "./figures.js";

// The least span that a chart shows, in seconds: a first point is no line.
const least = 60;

/** @type {Promise<any>|null} */
let loading = null;

function load() {
  loading ||= new Promise((done, fail) => {
    const at = (/** @type {string} */ name) => new URL("../vendor/" + name, import.meta.url).href;
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: at("uPlot.min.css") });
    const script = Object.assign(document.createElement("script"), { src: at("uPlot.iife.min.js"), onerror: fail, onload: () => done(/** @type {any} */ (window).uPlot) });
    document.head.append(style, script);
  });
  return loading;
}

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * A chart over time. data has the seconds first, then each line's values; the array is new when it has changed.
 * @param {{label: string, data: any[][], lines: {label: string, colour: string, fill?: boolean}[], height?: number, zero?: boolean}} props
 */
export function Chart({ label, data, lines, height = 180 }) {
  const box = /** @type {{current: HTMLDivElement|null}} */ (useRef(null)), plot = /** @type {{current: any}} */ (useRef(null)), latest = useRef(data);
  latest.current = data;
  const names = lines.map((l) => l.label).join("|");
  useEffect(() => {
    let gone = false, observer = /** @type {ResizeObserver|null} */ (null);
    load().then((uPlot) => {
      if (gone || !box.current) return;
      const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px system-ui" };
      plot.current = new uPlot({
        width: box.current.clientWidth, height, cursor: { show: false }, legend: { show: false },
        scales: { x: { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => Number.isFinite(high) && high > 0 ? [Math.min(low, high - least), high] : [Date.now() / 1000 - least, Date.now() / 1000] }, y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ max) => [0, Math.max(1, max * 1.1)] } },
        axes: [{ ...axis, space: 90, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((s) => clock(s * 1000)) }, { ...axis, size: 56, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((v) => short(v)) }],
        series: [{}, ...lines.map((l) => ({ label: l.label, stroke: colour(l.colour), width: 2, fill: l.fill ? colour(l.colour) + "22" : undefined, points: { show: false } }))],
        // What came while the chart was loaded is part of it.
      }, latest.current, box.current);
      observer = new ResizeObserver(() => box.current && plot.current?.setSize({ width: box.current.clientWidth, height }));
      observer.observe(box.current);
    }, () => {});
    return () => {
      gone = true;
      observer?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [names]);
  useEffect(() => plot.current?.setData(data), [data]);
  return html`<figure class="chart"><figcaption>${label}</figcaption>
    <div class="key">${lines.map((l, i) => html`<span><i style=${{ background: "var(" + l.colour + ")" }}></i>${l.label} <b>${short(data[i + 1]?.at(-1) ?? 0)}</b></span>`)}</div><div ref=${box} role="img" aria-label=${label}></div></figure>`;
}
