package enginetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// State is the durable state of one engine: a folder, a database, a server.
// The suite calls it from one goroutine at a time.
type State interface {
	// Open opens an engine on the state. The engine before was closed or killed.
	Open(ctx context.Context) (dibs.Engine, error)
	// Kill ends the engine opened last as the death of its process would:
	// without Close, and with calls still running in it. What the engine had not
	// made durable is gone. When Kill returns, the old engine can change the
	// state no more, and Open may be called.
	Kill(ctx context.Context) error
}

// Factory makes the engines of one implementation.
type Factory struct {
	// New makes an empty state, which is removed when tb ends. Its engines read
	// the time from now.
	New func(tb testing.TB, now func() time.Time) State
	// OwnClock is set when the engines cannot read the time from now, since
	// another clock decides. Its time must be within a minute of time.Now.
	OwnClock bool
}

// Check is one behaviour that every engine has.
type Check struct {
	// Name is the subject and the behaviour: "windows/starts_at is inclusive".
	Name  string
	check func(r *rig)
}

// Run runs every check as a subtest of t. It takes some ten seconds.
func Run(t *testing.T, f Factory) {
	t.Helper()
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t, f); err != nil {
				t.Error(err)
			}
		})
	}
}

// Checks lists the checks of the suite: short ones first, those under load and
// at random last.
func Checks() []Check {
	return slices.Concat(
		grantChecks, windowChecks, refusalChecks, boundChecks, repeatChecks, itemChecks,
		releaseChecks, stockChecks, configureChecks, readChecks, journalChecks,
		closingChecks, restartChecks, crowdChecks, randomChecks, linearChecks,
	)
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
	}()
	<-done
	r.end()
	return errors.Join(r.failures...)
}
