package lock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestOwnersWait: one owner calls several times for a lock that another owner has. Each call waits as long as its own
// context and Options say, also after the first call has ended.
func TestOwnersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all owners
		first, leave := context.WithCancel(t.Context())
		took := make(chan error, 2)
		lock := func(ctx context.Context, o Options, take taker) {
			h, err := all.lock(ctx, "stock", o, take)
			if (h == nil) == (err == nil) {
				t.Errorf("%v, %v", h, err)
			}
			took <- err
		}
		go lock(first, Options{Owner: "ann"}, func(context.Context, string, Options) (Held, error) {
			<-first.Done()
			return nil, first.Err()
		})
		synctest.Wait()
		begun := time.Now()
		for _, wait := range []time.Duration{NoWait, time.Second} {
			_, err := all.lock(t.Context(), "stock", Options{Owner: "ann", Wait: wait}, nil)
			if !errors.Is(err, ErrBusy) || time.Since(begun) != max(wait, 0) {
				t.Errorf("with a wait of %s: %v after %s", wait, err, time.Since(begun))
			}
		}
		go lock(t.Context(), Options{Owner: "ann"}, func(context.Context, string, Options) (Held, error) { return newHeld(t.Context(), 1), nil })
		synctest.Wait()
		leave()
		synctest.Wait()
		if a, b := <-took, <-took; (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), context.Canceled) {
			t.Errorf("the first gets %v, or the second; the other %v", a, b)
		}
	})
}
