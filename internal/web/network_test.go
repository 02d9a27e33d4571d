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

// TestAddressesQueueAtManyLocks: addresses are spread over the locks, all networks of a /48 of IPv6 are at one, and counting
// allocates nothing: claims over HTTP/2 are counted.
func TestAddressesQueueAtManyLocks(t *testing.T) {
	var a AddressCounts
	v4 := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}) }
	v6 := func(site, network int) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 4: byte(site >> 8), 5: byte(site), 7: byte(network), 15: 1})
	}
	const addresses = 64 * countShards
	for what, at := range map[string]func(int) netip.Addr{"IPv4": v4, "/48 of IPv6": func(i int) netip.Addr { return v6(i, i) }} {
		shares := map[*countShard]int{}
		for i := range addresses {
			network := Network(at(i))
			shares[a.shardOf(network, siteOf(network))]++
		}
		largest := 0
		for _, n := range shares {
			largest = max(largest, n)
		}
		// By chance a share is above twice the mean in far less than one of a million runs.
		if len(shares) != countShards || largest > 2*addresses/countShards {
			t.Errorf("%s: %d addresses at %d locks, %d at one of them", what, addresses, len(shares), largest)
		}
	}
	one := Network(v6(1, 0))
	for network := range 256 {
		other := Network(v6(1, network))
		if a.shardOf(one, siteOf(one)) != a.shardOf(other, siteOf(other)) {
			t.Fatalf("network %d of a /48 is counted apart from it", network)
		}
	}
	for _, at := range []netip.Addr{v4(1), v6(1, 1)} {
		a.Enter(at, 0)
		if n := testing.AllocsPerRun(100, func() {
			a.Enter(at, 100)
			a.Leave(at)
		}); n > 0 {
			t.Errorf("%s: %v allocations", at, n)
		}
	}
}

// BenchmarkAddressCounts counts requests of many addresses at once, as claims over HTTP/2 are counted.
func BenchmarkAddressCounts(b *testing.B) {
	var a AddressCounts
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			at := netip.AddrFrom4([4]byte{203, byte(i >> 16), byte(i >> 8), byte(i)})
			if a.Enter(at, 100) {
				a.Leave(at)
			}
		}
	})
}
