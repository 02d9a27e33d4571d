package remote

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newProductCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "product",
		Short: "Create and change what is sold or given",
		Long: `Create and change the products of a server: the one at --url, with the API key
--admin-key or $DIBS_ADMIN_KEY. Campaigns name the product that they offer; the
stock of a product itself is for regular orders.`,
	})
	cmd.AddCommand(newProductCreateCommand(), newProductListCommand(), newProductShowCommand(), newProductSetCommand())
	return cmd
}

// productFlags are a product's fields as flags describe them.
type productFlags struct {
	name, thumbnail, description, comment string
	price                                 int64
	currency                              string
	stock                                 int64
	payWithin                             time.Duration
	late                                  string
}

func (o *productFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "The product's `NAME`")
	f.StringVar(&o.thumbnail, "thumbnail", "", "The `ADDRESS` of a picture")
	f.StringVar(&o.description, "description", "", "What users read of it, a `TEXT`")
	f.StringVar(&o.comment, "comment", "", "What only admins read, a `TEXT`")
	f.Int64Var(&o.price, "price", 0, "The price per unit in minor units, `AMOUNT`")
	f.StringVar(&o.currency, "currency", "", "The price's currency, a `CODE` such as CNY")
	f.Int64Var(&o.stock, "stock", 0, "`N` units for regular orders")
	f.DurationVar(&o.payWithin, "pay-within", 0, "The `TIME` to pay a regular order, such as 15m; 0s for nothing to wait for")
	f.StringVar(&o.late, "late-payment", "", "What a payment after the deadline does: reclaim or refund_due, `RULE`")
}

// patch is what the flags that were given say.
func (o *productFlags) patch(cmd *cobra.Command) (p dibs.ProductPatch, err error) {
	given := cmd.Flags().Changed
	if given("price") != given("currency") {
		return p, cli.Usagef("--price and --currency go together")
	}
	for flag, to := range map[string]struct {
		field **string
		value *string
	}{
		"name": {&p.Name, &o.name}, "thumbnail": {&p.Thumbnail, &o.thumbnail},
		"description": {&p.Description, &o.description}, "comment": {&p.Comment, &o.comment},
	} {
		if given(flag) {
			*to.field = to.value
		}
	}
	if given("price") {
		p.Price = &dibs.Money{Amount: o.price, Currency: o.currency}
	}
	if given("stock") {
		p.Stock = &o.stock
	}
	if given("pay-within") {
		d := dibs.Duration(o.payWithin)
		p.PayWithin = &d
	}
	if given("late-payment") {
		rule := dibs.LatePayment(o.late)
		p.LatePayment = &rule
	}
	return p, nil
}

func newProductCreateCommand() *cobra.Command {
	var output, id, key string
	o := &productFlags{}
	cmd := &cobra.Command{
		Use:   "create --name NAME",
		Short: "Create a product",
		Example: `  dibs product create --id phone-x --name "Phone X" --price 99900 --currency CNY
  dibs product create --id mug --name Mug --price 1500 --currency CNY --stock 40 --pay-within 15m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := o.patch(cmd)
			if err != nil {
				return err
			}
			spec := dibs.ProductSpec{
				ID: id, Name: o.name, Thumbnail: o.thumbnail, Price: p.Price, Description: o.description, Comment: o.comment, Stock: o.stock,
				PayWithin: p.PayWithin, LatePayment: dibs.LatePayment(o.late),
			}
			return productCall(cmd, output, func(ctx context.Context, api *client.Client) (dibs.ProductView, error) {
				return api.CreateProduct(ctx, spec, key)
			})
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "Its `ID`, 1-64 characters of A-Z a-z 0-9 . _ - (default one that is made up)")
	o.add(cmd)
	cmd.Flags().StringVar(&key, "key", "", "An idempotency `KEY`: the same product under the same key is made once")
	return addCall(cmd, &output)
}

func newProductSetCommand() *cobra.Command {
	var output string
	o := &productFlags{}
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Change a product; what is not named stays",
		Example: `  dibs product set phone-x --price 89900 --currency CNY
  dibs product set mug --stock 60`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := o.patch(cmd)
			if err == nil && p == (dibs.ProductPatch{}) {
				err = cli.Usagef("name what is to change; %s --help lists the flags", cmd.CommandPath())
			}
			if err != nil {
				return err
			}
			return productCall(cmd, output, func(ctx context.Context, api *client.Client) (dibs.ProductView, error) {
				return api.PatchProduct(ctx, args[0], p)
			})
		},
	}
	o.add(cmd)
	return addCall(cmd, &output)
}

func newProductShowCommand() *cobra.Command {
	var output string
	return addCall(&cobra.Command{
		Use:   "show ID",
		Short: "Show a product",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return productCall(cmd, output, func(ctx context.Context, api *client.Client) (dibs.ProductView, error) {
				return api.Product(ctx, args[0])
			})
		},
	}, &output)
}

func newProductListCommand() *cobra.Command {
	var output string
	return addCall(&cobra.Command{
		Use:   "list",
		Short: "List all products by their ids",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			views := []dibs.ProductView{}
			for page := (dibs.Page{Limit: dibs.MaxPage}); ; {
				l, err := api.Products(cmd.Context(), page)
				if err != nil {
					return ExplainCall(c, err)
				}
				views = append(views, l.Items...)
				if page.Cursor = l.NextCursor; page.Cursor == "" {
					break
				}
			}
			t := cli.Table{Head: []string{"ID", "PRICE", "STOCK", "LEFT", "PAY WITHIN", "NAME"}}
			for i := range views {
				v := &views[i]
				t.Add(v.ID, priceText(v.Price), countText(v.Stock), countText(v.StockLeft), payText(v.PayWithin), v.Name)
			}
			return cli.Show(cmd, output, views, &t)
		},
	}, &output)
}

// productCall runs one call of a verb and shows its product.
func productCall(cmd *cobra.Command, output string, do func(context.Context, *client.Client) (dibs.ProductView, error)) error {
	c, api, err := Connect(cmd)
	if err != nil {
		return err
	}
	v, err := do(cmd.Context(), api)
	if err != nil {
		return ExplainCall(c, err)
	}
	t := cli.Table{}
	for _, line := range [][2]string{
		{"id", v.ID},
		{"name", v.Name},
		{"price", priceText(v.Price)},
		{"stock", countText(v.Stock)},
		{"left", countText(v.StockLeft)},
		{"pay within", payText(v.PayWithin)},
		{"late payment", string(v.LatePayment)},
		{"thumbnail", v.Thumbnail},
		{"description", v.Description},
		{"comment", v.Comment},
	} {
		if line[1] != "" {
			t.Add(line[0], line[1])
		}
	}
	return cli.Show(cmd, output, v, &t)
}

func priceText(m *dibs.Money) string {
	if m == nil {
		return "-"
	}
	return fmt.Sprintf("%d %s", m.Amount, m.Currency)
}

func countText(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func payText(d *dibs.Duration) string {
	if d == nil {
		return "-"
	}
	return time.Duration(*d).String()
}
