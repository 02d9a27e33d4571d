package web

import "net/netip"

// Network is what counts as one address: a /64 of IPv6. It is not valid for this machine itself, and where the address
// is not known: a proxy that is not trusted has every client at one address.
//
// One household has a /64 of IPv6 for itself, so that counting single addresses would bound nothing.
func Network(address netip.Addr) netip.Prefix {
	address = address.Unmap()
	if !address.IsValid() || address.IsLoopback() {
		return netip.Prefix{}
	}
	bits := 32
	if address.Is6() {
		bits = 64
	}
	// An address has so many bits.
	p, _ := address.Prefix(bits)
	return p
}
