package remote_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestProduct makes products, changes them and looks at them, from the outside.
func TestProduct(t *testing.T) {
	env := clitest.Served(t)
	clitest.Run(t, env, "product", "create", "--id", "mug", "--name", "Mug", "--price", "1500", "--currency", "CNY", "--stock", "40", "--pay-within", "15m").
		Want(t, 0, "mug", "15.00 CNY", "on_sale", "15m0s", "reclaim")
	clitest.Run(t, env, "product", "create", "--id", "mug", "--name", "Mug").Want(t, 1, "already_exists")
	clitest.Run(t, env, "product", "create", "--id", "pen", "--name", "Pen", "--price", "5").Want(t, 2, "--price must name its currency")
	clitest.Run(t, env, "product", "create", "--id", "pen").Want(t, 2, "--name is required")
	clitest.Run(t, env, "product", "create", "--id", "pen", "--name", "Pen").Want(t, 0, "pen")
	clitest.Run(t, env, "product", "list").Want(t, 0, "mug  on_sale  15.00 CNY  40     40    15m0s       Mug", "pen  on_sale  -")
	clitest.Run(t, env, "product", "set", "mug").Want(t, 2, "name what is to change")
	clitest.Run(t, env, "product", "set", "mug", "--stock", "60", "--pay-within", "0s", "--late-payment", "refund_due").Want(t, 0, "60", "refund_due", "15.00 CNY")
	clitest.Run(t, env, "product", "set", "mug", "--price", "12.50CNY", "--status", "off_sale").Want(t, 0, "12.50 CNY", "off_sale")
	clitest.Run(t, env, "product", "set", "mug", "--status", "on_sal").Want(t, 2, "did you mean on_sale?")
	clitest.Run(t, env, "product", "set", "mug", "--status", "on_sale").Want(t, 0, "on_sale")
	clitest.Run(t, env, "product", "set", "mug", "--late-payment", "never").Want(t, 2, "--late-payment must be reclaim or refund_due")
	clitest.Run(t, env, "product", "set", "none", "--stock", "1").Want(t, 1, "not_found")
	clitest.Run(t, env, "product", "show", "mug", "--output", "json").Want(t, 0, `"stock": 60`, `"stock_left": 60`)
	clitest.Run(t, env, "product", "show", "none").Want(t, 1, "not_found")
	clitest.Run(t, env, "campaign", "create", "--id", "mugs", "--title", "Mugs", "--product", "mug", "--units", "3", "--ends", "+1h", "--publish").Want(t, 0, "mugs")
	clitest.Run(t, env, "campaign", "list", "--product", "mug").Want(t, 0, "mugs")
	if of := clitest.Run(t, env, "campaign", "list", "--product", "pen"); of.Code != 0 || strings.Contains(of.Out, "mugs") {
		t.Errorf("campaigns of another product: %d\n%s", of.Code, of.Out)
	}
	clitest.Run(t, env, "verify", "product:mug").Want(t, 1, "not_found", "never ordered")
}
