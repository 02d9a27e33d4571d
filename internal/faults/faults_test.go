package faults

import (
	"errors"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestBusy looks at what a caller is told.
func TestBusy(t *testing.T) {
	e := Busy(time.Minute, dibs.Text{EN: "too many ask"})
	if !errors.Is(e, &dibs.Error{Reason: dibs.Overloaded}) || e.Effect != dibs.EffectNone || e.RetryAfter != time.Minute || e.Text().EN != "too many ask" {
		t.Errorf("got %+v", e)
	}
}

// TestFaultsAreListed notes two problems and none.
func TestFaultsAreListed(t *testing.T) {
	var l List
	l.Must(true, "/Good", "is good")
	if err := l.Err(); err != nil {
		t.Errorf("an error without faults: %v", err)
	}
	l.Must(false, "/Size", "must be positive")
	l.Must(false, "/Name", "is required")
	var e *dibs.Error
	if !errors.As(l.Err(), &e) || e.Reason != dibs.InvalidRequest || len(e.Faults) != 2 {
		t.Fatalf("got %v", l.Err())
	}
	if f := e.Faults[1]; f.Field != "/Name" || f.Problem.EN != "is required" {
		t.Errorf("the second fault is %v", f)
	}
}
