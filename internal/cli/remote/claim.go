package remote

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
)

// newClaimCommand returns the verbs on /v1/claims.
func newClaimCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "claim",
		Short: "Find claims and record their steps: paid, cancelled, refunded, used, shipped",
		Long: `Find claims, and record the steps of their lives, on the server at --url with the
API key --admin-key or $DIBS_ADMIN_KEY. docs/STATES.md shows which step leads from
which status to which.`,
	}, newOrdersCommand(), newClaimShowCommand(), newConfirmCommand(), newCancelCommand(), newRefundCommand(),
		newRedeemCommand(), newUnredeemCommand(), newShipCommand())
}

// step is a call that records a step of a claim. replayed says that the step was
// recorded before, which is no failure.
type step func(ctx context.Context, s *session, id string) (claim api.ClaimView, replayed bool, err error)

// onClaim makes a verb on one claim.
func onClaim(use, short string, do step) *cobra.Command {
	return ask(&cobra.Command{Use: use + " ID", Short: short, Args: cobra.ExactArgs(1)},
		func(ctx context.Context, s *session) (api.ClaimView, error) {
			v, replayed, err := do(ctx, s, s.args[0])
			s.noteReplay(replayed)
			return v, byFlags(err)
		}, claimTable)
}

// stepFlags name the flags that fill the fields of a step.
var stepFlags = map[string]string{
	"/payment_ref": "--ref", "/ref": "--ref", "/user_id": "--user", "/carrier": "--carrier", "/tracking_no": "--tracking",
	"/amount": "--amount", "/amount/amount": "--amount", "/amount/currency": "--currency",
}

// byFlags replaces the fields in a server's refusal by the flags that fill them.
func byFlags(err error) error {
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		return err
	}
	for i := range refusal.Errors {
		if flag, ok := stepFlags[refusal.Errors[i].Pointer]; ok {
			refusal.Errors[i].Pointer = flag
		}
	}
	return refusal
}

// newClaimShowCommand shows a claim with its events, the oldest first.
func newClaimShowCommand() *cobra.Command {
	return byID("show ID", "Show a claim and what happened to it", (*client.Client).FindClaim, claimTable)
}

// newConfirmCommand records a payment. The ref makes it safe to repeat. Without an amount
// it takes what the claim costs, which it has to ask for first.
func newConfirmCommand() *cobra.Command {
	p, m := dibs.PaymentSpec{}, moneyFlags{}
	cmd := onClaim("confirm", "Record a payment", func(ctx context.Context, s *session, id string) (v api.ClaimView, replayed bool, err error) {
		if p.Amount, err = m.value(s.cmd); err != nil {
			return v, false, err
		}
		if p.Amount == nil {
			if v, err = s.FindClaim(ctx, id); err != nil {
				return v, false, err
			}
			p.Amount = v.Amount
		}
		return s.Confirm(ctx, id, p)
	})
	cmd.Flags().StringVar(&p.PaymentRef, "ref", "", "The `NAME` of the payment; recording the same one again changes nothing (required)")
	m.add(cmd, "amount", "What was paid, in minor units, `AMOUNT` (default the claim's price)")
	return cmd
}

// newCancelCommand cancels a claim. It needs no key: a claim can be cancelled once.
func newCancelCommand() *cobra.Command {
	return onClaim("cancel", "Give up an unpaid claim; its stock comes back", func(ctx context.Context, s *session, id string) (api.ClaimView, bool, error) {
		return s.Cancel(ctx, id, "")
	})
}

// newRefundCommand records a refund. A claim can have several, so that only --key makes it
// safe to repeat.
func newRefundCommand() *cobra.Command {
	r, m, key := dibs.RefundSpec{}, moneyFlags{}, ""
	cmd := onClaim("refund", "Record a refund", func(ctx context.Context, s *session, id string) (v api.ClaimView, replayed bool, err error) {
		if r.Amount, err = m.value(s.cmd); err != nil {
			return v, false, err
		}
		return s.Refund(ctx, id, r, key)
	})
	m.add(cmd, "amount", "What went back, in minor units, `AMOUNT` (default the rest of the payment)")
	cmd.Flags().BoolVar(&r.Restock, "restock", false, "Return the stock too")
	cmd.Flags().StringVar(&key, "key", "", "An idempotency `KEY`: the same refund under the same key counts once")
	return cmd
}

