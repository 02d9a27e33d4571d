// @ts-check
// The draw of a campaign: registering for it, and what came of that. It is loaded where there is one.
import { html, useEffect, useSignal } from "../lib/html.js";
import { campaignPath, get, post, Refusal } from "../lib/api.js";
import { now } from "../lib/clock.js";
import { time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { token } from "./user.js";
import { draw } from "./view.js";

// How long nothing is asked for, in milliseconds: at most while registration has not closed, and after that, when all
// who are registered ask at once, at least.
const most = 30_000, least = 3000;

/** When to ask again: a little after the next moment that changes something. @param {any} v the lottery */
const wait = (v) => {
  const next = v?.state === "upcoming" ? v.registration_opens_at : v?.state === "open" ? v.registration_closes_at : null;
  return (next ? Math.min(most, Math.max(0, Date.parse(next) - now())) : least) + 500 + Math.random() * 2000;
};

/** @param {{campaign: ReturnType<import("./campaign.js").campaignOf>}} props */
export function Lottery({ campaign }) {
  const view = useSignal(/** @type {any} */ (null)), mine = useSignal(/** @type {any} */ (null)), absent = useSignal(false), fault = useSignal(""), busy = useSignal(false);
  const at = (/** @type {string} */ tail) => campaignPath(campaign.id, "/lottery" + tail);
  /** @param {any} entry */
  const take = (entry) => {
    mine.value = entry;
    draw.won.value = entry.result === "won";
  };
  useEffect(() => {
    let over = false, timer = 0;
    const look = async () => {
      let untold = false;
      try {
        if (!document.hidden) {
          view.value = await get(at(""), { token: null });
          take(await get(at("/result"), { token: token.peek() }));
          fault.value = "";
        }
      } catch (e) {
        // Who is not registered is told so by not_found. Without an answer nobody knows, and a winner must not be sent away.
        absent.value = e instanceof Refusal && e.problem.reason === "not_found";
        untold = !(e instanceof Refusal) || !!e.problem.retryable;
        fault.value = !(e instanceof Refusal) ? t("lost.connection") : absent.peek() ? "" : e.message;
      }
      if (!over && (mine.peek()?.result || "pending") === "pending" && (mine.peek() || untold || view.peek()?.state !== "drawn")) timer = setTimeout(look, wait(view.peek()));
    };
    look();
    return () => ((over = true), clearTimeout(timer));
  }, []);
  /** A registration that is sent again is the same one. */
  const register = async () => {
    busy.value = true;
    try {
      take(await post(at("/entries"), {}, { token: token.peek() }));
      fault.value = "";
    } catch (e) {
      fault.value = e instanceof Refusal ? e.message : t("draw.again");
    }
    busy.value = false;
  };
  const v = view.value, m = mine.value;
  return html`${fault.value && html`<p class="note warn" role="alert">${fault.value}</p>`}
    ${!v ? null : m ? html`<${Entry} m=${m} closes=${v.registration_closes_at} starts=${campaign.phase.value === "upcoming" ? campaign.c.value.starts_at : null} />`
      : v.state === "open" ? html`<div class="act" id="act"><button type="button" class="press" id="press" data-press="register" disabled=${busy.value} onClick=${register}>${t(busy.value ? "press.busy" : "draw.register")}</button>
        <p>${t("draw.until", { at: time(v.registration_closes_at) })}</p></div>`
      : v.state === "upcoming" ? html`<p class="note">${t("draw.opens", { at: time(v.registration_opens_at) })}</p>` : absent.value && html`<p class="note">${t("draw.out")}</p>`}`;
}

/** A registration, and whether it has won. @param {{m: any, closes: string, starts: string|null}} props */
function Entry({ m, closes, starts }) {
  const won = m.result === "won";
  return html`<div class=${"note" + (m.result === "lost" ? "" : " good")} id="entry" data-result=${m.result} role="status">
    <p><b>${t(won ? "draw.won" : m.result === "lost" ? "draw.lost" : "draw.in")}</b> ${won && starts && t("starts.at", { at: time(starts) })}</p>
    ${m.result === "pending" && html`<p>${t("draw.then", { at: time(closes) })}</p>`}
    <p class="muted">${t("draw.keep")} <code>${m.nonce}</code></p></div>`;
}
