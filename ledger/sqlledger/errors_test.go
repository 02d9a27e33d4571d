package sqlledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"
)

// TestExplain: what callers get for each class of a database's error.
func TestExplain(t *testing.T) {
	cause := errors.New("said by the driver")
	for fault, want := range map[sqldb.Fault]struct {
		is     error
		effect dibs.Effect
	}{
		sqldb.FaultUnknownEffect: {dibs.ErrUnavailable, dibs.EffectUnknown}, sqldb.FaultSlow: {dibs.ErrUnavailable, dibs.EffectNone},
		sqldb.FaultBusy: {dibs.ErrUnavailable, dibs.EffectNone}, sqldb.FaultConflict: {dibs.ErrUnavailable, dibs.EffectNone},
		sqldb.FaultFull: {dibs.ErrUnavailable, dibs.EffectNone}, sqldb.FaultIO: {dibs.ErrUnavailable, dibs.EffectNone},
		sqldb.FaultText: {dibs.ErrInvalid, ""}, sqldb.FaultCorrupt: {dibs.ErrCorrupt, ""},
		sqldb.FaultUnique: {cause, ""}, sqldb.FaultConstraint: {cause, ""}, sqldb.FaultOther: {cause, ""},
	} {
		err := explain("try", fault, cause)
		var refusal *dibs.Error
		if !errors.Is(err, want.is) || errors.As(err, &refusal) && refusal.Effect != want.effect {
			t.Errorf("fault %d: %v", fault, err)
		}
		if fault != sqldb.FaultText && !strings.Contains(err.Error(), "sqlledger: try: ") {
			t.Errorf("fault %d does not say what was done: %v", fault, err)
		}
	}
}

// TestContractErrorsPass: an error of the contract stays what it is, whatever
// the database would say of it.
func TestContractErrorsPass(t *testing.T) {
	said := dibs.Fail(dibs.NotFound, dibs.Text{EN: "none"})
	if err := explain("try", sqldb.FaultIO, said); !errors.Is(err, dibs.ErrNotFound) || errors.Is(err, dibs.ErrUnavailable) {
		t.Errorf("a refusal became %v", err)
	}
	for _, p := range append(passed, context.Canceled) {
		err := explain("try", sqldb.FaultIO, fmt.Errorf("on the way: %w", p))
		if !errors.Is(err, p) || errors.Is(err, dibs.ErrUnavailable) {
			t.Errorf("%v became %v", p, err)
		}
	}
}
