// @ts-check
// The server's clock, by which countdowns go.
import { signal } from "./html.js";

let ahead = 0;

/** The server's time in milliseconds, as far as it is known. */
export const now = () => Date.now() + ahead;

/** The server's time, renewed four times a second while people look. */
export const tick = signal(now());

async function ask() {
  const sent = Date.now();
  const response = await fetch("/v1/time", { cache: "no-store", credentials: "omit" });
  const said = Date.parse((await response.json()).now);
  // Half of the way is added to what it said.
  if (!Number.isNaN(said)) ahead = said - (sent + Date.now()) / 2;
}

/** Begins to follow the server's clock. */
export function follow() {
  // Without an answer the device's own clock has to do until the next time.
  const again = () => ask().catch(() => {}).finally(() => (tick.value = now()));
  again();
  setInterval(again, 60_000);
  setInterval(() => document.hidden || (tick.value = now()), 250);
}
