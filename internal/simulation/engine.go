package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// engine is a node's way to the servers: dibs.Engine as the Redis engine keeps it,
// one call of a script at a time, any of which may be lost, late or refused.
//
// All goroutines of a node call it at once. mu guards what stands below it and is
// never held during a call. seen only rises; once closed is set, nothing more is
// asked.
type engine struct {
	p        *process
	appended chan struct{}

	mu sync.Mutex
	// seen is the highest place of each shard that this node has seen.
	seen   map[dibs.ShardID]dibs.Cursor
	tokens int
	closed bool
}

var _ dibs.Engine = (*engine)(nil)

func newEngine(p *process) *engine {
	return &engine{p: p, appended: make(chan struct{}, 1), seen: map[dibs.ShardID]dibs.Cursor{}}
}

// none is the answer of a call that says no more than that it was carried out.
type none struct{}

func (e *engine) newToken() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tokens++
	return fmt.Sprintf("%s-%d", e.p.name, e.tokens)
}

func (e *engine) seenOf(id dibs.ShardID) dibs.Cursor {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen[id]
}

func (e *engine) saw(id dibs.ShardID, at dibs.Cursor) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen[id].Before(at) {
		e.seen[id] = at
	}
}

// signal wakes the settler. A signal that nobody has taken yet stands for later ones
// too.
func (e *engine) signal() {
	select {
	case e.appended <- struct{}{}:
	default:
	}
}

// change runs a script that changes a shard. One that finds less than this node
// has seen has the shard shut for all.
func change[T any](ctx context.Context, e *engine, op string, effect dibs.Effect, id dibs.ShardID,
	run func(v *server, seen dibs.Cursor) (T, error),
) (T, error) {
	// The place that the node has seen goes along with the request: a server that was
	// restarted with less history cannot notice that by itself.
	seen := e.seenOf(id)
	type answer struct {
		t  T
		at dibs.Cursor
	}
	a, err := ask(ctx, e, op, effect, func(v *server) (answer, error) {
		t, err := run(v, seen)
		if s := v.mem.shards[id]; err == nil && s != nil && s.state == stateOpen {
			return answer{t, s.head}, nil
		}
		return answer{t: t}, err
	})
	if err == nil {
		e.saw(id, a.at)
	}
	// No other process may know the later place. So the server shuts the shard for all
	// of them, before this caller has an answer.
	if errors.Is(err, errBehind) {
		if _, lost := ask(ctx, e, "expel", dibs.EffectNone, func(v *server) (none, error) {
			v.expel(id, seen)
			return none{}, nil
		}); lost != nil {
			return a.t, lost
		}
		err = errShut
	}
	return a.t, err
}

// Claim decides one claim; see dibs.Engine.
func (e *engine) Claim(ctx context.Context, req dibs.EngineClaim) (dibs.Decision, error) {
	if e.isClosed() {
		return dibs.Decision{}, dibs.Unavail(dibs.EffectNone, errClosed)
	}
	if req.OnlyKnown && e.p.w.planted.EarlierUnasked {
		return dibs.Decision{Outcome: dibs.NotFound}, nil
	}
	// The book learns which request was granted, also when the answer is lost.
	r, _ := ctx.Value(requestKey{}).(*request)
	deadline := e.p.w.now().Add(claimDeadline)
	d, err := change(ctx, e, "claim", dibs.EffectUnknown, req.Shard, func(v *server, seen dibs.Cursor) (dibs.Decision, error) {
		return v.claim(&req, seen, deadline, r)
	})
	if err == nil && d.Outcome == dibs.Granted {
		e.signal()
	}
	return d, err
}

// claimDeadline is how long after it was sent a claim may still be decided.
// It is shorter than patience: when a node gives up on an answer, nothing more of the
// request can be granted.
const claimDeadline = time.Second

