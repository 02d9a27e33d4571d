// @ts-check
// Announcements: a campaign is told to followers, at once or from a queue, and how far that is.
import { html, useSignal } from "../lib/html.js";
import { campaignPath } from "../lib/api.js";
import { Drawer } from "../lib/box.js";
import { milliseconds, number, percent, span } from "../lib/format.js";
import { t } from "../lib/text.js";
import { exact } from "./figures.js";
import { standing } from "./phase.js";
import { ask, at, Link } from "./route.js";
import { AllCSV, change, confirm, Fault, faultsOf, Field, Filter, Filters, Head, may, Pager, say, saying, Table, useGet, usePages, When, wholeList } from "./ui.js";

export function Announcements() {
  const settings = useGet("/v1/merchants/threshold").value;
  const list = useGet("/v1/campaigns", { read: wholeList }), q = at.value.query, open = useSignal(false);
  const all = (list.value?.items || []).filter((/** @type {any} */ c) => c.state !== "draft");
  const live = all.filter((/** @type {any} */ c) => standing(c) !== "ended"), id = q.get("campaign") || live[0]?.id || all[0]?.id || "", c = all.find((/** @type {any} */ x) => x.id === id);
  return html`<${Head} title=${t("screen.announcements")}>${may("publisher") && c && standing(c) !== "ended" && html`<button type="button" class="primary" data-act="announce" onClick=${() => (open.value = true)}>${t("announce")}</button>`}<//>
    <p class="muted">${t("announcements.text")}</p><${Fault} text=${list.fault} again=${list.again} />
    ${list.value && !all.length ? html`<p class="muted empty">${t("overview.none")}</p>` : html`<${Filters}><${Filter} label=${t("campaign")} value=${id} change=${(/** @type {string} */ v) => ask({ campaign: v })} options=${all.map((/** @type {any} */ x) => [x.id, x.title])} /><//>`}
    ${id && html`<${Of} id=${id} key=${id + open.value} />`}
    <${Sizes} v=${settings} />
    <${Drawer} title=${t("announce.of", { name: c?.title })} open=${open.value} onClose=${() => (open.value = false)}>${open.value && html`<${Form} c=${c} usual=${settings} merchant=${q.get("merchant") || c.gate?.audience?.followers_of || ""} done=${() => (open.value = false)} />`}<//>`;
}

/** How many followers merchants have, and the threshold that this proposes; nothing where no merchant has any. @param {{v: any}} props */
function Sizes({ v }) {
  if (!v?.sizes?.length) return null;
  const most = Math.max(...v.sizes.map((/** @type {any} */ s) => s.merchants)), cover = percent(v.cover_percent / 100);
  return html`<section class="card" id="sizes"><h2>${t("sizes")}</h2>
    <p>${t("sizes.proposed", { n: number(v.proposed_threshold), cover: percent(v.covered_percent / 100) })} <span class="muted">${t("sizes.now", { n: number(v.threshold), cover: percent(v.covered_now_percent / 100) })}</span></p>
    <dl class="bars">${v.sizes.map((/** @type {any} */ s) => html`<div><dt>${t("sizes.up.to", { n: number(s.up_to) })}</dt><dd class="stockline"><meter min="0" max=${most} value=${s.merchants} aria-label=${t("sizes.merchants")}></meter> ${number(s.merchants)}</dd></div>`)}</dl>
    <p class="muted">${t("sizes.text", { n: number(v.merchants), most: number(v.most_followers), cover })}</p></section>`;
}

const colours = /** @type {Record<string, string>} */ ({ running: "warn", paused: "warn", done: "good", cancelled: "" });

