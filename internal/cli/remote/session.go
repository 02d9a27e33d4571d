package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"

	"github.com/dibs-dev/dibs/api"
)

// Connect returns a client of the server that a verb's settings name, and the
// server's address. It calls nothing yet.
func Connect(cmd *cobra.Command) (admin *client.Client, url string, err error) {
	c, err := config.Load(cmd, config.ClientRules)
	if err != nil {
		return nil, "", err
	}
	if admin, err = client.New(c.URL, client.Options{AdminKey: c.AdminKey}); err != nil {
		return nil, "", cli.Usage(err)
	}
	return admin, c.URL, nil
}

// Explain adds to the error of a call what the user can do about it, and names the
// fields that the server refuses.
func Explain(url string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no server answers at %s: start one with dibs dev or dibs serve, or name another --url", url)
	case errors.Is(err, &dibs.Error{Reason: dibs.Unauthenticated}), errors.Is(err, dibs.ErrForbidden):
		return fmt.Errorf("the server at %s does not take this admin key: %w", url, err)
	}
	var refusal *client.Error
	if errors.As(err, &refusal) && len(refusal.Errors) > 0 {
		// The detail only sums these up.
		faults := make([]string, len(refusal.Errors))
		for i, f := range refusal.Errors {
			faults[i] = place(f.Pointer) + " " + f.Detail
		}
		return fmt.Errorf("%s: %s", refusal.Reason, strings.Join(faults, "; "))
	}
	return err
}

// place returns a JSON pointer in the user's words: a line of their file, or a
// field.
func place(pointer string) string {
	if line, is := strings.CutPrefix(pointer, "/lines/"); is {
		return "line " + line
	}
	return strings.TrimPrefix(pointer, "/")
}

// session is a verb's conversation with the server at url.
type session struct {
	*client.Client
	url  string
	cmd  *cobra.Command
	args []string
}

// note tells the user something beside the answer.
func (s *session) note(text string) { s.cmd.PrintErrln("dibs: " + text) }

// noteReplay tells the user that a call with the same key or name was made before.
func (s *session) noteReplay(replayed bool) {
	if replayed {
		s.note("this had been done before; nothing changed")
	}
}

// connected makes cmd a verb that calls the server, writes its output itself, and
// explains its errors.
func connected(cmd *cobra.Command, do func(context.Context, *session) error) *cobra.Command {
	config.AddFlags(cmd, config.ClientKeys)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		admin, url, err := Connect(cmd)
		if err != nil {
			return err
		}
		return do(cmd.Context(), &session{admin, url, cmd, args})
	}
	return cmd
}

// talk makes cmd a verb that calls the server and writes its output itself.
func talk(cmd *cobra.Command, do func(context.Context, *session) error) *cobra.Command {
	return connected(cmd, func(ctx context.Context, s *session) error { return Explain(s.url, do(ctx, s)) })
}

// ask makes cmd a verb that calls the server and shows the answer, as JSON or by its
// table. Nearly every verb is one.
func ask[T any](cmd *cobra.Command, do func(context.Context, *session) (T, error), table func(*T) *cli.Table) *cobra.Command {
	return talk(cli.WithOutput(cmd), func(ctx context.Context, s *session) error {
		v, err := do(ctx, s)
		if err != nil {
			return err
		}
		return cli.Show(s.cmd, v, table(&v))
	})
}

// byID makes cmd a verb whose one call takes the ID that the user names.
func byID[T any](use, short string, do func(*client.Client, context.Context, string) (T, error), table func(*T) *cli.Table) *cobra.Command {
	return ask(&cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}, func(ctx context.Context, s *session) (T, error) {
		return do(s.Client, ctx, s.args[0])
	}, table)
}

// all reads a list page by page, at most limit items of it; 0 reads the whole list.
// It returns no nil, so that an empty list is [] as JSON.
func all[T any](limit int, read func(dibs.Page) (api.ListView[T], error)) ([]T, error) {
	items := []T{}
	page := dibs.Page{Limit: dibs.MaxPage}
	if limit > 0 {
		page.Limit = min(limit, dibs.MaxPage)
	}
	for {
		l, err := read(page)
		if err != nil {
			return nil, err
		}
		items = append(items, l.Items...)
		if limit > 0 && len(items) >= limit {
			return items[:limit], nil
		}
		if page.Cursor = l.NextCursor; page.Cursor == "" {
			return items, nil
		}
	}
}
