package enginetest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Check is one behaviour that every engine has. It stands alone: it gets an engine on
// a state of its own, and can be run by name.
type Check struct {
	// Name is the subject and the behaviour: "windows/starts_at is inclusive".
	Name  string
	check func(r *rig)
}

// checkTimeout ends a check whose engine does not answer.
const checkTimeout = 2 * time.Minute

// Run runs the check on an engine with a fresh state and returns what it found
// wrong; nil when the engine behaves. The state lasts as long as tb.
func (c Check) Run(tb testing.TB, f Factory) error {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	r := newRig(ctx, tb, f)
	done := make(chan struct{})
	// A goroutine of its own, so that a failed expectation can end the check
	// from any depth, as testing.T does.
	go func() {
		defer close(done)
		r.start()
		c.check(r)
		r.untouched()
	}()
	// The channel orders what that goroutine wrote before what follows here.
	<-done
	r.end()
	return errors.Join(r.failures...)
}
