package config

import (
	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/limit"
)

// ConnectionLimit is what a gateway takes: below 0 for no bound. Behind a
// proxy that is not trusted all have one address.
func (c *Config) ConnectionLimit() int {
	if c.ConnectionsPerAddress == 0 || c.BehindProxy && len(c.TrustedProxies) == 0 {
		return -1
	}
	return c.ConnectionsPerAddress
}

// limitSetting is a setting that is a limit.
type limitSetting struct {
	key, per string
	text     *string
}

func (c *Config) limitSettings() []limitSetting {
	return []limitSetting{
		{"limit_user", "user", &c.LimitUser},
		{"limit_address", "address", &c.LimitAddress},
		{"limit_campaign", "campaign", &c.LimitCampaign},
		{"limit_server", "server", &c.LimitServer},
	}
}

// limits are the limits of the settings, which were checked.
func (c *Config) limits() limit.Config {
	var specs [4]*dibs.LimitSpec
	for i, l := range c.limitSettings() {
		if spec, err := dibs.ParseLimit(l.per, *l.text); err == nil && *l.text != "" {
			specs[i] = spec
		}
	}
	// A file that cannot be read is listRules' to tell.
	lists, _ := c.Lists()
	return limit.Config{
		User: specs[0], Address: specs[1], Campaign: specs[2], Server: specs[3], Entries: c.LimitEntries,
		Lists: lists,
	}
}
