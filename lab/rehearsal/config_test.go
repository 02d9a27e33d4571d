package rehearsal_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/lab/rehearsal"
)

// TestConfigFaults: every fault is listed at once, by the name of its flag.
func TestConfigFaults(t *testing.T) {
	for _, c := range []struct {
		cfg   rehearsal.Config
		flags []string
	}{
		{rehearsal.Config{}, nil},
		{rehearsal.Config{Scenario: rehearsal.OneUser}, nil},
		{rehearsal.Config{URL: "https://dibs.example", AdminKey: "k", Campaign: "c"}, nil},
		{rehearsal.Config{Rate: 100, Duration: time.Second}, nil},
		{
			rehearsal.Config{Scenario: "nobody", Users: -1, Requests: -1, Concurrency: -1, Rate: -1, Stock: -1, Limit: -1, Quantity: -1, Repeats: 1, Patience: -1, Timeout: -1, MaxTime: -1},
			[]string{"concurrency", "limit", "max-time", "patience", "quantity", "rate", "repeats", "requests", "scenario", "stock", "timeout", "users"},
		},
		{rehearsal.Config{Scenario: rehearsal.OneUser, Users: 2}, []string{"users"}},
		{rehearsal.Config{Duration: time.Second, Requests: 5}, []string{"duration", "requests"}},
		{rehearsal.Config{Duration: -1}, []string{"duration"}},
		{rehearsal.Config{Rate: 1e6, Duration: time.Hour}, []string{"requests"}},
		{rehearsal.Config{NoKeys: true, Repeats: 0.5}, []string{"repeats"}},
		{rehearsal.Config{AdminKey: "k", JWTSecret: "s", Campaign: "c", Stock: 1, Limit: 1}, []string{"admin-key", "campaign", "jwt-secret", "limit", "stock"}},
		{rehearsal.Config{URL: "dibs.example:80", Data: "d", Campaign: "no such id"}, []string{"admin-key", "campaign", "data", "url"}},
	} {
		var flags []string
		var e *dibs.Error
		if errors.As(c.cfg.Validate(), &e) {
			for _, f := range e.Faults {
				flags = append(flags, strings.TrimPrefix(f.Field, "/"))
			}
		}
		slices.Sort(flags)
		if !slices.Equal(flags, c.flags) {
			t.Errorf("%+v:\nfaults of %v, not of %v", c.cfg, flags, c.flags)
		}
		if len(c.flags) == 0 {
			continue
		}
		if _, err := rehearsal.Run(t.Context(), c.cfg); !errors.Is(err, dibs.ErrInvalid) {
			t.Errorf("Run took %+v: %v", c.cfg, err)
		}
	}
}
