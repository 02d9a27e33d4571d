// @ts-check
// Who is signed in to the console, where, and how a session is ended.
import { html } from "../lib/html.js";
import { time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { exact } from "./figures.js";
import { ask, at } from "./route.js";
import { AllCSV, change, confirm, Fault, Filter, Filters, Head, Pager, say, Table, usePages, When } from "./ui.js";

// How often the list is read again, in milliseconds.
const every = 10_000;

export function Sessions() {
  const q = at.value.query, word = (q.get("q") || "").toLowerCase();
  const keep = (/** @type {any} */ s) => !word || [s.name, s.key_id, s.address, s.agent].join(" ").toLowerCase().includes(word);
  const pages = usePages("/v1/sessions", 50, every, word ? { name: encodeURIComponent(word), keep } : null);
  const end = (/** @type {any} */ s) => confirm({
    title: t("session.end"), text: t(s.current ? "session.end.self" : "session.end.text", { name: s.name || s.key_id }), action: t("session.end"), danger: true,
    do: async () => {
      await change("DELETE", "/v1/sessions/" + encodeURIComponent(s.id));
      say(t("act.done", { what: t("session.ended"), name: s.name || s.key_id }));
      pages.again();
    },
  });
  const columns = [
    { title: t("session.who"), show: (/** @type {any} */ s) => html`<b>${s.name || s.key_id}</b>${s.current && html` <span class="tag good">${t("key.yours")}</span>`}<br /><small class="muted">${s.key_id}</small>`, text: (/** @type {any} */ s) => [s.name, s.key_id].filter(Boolean).join(" ") },
    { title: t("session.where"), show: (/** @type {any} */ s) => html`${s.address || "–"}<br /><small class="muted">${s.agent || "–"}</small>`, text: (/** @type {any} */ s) => [s.address, s.agent].filter(Boolean).join(" ") },
    { title: t("session.began"), show: (/** @type {any} */ s) => html`<${When} at=${s.created_at} />`, text: (/** @type {any} */ s) => exact(s.created_at) },
    { title: t("key.used"), show: (/** @type {any} */ s) => html`<${When} at=${s.last_used_at} /><br /><small class="muted">${t("key.until", { at: time(s.expires_at) })}</small>`, text: (/** @type {any} */ s) => (s.last_used_at ? exact(s.last_used_at) : "") },
  ];
  const file = [...columns, { title: t("key.expires"), show: (/** @type {any} */ s) => exact(s.expires_at) }];
  return html`<${Head} title=${t("screen.sessions")} /><p class="muted">${t("sessions.text")}</p>
    <${Filters}><${Filter} label=${t("search")} value=${q.get("q") || ""} change=${(/** @type {string} */ v) => ask({ q: v })} /><//>
    <${Fault} text=${pages.fault} again=${pages.again} />
    <${Table} name=${t("screen.sessions")} rows=${pages.items} empty=${t(word ? "match.none" : "sessions.none")} columns=${[
      ...columns,
      { title: t("actions"), show: (/** @type {any} */ s) => html`<button type="button" class="danger" data-act="end-session" onClick=${() => end(s)}>${t("session.end")}</button>` },
    ]} /><${Pager} pages=${pages}><${AllCSV} name="sessions.csv" columns=${file} path="/v1/sessions" keep=${keep} /><//>`;
}
