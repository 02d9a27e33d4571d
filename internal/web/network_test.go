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

// TestAddressCounts: an address has what it may have, a /48 of IPv6 eight times as much however many networks of /64 it
// has; who leaves makes room, and nothing is kept of who left.
func TestAddressCounts(t *testing.T) {
	const most = 3
	var a AddressCounts
	at := func(site, network, host byte) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 5: site, 7: network, 15: host})
	}
	for host := range byte(most) {
		if !a.Enter(at(1, 0, host), most) {
			t.Fatalf("address %d is refused", host)
		}
	}
	if a.Enter(at(1, 0, 9), most) {
		t.Error("a /64 has more than an address may have")
	}
	entered := most
	for network := byte(1); network < 64; network++ {
		if a.Enter(at(1, network, 1), most) {
			entered++
		}
	}
	if entered != siteShare*most {
		t.Errorf("a /48 has %d, want %d", entered, siteShare*most)
	}
	if !a.Enter(at(2, 0, 1), most) || !a.Enter(netip.MustParseAddr("192.0.2.1"), most) {
		t.Error("others are refused")
	}
	a.Leave(at(1, 0, 7))
	if !a.Enter(at(1, 63, 1), most) || a.Enter(at(1, 62, 1), most) {
		t.Error("one that left makes room for one")
	}
	here := netip.MustParseAddr("127.0.0.1")
	for range 2 * siteShare * most {
		if !a.Enter(here, most) || !a.Enter(netip.Addr{}, most) || !a.Enter(at(3, 0, 1), 0) {
			t.Fatal("this machine, an unknown address, or one without a bound is refused")
		}
		a.Leave(at(3, 0, 1))
	}
	a.Leave(here)
	for network := byte(0); network < 64; network++ {
		for range most {
			a.Leave(at(1, network, 1))
		}
	}
	a.Leave(at(2, 0, 1))
	a.Leave(netip.MustParseAddr("192.0.2.1"))
	if n := a.Len(); n != 0 {
		t.Errorf("%d networks are left", n)
	}
}
