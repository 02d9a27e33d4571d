// @ts-check
// A campaign, step by step: what it gives, how much, for how much, who may, and a last look.
import { html, useEffect, useRef, useSignal } from "../lib/html.js";
import { campaignPath, get } from "../lib/api.js";
import { digits, milliseconds, minor, number, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { formOfGate, GateFields, gateOf, iso, keptOfGate, local } from "./gateform.js";
import { limitsOf, tierLines, tiersOf } from "./limits.js";
import { ask, at, go, Link } from "./route.js";
import { change, Fault, faultsOf, Field, Head, Invalid, may, save, say, saying } from "./ui.js";
import { classes, draw } from "./shares.js";
import { Facts, row, sum, termsOf } from "./terms.js";
import { yaml } from "./yaml.js";

const steps = ["kind", "stock", "terms", "gate", "review"];

/** Five minutes from now. */
const soon = () => Math.floor(Date.now() / 60_000 + 5) * 60_000;

const fresh = () => ({
  kind: "sale", id: "", title: "", product_id: "", comment: "", starts: local(soon()), ends: local(soon() + 36e5), shards: "",
  source: "units", units: "200", items: "", count: "1000", pattern: "XXXX-XXXX", total: "1000.00", currency: "CNY", shares: "100", split: "double_mean", min: "", max: "", sender: "",
  price: "", limit: "1", of_product: "", pay: "15", late: "reclaim", tiers: "", valid: "", until: "", low: "",
  ...formOfGate(null),
  // What a copy takes over and the form does not show: parts of the gate, by their names.
  kept: /** @type {{room?: any, ticket?: any}} */ ({}), file: /** @type {File|null} */ (null),
});

/** @typedef {ReturnType<typeof fresh>} Draft */

/** The campaign as POST /v1/campaigns takes it. @param {Draft} d */
export function spec(d) {
  // What is no amount is sent as it was written, and refused: as null it would be left out.
  const units = (/** @type {string} */ v) => (v ? minor(v, d.currency) ?? v : undefined), amount = (/** @type {string} */ v) => (v ? { amount: units(v), currency: d.currency } : undefined);
  const whole = (/** @type {string} */ v) => (v ? Number(v) : undefined);
  const stock = d.kind === "redpacket"
    ? { redpacket: { total: amount(d.total), count: whole(d.shares), split: d.split, min: units(d.min), max: units(d.max) } }
    : d.source === "units" ? { units: whole(d.units) } : d.source === "codes" ? { codes: { count: whole(d.count), pattern: d.pattern } }
    : { items: d.source === "file" ? [] : d.items.split("\n").map((x) => x.trim()).filter(Boolean) };
  return {
    id: d.id || undefined, kind: d.kind, title: d.title, product_id: d.product_id || undefined, comment: d.comment || undefined,
    starts_at: iso(d.starts), ends_at: iso(d.ends), stock, limit_per_user: whole(d.limit), limit_per_product: d.kind === "redpacket" || !d.product_id ? undefined : whole(d.of_product), sender_id: d.kind === "redpacket" ? d.sender || undefined : undefined,
    price: d.kind === "sale" ? amount(d.price) : undefined, tiers: d.kind === "sale" && d.tiers ? tiersOf(d.tiers).list : undefined,
    pay_within: d.kind === "sale" && d.pay ? d.pay + "m" : undefined, late_payment: d.kind === "sale" && d.pay ? d.late : undefined,
    valid_for: d.kind === "coupon" && d.valid ? Number(d.valid) * 24 + "h" : undefined, valid_until_at: d.kind === "coupon" ? iso(d.until) : undefined, low_stock: whole(d.low), shards: whole(d.shards),
    gate: gateOf(d, d.kept, d.starts),
  };
}

/** The first line of the form that cannot be read; "" when all can. @param {Draft} d */
const unread = (d) => (d.kind === "sale" && tiersOf(d.tiers).bad) || limitsOf(d.limits).bad;

/** What the address says of a new draft. @returns {Partial<Draft>} */
function asked() {
  const kind = at.peek().query.get("kind") || "";
  return ["sale", "coupon", "redpacket"].includes(kind) ? { kind, source: kind === "coupon" ? "codes" : "units" } : {};
}

/** A draft that repeats a campaign. @param {any} c @returns {Partial<Draft>} */
function copyOf(c) {
  const money = c.price || c.redpacket?.total || c.product?.price, g = c.gate, p = c.stock?.redpacket, starts = soon();
  // Each moment keeps its distance to the start.
  const later = (/** @type {string|undefined} */ v) => (v ? local(Date.parse(v) - Date.parse(c.starts_at) + starts) : "");
  const text = (/** @type {number|undefined} */ v) => (v ? String(v) : "");
  return {
    kind: c.kind, title: c.title, product_id: c.product_id || "", comment: c.comment || "", starts: local(starts), ends: later(c.ends_at), shards: c.shards > 1 ? String(c.shards) : "", currency: money?.currency || "CNY",
    source: c.stock?.codes ? "codes" : c.stock?.items_count !== undefined ? "items" : "units", units: String(c.stock?.units ?? 200), count: String(c.stock?.codes?.count ?? 1000), pattern: c.stock?.codes?.pattern || "XXXX-XXXX",
    ...(p ? { total: digits(p.total), shares: String(p.count), split: p.split || "double_mean", min: p.min ? digits({ amount: p.min, currency: p.total.currency }) : "", max: p.max ? digits({ amount: p.max, currency: p.total.currency }) : "", sender: c.sender_id || "" } : {}),
    price: c.price ? digits(c.price) : "", limit: String(c.limit_per_user), of_product: text(c.limit_per_product), pay: c.pay_within ? String(milliseconds(c.pay_within) / 60_000) : "", late: c.late_payment || "reclaim",
    tiers: tierLines(c.tiers), valid: c.valid_for ? String(milliseconds(c.valid_for) / 864e5) : "", until: c.valid_until_at ? local(Date.parse(c.valid_until_at)) : "", low: c.low_stock ? String(c.low_stock) : "",
    ...formOfGate(g, later), kept: keptOfGate(g, later),
  };
}

// Which step a fault of the server belongs to.
const belongs = /** @type {[RegExp, number][]} */ ([[/^\/(kind|id|title|product_id|comment|starts_at|ends_at)/, 0], [/^\/(stock|sender_id)/, 1], [/^\/(price|tiers|limit_per_user|limit_per_product|pay_within|late_payment|valid|low_stock|shards)/, 2], [/^\/gate/, 3]]);

export function Wizard() {
  const draft = useSignal(/** @type {Draft} */ ({ ...fresh(), ...asked() })), faults = useSignal(/** @type {Record<string, string>} */ ({})), fault = useSignal(""), busy = useSignal(false);
  // The draft that was made, and whether the codes of the file are in it: neither is done again where what comes after fails.
  const made = useSignal(/** @type {any} */ (null)), imported = useSignal(false);
  const q = at.value.query, copy = q.get("copy"), d = draft.value;
  // What is published is what was made: the draft is changed on its own screen from then on.
  const step = made.value ? steps.length - 1 : Math.min(steps.length - 1, Math.max(0, Math.trunc(Number(q.get("step")) - 1) || 0));
  const turn = (/** @type {number} */ n) => ask({ step: n ? String(n + 1) : "" });
  useEffect(() => {
    if (copy) get(campaignPath(copy)).then((c) => (draft.value = { ...fresh(), ...copyOf(c) }), (e) => (fault.value = saying(e)));
  }, [copy]);
  const began = useRef(step);
  useEffect(() => {
    // A keyboard goes on where the step begins.
    if (began.current !== step) /** @type {HTMLElement|null} */ (document.querySelector("form.card :is(input, select, textarea, [tabindex='-1'])"))?.focus();
    began.current = step;
  }, [step]);
  const set = (/** @type {string} */ k) => (/** @type {any} */ e) => (draft.value = { ...draft.peek(), [k]: e.target.type === "checkbox" ? (e.target.checked ? "1" : "") : e.target.value });
  const input = (/** @type {string} */ k, /** @type {string} */ pointer, o = /** @type {any} */ ({})) => html`<${Field} label=${t("w." + k)} hint=${o.hint} fault=${faults.value[pointer]}>
    ${o.options ? html`<select name=${k} value=${d[/** @type {keyof Draft} */ (k)]} onChange=${set(k)}>${o.options.map((/** @type {[string, string]} */ [v, text]) => html`<option value=${v} selected=${d[/** @type {keyof Draft} */ (k)] === v}>${text}</option>`)}</select>`
      : o.long ? html`<textarea name=${k} rows="6" value=${d[/** @type {keyof Draft} */ (k)]} onInput=${set(k)}></textarea>`
      : html`<input name=${k} type=${o.type || "text"} value=${d[/** @type {keyof Draft} */ (k)]} onInput=${set(k)} required=${o.required} min=${o.min} step=${o.parts || o.type === "datetime-local" ? "any" : undefined} autocomplete="off" />`}<//>`;

  /** Makes the draft, and publishes it when asked. @param {boolean} publish */
  async function finish(publish) {
    busy.value = true;
    fault.value = "";
    faults.value = {};
    try {
      const line = unread(draft.peek());
      if (line) throw new Invalid(t("w.unread", { line }));
      const c = (made.value ||= await change("POST", "/v1/campaigns", spec(draft.peek()))), file = draft.peek().file;
      if (file && d.source === "file" && !imported.peek()) {
        await change("POST", campaignPath(c.id, "/codes"), undefined, file);
        imported.value = true;
      }
      if (publish) await change("POST", campaignPath(c.id, "/publish"), { version: c.version });
      say(t(publish ? "w.published" : "w.saved", { id: c.id }));
      go("/campaigns/" + encodeURIComponent(c.id));
    } catch (e) {
      fault.value = saying(e);
      faults.value = faultsOf(e);
      const first = Object.keys(faults.peek())[0], where = first && belongs.find(([p]) => p.test(first));
      if (where && !made.peek()) turn(where[1]);
    }
    busy.value = false;
  }
  const next = (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    if (step < steps.length - 1) turn(step + 1);
    else finish(true);
  };
  return html`<${Head} title=${t("screen.wizard")} />
    <ol class="steps" aria-label=${t("w.steps")}>${steps.map((s, i) => html`<li><button type="button" aria-current=${i === step ? "step" : undefined} disabled=${!!made.value} onClick=${() => turn(i)}>${i + 1}. ${t("w.step." + s)}</button></li>`)}</ol>
    <form class="form card" onSubmit=${next}>
      ${step === 0 && html`<div class="grid">${input("kind", "/kind", { options: ["sale", "coupon", "redpacket"].map((k) => [k, t("kind." + k)]) })}${input("title", "/title", { required: true })}
        ${input("id", "/id", { hint: t("w.id.hint") })}${d.kind !== "redpacket" && input("product_id", "/product_id", { hint: t("w.product.hint") })}
        ${input("starts", "/starts_at", { type: "datetime-local", required: true })}${input("ends", "/ends_at", { type: "datetime-local", required: true })}</div>${input("comment", "/comment")}`}
      ${step === 1 && html`<${Stock} d=${d} input=${input} draft=${draft} />`}
      ${step === 2 && html`<div class="grid">${d.kind === "sale" && html`${input("price", "/price", { hint: t("w.price.hint") })}${input("currency", "/price/currency")}${input("pay", "/pay_within", { type: "number", parts: true, min: 0, hint: t("w.pay.hint") })}
        ${d.pay && input("late", "/late_payment", { options: ["reclaim", "refund_due"].map((k) => [k, t("late." + k)]) })}${input("tiers", "/tiers", { long: true, hint: t("w.tiers.hint") })}`}
        ${d.kind === "coupon" && html`${input("valid", "/valid_for", { type: "number", parts: true, min: 0, hint: t("w.valid.hint") })}${input("until", "/valid_until_at", { type: "datetime-local", hint: t("w.until.hint") })}`}
        ${input("limit", "/limit_per_user", { type: "number", min: 1 })}${d.kind !== "redpacket" && d.product_id && input("of_product", "/limit_per_product", { type: "number", min: 1, hint: t("w.of_product.hint") })}${input("low", "/low_stock", { type: "number", min: 0, hint: t("w.low.hint") })}${input("shards", "/shards", { type: "number", min: 1, hint: t("w.shards.hint") })}</div>`}
      ${step === 3 && html`<${GateFields} d=${d} input=${input} />`}
      ${step === 4 && html`<${Review} d=${d} />${made.value && d.source === "file" && !imported.value && html`<${Codes} draft=${draft} />`}`}
      <${Fault} text=${fault.value} />
      ${made.value && fault.value && html`<p class="note"><span>${t("w.made", { id: made.value.id })}</span> <${Link} class="button" to=${"/campaigns/" + encodeURIComponent(made.value.id)}>${t("w.open")}<//></p>`}
      <div class="row">${step > 0 && !made.value && html`<button type="button" onClick=${() => turn(step - 1)}>${t("back")}</button>`}
        ${step < 4 ? html`<button class="primary">${t("next")}</button>` : html`<button type="button" disabled=${busy.value} onClick=${() => save((d.id || "campaign") + ".yaml", "application/yaml", fileOf(d))}>${t("w.save.yaml")}</button>
        <button type="button" disabled=${busy.value} onClick=${() => finish(false)}>${t("w.draft")}</button>${may("publisher") && html`<button class="primary" disabled=${busy.value}>${t(busy.value ? "working" : "w.publish")}</button>`}`}</div>
    </form>`;
}

/** The file that `campaign apply` takes. @param {Draft} d */
const fileOf = (d) => yaml({ ...spec(d), state: "published" });

/** What will be made, in words, and as the file that makes it. @param {{d: Draft}} props */
function Review({ d }) {
  const s = /** @type {any} */ (spec(d)), at = (/** @type {string|undefined} */ v) => (v ? time(v) : "–");
  const stock = d.kind === "redpacket" ? [] : d.source === "units" ? row(t("w.units"), s.stock.units, number)
    : d.source === "codes" ? [...row(t("w.count"), s.stock.codes.count, number), ...row(t("w.pattern"), s.stock.codes.pattern)]
    : d.source === "items" ? row(t("w.items"), s.stock.items.length, number) : row(t("w.file"), d.file?.name || "–");
  const rows = [...row(t("w.kind"), t("kind." + d.kind)), ...row(t("w.title"), d.title || "–"), ...row(t("w.id"), d.id), ...row(t("w.product_id"), s.product_id),
    ...row(t("w.starts"), at(s.starts_at)), ...row(t("w.ends"), at(s.ends_at)), ...stock, ...termsOf(s)];
  return html`<section id="review"><p tabindex="-1">${t("w.review")}</p><${Facts} rows=${rows} />
    <details><summary>${t("w.yaml.show")}</summary><pre class="yaml" tabindex="0">${fileOf(d)}</pre><p class="muted">${t("w.yaml")}</p></details></section>`;
}

/** @param {{d: Draft, input: any, draft: any}} props */
function Stock({ d, input, draft }) {
  if (d.kind === "redpacket") return html`<div class="grid">${input("total", "/stock/redpacket/total/amount", { required: true })}${input("currency", "/stock/redpacket/total/currency")}${input("shares", "/stock/redpacket/count", { type: "number", min: 1 })}
    ${input("split", "/stock/redpacket/split", { options: ["double_mean", "line_cut", "equal"].map((k) => [k, t("split." + k)]) })}${input("min", "/stock/redpacket/min")}${input("max", "/stock/redpacket/max")}${input("sender", "/sender_id", { hint: t("w.sender.hint") })}</div><${Shares} d=${d} />`;
  return html`<div class="grid">${input("source", "/stock", { options: ["units", "items", "codes", "file"].map((k) => [k, t("source." + k)]) })}
    ${d.source === "units" && input("units", "/stock/units", { type: "number", min: 1 })}
    ${d.source === "codes" && html`${input("count", "/stock/codes/count", { type: "number", min: 1 })}${input("pattern", "/stock/codes/pattern", { hint: t("w.pattern.hint") })}`}
    ${d.source === "file" && html`<${Codes} draft=${draft} />`}</div>
    ${d.source === "items" && input("items", "/stock/items", { long: true, hint: t("w.items.hint") })}`;
}

/** The file of codes. @param {{draft: any}} props */
const Codes = ({ draft }) => html`<${Field} label=${t("w.file")} hint=${t("w.file.hint")}><input type="file" accept=".csv,text/csv" onChange=${(/** @type {any} */ e) => (draft.value = { ...draft.peek(), file: e.target.files[0] || null })} /><//>`;

/** How the shares may come out. @param {{d: Draft}} props */
function Shares({ d }) {
  const total = minor(d.total, d.currency), count = Number(d.shares), min = (d.min && minor(d.min, d.currency)) || 1, max = (d.max && minor(d.max, d.currency)) || 0;
  if (!total || !(count >= 1) || count > 100_000 || min * count > total || (max && max * count < total)) return null;
  const all = draw({ total, count, split: d.split, min, max }), bars = classes(all, 12), most = Math.max(...bars.map((b) => b.n));
  const share = (/** @type {number} */ n) => sum({ amount: n, currency: d.currency });
  return html`<figure class="shares"><figcaption>${t("w.shares.text", { low: share(Math.min(...all)), high: share(Math.max(...all)), mean: share(Math.round(total / count)) })}</figcaption>
    <div class="histogram" role="img" aria-label=${t("w.shares.text", { low: share(Math.min(...all)), high: share(Math.max(...all)), mean: share(Math.round(total / count)) })}>${bars.map((b) => html`<span style=${{ height: (b.n / most) * 100 + "%" }} title=${share(b.from) + " – " + share(b.to) + ": " + number(b.n)}></span>`)}</div></figure>`;
}
