package node

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/live"
)

// row is a deployment in the ledger with live shards or none; one that is spoken is seen
// alive.
func row(number int, identity, place string, shards int, spoken bool) live.Deployment {
	return live.Deployment{Number: number, Identity: identity, Place: place, Live: shards, Silent: !spoken}
}

// TestDeploymentsKeepTheirNumbers gives addresses the numbers that the ledger has for what
// is behind them, whatever their order.
func TestDeploymentsKeepTheirNumbers(t *testing.T) {
	a, b := row(1, "A", "redis://a", 3, true), row(2, "B", "redis://b", 1, true)
	gone := row(1, "A", "redis://a", 0, false)
	before := live.Deployment{Live: 2}
	at := func(identity, host string) deployment {
		return deployment{identity: identity, place: "redis://" + host}
	}
	silent := func(host string) deployment {
		return deployment{place: "redis://" + host, absent: errors.New("nothing listens")}
	}
	for what, c := range map[string]struct {
		known   []live.Deployment
		found   []deployment
		numbers []int
		saved   []int
		refused string
	}{
		"an empty ledger":                    {nil, []deployment{at("A", "a"), at("B", "b")}, []int{1, 2}, []int{1, 2}, ""},
		"the same ones":                      {[]live.Deployment{a, b}, []deployment{at("A", "a"), at("B", "b")}, []int{1, 2}, nil, ""},
		"another order":                      {[]live.Deployment{a, b}, []deployment{at("B", "b"), at("A", "a")}, []int{2, 1}, nil, ""},
		"another name of one":                {[]live.Deployment{a}, []deployment{at("A", "10.0.0.1")}, []int{1}, []int{1}, ""},
		"one more":                           {[]live.Deployment{a, b}, []deployment{at("C", "c"), at("A", "a"), at("B", "b")}, []int{3, 1, 2}, []int{3}, ""},
		"one emptied":                        {[]live.Deployment{a, b}, []deployment{at("A", "a"), at("new", "b")}, []int{1, 2}, []int{2}, ""},
		"one missing":                        {[]live.Deployment{a, b}, []deployment{at("A", "a")}, nil, nil, "deployment 2 (redis://b) has 1 shards"},
		"one missing, another in its place":  {[]live.Deployment{a, row(2, "B", "redis://b", 1, false)}, []deployment{at("A", "a"), at("C", "c")}, nil, nil, "deployment 2 (redis://b)"},
		"one missing without live shards":    {[]live.Deployment{gone, b}, []deployment{at("B", "b")}, []int{2}, nil, ""},
		"the only one, that answers, is not": {[]live.Deployment{a}, []deployment{at("C", "c")}, nil, nil, "deployment 1 (redis://a) has 3 shards"},
		"the only one is gone":               {[]live.Deployment{row(1, "A", "redis://a", 3, false)}, []deployment{at("C", "c")}, []int{1}, []int{1}, ""},
		"a copy":                             {[]live.Deployment{a}, []deployment{at("A", "a"), at("A", "c")}, nil, nil, "redis://c is a copy of redis://a"},
		"one down":                           {[]live.Deployment{a, b}, []deployment{silent("b"), at("A", "a")}, []int{2, 1}, nil, ""},
		"one down, another moved":            {[]live.Deployment{a, b}, []deployment{at("A", "c"), silent("b")}, []int{1, 2}, []int{1}, ""},
		"one down, another new":              {[]live.Deployment{a, b}, []deployment{at("A", "a"), at("C", "c"), silent("b")}, []int{1, 3, 2}, []int{3}, ""},
		"two down":                           {[]live.Deployment{a, b, row(3, "C", "redis://c", 0, false)}, []deployment{silent("c"), silent("b"), at("A", "a")}, []int{3, 2, 1}, nil, ""},
		"one down that is new":               {[]live.Deployment{a}, []deployment{at("A", "a"), silent("b")}, nil, nil, "redis://b cannot be reached, and the ledger knows no deployment there"},
		"one down that has moved":            {[]live.Deployment{a, b}, []deployment{at("A", "a"), at("B", "c"), silent("b")}, nil, nil, "redis://b cannot be reached"},
		"one down, and an empty ledger":      {nil, []deployment{at("A", "a"), silent("b")}, nil, nil, "redis://b cannot be reached"},
		"an upgrade with one":                {[]live.Deployment{before}, []deployment{at("A", "a")}, []int{1}, []int{1}, ""},
		"an upgrade with two":                {[]live.Deployment{before}, []deployment{at("A", "a"), at("B", "b")}, nil, nil, "start once with its address alone"},
	} {
		save, err := match(c.known, c.found)
		if c.refused != "" {
			if !errors.Is(err, ErrDeployments) || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), "--engine") {
				t.Errorf("%s: %v, want %q and the setting", what, err, c.refused)
			}
			continue
		}
		var numbers, saved []int
		for _, d := range c.found {
			numbers = append(numbers, d.number)
		}
		for _, d := range save {
			saved = append(saved, d.Number)
		}
		if err != nil || !slices.Equal(numbers, c.numbers) || !slices.Equal(saved, c.saved) {
			t.Errorf("%s: numbers %v, saved %v, %v; want %v and %v", what, numbers, saved, err, c.numbers, c.saved)
		}
	}
}
