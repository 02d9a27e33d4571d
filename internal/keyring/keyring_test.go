package keyring

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func ring(t *testing.T, keys ...byte) *Ring {
	t.Helper()
	r := &Ring{}
	var secrets [][]byte
	for _, k := range keys {
		secrets = append(secrets, bytes.Repeat([]byte{k}, KeySize))
	}
	if err := r.Set(secrets); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRing: what is sealed opens in its own place alone, under any of the keys; plain texts stay
// readable, and a key that is gone is named.
func TestRing(t *testing.T) {
	const secret, place = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "webhook_endpoints/hook"
	old, both, other := ring(t, 1), ring(t, 2, 1), ring(t, 3)
	sealed := old.Seal(secret, place)
	if !Sealed(sealed) || strings.Contains(sealed, secret) || len(sealed) > 128 || sealed == old.Seal(secret, place) {
		t.Errorf("sealed: %s", sealed)
	}
	for name, r := range map[string]*Ring{"its key": old, "several keys": both} {
		if text, err := r.Open(sealed, place); err != nil || text != secret {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := other.Open(sealed, place); !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), sealed[4:12]) {
		t.Errorf("another key: %v", err)
	}
	last := sealed[len(sealed)-6]
	changed := sealed[:len(sealed)-6] + string('A'+(last-'A'+1)%26) + sealed[len(sealed)-5:]
	for name, c := range map[string][2]string{"another place": {sealed, "webhook_endpoints/other"}, "a changed text": {changed, place}, "half of it": {sealed[:20], place}} {
		if text, err := old.Open(c[0], c[1]); err == nil || errors.Is(err, ErrNoKey) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if !old.Current(sealed) || both.Current(sealed) || both.Current(secret) || !both.Current(both.Seal(secret, place)) {
		t.Error("what is current")
	}
	// Without keys all stays as it is.
	for _, none := range []*Ring{nil, {}} {
		if none.Seal(secret, place) != secret || !none.Current(secret) || none.Current(sealed) {
			t.Error("a ring without keys")
		}
		if text, err := none.Open(secret, place); err != nil || text != secret {
			t.Errorf("%q, %v", text, err)
		}
	}
	// Sealing twice would lose the text.
	if old.Seal(sealed, place) != sealed || old.Seal("", place) != "" {
		t.Error("what is sealed again")
	}
}

// TestReadKeys: a file of keys is read whole, or the line is named, and not shown.
func TestReadKeys(t *testing.T) {
	good := strings.Repeat("0f", KeySize)
	keys, err := ReadKeys([]byte("# now\n" + good + "\n\n" + strings.ToUpper(good) + "\n"))
	if err != nil || len(keys) != 2 || len(keys[0]) != KeySize {
		t.Errorf("%v, %v", keys, err)
	}
	for _, bad := range []string{"", "# none", good + "\n" + good[2:], good + "\n" + strings.Repeat("xy", KeySize)} {
		if _, err := ReadKeys([]byte(bad)); err == nil || strings.Contains(err.Error(), "xyxy") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if (&Ring{}).Set([][]byte{{1}}) == nil {
		t.Error("a short key was taken")
	}
}
