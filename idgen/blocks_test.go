package idgen_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/idgen"
)

// memory counts here.
type memory struct{ n atomic.Int64 }

func (m *memory) Take(_ context.Context, _ string, n int64) (int64, error) { return m.n.Add(n), nil }

func (m *memory) Taken(context.Context, string) (int64, error) { return m.n.Load(), nil }

// TestUsedUp refuses beyond the last count, and beyond the years.
func TestUsedUp(t *testing.T) {
	m := &memory{}
	m.n.Store(1<<32 - 3)
	d, err := idgen.NewDaily(m, "x", 1, nil)
	must(t, err)
	defer d.Close()
	for range 2 {
		_, err := d.Next(t.Context())
		must(t, err)
	}
	if _, err := d.Next(t.Context()); !errors.Is(err, idgen.ErrUsedUp) {
		t.Errorf("beyond the last count: %v", err)
	}
	for _, year := range []int{2021, 2091} {
		old, err := idgen.NewDaily(&memory{}, "x", 1, handAt(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)).now)
		must(t, err)
		_, err = old.Next(t.Context())
		old.Close()
		if year == 2091 && !errors.Is(err, idgen.ErrUsedUp) {
			t.Errorf("in %d: %v", year, err)
		}
	}
	for _, size := range []int64{0, 1 << 30} {
		if _, err := idgen.NewSequence(m, "x", size); err == nil {
			t.Errorf("blocks of %d are taken", size)
		}
		if _, err := idgen.NewDaily(m, "x", size, nil); err == nil {
			t.Errorf("blocks of %d are taken", size)
		}
	}
}
