"use strict";
(() => {
  const body = document.body, data = body.dataset;
  const chinese = (navigator.languages || [navigator.language]).find((l) => /^(zh|en)/i.test(l));
  if (/^zh/i.test(chinese || "")) document.documentElement.lang = "zh";
  for (const t of document.querySelectorAll("time")) 
    t.textContent = new Date(t.dateTime).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });
  let ahead = 0, starts = Date.parse(data.starts), ends = Date.parse(data.ends);
  let told = data.state === "ended" ? "ended" : data.state === "paused" ? "paused" : "";
  const path = "/v1/campaigns/" + encodeURIComponent(data.id);
  // The server's clock decides: half of the way is added to what it said.
  const clock = async () => {
    const sent = Date.now();
    const now = Date.parse((await (await fetch("/v1/time", { cache: "no-store" })).json()).now);
    ahead = now - (sent + Date.now()) / 2;
  };
  const phase = () => {
    const now = Date.now() + ahead;
    if (told === "ended" || now >= ends) return "ended";
    if (told === "paused") return "paused";
    if (now < starts) return "upcoming";
    return told === "sold_out" ? "sold_out" : "open";
  };
  const two = (n) => String(n).padStart(2, "0");
  const draw = () => {
    const is = phase();
    for (const e of document.querySelectorAll("[data-phase]")) e.hidden = e.dataset.phase !== is;
    const until = is === "upcoming" ? starts : is === "open" ? ends : 0;
    const s = Math.max(0, Math.ceil((until - Date.now() - ahead) / 1000));
    const days = Math.floor(s / 86400);
    document.getElementById("count").textContent =
      until ? (days ? days + "d " : "") + two(Math.floor(s / 3600) % 24) + ":" + two(Math.floor(s / 60) % 60) + ":" + two(s % 60) : "";
    button(is);
  };
  const news = (n) => {
    told = n.phase || (n.state === "paused" || n.state === "ended" ? n.state : n.remaining > 0 ? "" : "sold_out");
    starts = Date.parse(n.starts_at);
    ends = Date.parse(n.ends_at);
    document.getElementById("left").hidden = n.remaining === undefined;
    document.getElementById("remaining").textContent = n.remaining;
    document.title = document.querySelector("h1").textContent = n.title;
    draw();
  };
  // Without a stream of events, it asks again now and then.
  let source = null, asking = false;
  const ask = async () => {
    asking = true;
    try {
      if (!document.hidden) news(await (await fetch(path)).json());
    } finally {
      setTimeout(ask, 5000 + Math.random() * 5000);
    }
  };
  // A page that nobody looks at keeps no connection: browsers have six for a server.
  const follow = () => {
    if (source || asking || document.hidden) return;
    source = new EventSource(path + "/events");
    for (const name of ["state", "opened", "paused", "resumed", "sold_out", "reopened", "ended", "changed", "stock"])
      source.addEventListener(name, (e) => news(JSON.parse(e.data)));
    source.onerror = () => {
      if (source && source.readyState === EventSource.CLOSED) ask();
    };
  };
  const leave = () => {
    if (source) source.close();
    source = null;
  };
  addEventListener("pagehide", leave);
  addEventListener("pageshow", follow);
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : follow()));
  clock().catch(() => {}).finally(draw);
  setInterval(() => clock().catch(() => {}), 60000);
  setInterval(draw, 250);
  draw();
  follow();
})();
