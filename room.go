package dibs

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

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

// RoomSpec makes users wait for their turn. After publishing, Rate, Per and
// Burst may change.
type RoomSpec struct {
	Mode RoomMode `json:"mode" doc:"how places are given" enum:"fifo,shuffle,lottery"`
	// Rate is how many users are admitted in each Per, of FIFO and Shuffle.
	Rate int64 `json:"rate,omitempty" doc:"users admitted per second, or in each per; required but for a lottery" minimum:"1" maximum:"1000000"`
	// Per is the time that Rate is for; 0 means a second.
	Per Duration `json:"per,omitempty" doc:"the time that rate is for, such as 1m; default 1s"`
	// Burst is how many are admitted at once at the start, and when nobody had to
	// wait for a while; 0 means a second's worth of the rate.
	Burst int64 `json:"burst,omitempty" doc:"users admitted at once at the start, or after nobody had to wait; default what the rate gives in a second"`
	// OpensAt is from when on users may take places; zero means from publishing on.
	OpensAt time.Time `json:"opens_at,omitzero" doc:"from when on users may take places; default from publishing on"`
	// Max is the most users that get a place, or register; 0 means MaxRoomUsers.
	Max int64 `json:"max,omitempty" doc:"the most users who get a place, or register; default and most 5000000"`
	// AdmitFor is how long an admission is good for before it has to be renewed; 0
	// means defaultAdmitFor.
	AdmitFor Duration `json:"admit_for,omitempty" doc:"how long an admission is good for before it has to be renewed, default 2m"`

	// The fields below are a lottery's. RegistrationOpensAt is zero for from publishing
	// on.
	RegistrationOpensAt  time.Time `json:"registration_opens_at,omitzero" doc:"a lottery: the first moment of registration; default from publishing on"`
	RegistrationClosesAt time.Time `json:"registration_closes_at,omitzero" doc:"a lottery: the first moment after registration, at starts_at or before"`
	// Winners is how many are drawn; 0 means as many as there was stock when the
	// seed was fixed.
	Winners int64 `json:"winners,omitempty" doc:"a lottery: how many win; default as many as there is stock at publishing"`
	// PublicValue names, beforehand, a value that will be public after the closing
	// and that nobody can choose. The draw waits until it is told.
	PublicValue string `json:"public_value,omitempty" doc:"a lottery: names beforehand what will be mixed in, which nobody knows before the closing and everybody after it, such as: the closing SSE Composite of 2026-12-01"`
	// PublicValueFormat is how the value will be written: decimal:2, digits:6 or hex:64,
	// so that a value has one spelling. Empty means the simplest spelling of it.
	PublicValueFormat string `json:"public_value_format,omitempty" doc:"a lottery: how the value will be written, so that it has one spelling: decimal:N, a number with N decimals; digits:N, exactly N digits; hex:N, N hexadecimal digits in lower case; default the simplest spelling of a number, or several, or a hash of 32 digits or more"`
}

// Limits of a waiting room.
const (
	// maxRoomRate is the most users that a waiting room admits at once, or per Per.
	maxRoomRate = 1_000_000
	// MaxRoomUsers is the most users that a room has places for.
	MaxRoomUsers = 5_000_000
	// defaultAdmitFor is how long an admission is good for when nothing is said.
	defaultAdmitFor = 2 * time.Minute
	// maxAdmitFor is the longest that it may be.
	maxAdmitFor = 24 * time.Hour
)

// PerSecond is how many users are admitted per second.
func (r *RoomSpec) PerSecond() float64 {
	if r.Per == 0 {
		return float64(r.Rate)
	}
	return float64(r.Rate) / r.Per.Std().Seconds()
}

// BurstOf is how many are admitted at once.
func (r *RoomSpec) BurstOf() int64 {
	if r.Burst > 0 {
		return r.Burst
	}
	return max(1, int64(r.PerSecond()))
}

// MaxOf is the most users in the room.
func (r *RoomSpec) MaxOf() int64 {
	return cmp.Or(r.Max, MaxRoomUsers)
}

// AdmitForOf is how long an admission is good for.
func (r *RoomSpec) AdmitForOf() time.Duration {
	return cmp.Or(r.AdmitFor.Std(), defaultAdmitFor)
}

// faults lists what is wrong with a waiting room of a campaign.
func (r *RoomSpec) faults(field string, c *Campaign) []Fault {
	fs := append(zeroOrWithin(field+"/admit_for", r.AdmitFor.Std(), time.Second, maxAdmitFor),
		zeroOrWithin(field+"/max", r.Max, 1, MaxRoomUsers)...)
	switch r.Mode {
	case FIFO, Shuffle:
		return slices.Concat(fs, r.queueFaults(field, c), absent(field, r.lotteryFields(), Text{"belongs to a lottery", "仅用于 lottery"}))
	case Lottery:
		return slices.Concat(fs, r.lotteryFaults(field, c),
			absent(field, r.queueFields(), Text{"belongs to fifo and shuffle", "仅用于 fifo 和 shuffle"}))
	}
	return append(fs, Fault{field + "/mode", Text{"must be fifo, shuffle or lottery", "必须是 fifo、shuffle 或 lottery"}})
}

