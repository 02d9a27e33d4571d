package main

import "testing"

func TestRawIn(t *testing.T) {
	for text, n := range map[string]int{
		"Nov 22, 2026, 12:00 · CN¥12.50\n2026-11-22": 0,
		"ends_at 2026-11-22T12:00:00Z":               1,
		"1250 paid (minor units)\n{\"amount\":1250}": 2,
		"价格：12 元，余额：3":                               0,
		"价格: 12":                                     1,
		"余额 1250 CNY（最小货币单位）":                        1,
	} {
		if wrong := rawIn(text); len(wrong) != n {
			t.Errorf("%q: %q, want %d", text, wrong, n)
		}
	}
}

func TestEnglishIn(t *testing.T) {
	titles := []string{"Mug with a waiting room"}
	for text, n := range map[string]int{
		"为“Mug with a waiting room”增加库存":                       0,
		"引擎已发放 3 件，参见 dibs verify --repair\n50.00 CNY":         0,
		"引擎\tthe ledger does not answer; the log says why\n正常": 1,
		"3 claims went on while counting: 5":                   1,
	} {
		if wrong := englishIn(text, titles); len(wrong) != n {
			t.Errorf("%q: %q, want %d", text, wrong, n)
		}
	}
}
