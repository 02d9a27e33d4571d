package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/erasure"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestAdmins looks at what several administrators, bad networks and keyboards do to the console.
func TestAdmins(t *testing.T) {
	t.Parallel()
	d := startShop(t, "--approve", "erasure")
	for _, c := range []struct {
		name string
		look func(*shop)
	}{
		{"by keyboard alone", byKeyboard},
		{"two admins change one campaign", twoAdmins},
		{"two admins extend one campaign", twoExtend},
		{"two admins, one draft", twoPublish},
		{"an erasure that a second one approves", approvedErasure},
		{"two tabs with one key", twoTabs},
		{"two admins change one product", twoOfAProduct},
		{"an answer that is lost", lostInTheConsole},
		{"a session that ends over a form", endedOverAForm},
		{"what no call can be made of", writtenWrong},
		{"money and times of the history", historyInWords},
		{"keys", keysOfTheConsole},
		{"a lottery is drawn again", drawnAgain},
		{"the gate of a live campaign", gateOfALiveCampaign},
		{"all of a draft is changed", editedWhole},
		{"audiences and announcements", toldFollowers},
		{"coupons", usedCoupons},
		{"settings and doctor", diagnosedServer},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *d
			s.pages.T = t
			c.look(&s)
		})
	}
}

// keys types, as a keyboard does: \t is Tab, \r Enter.
func (p *tab) keys(text string) {
	p.Helper()
	p.do(chromedp.KeyEvent(text))
}

// tabTo presses Tab until what a selector names has the focus.
func (p *tab) tabTo(selector string) {
	p.Helper()
	p.await(fmt.Sprintf("!!document.querySelector(%q)", selector))
	for range 120 {
		if tells[bool](p, fmt.Sprintf("!!document.activeElement?.matches(%q)", selector)) {
			return
		}
		p.keys("\t")
	}
	p.Fatalf("Tab does not lead to %s; the focus is on %s", selector, tells[string](p, "document.activeElement?.outerHTML.slice(0, 200)"))
}

// byKeyboard: signing in, the wizard, publishing and pausing, without a mouse or a finger.
func byKeyboard(s *shop) {
	page := s.console("/campaigns/new", english)
	page.tabTo("input[name=key]")
	page.keys(s.server.await(s.T, s.server.out, `Admin key +(\S+)`)[1] + "\r")
	page.tabTo("input[name=title]")
	page.keys("By keyboard")
	page.tabTo("input[name=id]")
	page.keys("keyed\r")
	page.await(`document.activeElement?.name === "source"`)
	page.tabTo("input[name=units]")
	page.keys("\r")
	page.tabTo("input[name=price]")
	page.keys("9.99\r")
	page.await(`!!document.querySelector("[name=audience]")`)
	page.tabTo("form button.primary")
	page.keys("\r")
	page.shows("CN¥9.99")
	page.tabTo("form button.primary")
	page.keys("\r")
	page.shows("Engine = journal = ledger")
	// It starts in five minutes: an upcoming campaign can be paused.
	page.tabTo("[data-act=pause]")
	page.keys("\r")
	page.await(`!!document.querySelector("dialog[open]")`)
	page.tabTo("dialog[open] button.primary")
	page.keys("\r")
	page.shows("Paused")
	if c, err := s.admin.Campaigns.Get(s.Context(), "keyed"); err != nil || c.State != dibs.PausedState {
		s.Errorf("%+v, %v", c, err)
	}
}

// twoAdmins: the second of them sees what the first has made of the campaign, field by field, and decides.
func twoAdmins(s *shop) {
	s.asAdmin()
	s.campaign("shared", func(c *dibs.CampaignSpec) { c.Comment = "old" })
	page := s.console("/campaigns/shared/edit", english)
	page.fill("title", "Mine")
	page.fill("comment", "mine too")
	theirs, limit := "Theirs", int64(3)
	s.patch("shared", dibs.CampaignPatch{Title: &theirs, Limit: &limit})
	page.click("Save")
	page.shows("Somebody else changed this campaign meanwhile")
	rows := tells[string](page, `[...document.querySelectorAll("#difference [data-field]")].map((r) => [...r.querySelectorAll("dd")].map((d) => d.textContent).join("|")).join("\n")`)
	if rows != "The shared|Theirs|Mine\n1|3|as theirs\nold|old|mine too" {
		s.Errorf("the difference is\n%s", rows)
	}
	if c, err := s.admin.Campaigns.Get(s.Context(), "shared"); err != nil || c.Title != theirs {
		s.Errorf("before a decision: %+v, %v", c, err)
	}
	page.await(`(() => { const b = document.querySelector("[data-take=title]"); b?.click(); return !document.querySelector("[data-take=title]"); })()`)
	page.click("Save mine")
	page.shows("Engine = journal = ledger")
	if c, err := s.admin.Campaigns.Get(s.Context(), "shared"); err != nil || c.Title != theirs || *c.Comment != "mine too" || c.LimitPerUser != 3 {
		s.Errorf("%+v, %v", c, err)
	}
}

