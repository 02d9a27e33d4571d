package dibs

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// defaultPattern is the form of generated codes when none is asked for.
const defaultPattern = "XXXX-XXXX-XXXX"

// codeAlphabet has of each two that look alike at most one (0 and O, 1, I and L,
// 2 and Z, 5 and S, 8 and B) and no vowels, so that no code spells a word. 256 is
// no multiple of its length, so generation rejects the bytes beyond the last
// whole multiple.
const codeAlphabet = "23456789CDFGHJKMNPQRTVWXY"

// guessMargin is how many times more codes there must be than are given out,
// so that one guess in a million hits at most.
const guessMargin = 1_000_000

// itemFaults checks items given by a merchant: at most MaxListedFaults are
// reported.
func itemFaults(field string, items []string) []Fault {
	if len(items) > MaxItems {
		return []Fault{{field, Textf("must be at most %d items", "最多 %d 项", MaxItems)}}
	}
	var fs []Fault
	first := make(map[string]int, len(items))
	for i, v := range items {
		at := fmt.Sprintf("%s/%d", field, i)
		if !IsItem(v) {
			fs = append(fs, Fault{at, BadItem})
		} else if j, dup := first[v]; dup {
			fs = append(fs, Fault{at, Textf("is the same as item %d", "与第 %d 项重复", j)})
		} else {
			first[v] = i
		}
		if len(fs) == MaxListedFaults {
			return fs
		}
	}
	return fs
}

// BadItem is the fault of an item that cannot be one.
var BadItem = Textf("must be 1-%d printable characters", "必须是 1-%d 个可打印字符", MaxItemLen)

// IsItem reports whether a text may be an item.
func IsItem(v string) bool {
	n := utf8.RuneCountInString(v)
	return n > 0 && n <= MaxItemLen && !strings.ContainsFunc(v, IsControl) && utf8.ValidString(v)
}

// MaxListedFaults bounds the faults reported of one list.
const MaxListedFaults = 20

// codesFaults checks a request for generated codes.
func codesFaults(s *CodesSpec) []Fault {
	return append(within("/stock/codes/count", s.Count, 1, MaxItems), patternFaults(s.Pattern, s.Count)...)
}

func patternFaults(pattern string, count int64) []Fault {
	const field = "/stock/codes/pattern"
	strange := func(c rune) bool { return !('A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') }
	if strings.ContainsFunc(pattern, strange) {
		return []Fault{{field, Text{"may hold X, capital letters, digits, - and _", "只能包含 X、大写字母、数字、- 和 _"}}}
	}
	if len(pattern) > MaxItemLen {
		return []Fault{{field, Textf("must be at most %d characters", "最多 %d 个字符", MaxItemLen)}}
	}
	return unless(patternAllows(pattern, count), field,
		Textf("must have at least %d X, the last of them the check character, or %d codes could be guessed",
			"至少需要 %d 个 X（最后一个为校验字符），否则 %d 个码可被猜中", patternNeeds(count), count))
}

// patternAllows reports whether a pattern has guessMargin times as many codes as count.
func patternAllows(pattern string, count int64) bool {
	return strings.Count(pattern, "X") >= patternNeeds(count)
}

// tooManyFor is the problem of more codes than a campaign's pattern, which stays, allows.
func tooManyFor(pattern string, count int64) Text {
	return Textf("with %[2]d codes of the pattern %[1]s some could be guessed: make another campaign with a longer one",
		"按格式 %[1]s 生成 %[2]d 个码会被猜中：请用更长的格式另建活动", pattern, count)
}

// patternNeeds is the least number of X for count codes: the random ones, and
// the check character.
func patternNeeds(count int64) int {
	space := float64(max(count, 1)) * guessMargin
	return int(math.Ceil(math.Log(space)/math.Log(float64(len(codeAlphabet)))-1e-9)) + 1
}

// ValidCode reports whether a code may be one of those that dibs generates by a
// pattern: its form is the pattern's, and its last random character checks the
// others. A mistyped character never passes, nor do two that changed places with
// their neighbours. It does not say that there is such a code.
func ValidCode(pattern, code string) bool {
	pattern = cmp.Or(pattern, defaultPattern)
	if len(code) != len(pattern) {
		return false
	}
	var c codeCheck
	last := strings.LastIndexByte(pattern, 'X')
	for i := range len(pattern) {
		switch {
		case pattern[i] != 'X':
			if code[i] != pattern[i] {
				return false
			}
		case strings.IndexByte(codeAlphabet, code[i]) < 0:
			return false
		case i == last:
			return code[i:] == string(c.char())+pattern[last+1:]
		default:
			c.add(code[i])
		}
	}
	return true
}

// codeCheck is the sum of a code's characters, weighted by their places. The
// weights, their differences and what they lack to the alphabet's length have
// no factor in common with it: any one character that changes changes the sum,
// and so do two neighbours, or next neighbours, that change places.
type codeCheck struct{ n, sum int }

func (c *codeCheck) add(char byte) {
	c.sum += (c.n%3 + 1) * strings.IndexByte(codeAlphabet, char)
	c.n++
}

func (c *codeCheck) char() byte { return codeAlphabet[c.sum%len(codeAlphabet)] }

// GenerateCodes returns count different codes of a pattern, none of them in
// taken. The randomness is the operating system's; the last X is the check
// character.
func GenerateCodes(pattern string, count int64, taken map[string]bool) []string {
	codes := make([]string, 0, count)
	seen := make(map[string]bool, count)
	random := &randomChars{}
	buf := make([]byte, len(pattern))
	last := strings.LastIndexByte(pattern, 'X')
	for int64(len(codes)) < count {
		var check codeCheck
		for i := range len(pattern) {
			switch {
			case pattern[i] != 'X':
				buf[i] = pattern[i]
			case i == last:
				buf[i] = check.char()
			default:
				buf[i] = random.next()
				check.add(buf[i])
			}
		}
		if c := string(buf); !seen[c] && !taken[c] {
			seen[c] = true
			codes = append(codes, c)
		}
	}
	return codes
}

// randomChars yields uniform characters of codeAlphabet.
type randomChars struct {
	buf [4096]byte
	n   int
}

func (r *randomChars) next() byte {
	const even = 256 / len(codeAlphabet) * len(codeAlphabet)
	for {
		if r.n == 0 {
			// crypto/rand.Read never fails: it stops the program instead.
			_, _ = rand.Read(r.buf[:])
			r.n = len(r.buf)
		}
		r.n--
		if b := r.buf[r.n]; int(b) < even {
			return codeAlphabet[int(b)%len(codeAlphabet)]
		}
	}
}
