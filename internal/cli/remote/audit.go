package remote

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
)

// newAuditCommand returns the verbs on /v1/audit.
func newAuditCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "audit",
		Short: "Show what administrators did, and check that nothing was changed in it",
		Long: `Show what administrators did, by the API or by the command line: the log of the
server at --url, with an admin's API key in --admin-key or $DIBS_ADMIN_KEY. The log
is a chain of hashes; verify checks it, and export writes it.`,
	}, newAuditListCommand(), newAuditVerifyCommand(), newAuditExportCommand())
}

// newAuditListCommand searches the admin log, page by page, up to --limit entries. The filters are
// the server's; the verb only reads the times. Its table leaves out what an action changed; the JSON
// has it, before and after.
func newAuditListCommand() *cobra.Command {
	var f access.AdminActionFilter
	var since, until string
	limit := dibs.MaxPage
	cmd := ask(&cobra.Command{
		Use:   "list",
		Short: "List what administrators did, newest first",
		Long: `List what administrators did, newest first. As JSON, each entry shows its target
before and after.`,
		Example: `  dibs audit list --target /v1/campaigns/phone-noon --output json
  dibs audit list --action publish-campaign --since -24h`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, s *session) ([]access.AdminActionView, error) {
		if err := checkLimit(limit); err != nil {
			return nil, err
		}
		if err := readMoments(time.Now(), momentFlag{"--since", since, &f.Since}, momentFlag{"--until", until, &f.Until}); err != nil {
			return nil, err
		}
		return upTo(s, limit, func(p dibs.Page) (api.ListView[access.AdminActionView], error) { return s.Audit.AdminLog(ctx, f, p) })
	}, actColumns.table)
	// A thing is named by its path in the API, as the log names it.
	fs := cmd.Flags()
	fs.StringVar(&f.Key, "key", "", "Only what the API key `ID` did")
	fs.StringVar(&f.Action, "action", "", "Only this `OPERATION`, such as publish-campaign")
	fs.StringVar(&f.Target, "target", "", "Only what changed this `THING` or what is under it, such as /v1/campaigns/phone-noon")
	fs.StringVar(&since, "since", "", "Only from this `TIME` on: 2026-12-01T04:00:00Z, or -1h for an hour ago")
	fs.StringVar(&until, "until", "", "Only before this `TIME`")
	fs.IntVar(&limit, "limit", limit, "At most `N`")
	return cmd
}

// actColumns show admin actions, a row for each.
var actColumns = columnsOf(func(v *access.AdminActionView) []any {
	status := strconv.Itoa(v.Status)
	if v.Status == 0 {
		// The server records an action before it does it, so an entry without a status is of
		// an action under way, or of one that a crash cut short.
		status = "begun"
	} else if v.Reason != "" {
		status += " " + v.Reason
	}
	return []any{v.At, v.KeyName, v.Role, v.Action, v.Target, status, v.Address}
}, "AT", "WHO", "ROLE", "ACTION", "TARGET", "STATUS", "ADDRESS")
