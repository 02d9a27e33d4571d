package dibs

import (
	"crypto/rand"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// DefaultPattern is the form of generated codes when none is asked for.
const DefaultPattern = "XXXX-XXXX-XXXX"

// codeAlphabet has no look-alikes (0/O, 1/I/L) and no vowels, so that no code
// spells a word. 256 is no multiple of its length, so
// generation rejects the bytes beyond the last whole multiple.
const codeAlphabet = "23456789BCDFGHJKMNPQRSTVWXYZ"

// guessMargin is how many times more codes there must be than are given out,
// so that one guess in a million hits at most.
const guessMargin = 1_000_000

// itemFaults checks items given by a merchant: at most maxListedFaults are
// reported.
func itemFaults(field string, items []string) []Fault {
	if len(items) == 0 || len(items) > MaxItems {
		return []Fault{{field, Textf("must list from 1 to %d items", "必须列出 1 到 %d 项", MaxItems)}}
	}
	var fs []Fault
	first := make(map[string]int, len(items))
	for i, v := range items {
		at := fmt.Sprintf("%s/%d", field, i)
		if n := utf8.RuneCountInString(v); n == 0 || n > MaxItemLen || strings.ContainsFunc(v, isControl) || !utf8.ValidString(v) {
			fs = append(fs, Fault{at, Textf("must be 1-%d printable characters", "必须是 1-%d 个可打印字符", MaxItemLen)})
		} else if j, dup := first[v]; dup {
			fs = append(fs, Fault{at, Textf("is the same as item %d", "与第 %d 项重复", j)})
		} else {
			first[v] = i
		}
		if len(fs) == maxListedFaults {
			return fs
		}
	}
	return fs
}

// maxListedFaults bounds the faults reported of one list.
const maxListedFaults = 20

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// codesFaults checks a request for generated codes.
func codesFaults(s *CodesSpec) []Fault {
	var fs []Fault
	if s.Count < 1 || s.Count > MaxItems {
		fs = append(fs, Fault{"/stock/codes/count", Textf("must be from 1 to %d", "必须在 1 到 %d 之间", MaxItems)})
	}
	return append(fs, patternFaults(s.Pattern, s.Count)...)
}

func patternFaults(pattern string, count int64) []Fault {
	const field = "/stock/codes/pattern"
	for i := range len(pattern) {
		c := pattern[i]
		if !('A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return []Fault{{field, Text{"may hold X, capital letters, digits, - and _", "只能包含 X、大写字母、数字、- 和 _"}}}
		}
	}
	if len(pattern) > MaxItemLen {
		return []Fault{{field, Textf("must be at most %d characters", "最多 %d 个字符", MaxItemLen)}}
	}
	if need := patternNeeds(count); strings.Count(pattern, "X") < need {
		return []Fault{{field, Textf("must have at least %d X, or %d codes could be guessed", "至少需要 %d 个 X,否则 %d 个码可被猜中", need, count)}}
	}
	return nil
}

// patternNeeds is the least number of X for count codes.
func patternNeeds(count int64) int {
	space := float64(max(count, 1)) * guessMargin
	return int(math.Ceil(math.Log(space)/math.Log(float64(len(codeAlphabet))) - 1e-9))
}

// generateCodes returns count different codes of a pattern, none of them in
// taken. The randomness is the operating system's.
func generateCodes(pattern string, count int64, taken map[string]bool) []string {
	codes := make([]string, 0, count)
	seen := make(map[string]bool, count)
	random := &randomChars{}
	buf := make([]byte, len(pattern))
	for int64(len(codes)) < count {
		for i := range len(pattern) {
			buf[i] = pattern[i]
			if pattern[i] == 'X' {
				buf[i] = random.next()
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
