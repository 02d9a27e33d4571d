package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/node"
)

// The library from an empty folder to the first refusal. The READMEs show the
// same lines.
func Example() {
	dir, err := os.MkdirTemp("", "dibs-example-")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	ctx := context.Background()

	n := must(node.Open(ctx, node.Config{Dir: dir, Migrate: true}))
	must(n.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: "phone-noon", Kind: dibs.Sale, Title: "Phone at noon", Stock: dibs.StockSpec{Units: new(int64(1))},
		StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour),
	}))
	must(n.Campaigns.Publish(ctx, "phone-noon"))
	for _, user := range []string{"ann", "bob"} {
		press := dibs.ClaimRequest{CampaignID: "phone-noon", UserID: user, Key: "press-1"}
		fmt.Println(user, must(n.Claims.Claim(ctx, press)).Outcome)
	}
	check(n.Close(ctx))
	// Output:
	// ann granted
	// bob sold_out
}

// A press whose answer got lost is repeated with its key: the first result
// comes back. Another press of the same user meets the limit.
func Example_claim() {
	n, closeNode := open()
	defer closeNode()
	publish(n, "phone-noon", 200)

	ask := func(key string) dibs.Result {
		res, err := n.Claims.Claim(context.Background(), dibs.ClaimRequest{
			CampaignID: "phone-noon", UserID: "42", Key: key,
		})
		check(err)
		return res
	}
	first := ask("press-1")
	again := ask("press-1")
	other := ask("press-2")
	fmt.Println(first.Outcome, first.Claim.Status)
	fmt.Println(again.Outcome, "replayed:", again.Replayed, "the same claim:", again.Claim.ID == first.Claim.ID)
	fmt.Println(other.Outcome, "filled by:", other.ClaimIDs[0] == first.Claim.ID)
	// Output:
	// granted confirmed
	// granted replayed: true the same claim: true
	// limit_reached filled by: true
}

// Verify settles what was granted, then compares engine and ledger.
func Example_verify() {
	n, closeNode := open()
	defer closeNode()
	publish(n, "phone-noon", 200)
	_, err := n.Claims.Claim(context.Background(), dibs.ClaimRequest{CampaignID: "phone-noon", UserID: "42"})
	check(err)

	report, err := n.Audit.Verify(context.Background())
	check(err)
	for _, p := range report.Campaigns[0].Promises {
		fmt.Printf("%t  %-22s %s\n", p.Held, p.Promise, p.Detail)
	}
	// Output:
	// true  no oversell            1 of 200 units are held, 199 left
	// true  the limit holds        users over the limit: none
	// true  a yes is kept          the engine has 1 units granted, the ledger 1; one by one, 1 of the journal and 1 of the ledger: at odds: none
	// true  no phantom             items at odds with claims: none; claims past the settled position: 0
	// true  stock comes back once  200 in stock = 199 left + 1 held; sums at odds with rows: none
	// true  money is conserved     0 paid, 0 refunded, 0 due back; claims at odds with their events: none
	// true  no undersell           the engine has 199 units left, the ledger 199
}

// An error lists every fault of an input at once, by JSON pointers.
func Example_error() {
	n, closeNode := open()
	defer closeNode()
	_, err := n.Campaigns.Create(context.Background(), dibs.CampaignSpec{
		ID: "mugs", Kind: dibs.Sale, Title: "Mugs",
		StartsAt: time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC),
		EndsAt:   time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC),
		Stock:    dibs.StockSpec{Units: new(int64(0))},
	})
	var e *dibs.Error
	if errors.As(err, &e) {
		for _, f := range e.Faults {
			fmt.Println(f.Field, f.Problem.EN)
		}
	}
	// Output:
	// /ends_at must be after starts_at
	// /stock/units must be from 1 to 1000000000
}

// open starts a node in a temporary folder, and returns what removes both.
func open() (n *node.Node, closeNode func()) {
	dir, err := os.MkdirTemp("", "dibs-example-")
	check(err)
	n, err = node.Open(context.Background(), node.Config{Dir: dir, Migrate: true})
	check(err)
	return n, func() {
		check(n.Close(context.Background()))
		check(os.RemoveAll(dir))
	}
}

// publish opens a sale of so many units for an hour.
func publish(n *node.Node, id string, units int64) {
	ctx := context.Background()
	_, err := n.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: id, Kind: dibs.Sale, Title: id, StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour),
		Stock: dibs.StockSpec{Units: &units},
	})
	check(err)
	_, err = n.Campaigns.Publish(ctx, id)
	check(err)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// must returns a value that came without an error.
func must[T any](v T, err error) T {
	check(err)
	return v
}
