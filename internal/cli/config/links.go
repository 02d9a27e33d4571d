package config

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/tracing"
)

// plainLink is a setting whose address sends passwords, claims and codes over the network
// as they are, with what to write in its place.
type plainLink struct{ key, problem string }

// plainLinks returns the addresses of the engine, the ledger, the sinks of events and the collector of traces that are
// reached without TLS, or with TLS that a man in the middle can turn off, over anything but this machine, and settings
// that allow such addresses. An address that cannot be read is left to the rules of its form. The issuer of tokens and
// the identity provider are never reached without TLS.
func (c *Config) plainLinks() []plainLink {
	var links []plainLink
	add := func(key, remedy string) {
		links = append(links, plainLink{key, "is reached over the network without TLS, or with TLS that takes any server for the right one: use " + remedy})
	}
	for _, engine := range c.Engine {
		if brokerIsPlain(engine) {
			add("engine", "rediss://")
		}
	}
	if sqlledger.IsPlain(c.Ledger) {
		add("ledger", "?tls=true for MySQL, ?sslmode=verify-full for PostgreSQL")
	}
	for _, sink := range c.Events {
		if brokerIsPlain(sink) {
			add("events", "rediss://, tls:// for NATS, amqps://, ?tls=true for Kafka")
		}
	}
	if tracing.IsPlain(c.OTLPEndpoint, sqlledger.IsHere) {
		// OpenTelemetry's variables are no settings: the fault stands at the setting in whose place they are.
		add("otlp_endpoint", "https://, there or in OTEL_EXPORTER_OTLP_ENDPOINT")
	}
	if c.WebhookPrivate {
		links = append(links, plainLink{"webhook_allow_private", "lets webhooks be posted over the network without TLS: leave it out"})
	}
	return links
}

// brokerIsPlain reports whether the address of Redis, or of a sink of events, leads over the network without TLS that
// verifies the server, or may do so.
func brokerIsPlain(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	options := u.Query()
	// Sentinels, and nodes of a cluster, name the servers that are spoken with then, which may be on other machines.
	if u.Scheme == "redis" && (options.Has("master_set") || options.Has("addr")) {
		return true
	}
	if !slices.ContainsFunc(append(strings.Split(u.Host, ","), options["addr"]...), func(host string) bool { return !sqlledger.IsHere(host) }) {
		return false
	}
	switch u.Scheme {
	case "redis", "nats", "amqp":
		return true
	case "kafka":
		encrypted, err := strconv.ParseBool(options.Get("tls"))
		return err != nil || !encrypted
	}
	// Everything but a clear no counts as yes.
	return options.Has("skip_verify") && options.Get("skip_verify") != "false" && options.Get("skip_verify") != "0"
}

// linkRules refuse plain links where the settings require TLS.
func linkRules(c *Config) []settings.Fault {
	if !c.RequireTLS {
		return nil
	}
	var fs []settings.Fault
	for _, l := range c.plainLinks() {
		fs = append(fs, c.Fault(l.key, l.problem))
	}
	return fs
}

// PlainLinks tells of links without TLS in words, for a server that may have them.
func (c *Config) PlainLinks() []string {
	var told []string
	for _, l := range c.plainLinks() {
		told = append(told, l.key+" "+l.problem+"; require_tls refuses to start so")
	}
	return told
}
