package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// The headers in which proxies name the client.
const (
	// ForwardedFor is the header that most proxies write.
	ForwardedFor = "X-Forwarded-For"
	// Forwarded is the header of RFC 7239.
	Forwarded = "Forwarded"
)

// Proxies finds the address of a client behind trusted proxies. The zero value
// trusts none.
type Proxies struct {
	// Trusted are the networks of the proxies.
	Trusted []netip.Prefix
	// Header is ForwardedFor or Forwarded.
	Header string
}

// Client returns the address of a request's client: the last address of the chain
// that is not a trusted proxy. Each proxy adds at the right the address that it
// was called from, so anything to the left of the first untrusted address may be
// invented. The zero address means that the server does not know it, which
// happens in tests only.
func (p *Proxies) Client(r *http.Request) netip.Addr {
	at := parseAddress(r.RemoteAddr)
	if len(p.Trusted) == 0 || !p.trusts(at) {
		return at
	}
	lines := r.Header[p.Header]
	for i := len(lines) - 1; i >= 0; i-- {
		for rest := lines[i]; rest != ""; {
			var hop string
			hop, rest = lastHop(rest)
			if p.Header == Forwarded {
				hop = forParameter(hop)
			}
			next := parseAddress(strings.TrimSpace(hop))
			if !next.IsValid() {
				// A hop without an address ends the chain: the client is somewhere behind
				// the last proxy that is known.
				return at
			}
			if at = next; !p.trusts(at) {
				return at
			}
		}
	}
	return at
}

func (p *Proxies) trusts(at netip.Addr) bool {
	for _, net := range p.Trusted {
		if net.Contains(at) {
			return true
		}
	}
	return false
}

// lastHop cuts the last element from a list with commas; those in quotes do not
// count.
func lastHop(list string) (last, rest string) {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case list[i] == '"':
			quoted = !quoted
		case list[i] == ',' && !quoted:
			return list[i+1:], list[:i]
		}
	}
	return list, ""
}

// forParameter returns the `for` of an element of Forwarded, without its quotes.
func forParameter(element string) string {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if strings.EqualFold(name, "for") {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// maxAddress is longer than any address in text, with brackets, zone and port.
const maxAddress = 64

// parseAddress reads an address with or without a port, in brackets or not; the
// result is zero for anything else. An IPv4 address in the form of IPv6 becomes
// the plain one, and zones are dropped, so that one client has one address.
func parseAddress(text string) netip.Addr {
	if len(text) > maxAddress {
		return netip.Addr{}
	}
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone("")
	}
	at, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		return netip.Addr{}
	}
	return at.Unmap().WithZone("")
}

// AddressText is an address as logs have it, empty for none.
func AddressText(at netip.Addr) string {
	if !at.IsValid() {
		return ""
	}
	return at.String()
}
