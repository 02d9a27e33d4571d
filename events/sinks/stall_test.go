package sinks_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/events/sinks"
)

// stalls publishes to a broker that stops reading: that ends when the context
// does, closing does not wait either, and afterwards publishing goes on.
func stalls(t *testing.T, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t, u.Host)
	u.Host = g.addr()
	p, err := sinks.Open(u.String())
	if err != nil {
		t.Fatal(err)
	}
	publish := func(ctx context.Context, n, size int) error {
		messages := make([]sinks.Message, n)
		for i := range messages {
			messages[i] = sinks.Message{ID: fmt.Sprintf("x.%d", i), Type: "dev.dibs.claim.granted", Subject: "x", Body: make([]byte, size)}
		}
		return p.Publish(ctx, messages)
	}
	// within bounds what would wait for ever, or until the broker is taken for dead.
	within := func(what string, do func() error) error {
		t.Helper()
		done := make(chan error, 1)
		begun := time.Now()
		go func() { done <- do() }()
		select {
		case err := <-done:
			t.Logf("%s took %s: %v", what, time.Since(begun).Round(time.Millisecond), err)
			return err
		case <-time.After(25 * time.Second):
			t.Fatalf("%s does not end", what)
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := publish(ctx, 1, 10); err != nil {
		t.Fatal(err)
	}
	g.freeze()
	short, cancelShort := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancelShort()
	// More than the system keeps for a reader that does not come.
	if err := within("publishing", func() error { return publish(short, 48, 512<<10) }); err == nil {
		t.Error("a broker that reads nothing has acknowledged")
	}
	if err := within("closing", p.Close); err != nil {
		t.Error(err)
	}
	g.thaw()
	await(t, "publishing again", func() bool { return publish(ctx, 1, 10) == nil })
	if err := within("closing again", p.Close); err != nil {
		t.Error(err)
	}
}

// kafkaStalls lets swallow take requests.
var kafkaStalls atomic.Bool
