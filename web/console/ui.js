// @ts-check
// What the screens are built of: tables with pages, fields, boxes that ask, and messages.
import { html, signal, useEffect, useLayoutEffect, useRef, useSignal } from "../lib/html.js";
import { get, Refusal, send } from "../lib/api.js";
import { number, time } from "../lib/format.js";
import { t } from "../lib/text.js";
import { exact } from "./figures.js";
import { Link } from "./route.js";

/** Who is signed in; null for nobody. */
export const who = signal(/** @type {any} */ (null));

/** Whether the session of who was signed in has ended: the screen waits, hidden, until they sign in again. */
export const ended = signal(false);

/** Whether the server did not answer the last call. */
export const cut = signal(false);

/** The roles of keys; each may do what those before it may. */
export const roles = ["viewer", "editor", "publisher", "admin"];

/** Reports whether the key's role may do what needs another one. @param {string} role */
export const may = (role) => roles.indexOf(who.value?.role) >= roles.indexOf(role);

/** What went wrong, in words. @param {unknown} e */
export function saying(e) {
  if (e instanceof Waits || e instanceof Invalid || e instanceof AskAgain) return e.message;
  if (!(e instanceof Refusal)) return t("lost.answer");
  const faults = (e.problem.errors || []).map((f) => (f.pointer ? t("member", { name: place(f.pointer), value: f.detail }) : f.detail));
  return faults.length ? faults.join(t("semicolon")) : e.message;
}

/** The place of a fault: a line of a file, or a field. @param {string} pointer */
const place = (pointer) => (pointer.startsWith("/lines/") ? t("line", { n: number(Number(pointer.slice(7))) }) : pointer.slice(1));

/** @type {import("../lib/html.js").Signal<{id: number, text: string, kind: string}[]>} */
const messages = signal([]);
let last = 0;

/** Shows a message for a while. @param {string} text @param {"good"|"bad"} [kind] */
export function say(text, kind = "good") {
  const id = ++last;
  messages.value = [...messages.peek(), { id, text, kind }];
  setTimeout(() => (messages.value = messages.peek().filter((m) => m.id !== id)), kind === "bad" ? 12000 : 5000);
}

export const Messages = () => html`<div class="messages" role="status" aria-live="polite">
  ${messages.value.map((m) => html`<p key=${m.id} class=${"note " + m.kind}>${m.text}</p>`)}</div>`;

// How long a call that got no answer waits until it is made again, in milliseconds.
const retryAfter = 2000;

/**
 * What an address answers, and how to ask again. While it is asked for anew, the last answer stays.
 * @param {string|null} path @param {{every?: number, read?: typeof get}} [o] read asks in place of get
 */
export function useGet(path, o = {}) {
  const value = useSignal(/** @type {any} */ (null)), fault = useSignal(""), turn = useSignal(0);
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    let timer = 0;
    const load = async () => {
      let again = o.every || 0;
      // Nobody looks at it, or nobody may: the call waits.
      if (document.hidden && value.peek() || ended.peek()) again = 1000;
      else
        try {
          value.value = await (o.read || get)(path, { signal: abort.signal });
          fault.value = "";
          cut.value = false;
        } catch (e) {
          if (abort.signal.aborted) return;
          if (e instanceof Refusal) fault.value = ended.peek() ? "" : saying(e);
          else [cut.value, again] = [true, retryAfter];
        }
      if (again && !abort.signal.aborted) timer = setTimeout(load, again);
    };
    load();
    return () => (abort.abort(), clearTimeout(timer));
  }, [path, turn.value]);
  return { value: value.value, fault: fault.value, again: () => turn.value++, set: (/** @type {any} */ v) => (value.value = v) };
}

/** A fault, with a button to ask again. @param {{text: string, again?: () => void}} props */
export const Fault = ({ text, again }) => (text ? html`<p class="note bad" role="alert"><span>${text}</span> ${again && html`<button type="button" onClick=${again}>${t("again")}</button>`}</p>` : null);

// The most pages that one look for matching rows reads; the next page goes on from there.
const mostPages = 50;

/** Reads pages until enough rows of them match. @param {(row: any) => boolean} keep @param {number} enough @returns {typeof get} */
const matching = (keep, enough) => async (path, o) => {
  const items = /** @type {any[]} */ ([]);
  let page = await get(path, o);
  for (let n = 1; ; n++) {
    items.push(...page.items.filter(keep));
    if (items.length >= enough || !page.next_cursor || n === mostPages) return { items, next_cursor: page.next_cursor };
    const url = new URL(path, location.origin);
    url.searchParams.set("cursor", page.next_cursor);
    page = await get(url.pathname + url.search, o);
  }
};

