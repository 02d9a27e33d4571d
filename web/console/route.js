// @ts-check
// Addresses of the console: each screen has one, and the browser's buttons work.
import { html, signal } from "../lib/html.js";

const base = "/console";

/** Where one is, without the base, and what the query says. */
export const at = signal(read());

function read() {
  return { path: decodeURI(location.pathname.slice(base.length)) || "/", query: new URLSearchParams(location.search) };
}

addEventListener("popstate", () => (at.value = read()));

/** Goes to a screen. @param {string} path @param {boolean} [replace] */
export function go(path, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", base + path);
  at.value = read();
  if (!replace) {
    scrollTo(0, 0);
    // A reader of screens is told where they are now.
    setTimeout(() => /** @type {HTMLElement|null} */ (document.querySelector("main h1"))?.focus(), 0);
  }
}

/** Changes the query of the screen; empty values are left out. @param {Record<string, string>} values */
export function ask(values) {
  const q = new URLSearchParams(at.peek().query);
  for (const [k, v] of Object.entries(values)) v ? q.set(k, v) : q.delete(k);
  const text = q.toString();
  go(at.peek().path + (text ? "?" + text : ""), true);
}

/** A link to a screen. @param {any} props */
export function Link({ to, children, ...rest }) {
  const click = (/** @type {MouseEvent} */ e) => {
    if (e.metaKey || e.ctrlKey || e.shiftKey || e.button) return;
    e.preventDefault();
    go(to);
  };
  return html`<a href=${base + to} onClick=${click} ...${rest}>${children}</a>`;
}
