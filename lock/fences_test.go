package lock_test

import (
	"errors"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs/lock"
)

// TestFencesAreMadeByMany opens many lockers at once on a database that has
// nothing yet: none of them meets the making of another one's table.
func TestFencesAreMadeByMany(t *testing.T) {
	for _, name := range []string{mariadb, postgres} {
		t.Run(name, func(t *testing.T) {
			ctx := patient(t)
			k := kindOf(t, name)
			begin := make(chan struct{})
			var all errgroup.Group
			for range 16 {
				all.Go(func() error {
					<-begin
					l, err := lock.OpenSQL(ctx, k.at[0])
					if err != nil {
						return err
					}
					h, err := l.Lock(ctx, "new", lock.Options{})
					if err == nil {
						err = h.Unlock(ctx)
					}
					return errors.Join(err, l.Close())
				})
			}
			close(begin)
			must(t, all.Wait())
		})
	}
}
