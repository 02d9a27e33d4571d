package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/internal/web"
	"github.com/dibs-dev/dibs/tokens"
)

// accessRules check who may call the server, from where and how often. They connect to nothing.
func accessRules(c *Config) []settings.Fault {
	fs := slices.Concat(secretRules(c), humanRules(c), listRules(c), networkRules(c), limitRules(c), approveRules(c), oidcRules(c))
	if c.JWKSURL != "" {
		fs = append(fs, c.judgeErr("jwks_url", tokens.CheckJWKS(c.JWKSURL))...)
	}
	if c.AdminListen != "" {
		problem := listenProblem(c.AdminListen)
		// Port 0 twice is two ports.
		if problem == "" && c.AdminListen == c.Listen && !strings.HasSuffix(c.Listen, ":0") {
			problem = "must be another address than listen"
		}
		fs = append(fs, c.judge("admin_listen", problem)...)
	}
	for _, origin := range c.CORSOrigins {
		if problem := web.CheckOrigin(origin); problem != "" {
			fs = append(fs, c.Fault("cors_origins", fmt.Sprintf("%q %s", origin, problem)))
		}
	}
	return fs
}

// networkRules check the networks of proxies and clients. Behind a proxy that nobody trusts, every
// client has the proxy's address: a list of addresses would block all clients or none.
func networkRules(c *Config) []settings.Fault {
	var fs []settings.Fault
	for key, networks := range map[string][]string{
		"trusted_proxies": c.TrustedProxies, "block_addresses": c.BlockAddresses, "allow_addresses": c.AllowAddresses,
	} {
		for _, network := range networks {
			if _, err := netip.ParsePrefix(network); err != nil {
				fs = append(fs, c.Fault(key, fmt.Sprintf("%q must be a network such as 10.0.0.0/8; one address is 192.0.2.7/32", network)))
			}
		}
	}
	if len(c.BlockAddresses)+len(c.AllowAddresses) > 0 && c.oneAddress() {
		fs = append(fs, c.Fault("trusted_proxies", "is needed to tell addresses apart behind_proxy"))
	}
	return fs
}

// limitRules check the form of the limits. A limit per address is refused where all clients share one.
func limitRules(c *Config) (fs []settings.Fault) {
	for _, l := range c.limitSettings() {
		if l.text != "" {
			_, err := dibs.ParseLimit(l.per, l.text)
			fs = append(fs, c.judgeErr(l.key, err)...)
		}
	}
	if c.LimitCalls != noLimit {
		_, err := dibs.ParseLimit("user", c.LimitCalls)
		fs = append(fs, c.judgeErr("limit_calls", err)...)
	}
	// One client that presses fast would use up the limit of all.
	return append(fs, c.faultIf(c.LimitAddress != "" && c.oneAddress(), "limit_address",
		"with behind_proxy it needs trusted_proxies: without them every client has the proxy's address")...)
}
