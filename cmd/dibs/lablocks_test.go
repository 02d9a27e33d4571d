package main

import (
	"encoding/json"
	"testing"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/lab"
)

// TestLabLocks kills and pauses a process that holds a lock.
func TestLabLocks(t *testing.T) {
	r := execute(t, nil, "lab", "locks", "--lockers", "redis", "--contenders", "5", "--lifetime", "1s", "--output", "json")
	r.Want(t, cli.ExitOK)
	var got []lab.LockResult
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatalf("%v: %s", err, r.Out)
	}
	if len(got) != 1 || got[0].Together != 0 || got[0].PausedMS == nil || !got[0].Stale || !got[0].Refused {
		t.Errorf("%+v", got)
	}
}
