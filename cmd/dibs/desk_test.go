package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestDesk does at the console what operators do between rushes.
func TestDesk(t *testing.T) {
	t.Parallel()
	d := startShop(t, "--push-threshold", "3", "--push-first", "2", "--push-rate", "1")
	for _, c := range []struct {
		name string
		look func(*shop)
	}{
		{"stock and time", stockAndTime},
		{"a deposit", depositAtTheDesk},
		{"what red packets hold", escrowAtTheDesk},
		{"a refund that is due", refundDue},
		{"the steps of an order", stepsOfAnOrder},
		{"the steps of a coupon", stepsOfACoupon},
		{"stock by its kind", stockByKind},
		{"what needs a person", needsAPerson},
		{"refusals by reason", reasonsOfTheOverview},
		{"an order by its reference", foundByReference},
		{"an order by its seat", foundBySeat},
		{"filters and files over all pages", overAllPages},
		{"filters of products and rooms", filteredLists},
		{"a product's price is taken away", emptiedProduct},
		{"the forecast has the server's settings", forecastOfSettings},
		{"an erasure", erasedAtTheDesk},
		{"a file of every list", filesOfEveryList},
		{"a live campaign older than many", olderIsLive},
		{"the other language", otherLanguage},
		{"a viewer on every screen", viewerEverywhere},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *d
			s.pages.T = t
			c.look(&s)
		})
	}
}

// stockAndTime: units are taken back, and the end is moved; screen and API agree.
func stockAndTime(s *shop) {
	s.asAdmin()
	s.campaign("moved", func(*dibs.CampaignSpec) {})
	before, err := s.admin.Campaigns.Get(s.Context(), "moved")
	s.must(err)
	page := s.console("/campaigns/moved", english)
	page.await(`document.querySelector("#remaining")?.textContent === "10"`)
	page.act("withdraw", "")
	page.answer("n", "4", "why", "broken")
	// The number may be there before the answer is, which closes whatever is open.
	page.await(`document.querySelector("#remaining").textContent === "6" && !document.querySelector("dialog[open] form")`)
	page.act("extend", "")
	page.answer("minutes", "45")
	page.await(`!document.querySelector("dialog[open] form")`)
	after, err := s.admin.Campaigns.Get(s.Context(), "moved")
	s.must(err)
	if got := after.EndsAt.Sub(before.EndsAt); got != 45*time.Minute || after.Remaining != 6 {
		s.Errorf("extended by %s, %d left", got, after.Remaining)
	}
	_, _, err = s.as("5").Claim(s.Context(), "moved", 1, "one")
	s.must(err)
	page.await(`document.querySelector("#holders td")?.textContent.trim() === "5"`)
}

// depositAtTheDesk: a deposit is asked for, noted once, and shown with both of its sides.
func depositAtTheDesk(s *shop) {
	s.asAdmin()
	page := s.console("/accounts?user=61", english)
	for range 2 {
		page.click("Note a deposit")
		page.answer("sum", "a lot", "ref", "transfer-61")
		page.shows("“a lot” is no amount of money")
		page.answer("sum", "30.50")
		page.await(`!document.querySelector("dialog[open] form")`)
	}
	page.await(`document.querySelector(".balance b")?.textContent === "CN¥30.50" && document.querySelectorAll("tbody tr").length === 1`)
	page.shows("outside")
	// A currency has the digits that the server has, whatever the browser knows of its coins.
	page.click("Note a deposit")
	page.answer("sum", "15000", "currency", "IDR", "ref", "transfer-61-idr")
	page.await(`!document.querySelector("dialog[open] form")`)
	if a, err := s.admin.Accounts.Get(s.Context(), "61"); err != nil || !slices.Contains(a.Balances, dibs.Money{Amount: 1_500_000, Currency: "IDR"}) {
		s.Errorf("%+v, %v", a, err)
	}
	page.shows("IDR\u00a015,000.00")
}

// escrowAtTheDesk: the money of a red packet is in escrow until its shares are credited.
func escrowAtTheDesk(s *shop) {
	s.asAdmin()
	s.campaign("held", func(c *dibs.CampaignSpec) {
		c.Kind, c.Stock = dibs.RedPacket, dibs.StockSpec{RedPacket: &dibs.RedPacketSpec{Total: dibs.Money{Amount: 3000, Currency: "CNY"}, Count: 2, Split: "equal"}}
	})
	row := func(page *tab) string {
		page.await(`[...document.querySelectorAll("#packets tr")].some((r) => r.innerText.includes("held"))`)
		return tells[string](page, `[...document.querySelectorAll("#packets tr")].find((r) => r.innerText.includes("held")).innerText`)
	}
	if text := row(s.console("/accounts", english)); !strings.HasSuffix(text, "CN¥30.00\tCN¥0.00\tCN¥0.00\tCN¥30.00") {
		s.Errorf("before a claim: %q", text)
	}
	_, _, err := s.as("62").Claim(s.Context(), "held", 1, "one")
	s.must(err)
	clitest.Until(s.T, "the share is credited", func() bool {
		st, err := s.admin.Campaigns.Stats(s.Context(), "held")
		return err == nil && st.Funds.Credited.Amount == 1500
	})
	if text := row(s.console("/accounts", english)); !strings.HasSuffix(text, "CN¥30.00\tCN¥15.00\tCN¥0.00\tCN¥15.00") {
		s.Errorf("after a claim: %q", text)
	}
}

