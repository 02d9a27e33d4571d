// @ts-check
// The page's WebSockets, and taps over one. A tap's id is its idempotency key: sent again, here or over HTTP, it is the same
// claim.
import { Refusal } from "../lib/api.js";
import { token } from "./user.js";

const patience = 8000;

/** @typedef {{say: (m: any) => void, end: () => void}} Socket */

/**
 * Opens a WebSocket as this page's user. over is called once, when it broke, was ended, or had no welcome in time.
 * @param {(m: any) => void} take is given each message @param {() => void} over @returns {Socket}
 */
export function connect(take, over) {
  const ws = new WebSocket(location.origin.replace(/^http/, "ws") + "/v1/ws");
  const say = (/** @type {any} */ m) => ws.send(JSON.stringify(m));
  // No more is heard of it, also when a closing is never answered.
  const end = () => {
    clearTimeout(timer);
    ws.onclose = ws.onmessage = null;
    ws.close();
    over();
  };
  // What stands in between may swallow it without a word.
  const timer = setTimeout(end, patience);
  ws.onopen = () => say({ type: "auth", token: token.peek() });
  ws.onmessage = (e) => {
    const m = JSON.parse(e.data);
    if (m.type === "welcome") clearTimeout(timer);
    take(m);
  };
  ws.onclose = end;
  return { say, end };
}

/** A connection that is opened when it is first needed, and again when it broke. */
export function taps() {
  /** @type {Promise<Socket>|null} */
  let opening = null;
  const waiting = new Map();

  function open() {
    opening ||= new Promise((done, fail) => {
      const socket = connect((m) => {
        if (m.type === "welcome") done(socket);
        if (m.type === "result" || m.type === "error") settle(m);
        if (m.type === "error" && !waiting.size) fail(new Refusal(m, m.retry_after_ms || 0));
      }, () => {
        opening = null;
        const broken = new TypeError("the connection broke");
        fail(broken);
        for (const [, w] of waiting) w.fail(broken);
        waiting.clear();
      });
    });
    return opening;
  }

  /** @param {any} m */
  function settle(m) {
    const w = waiting.get(m.id);
    if (!w) return;
    waiting.delete(m.id);
    if (m.type === "result" && m.outcome === "granted") w.done({ claim: m.claim, replayed: !!m.replayed });
    else w.fail(new Refusal(m, m.retry_after_ms || 0));
  }

  return {
    /** Opens the connection ahead of the first tap. */
    ready: () => open().then(() => true, () => false),
    /**
     * Sends a tap; it throws a Refusal, or anything else when there was no answer.
     * @param {string} campaign @param {string} id @param {Record<string, string>} headers of the gates
     * @returns {Promise<{claim: any, replayed: boolean}>}
     */
    async tap(campaign, id, headers) {
      const socket = await open();
      return new Promise((done, fail) => {
        // It may be cut without a word: the next tap has a new one.
        const timer = setTimeout(socket.end, patience);
        const once = (/** @type {(v: any) => void} */ f) => (/** @type {any} */ v) => (clearTimeout(timer), f(v));
        waiting.set(id, { done: once(done), fail: once(fail) });
        socket.say({ type: "claim", id, campaign_id: campaign, ticket: headers["Dibs-Ticket"], admission: headers["Dibs-Admission"] });
      });
    },
  };
}
