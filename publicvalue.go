package dibs

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// maxPublicValue is the longest name of a public value, and the longest value.
const maxPublicValue = 200

// formats are how a public value may be announced: the name, and what N of them look like.
// No two texts that fit a format are the same value.
var formats = map[string]func(n int) string{
	"decimal": func(n int) string {
		if n == 0 {
			return `-?(0|[1-9][0-9]*)`
		}
		return `-?(0|[1-9][0-9]*)\.[0-9]{` + strconv.Itoa(n) + `}`
	},
	"digits": func(n int) string { return `[0-9]{` + strconv.Itoa(n) + `}` },
	"hex":    func(n int) string { return `[0-9a-f]{` + strconv.Itoa(n) + `}` },
}

// formatOf returns the expression of a format; nil for one that there is not.
func formatOf(format string) *regexp.Regexp {
	name, count, _ := strings.Cut(format, ":")
	pattern, known := formats[name]
	n, err := strconv.Atoi(count)
	least := 1
	if name == "decimal" {
		least = 0
	}
	if !known || err != nil || n < least || n > maxPublicValue || strconv.Itoa(n) != count {
		return nil
	}
	return regexp.MustCompile("^" + pattern(n) + "$")
}

// formatProblem says why a format cannot be announced; empty for a good one, and none.
func formatProblem(format string) Text {
	if format == "" || formatOf(format) != nil {
		return Text{}
	}
	return Textf("must be decimal:N, digits:N or hex:N, with N up to %d", "必须是 decimal:N、digits:N 或 hex:N，N 最大为 %d", maxPublicValue)
}

// spellingProblem says why a value is not written as announced; empty when it is.
func spellingProblem(value, format string) Text {
	if format != "" {
		if of := formatOf(format); of == nil || !of.MatchString(value) || value == "-0" || strings.Trim(value, "-0.") == "" && value[0] == '-' {
			return Textf("must be written as announced, in the format %s", "必须按公布的格式 %s 书写", format)
		}
		return Text{}
	}
	if simplest := simplest(value); value != simplest {
		return Textf("must be written as %s, in its simplest spelling: no format was announced", "未公布格式，必须写成最简形式 %s", simplest)
	}
	for word := range strings.SplitSeq(value, " ") {
		// Of words, powers of ten and other scripts' digits, one value has many spellings.
		if !unannounced.MatchString(word) {
			return Text{
				"must be numbers in the digits 0 to 9, or a hash of 32 hexadecimal digits or more: no format was announced for anything else",
				"必须是由 0 到 9 组成的数字，或至少 32 位的十六进制哈希值：未公布其他格式",
			}
		}
	}
	return Text{}
}

// unannounced is what a value, or each number of several, may be without an announced format.
var unannounced = regexp.MustCompile(`^(-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?|[0-9a-f]{32,})$`)

// numeric matches what people write as a number, in any style with a decimal point. grouped
// matches one whose thousands are set apart by spaces.
var (
	numeric = regexp.MustCompile(`^([+-]?)([0-9][0-9,_']*)(?:\.([0-9]*))?$`)
	grouped = regexp.MustCompile(`^[+-]?[0-9]{1,3}( [0-9]{3})+(\.[0-9]*)?$`)
)

// simplest returns the one spelling of a value for which no format was announced: numbers
// without separators, leading zeros and trailing decimals of zero; other text in lower
// case, with single spaces.
func simplest(value string) string {
	words := strings.Fields(strings.ToLower(value))
	if text := strings.Join(words, " "); grouped.MatchString(text) {
		words = []string{strings.ReplaceAll(text, " ", "")}
	}
	for i, word := range words {
		words[i] = simplestNumber(word)
	}
	return strings.Join(words, " ")
}

// simplestNumber returns the one spelling of a number, and other words as they are.
func simplestNumber(word string) string {
	parts := numeric.FindStringSubmatch(word)
	if parts == nil {
		return word
	}
	whole := strings.TrimLeft(strings.NewReplacer(",", "", "_", "", "'", "").Replace(parts[2]), "0")
	whole = cmp.Or(whole, "0")
	if decimals := strings.TrimRight(parts[3], "0"); decimals != "" {
		whole += "." + decimals
	}
	if parts[1] == "-" && whole != "0" {
		whole = "-" + whole
	}
	return whole
}
