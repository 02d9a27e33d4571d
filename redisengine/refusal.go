package redisengine

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/dibs-dev/dibs"
)

// What scripts refuse with, beside the errors of the contract.
var (
	errSpent      = dibs.Unavail(dibs.EffectNone, errors.New("redisengine: the epoch has no places left"))
	errTooNew     = dibs.Unavail(dibs.EffectNone, errors.New("redisengine: the command's epoch is not open yet"))
	errSuperseded = dibs.Unavail(dibs.EffectNone, errors.New("redisengine: Redis has lost a part of the load"))
	errNotOver    = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign is not over by Redis' clock", ZH: "按 Redis 时钟，活动尚未结束"})
	errLoading    = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the shard is being loaded", ZH: "分片正在加载"})
	errNewer      = dibs.Unavail(dibs.EffectNone, errors.New("redisengine: a later version of dibs has written the shard: upgrade this one"))
	errRange      = dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the stock would exceed what can be counted", ZH: "库存超出可计数范围"})
)

// refusal is the error that a script's word stands for; nil for ok.
func refusal(res *result) error {
	switch res.word {
	case "ok":
		return nil
	case "not_open", "absent":
		return dibs.ErrNotOpen
	case "newer":
		return errNewer
	case "not_found":
		return dibs.ErrNotFound
	case "stale":
		return dibs.ErrStale
	case "too_new":
		return errTooNew
	case "spent":
		return errSpent
	case "superseded":
		return errSuperseded
	case "range":
		return errRange
	case "not_over":
		return errNotOver
	case "loading":
		return errLoading
	case "late":
		return dibs.Unavail(dibs.EffectNone, errLate)
	case "behind":
		return dibs.Unavail(dibs.EffectNone, errBehind)
	case "gap":
		return dibs.Unavail(dibs.EffectNone, dibs.ErrGap)
	case "too_many":
		left := int64(0)
		if len(res.rest) > 0 {
			// A text that is no number would show as 0 left, in a message for people.
			left, _ = strconv.ParseInt(res.rest[0].text, 10, 64)
		}
		return dibs.Fail(dibs.InvalidState, dibs.Textf("only %d are left to withdraw", "只剩 %d 可撤回", left))
	case "wrong_type", "corrupt", "regressed":
		return dibs.Unavail(dibs.EffectNone, fmt.Errorf("redisengine: the shard's keys in Redis (%s): %w", res.word, dibs.ErrCorrupt))
	}
	return dibs.Unavail(dibs.EffectUnknown, errShape)
}

// fault is the error of a call that was not answered as it should; effect is
// what it may have done when Redis does not say that it was nothing.
func fault(ctx context.Context, effect dibs.Effect, err error) error {
	if changedNothing(err) {
		effect = dibs.EffectNone
	}
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return dibs.Unavail(effect, err)
}
