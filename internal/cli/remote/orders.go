package remote

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/internal/cli"
)

// orderFlags are a search for orders as flags describe it.
type orderFlags struct {
	q            dibs.OrderQuery
	status       string
	orderType    string
	since, until string
	limit        int
	csv          bool
}

func newOrdersCommand() *cobra.Command {
	o := &orderFlags{}
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Look for claims and orders, newest first",
		Long: `Look for claims and orders of all campaigns, newest first; those of a campaign or
a product campaign by campaign. What is asked for has an index: of a status that
is rare, name a campaign or a time too.`,
		Example: `  dibs claim list --user 42
  dibs claim list --campaign phone-noon --status pending
  dibs claim list --payment-ref pay-1
  dibs claim list --campaign spring --code SPRING-7K3M
  dibs claim list --since 2026-12-01T00:00:00Z --csv > orders.csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.read(time.Now()); err != nil {
				return err
			}
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			if o.csv {
				return ExplainCall(c, api.OrdersCSV(cmd.Context(), o.q, cmd.OutOrStdout()))
			}
			views := []dibs.ClaimView{}
			for page := (dibs.Page{Limit: dibs.MaxPage}); len(views) < o.limit; {
				l, err := api.Orders(cmd.Context(), o.q, page)
				if err != nil {
					return ExplainCall(c, err)
				}
				views = append(views, l.Items...)
				if page.Cursor = l.NextCursor; page.Cursor == "" {
					break
				}
			}
			views = views[:min(len(views), o.limit)]
			t := ordersTable(views)
			return cli.Show(cmd, output, views, &t)
		},
	}
	o.addFlags(cmd)
	return addCall(cmd, &output)
}

func (o *orderFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.q.UserID, "user", "", "Only those of a `USER`")
	f.StringVar(&o.q.CampaignID, "campaign", "", "Only those of the campaign `ID`")
	f.StringVar(&o.q.ProductID, "product", "", "Only those of the product `ID`: of its campaigns, and regular ones")
	f.StringVar(&o.status, "status", "", "Only those that are pending, confirmed, released or refunded, `STATUS`")
	f.StringVar(&o.orderType, "type", "", "Only regular orders, or those of campaigns: regular or flash")
	f.StringVar(&o.q.PaymentRef, "payment-ref", "", "Only those that the payment `NAME` paid, or should have")
	f.StringVar(&o.q.Code, "code", "", "Only the one that has this `CODE` or seat of the campaign")
	f.StringVar(&o.since, "since", "", "Only those created at a `TIME` or later: 2026-12-01T04:00:00Z, or -1h ago")
	f.StringVar(&o.until, "until", "", "Only those created before a `TIME`")
	f.IntVar(&o.limit, "limit", dibs.MaxPage, "At most `N`")
	f.BoolVar(&o.csv, "csv", false, "All of them as CSV, whatever --limit and --output say")
}

// read completes the query with what the flags say in words.
func (o *orderFlags) read(now time.Time) error {
	if o.status != "" {
		status, ok := dibs.ParseStatus(o.status)
		if !ok {
			return cli.Usagef("--status must be pending, confirmed, released or refunded, not %q", o.status)
		}
		o.q.Status = &status
	}
	switch o.orderType {
	case "":
	case "regular":
		o.q.OrderType = dibs.RegularOrder
	case "flash":
		o.q.OrderType = dibs.FlashOrder
	default:
		return cli.Usagef("--type must be regular or flash, not %q", o.orderType)
	}
	if o.limit < 1 {
		return cli.Usagef("--limit must be at least 1")
	}
	for _, at := range []struct {
		flag, text string
		to         *time.Time
	}{{"--since", o.since, &o.q.Since}, {"--until", o.until, &o.q.Until}} {
		if at.text == "" {
			continue
		}
		if ago, err := time.ParseDuration(at.text); err == nil {
			*at.to = now.Add(ago)
			continue
		}
		t, err := parseMoment(at.flag, at.text, now)
		if err != nil {
			return err
		}
		*at.to = t
	}
	return nil
}

// ordersTable lists claims.
func ordersTable(views []dibs.ClaimView) cli.Table {
	t := cli.Table{Head: []string{"ID", "CAMPAIGN", "PRODUCT", "USER", "QTY", "STATUS", "AMOUNT", "CREATED", "PAYMENT"}}
	for i := range views {
		v := &views[i]
		paid := ""
		if v.Payment != nil {
			paid = v.Payment.PaymentRef
		}
		t.Add(v.ID, orDash(v.CampaignID), orDash(v.ProductID), v.UserID, strconv.FormatInt(v.Quantity, 10), v.Status,
			orDash(amountText(v.Amount)), cli.Moment(v.CreatedAt), orDash(paid))
	}
	return t
}

// orDash keeps a column of a table that is empty.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
