package lab

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// One user with many presses gets one order from dibs, and the lab counts it: it waits for
// what was granted, not for a number of entries.
func TestOneUserIsCounted(t *testing.T) {
	report, err := Run(t.Context(), Config{
		Preset: OneUser, Strategies: []string{"dibs-redis-none", "dibs-embedded"}, Databases: []string{MariaDB}, Requests: 300, Concurrency: []int{300},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() || len(report.Results) != 2 || report.SyncMS <= 0 {
		t.Errorf("%+v", report)
	}
	for _, r := range report.Results {
		if r.Orders != 1 || r.Verdict() != "safe" || r.InProcess != (r.Strategy == "dibs-embedded") {
			t.Errorf("%s: %d orders, %s", r.Strategy, r.Orders, r.Verdict())
		}
	}
}

// In the preset of red packets dibs divides a sum, and gives a share to each user, at every level.
func TestPacketsAreRedPackets(t *testing.T) {
	report, err := Run(t.Context(), Config{
		Preset: Packets, Strategies: []string{"dibs-embedded", "dibs-redis-none", "dibs-redis-relaxed", "dibs-redis-durable", "dibs-redis-replicated", "dibs-redis-ledgered"},
		Databases: []string{MariaDB}, Users: 500, Requests: 500, Stock: 300, Concurrency: []int{20},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != 6 || !report.OK() {
		t.Errorf("%d results, whole %v", len(report.Results), report.OK())
	}
	for _, r := range report.Results {
		if r.Orders != 300 || r.SoldOut != 200 {
			t.Errorf("%+v", r)
		}
	}
}

// stopAt ends a context when a line of progress comes.
type stopAt struct {
	at   string
	stop func()
}

func (s stopAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.at) {
		s.stop()
	}
	return len(p), nil
}

// A lab that is stopped has the runs that it has made, and is not content.
func TestStoppedAfterARun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	report, err := Run(ctx, Config{
		Strategies: []string{"dibs-embedded"}, Users: 50, Requests: 50, Stock: 20, Concurrency: []int{5, 10, 20}, Progress: stopAt{" 1 of 3", stop},
	})
	if !errors.Is(err, context.Canceled) || report == nil || len(report.Results) != 1 || report.Planned != 3 || report.OK() {
		t.Errorf("%+v, %v", report, err)
	}
}
