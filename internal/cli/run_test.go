package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// invoke runs a program with one verb and returns what it wrote.
func invoke(t *testing.T, verb *cobra.Command, environ []string, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	call := Invocation{Args: args, Environ: environ, In: strings.NewReader(""), Out: &o, Err: &e}
	code = call.Run(t.Context(), Root(Build{Version: "v1"}, Group{Title: "Verbs:", Verbs: []*cobra.Command{verb}}))
	return o.String(), e.String(), code
}

// TestInvocation: a verb sees the environment that it was given and no other, and
// what it returns becomes a message and an exit code.
func TestInvocation(t *testing.T) {
	t.Setenv("DIBS_TEST_OF_RUN", "the process's")
	var seen []string
	verb := &cobra.Command{Use: "look", RunE: func(cmd *cobra.Command, _ []string) error {
		seen = []string{Getenv(cmd, "A"), Getenv(cmd, "DIBS_TEST_OF_RUN"), strings.Join(Environ(cmd), " ")}
		return errors.New("client: the server: dibs: is\n  away")
	}}
	out, errOut, code := invoke(t, verb, []string{"A=1", "AB=2", "A=3"}, "look")
	if want := []string{"3", "", "A=1 AB=2 A=3"}; strings.Join(seen, "|") != strings.Join(want, "|") {
		t.Errorf("the verb saw %q, want %q", seen, want)
	}
	if out != "" || errOut != "dibs: the server: is away\n" || code != ExitFailure {
		t.Errorf("%q, %q, %d", out, errOut, code)
	}
}

// TestInvocationEnds: the verb's context ends with that of the invocation.
func TestInvocationEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	verb := &cobra.Command{Use: "wait", RunE: func(cmd *cobra.Command, _ []string) error {
		<-cmd.Context().Done()
		return nil
	}}
	var out bytes.Buffer
	call := Invocation{Args: []string{"wait"}, Out: &out, Err: &out}
	if code := call.Run(ctx, Root(Build{}, Group{Title: "Verbs:", Verbs: []*cobra.Command{verb}})); code != ExitOK {
		t.Errorf("exit code %d: %s", code, &out)
	}
}
