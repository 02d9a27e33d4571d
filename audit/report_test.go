package audit

import "testing"

// TestGrouped: numbers in the sentences of a report have commas, whatever verb shows them.
func TestGrouped(t *testing.T) {
	got := sentence("%d of %[1]s, %d, %d, %d", "%d/%d/%d/%d", int64(999), int64(-100), int64(-1000), int64(1234567))
	if got.EN != "999 of 999, -100, -1,000, 1,234,567" || got.ZH != "999/-100/-1,000/1,234,567" {
		t.Errorf("%+v", got)
	}
}
