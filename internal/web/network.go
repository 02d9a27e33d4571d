package web

import (
	"net/netip"
	"sync"
)

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

// siteBits is the length of the largest network of IPv6 that providers give to one customer, and siteShare how many
// times as much as one address may have it may have. A /48 has 65,536 networks of /64, and a provider of telephones
// gives each telephone one of them: so it has more than one address, and far less than all of its networks.
const (
	siteBits  = 48
	siteShare = 8
)

// AddressCounts counts what addresses have at a time: a /64 of IPv6 is one address, and a /48 of them has a bound of its
// own, without which one customer of a provider could take every place that there is. The zero value is ready; it is
// safe for concurrent use. mu guards counts, which holds the networks that have something.
type AddressCounts struct {
	mu     sync.Mutex
	counts map[netip.Prefix]int
}

// Enter counts one more at an address, unless it has most already, or its /48 of IPv6 eight times as many; below 1
// there is no bound. Each call that returns true is followed by one Leave. Addresses of this machine, and unknown ones,
// always enter, and are not counted.
func (a *AddressCounts) Enter(address netip.Addr, most int) bool {
	network, site := Network(address), siteOf(address)
	if !network.IsValid() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if most > 0 && (a.counts[network] >= most || site.IsValid() && a.counts[site]/siteShare >= most) {
		return false
	}
	if a.counts == nil {
		a.counts = map[netip.Prefix]int{}
	}
	a.counts[network]++
	if site.IsValid() {
		a.counts[site]++
	}
	return true
}

// Leave undoes Enter.
func (a *AddressCounts) Leave(address netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, network := range [2]netip.Prefix{Network(address), siteOf(address)} {
		if a.counts[network] > 1 {
			a.counts[network]--
		} else {
			delete(a.counts, network)
		}
	}
}

// Len returns how many networks have something.
func (a *AddressCounts) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.counts)
}

// siteOf returns the /48 of an address of IPv6; not valid for one that Network does not count.
func siteOf(address netip.Addr) netip.Prefix {
	network := Network(address)
	if !network.IsValid() || network.Addr().Is4() {
		return netip.Prefix{}
	}
	// An address of IPv6 has so many bits.
	p, _ := network.Addr().Prefix(siteBits)
	return p
}
