package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Invocation is one run of the program: what a process is given, and what a test
// gives in its place.
type Invocation struct {
	Args []string
	// Environ is the environment as os.Environ returns it.
	Environ  []string
	In       io.Reader
	Out, Err io.Writer
}

// Run executes the command line until it ends or ctx does, writes what went wrong
// to Err, and returns the exit code.
func (v Invocation) Run(ctx context.Context, root *cobra.Command) int {
	args := helpLast(root, v.Args)
	root.SetArgs(args)
	root.SetIn(v.In)
	root.SetOut(v.Out)
	root.SetErr(v.Err)
	err := unknownHelp(root, args)
	if err == nil {
		err = root.ExecuteContext(context.WithValue(ctx, environKey{}, v.Environ))
	}
	if err != nil {
		fmt.Fprintln(v.Err, "dibs: "+Message(err))
	}
	return exitCode(err)
}

type environKey struct{}

// Environ returns the environment of the invocation that a verb belongs to.
func Environ(cmd *cobra.Command) []string {
	environ, _ := cmd.Context().Value(environKey{}).([]string)
	return environ
}

// Getenv returns a variable of the invocation, empty when it is not set. The last
// of several values counts, as in os/exec.
func Getenv(cmd *cobra.Command, name string) (value string) {
	for _, pair := range Environ(cmd) {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}
