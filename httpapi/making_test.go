package httpapi

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestMaking: those who wait while something is made fail with the attempt that they
// waited for, unless its own caller was to blame; others begin anew.
func TestMaking(t *testing.T) {
	gone := dibs.Unavail(dibs.EffectNone, errors.New("gone"))
	for _, c := range []struct{ failed, waits error }{{gone, gone}, {context.Canceled, nil}, {nil, nil}} {
		var m making
		came := time.Now()
		if !m.try() || m.try() {
			t.Fatal("what is free is taken once")
		}
		m.end(c.failed)
		err := m.wait(came)
		if !errors.Is(err, c.waits) {
			t.Errorf("after %v: %v", c.failed, err)
		}
		if err == nil {
			m.end(nil)
		}
		if err := m.wait(time.Now().Add(time.Nanosecond)); err != nil {
			t.Errorf("who comes after %v: %v", c.failed, err)
		}
	}
}
