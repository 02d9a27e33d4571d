// @ts-check
// The console: signing in, the menu, and which screen an address shows.
import { html, render, signal, useEffect, useLayoutEffect, useRef, useSignal } from "../lib/html.js";
import { get, post, Refusal, send, session } from "../lib/api.js";
import { follow } from "../lib/clock.js";
import { choose, language, speak, t } from "../lib/text.js";
import { at, go, Link } from "./route.js";
import { Confirm, Cut, cut, ended, Messages, may, say, saying, who } from "./ui.js";
import { screens } from "./screens.js";

/** What the server told this page. @type {{people?: boolean}} */
const page = JSON.parse(document.getElementById("page")?.textContent || "{}");

const ready = signal(false), menu = signal(false);

/** @param {any} v */
function signedIn(v) {
  who.value = v;
  ended.value = false;
  session({ csrf: v.csrf_token || "" });
}

// What was written on the screen is still there for whoever signs in again with the same key.
session({ ended: () => who.peek() && (ended.value = true) });

// How often the session is looked at, in milliseconds: a screen that asks nothing must not outlive a key that was revoked.
const look = 10_000;

function lookAgain() {
  if (!who.peek() || ended.peek() || document.hidden) return;
  get("/v1/session").then(
    // The session of the same key may be another tab's, whose changes carry another token.
    (v) => ((cut.value = false), v.key_id === who.peek()?.key_id ? session({ csrf: v.csrf_token || "" }) : signedIn(v)),
    (e) => e instanceof Refusal || (cut.value = true));
}

setInterval(lookAgain, look);
// Whoever comes back to this tab may have signed in in another one.
document.addEventListener("visibilitychange", lookAgain);

async function begin() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    // The code is good once; it goes out of the address before anything else.
    history.replaceState(null, "", location.pathname + location.search);
    try {
      signedIn(await post("/v1/session", { code }));
    } catch {
      // It was used before: whoever is signed in already stays so.
    }
  }
  if (!who.peek()) {
    try {
      signedIn(await get("/v1/session"));
    } catch (e) {
      if (!(e instanceof Refusal)) setTimeout(begin, 2000);
    }
  }
  ready.value = true;
}

function SignIn() {
  const fault = useSignal(""), busy = useSignal(false);
  const enter = async (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    const form = /** @type {HTMLFormElement} */ (e.target), key = String(new FormData(form).get("key")).trim();
    busy.value = true;
    try {
      signedIn(await post("/v1/session", { key }));
      form.reset();
    } catch (err) {
      fault.value = saying(err);
    }
    busy.value = false;
  };
  return html`<main class="signin"><form onSubmit=${enter}>
    <h1>${t("signin.title")}</h1>${ended.value && html`<p class="note warn" role="alert">${t("signin.ended")}</p>`}<p class="muted">${t("signin.text")}</p>
    <label>${t("signin.key")}<input name="key" type="password" required autofocus autocomplete="off" spellcheck=${false} /></label>
    ${fault.value && html`<p class="note bad" role="alert">${fault.value}</p>`}
    ${page.people && html`<p><a class="button" href=${"/console/oidc?to=" + encodeURIComponent(location.pathname + location.search)}>${t("signin.people")}</a></p>`}
    <div class="row"><button class="primary" disabled=${busy.value}>${t("signin.enter")}</button><div class="grow"></div><${Languages} /></div>
  </form></main>`;
}

/** Signing in again, over everything that the screen had open: it is hidden, and still there. */
function SignInAgain() {
  const box = /** @type {{current: HTMLDialogElement|null}} */ (useRef(null));
  useLayoutEffect(() => box.current?.showModal(), []);
  return html`<dialog ref=${box} class="whole" aria-label=${t("signin.title")} onCancel=${(/** @type {Event} */ e) => e.preventDefault()} onClose=${() => ended.peek() && box.current?.showModal()}><${SignIn} /></dialog>`;
}

const Languages = () => html`<button type="button" class="quiet" lang=${language.value === "zh" ? "en" : "zh-CN"}
  onClick=${() => choose(language.value === "zh" ? "en" : "zh")}>${language.value === "zh" ? "English" : "中文"}</button>`;

