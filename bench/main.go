// Command bench measures what dibs costs, as ratios within one run, and prints
// the tables of docs/PERFORMANCE.md:
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

// options are the flags.
type options struct {
	only    string
	rounds  int
	callers int
	claims  int
	holders int
	profile string
}

func main() {
	if kind := os.Getenv(serverEnv); kind != "" {
		exit(serve(kind))
	}
	var o options
	flag.StringVar(&o.only, "only", "", "comma-separated parts: grants, refusals, flat, settle, memory, http, gateway, redis, life, fleet, idle, packets, levels, gate, audience, import, locks, ids; all when empty")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each measurement; the median is printed")
	flag.IntVar(&o.callers, "callers", 4096, "concurrent callers in process")
	flag.IntVar(&o.claims, "claims", 1_000_000, "claims in a round of grants")
	flag.IntVar(&o.holders, "holders", 5_000_000, "the most holders")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the run to this file")
	flag.Parse()
	exit(run(&o))
}

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

func run(o *options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	finish, err := profile(o.profile)
	if err != nil {
		return err
	}
	defer finish()
	// As in dibs serve.
	go memory.Ease(ctx)
	fmt.Printf("%s, %d CPUs, %s/%s\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	for _, part := range []struct {
		name string
		run  func(context.Context, *options) error
	}{
		{"grants", grants}, {"refusals", refusals}, {"flat", flat}, {"settle", settle}, {"memory", memoryPart}, {"http", overHTTP}, {"gateway", overGateway}, {"redis", redisPart}, {"fleet", redisFleet}, {"idle", idle}, {"life", life}, {"packets", packets}, {"levels", levels}, {"gate", gatePart}, {"audience", audiencePart}, {"import", imports}, {"locks", locks}, {"ids", ids},
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
