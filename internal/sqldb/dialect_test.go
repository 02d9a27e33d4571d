package sqldb

import "testing"

// TestCompare holds the two ways of comparing tuples against each other.
func TestCompare(t *testing.T) {
	db := openTest(t, fileAddress(t), Config{})
	columns := []string{"a", "b", "c"}
	for _, relation := range []string{"<", "<=", ">", ">="} {
		for n := range 27 {
			values := []any{n / 9, n / 3 % 3, n % 3}
			var found [2]string
			for i, d := range []*Dialect{{}, {plainTuples: true}} {
				where, args := d.Compare(columns, relation, values...)
				err := db.Read(t.Context(), "compare", func(s *Session) error {
					return s.Row(t.Context(), `WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 26),
						rows AS (SELECT n, n / 9 AS a, n / 3 % 3 AS b, n % 3 AS c FROM n)
						SELECT COALESCE(GROUP_CONCAT(n), '') FROM (SELECT n FROM rows WHERE `+where+` ORDER BY n)`, args, &found[i])
				})
				noError(t, err)
			}
			if found[0] != found[1] {
				t.Errorf("%s %v: %s and %s", relation, values, found[0], found[1])
			}
		}
	}
}
