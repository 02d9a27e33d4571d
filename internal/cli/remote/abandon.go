package remote

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/internal/cli"
)

// newAbandonCommand gives a shard up. Nothing brings back what it loses, so the user confirms the
// number of units that are unsold, which the refusal of another number tells, or says --yes.
func newAbandonCommand() *cobra.Command {
	var unsold int64
	var a campaigns.Abandonment
	var cmd *cobra.Command
	cmd = ask(&cobra.Command{
		Use:   "abandon-shard ID SHARD",
		Short: "Give up a shard whose deployment of the engine is lost for good",
		Long: `Give up a shard whose deployment of the engine (--engine of serve) is lost for good.
Another deployment gets the shard within seconds, with what the ledger has of it.
Claims that the lost one granted and that were not settled are lost. The server
refuses while the deployment answers. A shard of a campaign that is over can be
given up, too, when its deployment was taken out of --engine. A campaign of one
shard has the shard 0.`,
		Example: `  dibs campaign abandon-shard phone-noon 0 --unsold 120
  dibs campaign abandon-shard phone-noon 0 --yes`,
		Args: cobra.ExactArgs(2),
	}, func(ctx context.Context, s *session) (v api.CampaignView, err error) {
		shard, err := strconv.ParseUint(s.args[1], 10, 6)
		if err != nil {
			return v, cli.Usagef("SHARD is a number from 0 to 63")
		}
		if cmd.Flags().Changed("unsold") {
			a.Unsold = &unsold
		}
		return s.Campaigns.AbandonShard(ctx, s.args[0], int(shard), a)
	}, campaignColumns.one)
	f := cmd.Flags()
	f.Int64Var(&unsold, "unsold", 0, "How many units of the shard are unsold: `N`; another number is refused, and the refusal has the right one")
	f.BoolVar(&a.Yes, "yes", false, "Give the shard up, however many are unsold")
	return cmd
}
