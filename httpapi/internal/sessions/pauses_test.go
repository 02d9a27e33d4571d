package sessions

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// An address whose sign-ins fail waits longer each time, others do not, and what is
// remembered is bounded.
func TestPauses(t *testing.T) {
	var p Pauses
	at, other, now := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), time.Unix(1000, 0)
	wait := func() time.Duration {
		var e *dibs.Error
		if errors.As(p.Check(at, now), &e) {
			return e.RetryAfter
		}
		return 0
	}
	for i, want := range []time.Duration{0, 0, 0, 0, time.Second, 2 * time.Second, 4 * time.Second} {
		p.Fail(at, now)
		if got := wait(); got != want {
			t.Errorf("after %d failures: %s, want %s", i+1, got, want)
		}
		now = now.Add(wait())
	}
	if p.Check(other, now) != nil {
		t.Error("another address waits")
	}
	for range 100 {
		p.Fail(at, now)
	}
	if got := wait(); got != longestPause {
		t.Errorf("after very many failures: %s", got)
	}
	inNetwork := func(i byte) netip.Addr { return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: i}) }
	for i := range byte(2 * freeFailures) {
		p.Fail(inNetwork(i), now)
	}
	if p.Check(inNetwork(99), now) == nil || p.Check(netip.MustParseAddr("2001:db8:0:1::"), now) != nil {
		t.Error("a /64 of IPv6 does not wait as one address")
	}
	p.Succeed(inNetwork(0))
	p.Succeed(at)
	if wait() != 0 {
		t.Error("it waits after it signed in")
	}
	for i := range 2 * maxPaused {
		p.Fail(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
	}
	if len(p.failed) > maxPaused {
		t.Errorf("%d addresses are remembered", len(p.failed))
	}
	now = now.Add(longestPause + time.Second)
	p.Fail(at, now)
	if len(p.failed) != 1 {
		t.Errorf("%d addresses are remembered when their time is over", len(p.failed))
	}
}
