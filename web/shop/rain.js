// @ts-check
// Red-packet rain: a countdown, packets to tap, the share that was in one, and the list of who was luckiest.
import { html, signal, useEffect, useRef, useSignal } from "../lib/html.js";
import { campaignPath, get, Refusal } from "../lib/api.js";
import { money, number, span, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { Outcome } from "./outcome.js";
import { PhaseLine, Act } from "./view.js";
import { taps } from "./socket.js";
import { chime } from "./sound.js";
import { page, token } from "./user.js";

/** @typedef {ReturnType<import("./campaign.js").campaignOf>} Campaign */
/** @typedef {import("./press.js").Press} Press */

const still = matchMedia("(prefers-reduced-motion: reduce)");
// Behind a room or a draw nothing falls.
const fall = page.campaign.gate?.room ? null : (await import("./fall.js")).fall;
const sound = signal(false), balance = signal(/** @type {any[]} */ ([]));

/** @param {{campaign: Campaign, press: Press}} props */
export function RainView({ campaign, press }) {
  const line = useRef(taps()), busy = press.busy;
  const c = campaign.c.value, phase = campaign.phase.value, a = press.answer.value;
  const share = a && "claim" in a ? a.claim : press.mine.value.find((x) => x.status === "confirmed");
  // Where a user may have several, packets fall until they have all of them.
  const more = press.more() > 0;
  useEffect(() => {
    press.find();
    readBalance();
  }, []);
  useEffect(() => {
    if (token.peek() && phase === "open") line.current.ready();
  }, [phase]);
  // A share is credited behind the answer: the balance rises while people look at it.
  useEffect(() => (share ? untilCredited() : undefined), [share?.id]);

  /** A tap. While one is under way, or after the last share, others add nothing. */
  async function tap() {
    // What is drawn may be a moment behind what is known.
    if (busy.peek() || !token.peek() || press.more() === 0) return;
    const before = press.missing();
    busy.value = true;
    try {
      const passes = await press.passes();
      if (passes) {
        press.lose(true);
        const { claim, replayed } = await line.current.tap(campaign.id, press.key(), passes);
        press.won(claim, replayed);
        // Where no sound can be made, none is missed.
        if (sound.peek()) chime().catch(() => {});
      }
    } catch (e) {
      // What the socket cannot say, HTTP may: it is the same tap.
      if (e instanceof Refusal) press.refused(e, before);
      else {
        busy.value = false;
        await press.press();
      }
    }
    busy.value = false;
  }
  const direct = !c.gate?.room;
  const raining = phase === "open" && more && token.value && direct;
  return html`<main class="rain" data-phase=${phase}>
    ${raining && !still.matches && html`<${Sky} tap=${tap} />`}
    <section class="about">
      <h1>${c.title}</h1>
      <p class="price"><b>${money(c.redpacket.total)}</b> <span class="tag">${t("packet.shares", { n: number(c.redpacket.count) })}</span></p>
      <${PhaseLine} campaign=${campaign} />
      ${token.value && html`<p class="row center">${balance.value.length > 0 && html`<span id="balance">${t("balance")} ${balance.value.map((m) => html`<${Rising} sum=${m} key=${m.currency} /> `)}</span>`}
        <button type="button" class="quiet" aria-pressed=${sound.value} onClick=${() => (sound.value = !sound.peek())}>${t(sound.value ? "sound.on" : "sound.off")}</button></p>`}
    </section>
    ${raining && html`<div class="act" id="act"><p class="hint">${t(still.matches ? "rain.still" : "rain.tap")}</p>
      <button type="button" class="press" id="press" onClick=${tap} disabled=${busy.value}>${t(busy.value ? "press.busy" : press.missing() ? "press.find" : press.held() > 0 ? "press.more" : "press.packet")}</button></div>`}
    ${(!share || more) && !raining && html`<${Act} campaign=${campaign} press=${press} />`}
    ${share && (!more || !a || "claim" in a) ? html`<${Opened} claim=${share} again=${a?.kind === "again" || !a} />` : html`<${Outcome} press=${press} />`}
    ${(phase === "ended" || phase === "sold_out") && html`<${Luck} id=${campaign.id} share=${share} opened=${c.redpacket.count - (campaign.remaining.value ?? 0)} />`}
  </main>`;
}

/** The falling packets. Everything in it can be done with the button below, too. @param {{tap: () => void}} props */
function Sky({ tap }) {
  const canvas = /** @type {{current: HTMLCanvasElement|null}} */ (useRef(null)), latest = useRef(tap);
  latest.current = tap;
  useEffect(() => fall?.(/** @type {HTMLCanvasElement} */ (canvas.current), () => latest.current()), []);
  return html`<canvas ref=${canvas} class="sky" aria-hidden="true"></canvas>`;
}

/** An amount that counts up to what it is. @param {{sum: {amount: number, currency: string}, from?: number}} props */
function Rising({ sum, from }) {
  const shown = useSignal(from ?? sum.amount);
  useEffect(() => {
    const begun = performance.now(), start = shown.peek(), took = still.matches ? 0 : 900;
    let frame = 0;
    const step = () => {
      const p = took ? Math.min(1, (performance.now() - begun) / took) : 1;
      shown.value = Math.round(start + (sum.amount - start) * (1 - (1 - p) ** 3));
      if (p < 1) frame = requestAnimationFrame(step);
    };
    step();
    return () => cancelAnimationFrame(frame);
  }, [sum.amount]);
  return html`<b data-minor=${sum.amount}>${money({ ...sum, amount: shown.value })}</b>`;
}

/** The packet that was opened. @param {{claim: any, again: boolean}} props */
function Opened({ claim, again }) {
  return html`<section class="opened" id="answer" role="status" data-claim=${claim.id}>
    <p>${t(again ? "packet.again" : "packet.yours")}</p>
    <p class="sum" id="share"><${Rising} sum=${claim.amount} from=${again ? undefined : 0} /></p>
    <p class="muted">${t("packet.account")} · ${t("order.number")} <code>${claim.id}</code></p>
  </section>`;
}

/**
 * Who was luckiest, and how the whole went. The list follows the last grant: it is asked for again until it has
 * every share that was opened. @param {{id: string, share: any, opened: number}} props
 */
function Luck({ id, share, opened }) {
  const luck = useSignal(/** @type {any} */ (null)), fault = useSignal("");
  useEffect(() => {
    let timer = 0, tries = 0, gone = false;
    const read = async () => {
      try {
        luck.value = await get(campaignPath(id, "/luck"), { token: token.peek() });
        fault.value = "";
      } catch (e) {
        fault.value = e instanceof Refusal ? e.message : t("lost.connection");
      }
      if (!gone && tries++ < 20 && !(luck.value?.shares >= opened)) timer = setTimeout(read, 2000 + Math.random() * 2000);
    };
    read();
    return () => ((gone = true), clearTimeout(timer));
  }, [share?.id, opened]);
  const v = luck.value;
  if (!v) return fault.value ? html`<p class="muted">${fault.value}</p>` : null;
  return html`<section class="luck" id="luck">
    <h2>${t("luck.title")}</h2>
    <p class="muted">${t("luck.sum", { sum: money(v.shared), n: number(v.shares) })}${v.took_ms !== undefined && " " + t("luck.took", { span: span(v.took_ms) })}</p>
    <ol>${v.items.map((/** @type {any} */ x, /** @type {number} */ i) => html`<li class=${x.me ? "me" : ""}>
      <span>${x.me ? t("you") : x.user}${i === 0 && html` <span class="tag best">${t("luck.best")}</span>`}</span>
      <time class="muted" datetime=${x.at}>${time(x.at)}</time><b>${money(x.amount)}</b></li>`)}</ol>
    ${v.shares > v.items.length && html`<p class="muted">${t("luck.more", { n: number(v.shares - v.items.length) })}</p>`}
  </section>`;
}

async function readBalance() {
  if (token.peek()) balance.value = (await get("/v1/me/balance", { token: token.peek() }).catch(() => ({ balances: balance.peek() }))).balances;
}

/** Asks for the balance again and again for some seconds: another share may be credited before this one. */
function untilCredited() {
  let tries = 0, timer = 0;
  const again = async () => {
    await readBalance();
    if (++tries < 6) timer = setTimeout(again, 500 * tries);
  };
  again();
  return () => clearTimeout(timer);
}

