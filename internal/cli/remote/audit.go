package remote

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newAuditCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "audit",
		Short: "See what administrators did",
		Long: `See what administrators did, by API or by the command line: the server at --url,
with the API key --admin-key or $DIBS_ADMIN_KEY, which must be an admin's.`,
	})
	cmd.AddCommand(newAuditListCommand())
	return cmd
}

func newAuditListCommand() *cobra.Command {
	var f dibs.ActFilter
	var output, since, until string
	limit := dibs.MaxPage
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what administrators did, newest first",
		Long: `List what administrators did, newest first. As JSON, each has the thing before
and after it.`,
		Example: `  dibs audit list --target /v1/campaigns/phone-noon --output json
  dibs audit list --action publish-campaign --since -24h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.Since, err = momentFlag("--since", since); err == nil {
				f.Until, err = momentFlag("--until", until)
			}
			if err != nil {
				return err
			}
			if limit < 1 {
				return cli.Usagef("--limit must be at least 1")
			}
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			views := []dibs.ActView{}
			for page := (dibs.Page{Limit: min(limit, dibs.MaxPage)}); len(views) < limit; {
				l, err := api.Acts(cmd.Context(), f, page)
				if err != nil {
					return ExplainCall(c, err)
				}
				views = append(views, l.Items...)
				if page.Cursor = l.NextCursor; page.Cursor == "" {
					break
				}
			}
			views = views[:min(len(views), limit)]
			t := actsTable(views)
			return cli.Show(cmd, output, views, &t)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.Key, "key", "", "Only those of the API key `ID`")
	fs.StringVar(&f.Action, "action", "", "Only those of an `OPERATION`, publish-campaign say")
	fs.StringVar(&f.Target, "target", "", "Only those on a `THING`, /v1/campaigns/phone-noon say")
	fs.StringVar(&since, "since", "", "Only those from a `TIME` on: 2026-12-01T04:00:00Z, or -1h ago")
	fs.StringVar(&until, "until", "", "Only those before a `TIME`")
	fs.IntVar(&limit, "limit", limit, "At most `N`")
	return addCall(cmd, &output)
}

func actsTable(views []dibs.ActView) cli.Table {
	t := cli.Table{Head: []string{"AT", "WHO", "ROLE", "ACTION", "TARGET", "STATUS", "ADDRESS"}}
	for i := range views {
		v := &views[i]
		status := strconv.Itoa(v.Status)
		if v.Status == 0 {
			status = "begun"
		} else if v.Reason != "" {
			status += " " + v.Reason
		}
		t.Add(cli.Moment(v.At), v.KeyName, string(v.Role), v.Action, v.Target, status, v.Address)
	}
	return t
}
