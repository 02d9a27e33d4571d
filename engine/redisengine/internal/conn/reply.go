package conn

import (
	"context"
	"errors"

	"github.com/dibs-dev/dibs"
	"github.com/redis/rueidis"
)

// Reply is an answer of Redis: a text, a number or a list.
type Reply struct {
	Text   string
	Number int64
	List   []Reply
	// IsNumber tells a number from a text.
	IsNumber bool
	// None is set for an answer that says there is nothing.
	None bool
}

// answer takes a driver's result apart.
func answer(result rueidis.RedisResult) (Reply, error) {
	m, err := result.ToMessage()
	if rueidis.IsRedisNil(err) {
		return Reply{None: true}, nil
	}
	if e, ok := errors.AsType[*rueidis.RedisError](err); ok {
		return Reply{}, &AnsweredError{Message: e.Error()}
	}
	if err != nil {
		return Reply{}, err
	}
	return replyOf(&m)
}

func replyOf(m *rueidis.RedisMessage) (r Reply, err error) {
	switch {
	case m.IsNil():
		r.None = true
	case m.IsInt64():
		r.IsNumber = true
		r.Number, err = m.ToInt64()
	case m.IsString():
		r.Text, err = m.ToString()
	case m.IsMap():
		var pairs map[string]rueidis.RedisMessage
		pairs, err = m.ToMap()
		for name, value := range pairs {
			v, err := replyOf(&value)
			if err != nil {
				return r, err
			}
			r.List = append(r.List, Reply{Text: name}, v)
		}
	case m.IsArray():
		var values []rueidis.RedisMessage
		values, err = m.ToArray()
		r.List = make([]Reply, len(values))
		for i := range values {
			if r.List[i], err = replyOf(&values[i]); err != nil {
				return r, err
			}
		}
	default:
		// A text with a note of its format, or an error within a list.
		r.Text, err = m.ToString()
	}
	return r, err
}

// Pairs reads a list of names and values.
func (r *Reply) Pairs() map[string]Reply {
	all := make(map[string]Reply, len(r.List)/2)
	for i := 0; i+1 < len(r.List); i += 2 {
		all[r.List[i].Text] = r.List[i+1]
	}
	return all
}

// Result is the common head of every script's answer.
type Result struct {
	Word  string
	NowMS int64
	At    dibs.Cursor
	Rest  []Reply
}

// ErrShape says that the script and the engine do not fit together: the effect of what
// was answered is unknown.
var ErrShape = errors.New("redisengine: a script answered in another shape than it should")

// ResultOf runs a script and reads the head of its answer; ErrShape when it has none.
func ResultOf(ctx context.Context, at Server, s *Script, keys []string, args ...string) (Result, error) {
	r, err := at.Run(ctx, s, keys, args...)
	if err == nil && len(r.List) < 4 {
		err = ErrShape
	}
	if err != nil {
		return Result{}, err
	}
	return Result{
		Word: r.List[0].Text, NowMS: r.List[1].Number, Rest: r.List[4:],
		At: dibs.Cursor{Epoch: uint16(r.List[2].Number), Seq: uint32(r.List[3].Number)},
	}, nil
}
