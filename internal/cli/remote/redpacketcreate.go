package remote

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
)

// newPacketCommand drafts a red packet on a server. It judges total, count and bounds as the server
// does, so that all their faults come at once and no call is made. The server judges the rest and, at
// publishing, whether the sender has the total. Without --id a repeat drafts a second red packet.
func newPacketCommand() *cobra.Command {
	var o packetFlags
	var window windowFlags
	var limit int64
	var shards int
	var publish bool
	spec := dibs.CampaignSpec{Kind: dibs.RedPacket, Limit: &limit, Shards: &shards}
	cmd := ask(&cobra.Command{
		Use:   "create --total AMOUNT --count N --title TITLE --ends TIME",
		Short: "Draft a red packet on a server, and publish it with --publish",
		Long: `Draft a red packet on a server, and publish it with --publish. Publishing takes the
total from the sender's account, or from the platform when there is no sender. At its
end, the unclaimed shares go back.`,
		Example: `  dibs redpacket create --id rain --title "Red packet rain" --total 100,000.00CNY --count 100000 \
    --sender host --ends +1h --publish`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, s *session) (v api.CampaignView, err error) {
		packet, unread := o.read(s.cmd)
		if err := cli.Faults(undividable, withFlags(unread, packet.Faults(""))); err != nil {
			return v, err
		}
		spec.Stock.RedPacket = &packet
		if err := window.read(time.Now(), &spec); err != nil {
			return v, err
		}
		return s.draft(ctx, spec, publish)
	}, campaignColumns.one)
	o.add(cmd)
	addNames(cmd, &spec)
	window.add(cmd)
	f := cmd.Flags()
	f.StringVar(&spec.SenderID, "sender", "", "The `USER` whose account pays for it (default the platform)")
	f.Int64Var(&limit, "limit", 1, "Each user may have at most `N` shares")
	f.IntVar(&shards, "shards", 1, "Divide the shares into `N` parts, 1 to 64, for as many cores of Redis")
	f.BoolVar(&publish, "publish", false, "Open it to users at once")
	return cli.Require(cmd, "total", "count", "title", "ends")
}
