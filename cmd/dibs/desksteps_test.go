package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

// offers waits until the drawer of an order has these steps, and no other.
func (p *tab) offers(steps string) {
	p.Helper()
	p.await(fmt.Sprintf(`!!document.querySelector("dialog[open] .timeline") && [...document.querySelectorAll("[data-step]")].map((b) => b.dataset.step).join(" ") === %q`, steps))
}

// granted returns the id of a new claim.
func (s *shop) granted(campaign, user string) string {
	s.Helper()
	claim, _, err := s.as(user).Claim(s.Context(), campaign, 1, "one")
	s.must(err)
	return claim.ID
}

// left is how many units of a campaign are left.
func (s *shop) left(campaign string) int64 {
	s.Helper()
	st, err := s.admin.Campaigns.Stats(s.Context(), campaign)
	s.must(err)
	return st.Remaining
}

// stepsOfAnOrder: the drawer of an order has the steps that the API takes of it now, and no other.
func stepsOfAnOrder(s *shop) {
	s.asAdmin()
	hour, price := dibs.Duration(time.Hour), &dibs.Money{Amount: 1000, Currency: "CNY"}
	s.campaign("paid-later", func(c *dibs.CampaignSpec) { c.Price, c.PayWithin = price, &hour })
	s.campaign("paid-elsewhere", func(c *dibs.CampaignSpec) { c.Price = price })
	open := func(id string) *tab { return s.console("/orders?open="+id, english) }

	page := open(s.granted("paid-later", "91"))
	page.offers("confirm cancel")
	page.act("cancel", "Cancel the order")
	page.offers("confirm")
	page.act("confirm", "")
	page.shows("This order was released")
	page.answer("ref", "late-91")
	page.offers("refund")
	page.act("refund", "")
	if tells[bool](page, `!!document.querySelector("dialog[open] [name=restock]")`) {
		s.Error("the stock of a released order is asked for")
	}
	page.yes()
	page.offers("")

	paid := s.granted("paid-later", "92")
	_, _, err := s.admin.Orders.Confirm(s.Context(), paid, dibs.PaymentSpec{PaymentRef: "pay-92", Amount: price})
	s.must(err)
	page = open(paid)
	page.offers("ship refund")
	page.act("refund", "")
	page.answer("sum", "4.00", "restock", "1")
	page.offers("")
	page.shows("stock came back")

	page = open(s.granted("paid-elsewhere", "93"))
	page.offers("confirm ship refund")
	page.act("refund", "Refund")
	page.offers("restock")
	page.act("restock", "Take the stock back")
	page.offers("")
	if n := s.left("paid-elsewhere"); n != 10 {
		s.Errorf("%d are left of 10 that came back", n)
	}
}

// stepsOfACoupon: a coupon is used while it is valid, its use is rolled back, and its stock comes back, though it costs nothing.
func stepsOfACoupon(s *shop) {
	s.asAdmin()
	second := dibs.Duration(time.Second)
	s.campaign("used", func(c *dibs.CampaignSpec) { c.Kind = dibs.Coupon })
	s.campaign("brief", func(c *dibs.CampaignSpec) { c.Kind, c.ValidFor = dibs.Coupon, &second })
	brief := s.granted("brief", "95")
	page := s.console("/orders?open="+s.granted("used", "94"), english)
	page.offers("refund redeem")
	page.act("redeem", "")
	page.answer("ref", "order-94")
	page.offers("unredeem")
	page.act("unredeem", "Roll the use back")
	page.offers("refund redeem")
	page.act("refund", "")
	if tells[bool](page, `!!document.querySelector("dialog[open] [name=sum]")`) {
		s.Error("the sum of what costs nothing is asked for")
	}
	page.answer("restock", "1")
	page.offers("")
	if n := s.left("used"); n != 10 {
		s.Errorf("%d are left of 10 that came back", n)
	}
	// The other coupon has ended meanwhile, or will in a moment.
	claim, err := s.admin.Orders.Get(s.Context(), brief)
	s.must(err)
	page.await(fmt.Sprintf("Date.now() > %d", claim.ValidUntil.UnixMilli()))
	s.console("/orders?open="+brief, english).offers("refund")
}

