package remote

import "github.com/spf13/cobra"

// WorkVerbs returns the verbs about campaigns and claims: a group of dibs --help.
func WorkVerbs() []*cobra.Command {
	return []*cobra.Command{
		newProductCommand(), newCampaignCommand(), newClaimCommand(), newCouponCommand(), newAudienceCommand(), newFollowerCommand(),
		newAnnouncementCommand(), newLotteryCommand(), newRedPacketCommand(), newAccountCommand(), newEventsCommand(),
	}
}

// Completed lets shells complete the ids of verbs by the server, and returns the verbs.
func Completed(verbs []*cobra.Command) []*cobra.Command {
	for _, verb := range verbs {
		complete(verb, "")
	}
	return verbs
}

// OperateVerbs returns the verbs for operating a server: a group of dibs --help.
func OperateVerbs() []*cobra.Command {
	return []*cobra.Command{newLoginCommand(), newLogoutCommand(), newApprovalCommand(), newAuditCommand(), newSessionCommand(), newUserCommand()}
}
