package dibs

import (
	"testing"
	"time"
)

// roomOf is a campaign that starts at noon, with a room.
func roomOf(r RoomSpec) (*Campaign, *RoomSpec) {
	noon := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	return &Campaign{StartsAt: noon, EndsAt: noon.Add(time.Hour)}, &r
}

// Each field that is out of bounds, or belongs to another mode, is named.
func TestRoomFaults(t *testing.T) {
	noon := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		room  RoomSpec
		field string // the one that is named; "" when all is well
	}{
		"a queue":                      {RoomSpec{Mode: FIFO, Rate: 50}, ""},
		"shuffled before the start":    {RoomSpec{Mode: Shuffle, Rate: 50, OpensAt: noon.Add(-time.Hour)}, ""},
		"a lottery":                    {RoomSpec{Mode: Lottery, RegistrationClosesAt: noon}, ""},
		"no mode":                      {RoomSpec{Rate: 50}, "/room/mode"},
		"no rate":                      {RoomSpec{Mode: FIFO}, "/room/rate"},
		"too fast":                     {RoomSpec{Mode: FIFO, Rate: maxRoomRate + 1}, "/room/rate"},
		"by less than a second":        {RoomSpec{Mode: FIFO, Rate: 1, Per: Duration(time.Millisecond)}, "/room/per"},
		"a burst below none":           {RoomSpec{Mode: FIFO, Rate: 1, Burst: -1}, "/room/burst"},
		"too many users":               {RoomSpec{Mode: FIFO, Rate: 1, Max: MaxRoomUsers + 1}, "/room/max"},
		"admitted for two days":        {RoomSpec{Mode: FIFO, Rate: 1, AdmitFor: Duration(48 * time.Hour)}, "/room/admit_for"},
		"opened when the sale is over": {RoomSpec{Mode: FIFO, Rate: 1, OpensAt: noon.Add(time.Hour)}, "/room/opens_at"},
		"shuffled after the start":     {RoomSpec{Mode: Shuffle, Rate: 1, OpensAt: noon}, "/room/opens_at"},
		"a queue with winners":         {RoomSpec{Mode: FIFO, Rate: 1, Winners: 3}, "/room/winners"},
		"a lottery with a rate":        {RoomSpec{Mode: Lottery, RegistrationClosesAt: noon, Rate: 1}, "/room/rate"},
		"a lottery that never closes":  {RoomSpec{Mode: Lottery}, "/room/registration_closes_at"},
		"drawn after the start":        {RoomSpec{Mode: Lottery, RegistrationClosesAt: noon.Add(time.Second)}, "/room/registration_closes_at"},
		"closed before it opens":       {RoomSpec{Mode: Lottery, RegistrationOpensAt: noon, RegistrationClosesAt: noon.Add(-time.Hour)}, "/room/registration_closes_at"},
		"a format of no public value":  {RoomSpec{Mode: Lottery, RegistrationClosesAt: noon, PublicValueFormat: "0.00"}, "/room/public_value_format"},
	} {
		campaign, room := roomOf(c.room)
		fs := room.faults("/room", campaign)
		switch {
		case c.field == "" && len(fs) > 0:
			t.Errorf("%s: %v", name, fs)
		case c.field != "" && (len(fs) != 1 || fs[0].Field != c.field):
			t.Errorf("%s: %v, want one fault of %s", name, fs, c.field)
		}
	}
}

// The defaults of a room.
func TestRoomDefaults(t *testing.T) {
	_, r := roomOf(RoomSpec{Mode: FIFO, Rate: 90, Per: Duration(time.Minute)})
	if r.PerSecond() != 1.5 || r.BurstOf() != 1 || r.MaxOf() != MaxRoomUsers || r.AdmitForOf() != 2*time.Minute {
		t.Errorf("%v a second, %d at once, at most %d, for %s", r.PerSecond(), r.BurstOf(), r.MaxOf(), r.AdmitForOf())
	}
}

// A published room changes its rate and nothing else; the same moment in another zone
// is no change.
func TestOnlyTheRateOfARoomChanges(t *testing.T) {
	noon := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	before := RoomSpec{Mode: FIFO, Rate: 50, OpensAt: noon}
	faster, elsewhere, longer := before, before, before
	faster.Rate, faster.Per, faster.Burst = 500, Duration(time.Minute), 3
	elsewhere.OpensAt = noon.In(time.FixedZone("Shanghai", 8*3600))
	longer.AdmitFor = Duration(time.Minute)
	published := &Campaign{Gate: &GateSpec{Room: &before}}
	for name, c := range map[string]struct {
		room *RoomSpec
		ok   bool
	}{"faster": {&faster, true}, "said in another zone": {&elsewhere, true}, "longer admissions": {&longer, false}, "no room any more": {nil, false}} {
		if fs := (&GateSpec{Room: c.room}).changeFaults(published); (len(fs) == 0) != c.ok {
			t.Errorf("%s: %v", name, fs)
		}
	}
}