// newRedeemCommand records the use of a coupon. The ref makes it safe to repeat.
func newRedeemCommand() *cobra.Command {
	r, m := dibs.RedeemSpec{}, moneyFlags{}
	cmd := onClaim("redeem", "Record the use of a coupon", func(ctx context.Context, s *session, id string) (v api.ClaimView, replayed bool, err error) {
		if r.Amount, err = m.value(s.cmd); err != nil {
			return v, false, err
		}
		return s.Redeem(ctx, id, r)
	})
	m.add(cmd, "amount", "What it saved, in minor units, `AMOUNT`, for the record")
	cmd.Flags().StringVar(&r.Ref, "ref", "", "The `NAME` of what it is used for, such as an order; recording the same one again changes nothing (required)")
	cmd.Flags().StringVar(&r.UserID, "user", "", "Refuse it unless it belongs to this `USER`")
	return cmd
}

// newUnredeemCommand undoes a use. With the ref of a use it cannot undo a later one.
func newUnredeemCommand() *cobra.Command {
	u := dibs.UnredeemSpec{}
	cmd := onClaim("unredeem", "Take the use of a coupon back", func(ctx context.Context, s *session, id string) (api.ClaimView, bool, error) {
		return s.Unredeem(ctx, id, u)
	})
	cmd.Flags().StringVar(&u.Ref, "ref", "", "The `NAME` of the use to take back (default the present one)")
	return cmd
}

// newShipCommand records a shipment. It may be repeated; another shipment takes the place
// of the first.
func newShipCommand() *cobra.Command {
	p := dibs.ShipmentSpec{}
	cmd := onClaim("ship", "Record the shipment of the goods", func(ctx context.Context, s *session, id string) (api.ClaimView, bool, error) {
		return s.Ship(ctx, id, p)
	})
	cmd.Flags().StringVar(&p.Carrier, "carrier", "", "The `NAME` of the carrier (required)")
	cmd.Flags().StringVar(&p.TrackingNo, "tracking", "", "The carrier's tracking `NUMBER` (required)")
	return cmd
}

// claimTable shows a claim, a row for each of its properties and events.
func claimTable(v *api.ClaimView) *cli.Table {
	t := cli.NewTable()
	t.Field("id", v.ID)
	if v.CampaignID != "" {
		t.Field("campaign", v.CampaignID+" ("+string(v.Kind)+")")
	}
	t.Field("product", v.ProductID)
	t.Field("user", v.UserID)
	t.Field("quantity", v.Quantity)
	t.Field("items", strings.Join(v.Items, " "))
	t.Field("status", v.Status)
	t.Field("amount", amountText(v.Amount))
	t.Field("created", v.CreatedAt)
	if v.PayBy != nil {
		t.Field("pay by", *v.PayBy)
	}
	if v.ValidUntil != nil {
		t.Field("valid until", *v.ValidUntil)
	}
	if p := v.Payment; p != nil {
		t.Field("payment", strings.TrimSpace(amountText(p.Amount)+" "+p.PaymentRef))
		t.Field("refunded", amountText(p.Refunded))
		if p.RefundDue {
			t.Field("refund due", "the payment came too late: give it back")
		}
	}
	t.Field("replaces", v.Replaces)
	t.Field("replaced by", v.ReplacedBy)
	if r := v.Redemption; r != nil {
		t.Field("redeemed", strings.TrimSpace(r.Ref+" "+amountText(r.Amount)))
	}
	if s := v.Shipment; s != nil {
		t.Field("shipped", s.Carrier+" "+s.TrackingNo)
	}
	for _, e := range v.Events {
		facts := []string{cli.Moment(e.At), string(e.Step), e.Ref, amountText(e.Amount), e.Carrier, e.TrackingNo}
		t.Field("event", strings.Join(strings.Fields(strings.Join(facts, " ")), " "))
	}
	return t
}
