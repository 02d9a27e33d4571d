// @ts-check
// Tiers of prices and limits of claims as lines of text, as the wizard's form has them.
import { milliseconds } from "../lib/format.js";

const lines = (/** @type {string} */ text) => text.split("\n").map((l) => l.trim()).filter(Boolean);

/**
 * Reads lines with a pattern; bad is the first line that is none.
 * @template T
 * @param {string} text @param {RegExp} pattern @param {(m: RegExpExecArray) => T} make
 * @returns {{list: T[], bad: string}}
 */
function read(text, pattern, make) {
  const list = [];
  for (const line of lines(text)) {
    const m = pattern.exec(line);
    if (!m) return { list, bad: line };
    list.push(make(m));
  }
  return { list, bad: "" };
}

/** Tiers: "2: 50" for half the price from the second unit on. @param {string} text */
export const tiersOf = (text) => read(text, /^(\d+)\s*[:：]\s*(\d+)\s*%?$/, (m) => ({ from_unit: Number(m[1]), percent: Number(m[2]) }));

/** @param {any[]|undefined} tiers */
export const tierLines = (tiers) => (tiers || []).map((x) => x.from_unit + ": " + x.percent).join("\n");

const limit = /^(user|address|device|campaign)\s+(\d+)(?:\/([\d.a-zµ]+))?(?:\s+(token|leaky))?(?:\s+burst\s+(\d+))?(?:\s+wait\s+([\d.a-zµ]+))?$/;

/** Limits: "user 5/1s", "campaign 500/1m leaky burst 100 wait 2s". @param {string} text */
export const limitsOf = (text) => read(text, limit, ([, per, n, every, bucket, burst, wait]) => ({ per, bucket, rate: Number(n), every, burst: burst ? Number(burst) : undefined, max_wait: wait }));

/** A duration without what is zero in it: 1m0s is 1m. @param {string} d */
export const brief = (d) => d.replace(/([hm])0s$/, "$1").replace(/h0m$/, "h");

/** @param {any[]|undefined} limits */
export const limitLines = (limits) => (limits || []).map((l) => l.per + " " + l.rate + (milliseconds(l.every) ? "/" + brief(l.every) : "") + (l.bucket ? " " + l.bucket : "") + (l.burst ? " burst " + l.burst : "") + (milliseconds(l.max_wait) ? " wait " + brief(l.max_wait) : "")).join("\n");
