package remote

import "github.com/spf13/cobra"

// WorkVerbs returns the verbs about campaigns and claims.
func WorkVerbs() []*cobra.Command {
	return []*cobra.Command{
		newProductCommand(), newCampaignCommand(), newClaimCommand(), newCouponCommand(), newAudienceCommand(), newFollowerCommand(),
		newAnnouncementCommand(), newLotteryCommand(), newRedPacketCommand(), newAccountCommand(), newEventsCommand(),
	}
}

// OperateVerbs returns the verbs for operating a server.
func OperateVerbs() []*cobra.Command {
	return []*cobra.Command{newAuditCommand(), newUserCommand()}
}
