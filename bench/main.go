// Command bench measures what dibs costs and prints the tables of docs/PERFORMANCE.md. The clients
// share the CPUs with what they measure, and the speed of a virtual machine changes from second to
// second: so each part takes what it compares in turn, round by round, within one run. Ratios and
// CPU per claim hold from run to run; rates and times do not:
//
//	go run ./bench
//	go run ./bench -only http -rounds 5
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strings"

	"github.com/dibs-dev/dibs/internal/memory"
)

// main measures, or serves: the parts over HTTP start this program again with serverEnv set, so
// that the CPU of the server and the CPU of its clients are counted apart.
func main() {
	if kind := os.Getenv(serverEnv); kind != "" {
		exit(serve(kind))
	}
	var o options
	flag.StringVar(&o.only, "only", "", "comma-separated parts: grants, refusals, flat, settle, memory, holders, http, growth, gateway, redis, shards, deployments, life, fleet, idle, packets, levels, gate, audience, import, locks, ids; all when empty")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each measurement; the median is printed")
	flag.IntVar(&o.callers, "callers", 4096, "concurrent callers in process")
	flag.IntVar(&o.claims, "claims", 1_000_000, "claims in a round of grants; refusals has 20 times as many, flat a fifth, http 6 %")
	flag.IntVar(&o.holders, "holders", 5_000_000, "the most holders")
	flag.StringVar(&o.against, "against", "", "the bench of another commit: measure the same with both in turns, -rounds of them, and print the ratios (grants and settle when -only is empty)")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the run to this file")
	flag.Parse()
	exit(run(&o))
}

// exit ends the process with status 1 after an error, and with 0 otherwise.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// profile writes a CPU profile to a file until it is finished; without a name
// it does nothing.
func profile(name string) (finish func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	// The profile has all parts that run, so choose one with -only.
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}, nil
}

// run runs the parts in their order and stops at the first error: the tables that were printed
// before stay valid. Ctrl-C ends the part that runs; each part removes its folders and ends the
// servers that it started.
func run(o *options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	finish, err := profile(o.profile)
	if err != nil {
		return err
	}
	defer finish()
	if o.against != "" {
		return against(ctx, o)
	}
	// Easing lets the heap grow further before it is collected. It stands here because dibs serve
	// does the same: without it the benches would count collections that a node does not make.
	go memory.Ease(ctx)
	fmt.Printf("%s, %d CPUs, %s/%s\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	for _, part := range []struct {
		name string
		run  func(context.Context, *options) error
	}{
		{"grants", grants}, {"refusals", refusals}, {"flat", flat}, {"settle", settle}, {"memory", memoryPart}, {"holders", holdersPart}, {"http", overHTTP}, {"growth", growth}, {"gateway", overGateway}, {"redis", redisPart}, {"shards", shardsPart}, {"deployments", deploymentsPart}, {"fleet", redisFleet}, {"idle", idle}, {"life", life}, {"packets", packets}, {"levels", levels}, {"gate", gatePart}, {"audience", audiencePart}, {"import", imports}, {"locks", locks}, {"ids", ids},
	} {
		if o.only != "" && !strings.Contains(","+o.only+",", ","+part.name+",") {
			continue
		}
		fmt.Printf("\n## %s\n\n", part.name)
		if err := part.run(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}
