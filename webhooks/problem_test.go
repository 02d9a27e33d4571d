package webhooks_test

import (
	"testing"

	"github.com/dibs-dev/dibs/webhooks"
)

// TestProblemsAreInChinese: what went wrong with a delivery, and why an endpoint is disabled, is told in Chinese too.
func TestProblemsAreInChinese(t *testing.T) {
	for kept, want := range map[string]string{
		"no answer in time":                       "未在规定时间内响应",
		"307: redirects are not followed":         "307：不跟随重定向",
		"more than 1000 deliveries waited for it": "等待投递的事件超过 1000 条",
		"every attempt failed for 5 days":         "连续 5 天内投递全部失败",
		"500 Internal Server Error":               "500 Internal Server Error",
		"what an administrator wrote: no % in it": "what an administrator wrote: no % in it",
		"": "",
	} {
		endpoint, delivery := webhooks.EndpointView{DisabledReason: kept}, webhooks.DeliveryView{Problem: kept}
		if a, b := endpoint.In(true).DisabledReason, delivery.In(true).Problem; a != want || b != want {
			t.Errorf("%q: %q, %q, want %q", kept, a, b, want)
		}
		if a, b := endpoint.In(false).DisabledReason, delivery.In(false).Problem; a != kept || b != kept {
			t.Errorf("%q in English: %q, %q", kept, a, b)
		}
	}
}
