package audience

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
)

// TestPrintsAreExact: short ids and numbers never share a print.
func TestPrintsAreExact(t *testing.T) {
	p := newPrinter([seedLen]byte{})
	seen := map[uint64]string{}
	for _, u := range []string{
		"A", "AA", "AAA", "B", "a", "0", "00", "000", "1", "01", "10", "-", ".", "_", "--", "zzzzzzzzzz", "----------", "0000000000",
		"9999999999", "10000000000", "999999999999999999", "99999999999", "12345678901", "A123456789",
	} {
		if v, exact := exactly(u); !exact || v >= hashesFrom || (v >= numbersFrom) != (len(u) > shortID) {
			t.Errorf("%q is %d, exact %v", u, v, exact)
		}
		mark := p.of(u)
		if other := seen[mark]; other != "" || mark > printMask {
			t.Errorf("%q has the print %x, as %q", u, mark, other)
		}
		seen[mark] = u
	}
	for _, u := range []string{"01234567890", "1234567890123456789", "ABCDEFGHIJK", "1234567890a"} {
		if _, exact := exactly(u); exact {
			t.Errorf("%q is too long to be written as a number", u)
		}
	}
}

// TestHashHasItAll: whatever differs in long ids makes a difference, and so does
// the seed.
func TestHashHasItAll(t *testing.T) {
	p, other := newPrinter([seedLen]byte{}), newPrinter([seedLen]byte{1})
	seen := map[uint64]string{}
	for n := shortID + 1; n <= dibs.MaxIDLen; n++ {
		same := strings.Repeat("a", n)
		ids := []string{same}
		for i := range n {
			ids = append(ids, same[:i]+"b"+same[i+1:])
		}
		for _, id := range ids {
			mark := p.of(id)
			if is := seen[mark]; is != "" || mark > printMask || mark == other.of(id) {
				t.Errorf("%q has the print %x, as %q, and with another seed %x", id, mark, is, other.of(id))
			}
			seen[mark] = id
		}
	}
}

// printOf returns a print with a home of which this is kept; there may be none.
func (s *Set) printOf(home, kept uint64) (mark uint64, is bool) {
	rest := kept >> awayBits << s.home
	if home >= s.homes || rest > printMask {
		return 0, false
	}
	// The least one whose product with homes is so much or more.
	high, low := home>>1, home<<63|rest
	low, carry := bits.Add64(low, s.homes-1, 0)
	mark, _ = bits.Div64(high+carry, low, s.homes)
	h, k := s.at(mark)
	return mark, h == home && k == kept && mark <= printMask
}

// crowded are prints of which many have few homes.
func crowded(random *rand.Rand, n int) []uint64 {
	in := map[uint64]bool{}
	for len(in) < n {
		at := random.Uint64() & printMask
		for range 1 + random.IntN(min(n, 80)) {
			in[at] = true
			at = min(at+random.Uint64N(printMask/uint64(n)/4), printMask)
		}
	}
	list := make([]uint64, 0, len(in))
	for mark := range in {
		list = append(list, mark)
	}
	slices.Sort(list)
	return list
}

// TestSetAgainstModel asks sets for everybody in them, and for all who could be
// taken for one of them: a user who is the same but for the home, or has what is
// written where nobody is.
func TestSetAgainstModel(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	for _, n := range []int{1, 2, 9, 70, 500, 3000} {
		prints := crowded(random, n)
		b := newSetBuilder(newPrinter([seedLen]byte{}), int64(len(prints)))
		in := map[uint64]bool{}
		for _, mark := range prints {
			must(t, b.add(mark))
			in[mark] = true
		}
		set := b.done()
		asked := slices.Clone(prints)
		for i := range set.homes + maxAway {
			l := set.line(i)
			kept := []uint64{0}
			for slot := range set.slots {
				kept = append(kept, set.slot(l, slot)>>awayBits<<awayBits)
			}
			for _, kept := range kept {
				for far := range uint64(maxAway + 2) {
					if mark, is := set.printOf(i-far, kept); is {
						asked = append(asked, mark)
					}
				}
			}
		}
		others := 0
		for _, mark := range asked {
			if set.has(mark) != in[mark] {
				t.Fatalf("seed %d, %d users: has %x is %v", seed, len(prints), mark, !in[mark])
			}
			if !in[mark] {
				others++
			}
		}
		t.Logf("%d users, %d lines, %d of them beyond; %d others", len(prints), set.homes, len(set.rest), others)
	}
}

