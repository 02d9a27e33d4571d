package redpacket_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/redpacket"
)

// 100.00 yuan among ten people. The seed makes the example give the same shares
// each time; without one (nil) they cannot be foreseen.
func ExampleSplit() {
	spec := dibs.RedPacketSpec{
		Total: dibs.Money{Amount: 10_000, Currency: "CNY"},
		Count: 10,
		Split: dibs.DoubleMean,
		Min:   100,
	}
	shares, err := redpacket.Split(spec, rand.NewChaCha8([32]byte{1}))
	sum := int64(0)
	for _, s := range shares {
		sum += s
	}
	fmt.Println(shares, sum, err)

	spec.Count = 200
	_, err = redpacket.Split(spec, nil)
	fmt.Println(err)
	// Output:
	// [353 1840 323 841 1398 238 1073 619 1273 2042] 10000 <nil>
	// invalid_request: min must be at most 50 (0.50 CNY), or the total does not reach for 200 shares
}

// However often it is divided, nobody is better off for the place that they
// come in.
func ExampleMeasure() {
	spec := dibs.RedPacketSpec{Total: dibs.Money{Amount: 30, Currency: "CNY"}, Count: 3, Split: dibs.LineCut}
	f, err := redpacket.Measure(context.Background(), spec, 100_000, rand.NewChaCha8([32]byte{1}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range f.Places {
		fmt.Printf("place %d: mean %.1f, best luck %.0f%%\n", p.Place, p.Mean, 100*p.Best)
	}
	// Output:
	// place 1: mean 10.0, best luck 33%
	// place 2: mean 10.0, best luck 33%
	// place 3: mean 10.0, best luck 33%
}
