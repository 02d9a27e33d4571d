package simulation

import (
	"testing"
)

// TestPlans: a seed has one plan, and every kind of fault is in some.
func TestPlans(t *testing.T) {
	missing := map[string]bool{}
	for _, kind := range append(faults, kindFaults...) {
		missing[kind] = true
	}
	ledgered, forgetful, divided, rising := 0, 0, 0, 0
	for seed := range uint64(300) {
		p := newPlan(seed)
		if again := newPlan(seed); p.String() != again.String() {
			t.Fatalf("seed %d has two plans:\n%s\n%s", seed, p, again)
		}
		for _, kind := range p.faults {
			delete(missing, kind)
		}
		if p.has(faultRestore) && p.losesHistory() {
			t.Errorf("seed %d: a ledger that goes back beside a server that loses: nothing can tell them apart", seed)
		}
		if p.service.Ledgered {
			ledgered++
		}
		if p.losesHistory() {
			forgetful++
		}
		for _, o := range p.offers {
			if o.shards < 1 || int64(o.shards) > o.stock {
				t.Errorf("seed %d: %+v", seed, o)
			}
			if o.shards > 1 {
				divided++
			}
			if len(o.more) > 0 {
				rising++
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("never drawn: %v", missing)
	}
	if ledgered < 30 || forgetful < 30 || divided < 30 || rising < 30 {
		t.Errorf("of 300 plans %d are ledgered, in %d servers lose history, %d campaigns have several shards, and %d get more", ledgered, forgetful, divided, rising)
	}
}
