package web

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestFlight: callers that wait for an attempt fail with it, unless only its own caller
// was to blame; later callers begin again.
func TestFlight(t *testing.T) {
	gone := dibs.Unavail(dibs.EffectNone, errors.New("gone"))
	for _, c := range []struct{ failed, waits error }{{gone, gone}, {context.Canceled, nil}, {nil, nil}} {
		var f Flight
		since := time.Now()
		if !f.TryBegin() || f.TryBegin() {
			t.Fatal("an idle flight is begun once")
		}
		f.End(c.failed)
		err := f.Begin(since)
		if !errors.Is(err, c.waits) {
			t.Errorf("after %v: %v", c.failed, err)
		}
		if err == nil {
			f.End(nil)
		}
		if err := f.Begin(time.Now().Add(time.Nanosecond)); err != nil {
			t.Errorf("a later caller, after %v: %v", c.failed, err)
		}
	}
}
