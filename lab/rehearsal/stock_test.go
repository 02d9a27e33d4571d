package rehearsal

import (
	"testing"

	"github.com/dibs-dev/dibs"
)

// TestStock: each kind of campaign has as much to grant as was asked for, coupons as codes.
func TestStock(t *testing.T) {
	for kind, of := range map[dibs.Kind]func(dibs.StockSpec) int64{
		dibs.Sale:      func(s dibs.StockSpec) int64 { return *s.Units },
		dibs.Coupon:    func(s dibs.StockSpec) int64 { return s.Codes.Count },
		dibs.RedPacket: func(s dibs.StockSpec) int64 { return s.RedPacket.Count },
	} {
		if got := of((&rehearsal{cfg: Config{Kind: kind, Stock: 7}}).stock()); got != 7 {
			t.Errorf("%s: %d of 7", kind, got)
		}
	}
	cfg := Config{Kind: dibs.Coupon, Stock: dibs.MaxItems + 1}.WithDefaults()
	if err := cfg.Validate(); err == nil {
		t.Error("more codes than a campaign may have were taken")
	}
}
