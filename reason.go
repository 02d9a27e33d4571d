package dibs

import (
	"fmt"
	"strings"
	"time"
)

// Reason is the answer to a request: Granted, or why not. It is the one list
// of outcomes that the engine, the API, the metrics and the docs share.
// The zero value is Granted.
type Reason uint8

// The reasons. The words and codes are the outside contract and never change.
const (
	Granted Reason = iota
	InvalidRequest
	TooLarge
	KeyReused
	Unauthenticated
	Forbidden
	NotEligible
	NotFound
	AlreadyExists
	Paused
	NotStarted
	Ended
	SoldOut
	LimitReached
	TooManyClaims
	InvalidState
	InsufficientFunds
	RateLimited
	Waiting
	TicketRequired
	Unavailable
	Overloaded
	Internal

	reasonCount
)

// ReasonCount is the number of reasons, for arrays indexed by Reason.
const ReasonCount = int(reasonCount)

// ReasonInfo is what the registry holds of one reason.
type ReasonInfo struct {
	// Word is the stable word of the API, `sold_out`.
	Word string
	// Status is the HTTP status that carries it.
	Status int
	// Code is the number of the API; the usual one of flash-sale APIs where there is one.
	Code int
	// Retryable says whether the same request may succeed later unchanged.
	Retryable bool
	// Title is the short sentence shown to people.
	Title Text
}

var reasons = [ReasonCount]ReasonInfo{
	Granted:           {"granted", 201, 0, false, Text{"Granted", "抢购成功"}},
	InvalidRequest:    {"invalid_request", 400, 20001, false, Text{"The request is not valid", "参数错误"}},
	TooLarge:          {"invalid_request", 413, 20001, false, Text{"The request is too large", "请求内容过大"}},
	KeyReused:         {"idempotency_key_reused", 422, 20001, false, Text{"This idempotency key was used for another request", "幂等键已用于其他请求"}},
	Unauthenticated:   {"unauthenticated", 401, 10002, false, Text{"Your identity could not be verified", "用户身份未通过验证"}},
	Forbidden:         {"forbidden", 403, 10003, false, Text{"You may not do this", "没有权限"}},
	NotEligible:       {"not_eligible", 403, 30009, false, Text{"This campaign is not open to you", "不在活动范围内"}},
	NotFound:          {"not_found", 404, 30002, false, Text{"There is no such thing", "不存在"}},
	AlreadyExists:     {"already_exists", 409, 20002, false, Text{"This id is taken", "该 ID 已存在"}},
	Paused:            {"paused", 409, 30003, true, Text{"The campaign is paused", "活动已暂停"}},
	NotStarted:        {"not_started", 409, 30004, true, Text{"The campaign has not started", "活动还未开始"}},
	Ended:             {"ended", 409, 30005, false, Text{"The campaign has ended", "活动已经结束"}},
	SoldOut:           {"sold_out", 409, 30006, true, Text{"Sold out", "已经抢完了"}},
	LimitReached:      {"limit_reached", 409, 30007, false, Text{"You have reached the limit per user", "已达到每人限领数量"}},
	TooManyClaims:     {"too_many_claims", 409, 30015, false, Text{"You have made too many claims", "您的领取次数已达上限"}},
	InvalidState:      {"invalid_state", 409, 30010, false, Text{"The present status does not allow this", "当前状态不允许此操作"}},
	InsufficientFunds: {"insufficient_funds", 409, 30012, false, Text{"Not enough funds", "余额不足"}},
	RateLimited:       {"rate_limited", 429, 30011, true, Text{"Too many requests", "请求过于频繁"}},
	Waiting:           {"waiting", 409, 30013, true, Text{"It is not your turn yet", "排队中，请稍候"}},
	TicketRequired:    {"ticket_required", 403, 30014, false, Text{"A ticket is needed", "需要有效的入场凭证"}},
	Unavailable:       {"unavailable", 503, 30008, true, Text{"The service cannot answer now", "服务暂不可用"}},
	Overloaded:        {"overloaded", 503, 30008, true, Text{"The service is at its limit", "系统繁忙"}},
	Internal:          {"internal", 500, 10000, false, Text{"Something went wrong inside", "内部错误"}},
}

// Info returns the registry's entry of r.
func (r Reason) Info() ReasonInfo {
	if int(r) >= ReasonCount {
		return reasons[Internal]
	}
	return reasons[r]
}

// String returns the stable word, `sold_out`.
func (r Reason) String() string { return r.Info().Word }

// MarshalText writes the stable word.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a stable word; an unknown one is an error.
func (r *Reason) UnmarshalText(b []byte) error {
	for i := range reasons {
		if reasons[i].Word == string(b) {
			*r = Reason(i)
			return nil
		}
	}
	return fmt.Errorf("dibs: unknown reason %q", b)
}

// Text is a sentence for people, in the two languages dibs speaks.
type Text struct {
	EN string
	ZH string
}

// Textf formats both languages with the same arguments.
// A language that needs another order uses explicit indexes (%[2]d).
func Textf(en, zh string, args ...any) Text {
	return Text{EN: fmt.Sprintf(en, args...), ZH: fmt.Sprintf(zh, args...)}
}

// At is a text with a moment in the place of its %s: in English in UTC, in Chinese as
// clocks in China show it. Programs read the fields of the answer instead.
func (t Text) At(moment time.Time) Text {
	return Text{
		EN: strings.Replace(t.EN, "%s", moment.UTC().Format(time.DateTime)+" UTC", 1),
		ZH: strings.Replace(t.ZH, "%s", moment.In(china).Format(time.DateTime)+"（北京时间）", 1),
	}
}

var china = time.FixedZone("UTC+8", 8*60*60)

// In returns the sentence in Chinese when zh is set, else in English.
func (t Text) In(zh bool) string {
	if zh && t.ZH != "" {
		return t.ZH
	}
	return t.EN
}
