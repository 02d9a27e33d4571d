// @ts-check
// Numbers and times as the console alone shows them, with few digits or exactly.
import { locale, once } from "../lib/format.js";

/** A number with few digits, 1.2K. @param {number} n */
export const short = (n) => once("s", () => new Intl.NumberFormat(locale(), { notation: "compact", maximumFractionDigits: 1 })).format(n);

/** The day alone. @param {string|number|Date} at */
export const date = (at) => once("a", () => new Intl.DateTimeFormat(locale(), { dateStyle: "medium" })).format(new Date(at));

/** With seconds. @param {string|number|Date} at */
export const exact = (at) => once("x", () => new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" })).format(new Date(at));

/** The time of a day. @param {string|number|Date} at */
export const clock = (at) => once("c", () => new Intl.DateTimeFormat(locale(), { timeStyle: "medium", hourCycle: "h23" })).format(new Date(at));

/** A short time with its unit, for latencies and ages. @param {number} ms */
export function brief(ms) {
  const [unit, size] = ms < 1000 ? ["millisecond", 1] : ["second", 1000];
  return once("b" + unit, () => new Intl.NumberFormat(locale(), { style: "unit", unit: /** @type {string} */ (unit), unitDisplay: "short", maximumFractionDigits: 1 })).format(ms / Number(size));
}
