package remote

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/gate/audience"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
)

// newAudienceCommand returns the verbs on /v1/audiences.
func newAudienceCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "audience",
		Short: "Import the lists of users that campaigns are open to",
		Long: `Import the lists of users that campaigns are open to, and show them: the lists of
the server at --url, with the API key --admin-key or $DIBS_ADMIN_KEY. A campaign is
open to a list alone when its gate says so: {"audience":{"list":"vip"}}.`,
	}, newAudienceImportCommand(), byID("show ID", "Show a list of users",
		of(func(c *client.Client) one[api.AudienceView] { return c.Audiences.Get }), audienceTable),
		listAll("list", "List the lists of users by id", func(c *client.Client) pages[api.AudienceView] { return c.Audiences.List },
			columnsOf(func(v *api.AudienceView) []any { return []any{v.ID, v.Users, v.UpdatedAt} }, "ID", "USERS", "UPDATED").table))
}

// newAudienceImportCommand replaces a list, or makes it. It may be repeated with the same file. The
// answer comes when the list is stored; nodes load it within moments, and judge claims by the former
// until then. A file without users, as an export that failed leaves, would shut everybody out: that
// takes --empty.
func newAudienceImportCommand() *cobra.Command {
	var empty bool
	cmd := ask(&cobra.Command{
		Use:   "import ID FILE",
		Short: "Replace a list by the users of a CSV file, all of them or none",
		Long: `Replace a list by the users of a CSV file: one on each line, 10,000,000 at most. A
first line that says user or user_id is skipped. The whole list takes effect at
once. When the server cannot read some lines, it names the first of them and
changes nothing. A file without users needs --empty: nobody is on the list then.`,
		Example: `  dibs audience import vip users.csv`,
		Args:    cobra.ExactArgs(2),
	}, func(ctx context.Context, s *session) (api.AudienceView, error) {
		return sendFile(s, s.args[1], "users", func(file *os.File, progress func(int64)) (v api.AudienceView, err error) {
			if !empty && audience.HasNone(file) {
				return v, cli.Usagef("%s: the file has no users: nobody would be on the list; --empty says that this is meant", file.Name())
			}
			if _, err = file.Seek(0, io.SeekStart); err != nil {
				return v, err
			}
			return s.Audiences.Import(ctx, s.args[0], file, progress)
		})
	}, audienceTable)
	cmd.Flags().BoolVar(&empty, "empty", false, "Let a file without users empty the list")
	return cmd
}

// audienceTable shows a list of users. Only an import counts duplicates.
func audienceTable(v *api.AudienceView) *cli.Table {
	t := cli.Facts("id", v.ID, "users", v.Users)
	if v.Duplicates != nil {
		t.Add("duplicates", *v.Duplicates)
	}
	t.Add("updated", v.UpdatedAt)
	return t
}
