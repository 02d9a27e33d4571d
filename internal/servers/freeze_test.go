package servers_test

import (
	"context"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

func TestFreeze(t *testing.T) {
	r, err := servers.StartRedis(t.TempDir())
	must(t, err)
	t.Cleanup(r.Kill)
	must(t, r.Freeze())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Do(ctx, "PING"); err == nil {
		t.Error("a frozen server answers")
	}
	must(t, r.Thaw())
	do(t, r, "PING")
}
