package audit_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
	"github.com/dibs-dev/dibs/orders"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// TestVerifyAProduct verifies the regular orders of one product by its name.
func TestVerifyAProduct(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	for _, id := range []string{"mug", "pen"} {
		if _, err := r.Node.Products.Create(t.Context(), dibs.ProductSpec{ID: id, Name: id, Stock: 5}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Node.Orders.Place(t.Context(), orders.Request{ProductID: "mug", UserID: "ann", Quantity: 2}); err != nil {
		t.Fatal(err)
	}
	report, err := r.Node.Audit.Verify(t.Context(), "product:mug")
	if err != nil || !report.OK || len(report.Campaigns) != 1 || report.Campaigns[0].CampaignID != "product:mug" || report.Campaigns[0].Granted != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	for _, id := range []string{"product:pen", "product:none", "product:"} {
		_, err = r.Node.Audit.Verify(t.Context(), id)
		r.Fails(err, dibs.NotFound)
	}
	r.Tamper(`UPDATE products SET stock_left = 1 WHERE id = 'mug'`)
	if report, err = r.Node.Audit.Verify(t.Context(), "product:mug"); err != nil || report.OK {
		t.Errorf("a product's stock was changed by hand: %+v, %v", report, err)
	}
}

// TestVerifyWaitsForALoad verifies while a node loads the shard: until it is
// open, the engine says that it does not hold it.
func TestVerifyWaitsForALoad(t *testing.T) {
	p := testnode.NewParts(t, node.ServiceConfig{})
	p.Publish("sale", 5)
	var asked atomic.Int64
	f := func(ctx context.Context, shard dibs.ShardID) (dibs.ShardStats, error) {
		if asked.Add(1) < 10 {
			return dibs.ShardStats{}, dibs.ErrNotOpen
		}
		return p.Engine.Engine.Stats(ctx, shard)
	}
	p.Engine.OnStats.Store(&f)
	report, err := p.Audit.Verify(t.Context(), "sale")
	if err != nil || !report.OK {
		t.Errorf("%+v, %v", report, err)
	}
}

// Each promise, broken on purpose in the ledger, is named by the report.
func TestVerifyNamesTheBrokenPromise(t *testing.T) {
	for _, c := range []struct {
		name      string
		promise   string
		statement []string
	}{
		{"one too many", "no oversell", []string{`UPDATE claims SET quantity = 7 WHERE user_id = 'u0'`}},
		{"two for one", "the limit holds", []string{`UPDATE claims SET user_id = 'u0' WHERE user_id = 'u1'`}},
		{"a lost yes", "a yes is kept", []string{`DELETE FROM claims WHERE user_id = 'u0'`}},
		{"a phantom", "no phantom", []string{`INSERT INTO claims (campaign, shard, epoch, seq, user_id, quantity, status, order_type, amount, currency, request_key, restocked, pay_by, created_at)
			SELECT campaign, shard, epoch, seq + 100, 'ghost', quantity, status, order_type, amount, currency, 0, restocked, pay_by, created_at FROM claims WHERE user_id = 'u0'`}},
		{"an item of two", "no phantom", []string{`UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 0`}},
		{"stock that vanished", "stock comes back once", []string{`UPDATE positions SET stock_left = stock_left - 1`, `UPDATE campaigns SET stock_left = stock_left - 1`}},
		{"stock that is stranded", "no undersell", []string{
			`UPDATE claims SET status = -1 WHERE user_id = 'u0'`,
			`UPDATE items SET claim_epoch = NULL, claim_seq = NULL WHERE n = 0`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := testnode.New(t, node.ServiceConfig{})
			spec := r.Sale("seats", 0)
			spec.Stock = dibs.StockSpec{Items: []string{"A1", "A2", "A3", "A4", "A5"}}
			r.Publish(spec)
			r.Sell("seats", 3)
			r.Verify()
			r.Tamper(c.statement...)
			report, err := r.Node.Audit.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if report.OK || report.Campaigns[0].OK {
				t.Errorf("the report is fine: %+v", report)
			}
			for _, p := range report.Campaigns[0].Promises {
				if p.Promise == c.promise && p.Held {
					t.Errorf("%q is said to hold: %s", p.Promise, p.Detail)
				}
			}
		})
	}
}

// A report says the same in both languages, with the same numbers. The ledger's own words about rows are alike in both.
func TestReportsAreInBothLanguages(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 5))
	r.Sell("phone", 3)
	r.Deposit("shop", "pay-1", 5000)
	r.Publish(r.Packet("rain", "shop", 5000, 2))
	sentence, number := regexp.MustCompile(`[A-Za-z]+( [A-Za-z]+){3}`), regexp.MustCompile(`\d+`)
	numbers := func(text string) []string {
		return slices.Compact(slices.Sorted(slices.Values(number.FindAllString(text, -1))))
	}
	compare := func(campaigns int, whole bool) {
		t.Helper()
		report := r.Report()
		en, zh := report.In(false), report.In(true)
		if len(zh.Campaigns) != campaigns {
			t.Fatalf("%+v", zh)
		}
		for i, c := range en.Campaigns {
			for j, p := range c.Promises {
				said := zh.Campaigns[i].Promises[j].Detail
				if !strings.ContainsFunc(said, func(r rune) bool { return unicode.Is(unicode.Han, r) }) || whole && sentence.MatchString(said) {
					t.Errorf("%s, %q in Chinese: %q", c.CampaignID, p.Promise, said)
				}
				if !slices.Equal(numbers(p.Detail), numbers(said)) {
					t.Errorf("%q has other numbers than %q", said, p.Detail)
				}
				if p.Detail != report.Campaigns[i].Promises[j].Detail {
					t.Errorf("In has changed its report to %q", report.Campaigns[i].Promises[j].Detail)
				}
			}
		}
	}
	r.Verify()
	compare(2, true)
	r.Tamper(`DELETE FROM claims WHERE user_id = 'u0'`)
	compare(2, false)
}
