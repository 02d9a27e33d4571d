package cli

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/dibs-dev/dibs/internal/settings"
)

func TestFailures(t *testing.T) {
	faults := []settings.Fault{{Key: "listen", From: "flag --listen", Problem: "must be\na host"}, {Key: "--total", Problem: "is required"}}
	for _, c := range []struct {
		name string
		err  error
		code int
		text string
	}{
		{"none", nil, ExitOK, ""},
		{"any", io.EOF, ExitFailure, "EOF"},
		{"several lines", errors.New("a\n\tb  c"), ExitFailure, "a b c"},
		{"of a package", fmt.Errorf("opening x: %w", errors.New("sqlledger: node: away (consumer: gone)")), ExitFailure, "opening x: away (gone)"},
		{"a word like a package", errors.New("the client: away"), ExitFailure, "the client: away"},
		{"of the command line", fmt.Errorf("x: %w", Usagef("bad %w", io.EOF)), ExitUsage, "x: bad EOF"},
		{"marked", Usage(io.EOF), ExitUsage, "EOF"},
		{"faults", errors.Join(Faults("wrong:", faults)), ExitUsage, "wrong:\n  listen (flag --listen): must be\na host\n  --total: is required"},
		{"unjudged", fmt.Errorf("x: %w", ErrUnjudged), ExitUnjudged, "x: " + ErrUnjudged.Error()},
	} {
		if code := exitCode(c.err); code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.name, code, c.code)
		}
		if c.err != nil && Message(c.err) != c.text {
			t.Errorf("%s: %q, want %q", c.name, Message(c.err), c.text)
		}
	}
	if !errors.Is(Usage(io.EOF), io.EOF) || Faults("wrong:", nil) != nil {
		t.Error("a usage error hides its cause, or no faults are an error")
	}
}