// TestEmptyLineIsNobodys: a line without anybody, where users could be who are
// not at home three lines before, is taken for none of them.
func TestEmptyLineIsNobodys(t *testing.T) {
	b := newSetBuilder(newPrinter([seedLen]byte{}), 200)
	first := func(home, kept uint64) uint64 {
		for ; ; kept += 1 << awayBits {
			if mark, is := b.s.printOf(home, kept); is {
				return mark
			}
		}
	}
	home := uint64(maxAway)
	for _, is := b.s.printOf(home, 0); !is; _, is = b.s.printOf(home, 0) {
		home++
	}
	nobody := first(home, 0)
	// So many have a home before that they take this one too, from a user who has its
	// lowest level. That user goes to the next; nobody is in the one that is maxAway behind.
	for mark := first(home-maxAway, 0); b.s.n < int64((maxAway+1)*b.s.slots); mark++ {
		must(t, b.add(mark))
	}
	must(t, b.add(first(home, 1<<awayBits)))
	set := b.done()
	if set.has(nobody) {
		t.Error("somebody is there who is not")
	}
}

// TestLoadInAnyOrder: a list that was stored in another order is loaded as well,
// and one that is not as long as it says is not.
func TestLoadInAnyOrder(t *testing.T) {
	l := ledger(t)
	const part = 1000
	in := names(3 * part)
	a := dibs.Audience{ID: "vip", Version: 1, Users: int64(len(in)), Seed: make([]byte, seedLen+1)}
	for i, users := range [][]string{in[:part], in[part : 2*part], in[2*part:]} {
		raw, err := packUsers(users)
		must(t, err)
		must(t, l.PutAudiencePart(t.Context(), a.ID, a.Version, i, raw))
	}
	must(t, l.FinishAudience(t.Context(), &a))
	set, err := Load(t.Context(), l, &a)
	must(t, err)
	for _, u := range in {
		if !set.Has(u) || set.Has(u+"x") && !slices.Contains(in, u+"x") {
			t.Fatalf("%s: %v, and with an x %v", u, set.Has(u), set.Has(u+"x"))
		}
	}
	a.Users--
	if _, err := Load(t.Context(), l, &a); !errors.Is(err, dibs.ErrCorrupt) {
		t.Errorf("a list with more users than it says: %v", err)
	}
}

// BenchmarkHas looks for users of a list of ten million, half of whom are there: in a
// Set, and in maps of their names and of the 64-bit hashes of these.
func BenchmarkHas(b *testing.B) {
	const n = 10_000_000
	of := func(i int) string { return fmt.Sprintf("01890a5d-ac96-774b-bcce-%012x", i) }
	p := newPrinter([seedLen]byte{})
	users := make([]string, 1<<20)
	for i := range users {
		users[i] = of(i * 7919 % (2 * n))
	}
	b.Run("set", func(b *testing.B) {
		prints := make([]uint64, n)
		for i := range prints {
			prints[i] = p.of(of(2 * i))
		}
		slices.Sort(prints)
		sb := newSetBuilder(p, n)
		for _, mark := range prints {
			must(b, sb.add(mark))
		}
		set := sb.done()
		lookFor(b, users, set.Has)
		b.ReportMetric(float64(set.Bytes())/(1<<20), "MiB")
	})
	b.Run("map", func(b *testing.B) { hasMap(b, n, users, of, func(user string) string { return user }) })
	b.Run("hashes", func(b *testing.B) { hasMap(b, n, users, of, p.of) })
}

// hasMap looks for users in a map by the keys that they have there.
func hasMap[K comparable](b *testing.B, n int, users []string, of func(i int) string, key func(user string) K) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	all := make(map[K]struct{}, n)
	for i := range n {
		all[key(of(2*i))] = struct{}{}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	lookFor(b, users, func(user string) bool {
		_, ok := all[key(user)]
		return ok
	})
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
}

func lookFor(b *testing.B, users []string, has func(user string) bool) {
	found := 0
	for i := 0; b.Loop(); i++ {
		if has(users[i%len(users)]) {
			found++
		}
	}
	if found == 0 {
		b.Fatal("nobody was found")
	}
}

// However many users there are, has looks at all slots of a line, and a home tells as
// many bits as are left out.
func TestSlotsAreLookedAt(t *testing.T) {
	for n := int64(1); n < 1<<40; n += n/8 + 1 {
		var s Set
		if s.size(n); s.slots > 11 || s.homes>>s.home == 0 || s.slots*(32+s.above) > slotBits {
			t.Fatalf("%d users: %d slots of %d bits, %d homes that tell %d", n, s.slots, 32+s.above, s.homes, s.home)
		}
	}
}
