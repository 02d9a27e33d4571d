package remote

import (
	"context"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
)

func newAudienceCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "audience",
		Short: "Import lists of users for whom campaigns are",
		Long: `Import lists of users for whom campaigns are, and see which there are: the server
at --url, with the API key --admin-key or $DIBS_ADMIN_KEY. A campaign is for one
when its gate says so: {"audience":{"list":"vip"}}.`,
	})
	cmd.AddCommand(newAudienceImportCommand(), eventsVerb("show ID", "Show a list of users", cobra.ExactArgs(1), showAudience),
		eventsVerb("list", "List the lists of users by id", cobra.NoArgs, listAudiences))
	return cmd
}

func newAudienceImportCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "import ID FILE",
		Short: "Replace a list by the users of a CSV file, all of them or none",
		Long: `Replace a list by the users of a CSV file: one on each line, 10,000,000 at most; a
first line that says user or user_id is left out. All of them count from one
moment on, or, when lines cannot be read, none: the first of these are named.`,
		Example: `  dibs audience import vip users.csv`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			v, err := sendFile(cmd, args[1], "users", func(file *os.File, told func(int64)) (dibs.AudienceView, error) {
				return api.ImportAudience(cmd.Context(), args[0], file, told)
			})
			if err != nil {
				return ExplainCall(c, err)
			}
			t := audienceTable(&v)
			return cli.Show(cmd, output, v, &t)
		},
	}
	return addCall(cmd, &output)
}

func audienceTable(v *dibs.AudienceView) cli.Table {
	t := cli.Table{}
	t.Add("id", v.ID)
	t.Add("users", strconv.FormatInt(v.Users, 10))
	if v.Duplicates != nil {
		t.Add("duplicates", strconv.FormatInt(*v.Duplicates, 10))
	}
	t.Add("updated", cli.Moment(v.UpdatedAt))
	return t
}

func showAudience(ctx context.Context, api *client.Client, args []string) (any, cli.Table, error) {
	v, err := api.Audience(ctx, args[0])
	return v, audienceTable(&v), err
}

func listAudiences(ctx context.Context, api *client.Client, _ []string) (any, cli.Table, error) {
	t := cli.Table{Head: []string{"ID", "USERS", "UPDATED"}}
	views := []dibs.AudienceView{}
	for page := (dibs.Page{Limit: dibs.MaxPage}); ; {
		l, err := api.Audiences(ctx, page)
		if err != nil {
			return nil, t, err
		}
		for i := range l.Items {
			v := &l.Items[i]
			views = append(views, *v)
			t.Add(v.ID, strconv.FormatInt(v.Users, 10), cli.Moment(v.UpdatedAt))
		}
		if page.Cursor = l.NextCursor; page.Cursor == "" {
			return views, t, nil
		}
	}
}
