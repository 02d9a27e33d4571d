package rehearsal

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

// press is one request that the load will send.
type press struct {
	// user and key are numbers; plan.userID and plan.keyOf make names of them.
	// Presses with the same key are the same request, sent more than once.
	user, key int32
	// at is when it is meant to happen, from the start of its wave.
	at time.Duration
}

// plan is what the load will do, all of it decided before the first request.
// It does not change once it is made, so that all senders read it.
type plan struct {
	// run is unique among rehearsals, so that users and keys are new to a server.
	run     string
	keys    bool
	presses []press
	// keyCount is how many different requests there are.
	keyCount int
}

// newPlan spreads the requests evenly over the users and mixes them. The same
// seed gives the same order.
// A repeat may stand before its first in the order: then it is the first to be
// decided, as in a real rush.
func newPlan(cfg *Config, run string) *plan {
	random := rand.New(rand.NewPCG(cfg.Seed, 0))
	repeats := min(int(float64(cfg.Requests)*cfg.Repeats), cfg.Requests-1)
	firsts := cfg.Requests - repeats
	p := &plan{run: run, keys: !cfg.NoKeys, presses: make([]press, 0, cfg.Requests), keyCount: firsts}
	for i := range firsts {
		p.presses = append(p.presses, press{user: int32(i % cfg.Users), key: int32(i)})
	}
	for range repeats {
		p.presses = append(p.presses, p.presses[random.IntN(firsts)])
	}
	random.Shuffle(len(p.presses), func(i, j int) { p.presses[i], p.presses[j] = p.presses[j], p.presses[i] })
	if cfg.Rate > 0 {
		for i := range p.presses {
			p.presses[i].at = time.Duration(float64(i) / cfg.Rate * float64(time.Second))
		}
	}
	return p
}

// userID names a user; it is an id that dibs accepts.
func (p *plan) userID(user int32) string { return p.run + "-" + strconv.Itoa(int(user)) }

// claim is a press as a request.
func (p *plan) claim(campaign string, quantity int64, x press) dibs.ClaimRequest {
	req := dibs.ClaimRequest{CampaignID: campaign, UserID: p.userID(x.user), Quantity: quantity}
	if p.keys {
		req.Key = p.run + "-" + strconv.Itoa(int(x.key))
	}
	return req
}

// isUser reports whether a user is one of this plan's.
func (p *plan) isUser(user string) bool { return strings.HasPrefix(user, p.run+"-") }