// twoExtend: the second of them adds to no end that they have not seen. The question is asked again with the end that
// the first has set, and a second yes counts from there.
func twoExtend(s *shop) {
	s.asAdmin()
	s.campaign("stretched", func(*dibs.CampaignSpec) {})
	before, err := s.admin.Campaigns.Get(s.Context(), "stretched")
	s.must(err)
	page := s.console("/campaigns/stretched", english)
	page.act("extend", "")
	page.fill("minutes", "45")
	theirs := before.EndsAt.Add(3 * time.Hour)
	s.patch("stretched", dibs.CampaignPatch{EndsAt: &theirs})
	page.yes()
	page.shows("Somebody else changed this campaign meanwhile")
	shown := tells[string](page, fmt.Sprintf(`new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" }).format(new Date(%q))`, theirs.Format(time.RFC3339)))
	page.shows("end later than " + shown)
	if c, err := s.admin.Campaigns.Get(s.Context(), "stretched"); err != nil || !c.EndsAt.Equal(theirs) {
		s.Errorf("before a decision it ends at %s, not at %s; %v", c.EndsAt, theirs, err)
	}
	if minutes := tells[string](page, `document.querySelector("dialog[open] [name=minutes]").value`); minutes != "45" {
		s.Errorf("the question is asked again with %q minutes", minutes)
	}
	page.yes()
	page.await(`!document.querySelector("dialog[open] form")`)
	if c, err := s.admin.Campaigns.Get(s.Context(), "stretched"); err != nil || c.EndsAt.Sub(theirs) != 45*time.Minute {
		s.Errorf("it ends at %s; %v", c.EndsAt, err)
	}
}

// twoPublish: a draft that another administrator changed is not published before its new terms were shown.
func twoPublish(s *shop) {
	s.asAdmin()
	units := int64(10)
	_, err := s.admin.Campaigns.Create(s.Context(), dibs.CampaignSpec{
		ID: "priced", Kind: dibs.Sale, Title: "The priced", Stock: dibs.StockSpec{Units: &units}, Price: &dibs.Money{Amount: 1250, Currency: "CNY"},
		StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
	}, "")
	s.must(err)
	page := s.console("/campaigns/priced", english)
	page.shows("CN¥12.50")
	page.act("publish", "")
	s.patch("priced", dibs.CampaignPatch{Price: &dibs.Money{Amount: 125, Currency: "CNY"}})
	page.yes()
	page.shows("Somebody else changed this campaign meanwhile")
	page.shows("CN¥1.25")
	if c, err := s.admin.Campaigns.Get(s.Context(), "priced"); err != nil || c.State != dibs.Draft {
		s.Errorf("before a decision it is %s; %v", c.State, err)
	}
	page.yes()
	page.shows("Engine = journal = ledger")
	if c, err := s.admin.Campaigns.Get(s.Context(), "priced"); err != nil || c.State != dibs.Published || c.Price.Amount != 125 {
		s.Errorf("%+v, %v", c, err)
	}
}

// approvedErasure: who approves the erasure of a user sees which user that is, though the admin log must not know.
func approvedErasure(s *shop) {
	_, _, err := s.admin.Erasures.Erase(s.Context(), "97", erasure.ErasureSpec{})
	if !errors.As(err, new(*client.Pending)) {
		s.Fatal(err)
	}
	s.enter(s.key("second", access.RoleAdmin))
	page := s.console("/approvals", english)
	const erases = "/v1/users/97/erasure"
	page.await(fmt.Sprintf(`document.querySelector("tbody td code")?.textContent === %q`, erases))
	page.await(`(() => { document.querySelector("details").open = true; return /^user\s+97$/m.test(document.querySelector("details").innerText); })()`)
	page.act("approve", "")
	page.shows("Erased a user, " + erases)
	page.yes()
	page.await(`!document.querySelector("[data-act=approve]")`)
	if all, err := s.admin.Erasures.List(s.Context(), false, dibs.Page{}); err != nil || len(all.Items) != 1 {
		s.Errorf("%+v, %v", all, err)
	}
}

