// @ts-check
// The texts of a page, in the language that people chose or that their browser prefers.
import { signal } from "./html.js";

/** @typedef {"en"|"zh"} Language */

const kept = "dibs-language";
const texts = { set: "", words: /** @type {Record<string, string>} */ ({}) };

/** @returns {Language} */
function preferred() {
  let chosen = null;
  try {
    chosen = localStorage.getItem(kept);
  } catch {
    // Nothing may be stored: the browser's preference counts each time.
  }
  const all = chosen ? [chosen] : navigator.languages || [navigator.language];
  return /^zh/i.test(all.find((l) => /^(zh|en)/i.test(l)) || "") ? "zh" : "en";
}

/** The language of the page; components that read it are drawn again when it changes. */
export const language = signal(preferred());

/**
 * Loads the texts of a page. Call it before the first drawing.
 * @param {string} set
 * @param {Language} [to]
 */
export async function speak(set, to = language.peek()) {
  const loaded = await import(`../text/${set}.${to}.js`);
  Object.assign(texts, { set, words: loaded.default });
  document.documentElement.lang = to === "zh" ? "zh-CN" : "en";
  language.value = to;
}

/** Changes the language, and remembers it. @param {Language} to */
export async function choose(to) {
  await speak(texts.set, to);
  try {
    localStorage.setItem(kept, to);
  } catch {
    // Then it is for this page alone.
  }
}

/**
 * A text by its key; {name} stands for a value.
 * @param {string} key
 * @param {Record<string, unknown>} [values]
 */
export function t(key, values) {
  language.value;
  const text = texts.words[key];
  if (text === undefined) return key;
  return values ? text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? "")) : text;
}

/** Reports whether there is a text. @param {string} key */
export const has = (key) => key in texts.words;
