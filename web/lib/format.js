// @ts-check
// Money, numbers and times as people of a language write them.
import { language } from "./text.js";

/** @typedef {{amount: number, currency: string}} Money */

const made = new Map();

/** What was made under a key for the language of the page. @template T @param {string} key @param {() => T} make @returns {T} */
export function once(key, make) {
  const at = language.value + key;
  if (!made.has(at)) made.set(at, make());
  return made.get(at);
}

/** The language of the page, as Intl names it. */
export const locale = () => (language.value === "zh" ? "zh-CN" : "en");

// The currencies of ISO 4217 whose digits behind the point are not two, as the server has them: Intl has fewer for those
// whose small coins went out of use.
const unusual = /** @type {[number, string][]} */ ([[0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"], [3, "BHD IQD JOD KWD LYD OMR TND"], [4, "CLF UYW"]]);

/** How many digits of a currency stand behind the point. @param {string} currency */
export const decimals = (currency) => unusual.find(([, all]) => all.split(" ").includes(currency))?.[0] ?? 2;

/** The digits of an amount, exactly. @param {Money} m */
export function digits(m) {
  const d = decimals(m.currency), sign = m.amount < 0 ? "-" : "";
  const all = String(Math.abs(m.amount)).padStart(d + 1, "0");
  return sign + (d ? all.slice(0, -d) + "." + all.slice(-d) : all);
}

/** @param {Money|null|undefined} m */
export function money(m) {
  if (!m) return "";
  const d = decimals(m.currency), f = once("m" + m.currency, () => new Intl.NumberFormat(locale(), { style: "currency", currency: m.currency, minimumFractionDigits: d, maximumFractionDigits: d }));
  // As text, since a double would round what is near 2^53.
  return f.format(/** @type {any} */ (digits(m)));
}

/** Reads an amount that people wrote; null when it is none. Commas and spaces stand before three digits each, as the command
 * line takes them: 12,50 is nobody's 1,250. @param {string} text @param {string} currency */
export function minor(text, currency) {
  const d = decimals(currency), m = /^(\d{1,3}(?:[\s,，]\d{3})+|\d+)(?:\.(\d+))?$/.exec(text.trim());
  if (!m || (m[2] || "").length > d) return null;
  const n = Number(m[1].replace(/\D/g, "") + (m[2] || "").padEnd(d, "0"));
  return Number.isSafeInteger(n) ? n : null;
}

/** @param {number} n */
export const number = (n) => once("n", () => new Intl.NumberFormat(locale())).format(n);

/** A share of one, as a percentage. @param {number} n */
export const percent = (n) => once("p", () => new Intl.NumberFormat(locale(), { style: "percent", maximumFractionDigits: 1 })).format(n);

/** @param {string|number|Date} at */
export const time = (at) => once("t", () => new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" })).format(new Date(at));

const units = /** @type {Record<string, number>} */ ({ ns: 1e-6, us: 1e-3, "µs": 1e-3, ms: 1, s: 1e3, m: 6e4, h: 36e5 });

/** The milliseconds of a duration such as 1h30m. @param {string|null|undefined} text */
export function milliseconds(text) {
  let ms = 0;
  for (const [, n, unit] of (text || "").matchAll(/([\d.]+)(ns|us|µs|ms|s|m|h)/g)) ms += Number(n) * units[unit];
  return ms;
}

/** A span as people say it: 15 minutes. @param {number} ms */
export function span(ms) {
  for (const [unit, size] of /** @type {[string, number][]} */ ([["day", 864e5], ["hour", 36e5], ["minute", 6e4], ["second", 1e3]])) {
    if (ms >= size || unit === "second") {
      const f = once("u" + unit, () => new Intl.NumberFormat(locale(), { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 1 }));
      return f.format(Math.round((ms / size) * 10) / 10);
    }
  }
  return "";
}

/** Minutes and seconds that are left, 1:59. @param {number} ms */
export function left(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000)), two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const h = Math.floor(s / 3600);
  return (h ? h + ":" + two(Math.floor(s / 60) % 60) : String(Math.floor(s / 60))) + ":" + two(s % 60);
}

/** A span in whole days, hours, minutes and seconds. @param {number} ms */
export function parts(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return { days: Math.floor(s / 86400), hours: Math.floor(s / 3600) % 24, minutes: Math.floor(s / 60) % 60, seconds: s % 60 };
}
