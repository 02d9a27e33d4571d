package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/ledger/sqlledger"

	"github.com/dibs-dev/dibs/access"
)

// ServeRules are what production asks for, beyond ServerRules: a way to tell users apart, and TLS
// wherever other machines can reach an address.
func ServeRules(c *Config) []settings.Fault {
	fs := jwtSecretRules(c)
	if c.JWTSecret == "" && c.JWTSecretFile == "" && c.JWKSURL == "" {
		fs = append(fs, c.Fault("jwt_secret", "is required, to tell users apart; openssl rand -hex 32 makes one, and jwks_url can take its place"))
	}
	for key, address := range map[string]string{"listen": c.Listen, "admin_listen": c.AdminListen} {
		if c.TLSCert == "" && c.TLSKey == "" && !c.BehindProxy && listenProblem(address) == "" && !isLoopback(address) {
			fs = append(fs, c.Fault(key,
				"others could read tokens on the way: give --tls-cert and --tls-key, or --behind-proxy when a proxy in front ends TLS"))
		}
	}
	return fs
}

// defaultAdminListen is where administrators are served when others can reach listen.
const defaultAdminListen = "127.0.0.1:8081"

// SeparateAdmin gives administrators an address of their own on this machine when other
// machines can reach listen, by itself or through a proxy on this machine: API keys, metrics and
// profiles are not for them. Settings that say where, or that both are one, stay.
func (c *Config) SeparateAdmin() {
	if c.AdminListen != "" || c.AdminPublic || isLoopback(c.Listen) && !c.BehindProxy {
		return
	}
	c.AdminListen = defaultAdminListen
	// A caller that asks for a free port, as tests do, may run several servers on one machine.
	if _, port, err := net.SplitHostPort(c.Listen); err == nil && port == "0" {
		c.AdminListen = "127.0.0.1:0"
	}
}

// DevRules are for dev, beyond ServerRules. They keep other machines out, since a
// dev_ token lets its sender be any user, and keep a ledger from outliving its
// journal.
func DevRules(c *Config) []settings.Fault {
	var fs []settings.Fault
	for _, l := range []struct{ key, address string }{{"listen", c.Listen}, {"admin_listen", c.AdminListen}} {
		// Every address serves users, that of administrators too.
		if listenProblem(l.address) == "" && !isLoopback(l.address) {
			fs = append(fs, c.Fault(l.key, "dev believes every client about its user, so it serves on loopback only, such as 127.0.0.1:8080; see dibs serve"))
		}
	}
	switch temporary := !c.Given("data") && !sqlledger.InServer(c.Ledger); {
	case temporary && c.OnRedis():
		fs = append(fs, c.Fault("data", "without it the ledger is removed at the end, and what stays in Redis would not fit the next ledger: give --data, or --ledger in a server"))
	case temporary && c.Given("ledger"):
		fs = append(fs, c.Fault("ledger", "without --data the journal is removed at the end, and the ledger that stays would not fit the next journal: give --data too"))
	}
	return fs
}

// ClientRules are for verbs that call a server as an admin. signedIn says that the user is signed in there.
func ClientRules(signedIn func(url string) bool) Rule {
	return func(c *Config) []settings.Fault {
		// The key's form is the server's to judge.
		return append(CallRules(c), c.faultIf(c.AdminKey == "" && !signedIn(c.URL), "admin_key",
			"is required to call a server as an admin, unless you sign in by dibs login; dibs dev prints the key of its server")...)
	}
}

// CallRules are for verbs that call a server.
func CallRules(c *Config) []settings.Fault {
	u, err := url.Parse(c.URL)
	_, faults := c.CallTLS()
	return append(c.faultIf(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https",
		"url", "must be an address such as http://127.0.0.1:8080"), faults...)
}

// CallTLS is how verbs speak TLS with a server: with a client certificate and authorities of
// their own where the settings have some; nil for the system's way. It returns a fault for each
// file that cannot be used.
func (c *Config) CallTLS() (*tls.Config, []settings.Fault) {
	if c.ClientCert == "" && c.ClientKey == "" && c.ServerCA == "" {
		return nil, nil
	}
	var fs []settings.Fault
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.ClientCert != "" || c.ClientKey != "" {
		pair, err := tls.LoadX509KeyPair(c.ClientCert, c.ClientKey)
		if err != nil {
			fs = append(fs, c.Fault("client_cert", "cannot be used with client_key: "+err.Error()))
		}
		t.Certificates = []tls.Certificate{pair}
	}
	if c.ServerCA != "" {
		var err error
		t.RootCAs, err = ReadAuthorities(c.ServerCA)
		fs = append(fs, c.judgeErr("server_ca", err)...)
	}
	return t, fs
}

// listenProblem says why an address cannot be listened on; empty for a good one.
func listenProblem(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "must be a host and a port, such as 127.0.0.1:8080"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 {
		return "must have a port from 0 to 65535"
	}
	return ""
}

// isLoopback reports whether only this machine can reach an address. A name other than localhost may
// stand for any address, and counts as reachable.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// maxKeyLen is the greatest length of an API key in bytes.
const maxKeyLen = 255

// adminKeyProblem says why a text cannot be an API key; empty for a good key, and
// for none.
func adminKeyProblem(key string) string {
	switch {
	case key == "":
		return ""
	case len(key) < access.MinKeyLen || len(key) > maxKeyLen || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Sprintf("must be %d to %d visible characters", access.MinKeyLen, maxKeyLen)
	case isWeak([]byte(key)):
		return fmt.Sprintf("must have at least %d different characters: openssl rand -hex 24 makes a key", minDifferent)
	case strings.HasPrefix(key, "dev_") || strings.HasPrefix(key, "eyJ"):
		// The server tells keys from tokens by how they begin.
		return "must not look like a user's token: begin it with anything but dev_ and eyJ"
	}
	return ""
}
