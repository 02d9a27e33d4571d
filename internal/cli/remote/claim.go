package remote

import (
	"context"
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
		newRedeemCommand(), newUnredeemCommand(), newShipCommand(), newCommentCommand())
}

// step is a call that records a step of a claim and returns the claim after it. replayed says that
// the step was recorded before, which is no failure: the verb says so and exits with 0.
type step func(ctx context.Context, s *session, id string) (claim api.ClaimView, replayed bool, err error)

// onClaim makes a verb on one claim. Whether the claim's status allows the step is the server's to
// judge: it knows the claim, and another client may be taking a step at the same time.
func onClaim(use, short string, do step) *cobra.Command {
	return ask(&cobra.Command{Use: use + " ID", Short: short, Args: cobra.ExactArgs(1)},
		func(ctx context.Context, s *session) (api.ClaimView, error) {
			v, replayed, err := do(ctx, s, s.args[0])
			// No note after an error: replayed is false then.
			s.noteReplay(replayed)
			return v, err
		}, claimTable)
}

// newClaimShowCommand shows a claim with its events, the oldest first.
func newClaimShowCommand() *cobra.Command {
	return byID("show ID", "Show a claim and what happened to it",
		of(func(c *client.Client) one[api.ClaimView] { return c.Orders.Get }), claimTable)
}

// newConfirmCommand records a payment that a payment service took. The ref makes it safe to repeat.
// Without an amount it takes what the claim costs, which it has to ask for first: the grant has fixed
// it. For a payment after the deadline the answer may be another claim, when stock was left, or a
// claim with a refund due (late_payment).
func newConfirmCommand() *cobra.Command {
	p, m := dibs.PaymentSpec{}, moneyFlags{}
	cmd := onClaim("confirm", "Record a payment", func(ctx context.Context, s *session, id string) (v api.ClaimView, replayed bool, err error) {
		if p.Amount, err = m.value(s.cmd); err != nil {
			return v, false, err
		}
		// nil again for a claim that costs nothing: the server judges that.
		if p.Amount == nil {
			if v, err = s.Orders.Get(ctx, id); err != nil {
				return v, false, err
			}
			p.Amount = v.Amount
		}
		return s.Orders.Confirm(ctx, id, p)
	})
	cmd.Flags().StringVar(&p.PaymentRef, "ref", "", "The `NAME` of the payment; recording the same one again changes nothing (required)")
	m.add(cmd, "amount", "What was paid, an `AMOUNT` such as 12.50CNY (default the claim's price)", "")
	return cli.Require(cmd, "ref")
}

// newCancelCommand cancels an unpaid claim, and its stock can be claimed again. It needs no key: a
// claim can be cancelled once, and a repeat is refused or shows the claim as it is.
func newCancelCommand() *cobra.Command {
	return onClaim("cancel", "Give up an unpaid claim; its stock comes back", func(ctx context.Context, s *session, id string) (api.ClaimView, bool, error) {
		return s.Orders.Cancel(ctx, id, "")
	})
}

// newRefundCommand records a refund; dibs moves no money. A claim can have several refunds, so only
// --key makes it safe to repeat: without one a repeat is a second refund. The server refuses more
// than what was paid. The stock stays sold unless --restock returns it.
func newRefundCommand() *cobra.Command {
	r, m, key := dibs.RefundSpec{}, moneyFlags{}, ""
	cmd := onClaim("refund", "Record a refund", func(ctx context.Context, s *session, id string) (v api.ClaimView, replayed bool, err error) {
		if r.Amount, err = m.value(s.cmd); err != nil {
			return v, false, err
		}
		return s.Orders.Refund(ctx, id, r, key)
	})
	m.add(cmd, "amount", "What went back, an `AMOUNT` such as 12.50CNY (default the rest of the payment)", "")
	cmd.Flags().BoolVar(&r.Restock, "restock", false, "Return the stock too")
	cmd.Flags().StringVar(&key, "key", "", "An idempotency `KEY`: the same refund under the same key counts once")
	return cmd
}

