package pages

import (
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
)

// A page says what stands between a user and the claim, in both languages.
func TestPageTellsTheGate(t *testing.T) {
	closes := time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		gate *dibs.GateSpec
		has  []string
	}{
		"by arrival": {&dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO}}, []string{"Waiting room", "places by arrival", "按到达先后排位"}},
		"shuffled":   {&dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.Shuffle}}, []string{"come before the start", "届时随机排位"}},
		"a lottery": {
			&dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.Lottery, RegistrationClosesAt: closes}},
			[]string{"register before", "前登记", `datetime="2026-12-01T04:00:00Z"`},
		},
		"a list":    {&dibs.GateSpec{Audience: &dibs.AudienceSpec{List: "secret-name"}}, []string{"invited users", "受邀用户"}},
		"followers": {&dibs.GateSpec{Audience: &dibs.AudienceSpec{FollowersOf: "shop"}}, []string{"followers", "关注者"}},
		"everybody": {nil, nil},
	} {
		page, err := renderPage(&api.CampaignView{ID: "c", Gate: c.gate})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range c.has {
			if !strings.Contains(string(page), part) {
				t.Errorf("%s: the page lacks %q", name, part)
			}
		}
		if text := string(page); strings.Contains(text, "secret-name") || c.has == nil && strings.Contains(text, "Waiting room") {
			t.Errorf("%s: the page says too much", name)
		}
	}
}
