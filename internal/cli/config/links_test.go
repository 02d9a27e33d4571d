package config

import (
	"strings"
	"testing"
)

// TestPlainLinks: addresses over the network need TLS that cannot be turned off on the
// way; those of this machine need none.
func TestPlainLinks(t *testing.T) {
	for _, c := range []struct {
		engine, ledger string
		plain          int
	}{
		{"memory", "", 0},
		{"redis://:pw@127.0.0.1:6379/0", "mysql://u:p@localhost:3306/d", 0},
		{"redis://[::1]:6379", "sqlite:x.db", 0},
		{"unix:///run/redis.sock", "", 0},
		{"redis://redis.internal:6379", "", 1},
		{"redis://127.0.0.1:6379?addr=10.0.0.2:6379", "", 1},
		{"rediss://redis.internal:6379", "mysql://u:p@db.internal/d?tls=true", 0},
		{"memory", "mysql://u:p@db.internal/d", 1},
		{"memory", "mysql://u:p@db.internal/d?tls=preferred", 1},
		{"memory", "postgres://u:p@db1,db2:5432/d", 1},
		{"memory", "postgres://u:p@db/d?sslmode=prefer", 1},
		{"memory", "postgres://u:p@db/d?sslmode=verify-full", 0},
		{"memory", "postgres://u:p@127.0.0.1:5432,10.0.0.1:5432/d", 1},
		{"memory", "mysql://u:p@db.internal/d?tls=skip-verify", 1},
		{"memory", "postgres://u:p@localhost/d?host=db.internal", 1},
		{"memory", "postgres://u:p@db.internal/d?sslmode=require", 1},
		{"rediss://redis.internal:6379?skip_verify=true", "", 1},
		{"redis://10.0.0.1", "mysql://u:p@10.0.0.2/d", 2},
		{"redis://10.0.0.1 redis://127.0.0.1 redis://10.0.0.3", "", 2},
	} {
		args := []string{"--engine", c.engine, "--ledger", c.ledger}
		got, text := read(t, []Rule{linkRules}, nil, args...)
		if text != "" || len(got.PlainLinks()) != c.plain {
			t.Errorf("engine %s, ledger %s: %s, %v", c.engine, c.ledger, text, got.PlainLinks())
		}
		if _, text := read(t, []Rule{linkRules}, nil, append(args, "--require-tls")...); strings.Count(text, "without TLS") != c.plain || strings.Contains(text, "u:p") {
			t.Errorf("engine %s, ledger %s, with require_tls: %s", c.engine, c.ledger, text)
		}
	}
}

// TestPlainSinks: events go over links that are encrypted, as claims do.
func TestPlainSinks(t *testing.T) {
	for sink, plain := range map[string]bool{
		"redis://localhost:6379?stream=s": false, "redis://redis.internal?stream=s": true, "rediss://redis.internal?stream=s": false,
		"nats://nats.internal/s": true, "tls://nats.internal/s": false, "amqp://u:p@mq.internal/v?exchange=e": true, "amqps://u:p@mq.internal/v?exchange=e": false,
		"kafka://k.internal/t": true, "kafka://k.internal/t?tls=true": false, "kafka://127.0.0.1:9092/t?addr=k.internal:9092": true,
	} {
		if _, text := read(t, []Rule{linkRules}, nil, "--events", sink, "--require-tls"); strings.Contains(text, "without TLS") != plain || strings.Contains(text, "u:p") {
			t.Errorf("%s: %s", sink, text)
		}
	}
}
