package sqlledger

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/dibs-dev/dibs/internal/sqldb"
)

// TestArguments: each way to pass two rows of three columns.
func TestArguments(t *testing.T) {
	head, rows := []any{"h", int64(0)}, []any{int64(1), "a", int64(2), int64(3), "b", int64(4)}
	for want, f := range map[string]func(dst, head, rows []any, width int) []any{
		"[h 0 1 a 2 3 b 4]":       headThenRows,
		"[h 0 1 a 2 h 0 3 b 4]":   headBeforeEachRow,
		"[h 0 [1 3] [a b] [2 4]]": arrays,
	} {
		if got := fmt.Sprint(f(nil, head, rows, 3)); got != want {
			t.Errorf("the arguments are %s, want %s", got, want)
		}
	}
}

// placeholders counts the arguments that a statement takes. Numbered ones, which
// only SQLite has, may be used more than once.
func placeholders(statement string) int {
	highest, others := 0, 0
	for _, m := range regexp.MustCompile(`\?(\d*)`).FindAllStringSubmatch(statement, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil {
			highest = max(highest, n)
		} else {
			others++
		}
	}
	return highest + others
}

// TestManyRowsFit: a statement has a placeholder for each of its arguments.
func TestManyRowsFit(t *testing.T) {
	head := map[string][]any{"claims": {1, 2, 3, 4, 5, "6"}, "items": {1, 2, 3}}
	row := map[string][]any{"claims": {int64(1), "u", int64(1), int64(1), int64(1), int64(1), int64(1)}, "items": {int64(1), int64(2)}}
	for kind, f := range formsOf {
		for what, m := range map[string]manyRows{"claims": f.claims, "items": f.items} {
			n := min(m.most, 3)
			var rows []any
			for range n {
				rows = append(rows, row[what]...)
			}
			args := len(m.arguments(nil, head[what], rows, len(row[what])))
			if holders := placeholders(m.text(n)); holders != args {
				t.Errorf("%s on %s: %d placeholders for %d arguments", what, sqldb.Kind(kind), holders, args)
			}
		}
	}
}
