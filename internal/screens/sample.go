package main

// What the screens show beside the campaigns of `dibs dev`: it is made once, by calls of the API with the session of the
// console, before the first picture.

// sample makes a waiting room, a lottery that is drawn, a packet that has not begun, a sale that is over, a list, followers, announcements and keys. It may run again on the
// same server, which has them then.
const sample = `(async () => {
	const csrf = (await (await fetch("/v1/session")).json()).csrf_token;
	const call = async (method, path, body, kind = "application/json") => {
		const r = await fetch(path, { method, headers: { "Dibs-Csrf": csrf, "Content-Type": kind }, body: typeof body === "object" ? JSON.stringify(body) : body });
		if (!r.ok && r.status !== 409) throw new Error(path + ": " + (await r.text()));
		return r.json();
	};
	const at = (s) => new Date(Date.now() + s * 1000).toISOString();
	const campaign = async (id, title, more) => {
		await call("POST", "/v1/campaigns", { id, kind: "sale", title, starts_at: at(-60), ends_at: at(7200), stock: { units: 100 }, ...more });
		await call("POST", "/v1/campaigns/" + id + "/publish");
	};
	const soon = at(10);
	await campaign("draw", "Phone by lottery", { starts_at: at(12), gate: { room: { mode: "lottery", registration_closes_at: soon, winners: 3 } } });
	for (let i = 0; i < 8; i++) await fetch("/v1/campaigns/draw/lottery/entries", { method: "POST", credentials: "omit", headers: { Authorization: "Bearer dev_" + i } });
	await campaign("queue", "Mug with a waiting room", { gate: { room: { mode: "fifo", rate: 20 } } });
	for (let i = 0; i < 30; i++) await fetch("/v1/campaigns/queue/queue", { method: "POST", credentials: "omit", headers: { Authorization: "Bearer dev_" + i } });
	await campaign("shared", "Bag for followers", { price: { amount: 25900, currency: "CNY" } });
	await call("PATCH", "/v1/campaigns/shared", { ends_at: at(9000) });
	await call("PUT", "/v1/audiences/vip", "user\n42\n43\n44\n", "text/csv");
	await call("POST", "/v1/merchants/shop/followers", "user,rank\n" + Array.from({ length: 40 }, (_, i) => "u" + i + "," + (40 - i)).join("\n") + "\n", "text/csv");
	await call("POST", "/v1/campaigns/shared/announcements", { id: "bags", merchant: "shop", message: "A hundred bags, this afternoon", threshold: 10, first: 10, rate: 2 });
	// What shoppers may meet.
	const as = (user, path, body = {}) => fetch(path, { method: "POST", credentials: "omit", headers: { Authorization: "Bearer dev_" + user, "Content-Type": "application/json", "Idempotency-Key": "sample" }, body: JSON.stringify(body) }).then((r) => r.json());
	await campaign("slow", "Lamp with a queue", { gate: { room: { mode: "fifo", rate: 1, per: "24h", burst: 1, admit_for: "24h" } } });
	for (const user of ["first", "second", "third"]) await as(user, "/v1/campaigns/slow/queue");
	await campaign("invited", "Bag for invited users", { gate: { audience: { list: "vip" } } });
	await campaign("gone", "Poster, signed", { stock: { units: 1 } });
	await as("1", "/v1/campaigns/gone/claims");
	await campaign("halted", "Print on paper");
	await call("POST", "/v1/campaigns/halted/pause");
	await campaign("opened", "Packet of three", { kind: "redpacket", stock: { redpacket: { total: { amount: 1000, currency: "CNY" }, count: 3 } } });
	for (const user of ["9", "10", "11"]) await as(user, "/v1/campaigns/opened/claims");
	await campaign("rain-later", "Packets for tomorrow", { kind: "redpacket", starts_at: at(86400), ends_at: at(2 * 86400), stock: { redpacket: { total: { amount: 50000, currency: "CNY" }, count: 100 } } });
	await campaign("over", "Scarf of yesterday");
	await as("42", "/v1/campaigns/over/claims");
	await call("POST", "/v1/campaigns/over/end");
	const bought = await as("payer", "/v1/campaigns/sneaker-drop/claims");
	await as("payer", "/v1/dev/payments", { claim_id: bought.id, how: "now" });
	await call("POST", "/v1/campaigns", {
		id: "everything", kind: "sale", title: "Draft of everything", comment: "Ask the buyer first.", starts_at: at(86400), ends_at: at(2 * 86400), stock: { units: 500 }, price: { amount: 129900, currency: "CNY" }, limit_per_user: 3, low_stock: 20,
		tiers: [{ from_unit: 2, percent: 80 }, { from_unit: 3, percent: 50 }], pay_within: "15m", late_payment: "refund_due",
		gate: { audience: { list: "vip" }, room: { mode: "shuffle", rate: 50, burst: 100, max: 10000, opens_at: at(80000) }, ticket: { lifetime: "2m", work_bits: 16 }, limits: [{ per: "user", rate: 5, every: "1s" }, { per: "campaign", rate: 500, every: "1s", bucket: "leaky", burst: 100, max_wait: "2s" }] },
	});
	const hooks = (await call("GET", "/v1/webhook-endpoints")).items;
	if (!hooks.length) await call("POST", "/v1/webhook-endpoints", { url: "https://hooks.example/orders", description: "the warehouse" });
	await call("POST", "/v1/accounts/9/deposits", { amount: { amount: 5000, currency: "CNY" }, ref: "transfer-1" });
	const keys = (await call("GET", "/v1/keys")).items;
	if (keys.length < 3) {
		await call("POST", "/v1/keys", { name: "till", role: "publisher", scopes: { campaigns: ["coupon-*"], actions: ["redeem-claim", "unredeem-claim"] }, expires_at: at(3 * 86400) });
		const old = await call("POST", "/v1/keys", { name: "payments", role: "publisher" });
		await call("DELETE", "/v1/keys/" + old.id);
	}
	return true;
})()`

