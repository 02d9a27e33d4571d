package sqlledger

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dibs-dev/dibs"
)

// TestStorable: every database can store the text, and it is not too long.
func TestStorable(t *testing.T) {
	for text, want := range map[string]string{"": "", "plain 码": "plain 码", "a\x00b": "a\uFFFDb", "a\xffb": "a\uFFFDb"} {
		if got := storable(text); got != want {
			t.Errorf("%q is stored as %q", text, got)
		}
	}
	long := storable("ab" + strings.Repeat("码", maxText))
	if len(long) > maxText || len(long) < maxText-utf8.UTFMax || !utf8.ValidString(long) {
		t.Errorf("a long text has %d bytes, valid %t", len(long), utf8.ValidString(long))
	}
}

func TestOptionalTimes(t *testing.T) {
	at := time.UnixMilli(1_796_097_600_123)
	if got := fromOptionalMS(toOptionalMS(at)); !got.Equal(at) || got.Location() != time.UTC {
		t.Errorf("%s came back as %s", at, got)
	}
	if none := toOptionalMS(time.Time{}); none != 0 || !fromOptionalMS(none).IsZero() {
		t.Errorf("no time is %d and came back as %s", none, fromOptionalMS(none))
	}
	// A column of a time is never NULL: one that is comes of a wrong statement or a damaged row.
	for _, column := range []timeColumn{ms(new(time.Time)), optionalMS(new(time.Time))} {
		if column.Scan(nil) == nil {
			t.Error("NULL was read as a time")
		}
	}
}

// TestPages: the row that was read beyond the limit says that the list goes on,
// and the cursor leads behind the last row of the page.
func TestPages(t *testing.T) {
	rows := []int{3, 5, 7}
	key := func(n *int) any { return *n }
	for limit, want := range map[int]int{2: 5, 3: 0, 4: 0} {
		list, err := cut(rows, limit, key)
		if err != nil || !slices.Equal(list.Items, rows[:min(limit, len(rows))]) {
			t.Errorf("a page of %d is %v, %v", limit, list.Items, err)
		}
		var after int
		more, err := readCursor(list.NextCursor, &after)
		if err != nil || more != (want > 0) || after != want {
			t.Errorf("after a page of %d the list goes on after %d, %t, %v", limit, after, more, err)
		}
	}
}

func TestForgedCursors(t *testing.T) {
	for _, cursor := range []string{"?", "bm8ganNvbg", "InRleHQi"} {
		var after int
		if _, err := readCursor(cursor, &after); !errors.Is(err, dibs.ErrInvalid) {
			t.Errorf("the cursor %q: %v", cursor, err)
		}
	}
}

func TestPageSizes(t *testing.T) {
	for limit, want := range map[int]int{-1: dibs.DefaultPage, 0: dibs.DefaultPage, 1: 1, dibs.MaxPage: dibs.MaxPage, dibs.MaxPage + 1: dibs.MaxPage} {
		if got := limitOf(dibs.Page{Limit: limit}); got != want {
			t.Errorf("a limit of %d is %d", limit, got)
		}
	}
}

// FuzzCursor: a cursor that a caller made up is refused, or is a place that a column can hold.
func FuzzCursor(f *testing.F) {
	text, err := cursorText(claimCursor{At: 7, Campaign: 3, Shard: 1, Epoch: 2, Seq: 9})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{text, "", "e30", "bnVsbA", "W10", "eyJjIjo0Mjk0OTY3Mjk1LCJlIjo2NTUzNX0", "eyJjIjoxZTQwMH0", "%%%", text + "="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		k, err := readClaimCursor(dibs.Page{Cursor: cursor}, claimCursor{})
		if err != nil && !errors.Is(err, dibs.ErrInvalid) {
			t.Fatalf("%q: %v", cursor, err)
		}
		if k.Campaign > dibs.MaxCampaignNumber+1 || k.Epoch > dibs.MaxEpoch+1 {
			t.Fatalf("%q is %+v", cursor, k)
		}
	})
}
