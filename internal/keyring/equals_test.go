package keyring

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestEquals: the same text of the same place is stored alike, and only there; what was stored is read while the key is
// there, by those too that store plain texts.
func TestEquals(t *testing.T) {
	const text, place = "SPRING-0001", "items/7"
	old, both, other := &Equals{ring(t, 1), true}, &Equals{ring(t, 2, 1), true}, &Equals{ring(t, 3), true}
	sealed := old.Seal(text, place)
	if !SealedEqual(sealed) || strings.Contains(sealed, text) || sealed != old.Seal(text, place) || sealed == old.Seal(text, "items/8") || sealed == old.Seal("SPRING-0002", place) {
		t.Errorf("sealed: %q", sealed)
	}
	// A nonce of 12 bytes, 16 characters, behind the id: two texts under one nonce would give both away.
	nonce := func(sealed string) string { return sealed[len(equalsPrefix)+idSize+1:][:16] }
	for _, other := range []string{old.Seal("SPRING-0002", place), old.Seal(text, "items/8"), both.Seal(text, place)} {
		if nonce(other) == nonce(sealed) {
			t.Errorf("%q and %q have the same nonce", sealed, other)
		}
	}
	for name, e := range map[string]*Equals{"its key": old, "several": both, "off": {both.Ring, false}} {
		if got, err := e.Open(sealed, place); err != nil || got != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, e := range map[string]*Equals{"another": other, "none": {}, "nil": nil} {
		if got, err := e.Open(sealed, place); !errors.Is(err, ErrNoKey) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if got, err := e.Open(text, place); err != nil || got != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, stored := range map[string]string{"another place": old.Seal(text, "items/8"), "a changed text": sealed[:len(sealed)-4] + "AAAA", "half of it": sealed[:14]} {
		if got, err := old.Open(stored, place); err == nil || errors.Is(err, ErrNoKey) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	off := &Equals{both.Ring, false}
	for e, forms := range map[*Equals][]string{
		both: {both.Seal(text, place), text, sealed}, off: {text, both.Seal(text, place), sealed}, nil: {text}, {}: {text},
	} {
		if got := e.Forms(text, place); !slices.Equal(got, forms) || got[0] != e.Seal(text, place) {
			t.Errorf("%+v: %q", e, got)
		}
	}
	fresh := both.Seal(text, place)
	for name, is := range map[string]struct {
		e            *Equals
		stored, want string
	}{
		"plain": {both, text, fresh}, "plain, off": {off, text, text}, "plain, nil": {nil, text, text},
		"under the last key": {both, sealed, fresh}, "the same, off": {off, sealed, fresh}, "under the first": {both, fresh, fresh},
	} {
		if got, err := is.e.Renew(is.stored, place); err != nil || got != is.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := other.Renew(sealed, place); !errors.Is(err, ErrNoKey) {
		t.Errorf("without the key: %q, %v", got, err)
	}
}

// TestUnreadable: the ranges have each encrypted text without a key, and no other text.
func TestUnreadable(t *testing.T) {
	all := map[byte]string{}
	for b := range byte(40) {
		all[b] = (&Equals{ring(t, b), true}).Seal("SPRING", "items/7")
	}
	for _, keys := range [][]byte{nil, {1}, {2, 1}, {9, 30, 4, 9}} {
		e := &Equals{Ring: &Ring{}}
		if keys != nil {
			e = &Equals{Ring: ring(t, keys...)}
		}
		in := func(text string) bool {
			return slices.ContainsFunc(e.Unreadable(), func(r [2]string) bool { return text >= r[0] && text < r[1] })
		}
		for b, sealed := range all {
			if in(sealed) == slices.Contains(keys, b) {
				t.Errorf("under %v: the text of key %d is unreadable: %t", keys, b, in(sealed))
			}
		}
		if in("SPRING") || in("1:1") || in("") || in("券") {
			t.Errorf("under %v: plain texts are unreadable", keys)
		}
	}
}

// TestSnapshot: a snapshot stores texts alike before and after the keys are replaced.
func TestSnapshot(t *testing.T) {
	const text, place = "SPRING-0001", "items/7"
	e := &Equals{ring(t, 1), true}
	s, before := e.Snapshot(), e.Seal(text, place)
	e.Ring.keys.Store(ring(t, 2).keys.Load())
	if s.Seal(text, place) != before || e.Seal(text, place) == before {
		t.Errorf("%q, then %q", before, s.Seal(text, place))
	}
	if off := (&Equals{ring(t, 1), false}).Snapshot(); off.Seal(text, place) != text || (*Equals)(nil).Snapshot().Seal(text, place) != text {
		t.Error("a snapshot encrypts what is not to be")
	}
}
