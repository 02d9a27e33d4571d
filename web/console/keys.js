// @ts-check
// API keys: what each may do, when it was used last, and how one is made, replaced and ended.
import { Drawer } from "../lib/box.js";
import { now } from "../lib/clock.js";
import { html, useSignal } from "../lib/html.js";
import { time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { date, exact } from "./figures.js";
import { ask, at } from "./route.js";
import { AllCSV, change, confirm, Fault, faultsOf, Field, Filter, Filters, Head, Pager, roles, say, saying, Secret, Table, usePages, When, who } from "./ui.js";

// A key that ends within this time is shown as one that needs a successor, in milliseconds.
const endsSoon = 7 * 864e5;

/** How a key stands. @param {any} k @returns {"valid"|"soon"|"expired"|"revoked"} */
export function keyState(k) {
  if (k.revoked_at) return "revoked";
  if (!k.expires_at) return "valid";
  const left = Date.parse(k.expires_at) - now();
  return left <= 0 ? "expired" : left < endsSoon ? "soon" : "valid";
}

const dots = { valid: "ok", soon: "warn", expired: "", revoked: "bad" };

export function Keys() {
  const q = at.value.query, word = (q.get("q") || "").toLowerCase(), is = q.get("standing") || "", role = q.get("role") || "";
  const keep = (/** @type {any} */ k) => (!word || (k.id + " " + k.name).toLowerCase().includes(word)) && (!is || keyState(k) === is) && (!role || k.role === role);
  const only = word || is || role ? { name: [word, is, role].map(encodeURIComponent).join("/"), keep } : null;
  const pages = usePages("/v1/keys", 50, 0, only), open = useSignal(false), made = useSignal(/** @type {any} */ (null));
  const show = (/** @type {any} */ k) => ((made.value = k), pages.again());
  const rotate = (/** @type {any} */ k) => confirm({
    title: t("key.rotate"), text: t("key.rotate.text", { name: k.name }), action: t("key.rotate"),
    fields: [{ name: "overlap", label: t("key.overlap"), value: "24h", options: ["0s", "1h", "24h", "168h"].map((o) => [o, t("overlap." + o)]) }],
    do: async (v) => show(await change("POST", "/v1/keys/" + encodeURIComponent(k.id) + "/rotate", { overlap: v.overlap })),
  });
  const revoke = (/** @type {any} */ k) => confirm({
    title: t("key.revoke"), text: t(k.id === who.peek()?.key_id ? "key.revoke.self" : "key.revoke.text", { name: k.name }), action: t("key.revoke"), danger: true,
    do: async () => { await change("DELETE", "/v1/keys/" + encodeURIComponent(k.id)); say(t("act.done", { what: t("key.revoked"), name: k.name })); pages.again(); },
  });
  const columns = [
    { title: t("key.name"), show: (/** @type {any} */ k) => html`<b>${k.name}</b>${k.id === who.value?.key_id && html` <span class="tag good">${t("key.yours")}</span>`}${k.person && html` <span class="tag">${t("key.person")}</span>`}<br /><small class="muted">${k.id}</small><br /><small class="muted">${t("key.made", { at: date(k.created_at) })}</small>`, text: (/** @type {any} */ k) => k.name },
    { title: t("key.role"), show: (/** @type {any} */ k) => html`<span class="tag">${t("role." + k.role)}</span>`, text: (/** @type {any} */ k) => t("role." + k.role) },
    { title: t("key.scopes"), show: (/** @type {any} */ k) => html`<${Scopes} of=${k.scopes} />`, text: (/** @type {any} */ k) => scoped(k.scopes).map((s) => t("member", { name: t("scope." + s), value: k.scopes[s].join(" ") })).join(t("semicolon")) || t("key.unscoped") },
    { title: t("standing"), show: (/** @type {any} */ k) => html`<span class="standing"><span class=${"dot " + dots[keyState(k)]}></span> ${t("key.is." + keyState(k))}</span>${k.expires_at && !k.revoked_at && html`<br /><small class="muted">${t("key.until", { at: time(k.expires_at) })}</small>`}`, text: (/** @type {any} */ k) => t("key.is." + keyState(k)) },
    { title: t("key.used"), show: (/** @type {any} */ k) => html`<${When} at=${k.last_used_at} none=${t("never")} />`, text: (/** @type {any} */ k) => (k.last_used_at ? exact(k.last_used_at) : t("never")) },
  ];
  const file = [{ title: t("w.id"), show: (/** @type {any} */ k) => k.id }, ...columns, { title: t("key.created"), show: (/** @type {any} */ k) => exact(k.created_at) }, { title: t("key.expires"), show: (/** @type {any} */ k) => (k.expires_at ? exact(k.expires_at) : "") }];
  const works = (/** @type {any} */ k) => ["valid", "soon"].includes(keyState(k));
  return html`<${Head} title=${t("screen.keys")}><button type="button" class="primary" data-act="new-key" onClick=${() => (open.value = true)}>${t("key.new")}</button><//>
    <p class="muted">${t("keys.text")}</p>
    ${made.value && (made.value.secret ? html`<${Secret} label=${t("key.secret", { name: made.value.name })} text=${made.value.secret} close=${() => (made.value = null)} />`
      : html`<p class="note warn" role="status">${t("key.secret.lost", { name: made.value.name })}</p>`)}
    <${Fault} text=${pages.fault} again=${pages.again} />
    <${Filters}><${Filter} label=${t("search")} value=${q.get("q") || ""} change=${(/** @type {string} */ v) => ask({ q: v })} />
      <${Filter} label=${t("standing")} value=${is} change=${(/** @type {string} */ v) => ask({ standing: v })} options=${[["", t("all")], ...Object.keys(dots).map((s) => [s, t("key.is." + s)])]} />
      <${Filter} label=${t("key.role")} value=${role} change=${(/** @type {string} */ v) => ask({ role: v })} options=${[["", t("all")], ...roles.map((r) => [r, t("role." + r)])]} /><//>
    <${Table} name=${t("screen.keys")} rows=${pages.items} empty=${t(only ? "match.none" : "keys.none")} columns=${[
      ...columns,
      { title: t("actions"), show: (/** @type {any} */ k) => works(k) && html`<div class="row tight">${!k.person && html`<button type="button" data-act="rotate" onClick=${() => rotate(k)}>${t("key.rotate")}</button>`}<button type="button" class="danger" data-act="revoke" onClick=${() => revoke(k)}>${t("key.revoke")}</button></div>` },
    ]} /><${Pager} pages=${pages}><${AllCSV} name="keys.csv" columns=${file} path="/v1/keys" keep=${keep} /><//>
    <${Drawer} title=${t("key.new")} open=${open.value} onClose=${() => (open.value = false)}>${open.value && html`<${Form} done=${(/** @type {any} */ k) => ((open.value = false), show(k))} />`}<//>`;
}

/** The kinds of scopes that a key has. @param {any} of */
const scoped = (of) => ["campaigns", "merchants", "actions"].filter((k) => of?.[k]?.length);

/** What narrows a role. @param {{of: any}} props */
const Scopes = ({ of }) => (!of ? html`<span class="muted">${t("key.unscoped")}</span>` : html`<ul class="scopes">${scoped(of).map((k) => html`<li><span class="muted">${t("scope." + k)}</span> ${of[k].map((/** @type {string} */ v) => html`<code>${v}</code> `)}</li>`)}</ul>`);

/** The words of a list that people write with commas or spaces; undefined for none. @param {string} text */
const words = (text) => (text.trim() ? text.split(/[\s,，]+/).filter(Boolean) : undefined);

/** @param {{done: (k: any) => void}} props */
function Form({ done }) {
  const fault = useSignal(""), faults = useSignal(/** @type {Record<string, string>} */ ({})), busy = useSignal(false), role = useSignal("viewer");
  const act = async (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    if (busy.peek()) return;
    const v = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (e.target))));
    const scopes = { campaigns: words(v.campaigns), merchants: words(v.merchants), actions: words(v.actions) };
    busy.value = true;
    try {
      done(await change("POST", "/v1/keys", {
        name: v.name.trim(), role: v.role, scopes: Object.values(scopes).some(Boolean) ? scopes : undefined, expires_at: v.expires ? new Date(v.expires).toISOString() : undefined,
      }));
    } catch (err) {
      fault.value = saying(err);
      faults.value = faultsOf(err);
    }
    busy.value = false;
  };
  const fault_ = (/** @type {string} */ at) => Object.entries(faults.value).find(([p]) => p === at || p.startsWith(at + "/"))?.[1];
  const scope = (/** @type {string} */ name) => html`<${Field} label=${t("scope." + name)} hint=${t("scope." + name + ".hint")} fault=${fault_("/scopes/" + name)}><input name=${name} autocomplete="off" spellcheck=${false} /><//>`;
  return html`<form class="form" onSubmit=${act}>
    <${Field} label=${t("key.name")} hint=${t("key.name.hint")} fault=${fault_("/name")}><input name="name" required maxlength="64" autocomplete="off" /><//>
    <${Field} label=${t("key.role")} hint=${t("role." + role.value + ".text")} fault=${fault_("/role")}><select name="role" onChange=${(/** @type {any} */ e) => (role.value = e.target.value)}>${roles.map((r) => html`<option value=${r}>${t("role." + r)}</option>`)}</select><//>
    <${Field} label=${t("key.expires")} hint=${t("key.expires.hint")} fault=${fault_("/expires_at")}><input name="expires" type="datetime-local" /><//>
    <fieldset><legend>${t("key.scopes")}</legend><p class="muted">${t("key.scopes.hint")}</p>${scope("campaigns")}${scope("merchants")}${scope("actions")}</fieldset>
    <${Fault} text=${fault.value} /><div class="row"><button class="primary" disabled=${busy.value}>${t(busy.value ? "working" : "key.make")}</button></div></form>`;
}
