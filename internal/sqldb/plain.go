package sqldb

import (
	"crypto/tls"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// IsPlain reports whether a server of an address is reached over the network without TLS, or with TLS that takes any
// server for the right one. It judges what the driver makes of the address, of its options and of the environment, since
// both can name other hosts. An address that cannot be read is left to Check.
func IsPlain(address string) bool {
	u, err := url.Parse(address)
	if err != nil || !OnServer(address) {
		return false
	}
	if kindOf(u) == MySQL.String() {
		c, err := parseMySQL(u)
		return err == nil && !IsHere(c.Addr) && c.TLSConfig != "true"
	}
	c, err := parsePostgres(u)
	if err != nil {
		return false
	}
	plain := !IsHere(c.Host) && !verifies(c.TLSConfig)
	// The ways that are tried when the first one fails: other hosts, and the same one without TLS.
	for _, f := range c.Fallbacks {
		plain = plain || !IsHere(f.Host) && !verifies(f.TLSConfig)
	}
	return plain
}

// verifies reports whether a server has to show that it is the right one: by its name, or at least by an authority, as
// sslmode=verify-ca has it.
func verifies(c *tls.Config) bool {
	return c != nil && (!c.InsecureSkipVerify || c.VerifyPeerCertificate != nil)
}

// IsHere reports whether a host, with or without a port, is this machine: loopback, or a socket in a folder.
func IsHere(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || err == nil && ip.IsLoopback()
}
