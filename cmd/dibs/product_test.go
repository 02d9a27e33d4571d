package main

import "testing"

// TestProduct makes products, changes them and looks at them, from the outside.
func TestProduct(t *testing.T) {
	env := served(t)
	execute(t, env, "product", "create", "--id", "mug", "--name", "Mug", "--price", "1500", "--currency", "CNY", "--stock", "40", "--pay-within", "15m").
		want(t, 0, "mug", "1500 CNY", "15m0s", "reclaim")
	execute(t, env, "product", "create", "--id", "mug", "--name", "Mug").want(t, 1, "already_exists")
	execute(t, env, "product", "create", "--id", "pen", "--name", "Pen", "--price", "5").want(t, 2, "--price and --currency go together")
	execute(t, env, "product", "create", "--id", "pen").want(t, 1, "name")
	execute(t, env, "product", "create", "--id", "pen", "--name", "Pen").want(t, 0, "pen")
	execute(t, env, "product", "list").want(t, 0, "mug  1500 CNY  40     40    15m0s       Mug", "pen  -")
	execute(t, env, "product", "set", "mug").want(t, 2, "name what is to change")
	execute(t, env, "product", "set", "mug", "--stock", "60", "--pay-within", "0s", "--late-payment", "refund_due").want(t, 0, "60", "refund_due", "1500 CNY")
	execute(t, env, "product", "set", "mug", "--late-payment", "never").want(t, 1, "late_payment")
	execute(t, env, "product", "set", "none", "--stock", "1").want(t, 1, "not_found")
	execute(t, env, "product", "show", "mug", "--output", "json").want(t, 0, `"stock": 60`, `"stock_left": 60`)
	execute(t, env, "product", "show", "none").want(t, 1, "not_found")
	execute(t, env, "campaign", "create", "--id", "mugs", "--title", "Mugs", "--product", "mug", "--units", "3", "--ends", "+1h", "--publish").want(t, 0, "mugs")
	execute(t, env, "verify", "product:mug").want(t, 1, "not_found", "never ordered")
}
