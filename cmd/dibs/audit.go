package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
)

func newAuditCommand() *cobra.Command {
	cmd := family(&cobra.Command{
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
				return usagef("--limit must be at least 1")
			}
			c, api, err := connect(cmd)
			if err != nil {
				return err
			}
			views := []dibs.ActView{}
			for page := (dibs.Page{Limit: min(limit, dibs.MaxPage)}); len(views) < limit; {
				l, err := api.Acts(cmd.Context(), f, page)
				if err != nil {
					return explainCall(c, err)
				}
				views = append(views, l.Items...)
				if page.Cursor = l.NextCursor; page.Cursor == "" {
					break
				}
			}
			views = views[:min(len(views), limit)]
			t := actsTable(views)
			return show(cmd, output, views, &t)
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

// momentFlag reads a flag's time; zero when it was not given.
func momentFlag(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	now := time.Now()
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(ago), nil
	}
	return parseMoment(flag, text, now)
}

func actsTable(views []dibs.ActView) table {
	t := table{head: []string{"AT", "WHO", "ROLE", "ACTION", "TARGET", "STATUS", "ADDRESS"}}
	for i := range views {
		v := &views[i]
		status := strconv.Itoa(v.Status)
		if v.Status == 0 {
			status = "begun"
		} else if v.Reason != "" {
			status += " " + v.Reason
		}
		t.add(moment(v.At), v.KeyName, string(v.Role), v.Action, v.Target, status, v.Address)
	}
	return t
}
