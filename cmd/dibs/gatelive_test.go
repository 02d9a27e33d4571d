package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate"
)

// tile is the text of a tile by its label, as an expression of JavaScript.
func tile(label string) string {
	return fmt.Sprintf(`([...document.querySelectorAll(".tile")].find((t) => t.querySelector("span").textContent === %q)?.innerText || "")`, label)
}

// gateOfALiveCampaign: the live screen says how each part of a gate stands: the draw with its registrations, how many users
// may claim, and what a ticket costs.
func gateOfALiveCampaign(s *shop) {
	s.asAdmin()
	_, err := s.admin.Audiences.Import(s.Context(), "insiders", strings.NewReader("user\n1\n2\n3\n"), nil)
	s.must(err)
	for i := range 4 {
		s.must(s.admin.Followers.Set(s.Context(), "corner", fmt.Sprint("u", i), 1, true))
	}
	later := time.Now().Add(time.Hour)
	drawing, _ := s.registered("drawing", 5*time.Second, 3, dibs.RoomSpec{Winners: 2})
	s.campaign("asking", func(c *dibs.CampaignSpec) {
		c.StartsAt, c.EndsAt = later, later.Add(time.Hour)
		c.Gate = &dibs.GateSpec{
			Room:     &dibs.RoomSpec{Mode: dibs.Lottery, RegistrationClosesAt: later.Add(-time.Minute), Winners: 5},
			Audience: &dibs.AudienceSpec{List: "insiders"}, Ticket: &dibs.TicketSpec{Lifetime: dibs.Duration(90 * time.Second), WorkBits: 12},
		}
	})
	s.campaign("following", func(c *dibs.CampaignSpec) {
		c.Gate = &dibs.GateSpec{Audience: &dibs.AudienceSpec{FollowersOf: "corner"}}
	})
	page := s.console("/campaigns/asking", english)
	for label, wants := range map[string][]string{
		"The draw":          {"Registration\n", "Registration closes"},
		"Registrations":     {"–", "known at the closing"},
		"Winners at most":   {"5"},
		"Users on the list": {"3", "insiders"},
		"Ticket":            {"required", "work of 2^12 hashes, good for 1.5 minutes"},
	} {
		for _, want := range wants {
			page.await(fmt.Sprintf(`%s.includes(%q)`, tile(label), want))
		}
	}
	page = s.console("/campaigns/following", english)
	page.await(tile("Followers") + `.includes("4\ncorner")`)
	page = s.console("/campaigns/"+drawing, english)
	page.await(tile("The draw") + `.includes("Drawn\nDrawn at")`)
	page.await(tile("Registrations") + ` === "Registrations\n3"`)
	page.await(tile("Winners at most") + ` === "Winners at most\n2"`)
}

// registered publishes a draw in which users u0, u1 and so on are registered, and returns its id and the last one's nonce.
// Where registration was closed meanwhile, another draw has twice the time.
func (s *shop) registered(name string, open time.Duration, users int, room dibs.RoomSpec) (id, nonce string) {
	s.Helper()
	for id = name; ; id, open = id+"-again", 2*open {
		closes := time.Now().Add(open)
		room.Mode, room.RegistrationClosesAt = dibs.Lottery, closes
		s.campaign(id, func(c *dibs.CampaignSpec) { c.StartsAt, c.Gate = closes.Add(time.Second), &dibs.GateSpec{Room: &room} })
		var err error
		for i := 0; i < users && err == nil; i++ {
			var e gate.EntryView
			e, err = s.as(fmt.Sprint("u", i)).Lotteries.Register(s.Context(), id)
			nonce = e.Nonce
		}
		if err == nil {
			return id, nonce
		}
		if time.Now().Before(closes) || open > 20*time.Second {
			s.Fatal(err)
		}
	}
}

// editedWhole: the form of a draft changes all that PATCH takes of it, and keeps what it does not show; of what is published
// it changes how fast the room admits, and who may claim.
func editedWhole(s *shop) {
	s.asAdmin()
	_, err := s.admin.Audiences.Import(s.Context(), "insiders", strings.NewReader("user\n1\n2\n3\n"), nil)
	s.must(err)
	_, err = s.admin.Products.Create(s.Context(), dibs.ProductSpec{ID: "urn", Name: "Urn"}, "")
	s.must(err)
	units := int64(10)
	_, err = s.admin.Campaigns.Create(s.Context(), dibs.CampaignSpec{
		ID: "whole", Kind: dibs.Sale, Title: "The whole", Stock: dibs.StockSpec{Units: &units}, StartsAt: time.Now().Add(time.Hour), EndsAt: time.Now().Add(2 * time.Hour),
		Price: &dibs.Money{Amount: 1000, Currency: "CNY"},
		Gate:  &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 5, AdmitFor: dibs.Duration(time.Hour)}},
	}, "")
	s.must(err)
	saves := func(fields ...string) map[string]any {
		page := s.console("/campaigns/whole/edit", english)
		for i := 0; i < len(fields); i += 2 {
			page.fill(fields[i], fields[i+1])
		}
		page.click("Save")
		page.await(`location.pathname === "/console/campaigns/whole" && !!document.querySelector("h1")`)
		return s.terms("whole")
	}
	c := saves("product_id", "urn", "stock", "25", "tiers", "2: 50", "pay_within", "5", "late_payment", "refund_due",
		"audience", "list", "list", "insiders", "rate", "9", "ticket", "1", "bits", "10", "limits", "user 3/10s")
	room := map[string]any{"mode": "fifo", "rate": 9.0, "admit_for": "1h0m0s"}
	want := map[string]any{
		"product_id": "urn", "stock": map[string]any{"units": 25.0}, "tiers": []any{map[string]any{"from_unit": 2.0, "percent": 50.0}}, "late_payment": "refund_due",
		"gate": map[string]any{
			"audience": map[string]any{"list": "insiders"}, "room": room, "ticket": map[string]any{"lifetime": "2m0s", "work_bits": 10.0},
			"limits": []any{map[string]any{"per": "user", "rate": 3.0, "every": "10s"}},
		},
	}
	for name, value := range want {
		if got := fmt.Sprint(c[name]); got != fmt.Sprint(value) {
			s.Errorf("%s of the draft: %s, want %v", name, got, value)
		}
	}
	_, err = s.admin.Campaigns.Publish(s.Context(), "whole")
	s.must(err)
	page := s.console("/campaigns/whole/edit", english)
	page.await(`!!document.querySelector("[name=rate]") && !document.querySelector("[name=room], [name=opens], [name=stock], [name=tiers], [name=product_id]")`)
	room["rate"] = 30.0
	if gate := fmt.Sprint(saves("rate", "30", "audience", "", "limits", "", "ticket", "")["gate"]); gate != fmt.Sprint(map[string]any{"room": room}) {
		s.Errorf("the gate of the published campaign: %s", gate)
	}
}
