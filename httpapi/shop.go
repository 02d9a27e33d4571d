package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

const (
	// maxLuck is how many shares the list shows.
	maxLuck = 20
	// maxCounted bounds the claims that are read for it: of a greater red packet there is no list.
	maxCounted = 10_000
	// luckFor is how long a list is believed that may still change; maxLuckKept bounds the lists.
	luckFor     = 2 * time.Second
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
// mu guards kept. It is held while one list is read: others wait for it, and then
// find it.
type luckLists struct {
	mu   sync.Mutex
	kept map[string]keptLuck
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
		description: "Once all shares are gone or the time is over: the 20 greatest shares, without naming their users. A user's token shows which is theirs.",
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
func (h *luckHandlers) of(ctx context.Context, id string) (luckView, error) {
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
	l := &h.lists
	// One reads while the others wait for what it finds.
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.kept[id]; time.Now().Before(k.until) {
		return k.view, nil
	}
	v, err := h.count(ctx, now.Campaign)
	if err != nil {
		return luckView{}, err
	}
	if len(l.kept) >= maxLuckKept {
		// Lists that are still looked at are read again, once.
		clear(l.kept)
	}
	l.kept[id] = keptLuck{v, time.Now().Add(luckFor)}
	return v, nil
}

// count reads the claims of a red packet and sorts them.
func (h *luckHandlers) count(ctx context.Context, c *dibs.Campaign) (luckView, error) {
	v := luckView{CampaignID: c.ID, Shared: dibs.Money{Currency: c.Packet.Total.Currency}, Items: []luckShare{}}
	page, last := dibs.Page{Limit: dibs.MaxPage}, c.StartsAt
	for {
		list, err := h.claims.OfCampaign(ctx, c.ID, dibs.ClaimFilter{}, page)
		if err != nil {
			return v, err
		}
		for i := range list.Items {
			claim := &list.Items[i]
			if claim.Amount == nil {
				continue
			}
			v.Shares++
			v.Shared.Amount += claim.Amount.Amount
			if claim.CreatedAt.After(last) {
				last = claim.CreatedAt
			}
			v.Items = append(v.Items, luckShare{User: masked(claim.UserID), Amount: *claim.Amount, At: claim.CreatedAt, owner: claim.UserID})
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" || v.Shares >= maxCounted {
			break
		}
	}
	v.TookMS = last.Sub(c.StartsAt).Milliseconds()
	if page.Cursor != "" {
		return luckView{}, dibs.Fail(dibs.InvalidState, dibs.Textf("there is a list for red packets of up to %d shares", "仅为不超过 %d 份的红包提供排行", maxCounted))
	}
	// Of equal shares the earlier one is first.
	slices.SortFunc(v.Items, func(x, y luckShare) int {
		return cmp.Or(cmp.Compare(y.Amount.Amount, x.Amount.Amount), x.At.Compare(y.At))
	})
	v.Items = v.Items[:min(len(v.Items), maxLuck)]
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
