package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestConsole lives an operator's day in a real browser.
func TestConsole(t *testing.T) {
	t.Parallel()
	d := startShop(t)
	login := d.server.await(t, d.server.out, `Console +(\S+)`)[1]
	for _, c := range []struct {
		name string
		look func(*shop, string)
	}{
		{"signing in, once by the code", signingIn},
		{"from a draft to the end", operatorsDay},
		{"a rush", rushOfTheConsole},
		{"codes in a rush", codesInARush},
		{"codes from a file", codesFromAFile},
		{"a viewer", viewersDay},
		{"a key that is revoked", revokedWhileOpen},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *d
			s.pages.T = t
			c.look(&s, login)
		})
	}
}

// console opens a screen.
func (s *shop) console(path, language string) *tab {
	s.Helper()
	return s.phone.open(s.T, s.url+"/console"+path, language)
}

// enter signs the browser in with a key. An earlier sign-in ends. It sets the cookie that the form
// sets, and opens no page for that: three pages each time would take longer than most tests. TestConsole uses the form.
func (s *shop) enter(key string) {
	s.Helper()
	body, err := json.Marshal(map[string]string{"key": key})
	s.must(err)
	req, err := http.NewRequest(http.MethodPost, s.url+"/v1/session", bytes.NewReader(body))
	s.must(err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	resp, err := http.DefaultClient.Do(req)
	s.must(err)
	s.must(resp.Body.Close())
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 || resp.Cookies()[0].SameSite != http.SameSiteStrictMode {
		s.Fatalf("signing in: %s, cookies %v", resp.Status, resp.Cookies())
	}
	c := resp.Cookies()[0]
	(&tab{s.T, s.phone}).do(emulated(network.SetCookie, network.SetCookieParams{
		Name: c.Name, Value: c.Value, URL: s.url, Path: c.Path, HTTPOnly: &c.HttpOnly, SameSite: network.CookieSameSiteStrict,
	}))
}

// asAdmin signs in with the key that dev printed.
func (s *shop) asAdmin() {
	s.Helper()
	s.enter(s.server.await(s.T, s.server.out, `Admin key +(\S+)`)[1])
}

// fill writes into a field by its name.
func (p *tab) fill(name, value string) {
	p.Helper()
	p.await(fmt.Sprintf(`(() => {
		const f = [...document.querySelectorAll("[name=%[1]s]")].find((f) => f.checkVisibility());
		if (!f) return false;
		const proto = f.tagName === "SELECT" ? HTMLSelectElement : f.tagName === "TEXTAREA" ? HTMLTextAreaElement : HTMLInputElement;
		Object.getOwnPropertyDescriptor(proto.prototype, "value").set.call(f, %[2]q);
		f.dispatchEvent(new Event("input", { bubbles: true }));
		f.dispatchEvent(new Event("change", { bubbles: true }));
		return f.value === %[2]q;
	})()`, name, value))
}

// act presses one of a screen's actions, and says yes.
func (p *tab) act(name, yes string) {
	p.Helper()
	p.await(fmt.Sprintf(`(() => {
		const b = !document.querySelector("dialog[open] form") && document.querySelector("[data-act=%[1]s]:enabled, [data-step=%[1]s]:enabled");
		if (b) b.click();
		return !!b;
	})()`, name))
	p.await(`!!document.querySelector("dialog[open] form")`)
	if yes != "" {
		p.await(fmt.Sprintf(`(() => {
			const b = [...document.querySelectorAll("dialog[open] form button")].find((b) => b.textContent.trim() === %q && !b.disabled);
			b?.click();
			return !!b;
		})()`, yes))
		p.await(`!document.querySelector("dialog[open] form")`)
	}
}

// signingIn: the printed address signs in once; the key is nowhere that a script or a log could read.
func signingIn(s *shop, login string) {
	page := s.phone.open(s.T, login, english)
	page.shows("Needs a person")
	if at := tells[string](page, "location.href"); at != s.url+"/console/" {
		s.Errorf("the address is %s: the code stands in it", at)
	}
	key := s.server.await(s.T, s.server.out, `Admin key +(\S+)`)[1]
	page.knowsNot(key, "dibs_session")
	page.click("Menu")
	page.click("Sign out")
	page.shows("Sign in to the console")
	page = s.phone.open(s.T, login, english)
	page.shows("Sign in to the console")
	page.fill("key", "dibs_no_such_key_0123456789")
	page.click("Sign in")
	page.shows("the API key is unknown, revoked or expired")
	page.fill("key", key)
	page.click("Sign in")
	page.shows("Needs a person")
	page.knowsNot(key, "dibs_session")
	if strings.Contains(s.server.err.String(), key) {
		s.Error("the key is in the log")
	}
}

// knowsNot looks for secrets wherever a script of the page could find them: in what is stored, in the document, in its
// address and in those that it asked for.
func (p *tab) knowsNot(secrets ...string) {
	p.Helper()
	kept := tells[string](p, `JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + document.cookie + document.documentElement.outerHTML +
		[...document.querySelectorAll("input")].map((i) => i.value) + location.href + performance.getEntriesByType("resource").map((e) => e.name)`)
	for _, secret := range secrets {
		if strings.Contains(kept, secret) {
			p.Errorf("the page knows %s…", secret[:8])
		}
	}
}

// operatorsDay: a campaign from the wizard to its end, with what the screen shows compared with the API.
func operatorsDay(s *shop, _ string) {
	s.asAdmin()
	page := s.console("/campaigns/new", english)
	page.fill("title", "Mugs <b>at</b> noon")
	page.fill("id", "mugs")
	page.fill("starts", "2026-01-01T00:00")
	page.click("Next")
	page.fill("units", "25")
	page.click("Next")
	page.fill("price", "12.50")
	page.fill("pay", "")
	page.click("Next")
	page.click("Next")
	page.shows("CN¥12.50")
	page.click("Publish")
	page.shows("Engine = journal = ledger")
	if text := tells[string](page, "document.querySelector('h1').textContent"); text != "Mugs <b>at</b> noon" {
		s.Errorf("the title is %q", text)
	}
	for i := range 10 {
		_, _, err := s.as(fmt.Sprintf("u%d", i)).Claim(s.Context(), "mugs", 1, "one")
		s.must(err)
	}
	page.await(`document.querySelector("#granted")?.textContent === "10" && document.querySelector("#remaining")?.textContent === "15"`)
	page.await(`document.querySelector("#sums")?.dataset.state === "good" && ["engine", "journal", "ledger"].every((n) => document.querySelector("[data-sum=" + n + "]")?.textContent === "10")`)
	// The engine times no campaign alone, and the screen does not say so.
	page.await(`[...document.querySelectorAll("#live .tile")].some((t) => t.innerText.includes("Engine latency, p99") && t.innerText.includes("of all campaigns on all nodes"))`)
	page.act("pause", "Pause")
	page.shows("Paused")
	page.act("resume", "Resume")
	page.act("restock", "")
	page.fill("n", "5")
	page.fill("why", "found a box")
	page.do(chromedp.Click(chromedp.CSS("dialog[open] form button.primary"), chromedp.NodeVisible))
	page.await(`document.querySelector("#remaining").textContent === "20"`)
	if st, err := s.admin.Campaigns.Stats(s.Context(), "mugs"); err != nil || st.Remaining != 20 || st.Granted != 10 {
		s.Errorf("the screen shows 20 and 10, the API %+v, %v", st, err)
	}
	page.click("Verify now")
	page.shows("Nothing is sold twice")
	page.await(`document.querySelectorAll(".promises [data-finding=held]").length >= 6 && !document.querySelector(".promises [data-finding=broken]")`)
	page.shows("Changed the stock")
	page.act("end", "End for good")
	page.shows("Ended")
	s.sumsOfThePast(page)
	st, err := s.admin.Campaigns.Stats(s.Context(), "mugs")
	s.must(err)
	if st.Granted != 10 || st.Stock != 30 {
		s.Errorf("%+v", st)
	}
	page = s.console("/orders?campaign_id=mugs", english)
	page.await(`document.querySelectorAll("[data-open]").length === 10`)
	csv := tells[string](page, `fetch([...document.querySelectorAll("a")].find((a) => a.download).href).then((r) => r.text())`)
	if strings.Count(csv, "mugs") != 10 {
		s.Errorf("the CSV:\n%s", csv)
	}
	page.await(`(() => { document.querySelector("[data-open]").click(); return !!document.querySelector("dialog[open] .timeline"); })()`)
	page.act("ship", "")
	page.fill("carrier", "SF")
	page.fill("no", "7")
	page.do(chromedp.Click(chromedp.CSS("dialog[open] form button.primary"), chromedp.NodeVisible))
	page.shows("SF 7")
}

// sumsOfThePast: minutes after its end a campaign leaves the engine, and nothing of it is settling then. What could not
// be told is.
func (s *shop) sumsOfThePast(page *tab) {
	s.Helper()
	states := tells[string](page, `(async () => {
		const at = (name) => document.querySelector("script[type=module]").src.replace("console/main.js", name);
		const [{ Sums }, { h, render }] = [await import(at("console/campaign.js")), await import(at("lib/html.js"))];
		return [{ journal: 10 }, { journal: null }, { journal: 9 }, { journal: 9, agree: false }].map((some) => {
			const box = document.createElement("div");
			render(h(Sums, { sums: { engine: 10, ledger: 10, on_the_way: 0, age_ms: 0, agree: null, ...some }, stock: 30 }), box);
			return box.querySelector("#sums").dataset.state;
		}).join(" ");
	})()`)
	if states != "good moving moving bad" {
		s.Errorf("the three numbers are said to be %s", states)
	}
}

// rushOfTheConsole: a rush of 5,000 presses, whose promises all hold, and whose numbers are those of the API.
func rushOfTheConsole(s *shop, _ string) {
	s.asAdmin()
	var page *tab
	// On a machine that stands still a rush may be over before anything of it is shown: then comes another one.
	for range 3 {
		page = s.console("/rush", english)
		// What is shown of the stock, and in which state of the rush.
		tells[bool](page, `!(window.seen = new Set(), new MutationObserver(() => {
			const left = document.querySelector("#falling #remaining");
			if (left) window.seen.add(document.querySelector("#rush").dataset.state);
		}).observe(document.body, { subtree: true, childList: true, characterData: true }))`)
		page.click("Start the rush")
		page.await(`!!document.querySelector("#rush[data-state=done]") || document.querySelector("#rush .note.bad")`)
		page.shows("Every promise held")
		if tells[bool](page, `window.seen.has("running")`) {
			break
		}
	}
	campaign := tells[string](page, `document.querySelector("#rush a").textContent`)
	st, err := s.admin.Campaigns.Stats(s.Context(), campaign)
	s.must(err)
	if st.Granted != 200 || st.Remaining != 0 {
		s.Errorf("%+v", st)
	}
	page.await(fmt.Sprintf(`["engine", "journal", "ledger"].every((n) => document.querySelector("[data-sum=" + n + "]")?.textContent === "%d")`, st.Granted))
	page.await(`window.seen.has("running") && document.querySelector("#falling #remaining")?.textContent === "0" && !!document.querySelector(".chart canvas")`)
	page.await(`document.querySelectorAll("[data-finding=held]").length >= 13 && !document.querySelector("[data-finding=broken]")`)
	env := []string{"DIBS_URL=" + s.url, "DIBS_ADMIN_KEY=" + s.server.await(s.T, s.server.out, `Admin key +(\S+)`)[1]}
	clitest.Run(s.T, env, "verify", campaign).Want(s.T, 0, "every promise holds, campaigns verified: 1")
	tells[bool](page, `(() => { const real = URL.createObjectURL; URL.createObjectURL = (b) => { b.text().then((t) => (window.kept = t)); return real(b); }; return true; })()`)
	page.click("Keep the report as HTML")
	page.await(`!!window.kept`)
	kept := tells[string](page, "window.kept")
	if !strings.HasPrefix(kept, "<!doctype html>") || strings.Count(kept, "<tr><td>held</td>") < 13 || strings.Contains(kept, "<script") || strings.Contains(kept, "undefined") {
		s.Errorf("the report that is kept:\n%s", kept)
	}
}

// codesInARush: coupons can be rushed for, too, over a WebSocket of each user: each code is one user's.
func codesInARush(s *shop, _ string) {
	s.asAdmin()
	page := s.console("/rush", english)
	for name, value := range map[string]string{"kind": "coupon", "through": "ws", "users": "300", "requests": "600", "stock": "50"} {
		page.fill(name, value)
	}
	page.click("Start the rush")
	page.await(`!!document.querySelector("#rush[data-state=done]") || document.querySelector("#rush .note.bad")`)
	page.shows("Every promise held")
	campaign := tells[string](page, `document.querySelector("#rush a").textContent`)
	c, err := s.admin.Campaigns.Get(s.Context(), campaign)
	s.must(err)
	codes, err := s.admin.Campaigns.Stats(s.Context(), campaign)
	s.must(err)
	if c.Kind != dibs.Coupon || codes.Granted != 50 {
		s.Errorf("%s granted %d", c.Kind, codes.Granted)
	}
}

// codesFromAFile: ten thousand codes, of which three lines are bad: all are named, and none is imported. They are imported
// once, though publishing fails after them.
func codesFromAFile(s *shop, _ string) {
	s.asAdmin()
	lines := []string{"code"}
	for i := range 10_000 {
		lines = append(lines, fmt.Sprintf("CODE-%05d", i))
	}
	good := strings.Join(lines, "\n")
	lines[500], lines[6000], lines[9999] = strings.Repeat("y", 200), strings.Repeat("x", 300), `"open`
	bad := strings.Join(lines, "\n")
	page := s.console("/campaigns/new", english)
	page.fill("kind", "coupon")
	page.fill("title", "Imported")
	page.fill("id", "imported")
	page.click("Next")
	page.fill("source", "file")
	file := func(text string) {
		raw, err := json.Marshal(text)
		s.must(err)
		page.await(`!!document.querySelector("input[type=file]")`)
		tells[bool](page, `(() => {
			const d = new DataTransfer();
			d.items.add(new File([`+string(raw)+`], "codes.csv", { type: "text/csv" }));
			const f = document.querySelector("input[type=file]");
			f.files = d.files;
			f.dispatchEvent(new Event("change", { bubbles: true }));
			return true;
		})()`)
	}
	file(bad)
	page.click("5. Review")
	page.click("Save the draft")
	for _, line := range []string{"line 501:", "line 6,001:", "line 10,000:"} {
		page.shows(line)
	}
	page.shows("The draft imported was made")
	if c, err := s.admin.Campaigns.Get(s.Context(), "imported"); err != nil || c.Remaining != 0 {
		s.Errorf("after a bad file: %+v, %v", c, err)
	}
	// What will be published is what was made: nothing but the file can be chosen anew.
	if tells[bool](page, `[...document.querySelectorAll("form.card :is(input, select, textarea):not([type=file]), .steps button")].some((f) => !f.disabled)`) {
		s.Error("the form can be changed, and the draft would not be")
	}
	file(good)
	tells[bool](page, `(() => {
		const real = window.fetch;
		window.fetch = async (at, o) => {
			if (!String(at).endsWith("/publish")) return real(at, o);
			window.fetch = real;
			return new Response('{"reason":"unavailable","detail":"not published for now"}', { status: 503 });
		};
		return true;
	})()`)
	page.click("Publish")
	page.shows("not published for now")
	page.await(`!document.querySelector("input[type=file]")`)
	page.click("Publish")
	page.shows("Engine = journal = ledger")
	c, err := s.admin.Campaigns.Get(s.Context(), "imported")
	s.must(err)
	if c.Stock.Items == nil || *c.Stock.Items != 10_000 || c.State != dibs.Published {
		s.Errorf("%s, %+v", c.State, c.Stock)
	}
}

// viewersDay: a viewer sees, is offered nothing that changes anything, and is refused by the API.
func viewersDay(s *shop, _ string) {
	s.enter(s.key("viewer", access.RoleViewer))
	page := s.console("/campaigns/phone-noon", english)
	page.shows("Engine = journal = ledger")
	if n := tells[int](page, `document.querySelectorAll("[data-act]:not([data-act=verify])").length`); n != 0 {
		s.Errorf("%d actions are offered", n)
	}
	status := tells[int](page, `(async () => {
		const csrf = (await (await fetch("/v1/session")).json()).csrf_token;
		return (await fetch("/v1/campaigns/phone-noon/pause", { method: "POST", headers: { "Dibs-Csrf": csrf } })).status;
	})()`)
	if status != 403 {
		s.Errorf("by hand: %d", status)
	}
	page = s.console("/rush", english)
	page.shows("needs a key of the role admin")
}

// key makes a key in the data folder of the server.
func (s *shop) key(name string, role access.Role) string {
	s.Helper()
	r := clitest.Run(s.T, nil, "key", "create", "--name", name, "--role", string(role), "--data", s.data, "--output", "json")
	var v struct{ Secret string }
	if err := json.Unmarshal([]byte(r.Out), &v); err != nil {
		s.Fatalf("%v: %s%s", err, r.Out, r.Err)
	}
	return v.Secret
}

// revokedWhileOpen: the screen of a key that was revoked asks to sign in again, though it asks the server for nothing.
func revokedWhileOpen(s *shop, _ string) {
	s.enter(s.key("fleeting", access.RoleAdmin))
	page := s.console("/campaigns/new", english)
	page.fill("title", "Half written")
	r := clitest.Run(s.T, nil, "key", "list", "--data", s.data, "--output", "json")
	var list []struct{ ID, Name string }
	if err := json.Unmarshal([]byte(r.Out), &list); err != nil {
		s.Fatalf("%v: %s", err, r.Out)
	}
	for _, k := range list {
		if k.Name == "fleeting" {
			clitest.Run(s.T, nil, "key", "revoke", k.ID, "--data", s.data)
		}
	}
	page.shows("Sign in to the console")
}
