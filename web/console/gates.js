// @ts-check
// Waiting rooms and lotteries: how each stands, the value that a draw waits for, and the draw again.
import { html, useEffect, useSignal } from "../lib/html.js";
import { campaignPath } from "../lib/api.js";
import { milliseconds, number, percent, span, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { exact } from "./figures.js";
import { drawAgain, entryOf, rule } from "./draw.js";
import { standing, Standing, standings } from "./phase.js";
import { ask, at, Link } from "./route.js";
import { AllCSV, change, confirm, Fault, Field, Filter, Filters, Head, may, Named, Pager, say, Table, Tile, useGet, usePages, When } from "./ui.js";

/** How many wait, and up to which place users are admitted, by campaign, as this node sees it. */
export function useRooms() {
  const rooms = useSignal(/** @type {Record<string, {waiting?: number, admitted?: number}>} */ ({}));
  useEffect(() => {
    let over = false, timer = 0;
    const load = async () => {
      try {
        const all = /** @type {Record<string, any>} */ ({});
        for (const [, what, id, n] of document.hidden ? [] : (await (await fetch("/metrics")).text()).matchAll(/^dibs_room_(waiting|admitted)\{campaign="([^"]+)"\} (\S+)$/gm)) (all[id] ||= {})[what] = Number(n);
        if (!document.hidden) rooms.value = all;
      } catch {
        // The next look may succeed.
      }
      if (!over) timer = setTimeout(load, 3000);
    };
    load();
    return () => ((over = true), clearTimeout(timer));
  }, []);
  return rooms.value;
}

export function Gates() {
  const q = at.value.query, word = (q.get("q") || "").toLowerCase(), mode = q.get("mode") || "", is = q.get("standing") || "";
  const keep = (/** @type {any} */ c) => c.gate?.room && (!word || (c.id + " " + c.title).toLowerCase().includes(word)) && (!mode || c.gate.room.mode === mode) && (!is || standing(c) === is);
  const pages = usePages("/v1/campaigns", 20, 0, { name: [word, mode, is].map(encodeURIComponent).join("/"), keep }), rooms = useRooms();
  const columns = [
    { title: t("campaign"), show: (/** @type {any} */ c) => html`<${Named} to=${"/gates/" + encodeURIComponent(c.id)} title=${c.title} id=${c.id} />` },
    { title: t("kind"), show: (/** @type {any} */ c) => t("mode." + c.gate.room.mode) },
    { title: t("standing"), show: (/** @type {any} */ c) => html`<${Standing} c=${c} />`, text: (/** @type {any} */ c) => t("standing." + standing(c)) },
    { title: t("room.rate"), show: (/** @type {any} */ c) => (c.gate.room.rate ? rate(c.gate.room) : "–") },
    { title: t("room.waiting"), number: true, show: (/** @type {any} */ c) => count(rooms[c.id]?.waiting) },
    { title: t("room.admitted"), number: true, show: (/** @type {any} */ c) => count(rooms[c.id]?.admitted) },
    { title: t("lottery.closes"), show: (/** @type {any} */ c) => html`<${When} at=${c.gate.room.registration_closes_at} />`, text: (/** @type {any} */ c) => (c.gate.room.registration_closes_at ? exact(c.gate.room.registration_closes_at) : "") },
  ];
  return html`<${Head} title=${t("screen.gates")} /><p class="muted">${t("gates.text")}</p>
    <${Filters}><${Filter} label=${t("search")} value=${q.get("q") || ""} change=${(/** @type {string} */ v) => ask({ q: v })} />
      <${Filter} label=${t("kind")} value=${mode} change=${(/** @type {string} */ v) => ask({ mode: v })} options=${[["", t("all")], ...["fifo", "shuffle", "lottery"].map((m) => [m, t("mode." + m)])]} />
      <${Filter} label=${t("standing")} value=${is} change=${(/** @type {string} */ v) => ask({ standing: v })} options=${[["", t("all")], ...standings.map((s) => [s, t("standing." + s)])]} /><//>
    <${Fault} text=${pages.fault} again=${pages.again} />
    <${Table} name=${t("screen.gates")} rows=${pages.items} empty=${t(word || mode || is ? "match.none" : "gates.none")} columns=${columns} />
    <${Pager} pages=${pages}><${AllCSV} name="rooms.csv" columns=${[{ title: t("w.id"), show: (/** @type {any} */ c) => c.id }, { title: t("w.title"), show: (/** @type {any} */ c) => c.title }, ...columns.slice(1)]} path="/v1/campaigns" keep=${keep} /><//>`;
}

/** A number, or a dash for none. @param {number|undefined} n */
export const count = (n) => (n === undefined ? "–" : number(n));

/** How many a room admits. @param {any} room */
export const rate = (room) => (room.per && milliseconds(room.per) !== 1000 ? t("mode.rate.per", { n: number(room.rate), per: span(milliseconds(room.per)) }) : t("mode.rate", { n: number(room.rate) }));

/** One of them. @param {{id: string}} props */
export function Gate({ id }) {
  const got = useGet(campaignPath(id), { every: 5000 }), c = got.value, rooms = useRooms();
  if (!c) return html`<${Head} title=${id} /><${Fault} text=${got.fault} again=${got.again} />`;
  const room = c.gate?.room, is = rooms[id] || {};
  return html`<${Head} title=${c.title}><${Standing} c=${c} /><//><p class="muted">${room ? t("mode." + room.mode) : ""} · <${Link} to=${"/campaigns/" + encodeURIComponent(id)}>${t("campaign")}<//></p>
    <${Fault} text=${got.fault} again=${got.again} />
    ${!room ? html`<p class="muted empty">${t("gates.none")}</p>` : room.mode === "lottery" ? (c.state === "draft" ? html`<p class="note">${t("campaign.draft")}</p>` : html`<${Lottery} c=${c} />`)
      : html`<div class="tiles"><${Tile} label=${t("room.waiting")} value=${count(is.waiting)} /><${Tile} label=${t("room.admitted")} value=${count(is.admitted)} /><${Tile} label=${t("room.rate")} value=${rate(room)} /></div>
        <dl class="facts">${facts([[t("room.opens"), room.opens_at && time(room.opens_at)], [t("room.burst"), room.burst && number(room.burst)], [t("room.max"), room.max && number(room.max)], [t("from"), time(c.starts_at)], [t("until"), time(c.ends_at)]])}</dl><p class="muted">${t("room.node")}</p>`}`;
}

/** @param {[string, any][]} rows */
const facts = (rows) => rows.filter(([, v]) => v).map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`);

/** @param {{c: any}} props */
function Lottery({ c }) {
  const path = campaignPath(c.id, "/lottery"), got = useGet(path, { every: 3000 }), v = got.value;
  if (!v) return html`<${Fault} text=${got.fault} again=${got.again} />`;
  const tell = () => confirm({
    title: t("lottery.tell"), text: t("lottery.tell.text", { what: v.public_value_is }), action: t("lottery.tell"), fields: [{ name: "value", label: v.public_value_is, hint: v.public_value_format && t("lottery.format", { format: v.public_value_format }) }],
    do: async (x) => (await change("POST", path + "/public-value", { value: x.value.trim() }), say(t("act.done", { what: t("lottery.told"), name: c.title })), got.again()),
  });
  const waits = v.state === "closed" && v.public_value_is && v.public_value === undefined;
  const hash = (/** @type {string|undefined} */ h) => h && html`<code class="hash">${h}</code>`;
  return html`<ol class="phases">${["upcoming", "open", "closed", "drawn"].map((s, i, all) => html`<li class=${s === v.state ? "now" : i < all.indexOf(v.state) ? "done" : ""}>${t("lottery.is." + s)}</li>`)}</ol>
    <div class="tiles"><${Tile} label=${t("lottery.entries")} value=${v.closed_at ? number(v.entries) : "–"} detail=${v.closed_at ? "" : t("lottery.entries.later")} /><${Tile} label=${t("lottery.winners")} value=${number(v.winners)} detail=${v.closed_at && v.entries > 0 && percent(Math.min(1, v.winners / v.entries))} /></div>
    ${waits && html`<div class="note warn"><span>${t("lottery.waits", { what: v.public_value_is })}</span>${may("admin") && html`<div class="row"><button type="button" class="primary" data-act="tell" onClick=${tell}>${t("lottery.tell")}</button></div>`}</div>`}
    ${v.drawn_at && html`<${Again} c=${c} v=${v} />`}
    <section><h2>${t("lottery.public")}</h2><dl class="facts wide">${facts([
      [t("lottery.opens"), v.registration_opens_at && exact(v.registration_opens_at)], [t("lottery.closes"), exact(v.registration_closes_at)], [t("lottery.drawn"), v.drawn_at && exact(v.drawn_at)],
      [t("lottery.value"), v.public_value ?? v.public_value_is], [t("lottery.format.of"), v.public_value_format && html`<code>${v.public_value_format}</code>`], [t("lottery.rule"), html`<code>${v.rule}</code>`],
      [t("lottery.seed.hash"), hash(v.seed_hash)], [t("lottery.list.hash"), hash(v.list_hash)], [t("lottery.seed"), hash(v.seed)], [t("lottery.key"), hash(v.key)], [t("lottery.cutoff"), hash(v.cutoff)],
    ])}</dl>${v.closed_at && html`<div class="row"><a class="button" href=${path + "/entries"} download=${c.id + "-entries.txt"}>${t("lottery.list")}</a></div>`}</section>`;
}

// A longer list is for the command line, which reads it as it comes.
const longest = 500_000;

/** The draw again, in this browser, which believes the server in nothing that can be computed. @param {{c: any, v: any}} props */
function Again({ c, v }) {
  const share = useSignal(-1), drawn = useSignal(/** @type {Awaited<ReturnType<typeof drawAgain>>|null} */ (null)), fault = useSignal(""), mine = useSignal("");
  const draw = async () => {
    share.value = 0;
    fault.value = "";
    drawn.value = null;
    try {
      const list = await (await fetch(campaignPath(c.id, "/lottery/entries"))).text();
      drawn.value = await drawAgain(list, v, (s) => (share.value = s));
    } catch (e) {
      fault.value = e instanceof RangeError ? t("lottery.bad.list", { line: e.message }) : t("lost.answer");
    }
    share.value = -1;
  };
  const look = (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    const f = Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (e.target))), entry = entryOf(c.id, String(f.user).trim(), String(f.nonce).trim());
    mine.value = drawn.value?.winners.includes(entry) ? "won" : drawn.value?.entries.includes(entry) ? "lost" : "absent";
  };
  const d = drawn.value, ok = d && !d.differences.length && v.rule === rule && (!v.public_value_is || v.public_value !== undefined);
  return html`<section class="card" id="again" data-state=${!d ? "" : ok ? "good" : "bad"}><h2>${t("lottery.again")}</h2><p class="muted">${t("lottery.again.text")}</p>
    ${v.entries > longest ? html`<p class="note">${t("lottery.long")} <code>dibs lottery verify ${c.id}</code></p>` : html`<div class="row"><button type="button" data-act="draw" disabled=${share.value >= 0} onClick=${draw}>${t(share.value >= 0 ? "working" : "lottery.again.do")}</button></div>`}
    ${share.value >= 0 && html`<label><span class="unseen">${t("rush.progress")}</span><progress max="1" value=${share.value}></progress></label>`}<${Fault} text=${fault.value} />
    ${d && html`<p class=${"note " + (ok ? "good" : "bad")} role="status">${t(ok ? "lottery.right" : "lottery.wrong", { n: number(d.entries.length), winners: number(d.winners.length) })}</p>
      ${v.rule !== rule && html`<p class="note bad">${t("lottery.other.rule", { rule: v.rule })}</p>`}
      ${d.differences.length > 0 && html`<ul class="differences">${d.differences.map((x) => html`<li><b>${t("lottery.differs." + x.what)}</b><div>${t("lottery.was")} <code class="hash">${x.published}</code></div><div>${t("lottery.found")} <code class="hash">${x.found || "–"}</code></div></li>`)}</ul>`}
      <form class="grid" onSubmit=${look}><${Field} label=${t("user")}><input name="user" required autocomplete="off" /><//><${Field} label=${t("lottery.nonce")}><input name="nonce" required autocomplete="off" spellcheck=${false} /><//><div class="row end"><button>${t("lottery.mine")}</button>
      ${mine.value && html`<span class=${"tag " + (mine.value === "won" ? "good" : mine.value === "lost" ? "" : "bad")} role="status">${t("lottery.mine." + mine.value)}</span>`}</div></form>
      <details><summary>${t("lottery.won.list", { n: number(d.winners.length) })}</summary><pre tabindex="0">${d.winners.slice(0, 1000).join("\n")}</pre></details>`}</section>`;
}