/** The announcements of a campaign. @param {{id: string}} props */
function Of({ id }) {
  const path = campaignPath(id, "/announcements"), pages = usePages(path, 20, 2000);
  const act = (/** @type {string} */ verb, /** @type {any} */ a) => confirm({
    title: t("announcement." + verb), text: t("announcement." + verb + ".text", { n: number(a.followers - a.enqueued) }), action: t("announcement." + verb), danger: verb === "cancel",
    do: async () => (await change("POST", "/v1/announcements/" + encodeURIComponent(a.id) + "/" + verb), pages.again()),
  });
  const button = (/** @type {string} */ verb, /** @type {any} */ a) => html`<button type="button" class=${verb === "cancel" ? "danger" : ""} onClick=${() => act(verb, a)}>${t("announcement." + verb)}</button>`;
  const columns = [
    { title: t("announcement"), show: (/** @type {any} */ a) => html`${a.message || html`<span class="muted">${t("announcement.bare")}</span>`}<br /><small class="muted">${a.id}</small>`, text: (/** @type {any} */ a) => a.message || "" },
    { title: t("merchant"), show: (/** @type {any} */ a) => html`<${Link} to=${"/audiences?merchant=" + encodeURIComponent(a.merchant)}>${a.merchant}<//>`, text: (/** @type {any} */ a) => a.merchant },
    { title: t("standing"), show: (/** @type {any} */ a) => html`<span class=${"tag " + colours[a.state]}>${t("announcement.is." + a.state)}</span>${a.why && html`<br /><small>${a.why}</small>`}`, text: (/** @type {any} */ a) => [t("announcement.is." + a.state), a.why].filter(Boolean).join(" ") },
    { title: t("announcement.far"), show: (/** @type {any} */ a) => html`<span class="stockline"><meter min="0" max=${Math.max(1, a.followers)} value=${a.enqueued} aria-label=${t("announcement.far")}></meter> ${number(a.enqueued)} / ${number(a.followers)} <small class="muted">${percent(a.followers ? a.enqueued / a.followers : 0)}</small></span>
      <small class="muted">${a.followers <= a.threshold ? t("announcement.at.once") : t("announcement.queue", { first: number(a.first), rate: number(a.rate) })}</small>`, text: (/** @type {any} */ a) => number(a.enqueued) + " / " + number(a.followers) },
    { title: t("announcement.left"), show: (/** @type {any} */ a) => (a.state === "running" && milliseconds(a.estimate) > 0 ? span(milliseconds(a.estimate)) : "–") },
    { title: t("at"), show: (/** @type {any} */ a) => html`<${When} at=${a.created_at} />`, text: (/** @type {any} */ a) => exact(a.created_at) },
  ];
  return html`<${Fault} text=${pages.fault} again=${pages.again} /><${Table} name=${t("screen.announcements")} rows=${pages.items} empty=${t("announcements.none")} columns=${[
    ...columns,
    { title: t("actions"), show: (/** @type {any} */ a) => may("publisher") && html`<div class="row tight">${a.state === "running" && button("pause", a)}${a.state === "paused" && button("resume", a)}${["running", "paused"].includes(a.state) && button("cancel", a)}</div>` },
  ]} /><${Pager} pages=${pages}><${AllCSV} name=${id + "-announcements.csv"} columns=${[{ title: t("w.id"), show: (/** @type {any} */ a) => a.id }, ...columns]} path=${path} /><//>`;
}

/** usual is what the server does where the form says nothing: its settings, as soon as they are read. @param {{c: any, usual: any, merchant: string, done: () => void}} props */
function Form({ c, usual, merchant, done }) {
  const v = useSignal({ merchant, message: "", threshold: "", first: "", rate: "" }), fault = useSignal(""), faults = useSignal(/** @type {Record<string, string>} */ ({})), busy = useSignal(false);
  const d = v.value, whole = (/** @type {string} */ x) => (x === "" ? undefined : Number(x));
  const act = async (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    if (busy.peek()) return;
    busy.value = true;
    try {
      await change("POST", campaignPath(c.id, "/announcements"), { merchant: d.merchant || undefined, message: d.message || undefined, threshold: whole(d.threshold), first: whole(d.first), rate: whole(d.rate) });
      say(t("announce.done", { name: c.title }));
      done();
    } catch (err) {
      fault.value = saying(err);
      faults.value = faultsOf(err);
    }
    busy.value = false;
  };
  const input = (/** @type {keyof typeof d} */ name, o = /** @type {any} */ ({})) => html`<${Field} label=${t("announce." + name)} hint=${o.hint} fault=${faults.value["/" + name]}>
    <input name=${name} type=${o.type || "text"} min=${o.type && "0"} value=${d[name]} placeholder=${o.usual === undefined ? undefined : number(o.usual)} required=${o.required} autocomplete="off" onInput=${(/** @type {any} */ e) => (v.value = { ...v.peek(), [name]: e.target.value })} /><//>`;
  return html`<form class="form" onSubmit=${act}>${input("merchant", { required: true, hint: t("announce.merchant.hint") })}${input("message", { hint: t("announce.message.hint") })}
    ${input("threshold", { type: "number", usual: usual?.threshold, hint: t("announce.threshold.hint") })}${input("first", { type: "number", usual: usual?.first, hint: t("announce.first.hint") })}${input("rate", { type: "number", usual: usual?.rate, hint: t("announce.rate.hint") })}
    ${d.merchant && usual && html`<${Forecast} d=${d} usual=${usual} key=${d.merchant} />`}
    <${Fault} text=${fault.value} /><div class="row"><button class="primary" disabled=${busy.value}>${t(busy.value ? "working" : "announce")}</button></div></form>`;
}

/** What will happen, before it does. @param {{d: {merchant: string, threshold: string, first: string, rate: string}, usual: any}} props */
function Forecast({ d, usual }) {
  const got = useGet("/v1/merchants/" + encodeURIComponent(d.merchant)), n = got.value?.followers ?? 0;
  if (!got.value || got.fault) return null;
  const threshold = Number(d.threshold || usual.threshold), first = Math.min(n, threshold, Number(d.first || usual.first)), rate = Math.max(1, Number(d.rate || usual.rate));
  return html`<p class="note" role="status">${!n ? t("forecast.none") : n <= threshold ? t("forecast.once", { n: number(n) }) : t("forecast.queue", { n: number(n), first: number(first), rest: number(n - first), time: span(((n - first) / rate) * 1000) })}</p>`;
}