// newRedeemCommand records the use of a coupon. The ref makes it safe to repeat; a use under another
// ref is refused while the coupon is used. With --user the server refuses another user's coupon, so
// that the shop need not look at the claim first.
func newRedeemCommand() *cobra.Command {
	r, m := dibs.RedeemSpec{}, moneyFlags{}
	cmd := onClaim("redeem", "Record the use of a coupon", func(ctx context.Context, s *session, id string) (v api.ClaimView, replayed bool, err error) {
		if r.Amount, err = m.value(s.cmd); err != nil {
			return v, false, err
		}
		return s.Orders.Redeem(ctx, id, r)
	})
	m.add(cmd, "amount", "What it saved, an `AMOUNT` such as 12.50CNY, for the record", "")
	cmd.Flags().StringVar(&r.Ref, "ref", "", "The `NAME` of what it is used for, such as an order; recording the same one again changes nothing (required)")
	cmd.Flags().StringVar(&r.UserID, "user", "", "Refuse it unless it belongs to this `USER`")
	return cli.Require(cmd, "ref")
}

// newUnredeemCommand takes a use back, so that the coupon can be used again. With the ref of a use
// it cannot take back a later one: give --ref wherever the command may be repeated.
func newUnredeemCommand() *cobra.Command {
	u := dibs.UnredeemSpec{}
	cmd := onClaim("unredeem", "Take the use of a coupon back", func(ctx context.Context, s *session, id string) (api.ClaimView, bool, error) {
		return s.Orders.Unredeem(ctx, id, u)
	})
	cmd.Flags().StringVar(&u.Ref, "ref", "", "The `NAME` of the use to take back (default the present one)")
	return cmd
}

// newCommentCommand notes something about a claim for administrators. It may be repeated; the last
// text counts.
func newCommentCommand() *cobra.Command {
	return ask(&cobra.Command{
		Use:   "comment ID TEXT",
		Short: "Note something about a claim for administrators; an empty text takes it away",
		Example: `  dibs claim comment 7K3M9QX2B4TD6RWA "gift wrap, called on Monday"
  dibs claim comment 7K3M9QX2B4TD6RWA ""`,
		Args: cobra.ExactArgs(2),
	}, func(ctx context.Context, s *session) (api.ClaimView, error) {
		return s.Orders.Comment(ctx, s.args[0], s.args[1])
	}, claimTable)
}

// newShipCommand records a shipment. It may be repeated; another shipment takes the place
// of the first.
func newShipCommand() *cobra.Command {
	p := dibs.ShipmentSpec{}
	cmd := onClaim("ship", "Record the shipment of the goods", func(ctx context.Context, s *session, id string) (api.ClaimView, bool, error) {
		return s.Orders.Ship(ctx, id, p)
	})
	cmd.Flags().StringVar(&p.Carrier, "carrier", "", "The `NAME` of the carrier (required)")
	cmd.Flags().StringVar(&p.TrackingNo, "tracking", "", "The carrier's tracking `NUMBER` (required)")
	return cli.Require(cmd, "carrier", "tracking")
}

// claimTable shows a claim, a row for each of its properties and events; what the claim lacks has no
// row.
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
	if !v.UpdatedAt.Equal(v.CreatedAt) {
		t.Field("updated", v.UpdatedAt)
	}
	t.Field("reference", v.Reference)
	t.Field("comment", v.Comment)
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
	// An event has the facts of its own step only; Fields removes the gaps of the others.
	for _, e := range v.Events {
		facts := []string{cli.Moment(e.At), string(e.Step), e.Ref, amountText(e.Amount), e.Carrier, e.TrackingNo}
		t.Field("event", strings.Join(strings.Fields(strings.Join(facts, " ")), " "))
	}
	return t
}
