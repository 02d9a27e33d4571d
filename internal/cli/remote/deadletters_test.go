package remote_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs/consumer"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestDeadLetters lists what a consumer gave up, and brings it back to it.
func TestDeadLetters(t *testing.T) {
	redis, err := servers.StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Kill()
	var good atomic.Bool
	var handled atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		err := consumer.Run(ctx, consumer.Config{
			URL: redis.URL(), Group: "points", FromStart: true, MaxAttempts: 1,
			Handle: func(context.Context, *consumer.Delivery) consumer.Decision {
				if !good.Load() {
					return consumer.ReconsumeLater(0, errors.New("no points today"))
				}
				handled.Add(1)
				return consumer.Commit
			},
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the consumer ended with %v", err)
		}
	})
	const event = `{"specversion":"1.0","id":"x.0","type":"dev.dibs.claim.granted","subject":"x","time":"2026-12-01T04:00:00Z","data":{}}`
	if _, err := redis.Do(t.Context(), "XADD", consumer.DefaultStream, "*", "id", "x.0", "type", "dev.dibs.claim.granted", "subject", "x", "event", event); err != nil {
		t.Fatal(err)
	}
	dead := func(args ...string) clitest.Result {
		t.Helper()
		return clitest.Run(t, nil, append([]string{"events", "dead"}, append(args, "--from", redis.URL(), "--group", "points")...)...)
	}
	clitest.Until(t, "given up", func() bool {
		r := dead("list")
		return r.Code == 0 && strings.Contains(r.Out, "x.0") && strings.Contains(r.Out, "no points today")
	})
	dead("list", "--limit", "0").Want(t, 2, "--limit must be at least 1")
	dead("replay").Want(t, 2, "name an ENTRY, or give --all")
	good.Store(true)
	dead("replay", "--all").Want(t, 0, "replayed", "1")
	clitest.Until(t, "handled", func() bool { return handled.Load() == 1 })
	if r := dead("list"); strings.Contains(r.Out, "x.0") {
		t.Errorf("the letter is still there:\n%s", r.Out)
	}
	clitest.Run(t, nil, "events", "dead", "list", "--from", "http://x", "--group", "g").Want(t, 1, "must be like redis://")
	clitest.Run(t, nil, "events", "dead", "list").Want(t, 2, "--group is required")
}
