// @ts-check
// The terms of a campaign, changed. Where another administrator was faster, both changes are shown, and one decides.
import { html, useEffect, useSignal } from "../lib/html.js";
import { campaignPath, get, Refusal } from "../lib/api.js";
import { digits, milliseconds, minor, number, span, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { go, Link } from "./route.js";
import { change, cut, Fault, faultsOf, Field, Head, say, saying } from "./ui.js";
import { local } from "./wizard.js";

/**
 * A field: what the form has of a campaign, what the API takes of the form, and how people read it.
 * @typedef {{name: string, type?: string, long?: boolean, draft?: boolean, kind?: string, has?: (c: any) => boolean, hint?: string, read: (c: any) => string, write: (v: string, c: any) => unknown, show?: (v: string, c: any) => string}} Known
 */

/** @param {any} c */
const currency = (c) => c.price?.currency || c.product?.price?.currency || "CNY";
const whole = (/** @type {string} */ v) => (v === "" ? 0 : Number(v));
const moment = (/** @type {string} */ v) => new Date(v).toISOString();
const moments = { type: "datetime-local", write: moment, show: (/** @type {string} */ v) => (v ? time(new Date(v)) : "") };

/** @type {Known[]} */
const fields = [
  { name: "title", read: (c) => c.title, write: (v) => v },
  { name: "starts_at", draft: true, read: (c) => local(Date.parse(c.starts_at)), ...moments },
  { name: "ends_at", read: (c) => local(Date.parse(c.ends_at)), ...moments },
  { name: "limit_per_user", type: "number", read: (c) => String(c.limit_per_user), write: whole, show: (v) => number(whole(v)) },
  { name: "limit_per_product", type: "number", has: (c) => c.limit_per_product > 0 || (c.state === "draft" && !!c.product_id && c.kind !== "redpacket"),
    read: (c) => String(c.limit_per_product || ""), write: (v) => (v === "" ? null : Number(v)), show: (v) => v && number(whole(v)) },
  { name: "shards", type: "number", has: (c) => c.state === "draft" || !c.limit_per_product, read: (c) => String(c.shards || 1), write: whole, show: (v) => number(whole(v)) },
  { name: "price", draft: true, kind: "sale", read: (c) => (c.price ? digits(c.price) : ""), write: (v, c) => ({ amount: minor(v, currency(c)) ?? v, currency: currency(c) }), show: (v, c) => v && v + " " + currency(c) },
  { name: "pay_within", draft: true, kind: "sale", type: "number", read: (c) => (c.pay_within ? String(milliseconds(c.pay_within) / 60_000) : ""), write: (v) => whole(v) + "m", show: (v) => v && span(Number(v) * 60_000) },
  { name: "low_stock", type: "number", read: (c) => String(c.low_stock || 0), write: whole, show: (v) => number(whole(v)) },
  { name: "comment", long: true, read: (c) => c.comment || "", write: (v) => v },
];

/** @param {any} c @returns {Record<string, string>} */
const formOf = (c) => Object.fromEntries(fields.map((f) => [f.name, f.read(c)]));

/** Those of one form that another one has otherwise. @param {Record<string, string>} a @param {Record<string, string>} b */
const differing = (a, b) => fields.filter((f) => a[f.name] !== b[f.name]);

/** @param {{id: string}} props */
export function Edit({ id }) {
  const base = useSignal(/** @type {any} */ (null)), form = useSignal(/** @type {Record<string, string>} */ ({})), fault = useSignal("");
  // What the campaign was when another administrator changed it under the form.
  const before = useSignal(/** @type {Record<string, string>|null} */ (null));
  const faults = useSignal(/** @type {Record<string, string>} */ ({})), busy = useSignal(false), turn = useSignal(0);
  useEffect(() => {
    const abort = new AbortController();
    get(campaignPath(id), { signal: abort.signal }).then((c) => ((base.value = c), (form.value = formOf(c)), (fault.value = "")), (e) => abort.signal.aborted || (fault.value = saying(e)));
    return () => abort.abort();
  }, [id, turn.value]);
  const c = base.value, v = form.value;
  if (!c) return html`<${Head} title=${t("screen.edit")} /><${Fault} text=${fault.value} again=${() => turn.value++} />`;

  const leave = () => go("/campaigns/" + encodeURIComponent(id));
  /** Takes what the campaign is now, and lays the form's own changes over it; true when nothing of them is left to do. */
  async function rebase() {
    const now = await get(campaignPath(id)), was = formOf(c), is = formOf(now), mine = differing(form.peek(), was);
    base.value = now;
    before.value = was;
    form.value = { ...is, ...Object.fromEntries(mine.map((f) => [f.name, form.peek()[f.name]])) };
    return differing(form.peek(), is).length === 0;
  }
  const act = async (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    if (busy.peek()) return;
    const changed = differing(v, formOf(c));
    if (!changed.length) return leave();
    busy.value = true;
    fault.value = "";
    faults.value = {};
    try {
      await change("PATCH", campaignPath(id), { version: c.version, ...Object.fromEntries(changed.map((f) => [f.name, f.write(v[f.name], c)])) });
      say(t("act.done", { what: t("saved.changes"), name: v.title }));
      leave();
    } catch (err) {
      faults.value = faultsOf(err);
      if (err instanceof Refusal && faults.peek()["/version"]) {
        // It may be this very change, whose answer was lost.
        if (await rebase().catch(() => ((cut.value = true), false))) return leave();
      } else fault.value = saying(err);
    }
    busy.value = false;
  };
  const set = (/** @type {string} */ name, /** @type {string} */ value) => (form.value = { ...form.peek(), [name]: value });
  const shown = fields.filter((f) => (!f.draft || c.state === "draft") && (!f.kind || f.kind === c.kind) && (!f.has || f.has(c)));
  const theirs = formOf(c), old = before.value;
  return html`<${Head} title=${t("edit.of", { name: c.title })} />
    ${old && html`<${Difference} c=${c} rows=${fields.filter((f) => old[f.name] !== theirs[f.name] || v[f.name] !== theirs[f.name])} old=${old} theirs=${theirs} mine=${v} take=${(/** @type {Known} */ f) => set(f.name, theirs[f.name])} />`}
    <form class="form card" onSubmit=${act}><div class="grid">${shown.filter((f) => !f.long).map((f) => html`<${Field} key=${f.name} label=${t("edit." + f.name)} hint=${f.name === "price" ? currency(c) : undefined} fault=${Object.entries(faults.value).find(([p]) => p.startsWith("/" + f.name))?.[1]}>
        <input name=${f.name} type=${f.type || "text"} min=${f.type === "number" ? "0" : undefined} step=${f.type === "datetime-local" || f.name === "pay_within" ? "any" : undefined} required=${f.name === "title" || f.type === "datetime-local"} value=${v[f.name]} autocomplete="off" onInput=${(/** @type {any} */ e) => set(f.name, e.target.value)} /><//>`)}</div>
      ${shown.filter((f) => f.long).map((f) => html`<${Field} key=${f.name} label=${t("edit." + f.name)} fault=${faults.value["/" + f.name]}><textarea name=${f.name} rows="3" value=${v[f.name]} onInput=${(/** @type {any} */ e) => set(f.name, e.target.value)}></textarea><//>`)}
      ${c.state !== "draft" && html`<p class="muted">${t("edit.published")}</p>`}
      <${Fault} text=${fault.value} />
      <div class="row"><button class="primary" data-act="save" disabled=${busy.value}>${t(busy.value ? "working" : old ? "edit.over" : "save")}</button><${Link} class="button" to=${"/campaigns/" + encodeURIComponent(id)}>${t("dismiss")}<//></div></form>`;
}

/**
 * What two administrators made of one campaign, field by field.
 * @param {{c: any, rows: Known[], old: Record<string, string>, theirs: Record<string, string>, mine: Record<string, string>, take: (f: Known) => void}} props
 */
const Difference = ({ c, rows, old, theirs, mine, take }) => html`<section class="note warn" id="difference" role="alert"><h2>${t("edit.meanwhile")}</h2><p>${t("edit.meanwhile.text")}</p>
  <ul class="fields">${rows.map((f) => {
    const say = (/** @type {Record<string, string>} */ of) => (f.show ? f.show(of[f.name], c) : of[f.name]) || "–", same = mine[f.name] === theirs[f.name];
    return html`<li key=${f.name} data-field=${f.name}><h3>${t("edit." + f.name)}</h3><dl><div><dt>${t("edit.before")}</dt><dd>${say(old)}</dd></div><div><dt>${t("edit.theirs")}</dt><dd>${say(theirs)}</dd></div>
      <div><dt>${t("edit.mine")}</dt><dd>${same ? t("edit.as.theirs") : html`<b>${say(mine)}</b>`}</dd></div></dl>${!same && html`<button type="button" data-take=${f.name} onClick=${() => take(f)}>${t("edit.take")}</button>`}</li>`;
  })}</ul></section>`;
