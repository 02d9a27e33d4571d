package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

const (
	// maxLuck is how many shares the list shows.
	maxLuck = 20
	// luckFor is the least time that a list is believed which may still change. A great red packet takes a while to read:
	// its list is believed for luckTimes times as long, so that lists take a twentieth of a processor at most.
	luckFor   = 2 * time.Second
	luckTimes = 20
	// maxLuckKept bounds the lists.
	maxLuckKept = 256
)

// luckView is how a red packet was shared.
type luckView struct {
	CampaignID string     `json:"campaign_id"`
	Shared     dibs.Money `json:"shared" doc:"what all shares so far sum to"`
	Shares     int64      `json:"shares" doc:"how many were opened"`
	// TookMS is from the start to the last share.
	TookMS int64       `json:"took_ms" doc:"from the start of the campaign to the last share"`
	Items  []luckShare `json:"items" doc:"the greatest shares, greatest first"`
}

type luckShare struct {
	User   string     `json:"user" doc:"with all but its ends hidden"`
	Amount dibs.Money `json:"amount"`
	At     time.Time  `json:"at"`
	Me     bool       `json:"me,omitempty" doc:"it is the caller's"`
	owner  string
}

// luckLists remembers lists, so that a crowd that looks at one costs one reading.
// mu guards kept, and is held for no reading.
type luckLists struct {
	mu   sync.Mutex
	kept map[string]*luckList
}

// luckList is the list of one red packet. One reads it while the others who want it wait for
// what comes of that; last is what was read last, nil before.
type luckList struct {
	flight web.Flight
	last   atomic.Pointer[keptLuck]
}

// of returns the list of a campaign.
func (l *luckLists) of(id string) *luckList {
	l.mu.Lock()
	defer l.mu.Unlock()
	if list := l.kept[id]; list != nil {
		return list
	}
	if len(l.kept) >= maxLuckKept {
		// Lists that are still looked at are read again, once.
		clear(l.kept)
	}
	list := &luckList{}
	l.kept[id] = list
	return list
}

// known returns the list while it is believed.
func (l *luckList) known() (luckView, bool) {
	if k := l.last.Load(); k != nil && time.Now().Before(k.until) {
		return k.view, true
	}
	return luckView{}, false
}

type keptLuck struct {
	view  luckView
	until time.Time
}

var (
	errNoPacket = dibs.Fail(dibs.NotFound, dibs.Text{EN: "this campaign is no red packet", ZH: "该活动不是红包"})
	errEarly    = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the list is shown when all shares are gone, or the time is over", ZH: "红包抢完或结束后才显示排行"})
)

// luckHandlers list the greatest shares of red packets.
type luckHandlers struct {
	*routes
	catalog Catalog
	claims  Claims
	lists   luckLists
}

func (h *luckHandlers) register() {
	register(h.routes, operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/luck", id: "luck", tag: tagCatalog, access: public,
		summary:     "Show who was luckiest with a red packet",
		description: "Once all shares are gone or the time is over: the 20 greatest shares, without naming their users, and how many were opened in all. A user's token shows which is theirs.",
	}, func(ctx context.Context, c *call, in *PathID) (luckView, error) {
		c.Header()["Cache-Control"] = web.NoStore
		v, err := h.of(ctx, in.ID)
		if err != nil {
			return luckView{}, err
		}
		v.Items = slices.Clone(v.Items)
		for i := range v.Items {
			v.Items[i].Me = c.caller.user != "" && v.Items[i].owner == c.caller.user
		}
		return v, nil
	})
}

// of returns a campaign's list, read anew when the last reading is old.
func (h *luckHandlers) of(ctx context.Context, id string) (v luckView, err error) {
	now, err := h.catalog.Get(ctx, id)
	if err != nil {
		return luckView{}, err
	}
	switch {
	case now.Campaign.Packet == nil:
		return luckView{}, errNoPacket
	case now.Phase != dibs.PhaseEnded && now.Phase != dibs.PhaseSoldOut:
		return luckView{}, errEarly
	}
	l := h.lists.of(id)
	if v, ok := l.known(); ok {
		return v, nil
	}
	if !l.flight.TryBegin() {
		if err := l.flight.Begin(time.Now()); err != nil {
			return luckView{}, err
		}
	}
	defer func() { l.flight.End(err) }()
	if v, ok := l.known(); ok {
		// Another caller read it while this one waited.
		return v, nil
	}
	began := time.Now()
	if v, err = h.count(ctx, now.Campaign); err != nil {
		return luckView{}, err
	}
	took := time.Since(began)
	l.last.Store(&keptLuck{v, began.Add(took + max(luckFor, luckTimes*took))})
	return v, nil
}

