package redisengine

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"sync"

	"github.com/dibs-dev/dibs"
)

// lent are the scripts of others by their text.
var lent sync.Map // string -> *script

// RunScript runs a script of somebody else, over the engine's connections, on
// keys of one slot, and returns its answer: texts, int64, nil, and lists of these.
// At dibs.LevelReplicated the replicas confirm it. Any error is an *dibs.Error of
// Unavailable with its effect.
func (e *Engine) RunScript(ctx context.Context, text string, keys []string, args ...string) ([]any, error) {
	if e.closed.Load() {
		return nil, errClosed
	}
	v, ok := lent.Load(text)
	if !ok {
		sum := sha1.Sum([]byte(text))
		v, _ = lent.LoadOrStore(text, &script{name: "lent", text: text, sha: hex.EncodeToString(sum[:]), waits: true})
	}
	r, err := e.redis.run(ctx, v.(*script), keys, args...)
	if err != nil {
		return nil, fault(ctx, dibs.EffectUnknown, err)
	}
	return plain(r.list), nil
}

// plain is a list of answers in the language's own types.
func plain(list []reply) []any {
	out := make([]any, len(list))
	for i := range list {
		switch r := &list[i]; {
		case r.none:
			out[i] = nil
		case r.list != nil:
			out[i] = plain(r.list)
		case r.isNumber:
			out[i] = r.number
		default:
			out[i] = r.text
		}
	}
	return out
}
