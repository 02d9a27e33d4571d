// @ts-check
// Products: what campaigns sell or give.
import { Drawer } from "../lib/box.js";
import { html, useSignal } from "../lib/html.js";
import { digits, minor, money, number, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { ask, at } from "./route.js";
import { AllCSV, change, Fault, faultsOf, Field, Filter, Filters, Head, may, Named, Pager, say, saying, Table, usePages } from "./ui.js";

export function Products() {
  const q = at.value.query.get("q") || "", word = q.toLowerCase(), keep = (/** @type {any} */ p) => (p.id + " " + p.name).toLowerCase().includes(word);
  const pages = usePages("/v1/products", 20, 0, word ? { name: encodeURIComponent(word), keep } : null), open = useSignal(/** @type {any} */ (null));
  const file = [
    { title: t("product.id"), show: (/** @type {any} */ p) => p.id }, { title: t("product.name"), show: (/** @type {any} */ p) => p.name }, { title: t("price"), show: (/** @type {any} */ p) => money(p.price) },
    { title: t("product.stock"), show: (/** @type {any} */ p) => p.stock || "" }, { title: t("remaining"), show: (/** @type {any} */ p) => (p.stock ? p.stock_left : "") }, { title: t("changed"), show: (/** @type {any} */ p) => time(p.updated_at) },
  ];
  return html`<${Head} title=${t("screen.products")}>${may("editor") && html`<button type="button" class="primary" onClick=${() => (open.value = {})}>${t("product.new")}</button>`}<//>
    <${Filters}><${Filter} label=${t("search")} value=${q} change=${(/** @type {string} */ v) => ask({ q: v })} /><//>
    <${Fault} text=${pages.fault} again=${pages.again} />
    <${Table} name=${t("screen.products")} rows=${pages.items} empty=${t(word ? "match.none" : "products.none")} columns=${[
      { title: t("product"), show: (/** @type {any} */ p) => html`<${Named} open=${() => (open.value = p)} title=${p.name} id=${p.id} />` },
      { title: t("price"), number: true, show: (/** @type {any} */ p) => money(p.price) },
      { title: t("product.left"), number: true, show: (/** @type {any} */ p) => (p.stock ? number(p.stock_left) + " / " + number(p.stock) : "–") },
      { title: t("changed"), show: (/** @type {any} */ p) => time(p.updated_at) },
    ]} /><${Pager} pages=${pages}><${AllCSV} name="products.csv" columns=${file} path="/v1/products" keep=${keep} /><//>
    <${Drawer} title=${t(open.value?.id ? "product.edit" : "product.new")} open=${!!open.value} onClose=${() => (open.value = null)}>
      ${open.value && html`<${Form} p=${open.value} done=${() => ((open.value = null), pages.again())} />`}<//>`;
}

/** What the API takes of a form: null takes the price away. @param {Record<string, string>} v @param {string} currency */
const bodyOf = (v, currency) => ({ name: v.name, thumbnail: v.thumbnail, description: v.description, comment: v.comment, price: v.price ? { amount: minor(v.price, currency) ?? v.price, currency } : null, stock: Number.isNaN(Number(v.stock)) ? v.stock : Number(v.stock) });

/** The form of a product. @param {any} p @returns {Record<string, string>} */
const formOf = (p) => ({ id: p.id || "", name: p.name || "", price: p.price ? digits(p.price) : "", thumbnail: p.thumbnail || "", description: p.description || "", comment: p.comment || "", stock: p.stock ? String(p.stock) : "" });

/** @param {{p: any, done: () => void}} props */
function Form({ p, done }) {
  const fault = useSignal(""), faults = useSignal(/** @type {Record<string, string>} */ ({})), currency = p.price?.currency || "CNY", was = formOf(p);
  const act = async (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    const v = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (e.target))));
    const body = bodyOf(v, currency);
    // What was not changed here is not sent: another administrator may have changed it meanwhile.
    const changed = Object.fromEntries(Object.entries(body).filter(([k]) => v[k] !== was[k]));
    if (p.id && !Object.keys(changed).length) return done();
    try {
      await (p.id ? change("PATCH", "/v1/products/" + encodeURIComponent(p.id), changed) : change("POST", "/v1/products", { id: v.id || undefined, ...body }));
      say(t("saved"));
      done();
    } catch (err) {
      fault.value = saying(err);
      faults.value = faultsOf(err);
    }
  };
  const field = (/** @type {string} */ name, o = /** @type {any} */ ({})) => html`<${Field} label=${t("product." + name)} hint=${o.hint} fault=${faults.value["/" + name]}>
    <input name=${name} defaultValue=${was[name]} required=${o.required} disabled=${o.disabled || !may("editor")} autocomplete="off" /><//>`;
  return html`<form class="form" onSubmit=${act}>${field("id", { disabled: !!p.id })}${field("name", { required: true })}${field("price", { hint: currency })}
    ${field("thumbnail", { hint: t("product.thumbnail.hint") })}${field("description")}${field("comment")}${field("stock", { hint: t("product.stock.hint") })}
    <${Fault} text=${fault.value} />${may("editor") && html`<div class="row"><button class="primary">${t("save")}</button></div>`}</form>`;
}
