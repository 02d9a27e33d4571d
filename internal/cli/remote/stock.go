package remote

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newStockCommand() *cobra.Command {
	var output, key string
	var change dibs.StockChange
	cmd := &cobra.Command{
		Use:   "stock ID",
		Short: "Restock a campaign, or withdraw from it; never below what is granted",
		Example: `  dibs campaign stock phone-noon --delta 50 --why "one more pallet"
  dibs campaign stock front-row --items A7,A8`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (change.Delta == 0) == (len(change.Items) == 0) {
				return cli.Usagef("give --delta or --items")
			}
			return call(cmd, output, func(ctx context.Context, api *client.Client) (dibs.CampaignView, error) {
				return api.ChangeStock(ctx, args[0], change, key)
			})
		},
	}
	f := cmd.Flags()
	f.Int64Var(&change.Delta, "delta", 0, "`N` units or codes to add; negative to withdraw")
	f.StringSliceVar(&change.Items, "items", nil, "Items to add: `A1,A2`")
	f.StringVar(&change.Why, "why", "", "A `TEXT` for the record")
	f.StringVar(&key, "key", "", "An idempotency `KEY`: the same change under the same key happens once")
	return addCall(cmd, &output)
}
