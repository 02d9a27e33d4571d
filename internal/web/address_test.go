package web

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		what, peer, header string
		lines              []string
		want               string
	}{
		{"no proxy", "192.0.2.1:5000", ForwardedFor, nil, "192.0.2.1"},
		{"a peer that is no proxy and says it is", "192.0.2.1:5000", ForwardedFor, []string{"203.0.113.9"}, "192.0.2.1"},
		{"one proxy", "10.0.0.1:5000", ForwardedFor, []string{"203.0.113.9"}, "203.0.113.9"},
		{"two proxies", "10.0.0.1:5000", ForwardedFor, []string{"203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{"what the client made up", "10.0.0.1:5000", ForwardedFor, []string{"8.8.8.8, 203.0.113.9"}, "203.0.113.9"},
		{"what the client made up, of the inside", "10.0.0.1:5000", ForwardedFor, []string{"10.9.9.9, 203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{"several lines", "10.0.0.1:5000", ForwardedFor, []string{"8.8.8.8", "203.0.113.9", "10.0.0.2"}, "203.0.113.9"},
		{"ports and brackets", "[fd00::1]:5000", ForwardedFor, []string{"[2001:db8::7]:4711, [fd00::2]"}, "2001:db8::7"},
		{"IPv4 as IPv6", "[::ffff:10.0.0.1]:5000", ForwardedFor, []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"a zone", "10.0.0.1:5000", ForwardedFor, []string{"fe80::1%eth0"}, "fe80::1"},
		{"nothing said", "10.0.0.1:5000", ForwardedFor, nil, "10.0.0.1"},
		{"everybody is a proxy", "10.0.0.1:5000", ForwardedFor, []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"somebody who is not named", "10.0.0.1:5000", ForwardedFor, []string{"8.8.8.8, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"garbage", "10.0.0.1:5000", ForwardedFor, []string{"8.8.8.8, <script>"}, "10.0.0.1"},
		{"an empty element", "10.0.0.1:5000", ForwardedFor, []string{"8.8.8.8,"}, "10.0.0.1"},
		{"an endless element", "10.0.0.1:5000", ForwardedFor, []string{strings.Repeat("1", 4000)}, "10.0.0.1"},
		{"the header that does not count", "10.0.0.1:5000", Forwarded, nil, "10.0.0.1"},
		{"Forwarded", "10.0.0.1:5000", Forwarded, []string{`for=203.0.113.9;proto=https;by=10.0.0.1`}, "203.0.113.9"},
		{"Forwarded with quotes", "10.0.0.1:5000", Forwarded, []string{`for=8.8.8.8, For="[2001:db8::7]:4711";host="a,b", for=10.0.0.2`}, "2001:db8::7"},
		{"Forwarded, hidden", "10.0.0.1:5000", Forwarded, []string{`for=8.8.8.8, for=_hidden`}, "10.0.0.1"},
		{"Forwarded without for", "10.0.0.1:5000", Forwarded, []string{`proto=https`}, "10.0.0.1"},
		{"a peer that is no address", "@", ForwardedFor, []string{"203.0.113.9"}, "invalid IP"},
	} {
		p := Proxies{Trusted: trusted, Header: c.header}
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{c.header: c.lines}}
		if c.header == Forwarded {
			r.Header[ForwardedFor] = []string{"198.51.100.1"}
		}
		if got := p.Client(r).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// For every header, the answer is an address of it, or the peer.
func FuzzClientAddress(f *testing.F) {
	f.Add("203.0.113.9, 10.0.0.2", `for="[2001:db8::7]:4711";by=x, for=_a`)
	f.Add(`",",,"`, `for="`)
	p := []*Proxies{
		{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Header: ForwardedFor},
		{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Header: Forwarded},
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		for _, p := range p {
			r := &http.Request{RemoteAddr: "10.0.0.1:9", Header: http.Header{ForwardedFor: {one, other}, Forwarded: {other, one}}}
			if at := p.Client(r); !at.IsValid() || at.Zone() != "" || at.Is4In6() {
				t.Errorf("%q, %q: %s", one, other, at)
			}
		}
	})
}
