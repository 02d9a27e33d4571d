// @ts-check
// Events: who takes them and how far they are, webhooks, their deliveries, and what happened last.
import { Drawer } from "../lib/box.js";
import { html, useSignal } from "../lib/html.js";
import { number } from "../lib/format.js";
import { t } from "../lib/text.js";
import { brief, exact } from "./figures.js";
import { ask, at } from "./route.js";
import { AllCSV, change, confirm, Fault, Filter, Filters, Head, may, Named, Pager, say, Table, useGet, usePages, When } from "./ui.js";

// Statuses of deliveries, as the API filters by them.
const statuses = ["pending", "delivered", "failed"];

/** The mark of a webhook. @param {any} e */
const dot = (e) => (e.disabled ? "warn" : e.failing_since ? "bad" : "ok");

export function Events() {
  const sinks = useGet("/v1/event-sinks", { every: 5000 }), hooks = useGet("/v1/webhook-endpoints", { every: 10_000 }), made = useSignal(/** @type {any} */ (null));
  const q = at.value.query, id = q.get("open") || "", open = hooks.value?.items.find((/** @type {any} */ e) => e.id === id);
  const add = () => confirm({
    title: t("hook.add"), text: t("hook.add.text"), action: t("hook.add"), fields: [{ name: "url", label: t("hook.url"), type: "url" }, { name: "description", label: t("hook.description"), required: false }],
    do: async (v) => {
      made.value = await change("POST", "/v1/webhook-endpoints", { url: v.url, description: v.description || undefined });
      hooks.again();
    },
  });
  const path = (/** @type {any} */ e) => "/v1/webhook-endpoints/" + encodeURIComponent(e.id);
  const rotate = (/** @type {any} */ e) => confirm({
    title: t("hook.rotate"), text: t("hook.rotate.text", { url: e.url }), action: t("hook.rotate"),
    do: async () => { made.value = await change("POST", path(e) + "/rotate-secret"); },
  });
  const drop = (/** @type {any} */ e) => confirm({ title: t("hook.drop"), text: t("hook.drop.text", { url: e.url }), action: t("hook.drop"), danger: true, do: async () => (await change("DELETE", path(e)), hooks.again()) });
  const flip = (/** @type {any} */ e) => {
    const verb = e.disabled ? "enable" : "disable";
    confirm({
      title: t(verb), text: t(e.disabled ? "enable.text" : "disable.text", { url: e.url }), action: t(verb), danger: !e.disabled,
      do: async () => { await change("PATCH", path(e), { disabled: !e.disabled }); say(t("act.done", { what: t(verb), name: e.url })); hooks.again(); },
    });
  };
  const word = (q.get("q") || "").toLowerCase(), is = q.get("standing") || "";
  const shown = hooks.value?.items.filter((/** @type {any} */ e) => (!word || (e.url + " " + e.description).toLowerCase().includes(word)) && (!is || dot(e) === is)) ?? null;
  const sinkColumns = [
    { title: t("sink"), show: (/** @type {any} */ s) => s.name },
    { title: t("standing"), show: (/** @type {any} */ s) => html`<span class=${"dot " + (s.ok ? "ok" : "bad")}></span> ${s.ok ? t("ok") : s.problem}`, text: (/** @type {any} */ s) => (s.ok ? t("ok") : s.problem) },
    { title: t("behind"), number: true, show: (/** @type {any} */ s) => number(s.behind) },
    { title: t("tile.lag"), number: true, show: (/** @type {any} */ s) => brief(s.lag_ms) },
    { title: t("published"), number: true, show: (/** @type {any} */ s) => number(s.published) },
  ];
  const stands = (/** @type {any} */ e) => (e.disabled ? e.disabled_reason || t("disabled") : e.failing_since ? t("failing", { at: exact(e.failing_since) }) : t("ok"));
  const hookColumns = [
    { title: t("hook.url"), show: (/** @type {any} */ e) => html`<${Named} data-open=${e.id} open=${() => ask({ open: e.id })} title=${e.url} id=${e.description} />`, text: (/** @type {any} */ e) => e.url },
    { title: t("standing"), show: (/** @type {any} */ e) => html`<span class=${"dot " + dot(e)}></span> ${stands(e)}`, text: stands },
  ];
  const hookFile = [{ title: t("w.id"), show: (/** @type {any} */ e) => e.id }, ...hookColumns, { title: t("hook.description"), show: (/** @type {any} */ e) => e.description }];
  return html`<${Head} title=${t("screen.events")}>${may("admin") && html`<button type="button" class="primary" data-act="hook-add" onClick=${add}>${t("hook.add")}</button>`}<//>
    <${Fault} text=${sinks.fault || hooks.fault} again=${() => (sinks.again(), hooks.again())} />
    ${/* The repeat of a call whose answer got lost has no secret. */ made.value && html`<p class="note warn">${t(made.value.secret ? "hook.secret" : "hook.unseen", { url: made.value.url })} <code>${made.value.secret}</code>
      <button type="button" onClick=${() => (made.value = null)}>${t("close")}</button></p>`}
    <section><h2>${t("sinks")}</h2><${Table} name=${t("sinks")} rows=${sinks.value?.items || null} empty=${t("sinks.none")} columns=${sinkColumns} />
      <div class="row pager"><p class="muted">${t("dead.consumers")} <code>dibs events dead list</code></p><div class="grow"></div><${AllCSV} name="sinks.csv" columns=${sinkColumns} rows=${sinks.value?.items || []} /></div></section>
    <section><h2>${t("hooks")}</h2>
    <${Filters}><${Filter} label=${t("search")} value=${q.get("q") || ""} change=${(/** @type {string} */ v) => ask({ q: v })} />
      <${Filter} label=${t("standing")} value=${is} change=${(/** @type {string} */ v) => ask({ standing: v })} options=${[["", t("all")], ["ok", t("ok")], ["bad", t("hook.failing")], ["warn", t("disabled")]]} /><//>
    <${Table} name=${t("hooks")} rows=${shown} empty=${t(word || is ? "match.none" : "hooks.none")} columns=${[
      ...hookColumns,
      { title: t("actions"), show: (/** @type {any} */ e) => may("admin") && html`<div class="row"><button type="button" data-act=${e.disabled ? "enable" : "disable"} onClick=${() => flip(e)}>${t(e.disabled ? "enable" : "disable")}</button><button type="button" data-act="hook-rotate" onClick=${() => rotate(e)}>${t("hook.rotate")}</button><button type="button" class="danger" data-act="hook-drop" onClick=${() => drop(e)}>${t("hook.drop")}</button></div>` },
    ]} /><div class="row pager"><div class="grow"></div><${AllCSV} name="webhooks.csv" columns=${hookFile} rows=${shown || []} /></div></section>
    <${Drawer} title=${open?.url || ""} open=${!!open} onClose=${() => ask({ open: "", delivery: "" })}>${open && html`<${Deliveries} e=${open} />`}<//>`;
}

