package main

import (
	"regexp"
	"slices"
	"time"

	"github.com/dibs-dev/dibs"
)

// yes presses the button of a question that is open.
func (p *tab) yes() {
	p.Helper()
	p.await(`(() => {
		const b = document.querySelector("dialog[open] form button:is(.primary, .danger):not(:disabled)");
		b?.click();
		return !!b;
	})()`)
}

// answer fills fields of the open form, each by its name, and says yes.
func (p *tab) answer(namesAndValues ...string) {
	p.Helper()
	for pair := range slices.Chunk(namesAndValues, 2) {
		p.fill(pair[0], pair[1])
	}
	p.yes()
}

// writtenWrong: an amount, a name and a number that no call can be made of are named, and nothing is sent.
func writtenWrong(s *shop) {
	s.asAdmin()
	minute := dibs.Duration(time.Minute)
	s.campaign("wrong", func(c *dibs.CampaignSpec) { c.Price, c.PayWithin = &dibs.Money{Amount: 1250, Currency: "CNY"}, &minute })
	_, _, err := s.as("77").Claim(s.Context(), "wrong", 1, "one")
	s.must(err)
	page := s.console("/orders?user_id=77", english)
	page.await(`(() => { document.querySelector("[data-open]")?.click(); return !!document.querySelector("dialog[open] .timeline"); })()`)
	page.act("confirm", "")
	page.answer("ref", "pay-77")
	page.await(`!!document.querySelector("[data-step=refund]")`)
	page.act("refund", "")
	for _, sum := range []string{"abc", "1.234", "2,50", "1,2345"} {
		page.answer("sum", sum)
		page.shows("“" + sum + "” is no amount of money. Write it like 12.50.")
	}
	page.answer("sum", "12.51")
	page.shows("only 12.50 CNY of the payment are left to refund")
	page.answer("sum", "2.50")
	page.await(`!document.querySelector("dialog[open] form")`)
	page.shows("CN¥2.50")

	page = s.console("/users?user=77", english)
	page.click("Erase this user")
	page.answer("again", "78")
	page.shows("This is not 77: nothing was erased.")
	// It would wait for a second administrator.
	if n := tells[int](page, `fetch("/v1/approvals").then((r) => r.json()).then((l) => l.items.filter((a) => a.call?.path.includes("/users/77/")).length)`); n != 0 {
		s.Errorf("%d erasures", n)
	}

	page = s.console("/campaigns/wrong", english)
	page.act("extend", "")
	page.answer("minutes", "1e300")
	page.shows("Write how many minutes more, at least 1.")
}

// historyInWords: what was changed of a campaign is shown as people write it, and so are the promises of a verification.
func historyInWords(s *shop) {
	s.asAdmin()
	units := int64(5)
	made, err := s.admin.Campaigns.Create(s.Context(), dibs.CampaignSpec{
		ID: "worded", Kind: dibs.Sale, Title: "Worded", StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units}, Price: &dibs.Money{Amount: 1250, Currency: "CNY"},
	}, "")
	s.must(err)
	later := made.EndsAt.Add(time.Hour)
	s.patch("worded", dibs.CampaignPatch{EndsAt: &later, Price: &dibs.Money{Amount: 1399, Currency: "CNY"}})
	_, err = s.admin.Campaigns.Publish(s.Context(), "worded")
	s.must(err)
	page := s.console("/campaigns/worded", english)
	page.shows("CN¥12.50")
	page.shows("CN¥13.99")
	page.click("Verify now")
	page.shows("0.00 CNY paid")
	page = s.console("/campaigns/worded", chinese)
	page.click("立即核对")
	page.shows("超过限领的用户：无")
	if text := tells[string](page, `document.querySelector(".promises").innerText`); regexp.MustCompile(`[A-Za-z]+( [A-Za-z]+){3}`).MatchString(text) {
		s.Errorf("English among the promises:\n%s", text)
	}
	page = s.console("/campaigns/worded", english)
	// The price before it was changed stands in the history alone.
	page.shows("CN¥12.50")
	page.shows("CN¥13.99")
	raw := regexp.MustCompile(`\d{4}-\d\d-\d\dT|minor units|"amount":`)
	for _, path := range []string{"", "/audit"} {
		if path != "" {
			page = s.console(path, english)
			page.shows("CN¥13.99")
		}
		if found := raw.FindString(tells[string](page, "document.body.innerText")); found != "" {
			s.Errorf("%s: written for programs: %s", path, found)
		}
	}
}
