package remote_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	clitest.Run(t, env, append(create, "--tier", "2:50,3:150")...).Want(t, 1, `invalid_request: --tier "3:150": percent must be from 0 to 100`)
	clitest.Run(t, env, append(slices.Clone(create[:len(create)-4]), "--tier", "2:50")...).Want(t, 1, "--tier needs a price")
	clitest.Run(t, env, append(create, "--valid-for", "1h")...).Want(t, 1, "--valid-for or --valid-until")
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

// TestItemsRefused: items are taken without the space around them, and each one that is none is named.
func TestItemsRefused(t *testing.T) {
	env := clitest.Served(t)
	create := []string{"campaign", "create", "--id", "seats", "--title", "Seats", "--ends", "+1h"}
	file := func(text string) []string {
		return append(slices.Clone(create), "--items-file", clitest.WriteFile(t, "seats.txt", text))
	}
	clitest.Run(t, env, file("A1\n\n A2\nA\x013\nA2\n")...).Want(t, 2, "seats.txt: line 4 must be 1-128 printable characters, not \"A\\x013\"; line 5 is the same as line 3, \"A2\"")
	clitest.Run(t, env, file(" \n")...).Want(t, 2, "seats.txt has no items")
	clitest.Run(t, env, append(slices.Clone(create), "--items-file", "none.txt")...).Want(t, 2, "--items-file: open none.txt")
	clitest.Run(t, env, append(slices.Clone(create), "--items", "A1,A1")...).Want(t, 1, `--items "A1" is the same as item 0`)
	clitest.Run(t, env, append(slices.Clone(create), "--items", "A1, A2")...).Want(t, 0, "2 items")
	clitest.Run(t, env, "campaign", "stock", "seats", "--items", "A3, A2").Want(t, 1)
	clitest.Run(t, env, "campaign", "stock", "seats", "--items", "A3 ,A4").Want(t, 0, "4 items")
}

// TestDraftStays: when publishing fails, the user learns that the draft is there.
func TestDraftStays(t *testing.T) {
	env := clitest.Served(t)
	create := []string{"redpacket", "create", "--id", "rain", "--title", "Rain", "--total", "10CNY", "--count", "5", "--sender", "poor", "--ends", "+1h", "--publish"}
	clitest.Run(t, env, create...).Want(t, 1, "dibs: the draft rain was created: dibs campaign publish rain opens it\n")
	clitest.Run(t, env, "campaign", "show", "rain").Want(t, 0, "draft")
	if r := clitest.Run(t, env, create...); r.Code != 1 || strings.Contains(r.Err, "was created") {
		t.Errorf("%d: %s", r.Code, r.Err)
	}
}
