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
const given = new URLSearchParams(location.hash.slice(1));
const mine = load(kept), linked = given.get("token");

/** The token of a link that names another user than this tab has. It counts when its reader says so: a link of somebody
 * else's would make them claim and pay for that user. */
export const offered = signal(mine && linked && nameOf(mine) !== nameOf(linked) ? linked : null);
if (offered.value) given.delete("token");

for (const [name, to] of [["token", kept], ["voucher", "dibs-voucher-" + (page.campaign?.id || "")]]) {
  const value = given.get(name);
  if (value) keep(to, value);
}
if (linked || given.has("voucher")) history.replaceState(null, "", location.pathname + location.search);

/** The user's token, null for nobody. */
export const token = signal(/** @type {string|null} */ (given.get("token") || load(kept)));

/** The voucher of a human check for this page's campaign. */
export const voucher = given.get("voucher") || load("dibs-voucher-" + (page.campaign?.id || ""));

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
  if (yes && offered.value) {
    keep(kept, offered.value);
    location.reload();
  }
  offered.value = null;
}

/** Forgets who this is. */
export function leave() {
  keep(kept, null);
  token.value = null;
}
