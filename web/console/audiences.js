// @ts-check
// Audiences: lists of users, and the followers of merchants.
import { Drawer } from "../lib/box.js";
import { html, useSignal } from "../lib/html.js";
import { number } from "../lib/format.js";
import { t } from "../lib/text.js";
import { exact } from "./figures.js";
import { ask, at, Link } from "./route.js";
import { AllCSV, BadLines, change, confirm, Fault, Field, Filter, Filters, Head, may, Pager, say, Table, useGet, usePages, When } from "./ui.js";

export function Audiences() {
  const pages = usePages("/v1/audiences"), merchant = at.value.query.get("merchant") || "", open = useSignal(/** @type {string|null} */ (null));
  const columns = [
    { title: t("list"), show: (/** @type {any} */ a) => html`<b>${a.id}</b>`, text: (/** @type {any} */ a) => a.id },
    { title: t("rush.users"), number: true, show: (/** @type {any} */ a) => number(a.users) },
    { title: t("changed"), show: (/** @type {any} */ a) => html`<${When} at=${a.updated_at} />`, text: (/** @type {any} */ a) => exact(a.updated_at) },
  ];
  return html`<${Head} title=${t("screen.audiences")}>${may("publisher") && html`<button type="button" class="primary" onClick=${() => (open.value = "")}>${t("list.new")}</button>`}<//>
    <section><h2>${t("lists")}</h2><p class="muted">${t("lists.text")}</p><${Fault} text=${pages.fault} again=${pages.again} />
    <${Table} name=${t("lists")} rows=${pages.items} empty=${t("lists.none")} columns=${[
      ...columns,
      { title: t("actions"), show: (/** @type {any} */ a) => may("publisher") && html`<button type="button" onClick=${() => (open.value = a.id)}>${t("list.replace")}</button>` },
    ]} /><${Pager} pages=${pages}><${AllCSV} name="lists.csv" columns=${columns} path="/v1/audiences" /><//></section>
    <section><h2>${t("followers")}</h2><${Filters}><${Filter} label=${t("merchant")} value=${merchant} change=${(/** @type {string} */ v) => ask({ merchant: v })} /><//>
    ${merchant ? html`<${Followers} merchant=${merchant} key=${merchant} />` : html`<p class="muted empty">${t("followers.choose")}</p>`}</section>
    <${Drawer} title=${open.value || t("list.new")} open=${open.value !== null} onClose=${() => (open.value = null)}>${open.value !== null && html`<${File_} id=${open.value} done=${() => ((open.value = null), pages.again())} />`}<//>`;
}

/** A file of users, which replaces a list or adds followers. @param {{id?: string, merchant?: string, done: () => void}} props */
function File_({ id, merchant, done }) {
  const busy = useSignal(false), error = useSignal(/** @type {unknown} */ (null));
  const act = async (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    const v = new FormData(/** @type {HTMLFormElement} */ (e.target)), file = v.get("file"), name = id || String(v.get("id") || "").trim();
    if (busy.peek() || !(file instanceof File)) return;
    busy.value = true;
    error.value = null;
    try {
      if (merchant) {
        const r = await change("POST", "/v1/merchants/" + encodeURIComponent(merchant) + "/followers", undefined, file);
        say(t("followers.imported", { n: number(r.new), all: number(r.followers) }));
      } else {
        const r = await change("PUT", "/v1/audiences/" + encodeURIComponent(name), undefined, file);
        say(t("list.imported", { id: name, n: number(r.users), twice: number(r.duplicates || 0) }));
      }
      done();
    } catch (err) {
      error.value = err;
    }
    busy.value = false;
  };
  return html`<form class="form" onSubmit=${act}>${!merchant && !id && html`<${Field} label=${t("list.id")} hint=${t("list.id.hint")}><input name="id" required pattern="[A-Za-z0-9._\\-]{1,64}" autocomplete="off" /><//>`}
    ${!merchant && id && html`<p class="note warn">${t("list.replace.text", { id })}</p>`}
    <${Field} label=${t("w.file")} hint=${t(merchant ? "followers.file.hint" : "list.file.hint")}><input name="file" type="file" required accept=".csv,text/csv,text/plain" /><//>
    <${BadLines} error=${error.value} /><div class="row"><button class="primary" disabled=${busy.value}>${t(busy.value ? "working" : "upload")}</button></div></form>`;
}

/** @param {{merchant: string}} props */
function Followers({ merchant }) {
  const path = "/v1/merchants/" + encodeURIComponent(merchant), count = useGet(path), pages = usePages(path + "/followers"), open = useSignal(false);
  const again = () => (count.again(), pages.again());
  const add = () => confirm({
    title: t("follower.add"), text: t("follower.add.text", { merchant }), action: t("follower.add"),
    fields: [{ name: "user", label: t("user") }, { name: "rank", label: t("rank"), type: "number", value: "0", hint: t("rank.hint") }],
    do: async (v) => (await change("POST", path + "/followers/" + encodeURIComponent(v.user.trim()), { rank: Number(v.rank) }), again()),
  });
  const drop = (/** @type {any} */ f) => confirm({
    title: t("follower.drop"), text: t("follower.drop.text", { user: f.user, merchant }), action: t("follower.drop"), danger: true,
    do: async () => (await change("DELETE", path + "/followers/" + encodeURIComponent(f.user)), again()),
  });
  const columns = [
    { title: t("user"), show: (/** @type {any} */ f) => f.user }, { title: t("rank"), number: true, show: (/** @type {any} */ f) => number(f.rank || 0) },
    { title: t("follower.since"), show: (/** @type {any} */ f) => html`<${When} at=${f.since} />`, text: (/** @type {any} */ f) => (f.since ? exact(f.since) : "") },
  ];
  return html`<${Fault} text=${count.fault || pages.fault} again=${again} />
    <div class="row"><p>${count.value && t("followers.count", { n: number(count.value.followers), merchant })}</p><div class="grow"></div>
      <${Link} class="button" to=${"/announcements?merchant=" + encodeURIComponent(merchant)}>${t("screen.announcements")}<//>${may("publisher") && html`<button type="button" onClick=${add}>${t("follower.add")}</button><button type="button" onClick=${() => (open.value = true)}>${t("followers.import")}</button>`}</div>
    <${Table} name=${t("followers")} rows=${pages.items && pages.items.map((/** @type {any} */ f) => ({ ...f, id: f.user }))} empty=${t("followers.none")} columns=${[
      ...columns,
      { title: t("actions"), show: (/** @type {any} */ f) => may("publisher") && html`<button type="button" class="danger" onClick=${() => drop(f)}>${t("follower.drop")}</button>` },
    ]} /><${Pager} pages=${pages}><${AllCSV} name="followers.csv" columns=${columns} path=${path + "/followers"} /><//>
    <${Drawer} title=${t("followers.import")} open=${open.value} onClose=${() => (open.value = false)}>${open.value && html`<${File_} merchant=${merchant} done=${() => ((open.value = false), again())} />`}<//>`;
}
