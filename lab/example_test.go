package lab_test

import (
	"context"
	"fmt"

	"github.com/dibs-dev/dibs/lab"
)

// One way alone, in the process: no server is needed.
func ExampleRun() {
	report, err := lab.Run(context.Background(), lab.Config{
		Strategies: []string{"dibs-embedded"}, Users: 100, Requests: 300, Stock: 20,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := report.Results[0]
	fmt.Println(r.Orders, "orders,", r.Oversold, "too many:", r.Verdict())
	// Output: 20 orders, 0 too many: safe
}
