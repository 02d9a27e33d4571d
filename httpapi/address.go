package httpapi

import (
	"net/http"
	"net/netip"
	"strings"
)

// The headers by which proxies tell whom they speak for.
const (
	// ForwardedFor is the header that most proxies write.
	ForwardedFor = "X-Forwarded-For"
	// Forwarded is that of RFC 7239.
	Forwarded = "Forwarded"
)

// proxies finds the address of a client behind proxies that can be believed.
type proxies struct {
	trusted []netip.Prefix
	header  string
}

// client returns the address of who sent a request: the last one that no
// trusted proxy has. Each proxy adds at the right whom it speaks to, so what is
// left of the first address that is not trusted may be anybody's invention. The
// zero address means that the server does not know, which only tests do not.
func (p *proxies) client(r *http.Request) netip.Addr {
	at := hostOf(r.RemoteAddr)
	if len(p.trusted) == 0 || !p.trusts(at) {
		return at
	}
	lines := r.Header[p.header]
	for i := len(lines) - 1; i >= 0; i-- {
		for rest := lines[i]; rest != ""; {
			var hop string
			hop, rest = lastHop(rest)
			if p.header == Forwarded {
				hop = forParameter(hop)
			}
			next := hostOf(strings.TrimSpace(hop))
			if !next.IsValid() {
				// Who is not named is somebody behind the last one who is.
				return at
			}
			if at = next; !p.trusts(at) {
				return at
			}
		}
	}
	return at
}

func (p *proxies) trusts(at netip.Addr) bool {
	for _, net := range p.trusted {
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

// forParameter is the `for` of an element of Forwarded, without its quotes.
func forParameter(element string) string {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if strings.EqualFold(name, "for") {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// hostOf reads an address with or without a port, in brackets or not; it is
// zero for what is none. An IPv4 address in the form of IPv6 is the same as
// itself.
func hostOf(text string) netip.Addr {
	if len(text) > 64 {
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

// addressText is an address for people, "" for none.
func addressText(at netip.Addr) string {
	if !at.IsValid() {
		return ""
	}
	return at.String()
}
