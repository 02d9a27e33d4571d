package remote

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newClaimCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "claim",
		Short: "Look for claims and take their steps: paid, cancelled, refunded, used, shipped",
		Long: `Look for claims of a server, and take the steps of their lives: the server at --url,
with the API key --admin-key or $DIBS_ADMIN_KEY. docs/STATES.md shows which step
leads from which status to which.`,
	})
	for _, make := range []func() *cobra.Command{
		newOrdersCommand, newClaimShowCommand, newConfirmCommand, newCancelCommand, newRefundCommand, newRedeemCommand, newUnredeemCommand, newShipCommand,
	} {
		cmd.AddCommand(make())
	}
	return cmd
}

// claimCall is what a verb asks of the server.
type claimCall func(ctx context.Context, api *client.Client, id string) (claim dibs.ClaimView, replayed bool, err error)

// claimVerb is a verb on one claim. A step that was made before is no failure;
// people are told on the way.
func claimVerb(use, short string, do claimCall) *cobra.Command {
	var output string
	return addCall(&cobra.Command{
		Use:   use + " ID",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			v, replayed, err := do(cmd.Context(), api, args[0])
			if err != nil {
				return ExplainCall(c, byFlags(err))
			}
			if replayed {
				fmt.Fprintln(cmd.ErrOrStderr(), "dibs: this had been done before; nothing changed")
			}
			t := claimTable(&v)
			return cli.Show(cmd, output, v, &t)
		},
	}, &output)
}

// stepFlags are the flags that fill the fields of a step.
var stepFlags = map[string]string{
	"/payment_ref": "--ref", "/ref": "--ref", "/user_id": "--user", "/carrier": "--carrier", "/tracking_no": "--tracking",
	"/amount": "--amount", "/amount/amount": "--amount", "/amount/currency": "--currency",
}

// byFlags makes the faults that a server finds in the fields of a step those of
// the flags that people know them by.
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

func newClaimShowCommand() *cobra.Command {
	return claimVerb("show", "Show a claim and what happened to it", func(ctx context.Context, api *client.Client, id string) (dibs.ClaimView, bool, error) {
		v, err := api.FindClaim(ctx, id)
		return v, false, err
	})
}

// amountFlags are an amount as flags give it.
type amountFlags struct {
	amount   int64
	currency string
}

func (m *amountFlags) addFlags(cmd *cobra.Command, what string) {
	cmd.Flags().Int64Var(&m.amount, "amount", 0, what+", in minor units, `AMOUNT`")
	cmd.Flags().StringVar(&m.currency, "currency", "", "Its currency, `CODE` such as CNY")
}

// value is nil when no flag was given.
func (m *amountFlags) value(cmd *cobra.Command) (*dibs.Money, error) {
	amount, currency := cmd.Flags().Changed("amount"), cmd.Flags().Changed("currency")
	if amount != currency {
		return nil, cli.Usagef("--amount and --currency belong together")
	}
	if !amount {
		return nil, nil
	}
	return &dibs.Money{Amount: m.amount, Currency: m.currency}, nil
}

func newConfirmCommand() *cobra.Command {
	p, m := dibs.PaymentSpec{}, amountFlags{}
	var cmd *cobra.Command
	cmd = claimVerb("confirm", "Note a payment", func(ctx context.Context, api *client.Client, id string) (v dibs.ClaimView, again bool, err error) {
		if p.Amount, err = m.value(cmd); err != nil {
			return v, false, err
		}
		if p.Amount == nil {
			// What the claim costs, as far as people leave it to the program.
			if v, err = api.FindClaim(ctx, id); err != nil {
				return v, false, err
			}
			p.Amount = v.Amount
		}
		return api.Confirm(ctx, id, p)
	})
	cmd.Flags().StringVar(&p.PaymentRef, "ref", "", "The payment's own `NAME`: the same one again changes nothing (required)")
	m.addFlags(cmd, "What was paid (default what the claim costs)")
	return cmd
}

func newCancelCommand() *cobra.Command {
	return claimVerb("cancel", "Give an unpaid claim up: its stock comes back", func(ctx context.Context, api *client.Client, id string) (dibs.ClaimView, bool, error) {
		return api.Cancel(ctx, id, "")
	})
}

