package erasure

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/live"
)

// manyErasures is a ledger with erasures under way, each of which it does in one part
// a step.
type manyErasures struct {
	Ledger
	open []Erasure
	some func(e *Erasure, held map[uint32]bool)
}

func (l *manyErasures) ErasureList(context.Context, bool, dibs.Page) (dibs.List[Erasure], error) {
	return dibs.List[Erasure]{Items: slices.Clone(l.open)}, nil
}

func (l *manyErasures) EraseSome(_ context.Context, e *Erasure, held map[uint32]bool, _ time.Time) error {
	l.some(e, held)
	e.Advance()
	return nil
}

func (l *manyErasures) SaveErasure(context.Context, *Erasure) error { return nil }

// journals is an engine that has entries of campaigns.
type journals struct {
	dibs.Engine
	shards []dibs.ShardID
	asked  int
	err    error
}

func (j *journals) JournalShards(context.Context) ([]dibs.ShardID, error) {
	j.asked++
	return j.shards, j.err
}

// newErasures returns the erasures of a node, and what has the node hold a campaign.
func newErasures(t *testing.T, l Ledger, engine dibs.Engine) (*Erasures, func(*dibs.Campaign)) {
	node := live.New(live.Config{Engine: engine, Now: time.Now, Life: t.Context()})
	s := New(Config{Live: node, Engine: engine, Ledger: l, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Every: time.Minute, Rest: time.Minute})
	return s, func(c *dibs.Campaign) { node.Registry.Put(c, live.NewCampaign(c)) }
}

// While users are erased one after the other, an engine may take a campaign up, for a
// late payment say: from then on nobody is taken out of it.
func TestErasuresSeeWhatIsHeldMeanwhile(t *testing.T) {
	const here, there = 7, 8
	l := &manyErasures{open: []Erasure{{UserID: "ann", Step: EraseClaims}, {UserID: "bob", Step: EraseClaims}}}
	engine := &journals{}
	s, holds := newErasures(t, l, engine)
	var taken bool
	seen := map[EraseStep]int{}
	l.some = func(e *Erasure, held map[uint32]bool) {
		if e.UserID == "ann" && e.Step == EraseQuarantine {
			holds(&dibs.Campaign{Number: here})
			engine.shards = []dibs.ShardID{{Campaign: there}}
			taken = true
			return
		}
		if taken && slices.Contains(campaignSteps, e.Step) {
			seen[e.Step]++
			if !held[here] || !held[there] {
				t.Errorf("%s of %s is erased without regard to what is held now: %v", e.Step, e.UserID, held)
			}
		}
	}
	if err := s.eraseAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, step := range campaignSteps {
		if want := map[bool]int{true: 1, false: 2}[step == EraseClaims || step == EraseLotteries || step == EraseQuarantine]; seen[step] != want {
			t.Errorf("%s was done %d times since, want %d", step, seen[step], want)
		}
	}
}

// An engine that does not answer is asked once, and not for each of those who wait.
func TestErasuresWaitForTheEngine(t *testing.T) {
	l := &manyErasures{open: []Erasure{{UserID: "ann", Step: EraseClaims}, {UserID: "bob", Step: EraseClaims}}}
	engine := &journals{err: errors.New("a cable was pulled")}
	s, _ := newErasures(t, l, engine)
	l.some = func(e *Erasure, _ map[uint32]bool) { t.Errorf("%s of %s is erased", e.Step, e.UserID) }
	if err := s.eraseAll(t.Context()); !errors.Is(err, engine.err) || engine.asked != 1 {
		t.Errorf("asked %d times: %v", engine.asked, err)
	}
}
