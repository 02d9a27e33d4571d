// Command dibs decides who gets things that run out: it serves campaigns and
// claims over HTTP, and manages, rehearses and verifies them.
//
// This package only starts and ends the process. The verbs are in internal/cli: those
// that ask a server in internal/cli/remote, those that open the ledger themselves in
// internal/cli/node, those that try a server in internal/cli/trial. Package
// internal/cli/program puts them together.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/program"
)

// The linker sets version and commit: -ldflags "-X main.version=v1.2.3".
var version, commit string

// sameSignal is how long signals after the first one count as the same: one Ctrl-C
// can arrive twice, for the process and for its group.
const sameSignal = 100 * time.Millisecond

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes a command line and returns the exit code. The first signal ends the
// verb's context, so that the verb can finish what it began; the second ends the
// process.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if serves := len(args) > 0 && args[0] == "serve"; !serves && !signal.Ignored(syscall.SIGHUP) {
		// The terminal is gone. Under nohup, which ignores the signal, the verb goes on;
		// serve takes it as a request to look at its files again.
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	go func() {
		<-signals
		cancel()
		first := time.Now()
		for range signals {
			if time.Since(first) > sameSignal {
				break
			}
		}
		fmt.Fprintln(errOut, "dibs: stopped at once by a second signal")
		os.Exit(cli.ExitFailure)
	}()
	call := cli.Invocation{Args: args, Environ: os.Environ(), In: in, Out: out, Err: errOut}
	return call.Run(ctx, program.Root(cli.NewBuild(version, commit)))
}
