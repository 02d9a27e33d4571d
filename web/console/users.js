// @ts-check
// A user: what there is about them, and their erasure.
import { html } from "../lib/html.js";
import { number } from "../lib/format.js";
import { t } from "../lib/text.js";
import { exact } from "./figures.js";
import { ask, at, Link } from "./route.js";
import { AllCSV, change, confirm, Fault, Filter, Filters, Head, Invalid, Pager, say, Table, useGet, usePages } from "./ui.js";

export function Users() {
  const user = at.value.query.get("user") || "", pages = usePages("/v1/erasures", 20, 5000);
  const erase = () => confirm({
    title: t("erase"), text: t("erase.text", { user }), action: t("erase"), danger: true,
    fields: [{ name: "again", label: t("erase.again", { user }) }, { name: "balance", label: t("erase.balance"), options: [["", t("no")], ["1", t("yes")]] }],
    do: async (v) => {
      if (v.again !== user) throw new Invalid(t("erase.other", { user }));
      await change("POST", "/v1/users/" + encodeURIComponent(user) + "/erasure", { leave_balance: v.balance === "1" });
      say(t("erase.begun"));
      pages.again();
    },
  });
  const columns = [
    { title: t("w.id"), show: (/** @type {any} */ e) => html`<code>${e.id}</code>`, text: (/** @type {any} */ e) => e.id },
    { title: t("user"), show: (/** @type {any} */ e) => e.user_id || "–" },
    { title: t("standing"), show: (/** @type {any} */ e) => html`${t("erasure." + e.state)} <small class="muted">${e.waits_for.join(", ")}</small>`, text: (/** @type {any} */ e) => [t("erasure." + e.state), ...e.waits_for].join(" ") },
    { title: t("erased"), number: true, show: (/** @type {any} */ e) => number(Object.values(e.erased || {}).reduce((a, b) => a + Number(b), 0)) },
    { title: t("at"), show: (/** @type {any} */ e) => exact(e.requested_at) },
  ];
  return html`<${Head} title=${t("screen.users")}>${user && html`<button type="button" class="danger" onClick=${erase}>${t("erase")}</button>`}<//>
    <${Filters}><${Filter} label=${t("user")} value=${user} change=${(/** @type {string} */ v) => ask({ user: v })} /><//>
    ${user && html`<${Record} user=${user} key=${user} />`}
    <section><h2>${t("erasures")}</h2><${Fault} text=${pages.fault} again=${pages.again} />
    <${Table} name=${t("erasures")} rows=${pages.items} empty=${t("erasures.none")} columns=${columns} />
    <${Pager} pages=${pages}><${AllCSV} name="erasures.csv" columns=${columns} path="/v1/erasures" /><//></section>`;
}

/** What there is about a user. @param {{user: string}} props */
function Record({ user }) {
  const got = useGet("/v1/users/" + encodeURIComponent(user)), v = got.value;
  if (!v) return html`<${Fault} text=${got.fault} again=${got.again} />`;
  const lists = Object.entries(v).filter(([, x]) => Array.isArray(x));
  return html`<section class="card"><h2>${user}</h2><p class="row"><${Link} class="button" to=${"/orders?user_id=" + encodeURIComponent(user)}>${t("screen.orders")}<//><${Link} class="button" to=${"/accounts?user=" + encodeURIComponent(user)}>${t("screen.accounts")}<//></p>
    <dl class="facts">${lists.map(([k, x]) => html`<div><dt><code>${k}</code></dt><dd>${number(/** @type {any[]} */ (x).length)}</dd></div>`)}</dl></section>`;
}
