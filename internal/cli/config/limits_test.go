package config

import (
	"net/netip"
	"testing"
)

func TestLimits(t *testing.T) {
	c := &Config{LimitUser: "20/s", LimitServer: "100/1m,burst=300", LimitEntries: 5000, BlockDevices: []string{"farm"}}
	l := c.limits()
	if l.User == nil || l.User.Rate != 20 || l.Address != nil || l.Campaign != nil || l.Server == nil || l.Server.Burst != 300 || l.Entries != 5000 {
		t.Errorf("%+v", l)
	}
	if len(l.Lists.BlockedDevices) != 1 || l.Lists.BlockedDevices[0] != "farm" {
		t.Errorf("%+v", l.Lists)
	}
}

// TestConnectionLimit: no limit holds for clients that cannot be told apart.
func TestConnectionLimit(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   int
	}{
		{Config{ConnectionsPerAddress: 7}, 7},
		{Config{}, -1},
		{Config{ConnectionsPerAddress: 7, BehindProxy: true}, -1},
		{Config{ConnectionsPerAddress: 7, BehindProxy: true, TrustedProxies: []string{"10.0.0.0/8"}}, 7},
	} {
		if got := c.config.ConnectionLimit(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.config, got, c.want)
		}
		if got := c.config.OpenConnectionLimit(); got != max(4*c.want, -1) {
			t.Errorf("%+v: %d open connections", c.config, got)
		}
	}
}

// TestStrangerLimits: addresses are bounded as users are, where they can be told apart.
func TestStrangerLimits(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   bool
	}{
		{Config{LimitCalls: "100/s,burst=1000"}, true},
		{Config{LimitCalls: noLimit}, false},
		{Config{LimitCalls: "100/s", BehindProxy: true}, false},
		{Config{LimitCalls: "100/s", BehindProxy: true, TrustedProxies: []string{"10.0.0.0/8"}}, true},
	} {
		l, ok := c.config.StrangerLimits()
		if ok != c.want || ok && (l.Address == nil || l.Address.Rate != 100 || l.User != nil) {
			t.Errorf("%+v: %v %+v", c.config, ok, l)
		}
	}
}

func TestPrefixes(t *testing.T) {
	got := Prefixes([]string{"10.1.2.3/8", "nonsense", "::1/128"})
	if len(got) != 2 || got[0] != netip.MustParsePrefix("10.0.0.0/8") || got[1] != netip.MustParsePrefix("::1/128") {
		t.Errorf("%v", got)
	}
}
