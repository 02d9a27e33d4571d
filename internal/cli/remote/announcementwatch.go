package remote

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/announce"
)

// watchable makes cmd a verb that answers with an announcement, and with --watch shows how far it is
// until it is over. The verb's own call is made once; watching only reads. Ctrl-C ends the watching
// with exit code 0, and the announcement goes on.
func watchable(cmd *cobra.Command, do func(context.Context, *session) (announce.AnnouncementView, error)) *cobra.Command {
	var watch bool
	talk(cli.WithOutput(cmd), func(ctx context.Context, s *session) error {
		v, err := do(ctx, s)
		if err != nil {
			return err
		}
		if watch {
			return s.watchAnnouncement(ctx, v.ID)
		}
		return cli.Show(s.cmd, v, announcementTable(&v))
	})
	cmd.Flags().BoolVar(&watch, "watch", false, "Show how far it is until it is over")
	return cmd
}

// watchAnnouncementEvery is the time between two looks at an announcement, one small call each.
const watchAnnouncementEvery = 500 * time.Millisecond

// watchAnnouncement shows how far an announcement is until it is done, cancelled, or ctx ends: by
// a bar on a terminal, elsewhere by a line for each change, and as JSON by one document on a line
// for each change. A call that fails ends it, with exit code 1. A paused announcement is not over:
// it is watched until it is resumed and ends.
func (s *session) watchAnnouncement(ctx context.Context, id string) error {
	bar := newAnnouncementBar(s.cmd.ErrOrStderr(), cli.WantsJSON(s.cmd))
	defer bar.end()
	lines := cli.JSONLines(s.cmd)
	tick := time.NewTicker(watchAnnouncementEvery)
	defer tick.Stop()
	for last := ""; ; {
		v, err := s.Announcements.Get(ctx, id)
		switch {
		// Before the error: it only says that the user ended the call.
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case v.State == announce.AnnouncementDone || v.State == announce.AnnouncementCancelled:
			// The bar must be gone before the table is written over its line.
			bar.end()
			return cli.Show(s.cmd, v, announcementTable(&v))
		}
		line := fmt.Sprintf("%s  %d of %d enqueued", v.State, v.Enqueued, v.Followers)
		// Logs get no lines that say nothing new.
		if line != last {
			if cli.WantsJSON(s.cmd) {
				err = lines.Encode(v)
			} else {
				err = bar.show(&v, line)
			}
		}
		if err != nil {
			return err
		}
		last = line
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// announcementBar shows how far an announcement is, on the error output, so that what is piped has
// the answer alone. bar is nil where to is no terminal. One goroutine uses it.
type announcementBar struct {
	to  io.Writer
	bar *progressbar.ProgressBar
}

// newAnnouncementBar returns what shows the progress. With JSON there is no bar: the documents on
// the output tell the progress already.
func newAnnouncementBar(to io.Writer, asJSON bool) *announcementBar {
	b := &announcementBar{to: to}
	if cli.IsTerminal(to) && !asJSON {
		b.bar = newBar(to, 1)
	}
	return b
}

// show moves the bar, or writes the line.
func (b *announcementBar) show(v *announce.AnnouncementView, line string) error {
	if b.bar == nil {
		_, err := fmt.Fprintln(b.to, line)
		return err
	}
	// One more than is enqueued: the bar would end by itself when it is full.
	b.bar.ChangeMax64(max(v.Followers, v.Enqueued+1))
	b.bar.Describe(fmt.Sprintf("%s, %s left", v.State, time.Duration(v.Estimate).Round(time.Second)))
	return b.bar.Set64(v.Enqueued)
}

// end removes the bar; a second call does nothing. An error is ignored: a bar that stays on the
// screen does no harm.
func (b *announcementBar) end() {
	if b.bar != nil {
		_ = b.bar.Exit()
		b.bar = nil
	}
}