/**
 * A list with pages, from the newest on; null asks for nothing.
 * @param {string|null} path with its filters @param {number} [limit] @param {number} [every] after how many milliseconds it is asked for again
 * @param {{name: string, keep: (row: any) => boolean}|null} [filter] one that the API does not have: all pages are looked through; its name tells it from others
 */
export function usePages(path, limit = 20, every = 0, filter = null) {
  // Nothing after # is sent: a page of another filter is another one.
  if (path && filter) path += "#" + filter.name;
  const before = useSignal(/** @type {string[]} */ ([])), cursor = useSignal(""), at = useRef(path);
  if (at.current !== path) {
    at.current = path;
    before.value = [];
    cursor.value = "";
  }
  const [base, hash] = (path || "").split("#");
  const page = useGet(path && base + (base.includes("?") ? "&" : "?") + "limit=" + (filter ? 100 : limit) + (cursor.value ? "&cursor=" + encodeURIComponent(cursor.value) : "") + (filter ? "#" + hash : ""),
    { every, read: filter ? matching(filter.keep, limit) : undefined });
  const next = page.value?.next_cursor || "";
  return {
    items: page.value?.items || null, fault: page.fault, again: page.again,
    back: before.value.length ? () => ((cursor.value = before.value[before.value.length - 1]), (before.value = before.value.slice(0, -1))) : null,
    // Until the next page is there, the one that is shown names it still.
    next: next && next !== cursor.value ? () => ((before.value = [...before.value, cursor.value]), (cursor.value = next)) : null,
    number: before.value.length + 1,
  };
}

/** @typedef {{title: string, show: (row: any) => any, number?: boolean, text?: (row: any) => string}} Column */

