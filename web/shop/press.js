// @ts-check
// The press: from the button to the answer, with everything that may stand between.
import { signal } from "../lib/html.js";
import { campaignPath, get, Refusal, send } from "../lib/api.js";
import { now } from "../lib/clock.js";
import { milliseconds } from "../lib/format.js";
import { connect } from "./socket.js";
import { keep, nameOf, recall, token, voucher } from "./user.js";
import { work } from "./work.js";

/**
 * @typedef {{kind: "granted"|"again", claim: any}|{kind: "lost"}|{kind: "refused", problem: import("../lib/api.js").Problem, retryAfter: number}} Answer
 */

const lasting = ["released", "refunded"];

/** The presses of this page's user on a campaign. @param {ReturnType<import("./campaign.js").campaignOf>} campaign */
export function pressOf(campaign) {
  // Another user of this tab has no part in an answer that is missing.
  const id = campaign.id, lostName = "dibs-lost-" + id + ":" + nameOf(token.peek());
  const answer = signal(/** @type {Answer|null} */ (null));
  const busy = signal(false), place = signal(/** @type {any} */ (null)), progress = signal(/** @type {number|null} */ (null));
  const mine = signal(/** @type {any[]} */ ([]));
  // A press whose answer is missing keeps its quantity and its key.
  const [units, which] = (recall(lostName) || "").split("x");
  // The key is always the same: a press again, after a reload or on another device, asks for the same claim. Where a
  // user may have more than one, the next has another key.
  let nth = Number(which) || 1, lost = !!units;
  const quantity = signal(Number(units) || 1);
  const lose = (/** @type {boolean} */ is) => keep(lostName, (lost = is) ? quantity.peek() + "x" + nth : null);
  const key = () => "page-" + nth + (quantity.peek() > 1 ? "x" + quantity.peek() : "");
  const gate = () => campaign.c.peek().gate || {};
  // Whether users wait for their turn.
  const waiting = () => gate().room && gate().room.mode !== "lottery";
  const call = (/** @type {string} */ method, /** @type {string} */ tail, /** @type {any} */ body, headers = {}) =>
    send(method, campaignPath(id, tail), { body, headers, token: token.peek() });

  const claims = () => get("/v1/me/claims?limit=100", { token: token.peek() });

  async function ticket() {
    const asked = (await call("POST", "/tickets/challenge", {})).value;
    const body = /** @type {any} */ (voucher ? { voucher } : {});
    if (asked.bits > 0) {
      progress.value = 0;
      try {
        Object.assign(body, { challenge: asked.challenge, nonce: await work(asked.challenge, asked.bits, (p) => (progress.value = p)) });
      } finally {
        progress.value = null;
      }
    }
    return (await call("POST", "/tickets", body)).value.ticket;
  }

  /** The headers that the gates want; null while it is not the user's turn. */
  async function passes() {
    const headers = /** @type {Record<string, string>} */ ({});
    try {
      if (place.peek()) await look("GET");
      if (place.peek() && place.peek().state !== "admitted" && !lost) return null;
      if (place.peek()) headers["Dibs-Admission"] = place.peek().admission || "";
      if (gate().ticket) headers["Dibs-Ticket"] = await ticket();
    } catch (e) {
      // What an earlier press came to is told without these.
      if (!lost) throw e;
    }
    return headers;
  }

  async function claim() {
    const headers = await passes();
    if (!headers) return ask();
    lose(true);
    for (;;) {
      const { value, replayed } = await call("POST", "/claims", { quantity: quantity.peek() }, { ...headers, "Idempotency-Key": key() });
      if (!lasting.includes(value.status)) return won(value, replayed);
      // What went back makes room for another one.
      nth++;
      lose(true);
    }
  }

  /** @param {any} claim @param {boolean} replayed */
  function won(claim, replayed) {
    lose(false);
    if (campaign.c.peek().limit_per_user > 1) nth++;
    answer.value = { kind: replayed ? "again" : "granted", claim };
    // What is left of the limit may be less than was asked for now.
    quantity.value = 1;
    mine.value = [claim, ...mine.peek().filter((c) => c.id !== claim.id)];
  }

  /** @param {unknown} e @param {boolean} before whether an answer was missing before */
  function refused(e, before) {
    const p = e instanceof Refusal ? e.problem : null;
    // Without an answer, or where the answer says so, nobody knows what happened; a user who asks too often, is blocked
    // by now or has an old token is not told what an earlier press came to.
    lose(lost && (!p || p.effect === "unknown" || (before && ["rate_limited", "forbidden", "unauthenticated"].includes(p.reason))));
    answer.value = lost || !p ? { kind: "lost" } : { kind: "refused", problem: p, retryAfter: /** @type {Refusal} */ (e).retryAfter };
  }

  async function look(/** @type {string} */ method) {
    try {
      place.value = (await call(method, "/queue", method === "POST" ? {} : undefined)).value;
    } catch (e) {
      if (e instanceof Refusal && !e.problem.retryable) place.value = null;
      if (!place.peek()) throw e;
    }
  }

  // Where one is comes by a WebSocket; where there is none, it is asked for.
  let asking = 0;
  function ask() {
    clearTimeout(asking);
    const p = place.peek();
    if (p && p.state !== "admitted") asking = setTimeout(() => look("GET").then(ask, (e) => refused(e, lost)), Math.max(1000, milliseconds(p.ask_after)));
  }

  function watch() {
    let silent = false;
    const socket = connect((m) => {
      silent = false;
      // What is refused here may be answered there.
      if (m.type === "error") return socket.end();
      if (m.type === "welcome") socket.say({ type: "subscribe", campaign_id: id });
      if (m.type !== "position" || m.campaign_id !== id) return;
      place.value = m;
      if (m.state === "admitted") socket.end();
    }, () => {
      clearInterval(beat);
      ask();
    });
    // It may be cut later without a word. The server pings after 25 s of silence: this comes before it.
    const beat = setInterval(() => {
      if (silent) return socket.end();
      silent = true;
      socket.say({ type: "ping" });
    }, 20_000);
  }

  /** What the button does now. @returns {"claim"|"join"|"wait"} */
  const does = () => {
    if (!waiting() || place.value?.state === "admitted") return "claim";
    return place.value ? "wait" : "join";
  };

  async function press() {
    if (busy.peek()) return;
    const before = lost;
    // What was found since it was chosen may leave less.
    if (!lost) quantity.value = Math.min(quantity.peek(), more() || 1);
    busy.value = true;
    answer.value = null;
    try {
      if (does() === "join" && !lost) {
        await look("POST");
        if (place.peek().state !== "admitted") watch();
      } else await claim();
    } catch (e) {
      refused(e, before);
    }
    busy.value = false;
  }

  /** Finds what this user has already: claims, a place, and an answer that got lost on its way before a reload. */
  async function find() {
    if (!token.peek()) return;
    const list = await claims().catch(() => ({ items: [] }));
    // What came meanwhile is newer.
    mine.value = [...mine.peek(), ...list.items.filter((/** @type {any} */ c) => c.campaign_id === id && !mine.peek().some((m) => m.id === c.id))];
    if (waiting()) {
      await look("GET").catch(() => {});
      if (place.peek() && place.peek().state !== "admitted") watch();
    }
    // A press of this page waits for its own answer.
    if (units && lost) await press();
  }

  /** Shows a claim as it is by now. @param {any} fresh */
  function put(fresh) {
    mine.value = mine.peek().map((c) => (c.id === fresh.id ? fresh : c));
    const a = answer.peek();
    if (a && "claim" in a && a.claim.id === fresh.id) answer.value = lasting.includes(fresh.status) ? null : { ...a, claim: fresh };
  }

  /** Reads a claim again, after a step of its life. @param {string} claim */
  const refresh = async (claim) => put(await get("/v1/claims/" + encodeURIComponent(claim), { token: token.peek() }));

  /** Reads the orders again while one of them waits for its payment. */
  async function renew() {
    if (mine.peek().some((c) => c.status === "pending")) (await claims()).items.forEach(put);
  }

  /** How many units this user holds, as far as is known. An order whose time to pay is over goes back, and is none. */
  const held = () => mine.value
    .filter((c) => !lasting.includes(c.status) && !(c.status === "pending" && c.pay_by && Date.parse(c.pay_by) <= now()))
    .reduce((sum, c) => sum + c.quantity, 0);
  /** How many more units this user may have. */
  const more = () => Math.max(0, campaign.c.value.limit_per_user - held());

  /** Whether an answer is missing. */
  const missing = () => lost;
  return { answer, busy, place, progress, mine, held, more, waiting, does, press, find, refresh, renew, passes, won, refused, missing, lose, key, quantity };
}

/** @typedef {ReturnType<typeof pressOf>} Press */
