package idgen_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"testing"

	"github.com/dibs-dev/dibs/idgen"
	"pgregory.net/rapid"
)

func feistel(t testing.TB, key byte) *idgen.Feistel {
	t.Helper()
	f, err := idgen.NewFeistel(bytes.Repeat([]byte{key}, idgen.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func block(n uint64) (b [10]byte) {
	binary.BigEndian.PutUint64(b[2:], n)
	return b
}

func TestOpenReversesSeal(t *testing.T) {
	f := feistel(t, 7)
	rapid.Check(t, func(rt *rapid.T) {
		in := [10]byte(rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(rt, "block"))
		if out := f.Open(f.Seal(in)); out != in {
			rt.Fatalf("Open(Seal(%x)) = %x", in, out)
		}
		if out := f.Seal(f.Open(in)); out != in {
			rt.Fatalf("Seal(Open(%x)) = %x", in, out)
		}
	})
}

// The mapping is written into every id that people hold: it may never change.
// The values were also computed apart from this code, with openssl.
func TestSealIsPinned(t *testing.T) {
	for _, c := range []struct {
		key  byte
		in   uint64
		want string
	}{
		{0, 0, "8e5c2ea960f1acf3f9c6"},
		{0, 1, "fc0f02f65266e8549d8d"},
		{7, 1 << 40, "5099bf5c5668150399db"},
	} {
		got := feistel(t, c.key).Seal(block(c.in))
		if hex.EncodeToString(got[:]) != c.want {
			t.Errorf("key %d block %d: %x, want %s", c.key, c.in, got, c.want)
		}
	}
}

func TestSealDoesNotCollide(t *testing.T) {
	f := feistel(t, 1)
	seen := make(map[[10]byte]bool)
	for n := range uint64(100_000) {
		out := f.Seal(block(n))
		if seen[out] {
			t.Fatalf("two blocks map to %x", out)
		}
		seen[out] = true
	}
}

// Neighbours must not look alike: on average half of the bits differ.
func TestSealHidesOrder(t *testing.T) {
	f := feistel(t, 3)
	const n = 10_000
	differ := 0
	for i := range uint64(n) {
		a, b := f.Seal(block(i)), f.Seal(block(i+1))
		for k := range a {
			differ += bits.OnesCount8(a[k] ^ b[k])
		}
	}
	if mean := float64(differ) / n; mean < 39 || mean > 41 {
		t.Fatalf("neighbours differ in %.2f of 80 bits, want about 40", mean)
	}
}

func TestKeysDiffer(t *testing.T) {
	if feistel(t, 1).Seal(block(5)) == feistel(t, 2).Seal(block(5)) {
		t.Fatal("two keys map a block alike")
	}
}

func TestKeySize(t *testing.T) {
	if _, err := idgen.NewFeistel(make([]byte, 15)); err == nil {
		t.Fatal("a key of 15 bytes was taken")
	}
}

func BenchmarkSeal(b *testing.B) {
	f := feistel(b, 1)
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		f.Seal(block(n))
	}
}
