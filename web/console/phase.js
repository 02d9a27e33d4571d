// @ts-check
// How a campaign stands, in one word.
import { html } from "../lib/html.js";
import { now } from "../lib/clock.js";
import { t } from "../lib/text.js";

/** The words that standing says. */
export const standings = ["draft", "upcoming", "open", "sold_out", "paused", "ended"];

/** @param {any} c @param {number} [remaining] @returns {"draft"|"paused"|"ended"|"upcoming"|"sold_out"|"open"} */
export function standing(c, remaining = c.remaining) {
  if (c.state === "draft" || c.state === "paused" || c.state === "ended") return c.state;
  if (now() >= Date.parse(c.ends_at)) return "ended";
  if (now() < Date.parse(c.starts_at)) return "upcoming";
  return remaining === 0 ? "sold_out" : "open";
}

/** @param {{c: any, remaining?: number}} props */
export function Standing({ c, remaining }) {
  const is = standing(c, remaining);
  return html`<span class="standing"><span class=${"dot " + is}></span> ${t("standing." + is)}</span>`;
}
