package leaks

import (
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// A goroutine that ends a moment later is no leak; one that does not end is.
func TestFind(t *testing.T) {
	stop := make(chan struct{})
	go func() { <-stop }()
	if err := find(0); err == nil || !strings.Contains(err.Error(), "TestFind") {
		t.Errorf("a goroutine that goes on: %v", err)
	}
	time.AfterFunc(2*time.Second, func() { close(stop) })
	if err := Find(); err != nil {
		t.Errorf("a goroutine that ends: %v", err)
	}
}
