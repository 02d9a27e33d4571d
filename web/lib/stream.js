// @ts-check
// Server-sent events that pause while nobody looks, and a poll where there are none.

/**
 * Follows an address until the returned function is called.
 * @param {string} address
 * @param {string[]} names the events
 * @param {(data: any, name: string) => void} take
 * @param {{lost?: () => void, back?: () => void, poll?: () => Promise<void>}} [o]
 */
export function follow(address, names, take, o = {}) {
  /** @type {EventSource|null} */
  let source = null;
  let timer = 0, over = false;
  const poll = async () => {
    if (over) return;
    await o.poll?.().then(o.back, o.lost);
    again(5000);
  };
  // One answer that was none, of a proxy say, does not end the events for good.
  const again = (/** @type {number} */ ms) => (timer = setTimeout(() => ((timer = 0), begin()), ms + Math.random() * ms));
  const begin = () => {
    // A page that nobody looks at keeps no connection: browsers have six for a server.
    if (over || source || timer || document.hidden) return;
    source = new EventSource(address);
    for (const name of names) source.addEventListener(name, (e) => take(JSON.parse(/** @type {MessageEvent} */ (e).data), name));
    source.onopen = () => o.back?.();
    source.onerror = () => {
      if (source?.readyState === EventSource.CLOSED) {
        source = null;
        if (o.poll) return poll();
        again(2000);
      }
      o.lost?.();
    };
  };
  const end = () => {
    source?.close();
    source = null;
  };
  const look = () => (document.hidden ? end() : begin());
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", end);
  addEventListener("pageshow", begin);
  begin();
  return () => {
    over = true;
    clearTimeout(timer);
    end();
    document.removeEventListener("visibilitychange", look);
    removeEventListener("pagehide", end);
    removeEventListener("pageshow", begin);
  };
}