// given is a field and whether it was set.
type given struct {
	name string
	set  bool
}

func (r *RoomSpec) queueFields() []given {
	return []given{{"/rate", r.Rate != 0}, {"/per", r.Per != 0}, {"/burst", r.Burst != 0}, {"/opens_at", !r.OpensAt.IsZero()}}
}

func (r *RoomSpec) lotteryFields() []given {
	return []given{
		{"/registration_opens_at", !r.RegistrationOpensAt.IsZero()},
		{"/registration_closes_at", !r.RegistrationClosesAt.IsZero()},
		{"/winners", r.Winners != 0},
		{"/public_value", r.PublicValue != ""},
		{"/public_value_format", r.PublicValueFormat != ""},
	}
}

// absent lists fields that were given and belong to another mode.
func absent(field string, fields []given, why Text) (fs []Fault) {
	for _, f := range fields {
		fs = append(fs, unless(!f.set, field+f.name, why)...)
	}
	return fs
}

// queueFaults checks what FIFO and Shuffle have.
func (r *RoomSpec) queueFaults(field string, c *Campaign) []Fault {
	fs := slices.Concat(
		within(field+"/rate", r.Rate, 1, maxRoomRate),
		zeroOrWithin(field+"/per", r.Per.Std(), time.Second, 24*time.Hour),
		zeroOrWithin(field+"/burst", r.Burst, 1, maxRoomRate),
	)
	switch {
	case r.OpensAt.IsZero():
	case !r.OpensAt.Before(c.EndsAt):
		return append(fs, Fault{field + "/opens_at", Text{"must be before the campaign's ends_at", "必须早于活动的 ends_at"}})
	case r.Mode == Shuffle && !r.OpensAt.Before(c.StartsAt):
		return append(fs, Fault{field + "/opens_at", Text{
			"must be before the campaign's starts_at: who comes later is not shuffled", "必须早于活动的 starts_at：之后到达者不参与打乱",
		}})
	}
	return fs
}

// lotteryFaults checks what a lottery has.
func (r *RoomSpec) lotteryFaults(field string, c *Campaign) []Fault {
	var fs []Fault
	bad := func(name string, t Text) { fs = append(fs, Fault{field + name, t}) }
	switch opens, closes := r.RegistrationOpensAt, r.RegistrationClosesAt; {
	case closes.IsZero():
		bad("/registration_closes_at", Text{"is required: a time at starts_at or before", "必填：不晚于 starts_at 的时间"})
	case closes.After(c.StartsAt):
		bad("/registration_closes_at", Text{"must not be after the campaign's starts_at: who won is known then", "不得晚于活动的 starts_at：届时中签结果须已确定"})
	case !opens.IsZero() && !opens.Before(closes):
		bad("/registration_closes_at", Text{"must be after registration_opens_at", "必须晚于 registration_opens_at"})
	}
	fs = append(fs, zeroOrWithin(field+"/winners", r.Winners, 1, MaxRoomUsers)...)
	if problem := formatProblem(r.PublicValueFormat); problem.EN != "" {
		bad("/public_value_format", problem)
	} else if r.PublicValueFormat != "" && r.PublicValue == "" {
		bad("/public_value_format", Text{"needs a public_value", "需要同时设置 public_value"})
	}
	return append(fs, publicValueFaults(field+"/public_value", r.PublicValue, false)...)
}

// publicValueFaults checks a public value, or its name: it is part of a text
// whose lines are hashed.
func publicValueFaults(field, value string, required bool) []Fault {
	if fs := TextFault(field, value, required, maxPublicValue); fs != nil {
		return fs
	}
	return unless(!strings.ContainsRune(value, utf8.RuneError), field,
		Text{"must be one line of printable characters", "必须是单行可打印字符"})
}

// sameButRate reports whether two rooms differ at most in how fast they admit.
func (r *RoomSpec) sameButRate(other *RoomSpec) bool {
	if r == nil || other == nil {
		return r == other
	}
	a, b := *r, *other
	a.Rate, a.Per, a.Burst = b.Rate, b.Per, b.Burst
	for _, t := range []struct{ a, b *time.Time }{
		{&a.OpensAt, &b.OpensAt}, {&a.RegistrationOpensAt, &b.RegistrationOpensAt}, {&a.RegistrationClosesAt, &b.RegistrationClosesAt},
	} {
		// The same moment may be said in two ways.
		if t.a.Equal(*t.b) {
			*t.a = *t.b
		}
	}
	return a == b
}

// PublicValueSpec tells a lottery's public value.
type PublicValueSpec struct {
	Value string `json:"value" doc:"the value that was named beforehand, in the format that was announced with it: 1-200 characters on one line"`
}

// Faults lists what is wrong with a public value of a room's lottery. Each value has one
// spelling: with several, the operator could choose among as many draws.
func (p *PublicValueSpec) Faults(r *RoomSpec) []Fault {
	const field = "/value"
	if fs := publicValueFaults(field, p.Value, true); fs != nil {
		return fs
	}
	if problem := spellingProblem(p.Value, r.PublicValueFormat); problem.EN != "" {
		return []Fault{{field, problem}}
	}
	return nil
}
