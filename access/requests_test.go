package access

import (
	"context"
	"errors"
	"testing"

	"github.com/dibs-dev/dibs"
)

// answers is a ledger of answers. It saves nothing with a context that has ended.
type answers struct {
	Ledger
	kept *StoredRequest
}

func (l *answers) Request(context.Context, string, string) (*StoredRequest, error) {
	if l.kept == nil {
		return nil, dibs.ErrNotFound
	}
	return l.kept, nil
}

func (l *answers) SaveRequest(ctx context.Context, r *StoredRequest) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return errors.New("no deadline")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.kept = r
	return nil
}

// A caller who goes away once the change is made finds its answer at the repeat.
func TestAnswersOfCallersWhoWentAway(t *testing.T) {
	s := newAccess(t, &answers{})
	made := 0
	for _, repeat := range []bool{false, true} {
		ctx, goAway := context.WithCancel(t.Context())
		answer, replayed, err := s.Remember(ctx, "ann", "k", nil, func() (int, []byte, error) {
			made++
			goAway()
			return 201, []byte("{}"), nil
		})
		goAway()
		if err != nil || replayed != repeat || answer.Status != 201 {
			t.Errorf("%d, replayed %v, %v; want a replay %v", answer.Status, replayed, err, repeat)
		}
	}
	if made != 1 {
		t.Errorf("the change was made %d times", made)
	}
}
