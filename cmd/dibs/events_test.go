package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/consumer"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestEventsCommands manages a webhook from the outside.
func TestEventsCommands(t *testing.T) {
	hook := &received{}
	receiver := httptest.NewServer(hook)
	defer receiver.Close()
	defer receiver.CloseClientConnections()
	_, url := startServe(t, t.TempDir(), "--webhook-allow-private")
	env := []string{"DIBS_URL=" + url, "DIBS_ADMIN_KEY=" + testKey}
	c := &crashes{t: t, url: url}
	endpoint := func(args ...string) (e dibs.EndpointView) {
		t.Helper()
		r := execute(t, env, append([]string{"events", "endpoints"}, append(args, "--output", "json")...)...)
		if err := json.Unmarshal([]byte(r.out), &e); err != nil || r.code != 0 {
			t.Fatalf("%v: %v\n%s%s", args, err, r.out, r.err)
		}
		return e
	}
	execute(t, env, "events", "endpoints", "create", "ftp://x").want(t, 1, "must be an address")
	e := endpoint("create", receiver.URL, "--types", "dev.dibs.campaign.published")
	hook.mu.Lock()
	hook.secret = e.Secret
	hook.mu.Unlock()
	if !strings.HasPrefix(e.Secret, dibs.SecretPrefix) {
		t.Errorf("the new endpoint is %+v", e)
	}
	execute(t, env, "campaign", "create", "--id", "noon", "--title", "Noon", "--units", "5", "--ends", "+1h").want(t, 0)
	execute(t, env, "campaign", "publish", "noon").want(t, 0)
	execute(t, env, "events", "endpoints", "test", e.ID).want(t, 0, "test-")
	delivered := func(n int) {
		t.Helper()
		c.until("deliveries", func() (string, bool) {
			r := execute(t, env, "events", "deliveries", e.ID, "--status", "delivered")
			return r.out + r.err, strings.Count(r.out, " delivered ") == n
		})
	}
	delivered(2)
	execute(t, env, "events", "sinks").want(t, 0, dibs.WebhookSink, "true")
	execute(t, env, "events", "tail", "--after", "0", "--once").want(t, 0, `"type":"dev.dibs.campaign.published"`, `"subject":"noon"`)
	again := execute(t, env, "events", "redeliver", e.ID)
	again.want(t, 2, "name an EVENT, or say --failed")
	execute(t, env, "events", "redeliver", e.ID, "--failed").want(t, 0, "redelivered", "0")
	execute(t, env, "events", "redeliver", e.ID, "none").want(t, 1, "no such delivery")
	next := endpoint("rotate-secret", e.ID, "--keep-old-for", "0s")
	if next.Secret == e.Secret || next.OldSecretUntil != nil || !strings.HasPrefix(next.Secret, dibs.SecretPrefix) {
		t.Errorf("after the rotation: %+v", next)
	}
	hook.mu.Lock()
	hook.secret = next.Secret
	hook.mu.Unlock()
	execute(t, env, "events", "endpoints", "test", e.ID).want(t, 0)
	delivered(3)
	if e := endpoint("disable", e.ID); !e.Disabled || e.Secret != "" {
		t.Errorf("disabled: %+v", e)
	}
	execute(t, env, "events", "endpoints", "list").want(t, 0, e.ID, "true: by an admin")
	execute(t, env, "events", "endpoints", "test", e.ID).want(t, 1, "disabled")
	if e := endpoint("enable", e.ID); e.Disabled {
		t.Errorf("enabled: %+v", e)
	}
	execute(t, env, "events", "endpoints", "delete", e.ID).want(t, 0)
	execute(t, env, "events", "endpoints", "show", e.ID).want(t, 1, "There is no webhook endpoint")
	hook.mu.Lock()
	defer hook.mu.Unlock()
	if len(hook.bodies) != 3 || len(hook.faults) > 0 {
		t.Errorf("the receiver got %d events, %v", len(hook.bodies), hook.faults)
	}
}

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
	dead := func(args ...string) result {
		t.Helper()
		return execute(t, nil, append([]string{"events", "dead"}, append(args, "--from", redis.URL(), "--group", "points")...)...)
	}
	c := &crashes{t: t}
	c.until("dead letters", func() (string, bool) {
		r := dead("list")
		return r.out + r.err, r.code == 0 && strings.Contains(r.out, "x.0") && strings.Contains(r.out, "no points today")
	})
	dead("replay").want(t, 2, "name an ENTRY, or say --all")
	good.Store(true)
	dead("replay", "--all").want(t, 0, "replayed", "1")
	c.until("events", func() (string, bool) { return "unhandled", handled.Load() == 1 })
	if r := dead("list"); strings.Contains(r.out, "x.0") {
		t.Errorf("the letter is still there:\n%s", r.out)
	}
	execute(t, nil, "events", "dead", "list", "--from", "http://x", "--group", "g").want(t, 1, "must be like redis://")
	execute(t, nil, "events", "dead", "list").want(t, 1, "the group is required")
}
