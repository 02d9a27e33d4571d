// @ts-check
// The audit log: what administrators did.
import { html } from "../lib/html.js";
import { t } from "../lib/text.js";
import { exact } from "./figures.js";
import { actName, Acts, changes } from "./history.js";
import { ask, at } from "./route.js";
import { AllCSV, Fault, Filter, Filters, Head, Pager, usePages } from "./ui.js";
import { shown } from "./values.js";

export function Audit() {
  const q = at.value.query, search = ["key", "action", "target"].filter((f) => q.get(f)).map((f) => f + "=" + encodeURIComponent(q.get(f) || "")).join("&");
  const path = "/v1/audit" + (search ? "?" + search : ""), pages = usePages(path, 50);
  const columns = [
    { title: t("at"), show: (/** @type {any} */ a) => exact(a.at) }, { title: t("by"), show: (/** @type {any} */ a) => a.key_name },
    { title: t("did"), show: (/** @type {any} */ a) => actName(a.action) }, { title: t("filter.target"), show: (/** @type {any} */ a) => a.target },
    { title: t("refused.for"), show: (/** @type {any} */ a) => (a.reason ? t("reason." + a.reason) : "") },
    { title: t("changed"), show: (/** @type {any} */ a) => changes(a).map(([k, x, y]) => t("member", { name: k, value: shown(k, x, a.before) + " → " + shown(k, y, a.after) })).join(t("semicolon")) },
  ];
  const filter = (/** @type {string} */ name) => html`<${Filter} label=${t("filter." + name)} value=${q.get(name) || ""} change=${(/** @type {string} */ v) => ask({ [name]: v })} />`;
  return html`<${Head} title=${t("screen.audit")} /><${Filters}>${filter("target")}${filter("action")}${filter("key")}<//>
    <${Fault} text=${pages.fault} again=${pages.again} /><${Acts} rows=${pages.items} />
    <${Pager} pages=${pages}><${AllCSV} name="audit.csv" columns=${columns} path=${path} /><//>`;
}
