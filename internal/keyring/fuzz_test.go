package keyring

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzStored: whatever stands in the ledger, it is a plain text, what the ring has encrypted
// for this place, or an error.
func FuzzStored(f *testing.F) {
	r := &Ring{}
	if err := r.Set([][]byte{bytes.Repeat([]byte{7}, KeySize)}); err != nil {
		f.Fatal(err)
	}
	good := r.Seal("a secret", "here")
	for _, seed := range []string{good, r.Seal("another", "there"), "", "plain", prefix, prefix + ":", prefix + "x:y", good[:len(good)-1], good + "A", equalsPrefix + "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stored string) {
		text, err := r.Open(stored, "here")
		switch {
		case err != nil && text != "":
			t.Fatalf("%q is %q and %v", stored, text, err)
		case err == nil && !Sealed(stored) && text != stored:
			t.Fatalf("the plain %q is %q", stored, text)
		case err == nil && Sealed(stored) && (text != "a secret"):
			t.Fatalf("%q is %q, which the ring did not encrypt", stored, text)
		}
	})
}

// FuzzKeyFile: a file of keys has keys of the right length, or names a line without showing it.
func FuzzKeyFile(f *testing.F) {
	key := strings.Repeat("a1", KeySize)
	for _, seed := range []string{key, "# one\n" + key + "\r\n\n" + key, "", "#", key[1:], "x" + key[1:], "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		keys, err := ReadKeys(file)
		if (len(keys) == 0) == (err == nil) {
			t.Fatalf("%q: %d keys, %v", file, len(keys), err)
		}
		for _, k := range keys {
			if len(k) != KeySize {
				t.Fatalf("%q has a key of %d bytes", file, len(k))
			}
		}
	})
}
