package dibs

import (
	"strings"
	"testing"
)

func TestGeneratedCodesFollowThePattern(t *testing.T) {
	codes := GenerateCodes("AB-XXXX-XXXX_9", 5000, map[string]bool{})
	seen := make(map[string]bool)
	used := make(map[byte]int)
	for _, c := range codes {
		if len(c) != 14 || c[:3] != "AB-" || c[7] != '-' || c[12:] != "_9" || seen[c] {
			t.Fatalf("code %q, seen before: %v", c, seen[c])
		}
		seen[c] = true
		for _, i := range []int{3, 4, 5, 6, 8, 9, 10, 11} {
			used[c[i]]++
		}
	}
	if len(codes) != 5000 || len(used) != len(codeAlphabet) {
		t.Fatalf("%d codes of %d characters", len(codes), len(used))
	}
	// Each of 25 characters is expected 40000/25 = 1600 times, give or take 39.
	for c, n := range used {
		if !strings.ContainsRune(codeAlphabet, rune(c)) || n < 1600-250 || n > 1600+250 {
			t.Errorf("character %c stands %d times", c, n)
		}
	}
}

func TestTakenCodesAreNotGeneratedAgain(t *testing.T) {
	taken := map[string]bool{}
	for _, c := range codeAlphabet[1:] {
		taken[string(c)+string(c)] = true
	}
	// A code of one random character is its own check.
	if got := GenerateCodes("XX", 1, taken); got[0] != codeAlphabet[:1]+codeAlphabet[:1] {
		t.Fatalf("generated %q", got)
	}
}

func TestPatternsThatCanBeGuessedAreRefused(t *testing.T) {
	for _, c := range []struct {
		pattern string
		count   int64
		ok      bool
	}{
		{"XXXX-XXXX", 5000, true},
		{"XXXXXX", 9, true},
		{"XXXXXX", 10, false}, // 25^5 = 9,765,625
		{"XXXXX", 1, false},
		{"", 1, false},
		{"xxxxxxxxxx", 1, false},
		{"XXXXXXXXXX!", 1, false},
		{"XXXXXXXXXX 1", 1, false},
		{strings.Repeat("X", MaxItemLen+1), 1, false},
		{defaultPattern, MaxItems, true},
	} {
		if fs := patternFaults(c.pattern, c.count); (len(fs) == 0) != c.ok {
			t.Errorf("%q for %d codes: %v, want ok %v", c.pattern, c.count, fs, c.ok)
		}
	}
}

// Any pattern is either refused, or yields as many different codes as asked
// for.
func FuzzPattern(f *testing.F) {
	f.Add("XXXX-XXXX", uint8(3))
	f.Add("X", uint8(1))
	f.Add("", uint8(0))
	f.Fuzz(func(t *testing.T, pattern string, n uint8) {
		spec := &CodesSpec{Count: int64(n), Pattern: pattern}
		if len(codesFaults(spec)) > 0 {
			return
		}
		seen := make(map[string]bool)
		for _, c := range GenerateCodes(pattern, spec.Count, nil) {
			if len(c) != len(pattern) || seen[c] {
				t.Fatalf("code %q of pattern %q, seen before: %v", c, pattern, seen[c])
			}
			seen[c] = true
			if !ValidCode(pattern, c) {
				t.Fatalf("code %q of pattern %q is not valid", c, pattern)
			}
		}
		if len(seen) != int(n) {
			t.Fatalf("%d codes, want %d", len(seen), n)
		}
	})
}

// One mistyped character, or two that changed places, are found out.
func TestCheckCharacter(t *testing.T) {
	const pattern = "AB-XXXX-XXXX_9"
	random := []int{3, 4, 5, 6, 8, 9, 10, 11}
	for _, code := range GenerateCodes(pattern, 200, nil) {
		if !ValidCode(pattern, code) {
			t.Fatalf("%s is not valid", code)
		}
		for n, i := range random {
			b := []byte(code)
			for _, c := range codeAlphabet {
				if b[i] = byte(c); ValidCode(pattern, string(b)) != (string(b) == code) {
					t.Fatalf("%s for %s is valid", b, code)
				}
			}
			for _, m := range random[n+1 : min(n+3, len(random))] {
				b := []byte(code)
				if b[i], b[m] = b[m], b[i]; ValidCode(pattern, string(b)) != (string(b) == code) {
					t.Fatalf("%s for %s is valid", b, code)
				}
			}
		}
		for _, bad := range []string{"", code[1:], code + "X", "AC" + code[2:], code[:3] + "0" + code[4:], code[:13] + "8"} {
			if ValidCode(pattern, bad) {
				t.Fatalf("%s for %s is valid", bad, code)
			}
		}
	}
	if ValidCode("", "") || !ValidCode("", GenerateCodes(defaultPattern, 1, nil)[0]) {
		t.Error("the default pattern")
	}
}
