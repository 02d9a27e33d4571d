package wait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibs-dev/dibs/internal/wait"
)

// TestEvery: the beats have the same distance however long a round takes, and end with their context.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begun, rounds := time.Now(), 0
		for range wait.Every(ctx, time.Second) {
			if rounds++; time.Since(begun) != time.Duration(rounds)*time.Second {
				t.Errorf("round %d is after %s", rounds, time.Since(begun))
			}
			if rounds == 5 {
				cancel()
			}
			wait.Sleep(t.Context(), 700*time.Millisecond)
		}
		if rounds != 5 {
			t.Errorf("%d rounds", rounds)
		}
	})
}