// Configure makes all shards obey a campaign's definition; see dibs.Engine.
// Every shard is asked, also after one has failed. A repeat is safe: a shard ignores
// a version that is older than its own.
func (e *engine) Configure(ctx context.Context, c *dibs.Campaign) error {
	var errs []error
	copied := *c
	for i := range c.Shards {
		id := dibs.ShardID{Campaign: c.Number, Shard: uint8(i)}
		_, err := change(ctx, e, "configure", dibs.EffectUnknown, id, func(v *server, seen dibs.Cursor) (none, error) {
			return none{}, v.configure(&copied, id, seen)
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Adjust changes the stock; see dibs.Engine.
func (e *engine) Adjust(ctx context.Context, a dibs.Adjustment) error {
	if e.p.w.planted.OneRef {
		a.Ref = strings.TrimSuffix(a.Ref, " -")
	}
	if _, ok := dibs.TransferOf(a.Ref); ok && a.Delta > 0 && e.p.w.planted.MovesLost {
		return nil
	}
	_, err := change(ctx, e, "adjust", dibs.EffectUnknown, a.Shard, func(v *server, seen dibs.Cursor) (none, error) {
		return none{}, v.adjust(a, seen)
	})
	e.signal()
	return e.uncarried(ctx, a.Shard, err)
}

// Release gives a claim's stock back; see dibs.Engine.
func (e *engine) Release(ctx context.Context, r dibs.Release) error {
	_, err := change(ctx, e, "release", dibs.EffectUnknown, r.Claim.ShardID, func(v *server, seen dibs.Cursor) (none, error) {
		return none{}, v.release(r, seen)
	})
	e.signal()
	return e.uncarried(ctx, r.Claim.ShardID, err)
}

// uncarried is the error of a command; with a planted fault nil when the shard is
// not open and the campaign over, as this node's clock has it.
func (e *engine) uncarried(ctx context.Context, id dibs.ShardID, err error) error {
	if !e.p.w.planted.DropsAtOnce || !errors.Is(err, dibs.ErrNotOpen) {
		return err
	}
	c, lost := e.p.w.base.ledger.CampaignByNumber(ctx, id.Campaign)
	if lost == nil && (!c.Live() || !e.p.site.now().Before(c.EndsAt)) {
		return nil
	}
	return err
}

// Find returns a grant by its position; see dibs.Engine.
func (e *engine) Find(ctx context.Context, p dibs.Position) (dibs.Grant, bool, error) {
	type found struct {
		g  dibs.Grant
		ok bool
	}
	f, err := change(ctx, e, "find", dibs.EffectNone, p.ShardID, func(v *server, seen dibs.Cursor) (found, error) {
		s, err := v.open(p.ShardID, seen)
		if err != nil {
			return found{}, err
		}
		if h := s.claims[p.Cursor]; h != nil {
			return found{s.grantOf(p.ShardID, h), true}, nil
		}
		return found{}, nil
	})
	// A shard that was retired is settled: the ledger has its claims.
	if errors.Is(err, errAbsent) {
		err = nil
	}
	return f.g, f.ok, err
}

// HoldingsOf returns a user's grants on the shards that are not settled to their
// end; see dibs.Engine.
// Shards that are settled to the end are left out, since callers read the ledger beside it.
func (e *engine) HoldingsOf(ctx context.Context, user string) ([]dibs.Grant, error) {
	return ask(ctx, e, "holdings", dibs.EffectNone, func(v *server) ([]dibs.Grant, error) {
		var grants []dibs.Grant
		for id := range v.mem.listed {
			s, err := v.open(id, dibs.Cursor{})
			if err != nil || s.settled == s.head {
				continue
			}
			for _, h := range slices.Backward(s.users[user]) {
				grants = append(grants, s.grantOf(id, h))
			}
		}
		return grants, nil
	})
}

// Stats counts a shard; see dibs.Engine.
func (e *engine) Stats(ctx context.Context, id dibs.ShardID) (dibs.ShardStats, error) {
	return change(ctx, e, "stats", dibs.EffectNone, id, func(v *server, seen dibs.Cursor) (dibs.ShardStats, error) {
		s, err := v.open(id, seen)
		if err != nil {
			return dibs.ShardStats{}, err
		}
		moved := s.moved
		if e.p.w.planted.MovesUnseen {
			moved = 0
		}
		return dibs.ShardStats{
			Remaining: s.left, Granted: s.granted, Head: s.head, HeadAt: s.headAt, Now: v.now(), Version: s.def.version, Settled: s.settled,
			Moved: moved,
		}, nil
	})
}

// ReadJournal returns entries after a place; see dibs.Journal.
// It reads a shard in any state: a load needs the tail of a shard that is shut.
func (e *engine) ReadJournal(ctx context.Context, id dibs.ShardID, after dibs.Cursor, most int) ([]dibs.Entry, error) {
	return ask(ctx, e, "read", dibs.EffectNone, func(v *server) ([]dibs.Entry, error) {
		var page []dibs.Entry
		j, _ := v.stream(id)
		for _, d := range j.entries {
			if after.Before(d.Cursor) && len(page) < most {
				page = append(page, d.Entry)
			}
		}
		return page, nil
	})
}

// TrimJournal drops settled entries; see dibs.Journal.
// The end of the journal is not changed by it, so that JournalEnd answers when no
// entry is left.
func (e *engine) TrimJournal(ctx context.Context, id dibs.ShardID, upTo dibs.Cursor, before time.Time) error {
	_, err := ask(ctx, e, "trim", dibs.EffectUnknown, func(v *server) (none, error) {
		j, _ := v.stream(id)
		n := 0
		for n < len(j.entries) && !upTo.Before(j.entries[n].Cursor) && time.UnixMilli(j.entries[n].At).Before(before) {
			n++
		}
		j.entries = j.entries[n:]
		return none{}, nil
	})
	return err
}

// JournalEnd returns the place of a shard's last entry, trimmed or not; see
// dibs.Journal.
func (e *engine) JournalEnd(ctx context.Context, id dibs.ShardID) (dibs.Cursor, error) {
	return ask(ctx, e, "end", dibs.EffectNone, func(v *server) (dibs.Cursor, error) {
		j, _ := v.stream(id)
		if len(j.entries) == 0 && e.p.w.planted.ForgetfulEnd {
			return dibs.Cursor{}, nil
		}
		return j.end, nil
	})
}

// Lease makes this node the one that settles and loads a shard; see dibs.Journal.
func (e *engine) Lease(ctx context.Context, id dibs.ShardID, settled dibs.Cursor) (bool, error) {
	return ask(ctx, e, "lease", dibs.EffectUnknown, func(v *server) (bool, error) { return v.lease(id, e.p.name, settled) })
}

// Halt takes a shard out; see dibs.Engine.
func (e *engine) Halt(ctx context.Context, id dibs.ShardID) error {
	_, err := ask(ctx, e, "halt", dibs.EffectUnknown, func(v *server) (none, error) {
		v.halt(id)
		return none{}, nil
	})
	return err
}

// Server names the run of the server; see dibs.Engine.
func (e *engine) Server(ctx context.Context, _ dibs.ShardID) (string, error) {
	return ask(ctx, e, "server", dibs.EffectNone, func(v *server) (string, error) { return v.run, nil })
}

// Servers names the runs of the servers that answer; see dibs.Engine.
func (e *engine) Servers(ctx context.Context) (map[string]string, error) {
	runs, err := ask(ctx, e, "servers", dibs.EffectNone, func(v *server) (map[string]string, error) {
		return map[string]string{v.name: v.run}, nil
	})
	if errors.Is(err, errNoAnswer) {
		// One that does not answer is left out.
		return map[string]string{}, nil
	}
	return runs, err
}

// Appended is signalled after this node made entries durable; see dibs.Journal.
func (e *engine) Appended() <-chan struct{} { return e.appended }

// Abilities returns none; see dibs.Engine.
func (e *engine) Abilities() dibs.Abilities { return dibs.Abilities{} }

// Shared is true; see dibs.Engine.
func (e *engine) Shared() bool { return true }

// MaxShards is the most shards of a campaign; see dibs.Engine.
func (e *engine) MaxShards() int { return dibs.MaxShards }

// Durability is the level that the servers give; see dibs.Engine.
func (e *engine) Durability() string { return dibs.LevelDurable }

// Ping returns nil when the server answers; see dibs.Engine.
func (e *engine) Ping(ctx context.Context) error {
	_, err := ask(ctx, e, "ping", dibs.EffectNone, func(*server) (none, error) { return none{}, nil })
	return err
}

// isClosed reports whether nothing more is asked.
func (e *engine) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// Close gives the leases back; see dibs.Engine.
// Without the leases another node settles at once, and does not wait until they run
// out. The engine is closed also when the server does not answer.
func (e *engine) Close(ctx context.Context) error {
	if e.isClosed() {
		return nil
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.closed = true
	}()
	_, err := ask(ctx, e, "unlease", dibs.EffectUnknown, func(v *server) (none, error) {
		v.unlease(e.p.name)
		return none{}, nil
	})
	return err
}
