// @ts-check
// The draw of a lottery, again: the rule dibs-lottery-1 of docs/LOTTERY.md, as `dibs lottery verify` follows it.
import { hash } from "../lib/sha256.js";

export const rule = "dibs-lottery-1";

/**
 * @typedef {{seed: string, seed_hash: string, list_hash: string, public_value?: string|null, key: string, cutoff: string, winners: number, entries: number}} Published
 * @typedef {{what: "seed"|"list"|"entries"|"key"|"winners"|"cutoff", published: string, found: string}} Difference
 */

const sum = /^[0-9a-f]{64}$/;

// So many hashes are made before the page may do something else: some 10 ms of them.
const batch = 1000;

/** The registration of a user, as the list has it. @param {string} campaign @param {string} user @param {string} nonce */
export const entryOf = (campaign, user, nonce) => hash(campaign + "\n" + user + "\n" + nonce + "\n");

/**
 * Draws a closed list again, and compares with what was published. It throws for a list that is none.
 * @param {string} list an entry a line, in ascending order
 * @param {Published} p
 * @param {(share: number) => void} [progress] is told how much is done, from 0 to 1
 * @returns {Promise<{entries: string[], winners: string[], differences: Difference[]}>}
 */
export async function drawAgain(list, p, progress = () => {}) {
  const entries = list.split("\n"), differences = /** @type {Difference[]} */ ([]);
  if (entries.at(-1) === "") entries.pop();
  entries.forEach((e, i) => {
    if (!sum.test(e) || (i > 0 && e <= entries[i - 1])) throw new RangeError("line " + (i + 1));
  });
  const differ = (/** @type {Difference["what"]} */ what, /** @type {unknown} */ published, /** @type {unknown} */ found) => {
    if (String(published) !== String(found)) differences.push({ what, published: String(published), found: String(found) });
  };
  if (!sum.test(p.seed)) return { entries, winners: [], differences: [{ what: "seed", published: p.seed, found: "" }] };
  const listed = hash(entries.map((e) => e + "\n").join(""));
  differ("seed", p.seed_hash, hash(p.seed));
  differ("list", p.list_hash, listed);
  differ("entries", p.entries, entries.length);
  const key = hash(p.seed + "\n" + listed + "\n" + (p.public_value || "") + "\n");
  differ("key", p.key, key);
  if (p.winners < 1) differences.push({ what: "winners", published: String(p.winners), found: "1" });
  const tickets = /** @type {{ticket: string, entry: string}[]} */ ([]);
  for (const entry of entries) {
    tickets.push({ ticket: hash(key + entry), entry });
    if (tickets.length % batch) continue;
    progress(tickets.length / entries.length);
    await new Promise((done) => setTimeout(done, 0));
  }
  tickets.sort((a, b) => (a.ticket < b.ticket ? -1 : 1));
  const most = Math.max(0, p.winners);
  differ("cutoff", p.cutoff, tickets.length <= most ? "f".repeat(64) : most ? tickets[most - 1].ticket : "0".repeat(64));
  return { entries, winners: tickets.slice(0, most).map((t) => t.entry), differences };
}
