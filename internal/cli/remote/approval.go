package remote

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
)

// newApprovalCommand returns the verbs on /v1/approvals.
func newApprovalCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "approval",
		Short: "Approve or reject acts that need a second person",
		Long: `Approve or reject acts that need a second person, on the server at --url with an
admin's API key in --admin-key or $DIBS_ADMIN_KEY. dibs serve --approve says which acts
do. The key must be another one than the key that asked, and have another name.`,
	}, listAll("list", "List the approvals of the last week, newest first",
		func(c *client.Client) pages[access.ApprovalView] { return c.Approvals.List }, approvalColumns.table),
		newDecisionCommand("approve ID", "Approve an act, and do it", func(s *session) decide { return s.Approvals.Approve }),
		newDecisionCommand("reject ID", "Reject an act, which the key that asked may do too", func(s *session) decide { return s.Approvals.Reject }))
}

// decide is a call that decides about an approval.
type decide func(ctx context.Context, id, why string) (client.Outcome, error)

// newDecisionCommand decides about one approval, once.
func newDecisionCommand(use, short string, how func(*session) decide) *cobra.Command {
	var why string
	cmd := ask(&cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}, func(ctx context.Context, s *session) (client.Outcome, error) {
		return how(s)(ctx, s.args[0], why)
	}, func(v *client.Outcome) *cli.Table {
		t := cli.Facts("approval", v.ApprovalID, "state", v.State)
		if v.Status != 0 {
			t.Add("status", v.Status)
		}
		return t
	})
	cmd.Flags().StringVar(&why, "why", "", "The `REASON`, for other administrators")
	return cmd
}

// approvalColumns show approvals.
var approvalColumns = columnsOf(func(v *access.ApprovalView) []any {
	return []any{
		v.ID, v.State, v.Action, v.AskedName, v.AskedAt, v.ExpiresAt, cli.OrDash(v.DecidedName), cli.OrDash(string(v.Call)),
	}
}, "ID", "STATE", "ACTION", "ASKED BY", "ASKED AT", "EXPIRES", "DECIDED BY", "CALL")
