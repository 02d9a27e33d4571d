package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestFaults names every fault of a question at once.
func TestFaults(t *testing.T) {
	good := Question{Users: 1000, Stock: 10, Over: time.Second}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(q *Question){
		"/users":          func(q *Question) { q.Users = 0 },
		"/users most":     func(q *Question) { q.Users = MaxUsers + 1 },
		"/presses":        func(q *Question) { q.Presses = 0.5 },
		"/stock":          func(q *Question) { q.Stock = -1 },
		"/over":           func(q *Question) { q.Over = 25 * time.Hour },
		"/wave":           func(q *Question) { q.Wave = 10 },
		"/shape":          func(q *Question) { q.Shape = "round" },
		"/shape at once":  func(q *Question) { q.Shape = AtOnce },
		"/shape no time":  func(q *Question) { q.Over, q.Shape = 0, Falling },
		"/engine":         func(q *Question) { q.Engine = "redis://127.0.0.1" },
		"/ledger":         func(q *Question) { q.Ledger = "oracle" },
		"/durability":     func(q *Question) { q.Durability = "forever" },
		"/durability rep": func(q *Question) { q.Durability = dibs.LevelReplicated },
		"/nodes":          func(q *Question) { q.Nodes = 2 },
		"/nodes sqlite":   func(q *Question) { q.Engine, q.Ledger, q.Nodes = Redis, SQLite, 2 },
		"/nodes many":     func(q *Question) { q.Engine, q.Nodes = Redis, MaxNodes+1 },
		"/cores":          func(q *Question) { q.Cores = -1 },
		"/shards":         func(q *Question) { q.Shards = 2 },
		"/shards 65":      func(q *Question) { q.Engine, q.Shards, q.Stock = Redis, 65, 1000 },
		"/shards 0":       func(q *Question) { q.Engine, q.Shards = Redis, -2 },
		"/shards stock":   func(q *Question) { q.Engine, q.Shards = Redis, 11 },
		"/target":         func(q *Question) { q.Target = time.Microsecond },
		"/link":           func(q *Question) { q.Link = -1 },
		"/clients-here":   func(q *Question) { q.Engine, q.ClientsHere, q.Nodes = Redis, true, 3 },
	} {
		q := good
		change(&q)
		field, _, _ := strings.Cut(want, " ")
		var e *dibs.Error
		if err := q.Validate(); !errors.As(err, &e) || len(e.Faults) != 1 || e.Faults[0].Field != field {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := Ask(t.Context(), Default(), q); err == nil {
			t.Errorf("%s: it was answered", want)
		}
	}
	var e *dibs.Error
	if err := (Question{Presses: -1, Cores: -1}).Validate(); !errors.As(err, &e) || len(e.Faults) < 4 {
		t.Errorf("several faults at once: %v", err)
	}
}
