package redisengine

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// rawScripts are the scripts of callers by their text.
var rawScripts sync.Map // string -> *script

// store is the engine's dibs.SharedStore.
type store struct{ p *process }

// RunScript runs a script of the caller over the engine's connections; see
// dibs.SharedStore. At dibs.LevelReplicated the replicas confirm it.
func (s store) RunScript(ctx context.Context, text string, keys []string, args ...string) ([]any, error) {
	if s.p.closed.Load() {
		return nil, errClosed
	}
	v, ok := rawScripts.Load(text)
	if !ok {
		v, _ = rawScripts.LoadOrStore(text, conn.RawScript(text))
	}
	r, err := s.p.redis.Run(ctx, v.(*conn.Script), keys, args...)
	if err != nil {
		return nil, conn.Fault(ctx, dibs.EffectUnknown, err)
	}
	return plain(r.List), nil
}

// Put keeps a small value under a name for a time; see dibs.SharedStore. Redis sees
// a hash of the name.
func (s store) Put(ctx context.Context, name, value string, keep time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, s.p.cfg.Deadline)
	defer cancel()
	_, err := s.p.redis.Call(ctx, "SET", format.ValueKey(name), value, "PX", strconv.FormatInt(max(keep.Milliseconds(), 1), 10))
	if err != nil {
		return dibs.Unavail(dibs.EffectNone, err)
	}
	return nil
}

// Take returns the value under a name and forgets it; see dibs.SharedStore.
func (s store) Take(ctx context.Context, name string) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.p.cfg.Deadline)
	defer cancel()
	r, err := s.p.redis.Call(ctx, "GETDEL", format.ValueKey(name))
	if err != nil {
		return "", false, dibs.Unavail(dibs.EffectNone, err)
	}
	return r.Text, !r.None, nil
}

// plain is a list of answers in the language's own types.
func plain(list []conn.Reply) []any {
	out := make([]any, len(list))
	for i := range list {
		switch r := &list[i]; {
		case r.None:
			out[i] = nil
		case r.List != nil:
			out[i] = plain(r.List)
		case r.IsNumber:
			out[i] = r.Number
		default:
			out[i] = r.Text
		}
	}
	return out
}