/** A table; the first cell of a row opens it. @param {{columns: Column[], rows: any[]|null, empty: string, name: string}} props */
export function Table({ columns, rows, empty, name }) {
  if (!rows) return html`<p class="muted loading" role="status">${t("loading")}</p>`;
  if (!rows.length) return html`<p class="muted empty">${empty}</p>`;
  return html`<div class="table" tabindex="0" role="region" aria-label=${name}><table>
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.number ? "number" : ""}>${c.title}</th>`)}</tr></thead>
    <tbody>${rows.map((row, i) => html`<tr key=${row.id || i}>${columns.map((c) => html`<td class=${c.number ? "number" : ""}>${c.show(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** The buttons below a list. @param {{pages: ReturnType<typeof usePages>, children?: any}} props */
export const Pager = ({ pages, children }) => (!pages.back && !pages.next && !children ? null : html`<div class="row pager">
  <button type="button" disabled=${!pages.back} onClick=${pages.back}>${t("page.back")}</button>
  <span class="muted">${t("page.number", { n: pages.number })}</span>
  <button type="button" disabled=${!pages.next} onClick=${pages.next}>${t("page.next")}</button>
  <div class="grow"></div>${children}</div>`);

/** All pages of a list as one, for useGet to read. @type {typeof get} */
export const wholeList = async (path, o) => ({ items: await everyRow(path, undefined, o) });

/** All rows of a list. @param {string} path @param {(row: any) => boolean} [keep] @param {Parameters<typeof get>[1]} [o] */
async function everyRow(path, keep = () => true, o = undefined) {
  const rows = /** @type {any[]} */ ([]);
  for (let cursor = ""; ; ) {
    const page = await get(path + (path.includes("?") ? "&" : "?") + "limit=100" + (cursor ? "&cursor=" + encodeURIComponent(cursor) : ""), o);
    rows.push(...page.items.filter(keep));
    if (!(cursor = page.next_cursor)) return rows;
  }
}

/** A button for a file of all pages of a list; rows are those of a list that has no pages. @param {{name: string, columns: Column[], path?: string, rows?: any[], keep?: (row: any) => boolean}} props */
export function AllCSV({ name, columns, path = "", rows, keep }) {
  const busy = useSignal(false);
  const act = async () => {
    busy.value = true;
    try {
      saveCSV(name, columns, rows || (await everyRow(path, keep)));
    } catch (e) {
      say(saying(e), "bad");
    }
    busy.value = false;
  };
  return html`<button type="button" data-act="csv" disabled=${busy.value} onClick=${act}>${t(busy.value ? "working" : "csv.all")}</button>`;
}

/** A file of what a table shows. A cell that a spreadsheet would run begins with a quote, as in the server's own files. @param {string} name @param {Column[]} columns @param {any[]} rows */
function saveCSV(name, columns, rows) {
  const cell = (/** @type {string} */ v) => '"' + (/^[=+\-@\t\r\n＝＋－＠]/.test(v) ? "'" + v : v).replace(/"/g, '""') + '"';
  const lines = [columns.map((c) => cell(c.title)), ...rows.map((r) => columns.map((c) => cell(String((c.text || c.show)(r) ?? ""))))];
  save(name, "text/csv", "\ufeff" + lines.map((l) => l.join(",")).join("\r\n"));
}

/** Hands a file to the person. @param {string} name @param {string} type @param {string} text */
export function save(name, type, text) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

/** A field with its label, and what is wrong with it. @param {{label: string, hint?: string, fault?: string, children: any}} props */
export const Field = ({ label, hint, fault, children }) => html`<label class=${fault ? "field wrong" : "field"}><span>${label}</span>${children}
  ${hint && html`<small class="muted">${hint}</small>`}${fault && html`<small class="fault" role="alert">${fault}</small>`}</label>`;

/** What is wrong with a body, by the pointer to the field. @param {unknown} e @returns {Record<string, string>} */
export function faultsOf(e) {
  const all = /** @type {Record<string, string>} */ ({});
  if (e instanceof Refusal) for (const f of e.problem.errors || []) all[f.pointer] = f.detail;
  return all;
}

/** news is what has happened since it was asked before. @typedef {{title: string, text: string, action: string, news?: string, danger?: boolean, fields?: {name: string, label: string, type?: string, value?: string, hint?: string, required?: boolean, options?: [string, string][]}[], do: (values: Record<string, string>) => Promise<any>}} Question */
const question = signal(/** @type {Question|null} */ (null));

/** Asks before something is done. @param {Question} q */
export const confirm = (q) => (question.value = q);

export function Confirm() {
  const box = /** @type {{current: HTMLDialogElement|null}} */ (useRef(null)), busy = useSignal(false), fault = useSignal(""), faults = useSignal(/** @type {Record<string, string>} */ ({}));
  const q = question.value;
  useLayoutEffect(() => {
    fault.value = "";
    faults.value = {};
    if (!q) box.current?.close();
    else if (!box.current?.open) box.current?.showModal();
  }, [q]);
  const act = async (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    if (busy.peek() || !q) return;
    busy.value = true;
    const values = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (e.target))));
    // It may have been dismissed meanwhile, and another one may stand there.
    const stands = () => question.peek() === q;
    try {
      await q.do(values);
      if (stands()) question.value = null;
    } catch (err) {
      if (err instanceof Waits) {
        if (stands()) question.value = null;
        say(err.message);
      } else if (!stands()) say(saying(err), "bad");
      else if (err instanceof AskAgain) question.value = err.question;
      else {
        faults.value = faultsOf(err);
        fault.value = saying(err);
      }
    }
    busy.value = false;
  };
  return html`<dialog ref=${box} class="small" aria-labelledby="confirm-title" onClose=${() => box.current?.open || (question.value = null)}>${q && html`
    <form onSubmit=${act}><h2 id="confirm-title">${q.title}</h2>${q.news && html`<p class="note warn" role="alert">${q.news}</p>`}<p>${q.text}</p>
      ${(q.fields || []).map((f) => html`<${Field} label=${f.label} hint=${f.hint} fault=${faults.value["/" + f.name]}>${f.options
        ? html`<select name=${f.name}>${f.options.map(([v, text]) => html`<option value=${v} selected=${v === (f.value || "")}>${text}</option>`)}</select>`
        : html`<input name=${f.name} type=${f.type || "text"} defaultValue=${f.value || ""} min=${f.type === "number" ? "0" : undefined} required=${f.required !== false} autocomplete="off" />`}<//>`)}
      <${Fault} text=${fault.value} />
      <div class="row"><button class=${q.danger ? "danger" : "primary"} disabled=${busy.value}>${busy.value ? t("working") : q.action}</button>
      <button type="button" onClick=${() => (question.value = null)}>${t("dismiss")}</button></div></form>`}</dialog>`;
}

/** What somebody wrote, and no call can be made of: nothing was sent. */
export class Invalid extends Error {}

/** What was asked about has changed meanwhile: nothing was done, and another question takes the place of the first. */
export class AskAgain extends Error {
  /** @param {Question} question */
  constructor(question) {
    super(question.news);
    this.question = question;
  }
}

/** A change that was not made: another administrator has to approve it first. */
class Waits extends Error {
  /** @param {string} id */
  constructor(id) {
    super(t("approval.waits", { id }));
  }
}

let keys = 0;
const run = Math.random().toString(36).slice(2);

// The keys of changes that got no answer, by what was sent: whoever presses again sends the same change, not another one.
const unanswered = /** @type {Map<string, string>} */ (new Map());

/**
 * Sends a change, with a key of its own so that a repeat after a lost answer changes nothing twice.
 * @param {string} method @param {string} path @param {unknown} [body] @param {File} [file] in place of the body
 */
export async function change(method, path, body = {}, file = undefined) {
  const same = [method, path, file ? file.name + file.size + "." + file.lastModified : JSON.stringify(body)].join(" ");
  // What came of a change that got no answer is not told by a repeat that is refused before its key is looked up.
  let before = unanswered.has(same);
  const key = unanswered.get(same) || `console-${run}-${++keys}`;
  unanswered.set(same, key);
  for (let tries = 0; ; tries++) {
    try {
      const { value, response } = await send(method, path, { body: file || method === "DELETE" ? undefined : body, file, headers: { "Idempotency-Key": key } });
      unanswered.delete(same);
      cut.value = false;
      if (response.status === 202 && value.approval_id) throw new Waits(value.approval_id);
      return value;
    } catch (e) {
      if (e instanceof Waits) throw e;
      const p = e instanceof Refusal && e.problem;
      if (p && p.effect !== "unknown" && !(before && [401, 403, 429, 503].includes(p.status))) unanswered.delete(same);
      if (p || tries >= 2) throw e;
      // Without an answer nobody knows whether it happened: the same key tells.
      before = cut.value = true;
      await new Promise((done) => setTimeout(done, 1000 * (tries + 1)));
    }
  }
}

/** Tells that the server does not answer, until it does. */
export const Cut = () => (cut.value ? html`<p class="cut" role="status"><span class="dot warn"></span> ${t("lost.connection")}</p>` : null);

/** The lines of a bad file, each with what is wrong. @param {{error: unknown}} props */
export function BadLines({ error }) {
  if (!error) return null;
  const list = error instanceof Refusal ? error.problem.errors || [] : [];
  if (!list.length) return html`<${Fault} text=${saying(error)} />`;
  return html`<div class="note bad" role="alert"><b>${t("lines.bad")}</b><ul>${list.map((f) => html`<li>${t("member", { name: place(f.pointer), value: f.detail })}</li>`)}</ul></div>`;
}

/** A secret that is shown once, with a button that copies it. @param {{label: string, text: string, close: () => void}} props */
export function Secret({ label, text, close }) {
  const at = /** @type {{current: HTMLElement|null}} */ (useRef(null));
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say(t("copied"));
    } catch {
      // Browsers copy on pages of HTTPS and of this machine alone; else the text is marked for the keyboard.
      if (at.current) getSelection()?.selectAllChildren(at.current);
    }
  };
  return html`<div class="note warn secret" role="status"><span>${label}</span><code ref=${at}>${text}</code>
    <div class="row"><button type="button" onClick=${copy}>${t("copy")}</button><button type="button" onClick=${close}>${t("secret.kept")}</button></div></div>`;
}