// stockByKind: generated codes are added by their number and imported ones as a file; both are withdrawn by their number.
func stockByKind(s *shop) {
	s.asAdmin()
	s.campaign("generated", func(c *dibs.CampaignSpec) {
		c.Kind, c.Stock = dibs.Coupon, dibs.StockSpec{Codes: &dibs.CodesSpec{Count: 20, Pattern: "XXXX-XXXX"}}
	})
	change := func(page *tab, act, n, left string) {
		page.act(act, "")
		page.answer("n", n, "why", "counted again")
		page.await(fmt.Sprintf(`document.querySelector("#remaining")?.textContent === %q && !document.querySelector("dialog[open] form")`, left))
	}
	page := s.console("/campaigns/generated", english)
	change(page, "restock", "5", "25")
	change(page, "withdraw", "3", "22")
	page = s.console("/coupons/generated", english)
	page.shows("Codes that are left")
	if tells[bool](page, `!!document.querySelector("[type=file]")`) {
		s.Error("codes can be imported beside generated ones")
	}
	s.campaign("balcony", func(c *dibs.CampaignSpec) { c.Stock = dibs.StockSpec{Items: []string{"B-1", "B-2", "B-3"}} })
	page = s.console("/campaigns/balcony", english)
	change(page, "withdraw", "1", "2")
	if tells[bool](page, `!!document.querySelector("[data-act=restock]")`) {
		s.Error("seats are added without their names")
	}
	page.click("Codes and seats")
	page.file("seats.csv", "B-4\nB-5\n")
	page.click("Import more codes")
	page.shows("2 codes were imported.")
	if n := s.left("balcony"); n != 4 {
		s.Errorf("%d seats are left", n)
	}
}

// needsAPerson: the overview names what is low in stock, and what is paused.
func needsAPerson(s *shop) {
	most := int64(6)
	s.campaign("scarce", func(c *dibs.CampaignSpec) { c.LowStock, c.Limit = 5, &most })
	_, _, err := s.as("96").Claim(s.Context(), "scarce", 6, "one")
	s.must(err)
	s.campaign("resting", func(*dibs.CampaignSpec) {})
	_, err = s.admin.Campaigns.Pause(s.Context(), "resting")
	s.must(err)
	s.asAdmin()
	page := s.console("/", english)
	page.await(`["The scarce The stock is low: 4 left.", "The resting It is paused."].every((need) => [...document.querySelectorAll(".needs li")].some((li) => li.innerText.replace(/\s+/g, " ").includes(need)))`)
}

// filteredLists: products and waiting rooms are searched over all pages, and the file has what is shown.
func filteredLists(s *shop) {
	s.asAdmin()
	for _, name := range []string{"Blue lantern", "Red lantern", "Red kite"} {
		_, err := s.admin.Products.Create(s.Context(), dibs.ProductSpec{Name: name}, "")
		s.must(err)
	}
	for id, mode := range map[string]dibs.RoomMode{"first-come": dibs.FIFO, "mixed": dibs.Shuffle} {
		s.campaign(id, func(c *dibs.CampaignSpec) {
			c.StartsAt = time.Now().Add(30 * time.Minute)
			c.Gate = &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: mode, Rate: 5}}
		})
	}
	s.rows(s.console("/products?q=LANTERN", english), "Blue lantern", "Red lantern")
	s.rows(s.console("/gates?mode=shuffle", english), "The mixed")
	s.rows(s.console("/gates?standing=upcoming&q=first", english), "The first-come")
	s.console("/gates?mode=shuffle&standing=paused", english).shows("Nothing matches.")
	s.console("/products?q=lamp+of+nobody", english).shows("Nothing matches.")
	// The numbers of the rooms come every three seconds: a letter that was typed stays, and so does a space between words.
	page := s.console("/gates", english)
	page.await(`!!document.querySelector("tbody tr")`)
	typed := tells[string](page, `(async () => {
		const field = document.querySelector(".filters input");
		for (const letter of "the first of many letters ") {
			field.value += letter;
			field.dispatchEvent(new Event("input", { bubbles: true }));
			await new Promise((done) => setTimeout(done, 250));
		}
		return field.value;
	})()`)
	if typed != "the first of many letters " {
		s.Errorf("of what was typed the field has %q", typed)
	}
	page.await(`new URLSearchParams(location.search).get("q") === "the first of many letters"`)
	page.shows("Nothing matches.")
	if left := tells[string](page, `document.querySelector(".filters input").value`); left != typed {
		s.Errorf("when it has been looked for, the field has %q", left)
	}
}

// rows waits until a list has these rows and no other.
func (s *shop) rows(page *tab, names ...string) {
	s.Helper()
	page.await(fmt.Sprintf(`document.querySelectorAll("tbody tr").length === %d`, len(names)))
	for _, name := range names {
		page.await(fmt.Sprintf(`document.querySelector("tbody").innerText.includes(%q)`, name))
	}
	if file := s.files(page, 1)[0]; strings.Count(strings.TrimSpace(file), "\n") != len(names) {
		s.Errorf("the file of %v:\n%s", names, file)
	}
}
