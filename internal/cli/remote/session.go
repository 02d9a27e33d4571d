package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
	"github.com/dibs-dev/dibs/internal/cli/signedin"

	"github.com/dibs-dev/dibs/api"
)

// Connect returns a client of the server that a verb's settings name, and the server's address. It
// calls nothing yet: a server that is not there shows with the first call. Settings that are wrong
// are a fault of the command line, with exit code 2. A verb that public marks needs no key.
func Connect(cmd *cobra.Command) (admin *client.Client, url string, err error) {
	var saved string
	var unreadable error
	rules := config.ClientRules(func(url string) bool {
		saved, unreadable = savedKey(cmd, url)
		return saved != "" || unreadable != nil
	})
	if cmd.Annotations[keyless] != "" {
		rules = config.CallRules
	}
	c, err := config.Load(cmd, rules)
	if err != nil {
		return nil, "", err
	}
	if unreadable != nil {
		return nil, "", unreadable
	}
	admin, err = newClient(c, cmp.Or(c.AdminKey, saved))
	return admin, c.URL, err
}

// keyless annotates the verbs that need no key.
const keyless = "keyless"

// public marks a verb that calls only what everybody may, and returns the verb. It keeps --admin-key,
// which it does not need.
func public(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{keyless: "true"}
	return cmd
}

// savedKey is the key that dibs login brought for a server; empty for none.
func savedKey(cmd *cobra.Command, url string) (string, error) {
	store, err := signedin.Open(cli.Getenv(cmd, configHome))
	if err != nil {
		// Without a home there is no file.
		return "", nil //nolint:nilerr // the rule says that a key is needed
	}
	k, ok, err := store.Find(url)
	if ok && !time.Now().Before(k.ExpiresAt) {
		err = cli.Usagef("your sign-in at %s has ended: run dibs login, or give --admin-key", url)
	}
	return k.Secret, err
}

// newClient returns a client of the server at the settings' url.
func newClient(c *config.Config, key string) (*client.Client, error) {
	opts := client.Options{AdminKey: key}
	// The rules have read the same files.
	if way, faults := c.CallTLS(); len(faults) == 0 && way != nil {
		transport := client.NewTransport()
		transport.TLSClientConfig = way
		opts.HTTPClient = &http.Client{Transport: transport}
	}
	admin, err := client.New(c.URL, opts)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return admin, nil
}

// Explain adds to the error of a call what the user can do about it, and names the fields that the
// server refuses. It changes no exit code: whatever the server refuses exits with 1. It wraps the
// error where callers may look for its reason.
func Explain(url string, err error) error {
	switch {
	case err == nil:
		return nil
	// Nobody listens there, so nothing can have happened: it is safe to repeat.
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no server answers at %s: start one with dibs dev or dibs serve, or name another --url", url)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("the server at %s speaks plain HTTP: write http:// in --url", url)
	case errors.As(err, new(*net.DNSError)):
		return fmt.Errorf("the name of the server at %s cannot be looked up: correct --url, or look at this machine's DNS", url)
	// The reason stays: a key may be unknown or ended.
	case errors.Is(err, &dibs.Error{Reason: dibs.Unauthenticated}):
		return fmt.Errorf("the server at %s does not take this admin key: %w; or the address is for users alone: administrators have one of their own (admin_listen), with --behind-proxy too", url, err)
	// The key is known, and its role or scope is too small.
	case errors.Is(err, dibs.ErrForbidden):
		return fmt.Errorf("the server at %s does not let this admin key do that: %w", url, err)
	}
	var refusal *client.Error
	if errors.As(err, &refusal) && len(refusal.Errors) > 0 {
		// The problem's own detail only sums these up.
		faults := make([]string, len(refusal.Errors))
		for i, f := range refusal.Errors {
			faults[i] = place(f.Pointer) + " " + f.Detail
		}
		return fmt.Errorf("%s: %s", refusal.Reason, strings.Join(faults, "; "))
	}
	return err
}

// place returns a JSON pointer in the user's words: a line of their file, a field, or the flag that a
// verb has put there.
func place(pointer string) string {
	if line, is := strings.CutPrefix(pointer, "/lines/"); is {
		return "line " + line
	}
	return strings.TrimPrefix(pointer, "/")
}

// session is one run of a verb against the server at url: its client, command and arguments. Verbs
// whose calls run at the same time share it: nothing in it changes, and a verb that writes to the
// output from several goroutines guards that itself.
type session struct {
	*client.Client
	url  string
	cmd  *cobra.Command
	args []string
}

