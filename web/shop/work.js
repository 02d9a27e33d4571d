// @ts-check
// The work that a ticket costs: a nonce whose hash begins with so many zero bits.

/** @param {Uint8Array} hash @param {number} bits */
function zeroBits(hash, bits) {
  for (let i = 0; i < bits; i++) if (hash[i >> 3] & (128 >> (i & 7))) return false;
  return true;
}

const batch = 256;

/**
 * Looks for a nonce. progress is told, from 0 to 1, how likely it was to be found by now.
 * @param {string} challenge @param {number} bits @param {(share: number) => void} progress
 * @returns {Promise<string>}
 */
export async function work(challenge, bits, progress) {
  const text = new TextEncoder(), mean = 2 ** bits;
  for (let n = 0; ; n += batch) {
    const nonces = Array.from({ length: batch }, (_, i) => String(n + i));
    const hashes = await Promise.all(nonces.map((x) => crypto.subtle.digest("SHA-256", text.encode(challenge + ":" + x))));
    const found = hashes.findIndex((h) => zeroBits(new Uint8Array(h), bits));
    if (found >= 0) return nonces[found];
    progress(1 - Math.exp(-(n + batch) / mean));
  }
}
