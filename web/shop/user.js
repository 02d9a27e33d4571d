// @ts-check
// Who uses the storefront: by a token that stands behind # in the address, or, in `dibs dev`, by a name.
import { signal } from "../lib/html.js";

/** What the server told this page. */
export const page = JSON.parse(document.getElementById("page")?.textContent || "{}");

const kept = "dibs-token";

/** @param {string} name */
function load(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null; // Nothing may be stored: a reload needs the link again.
  }
}

/** Remembers a value until the tab is closed; null forgets it. @param {string} name @param {string|null} value */
export function keep(name, value) {
  try {
    if (value === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, value);
  } catch {
    // Nothing may be stored.
  }
}

/** What was remembered. */
export const recall = load;

// What stands behind # is sent to no server; it is taken out of the address at once, so that nobody copies it.
const given = new URLSearchParams(location.hash.slice(1)), mine = load(kept);
const linked = given.get("token"), vouched = given.get("voucher"), keptVoucher = "dibs-voucher-" + (page.campaign?.id || "");
if (linked || vouched) history.replaceState(null, "", location.pathname + location.search);

/** The token of a link that names another user than this tab has. What the link carries counts when its reader says so: a
 * link of somebody else's would make them claim and pay for that user. */
export const offered = signal(mine && linked && nameOf(mine) !== nameOf(linked) ? linked : null);

function accept() {
  if (linked) keep(kept, linked);
  // A voucher is good for its user alone.
  if (vouched || offered.value) keep(keptVoucher, vouched);
}
if (!offered.value) accept();

/** The user's token, null for nobody. */
export const token = signal(offered.value ? mine : linked || mine);

/** The voucher of a human check for this page's campaign. */
export const voucher = (!offered.value && vouched) || load(keptVoucher);

/** The user that a token names, for showing. @param {string|null} is */
export function nameOf(is) {
  if (!is) return "";
  if (is.startsWith("dev_")) return is.slice(4);
  try {
    const body = is.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
    return String(JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(body), (c) => c.charCodeAt(0)))).sub || "");
  } catch {
    return "";
  }
}

/** In `dibs dev`, becomes a user by name. @param {string} name */
export function become(name) {
  keep(kept, "dev_" + name);
  token.value = "dev_" + name;
}

/** Becomes the user of the link, or not. @param {boolean} yes */
export function answer(yes) {
  if (yes) {
    accept();
    location.reload();
  }
  offered.value = null;
}

/** Forgets who this is. */
export function leave() {
  keep(kept, null);
  token.value = null;
}