// refundDue: a payment that comes too late is told to the shopper, and on the overview until it is given back.
func refundDue(s *shop) {
	within := dibs.Duration(2 * time.Second)
	s.campaign("belated", func(c *dibs.CampaignSpec) {
		c.PayWithin, c.Price, c.LatePayment = &within, &dibs.Money{Amount: 500, Currency: "CNY"}, dibs.RefundDue
	})
	page := s.visit("/c/belated", "63", english)
	page.press()
	page.click("Pay too late")
	page.shows("Refund on its way")
	s.asAdmin()
	page = s.console("/", english)
	page.shows("1 paid too late: the money has to go back.")
	page.click("Refunds due")
	page.await(`document.querySelectorAll("tbody tr").length === 1 && document.querySelector("tbody").innerText.includes("belated")`)
	page.await(`(() => { document.querySelector("[data-open]").click(); return !!document.querySelector("dialog[open] .timeline"); })()`)
	page.act("refund", "Refund")
	page.shows("No order matches.")
	page = s.console("/", english)
	page.await(`!!document.querySelector(".needs") && !document.querySelector(".loading") && !document.querySelector(".needs").innerText.includes("too late")`)
}

// reasonsOfTheOverview: why users are refused is told over all live campaigns.
func reasonsOfTheOverview(s *shop) {
	one := int64(1)
	s.campaign("single", func(c *dibs.CampaignSpec) { c.Stock.Units = &one })
	_, _, err := s.as("64").Claim(s.Context(), "single", 1, "one")
	s.must(err)
	for _, user := range []string{"65", "66"} {
		if _, _, err := s.as(user).Claim(s.Context(), "single", 1, "one"); err == nil {
			s.Fatalf("user %s got something", user)
		}
	}
	s.asAdmin()
	page := s.console("/", english)
	page.await(`/^2\b/.test(document.querySelector("#reasons [data-reason=sold_out] dd")?.innerText)`)
	page.await(`document.querySelector("#reasons [data-reason=sold_out] dt").innerText === "Sold out"`)
	page.await(`["engine", "ledger", "settling"].every((d) => document.querySelector("[data-dependency=" + d + "] .dot.ok"))`)
}

// foundByReference: an order is found by the shop's own reference, and the open drawer is an address of its own.
func foundByReference(s *shop) {
	s.asAdmin()
	s.campaign("referred", func(*dibs.CampaignSpec) {})
	page := s.visit("/c/referred", "71", english)
	status := tells[int](page, `fetch("/v1/campaigns/referred/claims", { method: "POST", headers: { Authorization: "Bearer dev_71", "Content-Type": "application/json" }, body: JSON.stringify({ reference: "cart-71" }) }).then((r) => r.status)`)
	if status/100 != 2 {
		s.Fatalf("a claim with a reference: %d", status)
	}
	// A search settles the user that it names; a reference names none.
	s.claimsOf("71")
	page = s.console("/orders?reference=cart-71", english)
	page.await(`document.querySelectorAll("[data-open]").length === 1 && document.querySelector("tbody").innerText.includes("cart-71")`)
	page.await(`(() => { document.querySelector("[data-open]").click(); return !!document.querySelector("dialog[open] .timeline"); })()`)
	at := tells[string](page, "location.pathname + location.search")
	page = s.console(strings.TrimPrefix(at, "/console"), english)
	page.await(`document.querySelector("dialog[open] .facts")?.innerText.includes("cart-71")`)
	page.click("Close")
	page.await(`!new URLSearchParams(location.search).get("open") && !document.querySelector("dialog[open]")`)
}

// foundBySeat: an order is found by its seat, whichever campaign that is of.
func foundBySeat(s *shop) {
	s.asAdmin()
	for _, id := range []string{"stalls", "circle"} {
		s.campaign(id, func(c *dibs.CampaignSpec) { c.Stock = dibs.StockSpec{Items: []string{"SEAT-7"}} })
		_, _, err := s.as("72").Claim(s.Context(), id, 1, "one")
		s.must(err)
		// What a search names is settled first.
		page := s.console("/orders?campaign_id="+id, english)
		page.await(`document.querySelectorAll("[data-open]").length === 1`)
	}
	page := s.console("/orders", english)
	page.fill("code", "SEAT-7")
	page.await(`document.querySelectorAll("[data-open]").length === 2 && ["stalls", "circle"].every((id) => document.querySelector("tbody").innerText.includes(id))`)
	page.fill("campaign_id", "circle")
	page.await(`document.querySelectorAll("[data-open]").length === 1 && document.querySelector("tbody").innerText.includes("circle")`)
}

