package sqlledger

import (
	"errors"
	"reflect"
	"testing"

	"github.com/dibs-dev/dibs"
)

// TestRulesText: tiers and gate come back as they were stored, none as none, and
// damaged ones are told.
func TestRulesText(t *testing.T) {
	for what, c := range map[string]*dibs.Campaign{
		"none": {ID: "c"}, "both": {ID: "c", Tiers: []dibs.Tier{{}, {}}, Gate: &dibs.GateSpec{}},
	} {
		tiers, gate, err := rulesText(c)
		if err != nil || (tiers == "") != (len(c.Tiers) == 0) || (gate == "") != (c.Gate == nil) {
			t.Errorf("%s: stored as %q and %q, %v", what, tiers, gate, err)
		}
		got := &dibs.Campaign{ID: "c"}
		if err := errors.Join(readRule(got, "tiers", tiers, &got.Tiers), readRule(got, "gate", gate, &got.Gate)); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s: came back as %+v, %v", what, got, err)
		}
	}
	if err := readRule(&dibs.Campaign{}, "gate", "{", new(dibs.GateSpec)); !errors.Is(err, dibs.ErrCorrupt) {
		t.Errorf("a damaged gate: %v", err)
	}
}
