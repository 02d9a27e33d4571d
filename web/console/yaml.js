// @ts-check
// YAML as `dibs campaign apply` takes it. Texts are written as JSON writes them, which is YAML, too.

/** @param {any} v @param {string} [indent] @returns {string} */
export function yaml(v, indent = "") {
  const nested = (/** @type {any} */ x) => typeof x === "object" && x !== null && Object.keys(x).length > 0;
  if (Array.isArray(v)) return v.map((x) => indent + (nested(x) ? "-\n" + yaml(x, indent + "  ") : "- " + JSON.stringify(x) + "\n")).join("");
  return Object.entries(v).filter(([, x]) => x !== undefined).map(([k, x]) => indent + k + ":" + (nested(x) ? "\n" + yaml(x, indent + "  ") : " " + JSON.stringify(x) + "\n")).join("");
}
