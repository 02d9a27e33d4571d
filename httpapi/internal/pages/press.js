"use strict";
// The button: who opens the page with #token=… after its address claims here. What
// stands behind # is sent to nobody, and is taken out of the address at once.
const button = (() => {
  const data = document.body.dataset, byId = (id) => document.getElementById(id), handed = {};
  // A token is for all campaigns, a voucher for one.
  for (const [name, kept] of [["token", "dibs-token"], ["voucher", "dibs-voucher-" + data.id]]) {
    const given = new URLSearchParams(location.hash.slice(1)).get(name);
    try {
      if (given) sessionStorage.setItem(kept, given);
      handed[name] = given || sessionStorage.getItem(kept);
    } catch {
      handed[name] = given; // Nothing may be stored: a reload needs the link again.
    }
  }
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);

  // A draw, and a human check whose voucher is not there, are somebody else's pages.
  const able = handed.token && data.room !== "lottery" && !("human" in data && !handed.voucher) && !(data.work > 0 && !crypto.subtle);
  // The key is always the same: whoever presses again, after a reload or on another
  // device, asks for the same claim. Where one may have more, the next has another.
  let nth = 1, busy = false, lost = false, place = null;
  // That an answer was lost outlives a reload.
  const lose = (is) => {
    lost = is;
    try {
      if (is) sessionStorage.setItem("dibs-lost-" + data.id, "1");
      else sessionStorage.removeItem("dibs-lost-" + data.id);
    } catch {
      // Nothing may be stored.
    }
  };
  try {
    lost = !!sessionStorage.getItem("dibs-lost-" + data.id);
  } catch {
    // Nothing was stored.
  }

  const say = (what, detail = "") => {
    for (const e of document.querySelectorAll("[data-answer]")) e.hidden = e.dataset.answer !== what;
    byId("detail").textContent = detail;
  };
  const call = async (method, tail, headers, body) => {
    const r = await fetch("/v1/campaigns/" + encodeURIComponent(data.id) + tail, {
      method, cache: "no-store", body: body && JSON.stringify(body),
      headers: { Authorization: "Bearer " + handed.token, ...(body && { "Content-Type": "application/json" }), ...headers },
    });
    const is = await r.json();
    if (!r.ok) throw Object.assign(new Error(is.detail || is.title), { is });
    return { is, again: r.headers.get("Idempotent-Replayed") === "true" };
  };
  const zeroBits = (hash, bits) => {
    for (let i = 0; i < bits; i++) if (hash[i >> 3] & (128 >> (i & 7))) return false;
    return true;
  };
  const ticket = async () => {
    const asked = (await call("POST", "/tickets/challenge")).is, answer = handed.voucher ? { voucher: handed.voucher } : {};
    for (let n = 0; asked.bits > 0; n++) {
      const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(asked.challenge + ":" + n));
      if (!zeroBits(new Uint8Array(hash), asked.bits)) continue;
      Object.assign(answer, { challenge: asked.challenge, nonce: String(n) });
      break;
    }
    return (await call("POST", "/tickets", {}, answer)).is.ticket;
  };
  // What was got: codes or seats, a share's amount, and else the claim's id.
  const got = (c) => {
    if (c.kind === "redpacket" && c.amount) return c.amount.currency + " " + (c.amount.amount / 10 ** data.decimals).toFixed(data.decimals);
    return c.items && c.items.length ? c.items.join(", ") : c.id;
  };
  const claim = async () => {
    const headers = {};
    try {
      if (place) await look("GET");
      if (place && place.state !== "admitted" && !lost) return ask();
      if (place) headers["Dibs-Admission"] = place.admission || "";
      if ("work" in data) headers["Dibs-Ticket"] = await ticket();
    } catch (e) {
      // What an earlier press came to is told without these.
      if (!lost) throw e;
    }
    lose(true);
    for (;;) {
      const { is, again } = await call("POST", "/claims", { ...headers, "Idempotency-Key": "page-" + nth });
      // What went back makes room for another one.
      const gone = is.status === "released" || is.status === "refunded";
      if (gone || data.limit > 1) nth++;
      if (gone) continue;
      say(again ? "again" : "granted", got(is));
      break;
    }
    lose(false);
  };
  const soon = (text) => {
    let ms = 0;
    for (const [, n, unit] of text.matchAll(/([\d.]+)(ms|s|m|h)/g)) ms += n * { ms: 1, s: 1e3, m: 6e4, h: 36e5 }[unit];
    return Math.max(ms, 1000);
  };
  const took = (v) => {
    place = v;
    show(now);
  };
  const look = async (method) => {
    try {
      took((await call(method, "/queue")).is);
    } catch (e) {
      if (e.is && !e.is.retryable) place = null;
      if (!place) throw e;
    }
  };
  // Where one is comes by a WebSocket; where there is none, it is asked for.
  const ask = () => place && place.state !== "admitted" && setTimeout(() => look("GET").then(ask, refused), soon(place.ask_after || "5s"));
  const join = async () => {
    await look("POST");
    if (place.state === "admitted") return;
    const ws = new WebSocket(location.origin.replace(/^http/, "ws") + "/v1/ws");
    const send = (m) => ws.send(JSON.stringify(m));
    ws.onopen = () => send({ type: "auth", token: handed.token });
    ws.onmessage = (e) => {
      const m = JSON.parse(e.data);
      if (m.type === "welcome") send({ type: "subscribe", campaign_id: data.id });
      if (m.type === "position") took(m);
      if (m.type === "position" && m.state === "admitted") ws.close();
    };
    ws.onclose = ask;
  };
  const refused = (e, before) => {
    // Without an answer, or where the answer says so, nobody knows what happened; who
    // asks too often, is blocked by now or has an old token does not hear what he did
    // before.
    const unlooked = ["rate_limited", "forbidden", "unauthenticated"];
    lose(lost && (!e.is || e.is.effect === "unknown" || (before && unlooked.includes(e.is.reason))));
    lost || !e.is ? say("lost") : say("", e.message);
  };
  let now = "";
  const does = () => (!data.room || place && place.state === "admitted" ? "claim" : place ? "wait" : "join");
  const show = (phase) => {
    now = phase;
    const is = does();
    byId("act").hidden = !able || !(phase === "open" || lost || phase === "upcoming" && data.room);
    for (const e of document.querySelectorAll("[data-press]")) e.hidden = e.dataset.press !== is;
    byId("press").disabled = busy || is === "wait" || is === "claim" && phase === "upcoming";
    byId("place").hidden = is !== "wait" || !place.position;
    byId("position").textContent = place ? place.position : "";
  };
  byId("press").addEventListener("click", async () => {
    const before = lost;
    busy = true;
    say();
    show(now);
    try {
      await (does() === "join" ? join() : claim());
    } catch (e) {
      refused(e, before);
    }
    busy = false;
    show(now);
  });
  return show;
})();
