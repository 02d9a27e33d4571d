package remote

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
)

// newStockCommand changes the stock of a campaign. --key makes it safe to repeat; without one a
// repeat changes the stock again. Added stock is in the ledger when the answer comes, and reaches the
// engine a moment later. The engine decides how much of a withdrawal is still left to take, so the
// server may refuse what the last look at the numbers allowed. The verb refuses a change of both
// units and items, and of neither.
func newStockCommand() *cobra.Command {
	var key string
	var change dibs.StockChange
	cmd := ask(&cobra.Command{
		Use:   "stock ID",
		Short: "Add to the stock of a campaign, or withdraw from it; never below what is granted",
		Example: `  dibs campaign stock phone-noon --delta 50 --why "one more pallet"
  dibs campaign stock front-row --items A7,A8`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, s *session) (api.CampaignView, error) {
		// A stock has units or items. Which of them this one has, the server knows.
		if (change.Delta == 0) == (len(change.Items) == 0) {
			return api.CampaignView{}, cli.Usagef("give --delta or --items")
		}
		change.Items = trimmed(change.Items)
		return s.Campaigns.ChangeStock(ctx, s.args[0], change, key)
	}, campaignColumns.one)
	f := cmd.Flags()
	f.Int64Var(&change.Delta, "delta", 0, "`N` units or codes to add; negative to withdraw")
	f.StringSliceVar(&change.Items, "items", nil, "Items to add: `A1,A2`")
	f.StringVar(&change.Why, "why", "", "A `TEXT` for the record")
	f.StringVar(&key, "key", "", "An idempotency `KEY`: the same change under the same key happens once")
	return cmd
}

// stockCount returns the size of a stock as the server has it, what is granted included.
func stockCount(s *api.StockView) int64 {
	switch {
	case s == nil:
		return 0
	case s.Units != nil:
		return *s.Units
	case s.Items != nil:
		return *s.Items
	case s.Codes != nil:
		return s.Codes.Count
	case s.RedPacket != nil:
		return s.RedPacket.Count
	}
	return 0
}

// wantedCount returns the size of a stock as a file asks for it, in the same measure as stockCount.
func wantedCount(s *dibs.StockSpec) int64 {
	switch {
	case s.Units != nil:
		return *s.Units
	case s.Codes != nil:
		return s.Codes.Count
	case s.RedPacket != nil:
		return s.RedPacket.Count
	}
	return int64(len(s.Items))
}
