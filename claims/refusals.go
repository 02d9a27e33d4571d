package claims

import (
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/faults"
)

// LevelLost is the refusal of a claim whose yes would survive less than the level
// says.
var LevelLost = undecided(dibs.Text{
	EN: "claims cannot be stored at the promised level of durability now; they go on when they can",
	ZH: "当前无法按承诺的持久级别保存领取结果，恢复后将继续",
})

// undecided refuses a claim that was not decided, as unavailable for a second.
func undecided(detail dibs.Text) *dibs.Error {
	return &dibs.Error{Reason: dibs.Unavailable, Effect: dibs.EffectNone, RetryAfter: time.Second, Detail: detail}
}

// beingSpread refuses a claim while a campaign gets more shards: this node, or the
// shard, does not know yet.
var beingSpread = undecided(dibs.Text{
	EN: "the campaign is being divided over more shards: try again", ZH: "活动正在扩展到更多分片，请稍后重试",
})

// uncounted refuses a claim while campaigns that share its limit per product are loaded.
var uncounted = undecided(dibs.Text{
	EN: "the campaigns that share the limit of this product are being loaded; claims go on when all are counted",
	ZH: "正在加载共享该商品限购的活动，全部计入后将继续",
})

// ErrTokenEnded refuses a claim whose token ended, or was revoked, while it waited. It was not decided.
var ErrTokenEnded = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "the token ended while the claim waited for its turn", ZH: "请求排队期间令牌已失效"})

// backlogFull refuses a claim while too much of its campaign waits to be settled.
var backlogFull = faults.Busy(time.Second, dibs.Text{EN: "too many claims wait to be settled", ZH: "待结算的记录过多"})
