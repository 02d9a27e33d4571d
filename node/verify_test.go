package node_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/node"
)

// tamper changes the ledger behind dibs' back, constraints switched off.
func (r *rig) tamper(statements ...string) {
	r.Helper()
	r.tamperFile(node.LedgerFile, statements...)
}

// tamperFile changes one of the files behind dibs' back.
func (r *rig) tamperFile(name string, statements ...string) {
	r.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, name)+"?_pragma=busy_timeout(5000)&_pragma=ignore_check_constraints(1)")
	if err != nil {
		r.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			r.Error(err)
		}
	}()
	for _, s := range statements {
		res, err := db.ExecContext(r.Context(), s)
		if err != nil {
			r.Fatalf("%s: %v", s, err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			r.Fatalf("%s changed nothing: %v", s, err)
		}
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
			r := newRig(t, node.ServiceConfig{})
			spec := r.sale("seats", 0)
			spec.Stock = dibs.StockSpec{Items: []string{"A1", "A2", "A3", "A4", "A5"}}
			r.publish(spec)
			r.sell("seats", 3)
			r.verify()
			r.tamper(c.statement...)
			report, err := r.node.Service.Audit.Verify(t.Context())
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