// signOut is a script that presses the button to sign out, wherever the menu is.
const signOut = `[...document.querySelectorAll("button")].find((b) => b.textContent === "Sign out").click()`

// twoTabs: another tab signs in with the same key, and has the session from then on. This tab goes on with it, and leaves
// it; where it cannot, it says so.
func twoTabs(s *shop) {
	s.asAdmin()
	s.campaign("tabbed", func(*dibs.CampaignSpec) {})
	page := s.console("/campaigns/tabbed", english)
	page.await(`document.querySelector("#remaining")?.textContent === "10"`)
	tells[bool](page, fmt.Sprintf(`fetch("/v1/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ key: %q }) }).then((r) => (%s, r.ok))`,
		s.server.await(s.T, s.server.out, `Admin key +(\S+)`)[1], signOut))
	page.shows("You are still signed in.")
	page.act("pause", "")
	page.await(`(() => { const yes = document.querySelector("dialog[open] form button.primary"); yes?.click(); return !yes; })()`)
	if c, err := s.admin.Campaigns.Get(s.Context(), "tabbed"); err != nil || c.State != dibs.PausedState {
		s.Errorf("%+v, %v", c, err)
	}
	// Without an answer nobody knows whether the session goes on.
	tells[bool](page, `(() => {
		const real = window.fetch;
		window.fetch = (at, o) => (o?.method === "DELETE" ? Promise.reject(new TypeError("gone")) : real(at, o));
		`+signOut+`;
		window.fetch = real;
		return true;
	})()`)
	page.shows("You are still signed in. The server did not answer.")
	tells[bool](page, "("+signOut+", true)")
	page.shows("Sign in to the console")
	if status := tells[int](page, `fetch("/v1/session").then((r) => r.status)`); status != 401 {
		s.Errorf("after signing out the session answers %d", status)
	}
}

// twoOfAProduct: a form of a product changes the fields that were written in it, and leaves the others as they are.
func twoOfAProduct(s *shop) {
	s.asAdmin()
	_, err := s.admin.Products.Create(s.Context(), dibs.ProductSpec{ID: "kettle", Name: "Kettle", Description: "old"}, "")
	s.must(err)
	page := s.console("/products", english)
	page.await(`(() => { const b = [...document.querySelectorAll(".named")].find((b) => b.firstElementChild.textContent === "Kettle"); b?.click(); return !!b; })()`)
	page.fill("name", "Red kettle")
	theirs := "theirs"
	_, err = s.admin.Products.Patch(s.Context(), "kettle", dibs.ProductPatch{Description: &theirs})
	s.must(err)
	page.click("Save")
	page.shows("Saved.")
	if p, err := s.admin.Products.Get(s.Context(), "kettle"); err != nil || p.Name != "Red kettle" || p.Description != theirs {
		s.Errorf("%+v, %v", p, err)
	}
}

