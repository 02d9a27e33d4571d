package dibs

// RoomMode is how a waiting room gives places.
type RoomMode string

// The modes.
const (
	// FIFO gives places by arrival.
	FIFO RoomMode = "fifo"
	// Shuffle gives a random place to each who arrived before the start.
	Shuffle RoomMode = "shuffle"
	// Lottery draws the winners among those who registered.
	Lottery RoomMode = "lottery"
)

// RoomSpec makes users wait for their turn.
type RoomSpec struct {
	Mode RoomMode `json:"mode" doc:"how places are given" enum:"fifo,shuffle,lottery"`
	// Rate is how many users are admitted per second.
	Rate int64 `json:"rate" doc:"users admitted per second" minimum:"1" maximum:"1000000"`
}

// MaxRoomRate is the most users per second that a waiting room admits.
const MaxRoomRate = 1_000_000

// faults lists what is wrong with a waiting room of a campaign.
func (r *RoomSpec) faults(field string, _ *Campaign) []Fault {
	var fs []Fault
	if r.Mode != FIFO && r.Mode != Shuffle && r.Mode != Lottery {
		fs = append(fs, Fault{field + "/mode", Text{"must be fifo, shuffle or lottery", "必须是 fifo、shuffle 或 lottery"}})
	}
	if r.Rate < 1 || r.Rate > MaxRoomRate {
		fs = append(fs, Fault{field + "/rate", Textf("must be from 1 to %d", "必须在 1 到 %d 之间", MaxRoomRate)})
	}
	return fs
}

// sameButRate reports whether two rooms differ in their rate at most.
func (r *RoomSpec) sameButRate(other *RoomSpec) bool {
	if r == nil || other == nil {
		return r == other
	}
	a, b := *r, *other
	a.Rate = b.Rate
	return a == b
}
