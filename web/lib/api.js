// @ts-check
// Calls of the documented API.
import { language } from "./text.js";

/**
 * @typedef {object} Problem
 * @property {string} reason
 * @property {string} title
 * @property {string} detail
 * @property {number} status
 * @property {boolean} [retryable]
 * @property {string} [effect]
 * @property {string} [request_id]
 * @property {string} [starts_at]
 * @property {number} [remaining]
 * @property {number} [position]
 * @property {string[]} [claim_ids]
 * @property {{pointer: string, detail: string}[]} [errors]
 */

/** An answer that says no, or what is wrong. */
export class Refusal extends Error {
  /** @param {Problem} problem @param {number} retryAfter in milliseconds */
  constructor(problem, retryAfter) {
    super(problem.detail || problem.title);
    this.problem = problem;
    this.retryAfter = retryAfter;
  }
}

/**
 * @typedef {object} Options
 * @property {unknown} [body]
 * @property {Record<string, string|undefined>} [headers]
 * @property {string|null} [token] a user's token; without it the session of the console counts
 * @property {AbortSignal} [signal]
 * @property {File} [file] a file of CSV in place of a body
 */

const settings = { csrf: "", ended: () => {} };

/** Sets what calls of the console carry, and what is done when the session has ended. @param {Partial<typeof settings>} s */
export const session = (s) => Object.assign(settings, s);

/**
 * Sends a request. It throws a Refusal for an answer that is none of success, and what fetch throws when there was no
 * answer.
 * @param {string} method @param {string} path @param {Options} [o]
 * @returns {Promise<{value: any, replayed: boolean, response: Response}>}
 */
export async function send(method, path, o = {}) {
  const headers = new Headers({ Accept: "application/json", "Accept-Language": language.peek() });
  for (const [name, value] of Object.entries(o.headers || {})) if (value) headers.set(name, value);
  if (o.token) headers.set("Authorization", "Bearer " + o.token);
  if (o.token === undefined && settings.csrf) headers.set("Dibs-Csrf", settings.csrf);
  if (o.body !== undefined) headers.set("Content-Type", "application/json");
  if (o.file) headers.set("Content-Type", "text/csv");
  const response = await fetch(path, {
    method, headers, cache: "no-store", signal: o.signal,
    // A shopper is never the administrator who is signed in beside them.
    credentials: o.token === undefined ? "same-origin" : "omit",
    body: o.file || (o.body === undefined ? undefined : JSON.stringify(o.body)),
  });
  const value = read(await response.text());
  // A server that is not ready says so in the same words as one that is.
  if (response.ok || value.dependencies) return { value, replayed: response.headers.get("Idempotent-Replayed") === "true", response };
  // What stands in between may answer in the server's place: then nobody knows what happened.
  if (!value.reason) throw new TypeError("an answer of " + response.status + " that is none of dibs's");
  if (response.status === 401 && o.token === undefined) settings.ended();
  throw new Refusal(value, Number(response.headers.get("Retry-After") || 0) * 1000);
}

/** A body as JSON, or as it is. @param {string} text */
function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** @param {string} path @param {Options} [o] */
export const get = async (path, o) => (await send("GET", path, o)).value;

/** @param {string} path @param {unknown} [body] @param {Options} [o] */
export const post = async (path, body = {}, o) => (await send("POST", path, { ...o, body })).value;

/** The path of a campaign. @param {string} id @param {string} [tail] */
export const campaignPath = (id, tail = "") => "/v1/campaigns/" + encodeURIComponent(id) + tail;