// lostInTheConsole: a restock whose answers get lost is made once, and so is an extension; a connection that is gone is shown
// until it is back.
func lostInTheConsole(s *shop) {
	s.asAdmin()
	s.campaign("flaky", func(*dibs.CampaignSpec) {})
	page := s.console("/campaigns/flaky", english)
	page.await(`document.querySelector("#remaining")?.textContent === "10"`)
	// The server takes each change, and its answer never arrives.
	tells[bool](page, `(() => {
		const real = window.fetch;
		window.lost = true;
		window.fetch = async (at, o) => {
			if (!window.lost || !["POST", "PATCH"].includes(o?.method)) return real(at, o);
			if (window.lost === "refused") return new Response(JSON.stringify({ reason: "unavailable", title: "Unavailable", detail: "it is not known who you are", status: 503, effect: "none" }), { status: 503 });
			await real(at, o);
			throw new TypeError("lost");
		};
		return true;
	})()`)
	page.act("restock", "")
	page.fill("n", "5")
	page.fill("why", "a box")
	send := chromedp.Click(chromedp.CSS("dialog[open] form button.primary"), chromedp.NodeVisible)
	page.do(send)
	page.shows("The server did not answer.")
	// A repeat that is refused before its key is looked up says nothing of the first.
	tells[bool](page, `!!(window.lost = "refused")`)
	page.do(send)
	page.shows("it is not known who you are")
	tells[bool](page, `!(window.lost = false)`)
	page.do(send)
	page.await(`!document.querySelector("dialog[open]") && document.querySelector("#remaining").textContent === "15"`)
	st, err := s.admin.Campaigns.Stats(s.Context(), "flaky")
	s.must(err)
	if st.Stock != 15 {
		s.Errorf("the stock is %d: it was restocked more than once, or never", st.Stock)
	}
	// The repeat of an extension finds the end where it was to be.
	before, err := s.admin.Campaigns.Get(s.Context(), "flaky")
	s.must(err)
	tells[bool](page, `window.lost = true`)
	page.act("extend", "")
	page.fill("minutes", "30")
	page.do(send)
	page.shows("The server did not answer.")
	tells[bool](page, `!(window.lost = false)`)
	page.do(send)
	page.await(`!document.querySelector("dialog[open]")`)
	if c, err := s.admin.Campaigns.Get(s.Context(), "flaky"); err != nil || !c.EndsAt.Equal(before.EndsAt.Add(30*time.Minute)) {
		s.Errorf("it ends at %s, %s before, want half an hour later: %v", c.EndsAt, before.EndsAt, err)
	}
	page = s.console("/health", english)
	page.shows("Ready")
	tells[bool](page, `(() => { window.real = window.fetch; window.fetch = () => Promise.reject(new TypeError("gone")); return true; })()`)
	page.shows("No connection.")
	tells[bool](page, `(() => { window.fetch = window.real; return true; })()`)
	page.await(`!document.body.innerText.includes("No connection.")`)
}

// endedOverAForm: a session that has ended asks to sign in, and what was written is still there then.
func endedOverAForm(s *shop) {
	s.asAdmin()
	s.campaign("written", func(*dibs.CampaignSpec) {})
	page := s.console("/campaigns/written/edit", english)
	page.fill("title", "Written before")
	page.do(emulated(network.ClearBrowserCookies, cdp.Empty{}))
	page.click("Save")
	page.shows("Your session has ended")
	if tells[bool](page, `document.body.innerText.includes("Written before") || document.querySelector("[name=title]").checkVisibility()`) {
		s.Error("the screen is seen without a session")
	}
	page.fill("key", s.server.await(s.T, s.server.out, `Admin key +(\S+)`)[1])
	page.click("Sign in")
	page.await(`document.querySelector("[name=title]")?.value === "Written before" && document.querySelector("[name=title]").checkVisibility()`)
	page.click("Save")
	page.shows("Engine = journal = ledger")
	if c, err := s.admin.Campaigns.Get(s.Context(), "written"); err != nil || c.Title != "Written before" {
		s.Errorf("%+v, %v", c, err)
	}
}

// keysOfTheConsole: a key is made with scopes and an end, shown once, rotated, and revoked.
func keysOfTheConsole(s *shop) {
	s.asAdmin()
	page := s.console("/keys", english)
	page.click("New key")
	page.fill("name", "till")
	page.fill("role", "publisher")
	page.fill("campaigns", "phone-*, mugs")
	page.fill("actions", "redeem-claim")
	page.fill("expires", time.Now().Add(48*time.Hour).Format("2006-01-02T15:04"))
	page.click("Make the key")
	page.await(`!!document.querySelector(".secret code")`)
	secret := tells[string](page, `document.querySelector(".secret code").textContent`)
	page.await(`[...document.querySelectorAll("tbody .standing")].some((s) => s.innerText.includes("ends soon"))`)
	key := func() access.KeyView {
		s.Helper()
		var list struct{ Items []access.KeyView }
		raw := tells[string](page, `fetch("/v1/keys").then((r) => r.text())`)
		s.must(decode(raw, &list))
		return list.Items[0]
	}
	first := key()
	if first.Name != "till" || first.Role != access.RolePublisher || first.ExpiresAt == nil || strings.Join(first.Scopes.Campaigns, " ") != "phone-* mugs" || strings.Join(first.Scopes.Actions, " ") != "redeem-claim" {
		s.Errorf("%+v", first)
	}
	// That of another page says nothing of it any more.
	page = s.console("/keys", english)
	page.shows("phone-*")
	if strings.Contains(tells[string](page, `document.documentElement.outerHTML + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)`), secret) {
		s.Error("the secret is shown again")
	}
	const revocable = `document.querySelectorAll("[data-act=revoke]").length`
	had := tells[int](page, revocable)
	page.act("rotate", "Rotate")
	page.await(`!!document.querySelector(".secret code")`)
	if next := key(); next.ID == first.ID || next.Name != "till" || tells[string](page, `document.querySelector(".secret code").textContent`) == secret {
		s.Errorf("rotated: %+v", next)
	}
	// The new key is the first to be shown, once it is.
	page.await(fmt.Sprintf("%s > %d", revocable, had))
	page.act("revoke", "Revoke")
	page.await(`[...document.querySelectorAll("tbody .standing")].some((s) => s.innerText.includes("revoked"))`)
	if is := key(); is.RevokedAt == nil {
		s.Errorf("revoked: %+v", is)
	}
}

