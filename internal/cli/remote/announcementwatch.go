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

// watchable makes cmd a verb that answers with an announcement, and with --watch
// shows how far it is until it is over.
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

// watchAnnouncementEvery is the time between two looks at an announcement.
const watchAnnouncementEvery = 500 * time.Millisecond

// watchAnnouncement shows how far an announcement is until it is over or ctx ends: by
// a bar on a terminal, by a line for each change elsewhere, and as JSON by a document
// a line for each change.
func (s *session) watchAnnouncement(ctx context.Context, id string) error {
	bar := newAnnouncementBar(s.cmd.ErrOrStderr(), cli.WantsJSON(s.cmd))
	defer bar.end()
	lines := cli.JSONLines(s.cmd)
	tick := time.NewTicker(watchAnnouncementEvery)
	defer tick.Stop()
	for last := ""; ; {
		v, err := s.Announcement(ctx, id)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case v.State == announce.AnnouncementDone || v.State == announce.AnnouncementCancelled:
			bar.end()
			return cli.Show(s.cmd, v, announcementTable(&v))
		}
		line := fmt.Sprintf("%s  %d of %d enqueued", v.State, v.Enqueued, v.Followers)
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

// announcementBar shows how far an announcement is. bar is nil off terminals.
type announcementBar struct {
	to  io.Writer
	bar *progressbar.ProgressBar
}

// newAnnouncementBar returns what shows the progress. JSON documents on the output tell
// it already, so that they need no bar beside them.
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

// end removes the bar. A bar that stays on the screen does no harm.
func (b *announcementBar) end() {
	if b.bar != nil {
		_ = b.bar.Exit()
		b.bar = nil
	}
}
