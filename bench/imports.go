package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/node"
)

// importCodes is how many codes one import has: a large campaign of coupons.
const importCodes = 1_000_000

// imports measures how long a file of codes takes into a draft, on SQLite, in one transaction: the
// check of each line, the rows and the unique index. It prints each round, not a median. There is
// no yardstick, and the rate depends on the disk.
func imports(ctx context.Context, o *options) error {
	fmt.Println("| codes | seconds | codes/s |\n|---|---|---|")
	for range o.rounds {
		took, err := importOnce(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %.1f | %.0f |\n", importCodes, took.Seconds(), importCodes/took.Seconds())
	}
	return nil
}

// importOnce imports into an empty node: into one that has codes the index would be dearer.
func importOnce(ctx context.Context) (took time.Duration, err error) {
	n, err := openNode(ctx, node.Config{})
	if err != nil {
		return 0, err
	}
	defer n.discard()
	// A file, as the command line sends one; it is in the page cache when the import reads it.
	file, err := os.Create(filepath.Join(n.dir, "codes.csv"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := bufio.NewWriter(file)
	// Codes in no order, as random ones are: in order they would all go to the end of the index,
	// which is cheaper. An odd factor maps 64-bit numbers one to one, so no code comes twice.
	for i := range uint64(importCodes) {
		if _, err := fmt.Fprintf(out, "SPRING-%016X\n", (i+1)*0x9E3779B97F4A7C15); err != nil {
			return 0, err
		}
	}
	if err := out.Flush(); err != nil {
		return 0, err
	}
	now := time.Now()
	if _, err := n.Service.Campaigns.Create(ctx, dibs.CampaignSpec{
		ID: "spring", Kind: dibs.Coupon, Title: "Spring", StartsAt: now, EndsAt: now.Add(time.Hour), Stock: dibs.StockSpec{Items: []string{}},
	}); err != nil {
		return 0, err
	}
	// Only the import is measured: not the writing of the file, nor the opening of the node.
	began, shown := time.Now(), time.Now()
	done, err := n.Service.Campaigns.ImportCodes(ctx, "spring", file, "", func(n int64) {
		if time.Since(shown) > 5*time.Second {
			shown = time.Now()
			fmt.Fprintf(os.Stderr, "%d of %d codes\n", n, importCodes)
		}
	})
	took = time.Since(began)
	// An import that leaves codes out would seem fast.
	if err == nil && done.Campaign.Stock.Total != importCodes {
		err = fmt.Errorf("the stock is %d after the import", done.Campaign.Stock.Total)
	}
	return took, err
}
