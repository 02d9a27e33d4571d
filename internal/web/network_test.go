package web

import (
	"net/netip"
	"testing"
)

// TestNetwork: a /64 of IPv6 is one address, however it is written; this machine and an unknown address are none.
func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8:0:1::7": "2001:db8:0:1::/64", "2001:db8:0:1:ffff::": "2001:db8:0:1::/64",
		"127.0.0.1": "invalid Prefix", "::1": "invalid Prefix", "::ffff:127.0.0.1": "invalid Prefix",
	} {
		if got := Network(netip.MustParseAddr(address)).String(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if Network(netip.Addr{}).IsValid() {
		t.Error("no address is one")
	}
}