// emptiedProduct: what is emptied in the form of a product is gone, and not only said to be saved.
func emptiedProduct(s *shop) {
	s.asAdmin()
	_, err := s.admin.Products.Create(s.Context(), dibs.ProductSpec{ID: "emptied", Name: "Green lamp", Price: &dibs.Money{Amount: 500, Currency: "CNY"}, Stock: 7}, "")
	s.must(err)
	page := s.console("/products?q=emptied", english)
	page.await(`(() => { document.querySelector("tbody .named")?.click(); return !!document.querySelector("dialog[open] form"); })()`)
	page.fill("price", "")
	page.fill("stock", "")
	page.click("Save")
	page.shows("Saved.")
	if p, err := s.admin.Products.Get(s.Context(), "emptied"); err != nil || p.Price != nil || p.Stock == nil || *p.Stock != 0 {
		s.Errorf("%+v, %v", p, err)
	}
}

// overAllPages: a filter finds what is on no page yet, and a file has the rows of all pages.
func overAllPages(s *shop) {
	s.asAdmin()
	units := int64(1)
	for i := range 120 {
		title := fmt.Sprintf("Heap %03d", i)
		switch i {
		case 0:
			title = "Needle"
		case 1:
			title = "＝1+1"
		}
		_, err := s.admin.Campaigns.Create(s.Context(), dibs.CampaignSpec{
			ID: fmt.Sprintf("heap-%03d", i), Kind: dibs.Sale, Title: title, Stock: dibs.StockSpec{Units: &units}, StartsAt: time.Now().Add(time.Hour), EndsAt: time.Now().Add(2 * time.Hour),
		}, "")
		s.must(err)
	}
	page := s.console("/campaigns?q=needle", english)
	page.await(`document.querySelectorAll("tbody tr").length === 1 && document.querySelector("tbody").innerText.includes("heap-000")`)
	page = s.console("/campaigns?q=heap", english)
	page.await(`!!document.querySelector("tbody tr")`)
	tells[bool](page, `(() => { const real = URL.createObjectURL; URL.createObjectURL = (b) => { b.text().then((t) => (window.kept = t)); return real(b); }; return true; })()`)
	page.await(`(() => { const b = document.querySelector("[data-act=csv]"); b?.click(); return !!b; })()`)
	page.await(`!!window.kept`)
	file := tells[string](page, "window.kept")
	if rows := strings.Count(file, "heap-"); rows != 120 {
		s.Errorf("%d of 120 rows are in the file", rows)
	}
	// A spreadsheet would take it for a formula.
	if !strings.Contains(file, `"'＝1+1"`) {
		s.Errorf("the file has a title as it is:\n%s", file)
	}
}

// forecastOfSettings: where the form says nothing, the forecast goes by what the server is set to.
func forecastOfSettings(s *shop) {
	s.asAdmin()
	s.campaign("forecast", func(*dibs.CampaignSpec) {})
	for i := range 5 {
		s.must(s.admin.Followers.Set(s.Context(), "kiosk", fmt.Sprint("u", i), int64(i), true))
	}
	page := s.console("/announcements?campaign=forecast&merchant=kiosk", english)
	page.click("Announce")
	page.shows("Of 5 followers, 2 are told at once; the other 3 take 3 seconds.")
}

// erasedAtTheDesk: the erasure of a user begins after their name was written again, and says what it waits for.
func erasedAtTheDesk(s *shop) {
	s.asAdmin()
	s.campaign("erased", func(*dibs.CampaignSpec) {})
	_, _, err := s.as("81").Claim(s.Context(), "erased", 1, "one")
	s.must(err)
	_, err = s.admin.Campaigns.End(s.Context(), "erased")
	s.must(err)
	page := s.console("/users?user=81", english)
	page.click("Erase this user")
	page.answer("again", "81")
	page.shows("The erasure has begun.")
	// The engine keeps a campaign that has ended for some minutes, and the user with it.
	page.shows("waiting for campaign erased")
}

