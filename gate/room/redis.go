package room

import (
	"context"
	_ "embed"
	"errors"
	"strconv"

	"github.com/dibs-dev/dibs"
)

// Redis runs scripts where every node can reach them; dibs.SharedStore is one.
type Redis interface {
	// RunScript runs a script on keys of one slot, and returns its answer: texts,
	// int64 and nil. An error is an *dibs.Error with its effect.
	RunScript(ctx context.Context, text string, keys []string, args ...string) ([]any, error)
}

//go:embed lua/look.lua
var lookScript string

//go:embed lua/leave.lua
var leaveScript string

// shared keeps rooms in Redis: one order for all nodes.
// It has no lock: Redis orders all scripts of a room. kept is used by the tick's
// goroutine alone.
type shared struct {
	redis Redis
	// kept is until when the keys of rooms are kept in any case, by campaign, as far
	// as this process has seen to it; the tick's own.
	kept map[uint32]int64
}

var errShape = errors.New("room: a script answered in another shape than it should")

// look implements store.
func (s *shared) look(ctx context.Context, c *dibs.Campaign, asks []ask) ([]int64, progress, error) {
	at := termsOf(c)
	keys := []string{metaKey(c.Number), goneKey(c.Number)}
	args := []string{
		itoa(at.startsMS), flag(at.open), strconv.FormatFloat(at.perSecond, 'g', -1, 64), itoa(at.burst), itoa(at.most),
		newSeed().String(), itoa(at.expireMS),
	}
	index := make(map[string]int, len(asks))
	for _, a := range asks {
		key := bucketKey(c.Number, a.user)
		if index[key] == 0 {
			keys = append(keys, key)
			index[key] = len(keys)
		}
		args = append(args, strconv.Itoa(index[key]), flag(a.join), a.user)
	}
	reply, err := s.redis.RunScript(ctx, lookScript, keys, args...)
	if err != nil {
		return nil, progress{}, err
	}
	return readLook(reply, len(asks))
}

// headOfLook is how many values come before the users' numbers.
const headOfLook = 5

// An answer of another shape means that the script ran, so its effect is unknown;
// joining again finds the number.
func readLook(reply []any, users int) ([]int64, progress, error) {
	if len(reply) != headOfLook+users {
		return nil, progress{}, dibs.Unavail(dibs.EffectUnknown, errShape)
	}
	numbers := make([]int64, len(reply))
	for i, v := range reply {
		n, ok := v.(int64)
		if !ok && i != headOfLook-1 {
			return nil, progress{}, dibs.Unavail(dibs.EffectUnknown, errShape)
		}
		numbers[i] = n
	}
	p := progress{nowMS: numbers[0], tail: numbers[1], early: numbers[2], admitted: numbers[3]}
	if p.started() {
		text, _ := reply[headOfLook-1].(string)
		var err error
		if p.seed, err = ParseSum(text); err != nil {
			return nil, progress{}, dibs.Unavail(dibs.EffectUnknown, errors.Join(errShape, err))
		}
	}
	return numbers[headOfLook:], p, nil
}

// leave implements store.
func (s *shared) leave(ctx context.Context, c *dibs.Campaign, user string, number, place int64) error {
	_, err := s.redis.RunScript(ctx, leaveScript, []string{metaKey(c.Number), goneKey(c.Number), bucketKey(c.Number, user)},
		user, itoa(number), itoa(place), itoa(termsOf(c).expireMS))
	return err
}

// tick implements store: Redis has everything.
func (s *shared) tick(context.Context, *dibs.Campaign) error { return nil }

// drop implements store: Redis forgets a room by itself.
func (s *shared) drop(uint32) {}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
