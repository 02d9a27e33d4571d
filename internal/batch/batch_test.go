package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
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

// A bound refuses who would wait behind too many, and an owner can wait for the end.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running sync.WaitGroup
		g := Batcher[int]{Queue: 2, Running: &running}
		begin, ended := make(chan struct{}), false
		answers := make(chan error, 4)
		for range 4 {
			go func() { answers <- g.Do(t.Context(), 1, 9, func([]int) { <-begin }) }()
			synctest.Wait()
		}
		if err := <-answers; !errors.Is(err, ErrFull) {
			t.Errorf("the fourth hears %v", err)
		}
		go func() {
			running.Wait()
			ended = true
		}()
		synctest.Wait()
		if ended {
			t.Error("it ended under way")
		}
		close(begin)
		synctest.Wait()
		if !ended || len(answers) != 3 {
			t.Errorf("it ended %v, %d were answered", ended, len(answers))
		}
	})
}
