// @ts-check
// A campaign as people see it: what it is, where it stands, and what happens to it.
import { computed, signal } from "../lib/html.js";
import { campaignPath, get } from "../lib/api.js";
import { now, tick } from "../lib/clock.js";
import { follow } from "../lib/stream.js";

/** @typedef {"upcoming"|"open"|"paused"|"sold_out"|"ended"} Phase */

/**
 * Where a campaign stands at a moment. told is what the server said of it last: ended, paused and sold_out count, all else
 * is told by the window.
 * @param {{starts_at: string, ends_at: string}} c @param {string} told @param {number} at @returns {Phase}
 */
export function phaseAt(c, told, at) {
  if (told === "ended" || at >= Date.parse(c.ends_at)) return "ended";
  if (told === "paused") return "paused";
  if (at < Date.parse(c.starts_at)) return "upcoming";
  return told === "sold_out" ? "sold_out" : "open";
}

const events = ["state", "opened", "paused", "resumed", "sold_out", "reopened", "ended", "changed", "stock"];

/** A campaign that is followed. @param {any} view @param {boolean} [known] whether what remains is told by view */
export function campaignOf(view, known = false) {
  const c = signal(view), told = signal(toldBy(view, known)), connected = signal(true);
  const remaining = signal(/** @type {number|null} */ (known ? view.remaining : null));
  const phase = computed(() => (tick.value, phaseAt(c.value, told.value, now())));
  /** @param {any} news */
  const take = ({ version, phase: is, remaining: n, title, starts_at, ends_at }) => {
    told.value = is;
    remaining.value = n;
    if (version === c.value.version) return;
    c.value = { ...c.value, version, title, starts_at, ends_at };
    renew();
  };
  const load = () => get(campaignPath(view.id), { token: null });
  // The gate, the price and the like are not in the news. Another node, or a cache, may be behind them.
  const renew = () => load().then((fresh) => {
    if (fresh.version < c.value.version) throw fresh;
    c.value = fresh;
  }).catch((e) => {
    // What is gone stays gone.
    if (e.problem?.status !== 404) setTimeout(renew, 2000);
  });
  const poll = async () => {
    const fresh = (c.value = await load());
    told.value = toldBy(fresh, true);
    remaining.value = fresh.remaining;
  };
  const stop = follow(campaignPath(view.id, "/events"), events, take, {
    lost: () => (connected.value = false), back: () => (connected.value = true), poll,
  });
  return { id: view.id, c, phase, remaining, connected, stop };
}

/** What a view says beside its window. @param {any} view @param {boolean} known */
export function toldBy(view, known) {
  if (view.state === "paused" || view.state === "ended") return view.state;
  return known && view.remaining === 0 ? "sold_out" : "";
}
