package remote_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/redpacket"
)

func TestRedPacketSplit(t *testing.T) {
	type division struct {
		RedPacket dibs.RedPacketSpec `json:"redpacket"`
		Shares    []int64            `json:"shares"`
		Sum       int64              `json:"sum"`
	}
	divide := func(args ...string) division {
		t.Helper()
		r := clitest.Run(t, nil, append([]string{"redpacket", "split", "--total", "10000", "--count", "7", "--output", "json"}, args...)...)
		r.Want(t, 0)
		var d division
		if err := json.Unmarshal([]byte(r.Out), &d); err != nil {
			t.Fatalf("%v in %s", err, r.Out)
		}
		sum := int64(0)
		for _, s := range d.Shares {
			sum += s
		}
		if sum != 10_000 || d.Sum != sum || len(d.Shares) != 7 {
			t.Errorf("%v sum to %d, %d is shown", d.Shares, sum, d.Sum)
		}
		return d
	}
	bounded := divide("--split", "line_cut", "--min", "1000", "--max", "2000", "--currency", "USD")
	want := dibs.RedPacketSpec{Total: dibs.Money{Amount: 10_000, Currency: "USD"}, Count: 7, Split: dibs.LineCut, Min: 1000, Max: 2000}
	if bounded.RedPacket != want || slices.Min(bounded.Shares) < 1000 || slices.Max(bounded.Shares) > 2000 {
		t.Errorf("%+v", bounded)
	}
	if one, again := divide("--seed", "0"), divide("--seed", "0"); !slices.Equal(one.Shares, again.Shares) {
		t.Errorf("one seed gives %v and %v", one.Shares, again.Shares)
	}
	if one, other := divide(), divide(); slices.Equal(one.Shares, other.Shares) {
		t.Errorf("without a seed, twice %v", one.Shares)
	}
	clitest.Run(t, nil, "redpacket", "split", "--total", "10", "--count", "2", "--split", "equal").Want(t, 0,
		"0.10 CNY in 2 shares by equal, at least 0.01 each\nPLACE  SHARE\n1      0.05\n2      0.05\nsum    0.10\n")
}

func TestRedPacketFairness(t *testing.T) {
	args := []string{"redpacket", "fairness", "--total", "10000", "--count", "5", "--rounds", "2000"}
	r := clitest.Run(t, nil, append(args, "--max", "4000", "--output", "json")...)
	r.Want(t, 0)
	var f struct {
		redpacket.Fairness
		Seed uint64 `json:"seed"`
	}
	if err := json.Unmarshal([]byte(r.Out), &f); err != nil || f.Seed == 0 || f.Rounds != 2000 || len(f.Places) != 5 || f.All.Mean != 2000 || f.All.Most > 4000 {
		t.Errorf("%+v, %v", f, err)
	}
	seeded := clitest.Run(t, nil, append(args, "--seed", "42")...)
	seeded.Want(t, 0, "100.00 CNY in 5 shares by double_mean, at least 0.01 each, 2000 rounds, seed 42\n", "PLACE  MEAN", "BEST LUCK", "\nall    20.000")
	if strings.Count(seeded.Out, "\n") != 8 {
		t.Errorf("eight lines are wanted:\n%s", seeded.Out)
	}
	if again := clitest.Run(t, nil, append(args, "--seed", "42")...); again.Out != seeded.Out {
		t.Errorf("one seed gives\n%s\nand\n%s", seeded.Out, again.Out)
	}
	if other := clitest.Run(t, nil, append(args, "--seed", "43")...); other.Out == seeded.Out {
		t.Error("another seed gives the same table")
	}
}

// TestRedPacketFaults checks that all that is wrong with the flags is told at
// once, a line each.
func TestRedPacketFaults(t *testing.T) {
	for args, want := range map[string][]string{
		"split": {"--total: is required", "--count: is required"},
		"split --total 100.00 --count ten --currency yuan": {
			`--count: must be a whole number, not "ten"`, "--currency: must be three",
		},
		"split --total 100 --count 10 --split line-cut":                {`--split must be double_mean, line_cut or equal, not "line-cut"; did you mean line_cut?`},
		"split --total 9 --count 10":                                   {"--total: must be at least 10"},
		"split --total 1000 --count 10 --min 101":                      {"--min: must be at most 100"},
		"split --total 1000 --count 10 --max 99":                       {"--max: must be at least 100"},
		"split --total 9007199254740992 --count 1000001":               {"--total: must be from 1 to", "--count: must be from 1 to"},
		"fairness --total 10 --count 20 --rounds 0":                    {"--total: must be at least 20", "--rounds: must be from 1 to"},
		"fairness --total 10000 --count 1001":                          {"--count: must be at most 1000"},
		"fairness --total 10000 --count 10 --min half":                 {"--min: must be an amount of money"},
		"fairness --total 100CNY --count 10 --max 1USD --rounds -1":    {"--max: must be in CNY", "--rounds: must be"},
		"fairness --total 99999999999999999999 --count 2 --rounds two": {`--rounds must be a whole number, not "two"`},
	} {
		r := clitest.Run(t, nil, append([]string{"redpacket"}, strings.Fields(args)...)...)
		r.Want(t, 2, want...)
		if lines := strings.Count(r.Err, "\n  "); r.Out != "" || lines != len(want) && strings.Contains(r.Err, ":\n") {
			t.Errorf("%s: %d faults, want %d\n%s%s", args, lines, len(want), r.Out, r.Err)
		}
	}
}

// TestRedPacketPage keeps the tables of docs/REDPACKET.md equal to what the
// commands above them print.
func TestRedPacketPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/REDPACKET.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```console\n\\$ dibs ([^\n]+)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(shown) < 2 {
		t.Fatalf("the page shows %d commands", len(shown))
	}
	for _, m := range shown {
		if r := clitest.Run(t, nil, strings.Fields(m[1])...); r.Code != 0 || r.Out != m[2] {
			t.Errorf("dibs %s prints\n%s%s\nthe page has\n%s", m[1], r.Out, r.Err, m[2])
		}
	}
}
