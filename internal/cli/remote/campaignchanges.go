package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/internal/cli"
)

// changes shows what happens to campaigns as the server tells it, over a stream
// for each, until all have ended or ctx ends.
func (w *watching) changes(ctx context.Context) error {
	if err := w.choose(ctx); err != nil {
		return err
	}
	if w.output != cli.OutputJSON {
		if err := w.change("TIME", "CAMPAIGN", "EVENT", "PHASE", "LEFT"); err != nil {
			return err
		}
	}
	var one sync.Mutex
	group, inner := errgroup.WithContext(ctx)
	for _, id := range w.ids {
		group.Go(func() error {
			var failed error
			err := w.api.Watch(inner, id, func(n dibs.SituationView) bool {
				one.Lock()
				defer one.Unlock()
				if w.output == cli.OutputJSON {
					failed = json.NewEncoder(w.out).Encode(n)
				} else {
					failed = w.change(cli.Moment(n.At), n.CampaignID, n.Event, string(n.Phase), strconv.FormatInt(n.Remaining, 10))
				}
				return failed == nil && n.Phase != dibs.PhaseEnded
			})
			if failed != nil {
				return failed
			}
			return err
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		// Whoever looked on has seen enough.
		return nil //nolint:nilerr // It is the end of the stream that failed.
	}
	return err
}

// change writes a line of what has changed.
func (w *watching) change(cells ...any) error {
	_, err := fmt.Fprintf(w.out, "%-20s  %-24s  %-10s  %-9s  %10s\n", cells...)
	return err
}
