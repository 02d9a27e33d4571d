package remote

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
)

// newPacketCommand drafts a red packet on a server.
func newPacketCommand() *cobra.Command {
	var o packetOrder
	var output, starts, ends string
	var limit int64
	var publish bool
	spec := dibs.CampaignSpec{Kind: dibs.RedPacket}
	cmd := &cobra.Command{
		Use:   "create --total AMOUNT --count N --title TITLE --ends TIME",
		Short: "Draft a red packet on a server, and publish it with --publish",
		Long: `Draft a red packet on a server, and publish it with --publish. Publishing takes
the total from the sender's account, or from the platform without a sender. When it
ends, what nobody took goes back.`,
		Example: `  dibs redpacket create --id rain --title "Red packet rain" --total 10000000 --count 100000 \
    --sender host --ends +1h --publish`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			packet, unread := o.redPacket()
			if err := cli.Faults("this red packet cannot be divided:", withFlags(unread, packet.Faults(""))); err != nil {
				return err
			}
			spec.Stock.RedPacket = &packet
			var err error
			if spec.StartsAt, err = parseMoment("--starts", starts, time.Now()); err != nil {
				return err
			}
			if spec.EndsAt, err = parseMoment("--ends", ends, time.Now()); err != nil {
				return err
			}
			spec.Limit = &limit
			return call(cmd, output, func(ctx context.Context, api *client.Client) (dibs.CampaignView, error) {
				v, err := api.CreateCampaign(ctx, spec, "")
				if err == nil && publish {
					v, err = api.Publish(ctx, v.ID)
				}
				return v, err
			})
		},
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&spec.ID, "id", "", "The campaign's `ID` (default made up)")
	f.StringVar(&spec.Title, "title", "", "Its `TITLE`")
	f.StringVar(&spec.SenderID, "sender", "", "The `USER` whose account pays for it (default the platform)")
	f.StringVar(&starts, "starts", "now", "The first moment: a `TIME` such as 2026-12-01T04:00:00Z, now, or +1h from now")
	f.StringVar(&ends, "ends", "", "The first moment after it: a `TIME` like that of --starts")
	f.Int64Var(&limit, "limit", 1, "The most shares one user may have, `N`")
	f.BoolVar(&publish, "publish", false, "Open it to users at once")
	return addCall(cmd, &output)
}
