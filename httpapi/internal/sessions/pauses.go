package sessions

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"
)

// The pauses of an address after sign-ins that failed: none for the first ones, then twice
// as long each time.
const (
	freeFailures = 5
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// maxPaused bounds the addresses that are remembered; an address is forgotten when its
	// last failure is longestPause ago.
	maxPaused = 10_000
)

// Pauses makes those wait who guess keys. A /64 of IPv6 is one address. The zero value is ready; it is safe for
// concurrent use. mu guards swept and
// failed, which has at most maxPaused addresses.
type Pauses struct {
	mu sync.Mutex
	// swept is when addresses were forgotten last: with every failure of a full table, that would cost more than a guess.
	swept  time.Time
	failed map[netip.Prefix]failures
}

// failures are the failed sign-ins of an address: how many, when the last one was, and
// until when the address waits.
type failures struct {
	count       int
	last, until time.Time
}

var tooManyFailures = dibs.Text{EN: "too many sign-ins failed: wait before the next one", ZH: "登录失败次数过多，请稍后再试"}

// Check refuses an address that has to wait. *dibs.Error of RateLimited.
func (p *Pauses) Check(at netip.Addr, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := p.failed[networkOf(at)].until.Sub(now); wait > 0 {
		return &dibs.Error{Reason: dibs.RateLimited, RetryAfter: wait, Detail: tooManyFailures}
	}
	return nil
}

// Fail counts a failed sign-in.
func (p *Pauses) Fail(from netip.Addr, now time.Time) {
	at := networkOf(from)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.failed = map[netip.Prefix]failures{}
	}
	f := p.failed[at]
	if now.Sub(f.last) > longestPause {
		f = failures{}
	}
	f.count, f.last = f.count+1, now
	if beyond := f.count - freeFailures; beyond >= 0 {
		f.until = now.Add(min(longestPause, firstPause<<min(beyond, 20)))
	}
	if _, known := p.failed[at]; !known && len(p.failed) >= maxPaused {
		if now.Sub(p.swept) >= time.Second {
			p.swept = now
			maps.DeleteFunc(p.failed, func(_ netip.Prefix, old failures) bool { return now.Sub(old.last) > longestPause })
		}
		if len(p.failed) >= maxPaused {
			// The look-ups of unknown keys are bounded as well.
			return
		}
	}
	p.failed[at] = f
}

// Succeed forgets the failures of an address.
func (p *Pauses) Succeed(at netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failed, networkOf(at))
}

// networkOf is what counts as one address. Those of this machine count too: a console behind a proxy that is not trusted
// has its guesses there.
func networkOf(at netip.Addr) netip.Prefix {
	if n := web.Network(at); n.IsValid() || !at.IsValid() {
		return n
	}
	return netip.PrefixFrom(at, at.BitLen())
}
