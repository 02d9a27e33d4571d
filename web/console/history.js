// @ts-check
// Who did what to a thing, with what it was before and after.
import { html, useEffect, useSignal } from "../lib/html.js";
import { get } from "../lib/api.js";
import { has, t } from "../lib/text.js";
import { exact } from "./figures.js";
import { Fault, saying, Table } from "./ui.js";
import { shown } from "./values.js";

/** The name of an act. @param {string} action */
export const actName = (action) => (has("did." + action) ? t("did." + action) : action);

/** The members that an act has changed. @param {any} act @returns {[string, unknown, unknown][]} */
export function changes(act) {
  const a = act.before || {}, b = act.after || {}, list = /** @type {[string, unknown, unknown][]} */ ([]);
  if (!act.before || !act.after) return list;
  for (const k of new Set([...Object.keys(a), ...Object.keys(b)]))
    if (!["updated_at", "version", "remaining"].includes(k) && JSON.stringify(a[k]) !== JSON.stringify(b[k])) list.push([k, a[k], b[k]]);
  return list;
}

// The log names the address of each act, so that a campaign's stand under several.
const below = ["", "/publish", "/pause", "/resume", "/end", "/stock", "/codes", "/lottery/public-value"];
const shownActs = 20;

/** What was done to a campaign last; it is read again when stamp changes. @param {{target: string, stamp: string}} props */
export function History({ target, stamp }) {
  const rows = useSignal(/** @type {any[]|null} */ (null)), fault = useSignal("");
  useEffect(() => {
    const abort = new AbortController();
    Promise.all(below.map((b) => get("/v1/audit?limit=" + shownActs + "&target=" + encodeURIComponent(target + b), { signal: abort.signal }))).then(
      (lists) => ((fault.value = ""), (rows.value = lists.flatMap((l) => l.items).sort((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, shownActs))),
      (e) => abort.signal.aborted || (fault.value = saying(e)));
    return () => abort.abort();
  }, [target, stamp]);
  return html`<section><h2>${t("history")}</h2><${Fault} text=${fault.value} /><${Acts} rows=${rows.value} /></section>`;
}

/** @param {{rows: any[]|null}} props */
export const Acts = ({ rows }) => html`<${Table} name=${t("history")} rows=${rows} empty=${t("history.none")} columns=${[
  { title: t("at"), show: (/** @type {any} */ a) => exact(a.at) },
  { title: t("by"), show: (/** @type {any} */ a) => a.key_name || a.key },
  { title: t("did"), show: (/** @type {any} */ a) => html`${actName(a.action)}${a.reason && html` <span class="tag bad">${t("reason." + a.reason)}</span>`}` },
  { title: t("changed"), show: (/** @type {any} */ a) => changes(a).map(([k, x, y]) => html`<div><code>${k}</code> <span class="muted">${shown(k, x, a.before)}</span> → ${shown(k, y, a.after)}</div>`) },
]} />`;
