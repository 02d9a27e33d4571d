package sinks

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestNames: a name is what the ledger has room for, and tells sinks apart.
func TestNames(t *testing.T) {
	t.Parallel()
	long := "redis://u:secret-pw@h:6379/0?stream=" + strings.Repeat("流", 100)
	a, b := Name(long+"a"), Name(long+"b")
	if a == b || len(a) > maxName || len(b) > maxName || strings.Contains(a, "secret-pw") || !strings.HasPrefix(a, "redis://h:6379/0?stream=流") {
		t.Errorf("the names are %q and %q", a, b)
	}
	if short := Name("redis://h:6379?stream=s"); short != "redis://h:6379?stream=s" {
		t.Errorf("the name is %q", short)
	}
}

// TestBadOptionsOfRedis: what a client of Redis does not start with is a fault of the address.
func TestBadOptionsOfRedis(t *testing.T) {
	t.Parallel()
	for _, option := range []string{"dial_timeout=soon", "db=first"} {
		if err := Check("redis://u:secret-pw@h:6379?" + option); err == nil || strings.Contains(err.Error(), "secret-pw") {
			t.Errorf("%s: %v", option, err)
		}
	}
}

// TestNoSecretsInErrors: neither a password nor a token is repeated.
func TestNoSecretsInErrors(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"nats://secret-token@127.0.0.1:1", "nats://u:secret-token@127.0.0.1:1", "amqp://u:secret-token@127.0.0.1:1/", "redis://u:secret-token@127.0.0.1:1"} {
		p, err := Open(address)
		if err != nil {
			t.Fatal(err)
		}
		u, _, err := parse(address)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err = p.Publish(ctx, []Message{{ID: "x", Type: "x", Subject: "x"}})
		cancel()
		if err == nil || strings.Contains(err.Error(), "secret-token") {
			t.Errorf("%s: %v", Name(address), err)
		}
		if text := tidied(fmt.Errorf("dial %s: refused", u), u).Error(); strings.Contains(text, "secret-token") {
			t.Errorf("an error says %s", text)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
