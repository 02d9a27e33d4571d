package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"
)

const tagLife = "Claims after the grant"

// step is what the steps of the service return.
type step func() (claim *dibs.Claim, replayed bool, err error)

// stepped answers with a claim after a step; one that was made before says so.
func stepped(c *call, do step) (dibs.ClaimView, error) {
	claim, replayed, err := do()
	if err != nil {
		return dibs.ClaimView{}, err
	}
	if replayed {
		c.Header()[headerReplayed] = isTrue
	}
	return viewFor(c, claim), nil
}

// viewFor is a claim as its reader may see it.
func viewFor(c *call, claim *dibs.Claim) dibs.ClaimView {
	if c.who.isAdmin() {
		return claim.AdminView()
	}
	return claim.View()
}

func (a *api) registerLife() {
	change(a, a.stepOf("confirm", "Note a payment", `{"amount":{"amount":99900,"currency":"CNY"},"payment_ref":"pay-1"}`,
		"The amount must be the claim's. The same `payment_ref` again changes nothing; another one on a paid claim is refused. "+
			"A payment whose claim was released follows the campaign's `late_payment`: `reclaim` takes stock again, and the answer "+
			"is the new claim, which names the old one in `replaces`; otherwise the claim stays released with `payment.refund_due`."),
		func(ctx context.Context, c *call, in *PathID, p *dibs.PaymentSpec) (dibs.ClaimView, error) {
			return stepped(c, func() (*dibs.Claim, bool, error) { return a.svc.Confirm(ctx, in.ID, *p) })
		})
	cancel := a.stepOf("cancel", "Give an unpaid claim up", "", "Its stock comes back at once. Users cancel their own claims, an API key any.")
	cancel.access, cancel.tag = either, tagUser
	change(a, cancel, func(ctx context.Context, c *call, in *PathID, _ *noBody) (dibs.ClaimView, error) {
		return a.onceStep(c, func(ref string) (*dibs.Claim, bool, error) { return a.svc.Cancel(ctx, in.ID, c.who.user, ref) })
	})
	change(a, a.stepOf("refund", "Note that money went back", `{"amount":{"amount":5000,"currency":"CNY"},"restock":true}`,
		"Without `amount`, all that is left of the payment. With `restock` the stock and the user's allowance come back, and the claim "+
			"is refunded whatever the amount. What was refunded never exceeds what was paid. A repeat needs the `Idempotency-Key`."),
		func(ctx context.Context, c *call, in *PathID, r *dibs.RefundSpec) (dibs.ClaimView, error) {
			return a.onceStep(c, func(ref string) (*dibs.Claim, bool, error) { return a.svc.Refund(ctx, in.ID, *r, ref) })
		})
	change(a, a.stepOf("redeem", "Note the use of a coupon", `{"ref":"order-9"}`,
		"Once for each `ref`, while the coupon is valid, and never for two at a time. With `user_id`, only that user's coupon."),
		func(ctx context.Context, c *call, in *PathID, r *dibs.RedeemSpec) (dibs.ClaimView, error) {
			return stepped(c, func() (*dibs.Claim, bool, error) { return a.svc.Redeem(ctx, in.ID, *r) })
		})
	change(a, a.stepOf("unredeem", "Roll the use of a coupon back", `{"ref":"order-9"}`,
		"The coupon can be used again, under another `ref`: a late copy of the first call does not use it."),
		func(ctx context.Context, c *call, in *PathID, r *dibs.UnredeemSpec) (dibs.ClaimView, error) {
			return stepped(c, func() (*dibs.Claim, bool, error) { return a.svc.Unredeem(ctx, in.ID, *r) })
		})
	change(a, a.stepOf("ship", "Note how the goods travel", `{"carrier":"SF Express","tracking_no":"SF1234567890"}`,
		"Of a confirmed claim of a sale. Said again with other words, the last count; the events keep all."),
		func(ctx context.Context, c *call, in *PathID, s *dibs.ShipmentSpec) (dibs.ClaimView, error) {
			return stepped(c, func() (*dibs.Claim, bool, error) { return a.svc.Ship(ctx, in.ID, *s) })
		})
}

// stepOf is the operation of a step.
func (a *api) stepOf(verb, summary, example, description string) operation {
	return operation{
		method: http.MethodPost, path: "/v1/claims/{id}/" + verb, id: verb + "-claim", tag: tagLife, access: adminOnly, role: dibs.RolePublisher,
		summary: summary, description: description, example: example, maxBody: a.cfg.MaxBody,
	}
}

// onceStep makes a step whose Idempotency-Key names it in the ledger too, so
// that it is made once even when the memory of its answer was lost.
func (a *api) onceStep(c *call, do func(ref string) (*dibs.Claim, bool, error)) (dibs.ClaimView, error) {
	ref, err := onceRef(c)
	if err != nil {
		return dibs.ClaimView{}, err
	}
	return stepped(c, func() (*dibs.Claim, bool, error) { return do(ref) })
}
