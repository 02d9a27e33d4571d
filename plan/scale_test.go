package plan

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dustin/go-humanize"
)

// write has TestScalePage write the tables instead of comparing them.
var write = flag.Bool("write", false, "write the tables of docs/SCALE.md")

const scalePage = "../docs/SCALE.md"

// TestScalePage keeps the tables of docs/SCALE.md equal to what the simulation says.
// After a change of the simulation or the calibration, write them again:
//
//	go test ./plan -run TestScalePage -write
func TestScalePage(t *testing.T) {
	text, err := os.ReadFile(scalePage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name, table := range map[string]func(*testing.T) string{"crowds": crowds, "nodes": byNodes, "shards": byShards} {
		open, end := "<!-- "+name+" -->\n\n", "\n<!-- end -->"
		before, rest, ok := strings.Cut(page, open)
		old, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("the page has no table %s", name)
		}
		want := table(t)
		if old != want && !*write {
			t.Errorf("the table %s is\n%s\nand should be\n%s", name, old, want)
		}
		page = before + open + want + end + after
	}
	if *write {
		if err := os.WriteFile(scalePage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// round keeps two digits: the third is the machine's.
func round(v float64) string {
	unit := 1.0
	for v/unit >= 100 {
		unit *= 10
	}
	return humanize.Comma(int64(v/unit+0.5) * int64(unit))
}

// rushOf is a crowd that comes within ten seconds, with a unit for one of twenty users.
func rushOf(users int64) Question {
	return Question{Users: users, Stock: users / 20, Over: 10 * time.Second, Engine: Redis, Shards: FindShards, Cores: 8}
}

// crowds is what crowds of different sizes need.
func crowds(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| users in 10 s | units | nodes of 8 cores | cores of Redis | p50 | p99 | sold out after | all is in the ledger after | memory of a node |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, users := range []int64{10_000, 100_000, 1_000_000, 2_000_000, 10_000_000, 100_000_000} {
		a := ask(t, rushOf(users))
		if a.SoldOut == nil || !a.Keeps {
			t.Errorf("%d users: %+v", users, a.Limit)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %.0f ms | %.0f ms | %.1f s | %.1f s | %s |\n", humanize.Comma(users), humanize.Comma(a.Question.Stock),
			a.Question.Nodes, a.Question.Shards, a.All.P50, a.All.P99, *a.SoldOut, a.SettledAt, bytesText(a.Memory.Node))
	}
	return b.String()
}

// byNodes is how many requests a second some nodes take, with one core of Redis: when
// nearly all are refused, and when all are granted.
func byNodes(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| nodes of 8 cores | one unit for 20 users | breaks first | a unit for each | breaks first |\n|---|---|---|---|---|\n")
	for _, nodes := range []int{1, 2, 4, 10, 30, 100} {
		fmt.Fprintf(&b, "| %d |", nodes)
		for _, share := range []int64{20, 1} {
			q := rushOf(int64(nodes) * 200_000)
			q.Stock, q.Nodes, q.Shards = q.Users/share, nodes, 1
			a := ask(t, q)
			fmt.Fprintf(&b, " %s/s | %s |", round(a.Limit.Requests), a.Limit.First)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// byShards is how many grants a second some cores of Redis take, with a hundred nodes.
func byShards(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| cores of Redis | a unit for each user | breaks first | the grants of 10 s are in the ledger after |\n|---|---|---|---|\n")
	for _, shards := range []int{1, 2, 4, 8, 16, 32, 64} {
		q := rushOf(int64(shards) * 1_000_000)
		q.Stock, q.Nodes, q.Shards = q.Users, 100, shards
		a := ask(t, q)
		fmt.Fprintf(&b, "| %d | %s/s | %s | %.0f s |\n", shards, round(a.Limit.Requests), a.Limit.First, a.Limit.Requests*10/a.settleRate())
	}
	return b.String()
}

// settleRate is how many grants the ledger of an answer takes in a second.
func (a *Answer) settleRate() float64 {
	l := Default().Ledgers[a.Question.Ledger]
	return 1e6 / (l.RowUS + l.CommitUS/settleBatch)
}
