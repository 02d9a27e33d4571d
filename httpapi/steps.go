package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
)

// ClaimSteps is what the handlers of a claim's life after its grant call. A step is
// done once: its bool reports that it was done before. ErrNotFound; *dibs.Error of
// InvalidRequest, of InvalidState where the claim's status does not allow the step, or
// of Unavailable, after which the same step may be sent again.
type ClaimSteps interface {
	// Confirm notes a payment, once for each payment reference. The claim returned is
	// another one when a late payment took stock again.
	Confirm(ctx context.Context, id string, p dibs.PaymentSpec) (*dibs.Claim, bool, error)
	// Cancel gives an unpaid claim up. A user other than "" must be the claim's.
	Cancel(ctx context.Context, id, user, ref string) (*dibs.Claim, bool, error)
	// RefundWithin notes that money went back, never more than was paid. All that went back
	// comes to the bound at most; 0 means no bound.
	RefundWithin(ctx context.Context, id string, r dibs.RefundSpec, ref string, bound int64) (*dibs.Claim, bool, error)
	// Redeem notes the use of a coupon, Unredeem takes it back; once for each reference.
	Redeem(ctx context.Context, id string, r dibs.RedeemSpec) (*dibs.Claim, bool, error)
	Unredeem(ctx context.Context, id string, r dibs.UnredeemSpec) (*dibs.Claim, bool, error)
	// Ship notes how the goods travel. A later call replaces the earlier values.
	Ship(ctx context.Context, id string, s dibs.ShipmentSpec) (*dibs.Claim, bool, error)
	// Comment notes what an administrator has to say about a claim; empty takes it away.
	Comment(ctx context.Context, id, comment string) (*dibs.Claim, error)
}

// claimStepHandlers take claims through the steps after the grant.
// Each step has a reference: its own, or the Idempotency-Key. With it, a step that is
// sent twice is made once.
type claimStepHandlers struct {
	*routes
	steps ClaimSteps
}

// step is the operation of a step.
func step(verb, summary, example, description string) operation {
	return operation{
		method: http.MethodPost, path: "/v1/claims/{id}/" + verb, id: verb + "-claim", tag: tagSteps, access: adminOnly, role: access.RolePublisher,
		summary: summary, description: description, example: example,
	}
}

// stepped answers with a claim after a step, and says so when the step was done
// before.
func stepped(c *call) func(*dibs.Claim, bool, error) (api.ClaimView, error) {
	return func(claim *dibs.Claim, replayed bool, err error) (api.ClaimView, error) {
		if err != nil {
			return api.ClaimView{}, err
		}
		if replayed {
			c.replayed()
		}
		return claimView(c, claim), nil
	}
}

func (h *claimStepHandlers) register() {
	change(h.routes, operation{
		method: http.MethodPatch, path: "/v1/claims/{id}", id: "patch-claim", tag: tagSteps, access: adminOnly, role: access.RolePublisher,
		summary: "Comment on a claim", example: `{"comment":"gift wrap, called on Monday"}`,
		description: "Administrators see the comment, in lists and in CSV; users do not. `updated_at` moves with it.",
	}, h.patch)
	change(h.routes, step("confirm", "Note a payment", `{"amount":{"amount":99900,"currency":"CNY"},"payment_ref":"pay-1"}`,
		"The amount must be the claim's. The same `payment_ref` again changes nothing; another one on a paid claim is refused. "+
			"A payment whose claim was released follows the campaign's `late_payment`: `reclaim` takes stock again, and the answer "+
			"is the new claim, which names the old one in `replaces`; otherwise the claim stays released with `payment.refund_due`."),
		func(ctx context.Context, c *call, in *PathID, p *dibs.PaymentSpec) (api.ClaimView, error) {
			return stepped(c)(h.steps.Confirm(ctx, in.ID, *p))
		})
	cancel := step("cancel", "Give an unpaid claim up", "", "Its stock comes back at once. Users cancel their own claims, an API key any.")
	cancel.access, cancel.tag = either, tagUser
	change(h.routes, cancel, h.cancel)
	refund := step("refund", "Note that money went back", `{"amount":{"amount":5000,"currency":"CNY"},"restock":true}`,
		"Without `amount`, all that is left of the payment. With `restock` the stock and the user's allowance come back, and the claim "+
			"is refunded whatever the amount. All refunds together never exceed what was paid. A repeat needs the `Idempotency-Key`.")
	refund.second = &second{act: access.ActRefund, need: refundNeedsSecond(h.auth.claim, h.seconds.rules.RefundsAbove)}
	change(h.routes, refund, h.refund)
	change(h.routes, step("redeem", "Note the use of a coupon", `{"ref":"order-9"}`,
		"Once for each `ref`, while the coupon is valid, and never for two at a time. With `user_id`, only that user's coupon."),
		func(ctx context.Context, c *call, in *PathID, r *dibs.RedeemSpec) (api.ClaimView, error) {
			return stepped(c)(h.steps.Redeem(ctx, in.ID, *r))
		})
	change(h.routes, step("unredeem", "Roll the use of a coupon back", `{"ref":"order-9"}`,
		"The coupon can be used again, under another `ref`: a late copy of the first call does not use it."),
		func(ctx context.Context, c *call, in *PathID, r *dibs.UnredeemSpec) (api.ClaimView, error) {
			return stepped(c)(h.steps.Unredeem(ctx, in.ID, *r))
		})
	change(h.routes, step("ship", "Note how the goods travel", `{"carrier":"SF Express","tracking_no":"SF1234567890"}`,
		"Of a confirmed claim of a sale. A later call with other values replaces them; the events keep all."),
		func(ctx context.Context, c *call, in *PathID, s *dibs.ShipmentSpec) (api.ClaimView, error) {
			return stepped(c)(h.steps.Ship(ctx, in.ID, *s))
		})
}

// claimPatch changes what administrators may change of a claim.
type claimPatch struct {
	Comment *string `json:"comment,omitempty" maxLength:"255" doc:"a note for administrators; null takes it away"`
	cleared bool
}

// Nulls takes the comment away.
func (p *claimPatch) Nulls([]string) { p.cleared = true }

func (h *claimStepHandlers) patch(ctx context.Context, c *call, in *PathID, p *claimPatch) (v api.ClaimView, err error) {
	if p.Comment == nil && !p.cleared {
		return v, dibs.Invalid(dibs.Fault{Field: "/comment", Problem: dibs.Text{EN: "is required", ZH: "必填"}})
	}
	comment := ""
	dibs.Set(&comment, p.Comment)
	return viewOf(func(claim *dibs.Claim) api.ClaimView { return claimView(c, claim) })(h.steps.Comment(ctx, in.ID, comment))
}

// cancel and refund name their step in the ledger by the Idempotency-Key too, so
// that it is made once even when the memory of its answer was lost.
func (h *claimStepHandlers) cancel(ctx context.Context, c *call, in *PathID, _ *noBody) (api.ClaimView, error) {
	ref, err := c.ref()
	if err != nil {
		return api.ClaimView{}, err
	}
	return stepped(c)(h.steps.Cancel(ctx, in.ID, c.caller.user, ref))
}

func (h *claimStepHandlers) refund(ctx context.Context, c *call, in *PathID, r *dibs.RefundSpec) (api.ClaimView, error) {
	ref, err := c.ref()
	if err != nil {
		return api.ClaimView{}, err
	}
	// The limit of one person was compared with the sum refunded by then: the ledger compares it again.
	return stepped(c)(h.steps.RefundWithin(ctx, in.ID, *r, ref, h.seconds.refundBound(c)))
}
