// @ts-check
// Acts that wait for a second administrator, with the whole call of each, and what was decided lately.
import { html } from "../lib/html.js";
import { time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { actName } from "./history.js";
import { change, confirm, Fault, Head, Pager, say, Table, usePages, When, who } from "./ui.js";
import { Members, shown } from "./values.js";

// How often the list is read again, in milliseconds.
const every = 5000;

const dots = /** @type {Record<string, string>} */ ({ pending: "warn", approved: "warn", done: "ok", failed: "bad", rejected: "", expired: "" });

export function Approvals() {
  const pages = usePages("/v1/approvals", 20, every);
  const decide = (/** @type {any} */ a, /** @type {"approve"|"reject"} */ how) => confirm({
    title: t("approval." + how), text: t("approval." + how + ".text", { what: actName(a.action), target: a.target, name: a.asked_name }), action: t("approval." + how), danger: how === "reject",
    fields: [{ name: "why", label: t("approval.why"), required: false }],
    do: async (v) => {
      const done = await change("POST", "/v1/approvals/" + encodeURIComponent(a.id) + "/" + how, { why: v.why });
      say(t("act.done", { what: t("approval.is." + done.state), name: actName(a.action) }));
      pages.again();
    },
  });
  const mine = (/** @type {any} */ a) => a.asked_by === who.value?.key_id || a.asked_name === who.value?.name;
  return html`<${Head} title=${t("screen.approvals")} /><p class="muted">${t("approvals.text")}</p>
    <${Fault} text=${pages.fault} again=${pages.again} />
    <${Table} name=${t("screen.approvals")} rows=${pages.items} empty=${t("approvals.none")} columns=${[
      { title: t("did"), show: (/** @type {any} */ a) => html`<b>${actName(a.action)}</b>${a.target && html`<br /><code>${a.target}</code>`}${a.call && html`<${Call} of=${a.call} />`}` },
      { title: t("by"), show: (/** @type {any} */ a) => html`${a.asked_name}${mine(a) && html` <span class="tag good">${t("approval.yours")}</span>`}<br /><small class="muted"><${When} at=${a.asked_at} /></small>` },
      { title: t("standing"), show: (/** @type {any} */ a) => html`<span class="standing"><span class=${"dot " + dots[a.state]}></span> ${t("approval.is." + a.state)}${a.status ? " · " + a.status : ""}</span><br />
        <small class="muted">${a.state === "pending" ? t("key.until", { at: time(a.expires_at) }) : a.decided_name ? html`${a.decided_name}, <${When} at=${a.decided_at} />` : ""}</small>${a.why && html`<br /><small>${a.why}</small>`}` },
      { title: t("actions"), show: (/** @type {any} */ a) => a.state === "pending" && html`<div class="row tight">
        ${!mine(a) && html`<button type="button" class="primary" data-act="approve" onClick=${() => decide(a, "approve")}>${t("approval.approve")}</button>`}
        <button type="button" class="danger" data-act="reject" onClick=${() => decide(a, "reject")}>${t(mine(a) ? "approval.back" : "approval.reject")}</button></div>` },
    ]} /><${Pager} pages=${pages} />`;
}

/** What will be done, as it was sent. @param {{of: any}} props */
const Call = ({ of }) => html`<details><summary>${t("approval.call")}</summary>${of.body && typeof of.body === "object" ? html`<${Members} of=${of.body} />` : html`<p>${shown("", of.body)}</p>`}</details>`;
