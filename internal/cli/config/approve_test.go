package config

import (
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
)

// TestApprovals reads which acts need a second person.
func TestApprovals(t *testing.T) {
	rules, err := (&Config{Approve: []string{"deposits", "refunds=100.5CNY", "abandon-shard", "red-packets"}}).Approvals()
	if err != nil || !rules.Acts[access.ActDeposit] || !rules.Acts[access.ActRefund] || !rules.Acts[access.ActAbandon] || !rules.Acts[access.ActRedPacket] || rules.Acts[access.ActErasure] || *rules.RefundsAbove != (dibs.Money{Amount: 10050, Currency: "CNY"}) {
		t.Errorf("%+v, %v", rules, err)
	}
	if rules, err := (&Config{Approve: []string{"refunds=500JPY"}}).Approvals(); err != nil || rules.RefundsAbove.Amount != 500 {
		t.Errorf("%+v, %v", rules, err)
	}
	for _, bad := range []string{"", "deposit", "deposits=1.00CNY", "abandon-shard=1.00CNY", "red-packets=1.00CNY", "red-packet", "refunds=", "refunds=1.001CNY", "refunds=1", "refunds=1 CNY", "refunds=-1CNY", "refunds=1cny", "refunds=1.5JPY"} {
		if _, err := (&Config{Approve: []string{bad}}).Approvals(); err == nil {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
