package web

import (
	"errors"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
)

// DurationPattern is how a duration looks in JSON.
const DurationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

// messages are the beginnings of huma's messages with the texts that callers read
// instead. Where rest is set, what follows the beginning is appended.
var messages = []struct {
	huma string
	text dibs.Text
	rest bool
}{
	{"expected string to be RFC 3339 date-time", dibs.Text{EN: "must be a time such as 2026-12-01T04:00:00Z", ZH: "必须是时间，例如 2026-12-01T04:00:00Z"}, false},
	{"expected string to be ", dibs.Text{EN: "must be ", ZH: "必须是 "}, true},
	{"expected string to match pattern " + DurationPattern, dibs.Text{EN: "must be a duration such as 15m or 1h30m", ZH: "必须是时长，例如 15m 或 1h30m"}, false},
	{"expected string to match pattern ", dibs.Text{EN: "must match ", ZH: "必须匹配 "}, true},
	{"expected string", dibs.Text{EN: "must be a string", ZH: "必须是字符串"}, false},
	{"expected integer", dibs.Text{EN: "must be a whole number", ZH: "必须是整数"}, false},
	{"invalid integer", dibs.Text{EN: "must be a whole number", ZH: "必须是整数"}, false},
	{"expected number >= ", dibs.Text{EN: "must be at least ", ZH: "不能小于 "}, true},
	{"expected number <= ", dibs.Text{EN: "must be at most ", ZH: "不能大于 "}, true},
	{"expected number", dibs.Text{EN: "must be a number", ZH: "必须是数字"}, false},
	{"expected boolean", dibs.Text{EN: "must be true or false", ZH: "必须是 true 或 false"}, false},
	{"expected array", dibs.Text{EN: "must be a list", ZH: "必须是数组"}, false},
	{"expected object", dibs.Text{EN: "must be an object", ZH: "必须是对象"}, false},
	{"expected length <= ", dibs.Text{EN: "may have this many characters at most: ", ZH: "最多字符数："}, true},
	{"expected value to be one of ", dibs.Text{EN: "must be one of ", ZH: "必须是以下之一："}, true},
	{"unknown query parameter", dibs.Text{EN: "is not a known parameter", ZH: "是未知参数"}, false},
}

// FaultOf turns an error of huma's validation into a fault. It reports false for
// unknown fields: Decoder finds those by itself, by exactly their name.
func FaultOf(err error) (dibs.Fault, bool) {
	var d *huma.ErrorDetail
	if !errors.As(err, &d) {
		return dibs.Fault{Problem: dibs.Text{EN: "is not valid", ZH: "无效"}}, true
	}
	at := pointerOf(d.Location)
	if d.Message == "unexpected property" {
		return dibs.Fault{}, false
	}
	if name, ok := strings.CutPrefix(d.Message, "expected required property "); ok {
		name = strings.TrimSuffix(name, " to be present")
		return dibs.Fault{Field: at + "/" + escapePointer(name), Problem: dibs.Text{EN: "is required", ZH: "必填"}}, true
	}
	for _, s := range messages {
		if rest, ok := strings.CutPrefix(d.Message, s.huma); ok {
			t := s.text
			if s.rest {
				if rest = strings.Trim(rest, `"`); strings.HasPrefix(s.huma, "expected number ") {
					rest = plainNumber(rest)
				}
				t = dibs.Text{EN: t.EN + rest, ZH: t.ZH + rest}
			}
			return dibs.Fault{Field: at, Problem: t}, true
		}
	}
	return dibs.Fault{Field: at, Problem: dibs.Text{EN: "is not valid", ZH: "无效"}}, true
}

// plainNumber writes a bound out that huma writes as 2.147483647e+09; any other text it leaves.
func plainNumber(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// pointerOf turns huma's `body.stock.items[3]` into `/stock/items/3`, and
// `query.limit` into `/limit`. No name of the API has a dot, and unknown names are
// reported elsewhere.
func pointerOf(location string) string {
	_, path, found := strings.Cut(location, ".")
	if !found {
		return ""
	}
	return "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(path)
}
