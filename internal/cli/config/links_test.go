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
		{"redis://127.0.0.1:26379?master_set=main", "", 1},
		{"redis://127.0.0.1:7001?addr=127.0.0.1:7002", "", 1},
		{"rediss://127.0.0.1:26379?master_set=main", "", 0},
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

// TestPlainTraces: spans go to another machine over TLS, whether a setting or OpenTelemetry's variables name it.
func TestPlainTraces(t *testing.T) {
	for _, c := range []struct {
		setting, variable, insecure string
		plain                       bool
	}{
		{"", "", "", false},
		{"http://127.0.0.1:4318", "", "", false},
		{"http://collector:4318", "", "", true},
		{"https://collector:4318", "", "", false},
		{"", "http://collector:4318", "", true},
		{"", "https://collector:4318", "", false},
		{"", "https://collector:4318", "true", true},
		{"", "http://localhost:4318", "", false},
		// The setting wins.
		{"https://collector:4318", "http://collector:4318", "true", false},
		{"http://collector:4318", "https://collector:4318", "", true},
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.variable)
		t.Setenv("OTEL_EXPORTER_OTLP_INSECURE", c.insecure)
		args := []string{"--otlp-endpoint", c.setting}
		if got, text := read(t, []Rule{linkRules}, nil, args...); text != "" || len(got.PlainLinks()) > 1 || (len(got.PlainLinks()) == 1) != c.plain {
			t.Errorf("%+v: %s, %v", c, text, got.PlainLinks())
		}
		if _, text := read(t, []Rule{linkRules}, nil, append(args, "--require-tls")...); strings.Contains(text, "without TLS") != c.plain {
			t.Errorf("%+v, with require_tls: %s", c, text)
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	if got, _ := read(t, []Rule{linkRules}, nil); len(got.PlainLinks()) != 0 {
		t.Errorf("without traces: %v", got.PlainLinks())
	}
}

// TestPlainWebhooks: webhooks over plain HTTP need a setting, which is told and refused as a plain link is.
func TestPlainWebhooks(t *testing.T) {
	got, text := read(t, []Rule{linkRules}, nil, "--webhook-allow-private")
	if links := got.PlainLinks(); text != "" || len(links) != 1 || !strings.HasPrefix(links[0], "webhook_allow_private lets webhooks be posted") {
		t.Errorf("%s, %v", text, links)
	}
	if _, text := read(t, []Rule{linkRules}, nil, "--webhook-allow-private", "--require-tls"); !strings.Contains(text, "webhook_allow_private (flag --webhook-allow-private): lets webhooks") {
		t.Errorf("with require_tls: %s", text)
	}
}