// newKey makes a key that the server hears nothing of: what shows the secret of a new one is the same.
const newKey = `{ const name = document.querySelector("dialog[open] [name=name]"), real = window.fetch;
	if (!name) document.querySelector("[data-act=new-key]").click();
	name.value = "printer";
	window.fetch = async (at, o) => (o?.method === "POST" ? new Response('{"id":"k-printer","name":"printer","secret":"dibs_0123456789abcdef0123456789abcdef"}') : real(at, o));
	name.form.requestSubmit(); }`

// badFile sends a list of users with lines that are none; the server refuses it as a whole.
const badFile = `{ const id = document.querySelector("dialog[open] [name=id]");
	if (!id) document.querySelector(".title button.primary").click();
	id.value = "unread";
	const file = new DataTransfer();
	file.items.add(new File(["user\n42\n" + "x".repeat(200) + "\n43 44\n"], "users.csv", { type: "text/csv" }));
	id.form.querySelector("[type=file]").files = file.files;
	id.form.requestSubmit(); }`

// meanwhile changes a campaign under a form that is being filled in, and saves the form.
const meanwhile = `(async () => {
	const title = document.querySelector("[name=title]");
	if (!title.value) throw new Error("it is not loaded");
	const csrf = (await (await fetch("/v1/session")).json()).csrf_token, now = await (await fetch("/v1/campaigns/shared")).json();
	await fetch("/v1/campaigns/shared", { method: "PATCH", headers: { "Dibs-Csrf": csrf, "Content-Type": "application/json" }, body: JSON.stringify({ title: "Bag for followers, " + now.version, limit_per_user: now.limit_per_user + 1 }) });
	title.value = "Bag, for followers alone";
	title.dispatchEvent(new Event("input", { bubbles: true }));
	await new Promise((done) => setTimeout(done, 50));
	document.querySelector("[data-act=save]").click();
})()`
