//go:build soak

package main

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// TestLiveScreen watches a live screen for two seconds per round: 100 seconds of make soak, in which it neither grows nor
// stalls.
func TestLiveScreen(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("SOAK"))
	if err != nil || rounds < 1 {
		rounds = 30
	}
	faults, err := run(t.Context(), options{out: t.TempDir(), live: time.Duration(rounds) * 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}
