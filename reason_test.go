package dibs

import (
	"slices"
	"testing"
	"time"
)

// The words and codes are a contract: each word stands once but where two
// statuses share it, and reads back.
func TestReasonsAreARegistry(t *testing.T) {
	var words []string
	for r := range Reason(ReasonCount) {
		info := r.Info()
		if info.Word == "" || info.Status == 0 || info.Title.EN == "" || info.Title.ZH == "" {
			t.Errorf("reason %d is incomplete: %+v", r, info)
		}
		if r != TooLarge && slices.Contains(words, info.Word) {
			t.Errorf("word %s stands twice", info.Word)
		}
		words = append(words, info.Word)
		var back Reason
		if err := back.UnmarshalText([]byte(info.Word)); err != nil || back.String() != info.Word {
			t.Errorf("%s reads back as %s, %v", info.Word, back, err)
		}
	}
	// The codes are those that flash sales in Chinese shops have had for long: clients may know them.
	for r, code := range map[Reason]int{
		InvalidRequest: 20001, NotFound: 30002, Paused: 30003, NotStarted: 30004, Ended: 30005, SoldOut: 30006, LimitReached: 30007,
		Unavailable: 30008, Overloaded: 30008, Unauthenticated: 10002,
	} {
		if got := r.Info().Code; got != code {
			t.Errorf("%s has the code %d, want %d", r, got, code)
		}
	}
	var r Reason
	if err := r.UnmarshalText([]byte("lucky")); err == nil {
		t.Error("an unknown word was read")
	}
}

// A moment in a sentence is readable in both languages, and says of which clock it is.
func TestTextAt(t *testing.T) {
	moment := time.Date(2026, 11, 23, 18, 19, 41, 5e8, time.FixedZone("", -3600))
	got := Text{"the campaign starts at %s", "活动将于 %s开始"}.At(moment)
	if want := (Text{"the campaign starts at 2026-11-23 19:19:41 UTC", "活动将于 2026-11-24 03:19:41（北京时间）开始"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
