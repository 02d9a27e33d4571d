package idgen_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/idgen"
	"github.com/dibs-dev/dibs/internal/servers"
)

var theRedis *servers.Redis

// childOf makes the test binary print ids of a kind, from the Redis there.
const childOf, childKind = "IDGEN_TEST_CHILD", "IDGEN_TEST_KIND"

func TestMain(m *testing.M) {
	if url := os.Getenv(childOf); url != "" {
		if err := child(url, os.Getenv(childKind)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "dibs-idgen-")
	if err == nil {
		theRedis, err = servers.StartRedis(dir)
	}
	code := 1
	if err == nil {
		code = m.Run()
		theRedis.Kill()
	}
	if err := errors.Join(err, servers.StopAll(), os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const perChild = 3_000

func child(url, kind string) error {
	ctx := context.Background()
	next, done, err := makers[kind](ctx, url)
	if err != nil {
		return err
	}
	defer done()
	out := bufio.NewWriter(os.Stdout)
	for range perChild {
		id, err := next(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, id)
	}
	return out.Flush()
}

// makers make ids of each kind from a Redis.
var makers = map[string]func(ctx context.Context, url string) (next func(context.Context) (int64, error), done func(), err error){
	"daily": func(_ context.Context, url string) (func(context.Context) (int64, error), func(), error) {
		c, err := idgen.OpenRedisCounter(url, "")
		if err != nil {
			return nil, nil, err
		}
		d, err := idgen.NewDaily(c, "processes", 700, nil)
		return d.Next, func() { d.Close(); c.Close() }, err
	},
	"sequence": func(_ context.Context, url string) (func(context.Context) (int64, error), func(), error) {
		c, err := idgen.OpenRedisCounter(url, "")
		if err != nil {
			return nil, nil, err
		}
		s, err := idgen.NewSequence(c, "sequence", 700)
		return s.Next, c.Close, err
	},
	"snowflake": func(ctx context.Context, url string) (func(context.Context) (int64, error), func(), error) {
		s, err := idgen.OpenSnowflake(ctx, url, "", time.Minute, nil)
		if err != nil {
			return nil, nil, err
		}
		return func(context.Context) (int64, error) { return s.Next() }, s.Close, nil
	},
}

// TestProcesses lets ten processes make ids at once: each rises, and no two are
// alike.
func TestProcesses(t *testing.T) {
	for kind := range makers {
		t.Run(kind, func(t *testing.T) {
			const processes = 10
			lists := make([][]int64, processes)
			var wg sync.WaitGroup
			for i := range processes {
				wg.Go(func() {
					cmd := exec.Command(os.Args[0])
					cmd.Env = append(os.Environ(), childOf+"="+theRedis.URL(), childKind+"="+kind)
					cmd.Stderr = os.Stderr
					out, err := cmd.Output()
					if err != nil {
						t.Error(err)
					}
					for line := range strings.Lines(string(out)) {
						id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
						if err != nil {
							t.Error(err)
							return
						}
						lists[i] = append(lists[i], id)
					}
				})
			}
			wg.Wait()
			seen := map[int64]bool{}
			for _, list := range lists {
				if len(list) != perChild || !slices.IsSorted(list) {
					t.Errorf("a process made %d ids, in order: %t", len(list), slices.IsSorted(list))
				}
				for _, id := range list {
					if id <= 0 || seen[id] {
						t.Fatalf("the id %d is not new", id)
					}
					seen[id] = true
				}
			}
		})
	}
}
