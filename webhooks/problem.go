package webhooks

import (
	"fmt"
	"strings"

	"github.com/dibs-dev/dibs"
)

// These texts say what is wrong with a delivery, and why an endpoint is disabled. The ledger keeps the English one, with
// a value in the place of its %s.
var (
	BadAddress     = dibs.Text{EN: "the address cannot be used", ZH: "地址无法使用"}
	BadSecret      = dibs.Text{EN: "the endpoint's secret cannot be used: rotate it", ZH: "该端点的密钥无法使用：请轮换密钥"}
	PrivateAddress = dibs.Text{EN: "the address is in a private network", ZH: "地址位于内网"}
	NoSuchHost     = dibs.Text{EN: "there is no such host", ZH: "找不到该主机"}
	NoAnswer       = dibs.Text{EN: "no answer in time", ZH: "未在规定时间内响应"}
	NoConnection   = dibs.Text{EN: "the connection was refused", ZH: "连接被拒绝"}
	NotFollowed    = dibs.Text{EN: "%s: redirects are not followed", ZH: "%s：不跟随重定向"}
	TooManyWait    = dibs.Text{EN: "more than %s deliveries waited for it", ZH: "等待投递的事件超过 %s 条"}
	AnsweredGone   = dibs.Text{EN: "it answered 410 Gone", ZH: "端点返回 410 Gone"}
	AlwaysFailed   = dibs.Text{EN: "every attempt failed for %s", ZH: "连续 %s内投递全部失败"}
)

var problems = []dibs.Text{
	BadAddress, BadSecret, PrivateAddress, NoSuchHost, NoAnswer, NoConnection, NotFollowed, TooManyWait, AnsweredGone, AlwaysFailed,
}

// problemIn returns a problem as the ledger has it in one language, Chinese when zh is set, else English. The status of
// an answer, and what an operating system or a person said, stay as they are.
func problemIn(zh bool, kept string) string {
	if !zh {
		return kept
	}
	for _, p := range problems {
		before, after, open := strings.Cut(p.EN, "%s")
		if !open && kept == p.EN {
			return p.ZH
		}
		value, begins := strings.CutPrefix(kept, before)
		value, ends := strings.CutSuffix(value, after)
		if open && begins && ends {
			return fmt.Sprintf(p.ZH, strings.Replace(value, " days", " 天", 1))
		}
	}
	return kept
}

// In returns the view in one language, Chinese when zh is set, else English.
func (v EndpointView) In(zh bool) EndpointView {
	v.DisabledReason = problemIn(zh, v.DisabledReason)
	return v
}

// In returns the view in one language, Chinese when zh is set, else English.
func (v DeliveryView) In(zh bool) DeliveryView {
	v.Problem = problemIn(zh, v.Problem)
	return v
}
