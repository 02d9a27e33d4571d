// @ts-check
// How the shares of a red packet may come out: a drawing of it, before there is one.

/** Draws shares as the server's methods do. @param {{total: number, count: number, split: string, min: number, max: number}} p @returns {number[]} */
export function draw({ total, count, split, min, max }) {
  const shares = /** @type {number[]} */ ([]), most = max || Infinity;
  if (split === "equal") return Array.from({ length: count }, (_, i) => Math.floor(total / count) + (i < total % count ? 1 : 0));
  if (split === "line_cut") {
    // What is above the least shares is cut at random points.
    const free = total - min * count, cuts = Array.from({ length: count - 1 }, () => Math.random() * free).sort((a, b) => a - b);
    let last = 0;
    for (const c of [...cuts, free]) shares.push(Math.min(most, min + Math.round(c - last))), (last = c);
    return shares;
  }
  let left = total;
  for (let n = count; n > 1; n--) {
    const upper = Math.min(most, left - min * (n - 1), Math.floor((left / n) * 2) - min), lower = Math.max(min, most === Infinity ? min : left - most * (n - 1));
    const share = Math.max(lower, min + Math.floor(Math.random() * Math.max(1, upper - min + 1)));
    shares.push(share);
    left -= share;
  }
  return [...shares, left];
}

/** Counts values in classes of equal width. @param {number[]} values @param {number} classes */
export function classes(values, classes) {
  const low = Math.min(...values), high = Math.max(...values), width = Math.max(1, Math.ceil((high - low + 1) / classes));
  const counts = Array.from({ length: Math.min(classes, Math.ceil((high - low + 1) / width)) }, (_, i) => ({ from: low + i * width, to: low + (i + 1) * width - 1, n: 0 }));
  for (const v of values) counts[Math.min(counts.length - 1, Math.floor((v - low) / width))].n++;
  return counts;
}