/** What was posted to an endpoint, with the dead letters: the deliveries that were given up. @param {{e: any}} props */
function Deliveries({ e }) {
  const path = "/v1/webhook-endpoints/" + encodeURIComponent(e.id), status = at.value.query.get("delivery") || "";
  const list = path + "/deliveries" + (status ? "?status=" + encodeURIComponent(status) : ""), pages = usePages(list, 20, 5000);
  const columns = [
    { title: t("event"), show: (/** @type {any} */ d) => html`${d.type}<br /><small class="muted">${d.subject} · ${d.event_id}</small>`, text: (/** @type {any} */ d) => [d.type, d.subject, d.event_id].join(" ") },
    { title: t("standing"), show: (/** @type {any} */ d) => html`<span class=${"tag " + (d.status === "delivered" ? "good" : d.status === "failed" ? "bad" : "warn")}>${t("delivery." + d.status)}</span>${d.next_at && html`<br /><small class="muted">${t("delivery.next", { at: exact(d.next_at) })}</small>`}`, text: (/** @type {any} */ d) => t("delivery." + d.status) },
    { title: t("answer"), show: (/** @type {any} */ d) => html`${d.answer || ""} ${d.problem && html`<small class="muted" lang=${/^[ -~]*$/.test(d.problem) ? "en" : undefined}>${d.problem}</small>`}${!d.answer && !d.problem && "–"}`, text: (/** @type {any} */ d) => [d.answer, d.problem].filter(Boolean).join(" ") },
    { title: t("tries"), number: true, show: (/** @type {any} */ d) => number(d.attempts || 0) },
    { title: t("at"), show: (/** @type {any} */ d) => html`<${When} at=${d.updated_at} />`, text: (/** @type {any} */ d) => exact(d.updated_at) },
  ];
  const redeliver = (/** @type {string} */ text, /** @type {any} */ body) => confirm({
    title: t("redeliver"), text, action: t("redeliver"),
    do: async () => { const done = await change("POST", path + "/redeliver", body); say(t("redelivered", { n: number(done.redelivered) })); pages.again(); },
  });
  return html`<${Filters}><${Filter} label=${t("status")} value=${status} change=${(/** @type {string} */ v) => ask({ delivery: v })} options=${[["", t("all")], ...statuses.map((s) => [s, t("delivery." + s)])]} />
      ${may("admin") && html`<button type="button" data-act="redeliver-failed" disabled=${e.disabled} onClick=${() => redeliver(t("redeliver.failed.text", { url: e.url }), { failed: true })}>${t("redeliver.failed")}</button>`}<//>
    <${Fault} text=${pages.fault} again=${pages.again} /><${Table} name=${t("deliveries")} rows=${pages.items} empty=${t("deliveries.none")} columns=${[
    ...columns,
    { title: t("actions"), show: (/** @type {any} */ d) => may("admin") && html`<button type="button" data-act="redeliver" disabled=${e.disabled} onClick=${() => redeliver(t("redeliver.text", { id: d.event_id, url: e.url }), { event_id: d.event_id })}>${t("redeliver")}</button>` },
  ]} /><${Pager} pages=${pages}><${AllCSV} name="deliveries.csv" columns=${columns} path=${list} /><//>`;
}
