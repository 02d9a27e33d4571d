package servers

import (
	"os"
	"testing"
)

// TestPongOfAnother asks a server that is another one than was started.
func TestPongOfAnother(t *testing.T) {
	r, err := StartRedis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	if err := r.pong(t.Context(), r.Process().Pid); err != nil {
		t.Errorf("the server itself is taken for another: %v", err)
	}
	if err := r.pong(t.Context(), os.Getpid()); err == nil {
		t.Error("another server is taken for the one that was started")
	}
}
