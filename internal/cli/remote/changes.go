package remote

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
)

// watchChanges shows the changes of campaigns as the server reports them, over one stream for each
// campaign, until all have ended or ctx ends. A stream that breaks is opened again by the client,
// which shows nothing twice; a refusal that repeating cannot cure ends all streams with exit code 1.
func (s *session) watchChanges(ctx context.Context, ids []string) error {
	show := s.changeLine
	if cli.WantsJSON(s.cmd) {
		lines := cli.JSONLines(s.cmd)
		show = func(v *api.SnapshotView) error { return lines.Encode(v) }
	} else if err := s.changeCells("TIME", "CAMPAIGN", "EVENT", "PHASE", "LEFT"); err != nil {
		return err
	}
	// Several streams write to one output. output guards it and the encoder behind show: one change
	// is one whole line.
	var output sync.Mutex
	group, inner := errgroup.WithContext(ctx)
	for _, id := range ids {
		group.Go(func() error {
			var failed error
			err := s.Campaigns.Watch(inner, id, func(v api.SnapshotView) bool {
				output.Lock()
				defer output.Unlock()
				failed = show(&v)
				return failed == nil && v.Phase != dibs.PhaseEnded
			})
			if failed != nil {
				return failed
			}
			return err
		})
	}
	err := group.Wait()
	// ctx, not inner: a stream that failed ends inner too, and its error must be returned.
	if ctx.Err() != nil {
		return nil //nolint:nilerr // The streams failed because the user stopped them.
	}
	return err
}

// changeLine writes a change as a line of the table.
func (s *session) changeLine(v *api.SnapshotView) error {
	return s.changeCells(cli.Moment(v.At), v.CampaignID, v.Event, v.Phase, v.Remaining)
}

// changeCells writes cells in columns of fixed widths: later lines are not known yet.
func (s *session) changeCells(cells ...any) error {
	_, err := fmt.Fprintf(s.cmd.OutOrStdout(), "%-20s  %-24s  %-10s  %-9s  %10v\n", cells...)
	return err
}
