package remote

import (
	"context"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
)

// newProductCommand returns the verbs on /v1/products.
func newProductCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "product",
		Short: "Create and change the products that are sold or given",
		Long: `Create and change the products of the server at --url, with the API key --admin-key
or $DIBS_ADMIN_KEY. A campaign names the product that it offers; the stock of the
product itself is for regular orders.`,
	}, newProductCreateCommand(), newProductListCommand(), byID("show ID", "Show a product",
		of(func(c *client.Client) one[api.ProductView] { return c.Products.Get }), productTable), newProductSetCommand())
}

// productFlags are a product's fields as flags describe them, for create and for set. Whether a flag
// was given is asked of the command, since an empty text and 0 are values.
type productFlags struct {
	name, thumbnail, description, comment string
	price                                 moneyFlags
	stock                                 int64
	payWithin                             time.Duration
	late, status                          string
}

// add adds the flags of the fields that can be changed.
func (o *productFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "The product's `NAME`")
	f.StringVar(&o.thumbnail, "thumbnail", "", "The `ADDRESS` of a picture")
	f.StringVar(&o.description, "description", "", "A `TEXT` for users")
	f.StringVar(&o.comment, "comment", "", "A `TEXT` for admins")
	o.price.add(cmd, "price", "The price of a unit, an `AMOUNT` such as 999.00CNY", "")
	f.Var(cli.OneOf(&o.status, dibs.OnSale, dibs.OffSale), "status", "on_sale, or off_sale: it takes no order, and no campaign of it is published")
	f.Int64Var(&o.stock, "stock", 0, "`N` units for regular orders")
	f.DurationVar(&o.payWithin, "pay-within", 0, "The `TIME` to pay a regular order, such as 15m; 0s for no payment needed")
	f.Var(cli.OneOf(&o.late, string(dibs.Reclaim), string(dibs.RefundDue)), "late-payment", "The `RULE` for a payment after the deadline: reclaim or refund_due")
}

// patch returns the fields of the flags that were given; the others are nil, and stay.
func (o *productFlags) patch(cmd *cobra.Command) (p dibs.ProductPatch, err error) {
	if p.Price, err = o.price.value(cmd); err != nil {
		return p, err
	}
	p.Name, p.Thumbnail = given(cmd, "name", o.name), given(cmd, "thumbnail", o.thumbnail)
	p.Description, p.Comment = given(cmd, "description", o.description), given(cmd, "comment", o.comment)
	p.Stock, p.PayWithin = given(cmd, "stock", o.stock), givenDuration(cmd, "pay-within", o.payWithin)
	p.LatePayment = given(cmd, "late-payment", dibs.LatePayment(o.late))
	p.Status = given(cmd, "status", o.status)
	return p, nil
}

// newProductCreateCommand creates a product. --id or --key makes it safe to repeat: under the same id
// the server refuses the second one, under the same key it shows the first.
func newProductCreateCommand() *cobra.Command {
	var id, key string
	o := &productFlags{}
	cmd := ask(&cobra.Command{
		Use:   "create --name NAME",
		Short: "Create a product",
		Example: `  dibs product create --id phone-x --name "Phone X" --price 999.00CNY
  dibs product create --id mug --name Mug --price 15CNY --stock 40 --pay-within 15m`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, s *session) (api.ProductView, error) {
		p, err := o.patch(s.cmd)
		if err != nil {
			return api.ProductView{}, err
		}
		return s.Products.Create(ctx, dibs.ProductSpec{
			ID: id, Name: o.name, Thumbnail: o.thumbnail, Price: p.Price, Description: o.description, Comment: o.comment, Stock: o.stock,
			PayWithin: p.PayWithin, LatePayment: dibs.LatePayment(o.late), Status: o.status,
		}, key)
	}, productTable)
	o.add(cmd)
	cmd.Flags().StringVar(&id, "id", "", "Its `ID`, 1-64 characters of A-Z a-z 0-9 . _ - (default generated)")
	cmd.Flags().StringVar(&key, "key", "", "An idempotency `KEY`: the same product under the same key is created once")
	return cli.Require(cmd, "name")
}

// newProductSetCommand changes the fields of the given flags; the others stay. It may be repeated.
// Without any flag it refuses: a call that changes nothing is a mistake. A published campaign keeps
// the price of its publishing.
func newProductSetCommand() *cobra.Command {
	o := &productFlags{}
	cmd := ask(&cobra.Command{
		Use:   "set ID",
		Short: "Change the named fields of a product",
		Example: `  dibs product set phone-x --price 899CNY
  dibs product set mug --stock 60`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, s *session) (v api.ProductView, err error) {
		p, err := o.patch(s.cmd)
		// All fields are pointers, so they say whether any flag was given.
		if err == nil && reflect.ValueOf(p).IsZero() {
			err = cli.Usagef("name what is to change; %s --help lists the flags", s.cmd.CommandPath())
		}
		if err != nil {
			return v, err
		}
		return s.Products.Patch(ctx, s.args[0], p)
	}, productTable)
	o.add(cmd)
	return cmd
}

// newProductListCommand lists all products, page by page.
func newProductListCommand() *cobra.Command {
	return listAll("list", "List all products by their ids", func(c *client.Client) pages[api.ProductView] { return c.Products.List },
		columnsOf(func(v *api.ProductView) []any {
			return []any{
				v.ID, v.Status, cli.OrDash(amountText(v.Price)), countText(v.Stock), countText(v.StockLeft), payText(v.PayWithin), v.Name,
			}
		}, "ID", "STATUS", "PRICE", "STOCK", "LEFT", "PAY WITHIN", "NAME").table)
}

// productTable shows a product, a row for each of its properties.
func productTable(v *api.ProductView) *cli.Table {
	t := cli.NewTable()
	t.Field("id", v.ID)
	t.Field("name", v.Name)
	t.Field("status", v.Status)
	t.Field("price", cli.OrDash(amountText(v.Price)))
	t.Field("stock", countText(v.Stock))
	t.Field("left", countText(v.StockLeft))
	t.Field("pay within", payText(v.PayWithin))
	t.Field("late payment", v.LatePayment)
	t.Field("thumbnail", v.Thumbnail)
	t.Field("description", v.Description)
	t.Field("comment", v.Comment)
	return t
}

// countText shows a number of units; a dash for a product without a stock of its own.
func countText(n *int64) string {
	if n == nil {
		return "-"
	}
	return cli.Thousands(*n)
}

// payText shows the time to pay; a dash for none.
func payText(d *dibs.Duration) string {
	if d == nil {
		return "-"
	}
	return time.Duration(*d).String()
}
