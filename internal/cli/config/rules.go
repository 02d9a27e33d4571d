package config

import (
	"crypto/tls"
	"fmt"
	"slices"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events/sinks"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/tracing"
)

// StoreRules are for verbs that open the engine or the ledger.
func StoreRules(c *Config) []settings.Fault {
	var fs []settings.Fault
	if c.Data == "" {
		fs = append(fs, c.Fault("data", "must name a folder"))
	}
	if problem := EngineProblem(c.Engine); problem != "" {
		fs = append(fs, c.Fault("engine", problem))
	}
	if problem := LedgerProblem(c.Ledger); problem != "" {
		fs = append(fs, c.Fault("ledger", problem))
	}
	if level := c.Durability; c.Engine == node.Memory && level != "" && level != dibs.LevelDurable && level != dibs.LevelLedgered {
		fs = append(fs, c.Fault("durability", fmt.Sprintf(
			"the memory engine is always durable, at no extra cost, and has no replicas: choose durable or ledgered, not %q", level)))
	}
	return fs
}

// ServerRules are for verbs that run a server, or judge the settings of one.
func ServerRules(c *Config) []settings.Fault {
	fs := StoreRules(c)
	if problem := listenProblem(c.Listen); problem != "" {
		fs = append(fs, c.Fault("listen", problem))
	}
	if problem := adminKeyProblem(c.AdminKey); problem != "" {
		fs = append(fs, c.Fault("admin_key", problem))
	}
	if c.Engine == node.Memory && c.DurabilityLost == dibs.WarnLost {
		fs = append(fs, c.Fault("durability_lost", "the memory engine cannot grant what it cannot write: leave it out, or choose refuse"))
	}
	if c.Given("push_first") && c.PushFirst > c.PushThreshold {
		fs = append(fs, c.Fault("push_first", fmt.Sprintf("must be at most push_threshold, %d: up to that many followers are told at once", c.PushThreshold)))
	}
	if c.OTLPEndpoint != "" {
		if err := tracing.CheckEndpoint(c.OTLPEndpoint); err != nil {
			fs = append(fs, c.Fault("otlp_endpoint", err.Error()))
		}
	}
	return slices.Concat(fs, eventsRules(c), tlsRules(c), accessRules(c))
}

// eventsRules report sinks with a bad address, and sinks that are named twice.
func eventsRules(c *Config) []settings.Fault {
	var fs []settings.Fault
	seen := make(map[string]bool)
	for _, sink := range c.Events {
		name := sinks.Name(sink)
		if err := sinks.Check(sink); err != nil {
			fs = append(fs, c.Fault("events", name+": "+err.Error()))
		} else if seen[name] {
			fs = append(fs, c.Fault("events", name+" is named twice"))
		}
		seen[name] = true
	}
	return fs
}

// tlsRules report a certificate or a key that cannot be used.
func tlsRules(c *Config) []settings.Fault {
	switch {
	case c.TLSCert == "" && c.TLSKey == "":
		return nil
	case c.TLSKey == "":
		return []settings.Fault{c.Fault("tls_key", "tls_cert needs it")}
	case c.TLSCert == "":
		return []settings.Fault{c.Fault("tls_cert", "tls_key needs it")}
	}
	if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
		return []settings.Fault{c.Fault("tls_cert", "cannot be used with tls_key: "+err.Error())}
	}
	return nil
}
