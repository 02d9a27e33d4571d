// @ts-check
// The gate of a campaign as a form has it, in the wizard and where one is changed: its fields, and what the API takes of them.
import { html } from "../lib/html.js";
import { milliseconds } from "../lib/format.js";
import { t } from "../lib/text.js";
import { brief, limitLines, limitsOf } from "./limits.js";

/** The moment as an input of local time shows it, with no more digits than it has. @param {number} ms */
export const local = (ms) => new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, ms % 1000 ? 23 : ms % 60_000 ? 19 : 16);

/** @param {string} v */
export const iso = (v) => (v ? new Date(v).toISOString() : undefined);

const whole = (/** @type {string} */ v) => (v ? Number(v) : undefined);
const text = (/** @type {number|undefined} */ v) => (v ? String(v) : "");
const same = (/** @type {string|undefined} */ v) => (v ? local(Date.parse(v)) : "");

/** What the form has of a gate. @param {any} g @param {(v: string|undefined) => string} [moment] what an input shows of a moment */
export const formOfGate = (g, moment = same) => ({
  audience: g?.audience ? (g.audience.list ? "list" : "followers") : "", list: g?.audience?.list || g?.audience?.followers_of || "",
  room: g?.room?.mode || "", rate: String(g?.room?.rate || 100), per: milliseconds(g?.room?.per) ? brief(g.room.per) : "", burst: text(g?.room?.burst), most: text(g?.room?.max), opens: moment(g?.room?.opens_at),
  closes: moment(g?.room?.registration_closes_at), winners: text(g?.room?.winners), value: g?.room?.public_value || "",
  ticket: g?.ticket ? "1" : "", lifetime: g?.ticket ? brief(g.ticket.lifetime) : "2m", bits: g?.ticket ? text(g.ticket.work_bits) : "16", limits: limitLines(g?.limits),
});

/** What a gate has and the form does not show: parts, by their names. @param {any} g @param {(v: string|undefined) => string} [moment] */
export const keptOfGate = (g, moment = same) => ({
  room: g?.room && { mode: g.room.mode, admit_for: g.room.admit_for, registration_opens_at: iso(moment(g.room.registration_opens_at)), public_value_format: g.room.public_value_format },
  ticket: { human_check: g?.ticket?.human_check },
});

/**
 * The gate as the API takes it, undefined for none.
 * @param {ReturnType<typeof formOfGate>} d @param {{room?: any, ticket?: any}} kept @param {string} starts when the campaign starts, as the form has it
 */
export function gateOf(d, kept, starts) {
  const gate = {
    audience: d.audience === "list" ? { list: d.list } : d.audience === "followers" ? { followers_of: d.list } : undefined,
    room: d.room ? { ...(kept.room?.mode === d.room ? kept.room : {}), mode: d.room, max: whole(d.most), ...(d.room === "lottery" ? { registration_closes_at: iso(d.closes || starts), winners: whole(d.winners), public_value: d.value || undefined }
      : { rate: whole(d.rate), per: d.per || undefined, burst: whole(d.burst), opens_at: iso(d.opens) }) } : undefined,
    ticket: d.ticket ? { ...kept.ticket, lifetime: d.lifetime, work_bits: whole(d.bits) } : undefined,
    limits: d.limits ? limitsOf(d.limits).list : undefined,
  };
  return Object.values(gate).some(Boolean) ? gate : undefined;
}

/**
 * The fields of a gate. input makes one by its name, the pointer to it in the API, and what it is like.
 * @param {{d: ReturnType<typeof formOfGate>, input: (name: string, pointer: string, o?: any) => any, published?: boolean}} props published shows of a room only what may change then
 */
export function GateFields({ d, input, published }) {
  const queue = d.room && d.room !== "lottery", draft = !published;
  return html`<div class="grid">${input("audience", "/gate/audience", { options: [["", t("w.everyone")], ["list", t("w.audience.list")], ["followers", t("w.audience.followers")]] })}${d.audience && input("list", "/gate/audience/list")}
    ${draft && input("room", "/gate/room", { options: [["", t("w.room.none")], ["fifo", t("mode.fifo")], ["shuffle", t("mode.shuffle")], ["lottery", t("mode.lottery")]] })}
    ${queue && html`${input("rate", "/gate/room/rate", { type: "number", min: 1 })}${input("per", "/gate/room/per", { hint: t("w.per.hint") })}${input("burst", "/gate/room/burst", { type: "number", min: 0, hint: t("w.burst.hint") })}${draft && input("opens", "/gate/room/opens_at", { type: "datetime-local", hint: t("w.opens.hint") })}`}
    ${draft && d.room && input("most", "/gate/room/max", { type: "number", min: 0, hint: t("w.room.max.hint") })}
    ${draft && d.room === "lottery" && html`${input("closes", "/gate/room/registration_closes_at", { type: "datetime-local", hint: t("w.closes.hint") })}${input("winners", "/gate/room/winners", { type: "number", min: 1, hint: t("w.winners.hint") })}${input("value", "/gate/room/public_value", { hint: t("w.value.hint") })}`}
    ${input("ticket", "/gate/ticket", { options: [["", t("no")], ["1", t("yes")]] })}${d.ticket && input("lifetime", "/gate/ticket/lifetime", { hint: t("w.lifetime.hint") })}${d.ticket && input("bits", "/gate/ticket/work_bits", { type: "number", min: 0, hint: t("w.bits.hint") })}
    </div>${input("limits", "/gate/limits", { long: true, hint: t("w.limits.hint") })}`;
}
