package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/embedded"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/sqlledger"
	"github.com/dibs-dev/dibs/tracing"

	"github.com/dibs-dev/dibs/internal/cli"
)

// StoreRules are for verbs that open engine or ledger.
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
	if level := c.Durability; c.Engine == embedded.Memory && level != "" && level != dibs.LevelDurable && level != dibs.LevelLedgered {
		fs = append(fs, c.Fault("durability", fmt.Sprintf(
			"the memory engine is always durable, at no extra cost, and has no replicas: say durable or ledgered, not %q", level)))
	}
	return fs
}

// LedgerProblem says what is wrong with the address of a ledger, as far as it can
// be seen without going there; empty for a good one, and for none.
func LedgerProblem(ledger string) string {
	if ledger == "" {
		return ""
	}
	if err := sqlledger.Check(ledger); err != nil {
		return cli.Message(err)
	}
	return ""
}

// engineForm is how the engine is named.
const engineForm = "must be memory, or the address of Redis such as redis://HOST:6379 (rediss:// for TLS)"

// engineOptions are the options of an address of Redis.
var engineOptions = []string{"addr", "master_set", "db", "skip_verify", "protocol", "client_name", "dial_timeout", "write_timeout"}

// EngineProblem says what is wrong with an engine's name, as far as it can be
// seen without going there. It repeats no password.
func EngineProblem(engine string) string {
	if engine == embedded.Memory {
		return ""
	}
	u, err := url.Parse(engine)
	switch {
	case err != nil:
		return "the address cannot be read (write special characters in a password as %40)"
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix", u.Opaque != "":
		return engineForm
	case u.Scheme != "unix" && u.Hostname() == "":
		return "names no host: " + engineForm
	}
	if database := strings.TrimPrefix(u.Path, "/"); u.Scheme != "unix" && database != "" {
		if _, err := strconv.ParseUint(database, 10, 16); err != nil {
			return "must end with the number of a database, if with anything, such as redis://HOST:6379/0"
		}
	}
	for option := range u.Query() {
		if !slices.Contains(engineOptions, option) {
			return fmt.Sprintf("there is no option %q, only %s", option, strings.Join(engineOptions, ", "))
		}
	}
	return ""
}

// ServerRules are for verbs that listen.
func ServerRules(c *Config) []settings.Fault {
	fs := StoreRules(c)
	if problem := ListenProblem(c.Listen); problem != "" {
		fs = append(fs, c.Fault("listen", problem))
	}
	if problem := adminKeyProblem(c.AdminKey); problem != "" {
		fs = append(fs, c.Fault("admin_key", problem))
	}
	if c.Engine == embedded.Memory && c.DurabilityLost == dibs.WarnLost {
		fs = append(fs, c.Fault("durability_lost", "the memory engine cannot grant what it cannot write: leave it out, or say refuse"))
	}
	if c.Given("push_first") && c.PushFirst > c.PushThreshold {
		fs = append(fs, c.Fault("push_first", fmt.Sprintf("must be at most push_threshold, %d: up to so many, all hear at once", c.PushThreshold)))
	}
	if c.OTLPEndpoint != "" {
		if err := tracing.CheckEndpoint(c.OTLPEndpoint); err != nil {
			fs = append(fs, c.Fault("otlp_endpoint", err.Error()))
		}
	}
	return append(append(append(fs, eventsRules(c)...), tlsRules(c)...), accessRules(c)...)
}

// eventsRules find sinks that cannot be used, and such as are there twice.
func eventsRules(c *Config) []settings.Fault {
	var fs []settings.Fault
	seen := make(map[string]bool)
	for _, sink := range c.Events {
		name := events.Name(sink)
		if err := events.Check(sink); err != nil {
			fs = append(fs, c.Fault("events", name+": "+err.Error()))
		} else if seen[name] {
			fs = append(fs, c.Fault("events", name+" is there twice"))
		}
		seen[name] = true
	}
	return fs
}

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

// ListenProblem says why an address cannot be listened on; empty for a good one.
func ListenProblem(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "must be a host and a port, such as 127.0.0.1:8080"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 {
		return "must have a port from 0 to 65535"
	}
	return ""
}

// IsLoopback reports whether only this machine can reach an address.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// maxKeyLen is the longest API key.
const maxKeyLen = 255

// adminKeyProblem says why a key cannot be an API key; empty means no key, or
// a good one.
func adminKeyProblem(key string) string {
	switch {
	case key == "":
		return ""
	case len(key) < dibs.MinKeyLen || len(key) > maxKeyLen || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Sprintf("must be %d to %d visible characters", dibs.MinKeyLen, maxKeyLen)
	case strings.HasPrefix(key, "dev_") || strings.HasPrefix(key, "eyJ"):
		return "must not look like a user's token: begin it with anything but dev_ and eyJ"
	}
	return ""
}

// ClientRules are for verbs that speak to a server.
func ClientRules(c *Config) []settings.Fault {
	var fs []settings.Fault
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		fs = append(fs, c.Fault("url", "must be an address such as http://127.0.0.1:8080"))
	}
	if c.AdminKey == "" {
		fs = append(fs, c.Fault("admin_key", "is required to speak to a server as an admin"))
	}
	return fs
}