// toldFollowers: a bad list names its lines, a good one counts; a campaign is announced to followers, with a forecast first.
func toldFollowers(s *shop) {
	s.asAdmin()
	s.campaign("told", func(*dibs.CampaignSpec) {})
	page := s.console("/audiences", english)
	page.click("New list")
	page.fill("id", "vip")
	page.file("users.csv", "user\n42\n"+strings.Repeat("x", 300)+"\n")
	page.click("Upload")
	page.shows("line 3")
	page.file("users.csv", "user\n42\n43\n42\n")
	page.click("Upload")
	page.shows("The list vip has 2 users; 1 came twice.")
	for i := range 5 {
		s.must(s.admin.Followers.Set(s.Context(), "shop", fmt.Sprint("u", i), int64(i), true))
	}
	page = s.console("/announcements?campaign=told&merchant=shop", english)
	page.click("Announce")
	page.fill("threshold", "2")
	page.fill("first", "2")
	page.fill("rate", "1")
	page.shows("Of 5 followers, 2 are told at once; the other 3 take 3 seconds.")
	page.await(`(() => { const b = document.querySelector("dialog[open] form button.primary"); b?.click(); return !!b; })()`)
	page.shows("2 at once, then 1 per second")
	page.await(`[...document.querySelectorAll("td")].some((c) => c.textContent.trim() === "done")`)
	l, err := s.admin.Announcements.List(s.Context(), "told", dibs.Page{})
	s.must(err)
	if len(l.Items) != 1 || l.Items[0].Enqueued != 5 {
		s.Errorf("%+v", l.Items)
	}
}

// usedCoupons: a coupon is found by its code, redeemed, and shown as used; more codes come from a file.
func usedCoupons(s *shop) {
	s.asAdmin()
	s.campaign("spring", func(c *dibs.CampaignSpec) {
		c.Kind, c.Stock = dibs.Coupon, dibs.StockSpec{Items: []string{"SPRING-1", "SPRING-2"}}
	})
	_, _, err := s.as("42").Claim(s.Context(), "spring", 1, "one")
	s.must(err)
	page := s.console("/coupons/spring?code=SPRING-1", english)
	page.await(`(() => { document.querySelector("[data-open]")?.click(); return !!document.querySelector("dialog[open] .timeline"); })()`)
	page.act("redeem", "")
	page.fill("ref", "order-9")
	page.do(chromedp.Click(chromedp.CSS("dialog[open] form button.primary"), chromedp.NodeVisible))
	page.await(`[...document.querySelectorAll("td")].some((c) => c.textContent.includes("order-9"))`)
	page = s.console("/coupons/spring", english)
	page.click("Show the codes")
	page.shows("SPRING-2")
	page.file("codes.csv", "SPRING-3\nSPRING-2\n")
	page.click("Import more codes")
	page.shows("line 2")
	page.file("codes.csv", "SPRING-3\nSPRING-4\n")
	page.click("Import more codes")
	page.shows("2 codes were imported.")
	if st, err := s.admin.Campaigns.Stats(s.Context(), "spring"); err != nil || st.Stock != 4 {
		s.Errorf("%+v, %v", st, err)
	}
}

// diagnosedServer: doctor examines the running server, and settings show their source and no secret.
func diagnosedServer(s *shop) {
	s.asAdmin()
	page := s.console("/health", english)
	page.click("Examine")
	page.shows("in use by this process")
	page.await(`document.querySelectorAll("#doctor tbody tr").length >= 5 && !document.querySelector("#doctor .dot.bad")`)
	page.shows("flag --listen")
	if text := tells[string](page, "document.body.innerText"); strings.Contains(text, clitest.Secret) {
		s.Error("a secret is shown")
	}
}
