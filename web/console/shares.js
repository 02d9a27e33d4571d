// @ts-check
// How the shares of a red packet may come out: a drawing of it, before there is one.

/** A whole number from 0 to below n. @param {number} n */
const below = (n) => Math.floor(Math.random() * n);

/**
 * Draws shares as the server's methods do (redpacket/draw.go): what is above the least shares is divided, and no share
 * gets more of it than there is room below the greatest.
 * @param {{total: number, count: number, split: string, min: number, max: number}} p max 0 for none @returns {number[]}
 */
export function draw({ total, count, split, min, max }) {
  const excess = total - min * count, room = max ? Math.min(excess, max - min) : excess;
  return (split === "equal" ? equal : split === "line_cut" ? lineCut : doubleMean)(excess, count, room).map((s) => s + min);
}

/** @param {number} excess @param {number} count */
const equal = (excess, count) => Array.from({ length: count }, (_, i) => Math.floor(excess / count) + (i < excess % count ? 1 : 0));

/**
 * Each share is drawn evenly from the widest interval with the mean of what is left in its middle: from 0 to twice the
 * mean, or as far below the mean as the room is above it.
 * @param {number} left @param {number} count @param {number} room
 */
function doubleMean(left, count, room) {
  const shares = /** @type {number[]} */ ([]);
  for (let k = count; k > 1; k--) {
    const share = Math.ceil((2 * left) / k) <= room ? twice(left, k) : room - twice(k * room - left, k);
    shares.push(share);
    left -= share;
  }
  return [...shares, left];
}

/** A number from 0 to twice the mean of k shares; a fraction is rounded up as often as it is great. @param {number} left @param {number} k */
function twice(left, k) {
  const part = (2 * left) % k;
  return below((2 * left - part) / k + (below(k) < part ? 2 : 1));
}

// How many times pairs of shares divide anew what they have, as on the server.
const exchanges = 16;

/** One of all ways to divide, each as likely as any other: by random cuts, or by exchanges where those leave the room. @param {number} excess @param {number} count @param {number} room */
function lineCut(excess, count, room) {
  // A way is a row of units and cuts: **|*|| is 2, 1, 0, 0.
  const row = excess + count - 1, places = /** @type {Set<number>} */ (new Set());
  while (places.size < count - 1) places.add(below(row));
  const cuts = [...places].sort((a, b) => a - b), cut = [...cuts, row].map((at, i) => at - (i ? cuts[i - 1] + 1 : 0));
  if (cut.every((s) => s <= room)) return cut;
  const shares = doubleMean(excess, count, room), strides = Math.ceil(Math.log2(count));
  for (let round = 0; round < exchanges; round++)
    for (let i = 0, stride = 2 ** (round % strides); i + stride < count; i++) {
      if (i & stride) continue;
      const both = shares[i] + shares[i + stride], low = Math.max(0, both - room);
      shares[i] = low + below(both - 2 * low + 1);
      shares[i + stride] = both - shares[i];
    }
  return shares;
}

/** Counts values in classes of equal width. @param {number[]} values @param {number} classes */
export function classes(values, classes) {
  const low = Math.min(...values), high = Math.max(...values), width = Math.max(1, Math.ceil((high - low + 1) / classes));
  const counts = Array.from({ length: Math.min(classes, Math.ceil((high - low + 1) / width)) }, (_, i) => ({ from: low + i * width, to: low + (i + 1) * width - 1, n: 0 }));
  for (const v of values) counts[Math.min(counts.length - 1, Math.floor((v - low) / width))].n++;
  return counts;
}
