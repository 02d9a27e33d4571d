package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/internal/settings"
)

// acts are those that approve may name.
var acts = map[string]access.Act{
	"deposits": access.ActDeposit, "refunds": access.ActRefund, "erasure": access.ActErasure, "public-value": access.ActPublicValue,
	"abandon-shard": access.ActAbandon, "red-packets": access.ActRedPacket,
}

// Approvals returns which acts need a second person: each of approve is the name of one, and
// refunds may have a sum, up to which one person is enough: refunds=100.00CNY.
func (c *Config) Approvals() (access.ApprovalRules, error) {
	rules := access.ApprovalRules{Acts: map[access.Act]bool{}}
	for _, text := range c.Approve {
		name, sum, bounded := strings.Cut(text, "=")
		act, known := acts[name]
		if !known || bounded && act != access.ActRefund {
			return rules, fmt.Errorf("%q must be deposits, red-packets, refunds, erasure, public-value or abandon-shard, or refunds with a sum such as refunds=100.00CNY", text)
		}
		rules.Acts[act] = true
		if bounded {
			m, err := readMoney(sum)
			if err != nil {
				return rules, fmt.Errorf("%q: %w", text, err)
			}
			rules.RefundsAbove = &m
		}
	}
	return rules, nil
}

var errMoney = errors.New("a sum must look like 100.00CNY")

// readMoney reads a sum, 100.00CNY. A list of settings is cut at spaces, so there is none.
func readMoney(text string) (m dibs.Money, err error) {
	number := strings.TrimRight(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	m.Currency = text[len(number):]
	whole, part, _ := strings.Cut(number, ".")
	digits := m.Decimals()
	if len(part) > digits {
		return m, errMoney
	}
	m.Amount, err = strconv.ParseInt(whole+part+strings.Repeat("0", digits-len(part)), 10, 64)
	if err != nil || len(m.Faults("")) > 0 {
		return m, errMoney
	}
	return m, nil
}

// approveRules report acts that approve cannot name.
func approveRules(c *Config) []settings.Fault {
	_, err := c.Approvals()
	return c.judgeErr("approve", err)
}
