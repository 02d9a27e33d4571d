// @ts-check
// The terms of a campaign, changed. Where another administrator was faster, both changes are shown, and one decides.
import { html, useEffect, useSignal } from "../lib/html.js";
import { campaignPath, get, Refusal } from "../lib/api.js";
import { t } from "../lib/text.js";
import { currency, fields, formOf, nameOf } from "./editfields.js";
import { GateFields, gateOf, keptOfGate } from "./gateform.js";
import { limitsOf, tiersOf } from "./limits.js";
import { go, Link } from "./route.js";
import { change, cut, Fault, faultsOf, Field, Head, say, saying } from "./ui.js";

/** @typedef {import("./editfields.js").Known} Known */

/** What PATCH takes of a form: the fields that changed, and the gate as a whole where a part of it did. @param {any} c @param {Known[]} changed @param {any} v */
const bodyOf = (c, changed, v) => ({
  version: c.version, ...Object.fromEntries(changed.filter((f) => !f.gate).map((f) => [f.name, f.write(v[f.name], c)])),
  ...(changed.some((f) => f.gate) ? { gate: gateOf(v, keptOfGate(c.gate), v.starts_at) || {} } : {}),
});

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
    const line = tiersOf(v.tiers).bad || limitsOf(v.limits).bad;
    if (line) return void (fault.value = t("w.unread", { line }));
    busy.value = true;
    fault.value = "";
    faults.value = {};
    try {
      await change("PATCH", campaignPath(id), bodyOf(c, changed, v));
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
  const shown = fields.filter((f) => !f.gate && (!f.draft || c.state === "draft") && (!f.kind || f.kind === c.kind) && (!f.has || f.has(c, v)));
  /** A field of the form. @param {string} name @param {string} label @param {string|undefined} wrong @param {any} [o] */
  const control = (name, label, wrong, o = {}) => html`<${Field} key=${name} label=${label} hint=${o.hint} fault=${wrong}>
    ${o.options ? html`<select name=${name} value=${v[name]} onChange=${(/** @type {any} */ e) => set(name, e.target.value)}>${o.options.map((/** @type {[string, string]} */ [x, text]) => html`<option value=${x} selected=${v[name] === x}>${text}</option>`)}</select>`
      : o.long ? html`<textarea name=${name} rows="3" value=${v[name]} onInput=${(/** @type {any} */ e) => set(name, e.target.value)}></textarea>`
      : html`<input name=${name} type=${o.type || "text"} min=${o.type === "number" ? o.min ?? "0" : undefined} step=${o.parts || o.type === "datetime-local" ? "any" : undefined} required=${o.required} value=${v[name]} autocomplete="off" onInput=${(/** @type {any} */ e) => set(name, e.target.value)} />`}<//>`;
  const known = (/** @type {Known} */ f) => control(f.name, nameOf(f), Object.entries(faults.value).find(([p]) => p.startsWith("/" + f.name))?.[1],
    { ...f, hint: f.hint === "currency" ? currency(c) : f.hint && t(f.hint), options: f.options?.map((x) => [x, f.show?.(x, c)]) });
  const ofGate = (/** @type {string} */ name, /** @type {string} */ pointer, /** @type {any} */ o) => control(name, t("w." + name), faults.value[pointer], o);
  const theirs = formOf(c), old = before.value;
  return html`<${Head} title=${t("edit.of", { name: c.title })} />
    ${old && html`<${Difference} c=${c} rows=${fields.filter((f) => old[f.name] !== theirs[f.name] || v[f.name] !== theirs[f.name])} old=${old} theirs=${theirs} mine=${v} take=${(/** @type {Known} */ f) => set(f.name, theirs[f.name])} />`}
    <form class="form card" onSubmit=${act}><div class="grid">${shown.filter((f) => !f.long).map(known)}</div>
      ${shown.filter((f) => f.long).map(known)}
      <fieldset id="gate"><legend>${t("w.step.gate")}</legend><${GateFields} d=${v} input=${ofGate} published=${c.state !== "draft"} /></fieldset>
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
    return html`<li key=${f.name} data-field=${f.name}><h3>${nameOf(f)}</h3><dl><div><dt>${t("edit.before")}</dt><dd>${say(old)}</dd></div><div><dt>${t("edit.theirs")}</dt><dd>${say(theirs)}</dd></div>
      <div><dt>${t("edit.mine")}</dt><dd>${same ? t("edit.as.theirs") : html`<b>${say(mine)}</b>`}</dd></div></dl>${!same && html`<button type="button" data-take=${f.name} onClick=${() => take(f)}>${t("edit.take")}</button>`}</li>`;
  })}</ul></section>`;
