// @ts-check
// Acts that wait for a second administrator, with the whole call of each, and what was decided lately.
import { html } from "../lib/html.js";
import { time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { exact } from "./figures.js";
import { actName } from "./history.js";
import { ask, at } from "./route.js";
import { Facts } from "./terms.js";
import { AllCSV, change, confirm, Fault, Filter, Filters, Head, Pager, say, Table, usePages, When, who } from "./ui.js";
import { Members, shown } from "./values.js";

// How often the list is read again, in milliseconds.
const every = 5000;

/** What an act is about: where it will be sent while it waits, whom the log does not name included. @param {any} a */
const about = (a) => a.call?.path || a.target;

const dots = /** @type {Record<string, string>} */ ({ pending: "warn", approved: "warn", done: "ok", failed: "bad", rejected: "", expired: "" });

export function Approvals() {
  const q = at.value.query, word = (q.get("q") || "").toLowerCase(), is = q.get("standing") || "";
  const keep = (/** @type {any} */ a) => (!word || [actName(a.action), about(a), a.asked_name].join(" ").toLowerCase().includes(word)) && (!is || a.state === is);
  const only = word || is ? { name: [word, is].map(encodeURIComponent).join("/"), keep } : null, pages = usePages("/v1/approvals", 20, every, only);
  const decide = (/** @type {any} */ a, /** @type {"approve"|"reject"} */ how) => confirm({
    title: t("approval." + how), text: t("approval." + how + ".text", { what: actName(a.action), target: about(a), name: a.asked_name }), action: t("approval." + how), danger: how === "reject",
    fields: [{ name: "why", label: t("approval.why"), required: false }],
    do: async (v) => {
      const done = await change("POST", "/v1/approvals/" + encodeURIComponent(a.id) + "/" + how, { why: v.why });
      say(t("act.done", { what: t("approval.is." + done.state), name: actName(a.action) }));
      pages.again();
    },
  });
  const mine = (/** @type {any} */ a) => a.asked_by === who.value?.key_id || a.asked_name === who.value?.name;
  const file = [
    { title: t("w.id"), show: (/** @type {any} */ a) => a.id }, { title: t("did"), show: (/** @type {any} */ a) => actName(a.action) }, { title: t("filter.target"), show: (/** @type {any} */ a) => a.target },
    { title: t("by"), show: (/** @type {any} */ a) => a.asked_name }, { title: t("at"), show: (/** @type {any} */ a) => exact(a.asked_at) },
    { title: t("standing"), show: (/** @type {any} */ a) => t("approval.is." + a.state) + (a.status ? " " + a.status : "") },
    { title: t("approval.decided"), show: (/** @type {any} */ a) => (a.decided_name ? a.decided_name + " " + exact(a.decided_at) : "") }, { title: t("approval.why"), show: (/** @type {any} */ a) => a.why || "" },
  ];
  return html`<${Head} title=${t("screen.approvals")} /><p class="muted">${t("approvals.text")}</p>
    <${Filters}><${Filter} label=${t("search")} value=${q.get("q") || ""} change=${(/** @type {string} */ v) => ask({ q: v })} />
      <${Filter} label=${t("standing")} value=${is} change=${(/** @type {string} */ v) => ask({ standing: v })} options=${[["", t("all")], ...Object.keys(dots).map((s) => [s, t("approval.is." + s)])]} /><//>
    <${Fault} text=${pages.fault} again=${pages.again} />
    <${Table} name=${t("screen.approvals")} rows=${pages.items} empty=${t(only ? "match.none" : "approvals.none")} columns=${[
      { title: t("did"), show: (/** @type {any} */ a) => html`<b>${actName(a.action)}</b>${about(a) && html`<br /><code>${about(a)}</code>`}${a.call && html`<${Call} of=${a.call} />`}` },
      { title: t("by"), show: (/** @type {any} */ a) => html`${a.asked_name}${mine(a) && html` <span class="tag good">${t("approval.yours")}</span>`}<br /><small class="muted"><${When} at=${a.asked_at} /></small>` },
      { title: t("standing"), show: (/** @type {any} */ a) => html`<span class="standing"><span class=${"dot " + dots[a.state]}></span> ${t("approval.is." + a.state)}${a.status ? " · " + a.status : ""}</span><br />
        <small class="muted">${a.state === "pending" ? t("key.until", { at: time(a.expires_at) }) : a.decided_name ? html`${a.decided_name}, <${When} at=${a.decided_at} />` : ""}</small>${a.why && html`<br /><small>${a.why}</small>`}` },
      { title: t("actions"), show: (/** @type {any} */ a) => a.state === "pending" && html`<div class="row tight">
        ${!mine(a) && html`<button type="button" class="primary" data-act="approve" onClick=${() => decide(a, "approve")}>${t("approval.approve")}</button>`}
        <button type="button" class="danger" data-act="reject" onClick=${() => decide(a, "reject")}>${t(mine(a) ? "approval.back" : "approval.reject")}</button></div>` },
    ]} /><${Pager} pages=${pages}><${AllCSV} name="approvals.csv" columns=${file} path="/v1/approvals" keep=${keep} /><//>`;
}

/** What will be done, as it was sent. @param {{of: any}} props */
const Call = ({ of }) => html`<details><summary>${t("approval.call")}</summary><${Facts} rows=${Object.entries(of.values || {})} />${of.body && typeof of.body === "object" ? html`<${Members} of=${of.body} />` : html`<p>${shown("", of.body)}</p>`}</details>`;
