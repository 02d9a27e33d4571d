package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/dibs-dev/dibs"
)

// Only what Redis refused before its first write, and what was never sent, has changed
// nothing; and of that only some will pass by itself.
func TestWhatAnErrorSays(t *testing.T) {
	for name, c := range map[string]struct {
		err           error
		nothing, pass bool
	}{
		"it loads its files":       {&AnsweredError{Message: "LOADING Redis is loading"}, true, true},
		"another server has it":    {&AnsweredError{Message: "MOVED 3 host:1"}, true, true},
		"it is full":               {&AnsweredError{Message: "OOM command not allowed"}, true, false},
		"a script failed":          {&AnsweredError{Message: "ERR user_script:7: attempt"}, false, false},
		"wrapped":                  {fmt.Errorf("asking: %w", &AnsweredError{Message: "BUSY Redis is busy"}), true, true},
		"a word that begins alike": {&AnsweredError{Message: "ASKED for"}, true, false},
		"not reached":              {&net.OpError{Op: "dial", Err: errors.New("refused")}, true, false},
		"the connection broke":     {&net.OpError{Op: "read", Err: errors.New("reset")}, false, false},
		"too few replicas":         {errTooFew, false, false},
	} {
		if ChangedNothing(c.err) != c.nothing || WillPass(c.err) != c.pass {
			t.Errorf("%s: changed nothing %v, will pass %v", name, ChangedNothing(c.err), WillPass(c.err))
		}
		effect := dibs.EffectUnknown
		if c.nothing {
			effect = dibs.EffectNone
		}
		var e *dibs.Error
		if err := Fault(t.Context(), dibs.EffectUnknown, c.err); !errors.As(err, &e) || e.Effect != effect || !errors.Is(err, dibs.ErrUnavailable) {
			t.Errorf("%s: the fault is %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Fault(ended, dibs.EffectUnknown, errTooFew); !errors.Is(err, context.Canceled) || !errors.Is(err, errTooFew) {
		t.Errorf("of a caller that has gone the fault is %v", err)
	}
}

// A server that is down, cut off or just starting may be waited for; one that answers what
// no waiting changes may not.
func TestWhatCannotBeReached(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		wait bool
	}{
		"nothing listens":           {fmt.Errorf("connecting: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), true},
		"no such host":              {&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, true},
		"it does not answer":        {&net.OpError{Op: "read", Err: context.DeadlineExceeded}, true},
		"it hangs up":               {fmt.Errorf("connecting: %w", io.EOF), true},
		"it loads its files":        {fmt.Errorf("asking: %w", &AnsweredError{Message: "LOADING Redis is loading"}), true},
		"no master is known":        {errNoMaster, true},
		"a caller has no more time": {Fault(t.Context(), dibs.EffectNone, context.DeadlineExceeded), true},
		"a wrong password":          {fmt.Errorf("connecting: %w", &AnsweredError{Message: "WRONGPASS invalid username-password pair"}), false},
		"one of two refuses":        {errors.Join(&net.OpError{Op: "dial"}, &AnsweredError{Message: "NOAUTH required"}), false},
		"TLS is refused":            {&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, false},
		"no TLS is spoken there":    {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, false},
		"an address of no form":     {errURL, false},
	} {
		if CannotReach(c.err) != c.wait {
			t.Errorf("%s: cannot be reached %v", name, CannotReach(c.err))
		}
	}
}