/** A moment with its exact time. @param {{at: string|null|undefined, none?: string}} props */
export const When = ({ at, none = "–" }) => (at ? html`<time dateTime=${at} title=${exact(at)}>${time(at)}</time>` : none);

/** What a row is about, with its id below: one thing to press, which leads to a screen or opens a drawer. @param {{title: any, id?: string, to?: string, open?: () => void, [more: string]: any}} props */
export const Named = ({ title, id, to, open, ...more }) => {
  const text = html`<span>${title}</span>${id && html`<small class="muted">${id}</small>`}`;
  return to ? html`<${Link} class="named" to=${to} ...${more}>${text}<//>` : html`<button type="button" class="link named" onClick=${open} ...${more}>${text}</button>`;
};

/** A number with its name. @param {{label: string, value: any, detail?: any, kind?: string}} props */
export const Tile = ({ label, value, detail, kind }) => html`<div class=${"tile " + (kind || "")}><span class="muted">${label}</span><b>${value}</b>${detail && html`<small class="muted">${detail}</small>`}</div>`;

/** A title with what can be done beside it. @param {{title: string, children?: any}} props */
export const Head = ({ title, children }) => html`<div class="row title"><h1 tabindex="-1">${title}</h1><div class="grow"></div>${children}</div>`;

/** A bar of filters. @param {{children: any}} props */
export const Filters = ({ children }) => html`<div class="filters" role="search">${children}</div>`;

/** A field that waits until one has finished typing. @param {{label: string, name?: string, value: string, change: (v: string) => void, options?: [string, string][]}} props */
export function Filter({ label, name, value, change, options }) {
  // The screen may be drawn again while one types, and what counts has no space at its end: the field keeps what stands in it,
  // until another value comes from elsewhere.
  const timer = useRef(0), typed = useRef({ text: value, counts: value });
  if (typed.current.counts !== value) typed.current = { text: value, counts: value };
  const later = (/** @type {any} */ e) => {
    clearTimeout(timer.current);
    const v = e.target.value;
    typed.current.text = v;
    timer.current = setTimeout(() => change((typed.current.counts = v.trim())), 300);
  };
  return html`<label>${label}${options
    ? html`<select value=${value} onChange=${(/** @type {any} */ e) => change(e.target.value)}>${options.map(([v, text]) => html`<option value=${v}>${text}</option>`)}</select>`
    : html`<input name=${name} value=${typed.current.text} onInput=${later} autocomplete="off" spellcheck=${false} />`}</label>`;
}
