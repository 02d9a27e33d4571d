package room_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dibs-dev/dibs/gate/room"
)

// hexOf is a second way to a hash's text, for the second draw.
func hexOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// drawAgain draws by the words of docs/LOTTERY.md alone, over texts, and returns
// the winners' entries in the order of their tickets.
func drawAgain(seed, public string, entries []string, winners int) (listHash, key string, won []string) {
	sorted := slices.Clone(entries)
	slices.Sort(sorted)
	listHash = hexOf(strings.Join(sorted, "\n") + "\n")
	if len(sorted) == 0 {
		listHash = hexOf("")
	}
	key = hexOf(seed + "\n" + listHash + "\n" + public + "\n")
	type line struct{ ticket, entry string }
	lines := make([]line, len(sorted))
	for i, e := range sorted {
		lines[i] = line{hexOf(key + e), e}
	}
	slices.SortFunc(lines, func(a, b line) int { return strings.Compare(a.ticket, b.ticket) })
	for _, l := range lines[:min(winners, len(lines))] {
		won = append(won, l.entry)
	}
	return listHash, key, won
}

// TestDrawAgain draws in two ways that share no code.
func TestDrawAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := room.Sum(sha256.Sum256([]byte(rapid.String().Draw(t, "seed"))))
		public := rapid.StringMatching(`[ -~]{0,20}`).Draw(t, "public value")
		n := rapid.IntRange(0, 50).Draw(t, "entries")
		winners := rapid.IntRange(1, 60).Draw(t, "winners")
		entries := make([]string, n)
		for i := range entries {
			entries[i] = room.EntryHash("c", user(i), "nonce").String()
		}
		listHash, key, won := drawAgain(seed.String(), public, entries, winners)

		slices.Sort(entries)
		list, tickets := room.NewListHasher(), make([]room.Sum, 0, n)
		sums := make([]room.Sum, n)
		for i, e := range entries {
			var err error
			if sums[i], err = room.ParseSum(e); err != nil {
				t.Fatal(err)
			}
			if err := list.Add(sums[i]); err != nil {
				t.Fatal(err)
			}
		}
		k := room.DrawKey(seed, list.Sum(), public)
		if list.Sum().String() != listHash || k.String() != key {
			t.Fatalf("list %s and key %s, want %s and %s", list.Sum(), k, listHash, key)
		}
		for _, s := range sums {
			tickets = append(tickets, room.TicketOf(k, s))
		}
		cutoff := room.Cutoff(tickets, int64(winners))
		var got []string
		for _, s := range sums {
			if room.Wins(room.TicketOf(k, s), cutoff) {
				got = append(got, s.String())
			}
		}
		slices.Sort(won)
		if !slices.Equal(got, won) {
			t.Fatalf("%d win, want %d: %v, want %v", len(got), len(won), got, won)
		}
	})
}

// The published list may be anything: a draw without winners is told, and no crash.
func TestADrawThatNobodyWins(t *testing.T) {
	seed, list := room.Sum{1}, room.EntryHash("c", "ann", "nonce").String()+"\n"+lastEntry+"\n"
	for _, winners := range []int64{0, -1, math.MinInt64} {
		d, err := room.DrawAgain(strings.NewReader(list), room.Published{Seed: seed.String(), Entries: 2, Winners: winners})
		must(t, err)
		if len(d.Winners) != 0 || !slices.ContainsFunc(d.Problems, func(p string) bool { return strings.Contains(p, "number of winners") }) {
			t.Errorf("%d winners: %d are drawn, problems %q", winners, len(d.Winners), d.Problems)
		}
	}
}

// lastEntry follows every other in a list.
var lastEntry = strings.Repeat("f", 64)

// Every part of the key counts: whoever changes one has another draw.
func TestEachSideMovesTheDraw(t *testing.T) {
	seed, list := room.EntryHash("a", "b", "c"), room.EntryHash("d", "e", "f")
	keys := []string{
		room.DrawKey(seed, list, "").String(), room.DrawKey(list, seed, "").String(),
		room.DrawKey(seed, list, "3888.60").String(), room.DrawKey(seed, list, "3888.6").String(),
	}
	slices.Sort(keys)
	if len(slices.Compact(keys)) != 4 {
		t.Fatalf("keys %v repeat", keys)
	}
	if room.EntryHash("c", "ab", "n") == room.EntryHash("c", "a", "bn") {
		t.Fatal("two registrations have one entry")
	}
}

func TestAListMustAscend(t *testing.T) {
	a, b := room.Sum{1}, room.Sum{2}
	for _, order := range [][]room.Sum{{b, a}, {a, a}} {
		l := room.NewListHasher()
		must(t, l.Add(order[0]))
		if err := l.Add(order[1]); err == nil {
			t.Errorf("the list %v was taken", order)
		}
	}
	for _, text := range []string{"", strings.Repeat("g", 64), strings.Repeat("A", 64), strings.Repeat("a", 63)} {
		if _, err := room.ParseSum(text); err == nil {
			t.Errorf("%q was read as a hash", text)
		}
	}
}

// Each entry wins as often as any other, over seeds.
func TestDrawsAreFair(t *testing.T) {
	const entries, winners, draws = 40, 10, 4000
	sums, won := make([]room.Sum, entries), make([]int, entries)
	for i := range sums {
		sums[i] = room.EntryHash("c", user(i), "n")
	}
	for n := range draws {
		k := room.DrawKey(room.Sum(sha256.Sum256(fmt.Appendf(nil, "seed %d", n))), room.Sum{}, "")
		tickets := make([]room.Sum, entries)
		for i, s := range sums {
			tickets[i] = room.TicketOf(k, s)
		}
		cutoff := room.Cutoff(slices.Clone(tickets), winners)
		for i := range tickets {
			if room.Wins(tickets[i], cutoff) {
				won[i]++
			}
		}
	}
	// A chi-square of entries-1 degrees of freedom, of draws without replacement: 80
	// is five deviations above its mean. Seeds are fixed: it never fails by chance.
	expected, sum := float64(draws*winners)/entries, 0.0
	for _, n := range won {
		d := float64(n) - expected
		sum += d * d / (expected * (1 - float64(winners)/entries))
	}
	if sum > 80 {
		t.Fatalf("chi-square %.1f: %v", sum, won)
	}
}

// TestTheScriptOfTheDocs runs the script that docs/LOTTERY.md gives, which knows
// sha256sum and sort and nothing of dibs.
func TestTheScriptOfTheDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/LOTTERY.md")
	must(t, err)
	_, rest, found := strings.Cut(string(doc), "```sh\n#!/bin/sh\n")
	script, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("docs/LOTTERY.md has no script")
	}
	dir := t.TempDir()
	entries := make([]string, 30)
	for i := range entries {
		entries[i] = room.EntryHash("c", user(i), "nonce").String()
	}
	seed := room.Sum{42}
	listHash, key, won := drawAgain(seed.String(), "3,888.60", entries, 7)
	slices.Sort(entries)
	must(t, os.WriteFile(filepath.Join(dir, "entries.txt"), []byte(strings.Join(entries, "\n")+"\n"), 0o600))
	cmd := exec.Command("sh", "-s", seed.String(), "3,888.60", "7")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(script)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	want := fmt.Sprintf("seed_hash %s\nlist_hash %s\nkey %s\n", room.SeedHash(seed), listHash, key) + strings.Join(won, "\n") + "\n"
	if out.String() != want {
		t.Fatalf("the script says\n%s\nwant\n%s", out.String(), want)
	}
}