func newRefundCommand() *cobra.Command {
	r, m, key := dibs.RefundSpec{}, amountFlags{}, ""
	var cmd *cobra.Command
	cmd = claimVerb("refund", "Note that money went back", func(ctx context.Context, api *client.Client, id string) (v dibs.ClaimView, again bool, err error) {
		if r.Amount, err = m.value(cmd); err != nil {
			return v, false, err
		}
		return api.Refund(ctx, id, r, key)
	})
	m.addFlags(cmd, "What went back (default all that is left of the payment)")
	cmd.Flags().BoolVar(&r.Restock, "restock", false, "The stock comes back too")
	cmd.Flags().StringVar(&key, "key", "", "Sent again with the same `KEY`, the refund counts once")
	return cmd
}

func newRedeemCommand() *cobra.Command {
	r, m := dibs.RedeemSpec{}, amountFlags{}
	var cmd *cobra.Command
	cmd = claimVerb("redeem", "Note the use of a coupon", func(ctx context.Context, api *client.Client, id string) (v dibs.ClaimView, again bool, err error) {
		if r.Amount, err = m.value(cmd); err != nil {
			return v, false, err
		}
		return api.Redeem(ctx, id, r)
	})
	m.addFlags(cmd, "What it saved, for the record")
	cmd.Flags().StringVar(&r.Ref, "ref", "", "What it is used for, an order's `NAME`: the same one again changes nothing (required)")
	cmd.Flags().StringVar(&r.UserID, "user", "", "Refuse it unless it is this `USER`'s")
	return cmd
}

func newUnredeemCommand() *cobra.Command {
	u := dibs.UnredeemSpec{}
	cmd := claimVerb("unredeem", "Roll the use of a coupon back", func(ctx context.Context, api *client.Client, id string) (dibs.ClaimView, bool, error) {
		return api.Unredeem(ctx, id, u)
	})
	cmd.Flags().StringVar(&u.Ref, "ref", "", "The use to roll back, by its `NAME` (default the present one)")
	return cmd
}

func newShipCommand() *cobra.Command {
	s := dibs.ShipmentSpec{}
	cmd := claimVerb("ship", "Note how the goods travel", func(ctx context.Context, api *client.Client, id string) (dibs.ClaimView, bool, error) {
		return api.Ship(ctx, id, s)
	})
	cmd.Flags().StringVar(&s.Carrier, "carrier", "", "Who carries them, `NAME` (required)")
	cmd.Flags().StringVar(&s.TrackingNo, "tracking", "", "The carrier's `NUMBER` for them (required)")
	return cmd
}

// claimTable is a claim, a line for each of its sides, and its events.
func claimTable(v *dibs.ClaimView) cli.Table {
	t := cli.Table{}
	line := func(name, text string) {
		if text != "" {
			t.Add(name, text)
		}
	}
	line("id", v.ID)
	if v.CampaignID != "" {
		line("campaign", v.CampaignID+" ("+string(v.Kind)+")")
	}
	line("product", v.ProductID)
	line("user", v.UserID)
	line("quantity", strconv.FormatInt(v.Quantity, 10))
	line("items", strings.Join(v.Items, " "))
	line("status", v.Status)
	line("amount", amountText(v.Amount))
	line("created", cli.Moment(v.CreatedAt))
	if v.PayBy != nil {
		line("pay by", cli.Moment(*v.PayBy))
	}
	if v.ValidUntil != nil {
		line("valid until", cli.Moment(*v.ValidUntil))
	}
	if p := v.Payment; p != nil {
		line("payment", strings.TrimSpace(amountText(p.Amount)+" "+p.PaymentRef))
		line("refunded", amountText(p.Refunded))
		if p.RefundDue {
			line("refund due", "the payment came too late: give it back")
		}
	}
	line("replaces", v.Replaces)
	line("replaced by", v.ReplacedBy)
	if r := v.Redemption; r != nil {
		line("redeemed", strings.TrimSpace(r.Ref+" "+amountText(r.Amount)))
	}
	if s := v.Shipment; s != nil {
		line("shipped", s.Carrier+" "+s.TrackingNo)
	}
	for _, e := range v.Events {
		text := cli.Moment(e.At) + " " + string(e.Step)
		for _, fact := range []string{e.Ref, amountText(e.Amount), e.Carrier, e.TrackingNo} {
			if fact != "" {
				text += " " + fact
			}
		}
		line("event", text)
	}
	return t
}

func amountText(m *dibs.Money) string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%d %s", m.Amount, m.Currency)
}
