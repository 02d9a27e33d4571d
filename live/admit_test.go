package live

import (
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"
)

// The product of a published campaign never changes and is read once. A draft may get
// another product, and is read each time; so is a campaign that there is not.
func TestLimitedProductsAreReadOnce(t *testing.T) {
	l := &shelf{has: map[uint32]*dibs.Campaign{
		1: {Number: 1, ProductID: "phone", LimitPerProduct: 2, State: dibs.EndedState},
		2: {Number: 2, ProductID: "phone", State: dibs.Published},
		3: {Number: 3, ProductID: "phone", LimitPerProduct: 2, State: dibs.Draft},
	}}
	s := newNode(t, Config{Engine: &counting{}, Ledger: l})
	for number, want := range map[uint32]struct {
		product string
		reads   int
	}{1: {"phone", 1}, 2: {"", 1}, 3: {"phone", 3}, 4: {"", 3}} {
		l.ones = 0
		for range 3 {
			got, err := s.Registry.LimitedProduct(number)
			if missing := l.has[number] == nil; errors.Is(err, dibs.ErrNotFound) != missing || !missing && err != nil || got != want.product {
				t.Errorf("campaign %d shares the limit of %q, want %q: %v", number, got, want.product, err)
			}
		}
		if l.ones != want.reads {
			t.Errorf("campaign %d is read %d times, want %d", number, l.ones, want.reads)
		}
	}
}

// An engine that cannot count over campaigns is given none that needs it.
func TestUncountableCampaignsAreNotLoaded(t *testing.T) {
	s := newNode(t, Config{Engine: &uncounting{}, Ledger: &shelf{}})
	if err := s.Loader.countable(&dibs.Campaign{ProductID: "phone"}); err != nil {
		t.Errorf("a campaign without the limit: %v", err)
	}
	err := s.Loader.countable(&dibs.Campaign{ProductID: "phone", LimitPerProduct: 2})
	var e *dibs.Error
	if !errors.As(err, &e) || e.Reason != dibs.Unavailable || !errors.Is(err, dibs.Invalid()) {
		t.Errorf("a campaign with the limit: %v", err)
	}
}

// uncounting is an engine without abilities.
type uncounting struct{ dibs.Engine }

func (*uncounting) Abilities() dibs.Abilities { return dibs.Abilities{} }
