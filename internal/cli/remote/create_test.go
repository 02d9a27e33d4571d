package remote_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// TestItemsFile reads a stock from a file.
func TestItemsFile(t *testing.T) {
	env, file := clitest.Served(t), filepath.Join(t.TempDir(), "seats.txt")
	if err := os.WriteFile(file, []byte("A1\r\n\nA2\nA3"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := campaignOf(t, clitest.Run(t, env, "campaign", "create", "--title", "Seats", "--items-file", file, "--ends", "+1h", "--output", "json"))
	if *v.Stock.Items != 3 {
		t.Errorf("%d items", *v.Stock.Items)
	}
}

func TestCampaignTiers(t *testing.T) {
	env := clitest.Served(t)
	create := []string{"campaign", "create", "--id", "shoes", "--title", "Shoes", "--units", "5", "--ends", "+1h", "--limit", "3", "--price", "999", "--currency", "CNY"}
	clitest.Run(t, env, append(create, "--tier", "second:half")...).Want(t, 2, "--tier must be like 2:50")
	clitest.Run(t, env, append(create, "--tier", "2:150")...).Want(t, 1, "invalid_request: --tier ")
	clitest.Run(t, env, append(create, "--tier", "2:50,3:0", "--low-stock", "4", "--publish")...).Want(t, 0, "shoes")
	clitest.Run(t, env, "campaign", "show", "shoes").Want(t, 0, "from unit 2 on 50 % of the price", "from unit 3 on 0 % of the price")
}

// A limit per product is created, shown, and refused with its flag.
func TestCampaignLimitPerProduct(t *testing.T) {
	env := clitest.Served(t)
	create := []string{"campaign", "create", "--id", "boots", "--title", "Boots", "--units", "5", "--ends", "+1h", "--limit-per-product", "2"}
	clitest.Run(t, env, append(create, "--publish")...).Want(t, 1, "--limit-per-product", "--product")
	clitest.Run(t, env, "product", "create", "--id", "boots", "--name", "Boots").Want(t, 0)
	clitest.Run(t, env, append(create, "--product", "boots", "--publish")...).Want(t, 0, "boots")
	clitest.Run(t, env, "campaign", "show", "boots").Want(t, 0, "limit per product", "2")
}
