package web

import (
	"hash/maphash"
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

// countShards is how many locks an AddressCounts has: claims over HTTP/2 pass one, and must not queue for the same.
const countShards = 64

// AddressCounts counts what addresses have at a time: a /64 of IPv6 is one address, and a /48 of them has a bound of its
// own, without which one customer of a provider could take every place that there is. The zero value is ready; it is
// safe for concurrent use. An address of IPv4, and a /48 of IPv6 with all of its networks, is counted in one shard, so
// that one lock is enough for the decision about it.
type AddressCounts struct {
	shards [countShards]countShard
}

// countShard counts some of the addresses. mu guards counts, which holds the networks that have something.
type countShard struct {
	mu     sync.Mutex
	counts map[netip.Prefix]int
	// Shards that are next to each other in one line of a processor's cache would wait for each other all the same.
	_ [48]byte
}

// countSeed spreads addresses over shards so that no client can choose addresses of one shard.
var countSeed = maphash.MakeSeed()

// shardOf returns the shard of a network, whose site is not valid for IPv4.
func (a *AddressCounts) shardOf(network, site netip.Prefix) *countShard {
	if site.IsValid() {
		network = site
	}
	name := network.Addr().As16()
	return &a.shards[maphash.Bytes(countSeed, name[:])%countShards]
}

// Enter counts one more at an address, unless it has most already, or its /48 of IPv6 eight times as many; below 1
// there is no bound. Each call that returns true is followed by one Leave. Addresses of this machine, and unknown ones,
// always enter, and are not counted.
func (a *AddressCounts) Enter(address netip.Addr, most int) bool {
	network := Network(address)
	if !network.IsValid() {
		return true
	}
	site := siteOf(network)
	in := a.shardOf(network, site)
	in.mu.Lock()
	defer in.mu.Unlock()
	if most > 0 && (in.counts[network] >= most || site.IsValid() && in.counts[site]/siteShare >= most) {
		return false
	}
	if in.counts == nil {
		in.counts = map[netip.Prefix]int{}
	}
	in.counts[network]++
	if site.IsValid() {
		in.counts[site]++
	}
	return true
}

// Leave undoes Enter.
func (a *AddressCounts) Leave(address netip.Addr) {
	network := Network(address)
	if !network.IsValid() {
		return
	}
	site := siteOf(network)
	in := a.shardOf(network, site)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.leave(network)
	if site.IsValid() {
		in.leave(site)
	}
}

// leave takes one off a network; mu is held.
func (s *countShard) leave(network netip.Prefix) {
	if s.counts[network] > 1 {
		s.counts[network]--
	} else {
		delete(s.counts, network)
	}
}

// Len returns how many networks have something.
func (a *AddressCounts) Len() int {
	n := 0
	for i := range a.shards {
		in := &a.shards[i]
		in.mu.Lock()
		n += len(in.counts)
		in.mu.Unlock()
	}
	return n
}

// siteOf returns the /48 of a network of IPv6; not valid for one of IPv4.
func siteOf(network netip.Prefix) netip.Prefix {
	if network.Addr().Is4() {
		return netip.Prefix{}
	}
	// An address of IPv6 has so many bits.
	p, _ := network.Addr().Prefix(siteBits)
	return p
}
