// Search, copy buttons and the menu of the API's page. Without scripts the page has all of its content.
"use strict";
document.documentElement.classList.add("js");

const nav = document.getElementById("contents"), fold = document.getElementById("fold"), find = document.getElementById("find"), found = document.getElementById("found");

/** Unfolds the menu of a telephone, or folds it. */
function unfold(open) {
  nav.classList.toggle("open", open);
  fold.setAttribute("aria-expanded", String(open));
}
fold.addEventListener("click", () => unfold(!nav.classList.contains("open")));
nav.addEventListener("click", (e) => e.target.closest("li a") && unfold(false));

// What is searched: operations by all of their text, reasons by their row, shapes by name and members.
const operations = [...document.querySelectorAll("main section > details")].map((d) => ({ d, text: d.textContent.toLowerCase() }));
const rows = [...document.querySelectorAll("#reasons tr")].slice(1).map((d) => ({ d, text: d.textContent.toLowerCase() }));
const links = [...document.querySelectorAll("#list li a[href^='#']")].map((a) => ({ a, of: document.getElementById(a.getAttribute("href").slice(1)) }));
const sections = [...document.querySelectorAll("main section")], groups = [...document.querySelectorAll("#list details")];

/** Shows what has all words that are searched for. */
function search() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean), has = (text) => words.every((w) => text.includes(w));
  let n = 0;
  for (const { d, text } of [...operations, ...rows]) n += Number(!(d.hidden = !has(text)));
  for (const s of sections) s.hidden = words.length > 0 && (s.id === "reasons" ? rows.map((r) => r.d) : [...s.querySelectorAll(":scope > details")]).every((d) => d.hidden);
  for (const { a, of } of links) a.parentElement.hidden = words.length > 0 && (!of || of.hidden);
  for (const g of groups) {
    g.hidden = words.length > 0 && [...g.querySelectorAll("li")].every((li) => li.hidden);
    g.open = words.length > 0 && !g.hidden;
  }
  found.textContent = words.length ? (n === 1 ? "1 match" : n + " matches") : "";
  if (words.length) unfold(true);
}
find.addEventListener("input", search);
addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.ctrlKey && !e.metaKey && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    e.preventDefault();
    find.focus();
  }
  if (e.key === "Escape" && document.activeElement === find) {
    find.value = "";
    search();
  }
});

/** A button beside a block of code that copies it. */
function copier(pre) {
  const box = document.createElement("div"), button = document.createElement("button");
  box.className = "block";
  button.type = "button";
  button.textContent = "Copy";
  pre.replaceWith(box);
  box.append(pre, button);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
    } catch {
      // Browsers copy on pages of HTTPS and of this machine alone; else the code is marked for the keyboard.
      getSelection().selectAllChildren(pre);
      button.textContent = "Marked";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}
document.querySelectorAll("main pre").forEach(copier);
