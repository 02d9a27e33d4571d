package batch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// Calls that arrive while a batch runs are the next batch, in order and up to a limit. A
// caller that leaves leaves its call behind.
func TestGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Batcher[int]
		var done [][]int
		begin := make(chan struct{})
		together := func(works []int) {
			<-begin
			done = append(done, works)
		}
		answers := make(chan error, 5)
		ask := func(ctx context.Context, work int) {
			go func() { answers <- g.Do(ctx, work, 3, together) }()
			synctest.Wait()
		}
		leaving, leave := context.WithCancel(t.Context())
		ask(t.Context(), 1)
		ask(leaving, 2)
		for work := 3; work <= 5; work++ {
			ask(t.Context(), work)
		}
		leave()
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Errorf("who leaves hears %v", err)
		}
		close(begin)
		for range 4 {
			if err := <-answers; err != nil {
				t.Errorf("who stays hears %v", err)
			}
		}
		synctest.Wait()
		if !slices.EqualFunc(done, [][]int{{1}, {2, 3, 4}, {5}}, slices.Equal[[]int]) {
			t.Errorf("done together: %v", done)
		}
	})
}
