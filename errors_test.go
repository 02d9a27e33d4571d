package dibs

import (
	"errors"
	"fmt"
	"testing"
)

// Callers tell errors apart by reason, however deep they are wrapped, and programs
// see every fault at once.
func TestErrorsByReason(t *testing.T) {
	cause := errors.New("connection refused")
	err := fmt.Errorf("claim: %w", Unavail(EffectUnknown, cause))
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOverloaded) || !errors.Is(err, cause) {
		t.Errorf("%v is unavailable: %t, overloaded: %t, of its cause: %t", err, errors.Is(err, ErrUnavailable), errors.Is(err, ErrOverloaded), errors.Is(err, cause))
	}
	var e *Error
	if !errors.As(err, &e) || e.Effect != EffectUnknown || e.RetryAfter <= 0 {
		t.Errorf("%+v", e)
	}
	bad := Invalid(Fault{"/stock/units", Text{"must be positive", "必须为正数"}}, Fault{"/title", Text{"is required", "必填"}})
	if got, want := bad.Error(), "invalid_request: stock/units must be positive; title is required"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := bad.Text(); got != InvalidRequest.Info().Title {
		t.Errorf("without a sentence of its own it says %q", got)
	}
	own := Fail(SoldOut, Text{"no seats are left", "座位已售完"})
	if got := own.Text().In(true); got != "座位已售完" {
		t.Errorf("in Chinese it says %q", got)
	}
}

// A claim that is shed with a key may be the repeat of one that was granted: only
// without a key is it sure that it did nothing.
func TestShedEffects(t *testing.T) {
	if e := Shed(false); e.Effect != EffectNone || e.Reason != Overloaded {
		t.Errorf("without a key: %v, effect %q", e, e.Effect)
	}
	if e := Shed(true); e.Effect != EffectUnknown || e.Reason != Overloaded {
		t.Errorf("with a key: %v, effect %q", e, e.Effect)
	}
}
