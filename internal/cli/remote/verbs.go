package remote

import "github.com/spf13/cobra"

// WorkVerbs returns the verbs for what is sold, given and promised.
func WorkVerbs() []*cobra.Command {
	return []*cobra.Command{
		newProductCommand(), newCampaignCommand(), newClaimCommand(), newCouponCommand(), newAudienceCommand(), newFollowerCommand(),
		newAnnouncementCommand(), newLotteryCommand(), newRedPacketCommand(), newAccountCommand(), newEventsCommand(),
	}
}

// OperateVerbs returns the verbs for those who run the server.
func OperateVerbs() []*cobra.Command {
	return []*cobra.Command{newAuditCommand(), newUserCommand()}
}