// note tells the user something beside the answer, on the error output, so that --output json stays
// one document.
func (s *session) note(text string) { s.cmd.PrintErrln("dibs: " + text) }

// noteReplay tells the user that a call with the same key or name was made before. The answer is that
// of the first call, and the exit code 0: a script that repeats must not fail.
func (s *session) noteReplay(replayed bool) {
	if replayed {
		s.note("this had been done before; nothing changed")
	}
}

// connected makes cmd a verb that calls the server, writes its output itself, and explains its errors
// itself. It adds the flags of the connection.
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

// talk makes cmd a verb that calls the server and writes its output itself, as streams and reports
// do. Its errors are explained by Explain.
func talk(cmd *cobra.Command, do func(context.Context, *session) error) *cobra.Command {
	return connected(cmd, func(ctx context.Context, s *session) error { return Explain(s.url, byFlags(cmd, do(ctx, s))) })
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

// one is a call of a part of the client that takes an ID.
type one[T any] func(ctx context.Context, id string) (T, error)

// of makes such a call one that byID takes: byID gets its client only when the verb runs.
func of[T any](part func(*client.Client) one[T]) func(*client.Client, context.Context, string) (T, error) {
	return func(c *client.Client, ctx context.Context, id string) (T, error) { return part(c)(ctx, id) }
}

// pages is a call of a part of the client that lists things, a page at a time.
type pages[T any] func(ctx context.Context, p dibs.Page) (api.ListView[T], error)

// listAll makes a verb that lists all there is.
func listAll[T any](use, short string, part func(*client.Client) pages[T], table func(*[]T) *cli.Table) *cobra.Command {
	return ask(&cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}, func(ctx context.Context, s *session) ([]T, error) {
		return all(0, func(p dibs.Page) (api.ListView[T], error) { return part(s.Client)(ctx, p) })
	}, table)
}

// columns are what a table says of things of a kind: its head, and the row of each.
type columns[T any] struct {
	head []string
	row  func(*T) []any
}

func columnsOf[T any](row func(*T) []any, head ...string) *columns[T] { return &columns[T]{head, row} }

// table has a row of each thing.
func (c *columns[T]) table(things *[]T) *cli.Table {
	t := cli.NewTable(c.head...)
	for i := range *things {
		t.Add(c.row(&(*things)[i])...)
	}
	return t
}

// one has a row of one thing.
func (c *columns[T]) one(thing *T) *cli.Table { return c.table(&[]T{*thing}) }

// list has a row of each thing on a page.
func (c *columns[T]) list(page *api.ListView[T]) *cli.Table { return c.table(&page.Items) }

// noteMore tells the user that a list was cut off at its limit; most is the highest limit, 0 for none.
func (s *session) noteMore(shown, most int) {
	text := fmt.Sprintf("there are more than these %d", shown)
	switch {
	case most == 0:
		text += ": a higher --limit shows them"
	case shown < most:
		text += fmt.Sprintf(": --limit %d shows as many as one call can", most)
	}
	s.note(text)
}

// onePage reads one page of a list, of at most limit items, and says when there are more.
func onePage[T any](s *session, limit int, read func(dibs.Page) (api.ListView[T], error)) (l api.ListView[T], err error) {
	if err = checkLimit(limit); err != nil {
		return l, err
	}
	if l, err = read(dibs.Page{Limit: limit}); err == nil && l.NextCursor != "" {
		s.noteMore(len(l.Items), dibs.MaxPage)
	}
	return l, err
}

// upTo reads the first limit items of a list, and says when there are more.
func upTo[T any](s *session, limit int, read func(dibs.Page) (api.ListView[T], error)) ([]T, error) {
	got, more := 0, false
	items, err := all(limit, func(p dibs.Page) (api.ListView[T], error) {
		l, err := read(p)
		got += len(l.Items)
		more = l.NextCursor != "" || got > limit
		return l, err
	})
	if err == nil && more {
		s.noteMore(len(items), 0)
	}
	return items, err
}

// all reads a list page by page, at most limit items of it; 0 reads the whole list. The pages follow
// cursors, so an item that is added meanwhile shifts none: it is in the list or not. An error loses
// the pages before it. It returns no nil, so that an empty list is [] as JSON.
func all[T any](limit int, read func(dibs.Page) (api.ListView[T], error)) ([]T, error) {
	items := []T{}
	// The largest pages that the server gives: fewer calls for the same list.
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
		// The last page may have more than what is still wanted.
		if limit > 0 && len(items) >= limit {
			return items[:limit], nil
		}
		if page.Cursor = l.NextCursor; page.Cursor == "" {
			return items, nil
		}
	}
}
