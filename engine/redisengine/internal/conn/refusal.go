package conn

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/dibs-dev/dibs"
)

// refusals are the errors that the words of scripts stand for, beside those of Refusal.
var refusals = map[string]error{
	"ok":         nil,
	"not_open":   dibs.ErrNotOpen,
	"absent":     dibs.ErrNotOpen,
	"not_found":  dibs.ErrNotFound,
	"stale":      dibs.ErrStale,
	"loading":    ErrLoading,
	"gap":        dibs.Unavail(dibs.EffectNone, dibs.ErrGap),
	"late":       dibs.Unavail(dibs.EffectNone, ErrLate),
	"undivided":  dibs.Unavail(dibs.EffectNone, notDividedError{}),
	"behind":     unavailable("redisengine: Redis holds less of the shard than it did before: its history has forked"),
	"spent":      unavailable("redisengine: the epoch has no places left"),
	"too_new":    unavailable("redisengine: the command's epoch is not open yet"),
	"superseded": unavailable("redisengine: Redis has lost a part of the load"),
	"newer":      unavailable("redisengine: a later version of dibs has written the shard: upgrade this one"),
	"range":      dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the stock would exceed what can be counted", ZH: "库存超出可计数范围"}),
	"not_over":   dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign is not over by Redis' clock", ZH: "按 Redis 时钟，活动尚未结束"}),
}

func unavailable(why string) error { return dibs.Unavail(dibs.EffectNone, errors.New(why)) }

// ErrLoading refuses what cannot be done to a shard while it is loaded.
var ErrLoading = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the shard is being loaded", ZH: "分片正在加载"})

// notDividedError is how an engine refuses a load by fewer shards than the shard goes by;
// see dibs.Engine.Open.
type notDividedError struct{}

// Error says what to do.
func (notDividedError) Error() string {
	return "redisengine: the shard goes by a number of shards that the ledger does not know: if it was restored from a backup, give the campaign the same shards again"
}

// NotDivided tells the error from others.
func (notDividedError) NotDivided() bool { return true }

// ErrLate says that the batch came after its deadline, or when the shard had other
// buckets: nothing of it was decided.
var ErrLate = errors.New("redisengine: the claim came too late to be decided")

// Refusal is the error that a script's word stands for; nil for ok.
func Refusal(res *Result) error {
	if err, known := refusals[res.Word]; known {
		return err
	}
	switch res.Word {
	case "too_many":
		left := int64(0)
		if len(res.Rest) > 0 {
			// A text that is no number would show as 0 left, in a message for people.
			left, _ = strconv.ParseInt(res.Rest[0].Text, 10, 64)
		}
		return dibs.Fail(dibs.InvalidState, dibs.Textf("only %d are left to withdraw", "只剩 %d 可撤回", left))
	case "wrong_type", "corrupt", "regressed":
		return dibs.Unavail(dibs.EffectNone, fmt.Errorf("redisengine: the shard's keys in Redis (%s): %w", res.Word, dibs.ErrCorrupt))
	}
	return dibs.Unavail(dibs.EffectUnknown, ErrShape)
}

// Fault is the error of a call that was not answered as it should; effect is
// what it may have done when Redis does not say that it was nothing.
func Fault(ctx context.Context, effect dibs.Effect, err error) error {
	if ChangedNothing(err) {
		effect = dibs.EffectNone
	}
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return dibs.Unavail(effect, err)
}
