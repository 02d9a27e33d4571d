package remote

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
)

// orderFlags are a search for orders as flags describe it. q has those that need no conversion; read
// completes it.
type orderFlags struct {
	q                               dibs.OrderQuery
	status, orderType, since, until string
	limit                           int
	csv                             bool
}

// newOrdersCommand searches claims and orders by GET /v1/claims, page by page, up to --limit. It
// refuses a status, a type or a time that is none; the server judges the combination, since it knows
// which index serves it. With --csv the server streams all that is found and nothing is held in
// memory; when the verb exits with 1, the output may have a part only.
func newOrdersCommand() *cobra.Command {
	o := &orderFlags{}
	cmd := talk(cli.WithOutput(&cobra.Command{
		Use:   "list",
		Short: "Find claims and orders, newest first",
		Long: `Find claims and orders of all campaigns, newest first; those of a campaign or a
product campaign by campaign. Every search uses an index. For a status that is rare,
name a campaign or a time as well: the search is faster.`,
		Example: `  dibs claim list --user 42
  dibs claim list --campaign phone-noon --status pending
  dibs claim list --payment-ref pay-1
  dibs claim list --campaign spring --code SPRING-7K3M
  dibs claim list --since 2026-12-01T00:00:00Z --csv > orders.csv`,
		Args: cobra.NoArgs,
	}), func(ctx context.Context, s *session) error {
		// Before any call: a search with half of its flags finds too much.
		if err := emptyFilter(s.cmd, "user", "campaign", "product", "payment-ref", "reference", "code", "since", "until"); err != nil {
			return err
		}
		if err := o.read(time.Now()); err != nil {
			return err
		}
		if o.csv {
			return s.Orders.CSV(ctx, o.q, s.cmd.OutOrStdout())
		}
		views, err := upTo(s, o.limit, func(p dibs.Page) (api.ListView[api.ClaimView], error) { return s.Orders.List(ctx, o.q, p) })
		if err != nil {
			return err
		}
		return cli.Show(s.cmd, views, orderColumns.table(&views))
	})
	o.add(cmd)
	return cmd
}

// emptyFilter refuses a flag that was given without a character, as a variable that is not set leaves it: without
// that filter the search would find everybody's.
func emptyFilter(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return cli.Usagef("--%s is empty", name)
		}
	}
	return nil
}

// add adds the flags of a search. Several of them must all hold.
func (o *orderFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.q.UserID, "user", "", "Only those of this `USER`")
	f.StringVar(&o.q.CampaignID, "campaign", "", "Only those of the campaign `ID`")
	f.StringVar(&o.q.ProductID, "product", "", "Only those of the product `ID`, in campaigns and regular")
	f.Var(cli.OneOf(&o.status, "pending", "confirmed", "released", "refunded"), "status", "Only those of this `STATUS`: pending, confirmed, released or refunded")
	f.Var(cli.OneOf(&o.orderType, "regular", "flash"), "type", "Only orders of this `TYPE`: regular, or flash for those of campaigns")
	f.StringVar(&o.q.PaymentRef, "payment-ref", "", "Only those with the payment of this `NAME`, paid or refused")
	f.BoolVar(&o.q.RefundDue, "refund-due", false, "Only those whose payment came too late and has to go back")
	f.StringVar(&o.q.Reference, "reference", "", "Only those that were claimed with this `TEXT` of the caller's own")
	f.StringVar(&o.q.Code, "code", "", "Only those with this `CODE` or seat, of --campaign or of any")
	f.StringVar(&o.since, "since", "", "Only those created at this `TIME` or later: 2026-12-01T04:00:00Z, or -1h for an hour ago")
	f.StringVar(&o.until, "until", "", "Only those created before this `TIME`")
	f.IntVar(&o.limit, "limit", dibs.MaxPage, "At most `N`")
	// CSV is for files, which should be whole; the table is for a look.
	f.BoolVar(&o.csv, "csv", false, "All of them as CSV; --limit and --output do not count")
}

// read completes the query by the flags that need a conversion.
func (o *orderFlags) read(now time.Time) error {
	if o.status != "" {
		status, _ := dibs.ParseStatus(o.status)
		o.q.Status = &status
	}
	switch o.orderType {
	case "":
	case "regular":
		o.q.OrderType = dibs.RegularOrder
	case "flash":
		o.q.OrderType = dibs.FlashOrder
	}
	if err := checkLimit(o.limit); err != nil {
		return err
	}
	return readMoments(now, momentFlag{"--since", o.since, &o.q.Since}, momentFlag{"--until", o.until, &o.q.Until})
}

// orderColumns show claims, a row for each. Regular orders have no campaign, claims perhaps no
// product: a dash.
var orderColumns = columnsOf(func(v *api.ClaimView) []any {
	paid := ""
	if v.Payment != nil {
		paid = v.Payment.PaymentRef
	}
	return []any{
		v.ID, cli.OrDash(v.CampaignID), cli.OrDash(v.ProductID), v.UserID, v.Quantity, v.Status,
		cli.OrDash(amountText(v.Amount)), v.CreatedAt, cli.OrDash(paid),
	}
}, "ID", "CAMPAIGN", "PRODUCT", "USER", "QTY", "STATUS", "AMOUNT", "CREATED", "PAYMENT")
