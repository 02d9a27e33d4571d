package limit

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestEveryCell holds each kind of bucket, per each of those that claims are
// counted by, as a setting and as a campaign's, on a node alone and on three: a
// token bucket lets its burst through at once, a leaky one the first claim, since
// the next would wait for longer than it may.
func TestEveryCell(t *testing.T) {
	const burst, claims = 12, 20
	for _, bucket := range []string{dibs.LimitToken, dibs.LimitLeaky} {
		for _, per := range []string{"user", "address", "device", "campaign", "server"} {
			for _, of := range []string{"setting", "campaign"} {
				if per == "server" && of == "campaign" || per == "device" && of == "setting" {
					// There is no such limit.
					continue
				}
				for _, n := range []int{1, 3} {
					cell := cell{per: per, of: of, spec: dibs.LimitSpec{Per: per, Bucket: bucket, Rate: 1, Every: dibs.Duration(24 * time.Hour), Burst: burst}}
					least := int64(burst)
					if bucket == dibs.LimitLeaky {
						cell.spec.MaxWait, least = dibs.Duration(time.Second), 1
					}
					// Of users, addresses and devices each node knows what it has seen, until it is
					// told; of what all share it has a share, and room for one at least.
					most := least * int64(n)
					if n > 1 && (per == "campaign" || per == "server") {
						least, most = 1, least+int64(n)
					}
					t.Run(fmt.Sprintf("%s per %s, a %s, %d nodes", bucket, per, of, n), func(t *testing.T) {
						cell.hold(t, n, claims, least, most)
					})
				}
			}
		}
	}
}

// cell is one kind of limit.
type cell struct {
	per, of string
	spec    dibs.LimitSpec
}

// hold has one and the same claim made on each of n nodes.
func (c *cell) hold(t *testing.T, n, claims int, least, most int64) {
	t.Helper()
	var cfg Config
	gated := campaign()
	if c.of == "campaign" {
		gated = campaign(c.spec)
	} else {
		*map[string]**dibs.LimitSpec{"user": &cfg.User, "address": &cfg.Address, "campaign": &cfg.Campaign, "server": &cfg.Server}[c.per] = &c.spec
	}
	var all []*Limiter
	if n > 1 {
		all = nodes(t, n, cfg)
		for _, l := range all {
			// They were started one after the other, and know of each other by now.
			l.sharing.nodes.Store(int64(n))
		}
	} else {
		alone, err := New(cfg)
		must(t, err)
		t.Cleanup(alone.Close)
		all = append(all, alone)
	}
	req := &dibs.ClaimRequest{CampaignID: "c", UserID: "ann", Address: netip.MustParseAddr("192.0.2.1"), Device: "phone"}
	ask := func() (passed int64, last dibs.Result) {
		for _, l := range all {
			for range claims {
				res, ok := l.Enter(t.Context(), req)
				if ok {
					res, ok = l.Pass(t.Context(), gated, req)
				}
				if ok {
					passed++
				} else {
					last = res
				}
			}
		}
		return passed, last
	}
	share := func() {
		for range 3 * n {
			for _, l := range all {
				if l.sharing != nil {
					l.sharing.round()
				}
			}
		}
	}
	passed, last := ask()
	if passed < least || passed > most {
		t.Errorf("%d claims were let through, want %d to %d", passed, least, most)
	}
	if last.Outcome != dibs.RateLimited || last.RetryAfter <= 0 || last.Quota.Remaining != 0 || last.Quota.Limit != 1 {
		t.Errorf("refused with %+v", last)
	}
	// When nodes have told each other, nobody lets through what others have let.
	share()
	before := passed
	if passed, _ = ask(); before+passed > max(most, before) {
		t.Errorf("%d more were let through after %d, want %d in all at most", passed, before, most)
	}
}
