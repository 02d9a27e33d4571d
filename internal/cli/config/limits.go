package config

import (
	"net/netip"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/gate/limit"
)

// ConnectionLimit returns how many long-lived connections an address may have;
// below 0 for any number. Behind a proxy that is not trusted every client has the
// proxy's address, so that a limit would be one for all clients together.
func (c *Config) ConnectionLimit() int {
	if c.ConnectionsPerAddress == 0 || c.oneAddress() {
		return -1
	}
	return c.ConnectionsPerAddress
}

// openPerLasting is how many connections an address may have open for each WebSocket or event stream that it may have:
// browsers keep some open beside, and idle ones stay for two minutes.
const openPerLasting = 4

// OpenConnectionLimit returns how many connections an address may have open, long-lived ones and others; below 0 for
// any number.
func (c *Config) OpenConnectionLimit() int {
	if n := c.ConnectionLimit(); n > 0 {
		return openPerLasting * n
	}
	return -1
}

// oneAddress reports whether every client seems to have the same address.
func (c *Config) oneAddress() bool { return c.BehindProxy && len(c.TrustedProxies) == 0 }

// limitSetting is a setting that holds a limit.
type limitSetting struct{ key, per, text string }

// limitSettings returns the settings that hold a limit for claims, in the order in which limits uses
// them.
func (c *Config) limitSettings() [4]limitSetting {
	return [4]limitSetting{
		{"limit_user", "user", c.LimitUser},
		{"limit_address", "address", c.LimitAddress},
		{"limit_campaign", "campaign", c.LimitCampaign},
		{"limit_server", "server", c.LimitServer},
	}
}

// limits returns the limits of settings that keep accessRules.
func (c *Config) limits() limit.Config {
	var specs [4]*dibs.LimitSpec
	for i, l := range c.limitSettings() {
		if spec, err := dibs.ParseLimit(l.per, l.text); err == nil && l.text != "" {
			specs[i] = spec
		}
	}
	// listRules reports a file that cannot be read.
	lists, _ := c.Lists()
	return limit.Config{
		User: specs[0], Address: specs[1], Campaign: specs[2], Server: specs[3], Entries: c.LimitEntries,
		Lists: lists,
	}
}

// noLimit is the value of limit_calls that takes the limit away.
const noLimit = "none"

// CallLimits returns the limits of calls besides claims, of settings that keep accessRules;
// false for none.
func (c *Config) CallLimits() (limit.Config, bool) {
	spec, err := dibs.ParseLimit("user", c.LimitCalls)
	if err != nil || c.LimitCalls == noLimit {
		return limit.Config{}, false
	}
	return limit.Config{User: spec, Entries: c.LimitEntries}, true
}

// StrangerLimits returns the limits of calls without a token, by address, of settings that
// keep accessRules; false for none, and where all clients seem to have one address.
func (c *Config) StrangerLimits() (limit.Config, bool) {
	calls, some := c.CallLimits()
	if !some || c.oneAddress() {
		return limit.Config{}, false
	}
	spec := *calls.User
	spec.Per = "address"
	return limit.Config{Address: &spec, Entries: c.LimitEntries}, true
}

// Prefixes returns the networks of a setting that keeps accessRules.
func Prefixes(networks []string) []netip.Prefix {
	var list []netip.Prefix
	for _, network := range networks {
		if p, err := netip.ParsePrefix(network); err == nil {
			list = append(list, p.Masked())
		}
	}
	return list
}
