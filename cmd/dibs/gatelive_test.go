package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
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
	soon, later := time.Now().Add(6*time.Second), time.Now().Add(time.Hour)
	s.campaign("drawing", func(c *dibs.CampaignSpec) {
		c.StartsAt = soon
		c.Gate = &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.Lottery, RegistrationClosesAt: soon.Add(-time.Second), Winners: 2}}
	})
	for i := range 3 {
		_, err := s.as(fmt.Sprint("u", i)).Lotteries.Register(s.Context(), "drawing")
		s.must(err)
	}
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
	page = s.console("/campaigns/drawing", english)
	page.await(tile("The draw") + `.includes("Drawn\nDrawn at")`)
	page.await(tile("Registrations") + ` === "Registrations\n3"`)
	page.await(tile("Winners at most") + ` === "Winners at most\n2"`)
}
