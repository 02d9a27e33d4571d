package redpacket_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/redpacket"
)

func packet(total, count int64, split dibs.Split, least, most int64) dibs.RedPacketSpec {
	return dibs.RedPacketSpec{Total: dibs.Money{Amount: total, Currency: "CNY"}, Count: count, Split: split, Min: least, Max: most}
}

// seeded is a random source that gives the same numbers each time.
func seeded(n byte) io.Reader { return rand.NewChaCha8([32]byte{n}) }

// whatIsWrong returns what breaks a promise of shares.
func whatIsWrong(p dibs.RedPacketSpec, shares []int64) string {
	p = p.WithDefaults()
	sum := int64(0)
	for _, s := range shares {
		switch {
		case s < p.Min:
			return "a share is below min"
		case p.Max != 0 && s > p.Max:
			return "a share is above max"
		}
		sum += s
	}
	switch {
	case int64(len(shares)) != p.Count:
		return "the count is wrong"
	case sum != p.Total.Amount:
		return "the sum is wrong"
	case p.Split == dibs.Equal && slices.Max(shares)-slices.Min(shares) > 1:
		return "equal shares differ by more than one"
	}
	return ""
}

func TestWhatCanBeDivided(t *testing.T) {
	const most = dibs.MaxMinor - 1
	for _, split := range append(dibs.Splits(), "") {
		for _, p := range []dibs.RedPacketSpec{
			packet(1, 1, split, 0, 0),
			packet(most, 1, split, most, most),
			packet(most, 2, split, 0, 0),
			packet(most, 3, split, 1, most),
			packet(10, 10, split, 1, 1),
			packet(11, 10, split, 1, 2),
			packet(11, 10, split, 1, 11),
			packet(19, 10, split, 1, 2),
			packet(20, 10, split, 2, 2),
			packet(1005, 10, split, 100, 101),
			packet(10_000, 10, split, 0, 1001),
			packet(10_000, 10, split, 999, 0),
			packet(10_000, 7, split, 1000, 2000),
			packet(dibs.MaxShares, dibs.MaxShares, split, 0, 0),
			packet(dibs.MaxShares+1, dibs.MaxShares, split, 0, most),
			packet(most, dibs.MaxShares, split, most/dibs.MaxShares, most/dibs.MaxShares+1),
			packet(most, dibs.MaxShares, split, 0, 0),
			packet(10_000_000, 100_000, split, 1, 50_000),
		} {
			shares, err := redpacket.Split(p, seeded(1))
			if err != nil {
				t.Errorf("%+v: %v", p, err)
			} else if wrong := whatIsWrong(p, shares); wrong != "" {
				t.Errorf("%+v: %s", p, wrong)
			}
		}
	}
}

func TestWhatCannotBeDivided(t *testing.T) {
	for _, c := range []struct {
		p      dibs.RedPacketSpec
		faults string
	}{
		{packet(9, 10, "", 0, 0), "/total/amount must be at least 10 (0.10 CNY), one minor unit for each share"},
		{packet(1000, 10, "", 101, 0), "/min must be at most 100 (1.00 CNY), or the total does not reach for 10 shares"},
		{packet(1001, 10, "", 0, 100), "/max must be at least 101 (1.01 CNY), or 10 shares cannot hold the total"},
		{packet(1000, 10, "", 20, 10), "/max must be at least min, 20 (0.20 CNY)|/max must be at least 100 (1.00 CNY), or 10 shares cannot hold the total"},
		{packet(dibs.MaxMinor-1, dibs.MaxShares, "", dibs.MaxMinor-1, 0), "/min must be at most 9007199254 (90071992.54 CNY), or the total does not reach for 1000000 shares"},
		{packet(0, 1, "", 0, 0), "/total/amount must be from 1 to 9007199254740991"},
		{packet(-5, 1, "", 0, 0), "/total/amount must be from 1 to 9007199254740991"},
		{packet(dibs.MaxMinor, 1, "", 0, 0), "/total/amount must be from 1 to 9007199254740991"},
		{packet(1, 0, "", 0, 0), "/count must be from 1 to 1000000"},
		{packet(1, -1, "", 0, 0), "/count must be from 1 to 1000000"},
		{packet(dibs.MaxMinor-1, dibs.MaxShares+1, "", 0, 0), "/count must be from 1 to 1000000"},
		{packet(10, 1, "halves", 0, 0), "/split must be double_mean, line_cut or equal"},
		{packet(10, 1, "", -1, -1), "/min must be from 1 to 9007199254740991, or absent for 1|/max must be from 1 to 9007199254740991, or absent for no bound"},
		{packet(10, 1, "", dibs.MaxMinor, dibs.MaxMinor), "/min must be from 1 to 9007199254740991, or absent for 1|/max must be from 1 to 9007199254740991, or absent for no bound"},
		{dibs.RedPacketSpec{}, "/total/amount must be from 1 to 9007199254740991|/total/currency must be three capital letters, such as CNY|/count must be from 1 to 1000000"},
	} {
		// A reader that fails would show itself: bad input is told first.
		shares, err := redpacket.Split(c.p, strings.NewReader(""))
		var e *dibs.Error
		if shares != nil || !errors.As(err, &e) || e.Reason != dibs.InvalidRequest {
			t.Errorf("%+v: %v, %v", c.p, shares, err)
			continue
		}
		var got []string
		for _, f := range e.Faults {
			got = append(got, f.Field+" "+f.Problem.EN)
			if f.Problem.ZH == "" {
				t.Errorf("%s has no Chinese", f.Problem.EN)
			}
		}
		if strings.Join(got, "|") != c.faults {
			t.Errorf("%+v: %s\nwant %s", c.p, strings.Join(got, "|"), c.faults)
		}
	}
	if fs := packet(9, 10, "", 0, 0).Faults("/stock/redpacket"); fs[0].Field != "/stock/redpacket/total/amount" {
		t.Errorf("the field is %s", fs[0].Field)
	}
}

