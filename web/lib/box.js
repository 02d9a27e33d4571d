// @ts-check
// Boxes over a page. They are the browser's own, and so are Escape and where the focus goes.
import { html, useLayoutEffect, useRef } from "./html.js";
import { t } from "./text.js";

/** A box at the side of the page. @param {{title: string, open: boolean, onClose: () => void, children: any}} props */
export function Drawer({ title, open, onClose, children }) {
  const box = /** @type {{current: HTMLDialogElement|null}} */ (useRef(null));
  // Before anything else happens: a box that was just closed may be opened again at once.
  useLayoutEffect(() => {
    if (open && !box.current?.open) box.current?.showModal();
    if (!open) box.current?.close();
  }, [open]);
  return html`<dialog ref=${box} class="drawer" aria-label=${title} onClose=${() => box.current?.open || onClose()}>
    <div class="row head"><h2>${title}</h2><div class="grow"></div><button type="button" onClick=${onClose}>${t("close")}</button></div>
    ${open && children}
  </dialog>`;
}
