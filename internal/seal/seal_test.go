package seal_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/internal/seal"
)

var (
	key = []byte("a key of sixteen bytes or more")
	now = time.UnixMilli(1_800_000_000_123)
)

func TestASealIsGoodForOneUserCampaignPurposeAndTime(t *testing.T) {
	s := seal.New(key, "admission")
	text := s.Seal(7, "42", now.Add(time.Minute))
	if len(text) != seal.Len {
		t.Fatalf("%q has %d characters, want %d", text, len(text), seal.Len)
	}
	for _, c := range []struct {
		name     string
		s        *seal.Sealer
		text     string
		campaign uint32
		user     string
		now      time.Time
		want     seal.Verdict
	}{
		{"its user", s, text, 7, "42", now, seal.Valid},
		{"its last moment", s, text, 7, "42", now.Add(time.Minute - time.Millisecond), seal.Valid},
		{"the moment after", s, text, 7, "42", now.Add(time.Minute), seal.Expired},
		{"another user", s, text, 7, "43", now, seal.Foreign},
		{"a user that begins alike", s, text, 7, "420", now, seal.Foreign},
		{"another campaign", s, text, 8, "42", now, seal.Foreign},
		{"another purpose", seal.New(key, "ticket"), text, 7, "42", now, seal.Foreign},
		{"another key", seal.New([]byte("another key of sixteen bytes"), "admission"), text, 7, "42", now, seal.Foreign},
		{"expired and forged", s, text, 7, "43", now.Add(time.Hour), seal.Foreign},
		{"nothing", s, "", 7, "42", now, seal.Missing},
		{"one character less", s, text[1:], 7, "42", now, seal.Foreign},
		{"no base64", s, strings.Repeat("!", seal.Len), 7, "42", now, seal.Foreign},
	} {
		if got := c.s.Open(c.text, c.campaign, c.user, c.now); got != c.want {
			t.Errorf("%s: verdict %d, want %d", c.name, got, c.want)
		}
	}
}

// The form, made once more by hand: whoever reads docs/TICKETS.md can make one.
func TestTheFormIsTheDocumentedOne(t *testing.T) {
	until := now.Add(time.Minute).UnixMilli()
	time48 := []byte{byte(until >> 40), byte(until >> 32), byte(until >> 24), byte(until >> 16), byte(until >> 8), byte(until)}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("admission\x00\x00\x00\x00\x07"))
	mac.Write(time48)
	mac.Write([]byte("42"))
	want := base64.RawURLEncoding.EncodeToString(append(time48, mac.Sum(nil)[:18]...))
	if got := seal.New(key, "admission").Seal(7, "42", now.Add(time.Minute)); got != want {
		t.Fatalf("sealed %q, want %q", got, want)
	}
}

// No change of one bit, at any place, leaves a text valid.
func TestEveryBitCounts(t *testing.T) {
	s := seal.New(key, "admission")
	text := s.Seal(7, "42", now.Add(time.Minute))
	for i := range len(text) {
		for bit := range 8 {
			b := []byte(text)
			b[i] ^= 1 << bit
			if s.Open(string(b), 7, "42", now) == seal.Valid {
				t.Fatalf("%q is as good as %q", b, text)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	s := seal.New(key, "admission")
	good := s.Seal(7, "42", now.Add(time.Minute))
	f.Add(good, "42")
	f.Add("", "")
	f.Add(strings.Repeat("A", seal.Len), "42")
	f.Fuzz(func(t *testing.T, text, user string) {
		if s.Open(text, 7, user, now) == seal.Valid && (text != good || user != "42") {
			t.Fatalf("%q is valid for %q, and nobody sealed it", text, user)
		}
	})
}

func TestAShortKeyIsRefused(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("a key of 15 bytes was taken")
		}
	}()
	seal.New(make([]byte, seal.MinKey-1), "admission")
}

func TestOpeningTakesNoMemory(t *testing.T) {
	s := seal.New(key, "admission")
	text := s.Seal(7, "user-1234567890", now.Add(time.Minute))
	bad := s.Seal(7, "another", now.Add(time.Minute))
	// Under the race detector pools drop what they are given.
	if n := testing.AllocsPerRun(1000, func() {
		s.Open(text, 7, "user-1234567890", now)
		s.Open(bad, 7, "user-1234567890", now)
	}); n > 0 && !raceEnabled {
		t.Fatalf("%v allocations for two checks", n)
	}
}

func BenchmarkOpen(b *testing.B) {
	s := seal.New(key, "admission")
	text := s.Seal(7, "user-1234567890", now.Add(time.Minute))
	b.ReportAllocs()
	for b.Loop() {
		if s.Open(text, 7, "user-1234567890", now) != seal.Valid {
			b.Fatal("it is not valid")
		}
	}
}

// TestAKeyIsRenewed: what the key before has sealed is good for a while, what the one before that has sealed is not, and
// what is sealed from then on is under the new key.
func TestAKeyIsRenewed(t *testing.T) {
	next, third := []byte("another key of sixteen bytes"), []byte("the third key of sixteen bytes")
	s := seal.New(key, "ticket")
	before := s.Seal(7, "42", now.Add(time.Hour))
	if err := s.Renew(next[:seal.MinKey-1], now.Add(time.Minute)); err == nil || s.Open(before, 7, "42", now) != seal.Valid {
		t.Errorf("a short key is taken: %v", err)
	}
	if err := s.Renew(next, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	after := s.Seal(7, "42", now.Add(time.Hour))
	look := func(name, text, user string, at time.Time, want seal.Verdict) {
		t.Helper()
		if got := s.Open(text, 7, user, at); got != want {
			t.Errorf("%s: verdict %d, want %d", name, got, want)
		}
	}
	look("the old one, a while", before, "42", now.Add(time.Minute-time.Millisecond), seal.Valid)
	look("the old one, of another user", before, "43", now, seal.Foreign)
	look("the old one, after that", before, "42", now.Add(time.Minute), seal.Foreign)
	look("the new one", after, "42", now.Add(time.Minute), seal.Valid)
	if seal.New(next, "ticket").Open(after, 7, "42", now) != seal.Valid {
		t.Error("the new one is not under the new key")
	}
	if err := s.Renew(third, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	look("the first one, after a second renewal", before, "42", now, seal.Foreign)
	look("the second one", after, "42", now, seal.Valid)
}
