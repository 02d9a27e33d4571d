package ci_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// firstToldOf is the first migration that an upgrade may still have before it.
const firstToldOf = 15

// TestUpgradingHasEveryMigration: who upgrades finds each migration of the ledger in the page's table, and none that there is
// not.
func TestUpgradingHasEveryMigration(t *testing.T) {
	files, err := filepath.Glob("../../ledger/sqlledger/migrations/mysql/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no migrations: %v", err)
	}
	var want, told []string
	for _, f := range files {
		if n, err := strconv.Atoi(filepath.Base(f)[:5]); err != nil {
			t.Error(err)
		} else if n >= firstToldOf {
			want = append(want, strconv.Itoa(n))
		}
	}
	page, err := os.ReadFile("../../docs/UPGRADING.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(string(page), -1) {
		told = append(told, row[1])
	}
	if !slices.Equal(told, want) {
		t.Errorf("the page has the migrations %v, there are %v", told, want)
	}
}
