package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// The less lives the longer the collector rests, within the memory there is.
func TestPercent(t *testing.T) {
	for _, c := range []struct {
		name          string
		living, bound int64
		want          int
	}{
		{"nothing yet", 0, 0, 400},
		{"little", 20 << 20, 0, 400},
		{"as much as may be spared", 256 << 20, 0, 100},
		{"something between", 128 << 20, 0, 200},
		{"much", 4 << 30, 0, 100},
		{"little, in a small container", 20 << 20, 256 << 20, 160},
		{"little, in a large one", 20 << 20, 8 << 30, 400},
		{"a small container that is full", 200 << 20, 256 << 20, 100},
	} {
		if got := percentFor(c.living, c.bound); got != c.want {
			t.Errorf("%s: %d percent, want %d", c.name, got, c.want)
		}
	}
}

// It is set while it is asked for, and whoever set GOGC keeps it.
func TestEase(t *testing.T) {
	now := func() int {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return int(sample[0].Value.Uint64())
	}
	run := func(until func() bool) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			Ease(ctx)
			close(done)
		}()
		for deadline := time.Now().Add(30 * time.Second); !until() && time.Now().Before(deadline); {
		}
		stop()
		<-done
	}
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	eases := false
	run(func() bool { eases = now() > usual; return eases })
	if !eases || now() != usual {
		t.Errorf("eased: %v, and %d percent afterwards", eases, now())
	}
	t.Setenv("GOGC", "100")
	run(func() bool { return true })
	if now() != usual {
		t.Errorf("%d percent, with GOGC=100", now())
	}
}

// The live heap may grow by much from one collection to the next: then it is not allowed
// as much garbage as a small one.
func TestEaseKeepsUp(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	await := func(what string, is func() bool) {
		t.Helper()
		// A collection that begins before the last one was told of is not told of itself.
		for deadline := time.Now().Add(30 * time.Second); !is(); runtime.GC() {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d percent", what, percent())
			}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		ease(ctx, 256<<20)
		close(done)
	}()
	defer func() {
		stop()
		<-done
	}()
	await("while little lives", func() bool { return percent() > usual })
	full := make([]byte, 100<<20)
	await("when much does", func() bool { return percent() == usual })
	runtime.KeepAlive(full)
	await("and when it is gone", func() bool { return percent() > usual })
}

// A container's bound is a number, or `max`.
func TestLimitOfContainers(t *testing.T) {
	for text, want := range map[string]int64{"1073741824\n": 1 << 30, "max\n": 0, "": 0, "-1": 0} {
		if got := parseLimit(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
