package dibs

import (
	"strings"
	"time"
)

// The levels of durability: what a yes survives. docs/GUARANTEES.md says how
// far each goes, and what it asks of Redis.
const (
	// LevelNone promises nothing of what is answered.
	LevelNone = "none"
	// LevelRelaxed survives a crash of any process; a power cut may take about
	// the last two seconds.
	LevelRelaxed = "relaxed"
	// LevelDurable survives a power cut: an answer waits for the disk.
	LevelDurable = "durable"
	// LevelReplicated is LevelDurable, and replicas have it before an answer.
	LevelReplicated = "replicated"
	// LevelLedgered survives the loss of the engine: the service answers when
	// the ledger has it. No engine gives it by itself.
	LevelLedgered = "ledgered"
)

// Levels returns all levels, the weakest first.
func Levels() []string {
	return []string{LevelNone, LevelRelaxed, LevelDurable, LevelReplicated, LevelLedgered}
}

// What an engine does with claims while what it stands on gives less than its level.
const (
	// RefuseLost refuses them as Unavailable, until the level is given again.
	RefuseLost = "refuse"
	// WarnLost decides them all the same, and the service's health warns. What would
	// have units sold twice is refused with it too.
	WarnLost = "warn"
)

// LostRules returns the words for what happens to claims when the level is lost.
func LostRules() []string { return []string{RefuseLost, WarnLost} }

// LevelKeeper is an Engine that watches whether what it stands on gives its level.
type LevelKeeper interface {
	// Level returns the level that was asked for, and what was found last of each
	// setting that it depends on, once for each Subject. It asks nobody.
	Level() (level string, settings []Finding)
}

// levelLost is the refusal of a claim whose yes would survive less than the level
// says.
var levelLost = &Error{
	Reason: Unavailable, Effect: EffectNone, RetryAfter: time.Second,
	Detail: Text{
		"a claim could not be kept as safely as promised now; claims go on when it can",
		"当前无法按承诺的持久级别保存领取结果，恢复后将继续",
	},
}

// level is the level that claims are answered at when all is well, and the settings
// that it depends on; none where the engine does not watch them.
func (s *Service) level() (string, []Finding) {
	k, ok := s.cfg.Engine.(LevelKeeper)
	if !ok {
		return s.Durability(), nil
	}
	level, settings := k.Level()
	if s.cfg.Ledgered {
		level = LevelLedgered
	}
	return level, settings
}

// showLevel adds to what is shown of the engine which settings take its level away.
func (s *Service) showLevel(d *DependencyView) {
	level, settings := s.level()
	var lost []string
	for _, f := range settings {
		if !f.OK() {
			lost = append(lost, f.String())
		}
	}
	switch {
	case len(lost) == 0:
	case d.OK:
		d.Warning = "the level " + level + " is not given, and claims are granted all the same: " + strings.Join(lost, "; ")
	default:
		d.Error = "claims are refused, since the level " + level + " is not given: " + strings.Join(lost, "; ")
	}
}
