// @ts-check
// SHA-256, for millions of short texts: the browser's own answers each call in a task of its own, and on pages of HTTPS alone.

/** The first 32 bits of a root's fraction. @param {number} x */
const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;

const primes = /** @type {number[]} */ ([]);
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
const K = Int32Array.from(primes, (p) => fraction(Math.cbrt(p)));
const start = Int32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p)));
const W = new Int32Array(64);

/** @param {Int32Array} H @param {Uint8Array} block @param {number} at */
function mix(H, block, at) {
  for (let i = 0; i < 16; i++, at += 4) W[i] = (block[at] << 24) | (block[at + 1] << 16) | (block[at + 2] << 8) | block[at + 3];
  for (let i = 16; i < 64; i++) {
    const x = W[i - 15], y = W[i - 2];
    W[i] = (W[i - 16] + W[i - 7] + (((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)) + (((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10))) | 0;
  }
  let a = H[0], b = H[1], c = H[2], d = H[3], e = H[4], f = H[5], g = H[6], h = H[7];
  for (let i = 0; i < 64; i++) {
    const one = (h + (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))) + ((e & f) ^ (~e & g)) + K[i] + W[i]) | 0;
    const two = ((((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g, g = f, f = e, e = (d + one) | 0, d = c, c = b, b = a, a = (one + two) | 0;
  }
  H[0] += a, H[1] += b, H[2] += c, H[3] += d, H[4] += e, H[5] += f, H[6] += g, H[7] += h;
}

/** The hash of bytes, as 64 lower-case hexadecimal digits. @param {Uint8Array} bytes */
export function sha256(bytes) {
  const H = start.slice(), whole = bytes.length & ~63;
  for (let at = 0; at < whole; at += 64) mix(H, bytes, at);
  // The rest, a bit, zeros, and the length in bits.
  const rest = bytes.length - whole, tail = new Uint8Array(rest < 56 ? 64 : 128), view = new DataView(tail.buffer);
  tail.set(bytes.subarray(whole));
  tail[rest] = 128;
  view.setUint32(tail.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(tail.length - 4, bytes.length << 3);
  for (let at = 0; at < tail.length; at += 64) mix(H, tail, at);
  return Array.from(H, (x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
}

const text = new TextEncoder();

/** The hash of a text. @param {string} s */
export const hash = (s) => sha256(text.encode(s));
