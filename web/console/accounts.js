// @ts-check
// Accounts: what is on one, its entries, and money that came in; and what red packets hold in escrow.
import { html } from "../lib/html.js";
import { digits, minor, money } from "../lib/format.js";
import { t } from "../lib/text.js";
import { exact } from "./figures.js";
import { standing, Standing } from "./phase.js";
import { ask, at, Link } from "./route.js";
import { AllCSV, change, confirm, Fault, Filter, Filters, Head, Invalid, may, Named, Pager, say, Table, useGet, usePages } from "./ui.js";

export function Accounts() {
  const user = at.value.query.get("user") || "";
  return html`<${Head} title=${t("screen.accounts")} /><p class="muted">${t("accounts.text")}</p>
    <${Filters}><${Filter} label=${t("user")} value=${user} change=${(/** @type {string} */ v) => ask({ user: v })} /><//>
    ${user ? html`<${Account} user=${user} key=${user} />` : html`<p class="muted">${t("accounts.choose")}</p><${Packets} />`}`;
}

/** The red packets, with where the money of each is: what was paid is credited, returned or in escrow. */
function Packets() {
  const keep = (/** @type {any} */ c) => c.kind === "redpacket" && c.funds, pages = usePages("/v1/campaigns", 20, 0, { name: "packets", keep });
  const sum = (/** @type {string} */ of) => ({ title: t("funds." + of), number: true, show: (/** @type {any} */ c) => money(c.funds[of]) });
  const columns = [
    { title: t("campaign"), show: (/** @type {any} */ c) => html`<${Named} to=${"/campaigns/" + encodeURIComponent(c.id)} title=${c.title} id=${c.id} />`, text: (/** @type {any} */ c) => c.id },
    { title: t("standing"), show: (/** @type {any} */ c) => html`<${Standing} c=${c} />${c.funds.problem && html`<br /><small class="fault">${c.funds.problem}</small>`}`, text: (/** @type {any} */ c) => t("standing." + standing(c)) },
    { title: t("w.sender"), show: (/** @type {any} */ c) => c.sender_id || "–" },
    ...["funded", "credited", "returned", "escrow"].map(sum),
  ];
  return html`<section id="packets"><h2>${t("packets")}</h2><${Fault} text=${pages.fault} again=${pages.again} />
    <${Table} name=${t("packets")} rows=${pages.items} empty=${t("packets.none")} columns=${columns} />
    <${Pager} pages=${pages}><${AllCSV} name="packets.csv" columns=${columns} path="/v1/campaigns" keep=${keep} /><//></section>`;
}

/** The account that an entry has its other side on: money that does not come from outside goes through a red packet's escrow. @param {any} e */
const other = (e) => (e.kind === "deposit" ? t("account.outside") : t("account.escrow", { id: e.campaign_id }));

/** @param {{user: string}} props */
function Account({ user }) {
  const path = "/v1/accounts/" + encodeURIComponent(user), got = useGet(path, { every: 5000 }), pages = usePages(path + "/entries");
  const columns = [
    { title: t("at"), show: (/** @type {any} */ e) => exact(e.at) },
    { title: t("entry"), show: (/** @type {any} */ e) => t("entry." + e.kind) },
    { title: t("amount"), number: true, show: (/** @type {any} */ e) => html`<span class=${e.amount.amount < 0 ? "minus" : "plus"}>${money(e.amount)}</span>`, text: (/** @type {any} */ e) => money(e.amount) },
    { title: t("entry.other"), show: other },
    { title: t("campaign"), show: (/** @type {any} */ e) => e.campaign_id && html`<${Link} to=${"/campaigns/" + encodeURIComponent(e.campaign_id)}>${e.campaign_id}<//>`, text: (/** @type {any} */ e) => e.campaign_id || "" },
    { title: t("reference"), show: (/** @type {any} */ e) => e.claim_id || e.ref || "" },
  ];
  const deposit = () => confirm({
    title: t("deposit"), text: t("deposit.text", { user }), action: t("deposit"),
    fields: [{ name: "sum", label: t("amount"), value: "100.00" }, { name: "currency", label: t("w.currency"), value: "CNY" }, { name: "ref", label: t("reference"), hint: t("deposit.ref") }],
    do: async (v) => {
      const amount = minor(v.sum, v.currency);
      if (!amount) throw new Invalid(t("sum.bad", { sum: v.sum, like: digits({ amount: 1250, currency: v.currency }) }));
      await change("POST", path + "/deposits", { amount: { amount, currency: v.currency }, ref: v.ref });
      say(t("deposit.done", { user }));
      got.again();
      pages.again();
    },
  });
  return html`<${Fault} text=${got.fault || pages.fault} again=${got.again} />
    <div class="row"><p class="balance">${t("balance")} ${(got.value?.balances || []).map((/** @type {any} */ m) => html`<b>${money(m)}</b> `)}${got.value && !got.value.balances.length && "–"}</p><div class="grow"></div>${may("admin") && html`<button type="button" onClick=${deposit}>${t("deposit")}</button>`}</div>
    <${Table} name=${t("screen.accounts")} rows=${pages.items} empty=${t("entries.none")} columns=${columns} />
    <${Pager} pages=${pages}><${AllCSV} name="entries.csv" columns=${columns} path=${path + "/entries"} /><//>`;
}
