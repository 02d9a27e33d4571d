package metric

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	all   Set
	rooms = all.New("rooms", "Rooms that are open.", "kind")
	asked = all.New("asked_total", "Questions.")
)

type part struct{}

func (part) Describe(out chan<- *prometheus.Desc) { all.Describe(out) }

func (part) Collect(out chan<- prometheus.Metric) {
	Gauge(out, rooms, Flag(true), "large")
	Gauge(out, rooms, Flag(false), "small")
	Count(out, asked, int64(7))
}

// TestNumbersAreShown collects a part in a registry that checks what it is told.
func TestNumbersAreShown(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(part{}); err != nil {
		t.Fatal(err)
	}
	shown, err := r.Gather()
	if len(shown) != 2 || err != nil {
		t.Fatalf("%d families are shown, error %v", len(shown), err)
	}
	if n := shown[0].Metric[0].Counter.GetValue(); n != 7 {
		t.Errorf("the counter shows %v", n)
	}
	if of := shown[1].Metric; len(of) != 2 || of[0].Gauge.GetValue() != 1 || of[1].Gauge.GetValue() != 0 {
		t.Errorf("the gauge shows %v", of)
	}
	if len(all) != 2 {
		t.Errorf("%d descriptions, want 2", len(all))
	}
}
