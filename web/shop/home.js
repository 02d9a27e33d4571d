// @ts-check
// The storefront: what is on offer now, soon, and what is over.
import { html, signal, useEffect } from "../lib/html.js";
import { get } from "../lib/api.js";
import { now, tick } from "../lib/clock.js";
import { money, number } from "../lib/format.js";
import { t } from "../lib/text.js";
import { phaseAt, toldBy } from "./campaign.js";
import { Countdown, phaseOf, Picture } from "./parts.js";
import { Price } from "./view.js";

const list = signal(/** @type {any[]|null} */ (null)), cursor = signal(""), fault = signal(false);

async function load(more = false) {
  try {
    const got = await get("/v1/campaigns" + (more ? "?cursor=" + encodeURIComponent(cursor.peek()) : ""), { token: null });
    // What was there stays behind what is newer: the cursor stands behind it.
    const first = more ? list.peek() || [] : got.items, seen = new Set(first.map((/** @type {any} */ c) => c.id));
    const rest = more ? got.items : list.peek() || [];
    list.value = [...first, ...rest.filter((/** @type {any} */ c) => !seen.has(c.id))];
    if (more || !cursor.peek()) cursor.value = got.next_cursor;
    fault.value = false;
  } catch {
    fault.value = true;
  }
}

export function HomeView() {
  useEffect(() => {
    load();
    const timer = setInterval(() => document.hidden || load(), 5000);
    return () => clearInterval(timer);
  }, []);
  tick.value;
  const all = (list.value || []).map((c) => ({ c, phase: phaseAt(c, toldBy(c, true), now()) }));
  const live = all.filter((x) => x.phase === "open" || x.phase === "paused" || x.phase === "sold_out");
  const soon = all.filter((x) => x.phase === "upcoming").sort((a, b) => Date.parse(a.c.starts_at) - Date.parse(b.c.starts_at));
  const over = all.filter((x) => x.phase === "ended");
  return html`<main class="store">
    <h1>${t("store.title")}</h1>
    ${fault.value && html`<p class="note warn" role="status">${t("lost.connection")}</p>`}
    ${list.value && !all.length && html`<p class="muted">${t("store.empty")}</p>`}
    ${[["store.live", live], ["store.soon", soon], ["store.over", over]].map(([title, some]) => /** @type {any[]} */ (some).length > 0 &&
      html`<section><h2>${t(/** @type {string} */ (title))}</h2><ul class="offers">${/** @type {any[]} */ (some).map((x) => html`<li key=${x.c.id}><${Offer} ...${x} /></li>`)}</ul></section>`)}
    ${cursor.value && html`<button type="button" onClick=${() => load(true)}>${t("more")}</button>`}
  </main>`;
}

/** @param {{c: any, phase: string}} props */
function Offer({ c, phase }) {
  const to = phase === "upcoming" ? c.starts_at : phase === "open" ? c.ends_at : null;
  return html`<a class=${"offer " + phase} href=${"/c/" + encodeURIComponent(c.id)}>
    <${Picture} c=${c} />
    <div class="text">
      <h3>${c.title}</h3>
      ${c.redpacket ? html`<p class="price"><b>${money(c.redpacket.total)}</b> <span class="tag">${t("packet.shares", { n: number(c.redpacket.count) })}</span></p>` : html`<${Price} c=${c} />`}
      <p class="state"><span class=${"dot " + phase}></span> ${phaseOf(c, phase)}${phase === "open" && html` · ${t("left")} <b>${number(c.remaining)}</b>`}</p>
      ${to && html`<div class="until"><span class="muted">${t(phase === "upcoming" ? "starts.in" : "ends.in")}</span><${Countdown} to=${Date.parse(to)} /></div>`}
    </div></a>`;
}
