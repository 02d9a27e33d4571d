package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/dibs-dev/dibs/httpapi"
)

// growthParts is how many parts the grants over HTTP are made in; each is a row.
const growthParts = 8

// growth has one server grant to one new user after another over HTTP, and shows what a grant costs
// after more and more others: CPU of the server, settling included, and what the process holds. Were
// a table, a cache or an index the worse for its size, the last rows would cost more than the first.
func growth(ctx context.Context, o *options) error {
	r, err := start(ctx, "dibs")
	if err != nil {
		return err
	}
	defer r.stop()
	fmt.Println("| grants before | server CPU per grant, µs | ratio to the first | resident, MiB | of that in use, MiB | bytes in use per grant since the first |")
	fmt.Println("|---|---|---|---|---|---|")
	part := o.claims / growthParts
	// Connections, heap and caches of a new server cost once.
	warm := part / 10
	if err := r.grantNew(ctx, 0, warm); err != nil {
		return err
	}
	held, err := r.number(ctx, "/used")
	if err != nil {
		return err
	}
	var first float64
	for done := warm; done+part <= o.claims; done += part {
		cpu, err := rise(ctx, r.cpu, func() error { return r.grantNew(ctx, done, part) })
		if err != nil {
			return err
		}
		whole, err := r.number(ctx, "/resident")
		if err != nil {
			return err
		}
		now, err := r.number(ctx, "/used")
		if err != nil {
			return err
		}
		per := cpu / float64(part)
		if first == 0 {
			first = per
		}
		fmt.Printf("| %d | %.1f | %.2f | %.0f | %.0f | %.0f |\n", done, per, per/first, float64(whole)/(1<<20), float64(now)/(1<<20), float64(now-held)/float64(done+part-warm))
	}
	return nil
}

// grantNew makes n claims of as many new users, who follow the first before ones. Tokens are signed
// in batches beside what is measured: those of millions of users at once would fill the memory.
func (r *remote) grantNew(ctx context.Context, before, n int) error {
	const batch = 60_000
	for done := 0; done < n; done += batch {
		tokens := make([]string, min(batch, n-done))
		for i := range tokens {
			t, err := httpapi.IssueToken([]byte(secret), fmt.Sprintf("g%d", scatter(before+done+i)), time.Hour)
			if err != nil {
				return err
			}
			tokens[i] = t
		}
		if err := r.press(ctx, "granted", tokens, 201); err != nil {
			return err
		}
	}
	return nil
}

// used is the resident memory without the garbage that the collector keeps for later.
func used() int64 {
	debug.FreeOSMemory()
	return resident()
}