async function leave() {
  try {
    await send("DELETE", "/v1/session");
  } catch (e) {
    // A session that is over needs no end. Any other goes on, and whoever leaves the machine has to know.
    if (!(e instanceof Refusal && e.problem.status === 401)) {
      say(t("signout.not", { why: saying(e) }), "bad");
      return lookAgain();
    }
  }
  session({ csrf: "" });
  who.value = null;
  ended.value = false;
}

/** The screen of an address, and what stands in its name. @param {string} path */
function find(path) {
  for (const s of screens) {
    const names = /** @type {string[]} */ ([]), pattern = new RegExp("^" + s.path.replace(/:(\w+)/g, (_, n) => (names.push(n), "([^/]+)")) + "/?$");
    const m = pattern.exec(path);
    if (m) return { screen: s, values: Object.fromEntries(names.map((n, i) => [n, decodeURIComponent(m[i + 1])])) };
  }
  return null;
}

const groups = ["sell", "customers", "operate"];

function Menu() {
  const here = find(at.value.path)?.screen;
  return html`<nav class="menu" id="menu" aria-label=${t("menu")}><div class="inside">
    <a class="brand" href="/console/" onClick=${(/** @type {Event} */ e) => (e.preventDefault(), go("/"))}><svg class="mark" viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6" /><path d="M7 12.5l3.4 3.4L17 8.6" /></svg> dibs</a>
    <div class="groups">${groups.map((g) => ({ g, list: screens.filter((s) => s.menu === g && may(s.role || "viewer")) })).filter(({ list }) => list.length).map(({ g, list }) => html`<div key=${g}><p class="group" id=${"menu-" + g}>${t("menu." + g)}</p>
      <ul aria-labelledby=${"menu-" + g}>${list.map((s) => html`<li key=${s.path}><${Link} to=${s.path} aria-current=${here === s || here?.parent === s.path ? "page" : undefined}>${t("screen." + s.name)}<//></li>`)}</ul></div>`)}</div>
    <div class="who"><p><b>${who.value.name}</b> <span class="tag">${t("role." + who.value.role)}</span></p>
    <div class="row"><button type="button" class="quiet" onClick=${leave}>${t("signout")}</button><${Languages} /></div></div>
  </div></nav>`;
}

/** @param {{found: ReturnType<typeof find>}} props */
function Crumbs({ found }) {
  const s = found?.screen, parent = s?.parent && screens.find((x) => x.path === s.parent);
  return html`<nav class="crumbs" aria-label=${t("crumbs")}><ol>
    ${at.value.path === "/" ? html`<li aria-current="page">${t("screen.overview")}</li>` : html`<li><${Link} to="/">${t("screen.overview")}<//></li>`}
    ${parent && html`<li><${Link} to=${parent.path}>${t("screen." + parent.name)}<//></li>`}
    ${s && s.path !== "/" && html`<li aria-current="page">${found?.values.id || t("screen." + s.name)}</li>`}</ol></nav>`;
}

function App() {
  const found = find(at.value.path);
  useEffect(() => {
    menu.value = false;
    document.querySelector(".menu [aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [at.value.path, who.value?.key_id]);
  document.title = (found ? found.values.id || t("screen." + found.screen.name) : "404") + " · " + t("console");
  if (!ready.value) return html`<main class="boot"><p class="muted" role="status">${t("loading")}</p></main>`;
  if (!who.value) return html`<${SignIn} />`;
  const Screen = found?.screen.view;
  const allowed = !found?.screen.role || may(found.screen.role);
  return html`${ended.value && html`<${SignInAgain} />`}<div class=${"console" + (menu.value ? " open" : "")} key=${who.value.key_id} hidden=${ended.value}>
    <header class="bar"><button type="button" class="quiet" aria-expanded=${menu.value} aria-controls="menu" onClick=${() => (menu.value = !menu.peek())}>${t("menu")}</button><${Crumbs} found=${found} /><div class="grow"></div><${Cut} /></header>
    <${Menu} />
    <main key=${at.value.path}>${!Screen ? html`<h1>${t("nothing")}</h1>` : allowed ? html`<${Screen} ...${found.values} />` : html`<p class="note warn">${t("role.needs", { role: t("role." + found.screen.role) })}</p>`}</main>
  </div><div hidden=${ended.value}><${Messages} /><${Confirm} /></div>`;
}

follow();
await speak("console");
const app = /** @type {HTMLElement} */ (document.getElementById("app"));
app.textContent = "";
render(html`<${App} />`, app);
begin();