// count reads the shares of a red packet.
func (h *luckHandlers) count(ctx context.Context, c *dibs.Campaign) (luckView, error) {
	l, err := h.claims.Luck(ctx, c.ID, maxLuck)
	if err != nil {
		return luckView{}, err
	}
	money := func(amount int64) dibs.Money { return dibs.Money{Amount: amount, Currency: c.Packet.Total.Currency} }
	v := luckView{CampaignID: c.ID, Shared: money(l.Sum), Shares: l.Opened, Items: []luckShare{}}
	if l.LastAt.After(c.StartsAt) {
		v.TookMS = l.LastAt.Sub(c.StartsAt).Milliseconds()
	}
	for _, share := range l.Greatest {
		v.Items = append(v.Items, luckShare{User: masked(share.UserID), Amount: money(share.Amount), At: share.At, owner: share.UserID})
	}
	return v, nil
}

// masked hides a user's id but for its ends.
func masked(user string) string {
	first, _ := utf8.DecodeRuneInString(user)
	last, _ := utf8.DecodeLastRuneInString(user)
	return string(first) + "***" + string(last)
}

// simulatedBody asks for a payment that is none.
type simulatedBody struct {
	ClaimID string `json:"claim_id" doc:"an unpaid claim of the user"`
	How     string `json:"how" enum:"now,late,twice" doc:"now: it is paid; late: its time has run out; twice: the payment is told twice, and another one comes"`
}

// simulatedView says what came of each step of a simulated payment.
type simulatedView struct {
	Steps []simulatedStep `json:"steps"`
}

type simulatedStep struct {
	What    string `json:"what" enum:"confirm,repeat,second"`
	Outcome string `json:"outcome" doc:"done, or the reason of the refusal"`
	ClaimID string `json:"claim_id,omitempty" doc:"the claim that the payment is for now: a late one may have another"`
}

var errNotLate = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the time to pay is not over yet", ZH: "支付时限尚未结束"})

// paymentHandlers pretend to pay, where anyone may be anyone: in `dibs dev` alone.
type paymentHandlers struct {
	*routes
	claims Claims
	steps  ClaimSteps
}

func (h *paymentHandlers) register() {
	change(h.routes, operation{
		method: http.MethodPost, path: "/v1/dev/payments", id: "simulate-payment", tag: tagUser, access: userOnly,
		summary: "Pretend to pay: in `dibs dev` alone", example: `{"claim_id":"7K3M9QX2B4TD6RWA","how":"now"}`, knowsRepeats: true,
		description: "Does what a payment provider's call to `/confirm` would: in time, too late, or twice. `dibs serve` has no such address.",
	}, func(ctx context.Context, c *call, _ *struct{}, body *simulatedBody) (simulatedView, error) {
		claim, err := h.claims.Find(ctx, body.ClaimID)
		if err != nil {
			return simulatedView{}, err
		}
		if claim.UserID != c.caller.user {
			return simulatedView{}, dibs.ErrNotFound
		}
		return h.pretend(ctx, claim, body.How)
	})
}

// pretend makes the calls that a payment provider would make.
// A refusal is a step's outcome; only a failure of the service is an error.
func (h *paymentHandlers) pretend(ctx context.Context, claim *dibs.Claim, how string) (simulatedView, error) {
	v, ref := simulatedView{Steps: []simulatedStep{}}, "sim-"+rand.Text()[:12]
	step := func(what string, do func() (*dibs.Claim, bool, error)) error {
		after, _, err := do()
		s := simulatedStep{What: what, Outcome: "done"}
		var refused *dibs.Error
		switch {
		case errors.As(err, &refused):
			s.Outcome = refused.Reason.String()
		case err != nil:
			return err
		default:
			s.ClaimID = after.ID
		}
		v.Steps = append(v.Steps, s)
		return nil
	}
	pay := func(ref string) func() (*dibs.Claim, bool, error) {
		return func() (*dibs.Claim, bool, error) {
			return h.steps.Confirm(ctx, claim.ID, dibs.PaymentSpec{Amount: claim.Amount, PaymentRef: ref})
		}
	}
	if how == "late" && h.now().Before(claim.PayBy) {
		return v, errNotLate
	}
	errs := []error{step("confirm", pay(ref))}
	if how == "twice" {
		errs = append(errs, step("repeat", pay(ref)), step("second", pay(ref+"-2")))
	}
	return v, errors.Join(errs...)
}
