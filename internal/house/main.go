// Command house measures the house: how large its packages, types, interfaces
// and files are, which files all need each other, and whether imports follow
// the layers. Its test fails past the limits, so that CI holds them.
//
//	go run ./internal/house                      # the measures of all packages
//	go run ./internal/house -package ./ledger/sqlledger  # one package: files, types, groups and their seams
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// run measures the module around the working directory.
// It must run inside of the module; an error is a wrong argument, a package that
// cannot be read, or a house out of order.
func run(ctx context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("house", flag.ContinueOnError)
	one := flags.String("package", "", "show the files, types and groups of these packages, such as ./ledger/sqlledger")
	var v view
	flags.IntVar(&v.edges, "edges", 15, "how many edges and names of each group to show; with -package")
	flags.BoolVar(&v.promoted, "promoted", false, "count the promoted methods of embedded types too; with -package")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %s", flags.Arg(0))
	}
	if *one == "" {
		return measured(ctx, w)
	}
	h, err := load(ctx, ".", *one)
	if err != nil {
		return err
	}
	for _, r := range h.packages {
		if err := h.show(w, r, v); err != nil {
			return err
		}
	}
	return nil
}

// measured prints the measures and fails when one is past its limit.
// The table is printed before the check, so that a failure shows the measures too.
func measured(ctx context.Context, w io.Writer) error {
	h, err := load(ctx, ".", "./...")
	if err != nil {
		return err
	}
	if err := h.report(w); err != nil {
		return err
	}
	if faults := h.check(ceilings, standingImports); len(faults) > 0 {
		return fmt.Errorf("the house is out of order:\n%s", strings.Join(faults, "\n"))
	}
	return nil
}
