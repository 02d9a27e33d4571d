// A client of dibs for Node.js 18 or newer, with nothing installed. It claims a
// pair of sneakers as user 42, pays it, and waits until a webhook tells that it
// was paid.
//
//   dibs dev --webhook-allow-private
//   export DIBS_URL=http://127.0.0.1:8080 DIBS_ADMIN_KEY=…
//   node examples/node/dibs.mjs
//
// Its types are those of the API's document. To have an editor or tsc check them:
//   npx openapi-typescript $DIBS_URL/openapi.json -o examples/node/dibs.d.ts
//   npx tsc --checkJs --strict --noEmit --module nodenext examples/node/dibs.mjs
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

/** @typedef {import("./dibs.d.ts").components["schemas"]} Schemas */

const { DIBS_URL = "", DIBS_ADMIN_KEY = "" } = process.env;

// How often a call without an answer is sent again. Each time it is the same call.
const attempts = 6;

// Refused is an answer that will stay the same: sold_out, limit_reached …
class Refused extends Error {
  /** @param {Schemas["Problem"]} problem */
  constructor(problem) {
    super(problem.detail);
    this.reason = problem.reason;
  }
}

// post sends until there is an answer that is final. 429 and 503 say that the
// same call may succeed later.
/**
 * @param {string} path @param {object} body @param {string} token @param {string} [key]
 * @returns {Promise<any>}
 */
async function post(path, body, token, key) {
  /** @type {Record<string, string>} */
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  if (key) headers["idempotency-key"] = key;
  for (let attempt = 1; ; attempt++) {
    let wait = 100 * 2 ** attempt;
    try {
      const answer = await fetch(DIBS_URL + path, {
        method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(5000),
      });
      const said = await answer.json();
      if (answer.ok) return said;
      if (![429, 503].includes(answer.status) || attempt === attempts) throw new Refused(said);
      wait = 1000 * Number(answer.headers.get("retry-after") ?? wait / 1000);
    } catch (e) {
      if (e instanceof Refused || attempt === attempts) throw e;
      console.log("no answer: again, with the same key");
    }
    // A random part keeps many clients from coming back together.
    await pause(wait / 2 + Math.random() * wait);
  }
}

// claim claims for a user. The key is made once for each press of the button, and
// sent with every attempt: dibs then answers with the same claim, also when the
// answer got lost.
/** @type {(campaign: string, token: string, key: string) => Promise<Schemas["ClaimView"]>} */
const claim = (campaign, token, key) => post(`/v1/campaigns/${campaign}/claims`, {}, token, key);

// confirm tells dibs that the payment arrived: exactly what the claim costs. A
// repeat with the same reference changes nothing.
/** @type {(claim: Schemas["ClaimView"], ref: string) => Promise<Schemas["ClaimView"]>} */
const confirm = ({ id, amount }, ref) => post(`/v1/claims/${id}/confirm`, { amount, payment_ref: ref }, DIBS_ADMIN_KEY);

// genuine checks a webhook by the scheme of Standard Webhooks: who sent it, and
// that it is not old.
/** @param {import("node:http").IncomingHttpHeaders} headers @param {Buffer} body @param {string} secret */
function genuine(headers, body, secret) {
  const { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signatures } = headers;
  if (!id || !signatures || !(Math.abs(Date.now() / 1000 - Number(at)) < 300)) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const want = Buffer.from("v1," + createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest("base64"));
  return String(signatures).split(" ").some((s) => s.length === want.length && timingSafeEqual(Buffer.from(s), want));
}

/** @type {(secret: string) => void} */
let tellSecret = () => {};
/** @type {(claim: string) => void} */
let tellPaid = () => {};
/** @type {Promise<string>} */
const secret = new Promise((resolve) => { tellSecret = resolve; });
const paid = new Promise((resolve) => { tellPaid = resolve; });
const server = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  const good = genuine(request.headers, body, await secret);
  response.writeHead(good ? 204 : 401).end();
  if (!good) return;
  const event = JSON.parse(body.toString());
  // Events may come twice: a real shop remembers event.id.
  if (event.type === "dev.dibs.claim.confirmed") tellPaid(event.subject);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
const address = `http://127.0.0.1:${port}/hook`;
tellSecret((await post("/v1/webhook-endpoints", { url: address }, DIBS_ADMIN_KEY, randomUUID())).secret);

const press = randomUUID();
const mine = await claim("sneaker-drop", "dev_42", press);
console.log("granted", mine.id);
try {
  await claim("ticket-tomorrow", "dev_42", randomUUID());
} catch (e) {
  console.log("tickets:", e instanceof Refused ? e.reason : e);
}
await confirm(mine, "pay-" + press);
console.log("paid", await paid);
server.close();
server.closeAllConnections();
