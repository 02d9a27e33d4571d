package lists

import (
	"net/netip"
	"testing"
)

// TestReceivers: one address receives a few lists at a time, as one /64 of IPv6 does, and all of them together a bounded
// number; who leaves makes room. However many networks of /64 a /48 has, most places are left for others.
func TestReceivers(t *testing.T) {
	l := New()
	in := func(at netip.Addr, n int) (entered int) {
		for range n {
			if l.Enter(at) {
				entered++
			}
		}
		return entered
	}
	// The same network, at ever other addresses.
	for i := range listsPerAddress {
		if !l.Enter(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i)})) {
			t.Fatalf("address %d is refused", i)
		}
	}
	same, other := netip.MustParseAddr("2001:db8::ffff"), netip.MustParseAddr("2001:db8:0:1::1")
	if l.Enter(same) {
		t.Error("a network receives more than its share")
	}
	if n := in(other, 2*listsPerAddress); n != listsPerAddress {
		t.Errorf("another network receives %d", n)
	}
	l.Leave(same)
	if n := in(same, 2); n != 1 {
		t.Errorf("%d entered in place of one that left", n)
	}
	here := netip.MustParseAddr("127.0.0.1")
	if n := in(here, 2*maxReceivers); n != maxReceivers-2*listsPerAddress {
		t.Errorf("%d of this machine receive, beside %d others", n, 2*listsPerAddress)
	}
	l.Leave(here)
	if !l.Enter(netip.MustParseAddr("192.0.2.1")) || l.Enter(netip.MustParseAddr("192.0.2.2")) {
		t.Error("the last place in all")
	}
	for range maxReceivers - 1 - 2*listsPerAddress {
		l.Leave(here)
	}
	var greedy []netip.Addr
	for network := range byte(64) {
		at := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 5: 7, 7: network})
		for range in(at, listsPerAddress) {
			greedy = append(greedy, at)
		}
	}
	if len(greedy) != 8*listsPerAddress || in(netip.MustParseAddr("192.0.2.3"), 1) != 1 {
		t.Errorf("64 networks of one /48 receive %d lists, and another address none", len(greedy))
	}
	for _, at := range append(greedy, netip.MustParseAddr("192.0.2.3")) {
		l.Leave(at)
	}
	for range listsPerAddress {
		l.Leave(same)
		l.Leave(other)
	}
	l.Leave(netip.MustParseAddr("192.0.2.1"))
	if l.receivers.Len() != 0 || l.receiving != 0 {
		t.Errorf("%d addresses, %d receivers are left", l.receivers.Len(), l.receiving)
	}
}