// Every spec is refused or divided as promised.
func TestEveryDivisionKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.Int64Range(1, 300).Draw(rt, "count")
		least := rapid.Int64Range(1, 50).Draw(rt, "min")
		room := rapid.Int64Range(0, 100).Draw(rt, "room")
		total := rapid.Int64Range(count*least, count*(least+room)).Draw(rt, "total")
		most := least + room
		if most == least || rapid.Bool().Draw(rt, "unbounded") {
			most, total = 0, total+rapid.Int64Range(0, 1<<50).Draw(rt, "more")
		}
		p := packet(total, count, rapid.SampledFrom(dibs.Splits()).Draw(rt, "split"), least, most)
		shares, err := redpacket.Split(p, seeded(rapid.Byte().Draw(rt, "seed")))
		if err != nil {
			rt.Fatal(err)
		}
		if wrong := whatIsWrong(p, shares); wrong != "" {
			rt.Fatalf("%+v: %s: %v", p, wrong, shares)
		}
	})
}

// Any numbers are refused, or divided as promised.
func FuzzSplit(f *testing.F) {
	f.Add(int64(10_000), int64(10), byte(0), int64(1), int64(0), byte(0))
	f.Add(int64(10_000), int64(10), byte(1), int64(900), int64(1100), byte(1))
	f.Add(int64(1)<<53-1, int64(1000), byte(1), int64(0), int64(1)<<44, byte(2))
	f.Add(int64(7), int64(5), byte(2), int64(1), int64(2), byte(3))
	f.Fuzz(func(t *testing.T, total, count int64, split byte, least, most int64, seed byte) {
		p := packet(total, count, dibs.Splits()[int(split)%len(dibs.Splits())], least, most)
		if count > 10_000 && len(p.Faults("")) == 0 {
			// It would take the time of many smaller ones.
			return
		}
		shares, err := redpacket.Split(p, seeded(seed))
		if errors.Is(err, dibs.ErrInvalid) {
			if len(p.Faults("")) == 0 {
				t.Fatalf("%+v: refused without a fault", p)
			}
			return
		}
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		if wrong := whatIsWrong(p, shares); wrong != "" {
			t.Fatalf("%+v: %s", p, wrong)
		}
	})
}

func TestSeeds(t *testing.T) {
	p := packet(10_000, 100, dibs.DoubleMean, 0, 0)
	divide := func(random io.Reader) []int64 {
		t.Helper()
		shares, err := redpacket.Split(p, random)
		if err != nil {
			t.Fatal(err)
		}
		return shares
	}
	if !slices.Equal(divide(seeded(1)), divide(seeded(1))) {
		t.Error("the same seed gave other shares")
	}
	if slices.Equal(divide(seeded(1)), divide(seeded(2))) || slices.Equal(divide(nil), divide(nil)) {
		t.Error("another seed gave the same shares")
	}
	if _, err := redpacket.Split(p, strings.NewReader("short")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("with too little randomness: %v", err)
	}
}