// olderIsLive: a live campaign counts on the overview however many were made after it, and the overview says when it does
// not measure all that are live.
func olderIsLive(s *shop) {
	s.campaign("elder", func(*dibs.CampaignSpec) {})
	units := int64(1)
	for i := range 120 {
		id := fmt.Sprintf("younger-%03d", i)
		if i%6 > 0 {
			_, err := s.admin.Campaigns.Create(s.Context(), dibs.CampaignSpec{
				ID: id, Kind: dibs.Sale, Title: id, Stock: dibs.StockSpec{Units: &units}, StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour),
			}, "")
			s.must(err)
			continue
		}
		s.campaign(id, func(*dibs.CampaignSpec) {})
		_, err := s.admin.Campaigns.End(s.Context(), id)
		s.must(err)
	}
	s.asAdmin()
	page := s.console("/", english)
	page.await(`[...document.querySelectorAll("td a")].some((a) => a.textContent === "The elder")`)
	tile := `[...document.querySelectorAll(".tile")].find((t) => t.innerText.includes("Live campaigns"))?.querySelector("b").textContent`
	live := s.liveCampaigns()
	page.await(fmt.Sprintf(`%s === "%d"`, tile, live))
	for i := range 21 {
		s.campaign(fmt.Sprintf("youngest-%02d", i), func(*dibs.CampaignSpec) {})
	}
	page = s.console("/", english)
	page.await(fmt.Sprintf(`%s === "%d"`, tile, live+21))
	page.shows(fmt.Sprintf("those of the 20 newest of the %d live campaigns", live+21))
	// It can be announced, too.
	page = s.console("/announcements?campaign=elder", english)
	page.await(`document.querySelector(".filters select")?.value === "elder" && !!document.querySelector("[data-act=announce]")`)
}

// liveCampaigns counts the campaigns that are live by the pages of the API.
func (s *shop) liveCampaigns() (n int) {
	s.Helper()
	for page := (dibs.Page{Limit: 100}); ; {
		list, err := s.admin.Campaigns.List(s.Context(), page)
		s.must(err)
		for _, c := range list.Items {
			in := !time.Now().Before(c.StartsAt) && time.Now().Before(c.EndsAt)
			if c.State == dibs.PausedState || c.State == dibs.Published && in {
				n++
			}
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			return n
		}
	}
}

// otherLanguage: the switch changes every text at once, and the choice is kept.
func otherLanguage(s *shop) {
	s.asAdmin()
	page := s.console("/", english)
	page.shows("Needs a person")
	page.click("Menu")
	page.click("中文")
	page.shows("概览")
	page.await(`document.documentElement.lang === "zh-CN" && !document.body.innerText.includes("Needs a person")`)
	page.await(`import(performance.getEntriesByType("resource").find((e) => e.name.endsWith("/console/figures.js")).name)
		.then((f) => f.brief(3.54) === "3.5毫秒" && f.brief(12_340) === "12.3秒")`)
	page = s.console("/campaigns", english)
	page.await(`document.documentElement.lang === "zh-CN" && document.querySelector("h1")?.textContent === "活动"`)
	tells[bool](page, `(() => { localStorage.removeItem("dibs-language"); return true; })()`)
}

// viewerEverywhere: on no screen is there a button by which a viewer sends a change.
func viewerEverywhere(s *shop) {
	s.enter(s.key("guest", access.RoleViewer))
	source, err := os.ReadFile("../../web/console/screens.js")
	s.must(err)
	paths := regexp.MustCompile(`\{ path: "([^"]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(paths) < 20 {
		s.Fatalf("%d screens", len(paths))
	}
	for _, m := range paths {
		page := s.console(strings.Replace(m[1], ":id", "phone-noon", 1), english)
		page.await(`!document.querySelector(".boot, .loading") && (document.querySelector("main")?.children.length > 1 || !!document.querySelector("main .note"))`)
		sent := tells[[]string](page, `(async () => {
			const sent = [], real = window.fetch, here = location.href;
			window.fetch = (at, o) => (o?.method && o.method !== "GET" ? (sent.push(o.method + " " + at), Promise.reject(new TypeError("held back"))) : real(at, o));
			const pressed = new Set();
			for (let again = true; again; ) {
				again = false;
				for (const b of document.querySelectorAll("main button, dialog[open] button")) {
					const name = b.textContent + b.dataset.open;
					if (pressed.has(name) || b.disabled || !b.checkVisibility() || b.closest("nav")) continue;
					pressed.add(name);
					b.click();
					again = true;
					await new Promise((done) => setTimeout(done, 50));
					if (document.querySelector("dialog[open] form :is(button.primary, button.danger)")) {
						sent.push("a form by " + name);
						document.querySelector("dialog[open]").close();
					}
					break;
				}
			}
			window.fetch = real;
			return sent;
		})()`)
		if m[1] == "/sessions" && len(sent) == 1 && strings.HasPrefix(sent[0], "a form by End") {
			// A viewer may end their own session.
			sent = nil
		}
		if len(sent) > 0 {
			s.Errorf("%s: %v", m[1], sent)
		}
	}
}
