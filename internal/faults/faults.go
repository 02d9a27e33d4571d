// Package faults makes errors that several parts answer with in the same way.
package faults

import (
	"time"

	"github.com/dibs-dev/dibs"
)

// Busy is an error of Overloaded, without an effect, which says when to ask again.
func Busy(after time.Duration, detail dibs.Text) *dibs.Error {
	return &dibs.Error{Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: after, Detail: detail}
}

// List has the faults that were found in a configuration, or in a file.
type List []dibs.Fault

// Must notes a problem of a field, unless it is ok.
func (l *List) Must(ok bool, field, problem string) {
	if !ok {
		*l = append(*l, dibs.Fault{Field: field, Problem: dibs.Text{EN: problem}})
	}
}

// Err is nil for no faults, else an *dibs.Error that lists them.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return dibs.Invalid(l...)
}
