package limit

import (
	"net/netip"
	"slices"
)

// Lists are addresses from which nobody may claim, and addresses that no limit
// per address holds for, an office's say; of those in both, the first counts.
// BlockedDevices and AllowedDevices are the same of devices.
type Lists struct {
	Blocked, Allowed               []netip.Prefix
	BlockedDevices, AllowedDevices []string
}

// SetLists replaces the lists, from the next claim on.
func (l *Limiter) SetLists(lists Lists) {
	l.lists.Store(&lookups{
		blocked: networksOf(lists.Blocked), allowed: networksOf(lists.Allowed),
		blockedDevices: setOf(lists.BlockedDevices), allowedDevices: setOf(lists.AllowedDevices),
	})
}

// lookups are Lists as they are asked, by every claim.
type lookups struct {
	blocked, allowed               networks
	blockedDevices, allowedDevices map[string]struct{}
}

// networks are found by the lengths that they have: what a look-up takes does not
// depend on how many there are.
type networks struct {
	lengths4, lengths6 []int
	all                map[netip.Prefix]struct{}
}

func networksOf(list []netip.Prefix) networks {
	n := networks{all: make(map[netip.Prefix]struct{}, len(list))}
	for _, p := range list {
		if at := p.Addr(); at.Is4In6() && p.Bits() >= 96 {
			// Claims come with the address itself.
			p = netip.PrefixFrom(at.Unmap(), p.Bits()-96)
		}
		lengths := &n.lengths6
		if p.Addr().Is4() {
			lengths = &n.lengths4
		}
		if !slices.Contains(*lengths, p.Bits()) {
			*lengths = append(*lengths, p.Bits())
		}
		n.all[p.Masked()] = struct{}{}
	}
	return n
}

// has reports whether an address is in one of the networks.
func (n *networks) has(at netip.Addr) bool {
	lengths := n.lengths6
	if at.Is4() {
		lengths = n.lengths4
	}
	for _, bits := range lengths {
		if p, err := at.Prefix(bits); err == nil {
			if _, in := n.all[p]; in {
				return true
			}
		}
	}
	return false
}

func setOf(names []string) map[string]struct{} {
	set := make(map[string]struct{}, len(names))
	for _, name := range names {
		set[name] = struct{}{}
	}
	return set
}

// blocks reports whether nobody may claim from there.
func (l *lookups) blocks(at netip.Addr, device string) bool {
	_, listed := l.blockedDevices[device]
	return listed || l.blocked.has(at)
}

// spares reports whether no limit per device holds for a device.
func (l *lookups) spares(device string) bool {
	_, listed := l.allowedDevices[device]
	return listed
}
